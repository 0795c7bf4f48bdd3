/*
 * cuda_attach - coming to CUPTI, and leaving it.
 *
 * CUPTI costs a microsecond a launch while it is in the process, even with everything switched off:
 * only cuptiFinalize() sends it away (H200, CUDA 13.0: 4.2 us a launch without it, 5.2 with it and
 * all off, 4.1 after it left). So we come when something is to be recorded, and leave after that.
 *
 *	AWAY -> COMING -> HERE -> LEAVING -> GOING -> AWAY (or GONE: never again)
 *
 * LEAVING:  callbacks are on, and the first thread that comes to the end of a call takes us away:
 *           that is where CUPTI's manual wants it. A program that calls nothing more has no cost
 *           either.
 * GONE:     a second coming is known to crash programs with CUDA graphs. Such programs are left
 *           only when nothing more can be recorded.
 */
#include <sched.h>
#include <time.h>

#include "agent/cuda.h"
#include "agent/lib_cupti.h"
#include "agent/sys.h"

/* What cuptiGetVersion() says for CUDA 11.8; layouts before it were never compared. */
#define OLDEST_CUPTI 18u

/* How long the end of the process waits for CUPTI to be gone. */
#define STAY_TRIES 1000 /* of 1 ms */

enum { AWAY, COMING, HERE, LEAVING, GOING, GONE };

static struct {
	void *subscriber;
	_Atomic u32 state;
	_Atomic u32 has_graphs;
	_Atomic u32 has_names; /* of CUPTI's numbers, which must stay the same */
} at;

/* What describes the process: on as long as we are here. Such records are few. */
static const u32 described[] = {
	LULL_CUPTI_KIND_DEVICE,
	LULL_CUPTI_KIND_CONTEXT,
	LULL_CUPTI_KIND_STREAM,
};

void *lull_cuda_subscriber(void)
{
	return at.subscriber;
}

bool lull_cuda_is_here(void)
{
	return atomic_load_explicit(&at.state, memory_order_relaxed) == HERE;
}

bool lull_cuda_is_gone(void)
{
	return atomic_load_explicit(&at.state, memory_order_relaxed) == GONE;
}

bool lull_cuda_come_to_name(void)
{
	atomic_store(&at.has_names, 1);
	return !lull_cuda_is_over() && lull_cuda_come();
}

void lull_cuda_saw_graph(void)
{
	atomic_store_explicit(&at.has_graphs, 1, memory_order_relaxed);
}

bool lull_cuda_refuse(enum lull_issue issue, const char *what, const char *detail)
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

bool lull_cuda_refuse_result(enum lull_issue issue, const char *what, int rc)
{
	const char *text = NULL;

	if (!lull_cupti.cuptiGetResultString || lull_cupti.cuptiGetResultString(rc, &text) != 0)
		text = "an unknown error";
	return lull_cuda_refuse(issue, what, text);
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
	int rc = lull_cupti.cuptiSubscribe(&at.subscriber, lull_cuda_callback(), NULL);
	char who[NAME_BYTES] = "";

	if (rc == LULL_CUPTI_TAKEN) {
		ask_who(who, sizeof(who));
		return lull_cuda_refuse(LULL_ISSUE_cupti_taken, *who ? "it is " : "", who);
	}
	return rc == 0 || lull_cuda_refuse_result(LULL_ISSUE_cupti_refused, "cuptiSubscribe: ", rc);
}

/* Everything up to the subscription; false with the reason counted. */
static bool take_cupti(void)
{
	int rc;

	if (!lull_cupti_load())
		return *lull_cupti_missing() ? lull_cuda_refuse(LULL_ISSUE_cupti_refused,
								"it has no ", lull_cupti_missing())
					     : lull_cuda_refuse(LULL_ISSUE_no_cupti, "", NULL);
	if (lull_cupti.version < OLDEST_CUPTI)
		return lull_cuda_refuse(LULL_ISSUE_cupti_refused, "it is older than CUDA 11.8",
					NULL);
	if (!subscribe())
		return false;
	if (lull_cupti.version == 130000)
		lull_issue(LULL_ISSUE_cupti_version, 1);
	/* Before any kind is enabled: from here on all times are our counter's. */
	rc = lull_cupti.cuptiActivityRegisterTimestampCallback(lull_cuda_now);
	if (rc)
		return lull_cuda_refuse_result(LULL_ISSUE_cupti_refused, "no clock of ours: ", rc);
	rc = lull_cupti.cuptiActivityRegisterCallbacks(lull_cuda_requested, lull_cuda_completed);
	if (rc)
		return lull_cuda_refuse_result(LULL_ISSUE_cupti_refused,
					       "no buffers of ours: ", rc);
	lull_cuda_zeroed();
	if (lull_cupti.cuptiSetThreadIdType)
		lull_cupti.cuptiSetThreadIdType(LULL_CUPTI_THREAD_ID_SYSTEM);
	return true;
}

