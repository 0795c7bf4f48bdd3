/*
 * resolve - from an address in a file to function, source file, line and inlined functions.
 *
 * What it uses:  debug information in the file or in its separate debug file, else .symtab of either, else the
 *                dynamic symbols. Names come out demangled.
 * How to call:   sort addresses by file, then by value; lull_resolver_use() once per file. Only one file's debug
 *                information is open at a time, and of it one compilation unit's functions.
 * Ownership:     the ELF files are borrowed; names in results live until the next find, use or release.
 * Threads:       one at a time.
 * Cost:          the first address of a file opens its debug information (milliseconds to, for the largest
 *                libraries, seconds); an address in a known unit costs microseconds, mostly demangling.
 */
#ifndef LULL_SYMBOL_RESOLVE_H
#define LULL_SYMBOL_RESOLVE_H

#include "base/types.h"
#include "symbol/debugfile.h"
#include "symbol/elf.h"
#include "symbol/scopes.h"

/* Inlined functions deeper than this are left out at the outer end. */
#define LULL_MAX_INLINED 16

/* One function at an address; the strings are borrowed and may be NULL. */
struct lull_symbol {
	const char *function;
	const char *file;
	u32 line;	 /* 0 if not known */
	bool is_inlined; /* its code is part of the next symbol's function */
};

struct lull_resolver {
	struct lull_debug_paths paths;
	struct lull_elf *elf;	    /* current file, borrowed */
	struct lull_elf *debug;	    /* its separate debug file, or NULL */
	struct lull_scopes *scopes; /* its debug information, or NULL */
	char *names[LULL_MAX_INLINED]; /* private: demangled names of the last result */
};

/* A resolver without a current file. `paths` is copied, its directory list borrowed. */
void lull_resolver_init(struct lull_resolver *r, const struct lull_debug_paths *paths);

/* Free everything. */
void lull_resolver_release(struct lull_resolver *r);

/* Make this the current file (NULL: none) and drop what was open of the one before. */
void lull_resolver_use(struct lull_resolver *r, struct lull_elf *elf);

/*
 * The functions at an address of the current file, innermost first; `out` has room for LULL_MAX_INLINED.
 * Returns how many, 0 if nothing is known. All but the last are inlined.
 */
size_t lull_resolver_find(struct lull_resolver *r, u64 vaddr, struct lull_symbol *out);

#endif
