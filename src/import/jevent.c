#include "import/jevent.h"

#include <string.h>

#include "text/jscan_find.h"

enum arg_kind { KIND_INT, KIND_TEXT, KIND_NONE };

static const struct {
	const char *text;
	u8 len;
	u8 kind;
} known[] = {
#define ARG(name, kind, text) { text, sizeof(text) - 1, KIND_##kind },
#include "import/args.def"
#undef ARG
};

_Static_assert(LULL_N_ARGS < 200, "make the table of names larger");

/* ---- names of arguments ---- */

/*
 * Names are told apart by their length and 16 bytes, the first eight and the last eight: that is
 * all of most names, and for longer ones enough to know which one it may be. Eight bytes from `at`
 * on can be read, whatever its length.
 */
static inline struct lull_jevent_slot slot_of(const char *at, size_t len)
{
	struct lull_jevent_slot s = { .len = (u32)len };

	memcpy(&s.head, at, 8);
	if (len >= 8) {
		memcpy(&s.tail, at + len - 8, 8);
	} else {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
		s.head &= (1ULL << (8 * len)) - 1;
#else
		s.head &= ~(UINT64_MAX >> (8 * len));
#endif
	}
	return s;
}

static inline u8 place_of(const struct lull_jevent_slot *s)
{
	return (u8)((s->head * 0x9e3779b97f4a7c15ULL ^ s->tail * 0xc2b2ae3d27d4eb4fULL) >> 56) +
	       (u8)s->len;
}

void lull_jevent_names_init(struct lull_jevent_names *names)
{
	memset(names, 0, sizeof(*names));
	names->n_pieces = 1;
	for (unsigned i = 0; i < LULL_N_ARGS; i++) {
		char padded[64] = "";
		struct lull_jevent_slot slot;
		u8 place;

		memcpy(padded, known[i].text, known[i].len);
		slot = slot_of(padded, known[i].len);
		for (place = place_of(&slot); names->slots[place].arg; place++)
			;
		names->slots[place] = slot;
		names->slots[place].arg = i + 1;
	}
}

/* The number of the argument of this name, or -1. */
static inline int find(const struct lull_jevent_names *names, const struct lull_jtext *key)
{
	struct lull_jevent_slot slot = slot_of(key->at, key->len);
	u8 place;

	for (place = place_of(&slot); names->slots[place].arg; place++) {
		const struct lull_jevent_slot *s = &names->slots[place];
		u32 arg = s->arg - 1;

		if (s->head != slot.head || s->tail != slot.tail || s->len != slot.len)
			continue;
		if (s->len <= 16 || !memcmp(known[arg].text, key->at, key->len))
			return (int)arg;
	}
	return -1;
}

/* ---- values ---- */

static bool is_end_of_number(char c)
{
	return c == ',' || c == '}' || c == ']' || c == '\n' || c == ' ' || c == '\r';
}

/* The whole number at j->p, if it is nothing more complicated. */
static inline bool take_plain_int(struct lull_jscan *j, i64 *value)
{
	const char *p = j->p;
	bool is_negative = *p == '-';
	u64 v = 0;

	p += is_negative;
	if ((u8)(*p - '0') > 9)
		return false;
	for (; (u8)(*p - '0') <= 9; p++)
		v = v * 10 + (u64)(*p - '0');
	if (!is_end_of_number(*p))
		return false;
	*value = is_negative ? (i64)(0 - v) : (i64)v;
	j->p = p;
	return true;
}

/* The number at j->p times 1000, if it has at most three decimals and a reasonable size. */
static inline bool take_plain_milli(struct lull_jscan *j, i64 *value)
{
	enum { MAX_DIGITS = 16 };
	const char *p = j->p;
	u64 v = 0;
	int n_decimals = 0;

	for (; (u8)(*p - '0') <= 9; p++)
		v = v * 10 + (u64)(*p - '0');
	if (p == j->p || p - j->p > MAX_DIGITS)
		return false;
	if (*p == '.')
		for (p++; (u8)(*p - '0') <= 9 && n_decimals < 3; p++, n_decimals++)
			v = v * 10 + (u64)(*p - '0');
	if (!is_end_of_number(*p))
		return false;
	for (; n_decimals < 3; n_decimals++)
		v *= 10;
	*value = (i64)v;
	j->p = p;
	return true;
}

