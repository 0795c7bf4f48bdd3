/*
 * perfetto: the binary trace of ui.perfetto.dev and trace_processor, a stream of TracePacket.
 *
 *	clock snapshot      CLOCK_MONOTONIC and UTC at the start of the recording
 *	track descriptors   process > thread, process > device > stream, counters; at first use
 *	interned data       names, categories and names of arguments, each with a number
 *	track events        begin and end of slices, moments, counters; flows from calls to work
 *
 * All events are one packet sequence, because interned data belongs to one. Times are those of
 * CLOCK_MONOTONIC. Begin and end of a slice are written together; readers sort packets by time and
 * keep the order of those with the same time, and viewer.h tells slices in an order in which that
 * is right.
 *
 * Field numbers are those of perfetto's trace protos, as published.
 */
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/mem.h"
#include "base/str.h"
#include "text/utf8.h"
#include "export/outbuf.h"
#include "export/proto.h"
#include "export/viewer.h"

#define SEQUENCE 1u

/* What one packet takes besides the texts and the arguments of a name. */
#define PACKET_BYTES 512u

/* Trace */
enum { TRACE_PACKET = 1 };

enum {
	PACKET_CLOCK_SNAPSHOT = 6,
	PACKET_TIMESTAMP = 8,
	PACKET_SEQUENCE_ID = 10,
	PACKET_TRACK_EVENT = 11,
	PACKET_INTERNED_DATA = 12,
	PACKET_SEQUENCE_FLAGS = 13,
	PACKET_DEFAULTS = 59,
	PACKET_TRACK_DESCRIPTOR = 60,
};

enum { FLAG_STATE_CLEARED = 1, FLAG_NEEDS_STATE = 2 };

enum { DEFAULTS_CLOCK_ID = 58 };

enum { CLOCK_REALTIME_ID = 1, CLOCK_MONOTONIC_ID = 3 };

enum { SNAPSHOT_CLOCKS = 1, SNAPSHOT_PRIMARY = 2, CLOCK_ID = 1, CLOCK_TIMESTAMP = 2 };

enum { INTERNED_CATEGORIES = 1, INTERNED_NAMES = 2, INTERNED_ARG_NAMES = 3 };

enum { ENTRY_IID = 1, ENTRY_TEXT = 2 };

enum {
	EVENT_CATEGORY_IIDS = 3,
	EVENT_ARGS = 4,
	EVENT_TYPE = 9,
	EVENT_NAME_IID = 10,
	EVENT_TRACK = 11,
	EVENT_DOUBLE_VALUE = 44,
	EVENT_FLOW_IDS = 47,
	EVENT_TERMINATING_FLOW_IDS = 48,
};

enum { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };

enum { ARG_NAME_IID = 1, ARG_UINT = 3, ARG_INT = 4, ARG_DOUBLE = 5, ARG_STRING = 6 };

enum {
	TRACK_UUID = 1,
	TRACK_NAME = 2,
	TRACK_PROCESS = 3,
	TRACK_THREAD = 4,
	TRACK_PARENT = 5,
	TRACK_COUNTER = 8,
	TRACK_CHILD_ORDERING = 11,
	TRACK_SIBLING_RANK = 12,
};

enum { ORDER_EXPLICIT = 3 };

enum { PROCESS_PID = 1, PROCESS_NAME = 6 };

enum { THREAD_PID = 1, THREAD_TID = 2, THREAD_NAME = 5 };

enum { COUNTER_UNIT = 3, COUNTER_UNIT_NAME = 6 };

enum { UNIT_SIZE_BYTES = 3 };

/* What events of one name begin with: category, name, and the arguments they share. */
struct fragment {
	u8 *at;
	u32 len;
};

/* Interned texts, and how many of them are in the file already. */
struct texts {
	struct lull_intern intern;
	u32 n_told;
	u32 index; /* of interned data */
};

struct perfetto {
	struct lull_outbuf out;
	u64 epoch_ns;
	struct lull_vec fragments; /* struct fragment, by name */
	struct lull_vec pids;	   /* u32 by group */
	struct texts names;
	struct texts categories;
};

/* Tracks of groups come first, odd numbers; tracks of events are even. 0 means none. */
static u64 uuid_of_group(u32 group)
{
	return 2 * (u64)group + 1;
}

static u64 uuid_of_track(u32 track)
{
	return 2 * (u64)track;
}

/* ---- packets ---- */

/* Begin a packet that may take `room` bytes; returns where its fields go. */
static u8 *open_packet(struct perfetto *p, size_t room)
{
	return lull_proto_open(lull_outbuf_room(&p->out, room), TRACE_PACKET);
}

