#include "try/try.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/time.h"
#include "text/progress.h"
#include "text/term.h"
#include "try/try_int.h"

/* A candidate's run may take this many times as long as one of the program as it is. */
#define SLOWNESS 10

/* The first run may take so many times as long as others: its files are not in memory yet. */
#define COLD 2

/* The share of its limit that the first run with a remedy is expected to take: 30 s to compile. */
#define FIRST_SHARE 0.05

/* Runs that decide about a large gain, those of the program as it is included. */
#define LEAST_RUNS 4

/* Runs that are left for the best candidates after all were screened. */
#define LAST_RUNS 3

/* A run that takes longer is not slow because the machine stood still for a moment. */
#define LONG_NS (10 * LULL_NS_PER_S)

/* Remedies that are tried together at most. */
#define MOST_TOGETHER 4

static volatile sig_atomic_t is_stopped;

static void on_signal(int number)
{
	(void)number;
	is_stopped = 1;
}

/* ---- entries ---- */

static void release_entry(struct lull_try_entry *e)
{
	free((void *)e->remedies);
	lull_vec_release(&e->values);
	lull_str_release(&e->name);
	lull_str_release(&e->why);
	if (e->has_last)
		lull_trial_release(&e->last);
}

size_t lull_try_add(struct lull_try *t, const struct lull_remedy *const *remedies, size_t n)
{
	struct lull_try_entry *e = lull_vec_push(&t->entries);

	lull_vec_init(&e->values, sizeof(f64));
	e->remedies = lull_alloc(n, sizeof(*e->remedies));
	e->n = n;
	e->end = LULL_TRY_NOT_REACHED;
	for (size_t i = 0; i < n; i++) {
		e->remedies[i] = remedies[i];
		lull_str_addf(&e->name, "%s%s", i ? " + " : "", remedies[i]->name);
	}
	return t->entries.n - 1;
}

static struct lull_try_entry *entry(const struct lull_try *t, size_t ix)
{
	return lull_vec_get(&t->entries, ix);
}

const struct lull_try_entry *lull_try_best(const struct lull_try *t)
{
	return t->best < 0 ? NULL : entry(t, (size_t)t->best);
}

void lull_try_init(struct lull_try *t, const struct lull_try_options *options)
{
	*t = (struct lull_try){ .options = options, .best = -1, .began_ns = lull_now_ns() };
	lull_vec_init(&t->remedies, sizeof(struct lull_remedy));
	lull_vec_init(&t->entries, sizeof(struct lull_try_entry));
	lull_vec_init(&t->values, sizeof(f64));
	lull_vec_init(&t->firm, sizeof(u32));
	lull_warms_init(&t->warms);
	t->warms.is_off = options->is_fresh || options->is_whole || options->client;
	t->how.warms = &t->warms;
}

static void remove_tree(const char *path)
{
	DIR *dir = opendir(path);
	const struct dirent *e;

	while (dir && (e = readdir(dir))) {
		struct lull_str inside = LULL_STR_INIT;

		lull_str_addf(&inside, "%s/%s", path, e->d_name);
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
		    unlink(inside.at) != 0)
			remove_tree(inside.at);
		lull_str_release(&inside);
	}
	if (dir)
		closedir(dir);
	rmdir(path);
}

void lull_try_release(struct lull_try *t)
{
	for (size_t i = 0; i < t->entries.n; i++)
		release_entry(entry(t, i));
	release_entry(&t->base);
	lull_warms_release(&t->warms);
	lull_vec_release(&t->entries);
	lull_remedies_release(&t->remedies);
	lull_vec_release(&t->values);
	lull_vec_release(&t->firm);
	lull_str_release(&t->chosen_by);
	lull_str_release(&t->agent);
	lull_str_release(&t->python);
	lull_str_release(&t->mend);
	lull_str_release(&t->recorded);
	lull_str_release(&t->steps_by);
	lull_str_release(&t->count);
	if (t->folder.len)
		remove_tree(t->folder.at);
	lull_str_release(&t->folder);
}

