/*
 * samples - which functions of the program the launching threads are in while a cause holds.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/sort.h"
#include "cause/evidence.h"
#include "cause/thresholds.h"

#define MAX_FUNCTIONS 2

struct function {
	u64 function;
	u64 n, n_line; /* samples in it, and at its line with most */
	u32 stack;     /* one at that line */
	u32 frame;
};

/* Whether the moment lies in an interval of the cause; intervals are by time. */
static bool is_during(const struct lull_subject *s, enum lull_cause_ix cause, u64 at_ns)
{
	size_t i = lull_vec_upper(&s->intervals, offsetof(struct lull_interval, from_ns), at_ns);
	const struct lull_interval *at = s->intervals.at;

	return i && at[i - 1].to_ns > at_ns && at[i - 1].cause == cause;
}

static int by_line(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->function != y->function)
		return x->function < y->function ? -1 : 1;
	if (x->n != y->n)
		return x->n < y->n ? 1 : -1;
	return (x->frame > y->frame) - (x->frame < y->frame);
}

static int by_n(const void *a, const void *b)
{
	const struct function *x = a, *y = b;

	if (x->n != y->n)
		return x->n < y->n ? 1 : -1;
	return (x->frame > y->frame) - (x->frame < y->frame);
}

/* Which samples; is_idle: the thread was not on a CPU. */
struct kind {
	bool is_python, is_idle;
};

/* Samples of this kind by line; returns how many there are. */
static u64 count_lines(const struct lull_subject *s, enum lull_cause_ix cause, struct kind kind,
		       struct lull_vec *lines)
{
	const struct lull_host_sample *at = s->host.samples.at;
	struct lull_map known;
	u64 n = 0;

	lull_map_init(&known);
	for (size_t i = 0; i < s->host.samples.n; i++) {
		struct function *line;
		bool is_new;
		u32 *ix, frame;

		if (at[i].is_python != kind.is_python || at[i].is_idle != kind.is_idle ||
		    !is_during(s, cause, at[i].at_ns))
			continue;
		n++;
		frame = lull_location_frame(s, at[i].stack);
		ix = lull_map_add(&known, frame, &is_new);
		if (is_new) {
			*ix = (u32)lines->n;
			line = lull_vec_push(lines);
			line->function = lull_location_function(s, at[i].stack);
			line->stack = at[i].stack;
			line->frame = frame;
		}
		line = lull_vec_get(lines, *ix);
		line->n_line = ++line->n;
	}
	lull_map_release(&known);
	return n;
}

/* Samples of this kind by function, most first; returns how many there are. */
static u64 count(const struct lull_subject *s, enum lull_cause_ix cause, struct kind kind,
		 struct lull_vec *functions)
{
	u64 n = count_lines(s, cause, kind, functions);
	struct function *at = functions->at;
	size_t n_functions = 0;

	if (!n)
		return 0;
	lull_sort(at, functions->n, sizeof(*at), by_line);
	for (size_t i = 0; i < functions->n; i++) {
		if (n_functions && at[n_functions - 1].function == at[i].function)
			at[n_functions - 1].n += at[i].n;
		else
			at[n_functions++] = at[i];
	}
	functions->n = n_functions;
	lull_sort(at, n_functions, sizeof(*at), by_n);
	return n;
}

/* Whether the line above names this place already. */
static bool is_said(const struct lull_finding *f, const char *place)
{
	char said[160];

	lull_location_format(&f->at, said, sizeof(said));
	return f->evidence.n == 1 && !strcmp(said, place);
}

/* "235 of 245 samples there, 160 at this line: rerank.py:37 rerank", as far as it says more. */
static void show_one(struct lull_finding *f, const struct function *at,
		     const struct lull_location *where, u64 n_all, const char *table)
{
	bool has_lines = where->file && at->n_line < at->n;
	unsigned long long n = at->n, n_line = at->n_line, all = n_all;
	char place[160], line[64] = "";

	lull_location_format(where, place, sizeof(place));
	if (has_lines)
		snprintf(line, sizeof(line), ", %llu at this line", n_line);
	if (!is_said(f, place))
		lull_show(f, table, NULL, "%llu of %llu samples there%s: %s", n, all, line, place);
	else if (has_lines)
		lull_show(f, table, NULL, "%llu of %llu samples are in this function%s", n, all,
			  line);
	else
		lull_show(f, table, NULL, "%llu of %llu samples are there", n, all);
}

static void show(struct lull_why *why, struct lull_finding *f, const struct lull_vec *functions,
		 u64 n_all, const char *table)
{
	const struct function *at = functions->at;

	for (size_t i = 0, n = 0; i < functions->n && n < MAX_FUNCTIONS; i++) {
		struct lull_location where = lull_location_find(why->lead, LULL_NONE, at[i].stack);

		if ((!where.file && !where.function) ||
		    (f64)at[i].n < LULL_T(line_share) * (f64)n_all)
			continue;
		show_one(f, &at[i], &where, n_all, table);
		if (!f->at.function)
			f->at = where;
		n++;
	}
}

void lull_show_samples(struct lull_why *why, struct lull_finding *f)
{
	/* Others of the launching threads may wait meanwhile for the one that runs. */
	static const struct kind kinds[] = { { true, false }, { true, true }, { false, false } };
	struct lull_vec functions;

	for (size_t i = 0; i < LULL_COUNT_OF(kinds); i++) {
		u64 n;

		lull_vec_init(&functions, sizeof(struct function));
		n = count(why->lead, f->cause, kinds[i], &functions);
		show(why, f, &functions, n, kinds[i].is_python ? "pysample" : "sample");
		lull_vec_release(&functions);
		if (n)
			break;
	}
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
