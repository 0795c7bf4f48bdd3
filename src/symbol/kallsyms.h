/*
 * kallsyms - names of Linux kernel functions, from /proc/kallsyms.
 *
 * Without the right to see kernel addresses the file shows zeros; then there are no names, and
 * reading fails.
 *
 * Ownership: names are borrowed until lull_kallsyms_release().
 * Threads:   immutable after read.
 * Cost:      reading is linear in the file, some 200,000 lines; a find is a binary search.
 */
#ifndef LULL_SYMBOL_KALLSYMS_H
#define LULL_SYMBOL_KALLSYMS_H

#include "base/err.h"
#include "base/str.h"
#include "base/types.h"
#include "base/vec.h"

struct lull_kallsyms {
	struct lull_vec functions; /* private */
	struct lull_str names;	   /* private */
};

/* No names. */
void lull_kallsyms_init(struct lull_kallsyms *k);

/* Free everything. */
void lull_kallsyms_release(struct lull_kallsyms *k);

/*
 * Read the names. LULL_E_UNSUPPORTED if addresses are hidden; `path` is normally "/proc/kallsyms".
 */
int lull_kallsyms_read(struct lull_kallsyms *k, const char *path, struct lull_err *err);

/* The function at this address, as "name" or "name [module]", or NULL. */
const char *lull_kallsyms_find(const struct lull_kallsyms *k, u64 addr);

#endif