f64 lull_try_left_s(const struct lull_try *t)
{
	u64 spent_ns = lull_now_ns() - t->began_ns;

	if (!t->options->budget_ns)
		return INFINITY;
	return ((f64)t->options->budget_ns - (f64)spent_ns) / 1e9;
}

/* ---- one run ---- */

/* How long another run of this entry would take; 0 if none has ended yet. */
static u64 again_ns(const struct lull_try_entry *e)
{
	return e->last.wall_ns - e->last.once_ns;
}

static void say_run(const struct lull_try *t, const struct lull_try_entry *e, u32 n_left)
{
	struct lull_progress p;
	struct lull_str text = LULL_STR_INIT;

	lull_progress_init(&p, t->options->is_quiet);
	lull_str_addf(&text, "run %u: %s", t->n_trials + 1,
		      e->n ? lull_str_text(&e->name) : "the program as it is");
	if (n_left && t->base.last.wall_ns)
		lull_str_addf(&text, "; %u more, about %s", n_left,
			      lull_format_ns(n_left * again_ns(&t->base)).text);
	lull_progress_say(&p, text.at);
	lull_str_release(&text);
}

static void say_end(struct lull_try_entry *e, const struct lull_trial *trial)
{
	lull_str_clear(&e->why);
	switch (trial->end) {
	case LULL_TRIAL_HUNG:
		e->end = LULL_TRY_HUNG;
		lull_str_addf(&e->why, "it did not end within %s",
			      lull_format_ns(trial->wall_ns).text);
		break;
	case LULL_TRIAL_FEW_STEPS:
		e->end = LULL_TRY_FAILED;
		lull_str_addf(&e->why, "it ended after %llu steps",
			      (unsigned long long)(trial->seen.n_steps + trial->seen.n_measured));
		break;
	default:
		e->end = LULL_TRY_FAILED;
		lull_str_addf(&e->why, "the program %s",
			      strstr(trial->words, "out of memory") ? "runs out of memory"
								    : "fails");
		if (*trial->words)
			lull_str_addf(&e->why, ": %s", trial->words);
		else
			lull_str_addf(&e->why, " with status %d", trial->status);
	}
}

/* Keep what the run says besides its steps. */
static void keep(struct lull_try_entry *e, struct lull_trial *trial)
{
	const struct lull_try_seen *seen = &trial->seen;

	if (!e->n_runs)
		e->ready_ns = trial->ready_ns;
	e->n_runs++;
	e->device_bytes =
		seen->device_bytes > e->device_bytes ? seen->device_bytes : e->device_bytes;
	e->rss_bytes = trial->rss_bytes > e->rss_bytes ? trial->rss_bytes : e->rss_bytes;
	if (e->has_last)
		lull_trial_release(&e->last);
	e->last = *trial;
	e->has_last = true;
}

/* The program as it is: its losses are what others are compared with. */
static void keep_values(struct lull_try *t, const struct lull_trial *trial)
{
	if (!t->values.n)
		lull_vec_add(&t->values, trial->seen.values.at, trial->seen.values.n);
	if (trial->has_output)
		lull_try_values_firm(t, trial);
	else
		t->drift = fmax(t->drift, lull_try_values_apart(&t->values, &trial->seen.values));
	t->n_measured = trial->seen.n_measured;
}

int lull_try_run_entry(struct lull_try *t, struct lull_try_entry *e, u32 n_left, bool *is_out,
		       struct lull_err *err)
{
	const struct lull_trial_change change = { e->remedies, e->n };
	struct lull_trial trial;
	int rc;

