/*
 * lull requests - how long the requests of a server take, what for, and why slow ones are slow.
 */
#include "cmd/cmd.h"

#include <stdio.h>

#include "cmd/losses.h"
#include "cmd/requests_print.h"
#include "import/import.h"
#include "text/opt.h"
#include "text/out.h"
#include "text/term.h"

#define MAX_INTERVALS 10000u

enum { FORMAT_TEXT, FORMAT_JSON, FORMAT_CSV };
static const char *const formats[] = { "text", "json", "csv", NULL };

/* ---- a row for each ---- */

static const struct lull_out_column columns[] = {
	{ .name = "ID", .kind = LULL_OUT_ID },
	{ .name = "PID", .kind = LULL_OUT_ID },
	{ .name = "Name", .kind = LULL_OUT_TEXT },
	{ .name = "End", .kind = LULL_OUT_TEXT },
	{ .name = "Start", .kind = LULL_OUT_NS, .is_moment = true },
	{ .name = "Latency", .kind = LULL_OUT_NS },
	{ .name = "First Token", .kind = LULL_OUT_NS },
	{ .name = "Tokens", .kind = LULL_OUT_INT },
	{ .name = "Open", .kind = LULL_OUT_INT },
	{ .name = "Launches", .kind = LULL_OUT_INT },
	{ .name = "GPU Work", .kind = LULL_OUT_NS },
	{ .name = "Traceparent", .kind = LULL_OUT_TEXT },
#define PART(name_, word, brief, meaning) { .name = word, .kind = LULL_OUT_NS },
#include "request/parts.def"
#undef PART
};

static void put_row(struct lull_out *out, const struct lull_one_request *one, struct lull_reader *r,
		    u32 pid)
{
	lull_out_row(out);
	lull_out_i64(out, (i64)one->id);
	lull_out_i64(out, pid);
	lull_out_text(out, lull_request_name(one, r));
	lull_out_text(out, lull_request_how(one, r));
	lull_out_i64(out, (i64)one->start_ns);
	lull_out_i64(out, (i64)lull_request_ns(one));
	if (one->n_tokens)
		lull_out_i64(out, (i64)(one->first_token_ns - one->start_ns));
	else
		lull_out_skip(out);
	lull_out_i64(out, one->n_tokens);
	lull_out_i64(out, one->n_open);
	lull_out_i64(out, one->n_launches);
	lull_out_i64(out, (i64)one->gpu_ns);
	lull_out_text(out, lull_reader_string(r, one->data, NULL));
	for (u32 p = 0; p < LULL_N_REQUEST_PARTS; p++)
		lull_out_i64(out, (i64)one->part_ns[p]);
}

static int write_rows(const struct lull_requests *q, struct lull_reader *r, struct lull_err *err)
{
	struct lull_out_options options = LULL_OUT_OPTIONS_INIT;
	const struct lull_one_request *all = q->all.at;
	const struct lull_process_row *processes;
	struct lull_out out;
	size_t n;
	int rc;

	processes = lull_reader_dim(r, LULL_TABLE_process, &n);
	options.format = LULL_OUT_FORMAT_csv;
	lull_out_init(&out, columns, LULL_COUNT_OF(columns));
	for (size_t i = 0; i < q->all.n; i++)
		put_row(&out, &all[i], r, all[i].process ? processes[all[i].process - 1].pid : 0);
	rc = lull_out_write(&out, &options, stdout, err);
	lull_out_release(&out);
	return rc;
}

/* ---- all of them ---- */

static int answer(struct lull_requests_answer *a, int format, struct lull_err *err)
{
	if (format == FORMAT_CSV)
		return write_rows(&a->requests, a->reader, err);
	if (lull_requests_keep_answered(&a->requests, err))
		return err->code;
	lull_request_summary_init(&a->summary, &a->requests);
	lull_request_tail_init(&a->tail, &a->requests, &a->summary);
	lull_load_replay(&a->replay, &a->requests);
	if (format == FORMAT_JSON)
		lull_requests_print_json(stdout, a);
	else
		lull_requests_print(stdout, a, lull_term_width(stdout));
	lull_request_tail_release(&a->tail);
	lull_request_summary_release(&a->summary);
	return LULL_OK;
}

static int run(const char *path, int format, u64 n_intervals, struct lull_err *err)
{
	struct lull_requests_answer a = { .path = path };
	unsigned wants = LULL_REQUESTS_WANT_SOCKETS | LULL_REQUESTS_WANT_ROUNDS |
			 LULL_REQUESTS_WANT_WHERE | (n_intervals ? LULL_REQUESTS_WANT_PIECES : 0);
	int rc;

	if (lull_import_open(path, &a.reader, err))
		return err->code;
	lull_losses_warn(a.reader, path);
	lull_vec_init(&a.intervals, sizeof(struct lull_request_interval));
	rc = lull_requests_init(&a.requests, a.reader, LULL_SPAN_ALL, wants, err);
	if (!rc && n_intervals)
		lull_request_intervals(&a.intervals, &a.requests, (u32)n_intervals);
	if (!rc)
		rc = answer(&a, format, err);
	if (rc)
		lull_err_wrap(err, "%s", path);
	lull_requests_release(&a.requests);
	lull_vec_release(&a.intervals);
	lull_losses_close(a.reader, path);
	return rc;
}

int cmd_requests(int argc, char **argv, struct lull_err *err)
{
	int format = FORMAT_TEXT;
	u64 n_intervals = 0;
	const struct lull_opt opts[] = {
		OPT_USAGE(
			"lull requests [OPTIONS] FILE",
			"Say how long the requests of a server take, what their time goes to, and "
			"why slow ones are slow."),
		OPT_ENUM('f', "format", &format, formats,
			 "format of the answer (default: text); csv has a row for each request"),
		OPT_U64(0, "intervals", "N", &n_intervals,
			"also the load over time, in N intervals"),
		OPT_END(),
	};
	int first = lull_opt_parse(argc, argv, opts, err);

	if (first < 0)
		return first;
	if (argc - first != 1)
		return lull_fail(err, LULL_E_USAGE, "give one file, such as report1.lull; got %d",
				 argc - first);
	if (n_intervals > MAX_INTERVALS)
		return lull_fail(err, LULL_E_USAGE, "option --intervals: at most %u",
				 MAX_INTERVALS);
	return run(argv[first], format, n_intervals, err);
}
