/*
 * pytorch_int - what the files of the PyTorch importer share.
 *
 * Each function takes events of one category and returns true, or false for one that is not as the
 * category's are; it then goes the way of any Chrome event.
 */
#ifndef LULL_IMPORT_PYTORCH_INT_H
#define LULL_IMPORT_PYTORCH_INT_H

#include "base/map.h"
#include "base/vec.h"
#include "import/chrome.h"

/* Kinds of lull_mapper_thing() besides those of mapper.c and chrome.c. */
enum {
	LULL_PYTORCH_LABEL = 32,
	LULL_PYTORCH_FRAME,
	LULL_PYTORCH_LAUNCH,
};

/* What a call of ROCm says about the work it starts, which the work's own event does not. */
struct lull_pytorch_given {
	u64 size_bytes;
	u32 grid[3], block[3];
	u32 shared_bytes;
};

struct lull_pytorch {
	i64 rank;		     /* of this file in its job, -1 if not said */
	struct lull_vec collectives; /* struct lull_collective_row, numbered at the end */
	u32 n_labels;		     /* of operators */
	struct lull_map calls;	     /* index + 1 in `given` by correlation */
	struct lull_vec given;	     /* struct lull_pytorch_given */
};

/* The state of the importer that belongs to a chrome. */
static inline struct lull_pytorch *lull_pytorch(const struct lull_chrome *c)
{
	return c->ctx;
}

/* pytorch_host.c: what threads did. */
bool lull_pytorch_op(struct lull_chrome *c, const struct lull_jevent *e);
bool lull_pytorch_annotation(struct lull_chrome *c, const struct lull_jevent *e);
bool lull_pytorch_python(struct lull_chrome *c, const struct lull_jevent *e);
bool lull_pytorch_runtime(struct lull_chrome *c, const struct lull_jevent *e);
bool lull_pytorch_driver(struct lull_chrome *c, const struct lull_jevent *e);
bool lull_pytorch_instant(struct lull_chrome *c, const struct lull_jevent *e);
bool lull_pytorch_overhead(struct lull_chrome *c, const struct lull_jevent *e);

/* pytorch_device.c: what devices did. */
bool lull_pytorch_kernel(struct lull_chrome *c, const struct lull_jevent *e);
bool lull_pytorch_memcpy(struct lull_chrome *c, const struct lull_jevent *e);
bool lull_pytorch_memset(struct lull_chrome *c, const struct lull_jevent *e);
bool lull_pytorch_sync(struct lull_chrome *c, const struct lull_jevent *e);
bool lull_pytorch_device_annotation(struct lull_chrome *c, const struct lull_jevent *e);

/* Remember what a call says about its work. */
void lull_pytorch_give(struct lull_chrome *c, const struct lull_jevent *e);

/* The lane of the stream that an event of a device names. */
u32 lull_pytorch_stream(struct lull_chrome *c, const struct lull_jevent *e);

/* pytorch_nccl.c: what ranks did together. A row for a kernel that is one of NCCL's. */
void lull_pytorch_collective(struct lull_chrome *c, const struct lull_jevent *e,
			     const struct lull_kernel_row *kernel);

/* Number the operations of each communicator and write them. */
void lull_pytorch_write_collectives(struct lull_chrome *c);

/* pytorch_meta.c: what stands beside the events. */
void lull_pytorch_pair(struct lull_chrome *c, const struct lull_jtext *key,
		       const struct lull_jtext *value, char first);

#endif
