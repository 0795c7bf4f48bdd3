/*
 * perf - CPU samples, context switches and the lives of processes, from the kernel's perf rings.
 *
 * What it gives:  decoded records through callbacks, in time order across CPUs, on CLOCK_MONOTONIC.
 * What it checks: every length in a record against the record; a damaged ring is dropped up to its
 *                 head and counted as lost.
 * Ownership:      lull_perf_open() allocates, lull_perf_close() frees. What a callback is handed
 *                 (stack, call chain, names) lies in the ring, valid until the callback returns.
 * Threads:        one thread only.
 * Cost:           in the target 3 us per sample with 8 KiB of stack (bench/bench_sampling);
 *                 here one ring of up to 2 MiB and two or three descriptors per CPU.
 */
#ifndef LULL_RECORD_PERF_PERF_H
#define LULL_RECORD_PERF_PERF_H

#include <sys/types.h>

#include "base/err.h"
#include "base/types.h"

enum lull_perf_scope {
	LULL_PERF_NONE = 0,	    /* do not record this */
	LULL_PERF_PROCESS_TREE = 1, /* the target and all it starts */
	LULL_PERF_SYSTEM_WIDE =
		2, /* everything on the machine; needs CAP_PERFMON or paranoid <= 0 */
};

struct lull_perf_options {
	enum lull_perf_scope samples;
	enum lull_perf_scope switches;
	u32 rate_hz;   /* samples per second of CPU time, 0 for LULL_PERF_RATE_HZ */
	u64 regs_mask; /* registers copied with each sample: lull_regs_perf_mask(); 0 copies none */
	u32 stack_bytes;   /* user stack copied with each sample, multiple of 8; 0 copies none */
	bool is_user_only; /* leave kernel code out even where it is permitted */
	bool is_paused; /* wait for lull_perf_enable(); forks, names and mappings come regardless */
	bool is_lasting; /* samples are wanted most of the time: cheaper, pauses save nothing */
	size_t max_ring_bytes; /* per CPU, a power of two; 0 for LULL_PERF_RING_BYTES */
};

/* What lull_perf_open() takes if its options say nothing; recordings say it. */
#define LULL_PERF_RATE_HZ 1000

/*
 * What a recording takes at most if the user says nothing. A sample holds its thread up for 3 us,
 * but what it throws out of caches and branch predictors costs a training loop 60: 1 kHz made one
 * 6.9 % slower, 200 Hz 1.9 %, 100 Hz 1.4 % (bench/results). `lull why` names the same causes from
 * 50 Hz on.
 */
#define LULL_PERF_CHEAP_HZ 100

/*
 * For so much of a program's CPU time samples may hold it up, in millionths, unless the user says
 * how many are wanted. What they throw out of caches comes on top, and is more. On virtual machines
 * with 8 to 21 us a sample it is half as many, so that a loop that makes its data on the CPU stays
 * within 1 %.
 */
#define LULL_PERF_SHARE_PPM   500
#define LULL_PERF_MIN_RATE_HZ 50

/* 8 KiB holds the whole stack of most C++ and Python programs; 64 KiB is the kernel's limit. */
#define LULL_PERF_STACK_BYTES 8192

/* 250 samples with 8 KiB of stack: a quarter of a second, a dozen ticks of the recorder. */
#define LULL_PERF_RING_BYTES (2u << 20)

/* The habit: process tree, 1 kHz, 8 KiB of stack, switches. Unwinding also wants regs_mask. */
#define LULL_PERF_OPTIONS_INIT                                                         \
	{                                                                              \
		.samples = LULL_PERF_PROCESS_TREE, .switches = LULL_PERF_PROCESS_TREE, \
		.rate_hz = LULL_PERF_RATE_HZ, .stack_bytes = LULL_PERF_STACK_BYTES     \
	}

struct lull_perf_sample {
	u32 pid, tid;
	u64 time_ns;
	u32 cpu;
	u64 weight_ns; /* CPU time the sample stands for */
	u64 ip;	       /* where it was, user or kernel */
	bool is_kernel;
	const u64 *chain; /* return addresses by frame pointer, and PERF_CONTEXT_ markers */
	size_t n_chain;
	u64 regs_mask;	 /* registers of user mode that are in `regs`; 0 if there are none */
	const u64 *regs; /* one value for each bit, lowest first: for lull_regs_from_perf() */
	const u8 *stack; /* user stack from the stack pointer up */
	size_t stack_bytes;
};

