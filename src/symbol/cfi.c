#include "symbol/cfi.h"

#include <dwarf.h>
#include <elf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "symbol/expr.h"

/*
 * A rule is a way to compute the CFA (the stack pointer of the caller) and a list of registers that
 * are not simply the same in the caller:
 *
 *	cfa_how   HOW_REG   cfa = register cfa_reg + cfa_off
 *	          HOW_EXPR  cfa = expression at ops[cfa_off]
 *	save.how  HOW_AT_CFA    the value lies in memory at cfa + off
 *	          HOW_VAL_CFA   the value is cfa + off
 *	          HOW_REG       the value is in register off
 *	          HOW_AT_EXPR   the value lies in memory where the expression says
 *	          HOW_EXPR      the value is what the expression says
 *	          HOW_UNDEFINED the value is lost; for the return address: there is no caller
 *
 * An expression in `ops` is an op whose `number` is the count of ops that follow it.
 */
enum how { HOW_REG, HOW_EXPR, HOW_AT_EXPR, HOW_AT_CFA, HOW_VAL_CFA, HOW_UNDEFINED };

struct save {
	i32 off;
	u8 reg;
	u8 how;
	u16 pad;
};

/* A rule that is being built. */
struct draft {
	struct lull_cfi_rule rule;
	struct save saves[LULL_N_REGS + 1];
	bool is_usable;
};

/*
 * Places are keyed by file and address; both have to fit. Linux gives user space at most 47 bits.
 */
#define PLACE_BITS 48

/* From sp to x0 in the frame of a signal on aarch64, see read_trampoline(). */
#define SIGFRAME_REGS_OFF (128 + 176 + 8)

void lull_cfi_init(struct lull_cfi *c)
{
	*c = (struct lull_cfi){ 0 };
	lull_map_init(&c->by_place);
	lull_map_init(&c->by_hash);
	lull_vec_init(&c->rules, sizeof(struct lull_cfi_rule));
	lull_vec_init(&c->saves, sizeof(struct save));
	lull_vec_init(&c->ops, sizeof(struct lull_expr_op));
}

void lull_cfi_release(struct lull_cfi *c)
{
	lull_map_release(&c->by_place);
	lull_map_release(&c->by_hash);
	lull_vec_release(&c->rules);
	lull_vec_release(&c->saves);
	lull_vec_release(&c->ops);
}

/* Keep a copy of an expression; returns where, or -1 if it has operations we cannot do. */
static i32 keep_expr(struct lull_cfi *c, const Dwarf_Op *ops, size_t n)
{
	struct lull_expr_op *to;
	size_t at = c->ops.n;

	for (size_t i = 0; i < n; i++)
		if (!lull_expr_knows(ops[i].atom))
			return -1;
	to = lull_vec_extend(&c->ops, n + 1);
	to->number = n;
	for (size_t i = 0; i < n; i++)
		to[i + 1] = (struct lull_expr_op){ ops[i].number, ops[i].number2, ops[i].atom };
	return (i32)at;
}

static bool fits(u64 off)
{
	return (i64)off >= INT32_MIN && (i64)off <= INT32_MAX;
}

static bool read_cfa(struct lull_cfi *c, Dwarf_Frame *frame, struct lull_cfi_rule *rule)
{
	Dwarf_Op *ops;
	size_t n;

	if (dwarf_frame_cfa(frame, &ops, &n) || !n)
		return false;
	if (n == 1 && ops[0].atom == DW_OP_bregx && ops[0].number < LULL_N_REGS &&
	    fits(ops[0].number2)) {
		rule->cfa_how = HOW_REG;
		rule->cfa_reg = (u8)ops[0].number;
		rule->cfa_off = (i32)ops[0].number2;
		return true;
	}
	rule->cfa_how = HOW_EXPR;
	rule->cfa_off = keep_expr(c, ops, n);
	return rule->cfa_off >= 0;
}

/* Turn libdw's description of one register into a save. False if it is beyond us. */
static bool describe(struct lull_cfi *c, const Dwarf_Op *ops, size_t n, struct save *save)
{
	bool is_value = ops[n - 1].atom == DW_OP_stack_value;
	size_t n_ops = n - is_value;

	if (n == 1 && ops[0].atom == DW_OP_regx && ops[0].number < LULL_N_REGS) {
		save->how = HOW_REG;
		save->off = (i32)ops[0].number;
		return true;
	}
	if (n_ops && n_ops <= 2 && ops[0].atom == DW_OP_call_frame_cfa &&
	    (n_ops == 1 || (ops[1].atom == DW_OP_plus_uconst && fits(ops[1].number)))) {
		save->how = is_value ? HOW_VAL_CFA : HOW_AT_CFA;
		save->off = n_ops == 2 ? (i32)ops[1].number : 0;
		return true;
	}
	save->how = is_value ? HOW_EXPR : HOW_AT_EXPR;
	save->off = keep_expr(c, ops, n_ops);
	return save->off >= 0;
}

