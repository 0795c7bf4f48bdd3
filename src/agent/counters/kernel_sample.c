#include "agent/counters/kernel_sample.h"

#include "agent/counters/kpc.h"
#include "agent/cuda/cupti.h"

#define N_CONTEXTS 16u
#define PATH_BYTES 1024u

/* CUPTI's names of reasons begin so; samples in which no other warp issued are told twice. */
static const char prefix[] = "smsp__pcsamp_warps_issue_stalled_";
static const char twice[] = "_not_issued";

static struct {
	struct lull_kpc *pcs[N_CONTEXTS];
	struct lull_kpc *pc; /* that samples right now */
} sample;

static struct lull_kpc *pc_of(void *context)
{
	for (u32 i = 0; i < N_CONTEXTS; i++) {
		if (!sample.pcs[i])
			sample.pcs[i] = lull_kpc_open(context);
		if (!sample.pcs[i] || sample.pcs[i]->context == context)
			return sample.pcs[i];
	}
	return NULL;
}

bool lull_kernel_sample_begin(const struct lull_launch *launch)
{
	sample.pc = pc_of(launch->context);
	return sample.pc && lull_launch_wait() && lull_kpc_start(sample.pc);
}

/* The reason as our metrics spell it; 0 for one that is told twice or not known. */
static u64 stall_of(struct lull_thread *t, const char *name)
{
	size_t n = strlen(name), n_prefix = sizeof(prefix) - 1, n_twice = sizeof(twice) - 1;

	if (n <= n_prefix || strncmp(name, prefix, n_prefix) != 0 ||
	    (n > n_twice && strcmp(name + n - n_twice, twice) == 0))
		return 0;
	name += n_prefix;
	n -= n_prefix;
	/* The only one whose metric is spelled in another way. */
	if (strcmp(name, "no_instructions") == 0)
		n--;
	return lull_name(t, name, n);
}

/* FOLDER/FILE */
static u64 file_of(struct lull_thread *t, const struct lull_pc_source *source)
{
	char path[PATH_BYTES];
	size_t n = source->folder ? strnlen(source->folder, PATH_BYTES / 2) : 0;
	size_t m = strnlen(source->file, PATH_BYTES / 2 - 1);

	if (n && source->file[0] != '/') {
		memcpy(path, source->folder, n);
		path[n++] = '/';
	} else {
		n = 0;
	}
	memcpy(path + n, source->file, m);
	return lull_name(t, path, n + m);
}

static void emit(struct lull_thread *t, const struct lull_pc_pc *pc, u64 ordinal)
{
	struct lull_pc_source source;
	bool has_line = lull_kpc_line(pc, &source);
	u64 file = has_line ? file_of(t, &source) : 0;
	u64 function = pc->function ? lull_name(t, pc->function, strlen(pc->function)) : 0;

	for (size_t i = 0; i < pc->n_stalls && i < LULL_KPC_MAX_REASONS; i++) {
		const char *reason = lull_kpc_reason(sample.pc, pc->stalls[i].reason_ix);
		u64 stall = stall_of(t, reason);
		struct lull_wire_pcsample *e;

		if (!stall || !pc->stalls[i].n)
			continue;
		e = lull_reserve(t, LULL_EVENT_pcsample, sizeof(*e));
		if (!e)
			continue;
		e->head.a = has_line ? source.line : 0;
		e->ordinal = ordinal;
		e->function = function;
		e->pc_offset = pc->pc_offset;
		e->stall = stall;
		e->file = file;
		e->n_samples = pc->stalls[i].n;
		lull_commit(t, sizeof(*e));
	}
}

bool lull_kernel_sample_end(struct lull_thread *t, u64 ordinal)
{
	const struct lull_kpc *pc = sample.pc;

	if (!lull_launch_wait() || !lull_kpc_stop(sample.pc))
		return false;
	for (size_t i = 0; i < pc->data.n_pcs && i < LULL_KPC_MAX_PCS; i++)
		emit(t, &pc->data.pcs[i], ordinal);
	return true;
}

const char *lull_kernel_sample_trouble(void)
{
	const char *text = NULL;
	int error = sample.pc ? sample.pc->refused.error : -1;

	if (!error)
		return "the device did not get idle";
	if (error < 0 || !lull_cupti.cuptiGetResultString ||
	    lull_cupti.cuptiGetResultString(error, &text) != 0)
		text = sample.pc ? sample.pc->refused.step : "no memory";
	return text;
}
