#include "agent/core/process_env.h"

#include <stdlib.h>
#include <string.h>

#include "agent/core/process.h"
#include "agent/core/ring.h"
#include "agent/core/sys.h"
#include "base/loader.h"

#define KEPT_BYTES 8192u /* of all kept variables together */
#define PAGE_BYTES 4096u /* the smallest page there is */

enum { SAME, ADD, FRONT, CUT }; /* lull_child_env.vars[].todo */

/* The variables; a list has our word in it, which is NULL for the agent's path. */
static const struct {
	const char *name;
	const char *gaps; /* what stands between the words of a list, NULL = it is none */
	const char *word;
} vars[] = {
	{ LULL_ENV_AGENT, NULL, NULL }, /* the first: it says what the agent is called */
	{ "LD_PRELOAD", LULL_PRELOAD_GAPS, NULL },
	{ LULL_ENV_ASAN, ":, \t\n", LULL_ASAN_WORD },
	{ LULL_ENV_SESSION, NULL, NULL },
	{ "NVTX_INJECTION64_PATH", NULL, NULL },
	{ "CUDA_INJECTION64_PATH", NULL, NULL },
	{ "NCCL_PROFILER_PLUGIN", NULL, NULL },
};

#define AGENT	0
#define PRELOAD 1

_Static_assert(LULL_COUNT_OF(vars) == LULL_N_CHILD_VARS, "process_env.h counts them, too");

static LULL_EARLY_LARGE struct {
	char *entry[LULL_N_CHILD_VARS]; /* "NAME=value" in bytes[], NULL = was not set */
	const char *agent;		/* value of LULL_AGENT, inside its entry */
	char bytes[KEPT_BYTES];
} kept;

/* The value, if the entry is that variable. */
static const char *value_of(const char *entry, const char *name)
{
	size_t len = strlen(name);

	return strncmp(entry, name, len) == 0 && entry[len] == '=' ? entry + len + 1 : NULL;
}

static const char *word_of(size_t var)
{
	return vars[var].word ? vars[var].word : kept.agent;
}

/* Where our word stands in the value of a list, or NULL. */
static const char *find_word(size_t var, const char *value)
{
	const char *word = word_of(var), *gaps = vars[var].gaps;
	size_t len = strlen(word);

	for (const char *at = strstr(value, word); at; at = strstr(at + 1, word))
		if ((at == value || strchr(gaps, at[-1])) && strchr(gaps, at[len]))
			return at;
	return NULL;
}

static char *append(char *to, const char *text, size_t n)
{
	memcpy(to, text, n);
	return to + n;
}

static char *append_text(char *to, const char *text)
{
	return append(to, text, strlen(text));
}

void lull_process_keep_environment(void)
{
	char *at = kept.bytes;

	if (kept.agent)
		return;
	for (size_t i = 0; i < LULL_N_CHILD_VARS; i++) {
		const char *value = getenv(vars[i].name);

		/* Of a list only our word: the rest is for the program to keep. */
		if (value && vars[i].gaps)
			value = word_of(i) && find_word(i, value) ? word_of(i) : NULL;
		if (!value || strlen(vars[i].name) + 1 + strlen(value) + 1 >
				      (size_t)(kept.bytes + KEPT_BYTES - at))
			continue;
		kept.entry[i] = at;
		at = append_text(append_text(at, vars[i].name), "=");
		if (i == AGENT)
			kept.agent = at;
		at = append(at, value, strlen(value) + 1);
	}
}

const char *lull_child_env_agent(void)
{
	return kept.entry[PRELOAD] ? kept.agent : NULL;
}

/* Of a page that was found readable, the others are; `page` is the last such one. */
static bool is_there(const void *at, u64 *page)
{
	u64 addr = (u64)at & ~7ull; /* does not cross a page */

	if (addr / PAGE_BYTES == *page)
		return true;
	if (!lull_sys_may_read(addr))
		return false;
	*page = addr / PAGE_BYTES;
	return true;
}

/* Count them; false if the kernel would say EFAULT. The program may hand over anything. */
static bool count(char *const *entries, size_t *n)
{
	u64 list_page = UINT64_MAX, text_page = UINT64_MAX;

	for (*n = 0; entries; (*n)++) {
		if (!is_there(entries + *n, &list_page))
			return false;
		if (!entries[*n])
			break;
		if (!is_there(entries[*n], &text_page))
			return false;
	}
	return true;
}

