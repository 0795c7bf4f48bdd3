/*
 * gate_history - `lull gate --history`: append the new side to a history, or show one.
 */
#ifndef LULL_CMD_GATE_HISTORY_H
#define LULL_CMD_GATE_HISTORY_H

#include "base/err.h"
#include "base/vec.h"
#include "compare/gate.h"

/*
 * Append what the specs (char *) measure on the new side as one run of `commit`; NULL: the one that
 * git has checked out. What a report has no data for is left out.
 */
int lull_gate_history_add(const struct lull_gate *gate, const char *folder, const char *commit,
			  const struct lull_vec *specs, struct lull_err *err);

struct lull_gate_history_view {
	const char *folder;
	const struct lull_vec *specs; /* char *; none: step_time, else what there is */
	const char *html;	      /* where to write a page to; NULL: nowhere */
	bool is_json;
};

/* Print a history, and where it changed. */
int lull_gate_history_show(const struct lull_gate_history_view *view, struct lull_err *err);

#endif
