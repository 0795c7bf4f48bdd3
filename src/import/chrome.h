/*
 * chrome - what a Chrome trace means, event by event; PyTorch's traces are Chrome traces, too.
 *
 * How events become rows (the letters are those of the format's `ph`):
 *
 *	X, B and E           range                    M  names of processes and threads
 *	b and e, S and F     range with flag 4        C  counter, one metric for each argument
 *	i, I, R, n, T, p     mark                     s, t, f  have no place: counted
 *
 * The category becomes the domain of the label, the arguments stay as JSON beside the range.
 */
#ifndef LULL_IMPORT_CHROME_H
#define LULL_IMPORT_CHROME_H

#include "import/import.h"
#include "import/jevents.h"
#include "import/mapper.h"

struct lull_chrome {
	struct lull_mapper map;
	struct lull_jevents events;
	u64 last_ns;		  /* end of the last event so far */
	u64 kept_bytes;		  /* private: of arguments */
	struct lull_vec open;	  /* private: struct open_range, begun and not ended */
	struct lull_map open_ixs; /* private: lane or id to the last one begun there */
	void *ctx;		  /* of the dialect */
};

/* A program's own way to write Chrome traces. All functions may be NULL. */
struct lull_chrome_dialect {
	/* Before the first event of a walk; the writer is open. */
	void (*begin)(struct lull_chrome *c);
	/* Handles an event, or returns false to leave it to the rules above. */
	bool (*event)(struct lull_chrome *c, const struct lull_jevent *e);
	/* A pair next to traceEvents. */
	void (*pair)(struct lull_chrome *c, const struct lull_jtext *key,
		     const struct lull_jtext *value, char first);
	/* After the last event of a walk; the writer is still open. */
	void (*finish)(struct lull_chrome *c);
	/* Free what begin() allocated. */
	void (*end)(struct lull_chrome *c);
};

/* Import the file of a job: what the run() of a format calls. */
int lull_chrome_run(struct lull_import_job *job, const struct lull_chrome_dialect *dialect,
		    struct lull_err *err);

/* The rules above for one event, for a dialect that changed it first. */
void lull_chrome_event(struct lull_chrome *c, const struct lull_jevent *e);

/* A pair beside traceEvents becomes a row of `meta`, its key after `prefix`. */
void lull_chrome_meta(struct lull_chrome *c, const char *prefix, const struct lull_jtext *key,
		      const struct lull_jtext *value);

/*
 * Begin and duration of an event as the report has them. False, and counted as bad, if it has no
 * time or a negative duration.
 */
bool lull_chrome_span(struct lull_chrome *c, const struct lull_jevent *e, u64 *start_ns,
		      u64 *dur_ns);

/* How likely these bytes are a Chrome trace, as lull_import.sniff. */
int lull_chrome_sniff(const u8 *head, size_t len);

#endif
