/*
 * cupti_int - the parts of the simulated CUPTI.
 *
 *	libcupti.c       entry points, the subscriber, what libcuda tells us
 *	cupti_record.c   records, as the chosen release of CUPTI lays them out
 *	cupti_buffer.c   the program's buffers and the thread that gives them back
 *	cupti_clock.c    from the model's time to the program's clock
 *	cupti_profiler.c counters of kernels; cupti_pcsampling.c samples of them
 */
#ifndef LULL_SIM_CUPTI_INT_H
#define LULL_SIM_CUPTI_INT_H

#include "sim_int.h"

/* CUPTI's results that are used here. */
enum cupti_result {
	CUPTI_OK = 0,
	CUPTI_E_PARAMETER = 1,
	CUPTI_E_MAX_LIMIT = 12,
	CUPTI_E_UNINITIALIZED = 15,
	CUPTI_E_KIND = 21,
	CUPTI_E_UNSUPPORTED = 27,
	CUPTI_E_PRIVILEGES = 35,
	CUPTI_E_LEGACY = 38,
	CUPTI_E_SUBSCRIBED = 39,
};

/* Kinds of records. */
enum cupti_kind {
	CUPTI_MEMCPY = 1,
	CUPTI_MEMSET = 2,
	CUPTI_KERNEL = 3,
	CUPTI_DEVICE = 8,
	CUPTI_CONTEXT = 9,
	CUPTI_CONCURRENT_KERNEL = 10,
	CUPTI_OVERHEAD = 17,
	CUPTI_UM = 25,
	CUPTI_STREAM = 37,
	CUPTI_SYNC = 38,
	CUPTI_MEMORY = 49,
	CUPTI_GRAPH = 51,
	CUPTI_JIT = 52,
	CUPTI_N_KINDS = 64,
};

/* The largest of any release. */
#define CUPTI_MAX_RECORD_BYTES 216

typedef void cupti_request_fn(u8 **buffer, size_t *size, size_t *max_records);
typedef void cupti_complete_fn(void *context, u32 stream, u8 *buffer, size_t size, size_t valid);
typedef u64 cupti_timestamp_fn(void);

/* ---- cupti_record.c ---- */

/* What cuptiGetVersion() says; LULL_SIM_CUPTI_VERSION chooses. */
u32 lull_cupti_version(void);

/* Bytes of a record of this kind, 0 if there are none. */
size_t lull_cupti_record_bytes(u32 kind);

/* Offset of start, which end follows, in a record of this kind; 0 if it has no times. */
size_t lull_cupti_times_off(u32 kind);

/* Write a record with the model's times; returns its bytes. */
size_t lull_cupti_write_work(u8 *at, const struct sim_work *work, u32 kind);
size_t lull_cupti_write_object(u8 *at, const struct sim_object *object);
size_t lull_cupti_write_event(u8 *at, const struct sim_event *event);
size_t lull_cupti_write_device(u8 *at);
size_t lull_cupti_write_overhead(u8 *at, u32 overhead_kind, u64 start_ns, u64 end_ns);

/* ---- cupti_buffer.c ---- */

/* Whom to ask for buffers, and to whom to give them. Starts the thread; false if that failed. */
bool lull_cupti_buffers_open(cupti_request_fn *request, cupti_complete_fn *complete);

/* Whether buffers must be zeroed by us. */
void lull_cupti_buffers_zero(bool must_zero);

/* Append a record that is valid once `end_ns` has passed. Asks the program for a buffer. */
void lull_cupti_append(const u8 *record, size_t bytes, u64 end_ns);

/* Buffers of the program that we hold. */
u64 lull_cupti_buffers_out(void);

/* Records in the buffers that the program has back. */
u64 lull_cupti_delivered(void);

/* Records that found no room since the last time this was asked; more are added by `n`. */
void lull_cupti_drop(u64 n);
u64 lull_cupti_take_dropped(void);

/*
 * Give back all buffers, those with unfinished records only if forced. Returns when that is done.
 */
int lull_cupti_flush(bool is_forced);

/* ---- cupti_clock.c ---- */

/* The program's clock; NULL for the system's. */
void lull_cupti_clock_set(cupti_timestamp_fn *timestamp);

/* Compare the clocks; times up to now can then be translated. */
void lull_cupti_clock_compare(void);

/* A time of the model on the program's clock; with the device's error if it is the device's. */
u64 lull_cupti_clock_translate(u64 ns, bool is_device);

/* ---- cupti_resource.c ---- */

/* A callback about a context or a module is on or off. */
void lull_cupti_resource_enable(u32 cbid, bool is_on);

/* Tell the subscriber about it, if it wants to know. */
void lull_cupti_resource_context(const struct sim_object *object);
void lull_cupti_resource_module(const struct sim_event *event);

/* Whether a counter of unified memory was asked for. */
bool lull_cupti_wants_counter(u32 counter_kind);

/* Whether counters of unified memory were asked for in vain. */
bool lull_cupti_has_refused_um(void);

/* ---- cupti_profiler.c ---- */

/* A kernel was launched: count it and run it again, if somebody reads counters. */
void lull_cupti_profile(const struct sim_work *work);

/* Whether the hardware reads counters; samples are then refused. */
bool lull_cupti_profiler_is_on(void);

/* ---- cupti_pcsampling.c ---- */

/* A kernel was launched: sample it, if somebody wants that. */
void lull_cupti_sample(const struct sim_work *work);

/* ---- libcupti.c ---- */

/* Call the subscriber; nothing if there is none. */
void lull_cupti_call_subscriber(u32 domain, u32 cbid, const void *data);

/* A symbol of the loaded driver, or NULL. */
void *lull_cupti_find_in_driver(const char *symbol);

/* True if LULL_SIM_MISSING names the function. */
bool lull_cupti_is_missing(const char *function);

/* Whether records of this kind are wanted. */
bool lull_cupti_wants(u32 kind);

#endif