/* Index in the given environment of a variable, or n_given. */
static size_t find(const struct lull_child_env *env, const char *name)
{
	size_t i = 0;

	while (i < env->n_given && !value_of(env->given[i], name))
		i++;
	return i;
}

/* What is to be done about a variable. */
static u8 todo_of(const struct lull_child_env *env, size_t var, size_t at, bool can_hold)
{
	const char *value = at < env->n_given ? value_of(env->given[at], vars[var].name) : NULL;

	if (!kept.entry[var])
		return SAME;
	if (!can_hold)
		return var == PRELOAD && value && find_word(var, value) ? CUT : SAME;
	if (!value)
		return ADD;
	return vars[var].gaps && !find_word(var, value) ? FRONT : SAME;
}

void lull_child_env_plan(struct lull_child_env *env, char *const *given, bool can_hold)
{
	size_t text_bytes = 0;
	bool is_same = true;

	env->given = given;
	env->room_bytes = 0;
	if (!kept.agent || !count(given, &env->n_given))
		return;
	for (size_t i = 0; i < LULL_N_CHILD_VARS; i++) {
		size_t at = find(env, vars[i].name);
		u8 todo = todo_of(env, i, at, can_hold);

		env->vars[i].at = (u32)at;
		env->vars[i].todo = todo;
		is_same = is_same && todo == SAME;
		if (todo == FRONT || todo == CUT)
			text_bytes += strlen(given[at]) + 1 + strlen(word_of(i)) + 1;
	}
	if (!is_same)
		env->room_bytes =
			(env->n_given + LULL_N_CHILD_VARS + 1) * sizeof(char *) + text_bytes;
}

/* "NAME=word:value" at `to`; returns its end. */
static char *put_front(char *to, size_t var, const char *given)
{
	const char *value = value_of(given, vars[var].name);

	to = append(to, given, (size_t)(value - given));
	to = append_text(to, word_of(var));
	if (*value)
		*to++ = ':';
	return append(to, value, strlen(value) + 1);
}

/* The entry without our word at `to`; returns its end, or NULL if no other word is left. */
static char *cut_out(char *to, size_t var, const char *given)
{
	const char *value = value_of(given, vars[var].name);
	char *start = append(to, given, (size_t)(value - given)), *at = start;

	for (const char *word; (word = find_word(var, value));) {
		at = append(at, value, (size_t)(word - value));
		value = word + strlen(word_of(var));
		value += *value ? 1 : 0; /* the gap after it */
	}
	at = append(at, value, strlen(value) + 1);
	return start[strspn(start, vars[var].gaps)] ? at : NULL;
}

char *const *lull_child_env_build(const struct lull_child_env *env, void *room)
{
	char **entries = room, *text, *end;
	size_t n = env->n_given;

	if (!room)
		return env->given;
	text = (char *)(entries + n + LULL_N_CHILD_VARS + 1);
	for (size_t i = 0; i < n; i++)
		entries[i] = env->given[i];
	for (size_t i = 0; i < LULL_N_CHILD_VARS; i++) {
		size_t at = env->vars[i].at;

		if (env->vars[i].todo == ADD)
			entries[n++] = kept.entry[i];
		if (env->vars[i].todo != FRONT && env->vars[i].todo != CUT)
			continue;
		entries[at] = text;
		end = env->vars[i].todo == FRONT ? put_front(text, i, env->given[at])
						 : cut_out(text, i, env->given[at]);
		if (end)
			text = end;
		else /* Only the one variable is ever cut, and then none is added. */
			memmove(&entries[at], &entries[at + 1], (--n - at) * sizeof(char *));
	}
	entries[n] = NULL;
	return entries;
}

void *lull_child_env_room(size_t size_bytes)
{
	struct lull_thread *t = lull_thread();
	int saved = errno;

	size_bytes = (size_bytes + 4095) & ~(size_t)4095;
	if (!t)
		return NULL;
	if (t->env_bytes < size_bytes) {
		lull_thread_free_env(t);
		t->env = lull_sys_map(size_bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
		t->env_bytes = t->env ? size_bytes : 0;
	}
	errno = saved;
	return t->env;
}
