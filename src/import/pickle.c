#include "import/pickle.h"

#include <string.h>

/*
 * A pickle is a program for a machine with a stack. Opcodes push values, or take those above the
 * last MARK and put them into the container below it. Containers are filled in pieces, at most
 * 1,000 items each, so that a container here is a list of parts.
 */

/* Keys of a dictionary that are looked at: one of a million may be asked for a million times. */
#define MAX_KEYS 64

enum kind { KIND_NONE, KIND_INT, KIND_FLOAT, KIND_TEXT, KIND_LIST, KIND_DICT };

struct value {
	u32 kind;
	u32 n;	   /* TEXT: bytes; LIST, DICT: number of its last part + 1, 0 if there is none */
	u64 which; /* INT: the number; TEXT: its offset; LIST, DICT: its first part + 1 */
};

/* items[first] to items[first + n - 1]; a dictionary has keys and values by turns. */
struct part {
	u32 first, n;
	u32 next; /* number of the next part + 1, 0 at the end */
};

/* Opcodes, as in Python's pickletools. */
enum {
	OP_PROTO = 0x80,
	OP_FRAME = 0x95,
	OP_STOP = '.',
	OP_MARK = '(',
	OP_NONE = 'N',
	OP_NEWTRUE = 0x88,
	OP_NEWFALSE = 0x89,
	OP_BININT = 'J',
	OP_BININT1 = 'K',
	OP_BININT2 = 'M',
	OP_LONG1 = 0x8a,
	OP_LONG4 = 0x8b,
	OP_BINFLOAT = 'G',
	OP_SHORT_BINUNICODE = 0x8c,
	OP_BINUNICODE = 'X',
	OP_BINUNICODE8 = 0x8d,
	OP_EMPTY_LIST = ']',
	OP_EMPTY_DICT = '}',
	OP_EMPTY_TUPLE = ')',
	OP_APPEND = 'a',
	OP_APPENDS = 'e',
	OP_SETITEM = 's',
	OP_SETITEMS = 'u',
	OP_TUPLE = 't',
	OP_TUPLE1 = 0x85,
	OP_TUPLE2 = 0x86,
	OP_TUPLE3 = 0x87,
	OP_BINPUT = 'q',
	OP_LONG_BINPUT = 'r',
	OP_MEMOIZE = 0x94,
	OP_BINGET = 'h',
	OP_LONG_BINGET = 'j',
};

static int damaged(const struct lull_pickle *p, struct lull_err *err)
{
	return lull_fail(err, LULL_E_FORMAT, "the pickle is damaged at byte %zu", p->off);
}

static int ended(const struct lull_pickle *p, struct lull_err *err)
{
	return lull_fail(err, LULL_E_FORMAT, "the pickle ends early, after %zu bytes", p->n_bytes);
}

/* A number of `n` bytes, at most 8, lowest first. */
static int take(struct lull_pickle *p, size_t n, u64 *to, struct lull_err *err)
{
	if (p->n_bytes - p->off < n)
		return ended(p, err);
	*to = 0;
	for (size_t i = 0; i < n; i++)
		*to |= (u64)p->bytes[p->off + i] << 8 * i;
	p->off += n;
	return 0;
}

/* ---- values ---- */

static struct value *value_at(const struct lull_pickle *p, u32 id)
{
	return id ? &((struct value *)p->values.at)[id - 1] : NULL;
}

static void push_id(struct lull_pickle *p, u32 id)
{
	*(u32 *)lull_vec_push(&p->stack) = id;
}

static u32 push(struct lull_pickle *p, enum kind kind, u32 n, u64 which)
{
	*(struct value *)lull_vec_push(&p->values) =
		(struct value){ .kind = kind, .n = n, .which = which };
	push_id(p, (u32)p->values.n);
	return (u32)p->values.n;
}

/* How much of the stack the innermost container below a mark must not take away. */
static size_t floor_of(const struct lull_pickle *p)
{
	return p->marks.n ? ((const u32 *)p->marks.at)[p->marks.n - 1] : 0;
}

/* Put the topmost `n` values of the stack into a container, and take them off. */
static void fill(struct lull_pickle *p, u32 container, size_t n)
{
	struct value *to = value_at(p, container);
	u32 *from = (u32 *)p->stack.at + (p->stack.n - n), *items;
	struct part *part;
	u32 number;

	if (!n)
		return;
	part = lull_vec_push(&p->parts);
	number = (u32)p->parts.n;
	*part = (struct part){ .first = (u32)p->items.n, .n = (u32)n };
	items = lull_vec_extend(&p->items, n);
	memcpy(items, from, n * sizeof(*items));
	p->stack.n -= n;
	if (to->n)
		((struct part *)p->parts.at)[to->n - 1].next = number;
	else
		to->which = number;
	to->n = number;
}

