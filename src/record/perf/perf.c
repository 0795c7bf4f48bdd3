#include "record/perf/perf.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/time.h"
#include "base/vec.h"
#include "record/perf/perf_int.h"

/*
 * Events. Each CPU gets up to three, all writing into one ring:
 *
 *	track    software dummy: forks, exits, names, mappings. Never paused, or a recording that
 *	         begins late would not know the programs and libraries its samples lie in.
 *	sample   cpu-clock with registers and stack; has the switches too if the scope is the same.
 *	switch   software dummy with context_switch, if there are no samples or the scopes differ.
 *
 * A new thread gets a copy of each event of each CPU, and frees it at its end: 1.2 us of CPU time
 * each, so 32 of them on 16 CPUs cost a server with a thread for each request 40 us a request. So
 * where samples are wanted most of the time, `sample` tracks, too, and is never paused.
 *
 * One event per CPU, because the kernel refuses to map an inherited event that follows its task
 * across CPUs.
 *
 * The clock is always cpu-clock, never hardware cycles: virtual machines mostly have no counters,
 * and a sample then means the same everywhere: so many nanoseconds of CPU time.
 */

enum { MAX_EVENTS = 3 };

/*
 * How long before now a drain stops. A record takes its time before it becomes visible; on an idle
 * machine that is about a microsecond, but a virtual CPU can be taken away in between.
 */
#define SETTLE_NS 2000000

/* All rings together; a machine with hundreds of CPUs gets smaller ones. */
#define MAX_RINGS_BYTES (256u << 20)

struct event {
	struct perf_event_attr attr;
	pid_t pid; /* -1: everything on the CPU */
	bool is_pausable;
};

/* The CPU of a ring, and the event that has it. */
struct place {
	int cpu, fd;
};

struct lull_perf {
	struct lull_perf_options options;
	struct lull_perf_format format;
	struct event events[MAX_EVENTS];
	u32 n_events;
	u64 on_ns, off_ns;   /* samples and switches from here to there are delivered */
	struct lull_vec fds; /* int, n_events for each CPU; -1 if the CPU went offline meanwhile */
	struct lull_perf_ring *rings;
	struct lull_vec places;	      /* struct place, one for each ring */
	struct lull_perf_ring **heap; /* rings with records, the earliest first */
	u32 n_rings;
	int epoll_fd;
};

int lull_perf_event(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	return (int)syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static int fd_at(const struct lull_perf *p, size_t ix)
{
	return *(int *)lull_vec_get(&p->fds, ix);
}

static int paranoid_level(void)
{
	FILE *f = fopen("/proc/sys/kernel/perf_event_paranoid", "re");
	int level = -100;

	if (!f)
		return level;
	if (fscanf(f, "%d", &level) != 1)
		level = -100;
	fclose(f);
	return level;
}

/* What all events share: one clock, and a trailer that says who, when and where. */
static struct perf_event_attr base_attr(enum lull_perf_scope scope)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE, .size = sizeof(attr) };

	attr.config = PERF_COUNT_SW_DUMMY;
	attr.sample_type = LULL_PERF_BASE_TYPE;
	attr.sample_id_all = 1;
	attr.use_clockid = 1;
	attr.clockid = CLOCK_MONOTONIC;
	attr.inherit = scope == LULL_PERF_PROCESS_TREE;
	attr.watermark = 1;
	return attr;
}

static struct event *add_event(struct lull_perf *p, enum lull_perf_scope scope, pid_t target)
{
	struct event *e = &p->events[p->n_events++];

	e->attr = base_attr(scope);
	e->pid = scope == LULL_PERF_SYSTEM_WIDE ? -1 : target;
	return e;
}

static void track_with(struct event *e)
{
	e->attr.task = 1;
	e->attr.comm = 1;
	e->attr.comm_exec = 1;
	e->attr.mmap = 1;
	e->attr.mmap2 = 1;
	e->attr.build_id = 1;
}

