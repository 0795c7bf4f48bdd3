/*
 * Blocks of a table come in the order of their first row, but they reach into each other, and a
 * range is written after what is inside it. So rows wait until no block is left that could hold an
 * earlier one:
 *
 *	sources   one per table, each with its next block, turned into records
 *	waiting   records by family and time
 *
 *	take the source whose block begins first; merge the block into what waits; place all that
 *	begins before the first block of any source
 */
#include "export/viewer_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/sort.h"

#define LOG_TAG "export/viewer"

/*
 * Records that may wait: 128 MB of them. Traces that were recorded have one or two blocks a table.
 */
#define MAX_WAITING (2u << 20)

const struct lull_viewer_arg_desc lull_viewer_args[LULL_VIEWER_N_ARGS] = {
#define VIEWER_ARG(id, kind, name) { name, LULL_VIEWER_##kind },
#include "export/viewer_args.def"
#undef VIEWER_ARG
};

#define VIEWER_SOURCE(name) extern const struct lull_viewer_source lull_viewer_##name;
#include "export/viewer_sources.def"
#undef VIEWER_SOURCE

static const struct lull_viewer_source *const sources[] = {
#define VIEWER_SOURCE(name) &lull_viewer_##name,
#include "export/viewer_sources.def"
#undef VIEWER_SOURCE
};

/* ---- names ---- */

u32 *lull_viewer_name(struct lull_viewer *t, u32 id)
{
	struct lull_vec *by_id = &t->names->by_id;

	if (id >= by_id->n)
		lull_vec_extend(by_id, id + 1 - by_id->n);
	return (u32 *)by_id->at + id;
}

u32 lull_viewer_word(struct lull_viewer *t, u32 id, const char *category, const char *word)
{
	u32 *name = lull_viewer_name(t, id);
	struct lull_viewer_what what = { 0 };

	if (*name != 0)
		return *name;
	lull_viewer_call(&what, category, word, strlen(word));
	return *name = lull_viewer_add(t, &what);
}

u32 *lull_viewer_hashed(struct lull_viewer *t, u64 key)
{
	return lull_map_add(&t->hashed, key, NULL);
}

u32 lull_viewer_add(struct lull_viewer *t, struct lull_viewer_what *what)
{
	what->id = ++t->n_whats;
	t->sink->what(t->sink->ctx, what);
	return what->id;
}

void lull_viewer_call(struct lull_viewer_what *what, const char *category, const char *name,
		      size_t len)
{
	what->category = category;
	what->name = name;
	what->name_len = len;
}

void lull_viewer_bytes(struct lull_viewer_what *what, enum lull_viewer_arg_id id, const char *text,
		       size_t len)
{
	if (len && what->n_args < LULL_VIEWER_MAX_ARGS)
		what->args[what->n_args++] =
			(struct lull_viewer_arg){ .id = id, .text = text, .len = len };
}

void lull_viewer_text(struct lull_viewer *t, struct lull_viewer_what *what,
		      enum lull_viewer_arg_id id, u32 text)
{
	size_t len;
	const char *bytes = lull_reader_string(t->reader, text, &len);

	if (text)
		lull_viewer_bytes(what, id, bytes, len);
}

void lull_viewer_number(struct lull_viewer_what *what, enum lull_viewer_arg_id id, u64 number)
{
	if (what->n_args < LULL_VIEWER_MAX_ARGS)
		what->args[what->n_args++] = (struct lull_viewer_arg){ .id = id, .number = number };
}

/* ---- sources ---- */

struct feed {
	const struct lull_viewer_source *source;
	struct lull_viewer_names names;
	struct lull_cursor cursor;
	struct lull_vec records; /* of the next block, sorted */
	u64 min_start_ns;	 /* UINT64_MAX: there is none */
	u16 rank;
	bool has_dur;
	int depth_ix; /* column, or -1 */
};

static bool is_before(const struct lull_viewer_record *a, const struct lull_viewer_record *b)
{
	if (a->family != b->family)
		return a->family < b->family;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns;
	if (a->dur_ns != b->dur_ns)
		return a->dur_ns > b->dur_ns;
	return a->rank < b->rank;
}

