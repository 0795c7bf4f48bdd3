/*
 * nccl: operations of NCCL as it tells its profiler plugins.
 *
 * NCCL loads the agent by NCCL_PROFILER_PLUGIN and takes the newest of our tables (nccl.def). Over
 * the ranges that it marks by NVTX this gives the sequence number, which is the same on all ranks,
 * the datatype, algorithm, protocol and channels; with LULL_SOURCE_NCCL_STEPS also what its proxy
 * threads sent and received.
 *
 * An operation is over when its own event and those below it (proxy operations, their steps,
 * channels of its kernel) have stopped, on whatever threads that happens; the last one writes it.
 * Its own stop alone means that it was put in line. What is below it may begin later, so with steps
 * the latest operations are held: each keeps its place until as many others have come.
 */
#include "agent/core/source.h"

#include "agent/core/arena.h"
#include "agent/core/real.h"
#include "agent/core/ring.h"
#include "agent/core/sys.h"

/* Types of events, and the bits of the mask. */
enum { GROUP = 1, COLL = 2, P2P = 4, PROXY_OP = 8, PROXY_STEP = 16, KERNEL_CH = 64 };

/* States that say how many bytes went: of a step (from version 4 on), of an operation (before). */
enum { OP_SEND_DONE = 3, OP_RECV_DONE = 7, STEP_SEND_WAIT = 9, STEP_RECV_FLUSH = 11 };

#define N_EVENTS   4096u
#define N_HELD	   256u
#define NAME_BYTES 64u
#define DESCR	   24u /* where the part begins that depends on the type */
#define ABSENT	   255u

/* A communicator. */
struct context {
	u64 comm;
	u32 n_ranks, rank;
	char name[NAME_BYTES];
};

/* An event on its way. What an operation tells is kept until it is written. */
struct event {
	_Atomic u32 is_taken;
	_Atomic u32 n_open; /* of an operation: itself and what is below it */
	u32 type;
	u32 version;
	struct event *op; /* the operation it belongs to; itself if it is one */
	struct context *context;
	u64 start;
	u32 record, tid;
	/* Of operations. */
	u64 comm, seq, size_bytes;
	i32 peer;
	u32 n_channels;
	struct lull_text name, datatype, algorithm, protocol, comm_name;
	_Atomic u64 end; /* the latest stop */
	_Atomic u64 net_bytes, net_first, net_last;
	_Atomic u32 n_steps;
};

static struct {
	_Atomic(struct event *) events;
	_Atomic u32 hint;
	_Atomic(struct event *) held[N_HELD];
	_Atomic u32 n_held;
} nccl;

/* Offsets of one kind of event in one version. */
struct layout {
	u8 comm_name, comm, seq, func, count, peer, datatype, n_channels, algorithm, protocol;
};

#define OFFSETS(...)        \
	{                   \
		__VA_ARGS__ \
	}
#define LAYOUT(version, is_text, coll, p2p) [version] = { OFFSETS coll, OFFSETS p2p },
static const struct layout layouts[][2] = {
#include "agent/calls/nccl.def"
};
#undef LAYOUT

/* Version 1 has numbers for names. */
static const char *const functions[] = { "Broadcast", "Reduce",	  "AllGather", "ReduceScatter",
					 "AllReduce", "SendRecv", "Send",      "Recv" };
static const char *const algorithms[] = {
	"TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"
};
static const char *const protocols[] = { "LL", "LL128", "SIMPLE" };

/* By number, and what one element takes. */
static const struct {
	const char *name;
	u32 n_bytes;
} datatypes[] = {
	{ "int8", 1 },	  { "uint8", 1 },    { "int32", 4 },	  { "uint32", 4 },
	{ "int64", 8 },	  { "uint64", 8 },   { "float16", 2 },	  { "float32", 4 },
	{ "float64", 8 }, { "bfloat16", 2 }, { "float8e4m3", 1 }, { "float8e5m2", 1 },
};

static struct lull_text text_of(const char *text)
{
	return lull_text(text, text ? strnlen(text, NAME_BYTES) : 0);
}

