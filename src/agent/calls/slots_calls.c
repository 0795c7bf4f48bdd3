#include "agent/calls/slots_calls.h"

#include <string.h>

/* What is looked for. */
struct search {
	struct lull_slot_use *uses;
	u32 n, n_called;
	u64 lo, hi; /* addresses of the first entry and the last */
};

static struct lull_slot_use *use_at(const struct search *s, u64 addr)
{
	if (addr - s->lo > s->hi - s->lo)
		return NULL;
	for (u32 i = 0; i < s->n; i++)
		if ((u64)s->uses[i].slot == addr)
			return &s->uses[i];
	return NULL;
}

static void note_call(struct search *s, struct lull_slot_use *use)
{
	if (use && !use->is_called) {
		use->is_called = true;
		s->n_called++;
	}
}

#ifdef __aarch64__

#define N_REGS	    31u
#define N_CLOBBERED 19u /* x0 to x18: what a call need not keep */

/* What registers hold, as far as it matters here. */
struct regs {
	u64 page[N_REGS];		   /* set by adrp; 0: something else */
	struct lull_slot_use *use[N_REGS]; /* loaded from this entry */
};

static void forget(struct regs *regs, u32 first, u32 n)
{
	memset(&regs->page[first], 0, n * sizeof(regs->page[0]));
	memset(&regs->use[first], 0, n * sizeof(regs->use[0]));
}

static u64 page_of_adrp(u64 at, u32 insn)
{
	u64 pages = (u64)(insn >> 5 & 0x7ffff) << 2 | (insn >> 29 & 3);

	return (at & ~0xfffull) + (u64)((i64)(pages << 43) >> 31);
}

/*
 * b, bl, br, blr, ret and their kin; conditional branches and system instructions change nothing.
 */
static void step_branch(struct search *s, struct regs *regs, u32 insn)
{
	u32 n = insn >> 5 & 31;

	if ((insn & 0xffdffc1f) == 0xd61f0000 && n < N_REGS) /* br, blr */
		note_call(s, regs->use[n]);
	if ((insn & 0xfe000000) == 0xd6000000 || (insn & 0x7c000000) == 0x14000000)
		forget(regs, 0, N_CLOBBERED);
}

/*
 * Instructions that do not write the general registers that they name: str, stur and stp of 64
 * bits, and those on vectors, but for what moves (umov, smov) or converts a value out of one.
 */
static bool is_harmless(u32 insn)
{
	if (!(insn >> 26 & 1))
		return (insn & 0xffc00000) == 0xf9000000 || (insn & 0xffe00c00) == 0xf8000000 ||
		       (insn & 0xfe400000) == 0xa8000000;
	return (insn & 0x7f20fc00) != 0x1e200000 && (insn & 0xbfe0ec00) != 0x0e002c00;
}

static void step(struct search *s, struct regs *regs, u64 at, u32 insn)
{
	u32 d = insn & 31, n = insn >> 5 & 31, d2 = insn >> 10 & 31;
	struct lull_slot_use *use = NULL;

	if ((insn >> 26 & 7) == 5) {
		step_branch(s, regs, insn);
		return;
	}
	if (is_harmless(insn))
		return;
	/* ldr x<d>, [x<n>, #imm] */
	if ((insn & 0xffc00000) == 0xf9400000 && n < N_REGS && regs->page[n])
		use = use_at(s, regs->page[n] + (insn >> 10 & 0xfff) * 8);
	/* Nearly all others name the register that they write in the lowest bits. */
	if (d < N_REGS) {
		regs->page[d] = (insn & 0x9f000000) == 0x90000000 ? page_of_adrp(at, insn) : 0;
		regs->use[d] = use;
	}
	if ((insn & 0x3a000000) == 0x28000000 && d2 < N_REGS) /* the second one of ldp */
		forget(regs, d2, 1);
}

static void search_code(struct search *s, const u8 *at, const u8 *end)
{
	struct regs regs = { 0 };

	for (; at + 4 <= end && s->n_called < s->n; at += 4) {
		u32 insn;

		memcpy(&insn, at, sizeof(insn));
		step(s, &regs, (u64)at, insn);
	}
}

#else

#define MAX_AHEAD 1024 /* bytes from a load to the call: of the same function, as a rule */

/* The entry that an instruction names by its distance, if these four bytes are the last ones. */
static struct lull_slot_use *use_of_distance(const struct search *s, const u8 *at)
{
	i32 distance;

	memcpy(&distance, at, sizeof(distance));
	return use_at(s, (u64)at + sizeof(distance) + (u64)(i64)distance);
}

/* rbx, rbp, r12 to r15: what a call keeps, and so where compilers keep an address to call. */
static bool is_kept(u32 reg)
{
	return reg == 3 || reg == 5 || reg >= 12;
}

/* "call *%reg" or "jmp *%reg" soon after? */
static bool is_called_by(u32 reg, const u8 *at, const u8 *end)
{
	const u8 *last = end - at > MAX_AHEAD ? at + MAX_AHEAD : end;

	for (; (at = memchr(at, 0xff, (size_t)(last - at))) && at + 2 <= last; at++)
		if (((at[1] & 0xf8) == 0xd0 || (at[1] & 0xf8) == 0xe0) &&
		    (at[1] & 7u) == (reg & 7) && (at[-1] == 0x41) == (reg >= 8))
			return true;
	return false;
}

/* "mov entry(%rip), %reg": REX.W, 8b, ModRM, distance; `at` is where the 8b is. */
static void look_at_load(struct search *s, const u8 *at, const u8 *end)
{
	u32 reg = (at[1] >> 3 & 7u) | (at[-1] == 0x4c ? 8 : 0);
	struct lull_slot_use *use;

	if ((at[-1] != 0x48 && at[-1] != 0x4c) || (at[1] & 0xc7) != 0x05 || !is_kept(reg))
		return;
	use = use_of_distance(s, at + 2);
	if (use && !use->is_called && is_called_by(reg, at + 6, end))
		note_call(s, use);
}

/* Instructions are not told apart: what looks like one and hits an entry is one. */
static void search_code(struct search *s, const u8 *at, const u8 *end)
{
	for (at++; at + 6 <= end && s->n_called < s->n; at++) {
		if (at[0] == 0xff && (at[1] == 0x15 || at[1] == 0x25)) /* call, jmp *entry(%rip) */
			note_call(s, use_of_distance(s, at + 2));
		else if (at[0] == 0x8b)
			look_at_load(s, at, end);
	}
}

#endif

void lull_slots_find_calls(const struct dl_phdr_info *file, struct lull_slot_use *uses, u32 n)
{
	struct search s = { .uses = uses, .n = n, .lo = UINT64_MAX };

	for (u32 i = 0; i < n; i++) {
		u64 addr = (u64)uses[i].slot;

		s.lo = addr < s.lo ? addr : s.lo;
		s.hi = addr > s.hi ? addr : s.hi;
		s.n_called += uses[i].is_called;
	}
	for (int i = 0; i < file->dlpi_phnum && s.n_called < n; i++) {
		const ElfW(Phdr) *p = &file->dlpi_phdr[i];
		const u8 *code = (const u8 *)(file->dlpi_addr + p->p_vaddr);

		if (p->p_type == PT_LOAD && (p->p_flags & PF_X) && (p->p_flags & PF_R))
			search_code(&s, code, code + p->p_filesz);
	}
}
