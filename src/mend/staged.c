/*
 * Copies from pageable memory go through pinned memory of ours.
 *
 * The driver waits for the stream before such a copy, and the host with it. Here the host copies
 * the bytes at once, as the driver promises for pageable memory, and the device fetches them when
 * the stream gets there. Order within the stream is the same. A piece of pinned memory is used
 * again once the device has read it, which an event tells.
 */
#include "mend/mend.h"

#include <dlfcn.h>
#include <pthread.h>

#define NO_TIMING 2u

/* Smaller copies are not worth it: the driver puts them into the command buffer itself. */
#define LEAST_BYTES (128u << 10)

/* Pieces, and their size. */
#define N_PIECES    8
#define PIECE_BYTES (4u << 20)

/* cuPointerGetAttribute(): the memory type; an error for memory that the driver does not know. */
#define MEMORY_TYPE   2
#define INVALID_VALUE 1

struct piece {
	void *at;
	void *event; /* NULL: not used yet */
};

static struct {
	pthread_mutex_t lock;
	void *context;
	struct piece pieces[N_PIECES];
	size_t next;
	bool is_off;
	int (*get_attribute)(void *, int, u64);
} stage = { .lock = PTHREAD_MUTEX_INITIALIZER };

static bool prepare(const struct lull_driver *d)
{
	void *context = NULL, *library;

	if (stage.is_off || d->cuCtxGetCurrent(&context) != LULL_CUDA_OK || !context)
		return false;
	if (stage.context)
		return stage.context == context;
	library = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	*(void **)&stage.get_attribute = library ? dlsym(library, "cuPointerGetAttribute") : NULL;
	stage.is_off = !stage.get_attribute;
	for (size_t i = 0; i < N_PIECES && !stage.is_off; i++)
		stage.is_off =
			d->cuMemAllocHost_v2(&stage.pieces[i].at, PIECE_BYTES) != LULL_CUDA_OK ||
			d->cuEventCreate(&stage.pieces[i].event, NO_TIMING) != LULL_CUDA_OK;
	stage.context = context;
	return !stage.is_off;
}

/*
 * Whether the copy can be staged: the driver does not know its memory, and the stream is no
 * recording.
 */
static bool can_stage(const struct lull_driver *d, const void *from, size_t bytes, void *stream)
{
	int status = 0;
	unsigned type = 0;

	if (bytes < LEAST_BYTES || !prepare(d))
		return false;
	if (d->cuStreamIsCapturing(stream, &status) != LULL_CUDA_OK || status)
		return false;
	return stage.get_attribute(&type, MEMORY_TYPE, (u64)from) == INVALID_VALUE;
}

/* The driver refused a piece: the rest is its own. */
static int copy_rest(const struct lull_driver *d, u64 to, const char *from, size_t bytes,
		     void *stream, bool is_async)
{
	return is_async ? d->cuMemcpyHtoDAsync_v2(to, from, bytes, stream)
			: d->cuMemcpyHtoD_v2(to, from, bytes);
}

int lull_staged_copy(const struct lull_driver *d, u64 to, const void *from, size_t bytes,
		     void *stream, bool is_async)
{
	size_t n_other, done = 0;
	int result = LULL_CUDA_OK;

	pthread_mutex_lock(&stage.lock);
	if (can_stage(d, from, bytes, stream)) {
		while (done < bytes && result == LULL_CUDA_OK) {
			struct piece *p = &stage.pieces[stage.next++ % N_PIECES];
			size_t n = bytes - done < PIECE_BYTES ? bytes - done : PIECE_BYTES;

			result = d->cuEventSynchronize(p->event);
			if (result != LULL_CUDA_OK)
				break;
			lull_crew_copy(p->at, (const char *)from + done, n);
			result = d->cuMemcpyHtoDAsync_v2(to + done, p->at, n, stream);
			if (result != LULL_CUDA_OK)
				break;
			done += n;
			result = d->cuEventRecord(p->event, stream);
		}
		lull_mend_did(LULL_MEND_STAGED);
	}
	pthread_mutex_unlock(&stage.lock);
	if (done < bytes)
		return copy_rest(d, to + done, (const char *)from + done, bytes - done, stream,
				 is_async);
	/* Streams that do not wait for the default one see the bytes after the driver's call. */
	if (!is_async && (!lull_mend_streams(&n_other) || n_other))
		return d->cuStreamSynchronize(stream);
	return result;
}

void lull_staged_clear(void)
{
	pthread_mutex_lock(&stage.lock);
	stage.is_off = true;
	pthread_mutex_unlock(&stage.lock);
}
