/*
 * steps: how long each step took, and what its time went to.
 *
 *	steps[?from=&to=][&number=N]
 *	{"n", "has_causes", "found", "n_warm_up", "steady": {"n", "mean_ns", "median_ns", "min_ns",
 *	 "max_ns", "sum_ns", "parts_ns": [rest, by family x 8]}, "median": step,
 *	 "steps": [[number, start, end, busy, rest, by family x 8], ...]}
 *
 * Busy is the time with work on any device, as `lull stats` says it. The others add up to the
 * step: what each family of causes claims, copies and collectives that run alone among them, and
 * the rest. Where no causes were looked for, the rest is the busy time.
 *
 * The numbers are of all steps but those of warm-up; only the first ones are listed, of the whole
 * run or those that match the arguments.
 */
#include "page/page.h"

#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "page/page_steps.h"
#include "page/page_why.h"

#define MAX_STEPS 2000u

/* Both are sorted: steps of one thread follow each other. */
static void add_causes(struct lull_vec *steps, const struct lull_subject *lead)
{
	const struct lull_interval *p = lead->intervals.at;
	struct lull_page_step *s = steps->at;
	size_t first = 0;

	for (size_t i = 0; i < steps->n; i++) {
		while (first < lead->intervals.n && p[first].to_ns <= s[i].span.from_ns)
			first++;
		for (size_t k = first; k < lead->intervals.n && p[k].from_ns < s[i].span.to_ns;
		     k++) {
			struct lull_span cut =
				lull_span_cut((struct lull_span){ p[k].from_ns, p[k].to_ns },
					      s[i].span.from_ns, s[i].span.to_ns);

			s[i].idle_ns[lull_page_family((enum lull_cause_ix)p[k].cause)] +=
				cut.to_ns - cut.from_ns;
		}
	}
}

/*
 * Whether causes were looked for in this step, by its middle: rounds of devices do not begin when
 * steps do, so that the last step of warm-up has a little of the first cause, too.
 */
static bool is_explained(const struct lull_page_step *s, const struct lull_rounds *rounds)
{
	u64 middle_ns = s->span.from_ns + (s->span.to_ns - s->span.from_ns) / 2;

	return lull_rounds_n_steady(rounds) &&
	       middle_ns >= lull_round_begin_ns(rounds, rounds->first_steady) &&
	       middle_ns < lull_round_end_ns(rounds, (u32)rounds->all.n - 1);
}

/* What is left of a step when its causes are taken away; without causes, what devices say. */
static u64 rest_of(struct lull_page_step *s, const struct lull_rounds *rounds)
{
	u64 len_ns = s->span.to_ns - s->span.from_ns, idle_ns = 0;

	for (unsigned c = 0; c < LULL_N_CLASSES; c++)
		idle_ns += s->idle_ns[c];
	if (rounds && idle_ns && is_explained(s, rounds))
		return idle_ns < len_ns ? len_ns - idle_ns : 0;
	memset(s->idle_ns, 0, sizeof(s->idle_ns));
	s->idle_ns[LULL_N_CLASSES - 1] = len_ns - s->busy_ns;
	return s->busy_ns;
}

static u64 length_of(const struct lull_page_step *s)
{
	return s->span.to_ns - s->span.from_ns;
}

static void put_step(struct lull_json *j, const struct lull_timeline *t,
		     const struct lull_page_step *s)
{
	lull_json_array(j);
	lull_json_u64(j, s->number);
	lull_json_u64(j, s->span.from_ns - t->origin_ns);
	lull_json_u64(j, s->span.to_ns - t->origin_ns);
	lull_json_u64(j, s->busy_ns);
	lull_json_u64(j, s->rest_ns);
	for (unsigned c = 0; c < LULL_N_CLASSES; c++)
		lull_json_u64(j, s->idle_ns[c]);
	lull_json_end(j);
}

/*
 * How many of the first steps `lull why` left out as warm-up. Where several loops run at once it
 * looked at one of them, and which steps of the others are warm-up is not known.
 */
static size_t n_warm_up(const struct lull_vec *steps, const struct lull_why *why)
{
	const struct lull_page_step *s = steps->at;
	u32 n_looked = why ? lull_why_n_steps(why) : 0;
	size_t left;

	if (!n_looked || n_looked >= steps->n)
		return 0;
	for (size_t i = 1; i < steps->n; i++)
		if (s[i].number <= s[i - 1].number)
			return 0;
	left = steps->n - n_looked;
	return left <= steps->n / 2 ? left : 0;
}

static int by_length(const void *a, const void *b)
{
	u64 x = length_of(*(const struct lull_page_step *const *)a);
	u64 y = length_of(*(const struct lull_page_step *const *)b);

	return (x > y) - (x < y);
}

