/*
 * opt - command-line options as a table beside the variables they fill.
 *
 *	const struct lull_opt opts[] = {
 *		OPT_USAGE("lull stats [OPTIONS] REPORT", "summarise a report"),
 *		OPT_STR('o', "output", "FILE", &output, "where to write"),
 *		OPT_U64('n', "top", "N", &top, "rows to print"),
 *		OPT_FLAG(0, "list", &list, "list the reports and exit"),
 *		OPT_END(),
 *	};
 *	int first = lull_opt_parse(argc, argv, opts, err);
 *	if (first < 0)
 *		return first;
 *
 * Spelling:   --name=VALUE, --name VALUE, -n VALUE, -nVALUE; the last one wins (lists grow).
 *             --json is short for --format=json, where a command has --format.
 *             Options may stand before, between and after the other words, up to "--"; for a
 *             command that starts a program (lull_opt_parse_program()) the first word that is not
 *             an option ends them, so that the program's own options are left alone.
 * Ownership:  strings borrow from argv; list items are copies, freed with lull_opt_list_release().
 * Type check: each macro accepts only a pointer to its own type; anything else does not compile.
 */
#ifndef LULL_TEXT_OPT_H
#define LULL_TEXT_OPT_H

#include <stdio.h>

#include "base/err.h"
#include "base/types.h"
#include "base/vec.h"

enum lull_opt_kind {
	LULL_OPT_END = 0,
	LULL_OPT_USAGE, /* the usage line and what the command does */
	LULL_OPT_GROUP, /* a heading in the help */
	LULL_OPT_STR,
	LULL_OPT_U64,
	LULL_OPT_I64,
	LULL_OPT_F64,
	LULL_OPT_FLAG, /* takes no value */
	LULL_OPT_BOOL, /* may take true or false; without a value it means true */
	LULL_OPT_ENUM, /* one of `choices`; the variable gets its index */
	LULL_OPT_LIST, /* comma list, repeatable */
	LULL_OPT_CALL, /* handed to `call` */
	LULL_OPT_WORD, /* may take a value, but only after "="; without one it is "" */
};

/*
 * Called with the value of an OPT_CALL option, NULL if it takes none; lull_opt_parse() returns its
 * failure.
 */
typedef int lull_opt_call(void *ctx, const char *value, struct lull_err *err);

struct lull_opt {
	enum lull_opt_kind kind;
	char letter;	  /* 0 for none */
	const char *name; /* long name without "--"; the text of USAGE and GROUP */
	const char *arg;  /* what the help calls the value; NULL if an OPT_CALL takes none */
	void *value;	  /* the variable, or the ctx of `call` */
	const char *help; /* NULL: taken, but not listed by --help */
	const char *const *choices; /* NULL-terminated */
	lull_opt_call *call;
};

/* Returned by lull_opt_parse() once it printed the help: pass it on, main() makes it a success. */
#define LULL_OPT_HELPED (-100)

/* Refuses any pointer that is not exactly a `type`, at compile time. */
#ifdef __cppcheck__ /* which cannot parse it where ptr is a member */
#define LULL_OPT_PTR(type, ptr) (ptr)
#else
#define LULL_OPT_PTR(type, ptr) _Generic((ptr), type : (ptr))
#endif

#define OPT_USAGE(usage, summary)                                      \
	{                                                              \
		.kind = LULL_OPT_USAGE, .name = usage, .help = summary \
	}
#define OPT_GROUP(heading)                              \
	{                                               \
		.kind = LULL_OPT_GROUP, .name = heading \
	}
#define OPT_END()                    \
	{                            \
		.kind = LULL_OPT_END \
	}

#define LULL_OPT_OF(k, l, n, a, type, ptr, h)                           \
	{                                                               \
		.kind = LULL_OPT_##k, .letter = l, .name = n, .arg = a, \
		.value = LULL_OPT_PTR(type, ptr), .help = h             \
	}

#define OPT_STR(l, n, a, ptr, h)  LULL_OPT_OF(STR, l, n, a, const char **, ptr, h)
#define OPT_U64(l, n, a, ptr, h)  LULL_OPT_OF(U64, l, n, a, u64 *, ptr, h)
#define OPT_I64(l, n, a, ptr, h)  LULL_OPT_OF(I64, l, n, a, i64 *, ptr, h)
#define OPT_F64(l, n, a, ptr, h)  LULL_OPT_OF(F64, l, n, a, f64 *, ptr, h)
#define OPT_FLAG(l, n, ptr, h)	  LULL_OPT_OF(FLAG, l, n, NULL, bool *, ptr, h)
#define OPT_BOOL(l, n, ptr, h)	  LULL_OPT_OF(BOOL, l, n, "true|false", bool *, ptr, h)
#define OPT_LIST(l, n, a, ptr, h) LULL_OPT_OF(LIST, l, n, a, struct lull_vec *, ptr, h)

/* `names`: NULL-terminated array of the choices; *ptr is an int and gets the index. */
#define OPT_ENUM(l, n, ptr, names, h)                                                             \
	{                                                                                         \
		.kind = LULL_OPT_ENUM, .letter = l, .name = n, .value = LULL_OPT_PTR(int *, ptr), \
		.choices = names, .help = h                                                       \
	}

#define OPT_WORD(l, n, a, ptr, h) LULL_OPT_OF(WORD, l, n, a, const char **, ptr, h)

/* `a` is NULL for a callback without a value. */
#define OPT_CALL(l, n, a, fn, ctx, h)                                                              \
	{                                                                                          \
		.kind = LULL_OPT_CALL, .letter = l, .name = n, .arg = a, .value = ctx, .call = fn, \
		.help = h                                                                          \
	}

/*
 * Fill the variables from argv[1...]; argv[0] is the command's name. The words that are not options
 * are moved to the end of argv, in their order. Returns the index of the first of them (argc if
 * there is none) or a negative code: LULL_E_USAGE with a sentence, or LULL_OPT_HELPED after -h or
 * --help printed the help on standard output.
 */
int lull_opt_parse(int argc, char **argv, const struct lull_opt *opts, struct lull_err *err);

/* The same up to the first word that is not an option; nothing is moved. */
int lull_opt_parse_program(int argc, char **argv, const struct lull_opt *opts,
			   struct lull_err *err);

/* Given the options of a command instead of having them parsed. */
typedef void lull_opt_reader(void *ctx, const struct lull_opt *opts);

/*
 * From now on, lull_opt_parse() hands its options to `reader` and returns LULL_OPT_HELPED: for
 * completion, which asks commands what they take. NULL: it parses again.
 */
void lull_opt_divert(lull_opt_reader *reader, void *ctx);

/* Whether the option takes a value, and whether that may be the next word. */
bool lull_opt_takes_value(const struct lull_opt *opt);
bool lull_opt_takes_word(const struct lull_opt *opt);

/* Print the options, aligned and wrapped to `width` columns. */
void lull_opt_help(FILE *to, const struct lull_opt *opts, int width);

/* Add the items of a comma list to `list`, a vector of char *; empty items are skipped. */
void lull_opt_list_add(struct lull_vec *list, const char *text);

/* Free the items and the vector. */
void lull_opt_list_release(struct lull_vec *list);

/* true, false, yes, no, on, off, 1, 0 into *value; LULL_E_USAGE for any other word. */
int lull_opt_parse_bool(const char *text, bool *value, struct lull_err *err);

#endif
