#include "report/step_kernels.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static bool has_one_of(const char *name, const char *const *words)
{
	for (; *words; words++) {
		if (strcasestr(name, *words))
			return true;
	}
	return false;
}

/*
 * Whether the name of a product's kernel says that it runs on tensor cores: the shape of their
 * instruction (16816, 1688, 884), the instruction, or a type that only they multiply.
 */
static bool says_tensor(const char *name)
{
	static const char *const not_them[] = { "simt",	  "ffma",   "f32f32_f32f32",  "gemv",
						"gemmsn", "gemmk1", "convolve_sgemm", NULL };
	static const char *const them[] = { "tensorop",	  "wgmma",    "wmma",  "hmma",
					    "imma",	  "16816",    "1688",  "s161616",
					    "884gemm",	  "884cudnn", "nvjet", "flash",
					    "tensor16x8", NULL };
	static const char *const types[] = { "bf16", "f16", "tf32", "e4m3", "e5m2", "i8i8", NULL };

	if (has_one_of(name, not_them))
		return false;
	return has_one_of(name, them) || (strcasestr(name, "xmma") && has_one_of(name, types));
}

static bool is_product(const struct lull_unit *unit)
{
	return unit->class == LULL_KERNEL_MATMUL || unit->class == LULL_KERNEL_CONVOLUTION ||
	       unit->class == LULL_KERNEL_ATTENTION;
}

void lull_tensor_names_init(struct lull_tensor_names *t, struct lull_reader *r)
{
	t->reader = r;
	t->known = lull_alloc((size_t)lull_reader_n_dim(r, LULL_TABLE_launch) + 1, sizeof(u8));
}

void lull_tensor_names_release(struct lull_tensor_names *t)
{
	free(t->known);
}

static bool is_tensor(struct lull_tensor_names *t, const struct lull_unit *unit)
{
	size_t n;
	const struct lull_launch_row *launches = lull_reader_dim(t->reader, LULL_TABLE_launch, &n);
	u8 *known = &t->known[unit->what];

	if (!unit->what || unit->what > n)
		return false;
	if (!*known)
		*known = says_tensor(
				 lull_reader_string(t->reader, launches[unit->what - 1].name, NULL))
				 ? 1
				 : 2;
	return *known == 1;
}

/* The steady steps that are asked for: [*first, *end). */
static void choose(const struct lull_process_rounds *p, const struct lull_report_options *options,
		   u32 *first, u32 *end)
{
	u32 n = (u32)p->rounds.all.n;

	*first = *end = n;
	for (u32 i = p->rounds.first_steady; i < n; i++) {
		struct lull_span span = lull_process_round_window(p, i);

		if (!lull_report_covers(options, span.from_ns, span.to_ns - span.from_ns))
			continue;
		*first = *first == n ? i : *first;
		*end = i + 1;
	}
}

bool lull_step_kernels_of(struct lull_step_kernels *s, const struct lull_process_rounds *p,
			  const struct lull_report_options *options, struct lull_tensor_names *t)
{
	u32 first, end;

	memset(s, 0, sizeof(*s));
	choose(p, options, &first, &end);
	s->n_steps = end - first;
	if (first == end)
		return false;
	s->host = (struct lull_span){ lull_process_round_span(p, first).from_ns,
				      lull_process_round_span(p, end - 1).to_ns };
	s->span = (struct lull_span){ lull_round_begin_ns(&p->rounds, first),
				      lull_round_end_ns(&p->rounds, end - 1) };
	for (u32 i = 0; i < p->units.n; i++) {
		const struct lull_unit *unit = &p->units.at[i];
		u64 dur_ns = unit->end_ns - unit->begin_ns;

		if (unit->kind != LULL_UNIT_KERNEL || unit->round == LULL_NONE ||
		    unit->round < first || unit->round >= end)
			continue;
		s->kernel_ns += dur_ns;
		if (is_product(unit))
			*(is_tensor(t, unit) ? &s->tensor_ns : &s->other_ns) += dur_ns;
	}
	return true;
}
