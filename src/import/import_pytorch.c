/*
 * PyTorch profiler traces: Chrome traces as Kineto writes them, with a category for each kind of
 * event.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "import/pytorch_int.h"

/* ---- events by category ---- */

static bool ignore(struct lull_chrome *c, const struct lull_jevent *e)
{
	(void)c;
	(void)e;
	return true;
}

/* The span of the profiler itself, and its marks: what time the trace covers. */
static bool take_window(struct lull_chrome *c, const struct lull_jevent *e)
{
	struct lull_str text = LULL_STR_INIT;
	u64 start_ns, dur_ns;

	if (lull_chrome_span(c, e, &start_ns, &dur_ns)) {
		lull_str_addf(&text, "%llu ns, for %llu ns", (unsigned long long)start_ns,
			      (unsigned long long)dur_ns);
		lull_chrome_meta(c, "pytorch.span.", &e->name,
				 &(struct lull_jtext){ text.at, text.len, false });
		lull_str_release(&text);
	}
	return true;
}

static const struct {
	const char *name;
	char ph;
	bool (*take)(struct lull_chrome *c, const struct lull_jevent *e);
} categories[] = {
	/* The most frequent first. */
	{ "cpu_op", 'X', lull_pytorch_op },
	{ "python_function", 'X', lull_pytorch_python },
	/* A flow from a call to its kernel says what the correlation number says. */
	{ "ac2g", 0, ignore },
	{ "async_cpu_to_gpu", 0, ignore },
	{ "kernel", 'X', lull_pytorch_kernel },
	{ "cuda_runtime", 'X', lull_pytorch_runtime },
	/* A flow from a forward operator to its backward one: so does the sequence number. */
	{ "fwdbwd", 0, ignore },
	{ "cpu_instant_event", 'i', lull_pytorch_instant },
	{ "cuda_driver", 'X', lull_pytorch_driver },
	{ "gpu_memcpy", 'X', lull_pytorch_memcpy },
	{ "gpu_memset", 'X', lull_pytorch_memset },
	{ "user_annotation", 'X', lull_pytorch_annotation },
	{ "gpu_user_annotation", 'X', lull_pytorch_device_annotation },
	{ "cuda_sync", 'X', lull_pytorch_sync },
	{ "overhead", 'X', lull_pytorch_overhead },
	{ "Trace", 'X', take_window },
	/* Names of older versions. */
	{ "Kernel", 'X', lull_pytorch_kernel },
	{ "Runtime", 'X', lull_pytorch_runtime },
	{ "Memcpy", 'X', lull_pytorch_memcpy },
	{ "Memset", 'X', lull_pytorch_memset },
	{ "Operator", 'X', lull_pytorch_op },
	/* Devices of others than NVIDIA; ROCm's calls are mostly "cuda_runtime", too. */
	{ "hip_runtime", 'X', lull_pytorch_runtime },
	{ "xpu_runtime", 'X', lull_pytorch_runtime },
	{ "xpu_driver", 'X', lull_pytorch_driver },
	{ "privateuse1_runtime", 'X', lull_pytorch_runtime },
	{ "privateuse1_driver", 'X', lull_pytorch_driver },
};

/* "thread 428 (pt_autograd_0)" is thread 428 anyway; what is in the parentheses is its name. */
static struct lull_jtext inner_name(const struct lull_jtext *name)
{
	static const char prefix[] = "thread ";
	const char *open = memchr(name->at, '(', name->len);
	struct lull_jtext inner = *name;

	if (name->len > sizeof(prefix) && !memcmp(name->at, prefix, sizeof(prefix) - 1) && open &&
	    name->at[name->len - 1] == ')') {
		inner.at = open + 1;
		inner.len = (size_t)(name->at + name->len - 1 - inner.at);
	}
	return inner;
}

static bool has_prefix(const struct lull_jtext *text, const char *prefix)
{
	return text->len >= strlen(prefix) && !memcmp(text->at, prefix, strlen(prefix));
}

