/*
 * The shape of what `lull gate --format json` prints.
 */
#include "cmd/schema_json.h"

static const struct lull_property runs[] = {
	{ "report", "string", "its path", NULL },
	{ "steps", "integer", "steps compared", NULL },
	{ "warmup_steps", "integer", "steps left out at the start", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property checks[] = {
	{ "metric", "string", "as given on the command line", NULL },
	{ "unit", "string", "ns, bytes, share, J, or none", NULL },
	{ "verdict", "string", "pass, regressed, failed, inconclusive, not comparable", NULL },
	{ "kind", "string", "change, bound, speedup", NULL },
	{ "weight", "string", "decides, warning, remark: only the first can fail the gate", NULL },
	{ "limit", "number|null", "of a bound, or times as fast", NULL },
	{ "before", "number", "median; of a bound: the limit", NULL },
	{ "after", "number", "median", NULL },
	{ "change", "number", "of the mean, as a share of it before; of shares: difference", NULL },
	{ "change_low", "number", "of the 90 % interval", NULL },
	{ "change_high", "number", "of the 90 % interval", NULL },
	{ "p", "number", "probability of a change this bad if nothing changed", NULL },
	{ "n_before", "integer", "values compared", NULL },
	{ "n_after", "integer", "values compared", NULL },
	{ "compared", "string", "steps or runs", NULL },
	{ "n_needed", "integer", "values per side that would decide; 0 if these did", NULL },
	{ "why", "string|null", "why there is no decision", NULL },
	{ "values_before", "array", "all values", NULL },
	{ "values_after", "array", "all values", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property document[] = {
	{ "verdict", "string", "pass, regressed, failed, inconclusive, not comparable", NULL },
	{ "why", "string|null", "why the reports cannot be compared", NULL },
	{ "note", "string|null", "what is worth a look", NULL },
	{ "threshold", "number", "the smallest change that matters", NULL },
	{ "baseline", "array", "reports of the baseline", runs },
	{ "new", "array", "new reports", runs },
	{ "checks", "array", "one for each metric", checks },
	{ NULL, NULL, NULL, NULL },
};

void lull_schema_of_gate(struct lull_json *j)
{
	lull_schema_json_object(j, "lull gate --format json", document);
}
