#include "symbol/expr.h"

#include <dwarf.h>
#include <elf.h>

/* Deeper than any expression a compiler or libc emits for frames (the deepest known needs 3). */
#define MAX_DEPTH 16

struct machine {
	u64 at[MAX_DEPTH];
	size_t n;
	const struct lull_expr_env *env;
};

enum kind {
	KIND_UNKNOWN,
	KIND_NOP,
	KIND_CONST,
	KIND_REG,
	KIND_CFA,
	KIND_STACK,
	KIND_UNARY,
	KIND_BINARY
};

static enum kind kind_of(u8 atom)
{
	if (atom >= DW_OP_lit0 && atom <= DW_OP_lit31)
		return KIND_CONST;
	if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31)
		return KIND_REG;
	switch (atom) {
	case DW_OP_nop:
	case DW_OP_stack_value:
		return KIND_NOP;
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_const4u:
	case DW_OP_const4s:
	case DW_OP_const8u:
	case DW_OP_const8s:
	case DW_OP_constu:
	case DW_OP_consts:
		return KIND_CONST;
	case DW_OP_bregx:
		return KIND_REG;
	case DW_OP_call_frame_cfa:
		return KIND_CFA;
	case DW_OP_dup:
	case DW_OP_drop:
	case DW_OP_over:
	case DW_OP_swap:
		return KIND_STACK;
	case DW_OP_deref:
	case DW_OP_plus_uconst:
	case DW_OP_neg:
	case DW_OP_not:
		return KIND_UNARY;
	case DW_OP_and:
	case DW_OP_or:
	case DW_OP_xor:
	case DW_OP_plus:
	case DW_OP_minus:
	case DW_OP_mul:
	case DW_OP_shl:
	case DW_OP_shr:
	case DW_OP_shra:
	case DW_OP_eq:
	case DW_OP_ne:
	case DW_OP_ge:
	case DW_OP_gt:
	case DW_OP_le:
	case DW_OP_lt:
		return KIND_BINARY;
	default:
		return KIND_UNKNOWN;
	}
}

bool lull_expr_knows(u8 atom)
{
	return kind_of(atom) != KIND_UNKNOWN;
}

static bool push(struct machine *m, u64 value)
{
	if (m->n == MAX_DEPTH)
		return false;
	m->at[m->n++] = value;
	return true;
}

static bool push_reg(struct machine *m, const struct lull_expr_op *op)
{
	bool is_any = op->atom == DW_OP_bregx;
	u64 reg = is_any ? op->number : (u64)op->atom - DW_OP_breg0;
	u64 off = is_any ? op->number2 : op->number;

	/* The table numbers the pc of x86_64 as a register; PLT expressions look at it. */
	if (reg == 16 && m->env->regs->machine == EM_X86_64)
		return push(m, m->env->regs->pc + off);
	return reg < LULL_N_REGS && lull_regs_has(m->env->regs, (u32)reg) &&
	       push(m, m->env->regs->at[reg] + off);
}

static bool push_const(struct machine *m, const struct lull_expr_op *op)
{
	if (op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31)
		return push(m, (u64)op->atom - DW_OP_lit0);
	return push(m, op->number);
}

static bool shuffle(struct machine *m, u8 atom)
{
	u64 top;

	if (m->n < (atom == DW_OP_over || atom == DW_OP_swap ? 2u : 1u))
		return false;
	top = m->at[m->n - 1];
	switch (atom) {
	case DW_OP_dup:
		return push(m, top);
	case DW_OP_over:
		return push(m, m->at[m->n - 2]);
	case DW_OP_swap:
		m->at[m->n - 1] = m->at[m->n - 2];
		m->at[m->n - 2] = top;
		return true;
	default:
		m->n--;
		return true;
	}
}

static bool unary(struct machine *m, const struct lull_expr_op *op)
{
	u64 *top;

	if (!m->n)
		return false;
	top = &m->at[m->n - 1];
	switch (op->atom) {
	case DW_OP_deref:
		return m->env->read(m->env->memory, *top, top);
	case DW_OP_plus_uconst:
		*top += op->number;
		return true;
	case DW_OP_neg:
		*top = -*top;
		return true;
	default:
		*top = ~*top;
		return true;
	}
}

static u64 compute(u8 atom, u64 a, u64 b)
{
	switch (atom) {
	case DW_OP_and:
		return a & b;
	case DW_OP_or:
		return a | b;
	case DW_OP_xor:
		return a ^ b;
	case DW_OP_plus:
		return a + b;
	case DW_OP_minus:
		return a - b;
	case DW_OP_mul:
		return a * b;
	case DW_OP_shl:
		return b < 64 ? a << b : 0;
	case DW_OP_shr:
		return b < 64 ? a >> b : 0;
	case DW_OP_shra:
		b = b < 64 ? b : 63;
		return a >> 63 ? ~(~a >> b) : a >> b;
	case DW_OP_eq:
		return a == b;
	case DW_OP_ne:
		return a != b;
	case DW_OP_ge:
		return (i64)a >= (i64)b;
	case DW_OP_gt:
		return (i64)a > (i64)b;
	case DW_OP_le:
		return (i64)a <= (i64)b;
	default:
		return (i64)a < (i64)b;
	}
}

static bool binary(struct machine *m, u8 atom)
{
	if (m->n < 2)
		return false;
	m->n--;
	m->at[m->n - 1] = compute(atom, m->at[m->n - 1], m->at[m->n]);
	return true;
}

static bool run(struct machine *m, const struct lull_expr_op *op)
{
	switch (kind_of(op->atom)) {
	case KIND_NOP:
		return true;
	case KIND_CONST:
		return push_const(m, op);
	case KIND_REG:
		return push_reg(m, op);
	case KIND_CFA:
		return push(m, m->env->cfa);
	case KIND_STACK:
		return shuffle(m, op->atom);
	case KIND_UNARY:
		return unary(m, op);
	case KIND_BINARY:
		return binary(m, op->atom);
	default:
		return false;
	}
}

bool lull_expr_eval(const struct lull_expr_op *ops, size_t n, const struct lull_expr_env *env,
		    u64 *value)
{
	struct machine m = { .env = env };

	for (size_t i = 0; i < n; i++)
		if (!run(&m, &ops[i]))
			return false;
	if (!m.n)
		return false;
	*value = m.at[m.n - 1];
	return true;
}
