/*
 * slots_calls - which entries of a file's offset table its code calls through.
 *
 * What it gives: an entry of the kind GLOB_DAT holds the address of a function. Code loads it to
 *                pass or compare the address, or calls through it; the relocation does not say
 *                which. On x86_64 a file that does both has one entry for both. So this function
 *                scans the code.
 * Limits:        the code is scanned linearly, without following branches. A call through a
 *                register is found if the load comes first and the register is not written in
 *                between; on x86_64 only if the register is callee-saved and the call follows
 *                within 1 KiB. A call that takes its address from the stack is not found.
 * Cost:          1 to 3 ns per instruction until all entries are known to be called; tables of
 *                stubs come before the code.
 */
#ifndef LULL_AGENT_CALLS_SLOTS_CALLS_H
#define LULL_AGENT_CALLS_SLOTS_CALLS_H

#include <link.h>

#include "base/types.h"

/* An entry, and whether the file calls through it. */
struct lull_slot_use {
	u64 *slot;
	bool is_called;
};

/* Set is_called of those that the file's code calls through; the others are left as they are. */
void lull_slots_find_calls(const struct dl_phdr_info *file, struct lull_slot_use *uses, u32 n);

#endif
