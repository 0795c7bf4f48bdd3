/*
 * diff - what two reports did differently: names that appeared, vanished or changed.
 *
 * What it gives:  for each kind of thing (kernels, calls, copies, ...) its names with number, time
 *                 and bytes per step on both sides.
 * Per step:       only what began in a step counts, divided by the steps, so that recordings of
 *                 different length compare; without steps on both sides, whole recordings.
 * Ownership:      names are copied; borrows nothing after lull_diff_add().
 *
 * To add a kind: diff_X.c with const struct lull_diff_kind lull_diff_X at its end, DIFF(X) in
 * diffs.def.
 */
#ifndef LULL_COMPARE_DIFF_H
#define LULL_COMPARE_DIFF_H

#include "base/intern.h"
#include "base/types.h"
#include "base/vec.h"
#include "compare/windows.h"
#include "trace/reader.h"

enum { LULL_BEFORE = 0, LULL_AFTER = 1 };

/* One name, both sides; per step once lull_diff_finish() ran. */
struct lull_diff_item {
	u32 name; /* in lull_diff.names */
	f64 n[2];
	f64 total_ns[2];
	f64 size_bytes[2];
};

struct lull_diff {
	const struct lull_diff_kind *kind;
	struct lull_intern names;
	struct lull_vec items; /* struct lull_diff_item */
	/* What is being read; for the kinds. */
	const struct lull_vec *windows; /* struct lull_span; NULL for all time */
	int side;
};

struct lull_diff_kind {
	const char *name;  /* in JSON; never changes */
	const char *title; /* heading */
	bool has_bytes;
	bool is_of_host; /* threads do it: windows of the host count */
	/* Call lull_diff_count() for everything of this kind in the report. */
	void (*collect)(struct lull_reader *r, struct lull_diff *to);
};

/* All of diffs.def in its order, NULL at the end. */
extern const struct lull_diff_kind *const lull_diff_kinds[];

/* Nothing compared yet. */
void lull_diff_init(struct lull_diff *d, const struct lull_diff_kind *kind);

/* Free it. */
void lull_diff_release(struct lull_diff *d);

/* Read one side; only what began in one of the windows, or all if that is NULL. */
void lull_diff_add(struct lull_diff *d, struct lull_reader *r, int side,
		   const struct lull_windows *windows);

/* Divide by the steps of each side and sort by how much the time changed, most first. */
void lull_diff_finish(struct lull_diff *d, f64 n_before, f64 n_after);

/* For kinds: one thing of this name. */
void lull_diff_count(struct lull_diff *d, const char *name, u64 start_ns, u64 dur_ns,
		     u64 size_bytes);

/*
 * For kinds: every row of a table with start_ns and dur_ns. `column` holds string ids; or ids of
 * `labels`, a DIM table whose column `name` holds them (0 for none).
 */
void lull_diff_count_table(struct lull_diff *d, struct lull_reader *r, enum lull_table table,
			   const char *column, enum lull_table labels);

/* The item's name, borrowed. */
const char *lull_diff_name(const struct lull_diff *d, const struct lull_diff_item *item);

/* What happened to it: "appeared", "vanished", "changed" or "same". */
const char *lull_diff_state(const struct lull_diff_item *item);

#endif
