/*
 * pprof: profile.proto, gzipped, for `pprof` and what else reads it.
 *
 *	sample     stack of locations, innermost first; number of samples and CPU time; labels
 *	           process, thread, tid
 *	location   one place in the code: address, module, a line for each function inlined there
 *	function   name and file
 *	mapping    one module
 *
 * Ids of locations and mappings are the row ids of frames and modules. Samples of Python have no
 * CPU time, only a number.
 *
 * Messages are small, except the profile itself, which is a sequence of fields that can be written
 * one after the other; the table of texts comes last.
 */
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/mem.h"
#include "base/str.h"
#include "text/utf8.h"
#include "export/outbuf.h"
#include "export/proto.h"
#include "export/weigh.h"
#include "model/callpath.h"

enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_MAPPING = 3,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING_TABLE = 6,
	PROFILE_TIME = 9,
	PROFILE_DURATION = 10,
	PROFILE_PERIOD_TYPE = 11,
	PROFILE_DEFAULT_TYPE = 14,
};

enum { TYPE_TYPE = 1, TYPE_UNIT = 2 };

enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };

enum { LABEL_KEY = 1, LABEL_TEXT = 2, LABEL_NUMBER = 3 };

enum {
	MAPPING_ID = 1,
	MAPPING_START = 2,
	MAPPING_LIMIT = 3,
	MAPPING_FILE = 5,
	MAPPING_BUILD_ID = 6,
	MAPPING_HAS_FUNCTIONS = 7,
	MAPPING_HAS_FILES = 8,
	MAPPING_HAS_LINES = 9,
	MAPPING_HAS_INLINED = 10,
};

enum { LOCATION_ID = 1, LOCATION_MAPPING = 2, LOCATION_ADDRESS = 3, LOCATION_LINE = 4 };

enum { LINE_FUNCTION = 1, LINE_LINE = 2 };

enum { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3, FUNCTION_FILE = 4 };

/* Functions inlined at one place, as many as are kept. */
#define MAX_INLINED 32u

/* What distinguishes functions; both are numbers of texts. */
struct function {
	u32 name;
	u32 file;
};

struct pprof {
	struct lull_outbuf out;
	struct lull_weigh stacks;
	struct lull_intern texts;     /* number 0 is "" */
	struct lull_intern functions; /* struct function; ids begin at 1 */
	bool *has_frame;	      /* by row id */
	bool *has_module;
	u32 *lane_labels; /* by lane: 2 text numbers, process and thread; 0 if not met */
};

/* ---- texts ---- */

static u32 text_bytes(struct pprof *p, const char *text, size_t len)
{
	struct lull_str valid = LULL_STR_INIT;
	u32 number;

	if (lull_utf8_valid(text, len) == len)
		return lull_intern_add(&p->texts, text, len);
	lull_utf8_add(&valid, text, len);
	number = lull_intern_add(&p->texts, valid.at, valid.len);
	lull_str_release(&valid);
	return number;
}

static u32 text(struct pprof *p, const char *word)
{
	return text_bytes(p, word, strlen(word));
}

static u32 text_of(struct pprof *p, u32 string)
{
	size_t len;
	const char *bytes = lull_reader_string(p->stacks.reader, string, &len);

	return text_bytes(p, bytes, len);
}

static void put(struct pprof *p, u32 field, const u8 *bytes, size_t len)
{
	u8 head[LULL_PROTO_FIELD];

	lull_outbuf_add(
		&p->out, head,
		(size_t)(lull_proto_varint(lull_proto_tag(head, field, LULL_PROTO_BYTES), len) -
			 head));
	lull_outbuf_add(&p->out, bytes, len);
}

static void put_type(struct pprof *p, u32 field, const char *type, const char *unit)
{
	u8 bytes[2 * LULL_PROTO_FIELD], *at = bytes;

	at = lull_proto_u64(at, TYPE_TYPE, text(p, type));
	at = lull_proto_u64(at, TYPE_UNIT, text(p, unit));
	put(p, field, bytes, (size_t)(at - bytes));
}

static void put_number(struct pprof *p, u32 field, u64 number)
{
	u8 bytes[LULL_PROTO_FIELD];

	lull_outbuf_add(&p->out, bytes, (size_t)(lull_proto_u64(bytes, field, number) - bytes));
}

/* ---- samples ---- */

static u8 *put_label(u8 *at, u32 key, u32 field, u64 value)
{
	u8 *begin = lull_proto_open(at, SAMPLE_LABEL);

	at = lull_proto_u64(begin, LABEL_KEY, key);
	at = lull_proto_u64(at, field, value);
	lull_proto_close(begin, at);
	return at;
}

