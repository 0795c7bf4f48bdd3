#include "trace/predict.h"

#include "trace/tables.h"

/* What DEPTH remembers: where the last row at each depth ended. A depth is a byte, so no index can
 * be wrong. */
struct nesting {
	u64 ends[256];
	u64 prev_start;
	u8 prev_depth;
};

static void nesting_init(struct nesting *nest, u64 first)
{
	for (size_t d = 0; d < LULL_COUNT_OF(nest->ends); d++)
		nest->ends[d] = first;
	nest->prev_start = first;
	nest->prev_depth = 0;
}

/* A deeper row probably begins with its parent; any other where the last one at its depth ended. */
static u64 nesting_expect(const struct nesting *nest, u8 depth)
{
	return depth > nest->prev_depth ? nest->prev_start : nest->ends[depth];
}

static void nesting_add(struct nesting *nest, u64 start, u64 dur, u8 depth)
{
	nest->ends[depth] = start + dur;
	nest->prev_start = start;
	nest->prev_depth = depth;
}

static void predict_delta(u64 prev, u64 *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		u64 now = v[i];

		v[i] = now - prev;
		prev = now;
	}
}

static void predict_gap(const u64 *dur_ns, u64 end, u64 *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		u64 now = v[i];

		v[i] = now - end;
		end = now + dur_ns[i];
	}
}

static void predict_depth(const struct lull_predict_by *by, u64 first, u64 *v, size_t n)
{
	struct nesting nest;

	nesting_init(&nest, first);
	for (size_t i = 0; i < n; i++) {
		u64 now = v[i];

		v[i] = now - nesting_expect(&nest, by->depth[i]);
		nesting_add(&nest, now, by->dur_ns[i], by->depth[i]);
	}
}

static void restore_gap(const u64 *dur_ns, u64 end, u64 *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		v[i] += end;
		end = v[i] + dur_ns[i];
	}
}

static void restore_depth(const struct lull_predict_by *by, u64 first, u64 *v, size_t n)
{
	struct nesting nest;

	nesting_init(&nest, first);
	for (size_t i = 0; i < n; i++) {
		v[i] += nesting_expect(&nest, by->depth[i]);
		nesting_add(&nest, v[i], by->dur_ns[i], by->depth[i]);
	}
}

void lull_predict(u8 predictor, const struct lull_predict_by *by, u64 first, u64 *v, size_t n)
{
	switch (predictor) {
	case LULL_ENC_DELTA:
		predict_delta(first, v, n);
		break;
	case LULL_ENC_GAP:
		predict_gap(by->dur_ns, first, v, n);
		break;
	case LULL_ENC_DEPTH:
		predict_depth(by, first, v, n);
		break;
	default:
		break;
	}
}

void lull_restore(u8 predictor, const struct lull_predict_by *by, u64 first, u64 *v, size_t n)
{
	switch (predictor) {
	case LULL_ENC_DELTA:
		for (size_t i = 0; i < n; i++)
			v[i] = first += v[i];
		break;
	case LULL_ENC_GAP:
		restore_gap(by->dur_ns, first, v, n);
		break;
	case LULL_ENC_DEPTH:
		restore_depth(by, first, v, n);
		break;
	default:
		break;
	}
}
