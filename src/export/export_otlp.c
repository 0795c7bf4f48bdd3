/*
 * otlp: requests as spans of OpenTelemetry, in the JSON of its protocol.
 *
 *	{"resourceSpans":[{"resource":...,"scopeSpans":[{"scope":...,"spans":[...]}]}]}
 *
 * A request is a span of kind server. If it came with a traceparent, its trace and parent are those
 * of the caller, so that it takes its place in a trace of Jaeger or Tempo; otherwise it has a trace
 * of its own. Below it is a span for each piece of its time that belongs to one part (queue, host,
 * gpu, ...). Ids are made from those of the recording and the request: exporting twice gives the
 * same spans.
 */
#include "export/export.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "export/otlp.h"
#include "request/requests.h"

/* A piece shorter than this share of its request is left out: there may be thousands of them. */
#define MIN_PIECE 0.001

/* Kinds of spans, and the status of one that failed. */
#define SPAN_INTERNAL 1
#define SPAN_SERVER   2
#define STATUS_ERROR  2

#define TRACE_LEN  32
#define PARENT_LEN 16

struct otlp {
	struct lull_json j;
	struct lull_reader *reader;
	const struct lull_requests *q;
	const struct lull_process_row *processes;
	const char *name; /* of the report; may be NULL */
};

struct span_ids {
	char trace[TRACE_LEN + 1], parent[PARENT_LEN + 1], span[PARENT_LEN + 1];
};

/* Whether the text begins with so many lower-case hex digits, and not all of them are 0. */
static bool is_hex_id(const char *text, size_t n)
{
	bool is_zero = true;

	for (size_t i = 0; i < n; i++) {
		if (!isxdigit((unsigned char)text[i]) || isupper((unsigned char)text[i]))
			return false;
		is_zero &= text[i] == '0';
	}
	return !is_zero;
}

/* "00-TRACE-PARENT-01" */
static bool parse_trace(const char *text, struct span_ids *ids)
{
	const char *trace = text + 3, *parent = trace + TRACE_LEN + 1;

	if (strlen(text) < 3 + TRACE_LEN + 1 + PARENT_LEN || text[2] != '-' ||
	    trace[TRACE_LEN] != '-' || !is_hex_id(trace, TRACE_LEN) ||
	    !is_hex_id(parent, PARENT_LEN))
		return false;
	snprintf(ids->trace, sizeof(ids->trace), "%.*s", TRACE_LEN, trace);
	snprintf(ids->parent, sizeof(ids->parent), "%.*s", PARENT_LEN, parent);
	return true;
}

/* A number made of the recording, the request and a place in it; never 0. */
static u64 number_of(const struct otlp *o, const struct lull_one_request *one, u64 place)
{
	u64 key[4] = { one->process, one->id, one->start_ns, place };
	u64 hash = lull_hash_mix(lull_hash(lull_reader_info(o->reader)->id, 16),
				 lull_hash(key, sizeof(key)));

	return hash ? hash : 1;
}

static void find_ids(const struct otlp *o, const struct lull_one_request *one, struct span_ids *ids)
{
	*ids->parent = '\0';
	if (!parse_trace(lull_reader_string(o->reader, one->data, NULL), ids))
		snprintf(ids->trace, sizeof(ids->trace), "%016" PRIx64 "%016" PRIx64,
			 number_of(o, one, 1), number_of(o, one, 2));
	snprintf(ids->span, sizeof(ids->span), "%016" PRIx64, number_of(o, one, 0));
}

/* ---- attributes ---- */

static void put_time(const struct otlp *o, struct lull_json *j, const char *key, u64 at_ns)
{
	lull_otlp_u64(j, key, lull_reader_info(o->reader)->epoch_utc_ns + at_ns);
}

static void put_attributes(struct otlp *o, const struct lull_one_request *one)
{
	const char *how = lull_request_how(one, o->reader);
	char key[64];

	lull_json_key(&o->j, "attributes");
	lull_json_array(&o->j);
	lull_otlp_number(&o->j, "lull.request", one->id);
	if (o->name)
		lull_otlp_text(&o->j, "lull.report", o->name);
	if (strlen(how) == 3 && how[strspn(how, "0123456789")] == '\0')
		lull_otlp_number(&o->j, "http.response.status_code", strtoull(how, NULL, 10));
	if (one->n_tokens) {
		lull_otlp_number(&o->j, "lull.tokens", one->n_tokens);
		lull_otlp_number(&o->j, "lull.first_token_ns", one->first_token_ns - one->start_ns);
	}
	lull_otlp_number(&o->j, "lull.launches", one->n_launches);
	for (u32 p = 0; p < LULL_N_REQUEST_PARTS; p++) {
		snprintf(key, sizeof(key), "lull.%s_ns", lull_request_part_word(p));
		if (one->part_ns[p])
			lull_otlp_number(&o->j, key, one->part_ns[p]);
	}
	lull_json_end(&o->j);
}

/* ---- spans ---- */

static void begin_span(struct otlp *o, const char *trace, const char *span, const char *parent)
{
	lull_json_object(&o->j);
	lull_json_key_text(&o->j, "traceId", trace);
	lull_json_key_text(&o->j, "spanId", span);
	if (*parent)
		lull_json_key_text(&o->j, "parentSpanId", parent);
}