static void add_tracking(struct lull_perf *p, pid_t target)
{
	const struct lull_perf_options *o = &p->options;
	enum lull_perf_scope widest = o->samples > o->switches ? o->samples : o->switches;

	track_with(add_event(p, widest, target));
}

struct perf_event_attr lull_perf_sample_attr(const struct lull_perf_options *o, u64 period_ns)
{
	struct perf_event_attr attr = base_attr(o->samples);

	attr.config = PERF_COUNT_SW_CPU_CLOCK;
	attr.sample_period = period_ns;
	attr.exclude_kernel = o->is_user_only;
	/* A sample of a CPU that does nothing is nobody's CPU time. */
	attr.exclude_idle = 1;
	if (o->regs_mask) {
		attr.sample_type |= PERF_SAMPLE_REGS_USER;
		attr.sample_regs_user = o->regs_mask;
	}
	if (o->stack_bytes) {
		attr.sample_type |= PERF_SAMPLE_STACK_USER;
		attr.sample_stack_user = o->stack_bytes;
	}
	return attr;
}

static void add_samples(struct lull_perf *p, pid_t target)
{
	const struct lull_perf_options *o = &p->options;
	struct event *e = add_event(p, o->samples, target);

	e->is_pausable = true;
	e->attr = lull_perf_sample_attr(o, p->format.weight_ns);
	e->attr.disabled = o->is_paused;
	e->attr.context_switch = o->switches == o->samples;
	p->format.regs_mask = o->regs_mask;
	p->format.has_stack = o->stack_bytes != 0;
}

static void add_switches(struct lull_perf *p, pid_t target)
{
	struct event *e = add_event(p, p->options.switches, target);

	e->is_pausable = true;
	e->attr.disabled = p->options.is_paused;
	e->attr.context_switch = 1;
}

/* Samples that track, too; nothing is delivered before lull_perf_enable(), if that is awaited. */
static void add_all_in_one(struct lull_perf *p, pid_t target)
{
	struct event *e = &p->events[p->n_events];

	add_samples(p, target);
	track_with(e);
	e->is_pausable = false;
	e->attr.disabled = 0;
	p->off_ns = p->options.is_paused ? 0 : UINT64_MAX;
}

static void plan_events(struct lull_perf *p, pid_t target)
{
	const struct lull_perf_options *o = &p->options;

	p->off_ns = UINT64_MAX;
	if (o->is_lasting && o->samples && o->switches == o->samples) {
		add_all_in_one(p, target);
		return;
	}
	add_tracking(p, target);
	if (o->samples)
		add_samples(p, target);
	if (o->switches && o->switches != o->samples)
		add_switches(p, target);
}

static int refuse(struct lull_err *err, enum lull_perf_scope scope)
{
	if (errno != EACCES && errno != EPERM && errno != ENOSYS)
		return lull_fail_errno(err, "opening a perf event");
	return lull_fail(err, LULL_E_UNSUPPORTED,
			 "the Linux kernel refuses perf events%s: %s (kernel.perf_event_paranoid "
			 "is %d; %s or "
			 "CAP_PERFMON would permit it, and a container must not filter the call)",
			 scope == LULL_PERF_SYSTEM_WIDE ? " of the whole machine" : "",
			 strerror(errno), paranoid_level(),
			 scope == LULL_PERF_SYSTEM_WIDE ? "0" : "2");
}

/*
 * Open `e` on a CPU, giving up what the kernel does not grant: first kernel code (rights), then
 * build ids (before Linux 5.12). What was given up stays given up for the following CPUs. Returns
 * the descriptor, -1 for a CPU that went offline, or -2 and *err.
 */
static int open_event(struct event *e, int cpu, struct lull_err *err)
{
	int fd = lull_perf_event(&e->attr, e->pid, cpu);

	if (fd < 0 && (errno == EACCES || errno == EPERM) && !e->attr.exclude_kernel) {
		e->attr.exclude_kernel = 1;
		e->attr.exclude_hv = 1;
		fd = lull_perf_event(&e->attr, e->pid, cpu);
	}
	if (fd < 0 && (errno == EINVAL || errno == E2BIG) && e->attr.build_id) {
		e->attr.build_id = 0;
		fd = lull_perf_event(&e->attr, e->pid, cpu);
	}
	if (fd >= 0 || errno == ENODEV)
		return fd;
	refuse(err, e->pid == -1 ? LULL_PERF_SYSTEM_WIDE : LULL_PERF_PROCESS_TREE);
	return -2;
}