/*
 * What happens to one register; adds to the draft unless it stays the same, or is lost as every
 * call may lose it. False if the rule is no use without it.
 */
static bool read_register(struct lull_cfi *c, Dwarf_Frame *frame, const struct lull_machine *m,
			  u8 reg, struct draft *d)
{
	struct save *save = &d->saves[d->rule.n_saves];
	Dwarf_Op mem[3], *ops;
	size_t n;

	if (dwarf_frame_register(frame, reg, mem, &ops, &n))
		return false;
	*save = (struct save){ .reg = reg, .how = HOW_UNDEFINED };
	if (!n && reg == d->rule.ra_reg)
		d->rule.is_outermost = ops;
	if (!n && (!ops || !(m->callee_saved >> reg & 1)))
		return true;
	if (n && !describe(c, ops, n, save))
		return reg != d->rule.ra_reg;
	if (save->how == HOW_REG || save->how == HOW_EXPR || save->how == HOW_AT_EXPR)
		d->rule.needs_copy = true;
	d->rule.n_saves++;
	return true;
}

/* Read the rule from the tables of the file. */
static void read_rule(struct lull_cfi *c, struct lull_elf *elf, u64 vaddr, struct draft *d)
{
	const struct lull_machine *m = lull_machine_find(elf->machine);
	Dwarf_CFI *cfi = lull_elf_cfi(elf);
	Dwarf_Frame *frame;
	int ra_reg;

	if (!m || !cfi || dwarf_cfi_addrframe(cfi, vaddr, &frame))
		return;
	ra_reg = dwarf_frame_info(frame, NULL, NULL, &d->rule.is_signal);
	d->is_usable = ra_reg >= 0 && ra_reg < LULL_N_REGS && read_cfa(c, frame, &d->rule);
	d->rule.ra_reg = (u8)ra_reg;
	for (u8 reg = 0; d->is_usable && reg < m->n_regs; reg++)
		if (reg != m->sp)
			d->is_usable = read_register(c, frame, m, reg, d);
	free(frame);
}

/*
 * On aarch64 a signal handler returns to two instructions in the vdso, mov x8, #139 and svc #0,
 * whose unwind information, where they have any, leads to the caller of the interrupted function
 * and skips that function itself. All registers lie at fixed places from sp: siginfo (128 bytes),
 * then in the ucontext at 176 fault_address, x0-x30, sp, pc.
 */
static bool read_trampoline(struct lull_elf *elf, u64 vaddr, struct draft *d)
{
	static const u32 sigreturn[] = { 0xd2801168, 0xd4000001 };
	const struct lull_machine *m = lull_machine_find(EM_AARCH64);
	u32 code[2];

	/* vaddr is inside the instruction before, as for every return address. */
	if (elf->machine != EM_AARCH64 || !lull_elf_read(elf, vaddr + 1, code, sizeof(code)) ||
	    memcmp(code, sigreturn, sizeof(code)))
		return false;
	d->rule = (struct lull_cfi_rule){ .cfa_how = HOW_REG,
					  .cfa_reg = m->sp,
					  .is_signal = true,
					  .cfa_off = SIGFRAME_REGS_OFF };
	/* Register 31 is sp, and what lies after it is the pc, which becomes the last save. */
	for (u8 reg = 0; reg <= LULL_N_REGS; reg++)
		d->saves[d->rule.n_saves++] =
			(struct save){ .off = reg * 8, .reg = reg, .how = HOW_AT_CFA };
	d->rule.ra_reg = LULL_N_REGS;
	d->is_usable = true;
	return true;
}

/* stp x29, x30, [sp, #-N]! and ldp x29, x30, [sp], #N without their N. */
#define AARCH64_PUSH(code) (((code)&0xffc07fffu) == 0xa9807bfdu)
#define AARCH64_POP(code)  (((code)&0xffc07fffu) == 0xa8c07bfdu)
#define AARCH64_RET	   0xd65f03c0u
#define AARCH64_MOV_X29_SP 0x910003fdu

/*
 * How far from the entry the push may be, and from the pop the return: signing and landing pads
 * come first.
 */
#define PROLOGUE_CODES 8
#define EPILOGUE_CODES 2

/*
 * What the beginning of a function of aarch64 does; addresses are those of the instructions, 0 =
 * not seen.
 */
struct prologue {
	u64 push_vaddr;
	u64 mov_vaddr; /* from then on x29 is where sp was */
	i32 frame_bytes;
};

static struct prologue find_prologue(const struct lull_elf *elf, u64 entry)
{
	struct prologue p = { 0 };
	u32 code;

