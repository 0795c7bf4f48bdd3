/*
 * gpu_time_util: times in which a device was used little.
 *
 * The time from the first to the last work of a process on a device is cut into equal chunks. The
 * use of a chunk is the sum of what ran in it, so that work that overlaps counts several times and
 * a chunk may pass 100 %. Chunks below the threshold are shown; neighbours as one.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "model/work.h"
#include "report/rule.h"

static const struct lull_out_column columns[] = {
	{ .name = "Row#", .kind = LULL_OUT_INT, .doc = "number of the row" },
	{ .name = "In-Use", .kind = LULL_OUT_PERCENT, .doc = "share of the time with work" },
	LULL_RULE_TIME_COLUMNS,
	LULL_RULE_DEVICE_COLUMNS,
};

#define DEFAULT_CHUNKS	  30
#define MAX_CHUNKS	  100000
#define DEFAULT_THRESHOLD 50

/* What a process did on a device. */
struct track {
	struct lull_span span;
	u32 lane; /* a stream of it, 0 if there was no work */
	u64 chunk_ns;
	u64 *use_ns; /* of each chunk */
};

/* Chunks that follow each other. */
struct part {
	struct lull_span span;
	u64 use_ns;
	u32 lane;
};

struct chunks {
	struct lull_reader *reader;
	const struct lull_report_options *options;
	u64 n;
	f64 threshold_pct;
	u32 *tracks;	   /* by lane */
	struct track *all; /* by track */
	u32 n_tracks;
	struct lull_vec parts; /* struct part */
};

typedef void visit_work(struct chunks *c, struct track *track, struct lull_span span, u32 lane);

/* Each piece of work in the time asked for, what crosses its edges cut. */
static void each_work(struct chunks *c, visit_work *visit)
{
	struct lull_span window = lull_report_window(c->options);
	struct lull_work_cursor cursor;
	struct lull_work work;

	lull_work_begin(&cursor, c->reader, LULL_WORK_ALL, 0, window);
	while (lull_work_next(&cursor, &work)) {
		u32 track = c->tracks[work.lane];
		struct lull_span span = { work.start_ns, lull_work_end_ns(&work) };

		if (!track || span.to_ns < window.from_ns || span.from_ns > window.to_ns)
			continue;
		visit(c, &c->all[track], lull_span_cut(span, window.from_ns, window.to_ns),
		      work.lane);
	}
	lull_work_end(&cursor);
}

static void widen(struct chunks *c, struct track *track, struct lull_span span, u32 lane)
{
	(void)c;
	if (!track->lane || span.from_ns < track->span.from_ns)
		track->span.from_ns = span.from_ns;
	if (!track->lane || span.to_ns > track->span.to_ns)
		track->span.to_ns = span.to_ns;
	if (!track->lane || lane < track->lane)
		track->lane = lane;
}

static void use(struct chunks *c, struct track *track, struct lull_span span, u32 lane)
{
	struct lull_span part = lull_span_cut(span, track->span.from_ns, track->span.to_ns);

	(void)c;
	(void)lane;
	while (track->chunk_ns && part.from_ns < part.to_ns) {
		u64 chunk = (part.from_ns - track->span.from_ns) / track->chunk_ns;
		u64 end_ns = track->span.from_ns + (chunk + 1) * track->chunk_ns;
		u64 to_ns = part.to_ns < end_ns ? part.to_ns : end_ns;

		track->use_ns[chunk] += to_ns - part.from_ns;
		part.from_ns = to_ns;
	}
}

/* Overhead counts as use: the device would have worked. */
static void use_overheads(struct chunks *c)
{
	size_t n;
	const struct lull_device_row *devices = lull_reader_dim(c->reader, LULL_TABLE_device, &n);
	struct lull_vec overheads;
	const struct lull_rule_overhead *o;

	lull_rule_overheads(&overheads, c->reader);
	o = overheads.at;
	for (size_t i = 0; i < overheads.n; i++) {
		for (u32 t = 1; t <= c->n_tracks; t++) {
			if (devices[t - 1].process == o[i].process && c->all[t].lane)
				use(c, &c->all[t], o[i].span, 0);
		}
	}
	lull_vec_release(&overheads);
}

static bool is_low(const struct chunks *c, const struct track *track, u64 chunk)
{
	return 100 * (f64)track->use_ns[chunk] / (f64)track->chunk_ns < c->threshold_pct;
}

static void add_parts(struct chunks *c, const struct track *track)
{
	struct part *part = NULL;

	for (u64 i = 0; i < c->n && track->chunk_ns; i++) {
		u64 from_ns = track->span.from_ns + i * track->chunk_ns;

		if (!is_low(c, track, i) || from_ns >= track->span.to_ns) {
			part = NULL;
			continue;
		}
		if (!part) {
			part = lull_vec_push(&c->parts);
			part->span.from_ns = from_ns;
			part->lane = track->lane;
		}
		part->span.to_ns = from_ns + track->chunk_ns;
		part->use_ns += track->use_ns[i];
	}
}