/* Open all events of one CPU into one ring. A CPU that is offline adds nothing. */
static int open_cpu(struct lull_perf *p, int cpu, size_t max_ring_bytes, struct lull_err *err)
{
	struct epoll_event wake = { .events = EPOLLIN | EPOLLET };
	int first_fd = -1;

	for (u32 i = 0; i < p->n_events; i++) {
		struct event *e = &p->events[i];
		int fd;

		e->attr.wakeup_watermark = (u32)max_ring_bytes / 2;
		fd = open_event(e, cpu, err);
		if (fd == -1 && i == 0)
			return LULL_OK;
		if (fd < -1)
			return err->code;
		lull_vec_add(&p->fds, &fd, 1);
		if (fd == -1)
			continue;
		if (first_fd >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, first_fd) < 0)
			return lull_fail_errno(err, "joining perf rings");
		if (first_fd >= 0)
			continue;
		first_fd = fd;
		if (lull_perf_ring_open(&p->rings[p->n_rings], fd, max_ring_bytes, err))
			return err->code;
		p->n_rings++;
		lull_vec_add(&p->places, &(struct place){ cpu, fd }, 1);
		/* Edge-triggered: a dead target leaves the descriptor hung up, which would be
		 * readable forever. */
		if (epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &wake) < 0)
			return lull_fail_errno(err, "watching a perf ring");
	}
	return LULL_OK;
}

/* The CPUs that are online, from "0-3,8": appended as ints. */
static int read_cpus(struct lull_vec *cpus, struct lull_err *err)
{
	static const char path[] = "/sys/devices/system/cpu/online";
	FILE *f = fopen(path, "re");
	int first, last;

	if (!f)
		return lull_fail_errno(err, "%s", path);
	while (fscanf(f, "%d", &first) == 1) {
		if (fscanf(f, "-%d", &last) != 1)
			last = first;
		for (int cpu = first; cpu <= last; cpu++)
			lull_vec_add(cpus, &cpu, 1);
		if (fgetc(f) != ',')
			break;
	}
	fclose(f);
	if (!cpus->n)
		return lull_fail(err, LULL_E_FORMAT, "%s names no CPU", path);
	return LULL_OK;
}

static size_t ring_bytes_for(const struct lull_perf_options *o, size_t n_cpus)
{
	size_t n = o->max_ring_bytes ? o->max_ring_bytes : LULL_PERF_RING_BYTES;

	while (n > (64u << 10) && n * n_cpus > MAX_RINGS_BYTES)
		n /= 2;
	return n;
}

static int open_all(struct lull_perf *p, struct lull_err *err)
{
	struct lull_vec cpus;
	size_t ring_bytes;
	int rc;

	lull_vec_init(&cpus, sizeof(int));
	rc = read_cpus(&cpus, err);
	if (rc)
		goto out;
	p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (p->epoll_fd < 0) {
		rc = lull_fail_errno(err, "epoll");
		goto out;
	}
	p->rings = lull_alloc(cpus.n, sizeof(*p->rings));
	p->heap = lull_alloc(cpus.n, sizeof(struct lull_perf_ring *));
	ring_bytes = ring_bytes_for(&p->options, cpus.n);
	for (size_t i = 0; i < cpus.n && !rc; i++) {
		rc = open_cpu(p, *(int *)lull_vec_get(&cpus, i), ring_bytes, err);
		/* The limit on locked memory is per user: what one CPU got is what the next one
		 * gets at most. */
		if (!rc && p->n_rings)
			ring_bytes = p->rings[p->n_rings - 1].data_bytes;
	}
out:
	lull_vec_release(&cpus);
	return rc;
}