static void close_packet(struct perfetto *p, u8 *begin, u8 *at)
{
	at = lull_proto_u64(at, PACKET_SEQUENCE_ID, SEQUENCE);
	lull_proto_close(begin, at);
	lull_outbuf_used(&p->out, (size_t)(at - (p->out.at + p->out.len)));
}

/*
 * A text as the format wants it. Packets are put together in a buffer, so what is longer than any
 * real name is cut.
 */
#define MAX_TEXT 16384u

static u8 *put_text(u8 *at, u32 field, const char *text, size_t len)
{
	struct lull_str valid = LULL_STR_INIT;
	size_t n = lull_utf8_valid(text, len < MAX_TEXT ? len : MAX_TEXT);

	if (n == len)
		return lull_proto_bytes(at, field, text, len);
	lull_utf8_add(&valid, text, len);
	at = lull_proto_bytes(
		at, field, valid.at,
		lull_utf8_valid(valid.at, valid.len < MAX_TEXT ? valid.len : MAX_TEXT));
	lull_str_release(&valid);
	return at;
}

/* ---- interned data ---- */

static void put_entry(struct perfetto *p, u32 index, u64 iid, const char *text, size_t len)
{
	u8 *begin = open_packet(p, PACKET_BYTES + MAX_TEXT);
	u8 *data = lull_proto_open(begin, PACKET_INTERNED_DATA), *entry, *at;

	entry = lull_proto_open(data, index);
	at = lull_proto_u64(entry, ENTRY_IID, iid);
	at = put_text(at, ENTRY_TEXT, text, len);
	lull_proto_close(entry, at);
	lull_proto_close(data, at);
	at = lull_proto_u64(at, PACKET_SEQUENCE_FLAGS, FLAG_NEEDS_STATE);
	close_packet(p, begin, at);
}

static u64 number_of(struct perfetto *p, struct texts *texts, const char *text, size_t len)
{
	u32 number = lull_intern_add(&texts->intern, text, len);

	if (number == texts->n_told) {
		texts->n_told++;
		put_entry(p, texts->index, number + 1, text, len);
	}
	return number + 1;
}

/* ---- names ---- */

static u8 *put_arg(u8 *at, const struct lull_viewer_arg *arg)
{
	u8 *begin = lull_proto_open(at, EVENT_ARGS);
	f64 real;

	at = lull_proto_u64(begin, ARG_NAME_IID, arg->id + 1);
	switch (lull_viewer_args[arg->id].kind) {
	case LULL_VIEWER_TEXT:
		at = put_text(at, ARG_STRING, arg->text, arg->len);
		break;
	case LULL_VIEWER_F64:
		memcpy(&real, &arg->number, sizeof(real));
		at = lull_proto_f64(at, ARG_DOUBLE, real);
		break;
	case LULL_VIEWER_I64:
		at = lull_proto_u64(at, ARG_INT, arg->number);
		break;
	case LULL_VIEWER_U64:
		at = lull_proto_u64(at, ARG_UINT, arg->number);
		break;
	}
	lull_proto_close(begin, at);
	return at;
}

static void add_what(void *ctx, const struct lull_viewer_what *what)
{
	struct perfetto *p = ctx;
	struct fragment *fragment = lull_vec_push(&p->fragments);
	u8 *bytes = lull_alloc(PACKET_BYTES + what->n_args * (MAX_TEXT + LULL_PROTO_FIELD), 1);
	u8 *at = bytes;

	at = lull_proto_u64(at, EVENT_CATEGORY_IIDS,
			    number_of(p, &p->categories, what->category, strlen(what->category)));
	at = lull_proto_u64(at, EVENT_NAME_IID,
			    number_of(p, &p->names, what->name, what->name_len));
	for (u32 i = 0; i < what->n_args; i++)
		at = put_arg(at, &what->args[i]);
	fragment->len = (u32)(at - bytes);
	fragment->at = lull_realloc(bytes, fragment->len, 1);
}

/* ---- tracks ---- */

