#include "text/kernel_name.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "text/shorten.h"
#include "wire/vocabulary.h"

enum rule_kind { FAMILY, WRAPPER, LOOP, ALIAS, NOISE, FILLER, TYPE, LIBRARY };

struct rule {
	enum rule_kind kind;
	const char *from, *to;
};

static const struct rule rules[] = {
#define FAMILY(start)	   { FAMILY, start, "" },
#define WRAPPER(name)	   { WRAPPER, name, "" },
#define LOOP(name, label)  { LOOP, name, label },
#define ALIAS(name, words) { ALIAS, name, words },
#define NOISE(name)	   { NOISE, name, "" },
#define FILLER(word)	   { FILLER, word, "" },
#define TYPE(name, short)  { TYPE, name, short },
#define LIBRARY(scope)	   { LIBRARY, scope, "" },
#include "text/kernel_short.def"
#undef FAMILY
#undef WRAPPER
#undef LOOP
#undef ALIAS
#undef NOISE
#undef FILLER
#undef TYPE
#undef LIBRARY
};

/* What the rule of this kind makes of a text, or NULL if there is none. */
static const char *find(enum rule_kind kind, const char *at, size_t len)
{
	for (size_t i = 0; i < LULL_COUNT_OF(rules); i++) {
		if (rules[i].kind == kind && strlen(rules[i].from) == len &&
		    !memcmp(rules[i].from, at, len))
			return rules[i].to;
	}
	return NULL;
}

/* Whether the text starts like the names of a library that puts words together. */
static bool is_family(const char *at, size_t len)
{
	for (size_t i = 0; i < LULL_COUNT_OF(rules); i++) {
		size_t n = strlen(rules[i].from);

		if (rules[i].kind == FAMILY && n <= len && !memcmp(rules[i].from, at, n))
			return true;
	}
	return false;
}

static bool is_word_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

static bool starts_with(struct lull_text_part t, const char *start)
{
	return t.len >= strlen(start) && !memcmp(t.at, start, strlen(start));
}

/* ---- pieces ---- */

struct scan {
	const char *at, *end;
	bool is_mangled; /* identifiers follow their length: 4conv6kernel */
	bool is_split;	 /* words of one identifier are pieces, too */
};

/* The next identifier of a mangled name, or the next number in it ("Li64E"). */
static bool next_mangled(struct scan *s, struct lull_text_part *found)
{
	for (; s->at < s->end; s->at++) {
		char *after;
		bool is_number =
			*s->at == 'L' && s->at[1] == 'i' && isdigit((unsigned char)s->at[2]);
		unsigned long len;

		if (is_number) {
			len = strspn(s->at + 2, "0123456789");
			*found = (struct lull_text_part){ s->at + 2, len };
			s->at += 2 + len;
			return true;
		}
		if (!isdigit((unsigned char)*s->at))
			continue;
		len = strtoul(s->at, &after, 10);
		if (!len || len > (size_t)(s->end - after)) {
			s->at = after - 1;
			continue;
		}
		*found = (struct lull_text_part){ after, len };
		s->at = after + len;
		return true;
	}
	return false;
}

/* The next word or number that is not the name of a namespace. */
static bool next_piece(struct scan *s, struct lull_text_part *found)
{
	if (s->is_mangled)
		return next_mangled(s, found);
	while (s->at < s->end) {
		const char *from = s->at;

		if (!is_word_char(*from) || (s->is_split && *from == '_')) {
			s->at++;
			continue;
		}
		while (s->at < s->end && is_word_char(*s->at) && !(s->is_split && *s->at == '_'))
			s->at++;
		*found = (struct lull_text_part){ from, (size_t)(s->at - from) };
		if (strncmp(s->at, "::", 2) || s->at[2] == '{')
			return true;
	}
	return false;
}

/* A name taken apart. */
struct name {
	const char *full;
	struct lull_text_part own, args, scope;
	struct lull_text_part flat; /* words with underscores in between, if it is of a family */
	bool is_mangled;
};

