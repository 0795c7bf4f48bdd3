/*
 * libcupti - a stand-in for CUPTI: the entry points, the subscriber, and what libcuda tells us.
 * README.md says what it does and does not do; cupti_int.h, how it is made.
 */
#include "cupti_int.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DOMAIN_RESOURCE 3u
#define N_DOMAINS	7u
#define N_CBIDS		1024u

/* CUPTI's data of a call, as the callback sees it. */
struct callback_data {
	u32 site; /* 0 enter, 1 exit */
	const char *function_name;
	const void *function_params;
	void *function_return_value;
	const char *symbol_name;
	void *context;
	u32 context_uid;
	u64 *correlation_data;
	u32 correlation_id;
};
_Static_assert(sizeof(struct callback_data) == 72, "as CUPTI lays it out");

typedef void callback_fn(void *userdata, u32 domain, u32 cbid, const void *data);

static struct {
	pthread_mutex_t lock; /* for subscribing and connecting */
	bool is_connected;
	_Atomic bool is_subscribed;
	callback_fn *callback;
	void *userdata;
	_Atomic bool is_call_enabled[SIM_RUNTIME + 1][N_CBIDS]; /* by domain */
	_Atomic bool is_kind_enabled[CUPTI_N_KINDS];
	_Atomic u64 n_to_drop, n_to_zero;
	_Atomic u32 n_finalized;
	_Atomic u64 n_callbacks; /* about calls */
	_Atomic u64 n_endless;	 /* calls whose end it was not told: they were switched off */
	_Atomic bool is_here;	 /* until it is finalized */
	u64 here_ns;		 /* what that costs each call */
	u64 late_us;		 /* from its look whether a call is wanted to the callback */
} cupti = { .lock = PTHREAD_MUTEX_INITIALIZER };

/* ---- knobs ---- */

static bool is_listed(const char *knob, const char *function)
{
	const char *list = getenv(knob);
	size_t n = strlen(function);

	while (list && *list) {
		if (strncmp(list, function, n) == 0 && (list[n] == ',' || !list[n]))
			return true;
		list += strcspn(list, ",");
		list += *list == ',';
	}
	return false;
}

/* LULL_SIM_MISSING=name,name: these functions say that they are not supported. */
bool lull_cupti_is_missing(const char *function)
{
	return is_listed("LULL_SIM_MISSING", function);
}

/* LULL_SIM_DENIED=name,name: these say that the user may not use them. */
#define RETURN_IF_MISSING()                                 \
	do {                                                \
		if (lull_cupti_is_missing(__func__))        \
			return CUPTI_E_UNSUPPORTED;         \
		if (is_listed("LULL_SIM_DENIED", __func__)) \
			return CUPTI_E_PRIVILEGES;          \
	} while (0)

/* Take one of the counted mishaps; false when none is left. */
static bool take_one(_Atomic u64 *left)
{
	u64 n = atomic_load(left);

	while (n && !atomic_compare_exchange_weak(left, &n, n - 1))
		continue;
	return n > 0;
}

/* ---- what libcuda tells us ---- */

bool lull_cupti_wants(u32 kind)
{
	return kind < CUPTI_N_KINDS && cupti.is_kind_enabled[kind];
}

static void tell(struct sim_call *call, u32 site)
{
	struct callback_data data = { .site = site,
				      .function_name = call->name,
				      .function_params = call->params,
				      .function_return_value = &call->result,
				      .symbol_name = call->symbol,
				      .context = call->context,
				      .context_uid = call->context_id,
				      .correlation_data = &call->slot,
				      .correlation_id = call->correlation };

	cupti.n_callbacks++;
	cupti.callback(cupti.userdata, call->domain, call->cbid, &data);
}

/*
 * LULL_SIM_LOCK=1: a lock is held from begin to end of a call of the driver, and by a flush;
 * so who flushes in a signal handler, in the middle of a call, waits for ever.
 */
static pthread_mutex_t call_lock = PTHREAD_MUTEX_INITIALIZER;