static struct lull_text pick(const char *const *names, size_t n, u32 ix)
{
	return text_of(ix < n ? names[ix] : "");
}

/* Equal but for case and for "nccl" in front, as in ncclFloat32. */
static bool is_datatype(const char *text, const char *name)
{
	if (strncmp(text, "nccl", 4) == 0)
		text += 4;
	for (; *text && *name; text++, name++)
		if ((*text | 0x20) != (*name | 0x20))
			return false;
	return *text == *name;
}

static u64 word(const u8 *descr, u8 off, u32 n_bytes)
{
	u64 value = 0;

	if (off != ABSENT)
		memcpy(&value, descr + DESCR + off, n_bytes);
	return value;
}

/* A text of the description; it lives at least as long as the event. */
static struct lull_text read_text(const u8 *descr, u8 off)
{
	return text_of((const char *)word(descr, off, 8));
}

static void read_datatype(struct event *e, const u8 *descr, u8 off, u64 count)
{
	const char *text = e->version > 1 ? (const char *)word(descr, off, 8) : NULL;
	u64 number = e->version > 1 ? UINT64_MAX : word(descr, off, 1);

	for (size_t i = 0; i < LULL_COUNT_OF(datatypes); i++) {
		if (text ? !is_datatype(text, datatypes[i].name) : i != number)
			continue;
		e->datatype = text_of(datatypes[i].name);
		e->size_bytes = count * datatypes[i].n_bytes;
	}
}

/* Only these have a root that means something. */
static bool has_root(const struct lull_text *name)
{
	static const char *const rooted[] = { "Broadcast", "Bcast", "Reduce", "Gather", "Scatter" };

	for (size_t i = 0; i < LULL_COUNT_OF(rooted); i++)
		if (name->len == strlen(rooted[i]) &&
		    memcmp(name->bytes, rooted[i], name->len) == 0)
			return true;
	return false;
}

static void read_names(struct event *e, const struct layout *l, const u8 *descr)
{
	if (e->version > 1) {
		e->name = read_text(descr, l->func);
		e->algorithm = read_text(descr, l->algorithm);
		e->protocol = read_text(descr, l->protocol);
		return;
	}
	e->name = pick(functions, LULL_COUNT_OF(functions), (u32)word(descr, l->func, 1));
	if (e->type != COLL)
		return;
	e->algorithm =
		pick(algorithms, LULL_COUNT_OF(algorithms), (u32)word(descr, l->algorithm, 1));
	e->protocol = pick(protocols, LULL_COUNT_OF(protocols), (u32)word(descr, l->protocol, 1));
}

static void read_operation(struct event *e, const u8 *descr)
{
	const struct layout *l = &layouts[e->version][e->type == P2P];

	e->comm = l->comm != ABSENT ? word(descr, l->comm, 8) : e->context->comm;
	e->comm_name =
		l->comm_name != ABSENT ? read_text(descr, l->comm_name) : text_of(e->context->name);
	e->seq = word(descr, l->seq, 8);
	e->n_channels = (u32)word(descr, l->n_channels, 1);
	read_datatype(e, descr, l->datatype, word(descr, l->count, 8));
	read_names(e, l, descr);
	e->peer = e->type == P2P || has_root(&e->name) ? (i32)word(descr, l->peer, 4) : -1;
}

/* The events, made by the first caller; threads that race for it agree on one. */
static struct event *all_events(void)
{
	struct event *all = atomic_load(&nccl.events), *fresh;

	if (all)
		return all;
	fresh = lull_arena_take(N_EVENTS * sizeof(*fresh));
	if (fresh && atomic_compare_exchange_strong(&nccl.events, &all, fresh))
		return fresh;
	return all;
}

static struct event *take_event(void)
{
	struct event *all = all_events();
	u32 from = atomic_fetch_add(&nccl.hint, 1);

	for (u32 i = 0; all && i < N_EVENTS; i++) {
		struct event *e = &all[(from + i) % N_EVENTS];

		if (!atomic_load_explicit(&e->is_taken, memory_order_relaxed) &&
		    !atomic_exchange_explicit(&e->is_taken, 1, memory_order_acquire))
			return e;
	}
	lull_issue(LULL_ISSUE_nccl_busy, 1);
	return NULL;
}

