#include "text/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text/utf8.h"

void lull_json_init(struct lull_json *j, FILE *to)
{
	*j = (struct lull_json){ .to = to };
}

static void new_line(struct lull_json *j)
{
	if (j->is_pretty)
		fprintf(j->to, "\n%*s", j->depth * 2, "");
}

/* What comes before any value or key: nothing after a key, else a comma if it is not the first. */
static void separate(struct lull_json *j)
{
	if (j->has_key) {
		j->has_key = false;
		return;
	}
	if (j->has_any[j->depth])
		fputc(',', j->to);
	j->has_any[j->depth] = true;
	if (j->depth)
		new_line(j);
}

static void begin(struct lull_json *j, char open, char close)
{
	assert(j->depth < LULL_JSON_DEPTH);
	separate(j);
	fputc(open, j->to);
	j->close[j->depth++] = close;
	j->has_any[j->depth] = false;
}

void lull_json_object(struct lull_json *j)
{
	begin(j, '{', '}');
}

void lull_json_array(struct lull_json *j)
{
	begin(j, '[', ']');
}

void lull_json_end(struct lull_json *j)
{
	bool had_any = j->has_any[j->depth];

	assert(j->depth > 0);
	j->depth--;
	if (had_any)
		new_line(j);
	fputc(j->close[j->depth], j->to);
	if (j->is_pretty && !j->depth)
		fputc('\n', j->to);
}

/*
 * One ASCII character that may need an escape. U+2028 and such need none outside of JavaScript
 * source.
 */
static void put_ascii(FILE *to, u8 c)
{
	static const char from[] = "\"\\\n\r\t\b\f", as[] = "\"\\nrtbf";
	const char *at = c ? strchr(from, c) : NULL;

	if (at)
		fprintf(to, "\\%c", as[at - from]);
	else if (c < 0x20 || c == 0x7f)
		fprintf(to, "\\u%04x", c);
	else
		fputc(c, to);
}

static void put_string(FILE *to, const char *text, size_t len)
{
	const u8 *s = (const u8 *)text;

	fputc('"', to);
	for (size_t i = 0; i < len;) {
		size_t n = lull_utf8_len(s + i, len - i);

		if (n == 1)
			put_ascii(to, s[i]);
		else if (n)
			fwrite(s + i, 1, n, to);
		else
			fputs("\\ufffd", to);
		i += n ? n : 1;
	}
	fputc('"', to);
}

void lull_json_key(struct lull_json *j, const char *key)
{
	assert(j->depth > 0 && j->close[j->depth - 1] == '}' && !j->has_key);
	separate(j);
	put_string(j->to, key, strlen(key));
	fputs(j->is_pretty ? ": " : ":", j->to);
	j->has_key = true;
}

void lull_json_bytes(struct lull_json *j, const char *text, size_t len)
{
	separate(j);
	put_string(j->to, text, len);
}

void lull_json_text(struct lull_json *j, const char *text)
{
	if (text)
		lull_json_bytes(j, text, strlen(text));
	else
		lull_json_null(j);
}

void lull_json_u64(struct lull_json *j, u64 v)
{
	separate(j);
	fprintf(j->to, "%" PRIu64, v);
}

void lull_json_i64(struct lull_json *j, i64 v)
{
	separate(j);
	fprintf(j->to, "%" PRId64, v);
}

void lull_json_f64(struct lull_json *j, f64 v)
{
	char text[32];

	if (!isfinite(v)) {
		lull_json_null(j);
		return;
	}
	/* 15 digits are enough for most numbers and look better; 17 are enough for all. */
	snprintf(text, sizeof(text), "%.15g", v);
	if (strtod(text, NULL) != v)
		snprintf(text, sizeof(text), "%.17g", v);
	separate(j);
	fputs(text, j->to);
}

void lull_json_fixed(struct lull_json *j, f64 v, int decimals)
{
	if (!isfinite(v)) {
		lull_json_null(j);
		return;
	}
	separate(j);
	fprintf(j->to, "%.*f", decimals, v);
}

void lull_json_bool(struct lull_json *j, bool v)
{
	separate(j);
	fputs(v ? "true" : "false", j->to);
}

void lull_json_null(struct lull_json *j)
{
	separate(j);
	fputs("null", j->to);
}

void lull_json_raw(struct lull_json *j, const char *text, size_t len)
{
	separate(j);
	fwrite(text, 1, len, j->to);
}
