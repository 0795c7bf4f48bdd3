/*
 * chrome: the JSON that chrome://tracing, Perfetto and others open, one event a line.
 *
 *	{"ph":"X","pid":10,"tid":11,"ts":1.000,"dur":20.000,"name":"gemm","cat":"kernel",...},
 *
 *	X  slice            i  moment          C  counter
 *	s, f  arrow from a call to the work it started
 *	M  names and order of processes and threads
 *
 * Processes and threads have their own numbers. Devices are processes with numbers of our own and
 * their streams are threads, because the format knows nothing else; likewise further tracks of a
 * thread. Times are microseconds with three digits after the point, since the start of the
 * recording.
 *
 * What many events have in common is put into words once, and copied.
 */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "text/json.h"
#include "base/mem.h"
#include "base/str.h"
#include "export/outbuf.h"
#include "export/viewer.h"

/* What one event takes besides the texts of its track and its name. */
#define EVENT_BYTES 768u

/* A piece of JSON. */
struct piece {
	char *at;
	u32 len;
	u32 name_len; /* of a name: how much of it is name and category, the rest being args */
};

struct chrome {
	struct lull_outbuf out;
	struct lull_vec whats; /* struct piece: ,"name":"gemm","cat":"kernel" ,"args":{"grid":... */
	struct lull_vec
		tracks;	      /* struct piece: "pid":1,"tid":2, or the same with a counter's name */
	struct lull_vec pids; /* u32 by group */
	struct piece keys[LULL_VIEWER_N_ARGS]; /* "correlation": */
	bool has_any;
};

/* ---- putting things into words ---- */

/* A stream into a piece. */
struct words {
	FILE *to;
	char *at;
	size_t len;
};

static void begin(struct words *w)
{
	w->to = lull_memstream(&w->at, &w->len);
}

static struct piece end(struct words *w)
{
	fclose(w->to);
	return (struct piece){ .at = w->at, .len = (u32)w->len };
}

static void put_text(FILE *to, const char *text, size_t len)
{
	struct lull_json j;

	lull_json_init(&j, to);
	lull_json_bytes(&j, text, len);
}

static void put_arg(FILE *to, const struct lull_viewer_arg *arg)
{
	struct lull_json j;

	put_text(to, lull_viewer_args[arg->id].name, strlen(lull_viewer_args[arg->id].name));
	putc(':', to);
	lull_json_init(&j, to);
	if (lull_viewer_args[arg->id].kind == LULL_VIEWER_TEXT)
		lull_json_bytes(&j, arg->text, arg->len);
	else if (lull_viewer_args[arg->id].kind == LULL_VIEWER_I64)
		lull_json_i64(&j, (i64)arg->number);
	else
		lull_json_u64(&j, arg->number);
}

static void add_what(void *ctx, const struct lull_viewer_what *what)
{
	struct chrome *c = ctx;
	struct piece *piece = lull_vec_push(&c->whats);
	struct words w;
	u32 name_len;

	begin(&w);
	fputs(",\"name\":", w.to);
	put_text(w.to, what->name, what->name_len);
	fprintf(w.to, ",\"cat\":\"%s\"", what->category);
	name_len = (u32)ftell(w.to);
	for (u32 i = 0; i < what->n_args; i++) {
		fputs(i ? "," : ",\"args\":{", w.to);
		put_arg(w.to, &what->args[i]);
	}
	*piece = end(&w);
	piece->name_len = name_len;
}

/* ---- lines ---- */

static u8 *put(u8 *at, const char *text, size_t len)
{
	memcpy(at, text, len);
	return at + len;
}

#define PUT(at, literal) put(at, literal, sizeof(literal) - 1)

/* "00" to "99": two digits a division. */
#define PAIRS_OF_10(t) t "0" t "1" t "2" t "3" t "4" t "5" t "6" t "7" t "8" t "9"
static const char pairs[] = PAIRS_OF_10("0") PAIRS_OF_10("1") PAIRS_OF_10("2") PAIRS_OF_10("3")
	PAIRS_OF_10("4") PAIRS_OF_10("5") PAIRS_OF_10("6") PAIRS_OF_10("7") PAIRS_OF_10("8")
		PAIRS_OF_10("9");

