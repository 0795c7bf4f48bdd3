/*
 * Which correlation numbers have both a call and work, as two bits each. Numbers grow from 1 in
 * each process, so bits in pages are all it takes: 10 M launches are some megabytes.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "export/viewer_int.h"
#include "model/link.h"

#define PAGE_NUMBERS 65536u /* correlation numbers of a page, two bits each: 16 KiB */
#define N_PAGES	     (1u << 16)
#define MAX_PAGES    8192u /* of all processes: 128 MB. Numbers beyond it get no arrows */

#define HAS_CALL 1u
#define HAS_WORK 2u

struct lull_viewer_flows {
	u8 ***pages; /* by process id, then page; NULL where nothing is */
	size_t n_processes;
	size_t n_pages; /* in all */
};

/* Keys are those of model/link.h: process and number. */
static u8 *page_of(const struct lull_viewer_flows *f, u64 key)
{
	u8 **pages = f->pages[key >> 32];

	return pages ? pages[(u32)key / PAGE_NUMBERS] : NULL;
}

static void mark(struct lull_viewer_flows *f, u64 key, unsigned bit)
{
	u32 at = (u32)key % PAGE_NUMBERS;
	u8 *page = page_of(f, key);

	if (!page && f->n_pages >= MAX_PAGES)
		return;
	if (!page) {
		if (!f->pages[key >> 32])
			f->pages[key >> 32] = lull_alloc(N_PAGES, sizeof(u8 *));
		page = lull_alloc(PAGE_NUMBERS / 4, 1);
		f->pages[key >> 32][(u32)key / PAGE_NUMBERS] = page;
		f->n_pages++;
	}
	page[at / 4] |= (u8)(bit << at % 4 * 2);
}

static bool is_linked(const struct lull_viewer_flows *f, u64 key)
{
	const u8 *page = page_of(f, key);
	u32 at = (u32)key % PAGE_NUMBERS;

	return page && (page[at / 4] >> at % 4 * 2 & 3) == (HAS_CALL | HAS_WORK);
}

/* All tables of work begin with the columns that are wanted, under the same names. */
static void mark_table(struct lull_viewer *t, struct lull_viewer_flows *f, enum lull_table id)
{
	const struct lull_table_desc *table = lull_table_find((u16)id);
	unsigned bit = id == LULL_TABLE_cuda_call ? HAS_CALL : HAS_WORK;
	struct lull_span window = lull_export_window(t->options);
	struct lull_link_columns link;
	const void *cols[LULL_MAX_COLS];
	struct lull_cursor c;
	size_t n;

	if (!lull_export_wants(t->options, table->name))
		return;
	lull_cursor_init(&c, t->reader, id, window.from_ns, window.to_ns);
	lull_cursor_want(&c, "start_ns");
	lull_cursor_want(&c, "dur_ns");
	lull_link_columns_init(&link, &c);
	while ((n = lull_cursor_next(&c, cols)) > 0) {
		const struct lull_link_rows rows = lull_link_rows_of(&link, cols);
		const u64 *start_ns = cols[0], *dur_ns = cols[1];

		for (size_t i = 0; i < n; i++) {
			u64 key = lull_link_rows_key(&rows, i);

			if (key && lull_span_holds(window, start_ns[i], dur_ns[i]))
				mark(f, key, bit);
		}
	}
	lull_cursor_release(&c);
}

struct lull_viewer_flows *lull_viewer_flows_new(struct lull_viewer *t)
{
	struct lull_viewer_flows *f = lull_alloc(1, sizeof(*f));

	f->n_processes = lull_reader_n_dim(t->reader, LULL_TABLE_process);
	f->pages = lull_alloc(f->n_processes + 1, sizeof(*f->pages));
	mark_table(t, f, LULL_TABLE_cuda_call);
	mark_table(t, f, LULL_TABLE_kernel);
	mark_table(t, f, LULL_TABLE_memcpy);
	mark_table(t, f, LULL_TABLE_memset);
	mark_table(t, f, LULL_TABLE_graph);
	return f;
}

void lull_viewer_flows_free(struct lull_viewer_flows *f)
{
	if (!f)
		return;
	for (size_t p = 0; p <= f->n_processes; p++) {
		for (size_t i = 0; f->pages[p] && i < N_PAGES; i++)
			free(f->pages[p][i]);
		free(f->pages[p]);
	}
	free(f->pages);
	free(f);
}

void lull_viewer_flow(struct lull_viewer *t, struct lull_viewer_record *rec, u32 process,
		      u32 correlation, enum lull_viewer_flow flow)
{
	u64 key = lull_link_key(process, correlation);

	if (!key || !is_linked(t->flows, key))
		return;
	rec->flow = (u8)flow;
	rec->flow_id = key;
}
