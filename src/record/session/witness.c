#include "record/session/witness.h"

#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "record/session/helper.h"

/* The kernel gives a signal to the members of a group one after the other. */
#define SETTLE_US 2000

/*
 * It does nothing else, but machines are busy, and some stand still for a while. To give up is to
 * hand a signal on that the program has already.
 */
#define ANSWER_MS 5000

/* What is answered; a question is its number alone. */
struct answer {
	u64 number;
	u64 got; /* since the question before: bit n - 1 for signal n */
};

static void stand_by(void)
{
	const struct timespec now = { 0 };
	struct answer answer;
	sigset_t all;

	sigfillset(&all);
	while (recv(LULL_HELPER_FD, &answer.number, sizeof(answer.number), 0) ==
	       sizeof(answer.number)) {
		int signal;

		answer.got = 0;
		while ((signal = sigtimedwait(&all, NULL, &now)) > 0)
			answer.got |= (u64)1 << (signal - 1);
		if (send(LULL_HELPER_FD, &answer, sizeof(answer), MSG_NOSIGNAL) != sizeof(answer))
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

/* The next answer, if there is one within that time. */
static bool hear(const struct lull_witness *w, struct answer *answer, int ms)
{
	struct pollfd fd = { .fd = w->fd, .events = POLLIN };

	return poll(&fd, 1, ms) == 1 &&
	       recv(w->fd, answer, sizeof(*answer), MSG_DONTWAIT) == sizeof(*answer);
}

u64 lull_witness_seen(struct lull_witness *w, u64 signals)
{
	u64 number = ++w->n_asked, got;
	struct answer answer = { 0 };

	if (w->pid <= 0)
		return 0;
	usleep(SETTLE_US);
	if (send(w->fd, &number, sizeof(number), MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof(number))
		while (answer.number != number && hear(w, &answer, ANSWER_MS))
			/* One that comes late still is one, but for what was asked then. */
			w->seen |= answer.number == number ? answer.got : answer.got & ~w->owed;
	w->owed = answer.number == number ? 0 : w->owed | signals;
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
