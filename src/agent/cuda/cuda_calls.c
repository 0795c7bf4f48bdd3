/*
 * cuda_calls - relevant calls of the CUDA driver and runtime, timed by callbacks.
 *
 * Which calls are relevant is decided by name, so that the list works for every version: for each
 * kernel it launches, a framework makes a dozen queries (which device, which stream, is it done),
 * which are not of interest. A driver call inside a runtime call is not reported: the runtime call
 * represents it.
 */
#include <string.h>
#include <time.h>

#include "agent/core/capture.h"
#include "agent/cuda/cuda.h"
#include "agent/counters/counters.h"
#include "agent/cuda/cupti.h"
#include "agent/core/stack.h"
#include "agent/python/python_stack.h"
#include "agent/core/sys.h"

/* Between the caller and us lie frames of CUPTI, the driver and the runtime. */
#define STACK_BYTES 16384u

/*
 * A wait of Python for this long is recorded with the line it is in: to read a stack of 20 frames
 * takes a few percent of it.
 */
#define LINE_MIN_US 5u

/* More than any version has (CUDA 13.0: 523 runtime, 807 driver). */
#define N_CBIDS 2048u

/* Calls whose name after "cuda" or "cu" begins so are recorded, and those that mean something. */
static const char wanted[][32] = {
#define CALL(stem) #stem,
#include "agent/cuda/cuda_calls.def"
#undef CALL
};
#define CALL(stem) _Static_assert(sizeof(#stem) <= sizeof(wanted[0]), "it fits, with its end");
#include "agent/cuda/cuda_calls.def"
#undef CALL

/* Calls that mean something beyond themselves. */
enum {
	MEANS_NOTHING,
	MEANS_START, /* cudaProfilerStart and Stop may begin and end a recording */
	MEANS_STOP,
	MEANS_HOST_CALL,     /* a stream runs a function of the host, or waits for it */
	MEANS_GRAPH_CAPTURE, /* begins */
	MEANS_GRAPH_CAPTURED,
};

/* By a part of the name, the driver's and the runtime's alike. */
static const struct {
	const char *part;
	u16 meaning;
} meanings[] = {
	{ "ProfilerStart", MEANS_START },
	{ "ProfilerStop", MEANS_STOP },
	{ "LaunchHostFunc", MEANS_HOST_CALL },
	{ "StreamAddCallback", MEANS_HOST_CALL },
	{ "StreamWaitValue", MEANS_HOST_CALL },
	{ "StreamBatchMemOp", MEANS_HOST_CALL },
	{ "GraphAddHostNode", MEANS_HOST_CALL },
	{ "StreamBeginCapture", MEANS_GRAPH_CAPTURE },
	{ "StreamEndCapture", MEANS_GRAPH_CAPTURED },
};

static u16 meaning_of(const char *name)
{
	for (size_t i = 0; i < LULL_COUNT_OF(meanings); i++)
		if (strstr(name, meanings[i].part))
			return meanings[i].meaning;
	return MEANS_NOTHING;
}

/*
 * Our callbacks of a call. LEAVING: they are on, and about to be switched off; whoever is called
 * back then keeps them on (let_go()).
 */
enum { CALL_OFF, CALL_LEAVING, CALL_ON };

/* Name of each watched call, its hash ready; entry [domain - 1][cbid]. */
static struct call_name {
	const char *text;
	u64 hash;
	u32 len;
	u16 meaning;	  /* MEANS_* */
	u8 kind;	  /* LULL_TRACED_* */
	u8 wait;	  /* as lull_cuda_wait_of() */
	bool may_wait;	  /* for the device; people ask which line of Python does */
	bool is_sync;	  /* does nothing else */
	_Atomic u8 state; /* CALL_* */
} names[2][N_CBIDS];

/* Calls that are not CALL_OFF, and the process of which they are. */
static _Atomic u32 n_on, on_pid;

/* Held by who changes the state of a call to or from CALL_OFF. */
static _Atomic u32 is_switching;

/* The last of these calls in the process took long enough to have its line. */
static _Atomic bool was_long[2][N_CBIDS];

static bool is_listed(const char *name)
{
	const char *stem = name + (strncmp(name, "cuda", 4) == 0 ? 4 : 2);

	if (strncmp(name, "cu", 2) != 0)
		return false;
	for (size_t i = 0; i < LULL_COUNT_OF(wanted); i++)
		if (strncmp(stem, wanted[i], strlen(wanted[i])) == 0)
			return true;
	return false;
}

