/*
 * Choose remedies by `lull why` on a short recording: those whose cause it found, the largest
 * predicted gain first.
 *
 * Where it cannot tell, all are tried, in the order of the time that their causes have all the
 * same. In both cases a remedy is left out without a run if the recording lacks what it needs
 * (need.h), or if it was asked in the recorded run and found nothing to change.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/sort.h"
#include "base/str.h"
#include "cause/opportunity.h"
#include "cause/why.h"
#include "import/import.h"
#include "text/progress.h"
#include "try/need.h"
#include "try/try_int.h"

/* A cause with less of the step than this, or a smaller predicted gain, is not worth a trial. */
#define LEAST_SHARE 0.03

/* More candidates than this take too long; the others have the smallest predicted gains. */
#define MOST_CANDIDATES 8

/* Whatever its causes take, some of the step stays. */
#define MOST_SHARE 0.95

/* What the choice is made from. */
struct known {
	const struct lull_why *why;	  /* NULL: there is no recording, or nothing in it */
	bool is_sure;			  /* it names a cause */
	const struct lull_try_seen *seen; /* in the recorded run; NULL: no remedy was asked */
};

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

/* The cause of this id, or -1: it is an opportunity. */
static int cause_of(const char *id)
{
	for (int i = 0; i < LULL_N_CAUSES; i++)
		if (strcmp(lull_causes[i]->id, id) == 0)
			return i;
	return -1;
}

/*
 * What the recording has for this cause, as a share. Time that nobody can explain counts for the
 * cause that has what no other takes, since it is the likeliest.
 */
static f64 share_of(const struct lull_why *why, int cause)
{
	f64 share = cause < 0 ? 0 : why->shares[cause];

	if (cause == (int)lull_cause_default(LULL_CAUSE_RESIDUE))
		share += why->shares[lull_cause_default(LULL_CAUSE_BLIND)];
	return share;
}

/* How many times as fast, if the largest of its causes were gone. */
static f64 hope(const struct lull_why *why, const struct lull_remedy *r)
{
	char *const *causes = r->causes.at;
	f64 best = 0;

	for (size_t i = 0; i < r->causes.n; i++)
		best = fmax(best, share_of(why, cause_of(causes[i])));
	return fmax(1 / (1 - fmin(best, MOST_SHARE)), predict(why, r));
}

/*
 * The largest promise first, and last those that change nothing. Of equal ones those that are
 * quick, those that said that they would change something, those that are made for the cause, and
 * those that change no result.
 */
static int by_promise(const void *a, const void *b)
{
	const struct lull_try_entry *x = a, *y = b;
	const struct lull_remedy *of_x = x->remedies[0], *of_y = y->remedies[0];

	if (x->end != y->end)
		return x->end == LULL_TRY_NOTHING ? 1 : -1;
	if (x->promise != y->promise)
		return x->promise < y->promise ? 1 : -1;
	if (of_x->limit_s != of_y->limit_s)
		return of_x->limit_s > of_y->limit_s ? 1 : -1;
	if (x->is_apt != y->is_apt)
		return x->is_apt ? -1 : 1;
	if (x->place != y->place)
		return x->place > y->place ? 1 : -1;
	if (of_x->is_exact != of_y->is_exact)
		return of_x->is_exact ? -1 : 1;
	return strcmp(of_x->name, of_y->name);
}

/* PyTorch has its own pool and its own pinned memory; what is named is tried in any program. */
static bool can_change(const struct lull_remedy *r, bool is_python)
{
	return r->env.n || (is_python ? r->path : r->mend);
}

static bool has_word(const struct lull_vec *list, const char *word)
{
	char *const *at = list->at;

	for (size_t i = 0; i < list->n; i++)
		if (strcmp(at[i], word) == 0)
			return true;
	return false;
}

