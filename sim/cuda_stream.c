/*
 * cuda_stream - streams, events, and the calls that wait for them.
 */
#include "cuda_int.h"

#include <stdatomic.h>

#define NULL_STREAM_ID	    7u /* the number that CUPTI gives a context's default stream */
#define FIRST_STREAM_ID	    13u
#define FLAG_NON_BLOCKING   1u
#define LAST_SPECIAL_STREAM 2u /* handles 0, 1 and 2 are names of the default stream */

struct event {
	u32 id;
	bool is_recorded;
	u64 end_ns; /* when it comes to pass */
	u64 ticket;
	u64 sync_id; /* which record of it this was, over all events */
};

static _Atomic u32 n_streams, n_events;
static _Atomic u64 n_records;

void lull_sim_stream_init(struct sim_stream *stream, struct sim_context *context)
{
	*stream = (struct sim_stream){ .context = context,
				       .id = NULL_STREAM_ID,
				       .is_blocking = true };
}

struct sim_object lull_sim_object(const struct sim_stream *stream)
{
	return (struct sim_object){ .context_id = stream->context->id,
				    .stream_id = stream->id,
				    .null_stream_id = NULL_STREAM_ID,
				    .is_blocking = stream->is_blocking,
				    .priority = stream->priority,
				    .handle = stream };
}

struct sim_stream *lull_sim_stream(void *handle)
{
	struct sim_context *context = lull_sim_context();
	struct sim_stream *stream;

	if (!context)
		return NULL;
	if ((uintptr_t)handle <= LAST_SPECIAL_STREAM)
		return &context->null_stream;
	lull_sim_lock();
	stream = context->streams;
	while (stream && stream != handle)
		stream = stream->next;
	lull_sim_unlock();
	return stream;
}

/* ---- waiting ---- */

void lull_sim_sleep(u64 end_ns, u64 ticket)
{
	struct timespec until = { .tv_sec = (time_t)(end_ns / 1000000000u),
				  .tv_nsec = (long)(end_ns % 1000000000u) };

	while (sim_now_ns() < end_ns)
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
	lull_sim_execute_wait(ticket);
}

void lull_sim_wait(struct sim_work *wait, u64 end_ns, u64 ticket)
{
	wait->kind = SIM_SYNC;
	wait->start_ns = sim_now_ns();
	lull_sim_sleep(end_ns, ticket);
	wait->end_ns = sim_now_ns();
	lull_sim_tell(wait);
}

static void add_stream(const struct sim_stream *stream, u64 *end_ns, u64 *ticket)
{
	*end_ns = stream->end_ns > *end_ns ? stream->end_ns : *end_ns;
	*ticket = stream->ticket > *ticket ? stream->ticket : *ticket;
}

void lull_sim_context_end(struct sim_context *context, u64 *end_ns, u64 *ticket)
{
	*end_ns = 0;
	*ticket = 0;
	lull_sim_lock();
	add_stream(&context->null_stream, end_ns, ticket);
	for (struct sim_stream *s = context->streams; s; s = s->next)
		add_stream(s, end_ns, ticket);
	lull_sim_unlock();
}

int cuCtxSynchronize(void)
{
	struct sim_call call = SIM_ENTER(cuCtxSynchronize);
	struct sim_context *context = lull_sim_context();
	struct sim_work wait = { .wait_kind = SIM_WAIT_CONTEXT, .correlation = call.correlation };
	u64 end_ns, ticket;

	if (!context)
		return lull_sim_leave(&call, SIM_E_CONTEXT);
	wait.context_id = context->id;
	lull_sim_context_end(context, &end_ns, &ticket);
	lull_sim_wait(&wait, end_ns, ticket);
	return lull_sim_leave(&call, SIM_OK);
}

/* ---- streams ---- */

static int create_stream(void **stream, unsigned flags, int priority, u32 correlation)
{
	const struct sim_hooks *hooks = lull_sim_hooks();
	struct sim_context *context = lull_sim_context();
	struct sim_stream *s = context ? calloc(1, sizeof(*s)) : NULL;
	struct sim_object object;

	if (!s)
		return context ? SIM_E_MEMORY : SIM_E_CONTEXT;
	s->priority = priority;
	s->context = context;
	s->id = FIRST_STREAM_ID + atomic_fetch_add(&n_streams, 1);
	s->is_blocking = !(flags & FLAG_NON_BLOCKING);
	lull_sim_lock();
	s->next = context->streams;
	context->streams = s;
	lull_sim_unlock();
	object = lull_sim_object(s);
	object.correlation = correlation;
	if (hooks)
		hooks->object(&object);
	*stream = s;
	return SIM_OK;
}