/* The calls that a recording is not about, unless all are wanted. */
static bool is_left_out(const char *name)
{
	if ((lull_agent.control->sources & LULL_SOURCE_CUDA_ALL_CALLS) || meaning_of(name))
		return false;
	return !is_listed(name);
}

/* <<<>>> of programs built with CUDA 13 is a call of its own; its name is not for users. */
static const char *user_name(const char *name)
{
	return strncmp(name, "__cudaLaunch", 12) == 0 ? name + 2 : name;
}

/*
 * cudaLaunchKernel_ptsz_v7000, cuMemcpyHtoDAsync_v2_ptsz: versions and whose default stream it is
 * are for CUPTI, not for the user.
 */
static u32 length_of(const char *name)
{
	u32 len = (u32)strlen(name);

	for (u32 i = len; i-- > 2;)
		if (name[i] == 'v' && name[i - 1] == '_' && name[i + 1] >= '0' &&
		    name[i + 1] <= '9')
			len = i - 1;
	if (len > 5 &&
	    (strncmp(name + len - 5, "_ptsz", 5) == 0 || strncmp(name + len - 5, "_ptds", 5) == 0))
		len -= 5;
	return len;
}

static u8 kind_of(const char *name)
{
	if (strstr(name, "Launch"))
		return LULL_TRACED_KERNEL;
	if (strstr(name, "Sync") || strstr(name, "Wait"))
		return LULL_TRACED_SYNC;
	if (strstr(name, "Mem") || strstr(name, "Malloc") || strstr(name, "Free") ||
	    strstr(name, "HostAlloc") || strstr(name, "HostRegister"))
		return LULL_TRACED_MEMORY;
	return LULL_TRACED_OTHER;
}

/* How long a thread waits for another one that switches callbacks. */
#define SWITCH_TRIES 2000 /* of 50 us */

static void pause_us(long us)
{
	struct timespec pause = { 0, us * 1000 };

	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0L, &pause, NULL);
}

static bool begin_switch(void)
{
	for (int i = 0; atomic_exchange_explicit(&is_switching, 1, memory_order_acquire); i++) {
		if (i == SWITCH_TRIES)
			return false;
		pause_us(50);
	}
	return true;
}

static void end_switch(void)
{
	atomic_store_explicit(&is_switching, 0, memory_order_release);
}

/* Without callbacks there are kernels and no calls: that is said, once. */
static void tell_refused(int rc)
{
	static atomic_flag is_told = ATOMIC_FLAG_INIT;

	if (rc && !atomic_flag_test_and_set(&is_told))
		lull_cuda_refuse_result(LULL_ISSUE_cupti_refused, "calls: ", rc);
}

/* Switch the callbacks on, or keep those on that are about to be switched off. */
static void want(u32 domain, u32 cbid)
{
	struct call_name *call = &names[domain - 1][cbid];
	int rc = 0;

	if (!begin_switch())
		return;
	if (atomic_load(&call->state) == CALL_OFF) {
		rc = lull_cuda_want_call(domain, cbid, LULL_CUDA_WE, true);
		atomic_fetch_add(&n_on, 1);
	}
	atomic_store(&call->state, CALL_ON);
	end_switch();
	tell_refused(rc);
}

static void watch(u32 domain, u32 cbid)
{
	struct call_name *call = &names[domain - 1][cbid];
	const char *name = NULL;

	if (lull_cupti.cuptiGetCallbackName(domain, cbid, &name) != 0 || !name)
		return;
	name = user_name(name);
	if (is_left_out(name))
		return;
	call->meaning = meaning_of(name);
	call->text = name;
	call->kind = kind_of(name);
	call->wait = (u8)lull_cuda_wait_of(name);
	call->is_sync = strstr(name, "Synchronize");
	call->may_wait = call->is_sync || strstr(name, "Memcpy");
	call->len = length_of(name);
	call->hash = lull_hash(name, call->len);
	if (domain != LULL_CUPTI_DOMAIN_RUNTIME || !lull_cuda_is_wrapped_call(name))
		want(domain, cbid);
}

/* So long a processor may keep to itself what it has written; it takes a small part of that. */
#define UNSEEN_NS 2000u

static bool state_moves(_Atomic u8 *state, u8 from, u8 to)
{
	return atomic_compare_exchange_strong(state, &from, to);
}

static void wait_until_seen(void)
{
	u64 ticks = lull_agent.control->tick_hz / 1000000 * UNSEEN_NS / 1000, begin = lull_time();

	while (lull_time() - begin < ticks)
		;
}