static bool has_call_lock(void)
{
	return sim_knob("LULL_SIM_LOCK", 0) > 0;
}

static bool is_locked_in(const struct sim_call *call)
{
	return call->domain == SIM_DRIVER && has_call_lock();
}

/* LULL_SIM_CUPTI_NS=n: as the real one, it takes time while it is there, with all of it off. */
static void take_time(const struct sim_call *call)
{
	if (cupti.here_ns && cupti.is_here && call->domain == SIM_DRIVER)
		sim_spend(cupti.here_ns);
}

static bool is_enabled(const struct sim_call *call)
{
	return cupti.is_subscribed && call->cbid < N_CBIDS &&
	       cupti.is_call_enabled[call->domain][call->cbid];
}

/* The calls that this thread is in, as far as CUPTI was told. */
static __thread struct {
	u32 depth, correlation; /* the number of the outermost one, which those inside it get */
	u32 n_finalized;
} inside;

/*
 * As the real one does (CUDA 13.0), it counts the calls that a thread is in only while they are
 * enabled: if they are disabled while a thread is in one, that call never ends for it, and all
 * calls of the thread after it have its number.
 */
static void go_in(struct sim_call *call)
{
	if (inside.n_finalized != cupti.n_finalized)
		inside.depth = 0;
	inside.n_finalized = cupti.n_finalized;
	if (!inside.depth++)
		inside.correlation = call->correlation;
	call->correlation = inside.correlation;
}

static void go_out(const struct sim_call *call)
{
	if (!inside.depth || inside.n_finalized != cupti.n_finalized)
		return;
	if (is_enabled(call))
		inside.depth--;
	else
		cupti.n_endless++;
}

/* LULL_SIM_LATE_US=n: the thread has no CPU for so long before it gets to the callback. */
static void be_late(void)
{
	if (cupti.late_us)
		usleep((useconds_t)cupti.late_us);
}

static void on_enter(struct sim_call *call)
{
	take_time(call);
	if (!is_enabled(call))
		return;
	call->is_told = true;
	go_in(call);
	if (is_locked_in(call))
		pthread_mutex_lock(&call_lock);
	be_late();
	tell(call, 0);
}

/* Of a call that was told. */
static void on_leave(struct sim_call *call)
{
	go_out(call);
	if (cupti.is_subscribed)
		tell(call, 1);
	if (is_locked_in(call))
		pthread_mutex_unlock(&call_lock);
}

static u32 kind_of(const struct sim_work *work)
{
	switch (work->kind) {
	case SIM_KERNEL:
		return lull_cupti_wants(CUPTI_KERNEL) ? CUPTI_KERNEL : CUPTI_CONCURRENT_KERNEL;
	case SIM_MEMCPY:
		return CUPTI_MEMCPY;
	case SIM_MEMSET:
		return CUPTI_MEMSET;
	case SIM_GRAPH:
		return CUPTI_GRAPH;
	case SIM_SYNC:
		break;
	}
	return CUPTI_SYNC;
}

static void on_work(const struct sim_work *work)
{
	struct sim_work copy = *work;
	u8 record[CUPTI_MAX_RECORD_BYTES];
	u32 kind = kind_of(work);

	if (work->kind == SIM_KERNEL) {
		lull_cupti_profile(work);
		lull_cupti_sample(work);
	}
	if (!lull_cupti_wants(kind))
		return;
	if (work->kind == SIM_KERNEL && take_one(&cupti.n_to_drop)) {
		lull_cupti_drop(1);
		return;
	}
	if (work->kind == SIM_KERNEL && take_one(&cupti.n_to_zero))
		copy.start_ns = copy.end_ns = 0;
	lull_cupti_append(record, lull_cupti_write_work(record, &copy, kind), work->end_ns);
}

void lull_cupti_call_subscriber(u32 domain, u32 cbid, const void *data)
{
	if (cupti.is_subscribed)
		cupti.callback(cupti.userdata, domain, cbid, data);
}

