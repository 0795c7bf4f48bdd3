/*
 * host_clock - one time for all ranks, fitted on collectives.
 *
 * All ranks leave an all-reduce and its kin at nearly the same moment, so the ends of one
 * collective on two hosts are one moment on two clocks. Each pair is a point: time on this clock,
 * and what the reference has more. A line through thousands of points is offset and drift.
 *
 * Domains:        ranks of one host share CLOCK_MONOTONIC and are fitted together.
 * Spreading:      hosts that have collectives in common with the reference are fitted first, then
 *                 those that have some in common with these, and so on.
 * Short ones:     a ring hands bytes on, so that ranks leave a long collective one after the other;
 *                 the line goes through the shortest there are.
 * Robust:         the line begins with medians (Theil and Sen, over pairs that are half the
 *                 recording apart); points further off than three times the spread are left out,
 *                 and least squares settle the rest.
 * Certain:        no rank leaves before the last one arrived. So each collective bounds the offset
 *                 from both sides, whatever makes ranks leave apart; the line is moved into the
 *                 bounds, and how narrow they are is the error that is certain.
 * Refused:        if single collectives scatter more around the line than collectives last, or
 *                 something is in common with nobody. Waiting is then told by how long collectives
 *                 last on each rank, which needs no clock.
 */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/mem.h"
#include "base/sort.h"
#include "job/job_int.h"

/* Fewer points do not show a drift. */
#define MIN_DRIFT_POINTS 8
/* Collectives up to this many times as long as the shortest tenth. */
#define SHORT_PART   10
#define SHORT_ENOUGH 1.5
/* Recordings of one host agree about when it was booted to this much: NTP moves UTC in between. */
#define SAME_BOOT_NS 100000000
/* Rounds of leaving out what is far off. */
#define N_ROUNDS 4
/* Standard deviation of what has this median absolute deviation. */
#define MAD_SIGMA 1.4826
/* Fits whose points scatter less are good, however short collectives are. */
#define GOOD_NS 20000.0
/*
 * Clocks that are kept by NTP or not at all drift less: 200 ppm. More is noise of few collectives.
 */
#define MAX_DRIFT 2e-4
/* A drift counts if it moves the clock so far over the collectives, and beyond their scatter. */
#define MIN_DRIFT_NS	 10000.0
#define MIN_SIGNIFICANCE 3.0

struct point {
	f64 x, y;
	f64 lasts;	 /* the collective */
	f64 start, end;	 /* on this clock: the last to come, the first to leave */
	f64 from, until; /* the same on the reference's */
};

struct domain {
	u64 base_ns;
	struct lull_vec ends; /* struct mean by key */
	struct lull_job_clock clock;
};

/* The mean end of a collective over the ranks of a domain. */
struct mean {
	u64 key;
	i64 sum_ns;
	i64 start_ns;	 /* of the last to come */
	i64 end_ns;	 /* of the first to leave */
	u64 shortest_ns; /* stay of a rank in it, over all domains */
	u32 n;
	u32 pad;
};

