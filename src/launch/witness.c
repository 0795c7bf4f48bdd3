#include "launch/witness.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "launch/helper.h"

/* The kernel gives a signal to the members of a group one after the other. */
#define SETTLE_US 2000

/* It does nothing else, but the machine may be busy. */
#define ANSWER_MS 500

static void stand_by(void)
{
	const struct timespec now = { 0 };
	sigset_t all;
	char byte;

	sigfillset(&all);
	while (recv(LULL_HELPER_FD, &byte, 1, 0) == 1) {
		u64 got = 0;
		int signal;

		while ((signal = sigtimedwait(&all, NULL, &now)) > 0)
			got |= (u64)1 << (signal - 1);
		if (send(LULL_HELPER_FD, &got, sizeof(got), MSG_NOSIGNAL) != sizeof(got))
			return;
	}
}

void lull_witness_start(struct lull_witness *w)
{
	sigset_t all, before;
	int ends[2];

	*w = (struct lull_witness){ .fd = -1 };
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return;
	sigfillset(&all);
	sigprocmask(SIG_SETMASK, &all, &before);
	w->pid = lull_helper_fork(ends[1], "lull-witness");
	if (w->pid == 0) {
		stand_by();
		_exit(0);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	close(ends[1]);
	w->fd = ends[0];
	if (w->pid < 0)
		lull_witness_stop(w);
}

/* What it got since it was asked last: bit n - 1 for signal n. */
static u64 ask(const struct lull_witness *w)
{
	struct pollfd fd = { .fd = w->fd, .events = POLLIN };
	u64 got = 0;

	usleep(SETTLE_US);
	if (send(w->fd, "?", 1, MSG_NOSIGNAL) != 1 || poll(&fd, 1, ANSWER_MS) != 1 ||
	    recv(w->fd, &got, sizeof(got), MSG_DONTWAIT) != sizeof(got))
		return 0;
	return got;
}

bool lull_witness_has_seen(struct lull_witness *w, int signal)
{
	u64 bit = (u64)1 << (signal - 1), late;
	bool has;

	if (w->pid <= 0)
		return false;
	/* An answer that came too late still is one. */
	while (recv(w->fd, &late, sizeof(late), MSG_DONTWAIT) == sizeof(late))
		w->seen |= late;
	w->seen |= ask(w);
	has = w->seen & bit;
	w->seen &= ~bit;
	return has;
}

void lull_witness_stop(struct lull_witness *w)
{
	if (w->fd >= 0)
		close(w->fd);
	if (w->pid > 0) {
		kill(w->pid, SIGKILL);
		waitpid(w->pid, NULL, 0);
	}
	*w = (struct lull_witness){ .fd = -1 };
}
