#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "model/device.h"
#include "export/viewer_int.h"

/* Tracks of one family. More than this many slices at once are no timeline any more. */
#define MAX_TRACKS 1024u

/* One track and what is open on it. */
struct track {
	u32 id;
	u64 last_start_ns;
	struct lull_vec ends; /* u64, outermost first */
};

struct family {
	struct lull_vec tracks;		 /* struct track */
	struct lull_viewer_family other; /* of families without a lane; texts are ours */
	f64 sum;
	f64 last_value;
	u64 last_ns;
	bool has_last;
};

struct lull_viewer_tracks {
	struct lull_viewer *viewer;
	struct family **lanes;	 /* (n_lanes + 1) * LULL_VIEWER_N_CLASSES, NULL until used */
	size_t n_lanes;		 /* families of lanes */
	struct lull_vec others;	 /* struct family */
	struct lull_map by_key;	 /* key to index in others + 1 */
	struct lull_map threads; /* process and tid to lane: the first one has the number */
	bool *is_told;		 /* by group */
	u32 *pids;		 /* by process id */
	u32 *first_context;	 /* by device id: the context of its first lane */
	const struct lull_process_row *processes;
	size_t n_processes;
	u32 n_tracks;
};

/* ---- groups ---- */

static u32 group_of_device(const struct lull_viewer_tracks *s, u32 device)
{
	return (u32)s->n_processes + device;
}

/* Processes whose pid another one had before (exec, or a pid used again) get one of our own. */
static void number_processes(struct lull_viewer_tracks *s)
{
	struct lull_map seen;

	lull_map_init(&seen);
	s->pids = lull_alloc(s->n_processes + 1, sizeof(u32));
	for (u32 p = 1; p <= s->n_processes; p++) {
		u32 pid = s->processes[p - 1].pid;
		bool is_new;

		lull_map_add(&seen, pid, &is_new);
		s->pids[p] = is_new && pid && pid < LULL_VIEWER_OWN_NUMBERS
				     ? pid
				     : LULL_VIEWER_OWN_NUMBERS + p;
	}
	lull_map_release(&seen);
}

static void number_threads(struct lull_viewer_tracks *s)
{
	const struct lull_viewer *t = s->viewer;

	s->first_context = lull_alloc(t->n_devices + 1, sizeof(u32));
	for (u32 l = 1; l <= t->n_lanes; l++) {
		const struct lull_lane_row *lane = &t->lanes[l - 1];
		bool is_new;
		u32 *at;

		if (lane->kind == 2) {
			if (!s->first_context[lane->device])
				s->first_context[lane->device] = lane->context_id;
			continue;
		}
		at = lull_map_add(&s->threads, (u64)lane->process << 32 | lane->tid, &is_new);
		if (is_new)
			*at = l;
	}
}

struct lull_viewer_tracks *lull_viewer_tracks_new(struct lull_viewer *t)
{
	struct lull_viewer_tracks *s = lull_alloc(1, sizeof(*s));

	s->viewer = t;
	s->processes = lull_reader_dim(t->reader, LULL_TABLE_process, &s->n_processes);
	s->n_lanes = (t->n_lanes + 1) * LULL_VIEWER_N_CLASSES;
	s->lanes = lull_alloc(s->n_lanes, sizeof(*s->lanes));
	s->is_told = lull_alloc(s->n_processes + t->n_devices + 1, sizeof(bool));
	lull_vec_init(&s->others, sizeof(struct family));
	lull_map_init(&s->by_key);
	lull_map_init(&s->threads);
	number_processes(s);
	number_threads(s);
	return s;
}

static void release(struct family *f)
{
	struct track *tracks = f->tracks.at;

	for (size_t i = 0; i < f->tracks.n; i++)
		lull_vec_release(&tracks[i].ends);
	lull_vec_release(&f->tracks);
	free((char *)(uintptr_t)f->other.name);
	free((char *)(uintptr_t)f->other.unit);
}

void lull_viewer_tracks_free(struct lull_viewer_tracks *s)
{
	struct family *others = s ? s->others.at : NULL;

	if (!s)
		return;
	for (size_t i = 0; i < s->n_lanes; i++) {
		if (s->lanes[i])
			release(s->lanes[i]);
		free(s->lanes[i]);
	}
	for (size_t i = 0; i < s->others.n; i++)
		release(&others[i]);
	lull_vec_release(&s->others);
	lull_map_release(&s->by_key);
	lull_map_release(&s->threads);
	free(s->lanes);
	free(s->is_told);
	free(s->pids);
	free(s->first_context);
	free(s);
}

/* Order among the groups: processes as they began, each followed by its devices. */
static u32 group_order(u32 process, u32 device)
{
	return process << 8 | (device < UINT8_MAX ? device : UINT8_MAX);
}