static f64 use_pct(const struct part *part)
{
	return 100 * (f64)part->use_ns / (f64)(part->span.to_ns - part->span.from_ns);
}

static int by_use(const void *a, const void *b)
{
	f64 x_pct = use_pct(a), y_pct = use_pct(b);
	const struct part *x = a, *y = b;

	if (x_pct != y_pct)
		return x_pct < y_pct ? -1 : 1;
	if (x->span.from_ns != y->span.from_ns)
		return x->span.from_ns < y->span.from_ns ? -1 : 1;
	return (x->lane > y->lane) - (x->lane < y->lane);
}

static void measure(struct chunks *c)
{
	each_work(c, widen);
	for (u32 t = 1; t <= c->n_tracks; t++) {
		struct track *track = &c->all[t];
		u64 span_ns = track->span.to_ns - track->span.from_ns;

		if (!track->lane)
			continue;
		track->chunk_ns = span_ns / c->n + (span_ns % c->n != 0);
		track->use_ns = lull_alloc(c->n, sizeof(*track->use_ns));
	}
	each_work(c, use);
	use_overheads(c);
	for (u32 t = 1; t <= c->n_tracks; t++)
		add_parts(c, &c->all[t]);
	if (c->parts.n)
		lull_sort(c->parts.at, c->parts.n, sizeof(struct part), by_use);
}

static void put_parts(const struct chunks *c, struct lull_out *out, size_t n_wanted)
{
	const struct part *part = c->parts.at;

	for (size_t i = 0; i < c->parts.n && i < n_wanted; i++, part++) {
		lull_out_row(out);
		lull_out_i64(out, (i64)i + 1);
		lull_out_f64(out, use_pct(part));
		lull_out_i64(out, (i64)(part->span.to_ns - part->span.from_ns));
		lull_out_i64(out, (i64)part->span.from_ns);
		lull_rule_put_device(out, c->reader, part->lane);
	}
}

/* NAME=NUMBER in (0, max], or leave *value as it is. */
static int parse_number(const struct lull_report_options *options, const char *name, f64 max,
			f64 *value, struct lull_err *err)
{
	char *text = lull_report_arg_value(options, name), *end = NULL;
	int rc = LULL_OK;

	if (text) {
		*value = strtod(text, &end);
		if (end == text || *end || !(*value > 0) || *value > max)
			rc = lull_fail(err, LULL_E_USAGE, "%s=%s is not above 0 and up to %g", name,
				       text, max);
	}
	free(text);
	return rc;
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	struct chunks c = { .reader = r, .options = options, .threshold_pct = DEFAULT_THRESHOLD };
	f64 n = DEFAULT_CHUNKS;
	struct lull_worst limit;

	if (parse_number(options, "chunks", MAX_CHUNKS, &n, err) ||
	    parse_number(options, "threshold", 100, &c.threshold_pct, err) ||
	    lull_worst_init(&limit, sizeof(struct part), options, err))
		return err->code;
	c.n = n < 1 ? 1 : (u64)n;
	c.n_tracks = lull_reader_n_dim(r, LULL_TABLE_device);
	c.tracks = lull_rule_tracks(r);
	c.all = lull_alloc((size_t)c.n_tracks + 1, sizeof(*c.all));
	lull_vec_init(&c.parts, sizeof(struct part));
	measure(&c);
	put_parts(&c, out, limit.n_wanted);
	for (u32 t = 1; t <= c.n_tracks; t++)
		free(c.all[t].use_ns);
	lull_vec_release(&c.parts);
	free(c.all);
	free(c.tracks);
	return LULL_OK;
}

const struct lull_report lull_rule_gpu_time_util = {
	.name = "gpu_time_util",
	.display = "GPU Time Utilization",
	.summary = "intervals in which a device was used little",
	.help = "The time of a process on a device, from its first work to its last, in 30 equal "
		"chunks: those in which less than half of the time had work, least used first. "
		"Chunks that follow each other are one row. Work that overlaps counts several "
		"times. chunks=N, threshold=PERCENT and rows=N change the numbers; rows=-1 shows "
		"all.",
	.finding = "In these intervals the device had work for less than half of the time.",
	.advice = "Suggestion: look at what the host did then, such as with `lull stats -r "
		  "gpu_idle --filter-time START/END`; more chunks (gpu_time_util:chunks=100) "
		  "show the place more precisely.",
	.args = "chunks= threshold= rows=",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs_any = LULL_NEED(kernel) | LULL_NEED(memcpy) | LULL_NEED(memset) | LULL_NEED(graph),
	.is_default = true,
	.empty = "No problem found: no chunk of the time of a device was used too little.",
	.run = run,
};
