#include "agent/counters/kernel_span.h"

#include "agent/counters/kernel_launch.h"
#include "agent/counters/kernel_work.h"
#include "agent/core/sys.h"

/* Spans between cudaProfilerStart() and Stop() have no name of their own. */
#define UNNAMED "cudaProfilerStart to Stop"

static struct {
	_Atomic u32 is_open;
	_Atomic u32 is_done;
	_Atomic u64 n_seen;
	_Atomic u32 n_launches;
	_Atomic(void *) context; /* of the span; launches of others are not in its counters */
	/* The owner's. */
	struct lull_kwork work;
} span;

void lull_kernel_span_launch(void *context)
{
	if (atomic_load(&span.is_open) && atomic_load(&span.context) == context)
		atomic_fetch_add(&span.n_launches, 1);
}

/* Whether this one is to be measured; counts it. */
static bool is_chosen(u64 *ordinal)
{
	const struct lull_kwish_filter *f = &lull_agent.control->kernels.filters[0];
	u64 n = atomic_fetch_add(&span.n_seen, 1);

	*ordinal = n + 1;
	return n >= f->skip && (!f->count || n < f->skip + f->count);
}

static void begin(struct lull_kwork *w, u64 ordinal, const char *name)
{
	const struct lull_kwish *wish = &lull_agent.control->kernels;

	*w = (struct lull_kwork){ .ordinal = ordinal, .is_range = true };
	if (!lull_launch_here(&w->launch))
		w->trouble = "there is no context yet where the range begins";
	else if (!(wish->devices >> (w->launch.device_ix & 63) & 1))
		w->trouble = "it is on another device";
	else if (!lull_launch_wait())
		w->trouble = "the device did not get idle before it";
	w->launch.symbol = name;
	w->since = lull_time();
	atomic_store(&span.n_launches, 0);
	atomic_store(&span.context, w->launch.context);
	lull_kwork_tell_busy(name);
	if (w->trouble)
		lull_kwork_fall_back(w, LULL_PROFILED_FAILED);
	else
		lull_kwork_begin(w);
}

void lull_kernel_span_begin(struct lull_thread *t, const char *name)
{
	u32 nobody = 0;
	u64 ordinal;

	if (atomic_load(&span.is_done) ||
	    !atomic_compare_exchange_strong(&span.is_open, &nobody, lull_sys_tid()))
		return;
	t->is_quiet++;
	if (is_chosen(&ordinal))
		begin(&span.work, ordinal, name ? name : UNNAMED);
	else
		atomic_store(&span.is_open, 0);
	t->is_quiet--;
}

static void finish(struct lull_thread *t, struct lull_kwork *w)
{
	const struct lull_kwish_filter *f = &lull_agent.control->kernels.filters[0];
	bool is_told = true;

	if (!lull_launch_wait() && !w->trouble)
		w->trouble = "the device did not get idle after it";
	w->n_launches = atomic_load(&span.n_launches);
	if (w->is_measuring)
		is_told = lull_kwork_end(w);
	if (is_told)
		lull_kwork_tell(t, w, lull_time() - w->since);
	lull_kwork_tell_idle();
	if (f->count && atomic_load(&span.n_seen) >= f->skip + f->count) {
		atomic_store(&span.is_done, 1);
		lull_kwork_pause();
	}
}

void lull_kernel_span_end(struct lull_thread *t)
{
	if (!atomic_load(&span.is_open))
		return;
	t->is_quiet++;
	finish(t, &span.work);
	atomic_store(&span.is_open, 0);
	t->is_quiet--;
}
