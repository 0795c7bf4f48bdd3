/* Requests of servers, as the package in python/ sees them. */
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>

#include "agent/calls/came.h"
#include "agent/core/sys.h"
#include "agent/nvtx/request_tell.h"
#include "agent/python/python_module.h"

/* More requests in a batch than this are left out. */
#define MAX_IDS 256u

static struct {
	u64 n_requests; /* under the interpreter lock */
} requests;

py_object *lull_py_request_now(py_object *self, py_object *unused)
{
	(void)self;
	(void)unused;
	return lull_py.PyLong_FromUnsignedLongLong(lull_time());
}

/* How long ago the last data came into a socket. */
struct wait {
	u64 least_ns; /* 0 also if that is not known */
	u64 most_ns;
};

/* How long a tick of the kernel is, 0 if it does not say. It never changes, so it is asked once. */
static u64 kernel_tick_ns(void)
{
	static _Atomic u64 known_ns;
	u64 tick_ns = atomic_load_explicit(&known_ns, memory_order_relaxed);
	struct timespec res;

	if (tick_ns || syscall(SYS_clock_getres, CLOCK_MONOTONIC_COARSE, &res) != 0)
		return tick_ns;
	atomic_store_explicit(&known_ns, (u64)res.tv_nsec, memory_order_relaxed);
	return (u64)res.tv_nsec;
}

/* The kernel counts in its ticks, which are longer than most requests wait. */
static struct wait waited(int fd)
{
	struct tcp_info info = { 0 };
	socklen_t len = sizeof(info);
	u64 tick_ns = kernel_tick_ns(), told_ns;

