/*
 * evidence - what proves each finding: where the time went, how often, and what else was measured.
 */
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/convert.h"
#include "base/mem.h"
#include "text/labels.h"
#include "base/sort.h"
#include "base/str.h"
#include "text/term.h"
#include "cause/evidence.h"
#include "cause/thresholds.h"
#include "cause/why_int.h"

#define MAX_PLACES 3
#define MAX_SPOTS  32
#define FEW	   100
#define MOST	   0.6
#define EACH	   0.95 /* as good as every step, or once in it */
#define FEW_TIMES  1.05

void lull_show(struct lull_finding *f, const char *table, const struct lull_where *where,
	       const char *fmt, ...)
{
	struct lull_evidence *e = lull_vec_push(&f->evidence);
	va_list ap;

	e->table = table;
	if (where) {
		e->from_ns = where->from_ns;
		e->to_ns = where->to_ns;
		e->n_rows = where->n;
	}
	va_start(ap, fmt);
	vsnprintf(e->text, sizeof(e->text), fmt, ap);
	va_end(ap);
}

static const char *table_of(const struct lull_why *why, const struct lull_where *where)
{
	static const char *const host[] = { "range", "op", "pycall", "oscall" };
	const struct lull_host *h = &why->lead->host;
	const struct lull_cause *cause = lull_causes[where->cause];
	const char *table = cause->table ? cause->table(why->lead) : NULL;

	if (table)
		return table;
	if (where->event != LULL_NONE)
		return host[((const struct lull_host_event *)h->events.at)[where->event].kind];
	return "cuda_call";
}

/* What can be said where no range, function or operator is known. */
static const char *where_without_place(const struct lull_subject *s, const struct lull_where *where)
{
	const struct lull_cause *cause = lull_causes[where->cause];

	if (cause->names_unit)
		return lull_units_name(&s->units.at[where->unit], s->reader);
	if (cause->nowhere)
		return cause->nowhere;
	/* Something was seen, but not what it is called. */
	if (s->host.has_samples || s->unseen_ns[where->cause] * 2 <= s->cost_ns[where->cause])
		return "between CUDA calls, in something without a name";
	return "between CUDA calls; nothing was recorded there";
}

/* The thread that counts steps, or makes the first call: the others are named. */
static u32 main_lane(const struct lull_subject *s)
{
	return s->chain.nodes[0].lane;
}

static const char *lane_name(const struct lull_subject *s, u32 lane)
{
	size_t n;
	const struct lull_lane_row *lanes = lull_reader_dim(s->reader, LULL_TABLE_lane, &n);

	return lull_reader_string(s->reader, lanes[lane - 1].name, NULL);
}

/* "block N" of "block 12": what names that carry a number have in common; `name` may be NULL. */
static const char *without_numbers(const char *name, char *to, size_t cap)
{
	size_t n = 0;

	if (!name)
		return NULL;
	for (; *name && n + 1 < cap; name++) {
		if (!isdigit((unsigned char)*name))
			to[n++] = *name;
		else if (!n || to[n - 1] != 'N' || !isdigit((unsigned char)name[-1]))
			to[n++] = 'N';
	}
	to[n] = '\0';
	return to;
}

/* The same as lull_why_describe(), with what names of ranges have in common if `is_folded`. */
static void describe(const struct lull_subject *s, const struct lull_where *where, bool is_folded,
		     char *to, size_t cap)
{
	struct lull_location at = lull_location_find(s, where->event, where->stack);
	char range[200], outer[200];
	const struct lull_node *node =
		where->node == LULL_NONE ? NULL : &s->chain.nodes[where->node];
	bool is_call = node && where->from_ns >= node->begin_ns;
	char place[200];
	size_t len = 0;

	if (is_folded) {
		at.range = without_numbers(at.range, range, sizeof(range));
		at.outer = without_numbers(at.outer, outer, sizeof(outer));
		if (at.range && at.outer && !strcmp(at.range, at.outer))
			at.outer = at.range;
	}
	lull_location_format(&at, place, sizeof(place));
	/* A launch is told by what is around it, if anything is. */
	if (is_call && node->kind == LULL_KIND_OF_LAUNCH)
		is_call = !*place && !lull_causes[where->cause]->names_unit &&
			  !lull_causes[where->cause]->nowhere;
	if (is_call)
		len = (size_t)snprintf(to, cap, "%s%s",
				       lull_reader_string(s->reader, node->name, NULL),
				       *place ? ", " : "");
	else if (!*place)
		len = (size_t)snprintf(to, cap, "%s", where_without_place(s, where));
	if (len < cap)
		len += (size_t)snprintf(to + len, cap - len, "%s", place);
	if (!*place && node && node->lane != main_lane(s) && *lane_name(s, node->lane) && len < cap)
		snprintf(to + len, cap - len, ", thread %s", lane_name(s, node->lane));
}