static int compare(const void *a, const void *b)
{
	return is_before(a, b) ? -1 : is_before(b, a);
}

/* Blocks are in this order already, unless their rows belong to several families a lane. */
static void sort(struct lull_vec *records)
{
	const struct lull_viewer_record *at = records->at;
	size_t i = 1;

	while (i < records->n && !is_before(&at[i], &at[i - 1]))
		i++;
	if (i < records->n)
		lull_sort(records->at, records->n, sizeof(*at), compare);
}

/* How deep row `i` is, as far as it can be told. */
static u8 depth_of(const struct feed *f, const void *const *cols, size_t i)
{
	const struct lull_table_desc *table = f->cursor.table;
	u64 depth;

	if (f->depth_ix < 0)
		return 0;
	depth = lull_load_at(cols[f->depth_ix], table->cols[f->depth_ix].size_bytes, i);
	return depth < UINT8_MAX ? (u8)depth : UINT8_MAX;
}

static void add_records(struct lull_viewer *t, struct feed *f, const void *const *cols, size_t n)
{
	const u64 *start_ns = cols[0], *dur_ns = f->has_dur ? cols[1] : NULL;
	struct lull_span window = lull_export_window(t->options);

	t->names = &f->names;
	for (size_t i = 0; i < n; i++) {
		struct lull_viewer_record *rec;

		if (!lull_span_holds(window, start_ns[i], dur_ns ? dur_ns[i] : 0))
			continue;
		rec = lull_vec_push(&f->records);
		rec->start_ns = start_ns[i];
		rec->dur_ns = dur_ns ? dur_ns[i] : 0;
		rec->rank = (u16)(f->rank << 8 | depth_of(f, cols, i));
		if (!f->source->row(t, cols, i, rec))
			f->records.n--;
		else if (rec->start_ns < f->min_start_ns)
			f->min_start_ns = rec->start_ns;
	}
}

/* Turn the next block that holds something into records. */
static void load(struct lull_viewer *t, struct feed *f)
{
	const void *cols[LULL_MAX_COLS];
	size_t n;

	f->records.n = 0;
	f->min_start_ns = UINT64_MAX;
	while (!f->records.n && (n = lull_cursor_next(&f->cursor, cols)) > 0)
		add_records(t, f, cols, n);
	sort(&f->records);
}

static void open_feed(struct lull_viewer *t, struct feed *f, size_t ix)
{
	struct lull_span window = lull_export_window(t->options);
	const struct lull_table_desc *table = lull_table_find((u16)sources[ix]->table);

	*f = (struct feed){ .source = sources[ix],
			    .rank = (u16)ix,
			    .has_dur = lull_table_column(table, "dur_ns") == 1,
			    .depth_ix = lull_table_column(table, "depth") };
	lull_vec_init(&f->names.by_id, sizeof(u32));
	lull_vec_init(&f->records, sizeof(struct lull_viewer_record));
	lull_cursor_init(&f->cursor, t->reader, f->source->table, window.from_ns, window.to_ns);
	f->min_start_ns = UINT64_MAX;
	if (lull_export_wants(t->options, table->name))
		load(t, f);
}

static void close_feed(struct feed *f)
{
	lull_cursor_release(&f->cursor);
	lull_vec_release(&f->records);
	lull_vec_release(&f->names.by_id);
}

/* ---- waiting ---- */

/* Both are sorted; `spare` receives the result, and the two vectors change places. */
static void merge(struct lull_vec *waiting, const struct lull_vec *block, struct lull_vec *spare)
{
	const struct lull_viewer_record *a = waiting->at, *b = block->at;
	const struct lull_viewer_record *a_end = a + waiting->n, *b_end = b + block->n;
	struct lull_viewer_record *to;
	struct lull_vec swap;

	spare->n = 0;
	to = lull_vec_extend(spare, waiting->n + block->n);
	while (a < a_end && b < b_end)
		*to++ = is_before(b, a) ? *b++ : *a++;
	while (a < a_end)
		*to++ = *a++;
	while (b < b_end)
		*to++ = *b++;
	swap = *waiting;
	*waiting = *spare;
	*spare = swap;
}

