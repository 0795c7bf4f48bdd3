#include "text/shorten.h"

#include <string.h>

#include "text/term.h"

#define ELLIPSIS "\xe2\x80\xa6"

static bool is_continuation(char c)
{
	return ((u8)c & 0xc0) == 0x80;
}

/* The byte at which character `n` begins. */
static size_t byte_of(const char *text, size_t n)
{
	size_t at = 0;

	for (; text[at]; at++) {
		if (!is_continuation(text[at]) && n-- == 0)
			break;
	}
	return at;
}

/* Append `head` columns of the beginning and `tail` of the end, with a mark in between. */
static void cut(struct lull_str *to, const char *text, size_t head, size_t tail)
{
	lull_str_add(to, text, byte_of(text, head));
	lull_str_puts(to, ELLIPSIS);
	lull_str_puts(to, text + byte_of(text, lull_term_columns(text) - tail));
}

void lull_shorten_end(struct lull_str *to, const char *text, size_t columns)
{
	if (lull_term_columns(text) <= columns)
		lull_str_puts(to, text);
	else if (columns)
		cut(to, text, columns - 1, 0);
}

void lull_shorten_middle(struct lull_str *to, const char *text, size_t columns)
{
	size_t tail = columns ? (columns - 1) / 3 : 0;

	if (lull_term_columns(text) <= columns)
		lull_str_puts(to, text);
	else if (columns)
		cut(to, text, columns - 1 - tail, tail);
}

/* ---- C++ names ---- */

/* How deep in brackets the next character is; "->", "operator<" and similar are not brackets. */
struct depth {
	int angle;
	int round;
};

static void step(struct depth *d, const char *name, size_t i)
{
	static const char operator_word[] = "operator";
	size_t len = sizeof(operator_word) - 1;
	bool is_arrow = name[i] == '>' && i && name[i - 1] == '-';
	bool is_operator = i >= len && !memcmp(name + i - len, operator_word, len);
	bool is_second = i > len && name[i] == name[i - 1] &&
			 !memcmp(name + i - len - 1, operator_word, len);

	if (name[i] == '(' || name[i] == ')')
		d->round += name[i] == '(' ? 1 : -1;
	if (is_arrow || is_operator || is_second)
		return;
	if (name[i] == '<')
		d->angle++;
	else if (name[i] == '>' && d->angle > 0)
		d->angle--;
}

/* Where the parameters begin, or the length: the last "(" that is inside of nothing. */
static size_t parameters_of(const char *name)
{
	struct depth d = { 0, 0 };
	size_t at = strlen(name);

	for (size_t i = 0; name[i]; i++) {
		if (name[i] == '(' && !d.angle && !d.round && i &&
		    strncmp(name + i, "(anonymous", strlen("(anonymous")) != 0)
			at = i;
		step(&d, name, i);
	}
	return at;
}

/* Where the name itself begins: after "void " and whatever else is returned. */
static size_t name_of(const char *name, size_t end)
{
	struct depth d = { 0, 0 };
	size_t at = 0;

	for (size_t i = 0; i < end; i++) {
		step(&d, name, i);
		if (name[i] == ' ' && !d.angle && !d.round &&
		    !(i >= 8 && !memcmp(name + i - 8, "operator", 8)))
			at = i + 1;
	}
	return at;
}

/* Append [from, end) with what is deeper in template arguments than `max_depth` left out. */
static void add_shallow(struct lull_str *to, const char *name, size_t from, size_t end,
			int max_depth)
{
	struct depth d = { 0, 0 };

	for (size_t i = from; i < end; i++) {
		int before = d.angle;

		step(&d, name, i);
		if (before <= max_depth || (d.angle <= max_depth && before > d.angle))
			lull_str_add(to, name + i, 1);
		if (before == max_depth && d.angle > max_depth)
			lull_str_puts(to, ELLIPSIS);
	}
}

/* The place after the next namespace that can be removed, or 0 if there is none. */
static size_t behind_namespace(const char *name)
{
	struct depth d = { 0, 0 };

	for (size_t i = 0; name[i]; i++) {
		step(&d, name, i);
		if (!d.angle && !d.round && name[i] == ':' && name[i + 1] == ':')
			return i + 2;
	}
	return 0;
}

/* As short as dropping namespaces makes it; "…::gemm<…>". */
static void drop_namespaces(struct lull_str *name, size_t columns)
{
	struct lull_str rest = LULL_STR_INIT;
	const char *at = name->at;
	size_t skip;

	while (lull_term_columns(at) + 3 > columns && (skip = behind_namespace(at)))
		at += skip;
	if (at != name->at) {
		lull_str_addf(&rest, ELLIPSIS "::%s", at);
		lull_str_clear(name);
		lull_str_puts(name, lull_str_text(&rest));
	}
	lull_str_release(&rest);
}

/* ---- Python ---- */

/* Whether it has frames as PyTorch writes them: "/srv/train.py(79): train; ...". */
static bool is_python(const char *text)
{
	return strstr(text, ".py(") != NULL;
}

/* Without the folders of files; then the end goes, since inner frames come first. */
static void shorten_python(struct lull_str *to, const char *text, size_t columns)
{
	struct lull_str name = LULL_STR_INIT;

	for (const char *p = text; *p;) {
		size_t len = strcspn(p, ";") + 1, path = strcspn(p, "("), from = 0;

		len = len < strlen(p) ? len : strlen(p);
		for (size_t i = 0; i < path && i < len; i++)
			from = p[i] == '/' ? i + 1 : from;
		if (from && p != text)
			lull_str_add(&name, " ", 1);
		lull_str_add(&name, p + from, len - from);
		p += len;
	}
	lull_shorten_end(to, lull_str_text(&name), columns);
	lull_str_release(&name);
}

/*
 * Of a line of a file, "/srv/train.py:79" or "/srv/train.py:79 train", what follows its folders;
 * NULL if it is none.
 */
static const char *line_of(const char *text)
{
	size_t len = strcspn(text, " "), digits = 0, from = 0;

	while (digits < len && text[len - 1 - digits] >= '0' && text[len - 1 - digits] <= '9')
		digits++;
	if (!digits || digits == len || text[len - 1 - digits] != ':')
		return NULL;
	for (size_t i = 0; i < len; i++)
		from = text[i] == '/' ? i + 1 : from;
	return from ? text + from : NULL;
}

/* How deep template arguments may be nested at first, and that is a lot. */
#define MAX_DEPTH 3

void lull_shorten_name(struct lull_str *to, const char *text, size_t columns)
{
	size_t end = parameters_of(text), from = name_of(text, end);
	bool is_cpp = text[end] == '(' || strchr(text, '<');
	const char *line = line_of(text);
	struct lull_str name = LULL_STR_INIT;

	/* The end of a path says more than its start, and the line more than the function. */
	if (lull_term_columns(text) > columns && line) {
		if (strchr(line, ' '))
			lull_shorten_end(to, line, columns);
		else
			lull_shorten_middle(to, line, columns);
		return;
	}
	if (lull_term_columns(text) <= columns || !is_cpp) {
		lull_shorten_middle(to, text, columns);
		return;
	}
	if (is_python(text)) {
		shorten_python(to, text, columns);
		return;
	}
	lull_str_puts(&name, text + from);
	for (int depth = MAX_DEPTH; depth >= 0 && lull_term_columns(name.at) > columns; depth--) {
		lull_str_clear(&name);
		add_shallow(&name, text, from, end, depth);
	}
	if (lull_term_columns(name.at) > columns)
		drop_namespaces(&name, columns);
	lull_shorten_middle(to, name.at, columns);
	lull_str_release(&name);
}
