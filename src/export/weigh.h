/*
 * weigh - samples put together by thread and call stack: what profile formats are made of.
 *
 * Which samples:  those of CPUs, or those of Python if these are asked for (--tables pysample) or
 *                 the only ones. Python threads that did not run since the sample before are not
 *                 counted, as in the report python_sum.
 * Memory:         24 bytes for each thread and stack that was met.
 */
#ifndef LULL_EXPORT_WEIGH_H
#define LULL_EXPORT_WEIGH_H

#include "base/str.h"
#include "export/export.h"

/* Frames of one stack; deeper ones lose their outermost frames, which are then "[cut off]". */
#define LULL_WEIGH_DEPTH 4096u

struct lull_weigh_entry {
	u32 lane;
	u32 stack; /* innermost node, 0 if there is none */
	u64 n_samples;
	u64 weight_ns; /* CPU time; 0 for Python samples */
};

struct lull_weigh {
	struct lull_reader *reader;
	bool is_python;
	struct lull_vec entries; /* struct lull_weigh_entry, by lane and stack */
	const struct lull_stack_row *nodes;
	const struct lull_frame_row *frames;
	const struct lull_module_row *modules;
	size_t n_nodes, n_frames, n_modules;
};

/* Count the samples that the options want; LULL_E_NOT_FOUND if the report has none at all. */
int lull_weigh_init(struct lull_weigh *s, struct lull_reader *r,
		    const struct lull_export_options *options, struct lull_err *err);

/* Free everything. */
void lull_weigh_release(struct lull_weigh *s);

/*
 * The frames of a stack, innermost first, as row ids; returns how many. *is_cut says whether there
 * were more.
 */
size_t lull_weigh_frames(const struct lull_weigh *s, u32 stack, u32 frames[LULL_WEIGH_DEPTH],
			 bool *is_cut);

/* Append what a frame is called: its function, or where it lies if that has no name. */
void lull_weigh_name(const struct lull_weigh *s, u32 frame, struct lull_str *to);

/* Append the name of the process of a lane, and of its thread, with their numbers: "main 10". */
void lull_weigh_process(const struct lull_weigh *s, u32 lane, struct lull_str *to);
void lull_weigh_thread(const struct lull_weigh *s, u32 lane, struct lull_str *to);

#endif
