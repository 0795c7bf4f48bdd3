/*
 * space - the address space of one process, as it changes.
 *
 * What it gives:  which file an address belongs to now, and the address inside that file's headers.
 * Input:          records in the order of time: mappings as the kernel reports them (MMAP2: start,
 *                 length, page offset) or as the agent does (start, end, bias), fork (copy), exec
 *                 (clear). A new mapping replaces whatever it overlaps.
 * Ownership:      the space owns its list; files belong to the struct lull_files it was made with.
 * Threads:        one at a time.
 * Cost:           find is a binary search; a mapping is O(mappings).
 */
#ifndef LULL_SYMBOL_SPACE_H
#define LULL_SYMBOL_SPACE_H

#include "base/err.h"
#include "base/types.h"
#include "base/vec.h"
#include "symbol/files.h"

/* One mapped piece: an address minus `bias` is the address in the file's own headers. */
struct lull_mapping {
	u64 start;
	u64 end;
	u64 bias;
	u32 file_ix;
};

struct lull_space {
	struct lull_files *files;
	u32 pid;
	struct lull_vec mappings; /* of struct lull_mapping, sorted, without overlaps */
};

/* A record of a mapping. */
struct lull_mmap {
	u64 start;
	u64 end;
	u64 file_off; /* of `start`; used unless has_bias */
	u64 bias;     /* of the whole module, from the agent */
	bool has_bias;
	const char *path;
	const struct lull_build_id *build_id; /* NULL if not known */
};

/* What an address is; the values are those of frame.kind in the schema. */
enum lull_pc_kind {
	LULL_PC_NATIVE = 1,
	LULL_PC_KERNEL = 3,
	LULL_PC_JIT = 4, /* in memory without a file */
};

/*
 * One frame of a stack. `addr` is the raw program counter. `vaddr` is what to look up: the address
 * in the file's headers, and for a return address one less, so that it lies inside the call and not
 * after it. For JIT and kernel frames it is the address itself, with the same one less.
 */
struct lull_pc {
	u64 addr;
	u64 vaddr;
	u32 file_ix;
	u8 kind; /* enum lull_pc_kind */
};

/*
 * An empty space. `files` must outlive it; `pid` says through which process files are opened (0:
 * none).
 */
void lull_space_init(struct lull_space *s, struct lull_files *files, u32 pid);

/* Free the list. */
void lull_space_release(struct lull_space *s);

/* The process executed another program: remove all mappings. */
void lull_space_clear(struct lull_space *s);

/* Make `to`, which is empty, a copy of `from`, as fork does. `to` keeps its own pid. */
void lull_space_copy(struct lull_space *to, const struct lull_space *from);

/* Add a mapping; what it overlaps is cut. A record with end <= start is ignored. */
void lull_space_map(struct lull_space *s, const struct lull_mmap *m);

/* Remove mappings in [start, end). */
void lull_space_unmap(struct lull_space *s, u64 start, u64 end);

/* Add the executable mappings of /proc/PID/maps, or of a copy of it at `path`. */
int lull_space_read_maps(struct lull_space *s, const char *path, struct lull_err *err);

/* The mapping that holds the address, or NULL. Borrowed until the next change. */
const struct lull_mapping *lull_space_find(const struct lull_space *s, u64 addr);

/* What this program counter is; is_return says that it is a return address. */
struct lull_pc lull_space_pc(const struct lull_space *s, u64 addr, bool is_return);

#endif
