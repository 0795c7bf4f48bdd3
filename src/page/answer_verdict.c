/*
 * verdict: the answer of `lull why`, for the line on top and the first panel.
 *
 * While the analysis runs, state is "running" and `done` is its progress, from 0 to 1.
 */
#include "page/page.h"

#include <string.h>

#include "base/convert.h"
#include "base/str.h"
#include "text/term.h"
#include "cause/opportunity.h"
#include "model/window.h"
#include "model/work.h"
#include "page/page_open.h"
#include "page/page_why.h"
#include "wire/kwish.h"

#define MAX_KERNELS 16u

#define pair_f64  lull_page_pair_f64
#define pair_text lull_page_pair_text
#define pair_u64  lull_page_pair_u64

/* Moments outside the recording would be negative on the page. */
static u64 moment(const struct lull_timeline *t, u64 at_ns)
{
	return at_ns > t->origin_ns ? at_ns - t->origin_ns : 0;
}

static void put_prediction(struct lull_json *j, const struct lull_prediction *p)
{
	lull_json_key(j, "prediction");
	if (!p->is_known) {
		lull_json_null(j);
		return;
	}
	lull_json_object(j);
	pair_f64(j, "step_ns", p->step_ns);
	pair_f64(j, "low_ns", p->low_ns);
	pair_f64(j, "high_ns", p->high_ns);
	pair_f64(j, "ratio", p->ratio);
	lull_json_end(j);
}

static void put_evidence(struct lull_json *j, const struct lull_timeline *t,
			 const struct lull_finding *f)
{
	const struct lull_evidence *e = f->evidence.at;

	lull_json_key(j, "evidence");
	lull_json_array(j);
	for (size_t i = 0; i < f->evidence.n; i++) {
		lull_json_object(j);
		pair_text(j, "text", e[i].text);
		pair_u64(j, "from", moment(t, e[i].from_ns));
		pair_u64(j, "to", moment(t, e[i].to_ns));
		pair_text(j, "table", e[i].table);
		pair_u64(j, "n", e[i].n_rows);
		lull_json_end(j);
	}
	lull_json_end(j);
}

/* What the sentence on top says of it, where the title of the cause would contradict that. */
static const char *title_of(const struct lull_why *why, const struct lull_finding *f)
{
	const struct lull_cause *cause = lull_causes[f->cause];
	const char *because = lull_why_because(why, f);

	return because == cause->because ? cause->title : because;
}

/* The function, or the range by its name for people. */
static void put_function(struct lull_json *j, const struct lull_location *at)
{
	struct lull_location range = { .range = at->range };
	char text[200];

	lull_location_format(&range, text, sizeof(text));
	pair_text(j, "function", at->function ? at->function : *text ? text : NULL);
}

/* What `lull why` says beside a prediction. */
static void put_conditions(struct lull_json *j, const struct lull_why *why,
			   const struct lull_finding *f)
{
	f64 least = lull_why_at_least(why, f);

	pair_text(j, "assumes", f->advice.assumes);
	lull_page_pair_bool(j, "is_ceiling",
			    lull_causes[f->cause]->is_ceiling && !lull_causes[f->cause]->moves);
	if (least > 0)
		pair_f64(j, "at_least", least);
}

static void put_findings(struct lull_json *j, const struct lull_page_report *report)
{
	const struct lull_finding *f = report->why->findings.at;

	lull_json_key(j, "findings");
	lull_json_array(j);
	for (size_t i = 0; i < report->why->findings.n; i++) {
		const struct lull_cause *cause = lull_causes[f[i].cause];

		lull_json_object(j);
		pair_text(j, "id", cause->id);
		pair_text(j, "title", title_of(report->why, &f[i]));
		pair_u64(j, "family", lull_page_family(f[i].cause));
		pair_text(j, "fix", f[i].advice.fix);
		pair_f64(j, "cost_ns", f[i].cost_ns);
		pair_f64(j, "share", f[i].share);
		pair_f64(j, "gain_ns", f[i].gain_ns);
		pair_f64(j, "confidence", f[i].confidence);
		put_prediction(j, &f[i].prediction);
		put_conditions(j, report->why, &f[i]);
		pair_text(j, "file", f[i].at.file);
		pair_u64(j, "line", f[i].at.line);
		put_function(j, &f[i].at);
		put_evidence(j, report->timeline, &f[i]);
		lull_json_end(j);
	}
	lull_json_end(j);
}

/* Shares of the step by family; without an answer, all idle time is unknown. */
static void put_families(struct lull_json *j, const struct lull_why *why)
{
	f64 shares[LULL_N_CLASSES] = { 0 };
	const struct lull_subject *lead = why ? why->lead : NULL;

	for (unsigned c = 0; lead && lead->window_ns && c < LULL_N_CAUSES; c++)
		shares[lull_page_family((enum lull_cause_ix)c)] +=
			(f64)lead->cost_ns[c] / (f64)lead->window_ns;
	lull_json_key(j, "families");
	lull_json_array(j);
	for (unsigned c = 0; c < LULL_N_CLASSES; c++)
		lull_json_fixed(j, shares[c], 5);
	lull_json_end(j);
}

