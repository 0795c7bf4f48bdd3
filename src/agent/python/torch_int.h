/*
 * torch_int - shared by the parts of the source of PyTorch's operators.
 *
 * The inputs and the sequence number of a call are fields of an object whose layout differs between
 * versions. So the layout is not assumed but detected: the package in python/ calls operators on
 * tensors with known addresses, and torch_learn.c searches the object for these addresses
 * meanwhile. If a layout does not fit, it is not used, and nothing is recorded.
 *
 *	RecordFunction	... sequence number, inputs (pointer, count) ... forward thread ...
 *	input		16 bytes: value, tag. For a tensor the value is its TensorImpl, for a list a
 *			ListImpl with a vector of inputs in it; numbers and flags are the value
 *	TensorImpl	... number of dimensions, then up to 5 sizes or a pointer to them ... type
 *
 *	torch_ops.c	the observers: start and end of each operator
 *	torch_learn.c	detecting the layout
 *	torch_label.c	the name of an operator, with shapes and types
 */
#ifndef LULL_AGENT_PYTHON_TORCH_INT_H
#define LULL_AGENT_PYTHON_TORCH_INT_H

#include "agent/core/ring.h"
#include "agent/python/torch.h"

/* at::RecordScope as in op_label.kind. */
enum {
	LULL_TORCH_OPERATOR = 1,
	LULL_TORCH_BACKWARD = 2,
	LULL_TORCH_OTHER = 3,
	LULL_TORCH_N_KINDS = 3,
};

/* c10::IValue */
struct lull_torch_input {
	u64 value;
	u32 tag;
	u32 pad;
};

/* Valid once it is learned. Offsets are in bytes. */
struct lull_torch_layout {
	const char *(*name)(const void *function); /* at::RecordFunction::name() */
	u32 inputs_off, dims_off, type_off, vector_off;
	u32 tensor_tag, list_tag;
	bool has_numbers, has_flag; /* the tags below are known */
	u32 number_tag, numbers_tag, flag_tag;
};

extern struct lull_torch_layout lull_torch_layout;

/* Look for these tensors from now on. */
void lull_torch_learn_begin(const struct lull_torch_probe *probe);

/* An operator begins while the layout is not known. */
void lull_torch_look(const void *function, u32 kind);

/* True if all that is needed was found. */
bool lull_torch_learn_end(const struct lull_torch_probe *probe);

/* The label of a call, defined in the thread's stream; 0 if there was no room for that. */
u64 lull_torch_label(struct lull_thread *t, const void *function, u32 kind);

#endif
