#include "text/jcheck.h"

#include <string.h>

#include "text/utf8.h"

/* What is being read; `p` is the next character. */
struct check {
	const char *p, *end;
	const char *wrong; /* NULL: nothing yet */
	char open[LULL_JCHECK_DEPTH];
	size_t depth;
};

static char peek(struct check *c)
{
	while (c->p < c->end && (*c->p == ' ' || *c->p == '\t' || *c->p == '\n' || *c->p == '\r'))
		c->p++;
	return c->p < c->end ? *c->p : 0;
}

static bool fail(struct check *c, const char *wrong)
{
	if (!c->wrong)
		c->wrong = wrong;
	return false;
}

static bool is_hex(char ch)
{
	return (ch >= '0' && ch <= '9') || ((ch | 0x20) >= 'a' && (ch | 0x20) <= 'f');
}

/* After a backslash. */
static bool take_escape(struct check *c)
{
	if (c->p >= c->end)
		return fail(c, "the text ends in a string");
	if (*c->p != 'u') {
		if (!strchr("\"\\/bfnrt", *c->p) || !*c->p)
			return fail(c, "an escape that JSON does not have");
		c->p++;
		return true;
	}
	for (int i = 1; i <= 4; i++)
		if (c->p + i >= c->end || !is_hex(c->p[i]))
			return fail(c, "\\u has to be followed by four hexadecimal digits");
	c->p += 5;
	return true;
}

static bool take_string(struct check *c)
{
	if (peek(c) != '"')
		return fail(c, "a string in double quotes was expected");
	c->p++;
	while (c->p < c->end && *c->p != '"') {
		size_t n = lull_utf8_len((const u8 *)c->p, (size_t)(c->end - c->p));

		if ((u8)*c->p < 0x20)
			return fail(c, "a control character in a string");
		if (!n)
			return fail(c, "bytes that are not UTF-8");
		if (*c->p == '\\') {
			c->p++;
			if (!take_escape(c))
				return false;
			continue;
		}
		c->p += n;
	}
	if (c->p >= c->end)
		return fail(c, "the text ends in a string");
	c->p++;
	return true;
}

/* One digit or more. */
static bool take_digits(struct check *c)
{
	const char *from = c->p;

	while (c->p < c->end && *c->p >= '0' && *c->p <= '9')
		c->p++;
	return c->p > from || fail(c, "a digit was expected");
}

static bool take_number(struct check *c)
{
	if (*c->p == '-')
		c->p++;
	if (c->p < c->end && *c->p == '0')
		c->p++;
	else if (!take_digits(c))
		return false;
	if (c->p < c->end && *c->p == '.') {
		c->p++;
		if (!take_digits(c))
			return false;
	}
	if (c->p < c->end && (*c->p | 0x20) == 'e') {
		c->p++;
		if (c->p < c->end && (*c->p == '+' || *c->p == '-'))
			c->p++;
		return take_digits(c);
	}
	return true;
}

static bool take_word(struct check *c)
{
	static const char *const words[] = { "true", "false", "null" };

	for (size_t i = 0; i < LULL_COUNT_OF(words); i++) {
		size_t len = strlen(words[i]);

		if ((size_t)(c->end - c->p) >= len && memcmp(c->p, words[i], len) == 0) {
			c->p += len;
			return true;
		}
	}
	return fail(c, c->p < c->end ? "a value was expected" : "the text ends too early");
}

static bool take_key(struct check *c)
{
	if (!take_string(c))
		return false;
	if (peek(c) != ':')
		return fail(c, "a colon was expected after a key");
	c->p++;
	return true;
}

/* Open an object or array; *is_value: a value comes next, else its end was taken. */
static bool take_open(struct check *c, bool *is_value)
{
	char open = *c->p++, close = open == '{' ? '}' : ']';

	if (c->depth == LULL_JCHECK_DEPTH)
		return fail(c, "too many objects and arrays in each other");
	*is_value = peek(c) != close;
	if (!*is_value) {
		c->p++;
		return true;
	}
	c->open[c->depth++] = open;
	return open == '[' || take_key(c);
}

/* After a value: the ends of what it is in, up to a comma; *is_value: another one comes. */
static bool take_after(struct check *c, bool *is_value)
{
	while (c->depth) {
		bool is_object = c->open[c->depth - 1] == '{';
		char next = peek(c);

		if (next == ',') {
			c->p++;
			*is_value = true;
			return !is_object || take_key(c);
		}
		if (next != (is_object ? '}' : ']'))
			return fail(c, c->p < c->end ? "a comma or the end was expected"
						     : "the text ends too early");
		c->p++;
		c->depth--;
	}
	*is_value = false;
	return true;
}

static bool take_value(struct check *c, bool *is_inside)
{
	char first = peek(c);

	*is_inside = false;
	if (first == '{' || first == '[')
		return take_open(c, is_inside);
	if (first == '"')
		return take_string(c);
	if (first == '-' || (first >= '0' && first <= '9'))
		return take_number(c);
	return take_word(c);
}

const char *lull_jcheck(const char *text, size_t len, size_t *off)
{
	struct check c = { .p = text, .end = text + len };
	bool is_value = true, is_inside;

	while (is_value) {
		if (!take_value(&c, &is_inside))
			break;
		if (!is_inside && !take_after(&c, &is_value))
			break;
	}
	if (!c.wrong) {
		peek(&c);
		if (c.p < c.end)
			fail(&c, "something stands after the value");
	}
	*off = (size_t)(c.p - text);
	return c.wrong;
}
