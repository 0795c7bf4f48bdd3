/*
 * cuda_objects - contexts, modules, streams and their names, and unified memory.
 *
 * Contexts and streams come as records (cuda_records.c). Modules come by callbacks, on the thread
 * that loads them. Names come from NVTX with the program's handles, which CUPTI turns into the
 * numbers that records carry.
 */
#include <limits.h>
#include <linux/futex.h>

#include "agent/cuda/cuda.h"
#include "agent/cuda/cupti.h"
#include "agent/core/sys.h"

/* Devices to ask for; more than any machine has. */
#define N_DEVICES 32u

static _Atomic u32 has_context; /* CUDA is up, so that unified memory can be configured */
static bool is_memory_on;

static void on_module(u32 kind, const void *data)
{
	const void *module = lull_cupti_resource_descriptor(data);
	struct lull_thread *t = lull_recording();
	struct lull_wire_cuda_module *e;
	u32 context = 0;

	if (!t || !module)
		return;
	if (lull_cupti.cuptiGetContextId)
		lull_cupti.cuptiGetContextId(lull_cupti_resource_context(data), &context);
	e = lull_reserve(t, LULL_EVENT_cuda_module, sizeof(*e));
	if (!e)
		return;
	e->head.a = kind;
	e->dur_ticks = 0;
	e->size_bytes = lull_cupti_module_size_bytes(module);
	e->path = 0;
	e->module_id = lull_cupti_module_id(module);
	e->context = context;
	e->correlation = 0;
	e->tid = lull_sys_tid();
	lull_commit(t, sizeof(*e));
}

void lull_cuda_resource(u32 cbid, const void *data)
{
	if (cbid == LULL_CUPTI_CONTEXT_CREATED) {
		atomic_store(&has_context, 1);
		/* The flushing thread sets unified memory up; it may be asleep. */
		syscall(SYS_futex, &lull_agent.control->flush_wanted, FUTEX_WAKE, INT_MAX, NULL,
			NULL, 0);
	}
	if (cbid == LULL_CUPTI_MODULE_LOADED)
		on_module(LULL_MODULE_LOADED, data);
	else if (cbid == LULL_CUPTI_MODULE_UNLOADING)
		on_module(LULL_MODULE_UNLOADED, data);
}

void lull_cuda_watch_resources(bool is_on)
{
	static const u32 cbids[] = { LULL_CUPTI_CONTEXT_CREATED, LULL_CUPTI_MODULE_LOADED,
				     LULL_CUPTI_MODULE_UNLOADING };

	for (size_t i = 0; i < LULL_COUNT_OF(cbids); i++)
		lull_cuda_want_call(LULL_CUPTI_DOMAIN_RESOURCE, cbids[i], LULL_CUDA_WE, is_on);
}

struct um_config {
	u32 scope;
	u32 kind;
	u32 device;
	u32 is_on;
};
_Static_assert(sizeof(struct um_config) == 16, "as CUPTI lays it out");

/* One counter of all devices; false if CUPTI has it of none. */
static bool configure(u32 kind)
{
	u32 n = 0;

	for (u32 device = 0; device < N_DEVICES; device++) {
		struct um_config config = { LULL_CUPTI_UM_SCOPE_DEVICE, kind, device, 1 };

		if (lull_cupti.cuptiActivityConfigureUnifiedMemoryCounter(&config, 1) != 0)
			break;
		n++;
	}
	return n > 0;
}

/* What moves is always wanted; faults as the user says. */
static bool configure_all(u32 sources)
{
	static const u32 moves[] = { LULL_CUPTI_UM_HTOD, LULL_CUPTI_UM_DTOH, LULL_CUPTI_UM_DTOD };
	static const u32 of_device[] = { LULL_CUPTI_UM_GPU_FAULT, LULL_CUPTI_UM_THRASHING,
					 LULL_CUPTI_UM_THROTTLING, LULL_CUPTI_UM_REMOTE_MAP };
	bool is_on = false;

	for (size_t i = 0; i < LULL_COUNT_OF(moves); i++)
		is_on |= configure(moves[i]);
	if (sources & LULL_SOURCE_UM_CPU_FAULTS)
		is_on |= configure(LULL_CUPTI_UM_CPU_FAULT);
	for (size_t i = 0; i < LULL_COUNT_OF(of_device) && (sources & LULL_SOURCE_UM_GPU_FAULTS);
	     i++)
		is_on |= configure(of_device[i]);
	return is_on;
}

void lull_cuda_watch_memory(bool is_on)
{
	u32 sources = lull_agent.control->sources;

	if (!(sources & (LULL_SOURCE_UM_CPU_FAULTS | LULL_SOURCE_UM_GPU_FAULTS)) ||
	    is_on == is_memory_on || (is_on && !atomic_load(&has_context)))
		return;
	is_memory_on = is_on;
	if (is_on &&
	    (!lull_cupti.cuptiActivityConfigureUnifiedMemoryCounter || !configure_all(sources) ||
	     lull_cuda_want_kind(LULL_CUPTI_KIND_UM, LULL_CUDA_WE, true) != 0))
		lull_issue(LULL_ISSUE_um_refused, 1);
	else if (!is_on)
		lull_cuda_want_kind(LULL_CUPTI_KIND_UM, LULL_CUDA_WE, false);
}

/* The number that records carry for a handle of the program; false if CUPTI does not know it. */
static bool id_of(u32 what, u64 handle, u32 *id)
{
	if (what == LULL_NAMED_DEVICE) {
		*id = (u32)handle;
		return true;
	}
	if (what == LULL_NAMED_CONTEXT)
		return lull_cupti.cuptiGetContextId &&
		       lull_cupti.cuptiGetContextId((void *)handle, id) == 0;
	return lull_cupti.cuptiGetStreamIdEx &&
	       lull_cupti.cuptiGetStreamIdEx(NULL, (void *)handle, 0, id) == 0;
}

void lull_cuda_named(u32 what, u64 handle, const char *name, size_t len)
{
	struct lull_thread *t = lull_thread();
	struct lull_wire_cuda_name *e;
	struct lull_text text = lull_text(name, len);
	int saved = errno;
	u32 id;

	if (!t || !len || !lull_cuda_is_mine() || lull_sys_pid() != lull_agent.image->pid ||
	    !lull_cuda_attach() || !id_of(what, handle, &id))
		goto out;
	lull_define_string(t, text.hash, text.bytes, text.len);
	e = lull_reserve(t, LULL_EVENT_cuda_name, sizeof(*e));
	if (!e)
		goto out;
	e->head.a = what;
	e->id = id;
	e->name = text.hash;
	lull_commit(t, sizeof(*e));
out:
	errno = saved;
}
