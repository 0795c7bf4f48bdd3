/*
 * loaded - inspect a loaded file through dl_iterate_phdr(): no allocation, no change of the
 * loader's state.
 *
 * dlsym() would do much of this. But a failed lookup allocates, and leaves a message that the
 * program's next dlerror() would return; and it does not see libraries opened with RTLD_LOCAL.
 */
#ifndef LULL_AGENT_CORE_LOADED_H
#define LULL_AGENT_CORE_LOADED_H

#include <link.h>

#include "base/types.h"

/* The entry of the file's dynamic section with this tag, or NULL. */
const ElfW(Dyn) * lull_loaded_dynamic(const struct dl_phdr_info *file, i64 tag);

/* What such an entry points to, or NULL. */
const void *lull_loaded_pointer(const struct dl_phdr_info *file, i64 tag);

/* The names that a file exports. */
struct lull_loaded_names {
	const struct lull_gnu_hash *hash;
	const ElfW(Sym) * symbols;
	const char *strings;
	const ElfW(Half) * versions; /* of each symbol; NULL: there are none */
	u64 bias;		     /* what is added to the value of a symbol */
};

/* Find them; false if the file has no GNU hash table. */
bool lull_loaded_names(const struct dl_phdr_info *file, struct lull_loaded_names *names);

/* The symbol of this name, of several versions the present one; NULL if there is none. */
const ElfW(Sym) * lull_loaded_find(const struct lull_loaded_names *names, const char *name);

/* Both at once, for one name. */
const ElfW(Sym) * lull_loaded_symbol(const struct dl_phdr_info *file, const char *name);

/* The name of a file without its folder; "" for the main program, whose name is not told. */
const char *lull_loaded_file_name(const char *path);

/* True if the address lies in a loaded piece of the file. */
bool lull_loaded_contains(const struct dl_phdr_info *file, u64 addr);

/*
 * dl_iterate_phdr(), where it comes back. False if it was left out: in the child of a fork the
 * loader's lock may be held by a thread that is not there any more.
 */
bool lull_loaded_walk(int (*visit)(struct dl_phdr_info *file, size_t size, void *arg), void *arg);

/* A fork: in the parent, before it; in the child, before the first walk. */
void lull_loaded_before_fork(void);
void lull_loaded_forked(void);

/* In the child: the parent had one thread when it forked. */
bool lull_loaded_was_alone(void);

#endif
