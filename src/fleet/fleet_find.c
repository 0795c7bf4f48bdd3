#include "fleet/fleet_find.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/sort.h"
#include "base/str.h"
#include "base/time.h"
#include "record/gpu/nvml.h"
#include "record/session/helper.h"

#define ASK_MS 10000

/* Of one device. */
#define MAX_PIDS 1024u

/* What the child says first: 0 and then pids, or a code and then a sentence. */
struct head {
	i32 rc;
	u32 n;
};

static void say(int fd, struct head head, const void *body, size_t n_bytes)
{
	if (write(fd, &head, sizeof(head)) == (ssize_t)sizeof(head) && n_bytes)
		(void)!write(fd, body, n_bytes);
}

/* In the child. A pipe holds 64 KiB: 16 devices with all they can have. */
static void ask(int fd)
{
	u32 pids[MAX_PIDS * 8], n = 0;
	struct lull_nvml *nvml;
	struct lull_err err;
	int rc = lull_nvml_open(&nvml, &err);

	if (rc) {
		say(fd, (struct head){ rc, (u32)strlen(err.msg) }, err.msg, strlen(err.msg));
		return;
	}
	for (u32 i = 0; i < lull_nvml_n_devices(nvml); i++)
		n += lull_nvml_processes(nvml, i, pids + n, (u32)LULL_COUNT_OF(pids) - n);
	say(fd, (struct head){ 0, n }, pids, n * sizeof(*pids));
	lull_nvml_close(nvml);
}

/* All that the child writes until it ends; false if that takes too long. */
static bool read_all(int fd, struct lull_str *to)
{
	u64 deadline_ns = lull_now_ns() + ASK_MS * (LULL_NS_PER_S / 1000);
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n = 1;
	char *room;

	while (n > 0 && lull_now_ns() < deadline_ns) {
		if (poll(&p, 1, 100) <= 0)
			continue;
		room = lull_str_room(to, 4096);
		n = read(fd, room, 4096);
		if (n > 0)
			lull_str_take(to, room + n);
	}
	return n == 0;
}

static int by_pid(const void *a, const void *b)
{
	u32 x = *(const u32 *)a, y = *(const u32 *)b;

	return x < y ? -1 : x > y;
}

/* The field after the name, which may have blanks and brackets in it. */
static u64 start_of(const char *stat)
{
	const char *at = strrchr(stat, ')');

	/* The 22nd of all; the name is the second. */
	for (int i = 2; at && i < 22; i++) {
		at = strchr(at + 1, ' ');
		if (!at)
			return 0;
	}
	return at ? strtoull(at, NULL, 10) : 0;
}

static bool describe(struct lull_fleet_process *p)
{
	struct lull_str text = LULL_STR_INIT;
	char path[64];
	bool is_there;

	snprintf(path, sizeof(path), "/proc/%u/stat", p->pid);
	is_there = lull_file_read(path, &text);
	p->start_ticks = start_of(lull_str_text(&text));
	snprintf(path, sizeof(path), "/proc/%u/cmdline", p->pid);
	lull_file_read(path, &text);
	for (size_t i = 0; i + 1 < text.len; i++)
		if (!text.at[i])
			text.at[i] = ' ';
	snprintf(p->cmdline, sizeof(p->cmdline), "%s", lull_str_text(&text));
	snprintf(path, sizeof(path), "/proc/%u/cgroup", p->pid);
	lull_file_read(path, &text);
	snprintf(p->cgroup, sizeof(p->cgroup), "%s", lull_str_text(&text));
	p->cgroup[strcspn(p->cgroup, "\n")] = '\0';
	lull_str_release(&text);
	return is_there && p->start_ticks && *p->cmdline;
}

static int take(struct lull_vec *to, const struct lull_str *said, struct lull_err *err)
{
	struct head head = { 0, 0 };
	u32 pids[MAX_PIDS * 8];

	if (said->len < sizeof(head))
		return lull_fail(err, LULL_E_UNSUPPORTED, "NVML did not answer");
	memcpy(&head, said->at, sizeof(head));
	if (head.rc)
		return lull_fail(err, head.rc, "%.*s", (int)(said->len - sizeof(head)),
				 said->at + sizeof(head));
	if (head.n > LULL_COUNT_OF(pids) || said->len < sizeof(head) + head.n * sizeof(u32))
		return lull_fail(err, LULL_E_UNSUPPORTED, "NVML did not answer");
	memcpy(pids, said->at + sizeof(head), head.n * sizeof(u32));
	if (head.n)
		lull_sort(pids, head.n, sizeof(u32), by_pid);
	for (u32 i = 0; i < head.n; i++) {
		struct lull_fleet_process p = { .pid = pids[i] };

		if ((!i || pids[i] != pids[i - 1]) && describe(&p))
			lull_vec_add(to, &p, 1);
	}
	return 0;
}

int lull_fleet_find(struct lull_vec *to, struct lull_err *err)
{
	struct lull_str said = LULL_STR_INIT;
	int ends[2], rc;
	pid_t pid;

	if (pipe(ends) != 0)
		return lull_fail_errno(err, "asking NVML: pipe");
	pid = lull_helper_fork(ends[1], "lull-nvml");
	if (pid == 0) {
		ask(LULL_HELPER_FD);
		_exit(0);
	}
	close(ends[1]);
	if (pid < 0) {
		close(ends[0]);
		return lull_fail_errno(err, "asking NVML: fork");
	}
	if (!read_all(ends[0], &said)) {
		said.len = 0;
		kill(pid, SIGKILL);
	}
	close(ends[0]);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		;
	rc = take(to, &said, err);
	lull_str_release(&said);
	return rc;
}
