/*
 * The first run of the program, which shows what can be measured.
 *
 * Steps that it marks, or that hooks see, are best. A program in another language that marks none
 * has a loop all the same: its rounds are counted (try_loop.c). Where that is not possible, whole
 * runs are compared.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "try/try_int.h"

/* Calls of the model that a program without steps has besides those that are measured. */
#define SPARE_CALLS 20

/* A program that marks no step for so long marks none; it may run for hours. */
#define UNMARKED_S 30

/* The program fails as it is. It is not to blame if it misses a file that we keep elsewhere. */
static int say_failure(const struct lull_trial *trial, struct lull_err *err)
{
	const struct lull_vec *kept = &trial->seen.kept;
	const char *colon = *trial->words ? ": " : "", *name;

	if (!kept->n)
		return lull_fail(err, LULL_E_IO,
				 "the program fails by itself, with status %d%s%.300s",
				 trial->status, colon, trial->words);
	name = *(char *const *)kept->at;
	if (strrchr(name, '/'))
		name = strrchr(name, '/') + 1;
	return lull_fail(err, LULL_E_IO,
			 "the program fails with status %d%s%.300s; files that it saves are in a "
			 "scratch folder meanwhile (%.60s), which may be why",
			 trial->status, colon, trial->words, name);
}

/* Why there is nothing to measure. */
static int say_nothing(const struct lull_try *t, struct lull_err *err)
{
	const struct lull_trial *trial = &t->base.last;
	u64 n = trial->seen.n_steps + trial->seen.n_measured;

	if (t->options->client)
		return lull_fail(err, LULL_E_IO, "no requests could be measured: %.300s",
				 trial->words);
	if (trial->end == LULL_TRIAL_FAILED)
		return say_failure(trial, err);
	if (!n)
		return lull_fail(
			err, LULL_E_UNSUPPORTED,
			"no steps found%s; a program of PyTorch shows them by itself, others mark "
			"them with lull_step() or lull.step(); --whole compares whole runs",
			trial->end == LULL_TRIAL_HUNG ? " before the time limit of --timeout" : "");
	if (trial->end == LULL_TRIAL_HUNG)
		return lull_fail(err, LULL_E_UNSUPPORTED,
				 "the program made no progress for %.0f s; --timeout gives it more",
				 t->how.limit_s);
	return lull_fail(
		err, LULL_E_UNSUPPORTED,
		"the program ended after %llu step%s; %llu for warm-up and %llu to measure "
		"are wanted (--warmup, --steps)",
		(unsigned long long)n, n == 1 ? "" : "s", (unsigned long long)t->how.n_warmup,
		(unsigned long long)t->how.n_steps);
}

/* One run; *is_out: it cannot be measured. */
static int run_once(struct lull_try *t, bool *is_out, struct lull_err *err)
{
	if (t->base.has_last)
		lull_trial_release(&t->base.last);
	t->base.has_last = false;
	if (lull_try_run_entry(t, &t->base, 0, is_out, err))
		return err->code;
	if (*t->how.is_stopped)
		return lull_fail(err, LULL_E_UNSUPPORTED, "stopped before anything was measured");
	return LULL_OK;
}

/*
 * The program has no steps, so the whole run was measured. Calls of its model say more, if there
 * are enough: in a whole run, the warm-up of a compiler counts.
 */
static int run_by_calls(struct lull_try *t, bool *is_out, struct lull_err *err)
{
	const u64 least = t->how.n_warmup + t->how.n_steps + SPARE_CALLS;

	if (*is_out || !t->base.last.is_whole || t->base.last.seen.n_calls < least)
		return LULL_OK;
	for (int i = 0; i < 2; i++) {
		/* Without success, as before. */
		t->how.by_calls = !i;
		t->how.may_be_whole = i;
		lull_try_forget_base(t);
		if (run_once(t, is_out, err))
			return err->code;
		if (!*is_out)
			break;
	}
	return LULL_OK;
}

