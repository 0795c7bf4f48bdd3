/*
 * link - which CUDA call launched which work. Nothing else in the readers joins them.
 *
 * Rules:          a call and its work have the same key: the process and the correlation id, as ids
 *                 restart in every process. Id 0 means that it is not known, and joins nothing. The
 *                 work of a graph has the id of the graph's launch. If several calls have one id
 *                 (of the runtime, and of the driver inside it), the first one counts, and of those
 *                 that start together the longest.
 *
 * Ways to use it: lull_link holds the calls, and finds the call of any work. lull_link_index is for
 *                 those who have calls or work in an array of their own, and gives each key a place
 *                 for its index. lull_link_columns has the key of any row of any table.
 *
 * Memory:         lull_link: 24 bytes per call, and the index: 4 bytes for each id between the
 *                 first and the last of a process.
 */
#ifndef LULL_MODEL_LINK_H
#define LULL_MODEL_LINK_H

#include "base/map.h"
#include "base/types.h"
#include "base/vec.h"
#include "model/work.h"

/* ---- keys ---- */

/* What a call and its work have in common; 0 if nothing is known. */
static inline u64 lull_link_key(u32 process, u32 correlation)
{
	return correlation ? (u64)process << 32 | correlation : 0;
}

/* The key of work that was read with LULL_WORK_WANT_CALL. */
static inline u64 lull_link_work_key(const struct lull_work *work)
{
	return lull_link_key(work->process, work->correlation);
}

/* Whether the call `a` is the one that counts if `b` has the same key. */
static inline bool lull_link_is_first(struct lull_span a, struct lull_span b)
{
	return a.from_ns < b.from_ns || (a.from_ns == b.from_ns && a.to_ns > b.to_ns);
}

/* ---- keys of rows ---- */

/* The columns of a table that make the key of a row. */
struct lull_link_columns {
	const struct lull_lane_row *lanes; /* private */
	int correlation, process, lane;	   /* private: index, -1 if the table has none */
};

/*
 * Find them in the table of the cursor, and have them decoded. False if rows of it have no key; the
 * cursor is as before then.
 */
bool lull_link_columns_init(struct lull_link_columns *k, struct lull_cursor *c);

/* The same of one block. */
struct lull_link_rows {
	const struct lull_lane_row *lanes; /* private */
	const u32 *correlation, *process, *lane;
};

/* Those of a block that the cursor decoded into an array of pointers. */
static inline struct lull_link_rows lull_link_rows_of(const struct lull_link_columns *k,
						      const void *const *cols)
{
	return (struct lull_link_rows){ .lanes = k->lanes,
					.correlation = cols[k->correlation],
					.process = k->process >= 0 ? cols[k->process] : NULL,
					.lane = k->lane >= 0 ? cols[k->lane] : NULL };
}

/* The key of row `ix`. */
static inline u64 lull_link_rows_key(const struct lull_link_rows *rows, size_t ix)
{
	u32 process = rows->process ? rows->process[ix] : 0;

	process = lull_work_process(rows->lanes, process, rows->lane ? rows->lane[ix] : 0);
	return lull_link_key(process, rows->correlation[ix]);
}

/* ---- a place for each key ---- */

/*
 *	lull_link_index_init(&x, reader);
 *	...	lull_link_index_measure(&x, key);	(each that will be added)
 *	lull_link_index_settle(&x);
 *	*lull_link_index_add(&x, key) = ix + 1;
 *	place = lull_link_index_find(&x, key);
 *
 * Ids grow with time and leave few holes, so a process has an array indexed by id, starting at its
 * smallest. Where that would be mostly holes, a hash table is used.
 */
struct lull_link_process {
	u64 n;
	u32 first, last;
	u32 *places; /* by id - first; NULL: by hash */
};

struct lull_link_index {
	struct lull_link_process *processes; /* private: by process, 0 for none */
	size_t n_processes;		     /* private */
	struct lull_map by_key;		     /* private */
};

/* Nothing is measured yet; for the processes of this report. */
void lull_link_index_init(struct lull_link_index *x, struct lull_reader *r);

/* Free everything. */
void lull_link_index_release(struct lull_link_index *x);

/* All that is measured has its array or the hash from now on. */
void lull_link_index_settle(struct lull_link_index *x);

/*
 * The place of a key that was measured, 0 if nothing was put there; NULL for key 0. Valid until the
 * next one is added.
 */
static inline u32 *lull_link_index_add(struct lull_link_index *x, u64 key)
{
	const struct lull_link_process *p = &x->processes[key >> 32];

	if (!key)
		return NULL;
	return p->places ? &p->places[(u32)key - p->first] : lull_map_add(&x->by_key, key, NULL);
}

/* The place of any key, or NULL if it has none. */
static inline u32 *lull_link_index_find(const struct lull_link_index *x, u64 key)
{
	const struct lull_link_process *p = &x->processes[key >> 32];
	u32 id = (u32)key;

	if (!key)
		return NULL;
	if (!p->places)
		return lull_map_find(&x->by_key, key);
	return id >= p->first && id <= p->last ? &p->places[id - p->first] : NULL;
}

/* This key will be added; 0 is none. */
static inline void lull_link_index_measure(struct lull_link_index *x, u64 key)
{
	struct lull_link_process *p = &x->processes[key >> 32];
	u32 id = (u32)key;

	if (!key)
		return;
	if (!p->n || id < p->first)
		p->first = id;
	if (!p->n || id > p->last)
		p->last = id;
	p->n++;
}

/* ---- the calls ---- */

struct lull_call {
	u64 start_ns;
	u64 dur_ns;
	u32 lane; /* thread */
	u32 name; /* string id */
};

struct lull_link {
	struct lull_vec calls;		   /* private: struct lull_call */
	struct lull_link_index index;	   /* private: index in calls + 1 */
	const struct lull_lane_row *lanes; /* private */
};

/* Collect the calls of the recording. Reads them twice. */
void lull_link_init(struct lull_link *l, struct lull_reader *r);

/* Collect those with these keys (u64) only. Reads them once. */
void lull_link_init_keys(struct lull_link *l, struct lull_reader *r, const struct lull_vec *keys);

/* Free them. */
void lull_link_release(struct lull_link *l);

/* The call with this key, or NULL if it was not recorded. */
const struct lull_call *lull_link_find_key(const struct lull_link *l, u64 key);

/* The call that started this work, or NULL if it was not recorded. */
static inline const struct lull_call *lull_link_find(const struct lull_link *l,
						     const struct lull_work *work)
{
	return lull_link_find_key(l, lull_link_work_key(work));
}

/* How long the work waited between the end of its call and its start; 0 if it started earlier. */
u64 lull_link_queue_ns(const struct lull_call *call, const struct lull_work *work);

/* From the start of the call to the end of call and work. */
u64 lull_link_total_ns(const struct lull_call *call, const struct lull_work *work);

/* From its start to its end. */
static inline struct lull_span lull_call_span(const struct lull_call *call)
{
	return (struct lull_span){ call->start_ns, lull_span_end_ns(call->start_ns, call->dur_ns) };
}

#endif
