/*
 * cuda - what the files of the CUDA source share.
 *
 * How it records: calls of the driver and the runtime by callbacks on the calling thread (the
 * cheapest
 *                 way: two reads of the counter and one event, and no record of CUPTI's); what the
 *                 device did by CUPTI's activity records, turned into events on CUPTI's own thread.
 * Who flushes:    a thread of ours, five times a second and when the collector asks for it, so that
 *                 a killed process loses at most the last 250 ms of device records.
 */
#ifndef LULL_AGENT_CUDA_H
#define LULL_AGENT_CUDA_H

#include "agent/ring.h"

/* CUPTI asks for room and gives it back full of records (cuda_records.c). */
void lull_cuda_requested(u8 **buffer, size_t *size_bytes, size_t *max_records);
void lull_cuda_completed(void *context, u32 stream, u8 *buffer, size_t size_bytes,
			 size_t valid_bytes);

/* A callback of CUPTI about a call (cuda_calls.c). */
void lull_cuda_called(void *user, u32 domain, u32 cbid, const void *data);

/* Turn callbacks for the calls that matter on or off. */
void lull_cuda_watch_calls(void *subscriber, bool is_on);

/* The time for CUPTI's own stamps: the counter that all events carry. */
static inline u64 lull_cuda_now(void)
{
	return lull_time();
}

/* A capture range may begin a recording at any moment: CUPTI must be on before it does. */
static inline bool lull_cuda_is_watching(void)
{
	return atomic_load_explicit(&lull_agent.control->watch, memory_order_relaxed) != 0;
}

/* True in the process that CUPTI was set up in; a forked child must never call it. */
bool lull_cuda_is_mine(void);

/* The process is about to end: bring in what CUPTI holds, at most once. */
void lull_cuda_leave(void);

#endif