static void on_event(const struct sim_event *event)
{
	enum { HTOD = 1, CPU_FAULT = 3 };
	u8 record[CUPTI_MAX_RECORD_BYTES];
	size_t bytes = lull_cupti_write_event(record, event);
	u32 kind;

	lull_cupti_resource_module(event);
	memcpy(&kind, record, sizeof(kind));
	if (kind == CUPTI_UM &&
	    !lull_cupti_wants_counter(event->kind == SIM_FAULTED ? CPU_FAULT : HTOD))
		return;
	if (bytes && lull_cupti_wants(kind))
		lull_cupti_append(record, bytes, event->end_ns);
}

static void tell_object(const struct sim_object *object)
{
	u8 record[CUPTI_MAX_RECORD_BYTES];

	if (lull_cupti_wants(object->stream_id ? CUPTI_STREAM : CUPTI_CONTEXT))
		lull_cupti_append(record, lull_cupti_write_object(record, object), 0);
}

static void on_object(const struct sim_object *object)
{
	tell_object(object);
	if (!object->stream_id)
		lull_cupti_resource_context(object);
}

static bool wants_graphs(void)
{
	return lull_cupti_wants(CUPTI_GRAPH);
}

static const struct sim_hooks hooks = {
	.enter = on_enter,
	.leave = on_leave,
	.work = on_work,
	.object = on_object,
	.event = on_event,
	.wants_graphs = wants_graphs,
};

void *lull_cupti_find_in_driver(const char *symbol)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	return library ? dlsym(library, symbol) : NULL;
}

/* Find the driver, once; 15 if it is none of ours. */
static int connect_driver(void)
{
	sim_connect_fn *connect;

	pthread_mutex_lock(&cupti.lock);
	if (!cupti.is_connected) {
		*(void **)&connect = lull_cupti_find_in_driver("lull_sim_connect");
		if (connect) {
			cupti.n_to_drop = (u64)sim_knob("LULL_SIM_DROP", 0);
			cupti.n_to_zero = (u64)sim_knob("LULL_SIM_ZERO_TIMES", 0);
			cupti.here_ns = (u64)sim_knob("LULL_SIM_CUPTI_NS", 0);
			cupti.late_us = (u64)sim_knob("LULL_SIM_LATE_US", 0);
			cupti.is_subscribed = false;
			cupti.is_connected = true;
			connect(&hooks);
		}
	}
	cupti.is_here = cupti.is_connected;
	pthread_mutex_unlock(&cupti.lock);
	return cupti.is_connected ? CUPTI_OK : CUPTI_E_UNINITIALIZED;
}

static u32 n_calls_on(void)
{
	u32 n = 0;

	for (u32 i = 0; i < N_CBIDS; i++)
		n += cupti.is_call_enabled[SIM_DRIVER][i] + cupti.is_call_enabled[SIM_RUNTIME][i];
	return n;
}

/* Objects are rare, and no launch or copy makes one. */
static u32 n_kinds_on(void)
{
	u32 n = 0;

	for (u32 i = 0; i < CUPTI_N_KINDS; i++)
		n += cupti.is_kind_enabled[i] && i != CUPTI_DEVICE && i != CUPTI_CONTEXT &&
		     i != CUPTI_STREAM;
	return n;
}

/* For programs of tests that wait for what the agent does (test/support/cuda_guest.h). */
SIM_EXPORT u32 lull_sim_ask(const char *what);

u32 lull_sim_ask(const char *what)
{
	if (strcmp(what, "on") == 0)
		return n_calls_on() + n_kinds_on();
	if (strcmp(what, "finalized") == 0)
		return cupti.n_finalized;
	if (strcmp(what, "delivered") == 0)
		return (u32)lull_cupti_delivered();
	return strcmp(what, "unified") == 0 &&
	       (lull_cupti_wants(CUPTI_UM) || lull_cupti_has_refused_um());
}

