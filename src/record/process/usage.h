/*
 * usage - CPU time, memory and threads of a process, from /proc.
 *
 * What it gives:  one struct per process and moment; the names of its threads.
 * Ownership:      nothing is kept between calls; no allocation.
 * Threads:        any thread.
 * Cost:           about 15 us per process (stat and status), 6 us more per thread name.
 */
#ifndef LULL_RECORD_PROCESS_USAGE_H
#define LULL_RECORD_PROCESS_USAGE_H

#include <sys/types.h>

#include "base/types.h"

struct lull_usage {
	u64 user_ns; /* so far, in ticks of 10 ms */
	u64 system_ns;
	u64 rss_bytes;
	u64 max_rss_bytes;
	u64 read_bytes; /* from storage; 0 where /proc/PID/io may not be read */
	u64 written_bytes;
	u32 n_threads;
};

/* Longest name of a thread with its NUL (TASK_COMM_LEN). */
#define LULL_THREAD_NAME_BYTES 16

typedef void lull_usage_thread_fn(void *ctx, u32 tid, const char *name);

/* Fill *usage; false if the process is gone (or is a zombie, whose memory is gone). */
bool lull_usage_read(pid_t pid, struct lull_usage *usage);

/* Call `thread` with each thread's id and name. Threads that end meanwhile are left out. */
void lull_usage_threads(pid_t pid, lull_usage_thread_fn *thread, void *ctx);

/* Copy the name of one thread; false if it is gone. */
bool lull_usage_thread_name(pid_t pid, u32 tid, char name[LULL_THREAD_NAME_BYTES]);

#endif
