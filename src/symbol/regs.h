/*
 * regs - the registers of one thread at one moment, numbered as DWARF does.
 *
 * x86_64:  0 rax, 1 rdx, 2 rcx, 3 rbx, 4 rsi, 5 rdi, 6 rbp, 7 rsp, 8-15 r8-r15, 16 return address
 * aarch64: 0-30 x0-x30, 31 sp
 *
 * Plain values: nothing to free, any thread.
 */
#ifndef LULL_SYMBOL_REGS_H
#define LULL_SYMBOL_REGS_H

#include "base/types.h"

struct lull_wire_regs;

#define LULL_N_REGS 32

struct lull_regs {
	u64 pc;
	u64 at[LULL_N_REGS];
	u32 mask;    /* bit n: at[n] is known */
	u16 machine; /* EM_X86_64 or EM_AARCH64 */
};

/* What the unwinder must know about a machine. */
struct lull_machine {
	u16 machine;
	u8 sp;
	u8 fp;
	u8 n_regs;	  /* DWARF numbers that can appear in unwind rules */
	u32 callee_saved; /* registers whose value survives a call unless a rule says otherwise */
	u64 addr_mask;	  /* bits of a return address that are an address and not a signature */
};

/* Facts about this machine, or NULL if it is not one we unwind. */
const struct lull_machine *lull_machine_find(u16 machine);

/* Set a register. */
static inline void lull_regs_set(struct lull_regs *r, u32 reg, u64 value)
{
	r->at[reg] = value;
	r->mask |= 1u << reg;
}

/* True if the register is known. */
static inline bool lull_regs_has(const struct lull_regs *r, u32 reg)
{
	return reg < LULL_N_REGS && (r->mask >> reg & 1);
}

/* The four registers an agent sends; the machine is the one this program is built for. */
struct lull_regs lull_regs_from_wire(const struct lull_wire_regs *wire);

/*
 * The registers of a perf sample on this machine: `values` holds one value for each bit of `mask`, lowest
 * first, as PERF_SAMPLE_REGS_USER delivers them.
 */
struct lull_regs lull_regs_from_perf(u64 mask, const u64 *values);

/* What to ask perf for: every general register, the stack pointer and the program counter. */
u64 lull_regs_perf_mask(void);

#endif
