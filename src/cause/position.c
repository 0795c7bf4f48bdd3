#include "cause/position.h"

#include <stdlib.h>

#include "base/hash.h"
#include "base/mem.h"

/* The 1-based index of a call among those of its kind in its step. */
struct counter {
	u32 round;
	u32 n;
};

void lull_positions_init(struct lull_positions *p, const struct lull_subject *s)
{
	size_t n;

	p->subject = s;
	p->launches = lull_reader_dim(s->reader, LULL_TABLE_launch, &n);
	p->recent = lull_alloc(n + 1, sizeof(*p->recent));
	lull_map_init(&p->kinds);
	lull_vec_init(&p->counters, sizeof(struct counter));
}

void lull_positions_release(struct lull_positions *p)
{
	free(p->recent);
	lull_map_release(&p->kinds);
	lull_vec_release(&p->counters);
}

/* The number of calls with this name that launch this work. */
static u32 number_of(struct lull_positions *p, u64 name, u64 work)
{
	u64 key = lull_hash((const u64[]){ name, work }, 2 * sizeof(u64));
	bool is_new;
	u32 *ix = lull_map_add(&p->kinds, key, &is_new);

	if (is_new) {
		*ix = (u32)p->counters.n;
		lull_vec_push(&p->counters);
	}
	return *ix;
}

/* The number of its kind. Nearly all calls launch a kernel, and one kernel by one call. */
static u32 kind_of(struct lull_positions *p, const struct lull_node *node)
{
	const struct lull_unit *unit =
		node->unit == LULL_NONE ? NULL : &p->subject->units.at[node->unit];
	struct lull_position_launch *recent;

	if (!unit)
		return number_of(p, node->name, 0);
	if (unit->kind > LULL_UNIT_COLLECTIVE || !unit->what)
		return number_of(p, node->name, (u64)(unit->kind + 1) << 32);
	recent = &p->recent[unit->what];
	if (!recent->kind || recent->name != node->name) {
		u64 work = (u64)(unit->kind + 1) << 32 | p->launches[unit->what - 1].name;

		*recent = (struct lull_position_launch){ node->name,
							 number_of(p, node->name, work) + 1 };
	}
	return recent->kind - 1;
}

u64 lull_position_of(struct lull_positions *p, const struct lull_node *node)
{
	u32 kind = kind_of(p, node);
	struct counter *counter = lull_vec_get(&p->counters, kind);

	if (counter->round != node->round)
		*counter = (struct counter){ .round = node->round };
	return (u64)kind << 32 | ++counter->n;
}
