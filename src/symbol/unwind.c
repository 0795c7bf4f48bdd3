#include "symbol/unwind.h"

#include <elf.h>
#include <linux/perf_event.h>

#define AARCH64_LR 30

/* What one step needs and changes. */
struct walk {
	struct lull_unwind *unwind;
	const struct lull_space *space;
	const struct lull_stack_bytes *stack;
	const struct lull_machine *machine;
	struct lull_regs regs;
	bool is_return; /* regs.pc is a return address */
};

enum step { STEP_OK, STEP_END, STEP_CUT_STACK, STEP_CUT_NO_RULE };

void lull_unwind_init(struct lull_unwind *u)
{
	*u = (struct lull_unwind){ 0 };
	lull_cfi_init(&u->cfi);
}

void lull_unwind_release(struct lull_unwind *u)
{
	lull_cfi_release(&u->cfi);
}

/*
 * The caller by the frame pointer: at fp lie the caller's fp and the return address. On x86_64 the caller's
 * stack begins right above. On aarch64 the two may lie anywhere in the frame, so that the caller's sp is not
 * known, only that it is higher; at[sp] keeps that bound and the mask says that it is not the value.
 */
static enum step step_by_fp(struct walk *w)
{
	const struct lull_machine *m = w->machine;
	u64 fp, next_fp, ra;

	if (!lull_regs_has(&w->regs, m->fp))
		return STEP_CUT_NO_RULE;
	fp = w->regs.at[m->fp];
	if (!fp)
		return STEP_END;
	if (fp % 8 || fp < w->regs.at[m->sp])
		return STEP_CUT_NO_RULE;
	if (!lull_stack_read(w->stack, fp, &next_fp) || !lull_stack_read(w->stack, fp + 8, &ra))
		return STEP_CUT_STACK;
	/* Nothing else is known of the caller's registers. */
	w->regs.mask = 0;
	lull_regs_set(&w->regs, m->fp, next_fp);
	lull_regs_set(&w->regs, m->sp, fp + 16);
	if (m->machine == EM_AARCH64)
		w->regs.mask &= ~(1u << m->sp);
	w->regs.pc = ra & m->addr_mask;
	return STEP_OK;
}

/* The caller of a function that has not touched the stack, if lr points into code. */
static enum step step_by_lr(struct walk *w)
{
	u64 lr;

	if (w->is_return || w->regs.machine != EM_AARCH64 || !lull_regs_has(&w->regs, AARCH64_LR))
		return STEP_CUT_NO_RULE;
	lr = w->regs.at[AARCH64_LR] & w->machine->addr_mask;
	if (!lull_space_find(w->space, lr))
		return STEP_CUT_NO_RULE;
	w->regs.pc = lr;
	w->regs.mask &= ~(1u << AARCH64_LR);
	return STEP_OK;
}

/*
 * True if lr is the return address of the innermost frame although the frame pointer knows nothing of it: it
 * points into another file, so that no call inside this one has set it, and no frame record holds it. This is
 * what the vdso of aarch64 looks like, whose functions have neither frames nor tables.
 */
static bool is_lr_newer(const struct walk *w)
{
	const struct lull_mapping *here = lull_space_find(w->space, w->regs.pc), *there;
	const struct lull_machine *m = w->machine;
	u64 lr, saved;

	if (!here || !lull_regs_has(&w->regs, AARCH64_LR) || !lull_regs_has(&w->regs, m->fp))
		return false;
	lr = w->regs.at[AARCH64_LR] & m->addr_mask;
	there = lull_space_find(w->space, lr);
	return there && there->file_ix != here->file_ix &&
	       lull_stack_read(w->stack, w->regs.at[m->fp] + 8, &saved) && (saved & m->addr_mask) != lr;
}

static enum step step_without_rule(struct walk *w)
{
	enum step rc = STEP_CUT_NO_RULE;

	if (is_lr_newer(w))
		rc = step_by_lr(w);
	if (rc == STEP_CUT_NO_RULE)
		rc = step_by_fp(w);
	if (rc == STEP_CUT_NO_RULE)
		rc = step_by_lr(w);
	w->is_return = true;
	return rc;
}

