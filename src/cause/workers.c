#include "cause/workers.h"

#include <math.h>

#include "cause/thresholds.h"

struct lull_workers lull_workers_for(const struct lull_subject *s, f64 work_ns, f64 rest_ns,
				     bool takes_cpu)
{
	bool is_python = lull_subject_is_python(s) || lull_subject_is_torch(s);
	u32 spare = s->n_cpus > 1 ? s->n_cpus - 1 : s->n_cpus;
	struct lull_workers w = {
		.work_ns = work_ns,
		.spare = takes_cpu ? spare : 0,
		.worth = is_python ? LULL_T(worker) : LULL_T(worker_good),
	};
	f64 n = fmax(ceil(work_ns / (fmax(rest_ns, 1) * LULL_T(worker))), 1);

	w.n = !w.spare || n <= w.spare ? (u32)fmin(n, UINT16_MAX) : 0;
	return w;
}

u32 lull_workers_n(const struct lull_workers *w)
{
	return w->n ? w->n : w->spare;
}

f64 lull_workers_step_ns(const struct lull_workers *w, int scenario)
{
	f64 worth = scenario < 0   ? LULL_T(worker_good)
		    : scenario > 0 ? LULL_T(worker_poor)
				   : w->worth;

	return w->work_ns / (lull_workers_n(w) * worth);
}

bool lull_workers_are_few(const struct lull_workers *w, const struct lull_replay *p)
{
	return !w->n && w->work_ns / (w->spare * w->worth) > (1 - LULL_T(gain)) * p->free_ns;
}
