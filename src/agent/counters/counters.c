/*
 * counters - measure selected launches, one at a time.
 *
 * Threads: `n_inside` launches are between their two callbacks. A thread whose launch is to be
 * measured becomes the holder, and waits until no other launch is inside. A launch that starts in
 * the meantime waits for the holder. Callbacks may be lost at the edges of a session, so no wait is
 * longer than a second.
 */
#include "agent/counters/counters.h"

#include <linux/futex.h>

#include "agent/cuda/cuda.h"
#include "agent/counters/kernel_launch.h"
#include "agent/counters/kernel_match.h"
#include "agent/counters/kernel_sample.h"
#include "agent/counters/kernel_span.h"
#include "agent/counters/kernel_work.h"
#include "agent/counters/kpc.h"
#include "agent/cuda/cupti.h"
#include "agent/core/sys.h"

/* More than any version has (CUDA 13.0: 807). */
#define N_CBIDS 2048u

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
	struct lull_kwork work;
	bool is_sampling; /* its program counter is sampled */
} kernel;

void lull_kernel_watch(bool is_on)
{
	const char *name = NULL;

	for (u32 cbid = 1; cbid < N_CBIDS; cbid++) {
		if (lull_cupti.cuptiGetCallbackName(LULL_CUPTI_DOMAIN_DRIVER, cbid, &name) != 0 ||
		    !name)
			continue;
		kernel.kinds[cbid] = (u8)lull_launch_kind(name);
		/* Graphs count in spans only, and calls of the profiler begin nothing but spans. */
		if (kernel.kinds[cbid] >= LULL_LAUNCH_GRAPH && !lull_kernel_has_spans())
			kernel.kinds[cbid] = LULL_LAUNCH_NONE;
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
		/* A replay may take minutes: its watchdog is the recorder. */
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

/* A duration comes with CUPTI's record of the kernel. */
static void begin_samples(void)
{
	lull_kwork_want_records();
	kernel.is_sampling = lull_kernel_sample_begin(&kernel.work.launch);
	if (kernel.is_sampling)
		return;
	kernel.work.status = LULL_PROFILED_FAILED;
	kernel.work.trouble = lull_kernel_sample_trouble();
}

/* Get ready for the launch that is about to be made. */
static void begin(const struct lull_launch *launch, u64 ordinal)
{
	take_hold();
	kernel.work =
		(struct lull_kwork){ .launch = *launch, .ordinal = ordinal, .since = lull_time() };
	kernel.is_sampling = false;
	if (lull_kernel_is_unsafe(launch->symbol)) {
		lull_kwork_fall_back(&kernel.work, LULL_PROFILED_UNSAFE);
		return;
	}
	lull_kwork_tell_busy(launch->symbol);
	if (lull_agent.control->kernels.is_sampled)
		begin_samples();
	else
		lull_kwork_begin(&kernel.work);
}

static void end_samples(struct lull_thread *t)
{
	if (lull_kernel_sample_end(t, kernel.work.ordinal))
		return;
	kernel.work.status = LULL_PROFILED_FAILED;
	kernel.work.trouble = lull_kernel_sample_trouble();
}

/* The launch was made, and ran as often as it had to. */
static void end(struct lull_thread *t, const void *data)
{
	const u32 *ret = lull_cupti_call_ret(data);
	bool has_run = !ret || !*ret, is_told = true;

	if (kernel.work.is_measuring)
		is_told = lull_kwork_end(&kernel.work);
	else if (kernel.is_sampling)
		end_samples(t);
	if (has_run && is_told)
		lull_kwork_tell(t, &kernel.work, lull_time() - kernel.work.since);
	lull_kwork_tell_idle();
	/* Not before: launches that pass freely would be counted with this one. */
	if (is_done(&lull_agent.control->kernels)) {
		atomic_store(&kernel.is_done, 1);
		lull_kwork_pause();
	}
	let_go();
}

/* The slot of a name; NULL if there is no room for another. */
static struct lull_kwish_seen *seen_slot(const char *name)
{
	struct lull_kwish_seen *slots = lull_agent.control->kernels.seen;

	for (u32 i = 0; i < LULL_KWISH_N_SEEN; i++) {
		u32 state = atomic_load_explicit(&slots[i].state, memory_order_acquire);

		if (state == 2 && strncmp(slots[i].name, name, sizeof(slots[i].name) - 1) == 0)
			return &slots[i];
		if (state || !atomic_compare_exchange_strong(&slots[i].state, &state, 1))
			continue;
		memcpy(slots[i].name, name, strnlen(name, sizeof(slots[i].name) - 1));
		atomic_store_explicit(&slots[i].state, 2, memory_order_release);
		return &slots[i];
	}
	return NULL;
}

/* Count a launch by its name: if none is measured, the user is told what did run. */
static void see(const char *symbol)
{
	struct lull_kwish_seen *slot;
	char name[sizeof(slot->name)];

	lull_kernel_plain_name(symbol, name, sizeof(name));
	slot = seen_slot(name);
	if (slot)
		atomic_fetch_add_explicit(&slot->n, 1, memory_order_relaxed);
}

static void enter(struct lull_thread *t, enum lull_launch_kind kind, const void *data)
{
	u64 ordinal = atomic_fetch_add(&kernel.n_launches, 1) + 1;
	struct lull_launch launch;

	atomic_fetch_add_explicit(&lull_agent.control->kernels.n_launches, 1, memory_order_relaxed);
	go_in();
	t->kernel.place = LULL_KERNEL_INSIDE;
	t->kernel.correlation = lull_cupti_call_correlation(data);
	if (!lull_launch_read(&launch, kind, data))
		return;
	see(launch.symbol);
	if (!is_chosen(t, &launch))
		return;
	t->kernel.place = LULL_KERNEL_HOLDING;
	begin(&launch, ordinal);
}

static void leave(struct lull_thread *t, const void *data)
{
	u32 was = t->kernel.place;

	if (t->kernel.correlation != lull_cupti_call_correlation(data))
		return;
	t->kernel.place = LULL_KERNEL_OUT;
	if (was == LULL_KERNEL_HOLDING)
		end(t, data);
	else if (was == LULL_KERNEL_INSIDE)
		atomic_fetch_sub(&kernel.n_inside, 1);
}

/* What is captured does not run now; it counts when its graph is launched, as one. */
static void count_in_span(enum lull_launch_kind kind, const void *data)
{
	struct lull_launch launch;

	atomic_fetch_add_explicit(&lull_agent.control->kernels.n_launches, 1, memory_order_relaxed);
	if (kind != LULL_LAUNCH_GRAPH &&
	    (!lull_launch_read(&launch, kind, data) || lull_launch_is_captured(&launch)))
		return;
	lull_kernel_span_launch(lull_cupti_call_context(data));
}

/* A call in a session that measures spans: the launches go their way. */
static void called_in_span(struct lull_thread *t, enum lull_launch_kind kind, const void *data)
{
	bool is_exit = lull_cupti_call_site(data) == LULL_CUPTI_SITE_EXIT;
	bool has_range = lull_agent.control->kernels.has_range != 0;

	if (kind == LULL_LAUNCH_START && is_exit && !has_range) {
		lull_kernel_span_begin(t, NULL);
	} else if (kind == LULL_LAUNCH_STOP && !is_exit && !has_range) {
		lull_kernel_span_end(t);
	} else if (kind < LULL_LAUNCH_START && !is_exit) {
		count_in_span(kind, data);
	}
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
	if (lull_kernel_has_spans())
		called_in_span(t, (enum lull_launch_kind)kernel.kinds[cbid], data);
	else if (lull_cupti_call_site(data) == LULL_CUPTI_SITE_EXIT)
		leave(t, data);
	else if (t->kernel.place == LULL_KERNEL_OUT && !atomic_load(&kernel.is_done))
		enter(t, kernel.kinds[cbid], data);
	t->is_quiet--;
	errno = saved;
}
