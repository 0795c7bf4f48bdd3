#include "compare/gate.h"

void lull_gate_value(const struct lull_gate_check *check, f64 value, char *to, size_t cap_bytes)
{
	lull_metric_value(check->metric, value, to, cap_bytes);
}

void lull_gate_change(const struct lull_gate_check *check, struct lull_str *to)
{
	const struct lull_decision *d = &check->decision;
	const char *unit = check->metric->is_share ? "points" : "%";

	if (!d->has_change)
		lull_str_puts(to, "not compared");
	else if (d->low == 0 && d->high == 0)
		lull_str_puts(to, "the same");
	else if (d->low == d->high)
		lull_str_addf(to, "%+.1f %s", 100 * d->change, unit);
	else
		lull_str_addf(to, "%+.1f %s on average (%+.1f to %+.1f)", 100 * d->change, unit,
			      100 * d->low, 100 * d->high);
}

const char *lull_gate_word(const struct lull_gate_check *check)
{
	enum lull_verdict verdict = check->decision.verdict;

	if (verdict != LULL_REGRESSED && verdict != LULL_FAILED)
		return lull_verdict_name(verdict);
	return check->weight == LULL_GATE_WARNS	   ? "warning"
	       : check->weight == LULL_GATE_REMARK ? "remark"
						   : lull_verdict_name(verdict);
}

enum lull_verdict lull_gate_counted(const struct lull_gate_check *check)
{
	return check->weight == LULL_GATE_DECIDES ? check->decision.verdict : LULL_PASS;
}

/* "; too few measurements: needs 5 steps per side, there are 3 and 4" */
static void say_needed(const struct lull_gate_check *check, struct lull_str *to)
{
	const struct lull_decision *d = &check->decision;
	const char *each = check->metric && check->metric->each ? check->metric->each : "steps";
	const char *what = d->by_run ? "runs" : each;

	if (d->verdict != LULL_INCONCLUSIVE)
		return;
	if (check->kind == LULL_GATE_BOUND)
		lull_str_addf(to, "; %s: needs %zu %s, there are %zu", d->why, d->n_needed, what,
			      d->n_after);
	else
		lull_str_addf(to, "; %s: needs %zu %s per side, there are %zu and %zu", d->why,
			      d->n_needed, what, d->n_before, d->n_after);
}

static void say_speedup(const struct lull_gate_check *check, struct lull_str *to)
{
	const struct lull_decision *d = &check->decision;

	if (d->has_change && d->low > -1)
		lull_str_addf(to, "%.2f x on average (%.2f to %.2f), ", 1 / (1 + d->change),
			      1 / (1 + d->high), 1 / (1 + d->low));
}

void lull_gate_sentence(const struct lull_gate_check *check, struct lull_str *to)
{
	const struct lull_decision *d = &check->decision;
	char before[48], after[48];

	lull_str_addf(to, "%s: ", check->spec);
	if (d->verdict == LULL_NOT_COMPARABLE) {
		lull_str_puts(to, d->why);
		return;
	}
	lull_gate_value(check, d->before, before, sizeof(before));
	lull_gate_value(check, d->after, after, sizeof(after));
	if (check->kind == LULL_GATE_BOUND) {
		lull_str_addf(to, "%s%s", after, d->n_after > 1 ? " (median)" : "");
	} else if (check->kind == LULL_GATE_SPEEDUP) {
		say_speedup(check, to);
		lull_str_addf(to, "a step takes %s, was %s (medians)", after, before);
	} else {
		lull_str_addf(to, "%s, was %s%s: ", after, before,
			      !d->has_change || d->low != d->high ? " (medians)" : "");
		lull_gate_change(check, to);
	}
	say_needed(check, to);
	if (check->weight == LULL_GATE_REMARK)
		lull_str_puts(to, "; but the step got faster, so this does not fail the gate");
}