/* Whether a run went well, but has shown no step of a program that is not Python. */
static bool is_unmarked(const struct lull_try *t)
{
	const struct lull_try_seen *seen = &t->base.last.seen;

	return t->how.agent && !t->options->client && !t->how.is_whole && !seen->is_python &&
	       t->base.last.end == LULL_TRIAL_FEW_STEPS && !seen->n_steps && !seen->n_measured;
}

/* Count rounds of its loop; *is_out: that does not work, and `loop` says why. */
static int run_counted(struct lull_try *t, struct lull_try_loop *loop, bool *is_out,
		       struct lull_err *err)
{
	const u64 n_steps = t->how.n_steps, n_block = t->how.n_block;

	*is_out = true;
	if (!lull_try_loop_find(t, loop))
		return LULL_OK;
	if (run_once(t, is_out, err))
		return err->code;
	if (!*is_out)
		return LULL_OK;
	snprintf(loop->why_not, sizeof(loop->why_not), "it made too few of the calls of its loop");
	t->how.count = NULL;
	t->how.n_steps = n_steps;
	t->how.n_block = n_block;
	lull_str_clear(&t->steps_by);
	return LULL_OK;
}

/* Compare whole runs of a program without steps. */
static int run_whole(struct lull_try *t, const struct lull_try_loop *loop, bool *is_out,
		     struct lull_err *err)
{
	t->how.is_whole = t->how.has_start = true;
	if (run_once(t, is_out, err))
		return err->code;
	/* It marks steps after all, after a long start. */
	if (t->base.last.seen.n_steps) {
		t->how.is_whole = t->how.has_start = t->is_unmarked = false;
		lull_str_clear(&t->recorded);
		return run_once(t, is_out, err);
	}
	if (!*is_out)
		lull_str_addf(&t->steps_by,
			      "The program marks no steps, and %s, so whole runs are compared, "
			      "from start to end.",
			      loop->why_not);
	return LULL_OK;
}

/* A program that marks no steps has run once: count rounds of its loop, or compare whole runs. */
static int run_unmarked(struct lull_try *t, bool *is_out, struct lull_err *err)
{
	struct lull_try_loop loop = { .is_idle = false };
	bool is_named = t->entries.n || t->options->only.n;

	t->ran_ns = t->base.last.wall_ns;
	t->is_cut = t->base.last.is_cut;
	if (run_counted(t, &loop, is_out, err))
		return err->code;
	if (*is_out && loop.is_idle && !is_named)
		return lull_fail(err, LULL_E_UNSUPPORTED,
				 "the program marks no steps and does nothing on a GPU, so "
				 "there is nothing to choose from; --only or --env name "
				 "what to try");
	if (*is_out && run_whole(t, &loop, is_out, err))
		return err->code;
	if (*is_out && t->base.last.end == LULL_TRIAL_HUNG)
		return lull_fail(err, LULL_E_UNSUPPORTED,
				 "no steps found: the program marks none, %s, and it does "
				 "not end within %.0f s (--timeout); lull_step() marks them",
				 loop.why_not, t->how.limit_s);
	return LULL_OK;
}

int lull_try_run_base(struct lull_try *t, struct lull_err *err)
{
	bool is_out;

	t->how.may_be_whole = true;
	if (t->how.agent && !t->how.is_whole)
		t->how.unmarked_s = fmin(UNMARKED_S, t->how.limit_s / 2);
	if (run_once(t, &is_out, err) || run_by_calls(t, &is_out, err))
		return err->code;
	t->how.may_be_whole = false;
	t->how.unmarked_s = 0;
	t->how.is_whole |= t->base.last.is_whole;
	lull_try_settle_steps(t);
	if (is_out && is_unmarked(t) && run_unmarked(t, &is_out, err))
		return err->code;
	return is_out ? say_nothing(t, err) : LULL_OK;
}
