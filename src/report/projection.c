#include "report/projection.h"

#include <stdlib.h>

#include "base/mem.h"
#include "report/waiting.h"

static void project(struct lull_projected *range, const struct lull_work *work)
{
	u64 end_ns = lull_work_end_ns(work);

	if (!range->n_works++ || work->start_ns < range->first_ns)
		range->first_ns = work->start_ns;
	if (end_ns > range->last_ns)
		range->last_ns = end_ns;
}

void lull_projection_init(struct lull_projection *p, struct lull_reader *r,
			  const struct lull_report_options *options)
{
	struct lull_work_cursor c;
	struct lull_work work;
	struct lull_link link;
	struct lull_waiting waiting;

	lull_nest_init(&p->nest, r, lull_report_window(options), LULL_NEST_ONE_THREAD);
	p->ranges = lull_alloc(p->nest.ranges.n, sizeof(*p->ranges));
	lull_link_init(&link, r);
	lull_waiting_init(&waiting, r, &p->nest);
	lull_work_begin(&c, r, LULL_WORK_ALL, LULL_WORK_WANT_CALL, LULL_SPAN_ALL);
	while (lull_work_next(&c, &work)) {
		const struct lull_call *call = lull_link_find(&link, &work);
		struct lull_span span;
		u32 lane;

		if (!call)
			continue;
		span = lull_call_span(call);
		lane = lull_waiting_lane(&waiting, call->lane, span);
		for (u32 number = lull_nest_find(&p->nest, lane, span); number;
		     number = lull_nest_outside(&p->nest, number, span))
			project(&p->ranges[number - 1], &work);
	}
	lull_work_end(&c);
	lull_waiting_release(&waiting);
	lull_link_release(&link);
}

void lull_projection_release(struct lull_projection *p)
{
	lull_nest_release(&p->nest);
	free(p->ranges);
}