/* Why the remedy would change nothing; NULL if it may. */
static const char *objection(const struct known *k, const struct lull_remedy *r)
{
	const struct lull_need *const *needs = r->needs.at;

	for (size_t i = 0; k->why && i < r->needs.n; i++)
		if (!needs[i]->has(k->why))
			return needs[i]->lacks;
	if (k->seen && k->seen->is_asked && r->can_ask && !has_word(&k->seen->could, r->name))
		return "nothing in the program to change";
	return NULL;
}

static void add_all(struct lull_try *t, const struct known *k)
{
	const struct lull_remedy *all = t->remedies.at;
	bool is_python = t->options->is_dry ? !t->how.agent : t->base.last.seen.is_python;

	for (size_t i = 0; i < t->remedies.n; i++) {
		const struct lull_remedy *one = &all[i];
		f64 predicted = k->why ? predict(k->why, one) : 0;
		struct lull_try_entry *e;
		const char *no;

		if (one->is_by_name || !can_change(one, is_python) ||
		    (k->is_sure && predicted <= 0))
			continue;
		e = lull_vec_get(&t->entries, lull_try_add(t, &one, 1));
		e->predicted = k->is_sure ? predicted : 0;
		e->promise = k->is_sure || !k->why ? predicted : hope(k->why, one);
		e->place = k->why ? place_of(k->why, one) : 0;
		e->is_apt = k->seen && has_word(&k->seen->could, one->name);
		no = objection(k, one);
		if (!no)
			continue;
		e->end = LULL_TRY_NOTHING;
		lull_str_puts(&e->why, no);
	}
	lull_sort(t->entries.at, t->entries.n, sizeof(struct lull_try_entry), by_promise);
}

/* Forget the candidates with the smallest predictions; those that change nothing are told. */
static void cut(struct lull_try *t)
{
	struct lull_try_entry *entries = t->entries.at;
	size_t n = 0, end;

	while (n < t->entries.n && entries[n].end != LULL_TRY_NOTHING)
		n++;
	end = n > MOST_CANDIDATES ? MOST_CANDIDATES : n;
	for (size_t i = end; i < n; i++) {
		free((void *)entries[i].remedies);
		lull_str_release(&entries[i].name);
	}
	memmove(entries + end, entries + n, (t->entries.n - n) * sizeof(*entries));
	t->entries.n -= n - end;
}

/* What has the most time, where nothing is certain: "launch-bound 81 %, gc 4 %". */
static void say_shares(const struct lull_why *why, struct lull_str *to)
{
	bool is_said[LULL_N_CAUSES] = { false };

	for (int n = 0; n < 3; n++) {
		int best = -1;

		for (int i = 0; i < LULL_N_CAUSES; i++)
			if (!is_said[i] && lull_causes[i]->kind != LULL_CAUSE_BLIND &&
			    share_of(why, i) >= LEAST_SHARE &&
			    (best < 0 || share_of(why, i) > share_of(why, best)))
				best = i;
		if (best < 0)
			return;
		is_said[best] = true;
		lull_str_addf(to, "%s%s %.0f %%", n ? ", " : ": perhaps ", lull_causes[best]->id,
			      100 * share_of(why, best));
	}
}

static void choose(struct lull_try *t, struct lull_reader *r, const struct lull_try_seen *seen)
{
	struct lull_err err = { LULL_OK, "" };
	struct lull_why why;
	int rc = lull_why_run(&why, r, NULL, &err);
	const struct lull_finding *first = rc ? NULL : lull_why_first(&why);
	struct known k = { rc ? NULL : &why, first && !*why.cannot, seen };

	if (k.is_sure) {
		lull_str_addf(&t->chosen_by, "lull why: %s, %.0f %% of the step",
			      lull_causes[first->cause]->id, 100 * first->share);
	} else {
		lull_str_addf(&t->chosen_by,
			      "lull why cannot tell what limits it (%s); all remedies "
			      "are tried%s",
			      rc ? err.msg : why.cannot, rc ? "" : ", the likeliest first");
		if (!rc)
			say_shares(&why, &t->chosen_by);
	}
	add_all(t, &k);
	if (k.is_sure)
		cut(t);
	lull_why_release(&why);
}

