/*
 * perf_int - what perf.c (events), perf_ring.c (rings) and perf_record.c (records) share.
 */
#ifndef LULL_RECORD_PERF_PERF_INT_H
#define LULL_RECORD_PERF_PERF_INT_H

#include <linux/perf_event.h>

#include "record/perf/perf.h"

/*
 * Sample layout, given by LULL_PERF_BASE_TYPE, the options and the kernel's order:
 *
 *	sample       header ip pid,tid time cpu,0 n chain[n] [abi regs] [size stack filled]
 *	all others   header body pid,tid time cpu,0
 */
#define LULL_PERF_BASE_TYPE                                                      \
	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU | \
	 PERF_SAMPLE_CALLCHAIN)

/* One CPU's ring. `next` fields describe the record at `tail`, when there is one. */
struct lull_perf_ring {
	struct perf_event_mmap_page *page;
	u8 *data;
	size_t data_bytes;
	u64 head; /* snapshot of this drain */
	u64 tail;
	u64 next_time_ns;
	u64 n_damaged; /* times the bytes made no sense and the ring was emptied */
	u8 *bounce;    /* a record that wraps is copied here; 64 KiB, allocated on first use */
};

/* How records are to be read. */
struct lull_perf_format {
	u64 weight_ns;
	u64 regs_mask; /* 0: samples carry no registers */
	bool has_stack;
};

/* perf_event_open(); a thread or process, or -1 for all; a CPU, or -1 for any. */
int lull_perf_event(const struct perf_event_attr *attr, pid_t pid, int cpu);

/* What samples of a thread's CPU time are to hold. */
struct perf_event_attr lull_perf_sample_attr(const struct lull_perf_options *o, u64 period_ns);

/* Map a ring of 1 + n pages on `fd`, halving from `max_bytes` while the kernel says EPERM. */
int lull_perf_ring_open(struct lull_perf_ring *ring, int fd, size_t max_bytes,
			struct lull_err *err);

/* Unmap and free; the empty ring is fine. */
void lull_perf_ring_close(struct lull_perf_ring *ring);

/* Take a snapshot of the head; true if there is a record, whose time is then in next_time_ns. */
bool lull_perf_ring_refresh(struct lull_perf_ring *ring);

/* The record at the tail, contiguous; valid until lull_perf_ring_pop(). */
const struct perf_event_header *lull_perf_ring_record(struct lull_perf_ring *ring);

/* Give the record at the tail back to the kernel; true if another one follows in the snapshot. */
bool lull_perf_ring_pop(struct lull_perf_ring *ring);

/* Decode one record and call its handler. Returns false if it is malformed. */
bool lull_perf_record(const struct perf_event_header *record, const struct lull_perf_format *format,
		      const struct lull_perf_handlers *handlers, void *ctx);

#endif
