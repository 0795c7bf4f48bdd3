/*
 * round_sequence - what the thread that launches most does, as a sequence of symbols.
 *
 * A symbol is a kernel by name, a copy by direction, a memset, a graph, a wait by its call, a long
 * gap between calls, or a call of the C library in such a gap, however short. Symbols that occur
 * again and again may separate rounds.
 */
#ifndef LULL_MODEL_ROUND_ROUND_SEQUENCE_H
#define LULL_MODEL_ROUND_ROUND_SEQUENCE_H

#include "model/round/round_find.h"

/* Rounds begin at the separator; after the last of a run of them from LULL_SEP_WAIT on. */
enum lull_separator {
	LULL_SEP_LAUNCH,
	LULL_SEP_COPY_IN,
	LULL_SEP_OTHER,
	LULL_SEP_GAP,
	LULL_SEP_OSCALL,
	LULL_SEP_WAIT,
	LULL_SEP_UPDATE
};

/* A symbol of the sequence. */
struct lull_call_symbol {
	u32 count;
	u32 node;     /* the first one, of those that are calls of CUDA */
	u32 string;   /* the name of a call of the C library */
	u32 number;   /* itself */
	u8 what;      /* enum lull_separator */
	u8 is_graph;  /* launches a graph */
	u8 is_update; /* launches a part of the optimizer's update */
};

struct lull_sequence {
	struct lull_loop_finder *f;
	u32 first, last;     /* nodes of the chain */
	u32 *launches;	     /* symbols of launches and copies */
	u32 *nodes;	     /* their nodes */
	size_t n;	     /* launches */
	u32 *marks;	     /* by node - first: symbol + 1 of what it is, or 0 */
	u32 *os;	     /* by node - first: symbol + 1 of a call of the C library before it */
	struct lull_vec all; /* struct lull_call_symbol */
	u32 gap;	     /* the symbol of long gaps, or LULL_NONE */
	u64 gap_ns;	     /* how long they are */
	bool is_gap_inside;  /* most are between two launches of one kind */
};

/* Read the calls of the chain with the most launches. */
void lull_sequence_init(struct lull_sequence *q, struct lull_loop_finder *f);

/* Free it. */
void lull_sequence_release(struct lull_sequence *q);

/*
 * Add to `l` where rounds begin if `s` separates them, up to the node `until`. A run of equal
 * separators is one; each long gap is one.
 */
void lull_sequence_cut(const struct lull_sequence *q, const struct lull_call_symbol *s,
		       struct lull_loop *l, u32 until);

/* What separates, for a sentence: "copy to the device". Borrowed; NULL for updates. */
const char *lull_sequence_name(const struct lull_sequence *q, const struct lull_call_symbol *s);

#endif
