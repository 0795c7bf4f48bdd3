/*
 * filter - which part of a recording the reports use.
 *
 * Filters restrict the time of struct lull_report_options; several filters intersect.
 */
#ifndef LULL_REPORT_FILTER_H
#define LULL_REPORT_FILTER_H

#include "report/report.h"
#include "report/step_window.h"

/* [START]/[END], times since the start of the recording such as 1.5s/2s or /100ms. */
int lull_filter_time(struct lull_report_options *options, const char *text, struct lull_err *err);

/*
 * RANGE[@DOMAIN][/INDEX]: the time of one range of that name, the first unless an index (from 0)
 * says otherwise. Without a domain the default one, @* for any; \@ for an @ in the name.
 * LULL_E_NOT_FOUND if there is no such range.
 */
int lull_filter_nvtx(struct lull_report_options *options, struct lull_reader *r, const char *text,
		     struct lull_err *err);

/*
 * The time of some steps, if the option asks for them; says which on standard error unless
 * `is_quiet`. LULL_E_NOT_FOUND if there are no such steps.
 */
int lull_filter_steps(struct lull_report_options *options, struct lull_reader *r,
		      const struct lull_step_option *option, bool is_quiet, struct lull_err *err);

#endif
