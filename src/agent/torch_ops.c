/*
 * torch_ops - the operators of PyTorch, by its own observers (at::RecordFunction).
 *
 * at::addGlobalCallback() takes two functions that are called around each operator on each thread.
 * It is C++, but everything about it is plain: the struct below is passed by value, names are asked
 * for by an exported method. What a call is about (its inputs, its sequence number) lies inside an
 * object whose layout differs between versions, so it is not assumed but found out: the package in
 * python/ calls two operators on tensors whose addresses it knows; we look around while they
 * run for what must be there. What does not fit is not used; nothing is recorded then.
 *
 *	RecordFunction	... sequence number, inputs (pointer, count) ... forward thread ...
 *	input		16 bytes: value, tag. Of a tensor the value is its TensorImpl, of a list a
 *			ListImpl with a vector of inputs in it; numbers and flags are the value
 *	TensorImpl	... number of dimensions, then up to 5 sizes or a pointer to them ... type
 *
 * An operator is one event, written when it ends. Those that are open are in lull_thread.ops.
 */
#include "agent/torch.h"

#include <string.h>

#include "agent/elf.h"
#include "agent/python_stack.h"
#include "agent/ring.h"
#include "agent/sys.h"

/* at::RecordFunctionCallback; ten scopes since PyTorch 1.10. */
struct callback {
	void *start;
	void *end;
	f64 probability;
	u8 scopes[10];
	u8 needs_inputs, needs_outputs, needs_ids;
};

/* at::RecordScope, and what it is in op_label.kind. */
enum { SCOPE_FUNCTION = 0, SCOPE_BACKWARD = 1, SCOPE_USER = 7 };
enum { KIND_OPERATOR = 1, KIND_BACKWARD = 2, KIND_OTHER = 3, N_KINDS = 3 };

#define FUNCTION_WORDS	80u /* of a RecordFunction that are looked through; it has 50 to 60 */
#define TENSOR_WORDS	24u /* of a TensorImpl, which has at least so many */
#define LIST_WORDS	8u
#define INLINE_DIMS	5u
#define MAX_DIMS	64u
#define MAX_INPUTS	24u /* more are left out, as are more tensors of a list */
#define N_THREADS	4096u
#define MIN_CONV_INPUTS 6u

/* From the inputs to the forward thread: behind a vector (24 bytes), since 2.1 also a map (56). */
#define FORWARD_OFF_OLD 40u
#define FORWARD_OFF	96u

struct input {
	u64 value;
	u32 tag;
	u32 pad;
};

static struct {
	u64 (*add)(struct callback);
	void (*remove)(u64 handle);
	const char *(*name)(const void *function);
	u64 (*thread)(void); /* PyTorch's number of this one */
	struct lull_torch_probe probe;
	u64 handles[N_KINDS];
	_Atomic u32 is_watching;
	bool is_known;
	/* While watching: what was found; that of numbers may be missing. */
	bool has_pair, has_list, has_numbers, has_flag;
	i64 sequence; /* of the pair's operator */
	/* Offsets in bytes; forward_off from the inputs on, 0 while it is not known. */
	u32 inputs_off, forward_off, dims_off, type_off, vector_off;
	u32 tensor_tag, list_tag, number_tag, numbers_tag, flag_tag;
	bool is_on, is_commanded;
	atomic_flag is_changing;
	_Atomic u32 tids[N_THREADS]; /* the kernel's number of a thread by PyTorch's */
} ops;

/* ---- while the layout is not known ---- */

static bool are_pair(u64 at, struct input inputs[2])
{
	return at % 8 == 0 && at > 65536 && lull_sys_peek(inputs, at, 2 * sizeof(*inputs)) &&
	       inputs[0].value == ops.probe.pair[0] && inputs[1].value == ops.probe.pair[1];
}

static void look_at_pair(const u64 *words)
{
	struct input inputs[2];

	for (u32 i = 1; i + 1 < FUNCTION_WORDS && !ops.has_pair; i++) {
		if (words[i + 1] != 2 || !are_pair(words[i], inputs))
			continue;
		ops.has_pair = inputs[0].tag == inputs[1].tag;
		ops.inputs_off = i * 8;
		ops.tensor_tag = inputs[0].tag;
		ops.sequence = (i64)words[i - 1];
	}
}

