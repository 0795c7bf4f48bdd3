#include "counter/change.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "counter/judge.h"

const struct lull_change_info lull_change_infos[] = {
#define CHANGE(key, kind, label, reason) { LULL_K_##key, LULL_CHANGE_##kind, label, reason },
#include "counter/changes.def"
#undef CHANGE
};

/* Less is not worth a reason; counters of two runs differ by a few percent anyway. */
#define NOTABLE 1.1

/* How much of the name counts: up to the list of arguments, which compilers spell differently. */
static size_t name_len(const char *name)
{
	size_t len = strlen(name), depth = 0;

	if (!len || name[len - 1] != ')')
		return len;
	for (size_t i = len; i-- > 0;) {
		depth += name[i] == ')';
		if (name[i] == '(' && --depth == 0)
			return i ? i : len;
	}
	return len;
}

static bool is_same(const char *a, const char *b)
{
	size_t len = name_len(a);

	return len == name_len(b) && memcmp(a, b, len) == 0;
}

static struct lull_change *find(struct lull_vec *to, const char *name)
{
	struct lull_change *c = to->at;

	for (size_t i = 0; i < to->n; i++)
		if (is_same(c[i].name, name))
			return &c[i];
	c = lull_vec_push(to);
	c->name = name;
	return c;
}

/* Sums first; settle() makes means of them. NaN in one launch makes the mean NaN. */
static void add_side(struct lull_vec *to, const struct lull_profiles *all, int side)
{
	const struct lull_profile *p = all->items.at;

	for (size_t i = 0; i < all->items.n; i++) {
		struct lull_change *c = find(to, p[i].name);

		c->n[side]++;
		c->dur_ns[side] += (f64)p[i].dur_ns;
		for (int k = 0; k < LULL_N_CHANGES; k++)
			c->values[k][side] += lull_k_of(&p[i], lull_change_infos[k].k);
		for (int k = 0; k < LULL_N_STALLS; k++)
			c->stalls[k][side] += lull_stall_share(&p[i], (enum lull_stall_ix)k);
	}
}

/* The verdict of the longest launch of this kernel. */
static const char *verdict_of(const struct lull_profiles *all, const char *name)
{
	const struct lull_profile *p = all->items.at, *longest = NULL;
	struct lull_judgement j;

	for (size_t i = 0; i < all->items.n; i++)
		if (is_same(p[i].name, name) && (!longest || p[i].dur_ns > longest->dur_ns))
			longest = &p[i];
	if (!longest)
		return NULL;
	lull_judge(&j, longest);
	return lull_judgement_id(&j);
}

static void settle(struct lull_change *c)
{
	for (int side = 0; side < 2; side++) {
		f64 n = (f64)c->n[side];

		c->dur_ns[side] /= n;
		for (int k = 0; k < LULL_N_CHANGES; k++)
			c->values[k][side] /= n;
		for (int k = 0; k < LULL_N_STALLS; k++)
			c->stalls[k][side] /= n;
	}
}

/* ---- why ---- */

/* How far the change of a value is from that of the time; infinite if it went the other way. */
static f64 distance(const struct lull_change *c, int k, f64 ratio)
{
	const f64 *v = c->values[k];
	f64 had = lull_change_infos[k].kind == LULL_CHANGE_WORK ? v[0] / v[1] : v[1] / v[0];

	if (!(v[0] > 0 && v[1] > 0) || (ratio > 1 ? had : 1 / had) < NOTABLE)
		return INFINITY;
	return fabs(log(had / ratio));
}

/* The value of this kind that comes closest, if it explains at least half; -1 if none does. */
static int closest(const struct lull_change *c, enum lull_change_kind kind, f64 ratio)
{
	f64 least = fabs(log(ratio)) / 2;
	int best = -1;

	for (int k = 0; k < LULL_N_CHANGES; k++) {
		f64 d = lull_change_infos[k].kind == kind ? distance(c, k, ratio) : INFINITY;

		if (d < least) {
			least = d;
			best = k;
		}
	}
	return best;
}

/*
 * Less work explains less time. A rate goes up whenever the same work takes less time, so it only
 * counts where no amount of work does.
 */
static int best_reason(const struct lull_change *c, f64 ratio)
{
	int reason = closest(c, LULL_CHANGE_WORK, ratio);

	return reason >= 0 ? reason : closest(c, LULL_CHANGE_RATE, ratio);
}

