/*
 * perf_cost - how long a CPU sample interrupts the sampled thread.
 *
 * On a physical machine that is about 3 us: the interrupt, and a copy of the stack. In a nested
 * virtual machine every timer interrupt goes through two hosts, and it is 20 us and more: at 1 kHz
 * 2 % of a program. So it is measured: this thread samples itself for some milliseconds and looks
 * for gaps in its time.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/sort.h"
#include "base/time.h"
#include "record/perf/perf_int.h"

#define SPIN_RATE_HZ 4000u
#define SPIN_NS	     6000000u /* two dozen samples */
#define RING_BYTES   (256u << 10)

/* Two looks at the clock that are not held up are less than this apart. */
#define HOLE_NS 1000u
#define N_HOLES 2048u

/* With fewer holes than this the samples did not come, or take no time. */
#define MIN_HOLES 8u

static int by_size(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return (x > y) - (x < y);
}

/*
 * The one that counts: the middle one of as many as samples could be written, the longest first.
 * Other interrupts are shorter, and in the longest another thread had the CPU.
 */
static u64 middle_hole(u64 *holes, u32 n, const struct lull_perf_ring *ring)
{
	u64 n_samples = (u64)SPIN_NS * SPIN_RATE_HZ / LULL_NS_PER_S;
	u64 n_written = ring->data_bytes / (LULL_PERF_STACK_BYTES + 512);
	u64 middle = (n_written < n_samples ? n_written : n_samples) / 2;

	lull_sort(holes, n, sizeof(*holes), by_size);
	return holes[middle < n / 2 ? n - 1 - middle : n / 2];
}

/* The holes in the time of this thread; how many. */
static u32 find_holes(u64 *holes)
{
	/* Something to copy: the callers of a recorder are few, those of a program are not. */
	volatile u8 frames[LULL_PERF_STACK_BYTES];
	u64 begin_ns = lull_now_ns(), last_ns = begin_ns;
	u32 n = 0;

	for (size_t i = 0; i < sizeof(frames); i += 64)
		frames[i] = 1;
	while (n < N_HOLES && last_ns - begin_ns < SPIN_NS) {
		u64 now_ns = lull_now_ns();

		if (now_ns - last_ns > HOLE_NS)
			holes[n++] = now_ns - last_ns;
		last_ns = now_ns;
	}
	return n;
}

u64 lull_perf_cost_ns(const struct lull_perf_options *options)
{
	struct perf_event_attr attr = lull_perf_sample_attr(options, 1000000000u / SPIN_RATE_HZ);
	struct lull_perf_ring ring = { 0 };
	u64 holes[N_HOLES], cost_ns = 0;
	struct lull_err err;
	u32 n;
	int fd;

	attr.disabled = 1;
	attr.inherit = 0;
	fd = lull_perf_event(&attr, 0, -1);
	if (fd < 0 && (errno == EACCES || errno == EPERM)) {
		attr.exclude_kernel = 1;
		fd = lull_perf_event(&attr, 0, -1);
	}
	if (fd < 0)
		return 0;
	if (lull_perf_ring_open(&ring, fd, RING_BYTES, &err) == LULL_OK &&
	    ioctl(fd, PERF_EVENT_IOC_ENABLE, 0) == 0) {
		n = find_holes(holes);
		cost_ns = n < MIN_HOLES ? 0 : middle_hole(holes, n, &ring);
	}
	lull_perf_ring_close(&ring);
	close(fd);
	return cost_ns;
}

u32 lull_perf_rate_hz(u64 cost_ns)
{
	u64 rate_hz = cost_ns ? LULL_NS_PER_S / 1000000 * LULL_PERF_SHARE_PPM / cost_ns
			      : LULL_PERF_CHEAP_HZ;

	if (rate_hz >= LULL_PERF_CHEAP_HZ)
		return LULL_PERF_CHEAP_HZ;
	return rate_hz > LULL_PERF_MIN_RATE_HZ ? (u32)(rate_hz - rate_hz % 10)
					       : LULL_PERF_MIN_RATE_HZ;
}
