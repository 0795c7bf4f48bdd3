/*
 * op_math - bytes and arithmetic of an operator, computed from the shapes of its inputs.
 *
 * Shapes, types and inputs are the JSON texts of the table op_label:
 *
 *	[[64, 512], [512, 10], []]	["float", "float", "Scalar"]	["", "", "1"]
 *
 * FLOPs are counted by the formulas of PyTorch: two for each multiplication and addition of a
 * matrix product or a convolution, one for each element of an addition or multiplication. PyTorch's
 * profiler supports mm, addmm, bmm, baddbmm, conv2d, add and mul; this file also matmul, linear,
 * other convolutions, attention, and the backward of both. An operator that calls another one to do
 * the work, as linear calls addmm, has the same FLOPs again: sum over calls of one operator, never
 * over all operators.
 */
#ifndef LULL_MODEL_OP_MATH_H
#define LULL_MODEL_OP_MATH_H

#include "base/types.h"

/* Bytes of the tensors that went in; those of lists of tensors, whose type is not said, are not
 * counted. 0 if nothing is known. */
u64 lull_op_input_bytes(const char *shapes, const char *types);

/* Floating-point operations of one call, 0 if they do not follow from this. */
f64 lull_op_flops(const char *name, const char *shapes, const char *inputs);

#endif