static void give_back(struct event *e)
{
	atomic_store_explicit(&e->is_taken, 0, memory_order_release);
}

static u64 define(struct lull_thread *t, const struct lull_text *text)
{
	return lull_name(t, text->bytes, text->len);
}

/* The operation and all below it have stopped. */
static void write_operation(struct event *op)
{
	struct lull_thread *t = lull_recording();
	struct lull_wire_collective *e, all;
	u64 first = atomic_load(&op->net_first);

	if (!t || t->record != op->record)
		return;
	all = (struct lull_wire_collective){
		.dur_ticks = atomic_load(&op->end) - op->start,
		.name = define(t, &op->name),
		.comm = op->comm,
		.comm_name = define(t, &op->comm_name),
		.datatype = define(t, &op->datatype),
		.algorithm = define(t, &op->algorithm),
		.protocol = define(t, &op->protocol),
		.size_bytes = op->size_bytes,
		.seq = op->seq,
		.net_bytes = atomic_load(&op->net_bytes),
		.net_ticks = first ? atomic_load(&op->net_last) - first : 0,
		.peer = op->peer,
		.n_ranks = op->context->n_ranks,
		.rank = op->context->rank,
		.n_channels = op->n_channels,
		.n_steps = atomic_load(&op->n_steps),
	};
	e = lull_reserve_at(t, LULL_EVENT_collective, sizeof(*e), op->start);
	if (!e)
		return;
	all.head = e->head;
	all.head.a = op->tid;
	*e = all;
	lull_commit(t, sizeof(*e));
}

/* One of those that keep the operation lets go. */
static void let_go(struct event *op)
{
	/* Acquire and release: who writes it sees what the others have added. */
	if (atomic_fetch_sub_explicit(&op->n_open, 1, memory_order_acq_rel) != 1)
		return;
	if (atomic_load(&op->end))
		write_operation(op);
	give_back(op);
}

/* Keep it for what may begin late; the one that was here before goes. */
static void hold(struct event *op)
{
	u32 ix = atomic_fetch_add(&nccl.n_held, 1) % N_HELD;
	struct event *before;

	atomic_fetch_add(&op->n_open, 1);
	before = atomic_exchange(&nccl.held[ix], op);
	if (before)
		let_go(before);
}

/* Write what is held back: the process leaves, or a communicator goes. */
static void flush(void)
{
	struct event *op;

	for (u32 i = 0; i < N_HELD && atomic_load(&nccl.n_held); i++)
		if ((op = atomic_exchange(&nccl.held[i], NULL)))
			let_go(op);
}

/* The mask: which events NCCL is to tell us about. */
static i32 wanted(void)
{
	u32 sources = lull_agent.control->sources;

	if (!(sources & LULL_SOURCE_NCCL))
		return 0;
	return GROUP | COLL | P2P |
	       (sources & LULL_SOURCE_NCCL_STEPS ? PROXY_OP | PROXY_STEP | KERNEL_CH : 0);
}

static i32 nccl_init(void **context, i32 *mask, u64 comm, const char *name, i32 n_ranks, i32 rank)
{
	struct context *c = lull_arena_take(sizeof(*c));
	int saved = errno;

	*context = c;
	*mask = c ? wanted() : 0;
	if (c) {
		c->comm = comm;
		c->n_ranks = (u32)n_ranks;
		c->rank = (u32)rank;
		if (name)
			memcpy(c->name, name, strnlen(name, NAME_BYTES - 1));
	}
	errno = saved;
	return 0;
}

