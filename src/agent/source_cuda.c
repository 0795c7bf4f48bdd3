/*
 * cuda: kernels, copies, memsets, graphs, synchronisations and the calls that start them.
 *
 * The driver calls InitializeInjection() when the program initialises CUDA (CUDA_INJECTION64_PATH
 * names the agent). Everything with CUPTI is set up there, before the first context; or earlier, if
 * another tool in the process turns to CUPTI first (cuda_share.c). A process that never uses CUDA
 * pays nothing.
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
#include "agent/kernel.h"
#include "agent/lib_cupti.h"
#include "agent/real.h"
#include "agent/sys.h"

/* What cuptiGetVersion() says for CUDA 11.8; layouts before it were never compared. */
#define OLDEST_CUPTI 18u

/* How often to look for what else is to be done, when records are not to be brought in. */
#define IDLE_MS 200

static struct {
	void *subscriber;
	u32 pid;	   /* of the process CUPTI was set up in, 0 = not set up */
	_Atomic u32 is_on; /* kinds and callbacks are enabled */
	_Atomic u32 has_tried;
	atomic_flag has_left;
} cuda = { .has_left = ATOMIC_FLAG_INIT };

/* What is enabled while a recording is on. */
static const u32 kinds[] = {
	LULL_CUPTI_KIND_KERNEL, LULL_CUPTI_KIND_MEMCPY,	  LULL_CUPTI_KIND_MEMCPY2,
	LULL_CUPTI_KIND_MEMSET, LULL_CUPTI_KIND_OVERHEAD, LULL_CUPTI_KIND_JIT,
};

/* What describes the process: on from the first to the last moment. Such records are few. */
static const u32 described[] = {
	LULL_CUPTI_KIND_DEVICE,
	LULL_CUPTI_KIND_CONTEXT,
	LULL_CUPTI_KIND_STREAM,
};

bool lull_cuda_is_mine(void)
{
	return cuda.pid && lull_agent.image && lull_agent.image->pid == cuda.pid;
}

void *lull_cuda_subscriber(void)
{
	return cuda.subscriber;
}

/* Kinds that this version of CUPTI does not have are refused; we go without them. */
static void enable(u32 kind, bool is_on)
{
	lull_cuda_want_kind(kind, LULL_CUDA_WE, is_on);
}

/* What the user chooses: graphs as a whole unless their nodes are wanted, and memory. */
static void enable_choices(bool is_on)
{
	u32 sources = lull_agent.control->sources;

	if (!(sources & LULL_SOURCE_GRAPH_NODES))
		enable(LULL_CUPTI_KIND_GRAPH, is_on);
	if (sources & LULL_SOURCE_CUDA_MEMORY)
		enable(LULL_CUPTI_KIND_MEMORY, is_on);
	lull_cuda_watch_memory(is_on);
}

/* Say why CUPTI cannot be used: an issue for the report, and CUPTI's own words for it. */
static bool refuse(enum lull_issue issue, const char *what, const char *detail)
{
	char *to = lull_agent.image->cuda_detail;
	size_t n = strnlen(what, 40), m = detail ? strnlen(detail, 50) : 0;

	memcpy(to, what, n);
	if (m)
		memcpy(to + n, detail, m);
	to[n + m] = '\0';
	lull_issue(issue, 1);
	return false;
}

static bool refuse_result(enum lull_issue issue, const char *what, int rc)
{
	const char *text = NULL;

	if (!lull_cupti.cuptiGetResultString || lull_cupti.cuptiGetResultString(rc, &text) != 0)
		text = "an unknown error";
	return refuse(issue, what, text);
}

