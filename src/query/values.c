#include "query/values.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "model/device.h"
#include "model/names.h"
#include "model/words.h"
#include "symbol/demangle.h"

/* A made table: what `path` and `fn` make of each row id of a dimension. */
struct lut {
	const struct lull_table_desc *dim;
	const char *path;
	size_t path_len;
	lull_value_fn *fn;
	bool is_zero_null;
	i64 *values;
};

/* More strings than the writer ever writes mean a damaged file. */
#define MAX_STRINGS (16u << 20)

void lull_values_init(struct lull_values *v, struct lull_reader *r, const bool *is_stopped)
{
	*v = (struct lull_values){ .reader = r, .is_stopped = is_stopped, .window = LULL_SPAN_ALL };
	lull_vec_init(&v->luts, sizeof(struct lut));
	lull_intern_init(&v->extra);
	lull_map_init(&v->domains);
	v->n_strings = lull_reader_n_strings(r);
	if (v->n_strings > MAX_STRINGS)
		v->n_strings = MAX_STRINGS;
}

void lull_values_release(struct lull_values *v)
{
	struct lut *luts = v->luts.at;

	for (size_t i = 0; i < v->luts.n; i++)
		free(luts[i].values);
	lull_vec_release(&v->luts);
	lull_intern_release(&v->extra);
	lull_map_release(&v->domains);
}

/* ---- strings ---- */

/* Bare names of kernels, the only strings that nsys has besides ours. */
static u32 add_short(struct lull_values *v, u32 name)
{
	size_t len;
	const char *base = lull_base_name(lull_reader_string(v->reader, name, NULL), &len);

	/* The number of a piece does not tell its length: the NUL ends it. */
	char *copy = lull_strndup(base, len);
	u32 number = lull_intern_add(&v->extra, copy, len + 1);

	free(copy);
	return v->n_strings + 1 + number;
}

static void add_extra(struct lull_values *v)
{
	size_t n;
	const struct lull_launch_row *launches = lull_reader_dim(v->reader, LULL_TABLE_launch, &n);

	if (v->has_extra)
		return;
	v->has_extra = true;
	for (size_t i = 0; i < n; i++)
		add_short(v, launches[i].name);
}

u32 lull_values_n_strings(struct lull_values *v)
{
	add_extra(v);
	return v->n_strings + (u32)v->extra.offsets.n;
}

const char *lull_values_string(struct lull_values *v, u32 id, size_t *len)
{
	const char *text;

	if (id <= v->n_strings)
		return lull_reader_string(v->reader, id, len);
	text = lull_intern_get(&v->extra, id - v->n_strings - 1);
	*len = strlen(text);
	return text;
}

/* ---- functions ---- */

static i64 value_short(struct lull_values *v, i64 name)
{
	add_extra(v);
	return add_short(v, (u32)name);
}

static i64 value_gpid(struct lull_values *v, i64 process)
{
	size_t n;
	const struct lull_process_row *rows = lull_reader_dim(v->reader, LULL_TABLE_process, &n);

	return process ? lull_nsys_id(rows[process - 1].pid, 0) : LULL_VALUE_NULL;
}

static i64 value_gtid(struct lull_values *v, i64 lane)
{
	size_t n, n_processes;
	const struct lull_lane_row *lanes = lull_reader_dim(v->reader, LULL_TABLE_lane, &n);
	const struct lull_process_row *processes =
		lull_reader_dim(v->reader, LULL_TABLE_process, &n_processes);
	u32 process = lane ? lanes[lane - 1].process : 0;

	if (!lane)
		return LULL_VALUE_NULL;
	return lull_nsys_id(process ? processes[process - 1].pid : 0, lanes[lane - 1].tid);
}

i64 lull_values_domain(struct lull_values *v, i64 name)
{
	size_t n;
	const struct lull_label_row *labels = lull_reader_dim(v->reader, LULL_TABLE_label, &n);
	const u32 *number;

	for (size_t i = 0; i < n && !v->has_domains; i++) {
		bool is_new;
		u32 *at;

		if (!labels[i].domain)
			continue;
		at = lull_map_add(&v->domains, labels[i].domain, &is_new);
		if (is_new)
			*at = (u32)v->domains.n;
	}
	v->has_domains = true;
	number = name ? lull_map_find(&v->domains, (u64)name) : NULL;
	return number ? *number : 0;
}

/* CUPTI counts kinds of memory from 1 and has 0 for unknown; nsys counts from 0 and has 7. */
static i64 value_mem_kind(struct lull_values *v, i64 kind)
{
	(void)v;
	return kind ? kind - 1 : 7;
}

/* eventClass of a call: 0 runtime, 1 driver. */
static i64 value_call_class(struct lull_values *v, i64 api)
{
	(void)v;
	return api == 1;
}

/* eventType of a range: 59 push/pop, 60 start/end. */
static i64 value_range_type(struct lull_values *v, i64 flags)
{
	(void)v;
	return flags & 4 ? 60 : 59;
}