/* The first cause has less than half of the time: no "because". One line of the page holds it. */
static void say_shared(struct lull_str *to, const struct lull_why *why,
		       const struct lull_finding *first)
{
	const struct lull_finding *most = lull_why_most(why);

	lull_str_addf(to, "; fix first: %s (%s); ", lull_causes[first->cause]->id,
		      lull_format_ns(lull_u64_of(first->cost_ns)).text);
	if (most && lull_causes[most->cause]->kind == LULL_CAUSE_BLIND)
		lull_str_addf(to, "%s of it is not explained.",
			      lull_format_ns(lull_u64_of(most->cost_ns)).text);
	else if (most)
		lull_str_addf(to, "%s accounts for %s of it (%s).", lull_causes[most->cause]->id,
			      most->cost_ns * 2 >= lull_why_waste_ns(why) ? "most" : "more",
			      lull_format_ns(lull_u64_of(most->cost_ns)).text);
	else
		lull_str_puts(to, "no other cause accounts for more of it.");
}

static void say_found(struct lull_str *to, const struct lull_timeline *t,
		      const struct lull_why *why)
{
	const struct lull_finding *f = lull_why_first(why);
	const struct lull_cause *cause = f ? lull_causes[f->cause] : NULL;
	u32 number = why->lead ? lull_timeline_device_id(t, why->lead->device) : 0;

	if (!cause) {
		if (why->guessed >= 0)
			lull_str_puts(to, why->guess);
		else
			lull_str_addf(to, "Cannot tell what GPU %u waits for", number);
		return;
	}
	if (why->is_probable)
		lull_str_addf(to, "Probably %s. ", cause->id);
	if (cause->kind == LULL_CAUSE_BUSY) {
		lull_str_addf(to, "GPU %u is busy %.0f %% of each step: %s.", number,
			      why->compute_share * 100, lull_why_because(why, f));
		return;
	}
	if (lull_why_is_beside(why, f)) {
		lull_str_addf(to, "For %.0f %% of each step of GPU %u %s.", f->share * 100, number,
			      lull_why_because(why, f));
		return;
	}
	lull_str_addf(to, "GPU %u does not compute for %s %% of each step", number,
		      lull_format_share(lull_why_waste_ns(why) / why->step_ns).text);
	if (f->cost_ns * 2 < lull_why_waste_ns(why))
		say_shared(to, why, f);
	else
		lull_str_addf(to, ", because %s.", lull_why_because(why, f));
}

static void put_missing(struct lull_json *j, const struct lull_why *why)
{
	char *const *missing = why->missing.at;

	lull_json_key(j, "missing");
	lull_json_array(j);
	for (size_t i = 0; i < why->missing.n; i++)
		lull_json_text(j, missing[i]);
	lull_json_end(j);
}

/* The kernels that take most of the time, largest first: answers name some by what they do. */
static void put_kernels(struct lull_json *j, const struct lull_why *why)
{
	const struct lull_why_kernel *k = why->kernels.at;

	lull_json_key(j, "kernels");
	lull_json_array(j);
	for (size_t i = 0; i < why->kernels.n && i < MAX_KERNELS; i++)
		lull_json_text(j, k[i].name);
	lull_json_end(j);
}

static void put_opportunities(struct lull_json *j, const struct lull_why *why)
{
	const struct lull_opportunity *o = why->opportunities.at;

	lull_json_key(j, "opportunities");
	lull_json_array(j);
	for (size_t i = 0; i < why->opportunities.n; i++) {
		lull_json_object(j);
		pair_text(j, "id", o[i].kind->id);
		pair_text(j, "title", o[i].kind->title);
		pair_text(j, "text", o[i].text);
		pair_text(j, "fix", o[i].fix);
		pair_text(j, "assumes", o[i].assumes);
		pair_f64(j, "touched_ns", o[i].touched_ns);
		pair_f64(j, "share", o[i].share);
		pair_f64(j, "gain_ns", o[i].gain_ns);
		lull_page_pair_bool(j, "is_ceiling", o[i].kind->is_ceiling);
		put_prediction(j, &o[i].prediction);
		lull_json_end(j);
	}
	lull_json_end(j);
	if (*why->utilization)
		pair_text(j, "utilization", why->utilization);
}

/* Why there is no answer; or why the guess that is in its place is not sure. */
static void put_detail(struct lull_json *j, const struct lull_why *why)
{
	struct lull_str text = LULL_STR_INIT;

	if (why->guessed >= 0)
		lull_str_addf(&text, "Not sure: %s. To be sure: %s (%s)", why->unsure, why->settle,
			      why->settle_how);
	else
		lull_str_puts(&text, why->cannot);
	if (text.len)
		pair_text(j, "detail", lull_str_text(&text));
	lull_str_release(&text);
}

