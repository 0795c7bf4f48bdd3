/*
 * json: one object, for scripts.
 */
#include "text/json.h"
#include "compare/gate_output.h"

static void write_samples(struct lull_json *j, const char *key, const struct lull_samples *s)
{
	const f64 *values = s->values.at;

	lull_json_key(j, key);
	lull_json_array(j);
	for (size_t i = 0; i < s->values.n; i++)
		lull_json_f64(j, values[i]);
	lull_json_end(j);
}

static void write_check(struct lull_json *j, const struct lull_gate_check *check)
{
	static const char *const units[] = { [LULL_OUT_INT] = "",
					     [LULL_OUT_FLOAT] = "",
					     [LULL_OUT_PERCENT] = "share",
					     [LULL_OUT_NS] = "ns",
					     [LULL_OUT_BYTES] = "bytes" };
	static const char *const kinds[] = { [LULL_GATE_CHANGE] = "change",
					     [LULL_GATE_BOUND] = "bound",
					     [LULL_GATE_SPEEDUP] = "speedup" };
	static const char *const weights[] = { [LULL_GATE_DECIDES] = "decides",
					       [LULL_GATE_WARNS] = "warning",
					       [LULL_GATE_REMARK] = "remark" };
	const struct lull_decision *d = &check->decision;
	const char *unit = check->metric->unit ? check->metric->unit : units[check->metric->kind];

	lull_json_object(j);
	lull_json_key(j, "metric");
	lull_json_text(j, check->spec);
	lull_json_key(j, "unit");
	lull_json_text(j, unit ? unit : "");
	lull_json_key(j, "verdict");
	lull_json_text(j, lull_verdict_name(d->verdict));
	lull_json_key_text(j, "kind", kinds[check->kind]);
	lull_json_key_text(j, "weight", weights[check->weight]);
	lull_json_key(j, "limit");
	if (check->kind == LULL_GATE_CHANGE)
		lull_json_null(j);
	else
		lull_json_f64(j, check->limit);
	lull_json_key_f64(j, "before", d->before);
	lull_json_key_f64(j, "after", d->after);
	lull_json_key_f64(j, "change", d->change);
	lull_json_key_f64(j, "change_low", d->low);
	lull_json_key_f64(j, "change_high", d->high);
	lull_json_key_f64(j, "p", d->p);
	lull_json_key_u64(j, "n_before", d->n_before);
	lull_json_key_u64(j, "n_after", d->n_after);
	lull_json_key(j, "compared");
	lull_json_text(j, d->by_run ? "runs" : "steps");
	lull_json_key_u64(j, "n_needed", d->n_needed);
	lull_json_key(j, "why");
	lull_json_text(j, *d->why ? d->why : NULL);
	write_samples(j, "values_before", &check->before);
	write_samples(j, "values_after", &check->after);
	lull_json_end(j);
}

static void write_side(struct lull_json *j, const char *key, const struct lull_vec *side)
{
	const struct lull_gate_run *runs = side->at;

	lull_json_key(j, key);
	lull_json_array(j);
	for (size_t i = 0; i < side->n; i++) {
		lull_json_object(j);
		lull_json_key(j, "report");
		lull_json_text(j, runs[i].path);
		lull_json_key_u64(j, "steps", lull_windows_len(&runs[i].steps));
		lull_json_key_u64(j, "warmup_steps", runs[i].steps.n_warmup);
		lull_json_end(j);
	}
	lull_json_end(j);
}

static void write(const struct lull_gate *gate, FILE *to)
{
	const struct lull_gate_check *checks = gate->checks.at;
	struct lull_json j;

	lull_json_init(&j, to);
	j.is_pretty = true;
	lull_json_object(&j);
	lull_json_key(&j, "verdict");
	lull_json_text(&j, lull_verdict_name(gate->verdict));
	lull_json_key(&j, "why");
	lull_json_text(&j, gate->why.len ? lull_str_text(&gate->why) : NULL);
	lull_json_key(&j, "note");
	lull_json_text(&j, gate->note.len ? lull_str_text(&gate->note) : NULL);
	lull_json_key_f64(&j, "threshold", gate->threshold);
	write_side(&j, "baseline", &gate->before);
	write_side(&j, "new", &gate->after);
	lull_json_key(&j, "checks");
	lull_json_array(&j);
	for (size_t i = 0; !gate->why.len && i < gate->checks.n; i++)
		write_check(&j, &checks[i]);
	lull_json_end(&j);
	lull_json_end(&j);
	fputc('\n', to);
}

const struct lull_gate_output lull_gate_output_json = {
	.name = "json",
	.summary = "one object, for scripts",
	.write = write,
};
