#include "record/session/signals.h"

#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/time.h"
#include "record/collector_int.h"

/* So many Ctrl-C within a second are somebody who wants out; a program handles one at a time. */
#define N_INSISTING 3

/*
 * What stays as it is: job control, which must stop us, too; crashes of our own; and what writing
 * into a closed pipe or beyond a limit raises, which is an error for us. Whether Ctrl-Z stops the
 * program is for the program to say, and we do as it does (stops.h).
 */
static const int unwatched[] = {
	SIGKILL, SIGSTOP, SIGTTIN, SIGTTOU, SIGCONT, SIGSEGV, SIGBUS,
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
	if (c->options->attach)
		sigdelset(&set, SIGTSTP);
	sigprocmask(SIG_BLOCK, &set, inherited);
	c->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (c->signal_fd < 0)
		return lull_fail_errno(err, "watching signals");
	return 0;
}

void lull_signals_allow_stop(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
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

static void hand_on(pid_t to, const struct signalfd_siginfo *info)
{
	union sigval value;

	memcpy(&value, &info->ssi_ptr, sizeof(value));
	if (info->ssi_code == SI_QUEUE)
		sigqueue(to, (int)info->ssi_signo, value);
	else
		kill(to, (int)info->ssi_signo);
}

/*
 * The program signals its parent, say that it is ready: without us that would be our parent. (0 if
 * that is outside of our container.)
 */
static bool is_for_parent(const struct lull_collector *c, const struct signalfd_siginfo *info)
{
	return is_for_program(info) && info->ssi_pid == (u32)c->target.pid && getppid() > 0;
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
	lull_control_kill(c, c->sent_sigterm ? SIGKILL : SIGTERM);
	c->sent_sigterm = true;
	c->n_interrupts = 0;
}

static bool is_end(int signal)
{
	return signal == SIGINT || signal == SIGQUIT || signal == SIGTERM || signal == SIGHUP;
}

/* The program is gone, and we wait for what it has left behind: that can be ended. */
static bool is_end_of_wait(const struct lull_collector *c, int signal)
{
	return c->target.has_ended && is_end(signal);
}

static void on_signal(struct lull_collector *c, const struct signalfd_siginfo *info,
		      bool is_for_all)
{
	int signal = (int)info->ssi_signo;

	if (signal == SIGCHLD)
		lull_collector_reap(c);
	else if (c->options->attach)
		c->is_over = is_end(signal) || c->is_over; /* the program has no part in it */
	else if (signal == SIGUSR1 && c->flight.is_on)
		lull_flight_ask(c, LULL_FLIGHT_ASKED, "SIGUSR1");
	else if (!is_for_all && is_for_parent(c, info))
		hand_on(getppid(), info); /* also when its end was seen first */
	else if (is_end_of_wait(c, signal))
		c->is_over = true;
	else if (c->target.has_ended)
		return;
	else if (!is_for_all && is_for_program(info))
		hand_on(c->target.pid, info);
	else if (signal == SIGINT || signal == SIGQUIT)
		on_interrupt(c);
}

/* Those that are read at a time. */
#define N_INFOS 32u

static size_t take(const struct lull_collector *c, struct signalfd_siginfo *infos, size_t n)
{
	ssize_t size_bytes = n ? read(c->signal_fd, infos, n * sizeof(*infos)) : 0;

	return size_bytes > 0 ? (size_t)size_bytes / sizeof(*infos) : 0;
}

static u64 bit_of(const struct signalfd_siginfo *info)
{
	return info->ssi_signo == SIGCHLD ? 0 : (u64)1 << (info->ssi_signo - 1);
}

/*
 * While the witness answers another of the same number may come, to us and to it. For the witness
 * both are one; so what has come by then shares an answer that is yes, and what the witness still
 * has is forgotten. One that was for us alone and one for everybody are then one, too.
 *
 * Of `infos` the first `n` were asked for; what is left, with what came meanwhile, is moved to its
 * begin. How many.
 */
static size_t handle(struct lull_collector *c, struct signalfd_siginfo *infos, size_t n,
		     bool is_last)
{
	u64 asked = 0, seen;
	size_t n_all, n_left = 0;
	bool is_shared = false;

	for (size_t i = 0; i < n; i++)
		asked |= bit_of(&infos[i]);
	seen = asked ? lull_witness_seen(&c->witness, asked) : 0;
	n_all = n + take(c, infos + n, is_last ? 0 : N_INFOS - n);
	for (size_t i = 0; i < n_all; i++) {
		u64 bit = bit_of(&infos[i]);

		if (i >= n && (bit & ~seen)) {
			infos[n_left++] = infos[i];
			continue;
		}
		is_shared |= i >= n && bit;
		on_signal(c, &infos[i], bit & seen);
	}
	if (is_shared)
		lull_witness_seen(&c->witness, seen);
	return n_left;
}

/* Not for ever: there is other work, and whoever polls comes again. */
#define N_ROUNDS 8

void lull_signals_read(struct lull_collector *c)
{
	struct signalfd_siginfo infos[N_INFOS];
	size_t n = take(c, infos, N_INFOS);

	for (int left = N_ROUNDS; n; left--) {
		n = handle(c, infos, n, left <= 1);
		if (!n && left > 1)
			n = take(c, infos, N_INFOS);
	}
}
