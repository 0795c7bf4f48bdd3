/*
 * Results of a program whose runs are ended after their steps, before it has written any.
 *
 * Where a run to the end is short, the program as it is runs to its end twice, which shows the
 * numbers that are always the same, and the best once. If its numbers differ, it is out.
 */
#include <math.h>
#include <stdlib.h>

#include "base/str.h"
#include "base/time.h"
#include "text/progress.h"
#include "try/try_int.h"

/* Runs to the end: two of the program as it is, one of the best. */
#define N_RUNS 3

/*
 * They may take so long whatever the rest took: the run that tells how long one takes may have been
 * a slow one.
 */
#define SHORT_S 20

/* Whether there is something to check, and it may take no longer than all before did. */
static bool is_worth_it(const struct lull_try *t)
{
	f64 need_s = N_RUNS * (f64)t->ran_ns / 1e9;
	f64 spent_s = (f64)(lull_now_ns() - t->began_ns) / 1e9;
	const struct lull_try_entry *best = lull_try_best(t);

	return best && !best->has_values && t->how.count && !t->is_cut && !t->is_stopped &&
	       need_s <= fmax(spent_s, SHORT_S) && need_s <= lull_try_left_s(t);
}

/* Let an entry run to its end; false if it does not. */
static bool run_on(struct lull_try *t, const struct lull_try_entry *e, struct lull_trial *trial)
{
	const struct lull_trial_change change = { e->remedies, e->n };
	struct lull_trial_how how = t->how;
	struct lull_err err = { LULL_OK, "" };

	how.is_whole = how.has_start = true;
	how.count = NULL;
	lull_trial_run(trial, &how, &change, ++t->n_trials, &err);
	return !err.code && trial->end == LULL_TRIAL_DONE;
}

/* Which numbers of the program as it is are always the same; false if it writes none. */
static bool read_base(struct lull_try *t)
{
	bool is_fine = true;

	t->values.n = t->firm.n = 0;
	for (int i = 0; i < N_RUNS - 1 && is_fine; i++) {
		struct lull_trial trial;

		is_fine = run_on(t, &t->base, &trial) && trial.has_output;
		if (is_fine && !i)
			lull_vec_add(&t->values, trial.seen.values.at, trial.seen.values.n);
		if (is_fine)
			lull_try_values_firm(t, &trial);
		lull_trial_release(&trial);
	}
	return is_fine;
}

/* Whether the best stays what it is. */
static bool check(struct lull_try *t, struct lull_try_entry *best)
{
	struct lull_trial trial;
	bool is_fine = run_on(t, best, &trial);

	if (!is_fine && trial.end != LULL_TRIAL_STOPPED) {
		best->end = LULL_TRY_FAILED;
		lull_str_clear(&best->why);
		lull_str_puts(&best->why, "the program does not run to its end with it");
	} else if (is_fine) {
		lull_try_values_note(t, best, &trial);
		if (!lull_try_values_fit(t, best))
			best->end = LULL_TRY_DIFFERS;
	}
	lull_trial_release(&trial);
	return best->end == LULL_TRY_MEASURED;
}

void lull_try_check_results(struct lull_try *t)
{
	struct lull_progress p;

	if (!is_worth_it(t))
		return;
	lull_progress_init(&p, t->options->is_quiet);
	lull_progress_say(&p, "running to the end, to compare results");
	if (!read_base(t))
		return;
	while (t->best >= 0 && !*t->how.is_stopped &&
	       !check(t, lull_vec_get(&t->entries, (size_t)t->best)))
		t->best = lull_try_largest(t);
}
