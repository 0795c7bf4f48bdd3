/*
 * demangle_rust - a recursive reader of the grammar in RFC 2603: a letter says what comes next.
 *
 *	path	C crate | N namespace path name | M impl type | X impl type path | Y type path |
 *		I path arguments E | B reference to an earlier place
 *	type	a letter of a basic type | A S T R Q P O F D of others | a path
 *	name	[s number _] [u] length [_] bytes
 *
 * Lifetimes, values of constants and crates' hashes are left out: they say nothing to the reader.
 */
#include "symbol/demangle_rust.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/types.h"

/* References may make a short name refer to itself, or grow without end. */
#define MAX_DEPTH 64
#define MAX_BYTES 4096

struct rust {
	const char *name; /* after "_R" */
	size_t len, at;
	struct lull_str out;
	u32 depth;
	bool is_silent; /* what is read is not shown */
	bool is_bad;
};

static void read_path(struct rust *r);
static void read_type(struct rust *r);

static char peek(const struct rust *r)
{
	return r->at < r->len ? r->name[r->at] : '\0';
}

static bool take(struct rust *r, char c)
{
	bool is_here = peek(r) == c && c;

	r->at += is_here;
	return is_here;
}

static void show(struct rust *r, const char *text, size_t len)
{
	if (r->is_silent || r->is_bad)
		return;
	if (r->out.len + len > MAX_BYTES)
		r->is_bad = true;
	else
		lull_str_add(&r->out, text, len);
}

static void show_word(struct rust *r, const char *text)
{
	show(r, text, strlen(text));
}

/* A number in base 62 that ends with "_": "_" is 0, "0_" is 1. Hashes of crates fill a u64. */
static u64 read_base62(struct rust *r)
{
	u64 n = 0;
	bool has_any = false;

	for (; !take(r, '_'); has_any = true) {
		char c = peek(r);

		if (!isalnum((unsigned char)c)) {
			r->is_bad = true;
			return 0;
		}
		n = n * 62 + (u64)(isdigit((unsigned char)c)   ? c - '0'
				   : islower((unsigned char)c) ? c - 'a' + 10
							       : c - 'A' + 36);
		r->at++;
	}
	return has_any ? n + 1 : 0;
}

/* What "s" or another letter puts before a number; 0 if it is not there. */
static u64 read_tagged(struct rust *r, char tag)
{
	return take(r, tag) ? read_base62(r) + 1 : 0;
}

/* A name; `number` receives what tells it from others of the same name. */
static void read_name(struct rust *r, const char **text, size_t *len, u64 *number)
{
	*number = read_tagged(r, 's');
	*len = 0;
	take(r, 'u'); /* Punycode is shown as it is */
	if (!isdigit((unsigned char)peek(r)))
		r->is_bad = true;
	if (!take(r, '0'))
		while (isdigit((unsigned char)peek(r)) && *len <= r->len)
			*len = *len * 10 + (size_t)(r->name[r->at++] - '0');
	take(r, '_');
	*text = r->name + r->at;
	if (*len > r->len - r->at)
		r->is_bad = true;
	else
		r->at += *len;
}

/* Read what an earlier place holds, and come back. */
static void follow(struct rust *r, void (*read)(struct rust *r))
{
	size_t start = r->at - 1;
	u64 to = read_base62(r);
	size_t back = r->at;

	if (to >= start)
		r->is_bad = true;
	if (r->is_bad || r->is_silent)
		return;
	r->at = (size_t)to;
	read(r);
	r->at = back;
}

/* ---- types ---- */

static const char *basic_type(char letter)
{
	static const char *const names['z' - 'a' + 1] = {
		['a' - 'a'] = "i8",   ['b' - 'a'] = "bool",  ['c' - 'a'] = "char",
		['d' - 'a'] = "f64",  ['e' - 'a'] = "str",   ['f' - 'a'] = "f32",
		['h' - 'a'] = "u8",   ['i' - 'a'] = "isize", ['j' - 'a'] = "usize",
		['l' - 'a'] = "i32",  ['m' - 'a'] = "u32",   ['n' - 'a'] = "i128",
		['o' - 'a'] = "u128", ['p' - 'a'] = "_",     ['s' - 'a'] = "i16",
		['t' - 'a'] = "u16",  ['u' - 'a'] = "()",    ['v' - 'a'] = "...",
		['x' - 'a'] = "i64",  ['y' - 'a'] = "u64",   ['z' - 'a'] = "!",
	};

	return letter >= 'a' && letter <= 'z' ? names[letter - 'a'] : NULL;
}

/* A constant: its type, and digits up to "_". */
static void read_const(struct rust *r)
{
	if (take(r, 'B')) {
		r->is_bad |= r->depth == MAX_DEPTH;
		r->depth++;
		follow(r, read_const);
		r->depth--;
		return;
	}
	show_word(r, "_");
	if (take(r, 'p'))
		return;
	if (!basic_type(peek(r)))
		r->is_bad = true;
	r->at++;
	take(r, 'n');
	while (isxdigit((unsigned char)peek(r)))
		r->at++;
	r->is_bad |= !take(r, '_');
}

/* What is read until "E", with something between. */
static void read_list(struct rust *r, void (*read)(struct rust *r), const char *between)
{
	for (u32 n = 0; !r->is_bad && !take(r, 'E'); n++) {
		show_word(r, n ? between : "");
		read(r);
	}
}

