/*
 * image - read the events of one process image out of shared memory.
 *
 * What it gives:  events in the order each thread wrote them, each exactly once; chunks go back to
 *                 the agent only after lull_image_release(), when the caller has what it read
 *                 safely in a file.
 * What it checks: every size and offset; a chunk whose bytes make no sense is skipped to its end
 *                 and counted. Data is copied with pread, so that a file that shrinks is an error
 *                 and not a SIGBUS.
 * Ownership:      the event passed to the callback is valid during the call only.
 */
#ifndef LULL_RECORD_PROCESS_IMAGE_H
#define LULL_RECORD_PROCESS_IMAGE_H

#include "base/err.h"
#include "base/types.h"
#include "base/vec.h"
#include "wire/wire.h"

/* What the recorder knows of a chunk it has begun to read. */
struct lull_chunk_place {
	u64 seq;
	u32 read_bytes; /* events before this offset were delivered */
	bool is_done;	/* FULL and read to its end; to be freed */
};

struct lull_image_file {
	char name[256];
	int fd;
	struct lull_image *head; /* mapped: head, slots and chunk states */
	struct lull_slot *slots;
	struct lull_chunk *chunks;
	u32 n_slots, n_entries; /* of the two tables, that have memory for certain */
	u32 n_chunks;		/* as the head said at first; the program could change it */
	struct lull_chunk_place *places; /* one per chunk */
	struct lull_vec order;		 /* scratch: chunks to look at, by seq */
	u8 *buffer;			 /* one chunk */
	u64 n_bad;			 /* events that made no sense */
	u64 n_issues[LULL_N_ISSUES];	 /* for the caller: counters it has already reported */
	u64 unreleased_bytes;		 /* read, but not yet released */
};

/* One event of slot `slot_ix` at nesting level `level`. */
typedef void lull_image_fn(void *ctx, u32 slot_ix, u32 level, const struct lull_event *event);

/*
 * Open an image file of this folder; LULL_E_UNSUPPORTED while its process still sets it up (try
 * again later), LULL_E_NOMEM if we have no descriptor for it.
 */
int lull_image_open(struct lull_image_file *f, int dir_fd, const char *name, struct lull_err *err);

/* Unmap and close; the file stays. */
void lull_image_close(struct lull_image_file *f);

/* Deliver all events that are whole and were not delivered before. Returns how many. */
u64 lull_image_drain(struct lull_image_file *f, lull_image_fn *fn, void *ctx);

/* Slots [0, n) may be looked at. */
u32 lull_image_n_slots(struct lull_image_file *f);

/* Give chunks that were read to their end back to the process, and slots of ended threads. */
void lull_image_release(struct lull_image_file *f);

/*
 * Start reading chunk `seq` at `offset_bytes`: what is before it is in the file already. Before any
 * drain.
 */
void lull_image_resume(struct lull_image_file *f, u64 seq, u32 offset_bytes);

#endif
