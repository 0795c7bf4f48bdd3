#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/attach_int.h"

static void step(struct lull_tracee *t)
{
	if (t->wish->on_step)
		t->wish->on_step(t->wish->ctx, t->n_steps);
	t->n_steps++;
}

long lull_attach_trace(struct lull_tracee *t, int request, u64 addr, void *data)
{
	long rc;
	int saved;

	step(t);
	rc = ptrace((enum __ptrace_request)request, t->tid, (void *)addr, data);
	saved = errno;
	step(t);
	errno = saved;
	return rc;
}

bool lull_attach_write(struct lull_tracee *t, u64 addr, const void *from, size_t n_bytes)
{
	char path[64];
	ssize_t n = -1;
	int fd;

	step(t);
	snprintf(path, sizeof(path), "/proc/%d/mem", (int)t->target->pid);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0) {
		n = pwrite(fd, from, n_bytes, (off_t)addr);
		close(fd);
	}
	step(t);
	return n == (ssize_t)n_bytes;
}

/* Go on to the next stop; false if there is none. Signals are handed on. */
static bool next_stop(struct lull_tracee *t)
{
	int signal = 0, status;

	for (;;) {
		if (lull_attach_trace(t, PTRACE_SYSCALL, 0, (void *)(u64)signal) != 0)
			return false;
		if (waitpid(t->tid, &status, __WALL) != t->tid || !WIFSTOPPED(status))
			return false;
		signal = WSTOPSIG(status);
		if (signal == (SIGTRAP | 0x80)) {
			t->is_in_call = !t->is_in_call;
			return true;
		}
		/* Stops by the kernel are no signals of the program. */
		if (status >> 16)
			signal = 0;
	}
}

static int lose(struct lull_tracee *t, struct lull_err *err)
{
	return lull_fail(err, LULL_E_IO, "process %d ended meanwhile", (int)t->target->pid);
}

int lull_attach_call(struct lull_tracee *t, u64 function, const u64 *args, u32 n_args, i64 *result,
		     struct lull_err *err)
{
	struct user_regs_struct r = lull_attach_call_regs(t, function, args, n_args);
	u64 all = ~(u64)0;

	/*
	 * At the entry of rt_sigreturn() in this order: until the call is skipped, it puts all
	 * back.
	 */
	if (!lull_attach_set_regs(t, &r) || (t->is_in_call && !lull_attach_skip(t)))
		return lose(t, err);
	/* Only now: the frame has the mask that the thread will have again. */
	lull_attach_trace(t, PTRACE_SETSIGMASK, sizeof(all), &all);
	*result = 0;
	while (next_stop(t)) {
		if (!lull_attach_get_regs(t, &r))
			break;
		if (!t->is_in_call)
			*result = (i64)lull_attach_result(&r);
		else if (lull_attach_number(&r) == SYS_rt_sigreturn &&
			 lull_attach_sp(&r) == t->frame_addr)
			return 0;
	}
	return lose(t, err);
}
