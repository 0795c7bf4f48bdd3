/* Candidates for rounds: what they hold, and whether that repeats. */
#include "model/round/round_find.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "model/limits.h"

#define MAX_LEADERS 7	   /* kinds that are told apart; what is like none of them is the rest */
#define MAX_PARTS   8	   /* of one round */
#define MAX_ROUNDS  500000 /* that are looked at; 128 bytes each */

/* What the rounds of a candidate hold. */
struct content {
	u32 *counts; /* by round and bucket */
	u32 *sizes;
	bool *has_update;
	u64 inside_ns, all_ns, before_ns;
	u64 n_inside, n_all, n_before;
};

/* ---- items ---- */

static u8 bucket_of_key(u64 key)
{
	return (u8)((key * 0x9e3779b97f4a7c15ull) >> 59);
}

/* What a call started, or that it waits, as a bucket. */
static u8 bucket_of(const struct lull_loop_finder *f, const struct lull_node *node,
		    const u8 *of_launch)
{
	const struct lull_unit *unit;
	u64 key;

	if (node->unit == LULL_NONE)
		return node->kind == LULL_KIND_OF_SYNC ? bucket_of_key(node->name)
						       : LULL_LOOP_NO_ITEM;
	unit = &f->units->at[node->unit];
	if (unit->kind <= LULL_UNIT_COLLECTIVE)
		return of_launch[unit->what];
	key = (u64)(unit->kind + 1) << 40;
	if (unit->kind == LULL_UNIT_COPY)
		key |= lull_units_copy(f->units, unit)->direction;
	return bucket_of_key(key);
}

void lull_loop_finder_init(struct lull_loop_finder *f, struct lull_reader *r, u32 process,
			   const struct lull_chain *c, const struct lull_units *units,
			   const struct lull_host *h, u32 without)
{
	size_t n;
	const struct lull_launch_row *launches = lull_reader_dim(r, LULL_TABLE_launch, &n);
	u8 *of_launch = lull_alloc(n + 1, 1);

	*f = (struct lull_loop_finder){ .reader = r,
					.chain = c,
					.units = units,
					.host = h,
					.process = process,
					.without = without };
	lull_vec_init(&f->loops, sizeof(struct lull_loop));
	f->buckets = lull_alloc(c->n + 1, 1);
	for (size_t i = 0; i < n; i++)
		of_launch[i + 1] = bucket_of_key(1ull << 40 | launches[i].name);
	for (u32 i = 0; i < c->n; i++) {
		f->buckets[i] = bucket_of(f, &c->nodes[i], of_launch);
		f->n_launches += c->nodes[i].unit != LULL_NONE;
	}
	free(of_launch);
}

static void loop_release(struct lull_loop *l)
{
	lull_vec_release(&l->marks);
	free(l->kinds);
}

void lull_loop_finder_release(struct lull_loop_finder *f)
{
	struct lull_loop *loops = f->loops.at;

	for (size_t i = 0; i < f->loops.n; i++)
		loop_release(&loops[i]);
	lull_vec_release(&f->loops);
	free(f->buckets);
}

struct lull_loop *lull_loop_add(struct lull_loop_finder *f, enum lull_rounds_source source)
{
	struct lull_loop *l = lull_vec_push(&f->loops);

	lull_vec_init(&l->marks, sizeof(u64));
	l->source = source;
	return l;
}

void lull_loop_drop(struct lull_loop_finder *f)
{
	loop_release(lull_vec_get(&f->loops, f->loops.n - 1));
	f->loops.n--;
}

void lull_loop_mark(struct lull_loop *l, u64 begin_ns)
{
	*(u64 *)lull_vec_push(&l->marks) = begin_ns;
}

/* ---- content ---- */

static void add_item(struct content *t, const struct lull_loop_finder *f, u32 at, u32 round,
		     bool is_before)
{
	const struct lull_node *node = &f->chain->nodes[at];
	u64 work_ns = 0;

	for (u32 u = node->unit; u != LULL_NONE; u = f->units->next[u])
		work_ns += f->units->at[u].end_ns - f->units->at[u].begin_ns;
	t->n_all++;
	t->all_ns += work_ns;
	if (round == LULL_NONE) {
		t->n_before += is_before;
		t->before_ns += is_before ? work_ns : 0;
		return;
	}
	t->n_inside++;
	t->inside_ns += work_ns;
	t->counts[(size_t)round * LULL_LOOP_BUCKETS + f->buckets[at]]++;
	t->sizes[round]++;
	if (node->unit != LULL_NONE && f->units->at[node->unit].class == LULL_KERNEL_OPTIMIZER &&
	    f->units->at[node->unit].kind == LULL_UNIT_KERNEL)
		t->has_update[round] = true;
}