int cuStreamCreate(void **stream, unsigned flags)
{
	struct sim_call call = SIM_ENTER(cuStreamCreate);

	return lull_sim_leave(&call, create_stream(stream, flags, 0, call.correlation));
}

/* Priorities are told, and change nothing in the model. */
int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority)
{
	struct sim_call call = SIM_ENTER(cuStreamCreateWithPriority);

	return lull_sim_leave(&call, create_stream(stream, flags, priority, call.correlation));
}

/* Returns at once; the queued work is done all the same. */
int cuStreamDestroy_v2(void *stream)
{
	struct sim_call call = SIM_ENTER(cuStreamDestroy_v2);
	struct sim_stream *s = lull_sim_stream(stream);
	struct sim_stream **p;

	if (!s || s == &s->context->null_stream)
		return lull_sim_leave(&call, SIM_E_HANDLE);
	lull_sim_lock();
	for (p = &s->context->streams; *p != s; p = &(*p)->next)
		continue;
	*p = s->next;
	/* Whoever waits for the context waits for this work, too. */
	add_stream(s, &s->context->null_stream.end_ns, &s->context->null_stream.ticket);
	lull_sim_unlock();
	free(s);
	return lull_sim_leave(&call, SIM_OK);
}

/* When the stream is done with all it has; 900 while it captures. */
static int stream_end(struct sim_stream *stream, u64 *end_ns, u64 *ticket)
{
	int result = SIM_OK;

	*end_ns = 0;
	*ticket = 0;
	if (!stream)
		return SIM_E_HANDLE;
	lull_sim_lock();
	if (stream->capture)
		result = SIM_E_CAPTURE_UNSUPPORTED;
	add_stream(stream, end_ns, ticket);
	if (stream == &stream->context->null_stream)
		for (struct sim_stream *s = stream->context->streams; s; s = s->next)
			if (s->is_blocking)
				add_stream(s, end_ns, ticket);
	lull_sim_unlock();
	return result;
}

int cuStreamSynchronize(void *stream)
{
	struct sim_call call = SIM_ENTER_WITH(cuStreamSynchronize, stream);
	struct sim_stream *s = lull_sim_stream(stream);
	struct sim_work wait = { .wait_kind = SIM_WAIT_STREAM, .correlation = call.correlation };
	u64 end_ns, ticket;
	int result = stream_end(s, &end_ns, &ticket);

	if (result)
		return lull_sim_leave(&call, result);
	wait.context_id = s->context->id;
	wait.stream_id = s->id;
	lull_sim_wait(&wait, end_ns, ticket);
	return lull_sim_leave(&call, SIM_OK);
}

int cuStreamQuery(void *stream)
{
	struct sim_call call = SIM_ENTER(cuStreamQuery);
	u64 end_ns, ticket;
	int result = stream_end(lull_sim_stream(stream), &end_ns, &ticket);

	if (!result && (sim_now_ns() < end_ns || !lull_sim_execute_is_done(ticket)))
		result = SIM_E_NOT_READY;
	return lull_sim_leave(&call, result);
}

/* ---- events ---- */

int cuEventCreate(void **event, unsigned flags)
{
	struct sim_call call = SIM_ENTER(cuEventCreate);
	struct event *e = calloc(1, sizeof(*e));

	(void)flags;
	if (!e)
		return lull_sim_leave(&call, SIM_E_MEMORY);
	e->id = atomic_fetch_add(&n_events, 1) + 1;
	*event = e;
	return lull_sim_leave(&call, SIM_OK);
}

int cuEventDestroy_v2(void *event)
{
	struct sim_call call = SIM_ENTER(cuEventDestroy_v2);

	free(event);
	return lull_sim_leave(&call, event ? SIM_OK : SIM_E_HANDLE);
}

