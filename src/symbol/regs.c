#include "symbol/regs.h"

#include <asm/perf_regs.h>
#include <elf.h>

#include "wire/wire.h"

#define BIT(n)	    (1u << (n))
#define X86_RBX	    3
#define X86_RBP	    6
#define X86_RSP	    7
#define AARCH64_X29 29
#define AARCH64_X30 30
#define AARCH64_SP  31

static const struct lull_machine machines[] = {
	{ EM_X86_64, X86_RSP, X86_RBP, 17,
	  BIT(X86_RBX) | BIT(X86_RBP) | BIT(12) | BIT(13) | BIT(14) | BIT(15), ~0ULL },
	/*
	 * x19-x30. User addresses have 48 bits; what is above is pointer authentication or a tag.
	 */
	{ EM_AARCH64, AARCH64_SP, AARCH64_X29, 31, 0x7ff80000u, (1ULL << 48) - 1 },
};

#if defined(__x86_64__)
#define HOST_MACHINE EM_X86_64
#define HOST_PC	     PERF_REG_X86_IP

/* Where each of perf's registers goes; segment registers and flags go nowhere. */
static const i32 from_perf[] = {
	[PERF_REG_X86_AX] = 0,	   [PERF_REG_X86_BX] = 3,   [PERF_REG_X86_CX] = 2,
	[PERF_REG_X86_DX] = 1,	   [PERF_REG_X86_SI] = 4,   [PERF_REG_X86_DI] = 5,
	[PERF_REG_X86_BP] = 6,	   [PERF_REG_X86_SP] = 7,   [PERF_REG_X86_IP] = -1,
	[PERF_REG_X86_FLAGS] = -1, [PERF_REG_X86_CS] = -1,  [PERF_REG_X86_SS] = -1,
	[PERF_REG_X86_DS] = -1,	   [PERF_REG_X86_ES] = -1,  [PERF_REG_X86_FS] = -1,
	[PERF_REG_X86_GS] = -1,	   [PERF_REG_X86_R8] = 8,   [PERF_REG_X86_R9] = 9,
	[PERF_REG_X86_R10] = 10,   [PERF_REG_X86_R11] = 11, [PERF_REG_X86_R12] = 12,
	[PERF_REG_X86_R13] = 13,   [PERF_REG_X86_R14] = 14, [PERF_REG_X86_R15] = 15,
};

static i32 dwarf_of(u32 perf_reg)
{
	return perf_reg < LULL_COUNT_OF(from_perf) ? from_perf[perf_reg] : -1;
}
#elif defined(__aarch64__)
#define HOST_MACHINE EM_AARCH64
#define HOST_PC	     PERF_REG_ARM64_PC

/* perf numbers x0-x30 and sp as DWARF does. */
static i32 dwarf_of(u32 perf_reg)
{
	return perf_reg <= PERF_REG_ARM64_SP ? (i32)perf_reg : -1;
}
#else
#error "lull unwinds x86_64 and aarch64"
#endif

const struct lull_machine *lull_machine_find(u16 machine)
{
	for (size_t i = 0; i < LULL_COUNT_OF(machines); i++)
		if (machines[i].machine == machine)
			return &machines[i];
	return NULL;
}

struct lull_regs lull_regs_from_wire(const struct lull_wire_regs *wire)
{
	struct lull_regs r = { .pc = wire->pc, .machine = HOST_MACHINE };
	const struct lull_machine *m = lull_machine_find(HOST_MACHINE);

	lull_regs_set(&r, m->sp, wire->sp);
	lull_regs_set(&r, m->fp, wire->fp);
	if (HOST_MACHINE == EM_AARCH64)
		lull_regs_set(&r, AARCH64_X30, wire->lr);
	return r;
}

struct lull_regs lull_regs_from_perf(u64 mask, const u64 *values)
{
	struct lull_regs r = { .machine = HOST_MACHINE };

	for (u32 reg = 0; reg < 64; reg++) {
		if (!(mask >> reg & 1))
			continue;
		if (reg == HOST_PC)
			r.pc = *values;
		else if (dwarf_of(reg) >= 0)
			lull_regs_set(&r, (u32)dwarf_of(reg), *values);
		values++;
	}
	return r;
}

u64 lull_regs_perf_mask(void)
{
	u64 mask = 1ULL << HOST_PC;

	for (u32 reg = 0; reg < 64; reg++)
		if (dwarf_of(reg) >= 0)
			mask |= 1ULL << reg;
	return mask;
}
