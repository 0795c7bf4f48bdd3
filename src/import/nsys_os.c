/* Calls of the C library, CPU samples, scheduling, and counters over time. */
#include "import/nsys.h"

#include <string.h>

#include "base/hash.h"

/* CPU time of a sample: nsys takes 1000 a second by default, and does not say. */
#define SAMPLE_NS 1000000u

/* frame.kind */
#define FRAME_NATIVE 1
#define FRAME_KERNEL 3

static u64 dur_ns(u64 start, u64 end)
{
	return end > start ? end - start : 0;
}

/* ---- call chains ---- */

enum { CHAIN_ID, CHAIN_SYMBOL, CHAIN_MODULE, CHAIN_KERNEL, CHAIN_IP, CHAIN_DEPTH };

static const char *const chain_cols[] = { "id",		"symbol",     "module", "kernelMode",
					  "originalIP", "stackDepth", NULL };

/* The chain that is read now: from the outermost frame inwards. */
struct chain {
	u64 salt; /* of the table */
	u64 id;
	bool is_begun;
	u32 stack;
};

static u64 chain_key(u64 salt, u64 id)
{
	u64 words[2] = { salt, id };

	return lull_hash(words, sizeof(words));
}

static u32 module_of(struct lull_nsys *n, sqlite3_stmt *row)
{
	struct lull_module_row module = { .path = lull_nsys_string(n, row, CHAIN_MODULE) };
	bool is_new;
	u32 *found;

	if (!module.path)
		return 0;
	found = lull_map_add(&n->modules, module.path, &is_new);
	if (is_new)
		*found = lull_writer_add_dim(n->writer, LULL_TABLE_module, &module);
	return *found;
}

static u32 frame_of(struct lull_nsys *n, sqlite3_stmt *row)
{
	struct lull_frame_row frame;
	size_t known = n->frames.offsets.n;
	u32 number;

	memset(&frame, 0, sizeof(frame));
	frame.kind = lull_nsys_u32(row, CHAIN_KERNEL) ? FRAME_KERNEL : FRAME_NATIVE;
	frame.module = module_of(n, row);
	frame.function = lull_nsys_string(n, row, CHAIN_SYMBOL);
	/* A function is one place, wherever in it the addresses were. */
	frame.addr = frame.function ? 0 : (u64)sqlite3_column_int64(row, CHAIN_IP);
	number = lull_intern_add(&n->frames, &frame, sizeof(frame));
	if (n->frames.offsets.n > known)
		lull_writer_add_dim(n->writer, LULL_TABLE_frame, &frame);
	return number + 1;
}

static void take_frame(struct lull_nsys *n, sqlite3_stmt *row)
{
	struct chain *chain = n->ctx;
	u64 id = lull_nsys_u64(row, CHAIN_ID);
	struct lull_stack_row stack = { .frame = frame_of(n, row) };
	size_t known = n->stacks.offsets.n;

	if (!chain->is_begun || chain->id != id)
		chain->stack = 0;
	chain->is_begun = true;
	chain->id = id;
	stack.parent = chain->stack;
	chain->stack = lull_intern_add(&n->stacks, &stack, sizeof(stack)) + 1;
	if (n->stacks.offsets.n > known)
		lull_writer_add_dim(n->writer, LULL_TABLE_stack, &stack);
	*lull_map_add(&n->chains, chain_key(chain->salt, id), NULL) = chain->stack;
}

/* In a file of ours an id is that of a stack. */
void lull_nsys_read_chains(struct lull_nsys *n, const char *table, u64 salt)
{
	struct chain chain = { .salt = salt };

	if (n->is_ours) {
		lull_nsys_skip(n, table);
		return;
	}
	n->ctx = &chain;
	lull_nsys_each(n, table, chain_cols, "ORDER BY id, stackDepth DESC", take_frame);
	n->ctx = NULL;
}

u32 lull_nsys_stack(struct lull_nsys *n, sqlite3_stmt *row, int col, u64 salt)
{
	u64 id = lull_nsys_u64(row, col);
	const u32 *known;

	if (n->is_ours)
		return (u32)id;
	if (lull_nsys_is_null(row, col))
		return 0;
	known = lull_map_find(&n->chains, chain_key(salt, id));
	return known ? *known : 0;
}

/* ---- calls ---- */

enum { CALL_START, CALL_END, CALL_TID, CALL_NAME, CALL_RESULT, CALL_CHAIN, CALL_ARG };

static const char *const call_cols[] = { "start",	"end",	       "globalTid",    "nameId",
					 "returnValue", "callchainId", "lullArgument", NULL };

