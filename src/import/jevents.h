/*
 * jevents - all events of a Chrome trace file, and its other members.
 *
 * Forms:          an object with an array `traceEvents`; or that array alone, which need not be
 *                 closed, because programs that die write it so.
 * Damage:         an event that is no JSON is skipped and counted. Where the text is cut off or
 *                 cannot be parsed any more, the walk ends; all events before were passed on.
 * Time:           a report's times begin with its first event, which may be the file's last. So the
 *                 begin is guessed from both ends of the file. If an event starts before it, the
 *                 walk goes on to the end without passing events on, and has to be done again
 *                 (lull_jevents_must_repeat()).
 */
#ifndef LULL_IMPORT_JEVENTS_H
#define LULL_IMPORT_JEVENTS_H

#include "base/err.h"
#include "text/jscan.h"
#include "import/jevent.h"

struct lull_jevents_handler {
	/* Called for each event, in the order of the file. */
	void (*event)(void *ctx, const struct lull_jevent *e);
	/*
	 * Called for each pair next to traceEvents; the value as lull_jscan_value() gives it. Ones
	 * larger than the window may be are left out.
	 */
	void (*pair)(void *ctx, const struct lull_jtext *key, const struct lull_jtext *value,
		     char first);
};

struct lull_jevents {
	struct lull_jscan scan;		/* private */
	struct lull_jevent_names names; /* private */
	i64 origin_ns;			/* events that start earlier are not passed on */
	i64 earliest_ns;		/* smallest time met */
	u64 n_events;			/* told or not */
	u64 n_bad;			/* events that are no JSON, or larger than anybody's */
	bool is_cut;			/* the text ended in the middle */
	bool is_invalid;		/* the text could not be followed any more */
	bool has_array;			/* there is an array of events */
	u64 stop_off;			/* where in the text it was given up */
};

/* Begin. `stream` is borrowed. */
int lull_jevents_init(struct lull_jevents *all, struct lull_stream *stream, struct lull_err *err);

/* Free the window. */
void lull_jevents_release(struct lull_jevents *all);

/*
 * Walk the file once. LULL_OK also for one that is cut off or invalid somewhere: the fields say so.
 * LULL_E_FORMAT if it is no JSON at all, or holds no array of events.
 */
int lull_jevents_walk(struct lull_jevents *all, const struct lull_jevents_handler *handler,
		      void *ctx, struct lull_err *err);

/* Whether events before origin_ns were met, so that the walk has to be done again. */
bool lull_jevents_must_repeat(const struct lull_jevents *all);

/* Rewind, and let origin_ns be right. */
int lull_jevents_repeat(struct lull_jevents *all, struct lull_err *err);

#endif
