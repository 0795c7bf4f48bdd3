#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/convert.h"
#include "compare/gate_int.h"

/* Nobody records more; what a wish for precision asks for may be any number. */
#define MAX_NEEDED 1000000.0

static void cannot(struct lull_decision *d, enum lull_verdict verdict, const char *why)
{
	d->verdict = verdict;
	snprintf(d->why, sizeof(d->why), "%s", why);
}

/* The limit of a bound is not compared with noise: the median keeps it or does not. */
static void judge_bound(struct lull_gate_check *check)
{
	struct lull_decision *d = &check->decision;
	size_t n = check->after.values.n;

	*d = (struct lull_decision){ .p = 1, .n_after = n, .before = check->limit };
	if (!n) {
		cannot(d, LULL_NOT_COMPARABLE, "the new side has no such measurement");
		return;
	}
	d->after = lull_samples_median(&check->after);
	if (n < LULL_DECIDE_MIN_VALUES && !check->sql) {
		d->n_needed = LULL_DECIDE_MIN_VALUES;
		cannot(d, LULL_INCONCLUSIVE, "too few measurements");
	} else if (d->after < check->limit || (check->is_inclusive && d->after == check->limit)) {
		d->verdict = LULL_PASS;
	} else {
		d->verdict = LULL_FAILED;
	}
}

/* Values per side that would make the interval end before the limit, from how wide it is now. */
static size_t needed_for(const struct lull_decision *d, f64 limit)
{
	f64 half = (log1p(d->high) - log1p(d->low)) / 2;
	f64 margin = fabs(log1p(d->change) - log1p(limit));
	f64 n = (f64)(d->n_before > d->n_after ? d->n_before : d->n_after);

	n = margin > 0 ? n * (half / margin) * (half / margin) : MAX_NEEDED;
	return lull_u64_of(ceil(n < MAX_NEEDED ? n : MAX_NEEDED));
}

/* A speed-up is reached if the whole interval of the change is, and missed if none of it is. */
static void judge_speedup(struct lull_gate_check *check)
{
	struct lull_decision *d = &check->decision;
	f64 limit = 1 / check->limit - 1;

	if (!d->has_change)
		return;
	d->n_needed = 0;
	*d->why = '\0';
	if (d->high <= limit) {
		d->verdict = LULL_PASS;
	} else if (d->low > limit) {
		d->verdict = LULL_FAILED;
	} else {
		d->n_needed = needed_for(d, limit);
		cannot(d, LULL_INCONCLUSIVE, "the noise hides whether it is that much");
	}
}

/* What is not there on one side cannot be compared; anything else is the caller's mistake. */
int lull_gate_judge(const struct lull_gate *gate, struct lull_gate_check *check,
		    struct lull_err *err)
{
	const struct lull_decide_rule rule = { .threshold = gate->threshold,
					       .alpha = LULL_DECIDE_ALPHA,
					       .is_share = check->metric->is_share };
	struct lull_err missing = { LULL_OK, "" };
	int rc = LULL_OK;

	if (check->kind != LULL_GATE_BOUND)
		rc = lull_gate_sample(gate, check, &gate->before, &check->before, &missing);
	if (!rc)
		rc = lull_gate_sample(gate, check, &gate->after, &check->after, &missing);
	if (rc && rc != LULL_E_NOT_FOUND)
		return lull_fail(err, (enum lull_code)rc, "%s", missing.msg);
	if (rc) {
		check->decision = (struct lull_decision){ .p = 1 };
		cannot(&check->decision, LULL_NOT_COMPARABLE, missing.msg);
		return LULL_OK;
	}
	if (check->kind == LULL_GATE_BOUND) {
		judge_bound(check);
		return LULL_OK;
	}
	lull_decide(&check->before, &check->after, &rule, &check->decision);
	if (check->kind == LULL_GATE_SPEEDUP)
		judge_speedup(check);
	return LULL_OK;
}
