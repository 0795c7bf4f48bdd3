/*
 * expr - evaluate the DWARF expressions that unwind tables hold.
 *
 * Expressions are rare (procedure linkage tables, signal frames, hand-written assembly), so this is
 * plain, not fast. Branches, and operations that need more than registers and stack, are not
 * supported.
 *
 * Ownership: nothing is kept. Threads: any.
 */
#ifndef LULL_SYMBOL_EXPR_H
#define LULL_SYMBOL_EXPR_H

#include "base/types.h"
#include "symbol/regs.h"

/* One operation: DW_OP_* with its operands. */
struct lull_expr_op {
	u64 number;
	u64 number2;
	u8 atom;
};

/* The inputs of an expression. */
struct lull_expr_env {
	const struct lull_regs *regs;
	u64 cfa; /* for DW_OP_call_frame_cfa; 0 while the CFA itself is computed */
	/* Read memory; false if it is not available. */
	bool (*read)(const void *memory, u64 addr, u64 *value);
	const void *memory;
};

/* True if lull_expr_eval() knows this operation. */
bool lull_expr_knows(u8 atom);

/*
 * Evaluate. False if a register is not known, memory is not there, an operation is not supported or
 * the expression is malformed. A final DW_OP_stack_value is accepted and means nothing here.
 */
bool lull_expr_eval(const struct lull_expr_op *ops, size_t n, const struct lull_expr_env *env,
		    u64 *value);

#endif
