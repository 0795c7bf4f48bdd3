/* `lull requests --format json`, and its schema. */
#include "cmd/requests_print.h"

#include "cmd/schema_json.h"
#include "text/json.h"

static void put_ns(struct lull_json *j, const char *key, f64 ns)
{
	lull_json_key(j, key);
	lull_json_fixed(j, ns, 1);
}

/* Rates and shares; the digits after these are noise. */
static void put_number(struct lull_json *j, const char *key, f64 value)
{
	lull_json_key(j, key);
	lull_json_fixed(j, value, 6);
}

static void put_quantiles(struct lull_json *j, const char *key, const struct lull_quantiles *q)
{
	lull_json_key(j, key);
	if (!q->n) {
		lull_json_null(j);
		return;
	}
	lull_json_object(j);
	lull_json_key_u64(j, "n", q->n);
	lull_json_key_u64(j, "p50_ns", q->p50_ns);
	lull_json_key_u64(j, "p90_ns", q->p90_ns);
	lull_json_key_u64(j, "p99_ns", q->p99_ns);
	lull_json_key_u64(j, "max_ns", q->max_ns);
	put_ns(j, "mean_ns", q->mean_ns);
	lull_json_end(j);
}

static void put_left_out(struct lull_json *j, const struct lull_requests *q)
{
	lull_json_key(j, "left_out");
	lull_json_object(j);
	lull_json_key_u64(j, "began_before", q->n_cut_start);
	lull_json_key_u64(j, "did_not_end", q->n_cut_end);
	lull_json_key_u64(j, "hung_up", q->n_hung_up);
	lull_json_key_u64(j, "failed", q->n_failed);
	lull_json_key_u64(j, "id_used_again", q->n_twice);
	lull_json_end(j);
}

static void put_load(struct lull_json *j, const struct lull_request_load *l)
{
	lull_json_key(j, "load");
	lull_json_object(j);
	put_number(j, "rate_hz", l->rate_hz);
	put_number(j, "open_mean", l->n_mean);
	lull_json_key_u64(j, "open_max", l->n_max);
	put_number(j, "gpu_busy_share", l->busy_share);
	put_number(j, "thread_busy_share", l->thread_share);
	put_number(j, "limit_hz", l->limit_hz);
	lull_json_key_text(j, "limited_by", l->is_device ? "gpu" : "thread");
	lull_json_end(j);
}

static void put_parts(struct lull_json *j, const struct lull_request_summary *s)
{
	lull_json_key(j, "parts");
	lull_json_array(j);
	for (u32 p = 0; p < LULL_N_REQUEST_PARTS; p++) {
		lull_json_object(j);
		lull_json_key_text(j, "part", lull_request_part_word(p));
		put_ns(j, "mean_ns", s->part_mean_ns[p]);
		put_ns(j, "typical_ns", s->part_typical_ns[p]);
		put_ns(j, "slowest_ns", s->part_slow_ns[p]);
		if (s->first_token.n)
			put_ns(j, "prefill_ns", s->part_prefill_ns[p]);
		lull_json_end(j);
	}
	lull_json_end(j);
}

static void put_names(struct lull_json *j, const struct lull_requests_answer *a)
{
	const struct lull_request_group *g = a->summary.groups.at;

	lull_json_key(j, "names");
	lull_json_array(j);
	for (size_t i = 0; i < a->summary.groups.n; i++) {
		struct lull_one_request one = {
			.name = g[i].name,
			.is_round = a->requests.rounds != LULL_ROUNDS_NONE,
		};

		lull_json_object(j);
		lull_json_key_text(j, "name", lull_request_name(&one, a->reader));
		put_quantiles(j, "latency", &g[i].latency);
		lull_json_end(j);
	}
	lull_json_end(j);
}

static u64 id_at(const struct lull_requests_answer *a, u32 ix)
{
	return ((const struct lull_one_request *)lull_vec_get(&a->requests.all, ix))->id;
}

