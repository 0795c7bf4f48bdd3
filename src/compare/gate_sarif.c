/*
 * sarif: SARIF 2.1.0, one result per metric that did not pass, for code scanning.
 *
 * Code scanning wants a place in the sources; a gate has none, so the new report stands there.
 */
#include "text/json.h"
#include "compare/gate_output.h"

static void write_message(struct lull_json *j, const char *key, const char *text)
{
	lull_json_key(j, key);
	lull_json_object(j);
	lull_json_key_text(j, "text", text);
	lull_json_end(j);
}

static void write_location(struct lull_json *j, const struct lull_gate *gate)
{
	const struct lull_gate_run *run = gate->after.at;

	lull_json_key(j, "locations");
	lull_json_array(j);
	lull_json_object(j);
	lull_json_key(j, "physicalLocation");
	lull_json_object(j);
	lull_json_key(j, "artifactLocation");
	lull_json_object(j);
	lull_json_key_text(j, "uri", gate->after.n ? run->path : "");
	lull_json_end(j);
	lull_json_end(j);
	lull_json_end(j);
	lull_json_end(j);
}

static void write_result(struct lull_json *j, const struct lull_gate *gate, const char *rule,
			 enum lull_verdict verdict, const char *sentence)
{
	bool is_bad = lull_verdict_is_bad(verdict);

	lull_json_object(j);
	lull_json_key_text(j, "ruleId", rule);
	lull_json_key_text(j, "level", is_bad ? "error" : "warning");
	lull_json_key_text(j, "kind", is_bad ? "fail" : "review");
	write_message(j, "message", sentence);
	write_location(j, gate);
	lull_json_end(j);
}

static void write_rules(struct lull_json *j)
{
	lull_json_key(j, "rules");
	lull_json_array(j);
	for (const struct lull_metric *const *m = lull_metrics; *m; m++) {
		lull_json_object(j);
		lull_json_key_text(j, "id", (*m)->name);
		write_message(j, "shortDescription", (*m)->summary);
		lull_json_end(j);
	}
	lull_json_object(j);
	lull_json_key_text(j, "id", "sql");
	write_message(j, "shortDescription", "the result of a query");
	lull_json_end(j);
	lull_json_object(j);
	lull_json_key_text(j, "id", "reports");
	write_message(j, "shortDescription", "whether the reports may be compared");
	lull_json_end(j);
	lull_json_end(j);
}

static void write_tool(struct lull_json *j)
{
	lull_json_key(j, "tool");
	lull_json_object(j);
	lull_json_key(j, "driver");
	lull_json_object(j);
	lull_json_key_text(j, "name", "lull gate");
	lull_json_key_text(j, "version", LULL_VERSION);
	write_rules(j);
	lull_json_end(j);
	lull_json_end(j);
}

static void write_results(struct lull_json *j, const struct lull_gate *gate)
{
	const struct lull_gate_check *checks = gate->checks.at;

	lull_json_key(j, "results");
	lull_json_array(j);
	if (gate->why.len)
		write_result(j, gate, "reports", gate->verdict, lull_str_text(&gate->why));
	for (size_t i = 0; !gate->why.len && i < gate->checks.n; i++) {
		struct lull_str text = LULL_STR_INIT;

		lull_gate_sentence(&checks[i], &text);
		if (checks[i].decision.verdict != LULL_PASS)
			write_result(j, gate, checks[i].metric->name,
				     checks[i].weight == LULL_GATE_DECIDES
					     ? checks[i].decision.verdict
					     : LULL_INCONCLUSIVE,
				     lull_str_text(&text));
		lull_str_release(&text);
	}
	lull_json_end(j);
}

static void write(const struct lull_gate *gate, FILE *to)
{
	struct lull_json j;

	lull_json_init(&j, to);
	j.is_pretty = true;
	lull_json_object(&j);
	lull_json_key_text(&j, "version", "2.1.0");
	lull_json_key_text(&j, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
	lull_json_key(&j, "runs");
	lull_json_array(&j);
	lull_json_object(&j);
	write_tool(&j);
	write_results(&j, gate);
	lull_json_end(&j);
	lull_json_end(&j);
	lull_json_end(&j);
	fputc('\n', to);
}

const struct lull_gate_output lull_gate_output_sarif = {
	.name = "sarif",
	.summary = "SARIF 2.1.0, for code scanning",
	.write = write,
};