/*
 * Switch the callbacks of a call off if no thread is in it. CUPTI counts the calls that a thread is
 * in by its callbacks: if one is switched off meanwhile, that call never ends, and all later calls
 * of the thread, and their kernels, get its number (H200, CUDA 13.0). A thread that is in the call
 * is known by its word, which our callback writes. It may be between CUPTI's look whether the call
 * is wanted and that: for long, if it has no CPU. So it looks at the state after it has written its
 * word, and switches on again what was switched off (keep_on()). And who switches off looks at the
 * words once more, after what was written before the state changed can be seen.
 */
static bool let_go(u32 domain, u32 cbid)
{
	_Atomic u8 *state = &names[domain - 1][cbid].state;
	bool is_off = false;

	if (lull_cuda_is_in_call(domain, cbid) || !state_moves(state, CALL_ON, CALL_LEAVING))
		return false;
	wait_until_seen();
	if (!lull_cuda_is_in_call(domain, cbid) && begin_switch()) {
		is_off = state_moves(state, CALL_LEAVING, CALL_OFF);
		if (is_off) {
			lull_cuda_want_call(domain, cbid, LULL_CUDA_WE, false);
			atomic_fetch_sub(&n_on, 1);
		}
		end_switch();
	}
	if (!is_off)
		state_moves(state, CALL_LEAVING, CALL_ON);
	return is_off;
}

/* How many are left. */
static u32 let_go_all(u32 domain)
{
	u32 n_left = 0;

	for (u32 cbid = 1; cbid < N_CBIDS; cbid++)
		if (atomic_load_explicit(&names[domain - 1][cbid].state, memory_order_relaxed))
			n_left += !let_go(domain, cbid);
	return n_left;
}

bool lull_cuda_let_go(u32 n_tries)
{
	/* The runtime's first: its calls are around those of the driver. */
	for (u32 domain = LULL_CUPTI_DOMAIN_RUNTIME; domain; domain--)
		while (atomic_load(&n_on) && let_go_all(domain) && n_tries) {
			n_tries--;
			pause_us(20);
		}
	return !atomic_load(&n_on);
}

u32 lull_cuda_n_calls_on(void)
{
	return atomic_load(&n_on);
}

/*
 * A call begins whose callbacks are being switched off, or were a moment ago. Of a call that
 * another tool wants they stay on.
 */
static __attribute__((noinline)) void keep_on(u32 domain, u32 cbid)
{
	int saved = errno;

	if (atomic_load(&on_pid) == lull_sys_pid() && lull_cuda_subscriber() &&
	    !atomic_load(&lull_cuda_has_neighbour))
		want(domain, cbid);
	errno = saved;
}

/* How often it is tried while threads are in calls. */
#define CALM_TRIES 10000 /* of 20 us or more */

void lull_cuda_watch_calls(bool is_on)
{
	lull_cuda_forget_captures();
	if (!is_on) {
		lull_cuda_wrap_on(false);
		lull_cuda_let_go(CALM_TRIES);
		return;
	}
	if (!atomic_load(&n_on))
		lull_cuda_begin_time();
	atomic_store(&on_pid, lull_sys_pid());
	lull_cuda_wrap(true);
	for (u32 domain = LULL_CUPTI_DOMAIN_DRIVER; domain <= LULL_CUPTI_DOMAIN_RUNTIME; domain++)
		for (u32 cbid = 1; cbid < N_CBIDS; cbid++)
			watch(domain, cbid);
	/* Not before: their calls would have no numbers. */
	lull_cuda_wrap_on(true);
}

void lull_cuda_forget_calls(void)
{
	for (u32 domain = LULL_CUPTI_DOMAIN_DRIVER; domain <= LULL_CUPTI_DOMAIN_RUNTIME; domain++)
		for (u32 cbid = 1; cbid < N_CBIDS; cbid++)
			atomic_store(&names[domain - 1][cbid].state, CALL_OFF);
	atomic_store(&n_on, 0);
}

void lull_cuda_watch_wrapped(void)
{
	for (u32 cbid = 1; cbid < N_CBIDS; cbid++) {
		const char *name = names[LULL_CUPTI_DOMAIN_RUNTIME - 1][cbid].text;

		if (name && lull_cuda_is_wrapped_call(name))
			want(LULL_CUPTI_DOMAIN_RUNTIME, cbid);
	}
}