static void put_place(struct lull_json *j, const struct lull_requests_answer *a,
		      const struct lull_tail_cause *c)
{
	size_t n;
	const struct lull_frame_row *frames = lull_reader_dim(a->reader, LULL_TABLE_frame, &n);
	const struct lull_frame_row *f = c->frame ? &frames[c->frame - 1] : NULL;

	lull_json_key_text(j, "function",
			   f ? lull_reader_string(a->reader, f->function, NULL) : "");
	lull_json_key_text(j, "file", f ? lull_reader_string(a->reader, f->file, NULL) : "");
	lull_json_key_u64(j, "line", f ? f->line : 0);
	lull_json_key_u64(j, "n_there", c->n_there);
	lull_json_key_u64(j, "n_samples", c->n_samples);
}

static void put_cause(struct lull_json *j, const struct lull_requests_answer *a,
		      const struct lull_tail_cause *c)
{
	const struct lull_one_request *one = lull_vec_get(&a->requests.all, c->example);

	lull_json_object(j);
	lull_json_key_text(j, "part", lull_request_part_word(c->part));
	lull_json_key_text(j, "because", lull_request_tail_title(&a->tail, c));
	lull_json_key_text(j, "fix", lull_request_tail_fix(&a->tail, c));
	lull_json_key_u64(j, "n_slow", c->n_slow);
	lull_json_key_u64(j, "n_usual", c->n_usual);
	lull_json_key(j, "chance");
	lull_json_fixed(j, c->chance, 9);
	put_ns(j, "extra_ns", c->extra_ns);
	put_number(j, "open_mean", c->n_open);
	lull_json_key_u64(j, "p99_without_ns", c->p99_ns);
	lull_json_key_u64(j, "example", id_at(a, c->example));
	lull_json_key_text(j, "call", lull_reader_string(a->reader, one->call, NULL));
	lull_json_key_u64(j, "call_ns", one->call_ns);
	lull_json_key_u64(j, "n_behind", c->n_behind);
	put_ns(j, "behind_ns", c->behind_ns);
	put_place(j, a, c);
	lull_json_end(j);
}

static void put_tail(struct lull_json *j, const struct lull_requests_answer *a)
{
	const struct lull_tail_cause *c = a->tail.causes.at;

	lull_json_key(j, "tail");
	if (!a->tail.is_known) {
		lull_json_null(j);
		return;
	}
	lull_json_object(j);
	lull_json_key_u64(j, "n_slow", a->tail.n_slow);
	lull_json_key_u64(j, "n_unexplained", a->tail.n_unexplained);
	lull_json_key_u64(j, "usual", id_at(a, a->tail.usual));
	put_number(j, "open_mean", a->tail.n_open);
	lull_json_key(j, "causes");
	lull_json_array(j);
	for (size_t i = 0; i < a->tail.causes.n; i++)
		put_cause(j, a, &c[i]);
	lull_json_end(j);
	lull_json_end(j);
}

static void put_intervals(struct lull_json *j, const struct lull_requests_answer *a)
{
	const struct lull_request_interval *at = a->intervals.at;

	if (!a->intervals.n)
		return;
	lull_json_key(j, "intervals");
	lull_json_array(j);
	for (size_t i = 0; i < a->intervals.n; i++) {
		lull_json_object(j);
		lull_json_key_u64(j, "start_ns", at[i].from_ns);
		lull_json_key_u64(j, "end_ns", at[i].to_ns);
		lull_json_key_u64(j, "arrived", at[i].n_arrived);
		put_number(j, "open_mean", at[i].n_open);
		put_number(j, "waiting_mean", at[i].n_waiting);
		lull_json_key_u64(j, "p50_ns", at[i].p50_ns);
		lull_json_key_u64(j, "max_ns", at[i].max_ns);
		lull_json_end(j);
	}
	lull_json_end(j);
}

static void put_replayed(struct lull_json *j, const char *key, const struct lull_replayed *r)
{
	lull_json_key(j, key);
	lull_json_object(j);
	lull_json_key_u64(j, "p50_ns", r->p50_ns);
	lull_json_key_u64(j, "p99_ns", r->p99_ns);
	put_ns(j, "mean_ns", r->mean_ns);
	lull_json_end(j);
}

static void put_replay(struct lull_json *j, const struct lull_load_replay *r)
{
	lull_json_key(j, "replay");
	if (!r->is_known) {
		lull_json_null(j);
		return;
	}
	lull_json_object(j);
	lull_json_key_u64(j, "at_a_time", r->n_servers);
	put_number(j, "wait_share", r->wait_share);
	put_replayed(j, "now", &r->now);
	put_replayed(j, "second_replica", &r->replica);
	put_replayed(j, "batches_of_4", &r->batches);
	put_replayed(j, "twice_the_load", &r->more);
	lull_json_end(j);
}

