/*
 * import - a report made from the file of another tool.
 *
 * What it gives:  the list of formats; recognition by content, not by name; a `.lull` file of a
 *                 foreign one; and a reader for any file that lull can read.
 * What is lost:   an importer maps all it can. Events that it cannot map are counted by kind in the
 *                 table `issue` (import_unmapped).
 * Damage:         a file that ends in the middle gives what came before, with an issue
 *                 (import_cut).
 * Memory:         bounded, whatever the size of the file: it is streamed.
 * Threads:        one at a time.
 *
 * To add one:     import_NAME.c with `const struct lull_import lull_import_NAME` at its end,
 *                 the line IMPORT(NAME) in imports.def,
 *                 a test with a real file, and a fuzzer in test/fuzz/,
 *                 its name in doc/lull-import.1.md.
 */
#ifndef LULL_IMPORT_IMPORT_H
#define LULL_IMPORT_IMPORT_H

#include "base/err.h"
#include "text/progress.h"
#include "base/stream.h"
#include "base/types.h"
#include "trace/issue.h"
#include "trace/reader.h"
#include "trace/writer.h"

/* How many bytes of a file, decompressed, a format gets to recognise it. */
#define LULL_IMPORT_HEAD_BYTES (64u << 10)

struct lull_import_options {
	const char *type;  /* name of the format; NULL: recognise it */
	bool is_quiet;	   /* show no progress */
	bool is_temporary; /* the report need not survive a crash: do not wait for the disk */
};

/* The result of an import. */
struct lull_import_result {
	const struct lull_import *format;
	u64 in_bytes;	/* length of the file */
	u64 n_rows;	/* rows of what happened in the report */
	u64 size_bytes; /* of the report */
	u64 n_unmapped; /* events of the file that have no place in a report */
	u64 n_bad;	/* events of the file that could not be understood */
	bool is_cut;	/* the file ended in the middle */
};

/* One import in progress, as a format sees it. */
struct lull_import_job {
	const char *path;	    /* the file to import; it may be compressed */
	struct lull_stream *stream; /* its bytes, decompressed, from the first */
	struct lull_writer *writer; /* NULL before lull_import_begin() */
	const struct lull_import_options *options;
	struct lull_import_result *result; /* run() counts n_unmapped, n_bad, is_cut */
	/* Follows the stream; a format that reads the file otherwise says how far it is. */
	struct lull_progress progress;
	const char *out_path; /* private */
	char *plain_dir;      /* private: folder of lull_import_plain_path() */
	char *plain_path;     /* private */
};

struct lull_import {
	const char *name;    /* lull import --type NAME */
	const char *summary; /* what files these are */
	/*
	 * How sure these first bytes of a file are this format: 0 not at all, 100 entirely. The
	 * best one gets the file.
	 */
	int (*sniff)(const u8 *head, size_t len);
	/*
	 * Read the file into job->writer, which it opens with lull_import_begin(). Sealing is done
	 * by the caller; after a failure nothing is left.
	 */
	int (*run)(struct lull_import_job *job, struct lull_err *err);
};

/* All formats, NULL at the end. */
extern const struct lull_import *const lull_imports[];

/* The format with this name, or NULL. */
const struct lull_import *lull_import_find(const char *name);

/* ---- for commands ---- */

/*
 * Make the report `out_path` of a foreign file. *result may be NULL, and so may `options`.
 * LULL_E_UNSUPPORTED if no format recognises it.
 */
int lull_import_file(const char *path, const char *out_path,
		     const struct lull_import_options *options, struct lull_import_result *result,
		     struct lull_err *err);

/*
 * Open any file that lull can read: a report as it is; a foreign file through a temporary report in
 * $TMPDIR (default /tmp), which has no name any more when this returns and is gone with the reader.
 * For X.nsys-rep or X that are not there X.lull is opened (other_name.h). Closed formats give
 * LULL_E_UNSUPPORTED, with a message that says how to convert them.
 */
int lull_import_open(const char *path, struct lull_reader **r, struct lull_err *err);

/* Whether the file begins as a report does. */
bool lull_import_is_report(const char *path);

/* ---- for formats ---- */

/*
 * Open job->writer. The importer fills in the clock of *info; flags and id are set here. May be
 * called again to start over, if the file turns out to be different from what its start said; rows
 * written so far are dropped.
 */
int lull_import_begin(struct lull_import_job *job, const struct lull_file_info *info,
		      struct lull_err *err);

/*
 * A path under which the unpacked file can be opened, for libraries that read files themselves. The
 * file's own if it is not packed, else that of a temporary copy, which lives as long as the job.
 */
int lull_import_plain_path(struct lull_import_job *job, const char **path, struct lull_err *err);

/* Add a row to the table `meta`; empty values are left out. */
void lull_import_meta(struct lull_import_job *job, const char *key, const char *value, size_t len);

#endif
