/*
 * pairs - sockets that are the two ends of one pair (socketpair, or sockets without a connection),
 * both held by processes of the recording.
 *
 * Nobody records which ends belong together. But all that one end got is what another one had sent
 * at some moment: of ends that neither connected nor accepted, that tells.
 */
#ifndef LULL_MODEL_THREAD_PAIRS_H
#define LULL_MODEL_THREAD_PAIRS_H

#include "base/map.h"
#include "base/types.h"
#include "base/vec.h"

struct lull_pairs {
	struct lull_map ends;  /* key to index in sums, from 1: private */
	struct lull_vec sums;  /* what each end got: private */
	struct lull_vec sends; /* in order: private */
};

/* Nothing is known yet. */
void lull_pairs_init(struct lull_pairs *p);

/* Free it. */
void lull_pairs_release(struct lull_pairs *p);

/* A socket, by process and number, that has a connection: it is no end of a pair. */
void lull_pairs_connect(struct lull_pairs *p, u64 key);

/* A call on a socket, in order of time: it got so many bytes, or sent them. */
void lull_pairs_get(struct lull_pairs *p, u64 key, i64 bytes);
void lull_pairs_send(struct lull_pairs *p, u64 key, i64 bytes);

/* Find the ends that got what another one sent; after all calls. */
void lull_pairs_match(struct lull_pairs *p);

/* Whether this socket is one of them. */
bool lull_pairs_has(const struct lull_pairs *p, u64 key);

#endif
