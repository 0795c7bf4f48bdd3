/*
 * samples - which functions of the program the launching threads are in while a cause holds.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/sort.h"
#include "cause/evidence.h"
#include "cause/thresholds.h"

#define MAX_FUNCTIONS 2

struct function {
	u64 n;
	u32 stack; /* one that is in it */
};

/* Whether the moment lies in an interval of the cause; intervals are by time. */
static bool is_during(const struct lull_subject *s, enum lull_cause_ix cause, u64 at_ns)
{
	size_t i = lull_vec_upper(&s->intervals, offsetof(struct lull_interval, from_ns), at_ns);
	const struct lull_interval *at = s->intervals.at;

	return i && at[i - 1].to_ns > at_ns && at[i - 1].cause == cause;
}

static int by_n(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->n != y->n)
		return x->n < y->n ? 1 : -1;
	return (x->stack > y->stack) - (x->stack < y->stack);
}

/* Samples of Python or native ones, by function; returns how many there are. */
static u64 count(const struct lull_subject *s, enum lull_cause_ix cause, bool is_python,
		 struct lull_vec *functions)
{
	const struct lull_host_sample *at = s->host.samples.at;
	struct lull_map known;
	u64 n = 0;

	lull_map_init(&known);
	for (size_t i = 0; i < s->host.samples.n; i++) {
		bool is_new;
		u32 *ix;

		if (at[i].is_python != is_python || !is_during(s, cause, at[i].at_ns))
			continue;
		n++;
		ix = lull_map_add(&known, lull_location_function(s, at[i].stack), &is_new);
		if (is_new) {
			*ix = (u32)functions->n;
			((struct function *)lull_vec_push(functions))->stack = at[i].stack;
		}
		((struct function *)lull_vec_get(functions, *ix))->n++;
	}
	lull_map_release(&known);
	if (functions->n)
		lull_sort(functions->at, functions->n, sizeof(struct function), by_n);
	return n;
}

static void show(struct lull_why *why, struct lull_finding *f, const struct lull_vec *functions,
		 u64 n_all, const char *table)
{
	const struct function *at = functions->at;

	for (size_t i = 0, n = 0; i < functions->n && n < MAX_FUNCTIONS; i++) {
		struct lull_location where = lull_location_find(why->lead, LULL_NONE, at[i].stack);
		char place[160];

		lull_location_format(&where, place, sizeof(place));
		if (!*place || (f64)at[i].n < LULL_T(line_share) * (f64)n_all)
			continue;
		lull_show(f, table, NULL, "%llu of %llu samples there: %s",
			  (unsigned long long)at[i].n, (unsigned long long)n_all, place);
		if (!f->at.function)
			f->at = where;
		n++;
	}
}

void lull_show_samples(struct lull_why *why, struct lull_finding *f)
{
	struct lull_vec functions;
	u64 n;

	lull_vec_init(&functions, sizeof(struct function));
	n = count(why->lead, f->cause, true, &functions);
	if (n) {
		show(why, f, &functions, n, "pysample");
	} else {
		n = count(why->lead, f->cause, false, &functions);
		show(why, f, &functions, n, "sample");
	}
	lull_vec_release(&functions);
}

/* Native samples while the cause held, and those of them in the interpreter or in a module. */
struct share {
	u64 n, n_inside;
};

static struct share share_of(const struct lull_subject *s, enum lull_cause_ix cause,
			     const char *module)
{
	const struct lull_host_sample *at = s->host.samples.at;
	struct share found = { 0 };

	for (size_t i = 0; i < s->host.samples.n; i++) {
		if (at[i].is_python || !is_during(s, cause, at[i].at_ns))
			continue;
		found.n++;
		found.n_inside += module ? lull_location_has_module(s->reader, at[i].stack, module)
					 : lull_location_is_interpreter(s->reader, at[i].stack);
	}
	return found;
}

bool lull_samples_interpreted(const struct lull_subject *s, enum lull_cause_ix cause)
{
	struct share found = share_of(s, cause, NULL);

	return found.n >= LULL_TN(update_samples) && found.n_inside * 2 > found.n;
}

bool lull_samples_of(const struct lull_subject *s, enum lull_cause_ix cause, const char *part)
{
	struct share found = share_of(s, cause, part);

	return found.n_inside * 2 > found.n;
}
