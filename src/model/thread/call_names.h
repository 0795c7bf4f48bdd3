/*
 * call_names - what calls of the C library do, found once for each name.
 *
 * A recording has millions of calls and some dozens of names.
 *
 * Memory:         8 bytes for each string of the report, touched where a name is asked for.
 * Threads:        one at a time.
 */
#ifndef LULL_MODEL_THREAD_CALL_NAMES_H
#define LULL_MODEL_THREAD_CALL_NAMES_H

#include "base/types.h"
#include "trace/reader.h"

/* What a call says about a descriptor. */
enum lull_call_effect {
	LULL_CALL_ASKED,    /* nothing; the name is known */
	LULL_CALL_OPENS,    /* it returns that of a file */
	LULL_CALL_FOPENS,   /* its argument becomes that of a file */
	LULL_CALL_POPENS,   /* its argument becomes that of a child's output */
	LULL_CALL_CLOSES,   /* its argument is one that ends */
	LULL_CALL_ACCEPTS,  /* it returns that of a client */
	LULL_CALL_CONNECTS, /* its argument is a socket to a server */
	LULL_CALL_TALKS,    /* its argument is a socket */
};

struct lull_call_name {
	u32 bits;  /* LULL_IN_...: lull_oscall_bits() and lull_doing_call() */
	u8 effect; /* enum lull_call_effect */
	u8 is_known;
};

struct lull_call_names {
	struct lull_reader *reader;
	struct lull_call_name *at; /* private: by string */
	u32 n;
};

/* No name is known yet. */
void lull_call_names_init(struct lull_call_names *c, struct lull_reader *r);

/* Free it. */
void lull_call_names_release(struct lull_call_names *c);

/* Whether calls with this name open a file. */
bool lull_call_opens(const char *name);

/* Look at a name; lull_call_name_of() calls it at the first time. */
struct lull_call_name lull_call_names_look(struct lull_call_names *c, u32 string);

/* What calls with this name (a string id) do. */
static inline struct lull_call_name lull_call_name_of(struct lull_call_names *c, u32 string)
{
	if (string < c->n && c->at[string].is_known)
		return c->at[string];
	return lull_call_names_look(c, string);
}

#endif
