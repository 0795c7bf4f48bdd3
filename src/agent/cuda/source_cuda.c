/*
 * cuda: kernels, copies, memsets, graphs, synchronisations and the calls that start them.
 *
 * The driver calls InitializeInjection() when the program initialises CUDA (CUDA_INJECTION64_PATH
 * names the agent). If something is recorded by then, everything with CUPTI is set up there, before
 * the first context; or earlier, if another tool in the process turns to CUPTI first
 * (cuda_share.c). If the program itself says when a recording begins, it is done then. A process
 * that never uses CUDA pays nothing.
 *
 * States: OFF -> ready (CUPTI found, subscribed, nothing enabled) <-> ON (a recording is on). The
 * flushing thread moves between them when control->record changes; after a stop no kind and no
 * callback is left enabled, and CUPTI is left as soon as that can be (cuda_attach.c).
 */
#include "agent/core/source.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#include "agent/cuda/cuda.h"
#include "agent/core/loaded.h"
#include "agent/counters/counters.h"
#include "agent/cuda/cupti.h"
#include "agent/calls/oscall.h"
#include "agent/core/real.h"
#include "agent/core/sys.h"

/* How often to look for what else is to be done, when records are not to be brought in. */
#define IDLE_MS 200

static struct {
	u32 pid;	   /* of the process that uses CUDA, 0 = none does */
	_Atomic u32 is_on; /* kinds and callbacks are enabled */
	_Atomic u32 has_tried;
	_Atomic u32 leaving;		 /* STAY_* */
	_Atomic u32 n_last;		 /* flushes that are due once it is off */
	_Atomic u32 n_wanted, n_brought; /* before an exec: asked for, and done */
	_Atomic u32 is_flushing;	 /* the flushing thread runs */
	_Atomic u32 is_withdrawn;	 /* it is to end: the program is left */
	bool has_exit;			 /* our exit handler is registered */
} cuda;

/* The process goes on; it ends and wants the last records; they are in. */
enum { STAY_HERE, STAY_LEAVING, STAY_LEFT };

/* What is enabled while a recording is on. */
static const u32 kinds[] = {
	LULL_CUPTI_KIND_KERNEL, LULL_CUPTI_KIND_MEMCPY,	  LULL_CUPTI_KIND_MEMCPY2,
	LULL_CUPTI_KIND_MEMSET, LULL_CUPTI_KIND_OVERHEAD, LULL_CUPTI_KIND_JIT,
};

bool lull_cuda_is_mine(void)
{
	return cuda.pid && lull_agent.image && lull_agent.image->pid == cuda.pid;
}

/* CUPTI and the thread that fetches its records are those of the process that forked this one. */
static bool is_inherited(void)
{
	return cuda.pid && cuda.pid != lull_sys_pid();
}

/* Kinds that this version of CUPTI does not have are refused; we go without them. */
static void enable(u32 kind, bool is_on)
{
	lull_cuda_want_kind(kind, LULL_CUDA_WE, is_on);
}

/* What the recording is about: the first that is refused is said. */
static void enable_surely(u32 kind, const char *what)
{
	static atomic_flag is_told = ATOMIC_FLAG_INIT;
	int rc = lull_cuda_want_kind(kind, LULL_CUDA_WE, true);

	if (rc && !atomic_flag_test_and_set(&is_told))
		lull_cuda_refuse_result(LULL_ISSUE_cupti_refused, what, rc);
}

/* What the user chooses: graphs as a whole unless their nodes are wanted, and memory. */
static void enable_choices(bool is_on)
{
	u32 sources = lull_agent.control->sources;

	if (!(sources & LULL_SOURCE_GRAPH_NODES))
		enable(LULL_CUPTI_KIND_GRAPH, is_on);
	if (sources & LULL_SOURCE_CUDA_MEMORY) {
		if (is_on)
			enable_surely(LULL_CUPTI_KIND_MEMORY, "memory: ");
		else
			enable(LULL_CUPTI_KIND_MEMORY, false);
	}
	lull_cuda_watch_memory(is_on);
}