static void fill(struct lull_wire_cuda_call *e, const struct call_name *call, const void *data,
		 u64 dur_ticks)
{
	const u32 *ret = lull_cupti_call_ret(data);

	e->dur_ticks = dur_ticks;
	e->name = call->hash;
	e->ret = ret ? *ret : 0;
	e->correlation = lull_cupti_call_correlation(data);
}

static bool is_long(const struct call_name *call, u64 dur_ticks)
{
	u64 limit = lull_agent.control->cuda_backtrace_ticks[call->kind];

	return limit && dur_ticks >= limit;
}

/* With the stack of the caller. */
static __attribute__((noinline)) void emit_with_stack(struct lull_thread *t,
						      struct lull_wire_cuda_call *e,
						      const struct lull_wire_regs *regs)
{
	int saved = errno;

	e->head.counter = t->cuda.since;
	e->head.type = LULL_EVENT_cuda_call;
	e->head.size_bytes = sizeof(*e);
	lull_stack_emit(t, &e->head, regs, STACK_BYTES);
	errno = saved;
}

/* With the lines of Python that the thread is in, 0: look for them. False: it is in none. */
static __attribute__((noinline)) bool
emit_with_line(struct lull_thread *t, const struct lull_wire_cuda_call *call, u64 stack)
{
	u32 size_bytes = (u32)(sizeof(*call) + sizeof(u64));
	int saved = errno;
	struct lull_wire_cuda_call *e = NULL;

	if (!stack)
		stack = lull_python_stack_anytime(t);
	if (stack)
		e = lull_reserve_at(t, LULL_EVENT_cuda_call, size_bytes, t->cuda.since);
	errno = saved;
	if (!e)
		return stack != 0; /* dropped, and counted */
	e->head.a = call->head.a | LULL_HAS_PYSTACK;
	e->dur_ticks = call->dur_ticks;
	e->name = call->name;
	e->ret = call->ret;
	e->correlation = call->correlation;
	memcpy(e + 1, &stack, sizeof(stack));
	lull_commit(t, size_bytes);
	return true;
}

static bool is_long_wait(const struct call_name *call, u64 dur_ticks)
{
	return call->may_wait && dur_ticks >= lull_agent.control->tick_hz / 1000000 * LINE_MIN_US;
}

/*
 * A call that waits begins: look for its line now if it is likely to need it. When it ends, the
 * device has nothing to do until the thread goes on.
 */
static __attribute__((noinline)) void look_for_line(struct lull_thread *t, u32 domain, u32 cbid)
{
	int saved = errno;

	t->cuda_line = 0;
	if (atomic_load_explicit(&was_long[domain - 1][cbid], memory_order_relaxed))
		t->cuda_line = lull_python_stack_anytime(t);
	errno = saved;
}

/* A call that waits has ended. */
static void learn_length(const struct call_name *call, u32 domain, u32 cbid, u64 dur_ticks)
{
	bool is = is_long_wait(call, dur_ticks);

	/* Written only if it changes: other threads read it. */
	if (atomic_load_explicit(&was_long[domain - 1][cbid], memory_order_relaxed) != is)
		atomic_store_explicit(&was_long[domain - 1][cbid], is, memory_order_relaxed);
}

/* The name of a call, defined in the thread's stream; false if the call is dropped, and counted. */
static inline bool is_named(struct lull_thread *t, u64 hash, const char *text, size_t len)
{
	if (lull_is_defined(t, hash))
		return true;
	if (!lull_define_string(t, hash, text, len)) {
		lull_count_drop(t);
		return false;
	}
	lull_remember(t, hash);
	return true;
}

/* `regs`: the caller's, if any kind of call may need them; else NULL. */
static inline __attribute__((always_inline)) void emit(struct lull_thread *t,
						       const struct call_name *call, u32 domain,
						       const void *data, u64 dur_ticks,
						       const struct lull_wire_regs *regs)
{
	struct lull_wire_cuda_call *e;

	if (!is_named(t, call->hash, call->text, call->len))
		return;
	if (regs && is_long(call, dur_ticks)) {
		struct lull_wire_cuda_call whole = { .head.a = domain };

		fill(&whole, call, data, dur_ticks);
		emit_with_stack(t, &whole, regs);
		return;
	}
	if (__builtin_expect(is_long_wait(call, dur_ticks), 0)) {
		struct lull_wire_cuda_call whole = { .head.a = domain };

		fill(&whole, call, data, dur_ticks);
		if (emit_with_line(t, &whole, call->is_sync ? t->cuda_line : 0))
			return;
	}
	e = lull_reserve_at(t, LULL_EVENT_cuda_call, sizeof(*e), t->cuda.since);
	if (!e)
		return;
	e->head.a = domain;
	fill(e, call, data, dur_ticks);
	lull_commit(t, sizeof(*e));
}