/* The steps from `first` on, by length (struct lull_page_step *). */
static void sort_steady(struct lull_vec *sorted, const struct lull_vec *steps, size_t first)
{
	lull_vec_init(sorted, sizeof(struct lull_page_step *));
	for (size_t i = first; i < steps->n; i++)
		*(struct lull_page_step **)lull_vec_push(sorted) = lull_vec_get(steps, i);
	if (sorted->n)
		lull_sort(sorted->at, sorted->n, sizeof(struct lull_page_step *), by_length);
}

static void put_steady(struct lull_json *j, const struct lull_timeline *t,
		       const struct lull_vec *sorted)
{
	struct lull_page_step *const *s = sorted->at;
	size_t n = sorted->n;
	u64 sum_ns = 0, parts_ns[1 + LULL_N_CLASSES] = { 0 };

	for (size_t i = 0; i < n; i++) {
		sum_ns += length_of(s[i]);
		parts_ns[0] += s[i]->rest_ns;
		for (unsigned c = 0; c < LULL_N_CLASSES; c++)
			parts_ns[1 + c] += s[i]->idle_ns[c];
	}
	lull_json_key(j, "steady");
	lull_json_object(j);
	lull_page_pair_u64(j, "n", n);
	lull_page_pair_f64(j, "mean_ns", (f64)sum_ns / (f64)n);
	lull_page_pair_f64(j, "median_ns",
			   ((f64)length_of(s[(n - 1) / 2]) + (f64)length_of(s[n / 2])) / 2);
	lull_page_pair_u64(j, "min_ns", length_of(s[0]));
	lull_page_pair_u64(j, "max_ns", length_of(s[n - 1]));
	lull_page_pair_u64(j, "sum_ns", sum_ns);
	lull_json_key(j, "parts_ns");
	lull_json_array(j);
	for (unsigned c = 0; c <= LULL_N_CLASSES; c++)
		lull_json_u64(j, parts_ns[c]);
	lull_json_end(j);
	lull_json_end(j);
	lull_json_key(j, "median");
	put_step(j, t, s[n / 2]);
}

/* Numbers of all steps. */
static void put_numbers(struct lull_json *j, const struct lull_timeline *t,
			const struct lull_vec *steps, const struct lull_why *why)
{
	size_t n_warm = n_warm_up(steps, why);
	struct lull_vec sorted;

	sort_steady(&sorted, steps, n_warm);
	lull_page_pair_u64(j, "n_warm_up", n_warm);
	if (sorted.n)
		put_steady(j, t, &sorted);
	lull_vec_release(&sorted);
}

struct wanted {
	struct lull_span span;
	u64 number; /* UINT64_MAX: any */
};

static void put_list(struct lull_json *j, const struct lull_timeline *t,
		     const struct lull_vec *steps, const struct wanted *w)
{
	const struct lull_page_step *s = steps->at;
	size_t n = 0;

	lull_json_key(j, "steps");
	lull_json_array(j);
	for (size_t i = 0; i < steps->n && n < MAX_STEPS; i++) {
		if (s[i].span.to_ns <= w->span.from_ns || s[i].span.from_ns >= w->span.to_ns ||
		    (w->number != UINT64_MAX && s[i].number != w->number))
			continue;
		put_step(j, t, &s[i]);
		n++;
	}
	lull_json_end(j);
}

static int run(struct lull_question *q, struct lull_err *err)
{
	bool has_causes =
		lull_page_why(q->report, false) == LULL_PAGE_WHY_DONE && q->report->why->lead;
	const struct lull_why *why = has_causes ? q->report->why : NULL;
	const struct lull_timeline *t = q->report->timeline;
	struct lull_page_step *s;
	struct lull_vec steps;
	struct lull_json j;
	struct wanted w;
	char how[256];

	if (lull_args_span(q->args, t->origin_ns, &w.span, err) ||
	    lull_args_u64(q->args, "number", UINT64_MAX, UINT64_MAX, &w.number, err))
		return err->code;
	if (q->report->told.steps) {
		fputs(q->report->told.steps, q->to);
		return LULL_OK;
	}
	lull_page_steps(q->report, &steps);
	if (why)
		add_causes(&steps, why->lead);
	s = steps.at;
	for (size_t i = 0; i < steps.n; i++)
		s[i].rest_ns = rest_of(&s[i], why ? &why->lead->rounds : NULL);
	lull_json_init(&j, q->to);
	lull_json_object(&j);
	lull_page_pair_u64(&j, "n", steps.n);
	lull_page_pair_bool(&j, "has_causes", has_causes);
	lull_json_key_text(&j, "found",
			   why ? lull_rounds_how(&why->lead->rounds, how, sizeof(how)) : "");
	put_numbers(&j, t, &steps, why);
	put_list(&j, t, &steps, &w);
	lull_json_end(&j);
	lull_vec_release(&steps);
	return LULL_OK;
}

const struct lull_answer lull_answer_steps = {
	.name = "steps",
	.type = "application/json",
	.is_slow = true,
	.is_packed = true,
	.run = run,
};
