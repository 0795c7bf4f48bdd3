/*
 * lazy_cuda - a stand-in for libcuda.so.1 that does everything as late as it may.
 *
 * Work of the default stream and of those that wait for it is one queue; each other stream has its
 * own. A queue is only worked off where the program waits for it, and where it cannot know: before
 * results are read, in both orders by turns. So who uses memory too early finds wrong bytes.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define OK	      0
#define INVALID_VALUE 1
#define NOT_READY     600
#define MOST	      64

enum kind { COPY, SET, EVENT };

struct work {
	struct work *next;
	enum kind kind;
	void *to;
	const void *from;
	void *owned; /* bytes of pageable memory */
	size_t bytes;
	int value;
};

struct queue {
	struct work *first, **last;
	int is_used;
};

struct event {
	struct queue *queue;
	int is_over;
};

static struct queue queues[MOST];
static struct {
	char *at;
	size_t bytes;
} pinned[MOST];
static size_t n_pinned, n_queues = 1;
static unsigned n_read;

static struct queue *queue_of(void *stream)
{
	struct queue *q = stream ? stream : &queues[0];

	if (!q->last)
		q->last = &q->first;
	return q;
}

static void do_first(struct queue *q)
{
	struct work *w = q->first;

	q->first = w->next;
	if (!q->first)
		q->last = &q->first;
	if (w->kind == COPY)
		memmove(w->to, w->owned ? w->owned : w->from, w->bytes);
	else if (w->kind == SET)
		memset(w->to, w->value, w->bytes);
	else
		((struct event *)w->to)->is_over = 1;
	free(w->owned);
	free(w);
}

static void do_all(struct queue *q)
{
	while (q->first)
		do_first(q);
}

static void do_everything(int others_first)
{
	for (size_t i = 0; i < n_queues; i++)
		do_all(&queues[others_first ? n_queues - 1 - i : i]);
}

static int is_pinned(const void *at)
{
	for (size_t i = 0; i < n_pinned; i++)
		if ((const char *)at >= pinned[i].at &&
		    (const char *)at < pinned[i].at + pinned[i].bytes)
			return 1;
	return 0;
}

static struct work *add(void *stream, enum kind kind, void *to, size_t bytes)
{
	struct queue *q = queue_of(stream);
	struct work *w = calloc(1, sizeof(*w));

	*w = (struct work){ .kind = kind, .to = to, .bytes = bytes };
	*q->last = w;
	q->last = &w->next;
	return w;
}

int cuInit(unsigned flags)
{
	return flags ? INVALID_VALUE : OK;
}
int cuDevicePrimaryCtxRetain(void **context, int device)
{
	*context = queues;
	return device;
}
int cuDevicePrimaryCtxRelease_v2(int device)
{
	return device;
}
int cuCtxDestroy_v2(void *context)
{
	return context != queues;
}
int cuCtxSetCurrent(void *context)
{
	return context != queues;
}
int cuCtxGetCurrent(void **context)
{
	*context = queues;
	return OK;
}
int cuCtxSynchronize(void)
{
	do_everything(0);
	return OK;
}
int cuMemGetInfo_v2(size_t *left, size_t *all)
{
	*left = *all = 1 << 30;
	return OK;
}

int cuMemAlloc_v2(uint64_t *at, size_t bytes)
{
	if (!bytes)
		return INVALID_VALUE;
	*at = (uint64_t)malloc(bytes);
	return OK;
}

int cuMemFree_v2(uint64_t at)
{
	if (at < 1 << 20)
		return INVALID_VALUE;
	do_everything(0);
	free((void *)at);
	return OK;
}

int cuMemAllocHost_v2(void **at, size_t bytes)
{
	*at = pinned[n_pinned].at = malloc(bytes);
	pinned[n_pinned++].bytes = bytes;
	return OK;
}