/* The last part of "a::b::". */
static struct lull_text_part last_scope(struct lull_text_part scope)
{
	size_t end = scope.len, from;

	while (end && scope.at[end - 1] == ':')
		end--;
	for (from = end; from && scope.at[from - 1] != ':';)
		from--;
	return (struct lull_text_part){ scope.at + from, end - from };
}

/* Where the name counts that a wrapper such as Kernel2<cutlass_80_...> has as its argument. */
static void unwrap(struct name *n)
{
	struct scan s = { n->args.at, n->args.at + n->args.len, false, false };
	struct lull_text_part inner;

	if (!find(WRAPPER, n->own.at, n->own.len) || !next_piece(&s, &inner))
		return;
	n->own = inner;
}

static void take_apart(struct name *n, const char *full)
{
	struct lull_text_part parts[LULL_N_PARTS];

	lull_kernel_name_parts(full, parts);
	*n = (struct name){ .full = full,
			    .own = parts[LULL_PART_OWN],
			    .args = parts[LULL_PART_ARGS],
			    .scope = parts[LULL_PART_SCOPE] };
	n->is_mangled = !strncmp(full, "_Z", 2) && isalnum((unsigned char)full[2]);
	unwrap(n);
	if (n->own.len == 6 && !memcmp(n->own.at, "kernel", 6) && n->scope.len)
		n->own = last_scope(n->scope);
	if (is_family(n->own.at, n->own.len))
		n->flat = n->own;
}

/* ---- words ---- */

#define MAX_WORD 64u

/* The next word of an identifier at *at, in lower case; its length, 0 at the end. */
static size_t next_word(struct lull_text_part t, size_t *at, char *word)
{
	size_t i = *at, len = 0;

	while (i < t.len && t.at[i] == '_')
		i++;
	for (; i < t.len && t.at[i] != '_'; i++) {
		bool has_digit = i && (isdigit((unsigned char)t.at[i]) ||
				       isdigit((unsigned char)t.at[i - 1]));

		if (len && lull_word_begins(t, i) && !has_digit)
			break;
		if (len < MAX_WORD)
			word[len++] = lull_char_lower(t.at[i]);
	}
	*at = i;
	return len;
}

static bool is_direction(const char *word, size_t len)
{
	return (len == 7 && !memcmp(word, "forward", 7)) ||
	       (len == 8 && !memcmp(word, "backward", 8));
}

/* Append an identifier as words in lower case: GeluBackwardKernel is "gelu backward". */
static void put_words(struct lull_str *to, struct lull_text_part t)
{
	const char *alias = find(ALIAS, t.at, t.len);
	size_t from = to->len, at = 0, len;
	bool was_direction = false;
	char word[MAX_WORD];

	if (alias) {
		lull_str_puts(to, alias);
		return;
	}
	while ((len = next_word(t, &at, word))) {
		bool is_max = len == 3 && !memcmp(word, "max", 3) && to->len - from >= 4 &&
			      !memcmp(to->at + to->len - 4, "soft", 4);
		bool is_apart = is_direction(word, len) || was_direction;

		if (find(FILLER, word, len))
			continue;
		if (to->len > from && !is_max)
			lull_str_puts(to, is_apart ? " " : "_");
		lull_str_add(to, word, len);
		was_direction = is_direction(word, len);
	}
	if (to->len == from)
		lull_str_add(to, t.at, t.len);
}

/* ---- names with tiles: gemm, conv, attention ---- */

/* The rows and columns of a tile such as "128x64x32" after anything ("tilesize128x64x32"). */
static bool is_tile(struct lull_text_part t, struct lull_text_part *rows,
		    struct lull_text_part *columns)
{
	size_t i = strcspn(t.at, "0123456789"), from;

	if (i >= t.len || (i && !starts_with(t, "tilesize")))
		return false;
	from = i;
	while (i < t.len && isdigit((unsigned char)t.at[i]))
		i++;
	*rows = (struct lull_text_part){ t.at + from, i - from };
	if (i == t.len || t.at[i++] != 'x')
		return false;
	from = i;
	while (i < t.len && isdigit((unsigned char)t.at[i]))
		i++;
	*columns = (struct lull_text_part){ t.at + from, i - from };
	return columns->len && (i == t.len || t.at[i] == 'x');
}

