/*
 * cuda_int - the parts of the simulated driver.
 *
 *	calls      cuda_call.c, libcuda.c, cuda_work.c, cuda_graph.c, cuda_stream.c
 *	time       model.c: when work begins and ends; nothing is computed there
 *	data       executor.c: a thread that really copies and computes, in the order of the calls
 *	memory     memory.c: which addresses are the device's, and which host memory is pinned
 *	kernels    ptx.c: names and parameters; kernels.c: what a few of them compute
 *
 * Threads: one lock, lull_sim_lock(), guards all objects and the model. It is never held while
 * somebody waits.
 */
#ifndef LULL_SIM_CUDA_INT_H
#define LULL_SIM_CUDA_INT_H

#include "sim_int.h"

/* The calls, and their callback ids as SIM_CALL_name. */
#define CALL(cbid, name, params) SIM_EXPORT int name params;
#include "calls.def"
#undef CALL

enum sim_cbid {
#define CALL(cbid, name, params) SIM_CALL_##name = cbid,
#include "calls.def"
#undef CALL
};

/* The driver's results that are used here. */
enum sim_result {
	SIM_OK = 0,
	SIM_E_VALUE = 1,
	SIM_E_MEMORY = 2,
	SIM_E_UNINITIALIZED = 3,
	SIM_E_DEVICE = 101,
	SIM_E_CONTEXT = 201,
	SIM_E_PTX = 218,
	SIM_E_HANDLE = 400,
	SIM_E_NOT_FOUND = 500,
	SIM_E_NOT_READY = 600,
	SIM_E_CAPTURE_UNSUPPORTED = 900,
	SIM_E_CAPTURE_UNMATCHED = 903,
};

#define SIM_MAX_PARAMS 16

struct sim_context;
struct sim_graph;

/* A queue. The context's default stream is one, too. */
struct sim_stream {
	struct sim_context *context;
	struct sim_stream *next;
	u32 id;
	int priority;
	bool is_blocking;	   /* waits for the default stream, and it for us */
	u64 end_ns;		   /* when all that is queued will be done */
	u64 ticket;		   /* the executor's number of the last of it */
	struct sim_graph *capture; /* work goes there, if not NULL */
};

struct sim_context {
	struct sim_context *next;
	u32 id;
	struct sim_stream null_stream;
	struct sim_stream *streams; /* the others */
};

/* A kernel of a module. */
struct sim_function {
	struct sim_function *next;
	char *name;
	u32 n_params;
	u8 param_bytes[SIM_MAX_PARAMS];
	const struct sim_kernel *kernel; /* what it computes, NULL if nothing */
};

/* Data of one piece of work: what the executor needs to do it. */
struct sim_job {
	enum sim_kind kind;
	void *dst;
	const void *src;
	u64 size_bytes;
	u32 value;
	u32 value_bytes; /* 1 or 4 */
	const struct sim_kernel *kernel;
	u32 grid[3];
	u32 block[3];
	u64 params[SIM_MAX_PARAMS]; /* each in the low bytes */
};

/* A kernel that computes something, or costs something of its own. */
struct sim_kernel {
	const char *name;
	const char *params; /* the size of each as a digit; others of this name are not ours */
	void (*run)(const struct sim_job *job);
	f64 (*flops)(const struct sim_job *job);
};

/* cuda_call.c: the way into and out of each call. */
void lull_sim_lock(void);
void lull_sim_unlock(void);

/* A call begins: the subscriber is told and the host's share of the work is spent. */
struct sim_call lull_sim_enter(u32 cbid, const char *name, const void *params);
#define SIM_ENTER(name) lull_sim_enter(SIM_CALL_##name, #name, NULL)
#define SIM_ENTER_WITH(name, ...) \
	lull_sim_enter(SIM_CALL_##name, #name, (const void *[]){ __VA_ARGS__ })

/* The same for a launch, whose parameters and kernel the subscriber sees, too. */
struct sim_call lull_sim_enter_launch(u32 cbid, const char *name, const void *params,
				      const char *symbol);

/* It ends; returns `result`. */
int lull_sim_leave(struct sim_call *call, int result);

/* The hooks of libcupti, NULL while there is none. */
const struct sim_hooks *lull_sim_hooks(void);

/* Tell libcupti about work, if it listens. */
void lull_sim_tell(const struct sim_work *work);

/* The same about memory and code; the context is the caller's. */
void lull_sim_tell_event(struct sim_event *event);

/* libcuda.c: the context of this thread, or NULL. */
struct sim_context *lull_sim_context(void);

/* cuda_stream.c: the stream of a handle in this thread's context, NULL if there is none. */
struct sim_stream *lull_sim_stream(void *handle);

/* A new context's default stream. Call with the lock held. */
void lull_sim_stream_init(struct sim_stream *stream, struct sim_context *context);

/* An object for libcupti. */
struct sim_object lull_sim_object(const struct sim_stream *stream);

/* All that is queued in the context: when it will be done, and its ticket. Takes the lock. */
void lull_sim_context_end(struct sim_context *context, u64 *end_ns, u64 *ticket);

/* Sleep until then, and until the executor has come so far. */
void lull_sim_sleep(u64 end_ns, u64 ticket);

/* The same, and tell libcupti about the wait. */
void lull_sim_wait(struct sim_work *wait, u64 end_ns, u64 ticket);

/*
 * cuda_work.c: give work to a stream: model, executor, libcupti; or the graph that is being
 * captured. `work` gets its times.
 */
int lull_sim_queue(struct sim_stream *stream, struct sim_work *work, const struct sim_job *job);

/* cuda_graph.c: add a node. Call with the lock held. */
int lull_sim_graph_add(struct sim_graph *graph, const struct sim_work *work,
		       const struct sim_job *job);

/* model.c: when the work runs. Call with the lock held. */
void lull_sim_place(struct sim_stream *stream, struct sim_work *work, const struct sim_job *job);

/* executor.c: queue a job; returns its ticket, 0 if there is nothing to do. */
u64 lull_sim_execute(const struct sim_job *job);

/* Wait until the job with this ticket is done, and so all before it. */
void lull_sim_execute_wait(u64 ticket);

/* Whether it is. */
bool lull_sim_execute_is_done(u64 ticket);

/* memory.c: memory of a kind, NULL if there is none. */
void *lull_sim_memory_new(u64 size_bytes, enum sim_memory kind);

/* Give it back; false if it is none of this kind. */
bool lull_sim_memory_free(void *at, enum sim_memory kind);

/* Whose memory this is; what we do not know is pageable. */
enum sim_memory lull_sim_memory_kind(const void *at);

/* Bytes of the piece that begins there, 0 if none does. */
u64 lull_sim_memory_bytes(const void *at);

/* Bytes of the device in use. */
u64 lull_sim_memory_used(void);

/* ptx.c: the kernels of a PTX text, NULL if there is none. */
struct sim_function *lull_sim_ptx_parse(const char *text);

/* kernels.c: what a kernel of this name and with these parameters computes, or NULL. */
const struct sim_kernel *lull_sim_kernel_find(const struct sim_function *function);

/* How much a launch computes, in floating point operations. */
f64 lull_sim_kernel_flops(const struct sim_job *job);

#endif