/* Place what begins before `until_ns`, keep the rest. */
static void place(struct lull_viewer *t, struct lull_vec *waiting, u64 until_ns)
{
	struct lull_viewer_record *at = waiting->at;
	size_t n_kept = 0;

	for (size_t i = 0; i < waiting->n; i++) {
		if (at[i].start_ns < until_ns || until_ns == UINT64_MAX)
			lull_viewer_place(t, &at[i]);
		else
			at[n_kept++] = at[i];
	}
	waiting->n = n_kept;
}

/* Too many records wait: place those that begin in the earlier half of the time. */
static void place_half(struct lull_viewer *t, struct lull_vec *waiting)
{
	const struct lull_viewer_record *at = waiting->at;
	u64 first_ns = UINT64_MAX, last_ns = 0;

	for (size_t i = 0; i < waiting->n; i++) {
		first_ns = at[i].start_ns < first_ns ? at[i].start_ns : first_ns;
		last_ns = at[i].start_ns > last_ns ? at[i].start_ns : last_ns;
	}
	place(t, waiting, first_ns + (last_ns - first_ns) / 2 + 1);
}

static struct feed *first_feed(struct feed *feeds)
{
	struct feed *first = NULL;

	for (size_t i = 0; i < LULL_COUNT_OF(sources); i++)
		if (feeds[i].records.n && (!first || feeds[i].min_start_ns < first->min_start_ns))
			first = &feeds[i];
	return first;
}

static void tell_all(struct lull_viewer *t, struct feed *feeds)
{
	struct lull_vec waiting, spare;
	struct feed *first;

	lull_vec_init(&waiting, sizeof(struct lull_viewer_record));
	lull_vec_init(&spare, sizeof(struct lull_viewer_record));
	while ((first = first_feed(feeds))) {
		merge(&waiting, &first->records, &spare);
		load(t, first);
		first = first_feed(feeds);
		if (first)
			place(t, &waiting, first->min_start_ns);
		while (waiting.n > MAX_WAITING)
			place_half(t, &waiting);
	}
	place(t, &waiting, UINT64_MAX);
	lull_vec_release(&waiting);
	lull_vec_release(&spare);
}

/* ---- all of it ---- */

static void read_dims(struct lull_viewer *t)
{
	t->lanes = lull_reader_dim(t->reader, LULL_TABLE_lane, &t->n_lanes);
	t->labels = lull_reader_dim(t->reader, LULL_TABLE_label, &t->n_labels);
	t->launches = lull_reader_dim(t->reader, LULL_TABLE_launch, &t->n_launches);
	t->op_labels = lull_reader_dim(t->reader, LULL_TABLE_op_label, &t->n_op_labels);
	t->frames = lull_reader_dim(t->reader, LULL_TABLE_frame, &t->n_frames);
	t->devices = lull_reader_dim(t->reader, LULL_TABLE_device, &t->n_devices);
}

u64 lull_viewer_tell(struct lull_reader *r, const struct lull_export_options *options,
		     const struct lull_viewer_sink *sink)
{
	struct lull_viewer t = { .reader = r, .options = options, .sink = sink };
	struct feed feeds[LULL_COUNT_OF(sources)];

	lull_map_init(&t.hashed);
	read_dims(&t);
	t.tracks = lull_viewer_tracks_new(&t);
	t.flows = lull_viewer_flows_new(&t);
	for (size_t i = 0; i < LULL_COUNT_OF(sources); i++)
		open_feed(&t, &feeds[i], i);
	tell_all(&t, feeds);
	for (size_t i = 0; i < LULL_COUNT_OF(sources); i++)
		close_feed(&feeds[i]);
	lull_viewer_flows_free(t.flows);
	lull_viewer_tracks_free(t.tracks);
	lull_map_release(&t.hashed);
	if (t.n_left_out)
		log_warn(
			"%llu events were left out: they overlap too many others on the same track",
			(unsigned long long)t.n_left_out);
	return t.n_events;
}
