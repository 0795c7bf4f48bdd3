#include "report/um.h"

#include <inttypes.h>

#include "base/str.h"

void lull_um_each(struct lull_reader *r, const struct lull_report_options *options,
		  lull_um_visit *visit, void *ctx)
{
	struct lull_um_event_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, r, LULL_TABLE_um_event, options->from_ns, options->to_ns);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			struct lull_um_event event = {
				.start_ns = cols.start_ns[i],
				.dur_ns = cols.dur_ns[i],
				.address = cols.address[i],
				.size_bytes = cols.size_bytes[i],
				.n_faults = cols.n_faults[i],
				.pc = cols.pc[i],
				.kind = cols.kind[i],
			};

			if (lull_report_covers(options, event.start_ns, event.dur_ns))
				visit(ctx, &event);
		}
	}
	lull_cursor_release(&c);
}

void lull_um_add(struct lull_um_sum *sum, const struct lull_um_event *event)
{
	switch (event->kind) {
	case LULL_UM_HTOD:
		sum->htod_bytes += event->size_bytes;
		sum->moved_ns += event->dur_ns;
		break;
	case LULL_UM_DTOH:
		sum->dtoh_bytes += event->size_bytes;
		sum->moved_ns += event->dur_ns;
		break;
	case LULL_UM_CPU_FAULT:
		sum->n_cpu_faults += event->n_faults;
		break;
	case LULL_UM_GPU_FAULT:
		sum->n_gpu_faults += event->n_faults;
		break;
	default:
		break;
	}
}

void lull_um_put_address(struct lull_out *out, u64 address)
{
	struct lull_str text = LULL_STR_INIT;

	lull_str_addf(&text, "0x%" PRIx64, address);
	lull_out_text(out, lull_str_text(&text));
	lull_str_release(&text);
}
