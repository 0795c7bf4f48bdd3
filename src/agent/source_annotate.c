/*
 * annotate: ranges, marks and steps of include/lull.h.
 *
 * lull.h looks the function `lull_annotate_v1` up once; without an agent it finds nothing and its
 * calls do nothing. The table returned here is the whole interface.
 */
#include "agent/source.h"

#include "agent/range.h"
#include "lull.h"

static const struct lull_range_style style = { .api = LULL_API_ANNOTATE };

/* Nothing is recorded: this range may begin a recording. */
static void push_watched(const char *name)
{
	struct lull_text text = lull_text(name, strlen(name));
	struct lull_thread *t = lull_capture_begin(&text, &style.domain);

	if (t)
		lull_capture_hold_push(
			t, 0, lull_range_push(t, 0, lull_label(t, &text, &style), LULL_NO_TAIL));
}

static void push(const char *name)
{
	struct lull_thread *t = lull_recording();

	if (t) {
		struct lull_text text = lull_text(name, strlen(name));

		lull_range_push(t, 0, lull_label(t, &text, &style), LULL_NO_TAIL);
	} else if (lull_capture_is_watching()) {
		push_watched(name);
	}
}

static void pop(void)
{
	struct lull_thread *t = lull_recording();

	if (t)
		lull_range_pop(t, 0, LULL_NO_TAIL);
}

static void mark(const char *name)
{
	struct lull_thread *t = lull_recording();

	if (t) {
		struct lull_text text = lull_text(name, strlen(name));

		lull_range_mark(t, 0, lull_label(t, &text, &style), LULL_NO_TAIL);
	}
}

static void mark_value(const char *name, unsigned long long value)
{
	struct lull_thread *t = lull_recording();

	if (t) {
		struct lull_wire_payload payload = { .type = 1, .value = value };
		struct lull_tail tail = { &payload, sizeof(payload) };
		struct lull_text text = lull_text(name, strlen(name));

		lull_range_mark(t, 0, lull_label(t, &text, &style), tail);
	}
}

static void emit_step(u64 number, u32 is_end)
{
	struct lull_thread *t = lull_recording();
	struct lull_wire_step *e;

	if (!t)
		return;
	e = lull_reserve(t, LULL_EVENT_step, sizeof(*e));
	if (!e)
		return;
	e->head.a = is_end;
	e->number = number;
	lull_commit(t, sizeof(*e));
}

static void step(unsigned long long number)
{
	emit_step(number, 0);
}

static void step_end(void)
{
	emit_step(0, 1);
}

static int is_recording(void)
{
	return lull_has_recording();
}

const struct lull_annotate_api *lull_annotate_v1(void) __attribute__((visibility("default")));

const struct lull_annotate_api *lull_annotate_v1(void)
{
	static const struct lull_annotate_api api = {
		.size = sizeof(api),
		.push = push,
		.pop = pop,
		.mark = mark,
		.step = step,
		.step_end = step_end,
		.is_recording = is_recording,
		.mark_value = mark_value,
	};

	return &api;
}

const struct lull_source lull_source_annotate = {
	.name = "annotate",
	.bit = LULL_SOURCE_ANNOTATE,
};