/* Records of what the device does would disturb those who read its counters. */
static bool is_counting(void)
{
	return (lull_agent.control->sources & LULL_SOURCE_KERNELS) != 0;
}

static void switch_on(void)
{
	if (is_counting()) {
		lull_kernel_watch(true);
		atomic_store(&cuda.is_on, 1);
		return;
	}
	enable_surely(LULL_CUPTI_KIND_KERNEL, "kernels: ");
	enable_surely(LULL_CUPTI_KIND_MEMCPY, "copies: ");
	for (size_t i = 0; i < LULL_COUNT_OF(kinds); i++)
		enable(kinds[i], true);
	enable_choices(true);
	lull_cuda_watch_calls(true);
	lull_cuda_watch_resources(true);
	atomic_store(&cuda.is_on, 1);
}

static bool is_wanted(void)
{
	/* In this order: `armed` falls after `record` has risen. */
	return lull_cuda_is_watching() || atomic_load(&lull_agent.control->record) != 0;
}

static void switch_off(void)
{
	atomic_store(&cuda.is_on, 0);
	/* The program may have armed it again, and gone on because it was still on. */
	if (is_wanted()) {
		atomic_store(&cuda.is_on, 1);
		return;
	}
	if (is_counting()) {
		lull_kernel_watch(false);
		return;
	}
	if (!lull_cuda_follow_on())
		lull_cuda_watch_calls(false);
	lull_cuda_watch_resources(false);
	for (size_t i = 0; i < LULL_COUNT_OF(kinds); i++)
		enable(kinds[i], false);
	enable_choices(false);
}

/* Sleep until it is time to flush, or the recorder asks for it. */
static void wait_for_work(u32 seen)
{
	u32 flush_ms = lull_agent.control->cuda_flush_ms;
	u32 ms = flush_ms ? (flush_ms + 1) / 2 : IDLE_MS;
	struct timespec limit = { ms / 1000, (long)(ms % 1000) * 1000000 };

	syscall(SYS_futex, &lull_agent.control->flush_wanted, FUTEX_WAIT, seen, &limit, NULL, 0);
}

void lull_cuda_rouse(void)
{
	struct timespec ms = { 0, 1000000 };

	syscall(SYS_futex, &lull_agent.control->flush_wanted, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0L, &ms, NULL);
}

/* Flushes after CUPTI was switched off: what was unfinished then comes, and buffers come back. */
#define N_LAST_FLUSHES 2u

/* What is finished, also of buffers that CUPTI holds back. */
static void flush_all(void)
{
	if (lull_cupti.cuptiActivityFlushAll(0) == 0)
		lull_cuda_take_finished();
}

/*
 * Bring in what CUPTI holds, if it is time for it. Where buffers fill by themselves all but the
 * last moments are in already, unless one of them stays (threads have their own): two looks are at
 * most the interval that the user wants.
 */
static void flush(bool is_asked, bool is_ending, u32 n_held)
{
	static u32 n_full;
	u32 n = lull_cuda_n_full();
	bool has_old = lull_cuda_mark_held();
	bool is_late = lull_agent.control->cuda_flush_ms && (n == n_full || has_old);

	n_full = n;
	if (atomic_load(&cuda.is_on)) {
		atomic_store(&cuda.n_last, N_LAST_FLUSHES);
		if (is_late || is_asked || is_ending)
			flush_all();
	} else if (atomic_load(&cuda.n_last) || n_held) {
		flush_all();
	}
}

/*
 * After a recording CUPTI holds back each buffer in which something is unfinished, and with it all
 * else in it. The recorder waits for that a little, and then wants what is there.
 */