int lull_perf_open(struct lull_perf **perf, const struct lull_perf_options *options, pid_t target,
		   struct lull_err *err)
{
	struct lull_perf *p = lull_alloc(1, sizeof(*p));
	u32 rate_hz = options->rate_hz ? options->rate_hz : LULL_PERF_RATE_HZ;

	p->options = *options;
	p->format.weight_ns = LULL_NS_PER_S / rate_hz;
	p->epoll_fd = -1;
	lull_vec_init(&p->fds, sizeof(int));
	lull_vec_init(&p->places, sizeof(struct place));
	plan_events(p, target);
	if (open_all(p, err)) {
		lull_perf_close(p);
		return lull_err_wrap(err, "CPU sampling");
	}
	*perf = p;
	return LULL_OK;
}

/* The events of another thread on one CPU, into the ring of that CPU. */
static int follow_on(struct lull_perf *p, const struct place *place, pid_t tid)
{
	for (u32 i = 0; i < p->n_events; i++) {
		struct event *e = &p->events[i];
		bool is_tree = e->attr.inherit;
		int fd = is_tree ? lull_perf_event(&e->attr, tid, place->cpu) : -1;

		if (fd < 0 && is_tree)
			return errno;
		if (fd >= 0 && ioctl(fd, PERF_EVENT_IOC_SET_OUTPUT, place->fd) < 0) {
			close(fd);
			fd = -1;
		}
		lull_vec_add(&p->fds, &fd, 1);
	}
	return 0;
}

int lull_perf_follow(struct lull_perf *p, pid_t tid, struct lull_err *err)
{
	size_t n_before = p->fds.n;

	for (size_t i = 0; i < p->places.n; i++) {
		int error = follow_on(p, lull_vec_get(&p->places, i), tid);

		if (!error)
			continue;
		while (p->fds.n > n_before) {
			int fd = fd_at(p, p->fds.n - 1);

			p->fds.n--;
			if (fd >= 0)
				close(fd);
		}
		if (error == ESRCH)
			return LULL_OK;
		errno = error;
		return lull_fail_errno(err, "opening perf events of thread %d", (int)tid);
	}
	return LULL_OK;
}

void lull_perf_close(struct lull_perf *p)
{
	if (!p)
		return;
	for (u32 i = 0; i < p->n_rings; i++)
		lull_perf_ring_close(&p->rings[i]);
	for (size_t i = 0; i < p->fds.n; i++)
		if (fd_at(p, i) >= 0)
			close(fd_at(p, i));
	if (p->epoll_fd >= 0)
		close(p->epoll_fd);
	lull_vec_release(&p->fds);
	lull_vec_release(&p->places);
	free(p->rings);
	free(p->heap);
	free(p);
}

int lull_perf_enable(struct lull_perf *p, bool is_on, struct lull_err *err)
{
	unsigned long request = is_on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE;

	if (p->options.is_lasting && is_on)
		p->on_ns = lull_now_ns();
	if (p->options.is_lasting)
		p->off_ns = is_on ? UINT64_MAX : lull_now_ns();
	/* The descriptors lie CPU by CPU, each time in the order of p->events. */
	for (size_t i = 0; i < p->fds.n; i++) {
		if (!p->events[i % p->n_events].is_pausable || fd_at(p, i) < 0)
			continue;
		if (ioctl(fd_at(p, i), request, 0) < 0)
			return lull_fail_errno(err, "%s CPU sampling",
					       is_on ? "starting" : "pausing");
	}
	return LULL_OK;
}

/* Restore the heap below `at`: the ring with the earliest record on top. */
static void sift_down(struct lull_perf_ring **heap, u32 n, u32 at)
{
	for (;;) {
		u32 least = at, left = 2 * at + 1;
		struct lull_perf_ring *swap;

		if (left < n && heap[left]->next_time_ns < heap[least]->next_time_ns)
			least = left;
		if (left + 1 < n && heap[left + 1]->next_time_ns < heap[least]->next_time_ns)
			least = left + 1;
		if (least == at)
			return;
		swap = heap[at];
		heap[at] = heap[least];
		heap[least] = swap;
		at = least;
	}
}