static void say(const struct lull_try *t, const char *text)
{
	struct lull_progress p;

	lull_progress_init(&p, t->options->is_quiet);
	lull_progress_say(&p, text);
}

/* Record some steps, and ask the remedies meanwhile what they would change. */
static void record(struct lull_try *t, const char *path, struct lull_try_seen *seen,
		   struct lull_err *err)
{
	const struct lull_trial_change none = { NULL, 0 };
	const struct lull_remedy *all = t->remedies.at;
	struct lull_str folder = LULL_STR_INIT, asks = LULL_STR_INIT;
	bool is_answered;

	say(t, "recording some steps, to choose remedies");
	for (size_t i = 0; i < t->remedies.n; i++)
		if (all[i].path && all[i].can_ask && !all[i].is_by_name)
			lull_str_addf(&asks, "%s%s", asks.len ? ":" : "", all[i].path);
	lull_str_addf(&folder, "%s/recorded-%u", t->folder.at, ++t->n_trials);
	t->how.asks = asks.len ? asks.at : NULL;
	lull_try_record_in(t, &none, path, folder.at, &is_answered, err);
	t->how.asks = NULL;
	lull_try_log_read(seen, folder.at);
	lull_str_release(&folder);
	lull_str_release(&asks);
}

/* Whether device work would be in the report, if there was any. */
static bool sees_devices(struct lull_reader *r)
{
	size_t n;
	const struct lull_issue_row *rows = lull_reader_dim(r, LULL_TABLE_issue, &n);

	for (size_t i = 0; i < n; i++)
		if (rows[i].issue == LULL_ISSUE_no_cupti ||
		    rows[i].issue == LULL_ISSUE_cupti_refused ||
		    rows[i].issue == LULL_ISSUE_cupti_taken)
			return false;
	return true;
}

static bool has_device_work(struct lull_reader *r)
{
	static const u16 tables[] = { LULL_TABLE_kernel, LULL_TABLE_graph, LULL_TABLE_memcpy,
				      LULL_TABLE_memset, LULL_TABLE_cuda_call };

	for (size_t i = 0; i < LULL_COUNT_OF(tables); i++)
		if (lull_reader_stats(r, tables[i]).n_rows)
			return true;
	return false;
}

int lull_try_choose(struct lull_try *t, struct lull_err *err)
{
	struct lull_err why = { LULL_OK, "" };
	struct lull_str path = LULL_STR_INIT;
	struct lull_try_seen seen;
	struct lull_reader *r;
	int rc = LULL_OK;

	if (t->entries.n || t->options->only.n)
		return LULL_OK;
	lull_try_seen_init(&seen);
	if (t->recorded.len) {
		lull_str_puts(&path, t->recorded.at);
	} else {
		lull_str_addf(&path, "%s/choose.lull", t->folder.at);
		record(t, path.at, &seen, &why);
		/* --dry-run has not run it: perhaps it marks no steps. */
		if (why.code && t->options->is_dry) {
			t->is_unmarked = true;
			why.code = LULL_OK;
			record(t, path.at, &seen, &why);
		}
	}
	if (why.code || lull_import_open(path.at, &r, &why)) {
		const struct known k = { .seen = &seen };

		lull_str_addf(&t->chosen_by, "%s, so all remedies are tried", why.msg);
		add_all(t, &k);
	} else {
		/* Remedies of Python may find something to change without a device. */
		if (has_device_work(r) || !sees_devices(r) || seen.could.n)
			choose(t, r, &seen);
		else
			rc = lull_fail(err, LULL_E_UNSUPPORTED,
				       "the program does nothing on a GPU, so there is nothing to "
				       "choose from; --only or --env name what to try");
		lull_reader_close(r);
	}
	lull_try_seen_release(&seen);
	lull_str_release(&path);
	return rc;
}