/* From the frame `pc` to its caller. */
static enum step step(struct walk *w, const struct lull_pc *pc)
{
	struct lull_elf *elf = lull_files_get(w->space->files, pc->file_ix)->elf;
	const struct lull_cfi_rule *rule = NULL;
	struct lull_cfi *cfi = &w->unwind->cfi;

	/* A file for another machine cannot be what runs here; its register numbers would mislead. */
	if (elf && elf->machine == w->regs.machine)
		rule = lull_cfi_find(cfi, pc->file_ix, elf, pc->vaddr);
	if (!rule)
		return step_without_rule(w);
	if (rule->is_outermost)
		return STEP_END;
	switch (lull_cfi_step(cfi, rule, &w->regs, w->stack)) {
	case LULL_CFI_OK:
		w->is_return = !rule->is_signal;
		return STEP_OK;
	case LULL_CFI_NO_STACK:
		return STEP_CUT_STACK;
	default:
		return step_without_rule(w);
	}
}

/*
 * True if the frame reached from `sp` and `pc` is not further up the stack. Only a function without a frame of
 * its own may leave sp as it is, and only the innermost or an interrupted one can be that; a signal may come
 * from another stack, so its frames may lie anywhere.
 */
static bool is_loop(const struct walk *w, bool was_return, u64 sp, u64 pc)
{
	u64 new_sp = w->regs.at[w->machine->sp];

	if (!w->is_return)
		return new_sp == sp && w->regs.pc == pc;
	return new_sp < sp || (new_sp == sp && was_return);
}

static enum lull_cut walk(struct walk *w, struct lull_callstack *out)
{
	for (;;) {
		u64 pc = w->regs.pc, sp = w->regs.at[w->machine->sp];
		bool was_return = w->is_return;

		if (out->n == out->cap)
			return LULL_CUT_CAPACITY;
		out->at[out->n++] = lull_space_pc(w->space, pc, was_return);
		switch (step(w, &out->at[out->n - 1])) {
		case STEP_END:
			return LULL_CUT_NONE;
		case STEP_CUT_STACK:
			return LULL_CUT_STACK;
		case STEP_CUT_NO_RULE:
			return LULL_CUT_NO_RULE;
		case STEP_OK:
			break;
		}
		if (!w->regs.pc)
			return LULL_CUT_NONE;
		if (is_loop(w, was_return, sp, pc))
			return LULL_CUT_LOOP;
	}
}

void lull_unwind_sample(struct lull_unwind *u, const struct lull_space *space,
			const struct lull_regs *regs, const struct lull_stack_bytes *stack,
			struct lull_callstack *out)
{
	struct walk w = { .unwind = u, .space = space, .stack = stack, .regs = *regs,
			  .machine = lull_machine_find(regs->machine) };

	out->n = 0;
	out->cut = LULL_CUT_NO_RULE;
	if (w.machine)
		out->cut = walk(&w, out);
	u->n_frames += out->n;
}

void lull_unwind_chain(const struct lull_space *space, const u64 *ips, size_t n,
		       struct lull_callstack *out)
{
	bool is_return = false;

	out->n = 0;
	out->cut = LULL_CUT_NONE;
	for (size_t i = 0; i < n; i++) {
		if (ips[i] >= (u64)PERF_CONTEXT_MAX) {
			is_return = false;
			continue;
		}
		if (out->n == out->cap) {
			out->cut = LULL_CUT_CAPACITY;
			return;
		}
		out->at[out->n++] = lull_space_pc(space, ips[i], is_return);
		is_return = true;
	}
}

void lull_unwind_merge(struct lull_callstack *stack, const struct lull_callstack *chain)
{
	size_t n_wanted = 0, i;
	u64 addr;

	if (stack->cut == LULL_CUT_NONE || !stack->n)
		return;
	/* With recursion an address occurs more than once: the k-th in one list is the k-th in the other. */
	addr = stack->at[stack->n - 1].addr;
	for (i = 0; i < stack->n; i++)
		n_wanted += stack->at[i].addr == addr;
	for (i = 0; i < chain->n && n_wanted; i++)
		n_wanted -= chain->at[i].addr == addr;
	if (n_wanted)
		return;
	stack->cut = chain->cut;
	for (; i < chain->n; i++) {
		if (stack->n == stack->cap) {
			stack->cut = LULL_CUT_CAPACITY;
			return;
		}
		stack->at[stack->n++] = chain->at[i];
	}
}