void lull_requests_print_json(FILE *to, const struct lull_requests_answer *a)
{
	const struct lull_requests *q = &a->requests;
	struct lull_json j;

	lull_json_init(&j, to);
	j.is_pretty = true;
	lull_json_object(&j);
	lull_json_key_text(&j, "path", a->path);
	lull_json_key_u64(&j, "n", q->all.n);
	lull_json_key_text(&j, "found_by",
			   q->rounds	      ? "rounds"
			   : q->is_of_sockets ? "sockets"
					      : "marks");
	lull_json_key_u64(&j, "duration_ns", q->span.to_ns - q->span.from_ns);
	lull_json_key_u64(&j, "served_ns", q->served.to_ns - q->served.from_ns);
	put_left_out(&j, q);
	put_load(&j, &a->summary.load);
	put_quantiles(&j, "latency", &a->summary.latency);
	put_quantiles(&j, "first_token", &a->summary.first_token);
	put_quantiles(&j, "between_tokens", &a->summary.between);
	put_parts(&j, &a->summary);
	put_names(&j, a);
	put_tail(&j, a);
	put_replay(&j, &a->replay);
	put_intervals(&j, a);
	lull_json_end(&j);
	fputc('\n', to);
}

/* ---- the schema ---- */

#define END                            \
	{                              \
		NULL, NULL, NULL, NULL \
	}

static const struct lull_property quantile_keys[] = {
	{ "n", "integer", "values", NULL },
	{ "p50_ns", "integer", "the median; like the others one that occurred", NULL },
	{ "p90_ns", "integer", "90 % take at most this", NULL },
	{ "p99_ns", "integer", "99 % take at most this", NULL },
	{ "max_ns", "integer", "the longest", NULL },
	{ "mean_ns", "number", "the average", NULL },
	END,
};

static const struct lull_property left_out_keys[] = {
	{ "began_before", "integer", "requests that began before the recording", NULL },
	{ "did_not_end", "integer", "requests that did not end in it", NULL },
	{ "hung_up", "integer", "requests whose client left", NULL },
	{ "failed", "integer", "requests that an exception or a status of 500 or more ended",
	  NULL },
	{ "id_used_again", "integer", "requests whose id was used again while they were open",
	  NULL },
	END,
};

static const struct lull_property load_keys[] = {
	{ "rate_hz", "number", "arrivals a second", NULL },
	{ "open_mean", "number", "requests at a time, on average", NULL },
	{ "open_max", "integer", "requests at a time, at most", NULL },
	{ "gpu_busy_share", "number", "share of served_ns in which a device works", NULL },
	{ "thread_busy_share", "number", "the same for the thread that works most for requests",
	  NULL },
	{ "limit_hz", "number",
	  "requests a second at which one of these is always busy, 0 if not known", NULL },
	{ "limited_by", "string", "gpu or thread", NULL },
	END,
};

static const struct lull_property part_keys[] = {
	{ "part", "string", "what the time of requests goes to (lull-requests(1))", NULL },
	{ "mean_ns", "number", "of all requests; these add up to latency.mean_ns", NULL },
	{ "typical_ns", "number", "of those between the quartiles", NULL },
	{ "slowest_ns", "number", "of the slowest tenth", NULL },
	{ "prefill_ns", "number",
	  "until the first token, of all that have tokens; these add up to first_token.mean_ns",
	  NULL },
	END,
};

static const struct lull_property name_keys[] = {
	{ "name", "string", "name of requests, such as GET /generate", NULL },
	{ "latency", "object", "how long they take", quantile_keys },
	END,
};