/* Kernels are what it is all about: if they are refused, that is said, once. */
static void enable_kernels(void)
{
	static atomic_flag is_told = ATOMIC_FLAG_INIT;
	int rc = lull_cuda_want_kind(LULL_CUPTI_KIND_KERNEL, LULL_CUDA_WE, true);

	if (rc && !atomic_flag_test_and_set(&is_told))
		refuse_result(LULL_ISSUE_cupti_refused, "kernels: ", rc);
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
	enable_kernels();
	for (size_t i = 0; i < LULL_COUNT_OF(kinds); i++)
		enable(kinds[i], true);
	enable_choices(true);
	lull_cuda_watch_calls(true);
	lull_cuda_watch_resources(true);
	atomic_store(&cuda.is_on, 1);
}

static void switch_off(void)
{
	atomic_store(&cuda.is_on, 0);
	if (is_counting()) {
		lull_kernel_watch(false);
		return;
	}
	lull_cuda_watch_calls(false);
	lull_cuda_watch_resources(false);
	for (size_t i = 0; i < LULL_COUNT_OF(kinds); i++)
		enable(kinds[i], false);
	enable_choices(false);
}

/* Sleep until it is time to flush, or the collector asks for it. */
static void wait_for_work(u32 seen)
{
	u32 flush_ms = lull_agent.control->cuda_flush_ms;
	u32 ms = flush_ms ? (flush_ms + 1) / 2 : IDLE_MS;
	struct timespec limit = { ms / 1000, (long)(ms % 1000) * 1000000 };

	syscall(SYS_futex, &lull_agent.control->flush_wanted, FUTEX_WAIT, seen, &limit, NULL, 0);
}

/* Flushes after CUPTI was switched off: what was unfinished then comes, and buffers come back. */
#define N_LAST_FLUSHES 2u

/*
 * Bring in what CUPTI holds, if it is time for it. Where buffers fill by themselves all but the
 * last moments are in already: two looks are at most the interval that the user wants.
 */
static void flush(bool is_asked, bool is_ending, u32 *n_last)
{
	static u32 n_full;
	u32 n = lull_cuda_n_full();
	bool is_late = lull_agent.control->cuda_flush_ms && n == n_full;

	n_full = n;
	if (atomic_load(&cuda.is_on)) {
		*n_last = N_LAST_FLUSHES;
		if (is_late || is_asked || is_ending)
			lull_cupti.cuptiActivityFlushAll(0);
	} else if (*n_last) {
		(*n_last)--;
		lull_cupti.cuptiActivityFlushAll(0);
	}
}

static void *flush_loop(void *unused)
{
	struct lull_control *control = lull_agent.control;
	struct lull_thread *t = lull_thread();
	u32 obeyed = 0, n_last = 0;

	syscall(SYS_prctl, PR_SET_NAME, "lull-flush", 0L, 0L, 0L);
	if (t)
		t->is_quiet++;
	while (lull_cuda_is_mine()) {
		u32 wanted = atomic_load(&control->flush_wanted);
		bool is_wanted = atomic_load(&control->record) != 0;

		flush(wanted != obeyed, !is_wanted, &n_last);
		if (wanted != obeyed) {
			atomic_store(&lull_agent.image->flush_done, wanted);
			obeyed = wanted;
		}
		if ((is_wanted || lull_cuda_is_watching()) && !atomic_load(&cuda.is_on))
			switch_on();
		else if (!is_wanted && atomic_load(&cuda.is_on) && !lull_cuda_is_watching())
			switch_off();
		if (atomic_load(&cuda.is_on) && !is_counting()) {
			lull_cuda_watch_memory(true);
			lull_cuda_stock();
		}
		wait_for_work(wanted);
	}
	return unused;
}

