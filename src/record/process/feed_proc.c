/*
 * feed_proc - what can be read from outside: CPU and memory from /proc, Python stacks from the
 * process's memory.
 */
#include "record/collector_int.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/time.h"
#include "record/process/image.h"
#include "record/python/python.h"
#include "record/process/usage.h"

/* Ten looks a second show every phase of a training step's memory; 15 us each. */
#define USAGE_NS (LULL_NS_PER_S / 10)

/* A process without an interpreter now may load one later; look again this often. */
#define ATTACH_NS (LULL_NS_PER_S / 2)

static void on_thread(void *ctx, u32 tid, const char *name)
{
	struct lull_process *p = ctx;
	struct lull_task *task = lull_tree_find_task(p, tid);

	if (task && !task->is_name_given)
		snprintf(task->name, sizeof(task->name), "%s", name);
}

static void read_usage(struct lull_collector *c, struct lull_process *p, u64 now_ns)
{
	struct lull_recording *r = &c->recording;
	struct lull_usage_row row;
	struct lull_usage use;

	if (!lull_usage_read((pid_t)p->pid, &use))
		return;
	p->user_ns = use.user_ns;
	p->system_ns = use.system_ns;
	p->max_rss_bytes = use.max_rss_bytes;
	lull_usage_threads((pid_t)p->pid, on_thread, p);
	if (!lull_recording_is_on(r) || lull_feed_duty_is_paused(c))
		return;
	row = (struct lull_usage_row){
		.start_ns = lull_recording_ns(r, now_ns),
		.process = lull_recording_process(r, p),
		.user_ns = use.user_ns,
		.system_ns = use.system_ns,
		.rss_bytes = use.rss_bytes,
		.n_threads = use.n_threads,
	};
	lull_recording_add(r, LULL_TABLE_usage, &row);
}

void lull_feed_usage(struct lull_collector *c)
{
	u64 now_ns = lull_now_ns();

	if (now_ns < c->next_usage_ns)
		return;
	c->next_usage_ns = now_ns + USAGE_NS;
	for (size_t i = 0; i < c->tree.processes.n; i++) {
		struct lull_process *p = ((struct lull_process **)c->tree.processes.at)[i];

		if (p->is_ours && !p->end_ns)
			read_usage(c, p, now_ns);
	}
}

/* What the stack callback needs. */
struct python_feed {
	struct lull_collector *c;
	struct lull_process *process;
	u64 now_ns;
};

static u32 tid_of(void *ctx, u64 pthread_id)
{
	const struct lull_process *p = ctx;
	struct lull_task **tasks = p->tasks.at;

	for (size_t i = p->tasks.n; i-- > 0;)
		if (tasks[i]->pthread_id == pthread_id && !tasks[i]->end_ns)
			return tasks[i]->tid;
	return 0;
}

/* The CPU time of a thread; 0 if nobody tells. */
static u64 read_cpu_ns(u32 pid, u32 tid)
{
	char path[64], text[64];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "/proc/%u/task/%u/schedstat", pid, tid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return 0;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	text[n > 0 ? n : 0] = 0;
	return strtoull(text, NULL, 10);
}

/* Who holds the interpreter runs, or is about to; of others the kernel knows. */
static bool has_rested(struct lull_task *task, bool has_gil)
{
	u64 before_ns = task->cpu_ns;

	if (has_gil) {
		task->cpu_ns = 0;
		return false;
	}
	task->cpu_ns = read_cpu_ns(task->process->pid, task->tid);
	return before_ns && task->cpu_ns == before_ns;
}

static void on_stack(void *ctx, const struct lull_python_stack *stack)
{
	struct lull_py_frame frames[LULL_PYTHON_MAX_FRAMES];
	struct python_feed *feed = ctx;
	struct lull_recording *r = &feed->c->recording;
	struct lull_task *task;
	struct lull_pysample_row row;

	if (!stack->n_frames || !stack->tid)
		return;
	for (size_t i = 0; i < stack->n_frames; i++)
		frames[i] = (struct lull_py_frame){
			.function = stack->frames[i].function,
			.file = stack->frames[i].file,
			.line = stack->frames[i].line,
		};
	task = lull_tree_task(feed->process, stack->tid, feed->now_ns);
	row = (struct lull_pysample_row){
		.start_ns = lull_recording_ns(r, feed->now_ns),
		.lane = lull_recording_lane(r, task),
		.stack = lull_stacks_add_python(&r->stacks, r->writer, frames, stack->n_frames),
		.has_gil = stack->has_gil,
		.is_idle = has_rested(task, stack->has_gil),
	};
	lull_recording_add(r, LULL_TABLE_pysample, &row);
}

static void attach(struct lull_collector *c, struct lull_process *p, u64 now_ns)
{
	u64 hint = p->file ? p->file->head->python_runtime : 0;
	struct lull_err err;
	int rc;

	if (p->is_python_refused || now_ns < p->next_attach_ns)
		return;
	p->next_attach_ns = now_ns + ATTACH_NS;
	rc = lull_python_attach(&p->python, (pid_t)p->pid, hint, &err);
	if (!rc) {
		lull_python_set_tid_lookup(p->python, tid_of, p);
		snprintf(p->runtime, sizeof(p->runtime), "python %.20s",
			 lull_python_version_text(p->python));
		return;
	}
	p->python = NULL;
	if (rc == LULL_E_NOT_FOUND)
		return;
	p->is_python_refused = true;
	lull_recording_issue(&c->recording, LULL_ISSUE_python_refused, p, 1, err.msg);
}

static void sample_python(struct lull_collector *c, struct lull_process *p, u64 now_ns)
{
	struct python_feed feed = { c, p, now_ns };
	struct lull_err err;

	if (!p->python)
		attach(c, p, now_ns);
	if (!p->python)
		return;
	if (lull_python_sample(p->python, on_stack, &feed, &err) == LULL_E_UNSUPPORTED) {
		p->is_python_refused = true;
		lull_feed_python_free(p);
	}
}

void lull_feed_python(struct lull_collector *c)
{
	u64 now_ns = lull_now_ns();

	if (!c->options->is_python_sampled || !lull_recording_is_on(&c->recording) ||
	    lull_feed_duty_is_paused(c) || now_ns < c->next_python_ns)
		return;
	c->next_python_ns = now_ns + LULL_NS_PER_S / c->options->python_rate_hz;
	for (size_t i = 0; i < c->tree.processes.n; i++) {
		struct lull_process *p = ((struct lull_process **)c->tree.processes.at)[i];

		if (p->is_ours && !p->end_ns)
			sample_python(c, p, now_ns);
	}
}

void lull_feed_python_free(struct lull_process *p)
{
	lull_python_free(p->python);
	p->python = NULL;
}