static u32 count_held(void)
{
	u32 n_held = atomic_load(&cuda.is_on) ? 0 : lull_cuda_n_held();

	if (n_held && atomic_load(&lull_agent.control->is_flush_forced) &&
	    !lull_cuda_share_is_used()) {
		lull_cuda_flush_forced();
		n_held = 0;
	}
	atomic_store(&lull_agent.image->n_held, n_held);
	/* Not before: the end of the process must not come between a flush and its outcome. */
	if (!atomic_load(&cuda.is_on) && atomic_load(&cuda.n_last))
		atomic_fetch_sub(&cuda.n_last, 1);
	return n_held;
}

bool lull_cuda_is_over(void)
{
	struct lull_control *c = lull_agent.control;

	return atomic_load_explicit(&c->is_over, memory_order_relaxed) ||
	       (c->capture_repeats && atomic_load_explicit(&c->watch, memory_order_relaxed) &&
		atomic_load_explicit(&c->capture_ended, memory_order_relaxed) >=
			c->capture_repeats);
}

/* Be on if that is wanted, else off, and away when nothing more can come. */
static void follow(bool is_all_in)
{
	bool is_on = atomic_load(&cuda.is_on);

	if (!is_on && is_wanted()) {
		if (lull_cuda_attach())
			switch_on();
	} else if (is_on && !is_wanted()) {
		switch_off();
	} else if (!is_on && is_all_in) {
		lull_cuda_detach_soon();
	}
	if (atomic_load(&cuda.is_on) && !is_counting()) {
		lull_cuda_watch_memory(true);
		lull_cuda_stock();
	}
}

/* The process ends. After this the driver may be gone at any moment: CUPTI is not called again. */
static void flush_last(void)
{
	lull_cupti.cuptiActivityFlushAll(0);
	lull_cuda_flush_forced();
	atomic_store(&cuda.leaving, STAY_LEFT);
}

/* What bring_in_and_wait() waits for. */
static void bring_in(void)
{
	u32 n_wanted = atomic_load(&cuda.n_wanted);

	if (atomic_load(&cuda.n_brought) == n_wanted)
		return;
	if (lull_cuda_is_attached()) {
		lull_cupti.cuptiActivityFlushAll(0);
		lull_cuda_flush_forced();
	}
	atomic_store(&cuda.n_brought, n_wanted);
}

static void *flush_loop(void *unused)
{
	struct lull_control *control = lull_agent.control;
	struct lull_thread *t = lull_thread();
	u32 obeyed = 0, n_held = 0;

	syscall(SYS_prctl, PR_SET_NAME, "lull-flush", 0L, 0L, 0L);
	if (t) {
		t->is_quiet++;
		t->role = LULL_ROLE_AGENT;
	}
	while (lull_cuda_is_mine() && !(lull_cuda_is_detached() && lull_cuda_is_over()) &&
	       !atomic_load(&cuda.is_withdrawn)) {
		u32 wanted = atomic_load(&control->flush_wanted);

		if (atomic_load(&cuda.leaving) != STAY_HERE) {
			flush_last();
			break;
		}
		if (lull_cuda_is_attached()) {
			flush(wanted != obeyed, !atomic_load(&control->record), n_held);
			n_held = count_held();
		}
		bring_in();
		follow(!atomic_load(&cuda.n_last) && !n_held);
		/* Last: the recorder also waits until CUPTI is on. */
		if (wanted != obeyed) {
			atomic_store(&lull_agent.image->flush_done, wanted);
			obeyed = wanted;
		}
		wait_for_work(wanted);
	}
	if (lull_agent.is_late) {
		atomic_store(&lull_agent.image->has_cuda, 0); /* nobody waits for a flush */
		lull_thread_leave();
	}
	atomic_store(&cuda.is_flushing, 0);
	return unused;
}

/* False while CUPTI is wanted in this process and not yet on. */
static bool is_ready(void)
{
	return !lull_cuda_is_mine() || lull_cuda_is_detached() || atomic_load(&cuda.is_on);
}

#define STACK_BYTES ((size_t)256 << 10)

