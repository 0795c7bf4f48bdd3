#include "agent/core/loaded.h"

#include <string.h>

#include "agent/core/agent.h"

/* glibc 2.32 and later: false once the process has had a second thread. */
extern char __libc_single_threaded __attribute__((weak));

/*
 * fork() makes the loader's locks anew in the child, but for the one that dl_iterate_phdr() takes.
 * If another thread of the parent had that, whoever walks in the child waits for ever. Once the
 * child has loaded a file, the lock is known to be free: loading takes it, too.
 */
static LULL_EARLY struct {
	bool was_alone;		     /* the parent had one thread */
	const struct link_map *last; /* the last file when the child began; NULL: no doubt */
} forked;

/*
 * The GNU hash table (DT_GNU_HASH), as 32-bit words:
 *
 *	n_buckets, first, n_bloom, bloom_shift
 *	bloom[n_bloom]		64-bit words: a name is absent unless both its bits are set
 *	bucket[n_buckets]	index of the first symbol of a chain, 0 = empty
 *	chain[]			from symbol `first` on: its hash, lowest bit set on the last one
 */
struct lull_gnu_hash {
	u32 n_buckets;
	u32 first;
	u32 n_bloom;
	u32 bloom_shift;
};

const ElfW(Dyn) * lull_loaded_dynamic(const struct dl_phdr_info *file, i64 tag)
{
	for (int i = 0; i < file->dlpi_phnum; i++) {
		const ElfW(Dyn) *d = (const void *)(file->dlpi_addr + file->dlpi_phdr[i].p_vaddr);

		if (file->dlpi_phdr[i].p_type != PT_DYNAMIC)
			continue;
		for (; d->d_tag != DT_NULL; d++)
			if (d->d_tag == tag)
				return d;
	}
	return NULL;
}

/* A pointer of the dynamic section; the loader has relocated most files' in place, but not all. */
const void *lull_loaded_pointer(const struct dl_phdr_info *file, i64 tag)
{
	const ElfW(Dyn) *d = lull_loaded_dynamic(file, tag);

	if (!d)
		return NULL;
	return (const void *)(d->d_un.d_ptr >= file->dlpi_addr ? d->d_un.d_ptr
							       : file->dlpi_addr + d->d_un.d_ptr);
}

const char *lull_loaded_file_name(const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;

	return slash ? slash + 1 : path ? path : "";
}

static u32 hash_of(const char *name)
{
	u32 h = 5381;

	for (const u8 *p = (const u8 *)name; *p; p++)
		h = h * 33 + *p;
	return h;
}

bool lull_loaded_names(const struct dl_phdr_info *file, struct lull_loaded_names *names)
{
	names->hash = lull_loaded_pointer(file, DT_GNU_HASH);
	names->symbols = lull_loaded_pointer(file, DT_SYMTAB);
	names->strings = lull_loaded_pointer(file, DT_STRTAB);
	names->versions = lull_loaded_pointer(file, DT_VERSYM);
	names->bias = file->dlpi_addr;
	return names->hash && names->symbols && names->strings && names->hash->n_buckets &&
	       names->hash->n_bloom;
}

/* Of several versions the others are there for programs that were linked long ago. */
static bool is_present_version(const struct lull_loaded_names *names, u32 ix)
{
	return !names->versions || !(names->versions[ix] & 0x8000);
}

const ElfW(Sym) * lull_loaded_find(const struct lull_loaded_names *names, const char *name)
{
	const struct lull_gnu_hash *table = names->hash;
	const u64 *bloom = (const u64 *)(table + 1);
	const u32 *buckets = (const u32 *)(bloom + table->n_bloom);
	const u32 *chain = buckets + table->n_buckets;
	const ElfW(Sym) *symbols = names->symbols;
	u32 h = hash_of(name);
	u64 word = bloom[h / 64 % table->n_bloom];

	if (!(word >> h % 64 & word >> (h >> table->bloom_shift) % 64 & 1))
		return NULL;
	for (u32 i = buckets[h % table->n_buckets]; i >= table->first && i; i++) {
		u32 found = chain[i - table->first];

		if ((found | 1) == (h | 1) && is_present_version(names, i) &&
		    strcmp(names->strings + symbols[i].st_name, name) == 0)
			return symbols[i].st_shndx != SHN_UNDEF ? &symbols[i] : NULL;
		if (found & 1)
			break;
	}
	return NULL;
}

const ElfW(Sym) * lull_loaded_symbol(const struct dl_phdr_info *file, const char *name)
{
	struct lull_loaded_names names;

	return lull_loaded_names(file, &names) ? lull_loaded_find(&names, name) : NULL;
}

bool lull_loaded_contains(const struct dl_phdr_info *file, u64 addr)
{
	for (int i = 0; i < file->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &file->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && addr - (file->dlpi_addr + p->p_vaddr) < p->p_memsz)
			return true;
	}
	return false;
}

bool lull_loaded_walk(int (*visit)(struct dl_phdr_info *file, size_t size, void *arg), void *arg)
{
	if (forked.last && !forked.last->l_next)
		return false;
	forked.last = NULL;
	dl_iterate_phdr(visit, arg);
	return true;
}

void lull_loaded_before_fork(void)
{
	bool is_alone = &__libc_single_threaded && __libc_single_threaded;

	/* After each fork the first write copies a page. */
	if (forked.was_alone != is_alone)
		forked.was_alone = is_alone;
}

bool lull_loaded_was_alone(void)
{
	return forked.was_alone;
}

void lull_loaded_forked(void)
{
	const struct link_map *at = _r_debug.r_map;

	if (forked.was_alone)
		return;
	while (at && at->l_next)
		at = at->l_next;
	forked.last = at;
}
