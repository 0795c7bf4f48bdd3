#include "query/percentile.h"

#include <math.h>

#include "base/sort.h"
#include "base/types.h"

#define FIRST_VALUES 256

/* What SQLite keeps for a group; all zero at first. Memory is SQLite's, so that its limit holds. */
struct group {
	f64 *values;
	u64 n, room;
	f64 percent;
	bool has_failed;
};

static void fail(sqlite3_context *ctx, struct group *g, const char *sentence)
{
	g->has_failed = true;
	sqlite3_result_error(ctx, sentence, -1);
}

static bool grow(sqlite3_context *ctx, struct group *g)
{
	u64 room = g->room ? 2 * g->room : FIRST_VALUES;
	f64 *values = sqlite3_realloc64(g->values, room * sizeof(*values));

	if (!values) {
		g->has_failed = true;
		sqlite3_result_error_nomem(ctx);
		return false;
	}
	g->values = values;
	g->room = room;
	return true;
}

/* The second argument, the same for all rows; 50 if there is none. */
static bool take_percent(sqlite3_context *ctx, struct group *g, int n_args, sqlite3_value **args)
{
	f64 percent = n_args > 1 ? sqlite3_value_double(args[1]) : 50;

	if (n_args > 1 && sqlite3_value_numeric_type(args[1]) != SQLITE_INTEGER &&
	    sqlite3_value_numeric_type(args[1]) != SQLITE_FLOAT)
		percent = -1;
	if (!(percent >= 0 && percent <= 100))
		fail(ctx, g, "percentile(X, P): P has to be a number from 0 to 100");
	else if (g->n && percent != g->percent)
		fail(ctx, g, "percentile(X, P): P has to be the same in all rows");
	g->percent = percent;
	return !g->has_failed;
}

static void step(sqlite3_context *ctx, int n_args, sqlite3_value **args)
{
	struct group *g = sqlite3_aggregate_context(ctx, sizeof(*g));
	int type = sqlite3_value_numeric_type(args[0]);

	if (!g) {
		sqlite3_result_error_nomem(ctx);
		return;
	}
	if (g->has_failed || !take_percent(ctx, g, n_args, args) || type == SQLITE_NULL)
		return;
	if (type != SQLITE_INTEGER && type != SQLITE_FLOAT) {
		fail(ctx, g, "median() and percentile() are of numbers");
		return;
	}
	if (g->n == g->room && !grow(ctx, g))
		return;
	g->values[g->n++] = sqlite3_value_double(args[0]);
}

static void finish(sqlite3_context *ctx)
{
	struct group *g = sqlite3_aggregate_context(ctx, 0);
	f64 at;
	u64 below;

	if (!g)
		return;
	if (g->n && !g->has_failed) {
		lull_sort_f64(g->values, g->n);
		at = g->percent / 100 * (f64)(g->n - 1);
		below = (u64)floor(at);
		at -= (f64)below;
		sqlite3_result_double(ctx, at > 0 ? g->values[below] * (1 - at) +
							    g->values[below + 1] * at
						  : g->values[below]);
	}
	sqlite3_free(g->values);
	g->values = NULL;
	g->n = g->room = 0;
}

int lull_percentile_register(sqlite3 *db)
{
	int flags = SQLITE_UTF8 | SQLITE_DETERMINISTIC;
	int rc = sqlite3_create_function_v2(db, "median", 1, flags, NULL, NULL, step, finish, NULL);

	if (rc == SQLITE_OK)
		rc = sqlite3_create_function_v2(db, "percentile", 2, flags, NULL, NULL, step,
						finish, NULL);
	return rc;
}
