#include "record/axis.h"

#define OPEN UINT64_MAX

void lull_axis_init(struct lull_axis *a)
{
	*a = (struct lull_axis){ 0 };
	lull_vec_init(&a->windows, sizeof(struct lull_axis_window));
}

void lull_axis_release(struct lull_axis *a)
{
	lull_vec_release(&a->windows);
	*a = (struct lull_axis){ 0 };
}

static struct lull_axis_window *last_of(const struct lull_axis *a)
{
	return a->windows.n ? lull_vec_get(&a->windows, a->windows.n - 1) : NULL;
}

void lull_axis_open(struct lull_axis *a, u64 begin_ns)
{
	const struct lull_axis_window *last = last_of(a);
	u64 at_ns = last ? last->at_ns + (last->end_ns - last->begin_ns) : 0;

	*(struct lull_axis_window *)lull_vec_push(&a->windows) =
		(struct lull_axis_window){ begin_ns, OPEN,
					   at_ns > a->reach_ns ? at_ns : a->reach_ns };
}

void lull_axis_close(struct lull_axis *a, u64 end_ns)
{
	struct lull_axis_window *last = last_of(a);

	if (last && last->end_ns == OPEN)
		last->end_ns = end_ns > last->begin_ns ? end_ns : last->begin_ns;
}

bool lull_axis_is_open(const struct lull_axis *a)
{
	const struct lull_axis_window *last = last_of(a);

	return last && last->end_ns == OPEN;
}

static u64 in_window(const struct lull_axis_window *w, u64 mono_ns)
{
	return w->at_ns + ((mono_ns < w->end_ns ? mono_ns : w->end_ns) - w->begin_ns);
}

u64 lull_axis_ns(const struct lull_axis *a, u64 mono_ns)
{
	const struct lull_axis_window *all = a->windows.at, *last = last_of(a);
	size_t low = 0, high = a->windows.n;

	if (last && mono_ns >= last->begin_ns)
		return in_window(last, mono_ns);
	/* The last one that starts at or before it is all[low - 1]. */
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (all[mid].begin_ns <= mono_ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low ? in_window(&all[low - 1], mono_ns) : 0;
}

u64 lull_axis_since_ns(const struct lull_axis *a)
{
	const struct lull_axis_window *last = last_of(a);

	return last ? last->begin_ns : 0;
}
