/*
 * lib_hot - start and end of a traced call.
 *
 * Built without floating-point and vector registers (see the Makefile): those hold the call's
 * arguments and results, and are not saved on this path. Code that may use them, such as libc's
 * memcpy(), only runs after lull_lib_keep_vectors().
 */
#include "agent/calls/lib.h"

_Static_assert(sizeof(struct lull_lib_hook) == 32, "HOOK_SHIFT in lib_thunks.S");
_Static_assert(offsetof(struct lull_lib_frame, sp) == 16, "FRAME_SP in lib_thunks.S");
_Static_assert(offsetof(struct lull_control, record) == 8, "RECORD in lib_thunks.S");
_Static_assert(offsetof(struct lull_agent, control) == 0, "lull_agent in lib_thunks.S");

__thread struct lull_lib_pool *lull_lib_self;
struct lull_lib_hook lull_lib_hooks[LULL_LIB_HOOKS];

/* Where the arguments are: in registers as far as they go, then on the caller's stack. */
#ifdef __aarch64__
#define N_REGS 8u
#else
#define N_REGS 6u
#endif

static void keep_args(struct lull_lib_frame *f, const struct lull_lib_entry *e)
{
	const u64 *stack = (const u64 *)e->sp;
	u32 n = e->hook->n_args;

	for (u32 i = 0; i < n; i++)
		f->args[i] = i < N_REGS ? e->regs[i] : stack[i - N_REGS];
}

struct lull_lib_frame *lull_lib_begin(struct lull_lib_pool *pool, const struct lull_lib_entry *e)
{
	struct lull_lib_frame *f = pool->free;

	pool->free = f->next;
	f->is_taken = 1;
	f->ret = e->ret;
	f->saved = e->saved;
	f->sp = e->sp;
	f->hook = e->hook;
	f->next = pool->top;
	f->depth = pool->top ? pool->top->depth + 1 : 0;
	f->record = lull_self->record;
	f->image = (u32)lull_agent.image->start_counter;
	if (e->hook->n_args)
		keep_args(f, e);
	/* A handler that comes from here on finds the frame complete. */
	atomic_signal_fence(memory_order_seq_cst);
	pool->top = f;
	f->start = lull_time();
	return f;
}

/* True if nothing stands in the way of the short paths: this thread, in this recording. */
static bool is_ready(const struct lull_thread *t)
{
	return t && t->magic == LULL_WIRE_MAGIC &&
	       t->record == atomic_load_explicit(&lull_agent.control->record, memory_order_relaxed);
}

struct lull_lib_frame *lull_lib_enter(const struct lull_lib_entry *e)
{
	struct lull_lib_pool *pool = lull_lib_self;
	struct lull_thread *t = lull_self;

	if (__builtin_expect(is_ready(t) && pool && pool->free &&
				     lull_is_defined(t, e->hook->hash) && !t->is_quiet &&
				     e->ret != (u64)lull_lib_return &&
				     (!pool->top || pool->top->sp > e->sp) && !e->hook->decoder,
			     1))
		return lull_lib_begin(pool, e);
	return lull_lib_keep_vectors(lull_lib_enter_slow, (void *)e, 0);
}

void lull_lib_exit(struct lull_lib_frame *f, u64 result)
{
	struct lull_lib_pool *pool = lull_lib_self;
	struct lull_thread *t = lull_self;
	struct lull_wire_lib_call *e;
	struct lull_ring_stream *s;
	u64 end = lull_time();

	if (!is_ready(t) || !pool || pool->top != f || f->record != t->record ||
	    f->image != (u32)lull_agent.image->start_counter || f->hook->decoder || t->depth > 1)
		goto slow;
	s = &t->stream[t->depth & 1];
	if ((size_t)(s->end - s->at) < sizeof(*e))
		goto slow;
	pool->top = f->next;
	e = lull_reserve_at(t, LULL_EVENT_lib_call, sizeof(*e), f->start);
	if (e) {
		e->head.a = f->depth;
		e->dur_ticks = end - f->start;
		e->name = f->hook->hash;
		lull_commit(t, sizeof(*e));
	}
	f->is_taken = 0;
	f->next = pool->free;
	atomic_signal_fence(memory_order_seq_cst);
	pool->free = f;
	return;
slow:
	lull_lib_keep_vectors(lull_lib_exit_slow, f, result);
}
