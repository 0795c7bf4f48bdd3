#include "cause/thresholds.h"
#include "cause/why.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"
#include "text/term.h"
#include "cause/opportunity.h"
#include "cause/why_int.h"
#include "model/busy.h"
#include "model/window.h"
#include "model/work.h"
#include "trace/issue.h"

/* A job may have many ranks in one file; the largest are looked at. */
#define MAX_SUBJECTS 16

/* Steps of another kind that take less than so many times as long are no longer ones. */
#define LONGER 1.1

/* A cause with all the time there is may seem to have a little more. */
#define ROUNDING 1.001

/* ---- who is looked at ---- */

static void load_subjects(struct lull_why *why, u32 without)
{
	u32 *tracks = lull_busy_devices(why->reader);
	struct lull_vec pairs;
	const struct lull_unit_pair *at;

	lull_vec_init(&pairs, sizeof(struct lull_unit_pair));
	lull_units_pairs(&pairs, why->reader, tracks);
	at = pairs.at;
	while (why->n_subjects < pairs.n && why->n_subjects < MAX_SUBJECTS &&
	       at[why->n_subjects].process && at[why->n_subjects].track &&
	       (f64)at[why->n_subjects].n >= LULL_L(helper) * (f64)at[0].n)
		why->n_subjects++;
	why->subjects = lull_alloc(why->n_subjects + 1, sizeof(*why->subjects));
	for (u32 i = 0; i < why->n_subjects; i++)
		lull_subject_init(&why->subjects[i], why->reader, at[i].process, at[i].track,
				  tracks, without);
	lull_vec_release(&pairs);
	free(tracks);
}

/* ---- what forbids an answer ---- */

void lull_why_cannot(struct lull_why *why, const char *fmt, ...)
{
	va_list ap;

	if (*why->cannot)
		return;
	va_start(ap, fmt);
	vsnprintf(why->cannot, sizeof(why->cannot), fmt, ap);
	va_end(ap);
}

/* Work that seemed to begin before its call when it was recorded, and was moved after it. */
static u64 n_corrected(struct lull_reader *r)
{
	size_t n_issues;
	const struct lull_issue_row *rows = lull_reader_dim(r, LULL_TABLE_issue, &n_issues);
	u64 n = 0;

	for (size_t i = 0; i < n_issues; i++)
		if (rows[i].issue == LULL_ISSUE_clock_corrected)
			n += rows[i].count;
	return n;
}

/* Work cannot begin before the call that starts it. */
static bool has_skew(const struct lull_subject *s, struct lull_reader *r)
{
	u64 n = n_corrected(r);

	for (u32 i = 0; i < s->units.n; i++) {
		const struct lull_unit *unit = &s->units.at[i];

		n += unit->node != LULL_NONE &&
		     unit->begin_ns + LULL_TN(skew_ns) < s->chain.nodes[unit->node].begin_ns;
	}
	return (f64)n > LULL_T(skewed) * (f64)s->chain.n_units_linked;
}

bool lull_why_has_warm_up(const struct lull_subject *s)
{
	for (u32 i = 0; i < s->units.n; i++)
		if (s->units.at[i].round < s->rounds.first_steady)
			return true;
	return false;
}

static void check(struct lull_why *why)
{
	const struct lull_subject *s = why->lead;
	u32 n_rounds = (u32)s->rounds.all.n;

	if (!s->chain.n || !s->chain.n_units_linked)
		lull_why_cannot(why,
				"the recording has GPU work but no CUDA calls, so lull cannot "
				"say what launched it. Record CUDA calls too (lull profile does "
				"by default).");
	else if (!n_rounds)
		lull_why_cannot(why, "no steps: nothing is marked as a step, and the launches do "
				     "not repeat. Mark steps with ranges named step_N (NVTX) or "
				     "lull_step(), or record longer.");
	else if (n_rounds < 2)
		lull_why_cannot(why, "only one step: the first one is warm-up and proves nothing. "
				     "Record at least 3 steps.");
	else if (!why->lead->window_ns)
		lull_why_cannot(why, lull_why_has_warm_up(s)
					     ? "only the warm-up has GPU work, and proves "
					       "nothing. Record at least 3 steps."
					     : "the steps contain no GPU work.");
}

/* ---- numbers of the steps ---- */

