/*
 * python_int - what the parts of the Python sampler share.
 *
 *	python.c          threads and their frames
 *	python_find.c     where the interpreter is, and which one
 *	python_memory.c   reading the target, layouts by version
 *	python_code.c     code objects, copied and recognised
 *	python_lines.c    line tables
 */
#ifndef LULL_RECORD_PYTHON_PYTHON_INT_H
#define LULL_RECORD_PYTHON_PYTHON_INT_H

#include <string.h>
#include <sys/uio.h>

#include "base/map.h"
#include "base/vec.h"
#include "record/python/python.h"

/* No such field in this version. */
#define LULL_PYTHON_NONE -1

/* Larger than what we read of a thread state, frame, code object or string (168 at most). */
#define LULL_PYTHON_HEAD_BYTES 256

/* Offsets of one version, and how much of each struct must be read to have all its fields. */
struct lull_python_layout {
	u32 minor;
	size_t tstate_bytes, frame_bytes, code_bytes, str_head_bytes;
#define FIELD(name, v9, v10, v11, v12, v13, v14, meaning) int name;
#include "wire/python_layouts.def"
#undef FIELD
};

/*
 * Memory of the target. `read` copies `n` pieces, stopping at the first that is not there; returns
 * how many were copied whole, or -1 with errno if the process is gone or closed to us. A test puts
 * an image here.
 */
struct lull_python_memory {
	int (*read)(void *ctx, const struct iovec *to, const struct iovec *from, size_t n);
	void *ctx;
	int failure; /* errno of the last -1 */
};

/* What python_find.c found out. */
struct lull_python_target {
	u64 runtime;   /* address of _PyRuntime */
	u64 code_type; /* address of PyCode_Type, 0 if unknown */
	u32 version;   /* as PY_VERSION_HEX: 0x030b02f0 */
	char version_text[24];
};

/* One code object, copied. */
struct lull_python_code {
	u64 addr, linetable_addr; /* with first_line: is it still the one we copied? */
	u32 id, first_line;
	char *function, *file;
	u8 *lines; /* its line table */
	size_t n_lines_bytes;
	u64 checked_in; /* number of the sample that last looked */
	u64 last_off;	/* memo of the last lookup: a thread mostly stays on a line */
	u32 last_line;
};

struct lull_python_codes {
	struct lull_vec at; /* struct lull_python_code */
	struct lull_map by_addr;
	u32 next_id;
};

/* A u64 at any address of ours. */
static inline u64 lull_python_u64(const u8 *at)
{
	u64 v;

	memcpy(&v, at, sizeof(v));
	return v;
}

/* One piece of memory, all of it or false. */
bool lull_python_read(struct lull_python_memory *m, u64 addr, void *to, size_t n_bytes);

/* `n` pieces; is_read[i] says which came. One system call unless some are missing. */
void lull_python_read_many(struct lull_python_memory *m, const struct iovec *to,
			   const struct iovec *from, size_t n, bool *is_read);

/*
 * The offsets for this version, reading _Py_DebugOffsets from the target for 3.13 and later.
 * LULL_E_UNSUPPORTED for a version or build that is not known.
 */
int lull_python_layout_init(struct lull_python_layout *layout, struct lull_python_memory *m,
			    const struct lull_python_target *target, struct lull_err *err);

/* Find the interpreter of a process by its mapped files; see lull_python_attach(). */
int lull_python_find(struct lull_python_target *target, pid_t pid, struct lull_python_memory *m,
		     u64 runtime_hint, struct lull_err *err);

/* An empty cache. */
void lull_python_codes_init(struct lull_python_codes *codes);

/* Free all copies. */
void lull_python_codes_release(struct lull_python_codes *codes);

/* What resolving code objects needs to know. */
struct lull_python_source {
	struct lull_python_memory *memory;
	const struct lull_python_layout *layout;
	u64 code_type;
	u64 sample_number; /* a code object is looked at once in each sample */
};

/*
 * Make sure that each of the `n` code objects is in the cache and still the same; ix[i] is its
 * index there, or -1 if there is no code object at that address. Costs one system call when all are
 * known.
 */
void lull_python_codes_find(struct lull_python_codes *codes,
			    const struct lull_python_source *source, const u64 *addrs, size_t n,
			    i32 *ix);

/* The line of a byte offset into the code, 0 if unknown. */
u32 lull_python_line(u32 minor, const struct lull_python_code *code, i64 off);

/* A sampler over memory that somebody else provides; for tests. */
struct lull_python *lull_python_new(const struct lull_python_target *target,
				    const struct lull_python_memory *memory,
				    const struct lull_python_layout *layout);

#endif
