#include "page/page_why.h"

#include <stdlib.h>

#include "base/mem.h"
#include "model/work.h"
#include "page/page_steps.h"
#include "timeline/idle_cause.h"
#include "timeline/name.h"
#include "timeline/rounds_row.h"

/* 120 bytes each: 60 MB, and a second. */
#define MAX_WORKS 500000u

u8 lull_page_family(enum lull_cause_ix cause)
{
	enum lull_family family = lull_causes[cause]->family;

	/* The page counts from 0 and has the others last. */
	return (u8)(family == LULL_FAMILY_OTHER ? LULL_N_FAMILIES - 1 : family - 1);
}

void lull_page_pieces(const struct lull_subject *s, struct lull_vec *pieces)
{
	const struct lull_interval *at = s->intervals.at;

	for (size_t i = 0; i < s->intervals.n; i++) {
		struct lull_idle *piece = lull_vec_push(pieces);

		piece->span = (struct lull_span){ at[i].from_ns, at[i].to_ns };
		piece->cause = LULL_NAME_CAUSE | at[i].cause;
		piece->family = lull_page_family((enum lull_cause_ix)at[i].cause);
	}
}

bool lull_page_why_is_large(const struct lull_page_report *report)
{
	return lull_work_count(report->slow, LULL_WORK_ALL) > MAX_WORKS;
}

/* Idle time of the timeline gets the causes that were found. */
static void show_causes(struct lull_page_report *report)
{
	struct lull_vec pieces;

	pthread_mutex_lock(&report->quick_lock);
	for (u32 i = 0; i < report->why->n_subjects; i++) {
		const struct lull_subject *s = &report->why->subjects[i];

		lull_vec_init(&pieces, sizeof(struct lull_idle));
		lull_page_pieces(s, &pieces);
		lull_idle_set_causes(report->timeline, s->device, &pieces);
		lull_vec_release(&pieces);
	}
	pthread_mutex_unlock(&report->quick_lock);
}

void lull_page_rounds(struct lull_page_report *report, struct lull_vec *rounds)
{
	const struct lull_page_step *s;
	struct lull_vec steps;

	lull_vec_init(rounds, sizeof(struct lull_tl_round));
	lull_page_steps(report, &steps);
	s = steps.at;
	for (size_t i = 0; i < steps.n; i++)
		*(struct lull_tl_round *)lull_vec_push(rounds) =
			(struct lull_tl_round){ s[i].number, s[i].span };
	lull_vec_release(&steps);
}

void lull_page_show_rounds(struct lull_page_report *report, const struct lull_vec *rounds)
{
	pthread_mutex_lock(&report->quick_lock);
	lull_rounds_row_set(report->timeline, rounds->at, rounds->n);
	pthread_mutex_unlock(&report->quick_lock);
}

enum lull_page_why_state lull_page_why(struct lull_page_report *report, bool is_forced)
{
	struct lull_why_options options = { .path = report->name };
	struct lull_err err = { LULL_OK, "" };

	if (report->why)
		return LULL_PAGE_WHY_DONE;
	if (report->why_failed)
		return LULL_PAGE_WHY_FAILED;
	if (!is_forced && lull_page_why_is_large(report))
		return LULL_PAGE_WHY_LARGE;
	report->why = lull_alloc(1, sizeof(*report->why));
	if (lull_why_run(report->why, report->slow, &options, &err)) {
		free(report->why);
		report->why = NULL;
		report->why_failed = lull_strdup(err.msg);
		return LULL_PAGE_WHY_FAILED;
	}
	show_causes(report);
	return LULL_PAGE_WHY_DONE;
}

void lull_page_why_release(struct lull_page_report *report)
{
	if (report->why)
		lull_why_release(report->why);
	free(report->why);
	free(report->why_failed);
	free(report->told.verdict);
	free(report->told.steps);
	report->why = NULL;
	report->why_failed = report->told.verdict = report->told.steps = NULL;
}