static void put_request(struct otlp *o, const struct lull_one_request *one,
			const struct span_ids *ids)
{
	begin_span(o, ids->trace, ids->span, ids->parent);
	lull_json_key_text(&o->j, "name", lull_request_name(one, o->reader));
	lull_json_key_u64(&o->j, "kind", SPAN_SERVER);
	put_time(o, &o->j, "startTimeUnixNano", one->start_ns);
	put_time(o, &o->j, "endTimeUnixNano", one->end_ns);
	put_attributes(o, one);
	if (one->end != LULL_REQUEST_OK) {
		lull_json_key(&o->j, "status");
		lull_json_object(&o->j);
		lull_json_key_u64(&o->j, "code", STATUS_ERROR);
		lull_json_key_text(&o->j, "message", lull_request_how(one, o->reader));
		lull_json_end(&o->j);
	}
	lull_json_end(&o->j);
}

static void put_piece(struct otlp *o, const struct lull_one_request *one,
		      const struct span_ids *ids, const struct lull_request_piece *piece, u64 place)
{
	char span[PARENT_LEN + 1];

	if ((f64)(piece->to_ns - piece->from_ns) < MIN_PIECE * (f64)lull_request_ns(one))
		return;
	snprintf(span, sizeof(span), "%016" PRIx64, number_of(o, one, place));
	begin_span(o, ids->trace, span, ids->span);
	lull_json_key_text(&o->j, "name", lull_request_part_word(piece->part));
	lull_json_key_u64(&o->j, "kind", SPAN_INTERNAL);
	put_time(o, &o->j, "startTimeUnixNano", piece->from_ns);
	put_time(o, &o->j, "endTimeUnixNano", piece->to_ns);
	lull_json_end(&o->j);
}

/* The spans of the requests of a process. */
static void put_spans(struct otlp *o, u32 process)
{
	const struct lull_one_request *all = o->q->all.at;
	const struct lull_request_piece *pieces = o->q->pieces.at;
	size_t at = 0;

	for (size_t i = 0; i < o->q->all.n; i++) {
		struct span_ids ids;
		u64 place = 3;

		while (at < o->q->pieces.n && pieces[at].request < i)
			at++;
		if (all[i].process != process)
			continue;
		find_ids(o, &all[i], &ids);
		put_request(o, &all[i], &ids);
		for (; at < o->q->pieces.n && pieces[at].request == i; at++)
			put_piece(o, &all[i], &ids, &pieces[at], place++);
	}
}

static void put_process(struct otlp *o, u32 process)
{
	const struct lull_process_row *row = process ? &o->processes[process - 1] : NULL;

	lull_json_object(&o->j);
	lull_json_key(&o->j, "resource");
	lull_json_object(&o->j);
	lull_json_key(&o->j, "attributes");
	lull_json_array(&o->j);
	lull_otlp_text(&o->j, "service.name",
		       row ? lull_reader_string(o->reader, row->name, NULL) : "unknown");
	lull_otlp_number(&o->j, "process.pid", row ? row->pid : 0);
	lull_json_end(&o->j);
	lull_json_end(&o->j);
	lull_json_key(&o->j, "scopeSpans");
	lull_json_array(&o->j);
	lull_json_object(&o->j);
	lull_json_key(&o->j, "scope");
	lull_json_object(&o->j);
	lull_json_key_text(&o->j, "name", "lull");
	lull_json_end(&o->j);
	lull_json_key(&o->j, "spans");
	lull_json_array(&o->j);
	put_spans(o, process);
	for (int i = 0; i < 4; i++)
		lull_json_end(&o->j);
}

static void put_all(struct otlp *o, size_t n_processes)
{
	const struct lull_one_request *all = o->q->all.at;
	bool *has = lull_alloc(n_processes + 1, sizeof(*has));

	for (size_t i = 0; i < o->q->all.n; i++)
		has[all[i].process] = true;
	lull_json_object(&o->j);
	lull_json_key(&o->j, "resourceSpans");
	lull_json_array(&o->j);
	for (size_t p = 0; p <= n_processes; p++)
		if (has[p])
			put_process(o, (u32)p);
	lull_json_end(&o->j);
	lull_json_end(&o->j);
	free(has);
}

static int write_report(struct lull_reader *r, const struct lull_export_options *options, FILE *to,
			struct lull_err *err)
{
	struct lull_requests q;
	struct otlp o = { .reader = r, .q = &q, .name = options->name };
	size_t n;
	int rc;

	o.processes = lull_reader_dim(r, LULL_TABLE_process, &n);
	rc = lull_requests_init(&q, r, lull_export_window(options), LULL_REQUESTS_WANT_PIECES, err);
	if (!rc) {
		lull_json_init(&o.j, to);
		put_all(&o, n);
		putc('\n', to);
		rc = lull_export_finish(to, err);
	}
	lull_requests_release(&q);
	return rc;
}

const struct lull_export lull_export_otlp = {
	.name = "otlp",
	.suffix = ".otlp.json",
	.summary = "requests as spans of OpenTelemetry (Jaeger, Tempo)",
	.write = write_report,
};