void lull_why_describe(const struct lull_subject *s, const struct lull_where *where, char *to,
		       size_t cap)
{
	describe(s, where, false, to, cap);
}

/* What is said of a place, and how long a cause was there in all: stacks differ in small things. */
struct spot {
	char what[220];
	char own[220]; /* the same with its numbers, if they are of one round only; else "" */
	u32 n_names;
	struct lull_where where; /* the longest one */
	u64 ns;
	u64 n;
	u64 n_rounds; /* in which it is there */
};

static int by_ns(const void *a, const void *b)
{
	const struct spot *x = a, *y = b;

	if (x->ns != y->ns)
		return x->ns < y->ns ? 1 : -1;
	return strcmp(x->what, y->what);
}

/* In how many rounds each spot is; `spot_of` has the spot of each place, LULL_NONE if none. */
static void count_rounds(const struct lull_subject *s, const u32 *spot_of, struct spot *spots)
{
	const struct lull_visit *visits = s->visits.at;
	u32 last[MAX_SPOTS];

	for (u32 k = 0; k < MAX_SPOTS; k++)
		last[k] = LULL_NONE;
	for (size_t i = 0; i < s->visits.n; i++) {
		u32 k = spot_of[visits[i].where];

		if (k == LULL_NONE || last[k] == visits[i].round)
			continue;
		last[k] = visits[i].round;
		spots[k].n_rounds++;
	}
}

/*
 * Places of the cause by what is said of them; the first MAX_SPOTS, which are largest. Names
 * with a number that are there in one round only are one ("batch 17", "blocks.3").
 */
static u32 find_spots(const struct lull_why *why, enum lull_cause_ix cause, struct spot *spots)
{
	const struct lull_where *wheres = why->lead->wheres.at;
	size_t n_wheres = why->lead->wheres.n;
	u32 n = 0, *spot_of = lull_alloc(n_wheres + 1, sizeof(*spot_of));

	for (size_t i = 0; i < n_wheres; i++)
		spot_of[i] = LULL_NONE;
	for (size_t i = 0; i < n_wheres; i++) {
		char what[sizeof(spots->what)], own[sizeof(spots->own)] = "";
		u32 k = 0;

		if (wheres[i].cause != cause)
			continue;
		describe(why->lead, &wheres[i], !wheres[i].recurs, what, sizeof(what));
		if (!wheres[i].recurs)
			describe(why->lead, &wheres[i], false, own, sizeof(own));
		while (k < n && strcmp(spots[k].what, what) != 0)
			k++;
		if (k == MAX_SPOTS)
			continue;
		if (k == n) {
			memcpy(spots[n].what, what, sizeof(what));
			memcpy(spots[n].own, own, sizeof(own));
			spots[n].where = wheres[i];
			n++;
		}
		spots[k].n_names += spots[k].n_names == 0 || strcmp(spots[k].own, own) != 0;
		spots[k].ns += wheres[i].ns;
		spots[k].n += wheres[i].n;
		spot_of[wheres[i].number] = k;
	}
	count_rounds(why->lead, spot_of, spots);
	free(spot_of);
	for (u32 k = 0; k < n; k++) {
		if (spots[k].n_names == 1 && *spots[k].own)
			memcpy(spots[k].what, spots[k].own, sizeof(spots[k].what));
	}
	if (n)
		lull_sort(spots, n, sizeof(*spots), by_ns);
	return n;
}

struct lull_number lull_show_count(f64 n)
{
	struct lull_number out;

	/* A digit after the point says something only of few. */
	if (n >= FEW || fabs(n - round(n)) < 0.05)
		return lull_format_grouped((i64)round(n));
	snprintf(out.text, sizeof(out.text), "%.1f", n);
	return out;
}

struct lull_number lull_show_often(f64 per_step)
{
	struct lull_number to;
	f64 every = per_step > 0 ? round(1 / per_step) : 0;

	if (per_step >= EACH && per_step < FEW_TIMES)
		snprintf(to.text, sizeof(to.text), "once per step");
	else if (per_step >= EACH)
		snprintf(to.text, sizeof(to.text), "%.20s times per step",
			 lull_show_count(per_step).text);
	else if (per_step > MOST)
		snprintf(to.text, sizeof(to.text), "in most steps");
	else
		snprintf(to.text, sizeof(to.text),
			 every == 2 ? "every second step" : "once in %.0f steps", every);
	return to;
}

/* The same of a spot: several times in one step are not once in each of several. */
static struct lull_number show_often(const struct spot *spot, f64 n_steps)
{
	f64 times = (f64)spot->n / (f64)spot->n_rounds, share = (f64)spot->n_rounds / n_steps;
	struct lull_number of = lull_show_often(share), to;
	f64 every = round(1 / share);

