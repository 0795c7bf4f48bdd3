/*
 * meta: what there is to see - the report, its rows and lanes, and the small picture of it all.
 */
#include "page/page.h"

#include <stdlib.h>
#include <string.h>

#include "base/convert.h"
#include "base/str.h"
#include "model/device.h"
#include "report/report.h"
#include "timeline/curve.h"
#include "trace/issue.h"
#include "wire/request_mark.h"

#define MINIMAP_BUCKETS 800u

#define pair_u64  lull_page_pair_u64
#define pair_text lull_page_pair_text
#define pair_bool lull_page_pair_bool

static bool is_simulated(struct lull_reader *r)
{
	size_t n;
	const struct lull_device_row *devices = lull_reader_dim(r, LULL_TABLE_device, &n);
	bool is = lull_reader_info(r)->flags & LULL_FILE_SIMULATED;

	for (size_t i = 0; i < n; i++)
		is |= devices[i].is_simulated;
	return is;
}

static void put_file(struct lull_json *j, struct lull_question *q)
{
	struct lull_reader *r = q->reader;
	const struct lull_timeline *t = q->report->timeline;
	struct lull_str id = LULL_STR_INIT;
	u64 n_events = 0;

	for (const struct lull_table_desc *d = lull_tables; d->name; d++)
		if (d->kind == LULL_KIND_FACT)
			n_events += lull_reader_stats(r, d->id).n_rows;
	for (size_t i = 0; i < 16; i++)
		lull_str_addf(&id, "%02x", lull_reader_info(r)->id[i]);
	pair_text(j, "name", q->report->name);
	pair_text(j, "id", lull_str_text(&id));
	pair_text(j, "version", LULL_VERSION);
	pair_u64(j, "size_bytes", lull_reader_size_bytes(r));
	pair_u64(j, "n_events", n_events);
	pair_u64(j, "from", t->span.from_ns - t->origin_ns);
	pair_u64(j, "to", t->span.to_ns - t->origin_ns);
	pair_u64(j, "origin", t->origin_ns); /* what these count from, in the report's time */
	pair_u64(j, "epoch_utc_ms", lull_reader_info(r)->epoch_utc_ns / 1000000);
	pair_bool(j, "is_sealed", lull_reader_is_sealed(r));
	pair_bool(j, "is_simulated", is_simulated(r));
	pair_bool(j, "is_imported", lull_reader_info(r)->flags & LULL_FILE_IMPORTED);
	pair_u64(j, "n_damaged", lull_reader_n_damaged(r));
	pair_u64(j, "index_bytes", t->index_bytes);
	pair_u64(j, "n_steps", lull_reader_stats(r, LULL_TABLE_step).n_rows);
	lull_str_release(&id);
}

static void put_reports(struct lull_json *j, const struct lull_page *page)
{
	lull_json_key(j, "reports");
	lull_json_array(j);
	for (size_t i = 0; i < page->n_reports; i++)
		lull_json_text(j, page->reports[i].name);
	lull_json_end(j);
	pair_bool(j, "is_offline", page->is_offline);
	if (page->editor)
		pair_text(j, "editor", page->editor);
	pair_bool(j, "is_job", page->job != NULL);
}

/* Whether the recording has requests of a server. */
static bool has_requests(struct lull_reader *r)
{
	size_t n;
	const struct lull_label_row *labels = lull_reader_dim(r, LULL_TABLE_label, &n);

	for (size_t i = 0; i < n; i++)
		if (labels[i].api == LULL_REQUEST_API)
			return true;
	return false;
}

/* The tables that can be asked for, and where panels have a button for them. */
static void put_tables(struct lull_json *j, struct lull_reader *reader)
{
	struct lull_str why = LULL_STR_INIT;

	lull_json_key(j, "tables");
	lull_json_array(j);
	for (const struct lull_report *const *r = lull_reports; *r; r++) {
		const struct lull_report_page *page = &(*r)->page;

		lull_json_object(j);
		pair_text(j, "name", (*r)->name);
		if (page->label) {
			pair_text(j, "tab", page->tab);
			pair_text(j, "label", page->label);
			pair_text(j, "names", page->names ? page->names : "Name");
			pair_u64(j, "place", (u64)page->place);
			pair_bool(j, "has_data", lull_report_has_data(*r, reader, &why));
		}
		lull_json_end(j);
	}
	lull_json_end(j);
	lull_str_release(&why);
}

static void put_devices(struct lull_json *j, struct lull_reader *r)
{
	size_t n;
	const struct lull_device_row *devices = lull_reader_dim(r, LULL_TABLE_device, &n);
	u32 *rows = lull_device_rows(r);

	lull_json_key(j, "devices");
	lull_json_array(j);
	for (u32 i = 0; i < n; i++) {
		if (rows[i + 1] != i + 1)
			continue;
		lull_json_object(j);
		pair_u64(j, "id", devices[i].device_id);
		pair_text(j, "name", lull_reader_string(r, devices[i].name, NULL));
		pair_text(j, "uuid", lull_reader_string(r, devices[i].uuid, NULL));
		lull_json_end(j);
	}
	lull_json_end(j);
	free(rows);
}

