#include "try/contest.h"

#include <math.h>
#include <string.h>

#include "base/sort.h"
#include "compare/shift.h"

/* After so many rounds a side that is not faster is out. */
#define SCREEN_ROUNDS 2

/* A side that takes so many times as long is out at once, unless that may be luck: see is_long. */
#define FAR_SLOWER 3

/*
 * Sides are judged twice at most: after n_runs rounds and after twice as many. Few runs have the
 * smaller share of the false gains, since they show little of what the machine does; what is left
 * is for noise that is not as statistics think.
 */
#define EARLY_SHARE 0.05
#define LATE_SHARE  0.4

/* This share of a normal distribution lies within so many standard deviations. */
#define NORMAL_SHARE 0.75
#define NORMAL_WIDTH 1.1503

/*
 * With fewer runs than statistics need, a gain is clear if even the slowest run of a side beats the
 * fastest one of the other by this much: more than luck does. Runs of the same program took up to
 * 1.6 times as long as others on a shared machine.
 */
static const f64 clear[] = { [2] = 2.0, [3] = 1.75 };

void lull_contest_init(struct lull_contest *c, size_t n, u32 n_runs)
{
	*c = (struct lull_contest){ .n_runs = n_runs, .n_compared = n > 1 ? (u32)n - 1 : 1 };
	lull_vec_init(&c->sides, sizeof(struct lull_side));
	lull_vec_init(&c->order, sizeof(size_t));
	for (size_t i = 0; i < n; i++) {
		struct lull_side *side = lull_vec_push(&c->sides);

		lull_samples_init(&side->samples);
		if (i)
			*(size_t *)lull_vec_push(&c->order) = i;
	}
}

void lull_contest_release(struct lull_contest *c)
{
	struct lull_side *sides = c->sides.at;

	for (size_t i = 0; i < c->sides.n; i++)
		lull_samples_release(&sides[i].samples);
	lull_vec_release(&c->sides);
	lull_vec_release(&c->order);
}

/* A gain that is beyond all luck after a few runs; `fastest` is that of contests before. */
static bool is_clear(const struct lull_samples *before, const struct lull_samples *after,
		     f64 fastest, struct lull_gain *gain)
{
	size_t n = before->runs.n < after->runs.n ? before->runs.n : after->runs.n;
	f64 low, high, low_after, high_after;

	if (n < 2 || n >= LULL_COUNT_OF(clear))
		return false;
	lull_samples_range(before, &low, &high);
	lull_samples_range(after, &low_after, &high_after);
	if (low < clear[n] * high_after || (fastest > 0 && fastest < clear[n] * high_after))
		return false;
	*gain = (struct lull_gain){ LULL_GAIN_YES,
				    lull_samples_median(before) / lull_samples_median(after),
				    low / high_after, high / low_after };
	return true;
}

struct lull_gain lull_gain_of(const struct lull_samples *before, const struct lull_samples *after,
			      f64 fastest, f64 alpha)
{
	const struct lull_decide_rule rule = { .threshold = LULL_CONTEST_LEAST, .alpha = alpha };
	struct lull_gain gain = { .verdict = LULL_GAIN_UNKNOWN };
	struct lull_decision faster, slower;

	if (is_clear(before, after, fastest, &gain))
		return gain;
	/* What the gate calls worse is here that the old side takes longer. */
	lull_decide(after, before, &rule, &faster);
	if (!faster.has_change) {
		if (faster.after > 0)
			gain.ratio = gain.low = gain.high = faster.after / faster.before;
		return gain;
	}
	gain.ratio = 1 + faster.change;
	gain.low = 1 + faster.low;
	gain.high = 1 + faster.high;
	if (!faster.by_run)
		return gain;
	lull_decide(before, after, &rule, &slower);
	if (faster.verdict == LULL_REGRESSED)
		gain.verdict = LULL_GAIN_YES;
	else if (slower.verdict == LULL_REGRESSED)
		gain.verdict = LULL_GAIN_SLOWER;
	else
		gain.verdict = faster.verdict == LULL_PASS ? LULL_GAIN_NONE : LULL_GAIN_HIDDEN;
	return gain;
}

