/*
 * curve: values over time, all of them.
 *
 *	curve?c=0	n x { f64 time   f32 min   f32 max   f32 last   f32 0 }
 */
#include "page/page.h"

#include <string.h>

#include "base/bytes.h"

static void put_f32(u8 *at, f64 v)
{
	float f = (float)v;
	u32 bits;

	memcpy(&bits, &f, sizeof(bits));
	lull_put_u32(at, bits);
}

static int run(struct lull_question *q, struct lull_err *err)
{
	const struct lull_timeline *t = q->report->timeline;
	const struct lull_curve *curve;
	const struct lull_point *points;
	u64 ix;

	if (lull_args_u64(q->args, "c", UINT32_MAX, 0, &ix, err))
		return err->code;
	if (ix >= t->curves.n)
		return lull_fail(err, LULL_E_NOT_FOUND, "there is no curve %llu",
				 (unsigned long long)ix);
	curve = lull_vec_get(&t->curves, ix);
	points = curve->points.at;
	for (size_t i = 0; i < curve->points.n; i++) {
		u8 bytes[24] = { 0 };
		f64 at = (f64)(points[i].at_ns - t->origin_ns);
		u64 bits;

		memcpy(&bits, &at, sizeof(bits));
		lull_put_u64(bytes, bits);
		put_f32(bytes + 8, points[i].min);
		put_f32(bytes + 12, points[i].max);
		put_f32(bytes + 16, points[i].last);
		fwrite(bytes, 1, sizeof(bytes), q->to);
	}
	return LULL_OK;
}

const struct lull_answer lull_answer_curve = {
	.name = "curve",
	.type = "application/octet-stream",
	.run = run,
};
