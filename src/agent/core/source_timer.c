/*
 * timer: CPU samples from inside the process, for machines where perf is not permitted.
 *
 * Each thread has a separate timer on its CPU clock, which sends SIGPROF to that thread only; a
 * thread that does not run is not disturbed. The Linux kernel checks these clocks at its tick, so
 * samples come at about 250 Hz whatever frequency is set; each has the CPU time since the previous
 * one as its weight, which compensates for that.
 *
 * While nothing is recorded the timers run slowly, so that they notice when a recording starts.
 *
 * Known limits: a signal that arrives while the thread enters a call may end that call with EINTR
 * where SA_RESTART does not apply (poll, nanosleep). Threads made by clone(2), or before the
 * agent's constructor, have no timer.
 */
#include "agent/core/timer.h"

#include <sched.h>
#include <ucontext.h>

#include "agent/calls/oscall.h"
#include "agent/core/process.h"
#include "agent/core/source.h"
#include "agent/core/sys.h"

#define IDLE_PERIOD_NS 10000000u /* 10 ms of CPU time: 0.02 % of it goes into the handler */
#define N_STARTS       256u	 /* threads between pthread_create and their first instruction */

enum state { OFF, ON, TAKEN };

/* What a new thread is to run; lives until the thread has read it. */
struct start {
	_Atomic u32 is_taken;
	void *(*run)(void *);
	void *arg;
};

static struct {
	_Atomic u32 state; /* enum state */
	bool has_key;
	pthread_key_t key; /* its destructor deletes the timer of a thread that ends */
	struct start starts[N_STARTS];
} timer;

bool lull_timer_is_on(void)
{
	return atomic_load_explicit(&timer.state, memory_order_relaxed) == ON;
}

bool lull_timer_has_sent(void)
{
	return atomic_load_explicit(&timer.state, memory_order_relaxed) != OFF;
}

bool lull_timer_is_ours(const siginfo_t *info)
{
	return info->si_code == SI_TIMER && info->si_value.sival_ptr == &timer;
}

static void set_period(int id, u32 period_ns)
{
	struct timespec each = { .tv_sec = period_ns / LULL_NS_PER_S,
				 .tv_nsec = period_ns % LULL_NS_PER_S };
	struct itimerspec spec = { .it_interval = each, .it_value = each };

	syscall(SYS_timer_settime, id, 0, &spec, NULL);
}

/* Delete the timer of a thread; the exchange makes sure that only one does. */
static void disarm(struct lull_thread *t)
{
	union lull_timer_key key = {
		.word = __atomic_exchange_n(&t->timer.key.word, 0, __ATOMIC_RELAXED),
	};

	if (key.number)
		syscall(SYS_timer_delete, (int)(key.number - 1));
}

static void on_thread_end(void *arg)
{
	/* The thread's block may already be another's; the id is in the key for that reason. */
	syscall(SYS_timer_delete, (int)((u64)arg - 1));
}

/* Give the calling thread its timer. */
static void arm(void)
{
	struct lull_thread *t = lull_thread();
	struct sigevent event = { .sigev_notify = SIGEV_THREAD_ID,
				  .sigev_signo = SIGPROF,
				  .sigev_value.sival_ptr = &timer };
	bool is_idle = !atomic_load_explicit(&lull_agent.control->record, memory_order_relaxed);
	union lull_timer_key key;
	int id;

	if (!t || !lull_timer_is_on())
		return;
	event._sigev_un._tid = (int)lull_sys_tid();
	if (syscall(SYS_timer_create, CLOCK_THREAD_CPUTIME_ID, &event, &id) != 0) {
		lull_issue(LULL_ISSUE_timer_refused, 1);
		return;
	}
	pthread_setspecific(timer.key, (void *)((u64)id + 1));
	t->timer.cpu_ns = lull_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	key = (union lull_timer_key){ .number = (u32)id + 1, .is_idle = is_idle };
	__atomic_store_n(&t->timer.key.word, key.word, __ATOMIC_SEQ_CST);
	/*
	 * Whoever yields sets the state first and then looks for timers; so one of us sees the
	 * other.
	 */
	if (atomic_load(&timer.state) != ON)
		disarm(t);
	else
		set_period(id, is_idle ? IDLE_PERIOD_NS : lull_agent.control->timer_period_ns);
}

static struct lull_wire_regs regs_of(const ucontext_t *context)
{
	const mcontext_t *m = &context->uc_mcontext;

#if defined(__x86_64__)
	return (struct lull_wire_regs){
		.pc = (u64)m->gregs[REG_RIP],
		.sp = (u64)m->gregs[REG_RSP],
		.fp = (u64)m->gregs[REG_RBP],
	};
#else
	return (struct lull_wire_regs){
		.pc = m->pc, .sp = m->sp, .fp = m->regs[29], .lr = m->regs[30]
	};
#endif
}

