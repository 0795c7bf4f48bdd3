/*
 * lull_read.h - read reports of the lull profiler from your own program. C99 and C++.
 *
 *	struct lull_read_error error;
 *	struct lull_read *report;
 *	struct lull_read_rows *rows;
 *	struct lull_read_column dur;
 *
 *	if (lull_read_open("report1.lull", &report, &error))
 *		return puts(error.text);
 *	if (!lull_read_table(report, "kernels", (const char *[]){ "dur" }, 1, &rows, &error)) {
 *		lull_read_column(rows, 0, &dur);
 *		... ((const int64_t *)dur.values)[i] for i < dur.n_rows ...
 *		lull_read_rows_free(rows);
 *	}
 *	lull_read_close(report);
 *
 * Link with liblull-read.so. Tables and columns are those of `lull query`, answers those of the
 * commands. Python's `lull.open()` is made of this.
 *
 * Errors:   a function that can fail returns 0, or a negative number and a sentence in *error. No
 *           file, damaged or not, ends the process, and neither does missing memory; after that the
 *           report only can be closed.
 * Threads:  any, but one call at a time in a report. lull_read_stop() is for another thread.
 * Signals:  none are used. The file is read, not mapped, so that it may shrink meanwhile.
 * Stable:   functions and structs stay as they are. New ones raise LULL_READ_INTERFACE.
 */
#ifndef LULL_READ_H
#define LULL_READ_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define LULL_READ_INTERFACE 1

struct lull_read;      /* an open report */
struct lull_read_rows; /* columns in memory */

enum lull_read_code {
	LULL_READ_OK = 0,
	LULL_READ_USAGE = -1,	    /* what was asked for is wrong: SQL, a name */
	LULL_READ_IO = -2,	    /* the system refused, or a limit ended the query */
	LULL_READ_FORMAT = -3,	    /* the file is damaged, or no report */
	LULL_READ_NO_MEMORY = -4,   /* there is no memory */
	LULL_READ_UNSUPPORTED = -5, /* this report or this version cannot do it */
	LULL_READ_NOT_FOUND = -6,   /* what was named does not exist */
};

struct lull_read_error {
	int code;
	char text[512]; /* one sentence */
};

/* LULL_READ_INTERFACE of the library, and its version as text. */
int lull_read_interface(void);
const char *lull_read_version(void);

/* Open a report, or a file of another tool that lull can import. */
int lull_read_open(const char *path, struct lull_read **report, struct lull_read_error *error);

/* Close it. Rows that were read stay. Accepts NULL. */
void lull_read_close(struct lull_read *report);

/*
 * What a command would have warned of since the last call, one sentence a line, such as that the
 * file was cut off. "" for nothing. Valid until the next call for this report.
 */
const char *lull_read_warnings(struct lull_read *report);

/* ---- rows ---- */

/* Columns of a table by name; n_columns 0 for all of them. */
int lull_read_table(struct lull_read *report, const char *table, const char *const *columns,
		    size_t n_columns, struct lull_read_rows **rows, struct lull_read_error *error);

/* All tables with their columns: table, column, type, rows (null if not counted), doc. */
int lull_read_tables(struct lull_read *report, struct lull_read_rows **rows,
		     struct lull_read_error *error);

/* The result of a SELECT; ends with an error after `timeout_s` seconds, 0 for no limit. */
int lull_read_sql(struct lull_read *report, const char *sql, double timeout_s,
		  struct lull_read_rows **rows, struct lull_read_error *error);

/* A report of `lull stats`, such as "phases" or "cuda_gpu_kern_sum:base". */
int lull_read_stats(struct lull_read *report, const char *name, struct lull_read_rows **rows,
		    struct lull_read_error *error);

/* End the SQL that another thread runs in this report. May be called from a signal handler. */
void lull_read_stop(struct lull_read *report);

/*
 * Call this some 20 times a second while SQL runs, in the thread that runs it; NULL: nothing. It
 * may call lull_read_stop(). For interpreters, which otherwise do not notice signals.
 */
int lull_read_watch(struct lull_read *report, void (*watch)(void), struct lull_read_error *error);

enum lull_read_kind {
	LULL_READ_NULL = 0, /* no value in any row */
	LULL_READ_INT64 = 1,
	LULL_READ_FLOAT64 = 2,
	LULL_READ_TEXT = 3,
};

/* One column. Everything in it belongs to the rows. */
struct lull_read_column {
	const char *name;
	int kind; /* enum lull_read_kind */
	uint64_t n_rows, n_nulls;
	/*
	 * int64_t, double, or for texts uint32_t: which of `texts`. Rows without a value have 0.
	 */
	const void *values;
	const uint8_t *present;	  /* bit per row, the lowest first; NULL if there is no null */
	const char *texts;	  /* of LULL_READ_TEXT: all texts one after the other, UTF-8 */
	const int64_t *text_offs; /* where each begins; n_texts + 1 of them */
	uint64_t n_texts;
};

/* How many there are. */
uint64_t lull_read_n_rows(const struct lull_read_rows *rows);
size_t lull_read_n_columns(const struct lull_read_rows *rows);

/* Describe a column, which must exist. */
void lull_read_column(const struct lull_read_rows *rows, size_t ix,
		      struct lull_read_column *column);

/* Free them, once nothing that was exported uses them any more. Accepts NULL. */
void lull_read_rows_free(struct lull_read_rows *rows);

/* ---- Arrow: the C data interface, as its specification has it ---- */

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_NULLABLE 2

struct ArrowSchema {
	const char *format;
	const char *name;
	const char *metadata;
	int64_t flags;
	int64_t n_children;
	struct ArrowSchema **children;
	struct ArrowSchema *dictionary;
	void (*release)(struct ArrowSchema *);
	void *private_data;
};

struct ArrowArray {
	int64_t length;
	int64_t null_count;
	int64_t offset;
	int64_t n_buffers;
	int64_t n_children;
	const void **buffers;
	struct ArrowArray **children;
	struct ArrowArray *dictionary;
	void (*release)(struct ArrowArray *);
	void *private_data;
};

#endif

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
	int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *out);
	int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *out);
	const char *(*get_last_error)(struct ArrowArrayStream *);
	void (*release)(struct ArrowArrayStream *);
	void *private_data;
};

#endif

/*
 * The rows as a struct array: no value is copied, and the rows stay until the array is released.
 * Texts are dictionaries of large_utf8.
 */
int lull_read_arrow(struct lull_read_rows *rows, struct ArrowSchema *schema,
		    struct ArrowArray *array, struct lull_read_error *error);

/* The same as a stream of one batch. */
int lull_read_arrow_stream(struct lull_read_rows *rows, struct ArrowArrayStream *stream,
			   struct lull_read_error *error);

/* ---- answers, as JSON and as text for people; free with lull_read_free() ---- */

/*
 * The answer of `lull why`: as JSON (`lull why --format json`) and as text of at most `width`
 * columns. `questions` are those of --what-if, one a line; NULL for none. Each of `json` and `text`
 * may be NULL.
 */
int lull_read_why(struct lull_read *report, const char *questions, int width, char **json,
		  char **text, struct lull_read_error *error);

/* The answer of `lull info --format json`. */
int lull_read_info(struct lull_read *report, char **json, struct lull_read_error *error);

/* The answer of `lull diff --format json --top 0` for these two reports. */
int lull_read_diff(struct lull_read *before, struct lull_read *after, char **json,
		   struct lull_read_error *error);

/* Free an answer. Accepts NULL. */
void lull_read_free(char *answer);

#ifdef __cplusplus
}
#endif
#endif