static void read_argument(struct rust *r)
{
	if (take(r, 'L')) {
		read_base62(r);
		show_word(r, "'_");
	} else if (take(r, 'K')) {
		read_const(r);
	} else {
		read_type(r);
	}
}

static void read_function_type(struct rust *r)
{
	read_tagged(r, 'G');
	show_word(r, take(r, 'U') ? "unsafe fn(" : "fn(");
	if (take(r, 'K') && !take(r, 'C')) {
		const char *text;
		size_t len;
		u64 number;

		read_name(r, &text, &len, &number);
	}
	read_list(r, read_type, ", ");
	show_word(r, ")");
	if (take(r, 'u'))
		return;
	show_word(r, " -> ");
	read_type(r);
}

/* A trait of "dyn", and what it says its types are. */
static void read_trait(struct rust *r)
{
	const char *text;
	size_t len;
	u64 number;

	read_path(r);
	while (!r->is_bad && take(r, 'p')) {
		bool was_silent = r->is_silent;

		r->is_silent = true;
		read_name(r, &text, &len, &number);
		read_type(r);
		r->is_silent = was_silent;
	}
}

static void read_reference(struct rust *r, const char *word)
{
	show_word(r, word);
	read_tagged(r, 'L');
	read_type(r);
}

static void read_other_type(struct rust *r)
{
	switch (peek(r)) {
	case 'A':
	case 'S': {
		bool has_size = r->name[r->at++] == 'A';

		show_word(r, "[");
		read_type(r);
		show_word(r, has_size ? "; " : "");
		if (has_size)
			read_const(r);
		show_word(r, "]");
		return;
	}
	case 'T':
		r->at++;
		show_word(r, "(");
		read_list(r, read_type, ", ");
		show_word(r, ")");
		return;
	case 'R':
	case 'Q':
		read_reference(r, r->name[r->at++] == 'R' ? "&" : "&mut ");
		return;
	case 'P':
	case 'O':
		show_word(r, r->name[r->at++] == 'P' ? "*const " : "*mut ");
		read_type(r);
		return;
	case 'F':
		r->at++;
		read_function_type(r);
		return;
	case 'D':
		r->at++;
		show_word(r, "dyn ");
		read_tagged(r, 'G');
		read_list(r, read_trait, " + ");
		read_tagged(r, 'L');
		return;
	case 'B':
		r->at++;
		follow(r, read_type);
		return;
	default:
		read_path(r);
	}
}

static void read_type(struct rust *r)
{
	const char *basic = basic_type(peek(r));

	r->is_bad |= r->depth == MAX_DEPTH;
	r->depth++;
	if (basic) {
		r->at++;
		show_word(r, basic);
	} else if (!r->is_bad) {
		read_other_type(r);
	}
	r->depth--;
}

/* ---- paths ---- */

/* Where an impl is says nothing: whose it is comes next. */
static void skip_impl(struct rust *r)
{
	bool was_silent = r->is_silent;

	r->is_silent = true;
	read_tagged(r, 's');
	read_path(r);
	r->is_silent = was_silent;
}

/* "<Type as Trait>", or "<Type>". */
static void read_impl(struct rust *r, char kind)
{
	if (kind != 'Y')
		skip_impl(r);
	show_word(r, "<");
	read_type(r);
	if (kind != 'M') {
		show_word(r, " as ");
		read_path(r);
	}
	show_word(r, ">");
}

/* A name inside a path: "path::name", "path::{closure#0}". */
static void read_inner(struct rust *r)
{
	char space = peek(r);
	const char *text;
	size_t len;
	u64 number;

	r->at++;
	read_path(r);
	read_name(r, &text, &len, &number);
	if (r->is_bad)
		return;
	if (islower((unsigned char)space)) {
		show_word(r, len ? "::" : "");
		show(r, text, len);
		return;
	}
	show_word(r, space == 'C' ? "::{closure" : space == 'S' ? "::{shim" : "::{");
	show_word(r, len ? ":" : "");
	show(r, text, len);
	if (!r->is_silent)
		lull_str_addf(&r->out, "#%llu}", (unsigned long long)number);
}

static void read_path_of(struct rust *r, char kind)
{
	const char *text;
	size_t len;
	u64 number;

	switch (kind) {
	case 'C':
		read_name(r, &text, &len, &number);
		if (!r->is_bad)
			show(r, text, len);
		return;
	case 'N':
		read_inner(r);
		return;
	case 'M':
	case 'X':
	case 'Y':
		read_impl(r, kind);
		return;
	case 'I':
		read_path(r);
		show_word(r, "<");
		read_list(r, read_argument, ", ");
		show_word(r, ">");
		return;
	case 'B':
		follow(r, read_path);
		return;
	default:
		r->is_bad = true;
	}
}

static void read_path(struct rust *r)
{
	char kind = peek(r);

	r->is_bad |= !kind || r->depth == MAX_DEPTH;
	r->depth++;
	if (!r->is_bad) {
		r->at++;
		read_path_of(r, kind);
	}
	r->depth--;
}

char *lull_demangle_rust(const char *name)
{
	struct rust r = { .out = LULL_STR_INIT };
	char *text = NULL;

	if (strncmp(name, "_R", 2) != 0)
		return NULL;
	r.name = name + 2;
	/* What LLVM adds begins with a point. */
	r.len = strcspn(r.name, ".$");
	read_path(&r);
	if (!r.is_bad && r.out.len)
		text = lull_strdup(lull_str_text(&r.out));
	lull_str_release(&r.out);
	return text;
}
