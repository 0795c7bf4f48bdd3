/*
 * files - every mapped file of the recording, once.
 *
 * What it gives:  a small number for each (file, build id), and its opened ELF if it could be opened. The
 *                 number is what mappings, program counters and cached unwind rules refer to.
 * Identity:       path, device, inode and build id, so that one path in two containers is two files, and one
 *                 that was replaced on disk during the recording too.
 * Ownership:      files own their ELF handles; all of it lives until lull_files_release().
 * Threads:        one at a time.
 * Cost:           a known file is one stat() and one hash lookup; a new one is opened at once, since its
 *                 process, and with it the way into its container, may be gone a moment later.
 */
#ifndef LULL_SYMBOL_FILES_H
#define LULL_SYMBOL_FILES_H

#include "base/map.h"
#include "base/types.h"
#include "base/vec.h"
#include "symbol/elf.h"

/* File number of what is not a file: anonymous memory, unmapped addresses. */
#define LULL_FILE_NONE 0

struct lull_file {
	char *path;		       /* as the process mapped it */
	struct lull_build_id build_id; /* from the record, else from the file */
	struct lull_elf *elf;	       /* NULL if it could not be opened or is something else */
};

struct lull_files {
	struct lull_vec at;	/* of struct lull_file; the first stands for LULL_FILE_NONE */
	struct lull_map by_key; /* hash of the identity to index */
};

/* No files yet. */
void lull_files_init(struct lull_files *f);

/* Close and free everything. */
void lull_files_release(struct lull_files *f);

/* The index of this file, opened if it was not known. LULL_FILE_NONE for anonymous memory. Never fails. */
u32 lull_files_add(struct lull_files *f, const struct lull_elf_name *name);

/* The file with this index. Borrowed until the next lull_files_add(). */
const struct lull_file *lull_files_get(const struct lull_files *f, u32 file_ix);

#endif
