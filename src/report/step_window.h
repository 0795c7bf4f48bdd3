/*
 * step_window - --steady and --steps: the part of a recording that some of its steps take.
 *
 * Commands turn the option into a window of time here, and apply it as they apply --filter-time:
 * what lies in the window counts, edges included.
 *
 * Which steps:    those of the process with most work on a device, as `lull why` finds them; of a
 *                 recording without such work, those that the program marks. Numbers are those
 *                 of the report `steps`.
 * Window:         from the mark of the first step to the end of the last one, on the host.
 */
#ifndef LULL_REPORT_STEP_WINDOW_H
#define LULL_REPORT_STEP_WINDOW_H

#include <stdio.h>

#include "base/err.h"
#include "base/str.h"
#include "base/types.h"
#include "base/vec.h"
#include "model/span.h"
#include "trace/reader.h"

/* What stands on the command line. */
struct lull_step_option {
	const char *steps; /* "5", "5-10"; NULL: not given */
	bool is_steady;
};

/* The lines of a table of options (text/opt.h). */
#define LULL_STEP_OPTIONS(option)                                                            \
	OPT_STR(0, "steps", "FIRST[-LAST]", &(option)->steps,                                \
		"only these steps, such as 5-10; `lull stats -r steps` lists them"),         \
		OPT_FLAG(0, "steady", &(option)->is_steady,                                  \
			 "only the steady steps: those of `lull why`, without start-up and " \
			 "warm-up")

/* A step on the host. */
struct lull_step_span {
	u64 number;
	struct lull_span span;
};

/* The steps of a recording, by time. */
struct lull_step_list {
	struct lull_vec all; /* struct lull_step_span */
	size_t first_steady;
	u32 process; /* whose steps they are; 0: not known */
};

/* The steps that were chosen. */
struct lull_step_window {
	struct lull_span span;
	u64 first, last; /* numbers */
	size_t first_ix; /* of the first one in the list */
	size_t n, n_all;
};

/* Find the steps of a recording; none is no failure. */
void lull_step_list_init(struct lull_step_list *list, struct lull_reader *r);

/* Free them. */
void lull_step_list_release(struct lull_step_list *list);

/* Whether one of the options was given. */
static inline bool lull_step_option_given(const struct lull_step_option *option)
{
	return option->steps || option->is_steady;
}

/* LULL_E_USAGE for what can be no steps, whatever the recording. */
int lull_step_option_check(const struct lull_step_option *option, struct lull_err *err);

/*
 * The steps that the option asks for. LULL_E_NOT_FOUND, with what there is, if the recording does
 * not have them.
 */
int lull_step_window_find(struct lull_step_window *window, const struct lull_step_option *option,
			  struct lull_reader *r, struct lull_err *err);

/* Append "steps 5 to 10 (6 of 40)". */
void lull_step_window_name(struct lull_str *to, const struct lull_step_window *window);

/* Say on standard error which steps the answer is about; `path` is NULL if it is about one file. */
void lull_step_window_say(const struct lull_step_window *window, const char *path);

#endif
