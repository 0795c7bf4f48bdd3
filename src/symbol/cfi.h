/*
 * cfi - from one frame to its caller by the unwind tables of the file, remembered in compact form.
 *
 * What it gives:  the unwind rule of a place in the code, and its application to registers and a
 *                 copied piece of stack. libdw reads the tables on a miss; the rule is kept per
 *                 (file, address), equal rules are stored once.
 * What it checks: rules come from files, registers and stack from a process: both
 *                 may be nonsense. Only bytes of the copied stack are ever read.
 * Ownership:      the cache owns its rules; they live until lull_cfi_release().
 * Threads:        one at a time.
 * Cost:           a hit is one hash lookup, a step a few loads (bench/bench_unwind); a miss some
 *                 microseconds.
 */
#ifndef LULL_SYMBOL_CFI_H
#define LULL_SYMBOL_CFI_H

#include "base/map.h"
#include "base/types.h"
#include "base/vec.h"
#include "symbol/elf.h"
#include "symbol/regs.h"

/* A copied piece of stack: n_bytes from `addr` upwards. */
struct lull_stack_bytes {
	u64 addr;
	const u8 *at;
	size_t n_bytes;
};

/* How to get from a frame to its caller. */
struct lull_cfi_rule {
	i32 cfa_off;
	u32 first_save; /* private: in lull_cfi.saves */
	u8 n_saves;
	u8 cfa_how;
	u8 cfa_reg;
	u8 ra_reg;
	bool is_signal;	   /* the caller was interrupted; its pc is exact, not a return address */
	bool is_outermost; /* there is no caller */
	bool needs_copy;   /* private: some value depends on other registers of this frame */
	u8 unused;	   /* rules are found by all of their bytes */
};

struct lull_cfi {
	struct lull_map by_place; /* file and address to rule, plus 1; 0 = none */
	struct lull_map by_hash;  /* content to rule */
	struct lull_vec rules;	  /* of struct lull_cfi_rule */
	struct lull_vec saves;
	struct lull_vec ops;
	u64 n_misses;
};

enum lull_cfi_result {
	LULL_CFI_OK = 0,
	LULL_CFI_NO_STACK,    /* a value lies outside the copied stack */
	LULL_CFI_NO_REGISTER, /* a register that the rule needs is not known */
};

/* No rules yet. */
void lull_cfi_init(struct lull_cfi *c);

/* Forget all rules. */
void lull_cfi_release(struct lull_cfi *c);

/*
 * The rule that holds at `vaddr` of this file; NULL if the file has no unwind information there.
 * For a caller, vaddr is its return address minus 1. Borrowed until the next call.
 */
const struct lull_cfi_rule *lull_cfi_find(struct lull_cfi *c, u32 file_ix, struct lull_elf *elf,
					  u64 vaddr);

/* Change `regs` from those of the frame to those of its caller. Left as they are on failure. */
enum lull_cfi_result lull_cfi_step(const struct lull_cfi *c, const struct lull_cfi_rule *rule,
				   struct lull_regs *regs, const struct lull_stack_bytes *stack);

/* Read eight bytes of the copied stack; false if they are not all in it. */
bool lull_stack_read(const struct lull_stack_bytes *stack, u64 addr, u64 *value);

#endif
