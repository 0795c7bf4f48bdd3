/*
 * mend - changes that `lull try` puts into any CUDA program, from a preloaded library.
 *
 * liblull-mend.so is only loaded by `lull try`: with a remedy that has a line `mend:`, and into a
 * program that marks no steps, whose calls are counted then (count.c).
 * LULL_MEND names the changes, with commas between them. It stands in front of a few calls of the
 * driver (calls.def), however the program finds them: linked, by dlsym(), or by
 * cuGetProcAddress(), as all versions of the CUDA runtime do.
 *
 * Manners: a call that cannot be changed without doubt goes to the driver as it is. Nothing is
 * printed, and no error is added to those of the driver.
 *
 * To add one: a name in mend.c, its own file, and a remedy that names it.
 */
#ifndef LULL_MEND_CHANGE_H
#define LULL_MEND_CHANGE_H

#include <stddef.h>

#include "base/types.h"

enum lull_mend {
	LULL_MEND_POOL,	    /* alloc-pool */
	LULL_MEND_STAGED,   /* staged-copies */
	LULL_MEND_SPIN,	    /* spin-waits */
	LULL_MEND_BLOCKING, /* blocking-waits */
	LULL_MEND_NEAR,	    /* near-cpus */
	LULL_MEND_COUNT,
};

/* What can be counted, in the words of calls.def. */
enum lull_counted {
	LULL_COUNTED_LAUNCH,
	LULL_COUNTED_COPY,
	LULL_COUNTED_WAIT,
	LULL_COUNTED_CAPTURE,  /* a stream starts to be captured: */
	LULL_COUNTED_CAPTURED, /* no step until it is not any more */
};

#define LULL_CUDA_OK		0
#define LULL_CUDA_OUT_OF_MEMORY 2
#define LULL_CUDA_NO_DRIVER	100

/* The driver's own calls; all are there once one of ours was called. */
struct lull_driver {
#define CALL(name, base, since, params, args) int(*name) params;
#define USED(name, params)		      int(*name) params;
/* May be NULL, but for those that we use. */
#define COUNTED(what, name, base, since, stream, params, args) int(*name) params;
#include "mend/calls.def"
#undef CALL
#undef USED
#undef COUNTED
};

/* NULL if there is no driver, or one that lacks a call that we need. */
const struct lull_driver *lull_mend_driver(void);

/* The driver's own calls, as far as it has them. */
const struct lull_driver *lull_mend_calls(void);

/* The program makes such a call: a step may start with it (count.c). */
void lull_count(enum lull_counted what);

/* Whether calls are counted at all. */
bool lull_count_is_on(void);

/* Whether the user wants this change. */
bool lull_mend_wants(enum lull_mend mend);

/* It has changed something: said once, in the log of the run. */
void lull_mend_did(enum lull_mend mend);

#define LULL_MEND_STREAMS 4

/* Streams that do not wait for the default one; NULL where there are too many to tell. */
void *const *lull_mend_streams(size_t *n);

/* ---- the changes; each does what the driver's call does ---- */

/* pool.c: memory of the device is kept when it is freed, and used again. */
int lull_pool_alloc(const struct lull_driver *d, u64 *at, size_t bytes);
int lull_pool_free(const struct lull_driver *d, u64 at);
/* Give all that is kept to the driver: its context ends, or order can no longer be told. */
void lull_pool_clear(const struct lull_driver *d);

/* staged.c: copies from pageable memory go through pinned memory, and the host does not wait. */
int lull_staged_copy(const struct lull_driver *d, u64 to, const void *from, size_t bytes,
		     void *stream, bool is_async);
/* The pinned memory ends with its context. */
void lull_staged_clear(void);

/* crew.c: memcpy() by several threads; one call at a time. */
void lull_crew_copy(void *to, const void *from, size_t bytes);

/* place.c: after cuInit(), how host threads wait and where they run. */
void lull_place(const struct lull_driver *d);

#endif
