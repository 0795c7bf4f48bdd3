#include "agent/counters/kernel_work.h"

#include <stdlib.h>

#include "agent/cuda/cuda.h"
#include "agent/cuda/cupti.h"
#include "agent/core/decimal.h"

#define N_CONTEXTS 16u

static struct {
	struct lull_kprof *profs[N_CONTEXTS];
	bool has_records;
} work;

static struct lull_kprof *prof_of(const struct lull_launch *launch)
{
	for (u32 i = 0; i < N_CONTEXTS; i++) {
		if (!work.profs[i])
			work.profs[i] = lull_kprof_open(launch->context, launch->device_ix,
							lull_agent.control->kernels.metrics);
		if (!work.profs[i] || work.profs[i]->context == launch->context)
			return work.profs[i];
	}
	return NULL;
}

static size_t put_text(char *to, size_t n, size_t room, const char *text)
{
	for (; *text && n + 1 < room; text++)
		to[n++] = *text;
	to[n] = '\0';
	return n;
}

/*
 * Where the counters of this launch are kept from run to run: FOLDER/RANK-ORDINAL. The rank tells
 * the processes of a job apart, whose ids change from run to run.
 */
static void set_data_path(struct lull_kprof *p, u64 ordinal)
{
	const struct lull_kwish *wish = &lull_agent.control->kernels;
	const char *rank = getenv("RANK");
	char digits[LULL_DECIMAL_BYTES];
	size_t n;

	if (!*wish->data_folder)
		return;
	n = put_text(p->data_path, 0, sizeof(p->data_path), wish->data_folder);
	n = put_text(p->data_path, n, sizeof(p->data_path), "/");
	n = put_text(p->data_path, n, sizeof(p->data_path), rank ? rank : "0");
	n = put_text(p->data_path, n, sizeof(p->data_path), "-");
	put_text(p->data_path, n, sizeof(p->data_path), lull_decimal(ordinal, digits));
	p->pass_ix = wish->pass_ix;
}

static u32 status_of(const struct lull_kprof *p)
{
	switch (p ? p->refused.error : LULL_PROF_E_OUT_OF_MEMORY) {
	case LULL_PROF_E_PRIVILEGES:
	case LULL_PROF_E_VGPU:
		return LULL_PROFILED_DENIED;
	case LULL_PROF_E_BUSY:
		return LULL_PROFILED_BUSY;
	case LULL_PROF_E_VIRTUALIZED:
	case LULL_PROF_E_CONFIDENTIAL:
	case LULL_PROF_E_MIG:
	case -1:
		return LULL_PROFILED_UNSUPPORTED;
	}
	return LULL_PROFILED_FAILED;
}

void lull_kwork_want_records(void)
{
	if (!work.has_records)
		lull_cuda_want_kind(LULL_CUPTI_KIND_KERNEL, LULL_CUDA_WE, true);
	work.has_records = true;
}

void lull_kwork_fall_back(struct lull_kwork *w, u32 status)
{
	w->status = status;
	lull_kwork_want_records();
}

void lull_kwork_tell_busy(const char *name)
{
	struct lull_kwish *wish = &lull_agent.control->kernels;
	size_t n = strnlen(name, sizeof(wish->busy_name) - 1);

	memcpy(wish->busy_name, name, n);
	wish->busy_name[n] = '\0';
	atomic_store(&wish->busy_since, lull_time());
	atomic_store(&wish->busy_pid, lull_agent.image->pid);
}

void lull_kwork_tell_idle(void)
{
	atomic_store(&lull_agent.control->kernels.busy_pid, 0);
}

bool lull_kwork_begin(struct lull_kwork *w)
{
	struct lull_kprof *p = prof_of(&w->launch);

	w->prof = p;
	if (p) {
		set_data_path(p, w->ordinal);
		p->range = w->is_range ? w->launch.symbol : NULL;
	}
	w->is_measuring = p && !p->refused.error && lull_kprof_start(p);
	if (w->is_measuring)
		atomic_store(&lull_agent.control->kernels.n_passes, p->n_passes);
	else
		lull_kwork_fall_back(w, status_of(p));
	return w->is_measuring;
}