/* The type that the words of a family say it computes with, or NULL. */
static const char *type_of_word(struct lull_text_part t)
{
	static const struct {
		const char *start, *type;
	} types[] = {
		{ "tf32", "tf32" }, { "bf16", "bf16" }, { "f16", "f16" },	 { "fp16", "f16" },
		{ "f32", "f32" },   { "f64", "f64" },	{ "e4m3", "f8" },	 { "e5m2", "f8" },
		{ "s8", "i8" },	    { "tst", "bf16" },	{ "tss", "bf16" },	 { "hsh", "f16" },
		{ "hss", "f16" },   { "hhh", "f16" },	{ "sss", "tf32" },	 { "qqtst", "f8" },
		{ "sgemm", "f32" }, { "dgemm", "f64" }, { "hgemm", "f16" },	 { "h884", "f16" },
		{ "h1688", "f16" }, { "d884", "f64" },	{ "s1688gemm", "tf32" },
	};

	for (size_t i = 0; i < LULL_COUNT_OF(types); i++) {
		if (starts_with(t, types[i].start))
			return types[i].type;
	}
	return NULL;
}

static bool has_word(struct lull_text_part t, const char *word)
{
	return memmem(t.at, t.len, word, strlen(word)) != NULL;
}

/* "forward", "backward", "wgrad": which way through the network. */
static const char *direction(struct lull_text_part t, bool is_conv)
{
	if (has_word(t, "wgrad") || has_word(t, "Wgrad"))
		return " wgrad";
	if (has_word(t, "dgrad") || has_word(t, "Dgrad"))
		return " dgrad";
	if (has_word(t, "fprop") || has_word(t, "Fprop") || has_word(t, "cutlassF"))
		return is_conv ? " fprop" : " forward";
	if (has_word(t, "bprop") || has_word(t, "cutlassB"))
		return " backward";
	return "";
}

/* The tile of a family's name and its type; a product in tf32 says so after other types. */
static void put_tile(struct lull_str *to, struct lull_text_part flat)
{
	struct scan s = { flat.at, flat.at + flat.len, false, true };
	struct lull_text_part piece, rows, columns;
	const char *type = NULL, *found;
	bool has_tile = false;

	while (next_piece(&s, &piece)) {
		if (!has_tile && is_tile(piece, &rows, &columns)) {
			lull_str_addf(to, " %.*s\xc3\x97%.*s", (int)rows.len, rows.at,
				      (int)columns.len, columns.at);
			has_tile = true;
		}
		found = type_of_word(piece);
		if (found && (!type || !strcmp(found, "tf32")) &&
		    !(type && starts_with(piece, "s1688")))
			type = found;
	}
	if (type)
		lull_str_addf(to, " %s", type);
}

static bool is_piece(struct lull_text_part t, const char *text)
{
	return t.len == strlen(text) && !memcmp(t.at, text, t.len);
}

/* Names of CUTLASS with all their template arguments: GemmShape<128, 64, 32>, bfloat16_t. */
static void put_shape(struct lull_str *to, const char *full, bool is_mangled)
{
	struct scan s = { full, full + strlen(full), is_mangled, false };
	struct lull_text_part piece, columns;
	const char *type = NULL;
	bool has_shape = false;

	while (next_piece(&s, &piece)) {
		if (!has_shape && is_piece(piece, "GemmShape") && next_piece(&s, &piece) &&
		    next_piece(&s, &columns)) {
			lull_str_addf(to, " %.*s\xc3\x97%.*s", (int)piece.len, piece.at,
				      (int)columns.len, columns.at);
			has_shape = true;
		} else if (!type && piece.len > 5) {
			type = find(TYPE, piece.at, piece.len);
		}
	}
	if (type)
		lull_str_addf(to, " %s", type);
}

