#include "text/op_name.h"

#include <string.h>

/* What emit_nvtx() of some version writes after the name, in this order, and its key. */
static const struct part {
	const char *text;
	const char *key;
	bool is_list; /* up to the next part; else one number */
} parts[] = {
	{ ", stashed seq=", "stashed_seq", false },
	{ ", seq = ", "seq", false },
	{ ", op_id = ", "op_id", false },
	{ ", sizes = ", "sizes", true },
	{ ", input_op_ids = ", "input_op_ids", true },
};
#define N_PARTS (sizeof(parts) / sizeof(parts[0]))

struct text {
	const char *at, *end;
};

static bool starts(const struct text *t, const struct part *part)
{
	size_t len = strlen(part->text);

	return (size_t)(t->end - t->at) > len && !memcmp(t->at, part->text, len);
}

/* The value at t->at, which is moved to its end; NULL if it is none. */
static const char *take_number(struct text *t)
{
	const char *value = t->at;

	t->at += t->at < t->end && *t->at == '-';
	if (t->at == t->end || *t->at < '0' || *t->at > '9')
		return NULL;
	while (t->at < t->end && *t->at >= '0' && *t->at <= '9')
		t->at++;
	return value;
}

/* Numbers in brackets, which may be nested. */
static const char *take_list(struct text *t)
{
	const char *value = t->at;
	int depth = 0;

	for (; t->at < t->end; t->at++) {
		if (!strchr("[](){}-0123456789, ", *t->at) || !*t->at)
			return NULL;
		depth += *t->at == '[';
		depth -= *t->at == ']';
		if (!depth)
			break;
	}
	if (t->at == t->end || t->at == value)
		return NULL;
	t->at++;
	return value;
}

/* All parts from t->at to the end of the text. */
static bool take_parts(struct text t, struct lull_str *json)
{
	size_t n = 0;

	for (size_t i = 0; i < N_PARTS; i++) {
		const char *value;

		if (!starts(&t, &parts[i]))
			continue;
		t.at += strlen(parts[i].text);
		value = parts[i].is_list ? take_list(&t) : take_number(&t);
		if (!value)
			return false;
		if (json) {
			const char *quote = parts[i].is_list ? "\"" : "";

			lull_str_addf(json, "%s\"%s\":%s%.*s%s", n ? "," : "{", parts[i].key, quote,
				      (int)(t.at - value), value, quote);
		}
		n++;
	}
	if (json)
		lull_str_puts(json, "}");
	return n && t.at == t.end;
}

bool lull_op_name_split(const char *text, size_t len, size_t *name_len, struct lull_str *json)
{
	struct text t = { text, text + len };

	for (; t.at < t.end; t.at++) {
		/* Nearly all names have none: look for what all parts begin with. */
		t.at = memchr(t.at, ',', (size_t)(t.end - t.at));
		if (!t.at)
			return false;
		if (t.at == text || !take_parts(t, NULL))
			continue;
		*name_len = (size_t)(t.at - text);
		if (json)
			take_parts(t, json);
		return true;
	}
	return false;
}
