/*
 * vtab - the tables of table.h as virtual tables of SQLite.
 *
 * What it gives:  a module "lull"; CREATE VIRTUAL TABLE x USING lull makes the table `x` readable.
 *                 Bounds on the columns of time are pushed down to the block index, equality with a
 *                 key column to its hash; only the columns in use are decoded.
 */
#ifndef LULL_QUERY_VTAB_H
#define LULL_QUERY_VTAB_H

#include <sqlite3.h>

#include "query/table.h"

/* Register the module over these tables, which live as long as the connection. */
int lull_vtab_register(sqlite3 *db, struct lull_vtabs *tables);

#endif