static void put_rows(struct lull_json *j, const struct lull_timeline *t)
{
	const struct lull_row *rows = t->rows.at;

	lull_json_key(j, "rows");
	lull_json_array(j);
	for (size_t i = 0; i < t->rows.n; i++) {
		const struct lull_row *row = &rows[i];

		lull_json_object(j);
		pair_text(j, "key", row->key);
		pair_text(j, "kind", row->kind);
		pair_text(j, "title", row->title);
		lull_json_key(j, "parent");
		lull_json_i64(j, row->parent == LULL_NO_ROW ? -1 : (i64)row->parent);
		pair_u64(j, "lane", row->first_lane);
		pair_u64(j, "n_lanes", row->n_lanes);
		pair_u64(j, "n", row->n_events);
		pair_u64(j, "busy", row->busy_ns);
		lull_json_key(j, "curve");
		lull_json_i64(j, (i64)row->curve - 1);
		if (row->curve) {
			const struct lull_curve *curve = lull_vec_get(&t->curves, row->curve - 1);

			pair_text(j, "unit", curve->unit);
			lull_page_pair_f64(j, "max", lull_curve_max(curve));
			lull_page_pair_f64(j, "top", lull_curve_top(t, curve));
		}
		lull_json_end(j);
	}
	lull_json_end(j);
}

/* Per lane: 1 if its records carry shares. */
static void put_lanes(struct lull_json *j, const struct lull_timeline *t)
{
	const struct lull_tl_lane *lanes = t->lanes.at;

	lull_json_key(j, "lanes");
	lull_json_array(j);
	for (size_t i = 0; i < t->lanes.n; i++)
		lull_json_u64(j,
			      lanes[i].source == LULL_NO_ROW ||
				      lull_sources[lanes[i].source].flags & LULL_SOURCE_HAS_SHARES);
	lull_json_end(j);
}

/* Add the time of a lane to buckets of the whole recording, by class. */
static void add_lane(const struct lull_timeline *t, const struct lull_lod *lod,
		     f64 sums[][LULL_N_CLASSES])
{
	const struct lull_level *level = lod->n_levels ? &lod->levels[lod->n_levels - 1] : NULL;
	f64 width = (f64)(t->span.to_ns - t->span.from_ns) / MINIMAP_BUCKETS;

	for (size_t i = 0; level && width > 0 && i < level->n; i++) {
		const struct lull_rec *rec = &level->recs[i];
		f64 from = (f64)(rec->start_ns - t->span.from_ns) / width;
		f64 to = (f64)(rec->end_ns - t->span.from_ns) / width;
		f64 busy = to > from ? (f64)rec->busy_ns / width / (to - from) : 0;

		for (size_t b = lull_u64_of(from); b < MINIMAP_BUCKETS && (f64)b < to; b++) {
			f64 low = from > (f64)b ? from : (f64)b;
			f64 high = to < (f64)b + 1 ? to : (f64)b + 1;

			for (unsigned c = 0; c < LULL_N_CLASSES; c++)
				sums[b][c] += (high - low) * busy * rec->share[c] / 255.0;
		}
	}
}

/* Devices' busy and idle shares in buckets; without a device, nothing. */
static void put_minimap(struct lull_json *j, const struct lull_timeline *t)
{
	static const char *const names[] = { "busy", "idle" };
	static const char *const kinds[] = { LULL_ROW_DEVICE, LULL_ROW_IDLE };
	const struct lull_row *rows = t->rows.at;
	size_t n_devices = 0;

	lull_json_key(j, "minimap");
	lull_json_object(j);
	for (size_t k = 0; k < LULL_COUNT_OF(kinds); k++) {
		f64 sums[MINIMAP_BUCKETS][LULL_N_CLASSES];

		memset(sums, 0, sizeof(sums));
		n_devices = 0;
		for (size_t i = 0; i < t->rows.n; i++) {
			if (strcmp(rows[i].kind, kinds[k]) || !rows[i].n_lanes)
				continue;
			n_devices++;
			add_lane(t, &lull_timeline_lane(t, rows[i].first_lane)->lod, sums);
		}
		lull_json_key(j, names[k]);
		lull_json_array(j);
		for (size_t b = 0; n_devices && b < MINIMAP_BUCKETS; b++) {
			for (unsigned c = 0; c < (k ? LULL_N_CLASSES : 1u); c++)
				lull_json_fixed(j, sums[b][c] / (f64)n_devices, 3);
		}
		lull_json_end(j);
	}
	pair_u64(j, "n", MINIMAP_BUCKETS);
	lull_json_end(j);
}

static void put_losses(struct lull_json *j, struct lull_reader *r)
{
	size_t n;
	const struct lull_issue_row *issues = lull_reader_dim(r, LULL_TABLE_issue, &n);
	u64 n_lost = 0, n_kinds = 0;

	for (size_t i = 0; i < n; i++) {
		if (issues[i].severity >= LULL_SEVERITY_LOSS) {
			n_lost += issues[i].count;
			n_kinds++;
		}
	}
	pair_u64(j, "n_lost", n_lost);
	pair_u64(j, "n_loss_kinds", n_kinds);
}

static int run(struct lull_question *q, struct lull_err *err)
{
	struct lull_json j;

	(void)err;
	lull_json_init(&j, q->to);
	lull_json_object(&j);
	put_file(&j, q);
	put_reports(&j, q->page);
	pair_bool(&j, "has_requests", has_requests(q->reader));
	put_tables(&j, q->reader);
	put_devices(&j, q->reader);
	put_losses(&j, q->reader);
	put_rows(&j, q->report->timeline);
	put_lanes(&j, q->report->timeline);
	put_minimap(&j, q->report->timeline);
	lull_json_end(&j);
	return LULL_OK;
}

const struct lull_answer lull_answer_meta = {
	.name = "meta",
	.type = "application/json",
	.is_packed = true,
	.run = run,
};
