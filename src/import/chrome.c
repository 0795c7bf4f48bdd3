#include "import/chrome.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* Kinds of lull_mapper_thing(). */
enum { THING_METRIC = 16 };

/* Ranges keep their arguments up to this size, and reports up to that: names matter more. */
#define MAX_ARGS_BYTES	(4u << 10)
#define MAX_KEPT_BYTES	(16u << 20)
#define MAX_META_BYTES	(16u << 10)
#define MAX_OPEN	(256u << 10) /* ranges that have begun and not ended: some 20 MB */
#define PAYLOAD_JSON	10
#define RANGE_NOT_ENDED 1u
#define RANGE_START_END 4u

struct open_range {
	struct lull_range_row row;
	u64 key;  /* lane or id */
	u32 prev; /* begun before it with the same key: index + 1 */
	bool is_closed;
};

/* ---- parts of events ---- */

static int bad(struct lull_chrome *c)
{
	c->map.job->result->n_bad++;
	return false;
}

bool lull_chrome_span(struct lull_chrome *c, const struct lull_jevent *e, u64 *start_ns,
		      u64 *dur_ns)
{
	if (!e->has_ts || (e->has_dur && e->dur_ns < 0))
		return bad(c);
	*start_ns = lull_mapper_time(&c->map, e->ts_ns);
	*dur_ns = e->has_dur ? (u64)e->dur_ns : 0;
	if (*start_ns + *dur_ns > c->last_ns)
		c->last_ns = *start_ns + *dur_ns;
	return true;
}

/* The arguments as they stand, while there is room for them. */
static u32 keep_args(struct lull_chrome *c, const struct lull_jevent *e)
{
	u32 id;

	if (!e->args.at || e->args.len <= 2)
		return 0;
	if (e->args.len > MAX_ARGS_BYTES || c->kept_bytes > MAX_KEPT_BYTES) {
		lull_mapper_gap(&c->map, LULL_ISSUE_import_args, "of", &e->name);
		return 0;
	}
	id = lull_writer_string(c->map.writer, e->args.at, e->args.len);
	c->kept_bytes += e->args.len;
	return id;
}

static u32 label_of(struct lull_chrome *c, const struct lull_jevent *e)
{
	return lull_mapper_label(&c->map, &e->name, &e->category, LULL_LABEL_CHROME);
}

static bool fill_range(struct lull_chrome *c, const struct lull_jevent *e,
		       struct lull_range_row *row)
{
	*row = (struct lull_range_row){ 0 };
	if (!lull_chrome_span(c, e, &row->start_ns, &row->dur_ns))
		return false;
	row->lane = lull_mapper_thread(&c->map, &e->pid, &e->tid);
	row->label = label_of(c, e);
	row->data = keep_args(c, e);
	row->payload_type = row->data ? PAYLOAD_JSON : 0;
	return true;
}

/* ---- ranges and marks ---- */

static void add_range(struct lull_chrome *c, const struct lull_jevent *e)
{
	struct lull_range_row row;

	if (fill_range(c, e, &row))
		lull_mapper_nest(&c->map, LULL_NESTING_RANGE, &row);
}

static void add_mark(struct lull_chrome *c, const struct lull_jevent *e)
{
	struct lull_mark_row row = { 0 };
	u64 dur_ns;

	if (!lull_chrome_span(c, e, &row.start_ns, &dur_ns))
		return;
	row.lane = lull_mapper_thread(&c->map, &e->pid, &e->tid);
	row.label = label_of(c, e);
	row.data = keep_args(c, e);
	row.payload_type = row.data ? PAYLOAD_JSON : 0;
	lull_mapper_saw(&c->map, row.lane, row.start_ns);
	lull_writer_add(c->map.writer, LULL_TABLE_mark, &row);
}

/* What pairs start and end of a range that is not on a thread's stack. */
static u64 async_key(struct lull_chrome *c, const struct lull_jevent *e)
{
	u64 key = lull_hash_mix(lull_mapper_hash(&e->category) ^ 1, lull_mapper_hash(&e->id));

	key = lull_hash_mix(key ^ lull_mapper_process(&c->map, &e->pid),
			    lull_mapper_hash(&e->name));
	return key | 1ULL << 63;
}

static void begin_range(struct lull_chrome *c, const struct lull_jevent *e, u64 key, u8 flags)
{
	struct open_range open = { .key = key };
	u32 *last;

	if (c->open.n >= MAX_OPEN) {
		bad(c);
		return;
	}
	if (!fill_range(c, e, &open.row))
		return;
	open.row.flags = flags;
	last = lull_map_add(&c->open_ixs, key, NULL);
	open.prev = *last;
	lull_vec_add(&c->open, &open, 1);
	*last = (u32)c->open.n;
}

