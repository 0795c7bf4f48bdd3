/*
 * tree - the known processes and threads of the session.
 *
 * Information comes from agents (an image file appears), from perf (fork, exec, exit, names), from
 * wait() and from /proc, in any order and any subset. A process that calls exec() becomes a second
 * entry with the same pid.
 *
 * Ownership: the tree owns processes and threads until release; pointers stay valid.
 * Times:     CLOCK_MONOTONIC nanoseconds.
 */
#ifndef LULL_RECORD_PROCESS_TREE_H
#define LULL_RECORD_PROCESS_TREE_H

#include "base/map.h"
#include "base/types.h"
#include "base/vec.h"
#include "wire/rank.h"

struct lull_space;
struct lull_python;
struct lull_image_file;

/* A range that has begun and not ended. */
struct lull_open_range {
	u64 start_ns;
	u64 range_id; /* start/end ranges; 0 for push/pop */
	u64 payload;
	u32 place; /* level | domain index << 16 */
	u32 label; /* id in the present report */
	u32 data;  /* string id of an extended payload */
	u8 payload_type;
	u8 depth;
	u8 n_head; /* bytes of an extended payload in `head`, as far as they fit */
	u8 head[40];
};

/* Longest name that a program can give to a device, context or stream. */
#define LULL_GIVEN_NAME_BYTES 64

/* A device as a process sees it. */
struct lull_gpu {
	u32 device_id;
	u32 capability, n_sms;
	u64 memory_bytes, l2_bytes, clock_hz, bandwidth_bytes;
	char name[96];
	char uuid[40];
	char given_name[LULL_GIVEN_NAME_BYTES];
	u32 row; /* in the present report */
};

/* A stream of a device. */
struct lull_gpu_stream {
	u32 device_id, context_id, stream_id;
	u32 lane; /* row id in the present report */
	/* The kernel that was launched last of those whose end is known. */
	u32 last_correlation;
	u64 last_end_ns;
	u64 n_waits; /* waits that its work was compared with */
};

/* What CUPTI and NVTX tell of a stream and of a context, kept over reports. */
struct lull_stream_facts {
	u32 stream_id;
	i32 priority;
	u32 kind;
	char name[LULL_GIVEN_NAME_BYTES];
};
struct lull_gpu_context {
	bool is_known; /* not only named */
	u32 context_id, device_id, null_stream_id, parent_id, api, n_sms;
	bool is_green;
	char name[LULL_GIVEN_NAME_BYTES];
};

/* A payload schema of NVTX that a process registered; texts are numbers in schema_texts. */
struct lull_schema_text {
	u64 schema_id;
	u64 size_bytes;
	u32 kind;
	u32 domain, name, entries;
};

/* One thread. */
struct lull_task {
	struct lull_process *process;
	u32 tid;
	u64 pthread_id;
	u64 start_ns;
	u64 end_ns;
	u64 slot_counter;     /* start_counter of its slot in the image, 0 = none */
	u64 n_dropped;	      /* in the present recording */
	u64 n_dropped_before; /* of the slot when the recording began */
	char name[32];
	bool is_name_given;   /* by the program itself; else it is what the kernel says */
	bool is_name_label;   /* given for the reader of a report: later names do not count */
	u32 lane;	      /* row id in the present report, 0 = none yet */
	struct lull_vec open; /* struct lull_open_range */
	u64 step_number;
	u8 is_step_hooked; /* as step.source */
	u64 step_start_ns; /* 0 = no step is open */
	/* The same for steps in and outside of windows (live/duty.h), in CLOCK_MONOTONIC. */
	u64 seen_step_ns, seen_step;
	bool is_step_outside;
	u32 stack[2];	 /* stack id that belongs to the next event, by nesting level */
	u64 cpu_ns;	 /* used by the Python sampler: CPU time at its last look, 0 = none */
	u64 profiled_id; /* of the launch whose counters come next */
	u64 profiled_start_ns;
};

/* How a process ended; values of process.exit_kind in schema.def. */
enum lull_exit_kind {
	LULL_EXIT_UNKNOWN = 0,
	LULL_EXIT_CODE = 1,
	LULL_EXIT_SIGNAL = 2,
	LULL_EXIT_EXEC = 3,
	LULL_EXIT_RUNNING = 4,
};

