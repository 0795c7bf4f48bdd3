#include "record/process/usage.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/time.h"

/* Larger than any /proc/PID/stat or status: fixed fields, and one name of at most 64 bytes. */
#define FILE_BYTES 4096

/* Read a small file under /proc/PID as a string; false if it is not there or not ours to read. */
static bool read_text(pid_t pid, const char *name, char text[FILE_BYTES])
{
	char path[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/%s", pid, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, FILE_BYTES - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = 0;
	return true;
}

/* The number after "\nKey:" in a file of such lines; 0 if there is none. */
static u64 number_after(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? strtoull(at + strlen(key), NULL, 10) : 0;
}

/*
 * Fields of /proc/PID/stat, counted as proc(5) does. The name in field 2 may hold blanks and
 * brackets; what follows its last ')' begins with field 3.
 */
enum {
	FIELD_STATE = 3,
	FIELD_UTIME = 14,
	FIELD_STIME = 15,
	FIELD_THREADS = 20,
	FIELD_RSS_PAGES = 24,
};

static bool parse_stat(const char *text, struct lull_usage *usage)
{
	u64 ns_per_tick = LULL_NS_PER_S / (u64)sysconf(_SC_CLK_TCK);
	const char *at = strrchr(text, ')');
	u64 fields[FIELD_RSS_PAGES + 1] = { 0 };
	char *end;

	if (!at || strlen(at) < 4 || at[2] == 'Z' || at[2] == 'X')
		return false;
	at += 3;
	for (int i = FIELD_STATE + 1; i <= FIELD_RSS_PAGES; i++) {
		fields[i] = (u64)strtoll(at, &end, 10);
		if (end == at)
			return false;
		at = end;
	}
	usage->user_ns = fields[FIELD_UTIME] * ns_per_tick;
	usage->system_ns = fields[FIELD_STIME] * ns_per_tick;
	usage->n_threads = (u32)fields[FIELD_THREADS];
	usage->rss_bytes = fields[FIELD_RSS_PAGES] * (u64)sysconf(_SC_PAGESIZE);
	return true;
}

bool lull_usage_read(pid_t pid, struct lull_usage *usage)
{
	char text[FILE_BYTES];

	*usage = (struct lull_usage){ 0 };
	if (!read_text(pid, "stat", text) || !parse_stat(text, usage))
		return false;
	if (read_text(pid, "status", text))
		usage->max_rss_bytes = number_after(text, "\nVmHWM:") << 10;
	if (read_text(pid, "io", text)) {
		usage->read_bytes = number_after(text, "\nread_bytes:");
		usage->written_bytes = number_after(text, "\nwrite_bytes:");
	}
	return true;
}

bool lull_usage_thread_name(pid_t pid, u32 tid, char name[LULL_THREAD_NAME_BYTES])
{
	char file[48], text[FILE_BYTES];

	snprintf(file, sizeof(file), "task/%u/comm", tid);
	if (!read_text(pid, file, text))
		return false;
	text[strcspn(text, "\n")] = 0;
	snprintf(name, LULL_THREAD_NAME_BYTES, "%.15s", text);
	return true;
}

void lull_usage_threads(pid_t pid, lull_usage_thread_fn *thread, void *ctx)
{
	char path[32], name[LULL_THREAD_NAME_BYTES];
	struct dirent *entry;
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	dir = opendir(path);
	if (!dir)
		return;
	while ((entry = readdir(dir))) {
		u32 tid = (u32)strtoul(entry->d_name, NULL, 10);

		if (tid && lull_usage_thread_name(pid, tid, name))
			thread(ctx, tid, name);
	}
	closedir(dir);
}