static void write_open(struct lull_chrome *c, struct open_range *open, u64 end_ns)
{
	open->is_closed = true;
	open->row.dur_ns = end_ns > open->row.start_ns ? end_ns - open->row.start_ns : 0;
	if (open->row.flags & RANGE_START_END)
		lull_writer_add(c->map.writer, LULL_TABLE_range, &open->row);
	else
		lull_mapper_nest(&c->map, LULL_NESTING_RANGE, &open->row);
}

/*
 * Memory of closed ranges at the end of the list is used again; and the keys of those that are all
 * closed, of which there may be as many as events, are forgotten from time to time.
 */
static void drop_closed(struct lull_chrome *c)
{
	struct open_range *open = c->open.at;

	while (c->open.n && open[c->open.n - 1].is_closed)
		c->open.n--;
	if (c->open_ixs.n < 4 * (c->open.n + MAX_OPEN))
		return;
	lull_map_release(&c->open_ixs);
	for (size_t i = 0; i < c->open.n; i++)
		if (!open[i].is_closed)
			*lull_map_add(&c->open_ixs, open[i].key, NULL) = (u32)i + 1;
}

static void end_range(struct lull_chrome *c, const struct lull_jevent *e, u64 key)
{
	u32 *last = lull_map_find(&c->open_ixs, key);
	struct open_range *open;
	u64 end_ns, dur_ns;

	if (!lull_chrome_span(c, e, &end_ns, &dur_ns))
		return;
	if (!last || !*last) {
		lull_mapper_gap(&c->map, LULL_ISSUE_range_mismatch, "end of", &e->name);
		return;
	}
	open = lull_vec_get(&c->open, *last - 1);
	*last = open->prev;
	write_open(c, open, end_ns);
	drop_closed(c);
}

/* What is still open when the trace ends lasted at least until then. */
static void close_all(struct lull_chrome *c)
{
	struct open_range *open = c->open.at;

	for (size_t i = 0; i < c->open.n; i++) {
		if (open[i].is_closed)
			continue;
		open[i].row.flags |= RANGE_NOT_ENDED;
		write_open(c, &open[i], c->last_ns);
	}
	c->open.n = 0;
}

/* ---- counters and names ---- */

/* The metric of one argument of a counter. */
static u32 metric_of(struct lull_chrome *c, const struct lull_jevent *e,
		     const struct lull_jtext *key)
{
	u64 hash = lull_hash_mix(lull_mapper_hash(&e->name) ^ 3, lull_mapper_hash(key)) ^
		   lull_mapper_hash(&e->id);
	u32 *id = lull_mapper_thing(&c->map, THING_METRIC, hash);

	if (!*id) {
		struct lull_metric_row row = { .source = lull_mapper_word(&c->map, "chrome") };
		struct lull_str name = LULL_STR_INIT;

		lull_jtext_add(&name, &e->name);
		if (e->id.len) {
			lull_str_puts(&name, " ");
			lull_jtext_add(&name, &e->id);
		}
		lull_str_puts(&name, ".");
		lull_jtext_add(&name, key);
		row.name = lull_writer_string(c->map.writer, name.at, name.len);
		lull_str_release(&name);
		*id = lull_writer_add_dim(c->map.writer, LULL_TABLE_metric, &row);
	}
	return *id;
}

static void add_counters(struct lull_chrome *c, const struct lull_jevent *e)
{
	struct lull_counter_row row = { 0 };
	struct lull_jtext key, value;
	struct lull_jscan j;
	u64 dur_ns;
	char first;

	if (!lull_chrome_span(c, e, &row.start_ns, &dur_ns) || !e->args.at)
		return;
	row.process = lull_mapper_process(&c->map, &e->pid);
	lull_jscan_init_text(&j, &e->args);
	j.p++;
	while (!lull_jscan_pair(&j, &key) && !lull_jscan_value(&j, &value, &first)) {
		if (!lull_jtext_f64(&value, &row.value)) {
			lull_mapper_gap(&c->map, LULL_ISSUE_import_args, "of counter", &e->name);
			continue;
		}
		row.metric = metric_of(c, e, &key);
		lull_writer_add(c->map.writer, LULL_TABLE_counter, &row);
	}
	lull_jscan_release(&j);
}

