/*
 * cuda_api_sync: calls that make the host wait for the device.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "report/lanes.h"
#include "report/rule.h"

static const struct lull_out_column columns[] = {
	LULL_RULE_TIME_COLUMNS,
	{ .name = "PID", .kind = LULL_OUT_ID, .doc = "process id" },
	{ .name = "TID", .kind = LULL_OUT_ID, .doc = "thread that waited" },
	{ .name = "API Name", .kind = LULL_OUT_TEXT, .doc = "the call, with its version" },
};

struct wait {
	struct lull_worst_key key;
	u32 lane;
	u32 name;
};

/* Waiting for one event is what the advice recommends, so that is none of them. */
static bool is_sync(const char *name)
{
	static const char *const syncs[] = { "cudaDeviceSynchronize", "cudaThreadSynchronize",
					     "cudaStreamSynchronize", "cuCtxSynchronize",
					     "cuStreamSynchronize" };

	for (size_t i = 0; i < LULL_COUNT_OF(syncs); i++) {
		size_t len = strlen(syncs[i]);

		if (!strncmp(name, syncs[i], len) && (!name[len] || name[len] == '_'))
			return true;
	}
	return false;
}

static void find(struct lull_worst *worst, struct lull_reader *r,
		 const struct lull_report_options *options)
{
	struct lull_cuda_call_cols cols;
	struct lull_cursor c;
	struct lull_vec known; /* u8 by string id: 1 it is one, 2 it is none */
	size_t n;

	lull_vec_init(&known, 1);
	lull_cursor_init(&c, r, LULL_TABLE_cuda_call, options->from_ns, options->to_ns);
	lull_cursor_want(&c, "start_ns");
	lull_cursor_want(&c, "dur_ns");
	lull_cursor_want(&c, "lane");
	lull_cursor_want(&c, "name");
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			u32 name = cols.name[i];
			struct wait wait = { { cols.dur_ns[i], cols.start_ns[i] },
					     cols.lane[i],
					     name };
			u8 *is;

			if (name >= known.n)
				lull_vec_extend(&known, name + 1 - known.n);
			is = lull_vec_get(&known, name);
			if (!*is)
				*is = is_sync(lull_reader_string(r, name, NULL)) ? 1 : 2;
			if (*is == 1 &&
			    lull_report_covers(options, cols.start_ns[i], cols.dur_ns[i]))
				lull_worst_add(worst, &wait);
		}
	}
	lull_cursor_release(&c);
	lull_vec_release(&known);
}

static int run(struct lull_reader *r, struct lull_out *out,
	       const struct lull_report_options *options, struct lull_err *err)
{
	const struct wait *wait;
	struct lull_worst worst;
	int rc = lull_worst_init(&worst, sizeof(struct wait), options, err);

	if (!rc)
		find(&worst, r, options);
	lull_worst_finish(&worst);
	wait = worst.all.at;
	for (size_t i = 0; i < worst.all.n; i++, wait++) {
		struct lull_lane_ids ids = lull_lanes_ids(r, wait->lane);

		lull_out_row(out);
		lull_out_i64(out, (i64)wait->key.dur_ns);
		lull_out_i64(out, (i64)wait->key.start_ns);
		lull_out_i64(out, ids.pid);
		lull_out_i64(out, ids.tid);
		lull_out_text(out, lull_reader_string(r, wait->name, NULL));
	}
	lull_worst_release(&worst);
	return rc;
}

const struct lull_report lull_rule_cuda_api_sync = {
	.name = "cuda_api_sync",
	.display = "CUDA Synchronization APIs",
	.summary = "calls that make the host wait for a device or stream",
	.help = "Calls that block the host until all work of a device, context or stream is done, "
		"longest first. rows=N shows N of them, -1 all.",
	.finding = "In these calls the host waited until everything it had launched was done, "
		   "and could not launch anything in the meantime.",
	.advice = "Suggestion: remove waits that are not needed, and wait for one event "
		  "(cudaEventSynchronize(), cudaStreamWaitEvent()) where one is. In Python, "
		  ".item(), .cpu() and print() of a tensor wait, too.",
	.args = "rows=",
	.columns = columns,
	.n_columns = LULL_COUNT_OF(columns),
	.needs = LULL_NEED(cuda_call),
	.is_default = true,
	.sorted_by = 1,
	.empty = "No problem found: no call waited for a whole device or stream.",
	.run = run,
};
