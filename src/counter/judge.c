#include "counter/judge.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define VERDICT(name) extern const struct lull_kverdict lull_verdict_##name;
#include "counter/verdicts.def"
#undef VERDICT

const struct lull_kverdict *const lull_verdicts[] = {
#define VERDICT(name) &lull_verdict_##name,
#include "counter/verdicts.def"
#undef VERDICT
	NULL,
};

_Static_assert(LULL_COUNT_OF(lull_verdicts) <= LULL_MAX_VERDICTS, "raise LULL_MAX_VERDICTS");

void lull_prove(struct lull_kclaim *claim, const char *fmt, ...)
{
	va_list ap;

	if (claim->n_proofs >= LULL_PROOFS)
		return;
	va_start(ap, fmt);
	vsnprintf(claim->proofs[claim->n_proofs++], sizeof(claim->proofs[0]), fmt, ap);
	va_end(ap);
}

void lull_advise(struct lull_kclaim *claim, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(claim->fix, sizeof(claim->fix), fmt, ap);
	va_end(ap);
}

bool lull_case_get(struct lull_case *c, enum lull_k k, f64 *value)
{
	*value = lull_k_of(c->p, k);
	if (!isnan(*value))
		return true;
	if (!c->missing)
		c->missing = lull_k_infos[k].key;
	return false;
}

f64 lull_case_stalls(const struct lull_case *c, const enum lull_stall_ix *stalls, size_t n)
{
	f64 sum = 0;

	for (size_t i = 0; i < n; i++) {
		f64 share = lull_stall_share(c->p, stalls[i]);

		sum += isnan(share) ? 0 : share;
	}
	return sum;
}

/* ---- deciding ---- */

static bool is_before(const struct lull_kclaim *a, const struct lull_kclaim *b)
{
	if (a->by->stage != b->by->stage)
		return a->by->stage < b->by->stage;
	return a->by->stage == LULL_STAGE_WASTE && a->gain > b->gain;
}

/* Keep the claims sorted; the list's order decides among equals. */
static void insert(struct lull_judgement *j, const struct lull_kclaim *claim)
{
	size_t at = j->n++;

	for (; at > 0 && is_before(claim, &j->claims[at - 1]); at--)
		j->claims[at] = j->claims[at - 1];
	j->claims[at] = *claim;
}

/* A little unevenness is not what to begin with where warps lose much more by waiting. */
#define SLIGHT	    1.5
#define MUCH_LARGER 2

static void prefer_larger(struct lull_judgement *j)
{
	struct lull_kclaim first;

	if (j->n < 2 || j->claims[0].by->stage != LULL_STAGE_SHAPE || !(j->claims[0].gain < SLIGHT))
		return;
	for (size_t i = 1; i < j->n; i++)
		if (j->claims[i].by->stage != LULL_STAGE_SHAPE &&
		    j->claims[i].gain > MUCH_LARGER * j->claims[0].gain) {
			first = j->claims[i];
			memmove(&j->claims[1], &j->claims[0], i * sizeof(first));
			j->claims[0] = first;
			return;
		}
}

/* Append to a list, as far as there is room. */
static void append(char *to, size_t size, const char *fmt, const char *a, const char *b)
{
	size_t len = strlen(to);

	if (len + 1 < size)
		snprintf(to + len, size - len, fmt, len ? ", " : "", a, b);
}

/* A verdict of a later stage than the one that was found would have changed nothing. */
static void note_missing(struct lull_judgement *j, const char *const keys[LULL_MAX_VERDICTS])
{
	for (size_t i = 0; lull_verdicts[i]; i++) {
		const struct lull_kverdict *v = lull_verdicts[i];

		if (!keys[i] || (j->n && v->stage > j->claims[0].by->stage))
			continue;
		append(j->missing, sizeof(j->missing), "%s%s (%s)", v->id, keys[i]);
		append(j->unchecked, sizeof(j->unchecked), "%s%s%s", v->id, "");
	}
}

/* Findings besides the verdict without a gain, or that only repeat that nothing is busy. */
static void drop_idle(struct lull_judgement *j)
{
	size_t n = j->n > 0;

	for (size_t i = 1; i < j->n; i++)
		if (j->claims[i].gain >= LULL_MIN_GAIN &&
		    j->claims[i].by != &lull_verdict_latency_bound)
			j->claims[n++] = j->claims[i];
	j->n = n;
}

void lull_judge(struct lull_judgement *to, const struct lull_profile *p)
{
	const char *lacks[LULL_MAX_VERDICTS] = { NULL };
	struct lull_case c = { .p = p };

	to->n = 0;
	to->missing[0] = to->unchecked[0] = 0;
	lull_loads_of(&c.loads, p);
	to->loads = c.loads;
	for (size_t i = 0; lull_verdicts[i]; i++) {
		const struct lull_kverdict *v = lull_verdicts[i];
		struct lull_kclaim claim = { .by = v, .id = v->id, .title = v->title, .gain = NAN };

		c.missing = NULL;
		if (v->claim(&c, &claim))
			insert(to, &claim);
		else
			lacks[i] = c.missing;
	}
	prefer_larger(to);
	note_missing(to, lacks);
	drop_idle(to);
}

const char *lull_judgement_id(const struct lull_judgement *j)
{
	return j->n ? j->claims[0].id : "unknown";
}