static const struct lull_property cause_keys[] = {
	{ "part", "string", "what slow requests have more of", NULL },
	{ "because", "string", "the same as a sentence", NULL },
	{ "fix", "string", "what to do about it", NULL },
	{ "n_slow", "integer", "slow requests that it explains", NULL },
	{ "n_usual", "integer", "other requests that have as much of it", NULL },
	{ "chance", "number", "that slow requests have it more often by accident", NULL },
	{ "extra_ns", "number", "what it adds to those that it explains, on average", NULL },
	{ "open_mean", "number", "requests that were open when these arrived, on average", NULL },
	{ "p99_without_ns", "integer", "p99 of all requests without what it adds", NULL },
	{ "example", "integer", "id of the slowest of them", NULL },
	{ "call", "string", "its longest C library call, empty if there is none", NULL },
	{ "call_ns", "integer", "how long that took", NULL },
	{ "n_behind", "integer", "other slow requests, which wait for their turn behind these",
	  NULL },
	{ "behind_ns", "number", "how long those wait, on average", NULL },
	{ "function", "string",
	  "where most of its samples are; of part lock, those of the thread that has the lock; "
	  "empty "
	  "if there are none",
	  NULL },
	{ "file", "string", "file of that function", NULL },
	{ "line", "integer", "line with most samples", NULL },
	{ "n_there", "integer", "samples in that function", NULL },
	{ "n_samples", "integer", "samples of it in all", NULL },
	END,
};

static const struct lull_property tail_keys[] = {
	{ "n_slow", "integer", "requests that take more than 1.5 times the median", NULL },
	{ "n_unexplained", "integer", "of them, those without a cause", NULL },
	{ "usual", "integer", "id of a typical request, to compare with", NULL },
	{ "open_mean", "number",
	  "requests that were open when one arrived that is not slow, on average", NULL },
	{ "causes", "array", "those that add most time first", cause_keys },
	END,
};

static const struct lull_property replayed_keys[] = {
	{ "p50_ns", "integer", "median latency", NULL },
	{ "p99_ns", "integer", "99 % take at most this", NULL },
	{ "mean_ns", "number", "the average", NULL },
	END,
};

static const struct lull_property replay_keys[] = {
	{ "at_a_time", "integer", "requests that are served at a time", NULL },
	{ "wait_share", "number", "share of the latency in which requests wait for their turn",
	  NULL },
	{ "now", "object", "replayed as it was", replayed_keys },
	{ "second_replica", "object", "twice as many are served at a time", replayed_keys },
	{ "batches_of_4", "object",
	  "up to 4 that wait are served together, in the time of the longest", replayed_keys },
	{ "twice_the_load", "object", "requests come twice as often", replayed_keys },
	END,
};

static const struct lull_property interval_keys[] = {
	{ "start_ns", "integer", "start of the interval", NULL },
	{ "end_ns", "integer", "its end", NULL },
	{ "arrived", "integer", "requests that arrived in it", NULL },
	{ "open_mean", "number", "requests that were open, on average", NULL },
	{ "waiting_mean", "number", "of them, those in the parts queue and others", NULL },
	{ "p50_ns", "integer", "median latency of those that arrived, 0 if there are none", NULL },
	{ "max_ns", "integer", "the longest of them", NULL },
	END,
};

static const struct lull_property keys[] = {
	{ "path", "string", "the report", NULL },
	{ "n", "integer", "requests that were answered", NULL },
	{ "found_by", "string",
	  "marks (of the program, or of a server that lull knows), sockets, or rounds of the loop",
	  NULL },
	{ "duration_ns", "integer", "length of the recording", NULL },
	{ "served_ns", "integer", "from the first arrival to the last end", NULL },
	{ "left_out", "object", "requests that are not counted", left_out_keys },
	{ "load", "object", "how many there are", load_keys },
	{ "latency", "object", "from arrival to the end of the answer", quantile_keys },
	{ "first_token", "object|null", "from arrival to the first token; null if there are none",
	  quantile_keys },
	{ "between_tokens", "object|null", "from a token to the next", quantile_keys },
	{ "parts", "array", "what the time goes to", part_keys },
	{ "names", "array", "by name, most requests first", name_keys },
	{ "intervals", "array", "the load over time, with --intervals", interval_keys },
	{ "replay", "object|null",
	  "what other setups would bring; null if the replay does not give what was recorded",
	  replay_keys },
	{ "tail", "object|null", "why slow ones are slow; null if there are too few", tail_keys },
	END,
};

void lull_schema_of_requests(struct lull_json *j)
{
	lull_schema_json_object(j, "lull requests --format json", keys);
}
