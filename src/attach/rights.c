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

bool lull_attach_is_sandboxed(pid_t pid)
{
	char text[32], parent[32], mode[8] = "0", n[16] = "0", parent_n[16] = "0";
	int n_more;

	if (!lull_attach_status(pid, "Seccomp", mode, sizeof(mode)) || mode[0] == '0')
		return false;
	if (mode[0] == '1' || !lull_attach_status(pid, "PPid", text, sizeof(text)))
		return true;
	if (!lull_attach_status(atoi(text), "Seccomp", parent, sizeof(parent)))
		return false; /* in a container, whose first process it is: what all have there */
	lull_attach_status(pid, "Seccomp_filters", n, sizeof(n));
	lull_attach_status(atoi(text), "Seccomp_filters", parent_n, sizeof(parent_n));
	n_more = atoi(n) - atoi(parent_n);
	/* Containers have a filter, which lets programs load libraries and start threads. */
	if (n_more <= 1 && is_main_of_container(pid, atoi(text)))
		return false;
	return parent[0] == '0' ? atoi(text) != 1 : n_more > 0;
}