	say_run(t, e, n_left);
	t->n_trials++;
	rc = t->options->client ? lull_try_serve(t, &trial, &change, t->n_trials, err)
				: lull_trial_run(&trial, &t->how, &change, t->n_trials, err);
	*is_out = true;
	t->n_forked += trial.is_forked;
	if (!rc && trial.end == LULL_TRIAL_DONE && lull_trial_did(&trial, &change)) {
		*is_out = false;
		e->end = LULL_TRY_MEASURED;
		if (e->n)
			lull_try_values_note(t, e, &trial);
		else
			keep_values(t, &trial);
		keep(e, &trial);
		return rc;
	}
	if (!rc && trial.end == LULL_TRIAL_DONE) {
		char *const *trouble = trial.seen.trouble.at;

		e->end = LULL_TRY_NOTHING;
		lull_str_clear(&e->why);
		lull_str_addf(&e->why, "nothing in the program to change%s%s",
			      trial.seen.trouble.n ? ": " : "",
			      trial.seen.trouble.n ? trouble[0] : "");
	} else if (!rc && trial.end != LULL_TRIAL_STOPPED) {
		say_end(e, &trial);
	} else {
		t->is_over_budget |= !rc && !is_stopped;
	}
	if (!e->has_last) {
		e->last = trial;
		e->has_last = true;
	} else {
		lull_trial_release(&trial);
	}
	return rc;
}

/* ---- contests ---- */

/* Seconds that a run of this entry takes: as long as its last one. */
static f64 expect_s(const struct lull_try *t, const struct lull_try_entry *e)
{
	f64 more_s = 0;

	if (e->last.wall_ns)
		return (f64)again_ns(e) / 1e9;
	for (size_t i = 0; i < e->n; i++)
		more_s += FIRST_SHARE * e->remedies[i]->limit_s;
	return (f64)again_ns(&t->base) / 1e9 + more_s;
}

/* Whether there is time for a run of this entry. */
static bool has_time(struct lull_try *t, const struct lull_try_entry *e)
{
	bool is_over = lull_try_left_s(t) < expect_s(t, e);

	t->is_stopped |= is_stopped;
	t->is_over_budget |= is_over;
	return !t->is_stopped && !is_over;
}

/*
 * Whether the budget is enough for one more candidate besides those that run already: it has to be
 * screened, and the best of them needs some more runs. Fewer that are decided say more than many
 * that are not.
 */
static bool has_room(struct lull_try *t, const struct lull_contest *c)
{
	const struct lull_side *sides = c->sides.at;
	f64 again_s = (f64)again_ns(&t->base) / 1e9;
	size_t n = 0;

	for (size_t i = 1; i < c->sides.n; i++)
		n += !sides[i].is_out && sides[i].n_runs;
	if (!n || lull_try_left_s(t) >= again_s * (f64)(n + 3 + LAST_RUNS))
		return true;
	t->is_over_budget = true;
	return false;
}

/* A side has run. */
static void add_run(struct lull_contest *c, size_t side, const struct lull_trial *run)
{
	lull_contest_add(c, side, run->seen.steps.at, run->seen.steps.n);
	((struct lull_side *)lull_vec_get(&c->sides, side))->is_long = run->wall_ns > LONG_NS;
}

/* The entry of a side: the program as it is, or one of those that take part. */
static struct lull_try_entry *of_side(struct lull_try *t, const size_t *entries, size_t side)
{
	return side || entries[0] != SIZE_MAX ? entry(t, entries[side]) : &t->base;
}

/* Whose turn it is, given the time that is left. */
static int next_side(const struct lull_try *t, struct lull_contest *c)
{
	c->is_short =
		lull_try_left_s(t) < (f64)again_ns(&t->base) / 1e9 * (f64)lull_contest_left(c);
	return lull_contest_next(c);
}

/*
 * Two runs of the program as it is may be alike by luck: before that many, nothing is out because
 * it differs from them.
 */
#define MOST_ALIKE 3

static bool has_other_values(const struct lull_try *t)
{
	for (size_t i = 0; i < t->entries.n; i++) {
		struct lull_try_entry *e = entry(t, i);

		if (e->end == LULL_TRY_MEASURED && !lull_try_values_fit(t, e))
			return true;
	}
	return false;
}

/* Run the program as it is until it has shown how far its own results are apart. */
static int settle_values(struct lull_try *t, struct lull_err *err)
{
	bool is_out = false;
	int rc = LULL_OK;

	while (!rc && !is_stopped && !is_out && t->base.n_runs < MOST_ALIKE &&
	       has_time(t, &t->base) && has_other_values(t))
		rc = lull_try_run_entry(t, &t->base, 1, &is_out, err);
	return rc;
}