static u32 build_heap(struct lull_perf *p)
{
	u32 n = 0;

	for (u32 i = 0; i < p->n_rings; i++)
		if (lull_perf_ring_refresh(&p->rings[i]))
			p->heap[n++] = &p->rings[i];
	for (u32 i = n / 2; i-- > 0;)
		sift_down(p->heap, n, i);
	return n;
}

static void report_damage(struct lull_perf *p, const struct lull_perf_handlers *h, void *ctx)
{
	for (u32 i = 0; i < p->n_rings; i++) {
		if (p->rings[i].n_damaged && h->lost)
			h->lost(ctx, p->rings[i].n_damaged, lull_now_ns());
		p->rings[i].n_damaged = 0;
	}
}

static void drain_until(struct lull_perf *p, u64 until_ns, const struct lull_perf_handlers *h,
			void *ctx)
{
	struct lull_perf_handlers paused = *h;
	struct epoll_event woken[16];
	u32 n;

	paused.sample = NULL;
	paused.switched = NULL;

	/* Wakeups are about what is read now; take them off the descriptor first. */
	while (epoll_wait(p->epoll_fd, woken, LULL_COUNT_OF(woken), 0) == LULL_COUNT_OF(woken))
		;
	n = build_heap(p);
	while (n && p->heap[0]->next_time_ns <= until_ns) {
		struct lull_perf_ring *ring = p->heap[0];
		bool is_on = ring->next_time_ns >= p->on_ns && ring->next_time_ns < p->off_ns;

		if (!lull_perf_record(lull_perf_ring_record(ring), &p->format, is_on ? h : &paused,
				      ctx))
			ring->n_damaged++;
		if (!lull_perf_ring_pop(ring))
			p->heap[0] = p->heap[--n];
		sift_down(p->heap, n, 0);
	}
	report_damage(p, h, ctx);
}

void lull_perf_drain(struct lull_perf *p, const struct lull_perf_handlers *handlers, void *ctx)
{
	drain_until(p, lull_now_ns() - SETTLE_NS, handlers, ctx);
}

void lull_perf_flush(struct lull_perf *p, const struct lull_perf_handlers *handlers, void *ctx)
{
	drain_until(p, UINT64_MAX, handlers, ctx);
}

int lull_perf_fd(const struct lull_perf *p)
{
	return p->epoll_fd;
}

struct lull_perf_info lull_perf_info(const struct lull_perf *p)
{
	struct lull_perf_info info = { .n_cpus = p->n_rings };

	for (u32 i = 0; i < p->n_events; i++)
		if (p->events[i].attr.config == PERF_COUNT_SW_CPU_CLOCK)
			info.has_kernel = !p->events[i].attr.exclude_kernel;
	if (p->n_rings)
		info.ring_bytes = p->rings[p->n_rings - 1].data_bytes;
	return info;
}

/* Open and close an event; 0 or the errno. */
static int try_event(const struct perf_event_attr *attr, pid_t pid, int cpu)
{
	int fd = lull_perf_event(attr, pid, cpu);

	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

void lull_perf_probe(struct lull_perf_probe *out)
{
	struct perf_event_attr attr = base_attr(LULL_PERF_PROCESS_TREE);

	out->paranoid = paranoid_level();
	attr.config = PERF_COUNT_SW_CPU_CLOCK;
	attr.sample_period = LULL_NS_PER_S / LULL_PERF_RATE_HZ;
	attr.disabled = 1;
	out->kernel_errno = try_event(&attr, 0, -1);
	attr.exclude_kernel = 1;
	out->samples_errno = try_event(&attr, 0, -1);
	attr.context_switch = 1;
	out->switches_errno = try_event(&attr, 0, -1);
	attr = base_attr(LULL_PERF_SYSTEM_WIDE);
	attr.disabled = 1;
	out->system_wide_errno = try_event(&attr, -1, 0);
}