static void look_at_list(const u64 *words)
{
	struct input inputs[2], first = { 0 };
	u64 list[LIST_WORDS];

	if (!ops.has_pair || !lull_sys_peek(&first, words[ops.inputs_off / 8], sizeof(first)) ||
	    !lull_sys_peek(list, first.value, sizeof(list)))
		return;
	for (u32 i = 0; i + 1 < LIST_WORDS && !ops.has_list; i++) {
		if (list[i + 1] - list[i] != sizeof(inputs) || !are_pair(list[i], inputs))
			continue;
		ops.has_list = true;
		ops.vector_off = i * 8;
		ops.list_tag = first.tag;
	}
}

/* aten::roll of two numbers that nobody else has. */
static void look_at_numbers(const u64 *words)
{
	struct input inputs[2], members[2];
	u64 vector[2];

	if (!ops.has_list || !lull_sys_peek(inputs, words[ops.inputs_off / 8], sizeof(inputs)) ||
	    !lull_sys_peek(vector, inputs[1].value + ops.vector_off, sizeof(vector)) ||
	    vector[1] - vector[0] != sizeof(members) ||
	    !lull_sys_peek(members, vector[0], sizeof(members)))
		return;
	ops.has_numbers = members[0].value == LULL_TORCH_NUMBER_1 &&
			  members[1].value == LULL_TORCH_NUMBER_2 &&
			  members[0].tag == members[1].tag;
	ops.numbers_tag = inputs[1].tag;
	ops.number_tag = members[0].tag;
}

/* aten::sum with keepdim=True. */
static void look_at_flag(const u64 *words)
{
	struct input inputs[3];

	if (!ops.has_numbers || !lull_sys_peek(inputs, words[ops.inputs_off / 8], sizeof(inputs)))
		return;
	ops.has_flag = (u8)inputs[2].value == 1 && inputs[2].tag != ops.number_tag;
	ops.flag_tag = inputs[2].tag;
}

static void look(const void *function, u32 kind)
{
	const char *name = ops.name(function);
	u64 words[FUNCTION_WORDS];

	if (!name || kind != KIND_OPERATOR || !lull_sys_peek(words, (u64)function, sizeof(words)))
		return;
	if (strcmp(name, "aten::maximum") == 0)
		look_at_pair(words);
	else if (strcmp(name, "aten::cat") == 0)
		look_at_list(words);
	else if (strcmp(name, "aten::roll") == 0)
		look_at_numbers(words);
	else if (strcmp(name, "aten::sum") == 0)
		look_at_flag(words);
}

static bool find_dims(const struct lull_torch_probe *probe)
{
	static const u64 four[] = { 4, 3, 5, 7, 11 }, six[] = { 2, 1, 3, 1, 5, 7 };
	u64 words[TENSOR_WORDS], sizes[6];

	if (!lull_sys_peek(words, probe->four_dims, sizeof(words)))
		return false;
	for (u32 i = 0; i + LULL_COUNT_OF(four) <= TENSOR_WORDS; i++) {
		if (memcmp(&words[i], four, sizeof(four)) != 0)
			continue;
		ops.dims_off = i * 8;
		return lull_sys_peek(words, probe->six_dims, sizeof(words)) && words[i] == 6 &&
		       lull_sys_peek(sizes, words[i + 1], sizeof(sizes)) &&
		       memcmp(sizes, six, sizeof(six)) == 0;
	}
	return false;
}

static bool find_type(const struct lull_torch_probe *probe)
{
	static const u16 types[] = { 0, 4, 6, 7 }; /* c10::ScalarType */
	u16 halves[4][TENSOR_WORDS * 4];

	for (u32 i = 0; i < LULL_COUNT_OF(types); i++)
		if (!lull_sys_peek(halves[i], probe->typed[i], sizeof(halves[i])))
			return false;
	for (u32 at = 0; at < TENSOR_WORDS * 4; at++) {
		u32 n = 0;

		while (n < LULL_COUNT_OF(types) && halves[n][at] == types[n])
			n++;
		if (n == LULL_COUNT_OF(types)) {
			ops.type_off = at * 2;
			return true;
		}
	}
	return false;
}