/*
 * Let entries run by turns; entries[0] is what the others are compared with, SIZE_MAX for the
 * program as it is. The contest keeps the values.
 */
static int hold(struct lull_try *t, struct lull_contest *c, const size_t *entries,
		struct lull_err *err)
{
	int side, rc = LULL_OK;

	while (!rc && (side = next_side(t, c)) >= 0) {
		struct lull_try_entry *e = of_side(t, entries, (size_t)side);
		bool is_out;

		if (!has_time(t, e) || (side && !e->has_last && !has_room(t, c))) {
			/* A shorter one may still fit. */
			if (!side || t->is_stopped || !has_time(t, &t->base))
				break;
			lull_contest_drop(c, (size_t)side);
			continue;
		}
		rc = lull_try_run_entry(t, e, lull_contest_left(c), &is_out, err);
		if (rc || is_stopped)
			continue;
		if (!is_out)
			add_run(c, (size_t)side, &e->last);
		if (e->n && t->base.n_runs >= MOST_ALIKE && !lull_try_values_fit(t, e)) {
			e->end = LULL_TRY_DIFFERS;
			is_out = true;
		}
		if (is_out && side)
			lull_contest_drop(c, (size_t)side);
	}
	if (!rc)
		rc = settle_values(t, err);
	if (is_stopped)
		t->is_stopped = true;
	lull_contest_judge(c);
	return rc;
}

/* What 99 of 100 requests of all runs take at most. */
static f64 p99_of(const struct lull_try *t, const struct lull_samples *s)
{
	size_t n = s->values.n;
	f64 *copy, value;

	if (!t->options->client || !n)
		return 0;
	copy = lull_alloc(n, sizeof(*copy));
	memcpy(copy, s->values.at, n * sizeof(*copy));
	lull_sort_f64(copy, n);
	value = copy[(99 * n + 99) / 100 - 1];
	free(copy);
	return value;
}

static void spread(struct lull_try *t, const struct lull_samples *s)
{
	f64 sum = 0, squares = 0;

	for (size_t i = 0; i < s->runs.n; i++) {
		f64 v = lull_samples_run(s, i);

		sum += v;
		squares += v * v;
	}
	if (s->runs.n > 1) {
		f64 mean = sum / (f64)s->runs.n;

		t->noise = sqrt(fmax(0, squares / (f64)s->runs.n - mean * mean)) / mean;
	}
}

static void note_fastest(struct lull_try *t, const struct lull_samples *s)
{
	f64 low, high;

	lull_samples_range(s, &low, &high);
	if (low > 0)
		t->fastest = t->fastest > 0 ? fmin(t->fastest, low) : low;
}

/* Take over what a contest with the program as it is has found. */
static void take_gains(struct lull_try *t, const struct lull_contest *c, const size_t *entries)
{
	const struct lull_side *sides = c->sides.at;

	note_fastest(t, &sides[0].samples);
	t->base.step_ns = lull_samples_median(&sides[0].samples);
	t->base.p99_ns = p99_of(t, &sides[0].samples);
	spread(t, &sides[0].samples);
	for (size_t i = 1; i < c->sides.n; i++) {
		struct lull_try_entry *e = entry(t, entries[i]);

		e->gain = sides[i].gain;
		e->step_ns = lull_samples_median(&sides[i].samples);
		e->p99_ns = p99_of(t, &sides[i].samples);
		if (e->end == LULL_TRY_MEASURED && !lull_try_values_fit(t, e))
			e->end = LULL_TRY_DIFFERS;
	}
}

static bool is_gain(const struct lull_try_entry *e)
{
	return e->end == LULL_TRY_MEASURED && e->gain.verdict == LULL_GAIN_YES;
}