/*
 * Names, which stand after the events. Each device is a process with its streams as threads here,
 * which the report knows from their work; in a container a real process may have the same number. A
 * thread is named several times; the first name is its own, a later one may be that of the program.
 */
static bool take_name(struct lull_chrome *c, const struct lull_jevent *e)
{
	struct lull_jtext name = lull_jevent_text(e, LULL_ARG_meta_name);
	const struct lull_lane_row *lane;
	u32 id;

	if (e->pid.text.at || !lull_mapper_knows_process(&c->map, &e->pid) ||
	    has_prefix(&name, "stream ") || has_prefix(&name, "Device "))
		return true;
	if (!lull_jtext_is(&e->name, "thread_name"))
		return false;
	id = lull_mapper_thread(&c->map, &e->pid, &e->tid);
	lane = lull_writer_dim(c->map.writer, LULL_TABLE_lane, id);
	name = inner_name(&name);
	if (!lane->name)
		lull_mapper_name_thread(&c->map, &e->pid, &e->tid, &name);
	return true;
}

static void count_unknown(struct lull_chrome *c, const struct lull_jevent *e)
{
	u32 n = e->n_unknown < LULL_JEVENT_UNKNOWN ? e->n_unknown : LULL_JEVENT_UNKNOWN;
	struct lull_str what = LULL_STR_INIT;

	lull_jtext_add(&what, &e->category);
	for (u32 i = 0; i < n; i++)
		lull_mapper_gap(&c->map, LULL_ISSUE_import_args, lull_str_text(&what),
				&e->unknown[i]);
	lull_str_release(&what);
}

static bool take_event(struct lull_chrome *c, const struct lull_jevent *e)
{
	if (!e->category.len) {
		if (e->ph == 'i' && e->pid.text.at)
			return take_window(c, e);
		return e->ph == 'M' && take_name(c, e);
	}
	for (size_t i = 0; i < LULL_COUNT_OF(categories); i++) {
		if (!lull_jtext_is(&e->category, categories[i].name) ||
		    (categories[i].ph && categories[i].ph != e->ph))
			continue;
		if (!categories[i].take(c, e))
			return false;
		if (e->n_unknown)
			count_unknown(c, e);
		return true;
	}
	return false;
}

/* ---- one walk ---- */

static void begin(struct lull_chrome *c)
{
	struct lull_pytorch *pt = lull_alloc(1, sizeof(*pt));

	pt->rank = -1;
	lull_vec_init(&pt->collectives, sizeof(struct lull_collective_row));
	lull_map_init(&pt->calls);
	lull_vec_init(&pt->given, sizeof(struct lull_pytorch_given));
	c->ctx = pt;
}

static void end(struct lull_chrome *c)
{
	struct lull_pytorch *pt = c->ctx;

	lull_vec_release(&pt->collectives);
	lull_map_release(&pt->calls);
	lull_vec_release(&pt->given);
	free(pt);
}

static int run(struct lull_import_job *job, struct lull_err *err)
{
	static const struct lull_chrome_dialect dialect = {
		.begin = begin,
		.event = take_event,
		.pair = lull_pytorch_pair,
		.finish = lull_pytorch_write_collectives,
		.end = end,
	};

	return lull_chrome_run(job, &dialect, err);
}

/* ---- recognising ---- */

static int sniff(const u8 *head, size_t len)
{
	/* Each is in traces of some version, before the first events or among them. */
	static const char *const words[] = { "\"schemaVersion\"", "\"deviceProperties\"",
					     "\"cpu_op\"",	  "\"ProfilerStep#",
					     "\"cuda_runtime\"",  "\"Ev Idx\"",
					     "\"External id\"",	  "\"distributedInfo\"" };

	if (lull_chrome_sniff(head, len) == 0)
		return 0;
	for (size_t i = 0; i < LULL_COUNT_OF(words); i++)
		if (memmem(head, len, words[i], strlen(words[i])))
			return 90;
	return 0;
}

const struct lull_import lull_import_pytorch = {
	.name = "pytorch",
	.summary = "PyTorch profiler traces (torch.profiler, Kineto; JSON)",
	.sniff = sniff,
	.run = run,
};