static const char *class_word(enum lull_kernel_class class)
{
	return class == LULL_KERNEL_ATTENTION	  ? "attention"
	       : class == LULL_KERNEL_CONVOLUTION ? "conv"
						  : "gemm";
}

static void put_family(struct lull_str *to, const struct name *n)
{
	enum lull_kernel_class class = lull_kernel_class_of(n->full);
	const char *way = direction(n->flat, class == LULL_KERNEL_CONVOLUTION);
	bool is_conv = *way && class == LULL_KERNEL_MATMUL;

	lull_str_puts(to, is_conv ? "conv" : class_word(class));
	lull_str_puts(to, is_conv ? direction(n->flat, true) : way);
	put_tile(to, n->flat);
}

/* ---- other kinds ---- */

/* A mangled name that no demangler understands, or one that the user asked for. */
static bool put_mangled(struct lull_str *to, const struct name *n)
{
	struct lull_text_part all = { n->full, strlen(n->full) };
	bool is_conv = has_word(all, "ImplicitGemmConvolution");

	if (!n->is_mangled || (!is_conv && !has_word(all, "GemmShape")))
		return false;
	lull_str_puts(to, is_conv ? "conv" : "gemm");
	lull_str_puts(to, direction(all, is_conv));
	put_shape(to, n->full, true);
	return true;
}

/* ncclDevKernel_AllReduce_Sum_f32_RING_LL is "nccl AllReduce Sum f32". */
static bool put_nccl(struct lull_str *to, const struct name *n)
{
	static const char *const rest[] = { "RING", "TREE", "COLLNET", "NVLS",
					    "PAT",  "LL",   "LL128",   "SIMPLE" };
	struct scan s = { n->own.at, n->own.at + n->own.len, false, true };
	struct lull_text_part piece;

	if (!starts_with(n->own, "ncclDevKernel_") && !starts_with(n->own, "ncclKernel_"))
		return false;
	next_piece(&s, &piece);
	lull_str_puts(to, "nccl");
	while (next_piece(&s, &piece)) {
		for (size_t i = 0; i < LULL_COUNT_OF(rest); i++) {
			if (is_piece(piece, rest[i]))
				return true;
		}
		lull_str_addf(to, " %.*s", (int)piece.len, piece.at);
	}
	return true;
}

/* triton_poi_fused_add_mul_0 is "triton · add mul". */
static bool put_triton(struct lull_str *to, const struct name *n)
{
	struct scan s = { n->own.at, n->own.at + n->own.len, false, true };
	struct lull_text_part piece;
	const char *before = "triton \xc2\xb7 ";
	size_t from = to->len;

	if (!starts_with(n->own, "triton_") || !has_word(n->own, "_fused_"))
		return false;
	while (next_piece(&s, &piece) && !is_piece(piece, "fused"))
		continue;
	while (next_piece(&s, &piece)) {
		if (s.at == s.end && isdigit((unsigned char)*piece.at))
			break;
		lull_str_addf(to, "%s%.*s", before, (int)piece.len, piece.at);
		before = " ";
	}
	return to->len > from;
}

/* The first identifier in the arguments that is neither a type nor noise: the functor. */
static bool find_functor(const struct name *n, struct lull_text_part *functor)
{
	struct scan s = { n->args.at, n->args.at + n->args.len, false, false };

	while (next_piece(&s, functor)) {
		if (isdigit((unsigned char)*functor->at) ||
		    find(NOISE, functor->at, functor->len) || find(TYPE, functor->at, functor->len))
			continue;
		return true;
	}
	return false;
}

/* vectorized_elementwise_kernel<4, AddFunctor> is "elementwise · add". */
static bool put_loop(struct lull_str *to, const struct name *n)
{
	const char *label = find(LOOP, n->own.at, n->own.len);
	struct lull_text_part functor;

	if (!label)
		return false;
	lull_str_puts(to, label);
	if (find_functor(n, &functor)) {
		lull_str_puts(to, " \xc2\xb7 ");
		put_words(to, functor);
	}
	return true;
}