/* Take the values above the last mark, or a fixed number, into the container below them. */
static int fill_below(struct lull_pickle *p, enum kind kind, bool has_mark, struct lull_err *err)
{
	size_t base = floor_of(p), n = kind == KIND_DICT ? 2 : 1;
	u32 container;

	if (has_mark) {
		if (!p->marks.n || p->stack.n < base)
			return damaged(p, err);
		n = p->stack.n - base;
		p->marks.n--;
		base = floor_of(p);
	}
	if (p->stack.n < base + n + 1 || (kind == KIND_DICT && n % 2))
		return damaged(p, err);
	container = ((const u32 *)p->stack.at)[p->stack.n - n - 1];
	if (value_at(p, container)->kind != (u32)kind)
		return damaged(p, err);
	fill(p, container, n);
	return 0;
}

/* A tuple of the topmost `n` values, or of those above the last mark. */
static int make_tuple(struct lull_pickle *p, size_t n, bool has_mark, struct lull_err *err)
{
	size_t base = floor_of(p);
	u32 id;

	if (has_mark) {
		if (!p->marks.n || p->stack.n < base)
			return damaged(p, err);
		n = p->stack.n - base;
		p->marks.n--;
	} else if (p->stack.n < base + n) {
		return damaged(p, err);
	}
	id = push(p, KIND_LIST, 0, 0);
	p->stack.n--;
	fill(p, id, n);
	push_id(p, id);
	return 0;
}

/* ---- opcodes ---- */

static int take_text(struct lull_pickle *p, size_t n_len, struct lull_err *err)
{
	u64 len = 0;

	if (take(p, n_len, &len, err))
		return err->code;
	if (len > p->n_bytes - p->off)
		return ended(p, err);
	push(p, KIND_TEXT, (u32)len, p->off);
	p->off += (size_t)len;
	return 0;
}

/* A number of any length, lowest byte first, with a sign; of longer ones the lowest 8 bytes. */
static int take_long(struct lull_pickle *p, size_t n_len, struct lull_err *err)
{
	u64 len = 0, value = 0;
	size_t n, end;

	if (take(p, n_len, &len, err))
		return err->code;
	if (len > p->n_bytes - p->off)
		return ended(p, err);
	n = len < 8 ? (size_t)len : 8;
	end = p->off + (size_t)len;
	take(p, n, &value, err);
	if (n && n < 8 && (p->bytes[end - 1] & 0x80))
		value |= ~0ULL << 8 * n;
	push(p, KIND_INT, 0, value);
	p->off = end;
	return 0;
}

/* Numbers of a fixed length; `n` bytes. */
static int take_int(struct lull_pickle *p, size_t n, struct lull_err *err)
{
	u64 value = 0;

	if (take(p, n, &value, err))
		return err->code;
	push(p, KIND_INT, 0, n == 4 ? (u64)(i64)(i32)(u32)value : value);
	return 0;
}

static int remember(struct lull_pickle *p, size_t n, struct lull_err *err)
{
	u64 number = p->memo.n;

	if (n && take(p, n, &number, err))
		return err->code;
	if (p->stack.n <= floor_of(p))
		return damaged(p, err);
	*lull_map_add(&p->memo, number, NULL) = ((const u32 *)p->stack.at)[p->stack.n - 1];
	return 0;
}

static int recall(struct lull_pickle *p, size_t n, struct lull_err *err)
{
	u64 number = 0;
	const u32 *id;

	if (take(p, n, &number, err))
		return err->code;
	id = lull_map_find(&p->memo, number);
	if (!id)
		return damaged(p, err);
	push_id(p, *id);
	return 0;
}

static int refuse(const struct lull_pickle *p, u8 op, struct lull_err *err)
{
	return lull_fail(err, LULL_E_UNSUPPORTED,
			 "the pickle has more than numbers, texts, lists and dictionaries (opcode "
			 "0x%02x at byte %zu), and lull runs nothing of what a pickle says",
			 op, p->off - 1);
}

static int containers(struct lull_pickle *p, u8 op, struct lull_err *err)
{
	switch (op) {
	case OP_MARK:
		*(u32 *)lull_vec_push(&p->marks) = (u32)p->stack.n;
		return 0;
	case OP_EMPTY_LIST:
	case OP_EMPTY_TUPLE:
		push(p, KIND_LIST, 0, 0);
		return 0;
	case OP_EMPTY_DICT:
		push(p, KIND_DICT, 0, 0);
		return 0;
	case OP_APPEND:
	case OP_APPENDS:
		return fill_below(p, KIND_LIST, op == OP_APPENDS, err);
	case OP_SETITEM:
	case OP_SETITEMS:
		return fill_below(p, KIND_DICT, op == OP_SETITEMS, err);
	case OP_TUPLE:
		return make_tuple(p, 0, true, err);
	case OP_TUPLE1:
	case OP_TUPLE2:
	case OP_TUPLE3:
		return make_tuple(p, (size_t)op - OP_TUPLE1 + 1, false, err);
	default:
		return refuse(p, op, err);
	}
}

