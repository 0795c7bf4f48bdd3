#include "cmd/diff_requests.h"

#include <stdio.h>

#include "text/out.h"

/* A part below this share of the time on both sides is not worth a line. */
#define PART_SAID 0.005

static const struct lull_out_column columns[] = {
	{ .name = "Of Requests", .kind = LULL_OUT_TEXT },
	{ .name = "Before", .kind = LULL_OUT_NS, .decimals = 1 },
	{ .name = "After", .kind = LULL_OUT_NS, .decimals = 1 },
	{ .name = "Difference", .kind = LULL_OUT_NS, .decimals = 1 },
};

static bool read_side(struct lull_diff_requests *d, int side, struct lull_reader *r)
{
	struct lull_requests q;
	struct lull_err ignored;
	int rc = lull_requests_init(&q, r, LULL_SPAN_ALL, 0, &ignored);

	if (!rc)
		rc = lull_requests_keep_answered(&q, &ignored);
	if (!rc) {
		lull_request_summary_init(&d->side[side], &q);
		d->n[side] = q.all.n;
	}
	lull_requests_release(&q);
	return !rc;
}

void lull_diff_requests_init(struct lull_diff_requests *d, struct lull_reader *before,
			     struct lull_reader *after)
{
	*d = (struct lull_diff_requests){ .is_there = false };
	if (!read_side(d, 0, before))
		return;
	d->is_there = read_side(d, 1, after);
	if (!d->is_there)
		lull_request_summary_release(&d->side[0]);
}

void lull_diff_requests_release(struct lull_diff_requests *d)
{
	for (int i = 0; d->is_there && i < 2; i++)
		lull_request_summary_release(&d->side[i]);
}

static void put(struct lull_out *out, const char *what, f64 before_ns, f64 after_ns)
{
	lull_out_row(out);
	lull_out_text(out, what);
	lull_out_f64(out, before_ns);
	lull_out_f64(out, after_ns);
	lull_out_f64(out, after_ns - before_ns);
}

static void put_quantiles(struct lull_out *out, const char *what, const struct lull_quantiles *a,
			  const struct lull_quantiles *b)
{
	char text[64];

	if (!a->n || !b->n)
		return;
	snprintf(text, sizeof(text), "%s p50", what);
	put(out, text, (f64)a->p50_ns, (f64)b->p50_ns);
	snprintf(text, sizeof(text), "%s p99", what);
	put(out, text, (f64)a->p99_ns, (f64)b->p99_ns);
}

static void put_parts(struct lull_out *out, const struct lull_diff_requests *d)
{
	const struct lull_request_summary *a = &d->side[0], *b = &d->side[1];
	char text[64];

	for (u32 p = 0; p < LULL_N_REQUEST_PARTS; p++) {
		if (a->part_mean_ns[p] < PART_SAID * a->latency.mean_ns &&
		    b->part_mean_ns[p] < PART_SAID * b->latency.mean_ns)
			continue;
		snprintf(text, sizeof(text), "  %s", lull_request_part_word(p));
		put(out, text, a->part_mean_ns[p], b->part_mean_ns[p]);
	}
}

int lull_diff_requests_print(const struct lull_diff_requests *d, struct lull_err *err)
{
	struct lull_out_options options = LULL_OUT_OPTIONS_INIT;
	struct lull_out out;
	int rc;

	if (!d->is_there)
		return LULL_OK;
	options.is_human = true;
	printf("\nRequests: %zu before, %zu after\n", d->n[0], d->n[1]);
	lull_out_init(&out, columns, LULL_COUNT_OF(columns));
	put_quantiles(&out, "latency", &d->side[0].latency, &d->side[1].latency);
	put_quantiles(&out, "first token", &d->side[0].first_token, &d->side[1].first_token);
	put_quantiles(&out, "between tokens", &d->side[0].between, &d->side[1].between);
	put(&out, "average, of it", d->side[0].latency.mean_ns, d->side[1].latency.mean_ns);
	put_parts(&out, d);
	rc = lull_out_write(&out, &options, stdout, err);
	lull_out_release(&out);
	return rc;
}

static void json_pair(struct lull_json *j, const char *key, f64 before, f64 after)
{
	lull_json_key(j, key);
	lull_json_array(j);
	lull_json_fixed(j, before, 1);
	lull_json_fixed(j, after, 1);
	lull_json_end(j);
}

void lull_diff_requests_json(const struct lull_diff_requests *d, struct lull_json *j)
{
	const struct lull_request_summary *a = &d->side[0], *b = &d->side[1];

	if (!d->is_there)
		return;
	lull_json_key(j, "requests");
	lull_json_object(j);
	json_pair(j, "n", (f64)d->n[0], (f64)d->n[1]);
	json_pair(j, "latency_p50_ns", (f64)a->latency.p50_ns, (f64)b->latency.p50_ns);
	json_pair(j, "latency_p90_ns", (f64)a->latency.p90_ns, (f64)b->latency.p90_ns);
	json_pair(j, "latency_p99_ns", (f64)a->latency.p99_ns, (f64)b->latency.p99_ns);
	json_pair(j, "latency_mean_ns", a->latency.mean_ns, b->latency.mean_ns);
	if (a->first_token.n && b->first_token.n)
		json_pair(j, "first_token_p50_ns", (f64)a->first_token.p50_ns,
			  (f64)b->first_token.p50_ns);
	lull_json_key(j, "parts");
	lull_json_object(j);
	for (u32 p = 0; p < LULL_N_REQUEST_PARTS; p++)
		json_pair(j, lull_request_part_word(p), a->part_mean_ns[p], b->part_mean_ns[p]);
	lull_json_end(j);
	lull_json_end(j);
}
