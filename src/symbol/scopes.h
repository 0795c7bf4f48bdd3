/*
 * scopes - which functions, real and inlined, cover an address, from the debug information of one file.
 *
 * Debug information is a tree per compilation unit, with the functions somewhere below. This module keeps a
 * table of the address ranges of all units, and of the functions of one unit at a time: the one last asked
 * for. Addresses in rising order therefore read every unit once, and memory stays that of one unit.
 *
 * Ownership: names are borrowed from the debug information, until lull_scopes_close().
 * Threads:   one at a time.
 * Cost:      open reads the head of every unit; the first address in a unit reads its functions and lines.
 */
#ifndef LULL_SYMBOL_SCOPES_H
#define LULL_SYMBOL_SCOPES_H

#include "base/types.h"
#include "symbol/elf.h"

struct lull_scopes;

/* One function at an address. */
struct lull_scope {
	const char *function; /* mangled if the information has the mangled name; NULL if it has none */
	const char *file;     /* NULL if not known */
	u32 line;	      /* 0 if not known */
	bool is_inlined;      /* its code lies inside the next scope's */
};

/* The debug information in this file, which must outlive the result; NULL if it has none. */
struct lull_scopes *lull_scopes_open(struct lull_elf *elf);

/* Free everything. Accepts NULL. */
void lull_scopes_close(struct lull_scopes *s);

/*
 * The functions that cover the address, innermost first: their names, the line of the address in the first,
 * and the line of the inlined call in each following one. Returns how many, at most `max`; 0 if the address is
 * in no unit. Code that has lines but no function (assembly) gives one scope without a name.
 */
size_t lull_scopes_find(struct lull_scopes *s, u64 vaddr, struct lull_scope *out, size_t max);

#endif