static i64 value_memory_oper(struct lull_values *v, i64 operation)
{
	(void)v;
	return operation == 2;
}

/* CUPTI's kinds of overhead are 1 and multiples of 65536. */
static i64 value_overhead(struct lull_values *v, i64 kind)
{
	(void)v;
	if (kind == 1)
		return 2;
	return kind % 65536 == 0 && kind > 0 && kind <= 6 * 65536 ? kind / 65536 + 2 : 1;
}

static i64 value_i32(struct lull_values *v, i64 bits)
{
	(void)v;
	return (i32)(u32)bits;
}

/* The bits of a float as those of a double. */
static i64 value_f32(struct lull_values *v, i64 bits)
{
	u32 low = (u32)bits;
	float narrow;
	f64 wide;

	(void)v;
	memcpy(&narrow, &low, sizeof(narrow));
	wide = (f64)narrow;
	memcpy(&bits, &wide, sizeof(bits));
	return bits;
}

static i64 value_device(struct lull_values *v, i64 device)
{
	return lull_device_number(v->reader, (u32)device);
}

/* enum lull_kernel_class of a kernel's name. */
static i64 value_kernel_class(struct lull_values *v, i64 name)
{
	return lull_kernel_class_of(lull_reader_string(v->reader, (u32)name, NULL));
}

static const char *name_kernel_class(u32 class)
{
	return lull_kernel_class_name((enum lull_kernel_class) class);
}

static const struct {
	const char *name;
	lull_value_fn *fn;
} fns[] = {
	{ "short", value_short },
	{ "gpid", value_gpid },
	{ "gtid", value_gtid },
	{ "domain", lull_values_domain },
	{ "mem_kind", value_mem_kind },
	{ "call_class", value_call_class },
	{ "range_type", value_range_type },
	{ "memory_oper", value_memory_oper },
	{ "overhead", value_overhead },
	{ "i32", value_i32 },
	{ "f32", value_f32 },
	{ "device", value_device },
	{ "kernel_class", value_kernel_class },
};

lull_value_fn *lull_values_fn(const char *name, size_t len)
{
	for (size_t i = 0; i < LULL_COUNT_OF(fns); i++)
		if (strlen(fns[i].name) == len && !memcmp(fns[i].name, name, len))
			return fns[i].fn;
	return NULL;
}

lull_name_fn *lull_values_names(const char *name, size_t len)
{
	static const struct {
		const char *name;
		lull_name_fn *names;
	} lists[] = {
		{ "copy_name", lull_names_copy },
		{ "memory_name", lull_names_memory },
		{ "kernel_class", name_kernel_class },
	};

	for (size_t i = 0; i < LULL_COUNT_OF(lists); i++)
		if (strlen(lists[i].name) == len && !memcmp(lists[i].name, name, len))
			return lists[i].names;
	return NULL;
}

/* ---- paths ---- */

/* The value at the end of the path that begins at row `id` of `dim`; 0 where a row is missing. */
static i64 follow(struct lull_values *v, const struct lull_table_desc *dim, i64 id,
		  const char *path, size_t len)
{
	while (id && len && dim) {
		size_t step = 0, n;
		const u8 *rows = lull_reader_dim_rows(v->reader, dim, &n);
		char name[32] = "";
		int col;

		while (step < len && path[step] != '.')
			step++;
		memcpy(name, path, step < sizeof(name) ? step : sizeof(name) - 1);
		col = lull_table_column(dim, name);
		if (col < 0)
			return 0;
		id = (i64)lull_load(rows + (size_t)(id - 1) * dim->row_bytes +
					    dim->cols[col].row_off,
				    dim->cols[col].size_bytes);
		dim = lull_table_by_name(dim->cols[col].type);
		step += step < len;
		path += step;
		len -= step;
	}
	return id;
}

const i64 *lull_values_lut(struct lull_values *v, const struct lull_table_desc *dim,
			   const struct lull_cell *cell)
{
	struct lut *luts = v->luts.at;
	struct lut lut = { dim, cell->path, cell->path_len, cell->fn, cell->is_zero_null, NULL };
	u32 n = lull_reader_n_dim(v->reader, dim->id);

	for (size_t i = 0; i < v->luts.n; i++)
		if (luts[i].dim == dim && luts[i].fn == cell->fn &&
		    luts[i].is_zero_null == cell->is_zero_null &&
		    luts[i].path_len == cell->path_len &&
		    !memcmp(luts[i].path, cell->path, cell->path_len))
			return luts[i].values;
	lut.values = lull_alloc((size_t)n + 1, sizeof(i64));
	for (u32 id = 0; id <= n; id++) {
		i64 value = follow(v, dim, id, cell->path, cell->path_len);

		if (cell->is_zero_null && !value)
			lut.values[id] = LULL_VALUE_NULL;
		else
			lut.values[id] = cell->fn ? cell->fn(v, value) : value;
	}
	lull_vec_add(&v->luts, &lut, 1);
	return lut.values;
}