static void add_group(void *ctx, const struct lull_viewer_group *group)
{
	struct perfetto *p = ctx;
	u8 *begin = open_packet(p, PACKET_BYTES + 2 * MAX_TEXT), *track, *process, *at;

	if (group->id >= p->pids.n)
		lull_vec_extend(&p->pids, group->id + 1 - p->pids.n);
	((u32 *)p->pids.at)[group->id] = group->pid;
	track = lull_proto_open(begin, PACKET_TRACK_DESCRIPTOR);
	at = lull_proto_u64(track, TRACK_UUID, uuid_of_group(group->id));
	at = put_text(at, TRACK_NAME, group->name, strlen(group->name));
	at = lull_proto_u64(at, TRACK_CHILD_ORDERING, ORDER_EXPLICIT);
	at = lull_proto_u64(at, TRACK_SIBLING_RANK, group->order);
	if (group->kind == LULL_VIEWER_PROCESS) {
		process = lull_proto_open(at, TRACK_PROCESS);
		at = lull_proto_u64(process, PROCESS_PID, group->pid);
		at = put_text(at, PROCESS_NAME, group->name, strlen(group->name));
		lull_proto_close(process, at);
	} else if (group->kind == LULL_VIEWER_DEVICE) {
		at = lull_proto_u64(at, TRACK_PARENT, uuid_of_group(group->parent));
	}
	lull_proto_close(track, at);
	close_packet(p, begin, at);
}

static u8 *put_thread(u8 *at, u32 pid, const struct lull_viewer_track *track)
{
	u8 *begin = lull_proto_open(at, TRACK_THREAD);

	at = lull_proto_u64(begin, THREAD_PID, pid);
	at = lull_proto_u64(at, THREAD_TID, track->tid);
	at = put_text(at, THREAD_NAME, track->name, strlen(track->name));
	lull_proto_close(begin, at);
	return at;
}

static u8 *put_unit(u8 *at, const char *unit)
{
	u8 *begin = lull_proto_open(at, TRACK_COUNTER);

	at = begin;
	if (!strcmp(unit, "B"))
		at = lull_proto_u64(at, COUNTER_UNIT, UNIT_SIZE_BYTES);
	else if (*unit)
		at = put_text(at, COUNTER_UNIT_NAME, unit, strlen(unit));
	lull_proto_close(begin, at);
	return at;
}

static void add_track(void *ctx, const struct lull_viewer_track *track)
{
	struct perfetto *p = ctx;
	u32 pid = ((u32 *)p->pids.at)[track->group];
	u8 *begin = open_packet(p, PACKET_BYTES + 2 * MAX_TEXT);
	u8 *descriptor = lull_proto_open(begin, PACKET_TRACK_DESCRIPTOR), *at;

	at = lull_proto_u64(descriptor, TRACK_UUID, uuid_of_track(track->id));
	at = lull_proto_u64(at, TRACK_PARENT, uuid_of_group(track->group));
	at = put_text(at, TRACK_NAME, track->name, strlen(track->name));
	at = lull_proto_u64(at, TRACK_SIBLING_RANK, track->order);
	if (track->is_counter)
		at = put_unit(at, track->unit);
	else if (track->tid)
		at = put_thread(at, pid, track);
	lull_proto_close(descriptor, at);
	close_packet(p, begin, at);
}

/* ---- events ---- */

/* A packet with one event of this type, up to its track. */
static u8 *open_event(const struct perfetto *p, u8 **event, u8 *at, u32 type, u64 time_ns)
{
	at = lull_proto_u64(at, PACKET_TIMESTAMP, p->epoch_ns + time_ns);
	at = lull_proto_u64(at, PACKET_SEQUENCE_FLAGS, FLAG_NEEDS_STATE);
	*event = lull_proto_open(at, PACKET_TRACK_EVENT);
	return lull_proto_u64(*event, EVENT_TYPE, type);
}

static u8 *put_flow(u8 *at, const struct lull_viewer_event *event)
{
	if (event->flow == LULL_VIEWER_FLOW_NONE)
		return at;
	return lull_proto_fixed64(at,
				  event->flow == LULL_VIEWER_FLOW_IN ? EVENT_TERMINATING_FLOW_IDS
								     : EVENT_FLOW_IDS,
				  event->flow_id);
}

static void put_end(struct perfetto *p, const struct lull_viewer_event *event)
{
	u8 *begin = open_packet(p, PACKET_BYTES), *in, *at;

	at = open_event(p, &in, begin, TYPE_END, lull_span_end_ns(event->start_ns, event->dur_ns));
	at = lull_proto_u64(at, EVENT_TRACK, uuid_of_track(event->track));
	lull_proto_close(in, at);
	close_packet(p, begin, at);
}

static void put_counter(struct perfetto *p, const struct lull_viewer_event *event)
{
	u8 *begin = open_packet(p, PACKET_BYTES), *in, *at;

	at = open_event(p, &in, begin, TYPE_COUNTER, event->start_ns);
	at = lull_proto_u64(at, EVENT_TRACK, uuid_of_track(event->track));
	at = lull_proto_f64(at, EVENT_DOUBLE_VALUE, event->value);
	lull_proto_close(in, at);
	close_packet(p, begin, at);
}

