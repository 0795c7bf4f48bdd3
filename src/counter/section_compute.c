/*
 * compute: how busy the pipes were, and what kinds of instructions ran.
 */
#include <math.h>

#include "counter/section.h"

static const struct lull_sheet_row rates[] = {
	{ LULL_K_ipc, "Instructions a cycle" },
	{ LULL_K_issue_share, "Issue slots used" },
	{ LULL_K_inst_executed, "Instructions of warps" },
	{ LULL_K_lanes, "Threads per instruction" },
	{ LULL_K_flop_rate, "Floating-point rate" },
	{ LULL_K_tensor_share, "On tensor cores" },
};

static const struct lull_sheet_row pipes[] = {
	{ LULL_K_cycles_tensor, "Tensor cores" },
	{ LULL_K_pipe_fma, "FMA (fp32)" },
	{ LULL_K_pipe_alu, "ALU (integer, logic)" },
	{ LULL_K_cycles_fp64, "FP64" },
	{ LULL_K_pipe_xu, "XU (special functions)" },
	{ LULL_K_pipe_lsu, "LSU (loads, stores)" },
	{ LULL_K_pipe_tex, "TEX" },
	{ LULL_K_pipe_uniform, "Uniform" },
	{ LULL_K_pipe_adu, "ADU (addresses)" },
	{ LULL_K_pipe_cbu, "CBU (branches)" },
	{ LULL_K_pipe_tma, "TMA" },
};

static const struct lull_sheet_row kinds[] = {
	{ LULL_K_flops_fp32, "fp32 operations" },
	{ LULL_K_flops_fp64, "fp64 operations" },
	{ LULL_K_flops_fp16, "fp16 operations" },
	{ LULL_K_flops_tensor, "Tensor operations" },
	{ LULL_K_op_integer, "Integer instructions" },
	{ LULL_K_op_memory, "Memory instructions" },
	{ LULL_K_op_control, "Control instructions" },
	{ LULL_K_op_conversion, "Conversions" },
	{ LULL_K_op_bit, "Bit instructions" },
	{ LULL_K_op_inter_thread_communication, "Shuffles and votes" },
	{ LULL_K_op_misc, "Other instructions" },
};

static void run(const struct lull_profile *p, struct lull_sheet *to)
{
	lull_sheet_rows(to, p, rates, LULL_COUNT_OF(rates));
	for (size_t i = 0; i < LULL_COUNT_OF(pipes); i++)
		if (lull_k_of(p, pipes[i].k) >= 0.05)
			lull_sheet_bars(to, p, &pipes[i], 1);
	for (size_t i = 0; i < LULL_COUNT_OF(kinds); i++)
		if (lull_k_of(p, kinds[i].k) > 0)
			lull_sheet_rows(to, p, &kinds[i], 1);
	if (lull_k_of(p, LULL_K_flops_tensor) > 0)
		lull_sheet_say(to, "Tensor operations are those that were executed: tiles that "
				   "reach over the edge of a matrix count in full.");
}

const struct lull_section lull_section_compute = {
	.name = "compute",
	.title = "Compute Workload",
	.what = "how busy the pipes were while multiprocessors had work, and what they executed",
	.run = run,
};
