/*
 * How rows of memory-bound kernels become one, in the words of the program's library.
 *
 * Attention that is written as its formula is a product, softmax of it, and another product. The
 * matrix between them is written and read several times; one kernel needs not write it at all.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cause/evidence.h"
#include "cause/thresholds.h"
#include "cause/why_int.h"

/* Kernels between two products, of one stream. */
struct between {
	u64 ns;
	u32 n_softmax;
	bool is_open; /* after a product, and nothing else came */
};

/* By launch: whether it is a softmax. Names are looked at once, not for each kernel. */
static u8 *find_softmax(const struct lull_subject *s)
{
	size_t n;
	const struct lull_launch_row *launches = lull_reader_dim(s->reader, LULL_TABLE_launch, &n);
	u8 *is_softmax = lull_alloc(n + 1, sizeof(*is_softmax));

	for (size_t i = 0; i < n; i++)
		is_softmax[i + 1] =
			strcasestr(lull_reader_string(s->reader, launches[i].name, NULL),
				   "softmax") != NULL;
	return is_softmax;
}

/*
 * Scaling, a mask, dropout and conversions are elementwise kernels and copies. A loss has two
 * softmaxes, there and back; after that of a model's last layer come other reductions.
 */
static void add(const struct lull_unit *unit, bool is_softmax, struct between *b)
{
	b->n_softmax += is_softmax;
	b->ns += unit->end_ns - unit->begin_ns;
	b->is_open = b->is_open && (is_softmax || unit->class == LULL_KERNEL_ELEMENTWISE ||
				    unit->class == LULL_KERNEL_COPY);
}

/* What such rows have of the time of all kernels. */
static f64 open_attention(const struct lull_subject *s)
{
	struct between b = { 0 };
	u8 *is_softmax = find_softmax(s);
	u64 all_ns = 0, open_ns = 0;
	u16 stream = 0;

	for (u32 i = 0; i < s->units.n; i++) {
		const struct lull_unit *unit = &s->units.at[i];
		bool is_product;

		if (unit->kind != LULL_UNIT_KERNEL)
			continue;
		is_product = unit->class == LULL_KERNEL_MATMUL;
		all_ns += unit->end_ns - unit->begin_ns;
		if (unit->stream != stream)
			b = (struct between){ 0 };
		stream = unit->stream;
		if (is_product) {
			open_ns += b.is_open && b.n_softmax == 1 ? b.ns : 0;
			b = (struct between){ .is_open = true };
		} else {
			add(unit, is_softmax[unit->what], &b);
		}
	}
	free(is_softmax);
	return all_ns ? (f64)open_ns / (f64)all_ns : 0;
}

const char *lull_how_to_fuse(const struct lull_subject *s)
{
	if (lull_subject_is_torch(s))
		return open_attention(s) >= LULL_T(opportunity)
			       ? "scaled_dot_product_attention() instead of softmax between two "
				 "products; torch.compile for the rest"
			       : NULL;
	return lull_subject_is_cupy(s) ? "cupy.fuse() around a function that computes them, or one "
					 "cupy.ElementwiseKernel or cupy.RawKernel for all"
				       : NULL;
}
