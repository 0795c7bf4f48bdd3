/*
 * sim_int - what the stand-in of libcuda and the stand-in of libcupti know of each other.
 *
 * libcudart, where a program uses it, tells libcuda when its calls begin and end.
 *
 * libcupti looks for lull_sim_connect() in the loaded libcuda.so.1 and gives it a table of
 * functions. From then on libcuda tells it about every call, all work and every object, on the
 * thread of the caller. Times are nanoseconds of CLOCK_MONOTONIC; libcupti translates them.
 */
#ifndef LULL_SIM_SIM_INT_H
#define LULL_SIM_SIM_INT_H

#include <stdlib.h>
#include <time.h>

#include "base/types.h"

#define SIM_EXPORT __attribute__((visibility("default")))

/* The device, as both libraries describe it. "Simulated" in its name is what marks a report. */
#define SIM_DEVICE_NAME	     "Simulated GPU"
#define SIM_DEVICE_SMS	     16u
#define SIM_DEVICE_MAJOR     9u
#define SIM_DEVICE_MINOR     0u
#define SIM_DEVICE_CLOCK_KHZ 1000000u
#define SIM_DEVICE_L2_BYTES  (4u << 20)
#define SIM_DEVICE_MEMORY    (4ull << 30)
#define SIM_DEVICE_UUID	     "lull simulated  " /* 16 bytes */

/* Kinds of memory and of copies, with CUPTI's values. */
enum sim_memory { SIM_PAGEABLE = 1, SIM_PINNED = 2, SIM_DEVICE = 3, SIM_MANAGED = 5 };
enum sim_copy { SIM_HTOD = 1, SIM_DTOH = 2, SIM_DTOD = 8, SIM_HTOH = 9 };

/* What a host call or a stream waited for, with CUPTI's values. */
enum sim_wait { SIM_WAIT_EVENT = 1, SIM_WAIT_STREAM_EVENT, SIM_WAIT_STREAM, SIM_WAIT_CONTEXT };

enum sim_kind { SIM_KERNEL, SIM_MEMCPY, SIM_MEMSET, SIM_GRAPH, SIM_SYNC };

/* One thing the device did, or one wait for it. Fields that do not apply are 0. */
struct sim_work {
	enum sim_kind kind;
	u32 correlation;
	u32 context_id;
	u32 stream_id;
	u64 start_ns;
	u64 end_ns; /* may lie in the future: the model knows it as soon as the work is queued */
	u32 graph_id;
	u64 graph_node_id;
	const char *name; /* kernel; lives as long as its module */
	u32 grid[3];
	u32 block[3];
	u32 shared_bytes;
	u64 size_bytes; /* copy, set */
	u32 value;	/* set */
	u8 copy_kind;	/* enum sim_copy */
	u8 src_kind;	/* enum sim_memory */
	u8 dst_kind;
	bool is_async;
	u32 wait_kind; /* enum sim_wait */
	u32 event_id;
	u64 event_sync_id;
	u32 result; /* what the waiting call returned */
	u64 ticket; /* libcuda's own: the executor's number of it */
};

/* Whose call it is, with CUPTI's values. */
enum sim_domain { SIM_DRIVER = 1, SIM_RUNTIME = 2 };

/* One call of the driver or the runtime, from its start to its end; lives on the caller's stack. */
struct sim_call {
	enum sim_domain domain;
	u32 cbid;
	const char *name;
	const void *params; /* in the order of the call; NULL where nobody asks */
	u32 correlation;
	u64 slot; /* belongs to the subscriber between enter and leave */
	void *context;
	u32 context_id;
	int result;
	bool is_told;	    /* the subscriber saw it begin */
	const char *symbol; /* kernel of a launch, NULL for other calls */
};

/* A context (stream_id 0) or a stream. */
struct sim_object {
	u32 context_id;
	u32 stream_id;
	u32 null_stream_id;
	bool is_blocking;
	int priority;
	u32 correlation;
	const void *handle; /* the program's */
};

enum sim_event_kind {
	SIM_ALLOCATED,
	SIM_RELEASED,
	SIM_LOADED,   /* a module */
	SIM_UNLOADED, /* a module */
	SIM_COMPILED,
	SIM_MIGRATED, /* unified memory, host to device */
	SIM_FAULTED,  /* unified memory, on a CPU */
};

/* Something that happened to memory or code, not to a queue. */
struct sim_event {
	enum sim_event_kind kind;
	enum sim_memory memory;
	void *context;
	u32 context_id;
	u32 correlation;
	u32 module_id;
	u64 address;
	u64 size_bytes;
	u64 start_ns;
	u64 end_ns;
};

/* What libcupti wants to be told. */
struct sim_hooks {
	void (*enter)(struct sim_call *call);
	void (*leave)(struct sim_call *call);
	void (*work)(const struct sim_work *work);
	void (*object)(const struct sim_object *object);
	void (*event)(const struct sim_event *event);
	bool (*wants_graphs)(void); /* graphs as a whole, not their nodes */
};

/* Exported by libcuda: be told from now on. */
typedef void sim_connect_fn(const struct sim_hooks *hooks);
sim_connect_fn lull_sim_connect;

/* Exported by libcuda for libcudart: a call of the runtime begins, and has its result. */
typedef void sim_runtime_fn(struct sim_call *call);
sim_runtime_fn lull_sim_runtime_enter, lull_sim_runtime_leave;

/* Exported by libcuda: tell `object` about all contexts and streams there are. */
typedef void sim_replay_fn(void (*object)(const struct sim_object *object));
sim_replay_fn lull_sim_replay;

/* The time axis of the model. */
static inline u64 sim_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (u64)t.tv_sec * 1000000000u + (u64)t.tv_nsec;
}

/* The real driver computes meanwhile; a sleep would be far too long. */
static inline void sim_spend(u64 ns)
{
	u64 until_ns = sim_now_ns() + ns;

	while (sim_now_ns() < until_ns)
		continue;
}

/* Value of a knob that is a number. */
static inline f64 sim_knob(const char *name, f64 otherwise)
{
	const char *text = getenv(name);

	return text && *text ? strtod(text, NULL) : otherwise;
}

#endif
