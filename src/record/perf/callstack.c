#include "record/perf/callstack.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* Deeper stacks are cut; Python and C++ recursion rarely passes 200. */
#define FRAMES_MAX 512

static struct lull_space *space_of(struct lull_recording *r, struct lull_process *p)
{
	if (!p->space) {
		p->space = lull_alloc(1, sizeof(*p->space));
		lull_space_init(p->space, &r->files, p->pid);
	}
	return p->space;
}

/*
 * Compilers map the file they describe their code in, so that profilers notice: .../jit-PID.dump.
 */
static bool is_jitdump(const char *path)
{
	const char *name = strrchr(path, '/');
	size_t n = name ? strlen(name) : 0;

	return n > 10 && strncmp(name, "/jit-", 5) == 0 && strcmp(name + n - 5, ".dump") == 0;
}

void lull_callstack_map(struct lull_recording *r, struct lull_process *p, const struct lull_mmap *m)
{
	if (is_jitdump(m->path)) {
		free(p->jitdump);
		p->jitdump = lull_strdup(m->path);
		return;
	}
	lull_space_map(space_of(r, p), m);
}

void lull_callstack_look(struct lull_recording *r, struct lull_process *p)
{
	char path[64];
	struct lull_err err;

	if (p->space)
		return;
	snprintf(path, sizeof(path), "/proc/%u/maps", p->pid);
	/* A process that is gone already has no names; its samples count all the same. */
	if (lull_space_read_maps(space_of(r, p), path, &err) != 0)
		lull_space_clear(p->space);
}

void lull_callstack_fork(struct lull_recording *r, struct lull_process *child,
			 const struct lull_process *parent)
{
	if (parent->space && !child->space)
		lull_space_copy(space_of(r, child), parent->space);
}

void lull_callstack_exec(struct lull_process *p)
{
	if (p->space)
		lull_space_clear(p->space);
}

/*
 * Registers tell about user mode only; what the kernel did on top of it is at the start of the
 * chain.
 */
static void put_kernel_first(struct lull_callstack *user, const struct lull_callstack *chain)
{
	size_t n = 0, keep;

	while (n < chain->n && chain->at[n].kind == LULL_PC_KERNEL)
		n++;
	if (!n)
		return;
	keep = user->n + n <= user->cap ? user->n : user->cap - n;
	memmove(user->at + n, user->at, keep * sizeof(*user->at));
	memcpy(user->at, chain->at, n * sizeof(*user->at));
	user->n = keep + n;
}

u32 lull_callstack_add(struct lull_recording *r, struct lull_process *p,
		       const struct lull_regs *regs, const struct lull_stack_bytes *bytes,
		       const u64 *chain, size_t n_chain, bool *is_cut)
{
	struct lull_pc user_pcs[FRAMES_MAX], chain_pcs[FRAMES_MAX];
	struct lull_callstack user = { .at = user_pcs, .cap = FRAMES_MAX };
	struct lull_callstack kernel = { .at = chain_pcs, .cap = FRAMES_MAX };
	struct lull_space *space = space_of(r, p);
	struct lull_callstack *best = &kernel;
	u32 row;

	if (n_chain)
		lull_unwind_chain(space, chain, n_chain, &kernel);
	if (regs && bytes && bytes->n_bytes) {
		lull_unwind_sample(&r->unwind, space, regs, bytes, &user);
		if (user.cut != LULL_CUT_NONE && n_chain)
			lull_unwind_merge(&user, &kernel);
		put_kernel_first(&user, &kernel);
		best = &user;
	}
	if (is_cut)
		*is_cut = best->cut != LULL_CUT_NONE;
	if (!best->n)
		return 0;
	row = lull_recording_process(r, p);
	return lull_stacks_add(&r->stacks, r->writer, row, best->at, best->n);
}

void lull_callstack_free(struct lull_process *p)
{
	if (p->space) {
		lull_space_release(p->space);
		free(p->space);
		p->space = NULL;
	}
}
