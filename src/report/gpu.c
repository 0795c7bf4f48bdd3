#include "report/gpu.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/device.h"
#include "model/names.h"

/* Length of "_v3020", the suffix of functions whose parameters changed with CUDA 3.2 and so on. */
#define VERSION_LEN 6

void lull_gpu_call_name(struct lull_str *to, struct lull_reader *r, u32 name)
{
	size_t len;
	const char *text = lull_reader_string(r, name, &len);

	lull_str_add(to, text, lull_names_call_len(text, len));
}

void lull_gpu_put_call(struct lull_out *out, struct lull_reader *r, u32 name)
{
	lull_gpu_call_name(lull_out_text_begin(out), r, name);
	lull_out_text_end(out);
}

void lull_gpu_operation(struct lull_str *to, unsigned kind, u32 what)
{
	if (kind == LULL_WORK_MEMCPY)
		lull_str_addf(to, "[CUDA memcpy %s]", lull_names_copy(what));
	else if (kind == LULL_WORK_MEMSET)
		lull_str_puts(to, "[CUDA memset]");
	else
		lull_str_addf(to, "[CUDA graph %u]", what);
}

void lull_gpu_work_name(struct lull_str *to, struct lull_kernels *kernels,
			const struct lull_work *work)
{
	if (work->kind == LULL_WORK_KERNEL)
		lull_str_puts(to, lull_kernels_text(kernels, lull_kernels_name(kernels, work)));
	else
		lull_gpu_operation(to, work->kind, work->what);
}

/* "%4u", which a trace of millions of kernels needs six times a row. */
static void put_padded(struct lull_str *to, u32 number)
{
	static const char blanks[] = "   ";
	size_t n_digits = number < 10 ? 1 : number < 100 ? 2 : number < 1000 ? 3 : 4;

	lull_str_add(to, blanks, 4 - n_digits);
	lull_str_add_i64(to, number);
}

void lull_gpu_put_shape(struct lull_out *out, const u32 shape[3])
{
	struct lull_str *text = lull_out_text_begin(out);

	put_padded(text, shape[0]);
	lull_str_add(text, " ", 1);
	put_padded(text, shape[1]);
	lull_str_add(text, " ", 1);
	put_padded(text, shape[2]);
	lull_out_text_end(out);
}

void lull_gpu_device_name(struct lull_str *to, struct lull_reader *r, u32 device)
{
	size_t n;
	const struct lull_device_row *devices = lull_reader_dim(r, LULL_TABLE_device, &n);

	device = lull_device_row_of(r, device);
	if (!device)
		return;
	lull_str_puts(to, lull_reader_string(r, devices[device - 1].name, NULL));
	lull_str_puts(to, " (");
	lull_str_add_i64(to, devices[device - 1].device_id);
	lull_str_puts(to, ")");
}

struct lull_lane_row lull_gpu_lane(struct lull_reader *r, u32 lane)
{
	size_t n;
	const struct lull_lane_row *lanes = lull_reader_dim(r, LULL_TABLE_lane, &n);

	return lane ? lanes[lane - 1] : (struct lull_lane_row){ 0 };
}

u32 lull_gpu_device_id(struct lull_reader *r, u32 lane)
{
	return lull_device_number(r, lull_gpu_lane(r, lane).device);
}

u32 *lull_gpu_device_ids(struct lull_reader *r)
{
	u32 n = lull_reader_n_dim(r, LULL_TABLE_lane);
	u32 *ids = lull_alloc((size_t)n + 1, sizeof(*ids));

	for (u32 lane = 1; lane <= n; lane++)
		ids[lane] = lull_gpu_device_id(r, lane);
	return ids;
}

void lull_gpu_put_green(struct lull_out *out, struct lull_reader *r,
			const struct lull_lane_row *stream)
{
	(void)r;
	(void)stream;
	lull_out_skip(out);
}

/* ---- sums ---- */

/*
 * The key of a group is its name times N_CATEGORIES plus its category: small numbers, which a sum
 * finds in an array.
 */
enum category { CALL, KERNEL, COPY, SET, GRAPH, N_CATEGORIES };

static const struct {
	const char *name;
	unsigned kind;
} categories[] = {
	[CALL] = { "CUDA_API", LULL_GPU_CALLS },
	[KERNEL] = { "CUDA_KERNEL", LULL_WORK_KERNEL },
	[COPY] = { "MEMORY_OPER", LULL_WORK_MEMCPY },
	[SET] = { "MEMORY_OPER", LULL_WORK_MEMSET },
	[GRAPH] = { "CUDA_GRAPH", LULL_WORK_GRAPH },
};

struct gpu_sum {
	struct lull_reader *reader;
	const struct lull_report_options *options;
	unsigned kinds;
	bool has_category;
	struct lull_kernels kernels;
	struct lull_intern calls; /* names without versions */
	struct lull_vec by_name;  /* u32 by string id: number in calls + 1, 0 if not met yet */
};

static enum category category_of(unsigned kind)
{
	enum category c = CALL;

	while (categories[c].kind != kind)
		c++;
	return c;
}