/* Those that exist already are told, too, where CUPTI can do that. */
static void describe(bool is_on)
{
	for (size_t i = 0; i < LULL_COUNT_OF(described); i++) {
		lull_cuda_want_kind(described[i], LULL_CUDA_WE, is_on);
		if (is_on && lull_cupti.cuptiActivityEnableAndDump)
			lull_cupti.cuptiActivityEnableAndDump(described[i]);
	}
}

/* Change the state if it is still that. */
static bool moves(u32 from, u32 to)
{
	return atomic_compare_exchange_strong(&at.state, &from, to);
}

static void come(void)
{
	bool is_taken = take_cupti();

	if (is_taken) {
		lull_cuda_stock();
		describe(true);
	}
	atomic_store(&at.state, is_taken ? HERE : GONE);
}

bool lull_cuda_come(void)
{
	for (;;) {
		switch (atomic_load(&at.state)) {
		case HERE:
			return true;
		case GONE:
			return false;
		case AWAY:
			if (moves(AWAY, COMING))
				come();
			break;
		case LEAVING:
			if (moves(LEAVING, COMING)) {
				lull_cuda_watch_calls(false);
				describe(true);
				atomic_store(&at.state, HERE);
			}
			break;
		default:
			sched_yield(); /* another thread is at it */
		}
	}
}

void lull_cuda_leave_soon(bool is_for_good)
{
	if (!lull_cupti.cuptiFinalize || !lull_cupti.cuptiUnsubscribe ||
	    lull_cupti.version <= OLDEST_CUPTI || lull_cuda_share_is_used() ||
	    (!is_for_good && (atomic_load(&at.has_graphs) || atomic_load(&at.has_names))) ||
	    !moves(HERE, COMING))
		return;
	describe(false);
	lull_cupti.cuptiActivityFlushAll(0);
	lull_cuda_watch_calls(true);
	/* Last: from here on another thread may end it. */
	atomic_store(&at.state, LEAVING);
}

void lull_cuda_stay(void)
{
	struct timespec pause = { 0, 1000000 };

	moves(LEAVING, HERE);
	for (int i = 0; i < STAY_TRIES && atomic_load(&at.state) == GOING; i++)
		syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0L, &pause, NULL);
}

static void go(void)
{
	bool is_for_good = atomic_load(&at.has_graphs) || lull_cuda_is_over();

	lull_cupti.cuptiUnsubscribe(at.subscriber);
	lull_cupti.cuptiFinalize();
	lull_cuda_share_reset();
	at.subscriber = NULL;
	atomic_store(&at.state, is_for_good ? GONE : AWAY);
}

/*
 * Only at the end of an outermost call: the runtime's, not that of the driver inside it. What is
 * inside is told as in cuda_calls.c, with a number that no recording has.
 */
void lull_cuda_depart(u64 call, bool is_end)
{
	const u64 mark = (u64)0xffff << 48;
	struct lull_thread *t;

	if (atomic_load_explicit(&at.state, memory_order_relaxed) != LEAVING)
		return;
	t = lull_thread();
	/* A forked child has the state, but not CUPTI. */
	if (!t || !lull_cuda_is_mine())
		return;
	call = (call & ~mark) | mark;
	if (!is_end && (t->scratch[6] & mark) != mark)
		t->scratch[6] = call;
	else if (is_end && t->scratch[6] == call) {
		int saved = errno;

		t->scratch[6] = 0;
		if (moves(LEAVING, GOING))
			go();
		errno = saved;
	}
}
