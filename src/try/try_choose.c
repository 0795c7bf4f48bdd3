/*
 * Choose remedies by `lull why` on a short recording: those whose cause it found, the largest
 * predicted gain first.
 */
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "base/str.h"
#include "cause/opportunity.h"
#include "cause/why.h"
#include "import/import.h"
#include "text/progress.h"
#include "try/try_int.h"

/* A cause with less of the step than this, or a smaller predicted gain, is not worth a trial. */
#define LEAST_SHARE 0.03

/* More candidates than this take too long; the others have the smallest predicted gains. */
#define MOST_CANDIDATES 8

/* What a remedy is predicted to bring, by the causes that were found. */
static f64 predict(const struct lull_why *why, const struct lull_remedy *r)
{
	const struct lull_finding *findings = why->findings.at;
	const struct lull_opportunity *ways = why->opportunities.at;
	f64 best = 0;

	for (size_t i = 0; i < why->findings.n; i++) {
		const struct lull_finding *f = &findings[i];
		f64 ratio = f->prediction.is_known ? f->prediction.ratio : 1;

		if (!lull_remedy_is_for(r, lull_causes[f->cause]->id))
			continue;
		if ((f->share >= LEAST_SHARE || ratio >= 1 + LEAST_SHARE || (int)i == why->first) &&
		    ratio > best)
			best = ratio;
	}
	for (size_t i = 0; i < why->opportunities.n; i++)
		if (lull_remedy_is_for(r, ways[i].kind->id) && ways[i].prediction.ratio > best)
			best = ways[i].prediction.ratio;
	return best;
}

/* The place of the first cause of the remedy that was found, in its own list: 0 is its main one. */
static size_t place_of(const struct lull_why *why, const struct lull_remedy *r)
{
	const struct lull_finding *findings = why->findings.at;
	const struct lull_opportunity *ways = why->opportunities.at;
	char *const *causes = r->causes.at;

	for (size_t k = 0; k < r->causes.n; k++) {
		for (size_t i = 0; i < why->findings.n; i++)
			if (findings[i].share >= LEAST_SHARE &&
			    strcmp(causes[k], lull_causes[findings[i].cause]->id) == 0)
				return k;
		for (size_t i = 0; i < why->opportunities.n; i++)
			if (strcmp(causes[k], ways[i].kind->id) == 0)
				return k;
	}
	return r->causes.n;
}

/*
 * The largest prediction first; of equal ones those made for the cause, then those that are quick.
 */
static int by_promise(const void *a, const void *b)
{
	const struct lull_try_entry *x = a, *y = b;
	f64 limit_x = x->remedies[0]->limit_s, limit_y = y->remedies[0]->limit_s;

	if (x->predicted != y->predicted)
		return (x->predicted < y->predicted) - (x->predicted > y->predicted);
	if (x->place != y->place)
		return (x->place > y->place) - (x->place < y->place);
	return (limit_x > limit_y) - (limit_x < limit_y);
}

/* PyTorch has its own pool and its own pinned memory. */
static bool can_change(const struct lull_remedy *r, bool is_python)
{
	return r->env.n || (is_python ? r->path : r->mend);
}

static void add_all(struct lull_try *t, const struct lull_why *why)
{
	const struct lull_remedy *all = t->remedies.at;
	bool is_python = t->options->is_dry ? !t->how.agent : t->base.last.seen.is_python;

	for (size_t i = 0; i < t->remedies.n; i++) {
		const struct lull_remedy *one = &all[i];
		f64 predicted = why ? predict(why, one) : 1;
		struct lull_try_entry *e;

		if (one->is_by_name || predicted <= 0 || !can_change(one, is_python))
			continue;
		e = lull_vec_get(&t->entries, lull_try_add(t, &one, 1));
		e->predicted = why ? predicted : 0;
		e->place = why ? place_of(why, one) : 0;
	}
	lull_sort(t->entries.at, t->entries.n, sizeof(struct lull_try_entry), by_promise);
}

/* Forget the candidates with the smallest predictions. */
static void cut(struct lull_try *t)
{
	struct lull_try_entry *entries = t->entries.at;

	while (t->entries.n > MOST_CANDIDATES) {
		struct lull_try_entry *last = &entries[--t->entries.n];

		free((void *)last->remedies);
		lull_str_release(&last->name);
	}
}

static void choose(struct lull_try *t, struct lull_reader *r)
{
	struct lull_err err = { LULL_OK, "" };
	struct lull_why why;
	int rc = lull_why_run(&why, r, NULL, &err);
	const struct lull_finding *first = rc ? NULL : lull_why_first(&why);

	if (rc || *why.cannot || !first) {
		lull_str_addf(&t->chosen_by,
			      "lull why cannot tell what limits it (%s); all remedies "
			      "are tried",
			      rc ? err.msg : why.cannot);
		add_all(t, NULL);
	} else {
		lull_str_addf(&t->chosen_by, "lull why: %s, %.0f %% of the step",
			      lull_causes[first->cause]->id, 100 * first->share);
		add_all(t, &why);
		cut(t);
	}
	lull_why_release(&why);
}

static void say(const struct lull_try *t, const char *text)
{
	struct lull_progress p;

	lull_progress_init(&p, t->options->is_quiet);
	lull_progress_say(&p, text);
}

int lull_try_choose(struct lull_try *t, struct lull_err *err)
{
	const struct lull_trial_change none = { NULL, 0 };
	struct lull_err why = { LULL_OK, "" };
	struct lull_str path = LULL_STR_INIT;
	struct lull_reader *r;

	(void)err;
	if (t->entries.n || t->options->only.n)
		return LULL_OK;
	if (t->requests.len) {
		lull_str_puts(&path, t->requests.at);
	} else {
		say(t, "recording some steps, to choose remedies");
		lull_str_addf(&path, "%s/choose.lull", t->folder.at);
		lull_try_record(t, &none, path.at, &why);
	}
	if (why.code || lull_import_open(path.at, &r, &why)) {
		lull_str_addf(&t->chosen_by, "%s, so all remedies are tried", why.msg);
		add_all(t, NULL);
	} else {
		choose(t, r);
		lull_reader_close(r);
	}
	lull_str_release(&path);
	return LULL_OK;
}
