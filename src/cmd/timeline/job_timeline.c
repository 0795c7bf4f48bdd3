#include "cmd/timeline/job_timeline.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "cause/why.h"
#include "cmd/losses.h"
#include "cmd/timeline/cause_letters.h"
#include "import/import.h"
#include "model/words.h"
#include "text/strip.h"
#include "text/term.h"

/* Columns of the words before each line. */
#define LABEL_COLUMNS 14

/* What a rank does: strips on the clock of the job, from the start of the picture on. */
struct row {
	const struct lull_job_rank *rank;
	struct lull_strip compute;
	struct lull_strip causes[LULL_N_CAUSES];
};

struct picture {
	FILE *to;
	const struct lull_job *job;
	const struct lull_timeline_look *look;
	i64 from_ns, to_ns; /* time of the job */
	u32 first, n;	    /* steps of the job, from 0 on */
	size_t n_cells;
	struct lull_vec rows; /* struct row */
	struct lull_cause_letters letters;
};

/* ---- which steps ---- */

static bool is_shown(const struct picture *p, const struct lull_job_step *step)
{
	return step->number >= p->first && step->number < p->first + p->n;
}

/* From the start of the first rank in these steps to the end of the last. */
static bool find_span(struct picture *p)
{
	const struct lull_job_rank *ranks = p->job->ranks.at;
	bool is_found = false;

	for (size_t i = 0; i < p->job->ranks.n; i++) {
		u32 n;
		const struct lull_job_step *steps = lull_job_steps(p->job, &ranks[i], &n);

		for (u32 k = 0; k < n; k++) {
			i64 from_ns = steps[k].end_ns - (i64)steps[k].dur_ns;

			if (!is_shown(p, &steps[k]))
				continue;
			p->from_ns = !is_found || from_ns < p->from_ns ? from_ns : p->from_ns;
			p->to_ns = !is_found || steps[k].end_ns > p->to_ns ? steps[k].end_ns
									   : p->to_ns;
			is_found = true;
		}
	}
	return is_found && p->to_ns > p->from_ns;
}

static int choose(struct picture *p, struct lull_err *err)
{
	const struct lull_job *job = p->job;
	u64 step = p->look->step, first = job->first_step;

	if (!job->n_steps)
		return lull_fail(err, LULL_E_NOT_FOUND, "no steps were found that ranks share");
	p->n = p->look->n_steps < job->n_steps ? p->look->n_steps : job->n_steps;
	p->first = (job->n_steps - p->n) / 2;
	if (step != LULL_TIMELINE_NO_STEP && (step < first || step >= first + job->n_steps))
		return lull_fail(err, LULL_E_NOT_FOUND,
				 "there is no step %llu; the job has %u, from %llu to %llu",
				 (unsigned long long)step, job->n_steps, (unsigned long long)first,
				 (unsigned long long)(first + job->n_steps - 1));
	if (step != LULL_TIMELINE_NO_STEP)
		p->first = (u32)(step - first);
	if (!find_span(p))
		return lull_fail(err, LULL_E_NOT_FOUND, "its steps take no time");
	return LULL_OK;
}

/* ---- what ranks do ---- */

/* Add a stretch of the rank's own time. */
static void add(const struct picture *p, const struct row *row, struct lull_strip *s, u64 from_ns,
		u64 to_ns)
{
	i64 from = lull_job_time(row->rank, from_ns) - p->from_ns;
	i64 to = lull_job_time(row->rank, to_ns) - p->from_ns;

	if (to > 0)
		lull_strip_add(s, from > 0 ? (u64)from : 0, (u64)to);
}

static void fill(const struct picture *p, struct row *row, const struct lull_subject *s)
{
	const struct lull_interval *at = s->intervals.at;

	for (u32 i = 0; i < s->units.n; i++) {
		const struct lull_unit *unit = &s->units.at[i];

		if (unit->kind == LULL_UNIT_KERNEL && unit->class != LULL_KERNEL_COLLECTIVE)
			add(p, row, &row->compute, unit->begin_ns, unit->end_ns);
	}
	for (size_t i = 0; i < s->intervals.n; i++)
		add(p, row, &row->causes[at[i].cause], at[i].from_ns, at[i].to_ns);
}

static int read_rank(struct picture *p, const struct lull_job_rank *rank, struct lull_err *err)
{
	struct row *row = lull_vec_push(&p->rows);
	struct lull_str path = LULL_STR_INIT;
	struct lull_why_options options = { 0 };
	u64 dur_ns = (u64)(p->to_ns - p->from_ns);
	struct lull_reader *r;
	struct lull_why why;
	int rc = LULL_OK;

	*row = (struct row){ .rank = rank };
	lull_strip_init(&row->compute, 0, dur_ns, p->n_cells);
	for (int c = 0; c < LULL_N_CAUSES; c++)
		lull_strip_init(&row->causes[c], 0, dur_ns, p->n_cells);
	if (!rank->has_why)
		return LULL_OK; /* it has no work of a device: its line is empty */
	lull_job_path(p->job, rank, &path);
	options.path = lull_str_text(&path);
	rc = lull_import_open(options.path, &r, err);
	if (!rc) {
		rc = lull_why_run(&why, r, &options, err);
		if (!rc)
			fill(p, row, why.lead);
		lull_why_release(&why);
		lull_losses_close(r, options.path);
	}
	lull_str_release(&path);
	return rc;
}

/* ---- lines ---- */

static void put_line(struct picture *p, const char *label, const char *text)
{
	size_t len = strlen(text);

	while (len && text[len - 1] == ' ')
		len--;
	fprintf(p->to, "%-*s%.*s\n", len ? LABEL_COLUMNS : 0, label, (int)len, text);
}

