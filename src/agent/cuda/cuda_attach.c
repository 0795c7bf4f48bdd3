/*
 * cuda_attach - attach to CUPTI and detach from it.
 *
 * CUPTI costs a microsecond per launch while it is attached, even with everything disabled: only
 * cuptiFinalize() removes it (H200, CUDA 13.0: 4.2 us per launch without it, 5.2 with it and
 * everything disabled, 4.1 after detaching). So the agent attaches when something is to be
 * recorded, and detaches when no further recording is possible.
 *
 *	DETACHED -> ATTACHING -> ATTACHED -> DETACH_PENDING -> DETACHING -> DETACHED_FINALLY
 *
 * Attaching:  before the program's first context, or while the thread that needs it waits (at the
 *             start of a step, in lull_start()): other threads should not launch in the meantime.
 * Detaching:  where the program calls the agent outside of CUDA calls: at the start of a step, in
 *             lull_stop(). Not at the end of a CUDA call, although CUPTI's manual recommends it:
 *             the call still uses memory that is freed, and one detach in ten broke the program
 *             (H200, CUPTI of CUDA 13.0). Nor may another thread enter a call meanwhile, which
 *             takes milliseconds: a program of two threads was broken at every second or third
 *             detach. CUDA calls are followed from the recording until then, and the agent
 *             detaches only where no other thread has made any, except PyTorch's threads for the
 *             backward pass, which work while another one waits for them. A program whose threads
 *             share the device keeps CUPTI, with everything disabled.
 *             Since detaching waits for the device: not while a graph is captured, and not in a
 *             program whose streams run host functions, which may wait for the thread that called
 *             the agent. A program that never calls the agent keeps CUPTI, with everything
 *             disabled.
 *             In a program that lull attach has entered, a launch through libcudart is such a
 *             place, too (cuda_runtime.c), and a call of the C library; and if the threads that
 *             made CUDA calls have ended, the agent's own thread detaches.
 * Again:      never, as a rule: a CUPTI that comes back for the second time is known to crash
 *             programs with CUDA graphs. LULL_CUPTI_LEAVE=always detaches after each recording, for
 *             benchmarks without graphs. With --duty and lull attach the agent detaches from
 *             programs in which no graph has been seen; others keep CUPTI, with everything disabled
 *             in between. A graph that is made meanwhile is seen when CUPTI comes back for the
 *             first time, and then it stays.
 */
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "agent/cuda/cuda.h"
#include "agent/counters/kernel_launch.h"
#include "agent/cuda/cuda_xla.h"
#include "agent/cuda/cupti.h"
#include "agent/core/sys.h"
#include "agent/core/decimal.h"

/* What cuptiGetVersion() says for CUDA 11.8; layouts before it were never compared. */
#define OLDEST_CUPTI 18u

/* How long the end of the process waits for CUPTI to be gone. */
#define STAY_TRIES 1000 /* of 1 ms */

/* How long calls are followed for a chance to leave, and how many chances are tried. */
#define GIVE_UP_MS 60000u
#define N_CHANCES  50u

/* How long the end of the last recording waits to leave at once. */
#define NOW_TRIES 20 /* of 1 ms */

/* How long ago calls of PyTorch's engine must have ended. */
#define CALM_US 500u

/* In lull_cuda_key.record, in the place of a recording's number: calls that are only followed. */
#define FOLLOWED 0xff00u

enum { DETACHED, ATTACHING, ATTACHED, DETACH_PENDING, DETACHING, DETACHED_FINALLY };

