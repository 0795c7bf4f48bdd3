/*
 * debugfile - the separate file with the debug information of a stripped one.
 *
 * Where it looks, in this order; D is every directory of the list, then /usr/lib/debug:
 *	D/.build-id/xx/yyyy.debug		by build id
 *	beside the file, in .debug/ beside it, D/directory-of-the-file/	by the name in .gnu_debuglink
 *	debuginfod				only if DEBUGINFOD_URLS was set and libdebuginfod can be loaded
 *
 * What it checks: the build id if both files have one, else the checksum of the .gnu_debuglink. A file that
 *                 does not match is not used.
 * Ownership:      results are the caller's to close; the directory list is borrowed.
 * Threads:        one at a time.
 * Cost:           some stat() calls; debuginfod may take as long as the network does.
 */
#ifndef LULL_SYMBOL_DEBUGFILE_H
#define LULL_SYMBOL_DEBUGFILE_H

#include "symbol/elf.h"

/* Where to look. */
struct lull_debug_paths {
	const char *dirs;	/* directories separated by colons, NULL for none */
	bool can_use_debuginfod; /* the user set DEBUGINFOD_URLS; whoever reads the environment says so */
};

/* The debug file of `elf`, or NULL if there is none that matches. Close with lull_elf_close(). */
struct lull_elf *lull_debugfile_open(const struct lull_elf *elf, const struct lull_debug_paths *paths);

#endif
