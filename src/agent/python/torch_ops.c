/*
 * torch_ops - the operators of PyTorch, by its own observers (at::RecordFunction).
 *
 * at::addGlobalCallback() takes two functions that are called around each operator on each thread.
 * It is C++, but everything about it is plain: the struct below is passed by value, names are asked
 * for by an exported method; torch_int.h says what an operator is about.
 *
 * An operator is one event, written when it ends. Those that are open are in lull_thread.ops.
 */
#include "agent/python/torch.h"

#include <string.h>

#include "agent/core/loaded.h"
#include "agent/python/python_stack.h"
#include "agent/python/torch_int.h"

/* at::RecordFunctionCallback; ten scopes since PyTorch 1.10. */
struct callback {
	void *start;
	void *end;
	f64 probability;
	u8 scopes[10];
	u8 needs_inputs, needs_outputs, needs_ids;
};

/* at::RecordScope */
enum { SCOPE_FUNCTION = 0, SCOPE_BACKWARD = 1, SCOPE_USER = 7 };

#define N_THREADS 4096u

/* From the inputs to the forward thread: after a vector (24 bytes), since 2.1 also a map (56). */
#define FORWARD_OFF_OLD 40u
#define FORWARD_OFF	96u

static struct {
	u64 (*add)(struct callback);
	void (*remove)(u64 handle);
	u64 (*thread)(void); /* PyTorch's number of this one */
	u64 handles[LULL_TORCH_N_KINDS];
	_Atomic u32 is_watching;
	/* Whoever begins a recording may ask, on any thread. */
	_Atomic bool is_known, is_on, is_commanded;
	atomic_flag is_changing;
	u32 forward_off;	     /* from the inputs on, 0 while it is not known */
	_Atomic u32 tids[N_THREADS]; /* the kernel's number of a thread by PyTorch's */
} ops;

/* The kernel's number of the thread with this number of PyTorch's, 0 if it is not known. */
static u64 tid_of(u64 thread)
{
	return thread && thread < N_THREADS
		       ? atomic_load_explicit(&ops.tids[thread], memory_order_relaxed)
		       : 0;
}

/* A backward function says which thread ran the forward one; the first shows where it says so. */
static u64 forward_tid(const void *function)
{
	static const u32 offsets[] = { FORWARD_OFF_OLD, FORWARD_OFF };
	const u8 *inputs = (const u8 *)function + lull_torch_layout.inputs_off;

	for (u32 i = 0; i < LULL_COUNT_OF(offsets) && !ops.forward_off; i++)
		if (tid_of(*(const u64 *)(inputs + offsets[i])))
			ops.forward_off = offsets[i];
	return ops.forward_off ? tid_of(*(const u64 *)(inputs + ops.forward_off)) : 0;
}

static void know_thread(const struct lull_thread *t)
{
	u64 own = ops.thread();

	if (own < N_THREADS && !atomic_load_explicit(&ops.tids[own], memory_order_relaxed))
		atomic_store_explicit(&ops.tids[own], t->slot->tid, memory_order_relaxed);
}

static void begin(const void *function, u32 kind)
{
	struct lull_thread *t;
	struct lull_open_op *op;

	if (atomic_load_explicit(&ops.is_watching, memory_order_relaxed)) {
		lull_torch_look(function, kind);
		return;
	}
	t = lull_recording();
	if (!t)
		return;
	if (t->torch.n_open >= LULL_N_OPEN_OPS) {
		lull_issue(LULL_ISSUE_op_deep, 1);
		return;
	}
	op = &t->torch.ops[t->torch.n_open];
	op->label = lull_torch_label(t, function, kind);
	op->sequence = *(const i64 *)((const u8 *)function + lull_torch_layout.inputs_off - 8);
	op->forward_tid = kind == LULL_TORCH_BACKWARD ? forward_tid(function) : 0;
	op->n_operators = (t->torch.n_open ? op[-1].n_operators : 0) + (kind != LULL_TORCH_OTHER);
	if (!t->torch.n_open)
		know_thread(t);
	/* What is inside of an operator was called by it, not by Python. */
	op->stack = op->n_operators <= 1 ? lull_python_stack(t) : 0;
	op->function = function;
	/* Last, so that what all of this took is not the operator's. */
	op->counter = lull_time();
	t->torch.n_open++;
}

static void finish(const void *function, void *unused)
{
	struct lull_thread *t = lull_recording();
	u64 now = t ? lull_time() : 0;
	struct lull_wire_op *e;
	struct lull_open_op *op;
	u32 depth;

	(void)unused;
	if (!t)
		return;
	/* The innermost is usually the one; those above it ended elsewhere, or not at all. */
	for (depth = t->torch.n_open; depth && t->torch.ops[depth - 1].function != function;
	     depth--)
		;
	if (!depth)
		return;
	t->torch.n_open = (u16)(depth - 1);
	op = &t->torch.ops[depth - 1];
	op->function = NULL;
	if (!op->label) {
		lull_count_drop(t);
		return;
	}
	e = lull_reserve_at(t, LULL_EVENT_op, sizeof(*e), op->counter);
	if (!e)
		return;
	e->head.a = depth - 1;
	e->dur_ticks = now - op->counter;
	e->label = op->label;
	e->sequence = op->sequence;
	e->forward_tid = op->forward_tid;
	e->stack = op->stack;
	lull_commit(t, sizeof(*e));
}