static void tell_process(struct lull_viewer_tracks *s, u32 process)
{
	const struct lull_viewer_sink *sink = s->viewer->sink;
	struct lull_viewer_group group = { .id = process, .name = "machine" };
	struct lull_str name = LULL_STR_INIT;

	if (s->is_told[process])
		return;
	s->is_told[process] = true;
	if (process) {
		const struct lull_process_row *row = &s->processes[process - 1];

		group.kind = LULL_VIEWER_PROCESS;
		group.pid = s->pids[process];
		group.order = group_order(process, 0);
		lull_str_puts(&name,
			      row->name ? lull_reader_string(s->viewer->reader, row->name, NULL)
					: "process");
		if (row->pid && group.pid != row->pid)
			lull_str_addf(&name, " (pid %u)", row->pid);
		group.name = lull_str_text(&name);
	}
	sink->group(sink->ctx, &group);
	lull_str_release(&name);
}

static u32 tell_group(struct lull_viewer_tracks *s, u32 process, u32 device)
{
	const struct lull_viewer_sink *sink = s->viewer->sink;
	const struct lull_device_row *row;
	struct lull_str name = LULL_STR_INIT;
	u32 id = device ? group_of_device(s, device) : process;

	if (!device) {
		tell_process(s, process);
		return process;
	}
	if (s->is_told[id])
		return id;
	s->is_told[id] = true;
	row = &s->viewer->devices[device - 1];
	tell_process(s, row->process);
	lull_str_addf(&name, "GPU %u", lull_device_number(s->viewer->reader, device));
	if (row->name)
		lull_str_addf(&name, " %s", lull_reader_string(s->viewer->reader, row->name, NULL));
	sink->group(sink->ctx,
		    &(struct lull_viewer_group){
			    .id = id,
			    .kind = LULL_VIEWER_DEVICE,
			    .parent = row->process,
			    .pid = LULL_VIEWER_OWN_NUMBERS + (u32)s->n_processes + device,
			    .order = group_order(row->process, 1 + row->device_id),
			    .name = lull_str_text(&name) });
	lull_str_release(&name);
	return id;
}

/* ---- families ---- */

u32 lull_viewer_family(const struct lull_viewer *t, u32 lane, enum lull_viewer_class kind)
{
	(void)t;
	return lane * LULL_VIEWER_N_CLASSES + kind;
}

u32 lull_viewer_other(struct lull_viewer *t, u64 key, const struct lull_viewer_family *family)
{
	struct lull_viewer_tracks *s = t->tracks;
	u32 *ix = lull_map_add(&s->by_key, key, NULL);

	if (!*ix) {
		struct family *f = lull_vec_push(&s->others);

		f->other = *family;
		f->other.name = lull_strdup(family->name);
		f->other.unit = family->unit ? lull_strdup(family->unit) : NULL;
		*ix = (u32)s->others.n;
	}
	return (u32)s->n_lanes + *ix - 1;
}

static void name_lane(const struct lull_viewer_tracks *s, u32 lane_id, struct lull_str *name)
{
	const struct lull_lane_row *lane;

	if (!lane_id) {
		lull_str_puts(name, "unknown thread");
		return;
	}
	lane = &s->viewer->lanes[lane_id - 1];
	if (lane->kind != 2 && lane->name)
		lull_str_puts(name, lull_reader_string(s->viewer->reader, lane->name, NULL));
	else if (lane->kind != 2)
		lull_str_addf(name, "thread %u", lane->tid);
	else if (lane->context_id == s->first_context[lane->device])
		lull_str_addf(name, "stream %u", lane->stream_id);
	else
		lull_str_addf(name, "context %u stream %u", lane->context_id, lane->stream_id);
}

static void describe_lane(struct lull_viewer_tracks *s, u32 family, struct lull_str *name,
			  struct lull_viewer_track *track)
{
	static const char *const classes[LULL_VIEWER_N_CLASSES] = {
		[LULL_VIEWER_STEPS] = ": steps",
		[LULL_VIEWER_PYTHON] = ": Python",
		[LULL_VIEWER_MAIN] = "",
		[LULL_VIEWER_RANGES] = ": start/end ranges",
		[LULL_VIEWER_WAITS] = ": synchronisation",
		[LULL_VIEWER_ON_CPU] = ": on a CPU",
	};
	u32 lane_id = family / LULL_VIEWER_N_CLASSES, kind = family % LULL_VIEWER_N_CLASSES;
	struct lull_lane_row lane = { 0 };
	const u32 *first;

	if (lane_id)
		lane = s->viewer->lanes[lane_id - 1];
	name_lane(s, lane_id, name);
	lull_str_puts(name, classes[kind]);
	track->group = tell_group(s, lane.process, lane.kind == 2 ? lane.device : 0);
	track->order = family;
	first = lull_map_find(&s->threads, (u64)lane.process << 32 | lane.tid);
	if (kind == LULL_VIEWER_MAIN && track->number == 1 && lane_id && first &&
	    *first == lane_id && lane.tid < LULL_VIEWER_OWN_NUMBERS)
		track->tid = lane.tid;
}