/* LULL_SIM_STATE=FILE: what is still on when the program ends; nothing should be by then. */
__attribute__((destructor)) static void write_state(void)
{
	const char *path = getenv("LULL_SIM_STATE");
	FILE *file = path ? fopen(path, "w") : NULL;

	if (!file)
		return;
	fprintf(file,
		"calls_on=%u kinds_on=%u buffers_out=%llu subscribed=%u finalized=%u "
		"callbacks=%llu endless=%llu\n",
		n_calls_on(), n_kinds_on(), (unsigned long long)lull_cupti_buffers_out(),
		cupti.is_subscribed, cupti.n_finalized, (unsigned long long)cupti.n_callbacks,
		(unsigned long long)cupti.n_endless);
	fclose(file);
}

/* ---- entry points: versions, names, callbacks ---- */

/* Each does what CUPTI's manual says of the function of this name. */
#define ENTRY SIM_EXPORT int

ENTRY cuptiGetVersion(u32 *version);
ENTRY cuptiGetResultString(int result, const char **text);
ENTRY cuptiSubscribe(void **subscriber, callback_fn *callback, void *userdata);
ENTRY cuptiUnsubscribe(void *subscriber);
ENTRY cuptiFinalize(void);
ENTRY cuptiEnableCallback(u32 enable, void *subscriber, u32 domain, u32 cbid);
ENTRY cuptiEnableDomain(u32 enable, void *subscriber, u32 domain);
ENTRY cuptiGetCallbackName(u32 domain, u32 cbid, const char **name);
ENTRY cuptiActivityEnable(u32 kind);
ENTRY cuptiActivityEnableAndDump(u32 kind);
ENTRY cuptiActivityDisable(u32 kind);
ENTRY cuptiActivityRegisterCallbacks(cupti_request_fn *request, cupti_complete_fn *complete);
ENTRY cuptiActivityRegisterTimestampCallback(cupti_timestamp_fn *timestamp);
ENTRY cuptiActivityFlushAll(u32 flag);
ENTRY cuptiActivityGetNextRecord(u8 *buffer, size_t valid, u8 **record);
ENTRY cuptiActivityGetNumDroppedRecords(void *context, u32 stream, size_t *n);
ENTRY cuptiActivitySetAttribute(u32 attribute, size_t *size, void *value);
ENTRY cuptiActivityEnableAllSyncRecords(u8 is_on);
ENTRY cuptiSetThreadIdType(u32 type);

int cuptiGetVersion(u32 *version)
{
	RETURN_IF_MISSING();
	*version = lull_cupti_version();
	return CUPTI_OK;
}

int cuptiGetResultString(int result, const char **text)
{
	*text = result == CUPTI_OK	       ? "CUPTI_SUCCESS"
		: result == CUPTI_E_PRIVILEGES ? "CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"
		: result == CUPTI_E_SUBSCRIBED ? "CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED"
					       : "CUPTI_ERROR_UNKNOWN";
	return CUPTI_OK;
}

int cuptiSubscribe(void **subscriber, callback_fn *callback, void *userdata)
{
	int result;

	RETURN_IF_MISSING();
	result = connect_driver();
	if (result)
		return result;
	pthread_mutex_lock(&cupti.lock);
	if (cupti.is_subscribed || sim_knob("LULL_SIM_SUBSCRIBED", 0) != 0) {
		result = CUPTI_E_SUBSCRIBED;
	} else {
		cupti.callback = callback;
		cupti.userdata = userdata;
		cupti.is_subscribed = true;
		*subscriber = &cupti;
	}
	pthread_mutex_unlock(&cupti.lock);
	return result;
}

int cuptiUnsubscribe(void *subscriber)
{
	RETURN_IF_MISSING();
	if (subscriber != &cupti)
		return CUPTI_E_PARAMETER;
	cupti.is_subscribed = false;
	for (u32 i = 0; i < N_CBIDS; i++)
		cupti.is_call_enabled[SIM_DRIVER][i] = cupti.is_call_enabled[SIM_RUNTIME][i] =
			false;
	return CUPTI_OK;
}

