#include "record/process/tree.h"

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
	lull_vec_release(&p->schemas);
	lull_vec_release(&p->gpus);
	lull_vec_release(&p->streams);
	lull_vec_release(&p->stream_facts);
	lull_vec_release(&p->contexts);
	free(p->device_calls);
	if (p->pidfd >= 0)
		close(p->pidfd);
	free(p->slot_tasks);
	free(p->exe);
	free(p->cmdline);
	free(p->jitdump);
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

struct lull_process *lull_tree_find_inner(const struct lull_tree *t, u64 pid_ns, u32 ns_pid)
{
	struct lull_process **all = t->processes.at;

	for (size_t i = t->processes.n; i-- > 0;)
		if (all[i]->pid_ns == pid_ns && all[i]->ns_pid == ns_pid && !all[i]->end_ns)
			return all[i];
	return NULL;
}

static struct lull_process *add(struct lull_tree *t, u32 pid, u32 parent_pid, u64 now_ns)
{
	struct lull_process *p = lull_alloc(1, sizeof(*p));

	p->previous = lull_tree_find(t, pid);
	p->pid = pid;
	p->parent_pid = parent_pid;
	p->start_ns = now_ns;
	p->pidfd = -1;
	p->rank = (struct lull_rank){ -1, -1, -1, NULL };
	lull_vec_init(&p->tasks, sizeof(struct lull_task *));
	lull_vec_init(&p->shared_ranges, sizeof(struct lull_shared_range));
	lull_vec_init(&p->schemas, sizeof(struct lull_schema_text));
	lull_vec_init(&p->gpus, sizeof(struct lull_gpu));
	lull_vec_init(&p->streams, sizeof(struct lull_gpu_stream));
	lull_vec_init(&p->stream_facts, sizeof(struct lull_stream_facts));
	lull_vec_init(&p->contexts, sizeof(struct lull_gpu_context));
	*(struct lull_process **)lull_vec_push(&t->processes) = p;
	*lull_map_add(&t->by_pid, pid, NULL) = (u32)t->processes.n;
	return p;
}

