/*
 * frame - rows as columns in memory, for programs that compute with them.
 *
 * What it gives:  whole columns of numbers, texts as numbers into a list of different texts, and
 *                 bits for the values that are there: the layout of Arrow's arrays.
 * Types:          a column is what its values are. Whole numbers become real ones where both
 *                 occur, and everything becomes text where text occurs.
 * Texts:          are valid UTF-8; what is none in a report becomes U+FFFD. Blobs become
 *                 hexadecimal digits, as `lull query` prints them.
 * Ownership:      the frame owns the columns. Texts that are added are copied.
 * Memory:         8 bytes a number, 4 bytes a text, and each different text once.
 */
#ifndef LULL_QUERY_FRAME_H
#define LULL_QUERY_FRAME_H

#include "base/intern.h"
#include "base/types.h"
#include "base/vec.h"
#include "query/query.h"

enum lull_frame_type {
	LULL_FRAME_EMPTY, /* no value yet: a column of nulls */
	LULL_FRAME_INT,
	LULL_FRAME_REAL,
	LULL_FRAME_TEXT,
};

struct lull_frame_col {
	char *name;
	enum lull_frame_type kind;
	struct lull_vec numbers;  /* i64 or f64, by kind; 0 for a null */
	struct lull_vec codes;	  /* u32 of TEXT: which of the texts; 0 for a null */
	struct lull_intern texts; /* of TEXT, by number */
	struct lull_vec present;  /* u8: bit per row, 1 for a value; empty if there is no null */
	u64 n_nulls;
	struct lull_map by_address; /* private: texts that stay where they are */
};

struct lull_frame {
	struct lull_frame_col *cols;
	size_t n_cols;
	u64 n_rows;
};

/* A frame without rows: add each value of a row to its column, then count the row. */
void lull_frame_init(struct lull_frame *f, size_t n_cols);

/* Free everything; the frame has no columns afterwards. */
void lull_frame_release(struct lull_frame *f);

/* Name a column; the name is copied. */
void lull_frame_name(struct lull_frame *f, size_t col, const char *name);

/* Add a value to a column, for row number f->n_rows. */
void lull_frame_add_null(struct lull_frame *f, size_t col);
void lull_frame_add_int(struct lull_frame *f, size_t col, i64 value);
void lull_frame_add_real(struct lull_frame *f, size_t col, f64 value);
void lull_frame_add_text(struct lull_frame *f, size_t col, const char *text, size_t len);
void lull_frame_add_blob(struct lull_frame *f, size_t col, const void *bytes, size_t len);

/*
 * Room for whole numbers of `n` rows of a column that has had no others so far and no null; they
 * are the caller's to fill in, and its rows to count.
 */
i64 *lull_frame_room(struct lull_frame *f, size_t col, size_t n);

/*
 * Add a text that stays at its address as long as the frame is being filled: it is looked at once.
 */
void lull_frame_add_fixed(struct lull_frame *f, size_t col, const char *text, size_t len);

/* The row is complete: columns without a value have a null. */
void lull_frame_end_row(struct lull_frame *f);

/* A text of a column, by its number. */
const char *lull_frame_text(const struct lull_frame_col *col, u32 code);

/* How many texts a column has. */
u32 lull_frame_n_texts(const struct lull_frame_col *col);

/* ---- from a report ---- */

/*
 * The result of one SQL statement. LULL_E_USAGE for SQL that is wrong and for more than one
 * statement; LULL_E_IO if a limit ended it.
 */
int lull_frame_query(struct lull_frame *f, struct lull_query *q, const char *sql,
		     const struct lull_query_limits *limits, struct lull_err *err);

/*
 * Columns of a table, by name; n_names 0 for all. Reads the report's columns without SQL where it
 * can: some 100 million values a second. LULL_E_USAGE for names that are not there.
 */
int lull_frame_table(struct lull_frame *f, struct lull_query *q, const char *table,
		     const char *const *names, size_t n_names, struct lull_err *err);

/* All tables with their columns: table, column, type, rows, doc. */
void lull_frame_catalog(struct lull_frame *f, struct lull_query *q);

#endif