/* One program in one process. */
struct lull_process {
	struct lull_process *previous; /* what ran in this pid before, or NULL */
	u32 pid;
	u32 parent_pid;
	u64 pid_ns; /* the PID namespace it is in, 0 = ours (pidns.h) */
	u32 ns_pid; /* its number there */
	u64 start_ns;
	u64 image_ns; /* when its agent began, 0 = no agent so far */
	u64 end_ns;   /* 0 = alive */
	u8 exit_kind;
	u32 exit_code;
	u64 user_ns, system_ns, max_rss_bytes;
	char name[32];
	char *exe;     /* owned, may be NULL */
	char *cmdline; /* owned, may be NULL */
	char *jitdump; /* owned: file in which a compiler inside it writes its functions, or NULL */
	char runtime[32];
	struct lull_rank rank; /* its place in a job */
	bool is_ours;	    /* the target or started by it; not just somebody on the same machine */
	bool is_exec_known; /* an exec event of perf belongs to this entry */
	bool is_awaiting_exec;	      /* stands for the program that its first exec will bring */
	bool is_in_report;	      /* something of it was recorded in the present report */
	u32 row;		      /* row id in the present report, 0 = none yet */
	struct lull_image_file *file; /* its agent's buffers, NULL without an agent */
	bool had_agent;
	bool is_server;			   /* it accepted a connection */
	u64 n_unplaced, n_unplaced_before; /* as n_dropped, of threads without a slot */
	bool is_loaded;	  /* known from an unfinished report; its image has not turned up yet */
	u64 last_counter; /* of its latest event */
	bool is_drained;  /* it has ended and its last event was read */
	int pidfd;	  /* -1 unknown */
	struct lull_space *space;   /* mappings; owned by the tree's user through on_free */
	struct lull_python *python; /* likewise */
	bool is_python_refused;
	u64 next_attach_ns;			/* when to look for an interpreter again */
	struct lull_task **slot_tasks;		/* owned: thread of each slot of the image */
	struct lull_vec tasks;			/* struct lull_task *, owned */
	struct lull_map by_tid;			/* tid -> index + 1 of the latest task */
	struct lull_vec shared_ranges;		/* struct lull_shared_range */
	struct lull_vec schemas;		/* struct lull_schema_text */
	struct lull_vec gpus;			/* struct lull_gpu */
	struct lull_vec streams;		/* struct lull_gpu_stream, of the present report */
	struct lull_vec stream_facts;		/* struct lull_stream_facts */
	struct lull_vec contexts;		/* struct lull_gpu_context */
	struct lull_device_calls *device_calls; /* owned: see device_clock.h, may be NULL */
	bool has_cuda;				/* its agent has recorded device activity */
	bool has_torch; /* PyTorch's library for Python is mapped, and nothing was said of that */
};

/* A start/end range; it may end on another thread than it began on. */
struct lull_shared_range {
	struct lull_open_range range;
	struct lull_task *task;
};

struct lull_tree {
	struct lull_vec processes;		 /* struct lull_process *, owned */
	struct lull_map by_pid;			 /* pid -> index + 1 of the latest entry */
	void (*on_free)(struct lull_process *p); /* may be NULL: frees space and python */
};

/* An empty tree. */
void lull_tree_init(struct lull_tree *t);

/* Free everything. */
void lull_tree_release(struct lull_tree *t);

/* The present program of this pid, or NULL. */
struct lull_process *lull_tree_find(const struct lull_tree *t, u32 pid);

/* The living process that has this number in this PID namespace, which is not ours; or NULL. */
struct lull_process *lull_tree_find_inner(const struct lull_tree *t, u64 pid_ns, u32 ns_pid);

/* The present program of this pid, added if it is new; `now_ns` is its start then. */
struct lull_process *lull_tree_get(struct lull_tree *t, u32 pid, u32 parent_pid, u64 now_ns);

/*
 * The program that ran in this pid at the time: news of the dead arrive late. Added if nothing is
 * known of the pid.
 */
struct lull_process *lull_tree_at(struct lull_tree *t, u32 pid, u64 time_ns);

/*
 * The entry for an agent's image that began at `start_ns`: the program that ran then, if no image
 * is known for it yet; else a new entry at its place in time.
 */
struct lull_process *lull_tree_place(struct lull_tree *t, u32 pid, u64 start_ns);

/*
 * The pid executed another program at `time_ns`, says the kernel: the entry of that program. It may
 * be there already, because its agent was faster.
 */
struct lull_process *lull_tree_exec(struct lull_tree *t, u32 pid, u64 time_ns);

/*
 * `pid` was forked at `time_ns`: the entry of the child. It may be there already, and even be over.
 */
struct lull_process *lull_tree_fork(struct lull_tree *t, u32 pid, u32 parent_pid, u64 time_ns);

/* How many programs ran in this pid before, one after the other by exec. */
u32 lull_tree_image(const struct lull_process *p);

/* The thread of this process, added if it is new. */
struct lull_task *lull_tree_task(struct lull_process *p, u32 tid, u64 now_ns);

/* The same for news that may be late: a thread that has ended since is still the one. */
struct lull_task *lull_tree_task_at(struct lull_process *p, u32 tid, u64 time_ns);

/* The thread if it is known, else NULL. */
struct lull_task *lull_tree_find_task(const struct lull_process *p, u32 tid);

/* The process ended with a status as wait() gives it. */
void lull_tree_ended(struct lull_process *p, int wait_status, u64 now_ns);

/* Forget row ids and what was open: a new report begins. */
void lull_tree_new_report(struct lull_tree *t);

#endif
