/*
 * cuda_waits - waits for a device, stream or event, seen in the callbacks of the calls.
 *
 * CUPTI has records of synchronisation, too. They are not used: while they are enabled every launch
 * of a framework takes 3 us longer, whether anything waits or not (measured on an H200 with CUPTI
 * of CUDA 13.0: a step of 1,725 launches takes 27 ms without and 33 ms with them).
 */
#include <string.h>

#include "agent/cuda/cuda.h"

/* Values of cuda_sync.kind. */
enum { WAIT_EVENT = 1, WAIT_STREAM_EVENT = 2, WAIT_STREAM = 3, WAIT_CONTEXT = 4 };

#define PER_THREAD 0x80u /* the call's stream 0 is that of the thread */

/* By what a name of the driver or the runtime begins with. */
static const struct {
	const char *name;
	u32 kind;
} waits[] = {
	{ "cudaDeviceSynchronize", WAIT_CONTEXT },  { "cudaThreadSynchronize", WAIT_CONTEXT },
	{ "cuCtxSynchronize", WAIT_CONTEXT },	    { "cudaStreamSynchronize", WAIT_STREAM },
	{ "cuStreamSynchronize", WAIT_STREAM },	    { "cudaEventSynchronize", WAIT_EVENT },
	{ "cuEventSynchronize", WAIT_EVENT },	    { "cudaStreamWaitEvent", WAIT_STREAM_EVENT },
	{ "cuStreamWaitEvent", WAIT_STREAM_EVENT },
};

u32 lull_cuda_wait_of(const char *name)
{
	for (size_t i = 0; i < LULL_COUNT_OF(waits); i++)
		if (strncmp(name, waits[i].name, strlen(waits[i].name)) == 0)
			return waits[i].kind | (strstr(name, "_ptsz") ? PER_THREAD : 0);
	return 0;
}

/* A handle in 32 bits; 0 is no event. */
static u32 event_of(const void *handle)
{
	u32 id = (u32)((u64)(uintptr_t)handle * 0x9e3779b97f4a7c15u >> 32);

	return handle && !id ? 1 : id;
}

void lull_cuda_waited(struct lull_thread *t, u32 wait, const void *data, u64 start, u64 dur_ticks)
{
	void *const *params = lull_cupti_call_params(data);
	u32 kind = wait & ~PER_THREAD, stream = UINT32_MAX;
	const u32 *ret = lull_cupti_call_ret(data);
	struct lull_wire_cuda_sync *e;
	const void *event = NULL;

	if (params && kind == WAIT_EVENT)
		event = params[0];
	if (params && kind == WAIT_STREAM_EVENT)
		event = params[1];
	if (params && (kind == WAIT_STREAM || kind == WAIT_STREAM_EVENT) &&
	    lull_cupti.cuptiGetStreamIdEx &&
	    lull_cupti.cuptiGetStreamIdEx(lull_cupti_call_context(data), params[0],
					  (wait & PER_THREAD) != 0, &stream) != 0)
		stream = UINT32_MAX;
	e = lull_reserve_at(t, LULL_EVENT_cuda_sync, sizeof(*e), start);
	if (!e)
		return;
	e->head.a = kind;
	e->dur_ticks = dur_ticks;
	e->place = (struct lull_wire_place){ .device = UINT32_MAX, /* the context tells */
					     .context = lull_cupti_call_context_id(data),
					     .stream = stream,
					     .correlation = lull_cupti_call_correlation(data) };
	e->event_sync = 0;
	e->event = event_of(event);
	e->ret = ret ? *ret : 0;
	lull_commit(t, sizeof(*e));
}
