#include "launch/signals.h"

#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/time.h"
#include "launch/collector_int.h"

/* So many Ctrl-C within a second are somebody who wants out; a program handles one at a time. */
#define N_INSISTING 3

/*
 * What stays as it is: job control, which must stop us, too; crashes of our own; and what writing
 * into a closed pipe or beyond a limit raises, which is an error for us.
 */
static const int unwatched[] = {
	SIGKILL, SIGSTOP, SIGTSTP, SIGTTIN, SIGTTOU, SIGCONT, SIGSEGV, SIGBUS,
	SIGILL,	 SIGFPE,  SIGABRT, SIGSYS,  SIGTRAP, SIGPIPE, SIGXFSZ,
};

static bool is_ignored(int signal)
{
	struct sigaction now;

	return sigaction(signal, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

int lull_signals_open(struct lull_collector *c, sigset_t *inherited, struct lull_err *err)
{
	sigset_t set;

	sigfillset(&set);
	for (size_t i = 0; i < LULL_COUNT_OF(unwatched); i++)
		sigdelset(&set, unwatched[i]);
	for (int i = 1; i <= SIGRTMAX; i++)
		if (is_ignored(i) && i != SIGCHLD && !(i == SIGUSR1 && c->flight.is_on))
			sigdelset(&set, i);
	sigprocmask(SIG_BLOCK, &set, inherited);
	c->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (c->signal_fd < 0)
		return lull_fail_errno(err, "watching signals");
	return 0;
}

/*
 * Somebody sent it. What the kernel sends to a terminal's processes reaches the program, too;
 * when the line goes dead, only the leader of the session hears of it.
 */
static bool is_for_program(const struct signalfd_siginfo *info)
{
	return info->ssi_code == SI_USER || info->ssi_code == SI_QUEUE ||
	       info->ssi_code == SI_TKILL || (info->ssi_signo == SIGHUP && getsid(0) == getpid());
}

static void hand_on(const struct lull_collector *c, const struct signalfd_siginfo *info)
{
	union sigval value;

	memcpy(&value, &info->ssi_ptr, sizeof(value));
	if (info->ssi_code == SI_QUEUE)
		sigqueue(c->target.pid, (int)info->ssi_signo, value);
	else
		kill(c->target.pid, (int)info->ssi_signo);
}

/* Ctrl-C that the program does not follow: first ask all to end, then make them. */
static void on_interrupt(struct lull_collector *c)
{
	u64 now_ns = lull_now_ns();

	if (now_ns - c->interrupt_ns > LULL_NS_PER_S) {
		c->interrupt_ns = now_ns;
		c->n_interrupts = 0;
	}
	if (++c->n_interrupts < N_INSISTING)
		return;
	lull_control_kill(c, c->has_insisted ? SIGKILL : SIGTERM);
	c->has_insisted = true;
	c->n_interrupts = 0;
}

/* The program is gone, and we wait for what it has left behind: that can be ended. */
static bool is_end_of_wait(const struct lull_collector *c, int signal)
{
	return c->target.has_ended &&
	       (signal == SIGINT || signal == SIGQUIT || signal == SIGTERM || signal == SIGHUP);
}

static void on_signal(struct lull_collector *c, const struct signalfd_siginfo *info)
{
	int signal = (int)info->ssi_signo;
	bool is_for_all = signal != SIGCHLD && lull_witness_has_seen(&c->witness, signal);

	if (signal == SIGCHLD)
		lull_collector_reap(c);
	else if (signal == SIGUSR1 && c->flight.is_on)
		lull_flight_ask(c, LULL_FLIGHT_ASKED, "SIGUSR1");
	else if (is_end_of_wait(c, signal))
		c->is_over = true;
	else if (c->target.has_ended)
		return;
	else if (!is_for_all && is_for_program(info))
		hand_on(c, info);
	else if (signal == SIGINT || signal == SIGQUIT)
		on_interrupt(c);
}

void lull_signals_read(struct lull_collector *c)
{
	struct signalfd_siginfo info;

	while (read(c->signal_fd, &info, sizeof(info)) == sizeof(info))
		on_signal(c, &info);
}
