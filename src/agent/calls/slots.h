/*
 * slots - the entries of a loaded file's offset tables that hold addresses of functions.
 *
 * Each file has a list of relocations by which the loader filled in the addresses of functions of
 * other files. Storing another address in such an entry redirects the calls through it.
 *
 * Only calls may be redirected: a program that compares addresses of functions must still find them
 * equal. JUMP_SLOT entries are used for calls only. GLOB_DAT entries are used for addresses, and
 * for calls in files built without JUMP_SLOTs (-fno-plt, Rust). GNU's linker for x86_64 also uses
 * one GLOB_DAT entry for both where a file calls a function and takes its address. A GLOB_DAT entry
 * is replaced if the file's code calls through it (slots_calls.h), or if the file has no JUMP_SLOTs
 * at all. So if a file calls a function through the entry from which it takes the address, it gets
 * the address of the replacement: this can be called like the function, but is not equal to the
 * address that other files have. It is not possible to find out which of the loads are for a call.
 *
 * Two kinds of entries are never changed: those that hold an address in the file itself (libcrypto
 * checks whether its allocator is still its own, and recurses endlessly if it is not), and
 * addresses of data.
 *
 * Call it under the loader's lock, which dl_iterate_phdr() holds. Threads that call through an
 * entry in the meantime find the old or the new address. A file that another thread is loading is
 * already in the list: it is left alone until its entries are filled in, and until its tables are
 * read-only if they will be.
 */
#ifndef LULL_AGENT_CALLS_SLOTS_H
#define LULL_AGENT_CALLS_SLOTS_H

#include <link.h>

#include "base/types.h"

/* The address to store in the entry of this name; 0: leave it unchanged. */
typedef u64 lull_slot_choice(const struct dl_phdr_info *file, const char *name, u64 present);

/* Leave it unchanged, too: once it is bound the answer may be another one. */
#define LULL_SLOT_LATER (~(u64)0)

/*
 * Files that a choice was made for, so that a program that loads a library again and again does not
 * pay for all of them each time. Known are those without entries for later. One that was unloaded,
 * and loaded again to the same place, is found out by an entry that is not as it was left.
 */
#define LULL_SLOTS_FILES 1024u
struct lull_slots_known {
	struct lull_slots_file {
		u64 key;	 /* of where its tables are; 0: no file */
		const u64 *slot; /* one that was replaced; NULL: none was */
		u64 chosen;	 /* what it holds since */
		u32 n_replaced;
	} files[LULL_SLOTS_FILES];
};

enum lull_slots {
	LULL_SLOTS_DONE,
	LULL_SLOTS_EARLY,   /* not all: the file is being loaded; ask again */
	LULL_SLOTS_REFUSED, /* not all: the tables cannot be written */
};

/* Ask for each entry that calls go through. For files that are `known` (NULL: none) nobody asks. */
enum lull_slots lull_slots_replace(const struct dl_phdr_info *file, lull_slot_choice *choice,
				   struct lull_slots_known *known);

/*
 * Likewise, for functions whose addresses nobody compares: all GLOB_DATs, without a look at the
 * code. *n_replaced grows by the entries that are as was chosen, unless it is NULL.
 */
enum lull_slots lull_slots_replace_all(const struct dl_phdr_info *file, lull_slot_choice *choice,
				       struct lull_slots_known *known, u32 *n_replaced);

/* The choice is another one from now on. */
void lull_slots_forget(struct lull_slots_known *known);

#endif
