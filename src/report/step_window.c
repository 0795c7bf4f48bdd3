#include "report/step_window.h"

#include <ctype.h>
#include <stdlib.h>

#include "base/sort.h"
#include "model/step.h"
#include "report/process_rounds.h"
#include "report/report.h"

/* ---- the steps ---- */

static void add(struct lull_step_list *list, u64 number, struct lull_span span)
{
	*(struct lull_step_span *)lull_vec_push(&list->all) =
		(struct lull_step_span){ number, span };
}

static void take_rounds(void *ctx, const struct lull_process_rounds *p)
{
	struct lull_step_list *list = ctx;

	list->process = p->process;
	list->first_steady = p->rounds.first_steady;
	for (u32 i = 0; i < p->rounds.all.n; i++)
		add(list, p->numbers[i], lull_process_round_window(p, i));
}

/* Without work of a device: what the program marks, and the first one is warm-up. */
static void take_table(struct lull_step_list *list, struct lull_reader *r)
{
	size_t n_lanes;
	const struct lull_lane_row *lanes = lull_reader_dim(r, LULL_TABLE_lane, &n_lanes);
	struct lull_steps steps;
	const struct lull_step *at;
	u32 lane;

	lull_steps_init(&steps, r, LULL_SPAN_ALL);
	at = steps.all.at;
	lane = lull_steps_main_lane(&steps);
	list->process = lane ? lanes[lane - 1].process : 0;
	for (size_t i = 0; i < steps.all.n; i++) {
		if (at[i].lane == lane)
			add(list, at[i].number,
			    (struct lull_span){ at[i].start_ns,
						lull_span_end_ns(at[i].start_ns, at[i].dur_ns) });
	}
	list->first_steady = list->all.n ? 1 : 0;
	lull_steps_release(&steps);
}

void lull_step_list_init(struct lull_step_list *list, struct lull_reader *r)
{
	*list = (struct lull_step_list){ 0 };
	lull_vec_init(&list->all, sizeof(struct lull_step_span));
	if (!lull_process_rounds_each(r, true, take_rounds, list))
		take_table(list, r);
}

void lull_step_list_release(struct lull_step_list *list)
{
	lull_vec_release(&list->all);
}

/* ---- the option ---- */

/* FIRST[-LAST]; false if it is something else. */
static bool parse(const char *text, u64 *first, u64 *last)
{
	char *end;

	if (!isdigit((unsigned char)*text))
		return false;
	*first = *last = strtoull(text, &end, 10);
	if (*end == '-' && isdigit((unsigned char)end[1]))
		*last = strtoull(end + 1, &end, 10);
	return !*end;
}

int lull_step_option_check(const struct lull_step_option *option, struct lull_err *err)
{
	u64 first, last;

	if (option->steps && option->is_steady)
		return lull_fail(err, LULL_E_USAGE,
				 "give --steady or --steps, not both: each says which steps count");
	if (!option->steps)
		return LULL_OK;
	if (!parse(option->steps, &first, &last))
		return lull_fail(err, LULL_E_USAGE,
				 "--steps: steps are given as 5 or 5-10, not \"%s\"",
				 option->steps);
	if (last < first)
		return lull_fail(err, LULL_E_USAGE, "--steps: %s ends before it starts",
				 option->steps);
	return LULL_OK;
}

/* The step of this number; list->all.n if there is none. */
static size_t find(const struct lull_step_list *list, u64 number)
{
	const struct lull_step_span *at = list->all.at;
	size_t ix = 0;

	while (ix < list->all.n && at[ix].number != number)
		ix++;
	return ix;
}

static int no_step(const struct lull_step_list *list, u64 number, struct lull_err *err)
{
	const struct lull_step_span *at = list->all.at;

	return lull_fail(err, LULL_E_NOT_FOUND,
			 "--steps: there is no step %llu; the report has %llu to %llu",
			 (unsigned long long)number, (unsigned long long)at[0].number,
			 (unsigned long long)at[list->all.n - 1].number);
}

/* Where the chosen steps begin and end in the list. */
static int choose(const struct lull_step_list *list, const struct lull_step_option *option,
		  size_t *first_ix, size_t *last_ix, struct lull_err *err)
{
	u64 first = 0, last = 0;

	if (!list->all.n)
		return lull_fail(err, LULL_E_NOT_FOUND, "%s", LULL_STEPS_NONE);
	*first_ix = list->first_steady;
	*last_ix = list->all.n - 1;
	if (option->is_steady)
		return *first_ix <= *last_ix
			       ? LULL_OK
			       : lull_fail(err, LULL_E_NOT_FOUND,
					   "no steady steps: the report has one step, and the "
					   "first one is warm-up");
	parse(option->steps, &first, &last);
	*first_ix = find(list, first);
	*last_ix = find(list, last);
	if (*first_ix == list->all.n)
		return no_step(list, first, err);
	if (*last_ix == list->all.n || *last_ix < *first_ix)
		return no_step(list, last, err);
	return LULL_OK;
}

int lull_step_window_find(struct lull_step_window *window, const struct lull_step_option *option,
			  struct lull_reader *r, struct lull_err *err)
{
	struct lull_step_list list;
	size_t first_ix = 0, last_ix = 0;
	int rc = lull_step_option_check(option, err);

	if (rc)
		return rc;
	lull_step_list_init(&list, r);
	rc = choose(&list, option, &first_ix, &last_ix, err);
	if (!rc) {
		const struct lull_step_span *at = list.all.at;

		*window = (struct lull_step_window){
			.span = { at[first_ix].span.from_ns, at[last_ix].span.to_ns },
			.first = at[first_ix].number,
			.last = at[last_ix].number,
			.first_ix = first_ix,
			.n = last_ix - first_ix + 1,
			.n_all = list.all.n,
		};
	}
	lull_step_list_release(&list);
	return rc;
}

void lull_step_window_name(struct lull_str *to, const struct lull_step_window *window)
{
	if (window->n == 1)
		lull_str_addf(to, "step %llu (1 of %zu)", (unsigned long long)window->first,
			      window->n_all);
	else
		lull_str_addf(to, "steps %llu to %llu (%zu of %zu)",
			      (unsigned long long)window->first, (unsigned long long)window->last,
			      window->n, window->n_all);
}

void lull_step_window_say(const struct lull_step_window *window, const char *path)
{
	struct lull_str name = LULL_STR_INIT;

	lull_step_window_name(&name, window);
	fprintf(stderr, "lull: %s%sonly %s\n", path ? path : "", path ? ": " : "",
		lull_str_text(&name));
	lull_str_release(&name);
}
