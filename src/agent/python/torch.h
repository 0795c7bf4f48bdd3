/*
 * torch - shared by the parts of the source of PyTorch's events; source_torch.c.
 *
 * The package in python/ decides what is a phase and a step. It calls the functions of the module
 * `_lull`, which source_torch.c creates in the agent. Operators come from PyTorch itself
 * (torch_ops.c), allocations from its allocator (torch_memory.c).
 */
#ifndef LULL_AGENT_PYTHON_TORCH_H
#define LULL_AGENT_PYTHON_TORCH_H

#include "base/types.h"

/* Tensors that are looked for, by the address of their TensorImpl. */
struct lull_torch_probe {
	u64 pair[2];   /* the inputs of aten::maximum, and of aten::cat in a list */
	u64 four_dims; /* has the shape 3, 5, 7, 11 */
	u64 six_dims;  /* has the shape 2, 1, 3, 1, 5, 7 */
	u64 typed[4];  /* of uint8, int64, float32, float64 */
	u64 sequence;  /* of the node that aten::maximum made, UINT64_MAX if not known */
};

/* What aten::roll is called with. */
#define LULL_TORCH_NUMBER_1 1234567u
#define LULL_TORCH_NUMBER_2 7654321u

/*
 * Watch what is called until lull_torch_learn(): aten::maximum, aten::cat, aten::roll by the two
 * numbers, and aten::sum with keepdim, in this order. False if this build of PyTorch does not have
 * what is needed.
 */
bool lull_torch_watch(const struct lull_torch_probe *probe);

/* Find out the layout from what was seen; false if something does not fit. */
bool lull_torch_learn(const struct lull_torch_probe *probe);

/*
 * Let operators be recorded if a recording is on, else not: outside of one they cost nothing. False
 * if the layout is not known. Called at each step, and by whoever begins a recording.
 */
bool lull_torch_follow(void);

/* torch_late.c: load the hooks into an interpreter that runs already; take them out. */
void lull_torch_enter(void);
void lull_torch_nudge(void); /* until that has happened; may wait for the interpreter */
void lull_torch_withdraw(void);

/* On or off by command from now on, to measure it. */
void lull_torch_ops(bool is_on);

#endif
