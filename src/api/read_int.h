/*
 * read_int - what the files of api share. Private to src/api/.
 */
#ifndef LULL_API_READ_INT_H
#define LULL_API_READ_INT_H

#include "lull_read.h"

#include "base/err.h"
#include "base/str.h"
#include "query/frame.h"
#include "query/query.h"
#include "trace/reader.h"

/* What stays in the library's list of symbols. */
#define LULL_READ_EXPORT __attribute__((visibility("default")))

struct lull_read {
	char *path; /* as given */
	struct lull_reader *reader;
	struct lull_query *query; /* made at first use */
	struct lull_str warnings; /* all so far, one a line */
	size_t told_len;	  /* how much of them was asked for */
	bool is_broken;		  /* memory ran out in the middle of a call */
};

/* Columns in memory, shared by those who hold them. */
struct lull_read_rows {
	struct lull_frame frame;
	struct lull_read_texts *texts; /* one for each column */
	u64 n_holders;		       /* atomic */
};

/* The texts of a column as one piece. */
struct lull_read_texts {
	char *bytes;
	int64_t *offs;
	u64 n;
};

/* One call of the interface: what it does, with its arguments in `ctx`. */
typedef int lull_read_call(struct lull_read *r, void *ctx, struct lull_err *err);

/*
 * Do it: warnings go to `r`, and missing memory is an error after which `r` is broken. Returns the
 * code, with the sentence in *error.
 */
int lull_read_do(struct lull_read *r, lull_read_call *call, void *ctx,
		 struct lull_read_error *error);

/* Rows of a frame, which they own from now on. One holder. */
struct lull_read_rows *lull_read_rows_new(struct lull_frame *frame);

/* One more holder; lull_read_rows_free() is one less. */
void lull_read_rows_hold(struct lull_read_rows *rows);

#endif