/* ---- what an operator is called, with shapes and types ---- */

/* A text that is made; what does not fit is left out. */
struct text {
	char at[2048];
	u32 len;
};

static void put(struct text *t, const char *bytes, u32 n)
{
	if (n > sizeof(t->at) - t->len)
		return;
	memcpy(t->at + t->len, bytes, n);
	t->len += n;
}

static void put_number(struct text *t, u64 value)
{
	char digits[20];
	u32 n = 0;

	do
		digits[sizeof(digits) - ++n] = (char)('0' + value % 10);
	while ((value /= 10) && n < sizeof(digits));
	put(t, digits + sizeof(digits) - n, n);
}

static const i64 *dims_of(u64 tensor, u64 *n)
{
	const u64 *at = (const u64 *)(tensor + ops.dims_off);

	*n = *at;
	return (const i64 *)(*n > INLINE_DIMS ? (const void *)at[1] : (const void *)(at + 1));
}

static void put_dims(struct text *t, u64 tensor)
{
	u64 n;
	const i64 *dims = dims_of(tensor, &n);

	put(t, "[", 1);
	for (u64 i = 0; i < n && i < MAX_DIMS; i++) {
		if (i)
			put(t, ", ", 2);
		put_number(t, (u64)dims[i]);
	}
	put(t, "]", 1);
}

/* As PyTorch's profiler writes them. */
static void put_type(struct text *t, u64 tensor)
{
	static const char *const names[] = {
		"unsigned char",
		"signed char",
		"short int",
		"int",
		"long int",
		"c10::Half",
		"float",
		"double",
		"c10::complex<c10::Half>",
		"c10::complex<float>",
		"c10::complex<double>",
		"bool",
		"c10::qint8",
		"c10::quint8",
		"c10::qint32",
		"c10::BFloat16",
		"c10::quint4x2",
		"c10::quint2x4",
		"c10::bits1x8",
		"c10::bits2x4",
		"c10::bits4x2",
		"c10::bits8",
		"c10::bits16",
		"c10::Float8_e5m2",
		"c10::Float8_e4m3fn",
	};
	u16 type = *(const u16 *)(tensor + ops.type_off);
	const char *name = type < LULL_COUNT_OF(names) ? names[type] : "";

	put(t, "\"", 1);
	put(t, name, (u32)strlen(name));
	put(t, "\"", 1);
}

/* The tensors of a list. */
static const struct input *members(const struct input *in, u64 *n)
{
	const u64 *vector = (const u64 *)(in->value + ops.vector_off);
	const struct input *first = (const struct input *)vector[0];

	*n = (vector[1] - vector[0]) / sizeof(*first);
	if (*n > MAX_INPUTS)
		*n = MAX_INPUTS;
	/* A list of numbers has no shapes. */
	return *n && first->tag == ops.tensor_tag ? first : NULL;
}

static void put_input(struct text *shapes, struct text *types, const struct input *in)
{
	const struct input *first;
	u64 n;

	if (in->tag == ops.tensor_tag) {
		put_dims(shapes, in->value);
		put_type(types, in->value);
		return;
	}
	first = in->tag == ops.list_tag ? members(in, &n) : NULL;
	put(types, first ? "\"TensorList\"" : "\"\"", first ? 12 : 2);
	put(shapes, "[", 1);
	for (u64 i = 0; first && i < n; i++) {
		if (i)
			put(shapes, ", ", 2);
		put_dims(shapes, first[i].value);
	}
	put(shapes, "]", 1);
}

/* Operators whose work does not follow from shapes alone: convolutions. */
static bool has_plain(const char *name, u64 n_inputs)
{
	return n_inputs >= MIN_CONV_INPUTS && ops.has_numbers && strstr(name, "conv");
}

static const struct input *numbers_of(const struct input *in, u64 *n)
{
	const u64 *vector = (const u64 *)(in->value + ops.vector_off);

	*n = (vector[1] - vector[0]) / sizeof(struct input);
	if (*n > MAX_DIMS)
		*n = MAX_DIMS;
	return (const struct input *)vector[0];
}

static bool is_plain(const struct input *in)
{
	return in->tag == ops.number_tag || (ops.has_flag && in->tag == ops.flag_tag);
}

