#include "cause/position.h"

#include "base/hash.h"

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
	lull_map_init(&p->kinds);
	lull_vec_init(&p->counters, sizeof(struct counter));
}

void lull_positions_release(struct lull_positions *p)
{
	lull_map_release(&p->kinds);
	lull_vec_release(&p->counters);
}

u64 lull_position_of(struct lull_positions *p, const struct lull_node *node)
{
	u64 parts[3] = { node->name, 0, 0 }, kind;
	struct counter *counter;
	bool is_new;
	u32 *ix;

	if (node->unit != LULL_NONE) {
		const struct lull_unit *unit = &p->subject->units.at[node->unit];

		parts[1] = (u64)(unit->kind + 1) << 32;
		if (unit->kind <= LULL_UNIT_COLLECTIVE && unit->what)
			parts[1] |= p->launches[unit->what - 1].name;
	}
	kind = lull_hash(parts, 2 * sizeof(u64));
	ix = lull_map_add(&p->kinds, kind, &is_new);
	if (is_new) {
		*ix = (u32)p->counters.n;
		lull_vec_push(&p->counters);
	}
	counter = lull_vec_get(&p->counters, *ix);
	if (counter->round != node->round)
		*counter = (struct counter){ .round = node->round };
	parts[2] = ++counter->n;
	return lull_hash(parts, sizeof(parts));
}