static u8 *put_u64(u8 *at, u64 v)
{
	char digits[20];
	size_t n = sizeof(digits);

	for (; v >= 100; v /= 100)
		memcpy(digits + (n -= 2), pairs + 2 * (v % 100), 2);
	if (v >= 10)
		memcpy(digits + (n -= 2), pairs + 2 * v, 2);
	else
		digits[--n] = (char)('0' + v);
	memcpy(at, digits + n, sizeof(digits) - n);
	return at + sizeof(digits) - n;
}

/* Nanoseconds as microseconds. */
static u8 *put_time(u8 *at, u64 ns)
{
	u32 rest = (u32)(ns % 1000);

	at = put_u64(at, ns / 1000);
	at[0] = '.';
	at[1] = (u8)('0' + rest / 100);
	at[2] = (u8)('0' + rest / 10 % 10);
	at[3] = (u8)('0' + rest % 10);
	return at + 4;
}

static u8 *put_f64(u8 *at, f64 v)
{
	if (!isfinite(v))
		return PUT(at, "null");
	if (fabs(v) < 1e15 && v == (f64)(i64)v)
		return at + sprintf((char *)at, "%" PRId64, (i64)v);
	return at + sprintf((char *)at, "%.9g", v);
}

static u8 *put_value(u8 *at, enum lull_viewer_arg_kind kind, u64 bits)
{
	f64 real;

	if (kind == LULL_VIEWER_F64) {
		memcpy(&real, &bits, sizeof(real));
		return put_f64(at, real);
	}
	if (kind == LULL_VIEWER_I64 && (i64)bits < 0) {
		*at++ = '-';
		bits = 0 - bits;
	}
	return put_u64(at, bits);
}

static u8 *next_line(struct chrome *c, size_t room)
{
	u8 *at = lull_outbuf_room(&c->out, room);

	if (c->has_any)
		at = PUT(at, ",\n");
	c->has_any = true;
	return at;
}

static void done(struct chrome *c, const u8 *at)
{
	lull_outbuf_used(&c->out, (size_t)(at - (c->out.at + c->out.len)));
}

/* A piece of any length in the middle of a line; returns where the line goes on. */
static u8 *put_piece(struct chrome *c, u8 *at, const char *text, size_t len)
{
	if (len <= 256)
		return put(at, text, len);
	done(c, at);
	lull_outbuf_add(&c->out, text, len);
	return lull_outbuf_room(&c->out, EVENT_BYTES);
}

/* ---- names and order ---- */

/* {"ph":"M",<ids>"name":<kind>,"args":{<key>:<value>}} */
static void put_meta(struct chrome *c, const char *ids, const char *kind, const char *key,
		     const char *value)
{
	struct words w;
	struct piece piece;

	begin(&w);
	fprintf(w.to, "{\"ph\":\"M\",%s,\"name\":\"%s\",\"args\":{\"%s\":%s}}", ids, kind, key,
		value);
	piece = end(&w);
	done(c, next_line(c, 2));
	lull_outbuf_add(&c->out, piece.at, piece.len);
	free(piece.at);
}

static char *quoted(const char *text, const char *after)
{
	struct words w;
	struct lull_str whole = LULL_STR_INIT;

	lull_str_puts(&whole, text);
	lull_str_puts(&whole, after);
	begin(&w);
	put_text(w.to, whole.at, whole.len);
	lull_str_release(&whole);
	return end(&w).at;
}

