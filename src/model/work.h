/*
 * work - what a device did: kernels, copies, memsets and graphs in one walk.
 *
 *	lull_work_begin(&c, reader, LULL_WORK_ALL, LULL_WORK_WANT_CALL, window);
 *	while (lull_work_next(&c, &work))
 *		...
 *	lull_work_end(&c);
 *
 * Order:          kind by kind, then as the tables have them: by blocks, not by time.
 * Cost:           start, duration, lane and what it was are always decoded; the rest on request.
 */
#ifndef LULL_MODEL_WORK_H
#define LULL_MODEL_WORK_H

#include "model/order.h"
#include "model/span.h"
#include "trace/reader.h"

/* lane.kind of a stream, which is no thread. */
#define LULL_LANE_STREAM 2

enum lull_work_kind {
	LULL_WORK_KERNEL = 1,
	LULL_WORK_MEMCPY = 2,
	LULL_WORK_MEMSET = 4,
	LULL_WORK_GRAPH = 8,
};

#define LULL_WORK_COMPUTE (LULL_WORK_KERNEL | LULL_WORK_GRAPH)
#define LULL_WORK_MEMORY  (LULL_WORK_MEMCPY | LULL_WORK_MEMSET)
#define LULL_WORK_ALL	  (LULL_WORK_COMPUTE | LULL_WORK_MEMORY)

/* What else to decode. */
#define LULL_WORK_WANT_CALL  1u /* process and correlation */
#define LULL_WORK_WANT_BYTES 2u /* size_bytes, the kinds of memory and is_async */

/* memcpy.src_kind, dst_kind and memset.memory_kind. */
enum lull_memory_kind {
	LULL_MEMORY_PAGEABLE = 1,
	LULL_MEMORY_PINNED = 2,
	LULL_MEMORY_DEVICE = 3,
	LULL_MEMORY_MANAGED = 5,
	LULL_MEMORY_MANAGED_STATIC = 7,
};

struct lull_work {
	u64 start_ns;
	u64 dur_ns;
	u64 size_bytes; /* of copies and memsets */
	u32 lane;	/* stream */
	u32 process;	/* that launched it */
	u32 correlation;
	u32 what;    /* kernel: its launch; copy: copy_kind; graph: graph_id */
	u8 kind;     /* enum lull_work_kind */
	u8 src_kind; /* of a copy */
	u8 dst_kind; /* of a copy or memset */
	u8 is_async; /* of a copy: as the driver said */
};

struct lull_work_cursor {
	struct lull_reader *reader;
	struct lull_span window;
	unsigned kinds; /* private: still to walk */
	unsigned wants; /* private */
	unsigned kind;	/* private: the one walked now, 0 for none */
	const struct lull_lane_row *lanes;
	struct lull_cursor cursor; /* private */
	union {
		struct lull_kernel_cols kernel;
		struct lull_memcpy_cols memcpy;
		struct lull_memset_cols memset;
		struct lull_graph_cols graph;
	} cols; /* private: the block walked now */
	size_t n, ix;
};

/*
 * Whose call started the work of a row: the process that it names, else that of its stream, as
 * older recorders left it. Numbers of calls begin anew in every process, so that calls and work are
 * joined by both.
 */
static inline u32 lull_work_process(const struct lull_lane_row *lanes, u32 process, u32 lane)
{
	return process || !lane ? process : lanes[lane - 1].process;
}

/*
 * Begin to walk the work of these kinds (bits of enum lull_work_kind) that may lie in `window`;
 * some outside of it is given too.
 */
void lull_work_begin(struct lull_work_cursor *c, struct lull_reader *r, unsigned kinds,
		     unsigned wants, struct lull_span window);

/* The next one; false at the end. */
bool lull_work_next(struct lull_work_cursor *c, struct lull_work *work);

/* Free what the cursor holds. */
void lull_work_end(struct lull_work_cursor *c);

/* ---- by time ---- */

/*
 * The same by start over all kinds; of equal starts the shorter, then the smaller correlation
 * number is first.
 */
struct lull_work_order {
	struct lull_order orders[4];
	const struct lull_work *heads[4]; /* the next of each kind */
	struct lull_work_cursor fills[4]; /* private: what fill() needs of a cursor */
	struct lull_work given;		  /* private: the last one */
	unsigned n;
};

/* Begin to walk the work of these kinds. Arguments as in lull_work_begin(). */
void lull_work_order_begin(struct lull_work_order *o, struct lull_reader *r, unsigned kinds,
			   unsigned wants, struct lull_span window);

/* The next one, valid until the next call; NULL at the end. */
const struct lull_work *lull_work_order_next(struct lull_work_order *o);

/* Free everything. */
void lull_work_order_end(struct lull_work_order *o);

/* When it ended. */
static inline u64 lull_work_end_ns(const struct lull_work *work)
{
	return lull_span_end_ns(work->start_ns, work->dur_ns);
}

/*
 * Whether the kernel of each launch is a collective (wire/vocabulary.h), by the launch's id. Free
 * with free().
 */
bool *lull_work_collectives(struct lull_reader *r);

/* Whether it is NCCL's own: one that belongs to an operation of the table `collective`. */
bool *lull_work_nccl(struct lull_reader *r);

/* Called for rows that follow each other and have the same process and lane. */
typedef void lull_work_owner_visit(void *ctx, u32 process, u32 lane, u64 n_rows);

/* Say whose the work of these kinds is, and decode nothing else. */
void lull_work_owners(struct lull_reader *r, unsigned kinds, lull_work_owner_visit *visit,
		      void *ctx);

/* How many there are of these kinds. */
u64 lull_work_count(const struct lull_reader *r, unsigned kinds);

#endif
