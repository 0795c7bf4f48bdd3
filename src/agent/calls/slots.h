/*
 * slots - the entries of a loaded file's offset tables that hold addresses of functions.
 *
 * Each file has a list of relocations by which the loader filled in the addresses of functions that
 * lie elsewhere; what is put into such an entry is called instead.
 *
 * Only calls may be diverted: a program that compares addresses of functions must find them as they
 * are. JUMP_SLOTs are for calls alone. GLOB_DATs are for addresses, and for calls in files that
 * were built without JUMP_SLOTs (-fno-plt, Rust) or, by GNU's linker for x86_64, where a file both
 * calls a function and takes its address: then there is one entry for both. Such a one is replaced
 * if the file's code calls through it (slots_calls.h), or if the file has no JUMP_SLOTs at all. So
 * where a file calls a function through the entry from which it takes the address, the address is
 * that of the replacement: it can be called like the function, but does not compare equal to what
 * other files have. What cannot be told: which of the loads are for a call.
 *
 * Two kinds of entries are always left alone: those that hold an address of the file itself
 * (libcrypto asks whether its allocator is still its own, and calls itself for ever if it is not),
 * and addresses in data.
 *
 * Call it under the loader's lock, which dl_iterate_phdr() holds. Threads that call through an
 * entry meanwhile find the old address or the new one. A file that another thread is loading is in
 * the list already: it is left alone until its entries are filled in, and where its tables are to
 * be read-only until they are.
 */
#ifndef LULL_AGENT_CALLS_SLOTS_H
#define LULL_AGENT_CALLS_SLOTS_H

#include <link.h>

#include "base/types.h"

/* What belongs into the entry of this name instead of what is there; 0: leave it. */
typedef u64 lull_slot_choice(const struct dl_phdr_info *file, const char *name, u64 present);

enum lull_slots {
	LULL_SLOTS_DONE,
	LULL_SLOTS_EARLY,   /* not all: the file is being loaded; ask again */
	LULL_SLOTS_REFUSED, /* not all: the tables cannot be written */
};

/* Ask for each entry that calls go through. */
enum lull_slots lull_slots_replace(const struct dl_phdr_info *file, lull_slot_choice *choice);

/*
 * Likewise, for functions whose addresses nobody compares: all GLOB_DATs, without a look at the
 * code. *n_replaced grows by the entries that are as was chosen, unless it is NULL.
 */
enum lull_slots lull_slots_replace_all(const struct dl_phdr_info *file, lull_slot_choice *choice,
				       u32 *n_replaced);

#endif