/*
 * What a call is known by between its two callbacks. CUPTI's own word for each call stays
 * untouched: another tool may use it.
 */
static union lull_cuda_key key_of(u32 record, u32 domain, u32 cbid, const void *data)
{
	return (union lull_cuda_key){
		.correlation = lull_cupti_call_correlation(data),
		.cbid = cbid & (N_CBIDS - 1),
		.domain = domain & 31,
		.record = (u16)record,
	};
}

/* The call of the thread that ends now is recorded; other threads look at it. */
static inline void note_last(struct lull_thread *t)
{
	__atomic_store_n(&t->last_call.word, t->cuda.call.word, __ATOMIC_RELAXED);
}

/* Whether the thread is in a call that is timed in this recording. */
static inline bool is_in_call(const struct lull_thread *t, u32 record)
{
	return t->cuda.call.word && t->cuda.call.record == (u16)record;
}

/*
 * A driver call inside a call of the runtime that is timed: most callbacks in a framework.
 */
static inline bool is_inside_runtime(const struct call_name *call, u32 domain, const void *data)
{
	u32 record = atomic_load_explicit(&lull_agent.control->record, memory_order_relaxed);
	struct lull_thread *t = lull_self;

	/* By the present recording: the thread may have been in a call when the last one ended. */
	if (domain != LULL_CUPTI_DOMAIN_DRIVER || !record || !t || t->magic != LULL_WIRE_MAGIC ||
	    t->cuda.call.domain != LULL_CUPTI_DOMAIN_RUNTIME || t->cuda.call.record != (u16)record)
		return false;
	/* A wrapper does not know the number of its call, but that of this one will do. */
	if (!t->cuda.call.cbid && call->kind == LULL_TRACED_KERNEL)
		t->cuda.call.correlation = lull_cupti_call_correlation(data);
	return true;
}

static inline __attribute__((always_inline)) void on_call(const struct call_name *call, u32 domain,
							  u32 cbid, const void *data,
							  const struct lull_wire_regs *regs)
{
	struct lull_thread *t = lull_recording();

	if (!t) {
		lull_cuda_follow_call(key_of(0, domain, cbid, data),
				      lull_cupti_call_site(data) == LULL_CUPTI_SITE_EXIT);
		return;
	}
	if (lull_cupti_call_site(data) == LULL_CUPTI_SITE_ENTER) {
		if (is_in_call(t, t->record))
			return; /* inside another call */
		t->cuda.call.word = key_of(t->record, domain, cbid, data).word;
		t->cuda.since = lull_time();
		if (__builtin_expect(call->is_sync, 0))
			look_for_line(t, domain, cbid);
	} else if (t->cuda.call.word == key_of(t->record, domain, cbid, data).word) {
		u64 dur_ticks = lull_time() - t->cuda.since;

		emit(t, call, domain, data, dur_ticks, regs);
		if (__builtin_expect(call->is_sync, 0))
			learn_length(call, domain, cbid, dur_ticks);
		if (__builtin_expect(call->wait != 0, 0))
			lull_cuda_waited(t, call->wait, data, t->cuda.since, dur_ticks);
		note_last(t);
		t->cuda.call.word = 0;
	}
}

static __attribute__((noinline)) void handle_side_effect(u16 meaning)
{
	if (meaning == MEANS_START || meaning == MEANS_STOP)
		lull_capture_by_call(meaning == MEANS_START);
	else if (meaning == MEANS_HOST_CALL)
		lull_cuda_unsafe();
	else
		lull_cuda_captured(meaning == MEANS_GRAPH_CAPTURE);
}