bool lull_kwork_end(struct lull_kwork *w)
{
	struct lull_kprof *p = w->prof;

	p->n_launches = w->n_launches;
	if (!lull_kprof_stop(p))
		lull_kwork_fall_back(w, status_of(p));
	return !p->needs_more;
}

/* The value that was measured for a key of ours, 0 if it was not. */
static f64 value_of(const struct lull_kprof *p, const char *key)
{
	for (u32 i = 0; i < p->n; i++)
		if (strcmp(p->keys[i], key) == 0)
			return p->values[i];
	return 0;
}

static u64 why_refused(struct lull_thread *t, const struct lull_kwork *w)
{
	const struct lull_kprof *p = w->prof;
	const char *text = NULL;

	if (w->trouble)
		return lull_name(t, w->trouble, strlen(w->trouble));
	if (!p || !p->refused.error)
		return 0;
	if (p->refused.error < 0 || !lull_cupti.cuptiGetResultString ||
	    lull_cupti.cuptiGetResultString(p->refused.error, &text) != 0 || !text)
		text = p->refused.step;
	return lull_name(t, text, strlen(text));
}

static bool is_read(const struct lull_kwork *w)
{
	return w->is_measuring && w->status == LULL_PROFILED_OK;
}

static void emit_work(struct lull_thread *t, struct lull_kwork *w, u64 cost_ticks)
{
	const struct lull_launch *launch = &w->launch;
	u64 hash = lull_cuda_launch(t, &w->launch.shape, launch->symbol);
	u64 why = why_refused(t, w);
	bool is_ok = is_read(w);
	struct lull_wire_profiled *e =
		lull_reserve_at(t, LULL_EVENT_profiled, sizeof(*e), w->since);

	if (!e)
		return;
	e->head.a = lull_agent.control->kernels.replay | w->status << 8;
	e->launch = hash;
	e->place = (struct lull_wire_place){ .device = launch->device_ix,
					     .context = launch->context_id,
					     .stream = launch->stream_id,
					     .correlation = launch->correlation };
	e->ordinal = w->ordinal;
	e->cost_ticks = cost_ticks;
	e->dur_ns = is_ok ? value_of(w->prof, "duration") : 0;
	e->sm_clock_hz = is_ok ? value_of(w->prof, "sm_clock") : 0;
	e->dram_clock_hz = is_ok ? value_of(w->prof, "dram_clock") : 0;
	e->why = why;
	e->n_passes = is_ok ? w->prof->n_passes : 0;
	e->n_launches = is_ok ? w->prof->n_launches : w->n_launches;
	e->n_launches_least = is_ok ? w->prof->n_launches_least : w->n_launches;
	e->pad = 0;
	lull_commit(t, sizeof(*e));
}

static void emit_metrics(struct lull_thread *t, const struct lull_kprof *p)
{
	for (u32 i = 0; i < p->n; i++) {
		u64 key = lull_name(t, p->keys[i], strlen(p->keys[i]));
		u64 name = lull_name(t, p->names[i], strlen(p->names[i]));
		struct lull_wire_kmetric *e = lull_reserve(t, LULL_EVENT_kmetric, sizeof(*e));

		if (!e)
			continue;
		e->key = key;
		e->name = name;
		e->value = p->values[i];
		lull_commit(t, sizeof(*e));
	}
}

void lull_kwork_tell(struct lull_thread *t, struct lull_kwork *w, u64 cost_ticks)
{
	struct lull_kwish *wish = &lull_agent.control->kernels;

	emit_work(t, w, cost_ticks);
	if (is_read(w))
		emit_metrics(t, w->prof);
	atomic_fetch_add(&wish->done_ticks, cost_ticks);
	atomic_fetch_add(&wish->n_done, 1);
}

void lull_kwork_pause(void)
{
	for (u32 i = 0; i < N_CONTEXTS && work.profs[i]; i++)
		lull_kprof_pause(work.profs[i]);
}
