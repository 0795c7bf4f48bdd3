/*
 * um_sum: migrations and faults of unified memory by address.
 */
#include <stdlib.h>

#include "base/map.h"
#include "base/sort.h"
#include "base/time.h"
#include "base/vec.h"
#include "report/gpu.h"
#include "report/um.h"

static const struct lull_out_column columns[] = {
	{ .name = "Virtual Address",
	  .kind = LULL_OUT_TEXT,
	  .align = LULL_OUT_RIGHT,
	  .doc = "start of the memory that moved, or the page of the fault" },
	{ .name = "HtoD Migration Size",
	  .kind = LULL_OUT_FLOAT,
	  .unit = "MB",
	  .decimals = 3,
	  .doc = "moved from host to device" },
	{ .name = "DtoH Migration Size",
	  .kind = LULL_OUT_FLOAT,
	  .unit = "MB",
	  .decimals = 3,
	  .doc = "moved from device to host" },
	{ .name = "CPU Page Faults", .kind = LULL_OUT_INT, .doc = "faults of CPUs" },
	{ .name = "GPU Page Faults", .kind = LULL_OUT_INT, .doc = "faults of devices" },
	{ .name = "Migration Throughput",
	  .kind = LULL_OUT_FLOAT,
	  .unit = "MB/s",
	  .decimals = 3,
	  .doc = "bytes divided by the time of the move; empty if nothing moved" },
};

#define DEFAULT_ROWS 10

struct place {
	u64 address;
	struct lull_um_sum sum;
};

struct places {
	struct lull_map by_address;
	struct lull_vec all; /* struct place */
};

static void add(void *ctx, const struct lull_um_event *event)
{
	struct places *places = ctx;
	bool is_new;
	u32 *ix = lull_map_add(&places->by_address, event->address, &is_new);

	if (is_new) {
		*ix = (u32)places->all.n;
		((struct place *)lull_vec_push(&places->all))->address = event->address;
	}
	lull_um_add(&((struct place *)lull_vec_get(&places->all, *ix))->sum, event);
}

static u64 moved_bytes(const struct place *place)
{
	return place->sum.htod_bytes + place->sum.dtoh_bytes;
}

static int by_size(const void *a, const void *b)
{
	const struct place *x = a, *y = b;
	u64 x_faults = x->sum.n_cpu_faults + x->sum.n_gpu_faults;
	u64 y_faults = y->sum.n_cpu_faults + y->sum.n_gpu_faults;

	if (moved_bytes(x) != moved_bytes(y))
		return moved_bytes(x) < moved_bytes(y) ? 1 : -1;
	if (x_faults != y_faults)
		return x_faults < y_faults ? 1 : -1;
	return (x->address > y->address) - (x->address < y->address);
}

/* Move the root of a heap with the smallest place on top down to where it belongs. */
static void sift(struct place *heap, size_t n, size_t ix)
{
	for (size_t child; (child = 2 * ix + 1) < n; ix = child) {
		struct place swap = heap[ix];

		if (child + 1 < n && by_size(&heap[child + 1], &heap[child]) > 0)
			child++;
		if (by_size(&heap[ix], &heap[child]) >= 0)
			return;
		heap[ix] = heap[child];
		heap[child] = swap;
	}
}

/* The first n of them by size, in any order: sorting millions for ten rows takes seconds. */
static void keep_largest(struct lull_vec *all, size_t n)
{
	struct place *places = all->at;

	for (size_t i = n / 2; i-- > 0;)
		sift(places, n, i);
	for (size_t i = n; n && i < all->n; i++) {
		if (by_size(&places[i], &places[0]) >= 0)
			continue;
		places[0] = places[i];
		sift(places, n, 0);
	}
	all->n = n;
}

static void put(struct lull_out *out, const struct place *place)
{
	lull_out_row(out);
	lull_um_put_address(out, place->address);
	lull_out_f64(out, (f64)place->sum.htod_bytes / LULL_GPU_MB);
	lull_out_f64(out, (f64)place->sum.dtoh_bytes / LULL_GPU_MB);
	lull_out_i64(out, (i64)place->sum.n_cpu_faults);
	lull_out_i64(out, (i64)place->sum.n_gpu_faults);
	/* Divided by 0, no time leaves the cell empty. */
	lull_out_f64(out, (f64)moved_bytes(place) / LULL_GPU_MB /
				  ((f64)place->sum.moved_ns / (f64)LULL_NS_PER_S));
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	const struct place *place;
	struct places places;
	size_t n_rows;

	if (lull_report_arg_rows(options, DEFAULT_ROWS, &n_rows, err))
		return err->code;
	lull_map_init(&places.by_address);
	lull_vec_init(&places.all, sizeof(struct place));
	lull_um_each(r, options, add, &places);
	if (n_rows < places.all.n)
		keep_largest(&places.all, n_rows);
	if (places.all.n)
		lull_sort(places.all.at, places.all.n, sizeof(struct place), by_size);
	place = places.all.at;
	for (size_t i = 0; i < places.all.n; i++)
		put(out, &place[i]);
	lull_vec_release(&places.all);
	lull_map_release(&places.by_address);
	return LULL_OK;
}

const struct lull_report lull_report_um_sum = {
	.name = "um_sum",
	.old_name = "unifiedmemory",
	.display = "Unified Memory Analysis Summary",
	.summary = "migrations and page faults of unified memory by address",
	.help = "Migrations of unified memory between host and devices, and page faults of CPUs "
		"and devices, by virtual address; most bytes first. The first 10 rows are shown; "
		"rows=N changes that, -1 shows all.",
	.args = "rows=",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(um_event),
	.is_default = true,
	.run = run,
};
