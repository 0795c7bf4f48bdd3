/*
 * um_cpu_page_faults_sum: faults of CPUs on unified memory by instruction.
 */
#include <stdlib.h>

#include "base/map.h"
#include "base/sort.h"
#include "base/vec.h"
#include "report/um.h"

static const struct lull_out_column columns[] = {
	{ .name = "CPU Page Faults", .kind = LULL_OUT_INT, .doc = "how many" },
	{ .name = "CPU Instruction Address",
	  .kind = LULL_OUT_TEXT,
	  .align = LULL_OUT_RIGHT,
	  .doc = "the instruction that accessed the page; empty if not known" },
};

struct place {
	u64 pc;
	u64 n_faults;
};

struct places {
	struct lull_map by_pc;
	struct lull_vec all; /* struct place */
};

static void add(void *ctx, const struct lull_um_event *event)
{
	struct places *places = ctx;
	struct place *place;
	bool is_new;
	u32 *ix;

	if (event->kind != LULL_UM_CPU_FAULT)
		return;
	ix = lull_map_add(&places->by_pc, event->pc, &is_new);
	if (is_new) {
		*ix = (u32)places->all.n;
		((struct place *)lull_vec_push(&places->all))->pc = event->pc;
	}
	place = lull_vec_get(&places->all, *ix);
	place->n_faults += event->n_faults;
}

static int by_count(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->n_faults != y->n_faults)
		return x->n_faults < y->n_faults ? 1 : -1;
	return (x->pc > y->pc) - (x->pc < y->pc);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	const struct place *place;
	struct places places;

	(void)err;
	lull_map_init(&places.by_pc);
	lull_vec_init(&places.all, sizeof(struct place));
	lull_um_each(r, options, add, &places);
	if (places.all.n)
		lull_sort(places.all.at, places.all.n, sizeof(struct place), by_count);
	place = places.all.at;
	for (size_t i = 0; i < places.all.n; i++) {
		lull_out_row(out);
		lull_out_i64(out, (i64)place[i].n_faults);
		if (place[i].pc)
			lull_um_put_address(out, place[i].pc);
	}
	lull_vec_release(&places.all);
	lull_map_release(&places.by_pc);
	return LULL_OK;
}

const struct lull_report lull_report_um_cpu_page_faults_sum = {
	.name = "um_cpu_page_faults_sum",
	.old_name = "umcpupagefaults",
	.display = "Unified Memory CPU Page Faults Summary",
	.summary = "CPU page faults on unified memory by instruction",
	.help = "How often CPUs touched unified memory that was on a device, by the address of the "
		"instruction; most first.",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(um_event),
	.is_default = true,
	.empty = "no CPU accessed unified memory that was on a device",
	.run = run,
};