static void put_found(struct lull_json *j, struct lull_page_report *report)
{
	const struct lull_why *why = report->why;
	struct lull_str text = LULL_STR_INIT;

	say_found(&text, report->timeline, why);
	pair_text(j, "state", why->first >= 0 ? "known" : "cannot");
	pair_text(j, "sentence", lull_str_text(&text));
	put_detail(j, why);
	lull_page_pair_bool(j, "is_probable", why->is_probable);
	if (why->is_probable) {
		pair_text(j, "unsure", why->unsure);
		pair_text(j, "settle", why->settle);
	}
	if (*why->no_prediction)
		pair_text(j, "no_prediction", why->no_prediction);
	put_missing(j, why);
	/* Another process found it, and has ended. */
	lull_page_pair_bool(j, "can_ask", !report->told.is_running);
	pair_f64(j, "waiting_share", 1 - why->compute_share);
	pair_f64(j, "step_ns", why->step_ns);
	pair_f64(j, "free_ns", why->free_ns);
	pair_u64(j, "n_steps", lull_why_n_steps(why));
	lull_json_key(j, "first");
	lull_json_i64(j, why->first);
	if (why->lead)
		lull_page_put_open(j, report);
	put_findings(j, report);
	put_opportunities(j, why);
	put_kernels(j, why);
	if (!lull_window_is_all(why->window)) {
		pair_u64(j, "window_from", moment(report->timeline, why->window.from_ns));
		pair_u64(j, "window_to", moment(report->timeline, why->window.to_ns));
	}
	lull_str_release(&text);
}

/* What a report of counters has: launches, or ranges that were measured as one. */
static const char *profiled_kind(struct lull_reader *reader, u64 n)
{
	struct lull_profiled_cols cols;
	struct lull_cursor c;
	bool is_range;

	lull_cursor_init(&c, reader, LULL_TABLE_profiled, 0, UINT64_MAX);
	is_range = lull_cursor_next(&c, &cols) > 0 && cols.replay[0] == LULL_REPLAY_RANGE;
	lull_cursor_release(&c);
	return is_range ? (n == 1 ? "range" : "ranges") : (n == 1 ? "launch" : "launches");
}

/* Nothing was found, or nothing was looked for. */
static void put_none(struct lull_json *j, const struct lull_page_report *report,
		     enum lull_page_why_state state)
{
	u64 n = lull_work_count(report->slow, LULL_WORK_ALL);
	u64 n_profiled = lull_reader_stats(report->slow, LULL_TABLE_profiled).n_rows;
	struct lull_str text = LULL_STR_INIT;

	if (state == LULL_PAGE_WHY_LARGE) {
		lull_str_addf(&text,
			      "%s kernels and copies are being analysed; the rest of the page "
			      "works in the meantime.",
			      lull_format_count(n).text);
		pair_text(j, "state", "running");
		pair_text(j, "sentence", "Analysing what the device waits for");
		pair_f64(j, "done", report->told.percent / 100.0);
	} else if (!n && n_profiled) {
		struct lull_str sentence = LULL_STR_INIT;

		lull_str_addf(&sentence, "Counters of %s %s were read",
			      lull_format_count(n_profiled).text,
			      profiled_kind(report->slow, n_profiled));
		lull_str_puts(&text, "The Kernel tab shows what limits each.");
		pair_text(j, "state", "profiled");
		pair_text(j, "sentence", lull_str_text(&sentence));
		lull_str_release(&sentence);
	} else {
		lull_str_puts(&text, report->why_failed ? report->why_failed : "");
		pair_text(j, "state", n ? "cannot" : "absent");
		pair_text(j, "sentence",
			  n ? "Cannot tell what the device waits for" : "No GPU work was recorded");
	}
	pair_text(j, "detail", lull_str_text(&text));
	pair_f64(j, "waiting_share", 0);
	pair_f64(j, "step_ns", 0);
	pair_u64(j, "n_steps", 0);
	lull_json_key(j, "first");
	lull_json_i64(j, -1);
	lull_json_key(j, "findings");
	lull_json_array(j);
	lull_json_end(j);
	lull_str_release(&text);
}

static int run(struct lull_question *q, struct lull_err *err)
{
	enum lull_page_why_state state = lull_page_why(q->report, false);
	struct lull_json j;

	(void)err;
	if (q->report->told.verdict) {
		fputs(q->report->told.verdict, q->to);
		return LULL_OK;
	}
	lull_json_init(&j, q->to);
	lull_json_object(&j);
	if (state == LULL_PAGE_WHY_DONE)
		put_found(&j, q->report);
	else
		put_none(&j, q->report, state);
	put_families(&j, q->report->why);
	lull_json_end(&j);
	return LULL_OK;
}

const struct lull_answer lull_answer_verdict = {
	.name = "verdict",
	.type = "application/json",
	.is_slow = true,
	.is_packed = true,
	.run = run,
};