/* How far runs of the same side lie apart, of all sides: the noise of the machine. */
struct noise {
	f64 spread; /* standard deviation of the logarithms of runs; 0 if they do not vary */
	f64 df;
};

static struct noise noise_of(const struct lull_contest *c)
{
	const struct lull_side *sides = c->sides.at;
	struct noise noise = { 0 };
	struct lull_vec apart;

	lull_vec_init(&apart, sizeof(f64));
	for (size_t i = 0; i < c->sides.n; i++) {
		const struct lull_samples *s = &sides[i].samples;
		f64 median = lull_samples_median(s);

		if (s->runs.n < 2 || median <= 0)
			continue;
		for (size_t k = 0; k < s->runs.n; k++)
			*(f64 *)lull_vec_push(&apart) = fabs(log(lull_samples_run(s, k) / median));
		noise.df += (f64)(s->runs.n - 1);
	}
	if (apart.n) {
		/* A few runs that took far longer do not count, but one in four does. */
		lull_sort_f64(apart.at, apart.n);
		noise.spread = ((f64 *)apart.at)[(size_t)(NORMAL_SHARE * (f64)(apart.n - 1))] /
			       NORMAL_WIDTH * sqrt((f64)apart.n / noise.df);
	}
	lull_vec_release(&apart);
	return noise;
}

/*
 * Whether a gain may be the luck of the machine: where half of all runs are slow, those of one side
 * may all be, and look as if they did not vary. Those of the other sides tell.
 */
static bool is_luck(const struct noise *noise, const struct lull_side *before,
		    const struct lull_side *after, f64 alpha)
{
	f64 n = (f64)before->samples.runs.n, m = (f64)after->samples.runs.n, error;

	/* A gain that is clear after a few runs is beyond all luck. */
	if (noise->spread <= 0 || n < LULL_DECIDE_MIN_RUNS || m < LULL_DECIDE_MIN_RUNS)
		return false;
	error = noise->spread * sqrt(1 / n + 1 / m);
	return lull_student_share(-log(after->gain.ratio) / error, noise->df) > alpha;
}

void lull_contest_judge(struct lull_contest *c)
{
	struct lull_side *sides = c->sides.at;
	f64 share = c->round > c->n_runs ? LATE_SHARE : EARLY_SHARE;
	f64 alpha = LULL_CONTEST_ALPHA / c->n_compared * share;
	struct noise noise = noise_of(c);

	for (size_t i = 1; i < c->sides.n; i++) {
		struct lull_side *s = &sides[i];
		bool was_screened = s->is_out && s->gain.verdict == LULL_GAIN_NONE;

		if (!s->n_runs || (s->is_out && s->gain.verdict == LULL_GAIN_YES))
			continue;
		s->gain = lull_gain_of(&sides[0].samples, &s->samples, c->fastest, alpha);
		if (s->gain.verdict == LULL_GAIN_YES && is_luck(&noise, &sides[0], s, alpha))
			s->gain.verdict = LULL_GAIN_HIDDEN;
		if (was_screened && s->gain.verdict == LULL_GAIN_UNKNOWN)
			s->gain.verdict = LULL_GAIN_NONE;
	}
}

void lull_contest_drop(struct lull_contest *c, size_t side)
{
	((struct lull_side *)c->sides.at)[side].is_out = true;
}

void lull_contest_add(struct lull_contest *c, size_t side, const f64 *values, size_t n)
{
	struct lull_side *s = (struct lull_side *)c->sides.at + side;

	for (size_t i = 0; i < n; i++)
		lull_samples_add(&s->samples, values[i]);
	lull_samples_end_run(&s->samples);
	s->n_runs++;
}

/* The median of all blocks; 0 if there are none. */
static f64 middle(const struct lull_side *s)
{
	return s->samples.values.n ? lull_median(s->samples.values.at, s->samples.values.n) : 0;
}