void lull_why_share_out(struct lull_why *why, const struct lull_subject *s)
{
	f64 whole_ns = (f64)s->window_ns;

	if (!s->window_ns)
		return;
	for (int i = 0; i < LULL_N_CAUSES; i++)
		why->shares[i] = (f64)s->cost_ns[i] / whole_ns;
	why->shares[lull_cause_default(LULL_CAUSE_BUSY)] =
		(f64)s->split_ns[LULL_SPLIT_COMPUTE] / whole_ns;
}

static void measure(struct lull_why *why)
{
	const struct lull_subject *s = why->lead;
	u32 n = lull_rounds_n_steady(&s->rounds), first = s->rounds.first_steady;
	f64 *steps = lull_alloc(n + 1, sizeof(*steps)), sum = 0, squares = 0;

	for (u32 i = 0; i < n; i++) {
		steps[i] = (f64)(lull_round_end_ns(&s->rounds, first + i) -
				 lull_round_begin_ns(&s->rounds, first + i));
		sum += steps[i];
		squares += steps[i] * steps[i];
	}
	if (n && sum > 0) {
		lull_sort_f64(steps, n);
		why->step_ns = sum / n;
		why->median_ns = steps[n / 2];
		why->spread =
			sqrt(fmax(squares / n - why->step_ns * why->step_ns, 0)) / why->step_ns;
		why->compute_share = (f64)s->split_ns[LULL_SPLIT_COMPUTE] / (f64)s->window_ns;
		why->copy_share = (f64)s->split_ns[LULL_SPLIT_COPY] / (f64)s->window_ns;
		why->collective_share = (f64)s->split_ns[LULL_SPLIT_COLLECTIVE] / (f64)s->window_ns;
		why->idle_share = (f64)s->split_ns[LULL_SPLIT_IDLE] / (f64)s->window_ns;
	}
	why->free_ns = why->step_ns;
	lull_why_share_out(why, s);
	free(steps);
}

static int by_time(const void *a, const void *b)
{
	const struct lull_why_kernel *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	return strcmp(x->name, y->name);
}

/* The 1-based index of the kernel with this name (a string id). */
static u32 kernel_of(struct lull_why *why, const struct lull_unit *unit, u32 name,
		     struct lull_map *known)
{
	bool is_new;
	u32 *ix = lull_map_add(known, name, &is_new);

	if (is_new) {
		((struct lull_why_kernel *)lull_vec_push(&why->kernels))->name =
			lull_units_name(unit, why->reader);
		*ix = (u32)why->kernels.n;
	}
	return *ix;
}

static void sum_kernels(struct lull_why *why)
{
	const struct lull_subject *s = why->lead;
	size_t n;
	const struct lull_launch_row *launches = lull_reader_dim(s->reader, LULL_TABLE_launch, &n);
	u32 *by_launch = lull_alloc(n + 1, sizeof(*by_launch)); /* 1-based index in kernels */
	struct lull_map known;

	lull_map_init(&known);
	for (u32 i = 0; i < s->units.n; i++) {
		const struct lull_unit *unit = &s->units.at[i];
		struct lull_why_kernel *kernel;

		if (unit->kind > LULL_UNIT_COLLECTIVE || unit->round == LULL_NONE ||
		    unit->round < s->rounds.first_steady)
			continue;
		if (!by_launch[unit->what])
			by_launch[unit->what] = kernel_of(
				why, unit, unit->what ? launches[unit->what - 1].name : 0, &known);
		kernel = lull_vec_get(&why->kernels, by_launch[unit->what] - 1);
		kernel->ns += unit->end_ns - unit->begin_ns;
		kernel->n++;
	}
	lull_map_release(&known);
	free(by_launch);
	if (why->kernels.n)
		lull_sort(why->kernels.at, why->kernels.n, sizeof(struct lull_why_kernel), by_time);
}

static bool is_simulated(struct lull_reader *r)
{
	size_t n;
	const struct lull_device_row *devices = lull_reader_dim(r, LULL_TABLE_device, &n);

	for (size_t i = 0; i < n; i++) {
		if (devices[i].is_simulated)
			return true;
	}
	return false;
}

/* The subject that waits longest for others; else the one with the most work. */
static struct lull_subject *find_lead(struct lull_why *why)
{
	struct lull_subject *lead = why->subjects;

	for (u32 i = 0; i < why->n_subjects; i++) {
		struct lull_subject *s = &why->subjects[i];

		if (s->ranks.wait_share > lead->ranks.wait_share)
			lead = s;
	}
	return lead;
}