static void take_call(struct lull_nsys *n, sqlite3_stmt *row)
{
	u64 start = lull_nsys_u64(row, CALL_START);
	struct lull_oscall_row call = {
		.start_ns = start,
		.dur_ns = dur_ns(start, lull_nsys_u64(row, CALL_END)),
		.lane = lull_nsys_thread(n, lull_nsys_u64(row, CALL_TID), start),
		.name = lull_nsys_string(n, row, CALL_NAME),
		.ret = sqlite3_column_int64(row, CALL_RESULT),
		.arg = sqlite3_column_int64(row, CALL_ARG),
		.stack = lull_nsys_stack(n, row, CALL_CHAIN, LULL_NSYS_OS_CHAINS),
	};

	lull_writer_add(n->writer, LULL_TABLE_oscall, &call);
}

/* ---- samples ---- */

enum {
	SAMPLE_ID,
	SAMPLE_START,
	SAMPLE_CPU,
	SAMPLE_TID,
	SAMPLE_CYCLES,
	SAMPLE_WEIGHT,
	SAMPLE_SOURCE,
	SAMPLE_FLAGS
};

static const char *const sample_cols[] = { "id",	 "start",     "cpu",
					   "globalTid",	 "cpuCycles", "lullWeight",
					   "lullSource", "lullFlags", NULL };

static void take_sample(struct lull_nsys *n, sqlite3_stmt *row)
{
	u64 start = lull_nsys_u64(row, SAMPLE_START);
	bool is_ours = !lull_nsys_is_null(row, SAMPLE_WEIGHT);
	struct lull_sample_row sample = {
		.start_ns = start,
		.lane = lull_nsys_thread(n, lull_nsys_u64(row, SAMPLE_TID), start),
		.stack = lull_nsys_stack(n, row, SAMPLE_ID, LULL_NSYS_SAMPLE_CHAINS),
		.cpu = (u16)lull_nsys_u32(row, SAMPLE_CPU),
		.weight_ns = is_ours ? lull_nsys_u64(row, SAMPLE_WEIGHT) : SAMPLE_NS,
		.source = is_ours ? (u8)lull_nsys_u32(row, SAMPLE_SOURCE) : 1,
		.flags = (u8)lull_nsys_u32(row, SAMPLE_FLAGS),
	};

	/* A stack that was taken when a thread stopped is no sample of what the CPU does. */
	if (!is_ours && lull_nsys_u64(row, SAMPLE_CYCLES) == 0)
		sample.weight_ns = 0;
	lull_writer_add(n->writer, LULL_TABLE_sample, &sample);
}

/* ---- scheduling ---- */

enum { SCHED_START, SCHED_CPU, SCHED_IN, SCHED_TID, SCHED_BLOCK, SCHED_REASON };

static const char *const sched_cols[] = { "start",	 "cpu",		  "isSchedIn", "globalTid",
					  "threadBlock", "lullEndReason", NULL };

/* sched.end_reason */
enum { ENDS_WAITING = 1, ENDS_PREEMPTED = 2, ENDS_WITH_RECORDING = 4 };

struct moment {
	u64 start_ns;
	u16 cpu;
	bool is_in;
	u8 reason;
};

/* The thread that is read now: rows come by thread, then time. */
struct sched {
	u64 tid;
	bool is_running;
	struct lull_sched_row stay;
	struct lull_vec same; /* struct moment: those of one thread at one time */
};

static void end_stay(struct lull_nsys *n, struct sched *s, const struct moment *m)
{
	s->stay.dur_ns = dur_ns(s->stay.start_ns, m->start_ns);
	s->stay.end_reason = m->reason;
	lull_writer_add(n->writer, LULL_TABLE_sched, &s->stay);
	s->is_running = false;
}

static void begin_stay(struct lull_nsys *n, struct sched *s, const struct moment *m)
{
	s->stay = (struct lull_sched_row){
		.start_ns = m->start_ns,
		.lane = lull_nsys_thread(n, s->tid, m->start_ns),
		.cpu = m->cpu,
	};
	s->is_running = true;
}

/*
 * Take the moments that are at one time: an end first if the thread runs, else a start. An end
 * without a start is one of a stay that began before the recording, and is left out.
 */
static void take_moments(struct lull_nsys *n, struct sched *s)
{
	while (s->same.n) {
		struct moment *all = s->same.at, m;
		size_t i = 0;

		while (i < s->same.n && all[i].is_in == s->is_running)
			i++;
		if (i == s->same.n)
			i = 0;
		m = all[i];
		memmove(&all[i], &all[i + 1], (s->same.n - i - 1) * sizeof(*all));
		s->same.n--;
		if (s->is_running && !m.is_in)
			end_stay(n, s, &m);
		else if (m.is_in)
			begin_stay(n, s, &m);
	}
}