static void content_init(struct content *t, const struct lull_loop_finder *f,
			 const struct lull_loop *l, size_t n, u64 until_ns)
{
	const u64 *marks = l->marks.at;

	memset(t, 0, sizeof(*t));
	t->counts = lull_alloc(n * LULL_LOOP_BUCKETS + 1, sizeof(*t->counts));
	t->sizes = lull_alloc(n + 1, sizeof(*t->sizes));
	t->has_update = lull_alloc(n + 1, sizeof(*t->has_update));
	for (u32 k = 0; k < f->chain->n_chains; k++) {
		u32 round = LULL_NONE;

		for (u32 i = f->chain->first[k]; i < f->chain->first[k + 1]; i++) {
			u64 at_ns = f->chain->nodes[i].begin_ns;

			if (at_ns >= until_ns)
				break;
			if (f->buckets[i] == LULL_LOOP_NO_ITEM)
				continue;
			while (round + 1 < n && marks[round + 1] <= at_ns)
				round++;
			add_item(t, f, i, at_ns >= l->last_ns ? LULL_NONE : round,
				 at_ns < marks[0]);
		}
	}
}

static void content_release(struct content *t)
{
	free(t->counts);
	free(t->sizes);
	free(t->has_update);
}

static bool are_alike(const u32 *a, const u32 *b)
{
	u64 both = 0, either = 0;

	for (int i = 0; i < LULL_LOOP_BUCKETS; i++) {
		both += a[i] < b[i] ? a[i] : b[i];
		either += a[i] < b[i] ? b[i] : a[i];
	}
	return (f64)both >= LULL_L(alike) * (f64)either;
}

/* ---- kinds ---- */

/* The first kinds that are met, and how many rounds they have. */
struct leaders {
	u32 at[MAX_LEADERS];
	u32 n_rounds[MAX_LEADERS + 1]; /* the last is the rest */
	u32 n;
};

static u32 leader_of(struct leaders *s, const struct content *t, u32 round)
{
	const u32 *own = t->counts + (size_t)round * LULL_LOOP_BUCKETS;

	for (u32 i = 0; i < s->n; i++) {
		if (are_alike(t->counts + (size_t)s->at[i] * LULL_LOOP_BUCKETS, own))
			return i;
	}
	if (s->n == MAX_LEADERS)
		return MAX_LEADERS;
	s->at[s->n] = round;
	return s->n++;
}

/* Number the kinds by how many rounds they have; a rest comes last. */
static void number_kinds(struct lull_loop *l, const struct leaders *s, size_t n)
{
	u8 number[MAX_LEADERS + 1] = { 0 };

	for (u32 k = 0; k < s->n; k++) {
		for (u32 i = 0; i < s->n; i++)
			number[k] += s->n_rounds[i] > s->n_rounds[k] ||
				     (i < k && s->n_rounds[i] == s->n_rounds[k]);
	}
	number[MAX_LEADERS] = (u8)s->n;
	for (size_t i = 0; i < n; i++)
		l->kinds[i] = number[l->kinds[i]];
	l->n_kinds = s->n + (s->n_rounds[MAX_LEADERS] > 0);
}

/* The last rounds first: those at the start may be warm-up, and unlike all others. */
static void find_kinds(struct lull_loop *l, const struct content *t, size_t n, u64 limit)
{
	struct leaders s = { .n = 0 };
	u64 known = 0, all = 0;
	u32 most = 0;

	free(l->kinds);
	l->kinds = lull_alloc(l->marks.n + 1, 1);
	for (size_t i = n; i-- > 0;) {
		l->kinds[i] = (u8)leader_of(&s, t, (u32)i);
		s.n_rounds[l->kinds[i]]++;
	}
	for (size_t i = 0; i < n; i++) {
		u64 size = t->sizes[i];

		all += size;
		if (s.n_rounds[l->kinds[i]] > 1 && l->kinds[i] < MAX_LEADERS)
			known += size < limit ? size : limit;
	}
	for (u32 i = 0; i < s.n; i++)
		most = s.n_rounds[i] > most ? s.n_rounds[i] : most;
	l->even = all ? (f64)known / (f64)all : 0;
	l->usual = n ? (f64)most / (f64)n : 0;
	number_kinds(l, &s, n);
}

/* ---- judgement ---- */

static u64 median_of(u64 *at, size_t n)
{
	if (!n)
		return 0;
	lull_sort_u64(at, n);
	return at[n / 2];
}

/* When the first LULL_LOOP_LOOK calls of the longest chain are over. */
static u64 look_until_ns(const struct lull_loop_finder *f)
{
	u64 until_ns = UINT64_MAX;
	u32 most = LULL_LOOP_LOOK;

	for (u32 k = 0; k < f->chain->n_chains; k++) {
		u32 n = f->chain->first[k + 1] - f->chain->first[k];

		if (n <= most)
			continue;
		most = n;
		until_ns = f->chain->nodes[f->chain->first[k] + LULL_LOOP_LOOK].begin_ns;
	}
	return until_ns;
}