/* Kernels take about as long without a recorder, and a step takes no less than its kernels. */
static int check_given(const struct lull_why *why, u64 unrecorded_ns, struct lull_err *err)
{
	f64 compute_ns = why->compute_share * why->step_ns;

	if (!unrecorded_ns || (f64)unrecorded_ns >= LULL_T(kernels_least) * compute_ns)
		return LULL_OK;
	return lull_fail(err, LULL_E_USAGE,
			 "a step cannot take %.2f ms: its kernels alone take %.2f ms",
			 (f64)unrecorded_ns / 1e6, compute_ns / 1e6);
}

/* What to do if there is none. */
static const char *how_to_record_work(struct lull_reader *r)
{
	if (!(lull_reader_info(r)->flags & LULL_FILE_IMPORTED))
		return "`lull doctor` says why CUDA may be missing";
	return lull_reader_stats(r, LULL_TABLE_op).n_rows
		       ? "and torch.profiler records it with activities=[ProfilerActivity.CPU, "
			 "ProfilerActivity.CUDA]"
		       : "and `lull profile` records it";
}

int lull_why_run(struct lull_why *why, struct lull_reader *r,
		 const struct lull_why_options *options, struct lull_err *err)
{
	struct lull_why_options o = options ? *options : (struct lull_why_options){ 0, 0, NULL };

	memset(why, 0, sizeof(*why));
	why->reader = r;
	why->first = why->guessed = -1;
	why->path = o.path;
	why->is_simulated = is_simulated(r);
	why->window = lull_window_of(r);
	lull_vec_init(&why->findings, sizeof(struct lull_finding));
	lull_vec_init(&why->missing, sizeof(char *));
	lull_vec_init(&why->kernels, sizeof(struct lull_why_kernel));
	lull_vec_init(&why->opportunities, sizeof(struct lull_opportunity));
	if (!lull_work_count(r, LULL_WORK_ALL))
		return lull_fail(err, LULL_E_NOT_FOUND,
				 "no GPU work in the recording: no kernels, copies or memsets; "
				 "`lull info` lists its contents, %s",
				 how_to_record_work(r));
	load_subjects(why, o.without);
	if (!why->n_subjects)
		return lull_fail(
			err, LULL_E_FORMAT,
			"the GPU work in the recording belongs to no known process or device");
	lull_why_ranks(why->subjects, why->n_subjects);
	for (u32 i = 0; i < why->n_subjects; i++) {
		lull_subject_slice(&why->subjects[i]);
		lull_subject_attribute(&why->subjects[i]);
	}
	why->lead = find_lead(why);
	lull_why_missing(why);
	measure(why);
	sum_kernels(why);
	check(why);
	if (*why->cannot && why->lead->chain.n_units_linked)
		lull_why_guess(why);
	why->has_skew = has_skew(why->lead, r);
	if (check_given(why, o.unrecorded_ns, err))
		return err->code;
	if (!*why->cannot) {
		lull_replay_init(&why->replay, why->lead);
		why->is_calibrated = o.unrecorded_ns > 0;
		if (o.unrecorded_ns)
			lull_replay_calibrate(&why->replay, (f64)o.unrecorded_ns);
		why->has_replay = true;
		lull_why_choose(why);
		lull_why_doubt(why);
		lull_why_evidence(why);
		lull_why_opportunities(why);
	}
	return LULL_OK;
}

void lull_why_release(struct lull_why *why)
{
	struct lull_finding *findings = why->findings.at;
	char **missing = why->missing.at;

	for (size_t i = 0; i < why->findings.n; i++)
		lull_vec_release(&findings[i].evidence);
	for (size_t i = 0; i < why->missing.n; i++)
		free(missing[i]);
	lull_vec_release(&why->findings);
	lull_vec_release(&why->missing);
	lull_vec_release(&why->kernels);
	lull_vec_release(&why->opportunities);
	if (why->has_replay)
		lull_replay_release(&why->replay);
	for (u32 i = 0; i < why->n_subjects; i++)
		lull_subject_release(&why->subjects[i]);
	free(why->subjects);
}

/* The largest unit in which a time has a digit before the point; of ms a tenth will do. */
static const struct unit {
	const char *name;
	f64 ns, least_ns;
	int digits;
} units[] = { { "s", 1e9, 1e9, 2 },
	      { "ms", 1e6, 0.0995e6, 2 },
	      { "us", 1e3, 0.9995e3, 1 },
	      { "ns", 1, 0, 0 } };

static const struct unit *unit_of(f64 ns)
{
	const struct unit *unit = units;

	/* Nothing at all is shown as any other time of a step. */
	if (ns <= 0)
		return &units[1];
	while (ns < unit->least_ns)
		unit++;
	return unit;
}

