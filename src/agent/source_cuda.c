/*
 * cuda: kernels, copies, memsets, graphs, synchronisations and the calls that start them.
 *
 * The driver calls InitializeInjection() when the program initialises CUDA (CUDA_INJECTION64_PATH
 * names the agent). Everything with CUPTI is set up there, before the first context. A process that
 * never uses CUDA pays nothing.
 *
 * States: OFF -> READY (CUPTI found, subscribed, nothing enabled) <-> ON (a recording is on). The
 * flushing thread moves between READY and ON when control->record changes; after a stop no kind and
 * no callback is left enabled.
 */
#include "agent/source.h"

#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "agent/cuda.h"
#include "agent/lib_cupti.h"
#include "agent/real.h"
#include "agent/sys.h"

/* Five times a second: bounds what a killed process loses, and costs nothing measurable. */
#define FLUSH_NS 200000000L

static struct {
	void *subscriber;
	u32 pid;	   /* of the process CUPTI was set up in, 0 = not set up */
	_Atomic u32 is_on; /* kinds and callbacks are enabled */
	atomic_flag has_left;
} cuda = { .has_left = ATOMIC_FLAG_INIT };

/* What is enabled while a recording is on. */
static const u32 kinds[] = {
	LULL_CUPTI_KIND_KERNEL, LULL_CUPTI_KIND_MEMCPY, LULL_CUPTI_KIND_MEMCPY2,
	LULL_CUPTI_KIND_MEMSET, LULL_CUPTI_KIND_SYNC,	LULL_CUPTI_KIND_OVERHEAD,
};

bool lull_cuda_is_mine(void)
{
	return cuda.pid && lull_agent.image && lull_agent.image->pid == cuda.pid;
}

static void enable(u32 kind, bool is_on)
{
	if (is_on)
		lull_cupti.cuptiActivityEnable(kind);
	else
		lull_cupti.cuptiActivityDisable(kind);
}

/* What the user chooses: graphs as a whole unless their nodes are wanted, and memory. */
static void enable_choices(bool is_on)
{
	u32 sources = lull_agent.control->sources;

	if (!(sources & LULL_SOURCE_GRAPH_NODES))
		enable(LULL_CUPTI_KIND_GRAPH, is_on);
	if (sources & LULL_SOURCE_CUDA_MEMORY)
		enable(LULL_CUPTI_KIND_MEMORY, is_on);
}

static void switch_on(void)
{
	for (size_t i = 0; i < LULL_COUNT_OF(kinds); i++)
		lull_cupti.cuptiActivityEnable(kinds[i]);
	enable_choices(true);
	if (lull_cupti.cuptiActivityEnableAllSyncRecords)
		lull_cupti.cuptiActivityEnableAllSyncRecords(0);
	lull_cuda_watch_calls(cuda.subscriber, true);
	atomic_store(&cuda.is_on, 1);
}

static void switch_off(void)
{
	atomic_store(&cuda.is_on, 0);
	lull_cuda_watch_calls(cuda.subscriber, false);
	for (size_t i = 0; i < LULL_COUNT_OF(kinds); i++)
		lull_cupti.cuptiActivityDisable(kinds[i]);
	enable_choices(false);
}

/* Sleep until it is time to flush, or the collector asks for it. */
static void wait_for_work(u32 seen)
{
	struct timespec limit = { 0, FLUSH_NS };

	syscall(SYS_futex, &lull_agent.control->flush_wanted, FUTEX_WAIT, seen, &limit, NULL, 0);
}

