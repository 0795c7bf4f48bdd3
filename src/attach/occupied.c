/*
 * occupied - whether a process is recorded by lull already.
 *
 * An agent says so itself if another session comes. But one of another build, as after an update of
 * lull, knows nothing of the first; two of them would put each other's functions back.
 */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "attach/attach_int.h"
#include "base/file.h"
#include "base/str.h"
#include "base/time.h"
#include "wire/wire.h"

/* An agent that may be about to leave is given this time, and one that leaves. */
#define STAY_NS	 LULL_NS_PER_S
#define LEAVE_NS (20 * LULL_NS_PER_S)

/* `lull attach` has a thread in it, which ends when it leaves. */
static bool has_our_thread(pid_t pid)
{
	struct lull_str text = LULL_STR_INIT;
	bool has = false;
	struct dirent *e;
	char path[320];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	while (dir && !has && (e = readdir(dir))) {
		snprintf(path, sizeof(path), "/proc/%d/task/%s/comm", (int)pid, e->d_name);
		lull_str_clear(&text);
		has = lull_file_read(path, &text) && strcmp(text.at, LULL_ATTACH_THREAD "\n") == 0;
	}
	if (dir)
		closedir(dir);
	lull_str_release(&text);
	return has;
}

/* It was started by lull, and that session is not over. */
static bool is_of_session(pid_t pid)
{
	static const char name[] = LULL_ENV_SESSION "=";
	struct lull_str text = LULL_STR_INIT;
	bool is = false;
	char path[4200];

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	if (!lull_file_read(path, &text))
		text.len = 0;
	for (size_t i = 0; i < text.len && !is; i += strlen(text.at + i) + 1) {
		if (strncmp(text.at + i, name, sizeof(name) - 1) != 0)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/root%.4000s/control", (int)pid,
			 text.at + i + sizeof(name) - 1);
		is = access(path, F_OK) == 0;
	}
	lull_str_release(&text);
	return is;
}

/* The memory of a session is mapped, and the recorder has not removed it. */
static bool has_session(pid_t pid)
{
	struct lull_str text = LULL_STR_INIT;
	bool has;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	if (!lull_file_read(path, &text))
		text.len = 0;
	/* Of a file that was removed the line ends with "(deleted)". */
	has = text.len && strstr(text.at, "/control\n");
	lull_str_release(&text);
	return has;
}

bool lull_attach_is_occupied(pid_t pid)
{
	u64 until_ns = lull_now_ns() + STAY_NS;
	bool is_leaving = false;

	if (is_of_session(pid))
		return true;
	while (has_our_thread(pid)) {
		if (lull_now_ns() > until_ns) {
			/* Asked once: to list its mappings holds the program up. */
			if (is_leaving || has_session(pid))
				return true;
			is_leaving = true;
			until_ns += LEAVE_NS;
		}
		usleep(10000);
	}
	return false;
}