static void put_one(struct text *t, const struct input *in)
{
	if (in->tag == ops.number_tag)
		put_number(t, in->value);
	else
		put(t, (u8)in->value ? "True" : "False", (u8)in->value ? 4 : 5);
}

/* As PyTorch's profiler writes it: "[1, 1]", "2", "True"; "" for what is not plain. */
static void put_plain(struct text *t, const struct input *in)
{
	const struct input *members;
	u64 n = 0;

	put(t, "\"", 1);
	if (is_plain(in))
		put_one(t, in);
	members = in->tag == ops.numbers_tag ? numbers_of(in, &n) : NULL;
	if (n && is_plain(&members[0])) {
		for (u64 i = 0; i < n; i++) {
			put(t, i ? ", " : "[", i ? 2 : 1);
			put_one(t, &members[i]);
		}
		put(t, "]", 1);
	}
	put(t, "\"", 1);
}

static u64 hash_plain(u64 h, const struct input *in)
{
	const struct input *members;
	u64 n;

	if (is_plain(in))
		return lull_hash_mix(h ^ (u32)in->value, 0x9fb21c651e98df25ULL);
	if (in->tag != ops.numbers_tag)
		return h;
	members = numbers_of(in, &n);
	for (u64 i = 0; i < n && is_plain(&members[0]); i++)
		h = lull_hash_mix(h ^ (u32)members[i].value, 0x9fb21c651e98df25ULL ^ n);
	return h;
}

static u64 hash_tensor(u64 h, u64 tensor)
{
	u64 n;
	const i64 *dims = dims_of(tensor, &n);

	h = lull_hash_mix(h ^ n, 0xa0761d6478bd642fULL ^ *(const u16 *)(tensor + ops.type_off));
	for (u64 i = 0; i < n && i < MAX_DIMS; i++)
		h = lull_hash_mix(h ^ (u64)dims[i], 0xe7037ed1a0b428dbULL);
	return h;
}

static u64 hash_input(u64 h, const struct input *in)
{
	const struct input *first;
	u64 n;

	if (in->tag == ops.tensor_tag)
		return hash_tensor(h, in->value);
	first = in->tag == ops.list_tag ? members(in, &n) : NULL;
	h = lull_hash_mix(h ^ (first ? 1 : 2), 0x9e3779b97f4a7c15ULL);
	for (u64 i = 0; first && i < n; i++)
		h = hash_tensor(h, first[i].value);
	return h;
}

/* A label that is made: what is known of a call. */
struct call {
	struct lull_text name;
	u32 kind;
	const struct input *inputs;
	u64 n; /* of them that count */
	bool has_plain;
};

static bool emit_label(struct lull_thread *t, u64 hash, const struct call *c,
		       const struct text texts[3])
{
	u32 n_bytes = texts[0].len + texts[1].len + texts[2].len;
	u32 size_bytes = (u32)sizeof(struct lull_wire_op_label) + lull_round8(n_bytes);
	struct lull_wire_op_label *e = lull_reserve(t, LULL_EVENT_op_label, size_bytes);
	u8 *at;

	if (!e)
		return false;
	e->head.a = texts[0].len;
	e->hash = hash;
	e->name = c->name.hash;
	e->kind = c->kind;
	e->n_types_bytes = texts[1].len;
	e->n_inputs_bytes = texts[2].len;
	e->unused = 0;
	at = (u8 *)(e + 1);
	for (u32 i = 0; i < 3; i++) {
		memcpy(at, texts[i].at, texts[i].len);
		at += texts[i].len;
	}
	lull_commit(t, size_bytes);
	lull_remember(t, hash);
	return true;
}

static bool define(struct lull_thread *t, u64 hash, const struct call *c)
{
	enum { SHAPES, TYPES, INPUTS, N_TEXTS };
	struct text texts[N_TEXTS];
	u32 n_texts = c->has_plain ? N_TEXTS : INPUTS;

	for (u32 i = 0; i < N_TEXTS; i++)
		texts[i].len = 0;
	for (u64 i = 0; i < c->n; i++) {
		for (u32 k = 0; k < n_texts; k++)
			put(&texts[k], i ? ", " : "[", i ? 2 : 1);
		put_input(&texts[SHAPES], &texts[TYPES], &c->inputs[i]);
		if (c->has_plain)
			put_plain(&texts[INPUTS], &c->inputs[i]);
	}
	for (u32 k = 0; k < n_texts; k++)
		put(&texts[k], "]", c->n ? 1 : 0);
	return lull_define_string(t, c->name.hash, c->name.bytes, c->name.len) &&
	       emit_label(t, hash, c, texts);
}

