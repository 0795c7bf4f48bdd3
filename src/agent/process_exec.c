/*
 * process_exec: children and successors of the process keep the agent, whatever environment they
 * are given.
 *
 * A program may start others with an environment of its own making. The variables that carry the
 * agent are put back where they are missing; one that is there with another value stays, so that a
 * recorder started inside a recording has its own session. The exception is LD_PRELOAD, into which
 * the agent is put in front.
 *
 * All of this may run in the child of a vfork, in the memory of its parent: it uses the stack, and
 * for large environments a mapping that the thread keeps, since its child never comes back to undo
 * it.
 */
#include "agent/process.h"

#include <alloca.h>
#include <stdarg.h>

#include "agent/cuda.h"
#include "agent/oscall.h"
#include "agent/sys.h"

#define KEPT_BYTES    8192u /* of all kept variables together */
#define STACK_ENTRIES 512u  /* of an environment that fits on any stack */
#define PRELOAD_BYTES 4096u /* a longer LD_PRELOAD is passed on as it is */

#define PRELOAD "LD_PRELOAD"

static const char *const names[] = {
	PRELOAD,
	LULL_ENV_SESSION,
	LULL_ENV_AGENT,
	"NVTX_INJECTION64_PATH",
	"CUDA_INJECTION64_PATH",
	"NCCL_PROFILER_PLUGIN",
};

#define N_NAMES LULL_COUNT_OF(names)

static struct {
	char *entry[N_NAMES]; /* "NAME=value" in bytes[], NULL = was not set */
	const char *agent;    /* value of LULL_AGENT, inside its entry */
	char bytes[KEPT_BYTES];
} kept;

/* The environment for a child, on the stack of the exec wrapper. */
struct env {
	char *const *given;
	size_t n_given;
	char **entries; /* room for n_given + N_NAMES + 1 */
	char preload[PRELOAD_BYTES];
};

/* The value, if the entry is that variable. */
static const char *value_of(const char *entry, const char *name)
{
	size_t len = strlen(name);

	return strncmp(entry, name, len) == 0 && entry[len] == '=' ? entry + len + 1 : NULL;
}

void lull_process_keep_environment(void)
{
	char *at = kept.bytes;

	if (kept.agent)
		return;
	for (size_t i = 0; i < N_NAMES; i++) {
		const char *value = getenv(names[i]);
		size_t n_name = strlen(names[i]);
		size_t n_value = value ? strlen(value) + 1 : 0;

		if (!value || n_name + 1 + n_value > (size_t)(kept.bytes + KEPT_BYTES - at))
			continue;
		kept.entry[i] = at;
		memcpy(at, names[i], n_name);
		at[n_name] = '=';
		memcpy(at + n_name + 1, value, n_value);
		if (strcmp(names[i], LULL_ENV_AGENT) == 0)
			kept.agent = at + n_name + 1;
		at += n_name + 1 + n_value;
	}
}

/*
 * True if the list of preloaded files has the agent; the loader takes blanks and colons between
 * them.
 */
static bool has_agent(const char *preload)
{
	size_t len = strlen(kept.agent);

	for (const char *at = strstr(preload, kept.agent); at; at = strstr(at + 1, kept.agent))
		if ((at == preload || strchr(": ", at[-1])) && strchr(": ", at[len]))
			return true;
	return false;
}

static size_t count(char *const *entries)
{
	size_t n = 0;

	while (entries && entries[n])
		n++;
	return n;
}

/* Index in the given environment of a variable, or n_given. */
static size_t find(const struct env *env, const char *name)
{
	size_t i = 0;

	while (i < env->n_given && !value_of(env->given[i], name))
		i++;
	return i;
}

/* True if a child with this environment would not have all that it needs. */
static bool is_lacking(const struct env *env)
{
	if (!kept.agent)
		return false;
	for (size_t i = 0; i < N_NAMES; i++) {
		size_t at = kept.entry[i] ? find(env, names[i]) : 0;

		if (kept.entry[i] && at == env->n_given)
			return true;
		if (kept.entry[i] && i == 0 && !has_agent(value_of(env->given[at], PRELOAD)))
			return true;
	}
	return false;
}

/* "LD_PRELOAD=agent:" + value in env->preload; the given entry if that does not fit. */
static char *with_agent(struct env *env, char *given)
{
	const char *value = value_of(given, PRELOAD);
	size_t n_agent = strlen(kept.agent), n_value = strlen(value) + 1;
	char *at = env->preload;

	if (sizeof(PRELOAD) + n_agent + 1 + n_value > PRELOAD_BYTES)
		return given;
	memcpy(at, PRELOAD "=", sizeof(PRELOAD));
	memcpy(at + sizeof(PRELOAD), kept.agent, n_agent);
	at[sizeof(PRELOAD) + n_agent] = ':';
	memcpy(at + sizeof(PRELOAD) + n_agent + 1, value, n_value);
	return env->preload;
}

