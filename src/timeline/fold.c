#include "timeline/fold.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "base/mem.h"
#include "base/sort.h"

#define KEEP_RECS   4096u /* a lane with no more events than this is kept as it is */
#define LAST_RECS   2048u /* the coarsest level has fewer */
#define EVENTS_EACH 16u	  /* events that share a record at the base */

void lull_fold_init(struct lull_fold *f, u32 log2, bool is_adaptive)
{
	*f = (struct lull_fold){ .log2 = log2,
				 .is_adaptive = is_adaptive,
				 .max_log2 = LULL_MAX_LOG2,
				 .next_check = KEEP_RECS + 1 };
	lull_vec_init(&f->recs, sizeof(struct lull_rec));
}

void lull_fold_again(struct lull_fold *f, u32 log2)
{
	struct lull_vec recs = f->recs;

	lull_fold_init(f, log2, false);
	f->recs = recs;
	f->recs.n = 0;
}

void lull_fold_release(struct lull_fold *f)
{
	lull_vec_release(&f->recs);
}

/* The class of shares that are all of one, -1 if they are mixed; most are not. */
static int only_class(u64 shares)
{
	int at = shares ? __builtin_ctzll(shares) : 1;

	return at % 8 == 0 && shares >> at == 255 ? at / 8 : -1;
}

/* Turn the sums of classes into shares of a byte. */
static void set_shares(struct lull_rec *rec, const u64 by_class[LULL_N_CLASSES])
{
	u64 sum = 0;
	f64 scale;

	for (unsigned c = 0; c < LULL_N_CLASSES; c++)
		sum += by_class[c];
	scale = sum ? 255.0 / (f64)sum : 0;
	for (unsigned c = 0; c < LULL_N_CLASSES; c++)
		rec->share[c] = (u8)((f64)by_class[c] * scale + 0.5);
}

static void keep(struct lull_fold *f, const struct lull_rec *rec)
{
	*(struct lull_rec *)lull_vec_room(&f->recs, 1) = *rec;
	f->recs.n++;
}

static void close_cur(struct lull_fold *f)
{
	if (!f->is_open)
		return;
	if (f->cur.count > 1 && only_class(f->classes) < 0)
		set_shares(&f->cur, f->by_class);
	keep(f, &f->cur);
	f->is_open = false;
}

static void weigh(struct lull_fold *f, const struct lull_rec *rec)
{
	/* A moment without length still has a class. */
	u64 weight = rec->busy_ns ? rec->busy_ns : 1, shares = lull_get_u64(rec->share);
	int only = only_class(shares);

	f->classes |= shares;
	if (only >= 0) {
		f->by_class[only] += weight;
		return;
	}
	for (unsigned c = 0; c < LULL_N_CLASSES; c++)
		f->by_class[c] += weight * rec->share[c] / 255;
}

static void open_cur(struct lull_fold *f, const struct lull_rec *rec)
{
	close_cur(f);
	f->cur = *rec;
	f->longest_ns = rec->busy_ns;
	memset(f->by_class, 0, sizeof(f->by_class));
	f->classes = 0;
	weigh(f, rec);
	f->is_open = true;
}

static void merge(struct lull_fold *f, const struct lull_rec *rec)
{
	struct lull_rec *cur = &f->cur;

	if (rec->end_ns > cur->end_ns)
		cur->end_ns = rec->end_ns;
	cur->busy_ns += rec->busy_ns;
	cur->count = rec->count > UINT32_MAX - cur->count ? UINT32_MAX : cur->count + rec->count;
	if (rec->busy_ns > f->longest_ns) {
		f->longest_ns = rec->busy_ns;
		cur->name = rec->name;
	}
	weigh(f, rec);
}

static void take(struct lull_fold *f, const struct lull_rec *rec)
{
	u64 len_ns = rec->end_ns - rec->start_ns;

	if (len_ns >> f->log2) {
		close_cur(f);
		keep(f, rec);
	} else if (f->is_open && f->log2 &&
		   f->cur.start_ns >> f->log2 == rec->start_ns >> f->log2) {
		merge(f, rec);
	} else {
		open_cur(f, rec);
	}
}

