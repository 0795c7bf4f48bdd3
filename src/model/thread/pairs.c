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

/* Mark the ends that got as much, other than the sender. */
static void match(struct lull_pairs *p, u32 sender, u64 bytes)
{
	for (u32 i = 0; i < p->sums.n; i++)
		at(p, i)->is_pair |=
			i != sender && !at(p, i)->is_connected && at(p, i)->got == bytes;
}

void lull_pairs_match(struct lull_pairs *p)
{
	const struct send *sends = p->sends.at;
	struct lull_map totals;

	lull_map_init(&totals);
	for (u32 i = 0; i < p->sums.n; i++) {
		if (at(p, i)->got && !at(p, i)->is_connected)
			lull_map_add(&totals, at(p, i)->got, NULL);
	}
	for (size_t i = 0; i < p->sends.n; i++) {
		struct end *end = at(p, sends[i].end);

		if (end->is_connected)
			continue;
		end->sent += sends[i].bytes;
		if (lull_map_find(&totals, end->sent))
			match(p, sends[i].end, end->sent);
	}
	lull_map_release(&totals);
}

bool lull_pairs_has(const struct lull_pairs *p, u64 key)
{
	const u32 *ix = lull_map_find(&p->ends, key);

	return ix && at(p, *ix - 1)->is_pair;
}
