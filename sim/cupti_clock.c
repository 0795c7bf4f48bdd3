#include "cupti_int.h"

#include <pthread.h>

/*
 * The program may give a clock of its own, in any unit. CUPTI compares it with the device's from
 * time to time and interpolates; so do we, between pairs of readings. LULL_SIM_SKEW_NS and
 * LULL_SIM_DRIFT_PPM are errors of the device's clock that this comparison does not see.
 */

#define N_PAIRS	   16
#define SPACING_NS 20000000u /* pairs that are closer tell little about the rate */

struct pair {
	u64 model_ns;
	u64 program;
};

static struct {
	pthread_mutex_t lock;
	cupti_timestamp_fn *timestamp;
	size_t n_pairs;
	struct pair pairs[N_PAIRS]; /* oldest first */
	u64 first_ns;
} clocks = { .lock = PTHREAD_MUTEX_INITIALIZER };

static u64 system_time(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec;
}

/* The best of a few tries: the one that was not interrupted. */
static struct pair read_pair(void)
{
	struct pair best = { 0 };
	u64 best_ns = UINT64_MAX;

	for (int i = 0; i < 5; i++) {
		u64 before_ns = sim_now_ns();
		u64 program = clocks.timestamp ? clocks.timestamp() : system_time();
		u64 dur_ns = sim_now_ns() - before_ns;

		if (dur_ns < best_ns) {
			best_ns = dur_ns;
			best = (struct pair){ before_ns + dur_ns / 2, program };
		}
	}
	return best;
}

void lull_cupti_clock_set(cupti_timestamp_fn *timestamp)
{
	pthread_mutex_lock(&clocks.lock);
	clocks.timestamp = timestamp;
	clocks.pairs[0] = read_pair();
	clocks.first_ns = clocks.pairs[0].model_ns;
	clocks.n_pairs = 1;
	pthread_mutex_unlock(&clocks.lock);
}

static void add_pair(struct pair pair)
{
	if (clocks.n_pairs > 1 &&
	    pair.model_ns - clocks.pairs[clocks.n_pairs - 2].model_ns < SPACING_NS)
		clocks.n_pairs--;
	if (clocks.n_pairs == N_PAIRS) {
		for (size_t i = 1; i < N_PAIRS; i++)
			clocks.pairs[i - 1] = clocks.pairs[i];
		clocks.n_pairs--;
	}
	clocks.pairs[clocks.n_pairs++] = pair;
}

void lull_cupti_clock_compare(void)
{
	if (!clocks.n_pairs)
		lull_cupti_clock_set(clocks.timestamp);
	pthread_mutex_lock(&clocks.lock);
	add_pair(read_pair());
	pthread_mutex_unlock(&clocks.lock);
}

static u64 device_error(u64 ns)
{
	f64 drift = sim_knob("LULL_SIM_DRIFT_PPM", 0) * 1e-6;

	return (u64)((i64)sim_knob("LULL_SIM_SKEW_NS", 0) +
		     (i64)((f64)(i64)(ns - clocks.first_ns) * drift));
}

u64 lull_cupti_clock_translate(u64 ns, bool is_device)
{
	const struct pair *a, *b;
	size_t ix;
	u64 result;

	if (is_device)
		ns += device_error(ns);
	pthread_mutex_lock(&clocks.lock);
	for (ix = clocks.n_pairs - 1; ix > 1 && clocks.pairs[ix - 1].model_ns > ns; ix--)
		continue;
	a = &clocks.pairs[ix ? ix - 1 : 0];
	b = &clocks.pairs[ix];
	result = a->program;
	if (b->model_ns > a->model_ns)
		result += (u64)(i64)((f64)(i64)(ns - a->model_ns) *
				     ((f64)(b->program - a->program) /
				      (f64)(b->model_ns - a->model_ns)));
	pthread_mutex_unlock(&clocks.lock);
	return result;
}