static enum lull_jscan_result take_milli(struct lull_jscan *j, bool *has, i64 *value)
{
	enum lull_jscan_result got;
	struct lull_jtext text;
	char first;

	*has = take_plain_milli(j, value);
	if (*has)
		return LULL_JSCAN_OK;
	got = lull_jscan_take_value(j, &text, &first);
	if (!got)
		*has = lull_jtext_milli(&text, value);
	return got;
}

static enum lull_jscan_result take_ref(struct lull_jscan *j, struct lull_jevent_ref *ref)
{
	enum lull_jscan_result got;
	struct lull_jtext text;
	char first;

	ref->text.at = NULL;
	if (take_plain_int(j, &ref->number))
		return LULL_JSCAN_OK;
	got = lull_jscan_take_value(j, &text, &first);
	if (got)
		return got;
	/* "12" is a number, "12a" is not. */
	for (size_t i = 0; i < text.len; i++)
		if ((text.at[i] < '0' || text.at[i] > '9') && text.at[i] != '-')
			ref->text = text;
	if (ref->text.at || !lull_jtext_i64(&text, &ref->number)) {
		ref->number = 0;
		ref->text = text;
	}
	return LULL_JSCAN_OK;
}

static inline enum lull_jscan_result take_arg(struct lull_jscan *j, struct lull_jevent *e, int ix)
{
	enum lull_jscan_result got = LULL_JSCAN_OK;
	struct lull_jtext value;
	i64 ignored;
	char first;

	switch ((enum arg_kind)known[ix].kind) {
	case KIND_INT:
		if (take_plain_int(j, &e->arg[ix].i))
			break;
		got = lull_jscan_take_value(j, &value, &first);
		if (got || !lull_jtext_i64(&value, &e->arg[ix].i))
			return got;
		break;
	case KIND_TEXT:
		got = lull_jscan_take_value(j, &e->arg[ix].text, &first);
		if (got || first == 'n') /* null */
			return got;
		break;
	case KIND_NONE:
		if (!take_plain_int(j, &ignored))
			got = lull_jscan_take_value(j, &value, &first);
		return got;
	}
	e->seen[ix / 64] |= 1ULL << (ix % 64);
	return LULL_JSCAN_OK;
}

/* ---- pieces between values ---- */

/* What a piece means: a number of args.def, or one of these. */
enum {
	END = -1, /* the brace that closes the arguments, or the event */
	UNKNOWN = -2,
	ARGS = -3,
	FIELD_PH = -10,
	FIELD_TS = -11,
	FIELD_DUR = -12,
	FIELD_CATEGORY = -13,
	FIELD_NAME = -14,
	FIELD_PID = -15,
	FIELD_TID = -16,
	FIELD_ID = -17,
};

static int field_of(const struct lull_jtext *key)
{
	static const struct {
		const char *name;
		int what;
	} fields[] = { { "args", ARGS },	  { "ph", FIELD_PH },	{ "ts", FIELD_TS },
		       { "dur", FIELD_DUR },	  { "pid", FIELD_PID }, { "tid", FIELD_TID },
		       { "cat", FIELD_CATEGORY }, { "id", FIELD_ID },	{ "name", FIELD_NAME },
		       { "id2", FIELD_ID } };

	for (size_t i = 0; i < LULL_COUNT_OF(fields); i++)
		if (lull_jtext_is(key, fields[i].name))
			return fields[i].what;
	return UNKNOWN;
}

/* Set the text of a piece. */
static void fill_piece(struct lull_jevent_piece *piece, const char *text, size_t len)
{
	piece->len = (u16)len;
	memcpy(piece->text, text, len);
	memcpy(&piece->head, piece->text, 8);
	piece->head_mask = UINT64_MAX;
	if (len < 8)
		memset((char *)&piece->head_mask + len, 0, 8 - len);
	else
		memcpy(&piece->tail, piece->text + len - 8, 8);
}

