#include "cuda_int.h"

#include <pthread.h>
#include <stdatomic.h>

static struct {
	pthread_mutex_t lock;
	_Atomic(const struct sim_hooks *) hooks;
	_Atomic u32 correlation; /* of the latest call */
	pthread_once_t once;
	u64 call_ns; /* what a call costs the host */
} driver = { .lock = PTHREAD_MUTEX_INITIALIZER, .once = PTHREAD_ONCE_INIT };

/* Number of the runtime's call that this thread is in; what that asks of the driver has it, too. */
static _Thread_local u32 outer;

static void read_knobs(void)
{
	driver.call_ns = (u64)sim_knob("LULL_SIM_CALL_NS", 2000);
}

void lull_sim_lock(void)
{
	pthread_mutex_lock(&driver.lock);
}

void lull_sim_unlock(void)
{
	pthread_mutex_unlock(&driver.lock);
}

const struct sim_hooks *lull_sim_hooks(void)
{
	/* Acquire: whoever sees the table sees what libcupti prepared before it connected. */
	return atomic_load_explicit(&driver.hooks, memory_order_acquire);
}

static u32 next_correlation(void)
{
	return atomic_fetch_add_explicit(&driver.correlation, 1, memory_order_relaxed) + 1;
}

struct sim_call lull_sim_enter(u32 cbid, const char *name, const void *params)
{
	return lull_sim_enter_launch(cbid, name, params, NULL);
}

struct sim_call lull_sim_enter_launch(u32 cbid, const char *name, const void *params,
				      const char *symbol)
{
	const struct sim_hooks *hooks = lull_sim_hooks();
	struct sim_context *context = lull_sim_context();
	struct sim_call call = { .domain = SIM_DRIVER,
				 .cbid = cbid,
				 .name = name,
				 .context = context,
				 .params = params,
				 .symbol = symbol };

	pthread_once(&driver.once, read_knobs);
	call.correlation = outer ? outer : next_correlation();
	call.context_id = context ? context->id : 0;
	if (hooks)
		hooks->enter(&call);
	sim_spend(driver.call_ns);
	return call;
}

int lull_sim_leave(struct sim_call *call, int result)
{
	call->result = result;
	if (call->is_told)
		lull_sim_hooks()->leave(call);
	return result;
}

SIM_EXPORT void lull_sim_runtime_enter(struct sim_call *call)
{
	const struct sim_hooks *hooks = lull_sim_hooks();
	struct sim_context *context = lull_sim_context();

	call->context = context;
	call->context_id = context ? context->id : 0;
	call->correlation = outer = next_correlation();
	if (hooks)
		hooks->enter(call);
}

SIM_EXPORT void lull_sim_runtime_leave(struct sim_call *call)
{
	outer = 0;
	if (call->is_told)
		lull_sim_hooks()->leave(call);
}

void lull_sim_tell(const struct sim_work *work)
{
	const struct sim_hooks *hooks = lull_sim_hooks();

	if (hooks)
		hooks->work(work);
}

void lull_sim_tell_event(struct sim_event *event)
{
	const struct sim_hooks *hooks = lull_sim_hooks();
	struct sim_context *context = lull_sim_context();

	event->context = context;
	event->context_id = context ? context->id : 0;
	if (!event->end_ns)
		event->end_ns = sim_now_ns();
	if (!event->start_ns)
		event->start_ns = event->end_ns;
	if (hooks)
		hooks->event(event);
}

SIM_EXPORT void lull_sim_connect(const struct sim_hooks *hooks)
{
	atomic_store_explicit(&driver.hooks, hooks, memory_order_release);
}