static u8 *put_labels(struct pprof *p, u8 *at, u32 lane)
{
	u32 *labels = &p->lane_labels[2 * (size_t)lane];
	struct lull_str name = LULL_STR_INIT;
	size_t n;
	const struct lull_lane_row *lanes = lull_reader_dim(p->stacks.reader, LULL_TABLE_lane, &n);

	if (!labels[0]) {
		lull_weigh_process(&p->stacks, lane, &name);
		labels[0] = text(p, lull_str_text(&name));
		lull_str_clear(&name);
		lull_weigh_thread(&p->stacks, lane, &name);
		labels[1] = text(p, lull_str_text(&name));
		lull_str_release(&name);
	}
	at = put_label(at, text(p, "process"), LABEL_TEXT, labels[0]);
	at = put_label(at, text(p, "thread"), LABEL_TEXT, labels[1]);
	return lane ? put_label(at, text(p, "tid"), LABEL_NUMBER, lanes[lane - 1].tid) : at;
}

static void put_sample(struct pprof *p, const struct lull_weigh_entry *entry, u8 *bytes,
		       u32 *frames)
{
	bool is_cut;
	size_t n = lull_weigh_frames(&p->stacks, entry->stack, frames, &is_cut);
	u8 *at = bytes, *begin = lull_proto_open(at, SAMPLE_LOCATION);

	at = begin;
	for (size_t i = 0; i < n; i++) {
		if (!frames[i])
			continue;
		p->has_frame[frames[i]] = true;
		at = lull_proto_varint(at, frames[i]);
	}
	lull_proto_close(begin, at);
	begin = lull_proto_open(at, SAMPLE_VALUE);
	at = lull_proto_varint(begin, entry->n_samples);
	if (!p->stacks.is_python)
		at = lull_proto_varint(at, entry->weight_ns);
	lull_proto_close(begin, at);
	at = put_labels(p, at, entry->lane);
	put(p, PROFILE_SAMPLE, bytes, (size_t)(at - bytes));
}

static void put_samples(struct pprof *p)
{
	size_t n_lanes, room = LULL_WEIGH_DEPTH * 10 + 16 * LULL_PROTO_FIELD;
	u8 *bytes = lull_alloc(room, 1);
	u32 *frames = lull_alloc(LULL_WEIGH_DEPTH, sizeof(u32));

	lull_reader_dim(p->stacks.reader, LULL_TABLE_lane, &n_lanes);
	p->has_frame = lull_alloc(p->stacks.n_frames + 1, sizeof(bool));
	p->has_module = lull_alloc(p->stacks.n_modules + 1, sizeof(bool));
	p->lane_labels = lull_alloc(n_lanes + 1, 2 * sizeof(u32));
	for (size_t i = 0; i < p->stacks.entries.n; i++)
		put_sample(p, lull_vec_get(&p->stacks.entries, i), bytes, frames);
	free(bytes);
	free(frames);
}

/* ---- places ---- */

static u64 function_id(struct pprof *p, u32 name, u32 file)
{
	struct function f = { name, file };

	return (u64)lull_intern_add(&p->functions, &f, sizeof(f)) + 1;
}

static u8 *put_line(u8 *at, u64 function, u32 line)
{
	u8 *begin = lull_proto_open(at, LOCATION_LINE);

	at = lull_proto_u64(begin, LINE_FUNCTION, function);
	if (line)
		at = lull_proto_u64(at, LINE_LINE, line);
	lull_proto_close(begin, at);
	return at;
}

/*
 * Lines of a place, innermost first: what was inlined there, then the function itself. File and
 * line of the row are those of the innermost.
 */
static u8 *put_lines(struct pprof *p, u8 *at, u32 frame)
{
	const struct lull_frame_row *row = &p->stacks.frames[frame - 1];
	const char *inlined = lull_reader_string(p->stacks.reader, row->inlined, NULL);
	u32 names[MAX_INLINED + 1], n = 0, file = text_of(p, row->file);
	struct lull_str name = LULL_STR_INIT;

	lull_weigh_name(&p->stacks, frame, &name);
	names[n++] = text_bytes(p, lull_str_text(&name), name.len);
	lull_str_release(&name);
	while (*inlined) {
		size_t len = strcspn(inlined, ";");

		if (len && n <= MAX_INLINED)
			names[n++] = text_bytes(p, inlined, len);
		inlined += len + (inlined[len] != 0);
	}
	for (u32 i = n; i-- > 0;) {
		bool is_innermost = i + 1 == n;

		at = put_line(at, function_id(p, names[i], is_innermost ? file : 0),
			      is_innermost ? row->line : 0);
	}
	return at;
}

