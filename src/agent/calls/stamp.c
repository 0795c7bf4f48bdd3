#include "agent/calls/stamp.h"

#include <linux/net_tstamp.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <time.h>

#include "agent/core/ring.h"
#include "agent/core/sys.h"

/* What is said to have waited for longer comes from a clock that was set meanwhile. */
#define MAX_AGE_NS (60 * LULL_NS_PER_S)

static bool get_option(int fd, int option, int *value)
{
	socklen_t len = sizeof(*value);

	return syscall(SYS_getsockopt, fd, SOL_SOCKET, option, value, &len) == 0;
}

static bool set_stamps(int fd, int flags)
{
	return syscall(SYS_setsockopt, fd, SOL_SOCKET, SO_TIMESTAMPING, &flags,
		       (long)sizeof(flags)) == 0;
}

bool lull_stamp_is_tcp(int fd)
{
	int saved = errno, protocol = 0;
	bool is_tcp = get_option(fd, SO_PROTOCOL, &protocol) && protocol == IPPROTO_TCP;

	errno = saved;
	return is_tcp;
}

/* A moment of the kernel's wall clock as lull_time() gives it, 0 if it cannot be. */
static u64 moment_of(const struct timespec *at)
{
	struct timespec wall;
	u64 now, ns;
	i64 age_ns;

	if (!at->tv_sec || clock_gettime(CLOCK_REALTIME, &wall) != 0)
		return 0;
	now = lull_time();
	age_ns = (wall.tv_sec - at->tv_sec) * (i64)LULL_NS_PER_S + wall.tv_nsec - at->tv_nsec;
	if (age_ns < 0 || age_ns > (i64)MAX_AGE_NS)
		return 0;
	ns = (u64)age_ns;
	return now - ns / LULL_NS_PER_S * lull_agent.control->tick_hz -
	       ns % LULL_NS_PER_S * lull_agent.control->tick_hz / LULL_NS_PER_S;
}

static enum lull_stamp look(int fd, u64 *came)
{
	_Alignas(struct cmsghdr) char words[256];
	char byte;
	struct iovec to = { &byte, 1 };
	struct msghdr msg = { .msg_iov = &to,
			      .msg_iovlen = 1,
			      .msg_control = words,
			      .msg_controllen = sizeof(words) };
	long n = syscall(SYS_recvmsg, fd, &msg, (long)(MSG_PEEK | MSG_DONTWAIT));
	struct timespec at;

	if (n < 0)
		return errno == EAGAIN ? LULL_STAMP_EMPTY : LULL_STAMP_UNKNOWN;
	if (!n)
		return LULL_STAMP_UNKNOWN; /* the end of the connection */
	for (struct cmsghdr *c = CMSG_FIRSTHDR(&msg); c; c = CMSG_NXTHDR(&msg, c)) {
		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_TIMESTAMPING ||
		    c->cmsg_len < CMSG_LEN(sizeof(at)))
			continue;
		memcpy(&at, CMSG_DATA(c), sizeof(at));
		*came = moment_of(&at);
		return *came ? LULL_STAMP_WAITS : LULL_STAMP_UNSTAMPED;
	}
	return LULL_STAMP_UNSTAMPED;
}

enum lull_stamp lull_stamp_of(int fd, u64 *came)
{
	enum lull_stamp stamp = LULL_STAMP_UNKNOWN;
	int saved = errno, flags = 0;

	*came = 0;
	if (get_option(fd, SO_TIMESTAMPING, &flags) && !flags &&
	    set_stamps(fd, SOF_TIMESTAMPING_SOFTWARE)) {
		stamp = look(fd, came);
		set_stamps(fd, 0);
	}
	errno = saved;
	return stamp;
}