int cuPointerGetAttribute(void *value, int attribute, uint64_t at)
{
	*(unsigned *)value = 1;
	return attribute == 2 && is_pinned((void *)at) ? OK : INVALID_VALUE;
}

int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, void *stream)
{
	struct work *w = add(stream, COPY, (void *)to, bytes);

	w->from = from;
	if (!is_pinned(from))
		w->owned = memcpy(malloc(bytes), from, bytes);
	return OK;
}

int cuMemcpyHtoD_v2(uint64_t to, const void *from, size_t bytes)
{
	do_all(&queues[0]);
	memcpy((void *)to, from, bytes);
	return OK;
}

int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, void *stream)
{
	add(stream, COPY, (void *)to, bytes)->from = (void *)from;
	return OK;
}

int cuMemcpyDtoH_v2(void *to, uint64_t from, size_t bytes)
{
	do_everything(n_read++ / 2 % 2 == 0);
	memcpy(to, (void *)from, bytes);
	return OK;
}

int cuMemsetD8Async(uint64_t to, unsigned char value, size_t bytes, void *stream)
{
	add(stream, SET, (void *)to, bytes)->value = value;
	return OK;
}

int cuStreamCreate(void **stream, unsigned flags)
{
	*stream = flags ? &queues[n_queues++] : &queues[0];
	return OK;
}

int cuStreamCreateWithPriority(void **stream, unsigned flags, int priority)
{
	(void)priority;
	return cuStreamCreate(stream, flags);
}

/* A stream that waits for the default one has no end of its own: results are read later. */
int cuStreamSynchronize(void *stream)
{
	if (stream != &queues[0])
		do_all(queue_of(stream));
	return OK;
}

int cuStreamDestroy_v2(void *stream)
{
	(void)stream;
	return OK;
}
int cuStreamIsCapturing(void *stream, int *status)
{
	(void)stream;
	*status = 0;
	return OK;
}
int cuEventCreate(void **event, unsigned flags)
{
	(void)flags;
	*event = calloc(1, sizeof(struct event));
	return OK;
}
int cuEventDestroy_v2(void *event)
{
	(void)event;
	return OK;
}

int cuEventRecord(void *event, void *stream)
{
	struct event *e = event;

	e->is_over = 0;
	e->queue = queue_of(stream);
	add(stream, EVENT, event, 0);
	return OK;
}

int cuEventQuery(void *event)
{
	return ((struct event *)event)->is_over ? OK : NOT_READY;
}

int cuEventSynchronize(void *event)
{
	struct event *e = event;

	while (e->queue && !e->is_over)
		do_first(e->queue);
	return OK;
}

#define CALLS(CALL)                                                                         \
	CALL(cuInit)                                                                        \
	CALL(cuDevicePrimaryCtxRetain)                                                      \
	CALL(cuCtxSetCurrent) CALL(cuCtxSynchronize) CALL(cuMemAlloc_v2) CALL(cuMemFree_v2) \
		CALL(cuMemcpyHtoD_v2) CALL(cuMemcpyHtoDAsync_v2) CALL(cuMemcpyDtoDAsync_v2) \
			CALL(cuMemcpyDtoH_v2) CALL(cuMemsetD8Async) CALL(cuStreamCreate)    \
				CALL(cuStreamSynchronize) CALL(cuStreamDestroy_v2)

int cuGetProcAddress(const char *name, void **found, int version, uint64_t flags)
{
	size_t n = strlen(name);

	(void)version;
	(void)flags;
	*found = NULL;
#define CALL(symbol)                                                              \
	if (strncmp(name, #symbol, n) == 0 && (!#symbol[n] || #symbol[n] == '_')) \
		*found = (void *)symbol;
	CALLS(CALL)
	return *found ? OK : INVALID_VALUE;
}

int cuGetProcAddress_v2(const char *name, void **found, int version, uint64_t flags, int *status)
{
	(void)status;
	return cuGetProcAddress(name, found, version, flags);
}
