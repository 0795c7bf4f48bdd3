/*
 * cuda_share - share CUPTI between the agent and another tool in the process (torch.profiler's
 * Kineto, and others that are linked with libcupti).
 *
 * CUPTI has one subscriber and one pair of buffer functions per process. The agent owns both. The
 * calls with which another tool would replace them are interposed (neighbours.def) and answered
 * here, as if the tool had CUPTI for itself:
 *
 *	kinds, callbacks   are counted for both; CUPTI is called when the first user enables one
 *	                   and when the last disables it
 *	callbacks          of its calls are forwarded; the slot for its own use stays its own
 *	records            of its kinds, from its start on, are copied into its buffers, with times
 *	                   on its clock; its own flush delivers them before it returns
 *
 * A tool that looks up CUPTI's functions itself (dlsym) is not seen; CUPTI refuses its subscription
 * with error 39, and that tool reports this.
 *
 * Two locks. `wants` guards who enabled what and is held while CUPTI is called; the functions that
 * CUPTI calls never take it. `records` guards the tool's buffers and is held while the tool's
 * functions run, but never while CUPTI is called to do something: it may be waiting for a thread
 * that returns a buffer to us.
 */
#include <sched.h>
#include <time.h>

#include "agent/cuda/cuda.h"
#include "agent/cuda/cupti.h"
#include "agent/core/real.h"
#include "agent/core/sys.h"
#include "base/time.h"

#define N_KINDS	  64u
#define N_DOMAINS 7u
#define N_CBIDS	  2048u

/* CUDA 13.2: cuptiActivityEnable_v2() and its kin. */
#define MANY_SUBSCRIBERS 130200u

enum { ERROR_PARAMETER = 1, ERROR_UNINITIALIZED = 15, ATTR_PER_THREAD = 9 };

/* What a kind of record is to the other tool. */
enum { KIND_OFF = 0, KIND_ON = 1, KIND_CLOSING = 2 /* off, but what it had on is not flushed */ };

/* A moment on both clocks. */
struct moment {
	u64 ours;
	u64 theirs;
};

static struct {
	_Atomic u32 wants, records; /* the locks */
	_Atomic u32 has_calls;	    /* it is subscribed */
	_Atomic u32 has_records; /* it wants records, or has wanted some that are not flushed yet */
	u8 kinds[N_KINDS];	 /* who wants it: LULL_CUDA_WE, LULL_CUDA_THEY */
	bool is_enabled[N_KINDS];
	u8 calls[N_DOMAINS][N_CBIDS];
	/* The other tool's. */
	lull_cupti_callback *callback;
	void *user;
	lull_cupti_requested *requested;
	lull_cupti_completed *completed;
	u64 (*now)(void); /* NULL: the system's clock, as without such a function */
	struct moment first, last;
	bool is_same_clock;
	u8 state[N_KINDS];
	u64 from[N_KINDS], until[N_KINDS]; /* on our clock */
	u8 *buffer;
	size_t room, used, n_records, max_records;
	_Atomic u64 n_dropped;
} share;

_Atomic u32 lull_cuda_has_neighbour;

/* The library's own functions. */
#define NEIGHBOUR(name, params, args) int(*name) params;
static struct {
#include "agent/cuda/neighbours.def"
} real;
#undef NEIGHBOUR

#define NEIGHBOUR(name, params, args) LULL_EXPORT int name params;
#include "agent/cuda/neighbours.def"
#undef NEIGHBOUR