static bool start_thread(void)
{
	size_t usual_bytes = 0;
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	bool is_started;

	/* The program's signals are none of its business. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_getstacksize(&attr, &usual_bytes);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	is_started = lull_real.pthread_create(&thread, &attr, flush_loop, NULL) == 0;
	/* A program's thread-local variables lie on each stack, and may need more than that. */
	if (!is_started && pthread_attr_setstacksize(&attr, usual_bytes) == 0)
		is_started = lull_real.pthread_create(&thread, &attr, flush_loop, NULL) == 0;
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return is_started;
}

/* How long the end of the process waits for the last records. */
#define LEAVE_TRIES 1000 /* of 1 ms */

/* CUPTI is on, or was until a moment ago: work that a recording has waited for may just be done. */
static bool may_bring_more(void)
{
	return atomic_load(&cuda.is_on) || atomic_load(&lull_agent.image->n_held) ||
	       (atomic_load(&cuda.n_last) && atomic_load(&cuda.is_flushing));
}

LULL_AT_START void lull_cuda_flush_at_exit(void)
{
	u32 here = STAY_HERE;

	/* A vfork child shares this memory, but it is another process and must not touch CUPTI. */
	if (!lull_cuda_is_mine() || lull_sys_pid() != cuda.pid)
		return;
	/* CUPTI is not to be sent away while the process ends. */
	lull_cuda_keep_attached();
	if (!may_bring_more() ||
	    !atomic_compare_exchange_strong(&cuda.leaving, &here, STAY_LEAVING))
		return;
	/*
	 * Not here: this may be a signal handler, and the thread in the middle of a call, with
	 * CUPTI's locks in its hands.
	 */
	for (int i = 0; i < LEAVE_TRIES && atomic_load(&cuda.leaving) != STAY_LEFT; i++)
		lull_cuda_rouse();
	if (atomic_load(&cuda.leaving) != STAY_LEFT)
		lull_issue(LULL_ISSUE_device_tail, 1);
}

/* Before an exec, which may fail: what CUPTI holds is brought in, and the process may go on. */
LULL_AT_START static void bring_in_and_wait(void)
{
	u32 n_wanted;

	if (!lull_cuda_is_mine() || lull_sys_pid() != cuda.pid || !atomic_load(&cuda.is_on) ||
	    atomic_load(&cuda.leaving) != STAY_HERE)
		return;
	n_wanted = atomic_fetch_add(&cuda.n_wanted, 1) + 1;
	for (int i = 0; i < LEAVE_TRIES && (i32)(atomic_load(&cuda.n_brought) - n_wanted) < 0; i++)
		lull_cuda_rouse();
}

/* The program says when a recording begins, and waits for CUPTI to be there. */
static bool waits_for_program(void)
{
	u32 watch = atomic_load_explicit(&lull_agent.control->watch, memory_order_relaxed);

	return (watch & (LULL_WATCH_STEPS | LULL_WATCH_PROGRAM)) != 0;
}

void lull_cuda_set_up(bool is_needed)
{
	int saved = errno;

	if (!lull_agent.has_session || !(lull_agent.control->sources & LULL_SOURCE_CUDA) ||
	    !lull_agent_ready())
		goto out;
	lull_sources_follow_forks();
	if (!atomic_exchange(&cuda.has_tried, 1)) {
		is_needed = is_needed || is_counting() || is_wanted() || !waits_for_program();
		if (is_needed && !lull_cuda_attach())
			goto out;
		cuda.pid = lull_agent.image->pid;
		/* First: the recorder waits for us, or we see what it wants. */
		atomic_store(&lull_agent.image->has_cuda, 1);
		if (is_wanted())
			switch_on();
		atomic_store(&cuda.is_flushing, 1);
		if (!start_thread()) {
			atomic_store(&cuda.is_flushing, 0);
			atomic_store(&cuda.leaving, STAY_LEFT); /* nobody would come */
			lull_cuda_refuse(LULL_ISSUE_cupti_refused,
					 "no thread could be started to fetch its records", NULL);
		}
	} else if (is_needed && lull_cuda_is_mine() && lull_sys_pid() == cuda.pid) {
		lull_cuda_attach();
	}
out:
	errno = saved;
}

