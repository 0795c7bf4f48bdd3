/*
 * kernel_match - which launches are to be measured, by name, and which never.
 *
 * Names:   a symbol as the compiler made it, such as _ZN2at6native4copyEPfi. It matches a filter
 *          by itself, as at::native::copy and as copy; templates and parameters are no part of it.
 * Threads: any, after lull_kernel_match_init().
 * Cost:    a hash of the symbol, and a look into a cache; regular expressions run once a symbol.
 */
#ifndef LULL_AGENT_COUNTERS_KERNEL_MATCH_H
#define LULL_AGENT_COUNTERS_KERNEL_MATCH_H

#include "wire/wire.h"

/* Get the filters ready; once, before the others. */
void lull_kernel_match_init(const struct lull_kwish *wish);

/* The first filter that takes the kernel, or -1. */
int lull_kernel_match(const char *symbol);

/* The kernel may wait for one of another device: run again by itself, it would never end. */
bool lull_kernel_is_unsafe(const char *symbol);

/* Whether a range of this name and domain is the one that kernels have to be in. */
bool lull_kernel_match_range(const char *name, size_t len, const char *domain, size_t domain_len);

/*
 * Write the name of a mangled function without templates and parameters, cut to the room there is;
 * returns where its last part begins.
 */
const char *lull_kernel_plain_name(const char *symbol, char *to, size_t room);

#endif
