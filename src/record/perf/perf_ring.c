#include "record/perf/perf_int.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mem.h"

/*
 * The kernel writes at data_head, we read at data_tail; both only grow and are taken modulo the
 * size, which is a power of two. Records are multiples of 8 bytes and start on one, so that a u64
 * never wraps; a longer record may, and is then copied. The tail is handed back only after the
 * callback, because the callback reads the stack bytes in place.
 */

#define MIN_RING_BYTES \
	(64u << 10) /* seven samples with 8 KiB of stack: less loses too much to be useful */
#define MAX_RECORD_BYTES (64u << 10) /* perf_event_header.size is a u16 */

/* Where PERF_SAMPLE_TIME lies: after header, ip and pid,tid in a sample, before cpu in others. */
#define SAMPLE_TIME_OFF	    24
#define OTHER_TIME_FROM_END 16
#define MIN_TIMED_BYTES	    32

int lull_perf_ring_open(struct lull_perf_ring *ring, int fd, size_t max_bytes, struct lull_err *err)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);

	for (size_t n = max_bytes; n >= MIN_RING_BYTES; n /= 2) {
		void *at = mmap(NULL, page_bytes + n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

		if (at != MAP_FAILED) {
			*ring = (struct lull_perf_ring){ .page = at,
							 .data = (u8 *)at + page_bytes,
							 .data_bytes = n };
			return LULL_OK;
		}
		if (errno != EPERM && errno != ENOMEM)
			break;
	}
	return lull_fail_errno(err, "mapping a perf ring (see kernel.perf_event_mlock_kb)");
}

void lull_perf_ring_close(struct lull_perf_ring *ring)
{
	if (ring->page)
		munmap(ring->page, (size_t)(ring->data - (u8 *)ring->page) + ring->data_bytes);
	free(ring->bounce);
	*ring = (struct lull_perf_ring){ 0 };
}

static u64 u64_at(const struct lull_perf_ring *ring, u64 off)
{
	u64 v;

	memcpy(&v, ring->data + (off & (ring->data_bytes - 1)), sizeof(v));
	return v;
}

static struct perf_event_header header_at(const struct lull_perf_ring *ring, u64 off)
{
	struct perf_event_header h;
	u64 v = u64_at(ring, off);

	memcpy(&h, &v, sizeof(h));
	return h;
}

/* Learn the time of the record at the tail. A ring whose bytes make no sense is emptied. */
static bool peek(struct lull_perf_ring *ring)
{
	struct perf_event_header h;

	if (ring->tail == ring->head)
		return false;
	h = header_at(ring, ring->tail);
	if (h.size < MIN_TIMED_BYTES || h.size % 8 || h.size > ring->head - ring->tail) {
		ring->n_damaged++;
		ring->tail = ring->head;
		__atomic_store_n(&ring->page->data_tail, ring->tail, __ATOMIC_RELEASE);
		return false;
	}
	ring->next_time_ns = h.type == PERF_RECORD_SAMPLE
				     ? u64_at(ring, ring->tail + SAMPLE_TIME_OFF)
				     : u64_at(ring, ring->tail + h.size - OTHER_TIME_FROM_END);
	return true;
}

bool lull_perf_ring_refresh(struct lull_perf_ring *ring)
{
	/* Acquire: everything the kernel wrote before it moved the head is visible after this. */
	ring->head = __atomic_load_n(&ring->page->data_head, __ATOMIC_ACQUIRE);
	return peek(ring);
}

const struct perf_event_header *lull_perf_ring_record(struct lull_perf_ring *ring)
{
	size_t at = ring->tail & (ring->data_bytes - 1);
	size_t until_end = ring->data_bytes - at;
	size_t n = header_at(ring, ring->tail).size;

	if (n <= until_end)
		return (const void *)(ring->data + at);
	if (!ring->bounce)
		ring->bounce = lull_alloc(MAX_RECORD_BYTES, 1);
	memcpy(ring->bounce, ring->data + at, until_end);
	memcpy(ring->bounce + until_end, ring->data, n - until_end);
	return (const void *)ring->bounce;
}

bool lull_perf_ring_pop(struct lull_perf_ring *ring)
{
	ring->tail += header_at(ring, ring->tail).size;
	/* Release: our reads of the record are over before the kernel may write over it. */
	__atomic_store_n(&ring->page->data_tail, ring->tail, __ATOMIC_RELEASE);
	return peek(ring);
}