/* Fill env->entries and return them. */
static char *const *complete(struct env *env)
{
	size_t n = env->n_given;

	for (size_t i = 0; i < n; i++)
		env->entries[i] = env->given[i];
	for (size_t i = 0; i < N_NAMES; i++) {
		size_t at = find(env, names[i]);

		if (kept.entry[i] && at == env->n_given)
			env->entries[n++] = kept.entry[i];
		else if (kept.entry[i] && i == 0 && !has_agent(value_of(env->given[at], PRELOAD)))
			env->entries[at] = with_agent(env, env->given[at]);
	}
	env->entries[n] = NULL;
	return env->entries;
}

/* Room for so many entries that stays with the thread; NULL if there is none. */
static char **room_for(size_t n)
{
	struct lull_thread *t = lull_thread();
	size_t size_bytes = (n * sizeof(char *) + 4095) & ~(size_t)4095;
	int saved = errno;

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

/*
 * `list` becomes the environment to hand over: the given one, or a complete copy in this function's
 * frame. A macro, because the copy has to live as long as the caller.
 */
#define FOLLOW(list)                                                                         \
	struct env env = { .given = (list), .n_given = count(list) };                        \
                                                                                             \
	if (is_lacking(&env)) {                                                              \
		env.entries = env.n_given < STACK_ENTRIES                                    \
				      ? alloca((env.n_given + N_NAMES + 1) * sizeof(char *)) \
				      : room_for(env.n_given + N_NAMES + 1);                 \
		(list) = env.entries ? complete(&env) : (list);                              \
	}

/*
 * Say that the image ends here, or (is_over false) that it did not. Not for a vfork child, which
 * has none.
 */
static void mark_exec(bool is_over)
{
	struct lull_image *image = lull_agent.image;
	int saved = errno;

	if (is_over)
		lull_cuda_bring_in();
	/* Release: whoever sees EXECED sees all that was emitted. */
	if (image && lull_agent.has_session && image->pid == lull_sys_pid())
		atomic_store_explicit(&image->state, is_over ? LULL_IMAGE_EXECED : LULL_IMAGE_LIVE,
				      memory_order_release);
	errno = saved;
}

/* The exec family: each is a call that returns only if it fails. */
#define EXEC(name, params, args)         \
	LULL_EXPORT int name params      \
	{                                \
		int r;                   \
		FOLLOW(envp);            \
                                         \
		mark_exec(true);         \
		r = lull_real.name args; \
		mark_exec(false);        \
		return r;                \
	}

EXEC(execve, (const char *path, char *const argv[], char *const envp[]), (path, argv, envp))
EXEC(execvpe, (const char *file, char *const argv[], char *const envp[]), (file, argv, envp))
EXEC(fexecve, (int fd, char *const argv[], char *const envp[]), (fd, argv, envp))
EXEC(execveat, (int dir, const char *path, char *const argv[], char *const envp[], int flags),
     (dir, path, argv, envp, flags))

LULL_EXPORT int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

LULL_EXPORT int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

/* Words of the list up to the NULL, both counted; the list is left behind it. */
static size_t count_args(va_list *list)
{
	size_t n = 1;

	while (va_arg(*list, char *))
		n++;
	return n;
}

static void copy_args(char **argv, const char *first, va_list *list)
{
	*argv++ = (char *)first;
	do
		*argv = va_arg(*list, char *);
	while (*argv++);
}

/* Sets argv and envp; `has_env`: an environment follows the NULL. */
#define COLLECT(first, has_env)                                  \
	char **argv, **envp;                                     \
	va_list list;                                            \
                                                                 \
	va_start(list, first);                                   \
	argv = alloca((count_args(&list) + 1) * sizeof(char *)); \
	va_end(list);                                            \
	va_start(list, first);                                   \
	copy_args(argv, first, &list);                           \
	envp = (has_env) ? va_arg(list, char **) : environ;      \
	va_end(list)

LULL_EXPORT int execl(const char *path, const char *arg, ...)
{
	COLLECT(arg, false);

	return execve(path, argv, envp);
}

LULL_EXPORT int execlp(const char *file, const char *arg, ...)
{
	COLLECT(arg, false);

	return execvpe(file, argv, envp);
}

LULL_EXPORT int execle(const char *path, const char *arg, ...)
{
	COLLECT(arg, true);

	return execve(path, argv, envp);
}

#define SPAWN(name)                                                                      \
	LULL_EXPORT int name(                                                            \
		pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions, \
		const posix_spawnattr_t *attr, char *const argv[], char *const envp[])   \
	{                                                                                \
		FOLLOW(envp);                                                            \
                                                                                         \
		if (!lull_oscall_is_on())                                                \
			return lull_real.name(pid, path, actions, attr, argv, envp);     \
		return lull_timed_##name(pid, path, actions, attr, argv, envp);          \
	}

SPAWN(posix_spawn)
SPAWN(posix_spawnp)