static void put_ruler(struct picture *p)
{
	struct lull_str text = LULL_STR_INIT;

	lull_strip_ruler(&text, (u64)(p->to_ns - p->from_ns), p->n_cells);
	put_line(p, "", lull_str_text(&text));
	lull_str_release(&text);
}

/* Where the steps of one rank end, with the number of the next. */
static void put_steps(struct picture *p)
{
	const struct row *row = p->rows.at;
	struct lull_str text = LULL_STR_INIT;
	u32 n;
	const struct lull_job_step *steps = lull_job_steps(p->job, row->rank, &n);

	for (u32 k = 0; k < n; k++) {
		i64 from_ns = steps[k].end_ns - (i64)steps[k].dur_ns - p->from_ns;
		size_t at;
		char mark[32];
		int len = snprintf(mark, sizeof(mark), "|%u", steps[k].number + p->job->first_step);

		if (!is_shown(p, &steps[k]))
			continue;
		at = lull_strip_cell(&row->compute, from_ns > 0 ? (u64)from_ns : 0);
		if (at < text.len || at + (size_t)len > p->n_cells)
			continue;
		while (text.len < at)
			lull_str_add(&text, " ", 1);
		lull_str_puts(&text, mark);
	}
	put_line(p, "step", lull_str_text(&text));
	lull_str_release(&text);
}

/* A block where the rank computes for most of the cell, else the cause of the most idle time. */
static void put_row(struct picture *p, const struct row *row)
{
	struct lull_str text = LULL_STR_INIT;
	char label[32];

	for (size_t cell = 0; cell < p->n_cells; cell++) {
		int most = lull_cause_letters_most(row->causes, cell);
		f64 part = row->causes[most].cells[cell], compute = row->compute.cells[cell];
		struct lull_strip one = { .n = 1, .cells = &compute };

		if (compute >= part)
			lull_strip_blocks(&text, &one, p->look->is_ascii);
		else
			lull_cause_letters_put(&p->letters, &text, most, part);
	}
	snprintf(label, sizeof(label), "rank %lld", (long long)row->rank->rank);
	put_line(p, label, lull_str_text(&text));
	lull_str_release(&text);
}

static void put_heading(struct picture *p)
{
	lull_term_say(p->to, 0, p->look->width,
		      "%zu rank%s, %u of %u step%s of the job, %s. A block: it computes; a letter: "
		      "why it does not.",
		      p->rows.n, p->rows.n == 1 ? "" : "s", p->n, p->job->n_steps,
		      p->job->n_steps == 1 ? "" : "s",
		      lull_format_ns((u64)(p->to_ns - p->from_ns)).text);
}

static void put_legend(struct picture *p, const f64 *sum_ns)
{
	f64 whole = (f64)(p->to_ns - p->from_ns), all = 0;
	u64 cost_ns[LULL_N_CAUSES];

	for (int c = 0; c < LULL_N_CAUSES; c++) {
		cost_ns[c] = (u64)llround(sum_ns[c] / (f64)p->rows.n);
		all += (f64)cost_ns[c];
	}
	if (all <= 0)
		return;
	fprintf(p->to, "Without compute %s (%.0f %%), on average over ranks:\n",
		lull_why_time(all).text, 100 * all / whole);
	lull_cause_letters_list(&p->letters, p->to, cost_ns, whole);
}

static void put_late(struct picture *p)
{
	const struct lull_job_straggler *late = p->job->stragglers.at;
	const struct lull_job_rank *ranks = p->job->ranks.at;

	for (size_t i = 0; i < p->job->stragglers.n; i++)
		lull_term_say(p->to, 0, p->look->width, "Rank %lld comes %s after the others%s%s.",
			      (long long)ranks[late[i].rank_ix].rank,
			      lull_why_time(late[i].late_ns).text, late[i].cause >= 0 ? ": " : "",
			      late[i].cause >= 0 ? lull_causes[late[i].cause]->id : "");
}

static void draw_rows(struct picture *p)
{
	struct row *rows = p->rows.at;
	f64 sum_ns[LULL_N_CAUSES] = { 0 };

	for (size_t i = 0; i < p->rows.n; i++)
		for (int c = 0; c < LULL_N_CAUSES; c++)
			sum_ns[c] += rows[i].causes[c].sum_ns;
	lull_cause_letters_give(&p->letters, sum_ns);
	put_heading(p);
	put_ruler(p);
	put_steps(p);
	for (size_t i = 0; i < p->rows.n; i++)
		put_row(p, &rows[i]);
	put_legend(p, sum_ns);
	put_late(p);
}

static void release(struct picture *p)
{
	struct row *rows = p->rows.at;

	for (size_t i = 0; i < p->rows.n; i++) {
		lull_strip_release(&rows[i].compute);
		for (int c = 0; c < LULL_N_CAUSES; c++)
			lull_strip_release(&rows[i].causes[c]);
	}
	lull_vec_release(&p->rows);
}

int lull_job_timeline_draw(FILE *to, const struct lull_job *job,
			   const struct lull_timeline_look *look, struct lull_err *err)
{
	const struct lull_job_rank *ranks = job->ranks.at;
	struct picture p = { .to = to, .job = job, .look = look };
	int rc;

	p.n_cells = (size_t)look->width - LABEL_COLUMNS;
	p.letters.has_colour = look->has_colour;
	lull_vec_init(&p.rows, sizeof(struct row));
	rc = choose(&p, err);
	for (size_t i = 0; !rc && i < job->ranks.n; i++)
		rc = read_rank(&p, &ranks[i], err);
	if (!rc)
		draw_rows(&p);
	release(&p);
	return rc;
}