static struct {
	void *subscriber;
	_Atomic u32 state;
	_Atomic u32 has_points;	  /* the program tells us something now and then */
	_Atomic u32 is_following; /* callbacks are on after a recording */
	_Atomic u32 is_unseen;	  /* they may be since before this session: nobody followed calls */
	_Atomic u32 n_times;	  /* so often callbacks were switched on when none was */
	_Atomic u32 off_record;	  /* the last recording before that */
	_Atomic u32 n_chances;	  /* to leave, that were not taken */
	_Atomic u32 n_captures;	  /* of graphs, that are on their way */
	_Atomic u32 must_stay;	  /* it is not safe, or too late: never leave */
	u64 since;		  /* when the last recording ended; the flushing thread's own */
	_Atomic u32 has_graphs;	  /* the program uses CUDA graphs */
	bool is_leaving_always;
	bool is_on_duty; /* there will be another window, and we leave in between */
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

bool lull_cuda_is_attached(void)
{
	return atomic_load_explicit(&at.state, memory_order_relaxed) == ATTACHED;
}

bool lull_cuda_is_detached(void)
{
	return atomic_load_explicit(&at.state, memory_order_relaxed) == DETACHED_FINALLY;
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

/* Without us another tool may use CUPTI. */
static bool give_up(const char *what, int rc)
{
	if (lull_cupti.cuptiUnsubscribe)
		lull_cupti.cuptiUnsubscribe(at.subscriber);
	at.subscriber = NULL;
	return lull_cuda_refuse_result(LULL_ISSUE_cupti_refused, what, rc);
}

/* Everything up to the subscription; false with the reason counted. */
static bool take_cupti(void)
{
	enum lull_cuda_xla xla = lull_cuda_xla();
	int rc;

	if (xla == LULL_CUDA_XLA_GRAPHS) {
		lull_issue(LULL_ISSUE_xla_graphs, 1);
		return false;
	}
	if (xla == LULL_CUDA_XLA_PLAIN)
		lull_issue(LULL_ISSUE_xla_plain, 1);
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
		return give_up("no clock of ours: ", rc);
	rc = lull_cupti.cuptiActivityRegisterCallbacks(lull_cuda_requested, lull_cuda_completed);
	if (rc)
		return give_up("no buffers of ours: ", rc);
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
	at.is_on_duty = atomic_load(&lull_agent.control->watch) & LULL_WATCH_DUTY;
	if (is_taken) {
		lull_cuda_stock();
		describe(true);
	}
	atomic_store(&at.state, is_taken ? ATTACHED : DETACHED_FINALLY);
}

/*
 * Stay after all. Callbacks that were never silent when the session before ended stay on: nobody
 * knows who is in those calls.
 */
static void come_back(void)
{
	if (!atomic_exchange(&at.is_following, 0))
		return;
	if (atomic_exchange(&at.is_unseen, 0) && lull_cuda_n_calls_on())
		lull_cuda_begin_time();
	else
		lull_cuda_watch_calls(false);
	describe(true);
}

bool lull_cuda_attach(void)
{
	for (;;) {
		switch (atomic_load(&at.state)) {
		case ATTACHED:
			if (!atomic_load(&at.is_following))
				return true;
			if (moves(ATTACHED, ATTACHING)) {
				come_back();
				atomic_store(&at.state, ATTACHED);
			}
			break;
		case DETACHED_FINALLY:
			return false;
		case DETACHED:
			if (moves(DETACHED, ATTACHING))
				come();
			break;
		case DETACH_PENDING:
			if (moves(DETACH_PENDING, ATTACHING)) {
				come_back();
				atomic_store(&at.state, ATTACHED);
			}
			break;
		default:
			sched_yield(); /* another thread is at it */
		}
	}
}

/* Whether to leave although there may be another recording. */
static bool may_come_again(void)
{
	return at.is_leaving_always || (at.is_on_duty && !atomic_load(&at.has_graphs));
}

/* Who has attached once may do so again. */
static bool is_kept_for_graphs(void)
{
	return lull_agent.is_late && atomic_load(&at.has_graphs);
}

static bool will_leave(void)
{
	return (may_come_again() || lull_cuda_is_over()) && !atomic_load(&at.must_stay) &&
	       !is_kept_for_graphs() && atomic_load(&at.has_points) && lull_cupti.cuptiFinalize &&
	       lull_cupti.cuptiUnsubscribe && lull_cupti.version > OLDEST_CUPTI &&
	       !(lull_agent.control->sources & LULL_SOURCE_KERNELS) && !lull_cuda_share_is_used();
}

bool lull_cuda_follow_on(void)
{
	if (!will_leave())
		return false;
	at.since = lull_time();
	atomic_store(&at.n_chances, 0);
	atomic_store(&at.is_unseen, 0);
	atomic_store(&at.is_following, 1);
	/* Who launches through a runtime without a wrapper is in a call from its start on, too. */
	lull_cuda_watch_wrapped();
	return true;
}

void lull_cuda_detach_soon(void)
{
	u64 give_up_ticks = lull_agent.control->tick_hz / 1000 * GIVE_UP_MS;

	if (!atomic_load(&at.is_following)) {
		lull_cuda_let_go(0); /* what could not be switched off so far */
		return;
	}
	if (will_leave() && lull_time() - at.since < give_up_ticks &&
	    atomic_load(&at.n_chances) < N_CHANCES) {
		/* From here on this thread leaves CUPTI alone, and another one may end it. */
		if (moves(ATTACHED, DETACH_PENDING) && !atomic_load(&at.is_following))
			moves(DETACH_PENDING, ATTACHED);
	} else if (moves(ATTACHED, ATTACHING) || moves(DETACH_PENDING, ATTACHING)) {
		atomic_store(&at.must_stay, 1);
		come_back();
		atomic_store(&at.state, ATTACHED);
	}
}

void lull_cuda_keep_attached(void)
{
	struct timespec pause = { 0, 1000000 };

	atomic_store(&at.must_stay, 1);
	atomic_store(&at.is_following, 0); /* nobody is to switch anything for it any more */
	moves(DETACH_PENDING, ATTACHED);
	for (int i = 0; i < STAY_TRIES && atomic_load(&at.state) == DETACHING; i++)
		syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0L, &pause, NULL);
}

static void go(void)
{
	atomic_store(&at.is_following, 0);
	lull_cuda_watch_calls(false);
	describe(false);
	/* cuptiFinalize() waits, too; but records of what ends then would be lost. */
	lull_launch_wait();
	lull_cupti.cuptiActivityFlushAll(0);
	lull_cupti.cuptiUnsubscribe(at.subscriber);
	lull_cupti.cuptiFinalize();
	lull_cuda_forget_out();
	lull_cuda_share_reset();
	lull_cuda_forget_calls();
	at.subscriber = NULL;
	atomic_store(&at.state,
		     may_come_again() && !lull_cuda_is_over() ? DETACHED : DETACHED_FINALLY);
}

void lull_cuda_attach_anew(void)
{
	atomic_store(&at.must_stay, 0);
	atomic_store(&at.has_points, 1);
	moves(DETACHED_FINALLY, DETACHED);
}

/* PyTorch's threads for the backward pass begin their names with this. */
#define ENGINE_NAME "pt_autograd"

static bool has_name(u32 tid, const char *wanted)
{
	char path[64] = "/proc/self/task/", digits[LULL_DECIMAL_BYTES], name[16] = "";
	const char *parts[] = { lull_decimal(tid, digits), "/comm" };
	size_t len = strlen(path);
	int fd;

	for (size_t i = 0; i < LULL_COUNT_OF(parts); len += strlen(parts[i++]))
		memcpy(path + len, parts[i], strlen(parts[i]) + 1);
	fd = lull_sys_open(path, O_RDONLY, 0);
	if (fd < 0)
		return false;
	lull_sys_read(fd, name, sizeof(name) - 1);
	lull_sys_close(fd);
	return strncmp(name, wanted, strlen(wanted)) == 0;
}

static enum lull_role role_of(struct lull_thread *t)
{
	u32 role = __atomic_load_n(&t->role, __ATOMIC_RELAXED);