static void take_names(struct lull_chrome *c, const struct lull_jevent *e)
{
	struct lull_jtext name = lull_jevent_text(e, LULL_ARG_meta_name);

	if (lull_jtext_is(&e->name, "process_name"))
		lull_mapper_name_process(&c->map, &e->pid, &name);
	else if (lull_jtext_is(&e->name, "thread_name"))
		lull_mapper_name_thread(&c->map, &e->pid, &e->tid, &name);
	else if (!lull_jtext_is(&e->name, "process_sort_index") &&
		 !lull_jtext_is(&e->name, "thread_sort_index") &&
		 !lull_jtext_is(&e->name, "process_labels"))
		/* How a viewer arranges them says nothing about the program; all else does. */
		lull_mapper_gap(&c->map, LULL_ISSUE_import_unmapped, "metadata", &e->name);
}

/* ---- events ---- */

static void add_gap(struct lull_chrome *c, const struct lull_jevent *e)
{
	char what[] = "ph ?";

	if (strchr("stf", e->ph)) {
		lull_mapper_gap(&c->map, LULL_ISSUE_import_unmapped, "flow", &e->category);
		return;
	}
	what[3] = e->ph;
	lull_mapper_gap(&c->map, LULL_ISSUE_import_unmapped, what, &e->category);
}

void lull_chrome_event(struct lull_chrome *c, const struct lull_jevent *e)
{
	switch (e->ph) {
	case 'X':
		add_range(c, e);
		break;
	case 'B':
		begin_range(c, e, lull_mapper_thread(&c->map, &e->pid, &e->tid), 0);
		break;
	case 'E':
		end_range(c, e, lull_mapper_thread(&c->map, &e->pid, &e->tid));
		break;
	case 'b':
	case 'S':
		begin_range(c, e, async_key(c, e), RANGE_START_END);
		break;
	case 'e':
	case 'F':
		end_range(c, e, async_key(c, e));
		break;
	case 'i':
	case 'I':
	case 'R':
	case 'n':
	case 'T':
	case 'p':
		add_mark(c, e);
		break;
	case 'C':
		add_counters(c, e);
		break;
	case 'M':
		take_names(c, e);
		break;
	case 0:
		/* Some programs end the list with {}: each event can be followed by a comma. */
		if (e->has_ts || e->name.len || e->args.at)
			bad(c);
		break;
	default:
		add_gap(c, e);
		break;
	}
}

void lull_chrome_meta(struct lull_chrome *c, const char *prefix, const struct lull_jtext *key,
		      const struct lull_jtext *value)
{
	struct lull_str name = LULL_STR_INIT, text = LULL_STR_INIT;
	struct lull_jtext kept = *value;

	if (kept.len > MAX_META_BYTES) {
		kept.len = MAX_META_BYTES;
		lull_mapper_gap(&c->map, LULL_ISSUE_import_unmapped, "end of", key);
	}
	lull_str_puts(&name, prefix);
	lull_jtext_add(&name, key);
	lull_jtext_add(&text, &kept);
	lull_import_meta(c->map.job, lull_str_text(&name), lull_str_text(&text), text.len);
	lull_str_release(&name);
	lull_str_release(&text);
}

/* ---- one walk over the file ---- */

struct walk {
	struct lull_chrome c;
	const struct lull_chrome_dialect *dialect;
};

static void on_event(void *ctx, const struct lull_jevent *e)
{
	struct walk *w = ctx;

	if (!w->dialect->event || !w->dialect->event(&w->c, e))
		lull_chrome_event(&w->c, e);
}

static void on_pair(void *ctx, const struct lull_jtext *key, const struct lull_jtext *value,
		    char first)
{
	struct walk *w = ctx;

	if (w->dialect->pair)
		w->dialect->pair(&w->c, key, value, first);
	else
		lull_chrome_meta(&w->c, "trace.", key, value);
}

/*
 * UTC at the origin. Times of PyTorch count from `baseTimeNanoseconds`, which comes before the
 * events; older traces, and those of other programs with times that large, count from 1970.
 */
static u64 utc_of(const struct lull_jevents *events)
{
	static const char key[] = "\"baseTimeNanoseconds\"";
	const struct lull_jscan *j = &events->scan;
	const char *at = memmem(j->p, (size_t)(j->end - j->p), key, sizeof(key) - 1);
	const i64 year_2001_ns = 978307200000000000;
	struct lull_jtext number;
	i64 base_ns;

	if (at) {
		for (at += sizeof(key) - 1; *at == ':' || *at == ' '; at++)
			;
		number = (struct lull_jtext){ .at = at, .len = strspn(at, "0123456789") };
		if (lull_jtext_i64(&number, &base_ns))
			return (u64)base_ns + (u64)events->origin_ns;
	}
	return events->origin_ns > year_2001_ns ? (u64)events->origin_ns : 0;
}

