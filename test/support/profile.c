#include "support/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "base/str.h"

static char folder[64];

void test_profile_begin(void)
{
	strcpy(folder, "/tmp/lull-test-XXXXXX");
	assert_non_null(mkdtemp(folder));
}

void test_profile_end(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -rf %s", folder);
	assert_int_equal(system(command), 0);
}

const char *test_profile_path(const char *name)
{
	static char paths[8][160];
	static int next;
	char *path = paths[next++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", folder, name);
	return path;
}

/* "lull WORDS" with the folder filled in. */
static void spell(struct lull_str *command, const char *words)
{
	/* A program that hangs must not hang the tests. */
	lull_str_puts(command, "timeout 60 " LULL_BUILD "/lull ");
	for (; *words; words++) {
		if (words[0] == '%' && words[1] == 'R') {
			lull_str_puts(command, folder);
			words++;
		} else {
			lull_str_add(command, words, 1);
		}
	}
}

int test_profile_run(char *text, const char *words, ...)
{
	struct lull_str formatted = LULL_STR_INIT, command = LULL_STR_INIT;
	char rest[4096];
	size_t n = 0;
	FILE *pipe;
	va_list ap;
	int status;

	va_start(ap, words);
	lull_str_vaddf(&formatted, words, ap);
	va_end(ap);
	spell(&command, formatted.at);
	lull_str_puts(&command, " 2>&1");
	pipe = popen(command.at, "r");
	assert_non_null(pipe);
	if (text) {
		n = fread(text, 1, 8191, pipe);
		text[n] = '\0';
	}
	while (fread(rest, 1, sizeof(rest), pipe) > 0)
		continue;
	status = pclose(pipe);
	lull_str_release(&formatted);
	lull_str_release(&command);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

struct lull_reader *test_profile_open(const char *name)
{
	struct lull_reader *r;
	struct lull_err err;

	if (lull_reader_open(&r, test_profile_path(name), &err) != 0)
		fail_msg("%s", err.msg);
	assert_true(lull_reader_is_sealed(r));
	assert_int_equal(lull_reader_n_damaged(r), 0);
	return r;
}

u64 test_profile_rows(struct lull_reader *r, u16 table)
{
	return lull_reader_stats(r, table).n_rows;
}

u64 test_profile_issue(struct lull_reader *r, const char *name)
{
	size_t n;
	const struct lull_issue_row *rows = lull_reader_dim(r, LULL_TABLE_issue, &n);
	u64 count = 0;

	for (size_t i = 0; i < n; i++)
		if (strcmp(lull_reader_string(r, rows[i].name, NULL), name) == 0)
			count += rows[i].count;
	return count;
}

const char *test_profile_meta(struct lull_reader *r, const char *key)
{
	size_t n;
	const struct lull_meta_row *rows = lull_reader_dim(r, LULL_TABLE_meta, &n);

	for (size_t i = 0; i < n; i++)
		if (strcmp(lull_reader_string(r, rows[i].key, NULL), key) == 0)
			return lull_reader_string(r, rows[i].value, NULL);
	return NULL;
}
