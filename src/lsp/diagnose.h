/*
 * diagnose - the findings of a report, with the files they are about as they are here.
 */
#ifndef LULL_LSP_DIAGNOSE_H
#define LULL_LSP_DIAGNOSE_H

#include "base/err.h"
#include "base/types.h"
#include "base/vec.h"

struct lull_diagnosis {
	char *file; /* real path */
	u32 line;
	const char *cause; /* id */
	char *text;
	bool is_first;
	bool is_old; /* the file has changed since the recording */
};

/*
 * Those of a report whose file is found: at its path, below `folder`, where the program ran, or
 * beside the report. Into `all` (struct lull_diagnosis).
 */
int lull_diagnose(const char *report, const char *folder, struct lull_vec *all,
		  struct lull_err *err);

/* Free them. */
void lull_diagnose_release(struct lull_vec *all);

#endif
