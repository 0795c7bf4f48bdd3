/*
 * kernel - measure chosen launches, one at a time.
 *
 * Threads: `n_inside` launches are between their two callbacks; one that is to be measured becomes
 * the holder, and waits until nobody else is inside. A launch that begins meanwhile waits for the
 * holder. Callbacks may be lost at the edges of a session, so no wait is longer than a second.
 */
#include "agent/kernel.h"

#include <linux/futex.h>
#include <stdlib.h>

#include "agent/cuda.h"
#include "agent/kernel_launch.h"
#include "agent/kernel_match.h"
#include "agent/kernel_sample.h"
#include "agent/kpc.h"
#include "agent/kprof.h"
#include "agent/lib_cupti.h"
#include "agent/sys.h"

/* More than any version has (CUDA 13.0: 807). */
#define N_CBIDS	   2048u
#define N_CONTEXTS 16u

/* How long a thread waits at a time, and how often. */
#define WAIT_NS	  1000000
#define MAX_WAITS 1000u

static struct {
	u8 kinds[N_CBIDS]; /* enum lull_launch_kind */
	_Atomic u32 n_inside;
	_Atomic u32 holder; /* thread id, 0 = nobody */
	_Atomic u32 is_done;
	_Atomic u64 n_launches;
	_Atomic u64 n_matched[LULL_KWISH_N_FILTERS];
	/* The holder's. */
	struct lull_kprof *profs[N_CONTEXTS];
	struct lull_kprof *prof; /* that measures right now */
	struct lull_launch launch;
	u64 ordinal;
	u64 since;
	u32 status;	   /* LULL_PROFILED_* */
	bool is_sampling;  /* its program counter is sampled */
	bool is_measuring; /* its counters are read */
	bool has_records;
} kernel;

void lull_kernel_watch(bool is_on)
{
	const char *name = NULL;

	for (u32 cbid = 1; cbid < N_CBIDS; cbid++) {
		if (lull_cupti.cuptiGetCallbackName(LULL_CUPTI_DOMAIN_DRIVER, cbid, &name) != 0 ||
		    !name)
			continue;
		kernel.kinds[cbid] = (u8)lull_launch_kind(name);
		if (kernel.kinds[cbid])
			lull_cuda_want_call(LULL_CUPTI_DOMAIN_DRIVER, cbid, LULL_CUDA_WE, is_on);
	}
	/* Lines of source come from modules. */
	if (lull_agent.control->kernels.is_sampled)
		lull_cuda_want_call(LULL_CUPTI_DOMAIN_RESOURCE, LULL_CUPTI_MODULE_LOADED,
				    LULL_CUDA_WE, is_on);
}

static void sleep_on(_Atomic u32 *word, u32 value)
{
	struct timespec limit = { 0, WAIT_NS };

	syscall(SYS_futex, word, FUTEX_WAIT, value, &limit, NULL, 0);
}

/* A launch begins: wait for the one that is measured. */
static void go_in(void)
{
	for (u32 i = 0; i < MAX_WAITS; i++) {
		u32 holder = atomic_load(&kernel.holder);

		if (!holder) {
			atomic_fetch_add(&kernel.n_inside, 1);
			/* The holder may have come in between; it sees us, or we see it. */
			if (!atomic_load(&kernel.holder))
				return;
			atomic_fetch_sub(&kernel.n_inside, 1);
			continue;
		}
		sleep_on(&kernel.holder, holder);
		/* A replay may take minutes: its watchdog is the collector. */
		i -= i > 0 && atomic_load(&kernel.holder) == holder;
	}
	atomic_fetch_add(&kernel.n_inside, 1);
}

/* From among those inside to the only one. */
static void take_hold(void)
{
	u32 nobody = 0, n;

	atomic_fetch_sub(&kernel.n_inside, 1);
	while (!atomic_compare_exchange_strong(&kernel.holder, &nobody, lull_sys_tid())) {
		sleep_on(&kernel.holder, nobody);
		nobody = 0;
	}
	for (u32 i = 0; i < MAX_WAITS && (n = atomic_load(&kernel.n_inside)) != 0; i++)
		sleep_on(&kernel.n_inside, n);
}

static void let_go(void)
{
	atomic_store(&kernel.holder, 0);
	syscall(SYS_futex, &kernel.holder, FUTEX_WAKE, 1 << 20, NULL, NULL, 0);
}

/* All filters have had their share. */
static bool is_done(const struct lull_kwish *wish)
{
	for (u32 i = 0; i < wish->n_filters; i++) {
		const struct lull_kwish_filter *f = &wish->filters[i];

		if (!f->count || atomic_load(&kernel.n_matched[i]) < f->skip + f->count)
			return false;
	}
	return true;
}

/* Whether this launch is one of those to be measured; counts it if its name matches. */
static bool is_chosen(const struct lull_thread *t, struct lull_launch *launch)
{
	const struct lull_kwish *wish = &lull_agent.control->kernels;
	const struct lull_kwish_filter *f;
	int ix;
	u64 n;

	if (wish->has_range && !t->capture)
		return false;
	ix = lull_kernel_match(launch->symbol);
	if (ix < 0)
		return false;
	lull_launch_complete(launch);
	if (!(wish->devices >> (launch->device_ix & 63) & 1) || lull_launch_is_captured(launch))
		return false;
	f = &wish->filters[ix];
	n = atomic_fetch_add(&kernel.n_matched[ix], 1);
	return n >= f->skip && (!f->count || n < f->skip + f->count);
}

