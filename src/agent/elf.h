/*
 * elf - look into a loaded file through what dl_iterate_phdr() gives: no allocation, no loader
 * state changed.
 *
 * dlsym() would do much of this, but a miss allocates and leaves a message that the guest's next
 * dlerror() would show, and libraries opened with RTLD_LOCAL are out of its sight.
 */
#ifndef LULL_AGENT_ELF_H
#define LULL_AGENT_ELF_H

#include <link.h>

#include "base/types.h"

/* The entry of the file's dynamic section with this tag, or NULL. */
const ElfW(Dyn) * lull_elf_dynamic(const struct dl_phdr_info *file, i64 tag);

/* What such an entry points to, or NULL. */
const void *lull_elf_pointer(const struct dl_phdr_info *file, i64 tag);

/* The symbol the file exports under this name, or NULL (also if the file has no GNU hash table). */
const ElfW(Sym) * lull_elf_symbol(const struct dl_phdr_info *file, const char *name);

/* True if the address lies in a loaded piece of the file. */
bool lull_elf_contains(const struct dl_phdr_info *file, u64 addr);

#endif