/* The label of a call, defined in the thread's stream; 0 if there was no room for that. */
static u64 label_of(struct lull_thread *t, const void *function, u32 kind)
{
	const u64 *range = (const u64 *)((const u8 *)function + ops.inputs_off);
	const char *bytes = ops.name(function);
	struct call c = {
		.name = lull_text(bytes ? bytes : "?", bytes ? strlen(bytes) : 1),
		.kind = kind,
		.inputs = (const struct input *)range[0],
	};
	u64 n = kind == KIND_OTHER || !c.inputs ? 0 : range[1];
	u64 hash = lull_hash_mix(c.name.hash, kind + n);

	c.n = n < MAX_INPUTS ? n : MAX_INPUTS;
	c.has_plain = has_plain(c.name.bytes, c.n);
	for (u64 i = 0; i < c.n; i++) {
		hash = hash_input(hash, &c.inputs[i]);
		if (c.has_plain)
			hash = hash_plain(hash, &c.inputs[i]);
	}
	if (!lull_is_defined(t, hash) && !define(t, hash, &c))
		return 0;
	return hash;
}

/* ---- begin and end ---- */

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
	const u8 *inputs = (const u8 *)function + ops.inputs_off;

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
		look(function, kind);
		return;
	}
	t = lull_recording();
	if (!t)
		return;
	if (t->op_depth >= LULL_N_OPEN_OPS) {
		lull_issue(LULL_ISSUE_op_deep, 1);
		return;
	}
	op = &t->ops[t->op_depth];
	op->label = label_of(t, function, kind);
	op->sequence = *(const i64 *)((const u8 *)function + ops.inputs_off - 8);
	op->forward_tid = kind == KIND_BACKWARD ? forward_tid(function) : 0;
	op->stack = 0;
	if (!t->op_depth) {
		know_thread(t);
		op->stack = lull_python_stack(t);
	}
	op->function = function;
	/* Last, so that what all of this took is not the operator's. */
	op->counter = lull_time();
	t->op_depth++;
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
	for (depth = t->op_depth; depth && t->ops[depth - 1].function != function; depth--)
		;
	if (!depth)
		return;
	t->op_depth = (u16)(depth - 1);
	op = &t->ops[depth - 1];
	op->function = NULL;
	if (!op->label) {
		atomic_fetch_add_explicit(&t->slot->n_dropped, 1, memory_order_relaxed);
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
	{ "_ZNK2at14RecordFunction4nameEv", (void **)&ops.name },
	{ "_ZN2at14RecordFunction15currentThreadIdEv", (void **)&ops.thread },
};

static int visit(struct dl_phdr_info *file, size_t size, void *unused)
{
	(void)size;
	(void)unused;
	if (!lull_elf_symbol(file, symbols[0].name))
		return 0;
	for (u32 i = 0; i < LULL_COUNT_OF(symbols); i++) {
		const ElfW(Sym) *symbol = lull_elf_symbol(file, symbols[i].name);

		*symbols[i].slot = symbol ? (void *)(file->dlpi_addr + symbol->st_value) : NULL;
	}
	return 1;
}

static void set_callbacks(bool is_on)
{
	static const struct {
		void *start;
		u8 scope;
	} kinds[N_KINDS] = {
		{ (void *)START(1), SCOPE_FUNCTION },
		{ (void *)START(2), SCOPE_BACKWARD },
		{ (void *)START(3), SCOPE_USER },
	};

	for (u32 i = 0; i < N_KINDS; i++) {
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
	dl_iterate_phdr(visit, NULL);
	if (!ops.add || !ops.remove || !ops.name || !ops.thread)
		return false;
	ops.probe = *probe;
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
	ops.is_known = ops.has_pair && ops.has_list &&
		       (probe->sequence == UINT64_MAX || ops.sequence == (i64)probe->sequence) &&
		       find_dims(probe) && find_type(probe);
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