static struct lull_kprof *prof_of(const struct lull_launch *launch)
{
	for (u32 i = 0; i < N_CONTEXTS; i++) {
		if (!kernel.profs[i])
			kernel.profs[i] = lull_kprof_open(launch->context, launch->device_ix,
							  lull_agent.control->kernels.metrics);
		if (!kernel.profs[i] || kernel.profs[i]->context == launch->context)
			return kernel.profs[i];
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
	char digits[24];
	size_t n, i = sizeof(digits);

	if (!*wish->data_folder)
		return;
	digits[--i] = '\0';
	do
		digits[--i] = (char)('0' + ordinal % 10);
	while ((ordinal /= 10) != 0);
	n = put_text(p->data_path, 0, sizeof(p->data_path), wish->data_folder);
	n = put_text(p->data_path, n, sizeof(p->data_path), "/");
	n = put_text(p->data_path, n, sizeof(p->data_path), rank ? rank : "0");
	n = put_text(p->data_path, n, sizeof(p->data_path), "-");
	put_text(p->data_path, n, sizeof(p->data_path), digits + i);
	p->pass_ix = wish->pass_ix;
}

static u32 status_of(const struct lull_kprof *p)
{
	switch (p ? p->error : LULL_PROF_E_OUT_OF_MEMORY) {
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

static void want_records(void)
{
	if (!kernel.has_records)
		lull_cuda_want_kind(LULL_CUPTI_KIND_KERNEL, LULL_CUDA_WE, true);
	kernel.has_records = true;
}

/* Durations then come with CUPTI's records of kernels. */
static void fall_back(u32 status)
{
	kernel.status = status;
	want_records();
}

static void tell_busy(const char *symbol)
{
	struct lull_kwish *wish = &lull_agent.control->kernels;
	size_t n = strnlen(symbol, sizeof(wish->busy_name) - 1);

	memcpy(wish->busy_name, symbol, n);
	wish->busy_name[n] = '\0';
	atomic_store(&wish->busy_since, lull_time());
	atomic_store(&wish->busy_pid, lull_agent.image->pid);
}

static void begin_counters(void)
{
	struct lull_kprof *p = prof_of(&kernel.launch);

	kernel.prof = p;
	if (p)
		set_data_path(p, kernel.ordinal);
	kernel.is_measuring = p && !p->error && lull_kprof_start(p);
	if (kernel.is_measuring)
		atomic_store(&lull_agent.control->kernels.n_passes, p->n_passes);
	else
		fall_back(status_of(p));
}

static void pause_all(void)
{
	for (u32 i = 0; i < N_CONTEXTS && kernel.profs[i]; i++)
		lull_kprof_pause(kernel.profs[i]);
}

/* A duration comes with CUPTI's record of the kernel. */
static void begin_samples(void)
{
	want_records();
	kernel.is_sampling = lull_kernel_sample_begin(&kernel.launch);
	if (!kernel.is_sampling)
		kernel.status = LULL_PROFILED_FAILED;
}

/* Get ready for the launch that is about to be made. */
static void begin(const struct lull_launch *launch, u64 ordinal)
{
	take_hold();
	kernel.launch = *launch;
	kernel.ordinal = ordinal;
	kernel.status = LULL_PROFILED_OK;
	kernel.since = lull_time();
	kernel.prof = NULL;
	kernel.is_measuring = kernel.is_sampling = false;
	if (lull_kernel_is_unsafe(launch->symbol)) {
		fall_back(LULL_PROFILED_UNSAFE);
		return;
	}
	tell_busy(launch->symbol);
	if (lull_agent.control->kernels.is_sampled)
		begin_samples();
	else
		begin_counters();
}

/* The value that was measured for a key of ours, 0 if it was not. */
static f64 value_of(const struct lull_kprof *p, const char *key)
{
	for (u32 i = 0; i < p->n; i++)
		if (strcmp(p->keys[i], key) == 0)
			return p->values[i];
	return 0;
}

static u64 why_refused(struct lull_thread *t)
{
	const struct lull_kprof *p = kernel.prof;
	const char *text = NULL;

	if (!p && kernel.status == LULL_PROFILED_FAILED) {
		text = lull_kernel_sample_trouble();
		return lull_name(t, text, strlen(text));
	}
	if (!p || !p->error)
		return 0;
	if (p->error < 0 || !lull_cupti.cuptiGetResultString ||
	    lull_cupti.cuptiGetResultString(p->error, &text) != 0 || !text)
		text = p->step;
	return lull_name(t, text, strlen(text));
}

static void emit_launch(struct lull_thread *t, u64 cost_ticks)
{
	const struct lull_launch *launch = &kernel.launch;
	u64 hash = lull_cuda_launch(t, &kernel.launch.shape, launch->symbol);
	u64 why = why_refused(t);
	bool is_ok = kernel.is_measuring && kernel.status == LULL_PROFILED_OK;
	struct lull_wire_profiled *e =
		lull_reserve_at(t, LULL_EVENT_profiled, sizeof(*e), kernel.since);

	if (!e)
		return;
	e->head.a = lull_agent.control->kernels.replay | kernel.status << 8;
	e->launch = hash;
	e->place = (struct lull_wire_place){ .device = launch->device_ix,
					     .context = launch->context_id,
					     .stream = launch->stream_id,
					     .correlation = launch->correlation };
	e->ordinal = kernel.ordinal;
	e->cost_ticks = cost_ticks;
	e->dur_ns = is_ok ? value_of(kernel.prof, "duration") : 0;
	e->sm_clock_hz = is_ok ? value_of(kernel.prof, "sm_clock") : 0;
	e->dram_clock_hz = is_ok ? value_of(kernel.prof, "dram_clock") : 0;
	e->why = why;
	e->n_passes = is_ok ? kernel.prof->n_passes : 0;
	e->pad = 0;
	lull_commit(t, sizeof(*e));
}

static void emit_metrics(struct lull_thread *t)
{
	const struct lull_kprof *p = kernel.prof;

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

/* Read the counters; false if the launch is not to be told (yet). */
static bool end_counters(void)
{
	if (!lull_kprof_stop(kernel.prof))
		fall_back(status_of(kernel.prof));
	return !kernel.prof->needs_more;
}

static void tell(struct lull_thread *t, u64 cost_ticks)
{
	struct lull_kwish *wish = &lull_agent.control->kernels;

	emit_launch(t, cost_ticks);
	if (kernel.is_measuring && kernel.status == LULL_PROFILED_OK)
		emit_metrics(t);
	atomic_fetch_add(&wish->done_ticks, cost_ticks);
	atomic_fetch_add(&wish->n_done, 1);
}

/* The launch was made, and ran as often as it had to. */
static void end(struct lull_thread *t, const void *data)
{
	const u32 *ret = lull_cupti_call_ret(data);
	bool has_run = !ret || !*ret, is_told = true;

	if (kernel.is_measuring)
		is_told = end_counters();
	else if (kernel.is_sampling && !lull_kernel_sample_end(t, kernel.ordinal))
		kernel.status = LULL_PROFILED_FAILED;
	if (has_run && is_told)
		tell(t, lull_time() - kernel.since);
	atomic_store(&lull_agent.control->kernels.busy_pid, 0);
	/* Not before: launches that pass freely would be counted with this one. */
	if (is_done(&lull_agent.control->kernels)) {
		atomic_store(&kernel.is_done, 1);
		pause_all();
	}
	let_go();
}

/* scratch[6]: 1 inside a launch, 2 holding; a call inside another is passed over. */
enum { OUT = 0, INSIDE = 1, HOLDING = 2 };

static void enter(struct lull_thread *t, enum lull_launch_kind kind, const void *data)
{
	u64 ordinal = atomic_fetch_add(&kernel.n_launches, 1) + 1;
	struct lull_launch launch;

	atomic_fetch_add_explicit(&lull_agent.control->kernels.n_launches, 1, memory_order_relaxed);
	go_in();
	t->scratch[6] = INSIDE;
	t->scratch[7] = lull_cupti_call_correlation(data);
	if (!lull_launch_read(&launch, kind, data))
		return;
	if (!is_chosen(t, &launch))
		return;
	t->scratch[6] = HOLDING;
	begin(&launch, ordinal);
}

static void leave(struct lull_thread *t, const void *data)
{
	u64 was = t->scratch[6];

	if (t->scratch[7] != lull_cupti_call_correlation(data))
		return;
	t->scratch[6] = OUT;
	if (was == HOLDING)
		end(t, data);
	else if (was == INSIDE)
		atomic_fetch_sub(&kernel.n_inside, 1);
}

static void on_resource(u32 cbid, const void *data)
{
	const void *module = lull_cupti_resource_descriptor(data);

	lull_cuda_resource(cbid, data);
	if (cbid == LULL_CUPTI_MODULE_LOADED && module)
		lull_kpc_module(lull_cupti_module_cubin(module),
				lull_cupti_module_size_bytes(module));
}

void lull_kernel_called(void *user, u32 domain, u32 cbid, const void *data)
{
	struct lull_thread *t;
	int saved = errno;

	(void)user;
	if (domain == LULL_CUPTI_DOMAIN_RESOURCE) {
		on_resource(cbid, data);
		return;
	}
	t = lull_recording();
	if (domain != LULL_CUPTI_DOMAIN_DRIVER || cbid >= N_CBIDS || !kernel.kinds[cbid] || !t)
		return;
	t->is_quiet++;
	if (lull_cupti_call_site(data) == LULL_CUPTI_SITE_EXIT)
		leave(t, data);
	else if (t->scratch[6] == OUT && !atomic_load(&kernel.is_done))
		enter(t, kernel.kinds[cbid], data);
	t->is_quiet--;
	errno = saved;
}
