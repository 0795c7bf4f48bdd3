#include "compare/program.h"

#include <ctype.h>
#include <string.h>

#include "base/types.h"

/* process.exit_kind of a program that another one replaced. */
#define EXIT_EXEC 3

/* Parents of a child of multiprocessing that are looked at: spawned by spawned by ... */
#define MAX_PARENTS 8

/* One word of a command line. */
struct word {
	const char *at;
	size_t len;
};

static struct word next_word(const char **text)
{
	struct word word = { *text + strspn(*text, " "), 0 };

	word.len = strcspn(word.at, " ");
	*text = word.at + word.len;
	return word;
}

static bool is_word(struct word word, const char *text)
{
	return word.len == strlen(text) && strncmp(word.at, text, word.len) == 0;
}

static struct word base_name(struct word word)
{
	for (size_t i = word.len; i > 0; i--)
		if (word.at[i - 1] == '/' && i < word.len)
			return (struct word){ word.at + i, word.len - i };
	return word;
}

/* "python3.11", "python", "pypy3": the name without the version that may follow it. */
static bool is_interpreter(struct word name)
{
	static const char *const known[] = { "python", "pypy", "bash", "dash", "sh",
					     "zsh",    "perl", "ruby", "node", "julia" };
	size_t len = name.len;

	while (len && (isdigit((unsigned char)name.at[len - 1]) || name.at[len - 1] == '.'))
		len--;
	name.len = len;
	for (size_t i = 0; i < LULL_COUNT_OF(known); i++)
		if (is_word(name, known[i]))
			return true;
	return false;
}

/* An interpreter's option whose value is the next word; -m and -c end its options. */
static bool takes_word(struct word option)
{
	return is_word(option, "-W") || is_word(option, "-X") || is_word(option, "-Q") ||
	       is_word(option, "--check-hash-based-pycs");
}

static bool is_option(struct word word)
{
	return word.len > 1 && *word.at == '-';
}

/* "-m MODULE" in one or two words, or "-c CODE", as an option of an interpreter. */
static bool take_option(struct lull_program *p, struct word option, const char **rest)
{
	struct word module = { option.at + 2, option.len - 2 };

	if (is_word(option, "-c")) {
		lull_str_puts(&p->name, "-c");
		return true;
	}
	if (strncmp(option.at, "-m", 2) != 0)
		return false;
	if (!module.len)
		module = next_word(rest);
	lull_str_add(&p->name, module.at, module.len);
	return true;
}

/* The script of an interpreter's command line; `rest` is after the interpreter's own name. */
static void take_script(struct lull_program *p, const char **rest)
{
	struct word word = next_word(rest);

	while (is_option(word)) {
		if (take_option(p, word, rest))
			return;
		if (takes_word(word))
			next_word(rest);
		word = next_word(rest);
	}
	word = base_name(word);
	lull_str_add(&p->name, word.at, word.len);
}

void lull_program_of(struct lull_program *p, const char *exe, const char *cmdline)
{
	const char *rest = *cmdline ? cmdline : exe;
	struct word name;

	*p = (struct lull_program){ LULL_STR_INIT, LULL_STR_INIT };
	/* A path without a command line may have blanks in it. */
	name = *cmdline ? next_word(&rest) : (struct word){ exe, strlen(exe) };
	name = base_name(name);
	if (is_interpreter(name) && *cmdline)
		take_script(p, &rest);
	if (!p->name.len) {
		size_t len = name.len;

		/* An interpreter alone is one, whatever its version. */
		while (is_interpreter(name) && len && !isalpha((unsigned char)name.at[len - 1]))
			len--;
		lull_str_add(&p->name, name.at, len);
	}
	if (*cmdline)
		lull_str_puts(&p->args, rest + strspn(rest, " "));
}

/* The first process of the recording, after all programs that only started the next one. */
static u32 first_process(const struct lull_process_row *rows, size_t n)
{
	u32 at = n ? 1 : 0;

	for (u32 i = 2; at && i <= n; i++)
		if (rows[at - 1].exit_kind == EXIT_EXEC && rows[i - 1].pid == rows[at - 1].pid &&
		    rows[i - 1].image == rows[at - 1].image + 1)
			at = i;
	return at;
}

/* The last program that ran in the process that started this one; 0 if it is not recorded. */
static u32 parent_of(const struct lull_process_row *rows, size_t n, u32 process)
{
	u32 parent = 0;

	for (u32 i = 1; i <= n; i++)
		if (i != process && rows[i - 1].pid == rows[process - 1].parent_pid)
			parent = i;
	return parent;
}

void lull_program_init(struct lull_program *p, struct lull_reader *r, u32 process)
{
	size_t n;
	const struct lull_process_row *rows = lull_reader_dim(r, LULL_TABLE_process, &n);
	u32 at = process && process <= n ? process : first_process(rows, n);
	const char *line;

	for (int i = 0; at && i < MAX_PARENTS; i++) {
		u32 parent;

		line = lull_reader_string(r, rows[at - 1].cmdline, NULL);
		parent = strstr(line, "--multiprocessing-fork") ||
					 strstr(line, "multiprocessing.forkserver")
				 ? parent_of(rows, n, at)
				 : 0;
		if (!parent)
			break;
		at = parent;
	}
	lull_program_of(p, at ? lull_reader_string(r, rows[at - 1].exe, NULL) : "",
			at ? lull_reader_string(r, rows[at - 1].cmdline, NULL) : "");
}

void lull_program_release(struct lull_program *p)
{
	lull_str_release(&p->name);
	lull_str_release(&p->args);
}
