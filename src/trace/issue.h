/*
 * issue - what each number of issues.def means, and rows of the `issue` table.
 */
#ifndef LULL_TRACE_ISSUE_H
#define LULL_TRACE_ISSUE_H

#include "base/types.h"
#include "wire/wire.h"
#include "trace/writer.h"

/* Values of the column `severity`. */
enum lull_severity {
	LULL_SEVERITY_NOTICE = 1,
	LULL_SEVERITY_LOSS = 2,
	LULL_SEVERITY_ERROR = 3,
};

struct lull_issue_desc {
	u16 id;
	u8 severity; /* enum lull_severity */
	const char *name;
	const char *text;
};

/* The issue with this number, or NULL if this version does not know it. */
const struct lull_issue_desc *lull_issue_find(u16 id);

/* "notice", "loss", "error"; "?" for a number of a later version. */
const char *lull_severity_name(u8 severity);

/*
 * Add a row to the `issue` table; `process` is a row id or 0, `detail` may be NULL. Returns its id.
 */
u32 lull_issue_write(struct lull_writer *w, enum lull_issue issue, u32 process, u64 count,
		     const char *detail);

#endif
