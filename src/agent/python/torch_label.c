/*
 * torch_label - what an operator is called, with shapes, types and plain inputs.
 */
#include "agent/python/torch_int.h"

#include <string.h>

#include "agent/core/decimal.h"

#define INLINE_DIMS	5u
#define MAX_DIMS	64u
#define MAX_INPUTS	24u /* more are left out, as are more tensors of a list */
#define MIN_CONV_INPUTS 6u

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
	char digits[LULL_DECIMAL_BYTES];
	const char *text = lull_decimal(value, digits);

	put(t, text, (u32)strlen(text));
}

static const i64 *dims_of(u64 tensor, u64 *n)
{
	const u64 *at = (const u64 *)(tensor + lull_torch_layout.dims_off);

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
	u16 type = *(const u16 *)(tensor + lull_torch_layout.type_off);
	const char *name = type < LULL_COUNT_OF(names) ? names[type] : "";

	put(t, "\"", 1);
	put(t, name, (u32)strlen(name));
	put(t, "\"", 1);
}

/* The tensors of a list. */
static const struct lull_torch_input *members(const struct lull_torch_input *in, u64 *n)
{
	const u64 *vector = (const u64 *)(in->value + lull_torch_layout.vector_off);
	const struct lull_torch_input *first = (const struct lull_torch_input *)vector[0];

	*n = (vector[1] - vector[0]) / sizeof(*first);
	if (*n > MAX_INPUTS)
		*n = MAX_INPUTS;
	/* A list of numbers has no shapes. */
	return *n && first->tag == lull_torch_layout.tensor_tag ? first : NULL;
}

static void put_input(struct text *shapes, struct text *types, const struct lull_torch_input *in)
{
	const struct lull_torch_input *first;
	u64 n;

	if (in->tag == lull_torch_layout.tensor_tag) {
		put_dims(shapes, in->value);
		put_type(types, in->value);
		return;
	}
	first = in->tag == lull_torch_layout.list_tag ? members(in, &n) : NULL;
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
	return n_inputs >= MIN_CONV_INPUTS && lull_torch_layout.has_numbers && strstr(name, "conv");
}

static const struct lull_torch_input *numbers_of(const struct lull_torch_input *in, u64 *n)
{
	const u64 *vector = (const u64 *)(in->value + lull_torch_layout.vector_off);

	*n = (vector[1] - vector[0]) / sizeof(struct lull_torch_input);
	if (*n > MAX_DIMS)
		*n = MAX_DIMS;
	return (const struct lull_torch_input *)vector[0];
}

static bool is_plain(const struct lull_torch_input *in)
{
	return in->tag == lull_torch_layout.number_tag ||
	       (lull_torch_layout.has_flag && in->tag == lull_torch_layout.flag_tag);
}

static void put_one(struct text *t, const struct lull_torch_input *in)
{
	if (in->tag == lull_torch_layout.number_tag)
		put_number(t, in->value);
	else
		put(t, (u8)in->value ? "True" : "False", (u8)in->value ? 4 : 5);
}

/* As PyTorch's profiler writes it: "[1, 1]", "2", "True"; "" for what is not plain. */
static void put_plain(struct text *t, const struct lull_torch_input *in)
{
	const struct lull_torch_input *members;
	u64 n = 0;

	put(t, "\"", 1);
	if (is_plain(in))
		put_one(t, in);
	members = in->tag == lull_torch_layout.numbers_tag ? numbers_of(in, &n) : NULL;
	if (n && is_plain(&members[0])) {
		for (u64 i = 0; i < n; i++) {
			put(t, i ? ", " : "[", i ? 2 : 1);
			put_one(t, &members[i]);
		}
		put(t, "]", 1);
	}
	put(t, "\"", 1);
}

static u64 hash_plain(u64 h, const struct lull_torch_input *in)
{
	const struct lull_torch_input *members;
	u64 n;

	if (is_plain(in))
		return lull_hash_mix(h ^ (u32)in->value, 0x9fb21c651e98df25ULL);
	if (in->tag != lull_torch_layout.numbers_tag)
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

	h = lull_hash_mix(h ^ n, 0xa0761d6478bd642fULL ^
					 *(const u16 *)(tensor + lull_torch_layout.type_off));
	for (u64 i = 0; i < n && i < MAX_DIMS; i++)
		h = lull_hash_mix(h ^ (u64)dims[i], 0xe7037ed1a0b428dbULL);
	return h;
}

static u64 hash_input(u64 h, const struct lull_torch_input *in)
{
	const struct lull_torch_input *first;
	u64 n;

	if (in->tag == lull_torch_layout.tensor_tag)
		return hash_tensor(h, in->value);
	first = in->tag == lull_torch_layout.list_tag ? members(in, &n) : NULL;
	h = lull_hash_mix(h ^ (first ? 1 : 2), 0x9e3779b97f4a7c15ULL);
	for (u64 i = 0; first && i < n; i++)
		h = hash_tensor(h, first[i].value);
	return h;
}

/* A label that is made: what is known of a call. */
struct call {
	struct lull_text name;
	u32 kind;
	const struct lull_torch_input *inputs;
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

u64 lull_torch_label(struct lull_thread *t, const void *function, u32 kind)
{
	const u64 *range = (const u64 *)((const u8 *)function + lull_torch_layout.inputs_off);
	const char *bytes = lull_torch_layout.name(function);
	struct call c = {
		.name = lull_text(bytes ? bytes : "?", bytes ? strlen(bytes) : 1),
		.kind = kind,
		.inputs = (const struct lull_torch_input *)range[0],
	};
	u64 n = kind == LULL_TORCH_OTHER || !c.inputs ? 0 : range[1];
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
