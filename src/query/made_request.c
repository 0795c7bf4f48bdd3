/* The requests of a server as a table: lull_made_request(). */
#include "query/made.h"

#include <string.h>

#include "query/values.h"
#include "request/requests.h"

static void put_text(struct lull_made_rows *rows, const char *text)
{
	if (*text)
		lull_rows_text(rows, text, strlen(text));
	else
		lull_rows_null(rows);
}

static void put_thread(struct lull_made_rows *rows, struct lull_reader *r, u32 lane)
{
	size_t n;
	const struct lull_lane_row *lanes = lull_reader_dim(r, LULL_TABLE_lane, &n);
	const struct lull_process_row *processes = lull_reader_dim(r, LULL_TABLE_process, &n);
	u32 process = lane ? lanes[lane - 1].process : 0;

	if (process) {
		lull_rows_int(rows, processes[process - 1].pid);
		lull_rows_int(rows, lanes[lane - 1].tid);
	} else {
		lull_rows_null(rows);
		lull_rows_null(rows);
	}
}

static void put(struct lull_made_rows *rows, struct lull_reader *r,
		const struct lull_one_request *one)
{
	lull_rows_add(rows);
	lull_rows_int(rows, (i64)one->id);
	put_text(rows, lull_request_name(one, r));
	put_text(rows, lull_request_how(one, r));
	lull_rows_int(rows, (i64)one->start_ns);
	lull_rows_int(rows, (i64)one->end_ns);
	lull_rows_int(rows, (i64)lull_request_ns(one));
	if (one->n_tokens)
		lull_rows_int(rows, (i64)(one->first_token_ns - one->start_ns));
	else
		lull_rows_null(rows);
	lull_rows_int(rows, one->n_tokens);
	lull_rows_int(rows, one->n_open);
	lull_rows_int(rows, one->n_launches);
	lull_rows_int(rows, (i64)one->gpu_ns);
	put_text(rows, lull_reader_string(r, one->data, NULL));
	put_thread(rows, r, one->lane);
	for (u32 p = 0; p < LULL_N_REQUEST_PARTS; p++)
		lull_rows_int(rows, (i64)one->part_ns[p]);
}

void lull_made_request(struct lull_made_rows *rows, struct lull_values *v)
{
	const struct lull_one_request *all;
	struct lull_requests q;
	struct lull_err err;

	/* A report without requests has an empty table. */
	lull_requests_init(&q, v->reader, v->window, LULL_REQUESTS_WANT_SOCKETS, &err);
	all = q.all.at;
	for (size_t i = 0; i < q.all.n; i++)
		put(rows, v->reader, &all[i]);
	lull_requests_release(&q);
}