static inline bool is_piece(const char *p, const struct lull_jevent_piece *piece)
{
	u64 word;

	memcpy(&word, p, 8);
	if ((word ^ piece->head) & piece->head_mask)
		return false;
	if (piece->len <= 8)
		return true;
	memcpy(&word, p + piece->len - 8, 8);
	return word == piece->tail &&
	       (piece->len <= 16 || !memcmp(p + 8, piece->text + 8, piece->len - 16u));
}

/* Where pieces like this one are looked for. A piece means one thing in arguments, and another out
 * of them. */
static u16 *place_of_piece(struct lull_jevent_names *names, const struct lull_jevent_piece *piece,
			   bool is_args)
{
	u64 hash = (piece->head ^ piece->tail * 31 ^ piece->len) * 0x9e3779b97f4a7c15ULL;

	return &names->places[((hash >> 55) << 1 | is_args) % LULL_COUNT_OF(names->places)];
}

/* Remember that `text` followed the piece `prev`; its index, or that of `prev` if it cannot be. */
static u16 learn(struct lull_jevent_names *names, u16 prev, const struct lull_jevent_piece *met,
		 bool is_args)
{
	u16 *place = place_of_piece(names, met, is_args), ix = 0;
	u16 *next = names->pieces[prev].next;

	if (*place && names->pieces[*place - 1].len == met->len &&
	    !memcmp(names->pieces[*place - 1].text, met->text, met->len))
		ix = *place - 1;
	if (!ix && names->n_pieces < LULL_COUNT_OF(names->pieces)) {
		ix = names->n_pieces++;
		names->pieces[ix] = *met;
		*place = ix + 1;
	}
	if (ix) {
		memmove(next + 1, next, (LULL_JEVENT_WAYS - 1) * sizeof(*next));
		next[0] = ix + 1;
	}
	return ix;
}

/*
 * Take apart what is at j->p: blanks, a comma, a key, a colon; or a brace. *met is filled, *prev
 * becomes its index, 0 if it was not kept.
 */
static enum lull_jscan_result take_apart(struct lull_jscan *j, struct lull_jevent_names *names,
					 bool is_args, u16 *prev, struct lull_jevent_piece *met)
{
	const char *begin = j->p;
	struct lull_jtext key;
	enum lull_jscan_result got = lull_jscan_take_pair(j, &key);

	if (got && got != LULL_JSCAN_END)
		return got;
	*met = (struct lull_jevent_piece){ .what = END };
	if (!got) {
		if (is_args)
			met->what = (int16_t)find(names, &key);
		else
			met->what = (int16_t)field_of(&key);
		if (met->what == -1)
			met->what = UNKNOWN;
		if (key.len > UINT16_MAX)
			return LULL_JSCAN_BAD;
		met->key_off = (u16)(key.at - begin);
		met->key_len = (u16)key.len;
	}
	if (j->p - begin > LULL_JEVENT_PIECE || j->p == j->end) {
		*prev = 0;
		return LULL_JSCAN_OK;
	}
	fill_piece(met, begin, (size_t)(j->p - begin));
	*prev = learn(names, *prev, met, is_args);
	return LULL_JSCAN_OK;
}

/* The next piece at j->p: guessed, or else taken apart. */
static inline enum lull_jscan_result next_piece(struct lull_jscan *j,
						struct lull_jevent_names *names, bool is_args,
						u16 *prev, struct lull_jevent_piece *met)
{
	const u16 *next = names->pieces[*prev].next;

	for (int way = 0; way < LULL_JEVENT_WAYS && next[way]; way++) {
		const struct lull_jevent_piece *piece = &names->pieces[next[way] - 1];

		if (!is_piece(j->p, piece))
			continue;
		met->what = piece->what;
		met->key_off = piece->key_off;
		met->key_len = piece->key_len;
		*prev = next[way] - 1;
		j->p += piece->len;
		return LULL_JSCAN_OK;
	}
	return take_apart(j, names, is_args, prev, met);
}

