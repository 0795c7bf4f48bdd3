/*
 * vocabulary - classify kernels and CUDA calls by their names.
 *
 * The only place that does this: agent, reports, `lull why`, timeline and exports use it. The words
 * are in kernel_words.def and call_words.def. Inline, because the agent links no other code of
 * lull.
 *
 * Names:   demangled, as in reports; lull_kernel_plain_name() of the agent works as well. They are
 *          hints, never proof.
 * Cost:    a few microseconds per name: classify each name once, not each event.
 */
#ifndef LULL_WIRE_VOCABULARY_H
#define LULL_WIRE_VOCABULARY_H

#include <string.h>

#include "base/types.h"

enum lull_kernel_class {
#define KERNEL_CLASS(class, name) LULL_KERNEL_##class,
#include "wire/kernel_classes.def"
#undef KERNEL_CLASS
	LULL_N_KERNEL_CLASSES,
};

enum lull_call_kind {
	LULL_KIND_OF_OTHER,
	LULL_KIND_OF_LAUNCH, /* kernels, memsets, graphs */
	LULL_KIND_OF_COPY,
	LULL_KIND_OF_SYNC,
	LULL_KIND_OF_ALLOC,
	LULL_KIND_OF_EVENT,
	LULL_KIND_OF_MODULE, /* loads code */
	LULL_KIND_OF_QUERY,  /* asks whether work is done, and does not wait */
};

/* ---- private ---- */

enum lull_word_fit { LULL_FIT_START, LULL_FIT_WORD, LULL_FIT_WHOLE, LULL_FIT_ANY };
enum { LULL_PART_OWN, LULL_PART_ARGS, LULL_PART_SCOPE, LULL_N_PARTS };

struct lull_text_part {
	const char *at;
	size_t len;
};

static inline bool lull_char_is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static inline bool lull_char_is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static inline bool lull_char_is_letter(char c)
{
	return lull_char_is_lower(c) || lull_char_is_upper(c);
}

static inline char lull_char_lower(char c)
{
	return lull_char_is_upper(c) ? (char)(c - 'A' + 'a') : c;
}

/* Whether a word begins at `i`: oneShot|All|Reduce, NCCL|All, s16816|gemm, all_|reduce. */
static inline bool lull_word_begins(struct lull_text_part t, size_t i)
{
	char before = i ? t.at[i - 1] : ' ', c = i < t.len ? t.at[i] : ' ';

	if (!lull_char_is_letter(before) || !lull_char_is_letter(c))
		return true;
	if (lull_char_is_upper(c))
		return lull_char_is_lower(before) ||
		       (i + 1 < t.len && lull_char_is_lower(t.at[i + 1]));
	return false;
}

/* Where `word` ends if it stands at `i`, underscores in the text aside; 0 if it does not. */
static inline size_t lull_word_at(struct lull_text_part t, size_t i, const char *word)
{
	for (; *word; word++, i++) {
		while (i < t.len && t.at[i] == '_')
			i++;
		if (i == t.len || lull_char_lower(t.at[i]) != *word)
			return 0;
	}
	return i;
}

static inline bool lull_word_fits(struct lull_text_part t, const char *word, enum lull_word_fit fit)
{
	size_t i = 0, end;

	while (i < t.len && t.at[i] == '_')
		i++;
	for (; i < t.len; i++) {
		if (t.at[i] != '_' && (fit == LULL_FIT_ANY || lull_word_begins(t, i)) &&
		    (end = lull_word_at(t, i, word)) &&
		    (fit != LULL_FIT_WHOLE || lull_word_begins(t, end)))
			return true;
		if (fit == LULL_FIT_START)
			return false;
	}
	return false;
}

/* After the bracket that closes the one at `at`; the end of the text if none does. */
static inline const char *lull_bracket_end(const char *at)
{
	unsigned depth = 0;

	for (; *at; at++) {
		depth += *at == '<' || *at == '(';
		depth -= (*at == '>' && at[-1] != '-') || *at == ')';
		if (!depth)
			return at + 1;
	}
	return at;
}