static inline __attribute__((always_inline)) void called(u32 domain, u32 cbid, const void *data,
							 const struct lull_wire_regs *regs)
{
	struct call_name *call;

	/* Acquire: whoever sees the neighbour sees its function. */
	if (__builtin_expect(atomic_load_explicit(&lull_cuda_has_neighbour, memory_order_acquire),
			     0))
		lull_cuda_share_called(domain, cbid, data);
	if (domain == LULL_CUPTI_DOMAIN_RESOURCE) {
		lull_cuda_resource(cbid, data);
		return;
	}
	if (domain > LULL_CUPTI_DOMAIN_RUNTIME || cbid >= N_CBIDS)
		return;
	call = &names[domain - 1][cbid];
	if (!call->text)
		return; /* the other tool's */
	if (__builtin_expect(call->meaning != MEANS_NOTHING, 0) &&
	    lull_cupti_call_site(data) == LULL_CUPTI_SITE_EXIT)
		handle_side_effect(call->meaning);
	if (!is_inside_runtime(call, domain, data))
		on_call(call, domain, cbid, data, regs);
	/* After its word is written. */
	atomic_signal_fence(memory_order_seq_cst);
	if (__builtin_expect(atomic_load_explicit(&call->state, memory_order_relaxed) != CALL_ON,
			     0) &&
	    lull_cupti_call_site(data) == LULL_CUPTI_SITE_ENTER)
		keep_on(domain, cbid);
}

/* What a wrapper's call is known by; its number comes with the driver's callback. */
static union lull_cuda_key wrapped_key(u32 record)
{
	return (union lull_cuda_key){
		.domain = LULL_CUPTI_DOMAIN_RUNTIME,
		.record = (u16)record,
	};
}

struct lull_thread *lull_cuda_launch_begins(void)
{
	struct lull_thread *t = lull_recording();

	if (!t) {
		lull_cuda_follow_call(wrapped_key(0), false);
		return NULL;
	}
	if (is_in_call(t, t->record))
		return NULL; /* inside another call */
	t->cuda.call.word = wrapped_key(t->record).word;
	t->cuda.since = lull_time();
	return t;
}

void lull_cuda_launch_ends(struct lull_thread *t, const struct lull_text *name, int result)
{
	struct lull_wire_cuda_call *e = NULL;
	u64 dur_ticks;

	if (!t) {
		lull_cuda_follow_launch_end(wrapped_key(0));
		return;
	}
	dur_ticks = lull_time() - t->cuda.since;
	/* The recording may have ended meanwhile, or another one have begun. */
	if (lull_recording() == t && t->cuda.call.record == (u16)t->record &&
	    is_named(t, name->hash, name->bytes, name->len))
		e = lull_reserve_at(t, LULL_EVENT_cuda_call, sizeof(*e), t->cuda.since);
	if (e) {
		e->head.a = LULL_CUPTI_DOMAIN_RUNTIME;
		e->dur_ticks = dur_ticks;
		e->name = name->hash;
		e->ret = (u32)result;
		e->correlation = t->cuda.call.correlation;
		lull_commit(t, sizeof(*e));
		note_last(t);
	}
	t->cuda.call.word = 0;
}

u32 lull_cuda_last_call(void)
{
	u16 record =
		(u16)atomic_load_explicit(&lull_agent.control->last_record, memory_order_relaxed);
	u32 n = atomic_load(&lull_agent.image->n_slots_ready), last = 0;

	for (u32 i = 0; i < n && i < lull_agent.n_slots; i++) {
		const struct lull_thread *t = &lull_agent.threads[i];
		union lull_cuda_key key = { .word = __atomic_load_n(&t->last_call.word,
								    __ATOMIC_RELAXED) };

		if (__atomic_load_n(&t->magic, __ATOMIC_RELAXED) == LULL_WIRE_MAGIC && key.word &&
		    key.record == record && (!last || (i32)(key.correlation - last) > 0))
			last = key.correlation;
	}
	return last;
}

/*
 * Two functions of one, so that the usual one, without stacks, does and saves no more than it must:
 * it runs twice in each launch.
 */
static void called_plain(void *user, u32 domain, u32 cbid, const void *data)
{
	(void)user;
	called(domain, cbid, data, NULL);
}

static void called_with_stack(void *user, u32 domain, u32 cbid, const void *data)
{
	struct lull_wire_regs regs = LULL_CALLER_REGS();

	(void)user;
	called(domain, cbid, data, &regs);
}

bool lull_cuda_is_plain(void)
{
	for (size_t i = 0; i < LULL_N_CALL_KINDS; i++)
		if (lull_agent.control->cuda_backtrace_ticks[i])
			return false;
	return !(lull_agent.control->sources & LULL_SOURCE_KERNELS);
}

lull_cupti_callback *lull_cuda_callback(void)
{
	if (lull_agent.control->sources & LULL_SOURCE_KERNELS)
		return lull_kernel_called;
	return lull_cuda_is_plain() ? called_plain : called_with_stack;
}