static void *flush_loop(void *unused)
{
	struct lull_control *control = lull_agent.control;
	struct lull_thread *t = lull_thread();
	u32 obeyed = 0;

	syscall(SYS_prctl, PR_SET_NAME, "lull-flush", 0L, 0L, 0L);
	if (t)
		t->is_quiet++;
	while (lull_cuda_is_mine()) {
		u32 wanted = atomic_load(&control->flush_wanted);
		bool is_wanted = atomic_load(&control->record) != 0;

		if (atomic_load(&cuda.is_on))
			lull_cupti.cuptiActivityFlushAll(0);
		if (wanted != obeyed) {
			atomic_store(&lull_agent.image->flush_done, wanted);
			obeyed = wanted;
		}
		if (is_wanted && !atomic_load(&cuda.is_on))
			switch_on();
		else if (!is_wanted && atomic_load(&cuda.is_on) && !lull_cuda_is_watching())
			switch_off();
		wait_for_work(wanted);
	}
	return unused;
}

static bool start_thread(void)
{
	pthread_attr_t attr;
	sigset_t all, old;
	pthread_t thread;
	bool is_started;

	/* The program's signals are none of its business. */
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 256 * 1024);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	is_started = lull_real.pthread_create(&thread, &attr, flush_loop, NULL) == 0;
	pthread_attr_destroy(&attr);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return is_started;
}

void lull_cuda_leave(void)
{
	/* A vfork child shares this memory, but it is another process and must not touch CUPTI. */
	if (!lull_cuda_is_mine() || lull_sys_pid() != cuda.pid || !atomic_load(&cuda.is_on) ||
	    atomic_flag_test_and_set(&cuda.has_left))
		return;
	lull_cupti.cuptiActivityFlushAll(0);
	/*
	 * Forced: hands over buffers with unfinished records, too; there will be no other chance.
	 */
	lull_cupti.cuptiActivityFlushAll(LULL_CUPTI_FLUSH_FORCED);
}

/* Everything up to the subscription; false with the reason counted. */
static bool take_cupti(void)
{
	int rc;

	if (!lull_cupti_load()) {
		lull_issue(LULL_ISSUE_no_cupti, 1);
		return false;
	}
	rc = lull_cupti.cuptiSubscribe(&cuda.subscriber, lull_cuda_called, NULL);
	if (rc) {
		lull_issue(rc == LULL_CUPTI_TAKEN ? LULL_ISSUE_cupti_taken
						  : LULL_ISSUE_cupti_refused,
			   1);
		return false;
	}
	if (lull_cupti.version == 130000)
		lull_issue(LULL_ISSUE_cupti_version, 1);
	/* Before any kind is enabled: from here on all times are our counter's. */
	if (lull_cupti.cuptiActivityRegisterTimestampCallback(lull_cuda_now) != 0 ||
	    lull_cupti.cuptiActivityRegisterCallbacks(lull_cuda_requested, lull_cuda_completed) !=
		    0) {
		lull_issue(LULL_ISSUE_cupti_refused, 1);
		return false;
	}
	if (lull_cupti.cuptiSetThreadIdType)
		lull_cupti.cuptiSetThreadIdType(LULL_CUPTI_THREAD_ID_SYSTEM);
	return true;
}

int InitializeInjection(void) __attribute__((visibility("default")));

/* Called by the driver, once, before the first context exists. */
int InitializeInjection(void)
{
	int saved = errno;

	if (!lull_agent.has_session || !(lull_agent.control->sources & LULL_SOURCE_CUDA) ||
	    cuda.pid || !lull_agent_ready() || !take_cupti())
		goto out;
	cuda.pid = lull_agent.image->pid;
	if (lull_cupti.cuptiActivityEnableAndDump)
		lull_cupti.cuptiActivityEnableAndDump(LULL_CUPTI_KIND_DEVICE);
	else
		lull_cupti.cuptiActivityEnable(LULL_CUPTI_KIND_DEVICE);
	if (lull_has_recording() || lull_cuda_is_watching())
		switch_on();
	atomic_store(&lull_agent.image->has_cuda, 1);
	start_thread();
	/*
	 * Registered here, it runs before the driver's own handlers; one from our constructor would
	 * not.
	 */
	atexit(lull_cuda_leave);
out:
	errno = saved;
	return 1;
}

const struct lull_source lull_source_cuda = {
	.name = "cuda",
	.bit = LULL_SOURCE_CUDA,
};
