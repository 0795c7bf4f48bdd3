#include "launch/tree.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"


void lull_tree_init(struct lull_tree *t)
{
	*t = (struct lull_tree){ 0 };
	lull_vec_init(&t->processes, sizeof(struct lull_process *));
	lull_map_init(&t->by_pid);
}

static void free_process(struct lull_tree *t, struct lull_process *p)
{
	struct lull_task **tasks = p->tasks.at;

	if (t->on_free)
		t->on_free(p);
	for (size_t i = 0; i < p->tasks.n; i++) {
		lull_vec_release(&tasks[i]->open);
		free(tasks[i]);
	}
	lull_vec_release(&p->tasks);
	lull_map_release(&p->by_tid);
	lull_vec_release(&p->shared_ranges);
	if (p->pidfd >= 0)
		close(p->pidfd);
	free(p->slot_tasks);
	free(p->exe);
	free(p->cmdline);
	free(p);
}

void lull_tree_release(struct lull_tree *t)
{
	struct lull_process **all = t->processes.at;

	for (size_t i = 0; i < t->processes.n; i++)
		free_process(t, all[i]);
	lull_vec_release(&t->processes);
	lull_map_release(&t->by_pid);
}

struct lull_process *lull_tree_find(const struct lull_tree *t, u32 pid)
{
	u32 *ix = lull_map_find(&t->by_pid, pid);

	return ix ? ((struct lull_process **)t->processes.at)[*ix - 1] : NULL;
}

static struct lull_process *add(struct lull_tree *t, u32 pid, u32 parent_pid, u64 now_ns)
{
	struct lull_process *p = lull_alloc(1, sizeof(*p));

	p->pid = pid;
	p->parent_pid = parent_pid;
	p->start_ns = now_ns;
	p->pidfd = -1;
	lull_vec_init(&p->tasks, sizeof(struct lull_task *));
	lull_vec_init(&p->shared_ranges, sizeof(struct lull_shared_range));
	*(struct lull_process **)lull_vec_push(&t->processes) = p;
	*lull_map_add(&t->by_pid, pid, NULL) = (u32)t->processes.n;
	return p;
}

struct lull_process *lull_tree_get(struct lull_tree *t, u32 pid, u32 parent_pid, u64 now_ns)
{
	struct lull_process *p = lull_tree_find(t, pid);

	if (p && !p->end_ns) {
		if (!p->parent_pid)
			p->parent_pid = parent_pid;
		return p;
	}
	return add(t, pid, parent_pid, now_ns);
}

struct lull_process *lull_tree_exec(struct lull_tree *t, u32 pid, u64 now_ns)
{
	struct lull_process *old = lull_tree_find(t, pid);
	struct lull_process *p;

	if (!old || old->end_ns)
		return add(t, pid, 0, now_ns);
	/* Between fork and exec nothing of interest happened: no entry of its own. */
	if (!old->had_agent && !old->row) {
		old->start_ns = now_ns;
		return old;
	}
	old->end_ns = now_ns;
	old->exit_kind = LULL_EXIT_EXEC;
	p = add(t, pid, old->parent_pid, now_ns);
	p->image = old->image + 1;
	p->is_ours = old->is_ours;
	p->pidfd = old->pidfd;
	old->pidfd = -1;
	return p;
}

struct lull_task *lull_tree_find_task(const struct lull_process *p, u32 tid)
{
	u32 *ix = lull_map_find(&p->by_tid, tid);

	return ix ? ((struct lull_task **)p->tasks.at)[*ix - 1] : NULL;
}

struct lull_task *lull_tree_task(struct lull_process *p, u32 tid, u64 now_ns)
{
	struct lull_task *task = lull_tree_find_task(p, tid);

	if (task && !task->end_ns)
		return task;
	task = lull_alloc(1, sizeof(*task));
	task->process = p;
	task->tid = tid;
	task->start_ns = now_ns;
	lull_vec_init(&task->open, sizeof(struct lull_open_range));
	*(struct lull_task **)lull_vec_push(&p->tasks) = task;
	*lull_map_add(&p->by_tid, tid, NULL) = (u32)p->tasks.n; /* ids come back: the latest counts */
	return task;
}

void lull_tree_ended(struct lull_process *p, int wait_status, u64 now_ns)
{
	if (!p->end_ns)
		p->end_ns = now_ns;
	if (WIFSIGNALED(wait_status)) {
		p->exit_kind = LULL_EXIT_SIGNAL;
		p->exit_code = (u32)WTERMSIG(wait_status);
	} else if (WIFEXITED(wait_status)) {
		p->exit_kind = LULL_EXIT_CODE;
		p->exit_code = (u32)WEXITSTATUS(wait_status);
	}
}

void lull_tree_new_report(struct lull_tree *t)
{
	struct lull_process **all = t->processes.at;

	for (size_t i = 0; i < t->processes.n; i++) {
		struct lull_task **tasks = all[i]->tasks.at;

		all[i]->row = 0;
		all[i]->is_in_report = false;
		all[i]->shared_ranges.n = 0;
		for (size_t j = 0; j < all[i]->tasks.n; j++) {
			tasks[j]->lane = 0;
			tasks[j]->open.n = 0;
			tasks[j]->step_start_ns = 0;
			tasks[j]->stack[0] = tasks[j]->stack[1] = 0;
			tasks[j]->n_dropped_before += tasks[j]->n_dropped;
			tasks[j]->n_dropped = 0;
		}
	}
}
