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

/*
 * It does nothing else, but machines are busy, and some stand still for a while. To give up is to
 * hand a signal on that the program has already.
 */
#define ANSWER_MS 5000

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

/* What it got since it was asked last: bit n - 1 for signal n; false if it does not answer. */
static bool ask(const struct lull_witness *w, u64 *got)
{
	struct pollfd fd = { .fd = w->fd, .events = POLLIN };

	usleep(SETTLE_US);
	return send(w->fd, "?", 1, MSG_NOSIGNAL) == 1 && poll(&fd, 1, ANSWER_MS) == 1 &&
	       recv(w->fd, got, sizeof(*got), MSG_DONTWAIT) == sizeof(*got);
}

u64 lull_witness_seen(struct lull_witness *w, u64 signals)
{
	u64 got, late;

	if (w->pid <= 0)
		return 0;
	/* An answer that came too late still is one, but for what was asked: that is past. */
	while (recv(w->fd, &late, sizeof(late), MSG_DONTWAIT) == sizeof(late)) {
		w->seen |= late & ~w->owed;
		w->owed = 0;
	}
	if (ask(w, &got))
		w->seen |= got;
	else
		w->owed |= signals;
	got = w->seen & signals;
	w->seen &= ~signals;
	return got;
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
