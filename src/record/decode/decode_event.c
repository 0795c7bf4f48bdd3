#include "record/decode/decode_event.h"

/* What to do with each event, and its smallest size: checked once here, so no decoder has to. */
static const struct {
	lull_decode_fn *run;
	u16 min_bytes;
} decoders[] = {
#define EVENT(id, name, layout, doc) \
	[id] = { lull_decode_##name, sizeof(struct lull_wire_##layout) },
#include "wire/wire.def"
#undef EVENT
};

bool lull_decode(struct lull_recording *r, struct lull_task *task, u32 level,
		 const struct lull_event *event)
{
	if (event->type >= LULL_COUNT_OF(decoders) || !decoders[event->type].run ||
	    event->size_bytes < decoders[event->type].min_bytes)
		return false;
	decoders[event->type].run(r, task, level & 1, event);
	return true;
}

u64 lull_decode_time(const struct lull_recording *r, const struct lull_event *event)
{
	return lull_recording_ns(r, lull_clock_ns_of(r->clock, event->counter));
}

u64 lull_decode_dur(const struct lull_recording *r, const struct lull_event *event, u64 dur_ticks)
{
	u64 start_ns, dur_ns = lull_clock_dur_ns(r->clock, dur_ticks);

	if (!r->axis)
		return dur_ns;
	start_ns = lull_clock_ns_of(r->clock, event->counter);
	return lull_axis_ns(r->axis, start_ns + dur_ns) - lull_axis_ns(r->axis, start_ns);
}
