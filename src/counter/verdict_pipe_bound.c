/*
 * fp32-bound, tensor-bound and so on: a pipe of the multiprocessors is as busy as it gets.
 *
 * Signal:  the multiprocessors are at least 60 % busy, and more than memory. The busiest pipe gives
 *          the name; issue-bound if no pipe explains it.
 * Not it:  lanes without work (divergence).
 */
#include <math.h>
#include <stdio.h>

#include "counter/judge.h"
#include "counter/roofline.h"

/* The fp32 pipe also executes packed fp16 and integer multiplications: the name is theirs then. */
static void name_guest(const struct lull_profile *p, struct lull_kclaim *claim)
{
	f64 fp32 = lull_k_of(p, LULL_K_op_fadd) + lull_k_of(p, LULL_K_op_fmul) +
		   lull_k_of(p, LULL_K_op_ffma);
	f64 fp16 = lull_k_of(p, LULL_K_flops_fp16), integer = lull_k_of(p, LULL_K_op_integer);

	if (fp16 > 4 * fp32) {
		claim->id = "fp16-bound";
		snprintf(claim->detail, sizeof(claim->detail), "fp16 on the fp32 pipe");
		lull_advise(claim, "tensor cores (fp16, bf16), fewer operations");
	} else if (integer > 4 * fp32 && fp16 == 0) {
		claim->id = "integer-bound";
		snprintf(claim->detail, sizeof(claim->detail), "integers on the fp32 pipe");
		lull_advise(claim,
			    "fewer multiplications of integers: shifts, increments, 32 instead "
			    "of 64 bits, index arithmetic out of the loop");
	}
}

/* What tensor cores could do instead: the gain is about the same operations, and hides it. */
static void offer_tensor(const struct lull_profile *p, struct lull_kclaim *claim)
{
	struct lull_roofline r;
	f64 times;

	lull_roofline_of(&r, p);
	times = r.ceiling[LULL_CEILING_tensor_tf32] / r.ceiling[LULL_CEILING_fp32];
	if (isfinite(times) && times > 1)
		lull_prove(claim, "products in tf32 on tensor cores: peak %.1f x that of fp32",
			   times);
}

static bool claim(struct lull_case *c, struct lull_kclaim *claim)
{
	int part = c->loads.pipe_part;
	f64 share = lull_k_of(c->p, LULL_K_tensor_share), rate = lull_k_of(c->p, LULL_K_flop_rate);

	if (isnan(c->loads.sm)) {
		c->missing = "sm_throughput";
		return false;
	}
	if (c->loads.sm < LULL_BUSY || !lull_loads_is_compute(&c->loads))
		return false;
	if (part < 0 || c->loads.of[part] < 0.6 * c->loads.sm)
		part = LULL_PART_sm;
	claim->id = lull_parts[part].verdict;
	snprintf(claim->detail, sizeof(claim->detail), "%s", lull_parts[part].name);
	if (part == LULL_PART_fp32 || part == LULL_PART_imad)
		name_guest(c->p, claim);
	claim->gain = 1 / c->loads.sm;
	lull_prove(claim, "%s %.0f %% busy, memory %.0f %%", lull_parts[part].name,
		   100 * c->loads.of[part], isnan(c->loads.memory) ? 0 : 100 * c->loads.memory);
	if (rate > 0)
		lull_prove(claim, "%s", lull_k_format(rate, "FLOP/s").text);
	if (!isnan(share) && part != LULL_PART_tensor && part != LULL_PART_fp64)
		lull_prove(claim, "%.0f %% of the operations run on tensor cores", share);
	if (part == LULL_PART_fp32 && share < 1 && !*claim->fix)
		offer_tensor(c->p, claim);
	if (!*claim->fix)
		lull_advise(claim, "%s", lull_parts[part].help);
	return true;
}

const struct lull_kverdict lull_verdict_pipe_bound = {
	.id = "compute-bound",
	.title = "a pipe of the multiprocessors is the limit",
	.why = "The multiprocessors are at least 60 % busy, and more than memory. The verdict "
	       "names "
	       "the pipe: fp32-bound (fp16-bound or integer-bound where that is what the pipe "
	       "executes), fp64-bound, tensor-bound, alu-bound (integers and logic), "
	       "sfu-bound (special functions), lsu-bound, issue-bound when no pipe explains it, "
	       "compute-bound when the pipes were not measured. Fewer bytes do not help. The gain "
	       "is "
	       "up to the pipe's peak with the same operations.",
	.stage = LULL_STAGE_LIMIT,
	.claim = claim,
};
