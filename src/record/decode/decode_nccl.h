/*
 * decode_nccl - collectives from the payloads of NCCL's ranges.
 *
 * A range of the NVTX domain "NCCL" has a payload whose layout NCCL itself registers, with readable
 * field names. Layouts differ between releases, so fields are found by these names. A layout is
 * parsed once per process.
 */
#ifndef LULL_RECORD_DECODE_DECODE_NCCL_H
#define LULL_RECORD_DECODE_DECODE_NCCL_H

#include "record/recording.h"

/* What a recording keeps about NCCL: begin with nothing, free it. */
void lull_nccl_init(struct lull_recording *r);
void lull_nccl_release(struct lull_recording *r);

/* A label was defined: `text_ix` is its name's index + 1 in text_list, 0 if that was not kept. */
void lull_nccl_label(struct lull_recording *r, u32 label, const char *domain, u32 text_ix);

/*
 * A range has ended: if it is a collective or a message of NCCL, add its row to `collective`. Also
 * learns how many ranks a communicator has from the calls that make it.
 */
void lull_nccl_range(struct lull_recording *r, struct lull_task *task,
		     const struct lull_open_range *range, u64 end_ns);

/* Bytes a rank gives and gets in an operation of this name (without "nccl"). */
struct lull_nccl_traffic {
	u64 in_bytes, out_bytes;
};

/*
 * From the message size as NCCL counts it (one rank's argument). `n_ranks` 0: not known, then once.
 * `root` is a rank or -1.
 */
struct lull_nccl_traffic lull_nccl_traffic(const char *name, u64 size_bytes, u32 n_ranks, u32 rank,
					   i64 root);

#endif