	for (u64 at = entry; at < entry + 4 * PROLOGUE_CODES && lull_elf_read(elf, at, &code, 4);
	     at += 4) {
		if (AARCH64_PUSH(code)) {
			p.push_vaddr = at;
			p.frame_bytes = (i32)(128 - (code >> 15 & 127)) * 8;
		} else if (code == AARCH64_MOV_X29_SP) {
			p.mov_vaddr = at;
		}
	}
	return p;
}

/*
 * True between the pop and the return; what follows the return in memory does not follow it in
 * time.
 */
static bool is_behind_pop(const struct lull_elf *elf, u64 vaddr)
{
	u32 code;

	for (u64 at = vaddr - 4; at >= vaddr - 4 * EPILOGUE_CODES; at -= 4) {
		if (!lull_elf_read(elf, at, &code, 4) || code == AARCH64_RET)
			return false;
		if (AARCH64_POP(code))
			return true;
	}
	return false;
}

/*
 * Code of aarch64 without tables, which the vdso is since its tables were dropped: a function that
 * begins by pushing x29 and x30 and taking its frame in one instruction gives itself away. The
 * frame pointer alone would find the caller's pc too, but not its sp, and with that lose callers
 * that have tables and no frame pointer.
 */
static void read_prologue(struct lull_elf *elf, u64 vaddr, struct draft *d)
{
	const struct lull_elf_symbol *symbol;
	u64 code_vaddr = vaddr & ~3ULL;
	struct prologue p;

	if (elf->machine != EM_AARCH64 || !(symbol = lull_elf_find_symbol(elf, vaddr)))
		return;
	p = find_prologue(elf, symbol->vaddr);
	if (!p.push_vaddr)
		return;
	d->is_usable = true;
	d->rule = (struct lull_cfi_rule){ .cfa_how = HOW_REG, .cfa_reg = 31, .ra_reg = 30 };
	if (code_vaddr <= p.push_vaddr || is_behind_pop(elf, code_vaddr))
		return;
	/* sp may move on for arrays of variable length; x29, once set, does not. */
	if (p.mov_vaddr && code_vaddr > p.mov_vaddr)
		d->rule.cfa_reg = 29;
	d->rule.cfa_off = p.frame_bytes;
	d->rule.n_saves = 2;
	d->saves[0] = (struct save){ .off = 8 - p.frame_bytes, .reg = 30, .how = HOW_AT_CFA };
	d->saves[1] = (struct save){ .off = -p.frame_bytes, .reg = 29, .how = HOW_AT_CFA };
}

/* Put the return address first, where lull_cfi_step() looks for it. */
static void sort_saves(struct draft *d)
{
	for (u32 i = 1; i < d->rule.n_saves; i++)
		if (d->saves[i].reg == d->rule.ra_reg) {
			struct save first = d->saves[0];

			d->saves[0] = d->saves[i];
			d->saves[i] = first;
		}
}

/*
 * Store a draft, or find the same rule stored before; returns its index plus 1, 0 if it is no use.
 */
static u32 keep(struct lull_cfi *c, struct draft *d)
{
	u64 parts[2];
	bool is_new;
	u32 *ix;

	if (!d->is_usable)
		return 0;
	sort_saves(d);
	parts[0] = lull_hash(&d->rule, sizeof(d->rule));
	parts[1] = lull_hash(d->saves, d->rule.n_saves * sizeof(struct save));
	ix = lull_map_add(&c->by_hash, lull_hash(parts, sizeof(parts)), &is_new);
	if (is_new) {
		d->rule.first_save = (u32)c->saves.n;
		lull_vec_add(&c->saves, d->saves, d->rule.n_saves);
		lull_vec_add(&c->rules, &d->rule, 1);
		*ix = (u32)c->rules.n;
	}
	return *ix;
}

const struct lull_cfi_rule *lull_cfi_find(struct lull_cfi *c, u32 file_ix, struct lull_elf *elf,
					  u64 vaddr)
{
	u64 place = (u64)file_ix << PLACE_BITS | vaddr;
	bool is_new;
	u32 *at;

	if (vaddr >> PLACE_BITS || file_ix >> (64 - PLACE_BITS))
		return NULL;
	at = lull_map_add(&c->by_place, place, &is_new);
	if (is_new) {
		struct draft d;

		memset(&d, 0, sizeof(d));
		c->n_misses++;
		if (!read_trampoline(elf, vaddr, &d))
			read_rule(c, elf, vaddr, &d);
		if (!d.is_usable)
			read_prologue(elf, vaddr, &d);
		*at = keep(c, &d);
	}
	return *at ? (struct lull_cfi_rule *)c->rules.at + *at - 1 : NULL;
}

