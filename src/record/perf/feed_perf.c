/*
 * feed_perf - what the kernel reports into the recording: samples, switches, births, deaths, names,
 * mappings.
 */
#include "record/collector_int.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/time.h"
#include "record/perf/callstack.h"
#include "record/process/usage.h"
#include "symbol/regs.h"

static struct lull_task *task_of(struct lull_collector *c, u32 pid, u32 tid, u64 time_ns)
{
	return lull_tree_task_at(lull_tree_at(&c->tree, pid, time_ns), tid, time_ns);
}

static void on_sample(void *ctx, const struct lull_perf_sample *s)
{
	struct lull_collector *c = ctx;
	struct lull_recording *r = &c->recording;
	struct lull_stack_bytes bytes = { .at = s->stack, .n_bytes = s->stack_bytes };
	struct lull_sample_row row;
	struct lull_regs regs;
	struct lull_task *task;
	bool is_cut = false;

	if (!r->writer)
		return;
	task = task_of(c, s->pid, s->tid, s->time_ns);
	if (!task->process->is_ours && !task->process->space) {
		lull_usage_thread_name((pid_t)s->pid, s->pid, task->process->name);
		lull_callstack_look(r, task->process);
	}
	if (s->regs_mask) {
		const struct lull_machine *machine;

		regs = lull_regs_from_perf(s->regs_mask, s->regs);
		machine = lull_machine_find(regs.machine);
		bytes.addr = machine ? regs.at[machine->sp] : 0;
	}
	row = (struct lull_sample_row){
		.start_ns = lull_recording_ns(r, s->time_ns),
		.lane = lull_recording_lane(r, task),
		.stack = lull_callstack_add(r, task->process, s->regs_mask ? &regs : NULL, &bytes,
					    s->chain, s->n_chain, &is_cut),
		.cpu = (u16)s->cpu,
		.weight_ns = s->weight_ns,
		.source = 1,
		.flags = is_cut,
	};
	if (is_cut)
		lull_recording_issue(r, LULL_ISSUE_stack_cut, task->process, 1, NULL);
	lull_recording_add(r, LULL_TABLE_sample, &row);
}

static void on_stay(void *ctx, const struct lull_sched_stay *stay)
{
	struct lull_collector *c = ctx;
	struct lull_recording *r = &c->recording;
	struct lull_sched_row row = {
		.start_ns = lull_recording_ns(r, stay->start_ns),
		.dur_ns = stay->dur_ns,
		.cpu = (u16)stay->cpu,
		.end_reason = (u8)stay->end_reason,
	};

	if (!r->writer)
		return;
	row.lane = lull_recording_lane(r, task_of(c, stay->pid, stay->tid, stay->start_ns));
	lull_recording_add(r, LULL_TABLE_sched, &row);
}

static void on_switch(void *ctx, const struct lull_perf_switch *s)
{
	struct lull_collector *c = ctx;
	struct lull_sched_event e = { s->pid, s->tid, s->time_ns, s->cpu };

	if (!c->recording.writer)
		return;
	if (s->is_in)
		lull_sched_in(c->sched, &e);
	else
		lull_sched_out(c->sched, &e, s->is_preempted);
}

static void on_fork(void *ctx, const struct lull_perf_task *t)
{
	struct lull_collector *c = ctx;
	struct lull_sched_event e = { t->pid, t->tid, t->time_ns, 0 };
	struct lull_process *parent = lull_tree_find(&c->tree, t->parent_pid);
	struct lull_process *p;

	lull_sched_fork(c->sched, &e);
	if (t->pid == t->parent_pid)
		p = lull_tree_at(&c->tree, t->pid, t->time_ns);
	else
		p = lull_tree_fork(&c->tree, t->pid, t->parent_pid, t->time_ns);
	if (t->pid != t->parent_pid && parent) {
		lull_callstack_fork(&c->recording, p, parent);
		p->is_ours = p->is_ours || parent->is_ours;
		if (!*p->name)
			memcpy(p->name, parent->name, sizeof(p->name));
		if (!p->exe && parent->exe)
			p->exe = lull_strdup(parent->exe);
	}
	lull_tree_task_at(p, t->tid, t->time_ns);
}

static void on_exit_task(void *ctx, const struct lull_perf_task *t)
{
	struct lull_collector *c = ctx;
	struct lull_sched_event e = { t->pid, t->tid, t->time_ns, 0 };
	struct lull_process *p = lull_tree_at(&c->tree, t->pid, t->time_ns);
	struct lull_task *task = lull_tree_find_task(p, t->tid);

	lull_sched_exit(c->sched, &e);
	if (task && !task->end_ns)
		task->end_ns = t->time_ns;
	/*
	 * The process ends with its last thread; the agent's image or wait() says so when there is
	 * one.
	 */
	if (t->tid == t->pid && !p->had_agent && !p->end_ns && t->pid != (u32)c->target.pid)
		p->end_ns = t->time_ns;
}

static void on_comm(void *ctx, const struct lull_perf_comm *m)
{
	struct lull_collector *c = ctx;
	struct lull_process *p;
	struct lull_task *task;

	if (m->is_exec) {
		p = lull_tree_exec(&c->tree, m->pid, m->time_ns);
		p->is_exec_known = true;
		if (!p->had_agent) {
			/* What it inherited from its parent is gone; its own mappings follow. */
			lull_callstack_exec(p);
			free(p->exe);
			p->exe = NULL;
		}
	} else {
		p = lull_tree_at(&c->tree, m->pid, m->time_ns);
	}
	if (m->pid == m->tid && !p->had_agent)
		snprintf(p->name, sizeof(p->name), "%s", m->name);
	task = lull_tree_task_at(p, m->tid, m->time_ns);
	if (!task->is_name_given)
		snprintf(task->name, sizeof(task->name), "%s", m->name);
}

