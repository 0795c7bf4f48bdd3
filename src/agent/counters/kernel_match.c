#include "agent/counters/kernel_match.h"

#include <regex.h>
#include <string.h>

#include "base/hash.h"
#include "wire/vocabulary.h"

#define NAME_BYTES 512u
#define N_CACHED   256u

/* What a symbol gave is the lowest byte of a word, filter + 2; the rest is of its hash. */
#define GAVE 0xffu
_Static_assert(LULL_KWISH_N_FILTERS + 2 <= GAVE, "a filter fits its byte");

static struct {
	const struct lull_kwish *wish;
	regex_t regexes[LULL_KWISH_N_FILTERS];
	bool has_regex[LULL_KWISH_N_FILTERS];
	regex_t range;
	bool has_range;
	_Atomic u64 cache[N_CACHED]; /* 0 nothing yet */
} match;

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static void append(char *to, size_t room, size_t *n, const char *text, size_t len)
{
	for (size_t i = 0; i < len && *n + 1 < room; i++)
		to[(*n)++] = text[i];
	to[*n] = '\0';
}

/* A length and so many characters; NULL if there are none. */
static const char *part(const char *at, size_t *len)
{
	size_t n = 0;

	while (is_digit(*at) && n < 4096)
		n = n * 10 + (size_t)(*at++ - '0');
	*len = n;
	return n && strnlen(at, n) == n ? at : NULL;
}

const char *lull_kernel_plain_name(const char *symbol, char *to, size_t room)
{
	const char *at = symbol, *text;
	size_t n = 0, len, last = 0;
	bool is_nested;

	to[0] = '\0';
	if (strncmp(at, "_Z", 2) != 0) {
		append(to, room, &n, symbol, strlen(symbol));
		return to;
	}
	at += 2;
	is_nested = *at == 'N';
	/* Qualifiers of nested names, and the mark of those that are not seen from outside. */
	while (*at == 'N' || *at == 'L' || *at == 'K' || *at == 'V' || *at == 'r')
		at++;
	if (strncmp(at, "St", 2) == 0) {
		append(to, room, &n, "std", 3);
		at += 2;
	}
	while (is_digit(*at) && (text = part(at, &len))) {
		if (n)
			append(to, room, &n, "::", 2);
		last = n;
		append(to, room, &n, text, len);
		at = text + len;
		if (!is_nested)
			break;
	}
	if (!n)
		append(to, room, &n, symbol, strlen(symbol));
	return to + last;
}

static bool compile(regex_t *to, const char *text)
{
	return regcomp(to, text, REG_EXTENDED | REG_NOSUB) == 0;
}

void lull_kernel_match_init(const struct lull_kwish *wish)
{
	if (match.wish)
		return; /* a forked child has it all */
	for (u32 i = 0; i < wish->n_filters && i < LULL_KWISH_N_FILTERS; i++)
		match.has_regex[i] = wish->filters[i].is_regex &&
				     compile(&match.regexes[i], wish->filters[i].name);
	match.has_range = wish->is_range_regex && compile(&match.range, wish->range);
	match.wish = wish;
}

static bool is_match(u32 i, const char *symbol, const char *plain, const char *base)
{
	const struct lull_kwish_filter *f = &match.wish->filters[i];
	const regex_t *regex = &match.regexes[i];

	if (f->is_regex)
		return match.has_regex[i] && (regexec(regex, plain, 0, NULL, 0) == 0 ||
					      regexec(regex, symbol, 0, NULL, 0) == 0);
	return !*f->name || strcmp(f->name, symbol) == 0 || strcmp(f->name, plain) == 0 ||
	       strcmp(f->name, base) == 0;
}

static int find(const char *symbol)
{
	char plain[NAME_BYTES];
	const char *base = lull_kernel_plain_name(symbol, plain, sizeof(plain));

	for (u32 i = 0; i < match.wish->n_filters && i < LULL_KWISH_N_FILTERS; i++)
		if (is_match(i, symbol, plain, base))
			return (int)i;
	return -1;
}

int lull_kernel_match(const char *symbol)
{
	u64 hash = lull_hash(symbol, strlen(symbol)), word;
	_Atomic u64 *cached = &match.cache[hash / (GAVE + 1) % N_CACHED];

	/* Hash and filter in one word: threads that replace each other's never mix them. */
	word = atomic_load_explicit(cached, memory_order_relaxed);
	if (!(word & GAVE) || (word ^ hash) & ~(u64)GAVE) {
		word = (hash & ~(u64)GAVE) | (u64)(find(symbol) + 2);
		atomic_store_explicit(cached, word, memory_order_relaxed);
	}
	return (int)(word & GAVE) - 2;
}

bool lull_kernel_is_unsafe(const char *symbol)
{
	char plain[NAME_BYTES];

	/*
	 * Collectives are the only ones that wait for a kernel elsewhere without being launched as
	 * cooperative on many devices.
	 */
	lull_kernel_plain_name(symbol, plain, sizeof(plain));
	return lull_kernel_class_of(plain) == LULL_KERNEL_COLLECTIVE;
}

static bool is_text(const char *wanted, const char *text, size_t len)
{
	return strlen(wanted) == len && memcmp(wanted, text, len) == 0;
}

bool lull_kernel_match_range(const char *name, size_t len, const char *domain, size_t domain_len)
{
	const struct lull_kwish *wish = match.wish;
	char text[NAME_BYTES];

	if (!wish || !wish->has_range ||
	    (*wish->range_domain && !is_text(wish->range_domain, domain, domain_len)))
		return false;
	if (!wish->is_range_regex)
		return is_text(wish->range, name, len);
	if (len >= sizeof(text))
		len = sizeof(text) - 1;
	memcpy(text, name, len);
	text[len] = '\0';
	return match.has_range && regexec(&match.range, text, 0, NULL, 0) == 0;
}