static int begin_walk(struct walk *w, struct lull_import_job *job, struct lull_err *err)
{
	struct lull_file_info info = {
		.epoch_ns = (u64)w->c.events.origin_ns,
		.epoch_utc_ns = utc_of(&w->c.events),
	};

	if (lull_import_begin(job, &info, err))
		return err->code;
	job->result->n_bad = job->result->n_unmapped = 0;
	lull_mapper_init(&w->c.map, job, w->c.events.origin_ns);
	lull_vec_init(&w->c.open, sizeof(struct open_range));
	lull_map_init(&w->c.open_ixs);
	w->c.last_ns = w->c.kept_bytes = 0;
	if (w->dialect->begin)
		w->dialect->begin(&w->c);
	return 0;
}

static void end_walk(struct walk *w)
{
	if (w->dialect->end)
		w->dialect->end(&w->c);
	lull_mapper_release(&w->c.map);
	lull_vec_release(&w->c.open);
	lull_map_release(&w->c.open_ixs);
}

/* After the last event: write what waits, and what went wrong. */
static void finish_walk(struct walk *w, struct lull_import_job *job)
{
	const struct lull_jevents *events = &w->c.events;
	struct lull_import_result *result = job->result;
	char detail[96];

	close_all(&w->c);
	if (w->dialect->finish)
		w->dialect->finish(&w->c);
	lull_mapper_finish(&w->c.map);
	result->n_bad += events->n_bad;
	result->is_cut = events->is_cut || events->is_invalid;
	if (result->n_bad)
		lull_issue_write(job->writer, LULL_ISSUE_import_bad, 0, result->n_bad, NULL);
	if (events->is_invalid)
		snprintf(detail, sizeof(detail), "invalid JSON from byte %llu on",
			 (unsigned long long)events->stop_off);
	else
		snprintf(detail, sizeof(detail), "the JSON text ends at byte %llu",
			 (unsigned long long)events->stop_off);
	if (result->is_cut)
		lull_issue_write(job->writer, LULL_ISSUE_import_cut, 0, 1, detail);
}

static int walk_once(struct walk *w, struct lull_import_job *job, struct lull_err *err)
{
	static const struct lull_jevents_handler handler = { on_event, on_pair };
	int rc = begin_walk(w, job, err);

	if (rc)
		return rc;
	rc = lull_jevents_walk(&w->c.events, &handler, w, err);
	if (!rc && !lull_jevents_must_repeat(&w->c.events))
		finish_walk(w, job);
	end_walk(w);
	return rc;
}

int lull_chrome_run(struct lull_import_job *job, const struct lull_chrome_dialect *dialect,
		    struct lull_err *err)
{
	struct walk *w = calloc(1, sizeof(*w));
	int rc;

	if (!w)
		return lull_fail(err, LULL_E_NOMEM, "not enough memory to import");
	w->dialect = dialect;
	rc = lull_jevents_init(&w->c.events, job->stream, err);
	if (!rc)
		rc = walk_once(w, job, err);
	if (!rc && lull_jevents_must_repeat(&w->c.events)) {
		rc = lull_jevents_repeat(&w->c.events, err);
		if (!rc)
			rc = walk_once(w, job, err);
	}
	lull_jevents_release(&w->c.events);
	free(w);
	return rc ? lull_err_wrap(err, "%s", job->path) : 0;
}

/* ---- recognising ---- */

int lull_chrome_sniff(const u8 *head, size_t len)
{
	static const char events[] = "\"traceEvents\"", ph[] = "\"ph\"";
	size_t i = 0;

	if (len >= 3 && !memcmp(head, "\xef\xbb\xbf", 3))
		i = 3;
	while (i < len && (head[i] == ' ' || head[i] == '\n' || head[i] == '\r' || head[i] == '\t'))
		i++;
	if (i == len || (head[i] != '{' && head[i] != '['))
		return 0;
	if (memmem(head, len, events, sizeof(events) - 1) || memmem(head, len, ph, sizeof(ph) - 1))
		return 50;
	/* Other JSON gets a better sentence from the importer than from nobody. */
	return 1;
}
