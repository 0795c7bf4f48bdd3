/*
 * requests_print - the answer of `lull requests`, for people and for programs.
 */
#ifndef LULL_CMD_REQUESTS_PRINT_H
#define LULL_CMD_REQUESTS_PRINT_H

#include <stdio.h>

#include "base/err.h"
#include "request/load_replay.h"
#include "request/over_time.h"
#include "request/requests.h"
#include "request/summary.h"
#include "request/tail.h"

/* All that is said about the requests of a report. */
struct lull_requests_answer {
	struct lull_reader *reader;
	const char *path;
	struct lull_requests requests; /* that were answered */
	struct lull_request_summary summary;
	struct lull_request_tail tail;
	struct lull_load_replay replay;
	struct lull_vec intervals; /* struct lull_request_interval; empty if not asked for */
};

/* In sentences and tables, at most `width` columns wide. */
void lull_requests_print(FILE *to, const struct lull_requests_answer *a, int width);

/* As JSON, by the schema that `lull schema requests` prints. */
void lull_requests_print_json(FILE *to, const struct lull_requests_answer *a);

#endif