static void add_group(void *ctx, const struct lull_viewer_group *group)
{
	struct chrome *c = ctx;
	char ids[64], order[16], *name = quoted(group->name, "");

	if (group->id >= c->pids.n)
		lull_vec_extend(&c->pids, group->id + 1 - c->pids.n);
	((u32 *)c->pids.at)[group->id] = group->pid;
	snprintf(ids, sizeof(ids), "\"pid\":%u", group->pid);
	snprintf(order, sizeof(order), "%u", group->order);
	put_meta(c, ids, "process_name", "name", name);
	put_meta(c, ids, "process_sort_index", "sort_index", order);
	free(name);
	if (group->kind == LULL_VIEWER_DEVICE) {
		char of[48];

		snprintf(of, sizeof(of), "\"of process %u\"", ((u32 *)c->pids.at)[group->parent]);
		put_meta(c, ids, "process_labels", "labels", of);
	}
}

static void add_track(void *ctx, const struct lull_viewer_track *track)
{
	struct chrome *c = ctx;
	u32 pid = ((u32 *)c->pids.at)[track->group];
	u32 tid = track->tid ? track->tid : LULL_VIEWER_OWN_NUMBERS + track->id;
	struct piece *piece = lull_vec_push(&c->tracks);
	struct lull_str unit = LULL_STR_INIT;
	struct words w;
	char order[16], *name;

	if (track->is_counter && *track->unit)
		lull_str_addf(&unit, " (%s)", track->unit);
	name = quoted(track->name, lull_str_text(&unit));
	begin(&w);
	if (track->is_counter)
		fprintf(w.to, "\"pid\":%u,\"name\":%s", pid, name);
	else
		fprintf(w.to, "\"pid\":%u,\"tid\":%u", pid, tid);
	*piece = end(&w);
	if (!track->is_counter) {
		snprintf(order, sizeof(order), "%u", track->order);
		put_meta(c, piece->at, "thread_name", "name", name);
		put_meta(c, piece->at, "thread_sort_index", "sort_index", order);
	}
	lull_str_release(&unit);
	free(name);
}

/* ---- events ---- */

static u8 *put_args(struct chrome *c, u8 *at, const struct lull_viewer_event *event, bool has_args)
{
	for (u32 i = 0; i < event->n_values; i++) {
		u8 id = event->value_ids[i];

		at = has_args ? PUT(at, ",") : PUT(at, ",\"args\":{");
		has_args = true;
		at = put(at, c->keys[id].at, c->keys[id].len);
		at = put_value(at, lull_viewer_args[id].kind, event->values[i]);
	}
	return has_args ? PUT(at, "}}") : PUT(at, "}");
}

static void put_flow(struct chrome *c, const struct lull_viewer_event *event,
		     const struct piece *track)
{
	u8 *at = next_line(c, EVENT_BYTES);

	at = event->flow == LULL_VIEWER_FLOW_OUT ? PUT(at, "{\"ph\":\"s\",\"id\":")
						 : PUT(at, "{\"ph\":\"f\",\"bp\":\"e\",\"id\":");
	at = put_u64(at, event->flow_id);
	*at++ = ',';
	at = put(at, track->at, track->len);
	at = PUT(at, ",\"ts\":");
	at = put_time(at, event->start_ns);
	at = PUT(at, ",\"cat\":\"launch\",\"name\":\"launch\"}");
	done(c, at);
}

static void put_counter(struct chrome *c, const struct lull_viewer_event *event,
			const struct piece *track)
{
	u8 *at = next_line(c, EVENT_BYTES);

	at = PUT(at, "{\"ph\":\"C\",\"ts\":");
	at = put_time(at, event->start_ns);
	*at++ = ',';
	at = put_piece(c, at, track->at, track->len);
	at = PUT(at, ",\"args\":{\"value\":");
	at = put_f64(at, event->value);
	at = PUT(at, "}}");
	done(c, at);
}