/* Whether the first namespace is one of a library. */
static bool is_library(const struct name *n)
{
	size_t len = 0;

	while (len < n->scope.len && is_word_char(n->scope.at[len]))
		len++;
	return find(LIBRARY, n->scope.at, len);
}

/* Namespaces of a program are part of what its kernels are called, unless they have no name. */
static void put_scope(struct lull_str *to, struct lull_text_part scope)
{
	static const char anonymous[] = "(anonymous namespace)::";

	for (size_t i = 0; i < scope.len;) {
		struct lull_text_part rest = { scope.at + i, scope.len - i };

		if (starts_with(rest, anonymous)) {
			i += sizeof(anonymous) - 1;
			continue;
		}
		lull_str_add(to, scope.at + i++, 1);
	}
}

static void put_short(struct lull_str *to, const struct name *n)
{
	if (n->flat.len) {
		put_family(to, n);
		return;
	}
	if (put_mangled(to, n) || put_nccl(to, n) || put_triton(to, n) || put_loop(to, n))
		return;
	if (find(ALIAS, n->own.at, n->own.len) || is_library(n)) {
		if (has_word(n->scope, "cub::"))
			lull_str_puts(to, "cub ");
		put_words(to, n->own);
		return;
	}
	/* Not a function with arguments: an operator, a range, a name of C. */
	if (!strpbrk(n->full, "<(")) {
		lull_str_puts(to, n->full);
		return;
	}
	put_scope(to, n->scope);
	lull_str_add(to, n->own.at, n->own.len);
}

void lull_kernel_short(struct lull_str *to, const char *name)
{
	struct lull_str whole = LULL_STR_INIT;
	const char *slash = *name == ':' ? strchr(name, '/') : NULL;
	struct name n;

	/* ":range/kernel" of the argument nvtx-name. */
	if (slash) {
		lull_str_add(to, name, (size_t)(slash + 1 - name));
		name = slash + 1;
	}
	take_apart(&n, name);
	if (is_word_char(*name) || !strncmp(name, "(anonymous", 10))
		put_short(&whole, &n);
	lull_shorten_middle(to, whole.len ? whole.at : name, LULL_KERNEL_SHORT_MAX);
	lull_str_release(&whole);
}

size_t lull_kernel_tokens(const char *name, struct lull_kernel_token *tokens, size_t max)
{
	struct lull_text_part piece;
	struct name n;
	struct scan s;
	size_t len = strlen(name), count = 0;

	take_apart(&n, name);
	if (n.flat.len)
		s = (struct scan){ n.flat.at, n.flat.at + n.flat.len, false, true };
	else if (n.args.len)
		s = (struct scan){ n.scope.at, n.args.at + n.args.len, false, false };
	else
		s = (struct scan){ name, name + len, n.is_mangled, !strchr(name, '(') };
	while (count < max && next_piece(&s, &piece)) {
		if (find(NOISE, piece.at, piece.len) && !is_piece(piece, "true") &&
		    !is_piece(piece, "false"))
			continue;
		tokens[count++] =
			(struct lull_kernel_token){ piece.at, (u32)piece.len,
						    find(TYPE, piece.at, piece.len) != NULL };
	}
	return count;
}

void lull_kernel_token_put(struct lull_str *to, const struct lull_kernel_token *token)
{
	struct lull_text_part t = { token->at, token->len };
	const char *type = find(TYPE, token->at, token->len);
	bool is_number = isdigit((unsigned char)*token->at);
	size_t suffix = 0;

	/* 32u and 3ul are numbers. */
	while (is_number && suffix < t.len && strchr("ul", t.at[t.len - 1 - suffix]))
		suffix++;
	if (type)
		lull_str_puts(to, type);
	else if (is_number || is_piece(t, "true") || is_piece(t, "false"))
		lull_str_addf(to, "<%.*s>", (int)(token->len - suffix), token->at);
	else if (token->len <= 8)
		lull_str_add(to, token->at, token->len);
	else
		put_words(to, t);
}
