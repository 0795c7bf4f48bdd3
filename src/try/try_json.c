/*
 * json: one object, for scripts. cmd_try.c has its schema.
 */
#include "text/json.h"
#include "try/try_int.h"

static void write_gain(struct lull_json *j, const struct lull_try_entry *e)
{
	if (e->gain.ratio <= 0) {
		lull_json_null(j);
		return;
	}
	lull_json_object(j);
	lull_json_key_f64(j, "ratio", e->gain.ratio);
	lull_json_key_f64(j, "low", e->gain.low);
	lull_json_key_f64(j, "high", e->gain.high);
	lull_json_end(j);
}

static void write_number(struct lull_json *j, const char *key, bool is_known, f64 value)
{
	lull_json_key(j, key);
	if (is_known)
		lull_json_f64(j, value);
	else
		lull_json_null(j);
}

static void write_places(struct lull_json *j, const struct lull_try_entry *e)
{
	const struct lull_try_place *places = e->last.seen.places.at;

	lull_json_key_array(j, "places");
	for (size_t i = 0; i < e->last.seen.places.n; i++) {
		lull_json_object(j);
		lull_json_key_text(j, "remedy", places[i].remedy);
		lull_json_key_text(j, "file", places[i].file);
		lull_json_key_u64(j, "line", places[i].line);
		lull_json_key_text(j, "text", places[i].text);
		lull_json_end(j);
	}
	lull_json_end(j);
}

static void write_notes(struct lull_json *j, const struct lull_try_entry *e)
{
	char *const *notes = e->last.seen.notes.at;

	lull_json_key_array(j, "notes");
	for (size_t i = 0; i < e->last.seen.notes.n; i++)
		lull_json_text(j, notes[i]);
	lull_json_end(j);
}

static void write_entry(struct lull_json *j, const struct lull_try_entry *e)
{
	lull_json_object(j);
	lull_json_key_array(j, "remedies");
	for (size_t i = 0; i < e->n; i++)
		lull_json_text(j, e->remedies[i]->name);
	lull_json_end(j);
	lull_json_key_text(j, "verdict", e->n ? lull_try_verdict(e) : "baseline");
	lull_json_key_text(j, "why", e->why.len ? e->why.at : NULL);
	write_number(j, "step_ns", e->step_ns > 0, e->step_ns);
	write_number(j, "p99_ns", e->p99_ns > 0, e->p99_ns);
	lull_json_key(j, "gain");
	write_gain(j, e);
	write_number(j, "predicted", e->predicted > 0, e->predicted);
	write_number(j, "promise", e->promise > 0, e->promise);
	lull_json_key_u64(j, "runs", e->n_runs);
	write_number(j, "difference", e->has_values, e->difference);
	lull_json_key_u64(j, "ready_ns", e->ready_ns);
	lull_json_key_u64(j, "device_bytes", e->device_bytes);
	lull_json_key_u64(j, "rss_bytes", e->rss_bytes);
	write_places(j, e);
	write_notes(j, e);
	lull_json_end(j);
}

void lull_try_json(const struct lull_try *t, FILE *to)
{
	struct lull_json j;

	lull_json_init(&j, to);
	j.is_pretty = true;
	lull_json_object(&j);
	lull_json_key(&j, "baseline");
	write_entry(&j, &t->base);
	lull_json_key_array(&j, "tried");
	for (size_t i = 0; i < t->entries.n; i++)
		write_entry(&j, lull_vec_get(&t->entries, i));
	lull_json_end(&j);
	lull_json_key(&j, "best");
	if (t->best >= 0)
		lull_json_i64(&j, t->best);
	else
		lull_json_null(&j);
	lull_json_key_text(&j, "chosen_by", t->chosen_by.len ? t->chosen_by.at : NULL);
	lull_json_key_text(&j, "steps_by", t->steps_by.len ? t->steps_by.at : NULL);
	lull_json_key_f64(&j, "noise", t->noise);
	lull_json_key_f64(&j, "loss_drift", t->drift);
	lull_json_key_u64(&j, "steps", t->how.is_whole ? 0 : t->n_measured);
	lull_json_key(&j, "stopped");
	lull_json_bool(&j, t->is_stopped);
	lull_json_key(&j, "over_budget");
	lull_json_bool(&j, t->is_over_budget);
	lull_json_key_u64(&j, "runs", t->n_trials);
	lull_json_key_u64(&j, "forked_runs", t->n_forked);
	lull_json_key_text(&j, "not_forked",
			   t->base.last.seen.not_forked.len ? t->base.last.seen.not_forked.at
							    : NULL);
	lull_json_key_u64(&j, "spent_ns", t->spent_ns);
	lull_json_end(&j);
	fputc('\n', to);
}
