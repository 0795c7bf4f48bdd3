/*
 * unit - the work of one process on one device, in the order in which it started.
 *
 * What it gives:  kernels, graphs, copies and memsets as compact records; copies have a second
 *                 record with size and direction; a class for each kind of kernel launch, by kernel
 *                 name.
 * Long ones:      of a recording that is too large only a part is read (model/window.h).
 * Memory:         36 bytes per unit.
 */
#ifndef LULL_MODEL_UNIT_H
#define LULL_MODEL_UNIT_H

#include "base/types.h"
#include "base/vec.h"
#include "model/words.h"
#include "model/work.h"
#include "trace/reader.h"

#define LULL_NONE UINT32_MAX

enum lull_unit_kind {
	LULL_UNIT_KERNEL,
	LULL_UNIT_COLLECTIVE,
	LULL_UNIT_COPY,
	LULL_UNIT_MEMSET,
};

struct lull_unit {
	u64 begin_ns;
	u64 end_ns;
	u32 node;   /* the call that started it, as an index into the chain; or LULL_NONE */
	u32 what;   /* kernel: its launch; copy: an index into copies; graph: 0 */
	u32 round;  /* the step that launched it, or LULL_NONE */
	u16 stream; /* 0 .. n_streams - 1 */
	u8 kind;    /* enum lull_unit_kind */
	u8 class;   /* enum lull_kernel_class of a kernel */
};

/* memcpy.copy_kind */
enum lull_direction {
	LULL_COPY_IN = 1,
	LULL_COPY_OUT = 2,
	LULL_COPY_WITHIN = 8,
};

struct lull_copy {
	u64 size_bytes;
	u8 direction; /* as memcpy.copy_kind */
	u8 src_kind, dst_kind;
};

struct lull_units {
	struct lull_unit *at;
	u32 n;
	u32 *next;		/* the next unit of the same call, or LULL_NONE */
	struct lull_vec copies; /* struct lull_copy */
	struct lull_vec lanes;	/* u32: the lane of each stream number */
	u64 n_rows;		/* rows of the tables, also of other devices and times */
};

/* A process with work on a device. */
struct lull_unit_pair {
	u32 process, track;
	u64 n; /* rows of work */
};

/* Fill `pairs` (struct lull_unit_pair) with every process and device, most work first. */
void lull_units_pairs(struct lull_vec *pairs, struct lull_reader *r, const u32 *tracks);

/* Collect the work that `process` did on the device `track` (tracks as in model/busy.h). */
void lull_units_init(struct lull_units *u, struct lull_reader *r, u32 process, u32 track,
		     const u32 *tracks);

/* Free it. */
void lull_units_release(struct lull_units *u);

/* The copy of a unit of kind COPY. */
const struct lull_copy *lull_units_copy(const struct lull_units *u, const struct lull_unit *unit);

/* What a graph is called that was recorded as a whole. */
#define LULL_GRAPH_NAME "CUDA graph"

/* The name of the kernel; LULL_GRAPH_NAME, "copy", "memset" for the others. Borrowed. */
const char *lull_units_name(const struct lull_unit *unit, struct lull_reader *r);

/* Whether host memory of the copy is pageable; managed memory is not. */
static inline bool lull_copy_is_pageable(const struct lull_copy *c)
{
	return c->src_kind == LULL_MEMORY_PAGEABLE || c->dst_kind == LULL_MEMORY_PAGEABLE;
}

/* Whether one side is managed memory. */
static inline bool lull_copy_is_managed(const struct lull_copy *c)
{
	return c->src_kind == LULL_MEMORY_MANAGED || c->dst_kind == LULL_MEMORY_MANAGED ||
	       c->src_kind == LULL_MEMORY_MANAGED_STATIC ||
	       c->dst_kind == LULL_MEMORY_MANAGED_STATIC;
}

#endif
