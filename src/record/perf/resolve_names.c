/*
 * resolve_names - give the addresses of a finished recording their names.
 *
 * Files are resolved by symbol/; here is where the names of the kernel and of just-in-time
 * compilers come from.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "record/recording.h"
#include "symbol/jit.h"
#include "symbol/kallsyms.h"

/* The functions that compilers inside this process wrote down, or NULL. The caller frees. */
static struct lull_jit *read_jit(const struct lull_process *p)
{
	struct lull_jit *jit = lull_alloc(1, sizeof(*jit));
	struct lull_err err;
	int rc;

	lull_jit_init(jit);
	rc = lull_jit_read_process(jit, p->pid, &err);
	if (p->jitdump)
		rc = lull_jit_read_dump(jit, p->jitdump, &err) && rc ? LULL_E_NOT_FOUND : 0;
	if (!rc)
		return jit;
	lull_jit_release(jit);
	free(jit);
	return NULL;
}

static void free_jit(struct lull_jit *jit)
{
	lull_jit_release(jit);
	free(jit);
}

/* Unnamed frames left over: say how many, so that a reader knows where to look for debug files. */
static void count_unnamed(struct lull_recording *r)
{
	u32 n = lull_writer_n_dim(r->writer, LULL_TABLE_frame);
	u64 n_unnamed = 0;

	for (u32 id = 1; id <= n; id++) {
		const struct lull_frame_row *row = lull_writer_dim(r->writer, LULL_TABLE_frame, id);

		n_unnamed += !row->function;
	}
	lull_recording_issue(r, LULL_ISSUE_symbols_missing, NULL, n_unnamed, NULL);
}

void lull_recording_resolve(struct lull_recording *r)
{
	struct lull_stacks_names names = { .paths = { .dirs = r->debug_dirs } };
	struct lull_process **all = r->tree->processes.at;
	struct lull_vec jits;
	struct lull_kallsyms kernel;
	struct lull_err err;

	lull_vec_init(&jits, sizeof(struct lull_jit *));
	lull_kallsyms_init(&kernel);
	for (size_t i = 0; i < r->tree->processes.n; i++) {
		struct lull_jit *jit = all[i]->row ? read_jit(all[i]) : NULL;

		if (!jit)
			continue;
		lull_stacks_add_jit(&r->stacks, all[i]->row, jit);
		*(struct lull_jit **)lull_vec_push(&jits) = jit;
	}
	if (r->stacks.kernel_module && lull_kallsyms_read(&kernel, "/proc/kallsyms", &err) == 0)
		names.kernel = &kernel;
	lull_stacks_resolve(&r->stacks, r->writer, &names);
	count_unnamed(r);
	for (size_t i = 0; i < jits.n; i++)
		free_jit(*(struct lull_jit **)lull_vec_get(&jits, i));
	lull_vec_release(&jits);
	lull_kallsyms_release(&kernel);
}