	if (share >= EACH)
		return lull_show_often((f64)spot->n / n_steps);
	if (share > MOST || times < FEW_TIMES)
		return of;
	if (every == 2)
		snprintf(to.text, sizeof(to.text), "%.16s times in every second step",
			 lull_show_count(times).text);
	else
		snprintf(to.text, sizeof(to.text), "%.16s times in 1 of %.0f steps",
			 lull_show_count(times).text, every);
	return to;
}

/* Up to three places, the first of which is the finding's location. */
static void add_places(struct lull_why *why, struct lull_finding *f)
{
	struct spot *spots = lull_alloc(MAX_SPOTS, sizeof(*spots));
	u32 n = find_spots(why, f->cause, spots);
	f64 n_steps = lull_why_n_steps(why);

	for (u32 i = 0;
	     i < n && i < MAX_PLACES && (f64)spots[i].ns >= LULL_T(line_share) * (f64)spots[0].ns;
	     i++) {
		spots[i].where.n = spots[i].n;
		lull_show(f, table_of(why, &spots[i].where), &spots[i].where, "%s: %s/step, %s",
			  spots[i].what, lull_why_time((f64)spots[i].ns / n_steps).text,
			  show_often(&spots[i], n_steps).text);
	}
	if (n)
		f->at = lull_location_find(why->lead, spots[0].where.event, spots[0].where.stack);
	free(spots);
}

/* ---- copies ---- */

struct copies {
	u64 n, bytes, ns;
};

static struct copies sum_copies(const struct lull_subject *s, bool is_pageable, u8 direction)
{
	struct copies sum = { 0, 0, 0 };

	for (u32 i = 0; i < s->units.n; i++) {
		const struct lull_unit *unit = &s->units.at[i];
		const struct lull_copy *copy;

		if (unit->kind != LULL_UNIT_COPY || unit->round == LULL_NONE ||
		    unit->round < s->rounds.first_steady)
			continue;
		copy = lull_units_copy(&s->units, unit);
		if (copy->direction != direction || lull_copy_is_pageable(copy) != is_pageable)
			continue;
		sum.n++;
		sum.bytes += copy->size_bytes;
		sum.ns += unit->end_ns - unit->begin_ns;
	}
	return sum;
}

void lull_show_copies(struct lull_why *why, struct lull_finding *f, bool is_pageable, u8 direction)
{
	struct copies c = sum_copies(why->lead, is_pageable, direction);
	f64 n_steps = lull_why_n_steps(why);
	struct lull_number often = lull_show_count((f64)c.n / n_steps);
	const char *host = is_pageable ? "pageable memory" : "pinned memory";
	/* Small copies take their time to get under way; how fast they are says nothing. */
	bool is_small = c.n && c.bytes / c.n < LULL_TN(small_bytes);
	char speed[32] = "", way[48] = "within the device";

	if (!c.n || !c.ns)
		return;
	if (!is_small)
		snprintf(speed, sizeof(speed), " at %.1f GB/s", (f64)c.bytes / (f64)c.ns);
	if (direction == LULL_COPY_IN)
		snprintf(way, sizeof(way), "from %s to the device", host);
	else if (direction == LULL_COPY_OUT)
		snprintf(way, sizeof(way), "from the device to %s", host);
	lull_show(f, "memcpy", NULL, "%s %s per step %s: %s per step%s%s", often.text,
		  strcmp(often.text, "1") != 0 ? "copies" : "copy", way,
		  lull_format_bytes(lull_u64_of((f64)c.bytes / n_steps)).text, speed,
		  is_pageable ? "" : "; no kernel runs at the same time");
	if (is_pageable && direction == LULL_COPY_IN && !is_small)
		lull_show(f, NULL, NULL, "pinned copies reach about %.0f GB/s here",
			  why->replay.link[LULL_COPY_IN] / 1e9);
}

/* ---- other facts ---- */

void lull_show_stalls(struct lull_why *why, struct lull_finding *f)
{
	const struct lull_stalls *st = &why->lead->stalls;

	if (st->n_gaps && st->kind != LULL_STALL_UNKNOWN)
		lull_show(
			f, "cuda_call", NULL,
			"%u gaps are at least 8 times as long as at the same place in other "
			"steps; %u CUDA calls are, although calls take %.0f %% of the host's time",
			st->n_gaps, st->n_calls, st->call_share * 100);
}

bool lull_finding_waits(const struct lull_why *why, const struct lull_finding *f)
{
	const struct lull_where *wheres = why->lead->wheres.at;

	for (size_t i = 0; i < why->lead->wheres.n; i++) {
		const struct lull_host_event *events = why->lead->host.events.at;

		if (wheres[i].cause == f->cause)
			return wheres[i].event != LULL_NONE &&
			       (events[wheres[i].event].inside & (LULL_IN_WAIT | LULL_IN_READ));
	}
	return false;
}

