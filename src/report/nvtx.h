/*
 * nvtx - what the reports about ranges share: names, styles, and the sums by name.
 *
 * Ranges of lull.h count as NVTX ranges of the default domain. A range that was open when the
 * recording ended counts up to that moment.
 */
#ifndef LULL_REPORT_NVTX_H
#define LULL_REPORT_NVTX_H

#include "base/str.h"
#include "model/nest.h"
#include "report/report.h"

/* Append "<domain>:<text>", the usual name of a range; the default domain is empty. */
void lull_nvtx_name(struct lull_str *to, struct lull_reader *r, u32 name, u32 domain);

/* Append the same for a label; nothing for label 0. */
void lull_nvtx_label_name(struct lull_str *to, struct lull_reader *r, u32 label);

/* "PushPop" or "StartEnd". */
const char *lull_nvtx_style(bool is_startend);

/* The columns that lull_nvtx_put_place() fills. */
#define LULL_NVTX_PLACE_COLUMNS                                                                    \
	{ .name = "Lvl",                                                                           \
	  .kind = LULL_OUT_INT,                                                                    \
	  .doc = "ranges around it on the thread's stack of the domain" },                         \
		{ .name = "NumChild",                                                              \
		  .kind = LULL_OUT_INT,                                                            \
		  .doc = "ranges directly inside it",                                              \
		  .is_spare = true },                                                              \
		{ .name = "RangeId", .kind = LULL_OUT_ID, .doc = "1 to n in the order of Start" }, \
		{ .name = "ParentId",                                                              \
		  .kind = LULL_OUT_ID,                                                             \
		  .doc = "RangeId of the range around it, empty at level 0",                       \
		  .is_spare = true },                                                              \
	{                                                                                          \
		.name = "RangeStack", .kind = LULL_OUT_TEXT,                                       \
		.doc = "RangeIds from the outermost to this one", .is_spare = true                 \
	}

/* Fill the cells that say where a range stands in the tree. */
void lull_nvtx_put_place(struct lull_out *out, const struct lull_nest *nest, u32 number);

/* Which ranges lull_nvtx_sum() counts. */
enum lull_nvtx_styles {
	LULL_NVTX_PUSHPOP = 1,
	LULL_NVTX_STARTEND = 2,
	LULL_NVTX_BOTH = 3, /* and more cells say which, and the share of the step */
};

/*
 * Rows of sums by name: LULL_SUM_COLUMNS, the style if it is LULL_NVTX_BOTH, the name. For
 * LULL_NVTX_BOTH the last column is the share of the step, and is left out where no steps are
 * known or finding them would take long.
 */
void lull_nvtx_sum(struct lull_reader *r, struct lull_out *out,
		   const struct lull_report_options *options, enum lull_nvtx_styles styles);

#endif
