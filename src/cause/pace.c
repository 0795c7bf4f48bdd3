#include "cause/pace.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "cause/thresholds.h"
#include "model/wait.h"

struct nap {
	i64 until_ns; /* the moment it is meant to end at, by the clock of the sleeps */
	u64 dur_ns;
};

/* The upper median; changes the order. */
static f64 middle(f64 *values, size_t n)
{
	lull_sort_f64(values, n);
	return values[n / 2];
}

/* How far values usually lie from their median, which *median is set to; changes them. */
static f64 spread(f64 *values, size_t n, f64 *median)
{
	*median = middle(values, n);
	for (size_t i = 0; i < n; i++)
		values[i] = fabs(values[i] - *median);
	return middle(values, n);
}

/*
 * A sleep for a time is never shorter than that: if it is, the argument is a moment, and the clock
 * that counts to it keeps its own zero.
 */
static struct nap nap_of(u64 start_ns, u64 dur_ns, i64 asked_ns)
{
	bool is_moment = asked_ns > 0 && (u64)asked_ns > dur_ns;

	return (struct nap){ is_moment ? asked_ns : (i64)start_ns + asked_ns, dur_ns };
}

/* The sleeps that hold the device up for this cause, by time; struct nap. */
static void find_naps(const struct lull_subject *s, u8 cause, struct lull_vec *naps)
{
	struct lull_oscall_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, s->reader, LULL_TABLE_oscall, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			u64 end_ns = lull_span_end_ns(cols.start_ns[i], cols.dur_ns[i]);
			const char *name = lull_reader_string(s->reader, cols.name[i], NULL);

			if (s->chain.chain_of_lane[cols.lane[i]] &&
			    lull_wait_of(name) == LULL_WAIT_SLEEP && cols.dur_ns[i] &&
			    lull_subject_is_during(s, cause, end_ns - 1))
				*(struct nap *)lull_vec_push(naps) =
					nap_of(cols.start_ns[i], cols.dur_ns[i], cols.arg[i]);
		}
	}
	lull_cursor_release(&c);
}

f64 lull_pace_ns(const struct lull_subject *s, u8 cause)
{
	u32 n_steps = lull_rounds_n_steady(&s->rounds);
	f64 *apart, *dur, period = 0, length;
	const struct nap *at;
	struct lull_vec naps;

	lull_vec_init(&naps, sizeof(struct nap));
	find_naps(s, cause, &naps);
	/* Several in a step poll; one now and then keeps no rate. */
	if (naps.n < LULL_TN(pace_count) || naps.n * 2 <= n_steps ||
	    naps.n > n_steps + n_steps / 2) {
		lull_vec_release(&naps);
		return 0;
	}
	at = naps.at;
	apart = lull_alloc(naps.n, sizeof(*apart));
	dur = lull_alloc(naps.n, sizeof(*dur));
	for (size_t i = 0; i + 1 < naps.n; i++) {
		apart[i] = (f64)(at[i + 1].until_ns - at[i].until_ns);
		dur[i] = (f64)at[i].dur_ns;
	}
	if (spread(apart, naps.n - 1, &period) >
	    LULL_T(pace_part) * spread(dur, naps.n - 1, &length))
		period = 0;
	free(apart);
	free(dur);
	lull_vec_release(&naps);
	return period;
}
