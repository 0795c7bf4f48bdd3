#include "model/thread/pairs.h"

/* One end. */
struct end {
	u64 got;  /* bytes, in all */
	u64 sent; /* bytes, up to the call that is looked at */
	bool is_connected;
	bool is_pair;
};

struct send {
	u64 bytes;
	u32 end;
};

void lull_pairs_init(struct lull_pairs *p)
{
	lull_map_init(&p->ends);
	lull_vec_init(&p->sums, sizeof(struct end));
	lull_vec_init(&p->sends, sizeof(struct send));
}

void lull_pairs_release(struct lull_pairs *p)
{
	lull_map_release(&p->ends);
	lull_vec_release(&p->sums);
	lull_vec_release(&p->sends);
}

/* The index of an end; it is added if it is new. */
static u32 end_of(struct lull_pairs *p, u64 key)
{
	u32 *ix = lull_map_add(&p->ends, key, NULL);

	if (!*ix) {
		*(struct end *)lull_vec_push(&p->sums) = (struct end){ .got = 0 };
		*ix = (u32)p->sums.n;
	}
	return *ix - 1;
}

static struct end *at(const struct lull_pairs *p, u32 ix)
{
	return (struct end *)p->sums.at + ix;
}

void lull_pairs_connect(struct lull_pairs *p, u64 key)
{
	at(p, end_of(p, key))->is_connected = true;
}

void lull_pairs_get(struct lull_pairs *p, u64 key, i64 bytes)
{
	if (bytes > 0)
		at(p, end_of(p, key))->got += (u64)bytes;
}

void lull_pairs_send(struct lull_pairs *p, u64 key, i64 bytes)
{
	u32 ix;

	if (bytes <= 0)
		return;
	ix = end_of(p, key);
	if (!at(p, ix)->is_connected)
		*(struct send *)lull_vec_push(&p->sends) =
			(struct send){ .bytes = (u64)bytes, .end = ix };
}

/* A number of bytes that some end got: which end sent as much, up to some moment. */
struct total {
	u32 sender; /* from 1, 0 if none did */
	bool has_more;
};

/* One total for each number of bytes that was got. */
static void add_totals(const struct lull_pairs *p, struct lull_map *ix, struct lull_vec *totals)
{
	for (u32 i = 0; i < p->sums.n; i++) {
		bool is_new = false;
		u32 *at_ix;

		if (!at(p, i)->got || at(p, i)->is_connected)
			continue;
		at_ix = lull_map_add(ix, at(p, i)->got, &is_new);
		if (!is_new)
			continue;
		*at_ix = (u32)totals->n;
		*(struct total *)lull_vec_push(totals) = (struct total){ .sender = 0 };
	}
}

/* Which ends have sent as much as a total at some moment. */
static void add_senders(struct lull_pairs *p, const struct lull_map *ix, struct lull_vec *totals)
{
	const struct send *sends = p->sends.at;

	for (size_t i = 0; i < p->sends.n; i++) {
		struct end *end = at(p, sends[i].end);
		struct total *total;
		const u32 *found;

		if (end->is_connected)
			continue;
		end->sent += sends[i].bytes;
		found = lull_map_find(ix, end->sent);
		if (!found)
			continue;
		total = lull_vec_get(totals, *found);
		total->has_more |= total->sender && total->sender != sends[i].end + 1;
		total->sender = sends[i].end + 1;
	}
}

void lull_pairs_match(struct lull_pairs *p)
{
	struct lull_vec totals;
	struct lull_map ix;

	lull_map_init(&ix);
	lull_vec_init(&totals, sizeof(struct total));
	add_totals(p, &ix, &totals);
	if (totals.n)
		add_senders(p, &ix, &totals);
	for (u32 i = 0; i < p->sums.n; i++) {
		const u32 *found =
			at(p, i)->is_connected ? NULL : lull_map_find(&ix, at(p, i)->got);
		const struct total *total = found ? lull_vec_get(&totals, *found) : NULL;

		/* An end gets nothing of what it sends itself. */
		at(p, i)->is_pair =
			total && (total->has_more || (total->sender && total->sender != i + 1));
	}
	lull_map_release(&ix);
	lull_vec_release(&totals);
}

bool lull_pairs_has(const struct lull_pairs *p, u64 key)
{
	const u32 *ix = lull_map_find(&p->ends, key);

	return ix && at(p, *ix - 1)->is_pair;
}