struct lull_number lull_why_time(f64 ns)
{
	const struct unit *unit = unit_of(ns);
	struct lull_number out;

	snprintf(out.text, sizeof(out.text), "%.*f %s", unit->digits, ns / unit->ns, unit->name);
	return out;
}

struct lull_number lull_why_part(f64 part_ns, f64 whole_ns)
{
	const struct unit *unit = unit_of(whole_ns);
	struct lull_number out;

	snprintf(out.text, sizeof(out.text), "%.*f of %.*f %s", unit->digits, part_ns / unit->ns,
		 unit->digits, whole_ns / unit->ns, unit->name);
	return out;
}

struct lull_number lull_why_range(const struct lull_prediction *p)
{
	const struct unit *unit = unit_of(p->step_ns);
	struct lull_number out;

	snprintf(out.text, sizeof(out.text), "%.*f and %.*f", unit->digits, p->low_ns / unit->ns,
		 unit->digits, p->high_ns / unit->ns);
	return out;
}

/* A gain below it is said as 1.0 x. */
#define WORTH_SAYING 1.05

f64 lull_why_at_least(const struct lull_why *why, const struct lull_finding *f)
{
	f64 ratio = f->prediction.is_known ? why->replay.free_ns / f->prediction.high_ns : 0;

	return lull_causes[f->cause]->moves && ratio >= WORTH_SAYING ? ratio : 0;
}

const struct lull_finding *lull_why_first(const struct lull_why *why)
{
	return why->first < 0 ? NULL : lull_vec_get(&why->findings, (size_t)why->first);
}

f64 lull_why_warm_share(const struct lull_why *why)
{
	const struct lull_rounds *rounds = &why->lead->rounds;
	u64 begin_ns = lull_round_begin_ns(rounds, 0), steady_ns, end_ns;

	if (!rounds->all.n || rounds->first_steady >= rounds->all.n)
		return 0;
	steady_ns = lull_round_begin_ns(rounds, rounds->first_steady);
	end_ns = lull_round_end_ns(rounds, (u32)rounds->all.n - 1);
	return end_ns > begin_ns ? (f64)(steady_ns - begin_ns) / (f64)(end_ns - begin_ns) : 0;
}

struct lull_longer lull_why_longer(const struct lull_why *why)
{
	const struct lull_rounds *rounds = &why->lead->rounds;
	const struct lull_round_kind *usual = &rounds->kinds[0];
	struct lull_longer l = { 0 };

	if (!usual->n || rounds->source == LULL_ROUNDS_FORWARD)
		return l;
	for (u32 i = 1; i < rounds->n_kinds; i++) {
		const struct lull_round_kind *kind = &rounds->kinds[i];
		f64 usual_ns = (f64)usual->dur_ns / usual->n * kind->n;

		if (kind->n > 1 && (f64)kind->dur_ns > LONGER * usual_ns) {
			l.beyond_ns += (f64)kind->dur_ns - usual_ns;
			l.n += kind->n;
		}
	}
	l.beyond_ns /= lull_why_n_steps(why);
	if (l.n * 2 > usual->n || l.beyond_ns < LULL_T(gain) * why->step_ns)
		l.n = 0;
	return l;
}

f64 lull_why_waste_ns(const struct lull_why *why)
{
	return (why->idle_share + why->copy_share + why->collective_share) * why->step_ns;
}

bool lull_why_is_beside(const struct lull_why *why, const struct lull_finding *f)
{
	return f->cost_ns > ROUNDING * lull_why_waste_ns(why);
}

const struct lull_finding *lull_why_most(const struct lull_why *why)
{
	const struct lull_finding *first = lull_why_first(why), *all = why->findings.at;
	const struct lull_finding *most = first;

	if (!first || lull_causes[first->cause]->kind == LULL_CAUSE_BUSY ||
	    first->cost_ns * 2 >= lull_why_waste_ns(why))
		return NULL;
	for (size_t i = 0; i < why->findings.n; i++)
		most = all[i].cost_ns > most->cost_ns ? &all[i] : most;
	return most == first ? NULL : most;
}

const struct lull_finding *lull_why_find(const struct lull_why *why, enum lull_cause_ix cause)
{
	const struct lull_finding *findings = why->findings.at;

	for (size_t i = 0; i < why->findings.n; i++) {
		if (findings[i].cause == cause)
			return &findings[i];
	}
	return NULL;
}

u32 lull_why_n_steps(const struct lull_why *why)
{
	return why->lead ? lull_rounds_n_steady(&why->lead->rounds) : 0;
}
