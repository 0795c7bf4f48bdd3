/*
 * stacks - modules, frames and stacks as rows of the report, each once.
 *
 * While recording:  lull_stacks_add() turns a list of program counters into the id of a stack node;
 *                   equal stacks give equal ids, and stacks share the nodes of their common
 *                   callers. Frames have addresses only.
 * At the end:       lull_stacks_resolve() gives the frames names, files and lines. Functions
 *                   inlined at an address are a list in its frame, with file and line of the
 *                   innermost and of each call: nodes of their own cannot be added, since a node's
 *                   parent must have a lower id.
 * Ownership:        files and JIT names are borrowed; rows belong to the writer.
 * Threads:          one at a time.
 * Cost:             add is two hash lookups a frame; resolve is that of resolve.h.
 */
#ifndef LULL_SYMBOL_STACKS_H
#define LULL_SYMBOL_STACKS_H

#include "base/map.h"
#include "base/types.h"
#include "base/vec.h"
#include "symbol/debugfile.h"
#include "symbol/files.h"
#include "symbol/jit.h"
#include "symbol/kallsyms.h"
#include "symbol/space.h"
#include "trace/writer.h"

/* One frame of a Python stack. */
struct lull_py_frame {
	const char *function;
	const char *file;
	u32 line;
};

struct lull_stacks {
	const struct lull_files *files;
	u32 kernel_module;	 /* its row, 0 if no kernel frame was seen */
	struct lull_map modules; /* file index to row */
	struct lull_map frames;	 /* hash of place or of Python frame to row */
	struct lull_map nodes;	 /* parent << 32 | frame to row */
	struct lull_map jits;	 /* process row to index in jit_at */
	struct lull_vec jit_at;	 /* of struct lull_jit * */
	struct lull_vec places;	 /* private: frames still without a name */
};

/* Where names come from, for lull_stacks_resolve(). */
struct lull_stacks_names {
	struct lull_debug_paths paths;
	const struct lull_kallsyms *kernel; /* NULL if there are none */
};

/* No stacks yet; `files` must outlive it. */
void lull_stacks_init(struct lull_stacks *s, const struct lull_files *files);

/* Free everything. */
void lull_stacks_release(struct lull_stacks *s);

/*
 * The module row of a mapping, added with the process and place of this mapping if its file has
 * none yet. 0 for memory without a file. Not required: lull_stacks_add() adds modules too, but
 * without their addresses.
 */
u32 lull_stacks_add_module(struct lull_stacks *s, struct lull_writer *w, u32 process,
			   const struct lull_mapping *mapping);

/*
 * The node of a native stack, innermost frame first; `process` is the row of its process. 0 if n is
 * 0.
 */
u32 lull_stacks_add(struct lull_stacks *s, struct lull_writer *w, u32 process,
		    const struct lull_pc *pcs, size_t n);

/*
 * A frame row that the report has already, from before it was reopened: resolve names it, too. The
 * file of `pc` was found again by the caller. Not for JIT frames, whose names went with their
 * process.
 */
void lull_stacks_adopt(struct lull_stacks *s, u32 frame, const struct lull_pc *pc);

/* The node of a Python stack, innermost frame first. 0 if n is 0. */
u32 lull_stacks_add_python(struct lull_stacks *s, struct lull_writer *w,
			   const struct lull_py_frame *frames, size_t n);

/* The same one by one: the row of a frame by its strings and line, and the node below `parent`. */
u32 lull_stacks_python_frame(struct lull_stacks *s, struct lull_writer *w, u32 function, u32 file,
			     u32 line);
u32 lull_stacks_add_frame(struct lull_stacks *s, struct lull_writer *w, u32 parent, u32 frame);

/* Names for the JIT frames of a process; borrowed until lull_stacks_resolve() is done. */
void lull_stacks_add_jit(struct lull_stacks *s, u32 process, struct lull_jit *jit);

/* Name all frames. Called once, after the last add. */
void lull_stacks_resolve(struct lull_stacks *s, struct lull_writer *w,
			 const struct lull_stacks_names *names);

#endif