bool lull_stack_read(const struct lull_stack_bytes *stack, u64 addr, u64 *value)
{
	u64 off = addr - stack->addr;

	if (stack->n_bytes < sizeof(*value) || off > stack->n_bytes - sizeof(*value))
		return false;
	memcpy(value, stack->at + off, sizeof(*value));
	return true;
}

static bool read_memory(const void *memory, u64 addr, u64 *value)
{
	return lull_stack_read(memory, addr, value);
}

static bool eval(const struct lull_cfi *c, i32 at, const struct lull_expr_env *env, u64 *value)
{
	const struct lull_expr_op *op = (struct lull_expr_op *)c->ops.at + at;

	return lull_expr_eval(op + 1, op->number, env, value);
}

/* The caller's value of one register, from the frame described by env. */
static enum lull_cfi_result restore(const struct lull_cfi *c, const struct save *save,
				    const struct lull_expr_env *env, u64 *value)
{
	u64 addr = env->cfa + (u64)(i64)save->off;

	switch ((enum how)save->how) {
	case HOW_AT_CFA:
		return lull_stack_read(env->memory, addr, value) ? LULL_CFI_OK : LULL_CFI_NO_STACK;
	case HOW_VAL_CFA:
		*value = addr;
		return LULL_CFI_OK;
	case HOW_REG:
		if (!lull_regs_has(env->regs, (u32)save->off))
			return LULL_CFI_NO_REGISTER;
		*value = env->regs->at[save->off];
		return LULL_CFI_OK;
	case HOW_AT_EXPR:
		return eval(c, save->off, env, &addr) && lull_stack_read(env->memory, addr, value)
			       ? LULL_CFI_OK
			       : LULL_CFI_NO_STACK;
	case HOW_EXPR:
		return eval(c, save->off, env, value) ? LULL_CFI_OK : LULL_CFI_NO_STACK;
	default:
		return LULL_CFI_NO_REGISTER;
	}
}

static enum lull_cfi_result find_cfa(const struct lull_cfi *c, const struct lull_cfi_rule *rule,
				     struct lull_expr_env *env)
{
	if (rule->cfa_how == HOW_EXPR)
		return eval(c, rule->cfa_off, env, &env->cfa) ? LULL_CFI_OK : LULL_CFI_NO_STACK;
	if (!lull_regs_has(env->regs, rule->cfa_reg))
		return LULL_CFI_NO_REGISTER;
	env->cfa = env->regs->at[rule->cfa_reg] + (u64)(i64)rule->cfa_off;
	return LULL_CFI_OK;
}

/* NULL if there are none. */
static const struct save *saves_of(const struct lull_cfi *c, const struct lull_cfi_rule *rule)
{
	return rule->n_saves ? (const struct save *)c->saves.at + rule->first_save : NULL;
}

/* Change all registers but the pc into those of the caller. */
static void restore_all(const struct lull_cfi *c, const struct lull_cfi_rule *rule,
			struct lull_regs *regs, const struct lull_expr_env *env)
{
	const struct save *save = saves_of(c, rule);

	for (u32 i = 0; i < rule->n_saves; i++, save++) {
		u64 value;

		if (save->reg == LULL_N_REGS)
			continue;
		if (restore(c, save, env, &value))
			regs->mask &= ~(1u << save->reg);
		else
			lull_regs_set(regs, save->reg, value);
	}
}

/* The return address. One that is not saved is still in its register: x30 of a leaf function. */
static enum lull_cfi_result find_ra(const struct lull_cfi *c, const struct lull_cfi_rule *rule,
				    const struct lull_expr_env *env, u64 *ra)
{
	const struct save *save = saves_of(c, rule);

	/* keep() puts it first. */
	if (save && save->reg == rule->ra_reg)
		return restore(c, save, env, ra);
	if (!lull_regs_has(env->regs, rule->ra_reg))
		return LULL_CFI_NO_REGISTER;
	*ra = env->regs->at[rule->ra_reg];
	return LULL_CFI_OK;
}

enum lull_cfi_result lull_cfi_step(const struct lull_cfi *c, const struct lull_cfi_rule *rule,
				   struct lull_regs *regs, const struct lull_stack_bytes *stack)
{
	const struct lull_machine *m = lull_machine_find(regs->machine);
	struct lull_expr_env env = { .regs = regs, .read = read_memory, .memory = stack };
	enum lull_cfi_result rc = find_cfa(c, rule, &env);
	struct lull_regs old;
	u64 ra;

	if (!rc)
		rc = find_ra(c, rule, &env, &ra);
	if (rc)
		return rc;
	if (rule->needs_copy) {
		old = *regs;
		env.regs = &old;
	}
	if (!rule->is_signal)
		regs->mask &= m->callee_saved;
	lull_regs_set(regs, m->sp, env.cfa);
	restore_all(c, rule, regs, &env);
	regs->pc = ra & m->addr_mask;
	return LULL_CFI_OK;
}