/* A further track of the family. */
static struct track *add_track(struct lull_viewer_tracks *s, struct family *f, u32 family)
{
	const struct lull_viewer_sink *sink = s->viewer->sink;
	struct lull_viewer_track track = { .id = ++s->n_tracks, .number = (u32)f->tracks.n + 1 };
	struct lull_str name = LULL_STR_INIT;
	struct track *added;

	if (!f->tracks.n)
		lull_vec_init(&f->tracks, sizeof(struct track));
	if (family < s->n_lanes) {
		describe_lane(s, family, &name, &track);
	} else {
		lull_str_puts(&name, f->other.name);
		track.group = tell_group(s, f->other.process, f->other.device);
		track.order = family;
		track.is_counter = f->other.unit;
		track.unit = f->other.unit;
	}
	if (track.number > 1)
		lull_str_addf(&name, " (%u)", track.number);
	track.name = lull_str_text(&name);
	sink->track(sink->ctx, &track);
	lull_str_release(&name);
	added = lull_vec_push(&f->tracks);
	added->id = track.id;
	lull_vec_init(&added->ends, sizeof(u64));
	return added;
}

/* ---- placing ---- */

/* Whether [start, end) lies beside or inside what is open on the track; closes what has ended. */
static bool fits(struct track *track, u64 start_ns, u64 end_ns)
{
	const u64 *ends = track->ends.at;

	if (start_ns < track->last_start_ns)
		return false;
	while (track->ends.n && ends[track->ends.n - 1] <= start_ns)
		track->ends.n--;
	return !track->ends.n || ends[track->ends.n - 1] >= end_ns;
}

static struct track *find_track(struct lull_viewer_tracks *s, struct family *f,
				const struct lull_viewer_record *rec)
{
	u64 end_ns = lull_span_end_ns(rec->start_ns, rec->dur_ns);
	struct track *tracks = f->tracks.at, *found = NULL;

	for (size_t i = 0; i < f->tracks.n && !found; i++)
		if (fits(&tracks[i], rec->start_ns, end_ns))
			found = &tracks[i];
	if (!found && f->tracks.n < MAX_TRACKS)
		found = add_track(s, f, rec->family);
	if (found) {
		found->last_start_ns = rec->start_ns;
		*(u64 *)lull_vec_push(&found->ends) = end_ns;
	}
	return found;
}

/* Moments and values lie on the first track, whatever is open there. */
static struct track *first_track(struct lull_viewer_tracks *s, struct family *f, u32 family)
{
	return f->tracks.n ? f->tracks.at : add_track(s, f, family);
}

/* The value of a counter after this record; false if there is none yet. */
static bool count(struct family *f, const struct lull_viewer_record *rec, f64 *value)
{
	bool has_rate = f->has_last && rec->start_ns > f->last_ns;
	f64 now, growth;

	memcpy(&now, &rec->values[0], sizeof(now));
	growth = now - f->last_value;
	switch (f->other.counting) {
	case LULL_VIEWER_VALUE:
		*value = now;
		return true;
	case LULL_VIEWER_SUM:
		*value = f->sum += now;
		return true;
	case LULL_VIEWER_RATE:
		if (has_rate)
			*value = growth / ((f64)(rec->start_ns - f->last_ns) / 1e9);
		f->has_last = true;
		f->last_value = now;
		f->last_ns = rec->start_ns;
		return has_rate && growth >= 0;
	}
	return false;
}

static struct family *family_of(struct lull_viewer_tracks *s, u32 family)
{
	struct family **f = &s->lanes[family < s->n_lanes ? family : 0];

	if (family >= s->n_lanes)
		return lull_vec_get(&s->others, family - s->n_lanes);
	if (!*f)
		*f = lull_alloc(1, sizeof(**f));
	return *f;
}

void lull_viewer_place(struct lull_viewer *t, const struct lull_viewer_record *rec)
{
	struct lull_viewer_tracks *s = t->tracks;
	struct family *f = family_of(s, rec->family);
	struct lull_viewer_event event = { .type = rec->type,
					   .what = rec->what,
					   .start_ns = rec->start_ns,
					   .dur_ns = rec->dur_ns,
					   .flow = rec->flow,
					   .flow_id = rec->flow_id,
					   .n_values = rec->n_values };
	const struct track *track;

	memcpy(event.values, rec->values, sizeof(event.values));
	memcpy(event.value_ids, rec->value_ids, sizeof(event.value_ids));
	if (rec->type == LULL_VIEWER_COUNTER && !count(f, rec, &event.value))
		return;
	track = rec->type == LULL_VIEWER_SLICE ? find_track(s, f, rec)
					       : first_track(s, f, rec->family);
	if (!track) {
		t->n_left_out++;
		return;
	}
	event.track = track->id;
	t->n_events++;
	t->sink->event(t->sink->ctx, &event);
}
