/*
 * cuda_attach - coming to CUPTI, and leaving it.
 *
 * CUPTI costs a microsecond a launch while it is in the process, even with everything switched off:
 * only cuptiFinalize() sends it away (H200, CUDA 13.0: 4.2 us a launch without it, 5.2 with it and
 * all off, 4.1 after it left). So we come when something is to be recorded, and leave when nothing
 * more can be.
 *
 *	AWAY -> COMING -> HERE -> LEAVING -> GOING -> GONE
 *
 * Coming:   before the program's first context, or while the thread that wants it waits for us (a
 *           step begins, lull_start()): other threads should not launch meanwhile.
 * Leaving:  by the first thread that comes to the end of a call: that is where CUPTI's manual wants
 *           it. Not at the end of a driver call inside a call of the runtime, which goes on with
 *           what CUPTI has just freed. So calls are followed for a while first. A program that
 *           calls nothing more has no cost either.
 * Again:    never, as a rule: a second coming is known to crash programs with CUDA graphs.
 *           LULL_CUPTI_LEAVE=always leaves after each recording, for benchmarks without graphs.
 */
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include "agent/cuda.h"
#include "agent/lib_cupti.h"
#include "agent/sys.h"

/* What cuptiGetVersion() says for CUDA 11.8; layouts before it were never compared. */
#define OLDEST_CUPTI 18u

/* How long the end of the process waits for CUPTI to be gone. */
#define STAY_TRIES 1000 /* of 1 ms */

/* Looks of the flushing thread for which calls are followed before one of them may be the last. */
#define PATIENCE 5u

/* In the place of a recording's number in lull_thread.scratch[6]: calls that are only followed. */
#define FOLLOWED 0xff00u

enum { AWAY, COMING, HERE, LEAVING, GOING, GONE };

static struct {
	void *subscriber;
	_Atomic u32 state;
	_Atomic u32 n_followings; /* how often calls began to be followed */
	_Atomic u32 patience;	  /* looks that are left, 0 = calls are not followed */
	bool is_leaving_always;
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
	const char *when = getenv("LULL_CUPTI_LEAVE");
	bool is_taken = take_cupti();

	at.is_leaving_always = when && strcmp(when, "always") == 0;
	if (is_taken) {
		lull_cuda_stock();
		describe(true);
	}
	atomic_store(&at.state, is_taken ? HERE : GONE);
}

/* Stay after all. */
static void come_back(void)
{
	if (!at.patience)
		return;
	at.patience = 0;
	lull_cuda_watch_calls(false);
	describe(true);
}

bool lull_cuda_come(void)
{
	for (;;) {
		switch (atomic_load(&at.state)) {
		case HERE:
			if (!at.patience)
				return true;
			if (moves(HERE, COMING)) {
				come_back();
				atomic_store(&at.state, HERE);
			}
			break;
		case GONE:
			return false;
		case AWAY:
			if (moves(AWAY, COMING))
				come();
			break;
		case LEAVING:
			if (moves(LEAVING, COMING)) {
				come_back();
				atomic_store(&at.state, HERE);
			}
			break;
		default:
			sched_yield(); /* another thread is at it */
		}
	}
}

void lull_cuda_leave_soon(void)
{
	if ((!at.is_leaving_always && !lull_cuda_is_over()) || !lull_cupti.cuptiFinalize ||
	    !lull_cupti.cuptiUnsubscribe || lull_cupti.version <= OLDEST_CUPTI ||
	    !moves(HERE, COMING))
		return;
	/* Another tool may have come, and uses it through us. */
	if (lull_cuda_share_is_used()) {
		come_back();
		atomic_store(&at.state, HERE);
	} else if (!at.patience) {
		at.patience = PATIENCE;
		describe(false);
		lull_cupti.cuptiActivityFlushAll(0);
		atomic_fetch_add(&at.n_followings, 1);
		lull_cuda_watch_calls(true);
		atomic_store(&at.state, HERE);
	} else {
		at.patience -= at.patience > 1;
		/* From here on another thread may end it. */
		atomic_store(&at.state, at.patience > 1 ? HERE : LEAVING);
	}
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
	lull_cupti.cuptiUnsubscribe(at.subscriber);
	lull_cupti.cuptiFinalize();
	lull_cuda_share_reset();
	at.subscriber = NULL;
	at.patience = 0;
	atomic_store(&at.state, at.is_leaving_always && !lull_cuda_is_over() ? AWAY : GONE);
}

void lull_cuda_follow_call(u64 call, bool is_end)
{
	u16 follower = (u16)(FOLLOWED | (atomic_load(&at.n_followings) & 0xff));
	const u64 which = ((u64)1 << 48) - 1;
	struct lull_thread *t = lull_thread();

	/* A forked child has the state, but not CUPTI. */
	if (!t || !lull_cuda_is_mine())
		return;
	if (!is_end) {
		/* What is there of another time ended unseen, while callbacks were off. */
		if (t->scratch[6] >> 48 != follower)
			t->scratch[6] = (call & which) | (u64)follower << 48;
	} else if (t->scratch[6] == ((call & which) | (u64)follower << 48)) {
		int saved = errno;

		t->scratch[6] = 0;
		if (moves(LEAVING, GOING))
			go();
		errno = saved;
	}
}
