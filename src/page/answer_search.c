/*
 * search: events whose name matches.
 *
 *	search?q=gemm[&regex=1][&exact=1][&at=T | &from=N]
 *	{"total", "n", "names": [[id, count], ...], "buckets": [...],
 *	 "first", "here", "hits": [[lane, start, end], ...]}
 *
 * Names are compared once; a row costs a look into a table. All n hits have a number, by time;
 * those that are told are a page of 2000: from number N on, or around the first one that starts at
 * T or later, whose number is `here`. `total` is more than n only if there are too many to keep.
 * Expressions are those of POSIX, without counted repetition and back references: these can take a
 * matcher for ever.
 */
#include "page/page.h"

#include <ctype.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "base/time.h"
#include "timeline/detail.h"
#include "timeline/name.h"
#include "trace/file_frame.h"

#define PAGE_HITS     2000u
#define MAX_HITS      4000000u /* 24 bytes each */
#define MAX_QUERY     256u
#define MAX_EXACT     2048u /* names of kernels are long */
#define LONG_NAME     600u  /* of a longer one, as much as was given must be the same */
#define MAX_NAME_TEXT 2048u
#define N_BUCKETS     512u
#define NEAR_EVENTS   64u
#define LIMIT_NS      (10 * LULL_NS_PER_S)

struct hit {
	u32 lane;
	u64 start_ns, end_ns;
};

struct search {
	struct lull_timeline *t;
	struct lull_reader *r;
	struct lull_blocks blocks;
	const char *text;
	bool is_regex, is_exact;
	regex_t regex;
	struct lull_map known; /* name to 1 no, 2 yes */
	struct lull_map counts;
	u64 total, began_ns;
	u64 at_ns, from; /* which page: around a moment, or from a number on (UINT64_MAX: not) */
	u64 buckets[N_BUCKETS];
	struct lull_vec hits; /* struct hit */
	bool is_cut;
};

static bool holds(const char *text, const char *word)
{
	return strcasestr(text, word) != NULL;
}

static bool is_same(const char *text, const char *name)
{
	size_t len = strlen(name);

	return len >= LONG_NAME ? !strncmp(text, name, len) : !strcmp(text, name);
}

static bool matches(struct search *s, u32 name)
{
	bool is_new;
	u32 *known = lull_map_add(&s->known, name, &is_new);
	struct lull_str text = LULL_STR_INIT;
	bool is;

	if (!is_new)
		return *known == 2;
	lull_name_text(&text, s->r, name);
	if (text.len > MAX_NAME_TEXT)
		text.at[MAX_NAME_TEXT] = '\0';
	is = s->is_regex   ? !regexec(&s->regex, lull_str_text(&text), 0, NULL, 0)
	     : s->is_exact ? is_same(lull_str_text(&text), s->text)
			   : holds(lull_str_text(&text), s->text);
	lull_str_release(&text);
	*known = is ? 2 : 1;
	return is;
}

static void add_hit(struct search *s, u32 source, const struct lull_tl_event *e)
{
	u64 width = (s->t->span.to_ns - s->t->span.from_ns) / N_BUCKETS + 1;
	u64 bucket = (e->start_ns - s->t->span.from_ns) / width;
	u32 *count = lull_map_add(&s->counts, e->name, NULL), lane = LULL_NO_ROW;
	struct hit *hit;

	s->total++;
	*count += *count < UINT32_MAX;
	s->buckets[bucket < N_BUCKETS ? bucket : N_BUCKETS - 1]++;
	if (s->hits.n >= MAX_HITS)
		return;
	for (i32 line = e->line; line >= 0 && lane == LULL_NO_ROW; line--)
		lane = lull_timeline_find(s->t, source, e->group, (u32)line);
	hit = lull_vec_push(&s->hits);
	*hit = (struct hit){ lane == LULL_NO_ROW ? 0 : lane, e->start_ns, e->end_ns };
}

static void search_source(struct search *s, u32 source)
{
	size_t n;
	const struct lull_entry *e = lull_reader_blocks(s->r, &n);

	for (size_t i = 0; i < n && !s->is_cut; i++) {
		const struct lull_tl_event *events;
		size_t n_events;

		if (e[i].table_id != lull_sources[source].table || e[i].kind != LULL_BLOCK_ROWS)
			continue;
		n_events = lull_blocks_decode(&s->blocks, &lull_sources[source], i);
		events = s->blocks.events.at;
		for (size_t k = 0; k < n_events; k++)
			if (matches(s, events[k].name))
				add_hit(s, source, &events[k]);
		s->is_cut = lull_now_ns() - s->began_ns > LIMIT_NS;
	}
}

static int by_time(const void *a, const void *b)
{
	const struct hit *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->lane > y->lane) - (x->lane < y->lane);
}

static void put_names(struct lull_json *j, const struct search *s)
{
	lull_json_key(j, "names");
	lull_json_array(j);
	for (size_t i = 0, n = 0; i < s->counts.cap && n < 200; i++) {
		if (!s->counts.at[i].is_used)
			continue;
		lull_json_array(j);
		lull_json_u64(j, s->counts.at[i].key);
		lull_json_u64(j, s->counts.at[i].value);
		lull_json_end(j);
		n++;
	}
	lull_json_end(j);
}

/* The number of the first hit that starts at `at_ns` or later; of the first of all if none does. */
static size_t hit_at(const struct search *s, u64 at_ns)
{
	const struct hit *hits = s->hits.at;
	size_t low = 0, high = s->hits.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (hits[mid].start_ns >= at_ns)
			high = mid;
		else
			low = mid + 1;
	}
	return low < s->hits.n ? low : 0;
}