static int by_start(const void *a, const void *b)
{
	const struct lull_rec *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

/* Fold the records again at the level f->log2, in place: there are never more of them. */
static void refold(struct lull_fold *f)
{
	struct lull_vec old = f->recs;
	const struct lull_rec *recs = old.at;

	if (f->is_unsorted && old.n)
		lull_sort(old.at, old.n, sizeof(*recs), by_start);
	f->is_unsorted = false;
	lull_vec_init(&f->recs, sizeof(struct lull_rec));
	for (size_t i = 0; i < old.n; i++)
		take(f, &recs[i]);
	close_cur(f);
	lull_vec_release(&old);
}

/* Events that share a record with the average event. */
static f64 company(const struct lull_fold *f)
{
	const struct lull_rec *recs = f->recs.at;
	f64 sum = 0, squares = 0;

	for (size_t i = 0; i < f->recs.n; i++) {
		sum += recs[i].count;
		squares += (f64)recs[i].count * recs[i].count;
	}
	return sum > 0 ? squares / sum : 0;
}

static void coarsen(struct lull_fold *f)
{
	close_cur(f);
	while (f->recs.n > KEEP_RECS && f->log2 < f->max_log2 && company(f) < EVENTS_EACH) {
		/* No event is shorter than a few ns. */
		f->log2 += f->log2 < 8 && f->max_log2 >= 8 ? 8 : 1;
		refold(f);
	}
	f->next_check = f->recs.n + f->recs.n / 4 + KEEP_RECS;
}

void lull_fold_add(struct lull_fold *f, const struct lull_rec *rec)
{
	if (rec->end_ns < rec->start_ns)
		return;
	f->n_events += rec->count;
	f->busy_ns += rec->busy_ns;
	if (rec->start_ns < f->last_ns)
		f->is_unsorted = true;
	else
		f->last_ns = rec->start_ns;
	take(f, rec);
	if (f->is_adaptive && f->recs.n >= f->next_check)
		coarsen(f);
}

void lull_fold_finish(struct lull_fold *f)
{
	close_cur(f);
	if (f->is_unsorted)
		refold(f);
	if (f->is_adaptive && f->recs.n > KEEP_RECS)
		coarsen(f);
}

void lull_fold_levels(struct lull_fold *f, struct lull_lod *lod)
{
	struct lull_fold next;

	memset(lod, 0, sizeof(*lod));
	lull_fold_finish(f);
	for (;;) {
		struct lull_level *level = &lod->levels[lod->n_levels++];
		u32 log2 = f->log2 ? f->log2 + 2 : 10;

		*level = (struct lull_level){ f->log2, f->recs.n, f->recs.at };
		level->recs = lull_realloc(level->recs, level->n + 1, sizeof(*level->recs));
		if (level->n < LAST_RECS || lod->n_levels == LULL_MAX_LEVELS ||
		    log2 > LULL_MAX_LOG2)
			break;
		/* From events to the first level that is worth keeping. */
		for (;; log2 += 2) {
			lull_fold_init(&next, log2, false);
			for (size_t i = 0; i < level->n; i++)
				take(&next, &level->recs[i]);
			lull_fold_finish(&next);
			if (next.recs.n <= level->n / 2 || log2 + 2 > LULL_MAX_LOG2)
				break;
			lull_fold_release(&next);
		}
		next.n_events = f->n_events;
		next.busy_ns = f->busy_ns;
		*f = next;
	}
	lull_vec_init(&f->recs, sizeof(struct lull_rec));
}

void lull_lod_release(struct lull_lod *lod)
{
	for (u32 i = 0; i < lod->n_levels; i++)
		free(lod->levels[i].recs);
	lod->n_levels = 0;
}

const struct lull_level *lull_lod_level(const struct lull_lod *lod, u32 log2)
{
	const struct lull_level *found = NULL;

	for (u32 i = 0; i < lod->n_levels && lod->levels[i].log2 <= log2; i++)
		found = &lod->levels[i];
	return found;
}

size_t lull_level_first(const struct lull_level *level, u64 at_ns)
{
	size_t low = 0, high = level->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (level->recs[mid].end_ns > at_ns)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}