/* The entry with the largest gain that is not in `taken`, a bit for each; -1 if none has one. */
static int largest(const struct lull_try *t, size_t n, const bool *taken)
{
	int best = -1;

	for (size_t i = 0; i < n; i++)
		if (!taken[i] && is_gain(entry(t, i)) &&
		    (best < 0 || entry(t, i)->gain.ratio > entry(t, (size_t)best)->gain.ratio))
			best = (int)i;
	return best;
}

int lull_try_largest(const struct lull_try *t)
{
	bool *taken = lull_alloc(t->entries.n + 1, sizeof(*taken));
	int best = largest(t, t->entries.n, taken);

	free(taken);
	return best;
}

/* Whether a remedy of the entry is in a group of the others. */
static bool excludes(const struct lull_try_entry *a, const struct lull_try_entry *b)
{
	for (size_t i = 0; i < a->n; i++)
		for (size_t n = 0; n < b->n; n++)
			if (a->remedies[i]->group && b->remedies[n]->group &&
			    strcmp(a->remedies[i]->group, b->remedies[n]->group) == 0)
				return true;
	return false;
}

/* Measure the best together with one more; t->best becomes that if it is faster still. */
static int add_next(struct lull_try *t, size_t next, const struct lull_contest *singles,
		    struct lull_err *err)
{
	const struct lull_try_entry *best = lull_try_best(t), *more = entry(t, next);
	const struct lull_side *base = singles->sides.at;
	const struct lull_remedy *both[MOST_TOGETHER + 1];
	size_t n = best->n, entries[2] = { (size_t)t->best, 0 };
	struct lull_try_entry *e;
	struct lull_contest c;
	struct lull_side *sides;
	int rc;

	memcpy(both, best->remedies, n * sizeof(*both));
	both[n++] = more->remedies[0];
	entries[1] = lull_try_add(t, both, n);
	lull_contest_init(&c, 2, (u32)t->options->n_runs);
	rc = hold(t, &c, entries, err);
	sides = c.sides.at;
	e = entry(t, entries[1]);
	if (!rc && sides[1].n_runs) {
		e->step_ns = lull_samples_median(&sides[1].samples);
		e->p99_ns = p99_of(t, &sides[1].samples);
		e->gain = lull_gain_of(&base->samples, &sides[1].samples, t->fastest,
				       LULL_CONTEST_ALPHA);
		if (e->end == LULL_TRY_MEASURED && sides[1].gain.verdict == LULL_GAIN_YES &&
		    is_gain(e))
			t->best = (int)entries[1];
	}
	lull_contest_release(&c);
	return rc;
}

static int try_together(struct lull_try *t, size_t n, const struct lull_contest *singles,
			struct lull_err *err)
{
	bool *taken = lull_alloc(n + 1, sizeof(*taken));
	int next, rc = LULL_OK;

	t->best = largest(t, n, taken);
	if (t->best >= 0)
		taken[t->best] = true;
	while (!rc && (next = largest(t, n, taken)) >= 0 && has_time(t, &t->base)) {
		const struct lull_try_entry *best = lull_try_best(t);

		taken[next] = true;
		if (best->n < MOST_TOGETHER && !excludes(best, entry(t, (size_t)next)))
			rc = add_next(t, (size_t)next, singles, err);
	}
	free(taken);
	return rc;
}

/*
 * Those for which there seemed to be no room: it may have been left over. Contests with the program
 * as it is, until one brings nothing new.
 */
static int try_rest(struct lull_try *t, size_t n, struct lull_err *err)
{
	size_t *entries = lull_alloc(n + 1, sizeof(*entries)), n_rest = n + 1, left;
	int rc = LULL_OK;

	entries[0] = SIZE_MAX;
	for (;;) {
		struct lull_contest c;

		left = 0;
		for (size_t i = 0; i < n; i++)
			if (!entry(t, i)->has_last && entry(t, i)->end == LULL_TRY_NOT_REACHED)
				entries[++left] = i;
		if (rc || !left || left >= n_rest || !has_time(t, &t->base))
			break;
		n_rest = left;
		lull_contest_init(&c, left + 1, (u32)t->options->n_runs);
		/* False gains are shared with all others. */
		c.n_compared = (u32)n;
		c.fastest = t->fastest;
		rc = hold(t, &c, entries, err);
		take_gains(t, &c, entries);
		lull_contest_release(&c);
	}
	free(entries);
	return rc;
}