	if (role == LULL_ROLE_UNKNOWN) {
		role = has_name(t->slot->tid, ENGINE_NAME) ? LULL_ROLE_ENGINE : LULL_ROLE_PROGRAM;
		__atomic_store_n(&t->role, role, __ATOMIC_RELAXED);
	}
	return role;
}

/* Whether the thread has made a CUDA call in this session. */
static bool has_called(const struct lull_thread *t)
{
	return __atomic_load_n(&t->magic, __ATOMIC_RELAXED) == LULL_WIRE_MAGIC &&
	       __atomic_load_n(&t->cuda.since, __ATOMIC_ACQUIRE);
}

/* Whether the thread has been in no call for a while. */
static bool is_calm(const struct lull_thread *t)
{
	i64 calm_ticks = (i64)(lull_agent.control->tick_hz / 1000000 * CALM_US);
	u64 last = __atomic_load_n(&t->cuda.since, __ATOMIC_ACQUIRE);

	/* The counters of two CPUs may be apart. */
	return (i64)(lull_time() - last) >= calm_ticks;
}

/* So many blocks may be a thread's; the others were never touched. */
static u32 n_blocks(void)
{
	u32 n = lull_agent.image ? atomic_load(&lull_agent.image->n_slots_ready) : 0;

	return n < lull_agent.n_slots ? n : lull_agent.n_slots;
}

/* Whether a thread that has called may do so while this one detaches. */
static bool may_call(struct lull_thread *t, bool is_waiting)
{
	enum lull_role role = role_of(t);

	return role == LULL_ROLE_PROGRAM ||
	       (role == LULL_ROLE_ENGINE && (is_waiting || !is_calm(t)));
}

/*
 * Whether no thread is in a call, and none but this one can begin one. `is_waiting`: this thread
 * may be about to wait for PyTorch's engine.
 */
static bool is_alone(const struct lull_thread *self, bool is_waiting)
{
	for (u32 i = 0, n = n_blocks(); i < n; i++) {
		struct lull_thread *t = &lull_agent.threads[i];

		if (__atomic_load_n(&t->magic, __ATOMIC_RELAXED) != LULL_WIRE_MAGIC)
			continue;
		/* In this order: whoever sees that a call has ended sees when. */
		if (__atomic_load_n(&t->cuda.call.word, __ATOMIC_ACQUIRE))
			return false;
		if (t != self && has_called(t) && may_call(t, is_waiting))
			return false;
	}
	return true;
}

bool lull_cuda_is_crowded(void)
{
	u32 n_callers = 0;

	for (u32 i = 0, n = n_blocks(); i < n; i++) {
		struct lull_thread *t = &lull_agent.threads[i];

		n_callers += has_called(t) && role_of(t) == LULL_ROLE_PROGRAM;
	}
	return n_callers > 1;
}

/* A thread of the program that is in no call of CUDA; not a forked child. */
static bool is_ours(void)
{
	return lull_cuda_is_mine() && lull_sys_pid() == lull_agent.image->pid;
}

static void try_to_leave(bool is_waiting)
{
	struct lull_thread *self = lull_thread();

	if (self && will_leave() && !atomic_load(&at.n_captures) && is_alone(self, is_waiting) &&
	    moves(DETACH_PENDING, DETACHING))
		go();
	else if (!lull_agent.is_late)
		atomic_fetch_add(&at.n_chances, 1);
}

/* Ranges may come often, and from many threads: write only once. */
static void note_point(void)
{
	if (!atomic_load_explicit(&at.has_points, memory_order_relaxed))
		atomic_store_explicit(&at.has_points, 1, memory_order_relaxed);
}

static void come_by(bool is_waiting)
{
	int saved = errno;

	note_point();
	if (atomic_load_explicit(&at.state, memory_order_relaxed) == DETACH_PENDING && is_ours())
		try_to_leave(is_waiting);
	errno = saved;
}

void lull_cuda_detach_here(void)
{
	come_by(false);
}

void lull_cuda_detach_waiting(void)
{
	come_by(true);
}

/* So long launches may take the chance themselves, 1 ms each: their thread is in no call then. */
#define FIRST_TRIES 200

void lull_cuda_detach_aside(int n_tries)
{
	if (n_tries >= FIRST_TRIES && atomic_load(&at.state) == DETACH_PENDING && is_ours())
		try_to_leave(true);
}

/*
 * So long nobody has called us back when callbacks count as off: a thread that was on its way to
 * one without a CPU has come by then, and has switched it on again.
 */
#define CALM_STEPS 40 /* of 5 ms */
#define IDLE_STEPS 400

/* Until no thread of the program calls us back any more. */
static void wait_for_silence(void)
{
	struct timespec pause = { 0, 5000000 };
	int n_calm = 0;

	for (int i = 0; i < IDLE_STEPS && n_calm < CALM_STEPS; i++) {
		n_calm = lull_cuda_n_calls_on() ? 0 : n_calm + 1;
		lull_cuda_let_go(0);
		syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0L, &pause, NULL);
	}
}

