/*
 * slots_calls - which entries of a file's offset table its code calls through.
 *
 * What it gives: an entry of the kind GLOB_DAT holds the address of a function. Code loads it to
 *                pass or compare the address, or calls through it; the relocation does not tell
 *                which. x86_64 has one entry for both where a file does both. So this looks at the
 *                code.
 * Limits:        the code is not followed, only read from one end to the other. A call through a
 *                register is seen if the load comes first and the register is not written in
 *                between; on x86_64 if it is one that calls keep, and the call is at most 1 KiB on.
 *                A call that takes its address from the stack is not seen.
 * Cost:          1 to 3 ns for each instruction until all entries are found to be called; tables
 *                of stubs lie in front of the code.
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