int cuEventRecord(void *event, void *stream)
{
	struct sim_call call = SIM_ENTER(cuEventRecord);
	struct event *e = event;
	u64 end_ns, ticket, now_ns = sim_now_ns();
	int result = stream_end(lull_sim_stream(stream), &end_ns, &ticket);

	if (result || !e)
		return lull_sim_leave(&call, result ? result : SIM_E_HANDLE);
	lull_sim_lock();
	e->is_recorded = true;
	e->end_ns = end_ns > now_ns ? end_ns : now_ns;
	e->ticket = ticket;
	e->sync_id = atomic_fetch_add(&n_records, 1) + 1;
	lull_sim_unlock();
	return lull_sim_leave(&call, SIM_OK);
}

static struct event read_event(const void *event)
{
	struct event copy = { 0 };

	if (!event)
		return copy;
	lull_sim_lock();
	copy = *(const struct event *)event;
	lull_sim_unlock();
	return copy;
}

static void note_event(struct sim_work *wait, const struct event *event)
{
	wait->event_id = event->id;
	wait->event_sync_id = event->sync_id;
}

int cuStreamWaitEvent(void *stream, void *event, unsigned flags)
{
	struct sim_call call = SIM_ENTER_WITH(cuStreamWaitEvent, stream, event);
	struct sim_stream *s = lull_sim_stream(stream);
	struct event e = read_event(event);
	struct sim_work wait = { .wait_kind = SIM_WAIT_STREAM_EVENT,
				 .correlation = call.correlation };

	(void)flags;
	if (!s || !event)
		return lull_sim_leave(&call, SIM_E_HANDLE);
	if (s->capture)
		return lull_sim_leave(&call, SIM_E_CAPTURE_UNSUPPORTED);
	lull_sim_lock();
	add_stream(&(struct sim_stream){ .end_ns = e.end_ns, .ticket = e.ticket }, &s->end_ns,
		   &s->ticket);
	lull_sim_unlock();
	wait.context_id = s->context->id;
	wait.stream_id = s->id;
	note_event(&wait, &e);
	lull_sim_wait(&wait, 0, 0);
	return lull_sim_leave(&call, SIM_OK);
}

int cuEventSynchronize(void *event)
{
	struct sim_call call = SIM_ENTER_WITH(cuEventSynchronize, event);
	struct sim_context *context = lull_sim_context();
	struct event e = read_event(event);
	struct sim_work wait = { .wait_kind = SIM_WAIT_EVENT, .correlation = call.correlation };

	if (!event || !context)
		return lull_sim_leave(&call, event ? SIM_E_CONTEXT : SIM_E_HANDLE);
	wait.context_id = context->id;
	note_event(&wait, &e);
	lull_sim_wait(&wait, e.end_ns, e.ticket);
	return lull_sim_leave(&call, SIM_OK);
}

int cuEventQuery(void *event)
{
	struct sim_call call = SIM_ENTER(cuEventQuery);
	struct event e = read_event(event);
	int result = event ? SIM_OK : SIM_E_HANDLE;

	if (sim_now_ns() < e.end_ns || !lull_sim_execute_is_done(e.ticket))
		result = SIM_E_NOT_READY;
	return lull_sim_leave(&call, result);
}

static int elapsed(float *ms, const void *begin, const void *end)
{
	struct event from = read_event(begin), to = read_event(end);

	if (!from.is_recorded || !to.is_recorded)
		return SIM_E_HANDLE;
	if (sim_now_ns() < to.end_ns || sim_now_ns() < from.end_ns)
		return SIM_E_NOT_READY;
	*ms = (float)((f64)((i64)to.end_ns - (i64)from.end_ns) / 1e6);
	return SIM_OK;
}

int cuEventElapsedTime(float *ms, void *begin, void *end)
{
	struct sim_call call = SIM_ENTER(cuEventElapsedTime);

	return lull_sim_leave(&call, elapsed(ms, begin, end));
}

int cuEventElapsedTime_v2(float *ms, void *begin, void *end)
{
	struct sim_call call = SIM_ENTER(cuEventElapsedTime_v2);

	return lull_sim_leave(&call, elapsed(ms, begin, end));
}

int cuStreamIsCapturing(void *handle, int *status)
{
	struct sim_call call = SIM_ENTER(cuStreamIsCapturing);
	const struct sim_stream *stream = lull_sim_stream(handle);

	if (!stream)
		return lull_sim_leave(&call, SIM_E_HANDLE);
	*status = stream->capture ? 1 : 0;
	return lull_sim_leave(&call, SIM_OK);
}