static void add_event(void *ctx, const struct lull_viewer_event *event)
{
	struct perfetto *p = ctx;
	const struct fragment *what;
	bool is_slice = event->type == LULL_VIEWER_SLICE;
	u8 *begin, *in, *at;

	if (event->type == LULL_VIEWER_COUNTER) {
		put_counter(p, event);
		return;
	}
	what = (struct fragment *)p->fragments.at + event->what - 1;
	begin = open_packet(p, PACKET_BYTES + what->len);
	at = open_event(p, &in, begin, is_slice ? TYPE_BEGIN : TYPE_INSTANT, event->start_ns);
	at = lull_proto_u64(at, EVENT_TRACK, uuid_of_track(event->track));
	memcpy(at, what->at, what->len);
	at += what->len;
	for (u32 i = 0; i < event->n_values; i++)
		at = put_arg(at, &(struct lull_viewer_arg){ .id = event->value_ids[i],
							    .number = event->values[i] });
	at = put_flow(at, event);
	lull_proto_close(in, at);
	close_packet(p, begin, at);
	if (is_slice)
		put_end(p, event);
}

/* ---- the file ---- */

static u8 *put_clock(u8 *at, u32 id, u64 ns)
{
	u8 *begin = lull_proto_open(at, SNAPSHOT_CLOCKS);

	at = lull_proto_u64(begin, CLOCK_ID, id);
	at = lull_proto_u64(at, CLOCK_TIMESTAMP, ns);
	lull_proto_close(begin, at);
	return at;
}

/* The first packet: clocks, and what holds for all that follow. */
static void put_head(struct perfetto *p, const struct lull_file_info *info)
{
	u8 *begin = open_packet(p, PACKET_BYTES), *in, *at;

	in = lull_proto_open(begin, PACKET_CLOCK_SNAPSHOT);
	at = put_clock(in, CLOCK_MONOTONIC_ID, info->epoch_ns);
	at = put_clock(at, CLOCK_REALTIME_ID, info->epoch_utc_ns);
	at = lull_proto_u64(at, SNAPSHOT_PRIMARY, CLOCK_MONOTONIC_ID);
	lull_proto_close(in, at);
	close_packet(p, begin, at);
	begin = open_packet(p, PACKET_BYTES);
	at = lull_proto_u64(begin, PACKET_SEQUENCE_FLAGS, FLAG_STATE_CLEARED);
	in = lull_proto_open(at, PACKET_DEFAULTS);
	at = lull_proto_u64(in, DEFAULTS_CLOCK_ID, CLOCK_MONOTONIC_ID);
	lull_proto_close(in, at);
	close_packet(p, begin, at);
	for (u32 i = 0; i < LULL_VIEWER_N_ARGS; i++)
		put_entry(p, INTERNED_ARG_NAMES, i + 1, lull_viewer_args[i].name,
			  strlen(lull_viewer_args[i].name));
}

static void release(struct perfetto *p)
{
	struct fragment *fragments = p->fragments.at;

	for (size_t i = 0; i < p->fragments.n; i++)
		free(fragments[i].at);
	lull_vec_release(&p->fragments);
	lull_vec_release(&p->pids);
	lull_intern_release(&p->names.intern);
	lull_intern_release(&p->categories.intern);
}

static int write_report(struct lull_reader *r, const struct lull_export_options *options, FILE *to,
			struct lull_err *err)
{
	const struct lull_file_info *info = lull_reader_info(r);
	struct perfetto p = { .epoch_ns = info->epoch_ns,
			      .names = { .index = INTERNED_NAMES },
			      .categories = { .index = INTERNED_CATEGORIES } };
	const struct lull_viewer_sink sink = { &p, add_group, add_track, add_what, add_event };
	int rc;

	lull_vec_init(&p.fragments, sizeof(struct fragment));
	lull_vec_init(&p.pids, sizeof(u32));
	lull_intern_init(&p.names.intern);
	lull_intern_init(&p.categories.intern);
	lull_outbuf_init(&p.out, to, LULL_OUTBUF_PLAIN);
	put_head(&p, info);
	lull_viewer_tell(r, options, &sink);
	rc = lull_outbuf_finish(&p.out, err);
	release(&p);
	return rc;
}

const struct lull_export lull_export_perfetto = {
	.name = "perfetto",
	.suffix = ".pftrace",
	.summary = "Perfetto trace, for ui.perfetto.dev and trace_processor",
	.write = write_report,
};