static void add_event(void *ctx, const struct lull_viewer_event *event)
{
	struct chrome *c = ctx;
	const struct piece *track = (struct piece *)c->tracks.at + event->track - 1, *what;
	u8 *at;

	if (event->type == LULL_VIEWER_COUNTER) {
		put_counter(c, event, track);
		return;
	}
	what = (struct piece *)c->whats.at + event->what - 1;
	at = next_line(c, EVENT_BYTES);
	at = event->type == LULL_VIEWER_SLICE ? PUT(at, "{\"ph\":\"X\",")
					      : PUT(at, "{\"ph\":\"i\",\"s\":\"t\",");
	at = put(at, track->at, track->len);
	at = PUT(at, ",\"ts\":");
	at = put_time(at, event->start_ns);
	if (event->type == LULL_VIEWER_SLICE) {
		at = PUT(at, ",\"dur\":");
		at = put_time(at, event->dur_ns);
	}
	at = put_piece(c, at, what->at, what->len);
	at = put_args(c, at, event, what->len > what->name_len);
	done(c, at);
	if (event->flow)
		put_flow(c, event, track);
}

/* ---- the file ---- */

static void begin_keys(struct chrome *c)
{
	for (size_t i = 0; i < LULL_VIEWER_N_ARGS; i++) {
		struct words w;

		begin(&w);
		put_text(w.to, lull_viewer_args[i].name, strlen(lull_viewer_args[i].name));
		putc(':', w.to);
		c->keys[i] = end(&w);
	}
}

/* {"displayTimeUnit":"ns","otherData":{...},"traceEvents":[ */
static void put_head(struct chrome *c, struct lull_reader *r)
{
	const struct lull_file_info *info = lull_reader_info(r);
	size_t n;
	const struct lull_meta_row *meta = lull_reader_dim(r, LULL_TABLE_meta, &n);
	struct words w;
	struct piece piece;

	begin(&w);
	fprintf(w.to,
		"{\"displayTimeUnit\":\"ns\",\"otherData\":{\"producer\":\"lull %s\","
		"\"begin, ns of CLOCK_MONOTONIC\":\"%" PRIu64 "\",\"begin, ns of UTC\":\"%" PRIu64
		"\"",
		LULL_VERSION, info->epoch_ns, info->epoch_utc_ns);
	for (size_t i = 0; i < n; i++) {
		size_t key_len, len;
		const char *key = lull_reader_string(r, meta[i].key, &key_len);
		const char *value = lull_reader_string(r, meta[i].value, &len);

		putc(',', w.to);
		put_text(w.to, key, key_len);
		putc(':', w.to);
		put_text(w.to, value, len);
	}
	fputs("},\"traceEvents\":[\n", w.to);
	piece = end(&w);
	lull_outbuf_add(&c->out, piece.at, piece.len);
	free(piece.at);
}

static void release_pieces(struct lull_vec *pieces)
{
	struct piece *at = pieces->at;

	for (size_t i = 0; i < pieces->n; i++)
		free(at[i].at);
	lull_vec_release(pieces);
}

static int write_report(struct lull_reader *r, const struct lull_export_options *options, FILE *to,
			struct lull_err *err)
{
	struct chrome *c = lull_alloc(1, sizeof(*c));
	const struct lull_viewer_sink sink = { c, add_group, add_track, add_what, add_event };
	int rc;

	lull_vec_init(&c->whats, sizeof(struct piece));
	lull_vec_init(&c->tracks, sizeof(struct piece));
	lull_vec_init(&c->pids, sizeof(u32));
	begin_keys(c);
	lull_outbuf_init(&c->out, to, options->is_plain ? LULL_OUTBUF_PLAIN : LULL_OUTBUF_GZIP);
	put_head(c, r);
	lull_viewer_tell(r, options, &sink);
	lull_outbuf_add(&c->out, "\n]}\n", 4);
	rc = lull_outbuf_finish(&c->out, err);
	release_pieces(&c->whats);
	release_pieces(&c->tracks);
	lull_vec_release(&c->pids);
	for (size_t i = 0; i < LULL_VIEWER_N_ARGS; i++)
		free(c->keys[i].at);
	free(c);
	return rc;
}

const struct lull_export lull_export_chrome = {
	.name = "chrome",
	.suffix = ".json.gz",
	.summary = "Chrome trace JSON, for Perfetto and chrome://tracing",
	.write = write_report,
};