static u32 index_of(const struct lull_tree *t, const struct lull_process *p)
{
	struct lull_process **all = t->processes.at;

	for (size_t i = t->processes.n; i-- > 0;)
		if (all[i] == p)
			return (u32)i;
	return 0;
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

struct lull_process *lull_tree_at(struct lull_tree *t, u32 pid, u64 time_ns)
{
	struct lull_process *p = lull_tree_find(t, pid);

	if (!p)
		return add(t, pid, 0, time_ns);
	while (p->previous && p->start_ns > time_ns)
		p = p->previous;
	return p;
}

/*
 * The program began at `time_ns` or later. Where an agent has spoken, its word counts: the entry
 * may stand for the process from its fork on, but the program is the one the agent is in.
 */
static bool is_since(const struct lull_process *p, u64 time_ns)
{
	return (p->image_ns ? p->image_ns : p->start_ns) >= time_ns;
}

/* The earliest entry of the pid that began at `time_ns` or later, or NULL. */
static struct lull_process *first_since(const struct lull_tree *t, u32 pid, u64 time_ns)
{
	struct lull_process *p = lull_tree_find(t, pid), *found = NULL;

	for (; p && is_since(p, time_ns); p = p->previous)
		found = p;
	return found;
}

/* `p` became the program that `next` is. */
static void end_by_exec(struct lull_process *p, struct lull_process *next)
{
	if (!p->end_ns || p->end_ns > next->start_ns)
		p->end_ns = next->start_ns;
	p->exit_kind = LULL_EXIT_EXEC;
	next->is_ours = next->is_ours || p->is_ours;
	if (!next->parent_pid)
		next->parent_pid = p->parent_pid;
}

/* A program that began before `next`, which we know already. */
static struct lull_process *insert_before(struct lull_tree *t, struct lull_process *next,
					  u64 start_ns)
{
	struct lull_process *latest = lull_tree_find(t, next->pid);
	struct lull_process *p = add(t, next->pid, next->parent_pid, start_ns);

	/* add() has made it the latest; put it where it belongs. */
	*lull_map_add(&t->by_pid, next->pid, NULL) = index_of(t, latest) + 1;
	p->previous = next->previous;
	next->previous = p;
	end_by_exec(p, next);
	return p;
}

/*
 * The next program of a pid whose latest entry is `old`. An end that wait() told already is that of
 * the new one: a pid has only one.
 */
static struct lull_process *append(struct lull_tree *t, struct lull_process *old, u64 start_ns)
{
	struct lull_process *p = add(t, old->pid, old->parent_pid, start_ns);

	if (old->exit_kind == LULL_EXIT_CODE || old->exit_kind == LULL_EXIT_SIGNAL) {
		p->end_ns = old->end_ns;
		p->exit_kind = old->exit_kind;
		p->exit_code = old->exit_code;
		old->exit_code = 0;
	}
	p->pidfd = old->pidfd;
	old->pidfd = -1;
	end_by_exec(old, p);
	return p;
}

static struct lull_process *place(struct lull_tree *t, u32 pid, u64 start_ns)
{
	struct lull_process *p = lull_tree_find(t, pid), *next = NULL;

	for (; p && p->start_ns > start_ns; p = p->previous)
		next = p;
	if (p && (!p->had_agent || p->is_loaded) && (!p->end_ns || p->end_ns >= start_ns))
		return p;
	if (next && !next->had_agent && !next->is_exec_known) {
		/* The kernel's news of its fork, or its parent's of its end, came first. */
		next->start_ns = start_ns;
		return next;
	}
	if (next)
		return insert_before(t, next, start_ns);
	/* A program that has ended by itself is no predecessor: its pid was used again. */
	if (!p || (p->end_ns && p->exit_kind != LULL_EXIT_EXEC && p->end_ns < start_ns))
		return add(t, pid, 0, start_ns);
	return append(t, p, start_ns);
}

struct lull_process *lull_tree_place(struct lull_tree *t, u32 pid, u64 start_ns)
{
	struct lull_process *p = place(t, pid, start_ns);

	p->image_ns = start_ns;
	return p;
}

struct lull_process *lull_tree_exec(struct lull_tree *t, u32 pid, u64 time_ns)
{
	struct lull_process *p = first_since(t, pid, time_ns);

	if (!p)
		p = lull_tree_find(t, pid);
	if (!p)
		return add(t, pid, 0, time_ns);
	if (p->is_awaiting_exec || is_since(p, time_ns)) {
		p->is_awaiting_exec = false;
		return p;
	}
	/*
	 * Between fork and exec nothing of interest happened: no entry of its own. Its end may be
	 * known already.
	 */
	if (!p->had_agent && !p->is_exec_known && (!p->end_ns || p->end_ns >= time_ns)) {
		if (!p->row)
			p->start_ns = time_ns;
		return p;
	}
	return append(t, p, time_ns);
}

struct lull_process *lull_tree_fork(struct lull_tree *t, u32 pid, u32 parent_pid, u64 time_ns)
{
	struct lull_process *p = first_since(t, pid, time_ns), *before = lull_tree_find(t, pid);

	/* The kernel tells it first, and the child a little later: by then the end may be known. */
	if (!p && before && before->end_ns >= time_ns)
		return before;
	if (!p)
		return lull_tree_get(t, pid, parent_pid, time_ns);
	if (!p->parent_pid)
		p->parent_pid = parent_pid;
	if (!p->image_ns)
		p->start_ns = time_ns;
	return p;
}

u32 lull_tree_image(const struct lull_process *p)
{
	u32 n = 0;

	for (p = p->previous; p && p->exit_kind == LULL_EXIT_EXEC; p = p->previous)
		n++;
	return n;
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
	*lull_map_add(&p->by_tid, tid, NULL) =
		(u32)p->tasks.n; /* ids come back: the latest counts */
	return task;
}

struct lull_task *lull_tree_task_at(struct lull_process *p, u32 tid, u64 time_ns)
{
	struct lull_task *task = lull_tree_find_task(p, tid);

	return task && time_ns <= task->end_ns ? task : lull_tree_task(p, tid, time_ns);
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
		all[i]->streams.n = 0;
		all[i]->n_unplaced_before += all[i]->n_unplaced;
		all[i]->n_unplaced = 0;
		for (size_t j = 0; j < all[i]->gpus.n; j++)
			((struct lull_gpu *)lull_vec_get(&all[i]->gpus, j))->row = 0;
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
