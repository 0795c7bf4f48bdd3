/*
 * pack_int - what the parts of the packer share: pack.c has the lanes, names and curves,
 * pack_answers.c the answers that the page asks for when there is no server.
 */
#ifndef LULL_PAGE_PACK_INT_H
#define LULL_PAGE_PACK_INT_H

#include <stdio.h>

#include "base/map.h"
#include "page/pack.h"

struct lull_pack {
	struct lull_page *page;
	struct lull_timeline *t;
	const struct lull_pack_plan *plan;
	struct lull_vec lanes;	 /* u8: the columns */
	struct lull_map name_of; /* name to number + 1 */
	struct lull_vec names;	 /* u32 */
	FILE *to;
	bool is_first;
	u32 n_folded;	     /* lanes */
	u64 n_folded_events; /* on these */
};

/* A moment as pages count it. */
static inline u64 lull_pack_moment(const struct lull_pack *p, u64 at_ns)
{
	return at_ns > p->t->origin_ns ? at_ns - p->t->origin_ns : 0;
}

/* Tables that join all calls take long on millions of them, and are left out. */
bool lull_pack_is_too_much(const struct lull_pack *p);

/* Write "answers": {...}, to p->to. */
void lull_pack_answers(struct lull_pack *p);

#endif