int InitializeInjection(void) __attribute__((visibility("default")));

/* Called by the driver, once, before the first context exists. */
int InitializeInjection(void)
{
	/* Ray and multiprocessing tell a worker its rank after it has begun. */
	lull_agent_read_rank();
	lull_cuda_set_up(false);
	lull_osrt_spare(true); /* some were bound by now */
	lull_cuda_wrap(true);
	/*
	 * Registered here, it runs before the driver's own handlers; one from our constructor, or
	 * from a set-up before CUDA began, would not.
	 */
	if (lull_agent.has_session && (lull_agent.control->sources & LULL_SOURCE_CUDA) &&
	    !cuda.has_exit) {
		cuda.has_exit = true;
		atexit(lull_cuda_flush_at_exit);
	}
	return 1;
}

static int visit_driver(struct dl_phdr_info *file, size_t size, void *arg)
{
	bool *is_loaded = arg;

	(void)size;
	*is_loaded = strncmp(lull_loaded_file_name(file->dlpi_name), "libcuda.so", 10) == 0;
	return *is_loaded;
}

/*
 * In a program that runs already the driver asked long ago whom to call. CUPTI tells of contexts,
 * streams and devices that exist (cuda_attach.c), and names kernels in their records.
 */
static void enter(void)
{
	bool is_loaded = false;

	if (!lull_agent.is_late || is_inherited() || atomic_load(&cuda.has_tried))
		return;
	lull_loaded_walk(visit_driver, &is_loaded);
	if (is_loaded)
		InitializeInjection();
}

/* The next time everything begins anew. */
LULL_AT_START static void start(void)
{
	if (!lull_agent.is_late || is_inherited())
		return;
	if (!lull_cuda_is_mine()) {
		atomic_store(&cuda.has_tried, 0);
		atomic_store(&cuda.leaving, STAY_HERE);
		atomic_store(&cuda.is_withdrawn, 0);
		lull_cuda_attach_anew();
	}
	enter();
}

/* How long a program is followed for a moment at which CUPTI can go. */
#define WITHDRAW_TRIES 3000 /* of 1 ms */
#define CROWDED_TRIES  300  /* if several of its threads call CUDA: most of them may end soon */

static bool is_worth_a_try(int i)
{
	return i < WITHDRAW_TRIES && atomic_load(&cuda.is_flushing) &&
	       (i < CROWDED_TRIES || !lull_cuda_is_crowded());
}

static void withdraw(void)
{
	bool is_here = atomic_load(&cuda.is_flushing);

	if (is_inherited()) {
		lull_cuda_unwrap();
		return;
	}
	if (is_here)
		lull_osrt_points(true);
	for (int i = 0; is_worth_a_try(i); i++) {
		lull_cuda_detach_aside(i);
		lull_cuda_rouse();
	}
	if (is_here)
		lull_osrt_points(false);
	/* CUPTI stays, with all switched off. */
	atomic_store(&cuda.is_withdrawn, 1);
	while (atomic_load(&cuda.is_flushing))
		lull_cuda_rouse();
	/* That thread may not have got to it. */
	if (atomic_load(&cuda.is_on) && lull_cuda_is_attached())
		switch_off();
	atomic_store(&cuda.is_on, 0);
	lull_cuda_stay_idle();
	lull_cuda_unwrap();
	cuda.pid = 0;
}

static void wrap(void)
{
	enter();
	lull_cuda_wrap(false);
}

static bool prepare(void)
{
	if (is_ready())
		return true;
	lull_cuda_rouse();
	return false;
}

const struct lull_source lull_source_cuda = {
	.start = start,
	.loaded = wrap,
	.prepare = prepare,
	.ended = lull_cuda_detach_now,
	.passed = lull_cuda_detach_here,
	.calls = lull_cuda_detach_waiting,
	.leave = lull_cuda_flush_at_exit,
	.execs = bring_in_and_wait,
	.withdraw = withdraw,
};
