/*
 * kernel_collect - the half of `lull kernel` that measures: its options, the run, and the lists of
 * what can be measured.
 *
 *	struct lull_kernel_collect k;
 *	lull_kernel_collect_init(&k);
 *	n = lull_kernel_collect_opts(&k, table, room);	(for the table of the command)
 *	... parse ...
 *	if (lull_kernel_collect_is_list(&k))
 *		rc = lull_kernel_collect_list(&k, err);
 *	else
 *		rc = lull_kernel_collect(&k, argv + first, &done, err);
 *	lull_kernel_collect_release(&k);
 */
#ifndef LULL_CMD_KERNEL_KERNEL_COLLECT_H
#define LULL_CMD_KERNEL_KERNEL_COLLECT_H

#include "base/err.h"
#include "text/opt.h"
#include "base/types.h"
#include "base/vec.h"

/* The words of the command line. */
struct lull_kernel_collect {
	const char *kernel_name, *nvtx_include, *output, *chip, *from, *session;
	char *id_name; /* of --kernel-id, which kernel_name may be; owned */
	struct lull_vec sets, sections, metrics, devices, env;
	u64 skip, count, top;
	f64 timeout_s;
	int replay, clock_control, cache_control, target_processes;
	bool force, quiet, discard_env, nvtx, list_metrics, list_sets, list_sections;
};

/* The result of a run. */
struct lull_kernel_done {
	char *report;	 /* path, NULL if there is none; free it */
	int exit_status; /* of the program */
};

/* Nothing asked for yet. */
void lull_kernel_collect_init(struct lull_kernel_collect *k);

/* Write the options, at most `room`; how many. There is neither usage nor end among them. */
size_t lull_kernel_collect_opts(struct lull_kernel_collect *k, struct lull_opt *to, size_t room);

/* Whether a list is asked for, and print it. */
bool lull_kernel_collect_is_list(const struct lull_kernel_collect *k);
int lull_kernel_collect_list(const struct lull_kernel_collect *k, struct lull_err *err);

/*
 * Run the program and measure its kernels into a report. LULL_E_USAGE for options that make no
 * sense. Closing lines go to standard error unless it is to be quiet.
 */
int lull_kernel_collect(const struct lull_kernel_collect *k, char **argv,
			struct lull_kernel_done *done, struct lull_err *err);

/* Free the lists. */
void lull_kernel_collect_release(struct lull_kernel_collect *k);

#endif
