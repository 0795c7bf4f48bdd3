/*
 * annotate: ranges, marks, steps and requests of include/lull.h.
 *
 * lull.h looks the function `lull_annotate_v1` up once; without an agent it finds nothing and its
 * calls do nothing. The table returned here is the whole interface.
 */
#include "agent/core/source.h"

#include "agent/cuda/cuda.h"
#include "agent/core/range.h"
#include "agent/core/schedule.h"
#include "agent/core/step_log.h"
#include "agent/nvtx/request_tell.h"
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

static void step(unsigned long long number)
{
	lull_schedule_step(number, 0);
}

static void step_end(void)
{
	lull_schedule_step(0, LULL_STEP_END);
}

static void start_recording(void)
{
	lull_schedule_program(true);
}

static void stop_recording(void)
{
	lull_schedule_program(false);
}

static int schedule(const struct lull_steps *steps)
{
	struct lull_schedule s = { steps->skip_first, steps->wait, steps->warmup, steps->active,
				   steps->repeat };

	return lull_schedule_set(&s);
}

/* Also while nothing is recorded, so that a recording that begins meanwhile knows the request. */
static void work(unsigned long long id)
{
	struct lull_text name = lull_text("request", 7);
	struct lull_thread *t = lull_thread();
	u64 one = id;

	if (t)
		t->request.current = id;
	lull_request_work(&name, &one, id ? 1 : 0);
}

static void request(unsigned long long id)
{
	struct lull_request r = { .id = id, .name = lull_text("request", 7) };

	lull_request_arrived(&r, 0);
	work(id);
}

static void mark_request(enum lull_request_kind kind, const char *text)
{
	struct lull_text name = lull_text(text, strlen(text));
	struct lull_thread *t = lull_thread();

	if (t && t->request.current)
		lull_request_mark(kind, t->request.current, &name);
}

static void token(void)
{
	mark_request(LULL_REQUEST_TOKEN, "token");
}

static void done(void)
{
	mark_request(LULL_REQUEST_ENDED, "done");
	work(0);
}

static int is_recording(void)
{
	lull_sources_passed();
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
		.start = start_recording,
		.stop = stop_recording,
		.schedule = schedule,
		.request = request,
		.work = work,
		.token = token,
		.done = done,
	};
	const struct lull_annotate_api *log = lull_step_log();

	return log ? log : &api;
}

const struct lull_source lull_source_annotate = {
	.start = NULL,
};
