/*
 * cuda_calls - calls of the CUDA driver and runtime that matter, timed by callbacks.
 *
 * Which calls matter is decided by name, so that the list holds for every version: of the hundreds
 * of entry points a framework asks a dozen questions for each kernel it launches (which device,
 * which stream, is it done), and nobody wants to see them. A driver call inside a runtime call is
 * not reported: the runtime call stands for it.
 */
#include <string.h>

#include "agent/capture.h"
#include "agent/cuda.h"
#include "agent/lib_cupti.h"

/* More than any version has (CUDA 13.0: 523 runtime, 807 driver). */
#define N_CBIDS 2048u

/* Calls whose name begins so are recorded... */
static const char *const wanted[] = {
	"cudaLaunch",
	"cudaMemcpy",
	"cudaMemset",
	"cudaMalloc",
	"cudaFree",
	"cudaHostAlloc",
	"cudaHostRegister",
	"cudaDeviceSynchronize",
	"cudaStreamSync",
	"cudaEventSync",
	"cudaEventRecord",
	"cudaStreamWaitEvent",
	"cudaGraphLaunch",
	"cudaGraphInst",
	"cudaGraphExecUpd",
	"cudaStreamBeginCapture",
	"cudaStreamEndCapt",
	"cudaStreamCreat",
	"cudaStreamDestroy",
	"cudaMemPrefetch",
	"cudaDeviceReset",
	"cudaProfiler",
	"cudaThreadSync",
	"cuLaunch",
	"cuMemcpy",
	"cuMemset",
	"cuMemAlloc",
	"cuMemFree",
	"cuMemHostAlloc",
	"cuMemCreate",
	"cuMemMap",
	"cuMemUnmap",
	"cuCtxSynchronize",
	"cuStreamSync",
	"cuEventSync",
	"cuEventRecord",
	"cuStreamWaitEvent",
	"cuGraphLaunch",
	"cuGraphInst",
	"cuModuleLoad",
	"cuLibraryLoad",
	"cuCtxCreate",
	"cuDevicePrimaryCtxR",
	"cuMemPrefetch",
	"cuStreamCreate",
	"cuStreamDestroy",
	"cuInit",
	"cuProfiler",
};

/* ...unless they are among these. */
static const char *const unwanted[] = {
	"cudaMemcpyToSymbolGet",
	"cuMemAllocPitchGet",
	"cuMemMapArray",
	"cudaFreeArrayGet",
};

enum { CAPTURE_NONE, CAPTURE_START, CAPTURE_STOP };

/* Name of each watched call, its hash ready; entry [domain - 1][cbid]. */
static struct {
	const char *text;
	u64 hash;
	u32 len;
	u32 capture; /* cudaProfilerStart and Stop may begin and end a recording */
} names[2][N_CBIDS];

static bool begins_with(const char *name, const char *const *list, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strncmp(name, list[i], strlen(list[i])) == 0)
			return true;
	return false;
}

static void watch(void *subscriber, u32 domain, u32 cbid, bool is_on)
{
	const char *name = NULL;
	u32 len;

	if (lull_cupti.cuptiGetCallbackName(domain, cbid, &name) != 0 || !name)
		return;
	if (!begins_with(name, wanted, LULL_COUNT_OF(wanted)) ||
	    begins_with(name, unwanted, LULL_COUNT_OF(unwanted)))
		return;
	/* cudaLaunchKernel_v7000: the version at the end is CUPTI's, not the user's. */
	len = (u32)strlen(name);
	for (u32 i = len; i-- > 2;)
		if (name[i] == 'v' && name[i - 1] == '_' && name[i + 1] >= '0' &&
		    name[i + 1] <= '9') {
			len = i - 1;
			break;
		}
	if (strstr(name, "ProfilerStart"))
		names[domain - 1][cbid].capture = CAPTURE_START;
	else if (strstr(name, "ProfilerStop"))
		names[domain - 1][cbid].capture = CAPTURE_STOP;
	names[domain - 1][cbid].text = name;
	names[domain - 1][cbid].len = len;
	names[domain - 1][cbid].hash = lull_hash(name, len);
	lull_cupti.cuptiEnableCallback(is_on, subscriber, domain, cbid);
}

void lull_cuda_watch_calls(void *subscriber, bool is_on)
{
	for (u32 domain = LULL_CUPTI_DOMAIN_DRIVER; domain <= LULL_CUPTI_DOMAIN_RUNTIME; domain++)
		for (u32 cbid = 1; cbid < N_CBIDS; cbid++)
			watch(subscriber, domain, cbid, is_on);
}

static void emit(struct lull_thread *t, u32 domain, u32 cbid, const void *data, u64 start)
{
	u64 end = lull_time();
	u64 name = names[domain - 1][cbid].hash;
	const u32 *ret = lull_cupti_call_ret(data);
	struct lull_wire_cuda_call *e;

	if (!lull_is_defined(t, name)) {
		if (!lull_define_string(t, name, names[domain - 1][cbid].text,
					names[domain - 1][cbid].len))
			return;
		lull_remember(t, name);
	}
	e = lull_reserve_at(t, LULL_EVENT_cuda_call, sizeof(*e), start);
	if (!e)
		return;
	e->head.a = lull_cupti_call_correlation(data);
	e->dur_ticks = end - start;
	e->name = name;
	e->ret = ret ? *ret : 0;
	e->api = domain;
	lull_commit(t, sizeof(*e));
}

void lull_cuda_called(void *user, u32 domain, u32 cbid, const void *data)
{
	struct lull_thread *t;
	u64 *slot, start;

	(void)user;
	if (domain > LULL_CUPTI_DOMAIN_RUNTIME || cbid >= N_CBIDS)
		return;
	if (names[domain - 1][cbid].capture && lull_cupti_call_site(data) == LULL_CUPTI_SITE_EXIT)
		lull_capture_by_call(names[domain - 1][cbid].capture == CAPTURE_START);
	t = lull_recording();
	if (!t)
		return;
	slot = lull_cupti_call_slot(data);
	if (lull_cupti_call_site(data) == LULL_CUPTI_SITE_ENTER) {
		/* scratch[6]: how many watched calls this thread is in. */
		*slot = t->scratch[6]++ ? 0 : lull_time();
		return;
	}
	if (t->scratch[6])
		t->scratch[6]--;
	start = *slot;
	if (start)
		emit(t, domain, cbid, data, start);
}