static int step(struct lull_pickle *p, u8 op, struct lull_err *err)
{
	u64 skipped = 0;

	switch (op) {
	case OP_PROTO:
		return take(p, 1, &skipped, err);
	case OP_FRAME:
		return take(p, 8, &skipped, err);
	case OP_NONE:
		push(p, KIND_NONE, 0, 0);
		return 0;
	case OP_NEWTRUE:
	case OP_NEWFALSE:
		push(p, KIND_INT, 0, op == OP_NEWTRUE);
		return 0;
	case OP_BININT1:
		return take_int(p, 1, err);
	case OP_BININT2:
		return take_int(p, 2, err);
	case OP_BININT:
		return take_int(p, 4, err);
	case OP_LONG1:
	case OP_LONG4:
		return take_long(p, op == OP_LONG1 ? 1 : 4, err);
	case OP_BINFLOAT:
		push(p, KIND_FLOAT, 0, 0); /* nobody asks for one */
		return take(p, 8, &skipped, err);
	case OP_SHORT_BINUNICODE:
		return take_text(p, 1, err);
	case OP_BINUNICODE:
		return take_text(p, 4, err);
	case OP_BINUNICODE8:
		return take_text(p, 8, err);
	case OP_BINPUT:
		return remember(p, 1, err);
	case OP_LONG_BINPUT:
		return remember(p, 4, err);
	case OP_MEMOIZE:
		return remember(p, 0, err);
	case OP_BINGET:
		return recall(p, 1, err);
	case OP_LONG_BINGET:
		return recall(p, 4, err);
	default:
		return containers(p, op, err);
	}
}

int lull_pickle_parse(struct lull_pickle *p, const u8 *bytes, size_t n_bytes, struct lull_err *err)
{
	*p = (struct lull_pickle){ .bytes = bytes, .n_bytes = n_bytes };
	lull_vec_init(&p->values, sizeof(struct value));
	lull_vec_init(&p->parts, sizeof(struct part));
	lull_vec_init(&p->items, sizeof(u32));
	lull_vec_init(&p->stack, sizeof(u32));
	lull_vec_init(&p->marks, sizeof(u32));
	lull_map_init(&p->memo);
	if (n_bytes > LULL_PICKLE_MAX_BYTES)
		return lull_fail(err, LULL_E_UNSUPPORTED, "the pickle is larger than 2 GiB");
	while (p->off < n_bytes) {
		u8 op = bytes[p->off++];

		if (op == OP_STOP) {
			if (p->stack.n != 1 || p->marks.n)
				return damaged(p, err);
			p->root = *(const u32 *)p->stack.at;
			return 0;
		}
		if (step(p, op, err))
			return err->code;
	}
	return ended(p, err);
}

void lull_pickle_release(struct lull_pickle *p)
{
	lull_vec_release(&p->values);
	lull_vec_release(&p->parts);
	lull_vec_release(&p->items);
	lull_vec_release(&p->stack);
	lull_vec_release(&p->marks);
	lull_map_release(&p->memo);
}

/* ---- looking ---- */

struct lull_pickle_walk lull_pickle_walk(const struct lull_pickle *p, u32 list)
{
	const struct value *v = value_at(p, list);

	return (struct lull_pickle_walk){ .part = v && v->kind == KIND_LIST ? (u32)v->which : 0 };
}

u32 lull_pickle_next(const struct lull_pickle *p, struct lull_pickle_walk *walk)
{
	while (walk->part) {
		const struct part *part = &((const struct part *)p->parts.at)[walk->part - 1];

		if (walk->ix < part->n)
			return ((const u32 *)p->items.at)[part->first + walk->ix++];
		walk->part = part->next;
		walk->ix = 0;
	}
	return 0;
}

u32 lull_pickle_get(const struct lull_pickle *p, u32 dict, const char *key)
{
	const struct value *v = value_at(p, dict);
	struct lull_pickle_walk walk = { .part = v && v->kind == KIND_DICT ? (u32)v->which : 0 };
	u32 name, found = 0;

	/* The last one counts, as in Python. */
	for (int n = 0; n < MAX_KEYS && (name = lull_pickle_next(p, &walk)); n++) {
		u32 value = lull_pickle_next(p, &walk);

		if (lull_pickle_is(p, name, key))
			found = value;
	}
	return found;
}

i64 lull_pickle_int(const struct lull_pickle *p, u32 value, i64 otherwise)
{
	const struct value *v = value_at(p, value);

	return v && v->kind == KIND_INT ? (i64)v->which : otherwise;
}

const char *lull_pickle_text(const struct lull_pickle *p, u32 value, size_t *len)
{
	const struct value *v = value_at(p, value);

	*len = v && v->kind == KIND_TEXT ? v->n : 0;
	return *len ? (const char *)p->bytes + v->which : "";
}

bool lull_pickle_is(const struct lull_pickle *p, u32 value, const char *text)
{
	size_t len;
	const char *at = lull_pickle_text(p, value, &len);

	return len == strlen(text) && memcmp(at, text, len) == 0;
}
