/*
 * nsys - what the files of the importer of nsys exports share: the database, and the rows of the
 * report that its ids stand for.
 *
 * Tables are read by the names of the columns that are wanted; one that the file lacks reads as
 * null, one that we do not know is left alone, so that schema 2.x to 3.30 and what is to come read
 * the same way.
 *
 * Ids:       a globalTid is hardware, virtual machine, process and thread in 64 bits; what is above
 *            the thread tells processes apart.
 * Our own:   a file that lull exported has tables LULL_*. Their rows come first and keep their
 *            numbers; rows of nsys tables are then given to the process and thread that was there
 *            at the time.
 * Memory:    bounded by what the report has of names, launches, labels, threads and call stacks.
 */
#ifndef LULL_IMPORT_NSYS_H
#define LULL_IMPORT_NSYS_H

#include <sqlite3.h>

#include "base/intern.h"
#include "base/map.h"
#include "base/vec.h"
#include "import/import.h"

/* A row of a dimension that something may mean, the next one with the same key after it. */
struct lull_nsys_candidate {
	u32 row;
	u64 start_ns;
	u32 next; /* index + 1, 0 at the end */
};

/* Rows by key, and by time where several have the same. */
struct lull_nsys_keys {
	struct lull_map heads; /* index + 1 */
	struct lull_vec all;   /* struct lull_nsys_candidate */
};

struct lull_nsys {
	struct lull_import_job *job;
	struct lull_writer *writer;
	sqlite3 *db;
	sqlite3_stmt *string_stmt;	 /* StringIds by id, NULL if there are none */
	struct lull_map strings;	 /* id of StringIds to ours */
	struct lull_nsys_keys processes; /* by globalPid >> 24 */
	struct lull_nsys_keys threads;	 /* by process and tid */
	struct lull_map devices;	 /* by process and number */
	struct lull_map streams;	 /* by hash of process, device, context, stream */
	struct lull_map contexts;	 /* device of process and context */
	struct lull_intern launches, labels, frames, stacks;
	struct lull_map modules;    /* by string id */
	struct lull_map domains;    /* name of process and domain */
	struct lull_map categories; /* name by hash of process, domain, category */
	struct lull_map chains;	    /* stack by hash of table and id */
	struct lull_vec read;	    /* char *: tables that were read */
	u64 end_ns;		    /* of the recording; 0 if not said */
	u64 n_damaged;		    /* tables that could not be read to their end */
	char damage[128];	    /* what SQLite said about the first */
	bool is_ours;		    /* has tables of lull */
	void *ctx;		    /* of the row function that runs now */
};

/* Called for each row; columns are numbered as they were requested. */
typedef void lull_nsys_row_fn(struct lull_nsys *n, sqlite3_stmt *row);

/* ---- nsys_db.c ---- */

/* Open the database and check that it is one. */
int lull_nsys_open(struct lull_nsys *n, struct lull_err *err);

/* Close it. */
void lull_nsys_close(struct lull_nsys *n);

/* Whether the file has a table of this name. */
bool lull_nsys_has(struct lull_nsys *n, const char *table);

/*
 * Call `fn` for each row of the table, if there is one; `tail` is the end of the SELECT, such as
 * "ORDER BY start", "" for none. `cols` ends with NULL.
 */
void lull_nsys_each(struct lull_nsys *n, const char *table, const char *const *cols,
		    const char *tail, lull_nsys_row_fn *fn);

/* Take this table for read: what it says is known already. */
void lull_nsys_skip(struct lull_nsys *n, const char *table);

/* Count rows of tables that were not read, by name. */
void lull_nsys_count_rest(struct lull_nsys *n);

/* Values of a row; null and what is no number are 0. Times and sizes are not negative. */
u64 lull_nsys_u64(sqlite3_stmt *row, int col);
u32 lull_nsys_u32(sqlite3_stmt *row, int col);
bool lull_nsys_is_null(sqlite3_stmt *row, int col);

/* The string whose id is in this column. */
u32 lull_nsys_string(struct lull_nsys *n, sqlite3_stmt *row, int col);

/* The text of this column as a string. */
u32 lull_nsys_text(struct lull_nsys *n, sqlite3_stmt *row, int col);

/* ---- nsys_ids.c ---- */

/* Rows with this key, oldest first. */
void lull_nsys_keys_add(struct lull_nsys_keys *k, u64 key, u32 row, u64 start_ns);

/* The process of a globalPid or globalTid at this time, made if there is none. */
u32 lull_nsys_process(struct lull_nsys *n, u64 global_id, u64 start_ns);

/* The lane of a globalTid at this time, made if there is none. */
u32 lull_nsys_thread(struct lull_nsys *n, u64 global_id, u64 start_ns);

/* The device of this number that a process sees. */
u32 lull_nsys_device(struct lull_nsys *n, u32 process, u32 device_id);

struct lull_nsys_stream {
	u32 process, device_id, context_id, stream_id;
	bool is_device_known; /* synchronisations name device 0, whatever theirs is */
};

/* The lane of a stream. */
u32 lull_nsys_stream_lane(struct lull_nsys *n, const struct lull_nsys_stream *s);

/* The label of these values. */
u32 lull_nsys_label(struct lull_nsys *n, const struct lull_label_row *label);

/* The launch of these values. */
u32 lull_nsys_launch(struct lull_nsys *n, const struct lull_launch_row *launch);

/* ---- call chains, nsys_os.c ---- */

/* Whose ids are meant: each table of chains has its own. */
enum { LULL_NSYS_OS_CHAINS, LULL_NSYS_SAMPLE_CHAINS, LULL_NSYS_CUDA_CHAINS };

/* Read a table of chains. */
void lull_nsys_read_chains(struct lull_nsys *n, const char *table, u64 salt);

/* The stack of the chain whose id is in this column, 0 if there is none. */
u32 lull_nsys_stack(struct lull_nsys *n, sqlite3_stmt *row, int col, u64 salt);

/* ---- one function for each kind of tables ---- */

/* nsys_own.c: what lull wrote besides. True if there is something. */
bool lull_nsys_read_own(struct lull_nsys *n);

/* nsys_target.c: processes, threads, devices, the recording. */
void lull_nsys_read_target(struct lull_nsys *n);

/* nsys_gpu.c: kernels, copies, calls, waits, memory. */
void lull_nsys_read_gpu(struct lull_nsys *n);

/* nsys_nvtx.c: ranges, marks. */
void lull_nsys_read_nvtx(struct lull_nsys *n);

/* nsys_os.c: calls of the C library, samples, scheduling. */
void lull_nsys_read_os(struct lull_nsys *n);

/* nsys_more.c: calls of MPI, unified memory. */
void lull_nsys_read_more(struct lull_nsys *n);

/* Kinds of copies that are moves of unified memory: in, out, across. */
#define LULL_NSYS_UM_FIRST 11
#define LULL_NSYS_UM_LAST  13

#endif
