#include "compare/diff.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "compare/metric.h"
#include "trace/block.h"

/* Less than this share of the larger side is no change: clocks and caches move that much. */
#define LEAST_CHANGE 0.05

#define DIFF(name) extern const struct lull_diff_kind lull_diff_##name;
#include "compare/diffs.def"
#undef DIFF

const struct lull_diff_kind *const lull_diff_kinds[] = {
#define DIFF(name) &lull_diff_##name,
#include "compare/diffs.def"
#undef DIFF
	NULL,
};

void lull_diff_init(struct lull_diff *d, const struct lull_diff_kind *kind)
{
	*d = (struct lull_diff){ .kind = kind };
	lull_intern_init(&d->names);
	lull_vec_init(&d->items, sizeof(struct lull_diff_item));
}

void lull_diff_release(struct lull_diff *d)
{
	lull_intern_release(&d->names);
	lull_vec_release(&d->items);
}

void lull_diff_add(struct lull_diff *d, struct lull_reader *r, int side,
		   const struct lull_windows *windows)
{
	d->side = side;
	d->windows = !windows ? NULL : d->kind->is_of_host ? &windows->host : &windows->device;
	d->kind->collect(r, d);
}

void lull_diff_count(struct lull_diff *d, const char *name, u64 start_ns, u64 dur_ns,
		     u64 size_bytes)
{
	struct lull_diff_item *item;
	u32 number;

	if (d->windows && lull_metric_window(d->windows, start_ns) == SIZE_MAX)
		return;
	number = lull_intern_add(&d->names, name, strlen(name));
	if (number == d->items.n) {
		item = lull_vec_push(&d->items);
		item->name = number;
	}
	item = lull_vec_get(&d->items, number);
	item->n[d->side]++;
	item->total_ns[d->side] += (f64)dur_ns;
	item->size_bytes[d->side] += (f64)size_bytes;
}

static size_t column_ix(const struct lull_table_desc *table, const char *name)
{
	size_t ix = 0;

	while (strcmp(table->cols[ix].name, name) != 0)
		ix++;
	return ix;
}

/* The string id of each row's name in a DIM table, by row id; NULL without a table. */
static u32 *names_of(struct lull_reader *r, enum lull_table labels)
{
	const struct lull_table_desc *table = labels ? lull_table_find((u16)labels) : NULL;
	const u8 *rows;
	u32 *names;
	size_t n, at;

	if (!table)
		return NULL;
	rows = lull_reader_dim(r, labels, &n);
	at = table->cols[column_ix(table, "name")].row_off;
	names = lull_alloc(n + 1, sizeof(*names));
	names[0] = 0;
	for (size_t i = 0; i < n; i++)
		memcpy(&names[i + 1], rows + i * table->row_bytes + at, sizeof(*names));
	return names;
}

void lull_diff_count_table(struct lull_diff *d, struct lull_reader *r, enum lull_table table,
			   const char *column, enum lull_table labels)
{
	const struct lull_table_desc *desc = lull_table_find((u16)table);
	size_t start_ix = column_ix(desc, "start_ns"), dur_ix = column_ix(desc, "dur_ns"), n;
	size_t ix = column_ix(desc, column);
	u32 *names = names_of(r, labels);
	const void *cols[LULL_MAX_COLS];
	struct lull_cursor c;

	lull_cursor_init(&c, r, table, 0, UINT64_MAX);
	lull_cursor_want(&c, "start_ns");
	lull_cursor_want(&c, "dur_ns");
	lull_cursor_want(&c, column);
	while ((n = lull_cursor_next(&c, cols)) > 0) {
		const u64 *start_ns = cols[start_ix], *dur_ns = cols[dur_ix];
		const u32 *ids = cols[ix];

		for (size_t i = 0; i < n; i++)
			lull_diff_count(d,
					lull_reader_string(r, names ? names[ids[i]] : ids[i], NULL),
					start_ns[i], dur_ns[i], 0);
	}
	lull_cursor_release(&c);
	free(names);
}

static int by_change(const void *a, const void *b)
{
	const struct lull_diff_item *x = a, *y = b;
	f64 of_x = fabs(x->total_ns[LULL_AFTER] - x->total_ns[LULL_BEFORE]);
	f64 of_y = fabs(y->total_ns[LULL_AFTER] - y->total_ns[LULL_BEFORE]);

	if (of_x != of_y)
		return of_x > of_y ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

/* Where the number at the end of a name begins; its length if there is none. */
static size_t number_off(const char *name)
{
	size_t len = strlen(name);

	while (len && name[len - 1] >= '0' && name[len - 1] <= '9')
		len--;
	return len;
}

/*
 * Names that were met once on a side and end in a number (step_1, step_2, ...) count one thing, not
 * many: they become one name with # for the number.
 */
static void merge_numbered(struct lull_diff *d)
{
	struct lull_diff_item *items = d->items.at;
	size_t n = d->items.n;

	for (size_t i = 0; i < n; i++) {
		const char *name = lull_diff_name(d, &items[i]);
		size_t len = number_off(name);
		struct lull_str merged = LULL_STR_INIT;
		struct lull_diff_item *to;
		u32 number;

		if (!len || !name[len] || items[i].n[0] > 1 || items[i].n[1] > 1)
			continue;
		lull_str_addf(&merged, "%.*s#", (int)len, name);
		number = lull_intern_add(&d->names, merged.at, merged.len);
		lull_str_release(&merged);
		if (number == d->items.n) {
			to = lull_vec_push(&d->items);
			to->name = number;
			items = d->items.at;
		}
		to = &items[number];
		for (int side = 0; side < 2; side++) {
			to->n[side] += items[i].n[side];
			to->total_ns[side] += items[i].total_ns[side];
			to->size_bytes[side] += items[i].size_bytes[side];
			items[i].n[side] = items[i].total_ns[side] = 0;
		}
	}
}

/* Drop what was merged into another. */
static void drop_empty(struct lull_diff *d)
{
	struct lull_diff_item *items = d->items.at;
	size_t n = 0;

	for (size_t i = 0; i < d->items.n; i++)
		if (items[i].n[0] > 0 || items[i].n[1] > 0)
			items[n++] = items[i];
	d->items.n = n;
}

void lull_diff_finish(struct lull_diff *d, f64 n_before, f64 n_after)
{
	struct lull_diff_item *items;
	const f64 n[2] = { n_before, n_after };

	merge_numbered(d);
	drop_empty(d);
	items = d->items.at;
	for (size_t i = 0; i < d->items.n; i++)
		for (int side = 0; side < 2; side++) {
			items[i].n[side] /= n[side];
			items[i].total_ns[side] /= n[side];
			items[i].size_bytes[side] /= n[side];
		}
	if (d->items.n)
		lull_sort(items, d->items.n, sizeof(*items), by_change);
}

const char *lull_diff_name(const struct lull_diff *d, const struct lull_diff_item *item)
{
	return lull_intern_get(&d->names, item->name);
}

static bool differ(const f64 value[2])
{
	return fabs(value[1] - value[0]) > LEAST_CHANGE * fmax(fabs(value[0]), fabs(value[1]));
}

const char *lull_diff_state(const struct lull_diff_item *item)
{
	if (item->n[LULL_BEFORE] == 0)
		return "appeared";
	if (item->n[LULL_AFTER] == 0)
		return "vanished";
	return differ(item->n) || differ(item->total_ns) || differ(item->size_bytes) ? "changed"
										     : "same";
}