f64 lull_job_median(f64 *values, size_t n)
{
	if (!n)
		return 0;
	lull_sort_f64(values, n);
	return n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

i64 lull_job_time(const struct lull_job_rank *rank, u64 at_ns)
{
	i64 x = (i64)(rank->epoch_ns + at_ns - rank->clock.base_ns);

	return x + llround(rank->clock.offset_ns + rank->clock.drift * (f64)x);
}

/* ---- the line ---- */

struct line {
	f64 offset, drift, residual, error;
	u64 n;
};

static f64 spread(const struct line *l, const struct point *at, size_t n, f64 *room)
{
	for (size_t i = 0; i < n; i++)
		room[i] = fabs(at[i].y - l->offset - l->drift * at[i].x);
	return MAD_SIGMA * lull_job_median(room, n);
}

/* Medians of differences and of slopes over pairs that lie far apart. Points are by x. */
static void begin_line(struct line *l, const struct point *at, size_t n, f64 *room)
{
	size_t half = n / 2;

	l->drift = 0;
	if (n >= MIN_DRIFT_POINTS) {
		for (size_t i = 0; i < half; i++) {
			f64 dx = at[i + half].x - at[i].x;

			room[i] = dx > 0 ? (at[i + half].y - at[i].y) / dx : 0;
		}
		l->drift = lull_job_median(room, half);
	}
	for (size_t i = 0; i < n; i++)
		room[i] = at[i].y - l->drift * at[i].x;
	l->offset = lull_job_median(room, n);
}

/* Least squares through the points that are near the line. */
static void refine(struct line *l, const struct point *at, size_t n, f64 limit)
{
	f64 sx = 0, sy = 0, sxx = 0, sxy = 0, mean_x, mean_y;
	u64 k = 0;

	for (size_t i = 0; i < n; i++) {
		if (fabs(at[i].y - l->offset - l->drift * at[i].x) > limit)
			continue;
		sx += at[i].x;
		sy += at[i].y;
		k++;
	}
	if (!k)
		return;
	mean_x = sx / (f64)k;
	mean_y = sy / (f64)k;
	for (size_t i = 0; i < n; i++) {
		f64 dx = at[i].x - mean_x, dy = at[i].y - mean_y;

		if (fabs(at[i].y - l->offset - l->drift * at[i].x) > limit)
			continue;
		sxx += dx * dx;
		sxy += dx * dy;
	}
	if (k >= MIN_DRIFT_POINTS && sxx > 0)
		l->drift = sxy / sxx;
	l->offset = mean_y - l->drift * mean_x;
	l->n = k;
}

static int by_x(const void *a, const void *b)
{
	const struct point *x = a, *y = b;

	return (x->x > y->x) - (x->x < y->x);
}

static void fit_line(struct line *l, struct point *at, size_t n)
{
	f64 *room = lull_alloc(n + 1, sizeof(*room)), moved;

	memset(l, 0, sizeof(*l));
	lull_sort(at, n, sizeof(*at), by_x);
	begin_line(l, at, n, room);
	for (int i = 0; i < N_ROUNDS; i++)
		refine(l, at, n, 3 * spread(l, at, n, room) + 1000);
	l->residual = spread(l, at, n, room);
	moved = fabs(l->drift) * (n ? at[n - 1].x - at[0].x : 0);
	if (fabs(l->drift) > MAX_DRIFT || moved < MIN_DRIFT_NS ||
	    moved < MIN_SIGNIFICANCE * l->residual) {
		l->drift = 0;
		for (size_t i = 0; i < n; i++)
			room[i] = at[i].y;
		l->offset = lull_job_median(room, n);
		l->residual = spread(l, at, n, room);
	}
	l->error = l->residual / sqrt((f64)(l->n ? l->n : 1));
	free(room);
}

/* ---- domains ---- */

/* When the host was booted, as far as its clocks tell; hosts may have the same name. */
static i64 boot_ns(const struct lull_job_rank *rank)
{
	return (i64)(rank->epoch_utc_ns - rank->epoch_ns);
}

/* The first rank that shares this one's clock, by host and boot. */
static const struct lull_job_rank *clock_mate(const struct lull_job *job,
					      const struct lull_job_rank *rank,
					      const struct lull_map *first_of, u32 host)
{
	const u32 *ix = lull_map_find(first_of, host);
	const struct lull_job_rank *first = ix ? lull_vec_get(&job->ranks, *ix) : NULL;

	return first && llabs(boot_ns(first) - boot_ns(rank)) <= SAME_BOOT_NS ? first : NULL;
}

static u32 make_domains(struct lull_job *job, struct lull_vec *domains)
{
	struct lull_job_rank *all = job->ranks.at;
	struct lull_intern hosts;
	struct lull_map first_of; /* host to the rank that was first */

	lull_intern_init(&hosts);
	lull_map_init(&first_of);
	for (size_t i = 0; i < job->ranks.n; i++) {
		bool is_shared = *all[i].host && !job->options.is_by_rank;
		u32 host =
			is_shared ? lull_intern_add(&hosts, all[i].host, strlen(all[i].host)) : 0;
		const struct lull_job_rank *mate =
			is_shared ? clock_mate(job, &all[i], &first_of, host) : NULL;
		struct domain *d;

		if (mate) {
			all[i].clock.domain = mate->clock.domain;
		} else {
			all[i].clock.domain = (u32)domains->n;
			d = lull_vec_push(domains);
			d->base_ns = all[i].epoch_ns;
			lull_vec_init(&d->ends, sizeof(struct mean));
			if (is_shared && !lull_map_find(&first_of, host))
				*lull_map_add(&first_of, host, NULL) = (u32)i;
		}
		d = lull_vec_get(domains, all[i].clock.domain);
		d->base_ns = all[i].epoch_ns < d->base_ns ? all[i].epoch_ns : d->base_ns;
	}
	lull_map_release(&first_of);
	lull_intern_release(&hosts);
	return (u32)domains->n;
}

static int by_key(const void *a, const void *b)
{
	const struct mean *x = a, *y = b;

	return (x->key > y->key) - (x->key < y->key);
}

static void add_mean(struct mean *to, const struct mean *from)
{
	to->sum_ns += from->sum_ns;
	to->n += from->n;
	to->start_ns = from->start_ns > to->start_ns ? from->start_ns : to->start_ns;
	to->end_ns = from->end_ns < to->end_ns ? from->end_ns : to->end_ns;
}

/* How long each collective lasted on the rank that came last. */
static void find_shortest(struct lull_job *job, struct lull_vec *domains,
			  const struct lull_vec *samples)
{
	struct lull_map known;
	struct lull_vec shortest;

	lull_map_init(&known);
	lull_vec_init(&shortest, sizeof(u64));
	for (size_t i = 0; i < job->ranks.n; i++) {
		const struct lull_job_sample *s = samples[i].at;

		for (size_t k = 0; k < samples[i].n; k++) {
			u64 dur_ns = s[k].end_ns - s[k].start_ns, *to;
			bool is_new;
			u32 *ix = lull_map_add(&known, s[k].key, &is_new);

			if (is_new) {
				*ix = (u32)shortest.n;
				lull_vec_add(&shortest, &dur_ns, 1);
			}
			to = lull_vec_get(&shortest, *ix);
			*to = dur_ns < *to ? dur_ns : *to;
		}
	}
	for (size_t i = 0; i < domains->n; i++) {
		struct domain *d = lull_vec_get(domains, i);
		struct mean *m = d->ends.at;

		for (size_t k = 0; k < d->ends.n; k++)
			m[k].shortest_ns =
				*(u64 *)lull_vec_get(&shortest, *lull_map_find(&known, m[k].key));
	}
	lull_map_release(&known);
	lull_vec_release(&shortest);
}

static void fill_domains(struct lull_job *job, struct lull_vec *domains,
			 const struct lull_vec *samples)
{
	const struct lull_job_rank *all = job->ranks.at;

	for (size_t i = 0; i < job->ranks.n; i++) {
		const struct lull_job_sample *s = samples[i].at;
		struct domain *d = lull_vec_get(domains, all[i].clock.domain);

		for (size_t k = 0; k < samples[i].n; k++) {
			i64 end_ns = (i64)(s[k].end_ns - d->base_ns);
			struct mean m = {
				.key = s[k].key,
				.sum_ns = end_ns,
				.start_ns = (i64)(s[k].start_ns - d->base_ns),
				.end_ns = end_ns,
				.n = 1,
			};

			lull_vec_add(&d->ends, &m, 1);
		}
	}
	for (size_t i = 0; i < domains->n; i++) {
		struct domain *d = lull_vec_get(domains, i);
		struct mean *m = d->ends.at;
		size_t n = 0;

		if (d->ends.n)
			lull_sort(m, d->ends.n, sizeof(*m), by_key);
		for (size_t k = 0; k < d->ends.n; k++) {
			if (n && m[n - 1].key == m[k].key) {
				add_mean(&m[n - 1], &m[k]);
			} else {
				m[n++] = m[k];
			}
		}
		d->ends.n = n;
	}
}

/* What is known of collectives on the reference's clock. */
struct known {
	struct lull_map by_key;
	struct lull_vec means; /* struct mean */
};

static i64 aligned(const struct domain *d, f64 x)
{
	return llround(x + d->clock.offset_ns + d->clock.drift * x);
}

static void learn(struct known *known, const struct domain *d)
{
	const struct mean *m = d->ends.at;

	for (size_t i = 0; i < d->ends.n; i++) {
		f64 x = (f64)m[i].sum_ns / m[i].n;
		bool is_new;
		u32 *ix = lull_map_add(&known->by_key, m[i].key, &is_new);
		struct mean *to;

		struct mean own = m[i];

		own.sum_ns = aligned(d, x) * m[i].n;
		own.start_ns = aligned(d, (f64)m[i].start_ns);
		own.end_ns = aligned(d, (f64)m[i].end_ns);
		if (is_new) {
			*ix = (u32)known->means.n;
			lull_vec_add(&known->means, &own, 1);
			continue;
		}
		to = lull_vec_get(&known->means, *ix);
		add_mean(to, &own);
	}
}

/* The shortest collectives to the front; how many they are. */
static size_t take_short(struct point *at, size_t n)
{
	f64 *room = lull_alloc(n + 1, sizeof(*room)), limit;
	size_t least = n / SHORT_PART > MIN_DRIFT_POINTS ? n / SHORT_PART : MIN_DRIFT_POINTS;
	size_t n_short = 0;

	for (size_t i = 0; i < n; i++)
		room[i] = at[i].lasts;
	lull_job_median(room, n);
	limit = n > least ? SHORT_ENOUGH * room[least] : INFINITY;
	free(room);
	for (size_t i = 0; i < n; i++) {
		struct point swap = at[n_short];

		if (at[i].lasts > limit)
			continue;
		at[n_short++] = at[i];
		at[i] = swap;
	}
	return n_short;
}

/* Move the line so that no rank leaves before the last one arrived. */
static void bound(struct lull_job_clock *c, const struct point *at, size_t n)
{
	f64 low = -INFINITY, high = INFINITY;

	for (size_t i = 0; i < n; i++) {
		low = fmax(low, at[i].from - at[i].end * (1 + c->drift));
		high = fmin(high, at[i].until - at[i].start * (1 + c->drift));
	}
	if (low > high || isinf(low) || isinf(high))
		return;
	c->bound_ns = (high - low) / 2;
	c->offset_ns = fmin(fmax(c->offset_ns, low), high);
}

/* Fit a domain on what is known; false if there is nothing in common. */
static bool fit_domain(struct domain *d, const struct known *known)
{
	const struct mean *m = d->ends.at, *means = known->means.at;
	struct point *at = lull_alloc(d->ends.n + 1, sizeof(*at));
	struct line l;
	size_t n = 0;

	for (size_t i = 0; i < d->ends.n; i++) {
		const u32 *ix = lull_map_find(&known->by_key, m[i].key);
		f64 x = (f64)m[i].sum_ns / m[i].n;

		if (!ix)
			continue;
		at[n] = (struct point){ .x = x,
					.y = (f64)means[*ix].sum_ns / means[*ix].n - x,
					.lasts = (f64)m[i].shortest_ns,
					.start = (f64)m[i].start_ns,
					.end = (f64)m[i].end_ns,
					.from = (f64)means[*ix].start_ns,
					.until = (f64)means[*ix].end_ns };
		n++;
	}
	if (n) {
		fit_line(&l, at, take_short(at, n));
		d->clock.offset_ns = l.offset;
		d->clock.drift = l.drift;
		d->clock.residual_ns = l.residual;
		d->clock.error_ns = l.error;
		d->clock.n_points = l.n;
		d->clock.is_known = true;
		bound(&d->clock, at, n);
	}
	free(at);
	return n > 0;
}

/* From the reference outwards. */
static void spread_out(struct lull_vec *domains, u32 reference)
{
	struct domain *all = domains->at;
	bool *is_fresh = lull_alloc(domains->n, sizeof(*is_fresh)), has_more = true;
	struct known known;

	lull_map_init(&known.by_key);
	lull_vec_init(&known.means, sizeof(struct mean));
	all[reference].clock.is_known = true;
	learn(&known, &all[reference]);
	while (has_more) {
		has_more = false;
		for (size_t i = 0; i < domains->n; i++)
			is_fresh[i] = !all[i].clock.is_known && fit_domain(&all[i], &known);
		for (size_t i = 0; i < domains->n; i++) {
			if (is_fresh[i])
				learn(&known, &all[i]);
			has_more |= is_fresh[i];
		}
	}
	lull_map_release(&known.by_key);
	lull_vec_release(&known.means);
	free(is_fresh);
}

/* ---- whether it is good enough ---- */

/* How long collectives last at least: what is to be measured. */
static f64 typical_ns(const struct lull_job *job, const struct lull_vec *samples)
{
	size_t n = 0, n_all = 0;
	f64 *durations, typical;

	for (size_t i = 0; i < job->ranks.n; i++)
		n_all += samples[i].n;
	durations = lull_alloc(n_all + 1, sizeof(*durations));
	for (size_t i = 0; i < job->ranks.n; i++) {
		const struct lull_job_sample *s = samples[i].at;

		for (size_t k = 0; k < samples[i].n; k++)
			durations[n++] = (f64)(s[k].end_ns - s[k].start_ns);
	}
	typical = lull_job_median(durations, n);
	free(durations);
	return typical;
}

static void refuse(struct lull_job *job, enum lull_job_clocks clocks, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void refuse(struct lull_job *job, enum lull_job_clocks clocks, const char *fmt, ...)
{
	va_list ap;

	if (job->clocks == LULL_CLOCKS_DURATIONS || job->clocks == LULL_CLOCKS_NONE)
		return;
	job->clocks = clocks;
	va_start(ap, fmt);
	vsnprintf(job->clocks_why, sizeof(job->clocks_why), fmt, ap);
	va_end(ap);
}

static void weigh(struct lull_job *job, f64 typical)
{
	const struct lull_job_rank *all = job->ranks.at;

	for (size_t i = 0; i < job->ranks.n; i++) {
		const struct lull_job_clock *c = &all[i].clock;

		if (!c->is_known) {
			refuse(job, LULL_CLOCKS_DURATIONS,
			       "rank %lld (%s) has no collective in common with rank %lld, "
			       "directly "
			       "or through others",
			       (long long)all[i].rank, all[i].file,
			       (long long)all[job->reference_ix].rank);
			continue;
		}
		job->residual_ns = fmax(job->residual_ns, c->residual_ns);
		job->error_ns = fmax(job->error_ns, c->error_ns);
		job->bound_ns = fmax(job->bound_ns, c->bound_ns);
		if (c->residual_ns > GOOD_NS && c->residual_ns > typical)
			refuse(job, LULL_CLOCKS_DURATIONS,
			       "the clock of rank %lld (%s) is known only to %.0f us, and "
			       "collectives last %.0f us",
			       (long long)all[i].rank, all[i].file, c->residual_ns / 1e3,
			       typical / 1e3);
	}
}

/* Ranks of one host share a clock, so a fit of each by itself shows how good fits are here. */
static void check_fit(struct lull_job *job)
{
	const struct lull_job_rank *all = job->ranks.at;

	for (size_t i = 0; i < job->ranks.n; i++) {
		size_t k = 0;
		u64 at_ns;

		if (!all[i].clock.is_known || !*all[i].host)
			continue;
		while (strcmp(all[k].host, all[i].host) != 0 || !all[k].clock.is_known)
			k++;
		if (k == i)
			continue;
		at_ns = all[i].epoch_ns + all[i].last_ns;
		job->off_ns = fmax(job->off_ns,
				   fabs((f64)(lull_job_time(&all[i], at_ns - all[i].epoch_ns) -
					      lull_job_time(&all[k], at_ns - all[k].epoch_ns))));
		job->n_checked++;
	}
}

void lull_job_fit(struct lull_job *job, const struct lull_vec *samples)
{
	struct lull_job_rank *all = job->ranks.at;
	struct lull_vec domains;
	struct domain *at;
	u64 n_samples = 0;

	lull_vec_init(&domains, sizeof(struct domain));
	job->n_domains = make_domains(job, &domains);
	fill_domains(job, &domains, samples);
	find_shortest(job, &domains, samples);
	spread_out(&domains, all[job->reference_ix].clock.domain);
	at = domains.at;
	for (size_t i = 0; i < job->ranks.n; i++) {
		u32 domain = all[i].clock.domain;

		all[i].clock = at[domain].clock;
		all[i].clock.domain = domain;
		all[i].clock.base_ns = at[domain].base_ns;
		n_samples += samples[i].n;
		/* Without a fit, what the hosts think of UTC has to do. */
		if (!all[i].clock.is_known)
			all[i].clock.offset_ns = (f64)((i64)(all[i].epoch_utc_ns -
							     all[job->reference_ix].epoch_utc_ns) -
						       (i64)(all[i].epoch_ns - at[domain].base_ns));
	}
	job->clocks = job->n_domains == 1 ? LULL_CLOCKS_SAME : LULL_CLOCKS_FITTED;
	if (job->n_domains > 1 && !n_samples)
		refuse(job, LULL_CLOCKS_NONE,
		       "there are no collectives from which clocks can be fitted: record with "
		       "--trace=cuda,nccl, and steps with communication");
	else if (job->n_domains > 1)
		weigh(job, typical_ns(job, samples));
	if (job->options.is_by_rank)
		check_fit(job);
	for (size_t i = 0; i < domains.n; i++)
		lull_vec_release(&at[i].ends);
	lull_vec_release(&domains);
}