/* A new event; its parent is one of ours or NULL. */
static void begin(struct context *context, void **handle, const u8 *descr, u32 version)
{
	struct lull_thread *t = lull_recording();
	struct event *e, *parent;
	u64 type = version > 4 ? *(const u64 *)descr : *descr;

	*handle = NULL;
	if (!t || !context || !(type & (COLL | P2P | PROXY_OP | PROXY_STEP | KERNEL_CH)))
		return;
	memcpy(&parent, descr + 8, sizeof(parent));
	if (!(type & (COLL | P2P)) && (!parent || !lull_arena_owns(parent) || !parent->op))
		return;
	e = take_event();
	if (!e)
		return;
	e->type = (u32)type;
	e->version = version;
	e->context = context;
	e->start = lull_time();
	if (type & (COLL | P2P)) {
		struct event fresh = { .type = e->type,
				       .version = version,
				       .context = context,
				       .start = e->start,
				       .record = t->record,
				       .tid = t->slot->tid };

		memcpy((u8 *)e + offsetof(struct event, type),
		       (u8 *)&fresh + offsetof(struct event, type),
		       sizeof(fresh) - offsetof(struct event, type));
		e->op = e;
		atomic_store(&e->n_open, 1);
		read_operation(e, descr);
		if (lull_agent.control->sources & LULL_SOURCE_NCCL_STEPS)
			hold(e);
	} else {
		e->op = parent->op;
		atomic_fetch_add_explicit(&e->op->n_open, 1, memory_order_relaxed);
	}
	*handle = e;
}

static void keep_latest(_Atomic u64 *latest, u64 value)
{
	u64 seen = atomic_load(latest);

	while (seen < value && !atomic_compare_exchange_weak(latest, &seen, value))
		;
}

static i32 nccl_stop(void *handle)
{
	struct event *e = handle, *op;
	u64 end = lull_time(), none = 0;
	int saved = errno;

	if (!e)
		return 0;
	op = e->op;
	if (e->type == PROXY_STEP) {
		atomic_fetch_add(&op->n_steps, 1);
		atomic_compare_exchange_strong(&op->net_first, &none, e->start);
		keep_latest(&op->net_last, end);
	}
	if (e != op)
		give_back(e);
	keep_latest(&op->end, end);
	let_go(op);
	errno = saved;
	return 0;
}

static i32 nccl_state(void *handle, i32 state, const u64 *more)
{
	struct event *e = handle;
	bool is_done = e && (e->version > 3 ? state == STEP_SEND_WAIT || state == STEP_RECV_FLUSH
					    : state == OP_SEND_DONE || state == OP_RECV_DONE);

	/* The first word of the arguments is the number of bytes in all of these states. */
	if (is_done && more && (e->type == PROXY_STEP || e->type == PROXY_OP))
		atomic_fetch_add(&e->op->net_bytes, more[0]);
	return 0;
}

static i32 nccl_finalize(void *context)
{
	(void)context; /* never freed: events of it may still come to an end */
	flush();
	return 0;
}

/* One table for each version, as NCCL lays it out. */
#define PROFILER(version, params, args)                                                        \
	static i32 init_##version params                                                       \
	{                                                                                      \
		NAMED_##version;                                                               \
		return nccl_init args;                                                         \
	}                                                                                      \
	static i32 start_##version(void *context, void **handle, const void *descr)            \
	{                                                                                      \
		int saved = errno;                                                             \
                                                                                               \
		begin(context, handle, descr, version);                                        \
		errno = saved;                                                                 \
		return 0;                                                                      \
	}                                                                                      \
	extern const struct {                                                                  \
		const char *name;                                                              \
		i32(*init) params;                                                             \
		i32 (*start)(void *context, void **handle, const void *descr);                 \
		i32 (*stop)(void *handle);                                                     \
		i32 (*state)(void *handle, i32 state, const u64 *more);                        \
		i32 (*finalize)(void *context);                                                \
	} ncclProfiler_v##version;                                                             \
	LULL_EXPORT const __typeof__(ncclProfiler_v##version) ncclProfiler_v##version = {      \
		"lull", init_##version, start_##version, nccl_stop, nccl_state, nccl_finalize, \
	};
#define UNUSED_OF_4 (void)n_nodes, (void)log
#define NAMED_1	    (void)0
#define NAMED_2	    (void)0
#define NAMED_3	    (void)0
#define NAMED_4	    UNUSED_OF_4
#define NAMED_5	    UNUSED_OF_4
#define NAMED_6	    UNUSED_OF_4
#include "agent/calls/nccl.def"
#undef PROFILER

const struct lull_source lull_source_nccl = {
	.flush = flush,
};