	if (!tick_ns || syscall(SYS_getsockopt, fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0 ||
	    len < offsetof(struct tcp_info, tcpi_last_data_recv) + sizeof(u32))
		return (struct wait){ 0 };
	told_ns = (u64)info.tcpi_last_data_recv * 1000000;
	return (struct wait){
		.least_ns = told_ns >= 2 * tick_ns ? told_ns - tick_ns : 0,
		.most_ns = told_ns + 2 * tick_ns + 1000000,
	};
}

static u64 ticks_of(u64 ns)
{
	return (u64)((double)ns / (double)LULL_NS_PER_S * (double)lull_agent.control->tick_hz);
}

/* The moment, or when the data came if that was before. */
static u64 arrival_of(const struct wait *wait, u64 moment)
{
	u64 now = lull_time(), ticks = ticks_of(wait->least_ns);

	return ticks && now - ticks < moment ? now - ticks : moment;
}

/* What the loop knows holds only if the kernel agrees: we may not see all calls of the loop. */
static u64 came_before(int fd, u64 moment)
{
	enum lull_came_sure sure;
	u64 came = lull_came_at(fd, &sure);
	struct wait wait;

	if (came && came < moment && sure == LULL_CAME_EXACT)
		return lull_came_settle(fd, came, came);
	wait = waited(fd);
	if (!came || came >= moment || moment - came > ticks_of(wait.most_ns))
		return arrival_of(&wait, moment);
	if (sure == LULL_CAME_SETTLED)
		return came;
	/* The kernel's ticks are coarse, and would tell another moment of the next request. */
	return lull_came_settle(fd, came, arrival_of(&wait, came));
}

py_object *lull_py_request_came(py_object *self, py_object *fd)
{
	u64 moment = lull_time();
	int saved = errno;

	(void)self;
	lull_came_watch();
	if (lull_has_recording())
		moment = came_before((int)lull_py_number(fd), moment);
	errno = saved;
	return lull_py.PyLong_FromUnsignedLongLong(moment);
}

/*
 * A server that reads no further while it answers: what is known of a connection is of this
 * request.
 */
py_object *lull_py_request_arrival(py_object *self, py_object *fd)
{
	u64 moment = lull_time(), came;
	int saved = errno, number = (int)lull_py_number(fd);
	enum lull_came_sure sure;

	(void)self;
	if (lull_has_recording()) {
		came = lull_came_at(number, &sure);
		if (came && came < moment && sure == LULL_CAME_EXACT) {
			moment = lull_came_settle(number, came, came);
		} else {
			struct wait wait = waited(number);
			bool is_new = came && came < moment && sure == LULL_CAME_UNSURE;

			moment = arrival_of(&wait, is_new ? came : moment);
			if (is_new)
				lull_came_settle(number, came, moment);
		}
	}
	errno = saved;
	return lull_py.PyLong_FromUnsignedLongLong(moment);
}

/* When the data came that a request which begins now is made of, or 0. */
py_object *lull_py_request_took(py_object *self, py_object *fd)
{
	const struct lull_thread *t = lull_recording();
	int saved = errno, number = (int)lull_py_number(fd);
	enum lull_came_sure sure = LULL_CAME_UNSURE;
	u64 moment = t ? lull_came_take(t, number, &sure) : 0;

	(void)self;
	if (moment && sure != LULL_CAME_EXACT) {
		struct wait wait = waited(number);

		moment = arrival_of(&wait, moment);
	}
	errno = saved;
	return lull_py.PyLong_FromUnsignedLongLong(moment);
}

/* Python's own poll() would give the interpreter lock away, and the request would wait for it. */
py_object *lull_py_request_waiting(py_object *self, py_object *const *args, i64 n_args)
{
	struct timespec at_once = { 0 };
	struct pollfd at = { .events = POLLIN };
	u64 moment = 0;
	int saved = errno;

	(void)self;
	if (n_args == 2 && lull_has_recording()) {
		at.fd = (int)lull_py_number(args[0]);
		if (syscall(SYS_ppoll, &at, 1L, &at_once, NULL, 0L) > 0) {
			struct wait wait = waited(at.fd);

			moment = arrival_of(&wait, lull_py_number(args[1]));
		}
	}
	errno = saved;
	return lull_py.PyLong_FromUnsignedLongLong(moment);
}

py_object *lull_py_request(py_object *self, py_object *const *args, i64 n_args)
{
	struct lull_request r = { .id = ++requests.n_requests };

	(void)self;
	if (n_args == 3 && lull_has_recording()) {
		r.name = lull_py_text(args[0]);
		r.trace = lull_py_text(args[1]);
		lull_request_arrived(&r, lull_py_number(args[2]));
	}
	return lull_py.PyLong_FromUnsignedLongLong(r.id);
}

py_object *lull_py_request_mark(py_object *self, py_object *const *args, i64 n_args)
{
	struct lull_text name;

	(void)self;
	if (n_args == 3 && lull_has_recording()) {
		name = lull_py_text(args[2]);
		lull_request_mark((enum lull_request_kind)lull_py_number(args[0]),
				  lull_py_number(args[1]), &name);
	}
	return lull_py_none();
}

py_object *lull_py_request_end(py_object *self, py_object *const *args, i64 n_args)
{
	struct lull_text how;

	(void)self;
	if (n_args == 2 && lull_has_recording()) {
		how = lull_py_text(args[1]);
		lull_request_mark(LULL_REQUEST_ENDED, lull_py_number(args[0]), &how);
		lull_request_work(&(struct lull_text){ 0 }, NULL, 0);
	}
	return lull_py_none();
}

py_object *lull_py_request_work(py_object *self, py_object *const *args, i64 n_args)
{
	struct lull_text name = { 0 };
	u64 ids[MAX_IDS];
	u32 n = 0;

	(void)self;
	if (!lull_has_recording())
		return lull_py_none();
	if (n_args > 1)
		name = lull_py_text(args[0]);
	for (; n < MAX_IDS && n + 1 < n_args; n++)
		ids[n] = lull_py_number(args[n + 1]);
	lull_request_work(&name, ids, n);
	return lull_py_none();
}

py_object *lull_py_request_trouble(py_object *self, py_object *unused)
{
	(void)self;
	(void)unused;
	lull_issue(LULL_ISSUE_request_partly, 1);
	return lull_py_none();
}
