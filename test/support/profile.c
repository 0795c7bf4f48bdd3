#include "support/profile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"

static char folder[64];

const char *test_profile_command(void)
{
	const char *given = getenv("LULL");

	return given ? given : LULL_BUILD "/lull";
}

const char *test_profile_limit(void)
{
	static char text[32];

	snprintf(text, sizeof(text), "timeout %u", test_patience_s());
	return text;
}

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
static void spell(struct lull_str *command, const char *prefix, const char *words)
{
	lull_str_addf(command, "%s %s ", prefix, test_profile_command());
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
	spell(&command, test_profile_limit(), formatted.at);
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

pid_t test_profile_launch(const char *words, ...)
{
	struct lull_str formatted = LULL_STR_INIT, command = LULL_STR_INIT;
	va_list ap;
	pid_t pid;

	va_start(ap, words);
	lull_str_vaddf(&formatted, words, ap);
	va_end(ap);
	spell(&command, "exec", formatted.at);
	pid = fork();
	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", command.at, (char *)NULL);
		_exit(127);
	}
	assert_true(pid > 0);
	lull_str_release(&formatted);
	lull_str_release(&command);
	return pid;
}

int test_profile_wait(pid_t pid)
{
	u64 end_ns = test_patience_end_ns();
	int status = 0;
	pid_t ended;

	while ((ended = waitpid(pid, &status, WNOHANG)) == 0) {
		if (!test_patience_pause(end_ns)) {
			kill(pid, SIGKILL);
			waitpid(pid, &status, 0);
			fail_msg("process %d did not end within %u s", (int)pid, test_patience_s());
		}
	}
	assert_int_equal(ended, pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

bool test_profile_is_clean(pid_t recorder_pid)
{
	DIR *dir = opendir("/dev/shm");
	char mine[64];
	struct dirent *e;
	bool is_clean = true;

	snprintf(mine, sizeof(mine), "lull-%u-%d-", getuid(), recorder_pid);
	while (dir && (e = readdir(dir)))
		if (strncmp(e->d_name, mine, strlen(mine)) == 0)
			is_clean = false;
	if (dir)
		closedir(dir);
	return is_clean;
}

bool test_profile_exists(const char *name)
{
	return access(test_profile_path(name), F_OK) == 0;
}

void test_profile_touch(const char *name)
{
	FILE *file = fopen(test_profile_path(name), "w");

	assert_non_null(file);
	fclose(file);
}

int test_profile_count_files(const char *suffix)
{
	DIR *dir = opendir(folder);
	struct dirent *e;
	int n = 0;

	assert_non_null(dir);
	while ((e = readdir(dir))) {
		size_t len = strlen(e->d_name), tail = strlen(suffix);

		n += len >= tail && strcmp(e->d_name + len - tail, suffix) == 0;
	}
	closedir(dir);
	return n;
}

void test_profile_need_namespace(void)
{
	/* In a chroot the root is no mount, and unshare cannot keep its changes to itself. */
	if (getuid() != 0)
		test_skip("a mount namespace of one's own needs root");
	if (system("unshare -m true 2>/dev/null") != 0)
		test_skip("a mount namespace of one's own is refused here");
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

static const char *label_name(struct lull_reader *r, u32 label)
{
	size_t n;
	const struct lull_label_row *labels = lull_reader_dim(r, LULL_TABLE_label, &n);

	return label >= 1 && label <= n ? lull_reader_string(r, labels[label - 1].name, NULL) : "";
}

static u32 process_of(struct lull_reader *r, u32 lane)
{
	size_t n;
	const struct lull_lane_row *lanes = lull_reader_dim(r, LULL_TABLE_lane, &n);

	return lane >= 1 && lane <= n ? lanes[lane - 1].process : 0;
}

u64 test_profile_marks(struct lull_reader *r, const char *name, u32 process)
{
	struct lull_mark_cols cols;
	struct lull_cursor c;
	u64 count = 0;
	size_t n;

	lull_cursor_init(&c, r, LULL_TABLE_mark, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++)
			count += strcmp(label_name(r, cols.label[i]), name) == 0 &&
				 (!process || process_of(r, cols.lane[i]) == process);
	lull_cursor_release(&c);
	return count;
}

u64 test_profile_ranges(struct lull_reader *r, const char *name)
{
	struct lull_range_cols cols;
	struct lull_cursor c;
	u64 count = 0;
	size_t n;

	lull_cursor_init(&c, r, LULL_TABLE_range, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++)
			count += strcmp(label_name(r, cols.label[i]), name) == 0;
	lull_cursor_release(&c);
	return count;
}

size_t test_profile_processes(struct lull_reader *r, u32 pid, u32 *rows)
{
	size_t n, n_found = 0;
	const struct lull_process_row *all = lull_reader_dim(r, LULL_TABLE_process, &n);

	for (size_t i = 0; i < n; i++) {
		if (all[i].pid != pid)
			continue;
		assert_true(n_found < 8);
		rows[n_found++] = (u32)i + 1;
	}
	for (size_t i = 1; i < n_found; i++)
		for (size_t j = i; j > 0 && all[rows[j] - 1].image < all[rows[j - 1] - 1].image;
		     j--) {
			u32 swap = rows[j];

			rows[j] = rows[j - 1];
			rows[j - 1] = swap;
		}
	return n_found;
}

const struct lull_process_row *test_profile_process(struct lull_reader *r, u32 row)
{
	size_t n;
	const struct lull_process_row *all = lull_reader_dim(r, LULL_TABLE_process, &n);

	assert_true(row >= 1 && row <= n);
	return &all[row - 1];
}
