/*
 * nvtx - what the reports about ranges share: names, styles, and the sums by name.
 *
 * Ranges of lull.h count as NVTX ranges of the default domain. A range that was open when the
 * recording ended counts up to that moment.
 */
#ifndef LULL_REPORT_NVTX_H
#define LULL_REPORT_NVTX_H

#include "base/str.h"
#include "report/report.h"

/* Bit of range.flags: the range was started and ended by id, not pushed and popped. */
#define LULL_RANGE_START_END 4u

/* Append "<domain>:<text>", the name everybody knows a range by; the default domain is empty. */
void lull_nvtx_name(struct lull_str *to, struct lull_reader *r, u32 name, u32 domain);

/* Which ranges lull_nvtx_sum() counts. */
enum lull_nvtx_styles {
	LULL_NVTX_PUSHPOP = 1,
	LULL_NVTX_STARTEND = 2,
	LULL_NVTX_BOTH = 3, /* and one more cell says which */
};

/* Rows of sums by name: LULL_SUM_COLUMNS, the style if it is LULL_NVTX_BOTH, the name. */
void lull_nvtx_sum(struct lull_reader *r, struct lull_out *out,
		   const struct lull_report_options *options, enum lull_nvtx_styles styles);

#endif
