/* What the model knows, as tables: idle times of devices, and steps. */
#include "query/made.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "model/busy.h"
#include "model/step.h"
#include "query/values.h"

/* Idle times shorter than this are the pace of the device, not a wait; and there are millions. */
#define MIN_IDLE_NS 1000u

struct idle {
	struct lull_made_rows *rows;
	struct lull_values *values;
	const struct lull_device_row *devices;
	const struct lull_launch_row *launches;
};

static void put_work(const struct idle *idle, const struct lull_work *work)
{
	struct lull_reader *r = idle->values->reader;
	const char *text;
	size_t len;

	if (!work) {
		lull_rows_null(idle->rows);
		return;
	}
	switch (work->kind) {
	case LULL_WORK_KERNEL:
		text = work->what ? lull_reader_string(r, idle->launches[work->what - 1].name, &len)
				  : "";
		lull_rows_text(idle->rows, text, strlen(text));
		return;
	case LULL_WORK_MEMCPY:
		lull_rows_text(idle->rows, "[copy]", 6);
		return;
	case LULL_WORK_MEMSET:
		lull_rows_text(idle->rows, "[memset]", 8);
		return;
	default:
		lull_rows_text(idle->rows, "[graph]", 7);
	}
}

static void visit(void *ctx, const struct lull_busy_piece *piece)
{
	const struct idle *idle = ctx;
	u64 dur_ns = piece->span.to_ns - piece->span.from_ns;

	if (piece->running || dur_ns < MIN_IDLE_NS)
		return;
	lull_rows_add(idle->rows);
	lull_rows_int(idle->rows, (i64)piece->span.from_ns);
	lull_rows_int(idle->rows, (i64)piece->span.to_ns);
	lull_rows_int(idle->rows, (i64)dur_ns);
	lull_rows_int(idle->rows, idle->devices[piece->track - 1].device_id);
	put_work(idle, piece->before);
	put_work(idle, piece->after);
}

void lull_made_idle(struct lull_made_rows *rows, struct lull_values *v)
{
	struct idle idle = { .rows = rows, .values = v };
	u32 *tracks = lull_busy_devices(v->reader);
	size_t n;

	idle.devices = lull_reader_dim(v->reader, LULL_TABLE_device, &n);
	idle.launches = lull_reader_dim(v->reader, LULL_TABLE_launch, &n);
	lull_busy_run(v->reader, tracks, v->window, visit, &idle);
	free(tracks);
}

void lull_made_steps(struct lull_made_rows *rows, struct lull_values *v)
{
	size_t n_lanes, n_processes;
	const struct lull_lane_row *lanes = lull_reader_dim(v->reader, LULL_TABLE_lane, &n_lanes);
	const struct lull_process_row *processes =
		lull_reader_dim(v->reader, LULL_TABLE_process, &n_processes);
	const struct lull_step *step;
	const char *source;
	struct lull_steps steps;

	lull_steps_init_any(&steps, v->reader, v->window);
	step = steps.all.at;
	for (size_t i = 0; i < steps.all.n; i++, step++) {
		lull_rows_add(rows);
		lull_rows_int(rows, (i64)step->number);
		lull_rows_int(rows, (i64)step->start_ns);
		lull_rows_int(rows, (i64)(step->start_ns + step->dur_ns));
		lull_rows_int(rows, (i64)step->dur_ns);
		lull_rows_int(rows, (i64)step->busy_ns);
		lull_rows_int(rows, (i64)(step->dur_ns - step->busy_ns));
		lull_rows_int(rows, (i64)step->n_launches);
		lull_rows_int(rows, (i64)step->size_bytes);
		if (step->lane && lanes[step->lane - 1].process) {
			lull_rows_int(rows, processes[lanes[step->lane - 1].process - 1].pid);
			lull_rows_int(rows, lanes[step->lane - 1].tid);
		} else {
			lull_rows_null(rows);
			lull_rows_null(rows);
		}
		source = lull_rounds_word(step->source);
		lull_rows_text(rows, source, strlen(source));
	}
	lull_steps_release(&steps);
}
