/*
 * waits - what a wait waited for.
 *
 * CUDA calls:     the work that was the last to end before the call returned, on the stream that
 *                 the call names if that was recorded, else anywhere in its process.
 * Locks, queues:  the thread, of the process or of a child process, that samples show running most
 *                 often during the wait, as in `lull why`, and what it did last; without samples,
 *                 the range of another thread that ended just when the wait did.
 * Idle time:      the work that ended it.
 */
#ifndef LULL_PAGE_WAITS_H
#define LULL_PAGE_WAITS_H

#include "page/links.h"

/* Add the links (struct lull_page_link) of an event that waits, or that others wait for. */
void lull_waits_find(struct lull_timeline *t, const struct lull_found *found,
		     struct lull_vec *links);

#endif