static void end_thread(struct lull_nsys *n, struct sched *s)
{
	struct moment last = { .start_ns = n->end_ns, .reason = ENDS_WITH_RECORDING };

	take_moments(n, s);
	if (s->is_running)
		end_stay(n, s, &last);
}

static void take_sched(struct lull_nsys *n, sqlite3_stmt *row)
{
	struct sched *s = n->ctx;
	u64 tid = lull_nsys_u64(row, SCHED_TID);
	const struct moment *first = s->same.at;
	struct moment m = {
		.start_ns = lull_nsys_u64(row, SCHED_START),
		.cpu = (u16)lull_nsys_u32(row, SCHED_CPU),
		.is_in = lull_nsys_u32(row, SCHED_IN) != 0,
		.reason = lull_nsys_is_null(row, SCHED_BLOCK) ? ENDS_PREEMPTED : ENDS_WAITING,
	};

	if (!lull_nsys_is_null(row, SCHED_REASON))
		m.reason = (u8)lull_nsys_u32(row, SCHED_REASON);
	if (tid != s->tid)
		end_thread(n, s);
	else if (s->same.n && first->start_ns != m.start_ns)
		take_moments(n, s);
	s->tid = tid;
	*(struct moment *)lull_vec_push(&s->same) = m;
}

static void read_sched(struct lull_nsys *n)
{
	struct sched sched = { 0 };

	lull_vec_init(&sched.same, sizeof(struct moment));
	n->ctx = &sched;
	lull_nsys_each(n, "SCHED_EVENTS", sched_cols, "ORDER BY globalTid, start", take_sched);
	end_thread(n, &sched);
	n->ctx = NULL;
	lull_vec_release(&sched.same);
}

/* ---- counters ---- */

/* Metric of nsys's type and number. */
struct metrics {
	struct lull_map by_number;
};

static u64 metric_key(sqlite3_stmt *row, int type_col, int metric_col)
{
	u64 words[2] = { lull_nsys_u64(row, type_col), lull_nsys_u64(row, metric_col) };

	return lull_hash(words, sizeof(words));
}

static void take_metric(struct lull_nsys *n, sqlite3_stmt *row)
{
	struct metrics *m = n->ctx;
	struct lull_metric_row metric = {
		.name = lull_nsys_text(n, row, 2),
		.source = lull_nsys_text(n, row, 3),
	};

	*lull_map_add(&m->by_number, metric_key(row, 0, 1), NULL) =
		lull_writer_add_dim(n->writer, LULL_TABLE_metric, &metric);
}

static void take_counter(struct lull_nsys *n, sqlite3_stmt *row)
{
	const struct metrics *m = n->ctx;
	const u32 *metric = lull_map_find(&m->by_number, metric_key(row, 1, 2));
	struct lull_counter_row counter = {
		.start_ns = lull_nsys_u64(row, 0),
		.metric = metric ? *metric : 0,
		/* The lowest byte is the device; the rest tells samplers apart. */
		.device = lull_nsys_device(n, 0, lull_nsys_u32(row, 1) & 0xff),
		.value = sqlite3_column_double(row, 3),
	};

	lull_writer_add(n->writer, LULL_TABLE_counter, &counter);
}

static void read_counters(struct lull_nsys *n)
{
	static const char *const metric_cols[] = { "typeId", "metricId", "metricName", "typeName",
						   NULL };
	static const char *const counter_cols[] = { "timestamp", "typeId", "metricId", "value",
						    NULL };
	struct metrics metrics;

	if (n->is_ours) {
		lull_nsys_skip(n, "GPU_METRICS");
		return;
	}
	lull_map_init(&metrics.by_number);
	n->ctx = &metrics;
	lull_nsys_each(n, "TARGET_INFO_GPU_METRICS", metric_cols, "", take_metric);
	lull_nsys_each(n, "GPU_METRICS", counter_cols, "", take_counter);
	n->ctx = NULL;
	lull_map_release(&metrics.by_number);
}

void lull_nsys_read_os(struct lull_nsys *n)
{
	lull_nsys_read_chains(n, "OSRT_CALLCHAINS", LULL_NSYS_OS_CHAINS);
	lull_nsys_each(n, "OSRT_API", call_cols, "", take_call);
	lull_nsys_read_chains(n, "SAMPLING_CALLCHAINS", LULL_NSYS_SAMPLE_CHAINS);
	lull_nsys_each(n, "COMPOSITE_EVENTS", sample_cols, "", take_sample);
	read_sched(n);
	read_counters(n);
}
