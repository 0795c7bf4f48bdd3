/*
 * precision: matrix products that do not use the tensor cores, or use half of them.
 *
 * Signal:  kernels of products and convolutions whose names say fp32 or TF32.
 * Not it:  products of narrower types; names that do not say (a kernel of one's own, "gemm");
 *          products of a vector, which memory limits.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cause/opportunity.h"
#include "cause/thresholds.h"

enum math { MATH_UNKNOWN, MATH_FP32, MATH_TF32 };

/* The first word that is in the name decides; case does not matter. */
static enum math math_of(const char *name)
{
	static const struct {
		const char *word;
		enum math math;
	} words[] = {
		{ "gemv", MATH_UNKNOWN },	{ "gemmk1", MATH_UNKNOWN },
		{ "f64", MATH_UNKNOWN },	{ "dgemm", MATH_UNKNOWN },
		{ "double", MATH_UNKNOWN },	{ "f16", MATH_UNKNOWN },
		{ "fp16", MATH_UNKNOWN },	{ "half", MATH_UNKNOWN },
		{ "hgemm", MATH_UNKNOWN },	{ "bfloat", MATH_UNKNOWN },
		{ "fp8", MATH_UNKNOWN },	{ "e4m3", MATH_UNKNOWN },
		{ "e5m2", MATH_UNKNOWN },	{ "int8", MATH_UNKNOWN },
		{ "tf32", MATH_TF32 },		{ "s1688gemm", MATH_TF32 },
		{ "sgemm", MATH_FP32 },		{ "_ffma", MATH_FP32 },
		{ "f32f32_f32f32", MATH_FP32 }, { "gemm_f32", MATH_FP32 },
		{ "_simt_s", MATH_FP32 },	{ "gemmSN_", MATH_FP32 },
		{ "_SB_", MATH_TF32 }, /* rocBLAS: matrix cores take fp32 at a lower rate */
	};

	for (size_t i = 0; i < LULL_COUNT_OF(words); i++) {
		if (strcasestr(name, words[i].word))
			return words[i].math;
	}
	return MATH_UNKNOWN;
}

static bool look(struct lull_look *l, struct lull_opportunity *o)
{
	u64 ns[3] = { 0 }, n[3] = { 0 };

	for (size_t i = 1; i < l->n_shapes; i++) {
		const struct lull_shape *shape = &l->shapes[i];

		if (!shape->n ||
		    (shape->class != LULL_KERNEL_MATMUL && shape->class != LULL_KERNEL_CONVOLUTION))
			continue;
		l->marks[i] = (u8)math_of(
			lull_reader_string(l->why->reader, l->launches[i - 1].name, NULL));
		ns[l->marks[i]] += shape->ns;
		n[l->marks[i]] += shape->n;
	}
	o->touched_ns = (f64)(ns[MATH_FP32] + ns[MATH_TF32]) / l->n_steps;
	if (ns[MATH_FP32] >= ns[MATH_TF32]) {
		snprintf(o->text, sizeof(o->text),
			 "%.0f matrix products per step in fp32, without tensor cores",
			 (f64)n[MATH_FP32] / l->n_steps);
	} else {
		snprintf(
			o->text, sizeof(o->text),
			"%.0f matrix products per step in fp32 or TF32, half as fast as in 16 bits",
			(f64)(n[MATH_TF32] + n[MATH_FP32]) / l->n_steps);
		snprintf(o->fix, sizeof(o->fix), "%s",
			 lull_subject_is_torch(l->subject)
				 ? "torch.autocast(\"cuda\", dtype=torch.bfloat16)"
				 : "bf16 or fp16 inputs, with fp32 sums");
	}
	return o->touched_ns > 0;
}

static void apply(const struct lull_look *l, struct lull_what_if *w)
{
	const f64 parts[] = {
		[MATH_UNKNOWN] = 1,
		[MATH_FP32] =
			lull_scenario_of(w, LULL_T(tf32_good), LULL_T(tf32), LULL_T(tf32_poor)),
		[MATH_TF32] = lull_scenario_of(w, LULL_T(bf16), LULL_T(bf16), LULL_T(bf16_poor)),
	};

	for (u32 i = 0; i < w->n_ops; i++) {
		f64 dur_ns = w->ops[i].dur_ns;
		f64 least_ns = fmin(dur_ns, LULL_T(product_least_ns));

		w->ops[i].dur_ns = fmax(dur_ns * parts[l->marks[lull_op_launch(w, i)]], least_ns);
	}
}

const struct lull_opportunity_kind lull_opportunity_precision = {
	.id = "precision",
	.title = "matrix products in fp32",
	.why = "Tensor cores multiply TF32 about eight times as fast as other units do fp32, and "
	       "16-bit types twice as fast again. Counted are products and convolutions whose "
	       "names say fp32 (sgemm, ffma, f32f32_f32f32, simt) or TF32 (tf32, s1688gemm). The "
	       "prediction gives fp32 products 0.2 of their time (TF32 on an H200 took 0.13 to "
	       "0.27, small ones 0.4) and TF32 products half.",
	.fix = "TF32 or 16-bit types for products, so that they use tensor cores",
	.fix_torch = "torch.set_float32_matmul_precision(\"high\") for TF32, or "
		     "torch.autocast(\"cuda\", dtype=torch.bfloat16)",
	.assumes = "the model stands less precise products",
	.look = look,
	.apply = apply,
};