struct lull_perf_switch {
	u32 pid, tid;
	u64 time_ns;
	u32 cpu;
	bool is_in;	   /* got the CPU, or else lost it */
	bool is_preempted; /* lost it while it wanted to go on */
};

struct lull_perf_task {
	u32 pid, tid;
	u32 parent_pid, parent_tid;
	u64 time_ns;
};

struct lull_perf_comm {
	u32 pid, tid;
	u64 time_ns;
	const char *name;
	bool is_exec; /* a new program, not just a new name */
};

struct lull_perf_mmap {
	u32 pid, tid;
	u64 time_ns;
	u64 addr, len_bytes, file_off;
	const char *path;
	const u8 *build_id; /* NULL if the kernel did not say */
	size_t build_id_bytes;
};

/* Any of them may be NULL. */
struct lull_perf_handlers {
	void (*sample)(void *ctx, const struct lull_perf_sample *s);
	void (*switched)(void *ctx, const struct lull_perf_switch *s);
	void (*fork)(void *ctx, const struct lull_perf_task *t); /* thread if pid == parent_pid */
	void (*exit)(void *ctx, const struct lull_perf_task *t);
	void (*comm)(void *ctx, const struct lull_perf_comm *c);
	void (*mmap)(void *ctx, const struct lull_perf_mmap *m); /* executable mappings only */
	void (*lost)(void *ctx, u64 n, u64 time_ns);
};

/* What was granted, for the report and the user. */
struct lull_perf_info {
	bool has_kernel; /* samples include kernel code */
	u32 n_cpus;
	size_t ring_bytes; /* of one CPU */
};

/* 0 if permitted, else the errno. */
struct lull_perf_probe {
	int paranoid; /* kernel.perf_event_paranoid, or -100 if it could not be read */
	int samples_errno;
	int kernel_errno;
	int switches_errno;
	int system_wide_errno;
};

struct lull_perf;

/*
 * Open the events on `target` (between its fork and its exec, so that everything after is
 * inherited) and map the rings. Kernel code is left out silently where it is not permitted. Fails
 * with LULL_E_UNSUPPORTED and the reason when the kernel refuses; free with lull_perf_close().
 */
int lull_perf_open(struct lull_perf **perf, const struct lull_perf_options *options, pid_t target,
		   struct lull_err *err);

/*
 * Also follow this thread and what it starts; for threads that were there before the events were
 * opened. One that has ended is no error.
 */
int lull_perf_follow(struct lull_perf *p, pid_t tid, struct lull_err *err);

/* Close the events, unmap the rings, free. NULL is fine. Drain first what is wanted. */
void lull_perf_close(struct lull_perf *perf);

/*
 * Begin or pause samples and switches of everything, inherited tasks included. Those that are
 * `is_lasting` are taken on, but not delivered.
 */
int lull_perf_enable(struct lull_perf *perf, bool is_on, struct lull_err *err);

/*
 * Deliver, in time order, what the rings hold up to a moment shortly before now. Later records stay
 * in the rings, because another CPU may still be writing an earlier one.
 */
void lull_perf_drain(struct lull_perf *perf, const struct lull_perf_handlers *handlers, void *ctx);

/* Like lull_perf_drain(), up to the very end: for the last call. */
void lull_perf_flush(struct lull_perf *perf, const struct lull_perf_handlers *handlers, void *ctx);

/* A descriptor, borrowed, that polls readable when a ring is half full; a drain clears it. */
int lull_perf_fd(const struct lull_perf *perf);

/* What the kernel granted. */
struct lull_perf_info lull_perf_info(const struct lull_perf *perf);

/* Try each kind of event on this process and say which the kernel permits. */
void lull_perf_probe(struct lull_perf_probe *out);

/*
 * How long such a sample holds up the thread it is of, measured on this one within 6 ms; 0 if that
 * cannot be. And: how many a second are then taken, LULL_PERF_CHEAP_HZ at most.
 */
u64 lull_perf_cost_ns(const struct lull_perf_options *options);
u32 lull_perf_rate_hz(u64 cost_ns);

#endif