/* All that it was asked for is forgotten; it begins anew when it is asked again. */
int cuptiFinalize(void)
{
	RETURN_IF_MISSING();
	cupti.n_finalized++;
	cuptiUnsubscribe(&cupti);
	for (u32 i = 0; i < CUPTI_N_KINDS; i++)
		cupti.is_kind_enabled[i] = false;
	cupti.is_here = false;
	return CUPTI_OK;
}

static bool has_calls(u32 domain)
{
	return domain == SIM_DRIVER || domain == SIM_RUNTIME;
}

/* Only calls, contexts and modules ever come; the other domains are silent. */
int cuptiEnableCallback(u32 enable, void *subscriber, u32 domain, u32 cbid)
{
	RETURN_IF_MISSING();
	if (subscriber != &cupti || !domain || domain >= N_DOMAINS || cbid >= N_CBIDS)
		return CUPTI_E_PARAMETER;
	if (has_calls(domain))
		cupti.is_call_enabled[domain][cbid] = enable != 0;
	if (domain == DOMAIN_RESOURCE)
		lull_cupti_resource_enable(cbid, enable != 0);
	return CUPTI_OK;
}

int cuptiEnableDomain(u32 enable, void *subscriber, u32 domain)
{
	RETURN_IF_MISSING();
	if (subscriber != &cupti || !domain || domain >= N_DOMAINS)
		return CUPTI_E_PARAMETER;
	for (u32 i = 0; has_calls(domain) && i < N_CBIDS; i++)
		cupti.is_call_enabled[domain][i] = enable != 0;
	return CUPTI_OK;
}

static const char *driver_name(u32 cbid)
{
	switch (cbid) {
#define CALL(id, call, params) \
	case id:               \
		return #call;
#include "calls.def"
#undef CALL
	default:
		return NULL;
	}
}

static const char *runtime_name(u32 cbid)
{
	switch (cbid) {
#define CALL(id, version, call, params) \
	case id:                        \
		return #call "_v" #version;
#include "runtime.def"
#undef CALL
	default:
		return NULL;
	}
}

int cuptiGetCallbackName(u32 domain, u32 cbid, const char **name)
{
	RETURN_IF_MISSING();
	if (!has_calls(domain))
		return CUPTI_E_PARAMETER;
	*name = domain == SIM_DRIVER ? driver_name(cbid) : runtime_name(cbid);
	return *name ? CUPTI_OK : CUPTI_E_PARAMETER;
}

/* ---- entry points: records ---- */

/* Kinds that CUPTI 13 refuses; others that we have no records of are accepted and silent. */
static int check_kind(u32 kind)
{
	static const u8 legacy[] = { 6, 7, 14, 15, 16, 21, 23, 24, 29, 30, 31, 32, 41, 42, 43, 44 };

	if (!kind || kind >= CUPTI_N_KINDS || (kind == CUPTI_JIT && !lull_cupti_record_bytes(kind)))
		return CUPTI_E_KIND;
	for (size_t i = 0; i < LULL_COUNT_OF(legacy); i++)
		if (kind == legacy[i])
			return CUPTI_E_LEGACY;
	return connect_driver();
}

static int enable(u32 kind)
{
	u8 record[CUPTI_MAX_RECORD_BYTES];
	int result = check_kind(kind);

	if (result)
		return result;
	usleep((useconds_t)(1000 * sim_knob("LULL_SIM_ENABLE_MS", 0)));
	cupti.is_kind_enabled[kind] = true;
	if (kind == CUPTI_DEVICE)
		lull_cupti_append(record, lull_cupti_write_device(record), 0);
	return CUPTI_OK;
}

int cuptiActivityEnable(u32 kind)
{
	RETURN_IF_MISSING();
	return enable(kind);
}

static void dump_context(const struct sim_object *object)
{
	if (!object->stream_id)
		tell_object(object);
}

static void dump_stream(const struct sim_object *object)
{
	if (object->stream_id)
		tell_object(object);
}