/* Sides, or long ones alone, that take this many times as long as side 0 need no more runs. */
static void screen(struct lull_contest *c, f64 times, bool is_of_long)
{
	struct lull_side *sides = c->sides.at;
	f64 before = middle(&sides[0]);

	if (before <= 0)
		return;
	for (size_t i = 1; i < c->sides.n; i++) {
		if (sides[i].is_out || (is_of_long && !sides[i].is_long) ||
		    middle(&sides[i]) < times * before)
			continue;
		sides[i].is_out = true;
		sides[i].gain.verdict = LULL_GAIN_NONE;
	}
}

static int by_speed(const void *a, const void *b, void *ctx)
{
	const struct lull_side *sides = ctx;
	f64 x = middle(&sides[*(const size_t *)a]), y = middle(&sides[*(const size_t *)b]);

	return (x > y) - (x < y);
}

/* The places of the next round: each one further; the fastest first where the time is short. */
static void arrange(struct lull_contest *c)
{
	size_t *order = c->order.at, n = c->order.n;

	for (size_t i = 0; i < n; i++)
		order[i] = 1 + (i + c->round) % n;
	if (c->is_short && n)
		lull_sort_r(order, n, sizeof(*order), by_speed, c->sides.at);
}

/* Sides whose gain is clear need no more runs, either. */
static void settle(struct lull_contest *c)
{
	struct lull_side *sides = c->sides.at;

	for (size_t i = 1; i < c->sides.n; i++)
		if (!sides[i].is_out &&
		    is_clear(&sides[0].samples, &sides[i].samples, c->fastest, &sides[i].gain))
			sides[i].is_out = true;
}

/* A gain that more runs may prove. */
static bool is_promising(const struct lull_side *s)
{
	return !s->is_out && s->gain.verdict == LULL_GAIN_HIDDEN &&
	       s->gain.ratio > 1 + LULL_CONTEST_LEAST;
}

static bool has_any(const struct lull_contest *c)
{
	const struct lull_side *sides = c->sides.at;

	for (size_t i = 1; i < c->sides.n; i++)
		if (!sides[i].is_out)
			return true;
	return false;
}

/* The end of a round: who is out, and whether there is another one. */
static bool end_round(struct lull_contest *c)
{
	struct lull_side *sides = c->sides.at;
	bool goes_on = false;

	c->turn = 0;
	c->round++;
	arrange(c);
	if (c->round == 1)
		screen(c, c->is_short ? 1 : FAR_SLOWER, !c->is_short);
	if (c->round == SCREEN_ROUNDS)
		screen(c, 1, false);
	settle(c);
	if (c->round < c->n_runs)
		return has_any(c);
	if (c->round > c->n_runs)
		return c->round < 2 * c->n_runs;
	lull_contest_judge(c);
	for (size_t i = 1; i < c->sides.n; i++) {
		if (is_promising(&sides[i]))
			goes_on = true;
		else
			sides[i].is_out = true;
	}
	return goes_on;
}

int lull_contest_next(struct lull_contest *c)
{
	const struct lull_side *sides = c->sides.at;

	for (;;) {
		size_t at = c->turn++;
		size_t side = at && at <= c->order.n ? ((size_t *)c->order.at)[at - 1] : 0;

		if (at < c->sides.n && (!side || !sides[side].is_out) && has_any(c))
			return (int)side;
		if (at >= c->sides.n && !end_round(c))
			return -1;
		if (!has_any(c))
			return -1;
	}
}

u32 lull_contest_left(const struct lull_contest *c)
{
	const struct lull_side *sides = c->sides.at;
	u32 rounds = c->round < c->n_runs ? c->n_runs : 2 * c->n_runs, left = 0;

	for (size_t i = 0; i < c->sides.n; i++)
		if (!sides[i].is_out && sides[i].n_runs < rounds)
			left += rounds - sides[i].n_runs;
	return left;
}