/* What a run of small rounds at an end has in common is not what the loop does. */
static void find_ends(struct lull_loop *l, const struct content *t, size_t n)
{
	f64 least = LULL_L(small) * (f64)l->median_size;
	size_t first = 0, last = n;

	while (first < n && (f64)t->sizes[first] < least)
		first++;
	while (last > first && (f64)t->sizes[last - 1] < least)
		last--;
	l->n_start = (u32)first;
	l->n_end = n == l->marks.n ? (u32)(n - last) : 0;
}

static f64 share(u64 part, u64 all, f64 less)
{
	f64 of = (f64)all - less;

	return of > 0 ? (f64)part / of : 0;
}

static void measure(struct lull_loop *l, const struct content *t, size_t n)
{
	u64 *values = lull_alloc(n + 1, sizeof(*values));
	const u64 *marks = l->marks.at;
	size_t n_values = 0, n_updated = 0;

	for (size_t i = 0; i < n; i++) {
		if (t->sizes[i])
			values[n_values++] = t->sizes[i];
		n_updated += t->has_update[i];
	}
	l->n = (u32)n_values;
	l->updated = n_values ? (f64)n_updated / (f64)n_values : 0;
	l->median_size = median_of(values, n_values);
	for (size_t i = 0; i < n; i++)
		values[i] = (i + 1 < l->marks.n ? marks[i + 1] : l->last_ns) - marks[i];
	l->median_ns = median_of(values, n);
	/*
	 * A thread that runs ahead has short rounds; on the device they last as long as their work.
	 */
	if (l->n && t->inside_ns / l->n > l->median_ns)
		l->median_ns = t->inside_ns / l->n;
	free(values);
}

void lull_loop_judge(const struct lull_loop_finder *f, struct lull_loop *l, bool is_guess)
{
	u64 until_ns = is_guess ? look_until_ns(f) : UINT64_MAX, *marks;
	struct content t;
	size_t n;
	f64 less = 1 - LULL_L(before);

	if (l->marks.n)
		lull_sort_u64(l->marks.at, l->marks.n);
	marks = l->marks.at;
	while (l->marks.n && marks[l->marks.n - 1] >= l->last_ns)
		l->marks.n--;
	for (n = l->marks.n; n && (n > MAX_ROUNDS || marks[n - 1] >= until_ns); n--)
		continue;
	if (n == MAX_ROUNDS && n < l->marks.n)
		until_ns = marks[n];
	l->n = 0;
	l->n_judged = (u32)n;
	l->covered = l->even = l->weight = 0;
	if (!n || !f->chain->n)
		return;
	content_init(&t, f, l, n, until_ns);
	measure(l, &t, n);
	find_kinds(l, &t, n, (u64)(LULL_L(large) * (f64)l->median_size));
	find_ends(l, &t, n);
	l->covered = fmin(share(t.n_inside, t.n_all, 0), share(t.inside_ns, t.all_ns, 0));
	l->weight = fmin(share(t.n_inside, t.n_all, less * (f64)t.n_before),
			 share(t.inside_ns, t.all_ns, less * (f64)t.before_ns));
	content_release(&t);
}

/* ---- the ends ---- */

void lull_loop_trim(const struct lull_loop_finder *f, struct lull_loop *l, bool is_guess)
{
	u64 *marks = l->marks.at;
	size_t n = l->marks.n;

	if (!l->n_start && !l->n_end)
		return;
	if (n < (size_t)l->n_start + l->n_end + LULL_LN(rounds_least))
		return;
	if (l->n_end)
		l->last_ns = marks[n - l->n_end];
	n -= l->n_start + l->n_end;
	memmove(marks, marks + l->n_start, n * sizeof(*marks));
	l->marks.n = n;
	lull_loop_judge(f, l, is_guess);
}

/* ---- parts of one round ---- */

/* The share of rounds whose kind is the same `lag` rounds later. */
static f64 same_share(const struct lull_loop *l, size_t n, size_t lag)
{
	size_t n_same = 0;

	for (size_t i = 0; i + lag < n; i++)
		n_same += l->kinds[i] == l->kinds[i + lag];
	return n > lag ? (f64)n_same / (f64)(n - lag) : 0;
}

void lull_loop_merge(const struct lull_loop_finder *f, struct lull_loop *l, bool is_guess)
{
	u64 *marks = l->marks.at;
	size_t n = l->marks.n, parts = 2, n_kept = 0;

	if (l->n != n || 1 - same_share(l, n, 1) < LULL_L(same_order))
		return;
	while (parts <= MAX_PARTS && same_share(l, n, parts) < LULL_L(same_order))
		parts++;
	if (parts > MAX_PARTS || n / parts < LULL_LN(rounds_least))
		return;
	/* What is left over at the end is no whole round. */
	if (n % parts)
		l->last_ns = marks[n - n % parts];
	for (size_t i = 0; i + parts <= n; i += parts)
		marks[n_kept++] = marks[i];
	l->marks.n = n_kept;
	lull_loop_judge(f, l, is_guess);
}
