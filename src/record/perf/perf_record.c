#include "record/perf/perf_int.h"

#include <string.h>

/* A reader of a record's body that knows its end; reading past it sets is_short and gives 0. */
struct cursor {
	const u8 *at, *end;
	bool is_short;
};

/* Step over `n` bytes and return where they began, NULL if there are fewer. */
static const void *take(struct cursor *c, u64 n)
{
	const u8 *at = c->at;

	if (n > (u64)(c->end - c->at)) {
		c->is_short = true;
		c->at = c->end;
		return NULL;
	}
	c->at += n;
	return at;
}

static u64 take_u64(struct cursor *c)
{
	const void *at = take(c, 8);
	u64 v = 0;

	if (at)
		memcpy(&v, at, 8);
	return v;
}

static u32 take_u32(struct cursor *c)
{
	const void *at = take(c, 4);
	u32 v = 0;

	if (at)
		memcpy(&v, at, 4);
	return v;
}

/* The rest of the body as a name; NULL if it has no end. */
static const char *take_name(struct cursor *c)
{
	const char *name = (const char *)c->at;

	if (!memchr(name, 0, (size_t)(c->end - c->at))) {
		c->is_short = true;
		return NULL;
	}
	return name;
}

/* The trailer every record but a sample carries. */
struct trailer {
	u32 pid, tid;
	u64 time_ns;
	u32 cpu;
};

#define TRAILER_BYTES 24

static struct trailer split_trailer(struct cursor *c)
{
	struct trailer t = { 0 };
	struct cursor tail = { c->end - TRAILER_BYTES, c->end, false };

	if (c->end - c->at < TRAILER_BYTES) {
		c->is_short = true;
		return t;
	}
	t.pid = take_u32(&tail);
	t.tid = take_u32(&tail);
	t.time_ns = take_u64(&tail);
	t.cpu = take_u32(&tail);
	c->end -= TRAILER_BYTES;
	return t;
}

static void take_regs(struct cursor *c, u64 mask, struct lull_perf_sample *s)
{
	u64 abi = take_u64(c);

	if (abi == PERF_SAMPLE_REGS_ABI_NONE)
		return;
	s->regs = take(c, 8 * (u64)__builtin_popcountll(mask));
	/* A 32-bit process has other registers and another stack; nothing here can unwind it. */
	s->regs_mask = abi == PERF_SAMPLE_REGS_ABI_64 ? mask : 0;
}

static void take_stack(struct cursor *c, struct lull_perf_sample *s)
{
	u64 n = take_u64(c), n_filled;

	if (!n)
		return;
	s->stack = take(c, n);
	n_filled = take_u64(c);
	s->stack_bytes = n_filled < n ? n_filled : n;
}

static void on_sample(const struct perf_event_header *h, struct cursor *c,
		      const struct lull_perf_format *format,
		      const struct lull_perf_handlers *handlers, void *ctx)
{
	struct lull_perf_sample s = { .weight_ns = format->weight_ns };
	const void *chain;
	u64 n;

	s.ip = take_u64(c);
	s.pid = take_u32(c);
	s.tid = take_u32(c);
	s.time_ns = take_u64(c);
	s.cpu = take_u32(c);
	take_u32(c);
	n = take_u64(c);
	chain = n <= UINT16_MAX ? take(c, n * 8) : NULL;
	s.chain = chain;
	s.n_chain = chain ? n : 0;
	s.is_kernel = (h->misc & PERF_RECORD_MISC_CPUMODE_MASK) == PERF_RECORD_MISC_KERNEL;
	if (format->regs_mask)
		take_regs(c, format->regs_mask, &s);
	if (format->has_stack)
		take_stack(c, &s);
	if (!c->is_short && handlers->sample)
		handlers->sample(ctx, &s);
}