static int try_all(struct lull_try *t, struct lull_err *err)
{
	size_t n = t->entries.n, *entries = lull_alloc(n + 1, sizeof(*entries)), n_sides = 1;
	struct lull_contest c;
	int rc;

	entries[0] = SIZE_MAX;
	/* Of some it is known already that they change nothing. */
	for (size_t i = 0; i < n; i++)
		if (entry(t, i)->end == LULL_TRY_NOT_REACHED)
			entries[n_sides++] = i;
	lull_contest_init(&c, n_sides, (u32)t->options->n_runs);
	/* The first run of the program is one of its turns. */
	lull_contest_next(&c);
	lull_contest_add(&c, 0, t->base.last.seen.steps.at, t->base.last.seen.steps.n);
	rc = hold(t, &c, entries, err);
	take_gains(t, &c, entries);
	if (!rc)
		rc = try_rest(t, n, err);
	if (!rc)
		rc = try_together(t, n, &c, err);
	lull_contest_release(&c);
	free(entries);
	return rc;
}

/* ---- before ---- */

void lull_try_forget_base(struct lull_try *t)
{
	release_entry(&t->base);
	t->base = (struct lull_try_entry){ .remedies = NULL };
	t->values.n = 0;
	t->firm.n = 0;
}

/* A budget must be enough for one remedy. */
static int check_budget(const struct lull_try *t, struct lull_err *err)
{
	f64 each_s = (f64)again_ns(&t->base) / 1e9;
	f64 need_s = each_s * (LEAST_RUNS - 1);

	if (COLD * lull_try_left_s(t) >= need_s)
		return LULL_OK;
	return lull_fail(err, LULL_E_UNSUPPORTED,
			 "the budget is too short: a run takes %.1f s, and one remedy needs %d "
			 "runs, so --budget has to be %.0fs or more",
			 each_s, LEAST_RUNS, ceil(need_s + 2 * each_s));
}

static int make_folder(struct lull_try *t, struct lull_err *err)
{
	const char *base = getenv("TMPDIR");

	lull_str_addf(&t->folder, "%s/lull-try-XXXXXX", base && *base ? base : "/tmp");
	if (mkdtemp(t->folder.at))
		return LULL_OK;
	lull_fail_errno(err, "making the folder %s", t->folder.at);
	lull_str_clear(&t->folder);
	return err->code;
}

static int try_it(struct lull_try *t, struct lull_err *err)
{
	if (lull_try_prepare(t, err) || make_folder(t, err))
		return err->code;
	t->how.folder = t->folder.at;
	if (!t->options->is_dry && (lull_try_run_base(t, err) || check_budget(t, err)))
		return err->code;
	if (lull_try_choose(t, err))
		return err->code;
	if (t->options->is_dry)
		return LULL_OK;
	if (t->options->budget_ns)
		t->how.until_ns = t->began_ns + t->options->budget_ns + t->options->budget_ns / 10;
	t->how.most_s = SLOWNESS * (f64)t->base.last.wall_ns / 1e9 + t->how.limit_s;
	if (try_all(t, err))
		return err->code;
	lull_try_check_results(t);
	return LULL_OK;
}

int lull_try_run(struct lull_try *t, struct lull_err *err)
{
	const struct sigaction ours = { .sa_handler = on_signal };
	struct sigaction old_int, old_term;
	int rc;

	/* What a program leaves behind becomes our child, and is ended with its run (trial.c). */
	prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	is_stopped = 0;
	t->how.is_stopped = &is_stopped;
	sigaction(SIGINT, &ours, &old_int);
	sigaction(SIGTERM, &ours, &old_term);
	rc = try_it(t, err);
	sigaction(SIGINT, &old_int, NULL);
	sigaction(SIGTERM, &old_term, NULL);
	t->spent_ns = lull_now_ns() - t->began_ns;
	return rc;
}