/* Take "void ns::(anonymous namespace)::name<args>(parameters)" apart. */
static inline void lull_kernel_name_parts(const char *name, struct lull_text_part *parts)
{
	static const char anonymous[] = "(anonymous namespace)";
	const char *scope = name, *own = name, *end = NULL, *at = name;
	struct lull_text_part args = { name, 0 };

	while (*at && (*at != '(' || !strncmp(at, anonymous, sizeof(anonymous) - 1))) {
		const char *next = at + 1;

		if (*at == '<' || *at == '(') {
			end = end ? end : at;
			next = lull_bracket_end(at);
			args = (struct lull_text_part){ at, (size_t)(next - at) };
		} else if (*at == ' ' || *at == ':') {
			own = next;
			scope = *at == ' ' ? next : scope;
			end = NULL;
			args.len = 0;
		}
		at = next;
	}
	parts[LULL_PART_OWN] = (struct lull_text_part){ own, (size_t)((end ? end : at) - own) };
	parts[LULL_PART_ARGS] = args;
	parts[LULL_PART_SCOPE] = (struct lull_text_part){ scope, (size_t)(own - scope) };
}

/* ---- what there is to ask ---- */

/* The class of a kernel of this name. */
static inline enum lull_kernel_class lull_kernel_class_of(const char *name)
{
	static const struct {
		u8 class, fit, last_part;
		char word[29]; /* no pointer: see agent/core/real.c */
	} words[] = {
#define KERNEL_WORD(class, fit, part, word) \
	{ LULL_KERNEL_##class, LULL_FIT_##fit, LULL_PART_##part, word },
#include "wire/kernel_words.def"
#undef KERNEL_WORD
	};
#define KERNEL_WORD(class, fit, part, text) \
	_Static_assert(sizeof(text) <= sizeof(words[0].word), "it fits, with its end");
#include "wire/kernel_words.def"
#undef KERNEL_WORD
	struct lull_text_part parts[LULL_N_PARTS];

	lull_kernel_name_parts(name, parts);
	for (int part = 0; part < LULL_N_PARTS; part++) {
		for (size_t i = 0; i < LULL_COUNT_OF(words); i++) {
			if (part <= words[i].last_part &&
			    lull_word_fits(parts[part], words[i].word,
					   (enum lull_word_fit)words[i].fit))
				return (enum lull_kernel_class)words[i].class;
		}
	}
	return LULL_KERNEL_OTHER;
}

/* The name of a class, as it is printed. */
static inline const char *lull_kernel_class_name(enum lull_kernel_class class)
{
	static const char *const names[] = {
#define KERNEL_CLASS(class, name) name,
#include "wire/kernel_classes.def"
#undef KERNEL_CLASS
	};

	return names[class];
}

/* Whether it is a kernel of NCCL itself (RCCL's have the same names), which NCCL tells about. */
static inline bool lull_kernel_is_nccl(const char *name)
{
	struct lull_text_part parts[LULL_N_PARTS];

	lull_kernel_name_parts(name, parts);
	return lull_word_fits(parts[LULL_PART_OWN], "nccl", LULL_FIT_START);
}

/* Whether a kernel of this class is bound by memory: many of them in a row may become one. */
static inline bool lull_kernel_is_light(enum lull_kernel_class class)
{
	return class == LULL_KERNEL_ELEMENTWISE || class == LULL_KERNEL_REDUCTION ||
	       class == LULL_KERNEL_COPY;
}

/* What a CUDA call of this name does. */
static inline enum lull_call_kind lull_call_kind_of(const char *name)
{
	static const struct {
		enum lull_call_kind kind;
		const char *word;
	} words[] = {
#define CALL_WORD(kind, word) { LULL_KIND_OF_##kind, word },
#include "wire/call_words.def"
#undef CALL_WORD
	};

	for (size_t i = 0; i < LULL_COUNT_OF(words); i++) {
		if (strcasestr(name, words[i].word))
			return words[i].kind;
	}
	return LULL_KIND_OF_OTHER;
}

#endif
