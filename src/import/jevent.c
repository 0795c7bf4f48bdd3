#include "import/jevent.h"

#include <string.h>

#include "base/jscan_find.h"

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

/* Place of a name in a table of 256. */
static inline u8 slot_of(const char *at, size_t len)
{
	return (u8)(len * 7 + (u8)at[0] * 31u + (u8)at[len / 2] * 3u + (u8)at[len - 1] * 17u);
}

void lull_jevent_names_init(struct lull_jevent_names *names)
{
	memset(names, 0, sizeof(*names));
	for (unsigned i = 0; i < LULL_N_ARGS; i++) {
		u8 slot = slot_of(known[i].text, known[i].len);

		while (names->slots[slot])
			slot++;
		names->slots[slot] = (u8)(i + 1);
	}
}

/* The number of the argument of this name, or -1. */
static inline int find(const struct lull_jevent_names *names, const struct lull_jtext *key)
{
	u8 slot;

	if (!key->len)
		return -1;
	for (slot = slot_of(key->at, key->len); names->slots[slot]; slot++) {
		unsigned i = names->slots[slot] - 1u;

		if (known[i].len == key->len && !memcmp(known[i].text, key->at, key->len))
			return (int)i;
	}
	return -1;
}

static inline void take_arg(struct lull_jevent *e, const struct lull_jevent_names *names,
			    const struct lull_jtext *key, const struct lull_jtext *value,
			    char first)
{
	int ix = find(names, key);

	if (ix < 0) {
		if (e->n_unknown < LULL_JEVENT_UNKNOWN)
			e->unknown[e->n_unknown] = *key;
		e->n_unknown++;
		return;
	}
	if (known[ix].kind == KIND_NONE)
		return;
	if (known[ix].kind == KIND_INT) {
		if (!lull_jtext_i64(value, &e->arg[ix].i))
			return;
	} else if (first == 'n') {
		return; /* null */
	} else {
		e->arg[ix].text = *value;
	}
	e->seen[ix / 64] |= 1ULL << (ix % 64);
}

static void take_ref(struct lull_jevent_ref *ref, const struct lull_jtext *value, char first)
{
	ref->text.at = NULL;
	if (!lull_jtext_i64(value, &ref->number)) {
		ref->number = 0;
		ref->text = *value;
	} else if (first == '"') {
		/* "12" is a number, "12a" is not. */
		for (size_t i = 0; i < value->len; i++)
			if ((value->at[i] < '0' || value->at[i] > '9') && value->at[i] != '-')
				ref->text = *value;
	}
}

static inline void take_field(struct lull_jevent *e, const struct lull_jtext *key,
			      const struct lull_jtext *value, char first)
{
	static const char ph[] = "ph", ts[] = "ts", id[] = "id", pid[] = "pid", tid[] = "tid",
			  cat[] = "cat", dur[] = "dur", name[] = "name";

	switch (key->len) {
	case 2:
		if (!memcmp(key->at, ph, 2))
			e->ph = value->len ? value->at[0] : 0;
		else if (!memcmp(key->at, ts, 2))
			e->has_ts = lull_jtext_milli(value, &e->ts_ns);
		else if (!memcmp(key->at, id, 2))
			e->id = *value;
		break;
	case 3:
		if (!memcmp(key->at, pid, 3))
			take_ref(&e->pid, value, first);
		else if (!memcmp(key->at, tid, 3))
			take_ref(&e->tid, value, first);
		else if (!memcmp(key->at, cat, 3))
			e->category = *value;
		else if (!memcmp(key->at, dur, 3))
			e->has_dur = lull_jtext_milli(value, &e->dur_ns);
		else if (!memcmp(key->at, "id2", 3))
			e->id = *value;
		break;
	case 4:
		if (!memcmp(key->at, name, 4))
			e->name = *value;
		break;
	default:
		break;
	}
}

static enum lull_jscan_result take_args(struct lull_jscan *j, const struct lull_jevent_names *names,
					struct lull_jevent *e)
{
	enum lull_jscan_result got;
	struct lull_jtext key, value;
	char first;

	e->args.at = j->p++;
	while ((got = lull_jscan_take_pair(j, &key)) == LULL_JSCAN_OK) {
		got = lull_jscan_take_value(j, &value, &first);
		if (got)
			return got;
		take_arg(e, names, &key, &value, first);
	}
	if (got != LULL_JSCAN_END)
		return got;
	e->args.len = (size_t)(j->p - e->args.at);
	return LULL_JSCAN_OK;
}

enum lull_jscan_result lull_jevent_take(struct lull_jscan *j, const struct lull_jevent_names *names,
				       struct lull_jevent *e)
{
	enum lull_jscan_result got;
	struct lull_jtext key, value;
	char first;

	memset(e, 0, offsetof(struct lull_jevent, arg));
	e->n_unknown = 0;
	j->p++;
	while ((got = lull_jscan_take_pair(j, &key)) == LULL_JSCAN_OK) {
		if (key.len == 4 && *j->p == '{' && !memcmp(key.at, "args", 4)) {
			got = take_args(j, names, e);
		} else {
			got = lull_jscan_take_value(j, &value, &first);
			if (!got)
				take_field(e, &key, &value, first);
		}
		if (got)
			return got;
	}
	return got == LULL_JSCAN_END ? LULL_JSCAN_OK : got;
}