/* Emit one sample of the calling thread, or switch its timer between the two rates. */
static void sample(struct lull_thread *t, const ucontext_t *context)
{
	struct lull_control *control = lull_agent.control;
	bool is_idle = !atomic_load_explicit(&control->record, memory_order_relaxed);
	union lull_timer_key key = {
		.word = __atomic_load_n(&t->timer.key.word, __ATOMIC_RELAXED),
	};
	u64 cpu_ns = lull_clock_ns(CLOCK_THREAD_CPUTIME_ID);
	struct lull_wire_regs regs = regs_of(context);
	struct lull_wire_sample e = {
		.head.counter = lull_time(),
		.head.type = LULL_EVENT_sample,
		.head.size_bytes = sizeof(e),
		.head.a = (u32)sched_getcpu() & ~LULL_HAS_STACK,
		.weight_ns = cpu_ns - t->timer.cpu_ns,
	};

	t->timer.cpu_ns = cpu_ns;
	if (!key.number)
		return;
	if (is_idle != (key.is_idle != 0)) {
		union lull_timer_key other = { .number = key.number, .is_idle = is_idle };

		__atomic_compare_exchange_n(&t->timer.key.word, &key.word, other.word, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED);
		set_period((int)(other.number - 1),
			   is_idle ? IDLE_PERIOD_NS : control->timer_period_ns);
	} else if (!is_idle) {
		lull_stack_emit(t, &e.head, &regs, control->sample_bytes);
	}
}

static void on_signal(int sig, siginfo_t *info, void *context)
{
	struct lull_thread *t = lull_self;
	int saved = errno;

	if (lull_timer_is_ours(info)) {
		/* Neither attach here nor emit into a block that a fork has wiped. */
		if (t && t->magic == LULL_WIRE_MAGIC && lull_timer_is_on())
			sample(t, context);
	} else {
		/* Not from us, and the guest has no handler: the default is to die of it. */
		struct sigaction die = { .sa_handler = SIG_DFL };

		lull_real.sigaction(sig, &die, NULL);
		syscall(SYS_tgkill, lull_sys_pid(), lull_sys_tid(), sig);
	}
	errno = saved;
}

void lull_timer_yield(void)
{
	int saved = errno;
	u32 state = ON;

	if (atomic_compare_exchange_strong(&timer.state, &state, TAKEN)) {
		lull_issue(LULL_ISSUE_timer_taken, 1);
		for (u32 i = 0; i < lull_agent_n_slots(); i++)
			if (atomic_load(&lull_agent.slots[i].state) == LULL_SLOT_LIVE)
				disarm(&lull_agent.threads[i]);
	}
	errno = saved;
}

static void *run_thread(void *arg)
{
	struct start *start = arg;
	void *(*run)(void *) = start->run;
	void *run_arg = start->arg;

	/* Release: both fields are read before somebody else may write them. */
	atomic_store_explicit(&start->is_taken, 0, memory_order_release);
	arm();
	return run(run_arg);
}

/* A free place for what a thread is to run, or NULL: then the thread goes without samples. */
static struct start *take_start(void *(*run)(void *), void *arg)
{
	for (u32 i = 0; i < N_STARTS; i++) {
		struct start *start = &timer.starts[i];

		if (atomic_exchange_explicit(&start->is_taken, 1, memory_order_acquire))
			continue;
		start->run = run;
		start->arg = arg;
		return start;
	}
	lull_issue(LULL_ISSUE_timer_refused, 1);
	return NULL;
}

LULL_EXPORT int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
			       void *arg)
{
	struct start *start = lull_timer_is_on() ? take_start(run, arg) : NULL;
	int r;

	if (lull_agent.has_session)
		lull_process_starts_thread();
	if (start) {
		run = run_thread;
		arg = start;
	}
	r = lull_oscall_is_on() ? lull_timed_pthread_create(thread, attr, run, arg)
				: lull_real.pthread_create(thread, attr, run, arg);
	if (r && start)
		atomic_store_explicit(&start->is_taken, 0, memory_order_relaxed);
	return r;
}

static void start_timer(void)
{
	struct sigaction ours = { .sa_sigaction = on_signal,
				  .sa_flags = SA_RESTART | SA_SIGINFO | SA_ONSTACK };
	struct sigaction before;

	/* A forked child comes here with its parent's handler in place and none of its timers. */
	for (u32 i = 0; i < N_STARTS; i++)
		atomic_store_explicit(&timer.starts[i].is_taken, 0, memory_order_relaxed);
	atomic_store(&timer.state, OFF);
	if (!lull_agent.control->timer_period_ns ||
	    lull_real.sigaction(SIGPROF, NULL, &before) != 0)
		return;
	if (before.sa_handler != SIG_DFL && before.sa_sigaction != on_signal) {
		lull_issue(LULL_ISSUE_timer_taken, 1);
		return;
	}
	if (!timer.has_key)
		timer.has_key = pthread_key_create(&timer.key, on_thread_end) == 0;
	if (!timer.has_key || lull_real.sigaction(SIGPROF, &ours, NULL) != 0)
		return;
	atomic_store(&timer.state, ON);
	arm();
}

const struct lull_source lull_source_timer = {
	.start = start_timer,
	.is_of_each_fork = true,
	.stop = lull_timer_yield,
};