/* ---- events ---- */

/* Categories are a few words; they are guessed like the pieces between values. */
static enum lull_jscan_result take_category(struct lull_jscan *j, struct lull_jevent_names *names,
					    struct lull_jtext *category)
{
	const struct lull_jevent_piece *words = names->words;
	const char *begin = j->p;
	enum lull_jscan_result got;
	char first;

	for (u32 i = 0; i < names->n_words; i++) {
		if (!is_piece(begin, &words[i]))
			continue;
		*category = (struct lull_jtext){ begin + 1, words[i].len - 2u, false };
		j->p = begin + words[i].len;
		return LULL_JSCAN_OK;
	}
	got = lull_jscan_take_value(j, category, &first);
	if (!got && first == '"' && !category->has_escapes &&
	    category->len + 2 <= LULL_JEVENT_PIECE && names->n_words < LULL_COUNT_OF(names->words))
		fill_piece(&names->words[names->n_words++], begin, category->len + 2);
	return got;
}

static enum lull_jscan_result take_field(struct lull_jscan *j, struct lull_jevent_names *names,
					 struct lull_jevent *e, int what)
{
	enum lull_jscan_result got;
	struct lull_jtext value;
	char first;

	switch (what) {
	case FIELD_PH:
		if (j->p[0] == '"' && j->p[1] && j->p[2] == '"') {
			e->ph = j->p[1];
			j->p += 3;
			return LULL_JSCAN_OK;
		}
		got = lull_jscan_take_value(j, &value, &first);
		if (!got)
			e->ph = value.len ? value.at[0] : 0;
		return got;
	case FIELD_TS:
		return take_milli(j, &e->has_ts, &e->ts_ns);
	case FIELD_DUR:
		return take_milli(j, &e->has_dur, &e->dur_ns);
	case FIELD_CATEGORY:
		return take_category(j, names, &e->category);
	case FIELD_NAME:
		return lull_jscan_take_value(j, &e->name, &first);
	case FIELD_PID:
		return take_ref(j, &e->pid);
	case FIELD_TID:
		return take_ref(j, &e->tid);
	case FIELD_ID:
		return lull_jscan_take_value(j, &e->id, &first);
	default:
		return lull_jscan_take_value(j, &value, &first);
	}
}

static enum lull_jscan_result take_unknown(struct lull_jscan *j, struct lull_jevent *e,
					   const char *key, size_t len)
{
	struct lull_jtext value;
	char first;

	if (e->n_unknown < LULL_JEVENT_UNKNOWN)
		e->unknown[e->n_unknown] = (struct lull_jtext){ key, len, false };
	e->n_unknown++;
	return lull_jscan_take_value(j, &value, &first);
}

enum lull_jscan_result lull_jevent_take(struct lull_jscan *j, struct lull_jevent_names *names,
					struct lull_jevent *e)
{
	enum lull_jscan_result got;
	struct lull_jevent_piece met;
	bool is_args = false;
	u16 prev = 0;

	memset(e, 0, offsetof(struct lull_jevent, arg));
	e->name.at = e->category.at = e->id.at = "";
	e->n_unknown = 0;
	j->p++;
	for (;;) {
		const char *begin = j->p;

		got = next_piece(j, names, is_args, &prev, &met);
		if (got)
			return got;
		if (met.what >= 0) {
			got = take_arg(j, e, met.what);
		} else if (met.what == END && !is_args) {
			return LULL_JSCAN_OK;
		} else if (met.what == END) {
			e->args.len = (size_t)(j->p - e->args.at);
			is_args = false;
		} else if (met.what == ARGS && *j->p == '{') {
			e->args.at = j->p++;
			is_args = true;
		} else if (met.what == UNKNOWN && is_args) {
			got = take_unknown(j, e, begin + met.key_off, met.key_len);
		} else {
			got = take_field(j, names, e, met.what);
		}
		if (got)
			return got;
	}
}
