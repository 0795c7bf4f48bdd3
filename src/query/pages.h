/*
 * pages - rows as pages of a SQLite file, without SQLite.
 *
 * A table of a SQLite file is a tree whose leaves hold the rows by number. Rows that come in order
 * fill leaf after leaf, and the pages above follow from them; nothing is searched or rewritten. The
 * format is documented and promised to stay (sqlite.org/fileformat2.html).
 *
 * Why not INSERT: it has to be ready for any order. bench_own fills a table of 18 columns with
 * both,
 *                 aarch64: 3.2 M rows/s here, 0.55 by INSERT (5.8 times). A whole `lull export -t
 *                 sqlite` takes 0.76 s of CPU where INSERT INTO ... SELECT takes 1.60 s. If the
 *                 ratio falls below the target in tools/bench-table, INSERT is to take over.
 *
 * How to use:     SQLite makes the file and its tables and closes it; then each table is filled:
 *
 *	lull_pages_open(&p, path, err);
 *	lull_pages_begin(p, root_page);
 *	for each row: lull_pages_add(p, values, n);
 *	lull_pages_end(p);
 *	rc = lull_pages_close(p, err);
 *
 * What it needs:  an empty table without an index, and a file without auto-vacuum.
 * Errors:         a failing write is kept and returned by lull_pages_close().
 * Memory:         a MiB, and a page for each level of the tree.
 */
#ifndef LULL_QUERY_PAGES_H
#define LULL_QUERY_PAGES_H

#include "base/err.h"
#include "base/types.h"
#include "query/table.h"

struct lull_pages;

/* Open the file to add to it. LULL_E_FORMAT if its pages are not as we write them. */
int lull_pages_open(struct lull_pages **p, const char *path, struct lull_err *err);

/* Begin to fill the table whose first page is `root`. */
void lull_pages_begin(struct lull_pages *p, u32 root);

/* Add a row. */
void lull_pages_add(struct lull_pages *p, const struct lull_value *values, int n);

/* End the table. */
void lull_pages_end(struct lull_pages *p);

/* Write what is left and free everything; fails if something could not be written. */
int lull_pages_close(struct lull_pages *p, struct lull_err *err);

#endif