static void put_locations(struct pprof *p)
{
	u8 bytes[(MAX_INLINED + 4) * 3 * LULL_PROTO_FIELD];

	for (u32 f = 1; f <= p->stacks.n_frames; f++) {
		const struct lull_frame_row *row = &p->stacks.frames[f - 1];
		u8 *at = bytes;

		if (!p->has_frame[f])
			continue;
		at = lull_proto_u64(at, LOCATION_ID, f);
		if (row->module) {
			p->has_module[row->module] = true;
			at = lull_proto_u64(at, LOCATION_MAPPING, row->module);
		}
		if (row->addr)
			at = lull_proto_u64(at, LOCATION_ADDRESS, row->addr);
		at = put_lines(p, at, f);
		put(p, PROFILE_LOCATION, bytes, (size_t)(at - bytes));
	}
}

/* Addresses of locations are those of the file, so mappings begin where the file's do. */
static void put_mappings(struct pprof *p)
{
	u8 bytes[12 * LULL_PROTO_FIELD];

	for (u32 m = 1; m <= p->stacks.n_modules; m++) {
		const struct lull_module_row *row = &p->stacks.modules[m - 1];
		u8 *at = bytes;

		if (!p->has_module[m])
			continue;
		at = lull_proto_u64(at, MAPPING_ID, m);
		at = lull_proto_u64(at, MAPPING_START, row->start_addr - row->bias);
		at = lull_proto_u64(at, MAPPING_LIMIT, row->end_addr - row->bias);
		at = lull_proto_u64(at, MAPPING_FILE, text_of(p, row->path));
		at = lull_proto_u64(at, MAPPING_BUILD_ID, text_of(p, row->build_id));
		/* So that pprof does not look for the file to name what is named already. */
		at = lull_proto_u64(at, MAPPING_HAS_FUNCTIONS, 1);
		at = lull_proto_u64(at, MAPPING_HAS_FILES, 1);
		at = lull_proto_u64(at, MAPPING_HAS_LINES, 1);
		at = lull_proto_u64(at, MAPPING_HAS_INLINED, 1);
		put(p, PROFILE_MAPPING, bytes, (size_t)(at - bytes));
	}
}

static void put_functions(struct pprof *p)
{
	u8 bytes[4 * LULL_PROTO_FIELD];

	for (u32 i = 0; i < p->functions.offsets.n; i++) {
		const struct function *f = lull_intern_get(&p->functions, i);
		u8 *at = bytes;

		at = lull_proto_u64(at, FUNCTION_ID, i + 1);
		at = lull_proto_u64(at, FUNCTION_NAME, f->name);
		at = lull_proto_u64(at, FUNCTION_SYSTEM_NAME, f->name);
		if (f->file)
			at = lull_proto_u64(at, FUNCTION_FILE, f->file);
		put(p, PROFILE_FUNCTION, bytes, (size_t)(at - bytes));
	}
}

static void put_texts(struct pprof *p)
{
	for (u32 i = 0; i < p->texts.offsets.n; i++) {
		const char *bytes = lull_intern_get(&p->texts, i);

		put(p, PROFILE_STRING_TABLE, (const u8 *)bytes, strlen(bytes));
	}
}

/* ---- the file ---- */

static void put_head(struct pprof *p, struct lull_span window)
{
	const struct lull_file_info *info = lull_reader_info(p->stacks.reader);
	struct lull_span span =
		lull_span_cut(lull_span_recording(p->stacks.reader), window.from_ns, window.to_ns);

	text(p, "");
	put_type(p, PROFILE_SAMPLE_TYPE, "samples", "count");
	if (!p->stacks.is_python) {
		put_type(p, PROFILE_SAMPLE_TYPE, "cpu", "nanoseconds");
		put_type(p, PROFILE_PERIOD_TYPE, "cpu", "nanoseconds");
		put_number(p, PROFILE_DEFAULT_TYPE, text(p, "cpu"));
	}
	put_number(p, PROFILE_TIME, info->epoch_utc_ns + span.from_ns);
	put_number(p, PROFILE_DURATION, span.to_ns - span.from_ns);
}

static int write_report(struct lull_reader *r, const struct lull_export_options *options, FILE *to,
			struct lull_err *err)
{
	struct pprof p = { 0 };
	int rc = lull_weigh_init(&p.stacks, r, options, err);

	if (!rc) {
		lull_intern_init(&p.texts);
		lull_intern_init(&p.functions);
		lull_outbuf_init(&p.out, to,
				 options->is_plain ? LULL_OUTBUF_PLAIN : LULL_OUTBUF_GZIP);
		put_head(&p, lull_export_window(options));
		put_samples(&p);
		put_locations(&p);
		put_mappings(&p);
		put_functions(&p);
		put_texts(&p);
		rc = lull_outbuf_finish(&p.out, err);
		free(p.has_frame);
		free(p.has_module);
		free(p.lane_labels);
		lull_intern_release(&p.texts);
		lull_intern_release(&p.functions);
	}
	lull_weigh_release(&p.stacks);
	return rc;
}

const struct lull_export lull_export_pprof = {
	.name = "pprof",
	.suffix = ".pb.gz",
	.summary = "profile of the samples, for pprof",
	.write = write_report,
};