static u32 number_of_call(struct gpu_sum *s, u32 name)
{
	struct lull_str text = LULL_STR_INIT;
	u32 *number;

	if (name >= s->by_name.n)
		lull_vec_extend(&s->by_name, name + 1 - s->by_name.n);
	number = lull_vec_get(&s->by_name, name);
	if (!*number) {
		lull_gpu_call_name(&text, s->reader, name);
		*number = lull_intern_add(&s->calls, lull_str_text(&text), text.len) + 1;
		lull_str_release(&text);
	}
	return *number - 1;
}

static void scan_calls(struct gpu_sum *s, struct lull_sum *sum)
{
	struct lull_cuda_call_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, s->reader, LULL_TABLE_cuda_call, s->options->from_ns,
			 s->options->to_ns);
	lull_cursor_want(&c, "start_ns");
	lull_cursor_want(&c, "dur_ns");
	lull_cursor_want(&c, "name");
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			u64 key = (u64)number_of_call(s, cols.name[i]) * N_CATEGORIES + CALL;

			if (lull_report_covers(s->options, cols.start_ns[i], cols.dur_ns[i]))
				lull_sum_add(sum, lull_sum_group(sum, key), cols.dur_ns[i]);
		}
	}
	lull_cursor_release(&c);
}

static u64 kernel_key(u32 name)
{
	return (u64)name * N_CATEGORIES + KERNEL;
}

/*
 * Kernels by name, when there is no filter and no range in their names: all that is needed of them
 * is how they were launched, and how long they took.
 */
static void scan_kernels(const struct gpu_sum *s, struct lull_sum *sum, const u32 *groups)
{
	struct lull_kernel_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, s->reader, LULL_TABLE_kernel, 0, UINT64_MAX);
	lull_cursor_want(&c, "dur_ns");
	lull_cursor_want(&c, "launch");
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		lull_sum_add_rows(sum, groups, cols.launch, cols.dur_ns, n);
	lull_cursor_release(&c);
}

static void scan_all_kernels(struct gpu_sum *s, struct lull_sum *sum)
{
	u32 n_launches = lull_reader_n_dim(s->reader, LULL_TABLE_launch);
	u32 *groups = lull_alloc((size_t)n_launches + 1, sizeof(*groups));

	for (u32 launch = 0; launch <= n_launches; launch++) {
		struct lull_work kernel = { .what = launch };

		groups[launch] =
			lull_sum_group(sum, kernel_key(lull_kernels_name(&s->kernels, &kernel)));
	}
	scan_kernels(s, sum, groups);
	free(groups);
}

static void scan(void *ctx, struct lull_sum *sum)
{
	struct gpu_sum *s = ctx;
	struct lull_span window = lull_report_window(s->options);
	bool is_plain = !s->kernels.has_ranges && !window.from_ns && window.to_ns == UINT64_MAX;
	unsigned kinds = s->kinds;
	struct lull_work_cursor c;
	struct lull_work work;

	if (kinds & LULL_GPU_CALLS)
		scan_calls(s, sum);
	if (kinds & LULL_WORK_KERNEL && is_plain) {
		scan_all_kernels(s, sum);
		kinds &= ~(unsigned)LULL_WORK_KERNEL;
	}
	lull_work_begin(&c, s->reader, kinds, lull_kernels_wants(&s->kernels), window);
	while (lull_work_next(&c, &work)) {
		u64 name = work.what;

		if (!lull_report_covers(s->options, work.start_ns, work.dur_ns))
			continue;
		if (work.kind == LULL_WORK_KERNEL)
			name = lull_kernels_name(&s->kernels, &work);
		else if (work.kind == LULL_WORK_MEMCPY)
			name = lull_names_copy_kind(work.what);
		lull_sum_add(sum, lull_sum_group(sum, name * N_CATEGORIES + category_of(work.kind)),
			     work.dur_ns);
	}
	lull_work_end(&c);
}

static void put_names(void *ctx, struct lull_out *out, const struct lull_sum_group *group)
{
	struct gpu_sum *s = ctx;
	enum category category = group->key % N_CATEGORIES;
	u32 name = (u32)(group->key / N_CATEGORIES);
	struct lull_str text = LULL_STR_INIT;

	if (s->has_category)
		lull_out_text(out, categories[category].name);
	if (category == CALL)
		lull_str_puts(&text, lull_intern_get(&s->calls, name));
	else if (category == KERNEL)
		lull_str_puts(&text, lull_kernels_text(&s->kernels, name));
	else
		lull_gpu_operation(&text, categories[category].kind, name);
	lull_out_text(out, lull_str_text(&text));
	lull_str_release(&text);
}

void lull_gpu_sum(struct lull_reader *r, struct lull_out *out,
		  const struct lull_report_options *options, unsigned kinds, bool has_category)
{
	struct gpu_sum s = {
		.reader = r, .options = options, .kinds = kinds, .has_category = has_category
	};
	struct lull_sum sum;

	lull_kernels_init(&s.kernels, r, options);
	lull_intern_init(&s.calls);
	lull_vec_init(&s.by_name, sizeof(u32));
	lull_sum_init(&sum);
	lull_sum_run(&sum, scan, &s);
	lull_sum_write(&sum, out, put_names, &s);
	lull_sum_release(&sum);
	lull_vec_release(&s.by_name);
	lull_intern_release(&s.calls);
	lull_kernels_release(&s.kernels);
}