void lull_show_kernels(struct lull_why *why, struct lull_finding *f)
{
	const struct lull_why_kernel *kernels = why->kernels.at;
	const char *names[MAX_PLACES];
	struct lull_labels labels;
	size_t n = 0;
	u64 sum = 0;

	for (size_t i = 0; i < why->kernels.n; i++) {
		sum += kernels[i].ns;
		if (i < MAX_PLACES)
			names[n++] = kernels[i].name;
	}
	lull_labels_init(&labels, true);
	lull_labels_add(&labels, names, n);
	for (size_t i = 0; sum && i < n; i++) {
		f64 percent = (f64)kernels[i].ns / (f64)sum * 100;

		/* They are sorted: what would read "0 %" is no evidence. */
		if (percent < 0.5)
			break;
		lull_show(f, "kernel", NULL, "%s: %.0f %% of the kernel time, %s",
			  lull_labels_get(&labels, names[i]), percent,
			  lull_show_often((f64)kernels[i].n / lull_why_n_steps(why)).text);
	}
	lull_labels_release(&labels);
}

static f64 compute_ns(const struct lull_subject *s)
{
	return (f64)s->split_ns[LULL_SPLIT_COMPUTE] / lull_rounds_n_steady(&s->rounds);
}

void lull_show_ranks(struct lull_why *why, struct lull_finding *f)
{
	const struct lull_subject *s = why->lead;
	size_t n;
	const struct lull_process_row *processes =
		lull_reader_dim(why->reader, LULL_TABLE_process, &n);
	const struct lull_subject *last;
	int best = 0;

	if (s->ranks.is_pipeline)
		lull_show(f, "kernel", NULL, "the busiest stage computes %.1f times as long",
			  s->ranks.busiest_share);
	if (s->ranks.last_rank == LULL_NONE)
		return;
	last = &why->subjects[s->ranks.last_rank];
	for (int i = 1; i < LULL_N_CAUSES; i++)
		best = last->cost_ns[i] > last->cost_ns[best] ? i : best;
	lull_show(
		f, "kernel", NULL,
		"process %u arrives last: its collectives are shortest; it computes "
		"%s/step, this one %s; its largest cause is %s (%s/step)",
		processes[last->process - 1].pid, lull_why_time(compute_ns(last)).text,
		lull_why_time(compute_ns(s)).text, lull_causes[best]->id,
		lull_why_time((f64)last->cost_ns[best] / lull_rounds_n_steady(&last->rounds)).text);
}

/* Put `with` in the place of a word that stands for it, if there is room. */
static void name_it(char *text, size_t cap, const char *word, const char *with)
{
	char *at = strstr(text, word);
	size_t len = strlen(word);
	struct lull_str out = LULL_STR_INIT;

	if (!at || !with || strlen(text) - len + strlen(with) >= cap)
		return;
	lull_str_addf(&out, "%.*s%s%s", (int)(at - text), text, with, at + len);
	snprintf(text, cap, "%s", lull_str_text(&out));
	lull_str_release(&out);
}

static void advise(const struct lull_why *why, struct lull_finding *f)
{
	const struct lull_subject *s = why->lead;
	const struct lull_cause *cause = lull_causes[f->cause];
	bool is_torch = lull_subject_is_torch(s);
	const char *fix = is_torch && cause->fix_torch ? cause->fix_torch : cause->fix;

	snprintf(f->advice.fix, sizeof(f->advice.fix), "%s", fix);
	snprintf(f->advice.assumes, sizeof(f->advice.assumes), "%s",
		 cause->assumes ? cause->assumes : "");
	if (cause->suit)
		cause->suit(why, is_torch, &f->advice);
	name_it(f->advice.fix, sizeof(f->advice.fix), "REPORT", why->path);
	name_it(f->advice.fix, sizeof(f->advice.fix), "PROGRAM", lull_why_command(why));
}

void lull_advise_others(const struct lull_why *why, struct lull_finding *f)
{
	const struct lull_cause *cause = lull_causes[f->cause];
	bool is_torch = lull_subject_is_torch(why->lead) && cause->fix_more_torch;

	snprintf(f->advice.fix, sizeof(f->advice.fix), "%s",
		 is_torch ? cause->fix_more_torch : cause->fix_more);
}

void lull_why_evidence(struct lull_why *why)
{
	for (size_t i = 0; i < why->findings.n; i++) {
		struct lull_finding *f = lull_vec_get(&why->findings, i);

		advise(why, f);
		add_places(why, f);
		if (lull_causes[f->cause]->prove)
			lull_causes[f->cause]->prove(why, f);
	}
}
