/*
 * elf - one ELF file: its code segments, build id, function symbols and unwind tables.
 *
 * What it gives:  code segments, build id, symbols sorted by address, call frame information.
 * What it checks: only regular files are opened (never a device that happens to be
 *                 mapped); 64-bit little endian only; everything read from the file goes through
 *                 libelf, which checks sizes.
 * Ownership:      the file is mapped read-only until lull_elf_close(); names and bytes are borrowed
 *                 from it. No descriptor stays open. A file that is truncated while it is
 *                 mapped raises SIGBUS on access; package managers and linkers replace files
 *                 instead, which is harmless.
 * Threads:        one at a time.
 * Cost:           open reads headers only (tens of microseconds); symbols are read at the first
 *                 lull_elf_find_symbol(), unwind tables at the first lull_elf_cfi().
 */
#ifndef LULL_SYMBOL_ELF_H
#define LULL_SYMBOL_ELF_H

#include "base/err.h"
#include "base/types.h"
#include "base/vec.h"

struct Elf;
struct Dwarf_CFI_s;

/* SHA-1 ids are 20 bytes; anything longer than this is cut. */
#define LULL_BUILD_ID_MAX 32

/* What tells two files with the same path apart; n_bytes 0 = not known. */
struct lull_build_id {
	u8 at[LULL_BUILD_ID_MAX];
	u32 n_bytes;
};

/* One executable PT_LOAD. */
struct lull_elf_segment {
	u64 vaddr;
	u64 file_off;
	u64 size_bytes; /* in memory: a debug file has the segment, but not its bytes */
};

/* One function. */
struct lull_elf_symbol {
	u64 vaddr;
	u64 size_bytes;	  /* 0: unknown, reaches to the next symbol */
	const char *name; /* as in the file: mangled */
	u32 rank;	  /* private: which of two symbols at one address wins */
};

struct lull_elf {
	char *path;  /* where it was opened; "[vdso]" for the image of the vdso */
	u16 machine; /* EM_X86_64, EM_AARCH64, ... */
	struct lull_build_id build_id;
	struct lull_vec segments; /* of struct lull_elf_segment */
	struct lull_vec symbols;  /* private: of struct lull_elf_symbol, once has_symbols */
	bool has_symbols;
	bool has_symtab;	 /* private: symbols come from .symtab, so local functions are in */
	struct Elf *elf;	 /* the libelf handle, for libdw */
	struct Dwarf_CFI_s *cfi; /* private */
	bool has_cfi;		 /* private: cfi was looked for */
	void *image;		 /* private: memory of `elf` if it is not a file */
};

/* Which file to open. */
struct lull_elf_name {
	const char *path;
	const struct lull_build_id *build_id; /* NULL or empty: take what is there */
	u32 pid; /* look below the root of this process first; 0 = do not */
};

/*
 * Open an ELF file. LULL_E_NOT_FOUND if there is no such regular file, or it has another build id
 * than asked for, or it was deleted and no build id says that the file now at its path is the same;
 * LULL_E_FORMAT if it is not an ELF file we can use. The caller closes *elf.
 */
int lull_elf_open(struct lull_elf **elf, const struct lull_elf_name *name, struct lull_err *err);

/*
 * Open the vdso of this process, which is also the vdso of every other 64-bit process of this
 * kernel. LULL_E_NOT_FOUND if there is none.
 */
int lull_elf_open_vdso(struct lull_elf **elf, struct lull_err *err);

/* Close and free. Accepts NULL. */
void lull_elf_close(struct lull_elf *elf);

/* The function that contains the address, or NULL. Borrowed. */
const struct lull_elf_symbol *lull_elf_find_symbol(struct lull_elf *elf, u64 vaddr);

/* True if the file has a .symtab, not just the dynamic symbols. */
bool lull_elf_has_symtab(struct lull_elf *elf);

/* The call frame information of .eh_frame, or NULL if there is none. Borrowed. */
struct Dwarf_CFI_s *lull_elf_cfi(struct lull_elf *elf);

/* The code segment that holds this offset of the file, or NULL. */
const struct lull_elf_segment *lull_elf_find_segment(const struct lull_elf *elf, u64 file_off);

/*
 * Copy code bytes at an address of the file's headers; false if they are not all in a code segment.
 */
bool lull_elf_read(const struct lull_elf *elf, u64 vaddr, void *to, size_t n_bytes);

/* True if both are known and the same. */
bool lull_build_id_equal(const struct lull_build_id *a, const struct lull_build_id *b);

/* The id that a text in hex stands for; n_bytes is 0 if it is none. */
struct lull_build_id lull_build_id_parse(const char *hex);

/*
 * Write the id in lower-case hex with a NUL; `to` has room for 2 * LULL_BUILD_ID_MAX + 1. Returns
 * `to`.
 */
char *lull_build_id_format(const struct lull_build_id *id, char *to);

#endif
