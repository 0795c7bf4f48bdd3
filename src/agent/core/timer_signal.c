/*
 * timer_signal: the program's view of SIGPROF while the agent uses it.
 */
#include "agent/core/timer.h"

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
 * The set a guest waits for, without our signal: it may be pending where the guest has blocked
 * everything.
 */
static const sigset_t *without_ours(const sigset_t *set, sigset_t *copy)
{
	if (!lull_timer_is_on() || sigismember(set, SIGPROF) != 1)
		return set;
	*copy = *set;
	sigdelset(copy, SIGPROF);
	return copy;
}

#define SIGWAIT(name, params, args)                                                        \
	LULL_EXPORT int name params                                                        \
	{                                                                                  \
		sigset_t copy;                                                             \
                                                                                           \
		set = without_ours(set, &copy);                                            \
		return lull_oscall_is_on() ? lull_timed_##name args : lull_real.name args; \
	}

SIGWAIT(sigwait, (const sigset_t *set, int *sig), (set, sig))
SIGWAIT(sigwaitinfo, (const sigset_t *set, siginfo_t *info), (set, info))
SIGWAIT(sigtimedwait, (const sigset_t *set, siginfo_t *info, const struct timespec *timeout),
	(set, info, timeout))
