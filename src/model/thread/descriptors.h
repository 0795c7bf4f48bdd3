/*
 * descriptors - whether a file descriptor is a file or a socket, by the calls that were made on it.
 *
 * A number that was both in turn is neither. What a file is opened for is what is done with it
 * next. Calls that take less than a microsecond are not recorded, so a file may have been closed,
 * and a pipe have its number: what a read gives tells then.
 * Cost: one pass over the calls of the C library.
 */
#ifndef LULL_MODEL_THREAD_DESCRIPTORS_H
#define LULL_MODEL_THREAD_DESCRIPTORS_H

#include "base/map.h"
#include "base/types.h"
#include "base/vec.h"
#include "model/chain.h"
#include "model/thread/pairs.h"
#include "trace/reader.h"

struct lull_descriptors {
	struct lull_reader *reader;
	u32 n_accepts;		 /* by all processes: private */
	struct lull_map kinds;	 /* process and number to bits: private */
	struct lull_map opens;	 /* the same to the call that opened it last, from 1: private */
	struct lull_map uses;	 /* a call that opens or closes, from 1, to LULL_IN_...: private */
	struct lull_map waits;	 /* process and number to short reads that waited: private */
	struct lull_vec strange; /* u64, rising: reads from pipes: private */
	struct lull_pairs pairs; /* sockets between threads of the recording: private */
};

/* Look at all calls. */
void lull_descriptors_init(struct lull_descriptors *d, struct lull_reader *r);

/* Free it. */
void lull_descriptors_release(struct lull_descriptors *d);

/* A call, as it was recorded. */
struct lull_descriptor_call {
	const char *name;
	u64 row; /* its number among all calls, from 0 */
	i64 arg, ret;
	u32 lane;
};

/* LULL_IN_... of a call that reads: FILE, QUEUE, SOCKET, DEMAND; 0 if it is not known. */
u32 lull_descriptor_bits(const struct lull_descriptors *d, const struct lull_descriptor_call *call);

/*
 * LULL_IN_... of a call that opens or closes a file, by what is done with it: FILE or WRITE; 0 if
 * that is not known. `row` counts the calls from 0.
 */
u32 lull_descriptor_use(const struct lull_descriptors *d, u64 row);

/* Whether what is read from this number comes from a child process (popen). */
bool lull_descriptor_is_pipe(const struct lull_descriptors *d, u32 lane, i64 arg);

/* Whether a process of these threads accepts connections. */
bool lull_descriptors_accept(const struct lull_descriptors *d, const struct lull_chain *c);

#endif
