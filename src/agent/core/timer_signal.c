/*
 * timer_signal: the program's view of SIGPROF while the agent uses it.
 */
#include "agent/core/timer.h"

#include <errno.h>

#include "agent/calls/oscall.h"

LULL_EXPORT int sigaction(int sig, const struct sigaction *act, struct sigaction *old)
{
	static const struct sigaction none; /* SIG_DFL, no flags */
	int r = 0;

	if (sig != SIGPROF || !lull_timer_is_on())
		return lull_real.sigaction(sig, act, old);
	/* To ask for the default is to change nothing. */
	if (act && act->sa_handler != SIG_DFL) {
		lull_timer_yield();
		r = lull_real.sigaction(sig, act, NULL);
	}
	if (r == 0 && old)
		*old = none;
	return r;
}

/* The older ways to set a handler. */
#define SIGNAL(name)                                                                \
	LULL_EXPORT sighandler_t name(int sig, sighandler_t handler)                \
	{                                                                           \
		if (sig != SIGPROF || !lull_timer_is_on())                          \
			return lull_real.name(sig, handler);                        \
		if (handler == SIG_DFL)                                             \
			return SIG_DFL;                                             \
		lull_timer_yield();                                                 \
		return lull_real.name(sig, handler) == SIG_ERR ? SIG_ERR : SIG_DFL; \
	}

SIGNAL(signal)
SIGNAL(ssignal)
SIGNAL(bsd_signal)
SIGNAL(sysv_signal)
SIGNAL(__sysv_signal)

LULL_EXPORT int setitimer(__itimer_which_t which, const struct itimerval *value,
			  struct itimerval *old)
{
	if (which == ITIMER_PROF && value && lull_timer_is_on())
		lull_timer_yield();
	return lull_real.setitimer(which, value, old);
}

/*
 * Who waits for SIGPROF may find ours: it is pending where the guest has blocked the signal. That
 * one is taken away, and the guest waits on.
 */
static bool may_find_ours(const sigset_t *set)
{
	return lull_timer_has_sent() && sigismember(set, SIGPROF) == 1;
}

static bool is_ours(int sig, const siginfo_t *info)
{
	return sig == SIGPROF && lull_timer_is_ours(info);
}

#define WAIT(name, args) (lull_oscall_is_on() ? lull_timed_##name args : lull_real.name args)

LULL_EXPORT int sigwaitinfo(const sigset_t *set, siginfo_t *info)
{
	siginfo_t found;
	int sig;

	if (!may_find_ours(set))
		return WAIT(sigwaitinfo, (set, info));
	do
		sig = WAIT(sigwaitinfo, (set, &found));
	while (is_ours(sig, &found));
	if (sig > 0 && info)
		*info = found;
	return sig;
}

LULL_EXPORT int sigwait(const sigset_t *set, int *sig)
{
	siginfo_t found;
	int r;

	if (!may_find_ours(set))
		return WAIT(sigwait, (set, sig));
	do
		r = WAIT(sigwaitinfo, (set, &found));
	while (is_ours(r, &found) || (r < 0 && errno == EINTR));
	if (r < 0)
		return errno;
	*sig = r;
	return 0;
}

LULL_EXPORT int sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *timeout)
{
	siginfo_t found;
	int sig;

	if (!may_find_ours(set))
		return WAIT(sigtimedwait, (set, info, timeout));
	/* Ours take none of the timeout: they come while the thread runs, not while it waits. */
	do
		sig = WAIT(sigtimedwait, (set, &found, timeout));
	while (is_ours(sig, &found));
	if (sig > 0 && info)
		*info = found;
	return sig;
}

/* Ours would be read from it as well. */
LULL_EXPORT int signalfd(int fd, const sigset_t *set, int flags)
{
	if (lull_timer_is_on() && sigismember(set, SIGPROF) == 1)
		lull_timer_yield();
	return lull_real.signalfd(fd, set, flags);
}