/* Call the library's; 15, "not initialised", if the process has none. */
#define REAL(name, ...)                                                                          \
	((real.name || (*(void **)&real.name = lull_cupti_find(#name))) ? real.name(__VA_ARGS__) \
									: ERROR_UNINITIALIZED)

/* True if CUPTI is ours in this process, so that the caller is the other tool; sets us up first. */
static bool is_shared(void)
{
	lull_cuda_set_up(true);
	return lull_cuda_is_mine() && lull_sys_pid() == lull_agent.image->pid &&
	       !lull_cuda_is_detached();
}

static void lock(_Atomic u32 *which)
{
	while (atomic_exchange_explicit(which, 1, memory_order_acquire))
		sched_yield();
}

static void unlock(_Atomic u32 *which)
{
	atomic_store_explicit(which, 0, memory_order_release);
}

/* ---- who wants what ---- */

/* Note that `who` wants it or not; true if the library has to be told. */
static bool note(u8 *wants, u32 who, bool is_on)
{
	u8 before = *wants;

	*wants = (u8)(is_on ? before | who : before & ~who);
	return !before != !*wants;
}

/* Tell the library what is wanted of a kind now. */
static int apply(u32 kind)
{
	bool is_on = share.kinds[kind] != 0;
	int rc = 0;

	/*
	 * With graphs as a whole there are no records of their kernels. We can do with either; a
	 * tool that asked for kernels alone expects them all.
	 */
	if (kind == LULL_CUPTI_KIND_GRAPH && !(share.kinds[kind] & LULL_CUDA_THEY) &&
	    (share.kinds[LULL_CUPTI_KIND_KERNEL] & LULL_CUDA_THEY))
		is_on = false;
	if (is_on != share.is_enabled[kind])
		rc = is_on ? lull_cupti.cuptiActivityEnable(kind)
			   : lull_cupti.cuptiActivityDisable(kind);
	if (!rc)
		share.is_enabled[kind] = is_on;
	return rc;
}

int lull_cuda_want_kind(u32 kind, u32 who, bool is_on)
{
	int rc;

	if (kind >= N_KINDS)
		return ERROR_PARAMETER;
	lock(&share.wants);
	note(&share.kinds[kind], who, is_on);
	rc = apply(kind);
	if (rc && is_on)
		note(&share.kinds[kind], who, false);
	if (kind == LULL_CUPTI_KIND_KERNEL)
		apply(LULL_CUPTI_KIND_GRAPH);
	unlock(&share.wants);
	return rc;
}

int lull_cuda_want_call(u32 domain, u32 cbid, u32 who, bool is_on)
{
	int rc = 0;

	if (domain >= N_DOMAINS || cbid >= N_CBIDS)
		return ERROR_PARAMETER;
	lock(&share.wants);
	if (note(&share.calls[domain][cbid], who, is_on))
		rc = lull_cupti.cuptiEnableCallback(is_on, lull_cuda_subscriber(), domain, cbid);
	unlock(&share.wants);
	return rc;
}

bool lull_cuda_share_is_used(void)
{
	return share.callback || share.requested;
}

void lull_cuda_share_reset(void)
{
	lock(&share.wants);
	memset(share.kinds, 0, sizeof(share.kinds));
	memset(share.is_enabled, 0, sizeof(share.is_enabled));
	memset(share.calls, 0, sizeof(share.calls));
	unlock(&share.wants);
}

/* ---- clocks ---- */

static u64 their_time(void)
{
	struct timespec t;

	if (share.now)
		return share.now();
	syscall(SYS_clock_gettime, CLOCK_REALTIME, &t);
	return (u64)t.tv_sec * LULL_NS_PER_S + (u64)t.tv_nsec;
}

/* The shortest of a few tries: the one that was not interrupted. */
static struct moment read_moment(void)
{
	struct moment best = { 0 };
	u64 best_ticks = UINT64_MAX;

	for (int i = 0; i < 3; i++) {
		u64 before = lull_time(), theirs = their_time(), ticks = lull_time() - before;

		if (ticks < best_ticks) {
			best_ticks = ticks;
			best = (struct moment){ before + ticks / 2, theirs };
		}
	}
	return best;
}

/*
 * Its clock may be the counter that we read, too (Kineto on x86_64): then times stay as they are.
 */
static void compare_clocks(void)
{
	share.is_same_clock = true;
	for (int i = 0; i < 3; i++) {
		u64 before = lull_time(), theirs = their_time();

		share.is_same_clock &= before <= theirs && theirs <= lull_time();
	}
	share.first = share.last = read_moment();
}

static u64 translate(u64 ours)
{
	u64 span = share.last.ours - share.first.ours;
	f64 rate = span ? (f64)(share.last.theirs - share.first.theirs) / (f64)span : 1;

	return share.first.theirs + (u64)(i64)((f64)(i64)(ours - share.first.ours) * rate);
}

/* Where the times of each kind of record lie, 0 = no more. The first tells when it began. */
#define MAX_TIMES 5u
static const u8 time_offs[N_KINDS][MAX_TIMES] = {
	[1] = { 16, 24 },
	[2] = { 16, 24 },
	[3] = { 16, 24, 32, 120, 128 },
	[10] = { 16, 24, 32, 120, 128 },
	[4] = { 8, 16 },
	[5] = { 8, 16 },
	[12] = { 8 },
	[17] = { 24, 32 },
	[20] = { 8 },
	[22] = { 16, 24 },
	[25] = { 16, 24 },
	[36] = { 40 },
	[38] = { 8, 16 },
	[48] = { 8, 16 },
	[49] = { 32 },
	[50] = { 56 },
	[51] = { 8, 16 },
	[52] = { 16, 24 },
	[53] = { 8, 16 },
	[54] = { 48, 56 },
};

/* The time of a record with this number; 0 if it has none. Older versions have shorter records. */
static u64 time_of(const u8 *record, u32 kind, size_t bytes, size_t ix)
{
	u64 value = 0;

	if (time_offs[kind][ix] && time_offs[kind][ix] + sizeof(value) <= bytes)
		memcpy(&value, record + time_offs[kind][ix], sizeof(value));
	return value;
}

static void translate_times(u8 *record, u32 kind, size_t bytes)
{
	for (size_t i = 0; i < MAX_TIMES; i++) {
		u64 value = time_of(record, kind, bytes, i);

		if (!value)
			continue;
		value = translate(value);
		memcpy(record + time_offs[kind][i], &value, sizeof(value));
	}
}

/* ---- records ---- */

/*
 * Ask it for a buffer before there is anything to put in, as CUPTI does at the first call: Kineto
 * flushes only if it has given one away.
 */
static void request(void)
{
	if (share.buffer || !share.requested)
		return;
	share.used = share.n_records = share.room = share.max_records = 0;
	share.requested(&share.buffer, &share.room, &share.max_records);
}

static void hand_over(void *context, u32 stream)
{
	u8 *buffer = share.buffer;

	share.buffer = NULL;
	if (buffer && share.completed)
		share.completed(context, stream, buffer, share.room, share.used);
}

static bool is_wanted(const u8 *record, u32 kind, size_t bytes)
{
	u64 start;

	if (kind >= N_KINDS || !share.state[kind])
		return false;
	start = time_of(record, kind, bytes, 0);
	return !start || (start >= share.from[kind] && start <= share.until[kind]);
}

static bool has_room(size_t bytes)
{
	return share.buffer && share.room - share.used >= bytes &&
	       (!share.max_records || share.n_records < share.max_records);
}

static void copy_record(const u8 *record, size_t bytes, void *context, u32 stream)
{
	u32 kind;

	memcpy(&kind, record, sizeof(kind));
	if (!is_wanted(record, kind, bytes))
		return;
	if (!has_room(bytes)) {
		if (share.n_records)
			hand_over(context, stream);
		request();
	}
	if (!has_room(bytes)) {
		atomic_fetch_add_explicit(&share.n_dropped, 1, memory_order_relaxed);
		return;
	}
	memcpy(share.buffer + share.used, record, bytes);
	if (!share.is_same_clock)
		translate_times(share.buffer + share.used, kind, bytes);
	share.used += bytes;
	share.n_records++;
}

void lull_cuda_share_buffer(void *context, u32 stream, u8 *buffer, size_t valid_bytes)
{
	u8 *record = NULL, *before = NULL;

	if (!atomic_load_explicit(&share.has_records, memory_order_relaxed))
		return;
	lock(&share.records);
	share.last = read_moment();
	while (lull_cupti.cuptiActivityGetNextRecord(buffer, valid_bytes, (void **)&record) == 0) {
		if (before)
			copy_record(before, (size_t)(record - before), context, stream);
		before = record;
	}
	if (before)
		copy_record(before, (size_t)(buffer + valid_bytes - before), context, stream);
	unlock(&share.records);
}

bool lull_cuda_share_has(u32 kind)
{
	return atomic_load_explicit(&share.has_records, memory_order_relaxed) && kind < N_KINDS &&
	       share.state[kind] != KIND_OFF;
}

void lull_cuda_share_dropped(u64 n)
{
	atomic_fetch_add_explicit(&share.n_dropped, n, memory_order_relaxed);
}

/* Its kinds that are off are off for good once it has what they recorded. */
static void close_kinds(void)
{
	u32 has_records = 0;

	for (u32 i = 0; i < N_KINDS; i++) {
		if (share.state[i] == KIND_CLOSING)
			share.state[i] = KIND_OFF;
		has_records |= share.state[i];
	}
	atomic_store(&share.has_records, has_records);
}

static int switch_kind(u32 kind, bool is_on)
{
	int rc = lull_cuda_want_kind(kind, LULL_CUDA_THEY, is_on);

	if (rc)
		return rc;
	lock(&share.records);
	if (is_on && share.state[kind] != KIND_ON) {
		share.from[kind] = lull_time();
		share.until[kind] = UINT64_MAX;
		share.state[kind] = KIND_ON;
		atomic_store(&share.has_records, 1);
		request();
	} else if (!is_on && share.state[kind] == KIND_ON) {
		share.until[kind] = lull_time();
		share.state[kind] = KIND_CLOSING;
	}
	unlock(&share.records);
	return 0;
}

static void count_neighbour(void)
{
	if (!share.callback && !share.requested)
		lull_issue(LULL_ISSUE_cupti_shared, 1);
}

int cuptiActivityRegisterCallbacks(lull_cupti_requested *requested, lull_cupti_completed *completed)
{
	if (!is_shared())
		return REAL(cuptiActivityRegisterCallbacks, requested, completed);
	if (!requested || !completed)
		return ERROR_PARAMETER;
	lock(&share.records);
	count_neighbour();
	share.requested = requested;
	share.completed = completed;
	compare_clocks();
	unlock(&share.records);
	return 0;
}

int cuptiActivityRegisterTimestampCallback(u64 (*now)(void))
{
	if (!is_shared())
		return REAL(cuptiActivityRegisterTimestampCallback, now);
	if (!now)
		return ERROR_PARAMETER;
	lock(&share.records);
	share.now = now;
	compare_clocks();
	unlock(&share.records);
	return 0;
}

int cuptiGetTimestamp(u64 *timestamp)
{
	if (!is_shared())
		return REAL(cuptiGetTimestamp, timestamp);
	if (!timestamp)
		return ERROR_PARAMETER;
	*timestamp = their_time();
	return 0;
}

int cuptiActivityEnable(u32 kind)
{
	if (!is_shared() || kind >= N_KINDS)
		return REAL(cuptiActivityEnable, kind);
	return switch_kind(kind, true);
}

int cuptiActivityEnableAndDump(u32 kind)
{
	int rc;

	if (!is_shared() || kind >= N_KINDS)
		return REAL(cuptiActivityEnableAndDump, kind);
	rc = switch_kind(kind, true);
	return rc ? rc : REAL(cuptiActivityEnableAndDump, kind);
}

int cuptiActivityDisable(u32 kind)
{
	if (!is_shared() || kind >= N_KINDS)
		return REAL(cuptiActivityDisable, kind);
	return switch_kind(kind, false);
}

/*
 * Never forced: that would hand over our unfinished records, too, and they would not come again.
 * Tools wait for the device before they flush, so that nothing is unfinished.
 */
int cuptiActivityFlushAll(u32 flag)
{
	int rc;

	if (!is_shared())
		return REAL(cuptiActivityFlushAll, flag);
	rc = lull_cupti.cuptiActivityFlushAll(0);
	lock(&share.records);
	if (share.n_records)
		hand_over(NULL, 0);
	close_kinds();
	if (atomic_load_explicit(&share.has_records, memory_order_relaxed))
		request();
	unlock(&share.records);
	return rc;
}

/* How our own buffers are used is not its to choose; all else is. */
int cuptiActivitySetAttribute(u32 attribute, size_t *size_bytes, void *value)
{
	if (is_shared() && (attribute == LULL_CUPTI_ATTR_ZEROED || attribute == ATTR_PER_THREAD))
		return size_bytes && value ? 0 : ERROR_PARAMETER;
	return REAL(cuptiActivitySetAttribute, attribute, size_bytes, value);
}

int cuptiActivityGetNumDroppedRecords(void *context, u32 stream, size_t *n)
{
	if (!is_shared())
		return REAL(cuptiActivityGetNumDroppedRecords, context, stream, n);
	if (!n)
		return ERROR_PARAMETER;
	*n = atomic_exchange(&share.n_dropped, 0);
	return 0;
}

/* ---- callbacks ---- */

void lull_cuda_share_called(u32 domain, u32 cbid, const void *data)
{
	lull_cupti_callback *callback;

	if (domain >= N_DOMAINS || cbid >= N_CBIDS || !(share.calls[domain][cbid] & LULL_CUDA_THEY))
		return;
	callback = share.callback;
	if (callback)
		callback(share.user, domain, cbid, data);
}

/* Its handle; ours is CUPTI's. */
static int subscription;

int cuptiSubscribe(void **subscriber, lull_cupti_callback *callback, void *user)
{
	int rc = 0;

	if (!is_shared())
		return REAL(cuptiSubscribe, subscriber, callback, user);
	if (!subscriber)
		return ERROR_PARAMETER;
	lock(&share.records);
	if (atomic_load(&lull_cuda_has_neighbour)) {
		rc = LULL_CUPTI_TAKEN; /* as CUPTI would tell a third one */
	} else {
		count_neighbour();
		share.callback = callback;
		share.user = user;
		*subscriber = &subscription;
		atomic_store(&lull_cuda_has_neighbour, 1);
	}
	unlock(&share.records);
	return rc;
}

int cuptiSubscribe_v2(void **subscriber, lull_cupti_callback *callback, void *user, void *params)
{
	/*
	 * Where more subscribers than one can be, this call has others with it that take the handle
	 * straight to the library.
	 */
	if (!is_shared() || lull_cupti.version >= MANY_SUBSCRIBERS)
		return REAL(cuptiSubscribe_v2, subscriber, callback, user, params);
	return cuptiSubscribe(subscriber, callback, user);
}

static void unwatch_all(u32 domain)
{
	for (u32 cbid = 0; cbid < N_CBIDS; cbid++)
		lull_cuda_want_call(domain, cbid, LULL_CUDA_THEY, false);
}

int cuptiUnsubscribe(void *subscriber)
{
	if (subscriber != &subscription)
		return REAL(cuptiUnsubscribe, subscriber);
	atomic_store(&lull_cuda_has_neighbour, 0);
	for (u32 domain = 1; domain < N_DOMAINS; domain++)
		unwatch_all(domain);
	return 0;
}

/* It ends; CUPTI does not, because we use it. */
int cuptiFinalize(void)
{
	if (!is_shared())
		return REAL(cuptiFinalize);
	cuptiUnsubscribe(&subscription);
	for (u32 kind = 1; kind < N_KINDS; kind++)
		if (share.state[kind] == KIND_ON)
			cuptiActivityDisable(kind);
	return 0;
}

int cuptiEnableCallback(u32 enable, void *subscriber, u32 domain, u32 cbid)
{
	if (subscriber != &subscription)
		return REAL(cuptiEnableCallback, enable, subscriber, domain, cbid);
	return lull_cuda_want_call(domain, cbid, LULL_CUDA_THEY, enable != 0);
}

int cuptiEnableDomain(u32 enable, void *subscriber, u32 domain)
{
	const char *name;

	if (subscriber != &subscription)
		return REAL(cuptiEnableDomain, enable, subscriber, domain);
	if (!domain || domain >= N_DOMAINS)
		return ERROR_PARAMETER;
	if (!enable)
		unwatch_all(domain);
	/* Those that exist have a name. */
	for (u32 cbid = 1; enable && cbid < N_CBIDS; cbid++)
		if (lull_cupti.cuptiGetCallbackName(domain, cbid, &name) == 0)
			lull_cuda_want_call(domain, cbid, LULL_CUDA_THEY, true);
	return 0;
}

int cuptiEnableAllDomains(u32 enable, void *subscriber)
{
	if (subscriber != &subscription)
		return REAL(cuptiEnableAllDomains, enable, subscriber);
	for (u32 domain = 1; domain < N_DOMAINS; domain++)
		cuptiEnableDomain(enable, subscriber, domain);
	return 0;
}
