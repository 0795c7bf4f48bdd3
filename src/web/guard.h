/*
 * guard - which requests are accepted.
 *
 * Another page in the same browser, another user of the machine and a page that makes its name
 * point here are all able to send requests. The token keeps out clients that do not know it; Host
 * keeps out names that were made to point here (DNS rebinding); Sec-Fetch-Site and Origin keep out
 * other pages.
 */
#ifndef LULL_WEB_GUARD_H
#define LULL_WEB_GUARD_H

#include "base/err.h"
#include "base/types.h"

#define LULL_TOKEN_CHARS 26 /* 128 bits in base 32 */

struct lull_guard {
	char token[LULL_TOKEN_CHARS + 1];
	const char *host; /* one more name that Host may have; NULL if none. Borrowed */
};

/* Draw a token. */
int lull_guard_init(struct lull_guard *g, struct lull_err *err);

/* What of a request is looked at; a header that was not sent is NULL. */
struct lull_guard_request {
	const char *path; /* "/TOKEN/..." */
	const char *method;
	const char *host, *origin, *fetch_site, *fetch_dest;
};

/*
 * Check a request. Returns 0 and the part of the path after the token, or the HTTP status to refuse
 * it with.
 */
int lull_guard_check(const struct lull_guard *g, const struct lull_guard_request *request,
		     const char **rest);

#endif