static void on_switch(const struct perf_event_header *h, struct cursor *c,
		      const struct lull_perf_handlers *handlers, void *ctx)
{
	struct trailer t = split_trailer(c);
	struct lull_perf_switch s = {
		.pid = t.pid, .tid = t.tid, .time_ns = t.time_ns, .cpu = t.cpu
	};

	s.is_in = !(h->misc & PERF_RECORD_MISC_SWITCH_OUT);
	s.is_preempted = !s.is_in && h->misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT;
	/* tid 0 is the idle task, -1 a task already reaped: neither is anybody's thread. */
	if (!c->is_short && s.tid && s.tid != UINT32_MAX && handlers->switched)
		handlers->switched(ctx, &s);
}

static void on_task(const struct perf_event_header *h, struct cursor *c,
		    const struct lull_perf_handlers *handlers, void *ctx)
{
	struct trailer t = split_trailer(c);
	struct lull_perf_task task = { .time_ns = t.time_ns };

	task.pid = take_u32(c);
	task.parent_pid = take_u32(c);
	task.tid = take_u32(c);
	task.parent_tid = take_u32(c);
	if (c->is_short)
		return;
	if (h->type == PERF_RECORD_FORK && handlers->fork)
		handlers->fork(ctx, &task);
	if (h->type == PERF_RECORD_EXIT && handlers->exit)
		handlers->exit(ctx, &task);
}

static void on_comm(const struct perf_event_header *h, struct cursor *c,
		    const struct lull_perf_handlers *handlers, void *ctx)
{
	struct trailer t = split_trailer(c);
	struct lull_perf_comm comm = { .time_ns = t.time_ns };

	comm.pid = take_u32(c);
	comm.tid = take_u32(c);
	comm.name = take_name(c);
	comm.is_exec = h->misc & PERF_RECORD_MISC_COMM_EXEC;
	if (!c->is_short && handlers->comm)
		handlers->comm(ctx, &comm);
}

#define BUILD_ID_MAX_BYTES 20

static void on_mmap2(const struct perf_event_header *h, struct cursor *c,
		     const struct lull_perf_handlers *handlers, void *ctx)
{
	struct trailer t = split_trailer(c);
	struct lull_perf_mmap m = { .time_ns = t.time_ns };
	const u8 *identity;

	m.pid = take_u32(c);
	m.tid = take_u32(c);
	m.addr = take_u64(c);
	m.len_bytes = take_u64(c);
	m.file_off = take_u64(c);
	identity = take(c, 24); /* device and inode, or: size, 3 unused, build id */
	take(c, 8);		/* protection and flags */
	m.path = take_name(c);
	if (c->is_short || !handlers->mmap)
		return;
	if (h->misc & PERF_RECORD_MISC_MMAP_BUILD_ID && identity[0] <= BUILD_ID_MAX_BYTES) {
		m.build_id = identity + 4;
		m.build_id_bytes = identity[0];
	}
	handlers->mmap(ctx, &m);
}

static void on_lost(struct cursor *c, const struct lull_perf_handlers *handlers, void *ctx)
{
	struct trailer t = split_trailer(c);
	u64 n;

	take_u64(c); /* id of the event */
	n = take_u64(c);
	if (!c->is_short && handlers->lost)
		handlers->lost(ctx, n, t.time_ns);
}

bool lull_perf_record(const struct perf_event_header *record, const struct lull_perf_format *format,
		      const struct lull_perf_handlers *handlers, void *ctx)
{
	struct cursor c = { (const u8 *)(record + 1), (const u8 *)record + record->size, false };

	switch (record->type) {
	case PERF_RECORD_SAMPLE:
		on_sample(record, &c, format, handlers, ctx);
		break;
	case PERF_RECORD_SWITCH:
	case PERF_RECORD_SWITCH_CPU_WIDE:
		on_switch(record, &c, handlers, ctx);
		break;
	case PERF_RECORD_FORK:
	case PERF_RECORD_EXIT:
		on_task(record, &c, handlers, ctx);
		break;
	case PERF_RECORD_COMM:
		on_comm(record, &c, handlers, ctx);
		break;
	case PERF_RECORD_MMAP2:
		on_mmap2(record, &c, handlers, ctx);
		break;
	case PERF_RECORD_LOST:
		on_lost(&c, handlers, ctx);
		break;
	default:
		break; /* throttling and the like say nothing we show */
	}
	return !c.is_short;
}
