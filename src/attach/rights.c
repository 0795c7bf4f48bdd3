/*
 * rights - whether a process may be entered: by the kernel's rules for us, and by its own for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "attach/attach_int.h"
#include "base/file.h"
#include "base/str.h"

/* All of its users are ours; /proc/PID belongs to root where a program must not be traced. */
static bool is_own(pid_t pid)
{
	unsigned real, effective, saved;
	char text[64];

	return lull_attach_status(pid, "Uid", text, sizeof(text)) &&
	       sscanf(text, "%u %u %u", &real, &effective, &saved) == 3 && real == geteuid() &&
	       effective == real && saved == real;
}

/* The kernel said no: who has to be asked. */
static int tell_rights(const struct lull_attach_target *t, struct lull_err *err)
{
	struct lull_str text = LULL_STR_INIT;
	char scope = lull_file_read("/proc/sys/kernel/yama/ptrace_scope", &text) ? text.at[0] : '0';

	lull_str_release(&text);
	if (scope == '3')
		return lull_fail(err, LULL_E_IO,
				 "kernel.yama.ptrace_scope is 3: nobody may attach to programs "
				 "until the machine is started again without that");
	if (geteuid() == 0)
		return lull_fail(err, LULL_E_IO,
				 "process %d (%s): root may not attach to it here; in a container, "
				 "start that with --cap-add SYS_PTRACE",
				 (int)t->pid, t->name);
	if (!is_own(t->pid))
		return lull_fail(err, LULL_E_IO,
				 "process %d (%s): it belongs to another user; run lull as the "
				 "user of that process, or as root",
				 (int)t->pid, t->name);
	if (scope != '0')
		return lull_fail(err, LULL_E_IO,
				 "kernel.yama.ptrace_scope is %c: only root may attach to other "
				 "programs; run lull with sudo, or `sudo sysctl "
				 "kernel.yama.ptrace_scope=0`",
				 scope);
	return lull_fail(err, LULL_E_IO,
			 "process %d (%s): it does not let its user look into its memory (not "
			 "dumpable, or with rights of its own); run lull as root",
			 (int)t->pid, t->name);
}

int lull_attach_check_rights(const struct lull_attach_target *t, struct lull_err *err)
{
	char path[64];
	int fd;

	/* Opening its memory asks the same as ptrace(). */
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)t->pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0) {
		close(fd);
		return 0;
	}
	if (errno == EACCES || errno == EPERM)
		return tell_rights(t, err);
	return lull_fail_errno(err, "process %d (%s): opening its memory", (int)t->pid, t->name);
}

/* It is the first of a container: its parent, which started that, is outside. */
static bool is_main_of_container(pid_t pid, pid_t parent)
{
	struct stat theirs, outside;
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)pid);
	if (stat(path, &theirs) != 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%d/ns/pid", (int)parent);
	return stat(path, &outside) == 0 && theirs.st_ino != outside.st_ino;
}

/* How many filters of system calls it has; -1: it is not to be seen. */
static int n_filters(pid_t pid)
{
	char mode[8], n[16] = "1"; /* before Linux 5.9 it is not said how many */

	if (pid <= 0 || !lull_attach_status(pid, "Seccomp", mode, sizeof(mode)))
		return -1;
	if (mode[0] == '0')
		return 0;
	lull_attach_status(pid, "Seccomp_filters", n, sizeof(n));
	return atoi(n);
}

static pid_t parent_of(pid_t pid)
{
	char text[32];

	return lull_attach_status(pid, "PPid", text, sizeof(text)) ? (pid_t)atoi(text) : 0;
}

static bool is_ours_or_above(pid_t pid)
{
	for (pid_t at = getpid(); at > 0; at = parent_of(at))
		if (at == pid)
			return true;
	return false;
}

/*
 * Filters are inherited. The first process with as many as this one has set the last of them, or
 * was started by who did. If that is a container, or is above lull itself, they are those of the
 * place: they let programs load libraries and start threads.
 */
bool lull_attach_has_filters(pid_t pid)
{
	int n = n_filters(pid), n_above;
	pid_t first = pid;

	if (n <= 0)
		return false;
	while (n_filters(parent_of(first)) == n)
		first = parent_of(first);
	n_above = n_filters(parent_of(first));
	if (n_above < 0 || is_ours_or_above(first))
		return false;
	return n - n_above > 1 || !is_main_of_container(first, parent_of(first));
}

bool lull_attach_is_strict(pid_t pid)
{
	char mode[8];

	return lull_attach_status(pid, "Seccomp", mode, sizeof(mode)) && mode[0] == '1';
}
