/*
 * slots - the entries of a loaded file's offset tables that hold addresses of functions.
 *
 * Each file has a list of relocations by which the loader filled in the addresses of functions that
 * lie elsewhere; what is put into such an entry is called instead.
 *
 * Only calls may be diverted: a program that compares addresses of functions must find them as they
 * are (libcrypto asks whether its allocator is still its own). JUMP_SLOTs are for calls alone.
 * GLOB_DATs are for addresses, unless a file was built without JUMP_SLOTs (-fno-plt); then they are
 * for both, and are taken in all such files but the function's own.
 *
 * Call it under the loader's lock, which dl_iterate_phdr() holds. Threads that call through an
 * entry meanwhile find the old address or the new one. A file that another thread is loading is in
 * the list already: it is left alone until its entries are filled in, and where its tables are to
 * be read-only until they are.
 */
#ifndef LULL_AGENT_SLOTS_H
#define LULL_AGENT_SLOTS_H

#include <link.h>

#include "base/types.h"

/* What belongs into the entry of this name instead of what is there; 0: leave it. */
typedef u64 lull_slot_choice(const struct dl_phdr_info *file, const char *name, u64 present);

enum lull_slots {
	LULL_SLOTS_DONE,
	LULL_SLOTS_EARLY,   /* not all: the file is being loaded; ask again */
	LULL_SLOTS_REFUSED, /* not all: the tables cannot be written */
};

/* Ask for each entry; *n_replaced grows by those that are as was chosen, unless it is NULL. */
enum lull_slots lull_slots_replace(const struct dl_phdr_info *file, lull_slot_choice *choice,
				   u32 *n_replaced);

/*
 * Likewise, for functions whose addresses nobody compares: GLOB_DATs of all files. On x86_64 a call
 * goes through one where the file also asks whether the function is there at all (weak references,
 * as the C++ library makes them to those of threads).
 */
enum lull_slots lull_slots_replace_all(const struct dl_phdr_info *file, lull_slot_choice *choice);

#endif