/*
 * The subscription stays: one that is given up and taken again is a second session for CUPTI, which
 * gives launches of graphs wrong numbers then (CUDA 13.0), and was not tried on other devices.
 */
void lull_cuda_stay_idle(void)
{
	if (!moves(DETACH_PENDING, ATTACHING) && !moves(ATTACHED, ATTACHING))
		return;
	lull_cuda_watch_calls(false);
	describe(false);
	wait_for_silence();
	/* Calls must not pay for callbacks; devices and streams are told again at the next time. */
	atomic_store(&at.is_following, 1);
	atomic_store(&at.is_unseen, 1);
	atomic_store(&at.state, ATTACHED);
}

void lull_cuda_detach_now(void)
{
	int saved = errno;

	note_point();
	if (!is_ours() || !lull_cuda_is_attached() || !will_leave())
		return;
	/* The flushing thread switches off first, and brings in what there is. */
	for (int i = 0; i < NOW_TRIES && lull_cuda_is_attached(); i++)
		lull_cuda_rouse();
	for (int i = 0; i < NOW_TRIES && atomic_load(&at.state) == DETACH_PENDING; i++) {
		try_to_leave(false);
		lull_cuda_rouse();
	}
	errno = saved;
}

void lull_cuda_unsafe(void)
{
	atomic_store(&at.must_stay, 1);
}