bool lull_cuda_is_ready(void)
{
	return !lull_cuda_is_mine() || atomic_load(&cuda.is_on);
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

/* Names of subscribers are cut to this. */
#define NAME_BYTES 128u

struct subscriber_params {
	u64 struct_bytes;
	const char *name;
	char *old_name;
	u64 old_bytes;
};

/*
 * Who is in the way, "" if that cannot be told. Only the newer call says so; we do not subscribe
 * with it, because later versions then refuse the calls that all versions have.
 */
static void ask_who(char *who, size_t room)
{
	struct subscriber_params params = { sizeof(params), "lull", who, room };
	void *subscriber = NULL;

	if (lull_cupti.cuptiSubscribe_v2 && lull_cupti.cuptiUnsubscribe &&
	    lull_cupti.cuptiSubscribe_v2(&subscriber, lull_cuda_callback(), NULL, &params) == 0)
		lull_cupti.cuptiUnsubscribe(subscriber);
}

static bool subscribe(void)
{
	int rc = lull_cupti.cuptiSubscribe(&cuda.subscriber, lull_cuda_callback(), NULL);
	char who[NAME_BYTES] = "";

	if (rc == LULL_CUPTI_TAKEN) {
		ask_who(who, sizeof(who));
		return refuse(LULL_ISSUE_cupti_taken, *who ? "it is " : "", who);
	}
	return rc == 0 || refuse_result(LULL_ISSUE_cupti_refused, "cuptiSubscribe: ", rc);
}

/* Everything up to the subscription; false with the reason counted. */
static bool take_cupti(void)
{
	int rc;

	if (!lull_cupti_load())
		return *lull_cupti_missing() ? refuse(LULL_ISSUE_cupti_refused, "it has no ",
						      lull_cupti_missing())
					     : refuse(LULL_ISSUE_no_cupti, "", NULL);
	if (lull_cupti.version < OLDEST_CUPTI)
		return refuse(LULL_ISSUE_cupti_refused, "it is older than CUDA 11.8", NULL);
	if (!subscribe())
		return false;
	if (lull_cupti.version == 130000)
		lull_issue(LULL_ISSUE_cupti_version, 1);
	/* Before any kind is enabled: from here on all times are our counter's. */
	rc = lull_cupti.cuptiActivityRegisterTimestampCallback(lull_cuda_now);
	if (rc)
		return refuse_result(LULL_ISSUE_cupti_refused, "no clock of ours: ", rc);
	rc = lull_cupti.cuptiActivityRegisterCallbacks(lull_cuda_requested, lull_cuda_completed);
	if (rc)
		return refuse_result(LULL_ISSUE_cupti_refused, "no buffers of ours: ", rc);
	lull_cuda_zeroed();
	if (lull_cupti.cuptiSetThreadIdType)
		lull_cupti.cuptiSetThreadIdType(LULL_CUPTI_THREAD_ID_SYSTEM);
	return true;
}

/* Those that exist already are told, too, where CUPTI can do that. */
static void describe(void)
{
	for (size_t i = 0; i < LULL_COUNT_OF(described); i++) {
		enable(described[i], true);
		if (lull_cupti.cuptiActivityEnableAndDump)
			lull_cupti.cuptiActivityEnableAndDump(described[i]);
	}
}

void lull_cuda_set_up(void)
{
	int saved = errno;

	if (!lull_agent.has_session || !(lull_agent.control->sources & LULL_SOURCE_CUDA) ||
	    !lull_agent_ready() || atomic_exchange(&cuda.has_tried, 1) || !take_cupti())
		goto out;
	lull_cuda_stock();
	cuda.pid = lull_agent.image->pid;
	describe();
	if (lull_has_recording() || lull_cuda_is_watching())
		switch_on();
	atomic_store(&lull_agent.image->has_cuda, 1);
	start_thread();
out:
	errno = saved;
}

int InitializeInjection(void) __attribute__((visibility("default")));

/* Called by the driver, once, before the first context exists. */
int InitializeInjection(void)
{
	/* Ray and multiprocessing tell a worker its rank after it has begun. */
	lull_agent_read_rank();
	lull_cuda_set_up();
	/*
	 * Registered here, it runs before the driver's own handlers; one from our constructor, or
	 * from a set-up before CUDA began, would not.
	 */
	if (lull_agent.has_session && (lull_agent.control->sources & LULL_SOURCE_CUDA))
		atexit(lull_cuda_leave);
	return 1;
}

const struct lull_source lull_source_cuda = {
	.name = "cuda",
	.bit = LULL_SOURCE_CUDA,
};
