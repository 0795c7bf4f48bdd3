/*
 * rule - the checks of `lull analyze`, one file each: reports that list what slows a program down.
 *
 * A rule is a report (report.h) with two additional sentences: what its rows mean, and what to do
 * about it. `empty` is the sentence for no rows. It shows the worst rows only: 50, or rows=N, -1
 * for all.
 *
 * To add one: rule_X.c with const struct lull_report lull_rule_X at its end, RULE(X) in rules.def,
 * its line in doc/lull-analyze.1.md, and three folders in test/golden/rule/: it fires, it does not,
 * there is no data.
 */
#ifndef LULL_REPORT_RULE_H
#define LULL_REPORT_RULE_H

#include "base/vec.h"
#include "model/link.h"
#include "report/report.h"

/* All of rules.def in its order, NULL at the end. */
extern const struct lull_report *const lull_rules[];

/* The columns of what happened, in front of the others. */
#define LULL_RULE_TIME_COLUMNS                                                           \
	{ .name = "Duration", .kind = LULL_OUT_NS, .doc = "how long it took" },          \
	{                                                                                \
		.name = "Start", .kind = LULL_OUT_NS, .is_moment = true, .doc = "begin", \
		.is_spare = true                                                         \
	}

/* ---- the worst rows ---- */

/* The longest of many things, so that no more than a few of them are kept. */
struct lull_worst {
	struct lull_vec all; /* of structs that begin with struct lull_worst_key */
	size_t n_wanted;     /* SIZE_MAX for all */
};

struct lull_worst_key {
	u64 dur_ns;
	u64 start_ns;
};

/* As many as the argument rows= says. LULL_E_USAGE if it is not a number. */
int lull_worst_init(struct lull_worst *w, size_t elem_bytes,
		    const struct lull_report_options *options, struct lull_err *err);

/* Keep a copy of the element if it is among the longest so far. */
void lull_worst_add(struct lull_worst *w, const void *element);

/* Leave only the longest, longest first, of equal ones the earliest. */
void lull_worst_finish(struct lull_worst *w);

/* Free them. */
void lull_worst_release(struct lull_worst *w);

/* ---- copies and memsets ---- */

/* A copy or memset with the call that made it. */
struct lull_memory_op {
	struct lull_worst_key key;
	struct lull_work work;
	u32 call; /* string id of its call, 0 if it was not recorded */
};

/* Whether the rule is about this one. `name` is its call's, NULL if that was not recorded. */
typedef bool lull_memory_test(const struct lull_work *work, const char *name);

/* The part of the columns that all three rules have. */
#define LULL_RULE_PLACE_COLUMNS                                                                  \
	{ .name = "Bytes",                                                                       \
	  .kind = LULL_OUT_FLOAT,                                                                \
	  .unit = "MB",                                                                          \
	  .decimals = 3,                                                                         \
	  .doc = "size; 1 MB is a million bytes" },                                              \
		{ .name = "PID", .kind = LULL_OUT_ID, .doc = "process id" },                     \
		{ .name = "Device ID", .kind = LULL_OUT_ID, .doc = "device", .is_spare = true }, \
		{ .name = "Context ID",                                                          \
		  .kind = LULL_OUT_ID,                                                           \
		  .doc = "CUDA context",                                                         \
		  .is_spare = true },                                                            \
		{ .name = "Green Context ID",                                                    \
		  .kind = LULL_OUT_ID,                                                           \
		  .doc = "green context, if it is one",                                          \
		  .is_spare = true },                                                            \
		{ .name = "Stream ID", .kind = LULL_OUT_ID, .doc = "stream", .is_spare = true }, \
	{                                                                                        \
		.name = "API Name", .kind = LULL_OUT_TEXT, .doc = "the call, with its version"   \
	}

/*
 * One row for each of the longest operations of `kind` (LULL_WORK_MEMCPY, LULL_WORK_MEMSET) for
 * which `test` holds: time, kinds of memory (two of a copy, one of a memset), place.
 */
int lull_rule_memory(struct lull_reader *r, struct lull_out *out,
		     const struct lull_report_options *options, unsigned kind,
		     lull_memory_test *test, struct lull_err *err);

/* Whether an operation is asynchronous: by the name of its call, or as the driver said. */
bool lull_rule_is_async(const struct lull_work *work, const char *name);

/* ---- devices ---- */

/* The columns that say which device a row is about, after what the rule found. */
#define LULL_RULE_DEVICE_COLUMNS                                                              \
	{ .name = "PID", .kind = LULL_OUT_ID, .doc = "process id" },                          \
		{ .name = "Device ID", .kind = LULL_OUT_ID, .doc = "its device" },            \
	{                                                                                     \
		.name = "Context ID", .kind = LULL_OUT_ID, .doc = "CUDA context of the work", \
		.is_spare = true                                                              \
	}

/*
 * The track of each lane (model/busy) with one for each process and device: the id of its device.
 * Free with free().
 */
u32 *lull_rule_tracks(struct lull_reader *r);

/* Fill the cells of LULL_RULE_DEVICE_COLUMNS by a stream of the device. */
void lull_rule_put_device(struct lull_out *out, struct lull_reader *r, u32 stream_lane);

/* A time in which CUDA or the recording of it kept the process from working. */
struct lull_rule_overhead {
	struct lull_span span;
	u32 process;
};

/* All of them: struct lull_rule_overhead by start. Release the vector. */
void lull_rule_overheads(struct lull_vec *to, struct lull_reader *r);

#endif