void lull_cuda_forget_captures(void)
{
	atomic_store(&at.n_captures, 0);
}

void lull_cuda_graph_seen(void)
{
	if (!atomic_load_explicit(&at.has_graphs, memory_order_relaxed))
		atomic_store_explicit(&at.has_graphs, 1, memory_order_relaxed);
}

void lull_cuda_captured(bool is_begin)
{
	u32 n = atomic_load(&at.n_captures);

	lull_cuda_graph_seen();

	/* Its begin may have been before the recording. */
	while (!atomic_compare_exchange_weak(&at.n_captures, &n, is_begin ? n + 1 : n - (n > 0)))
		;
}

/* In the place of a recording's number. */
static u16 follower(void)
{
	return (u16)(FOLLOWED | (atomic_load(&at.n_times) & 0xff));
}

void lull_cuda_begin_time(void)
{
	/* In this order: the one that begins meanwhile is not taken for an earlier one. */
	u32 last = atomic_load(&lull_agent.control->last_record);
	bool is_on = atomic_load(&lull_agent.control->record) != 0;

	atomic_store(&at.off_record, last - is_on);
	atomic_fetch_add(&at.n_times, 1);
}

/*
 * Whether it began since callbacks are on, in a recording or outside of one; else it ended unseen.
 */
static bool is_of_now(union lull_cuda_key call)
{
	u32 last = atomic_load_explicit(&lull_agent.control->last_record, memory_order_relaxed);
	u16 n_since = (u16)(last - atomic_load_explicit(&at.off_record, memory_order_relaxed));

	return call.word && (call.record == follower() || (u16)(last - call.record) < n_since);
}

bool lull_cuda_is_in_call(u32 domain, u32 cbid)
{
	for (u32 i = 0, n = n_blocks(); i < n; i++) {
		const struct lull_thread *t = &lull_agent.threads[i];
		union lull_cuda_key call;

		if (__atomic_load_n(&t->magic, __ATOMIC_RELAXED) != LULL_WIRE_MAGIC)
			continue;
		call.word = __atomic_load_n(&t->cuda.call.word, __ATOMIC_ACQUIRE);
		/* In a call of the runtime may be any of the driver. */
		if (is_of_now(call) &&
		    (call.domain == domain ? call.cbid == cbid
					   : call.domain == LULL_CUPTI_DOMAIN_RUNTIME))
			return true;
	}
	return false;
}

void lull_cuda_follow_call(union lull_cuda_key call, bool is_end)
{
	union lull_cuda_key present;
	struct lull_thread *t;

	/* A forked child has the state, but not CUPTI. */
	if (!lull_cuda_is_mine())
		return;
	t = lull_thread();
	if (!t) {
		lull_cuda_unsafe(); /* nobody would see that it is in a call */
		return;
	}
	present = t->cuda.call;
	if (is_end) {
		__atomic_store_n(&t->cuda.since, lull_time(), __ATOMIC_RELEASE);
		/* It may have begun while something was recorded. */
		call.record = present.record;
		if (present.word == call.word)
			__atomic_store_n(&t->cuda.call.word, 0, __ATOMIC_RELEASE);
	} else if (!is_of_now(present)) {
		/* What is there of another time ended unseen, while callbacks were off. */
		call.record = follower();
		__atomic_store_n(&t->cuda.call.word, call.word, __ATOMIC_RELEASE);
	}
}

void lull_cuda_follow_launch_end(union lull_cuda_key call)
{
	struct lull_thread *t = lull_self;

	if (!lull_has_recording())
		lull_cuda_follow_call(call, true);
	/* One has begun meanwhile; a call of that is around this one, and not at its end. */
	else if (t && t->magic == LULL_WIRE_MAGIC && t->cuda.call.record == follower())
		__atomic_store_n(&t->cuda.call.word, 0, __ATOMIC_RELEASE);
}
