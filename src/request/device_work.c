/*
 * device_work - what devices did, and for which requests: those that the launching thread worked
 * for when it made the call.
 */
#include "base/sort.h"
#include "request/requests_int.h"

static int by_request(const void *a, const void *b)
{
	const struct lull_owned *x = a, *y = b;

	if (x->request != y->request)
		return x->request < y->request ? -1 : 1;
	return x->work < y->work ? -1 : x->work > y->work;
}

/* The requests of the slices around the call own the work that it started. */
static void own(struct lull_request_reader *q, u32 work, const struct lull_call *call)
{
	const struct lull_request_slice *s;
	size_t n;

	if (!call || !call->lane)
		return;
	s = lull_request_slices_in(q, call->lane, call->start_ns, call->start_ns + 1, &n);
	for (size_t i = 0; i < n; i++) {
		const struct lull_one_request *all = q->to->all.at;
		struct lull_owned *o;

		/* A thread learns late that a request of its batch has ended. */
		if (s[i].request == LULL_NO_REQUEST || all[s[i].request].end_ns <= call->start_ns)
			continue;
		o = lull_vec_push(&q->owned);
		*o = (struct lull_owned){ s[i].request, work, call->start_ns };
	}
}

/* Time in which at least one of them ran, those before `from_ns` not counted again. */
static u64 add_busy(u64 *until_ns, const struct lull_work *w, struct lull_span served)
{
	struct lull_span more = { w->start_ns > *until_ns ? w->start_ns : *until_ns,
				  lull_work_end_ns(w) };

	if (more.to_ns <= more.from_ns)
		return 0;
	*until_ns = more.to_ns;
	more = lull_span_cut(more, served.from_ns, served.to_ns);
	return more.to_ns - more.from_ns;
}

void lull_request_work_of(struct lull_request_reader *q)
{
	const struct lull_work *w;
	struct lull_work_order order;
	struct lull_link link;
	u64 until_ns = 0;

	q->to->has_device = lull_work_count(q->reader, LULL_WORK_ALL) > 0;
	if (!q->to->has_device)
		return;
	lull_link_init(&link, q->reader);
	lull_work_order_begin(&order, q->reader, LULL_WORK_ALL, LULL_WORK_WANT_CALL, q->window);
	while ((w = lull_work_order_next(&order))) {
		struct lull_request_unit *d = lull_vec_push(&q->work);

		*d = (struct lull_request_unit){
			.from_ns = w->start_ns,
			.to_ns = lull_work_end_ns(w),
			.process = w->process,
			.is_copy = w->kind & LULL_WORK_MEMORY,
		};
		q->to->busy_ns += add_busy(&until_ns, w, q->to->served);
		d->reach_ns = until_ns;
		own(q, (u32)(q->work.n - 1), lull_link_find(&link, w));
	}
	lull_work_order_end(&order);
	lull_link_release(&link);
	lull_sort(q->owned.at, q->owned.n, sizeof(struct lull_owned), by_request);
}
