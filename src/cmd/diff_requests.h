/*
 * diff_requests - the requests of two reports of a server, side by side: how long they take, and
 * what for.
 */
#ifndef LULL_CMD_DIFF_REQUESTS_H
#define LULL_CMD_DIFF_REQUESTS_H

#include "base/err.h"
#include "request/summary.h"
#include "text/json.h"
#include "trace/reader.h"

struct lull_diff_requests {
	struct lull_request_summary side[2]; /* before, after */
	size_t n[2];			     /* requests that were answered */
	bool is_there;			     /* both sides have requests */
};

/* Read both sides. */
void lull_diff_requests_init(struct lull_diff_requests *d, struct lull_reader *before,
			     struct lull_reader *after);

/* Free it. */
void lull_diff_requests_release(struct lull_diff_requests *d);

/* Print them on standard output; nothing if a side has none. */
int lull_diff_requests_print(const struct lull_diff_requests *d, struct lull_err *err);

/* The same as key "requests" of an open JSON object. */
void lull_diff_requests_json(const struct lull_diff_requests *d, struct lull_json *j);

#endif
