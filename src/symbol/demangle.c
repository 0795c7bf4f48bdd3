#include "symbol/demangle.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/types.h"
#include "symbol/demangle_rust.h"

/* The C++ ABI's own function (cxxabi.h is for C++ only). Returns malloc'd text or NULL. */
char *__cxa_demangle(const char *mangled, char *buffer, size_t *len, int *status);

/* "::h" and 16 hex digits, the end of every Rust name of the older scheme. */
#define RUST_HASH_LEN 19

static const struct {
	const char *from;
	char to;
} rust_escapes[] = {
	{ "$LT$", '<' },  { "$GT$", '>' },  { "$RF$", '&' },  { "$BP$", '*' },	{ "$LP$", '(' },
	{ "$RP$", ')' },  { "$C$", ',' },   { "$SP$", '@' },  { "$u20$", ' ' }, { "$u27$", '\'' },
	{ "$u5b$", '[' }, { "$u5d$", ']' }, { "$u7b$", '{' }, { "$u7d$", '}' }, { "$u7e$", '~' },
	{ "$u2b$", '+' }, { "$u22$", '"' }, { "$u3b$", ';' },
};

static bool is_rust(const char *text, size_t len)
{
	const char *hash;

	if (len <= RUST_HASH_LEN)
		return false;
	hash = text + len - RUST_HASH_LEN;
	return !strncmp(hash, "::h", 3) &&
	       strspn(hash + 3, "0123456789abcdef") == RUST_HASH_LEN - 3;
}

/* Take the hash off and undo the escapes, in place: every escape gets shorter. */
static void clean_rust(char *text, size_t len)
{
	char *to = text, *from = text;

	text[len - RUST_HASH_LEN] = '\0';
	/* A part of a name that begins with an escape has an underscore before it. */
	while (*from) {
		size_t i;

		if (from[0] == '_' && from[1] == '$' && (from == text || from[-1] == ':'))
			from++;
		for (i = 0; i < LULL_COUNT_OF(rust_escapes); i++)
			if (!strncmp(from, rust_escapes[i].from, strlen(rust_escapes[i].from)))
				break;
		if (i < LULL_COUNT_OF(rust_escapes)) {
			from += strlen(rust_escapes[i].from);
			*to++ = rust_escapes[i].to;
		} else if (from[0] == '.' && from[1] == '.') {
			from += 2;
			*to++ = ':';
			*to++ = ':';
		} else {
			*to++ = *from++;
		}
	}
	*to = '\0';
}

char *lull_demangle(const char *name)
{
	char *text = NULL;
	int status;

	if (name[0] == '_' && name[1] == 'Z')
		text = __cxa_demangle(name, NULL, NULL, &status);
	if (!text)
		text = lull_demangle_rust(name);
	if (!text)
		return lull_strdup(name);
	if (is_rust(text, strlen(text)))
		clean_rust(text, strlen(text));
	return text;
}

/* The place after the parenthesis that closes the one at `at`, or the end of the text. */
static const char *skip_parentheses(const char *at)
{
	int depth = 0;

	for (; *at; at++) {
		depth += (*at == '(') - (*at == ')');
		if (!depth)
			return at + 1;
	}
	return at;
}

const char *lull_base_name(const char *name, size_t *len)
{
	const char *base = name;
	bool is_open = true; /* the word is not at its end yet */
	int depth = 0;

	*len = 0;
	for (const char *at = name; *at; at++) {
		bool is_first = at == base;

		if (!depth && *at == '(' && !is_first)
			break;
		if (*at == '(')
			at = skip_parentheses(at) - 1;
		else if (*at == '<' || *at == '>')
			depth += *at == '<' ? 1 : -1;
		if (depth > 0) {
			is_open = false;
		} else if (*at == ' ' || *at == ':') {
			base = at + 1;
			*len = 0;
			is_open = true;
		} else if (is_open) {
			*len = (size_t)(at + 1 - base);
		}
	}
	return base;
}