int lull_change_stall(const struct lull_change *c)
{
	int most = -1;
	f64 size = 0;

	for (int k = 0; k < LULL_N_STALLS; k++) {
		f64 change = fabs(c->stalls[k][1] - c->stalls[k][0]);

		if (lull_stalls[k].kind != LULL_STALL_WORK && change > size) {
			size = change;
			most = k;
		}
	}
	return most;
}

static void append(char *to, size_t size, const char *text)
{
	size_t len = strlen(to);

	if (len < size)
		snprintf(to + len, size - len, "%s", text);
}

static void explain(struct lull_change *c)
{
	f64 ratio = c->dur_ns[0] / c->dur_ns[1];
	int reason = best_reason(c, ratio), stall = lull_change_stall(c);
	char part[160];

	if (!(ratio >= NOTABLE || ratio <= 1 / NOTABLE)) {
		snprintf(c->why, sizeof(c->why), "it takes as long as before");
		return;
	}
	c->is_changed = true;
	snprintf(c->why, sizeof(c->why), "%.2f x %s", ratio > 1 ? ratio : 1 / ratio,
		 ratio > 1 ? "faster" : "slower");
	if (reason >= 0) {
		const struct lull_change_info *info = &lull_change_infos[reason];
		const char *unit = lull_k_infos[info->k].unit;

		/* Reasons are worded for what got better. */
		snprintf(part, sizeof(part), "%s%s: %s before, %s after",
			 ratio > 1 ? ", because " : "; ", ratio > 1 ? info->reason : info->label,
			 lull_k_format(c->values[reason][0], unit).text,
			 lull_k_format(c->values[reason][1], unit).text);
		append(c->why, sizeof(c->why), part);
	}
	if (stall >= 0 && fabs(c->stalls[stall][1] - c->stalls[stall][0]) >= 0.05) {
		snprintf(part, sizeof(part),
			 "; %s %.0f %% of the warps' time before, %.0f %% after",
			 lull_stalls[stall].title, 100 * c->stalls[stall][0],
			 100 * c->stalls[stall][1]);
		append(c->why, sizeof(c->why), part);
	}
}

/* The only one that this side alone has, -1 if there are none or several. */
static int only_of(const struct lull_vec *all, int side)
{
	const struct lull_change *c = all->at;
	int found = -1;

	for (size_t i = 0; i < all->n; i++) {
		if (!c[i].n[side] || c[i].n[!side])
			continue;
		if (found >= 0)
			return -1;
		found = (int)i;
	}
	return found;
}

/* Whoever makes a kernel faster often gives it a new name. */
static void join_renamed(struct lull_vec *all)
{
	struct lull_change *c = all->at, *from, *to;
	int before = only_of(all, 0), after = only_of(all, 1);

	if (before < 0 || after < 0)
		return;
	from = &c[before];
	to = &c[after];
	to->was = from->name;
	to->n[0] = from->n[0];
	to->dur_ns[0] = from->dur_ns[0];
	for (int k = 0; k < LULL_N_CHANGES; k++)
		to->values[k][0] = from->values[k][0];
	for (int k = 0; k < LULL_N_STALLS; k++)
		to->stalls[k][0] = from->stalls[k][0];
	*from = c[--all->n];
}

static int by_difference(const void *a, const void *b)
{
	const struct lull_change *x = a, *y = b;
	bool x_both = x->n[0] && x->n[1], y_both = y->n[0] && y->n[1];
	f64 dx = fabs(x->dur_ns[1] - x->dur_ns[0]), dy = fabs(y->dur_ns[1] - y->dur_ns[0]);

	if (x_both != y_both)
		return x_both ? -1 : 1;
	if (x_both && dx != dy)
		return dx > dy ? -1 : 1;
	return strcmp(x->name, y->name);
}

void lull_changes_find(struct lull_vec *to, const struct lull_profiles *before,
		       const struct lull_profiles *after)
{
	struct lull_change *c;

	lull_vec_init(to, sizeof(struct lull_change));
	add_side(to, before, 0);
	add_side(to, after, 1);
	join_renamed(to);
	c = to->at;
	for (size_t i = 0; i < to->n; i++) {
		settle(&c[i]);
		c[i].verdict[0] = verdict_of(before, c[i].was ? c[i].was : c[i].name);
		c[i].verdict[1] = verdict_of(after, c[i].name);
		if (c[i].n[0] && c[i].n[1])
			explain(&c[i]);
		else
			snprintf(c[i].why, sizeof(c[i].why), "only measured %s",
				 c[i].n[0] ? "before" : "after");
	}
	if (to->n)
		lull_sort(to->at, to->n, sizeof(struct lull_change), by_difference);
}