/*
 * A start function returns a std::unique_ptr, which C++ does through a place that the caller names:
 * the first argument on x86_64, register x8 on aarch64. Ours is always empty.
 */
#define START(kind) lull_torch_start_##kind
#if defined(__aarch64__)
#define THUNK(kind)                                                   \
	void START(kind)(void) __attribute__((visibility("hidden"))); \
	__asm__(".text\n"                                             \
		".globl lull_torch_start_" #kind "\n"                 \
		".hidden lull_torch_start_" #kind "\n"                \
		".type lull_torch_start_" #kind ", %function\n"       \
		"lull_torch_start_" #kind ":\n"                       \
		"	hint #34\n"                                         \
		"	str xzr, [x8]\n"                                    \
		"	mov w1, #" #kind "\n"                         \
		"	b lull_torch_begin\n"                               \
		".size lull_torch_start_" #kind ", . - lull_torch_start_" #kind "\n");
#else
#define THUNK(kind)                                            \
	void *START(kind)(void **result, const void *function) \
		__attribute__((visibility("hidden")));         \
	void *START(kind)(void **result, const void *function) \
	{                                                      \
		*result = NULL;                                \
		begin(function, kind);                         \
		return result;                                 \
	}
#endif

void lull_torch_begin(const void *function, u32 kind) __attribute__((visibility("hidden"), used));

void lull_torch_begin(const void *function, u32 kind)
{
	begin(function, kind);
}

THUNK(1)
THUNK(2)
THUNK(3)

/* ---- on and off ---- */

static const struct {
	const char *name;
	void **slot;
} symbols[] = {
	{ "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE", (void **)&ops.add },
	{ "_ZN2at14removeCallbackEm", (void **)&ops.remove },
	{ "_ZNK2at14RecordFunction4nameEv", (void **)&lull_torch_layout.name },
	{ "_ZN2at14RecordFunction15currentThreadIdEv", (void **)&ops.thread },
};

static int visit(struct dl_phdr_info *file, size_t size, void *unused)
{
	(void)size;
	(void)unused;
	if (!lull_loaded_symbol(file, symbols[0].name))
		return 0;
	for (u32 i = 0; i < LULL_COUNT_OF(symbols); i++) {
		const ElfW(Sym) *symbol = lull_loaded_symbol(file, symbols[i].name);

		*symbols[i].slot = symbol ? (void *)(file->dlpi_addr + symbol->st_value) : NULL;
	}
	return 1;
}

static void set_callbacks(bool is_on)
{
	static const struct {
		void *start;
		u8 scope;
	} kinds[LULL_TORCH_N_KINDS] = {
		{ (void *)START(1), SCOPE_FUNCTION },
		{ (void *)START(2), SCOPE_BACKWARD },
		{ (void *)START(3), SCOPE_USER },
	};

	for (u32 i = 0; i < LULL_TORCH_N_KINDS; i++) {
		struct callback cb = {
			.start = kinds[i].start,
			.end = (void *)finish,
			.probability = 1,
			.needs_inputs = kinds[i].scope != SCOPE_USER,
		};

		cb.scopes[kinds[i].scope] = 1;
		if (is_on && !ops.handles[i])
			ops.handles[i] = ops.add(cb);
		else if (!is_on && ops.handles[i]) {
			ops.remove(ops.handles[i]);
			ops.handles[i] = 0;
		}
	}
}

bool lull_torch_watch(const struct lull_torch_probe *probe)
{
	if (ops.is_known)
		return true;
	lull_loaded_walk(visit, NULL);
	if (!ops.add || !ops.remove || !lull_torch_layout.name || !ops.thread)
		return false;
	lull_torch_learn_begin(probe);
	atomic_store(&ops.is_watching, 1);
	set_callbacks(true);
	return true;
}

bool lull_torch_learn(const struct lull_torch_probe *probe)
{
	if (ops.is_known)
		return true;
	set_callbacks(false);
	atomic_store(&ops.is_watching, 0);
	ops.is_known = lull_torch_learn_end(probe);
	return ops.is_known;
}

bool lull_torch_follow(void)
{
	bool is_wanted = lull_has_recording();

	if (!ops.is_known || ops.is_commanded || is_wanted == ops.is_on ||
	    atomic_flag_test_and_set(&ops.is_changing))
		return ops.is_known;
	set_callbacks(is_wanted);
	ops.is_on = is_wanted;
	atomic_flag_clear(&ops.is_changing);
	return true;
}

void lull_torch_ops(bool is_on)
{
	if (!ops.is_known)
		return;
	ops.is_commanded = true;
	set_callbacks(is_on);
	ops.is_on = is_on;
}