int cuptiActivityEnableAndDump(u32 kind)
{
	sim_replay_fn *replay;
	int result;

	RETURN_IF_MISSING();
	result = enable(kind);
	if (result || (kind != CUPTI_CONTEXT && kind != CUPTI_STREAM))
		return result;
	*(void **)&replay = lull_cupti_find_in_driver("lull_sim_replay");
	replay(kind == CUPTI_CONTEXT ? dump_context : dump_stream);
	return CUPTI_OK;
}

int cuptiActivityDisable(u32 kind)
{
	int result;

	RETURN_IF_MISSING();
	result = check_kind(kind);
	if (result == CUPTI_OK)
		cupti.is_kind_enabled[kind] = false;
	return result;
}

int cuptiActivityRegisterCallbacks(cupti_request_fn *request, cupti_complete_fn *complete)
{
	RETURN_IF_MISSING();
	if (!request || !complete)
		return CUPTI_E_PARAMETER;
	return lull_cupti_buffers_open(request, complete) ? CUPTI_OK : CUPTI_E_UNINITIALIZED;
}

int cuptiActivityRegisterTimestampCallback(cupti_timestamp_fn *timestamp)
{
	RETURN_IF_MISSING();
	if (!timestamp)
		return CUPTI_E_PARAMETER;
	lull_cupti_clock_set(timestamp);
	return CUPTI_OK;
}

int cuptiActivityFlushAll(u32 flag)
{
	int result;

	RETURN_IF_MISSING();
	if (has_call_lock())
		pthread_mutex_lock(&call_lock);
	result = lull_cupti_flush(flag & 1);
	if (has_call_lock())
		pthread_mutex_unlock(&call_lock);
	return result;
}

int cuptiActivityGetNextRecord(u8 *buffer, size_t valid, u8 **record)
{
	size_t off = 0;
	u32 kind;

	RETURN_IF_MISSING();
	if (!buffer || !record)
		return CUPTI_E_PARAMETER;
	if (*record) {
		kind = __atomic_load_n((const u32 *)*record, __ATOMIC_ACQUIRE);
		off = (size_t)(*record - buffer) + lull_cupti_record_bytes(kind);
	}
	if (off + sizeof(kind) > valid)
		return CUPTI_E_MAX_LIMIT;
	kind = __atomic_load_n((const u32 *)(buffer + off), __ATOMIC_ACQUIRE);
	if (!lull_cupti_record_bytes(kind))
		return CUPTI_E_KIND;
	if (off + lull_cupti_record_bytes(kind) > valid)
		return CUPTI_E_MAX_LIMIT;
	*record = buffer + off;
	return CUPTI_OK;
}

/* There is one queue for all contexts and streams. */
int cuptiActivityGetNumDroppedRecords(void *context, u32 stream, size_t *n)
{
	RETURN_IF_MISSING();
	(void)context;
	(void)stream;
	if (!n)
		return CUPTI_E_PARAMETER;
	*n = lull_cupti_take_dropped();
	return CUPTI_OK;
}

int cuptiActivitySetAttribute(u32 attribute, size_t *size, void *value)
{
	enum { ZEROED = 5, PER_THREAD = 9, SINCE_12_3 = 21 };

	RETURN_IF_MISSING();
	if (!size || !value || (attribute == PER_THREAD && lull_cupti_version() < SINCE_12_3))
		return CUPTI_E_PARAMETER;
	if (attribute == ZEROED)
		lull_cupti_buffers_zero(*(const u8 *)value == 0);
	return CUPTI_OK;
}

/* Which records of waits there are; we have no others than those of real waits. */
int cuptiActivityEnableAllSyncRecords(u8 is_on)
{
	RETURN_IF_MISSING();
	(void)is_on;
	return CUPTI_OK;
}

/* Records of ours carry no thread. */
int cuptiSetThreadIdType(u32 type)
{
	RETURN_IF_MISSING();
	return type <= 1 ? CUPTI_OK : CUPTI_E_PARAMETER;
}
