/*
 * thread_state - per-thread state of sources; parts of struct lull_thread (ring.h).
 *
 * One struct per source, read and written by that source only. All are zero when a thread attaches
 * and in a forked child. The small ones come before the streams of the thread, because the hot path
 * reads them: keep their sum within the cache lines noted there.
 */
#ifndef LULL_AGENT_CORE_THREAD_STATE_H
#define LULL_AGENT_CORE_THREAD_STATE_H

#include "base/types.h"

/* osrt: the OUTER call that is on its way (oscall.h). */
struct lull_osrt_state {
	u64 call;  /* where it has its record on the stack, 0 = in none */
	u64 start; /* when it began */
};

/* gil: one wait that is not yet known to be over. CPython waits in slices (source_gil.c). */
struct lull_gil_state {
	u64 start;
	u64 end;      /* of the last slice */
	u64 n_slices; /* 0: no wait is held back */
};

/* timer: whose the thread's timer is; changed as one word, because others may delete it. */
union lull_timer_key {
	u64 word;
	struct {
		u32 number;  /* the kernel's id of the timer + 1, 0 = none */
		u32 is_idle; /* 1: it runs slowly, because nothing is recorded */
	};
};

struct lull_timer_state {
	union lull_timer_key key;
	u64 cpu_ns; /* CPU time of the thread at its last sample */
};

/*
 * cuda: which call is timed. Compared as one word. The number of the recording is part of it, so
 * that a call whose end was never seen (callbacks were off by then) blocks nothing in the next.
 */
union lull_cuda_key {
	u64 word; /* 0 = in no call */
	struct {
		u32 correlation;
		u32 cbid : 11;	 /* 0: timed by a wrapper */
		u32 domain : 5;	 /* LULL_CUPTI_DOMAIN_* */
		u32 record : 16; /* low bits of lull_thread.record, or of a following */
	};
};

/* One outermost call is timed at a time. Other threads look whether one is on its way. */
struct lull_cuda_state {
	union lull_cuda_key call;
	u64 since; /* when it began; of calls that are only followed, when the last one ended */
};

/* kernel: the launch that a session of lull kernel looks at. */
enum lull_kernel_place { LULL_KERNEL_OUT = 0, LULL_KERNEL_INSIDE = 1, LULL_KERNEL_HOLDING = 2 };

struct lull_kernel_state {
	u32 place; /* enum lull_kernel_place; a call inside another is passed over */
	u32 correlation;
};

/* An operator of the framework that has begun on a thread; see torch_ops.c. */
struct lull_open_op {
	const void *function; /* names it until it ends */
	u64 counter;
	u64 label;
	i64 sequence;
	u64 forward_tid;
	u64 stack;	 /* of Python, of an outermost one */
	u32 n_operators; /* around it and it; annotations of the program are none */
	u32 unused;
};
#define LULL_N_OPEN_OPS 64u /* deeper ones are counted and left out */

/* torch */
struct lull_torch_state {
	u16 level;  /* of LULL_DOMAIN_TORCH */
	u16 n_open; /* entries of `ops` */
	struct lull_open_op ops[LULL_N_OPEN_OPS];
};

/* came: what the thread knows of descriptors (came.h). */
struct lull_came_state {
	u64 woke;     /* when a wait for some last found one ready, 0 = never */
	u64 slept;    /* when the last wait ended for which the thread had nothing else to do */
	i64 empty_fd; /* a descriptor that had no data when the thread began to read from it */
};

/* request */
struct lull_request_state {
	u16 level;   /* of LULL_DOMAIN_REQUEST: how many requests the thread works for */
	u64 current; /* the request of lull_request() and lull_work(), 0 for none */
};

#endif