static void on_mmap(void *ctx, const struct lull_perf_mmap *m)
{
	struct lull_collector *c = ctx;
	struct lull_process *p = lull_tree_at(&c->tree, m->pid, m->time_ns);
	struct lull_build_id id = { 0 };

	if (m->build_id && m->build_id_bytes <= sizeof(id.at)) {
		memcpy(id.at, m->build_id, m->build_id_bytes);
		id.n_bytes = (u32)m->build_id_bytes;
	}
	if (!p->exe && m->path[0] == '/')
		p->exe = lull_strdup(m->path); /* the program itself is mapped first */
	lull_callstack_map(&c->recording, p,
			   &(struct lull_mmap){
				   .start = m->addr,
				   .end = m->addr + m->len_bytes,
				   .file_off = m->file_off,
				   .path = m->path,
				   .build_id = id.n_bytes ? &id : NULL,
			   });
}

static void on_lost(void *ctx, u64 n, u64 time_ns)
{
	struct lull_collector *c = ctx;

	(void)time_ns;
	lull_sched_lost(c->sched);
	if (c->recording.writer)
		lull_recording_issue(&c->recording, LULL_ISSUE_perf_lost, NULL, n, NULL);
}

static const struct lull_perf_handlers handlers = {
	.sample = on_sample,
	.switched = on_switch,
	.fork = on_fork,
	.exit = on_exit_task,
	.comm = on_comm,
	.mmap = on_mmap,
	.lost = on_lost,
};

/* As many samples as the user wants, or else as are cheap on this machine. */
static void choose_rate(struct lull_collector *c, struct lull_perf_options *options)
{
	if (options->samples == LULL_PERF_NONE)
		return;
	options->rate_hz = c->options->rate_hz;
	if (!options->rate_hz) {
		c->sample_cost_ns = lull_perf_cost_ns(options);
		options->rate_hz = lull_perf_rate_hz(c->sample_cost_ns);
	}
	c->sample_hz = options->rate_hz;
}

void lull_feed_perf_open(struct lull_collector *c)
{
	const struct lull_collector_options *o = c->options;
	struct lull_perf_options options = LULL_PERF_OPTIONS_INIT;
	struct lull_err err;

	c->sched = lull_alloc(1, sizeof(*c->sched));
	lull_sched_init(c->sched, c->start_ns, on_stay, c);
	if (o->is_timer_forced && o->samples != LULL_PERF_NONE)
		c->session.control->sources |= LULL_SOURCE_TIMER;
	options.samples = o->is_timer_forced ? LULL_PERF_NONE : o->samples;
	if (options.samples == LULL_PERF_NONE && o->switches == LULL_PERF_NONE)
		return;
	options.switches = o->switches;
	options.regs_mask = lull_regs_perf_mask();
	options.is_paused = true;
	options.is_lasting = o->begin == LULL_BEGIN_AT_ONCE && o->delay_s <= 0 && !o->is_duty;
	choose_rate(c, &options);
	if (lull_perf_open(&c->perf, &options, c->target.pid, &err) == 0)
		return;
	c->perf = NULL;
	c->sample_hz = 0;
	snprintf(c->perf_refusal, sizeof(c->perf_refusal), "%.255s", err.msg);
	/* The agents' own timers take over. */
	if (o->samples != LULL_PERF_NONE)
		c->session.control->sources |= LULL_SOURCE_TIMER;
}

void lull_feed_perf(struct lull_collector *c, bool is_last)
{
	if (!c->perf)
		return;
	if (is_last)
		lull_perf_flush(c->perf, &handlers, c);
	else
		lull_perf_drain(c->perf, &handlers, c);
}

void lull_feed_perf_close(struct lull_collector *c)
{
	lull_perf_close(c->perf);
	c->perf = NULL;
	if (c->sched)
		lull_sched_release(c->sched);
	free(c->sched);
	c->sched = NULL;
}

void lull_feed_perf_resume(struct lull_collector *c, u64 begin_ns)
{
	struct lull_err err;

	lull_sched_resume(c->sched, begin_ns);
	if (c->perf && lull_perf_enable(c->perf, true, &err) != 0)
		lull_recording_issue(&c->recording, LULL_ISSUE_perf_refused, NULL, 1, err.msg);
}

void lull_feed_perf_begin(struct lull_collector *c)
{
	if (!c->options->is_duty)
		lull_feed_perf_resume(c, c->begin_ns);
	if (*c->perf_refusal && c->options->samples != LULL_PERF_NONE)
		lull_recording_issue(&c->recording, LULL_ISSUE_perf_refused, NULL, 1,
				     c->perf_refusal);
	if (*c->perf_refusal && c->options->switches != LULL_PERF_NONE)
		lull_recording_issue(&c->recording, LULL_ISSUE_no_switches, NULL, 1,
				     c->perf_refusal);
}

void lull_feed_perf_end(struct lull_collector *c, u64 now_ns)
{
	struct lull_err err;

	if (c->perf) {
		lull_perf_enable(c->perf, false, &err);
		lull_feed_perf(c, true);
	}
	lull_sched_pause(c->sched, now_ns);
}