static bool is_there(const struct search *s, u32 lane, const struct hit *hit)
{
	struct lull_vec events;
	const struct lull_found *found;
	bool is = false;

	lull_vec_init(&events, sizeof(struct lull_found));
	lull_detail_events(s->t, lane, (struct lull_span){ hit->start_ns, hit->start_ns + 1 },
			   NEAR_EVENTS, &events);
	found = events.at;
	for (size_t i = 0; i < events.n && !is; i++)
		is = found[i].event.start_ns == hit->start_ns &&
		     found[i].event.end_ns == hit->end_ns;
	lull_vec_release(&events);
	return is;
}

/* What overlaps on a row lies on lines of its own; which one that is, only its lanes know. */
static u32 lane_of(const struct search *s, const struct hit *hit)
{
	const struct lull_tl_lane *lane = lull_timeline_lane(s->t, hit->lane);
	const struct lull_row *row = lull_timeline_row(s->t, lane->row);

	for (u32 i = row->first_lane; row->n_lanes > 1 && i < row->first_lane + row->n_lanes; i++) {
		if (lull_timeline_lane(s->t, i)->source == lane->source && is_there(s, i, hit))
			return i;
	}
	return hit->lane;
}

static void put_hits(struct lull_json *j, const struct search *s)
{
	const struct hit *hits = s->hits.at;
	size_t here = s->from == UINT64_MAX ? hit_at(s, s->at_ns) : (size_t)s->from;
	size_t first = s->from == UINT64_MAX ? here - here % (PAGE_HITS / 2) : here;

	if (s->from == UINT64_MAX && first >= PAGE_HITS / 2)
		first -= PAGE_HITS / 2; /* some before it, too */
	lull_page_pair_u64(j, "n", s->hits.n);
	lull_page_pair_u64(j, "first", first);
	lull_page_pair_u64(j, "here", here);
	lull_json_key(j, "hits");
	lull_json_array(j);
	for (size_t i = first; i < s->hits.n && i - first < PAGE_HITS; i++) {
		lull_json_array(j);
		lull_json_u64(j, lane_of(s, &hits[i]));
		lull_json_u64(j, hits[i].start_ns - s->t->origin_ns);
		lull_json_u64(j, hits[i].end_ns - s->t->origin_ns);
		lull_json_end(j);
	}
	lull_json_end(j);
}

static void put(struct search *s, FILE *to)
{
	struct hit *hits = s->hits.at;
	struct lull_json j;

	if (s->hits.n)
		lull_sort(hits, s->hits.n, sizeof(*hits), by_time);
	lull_json_init(&j, to);
	lull_json_object(&j);
	lull_page_pair_u64(&j, "total", s->total);
	lull_page_pair_bool(&j, "is_cut", s->is_cut);
	put_names(&j, s);
	lull_json_key(&j, "buckets");
	lull_json_array(&j);
	for (size_t i = 0; i < N_BUCKETS; i++)
		lull_json_u64(&j, s->buckets[i]);
	lull_json_end(&j);
	put_hits(&j, s);
	lull_json_end(&j);
}

static int compile(struct search *s, struct lull_err *err)
{
	u32 max = s->is_exact ? MAX_EXACT : MAX_QUERY;
	int rc;

	if (!s->text || !*s->text || strlen(s->text) > max)
		return lull_fail(err, LULL_E_USAGE, "q must be the text to find, up to %u bytes",
				 max);
	if (!s->is_regex)
		return LULL_OK;
	for (const char *c = s->text; *c; c++) {
		if (*c == '{' || (*c == '\\' && isdigit((unsigned char)c[1])))
			return lull_fail(err, LULL_E_USAGE,
					 "{n} and \\1 cannot be used in a search");
	}
	rc = regcomp(&s->regex, s->text, REG_EXTENDED | REG_ICASE | REG_NOSUB);
	if (rc) {
		char why[128];

		regerror(rc, &s->regex, why, sizeof(why));
		return lull_fail(err, LULL_E_USAGE, "%s", why);
	}
	return LULL_OK;
}

static int run(struct lull_question *q, struct lull_err *err)
{
	struct search s = { .t = q->report->timeline,
			    .r = q->reader,
			    .text = lull_args_get(q->args, "q"),
			    .is_regex = lull_args_get(q->args, "regex"),
			    .is_exact = lull_args_get(q->args, "exact"),
			    .began_ns = lull_now_ns() };

	if (lull_args_u64(q->args, "at", UINT64_MAX / 2, 0, &s.at_ns, err) ||
	    lull_args_u64(q->args, "from", MAX_HITS, UINT64_MAX, &s.from, err) || compile(&s, err))
		return err->code;
	s.at_ns += s.t->origin_ns;
	lull_blocks_init(&s.blocks, q->reader);
	lull_map_init(&s.known);
	lull_map_init(&s.counts);
	lull_vec_init(&s.hits, sizeof(struct hit));
	for (u32 i = 0; lull_sources[i].kind; i++)
		search_source(&s, i);
	put(&s, q->to);
	lull_blocks_release(&s.blocks);
	lull_map_release(&s.known);
	lull_map_release(&s.counts);
	lull_vec_release(&s.hits);
	if (s.is_regex)
		regfree(&s.regex);
	return LULL_OK;
}

const struct lull_answer lull_answer_search = {
	.name = "search",
	.type = "application/json",
	.is_slow = true,
	.run = run,
};
