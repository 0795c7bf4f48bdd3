/*
 * osrt_variadic: wrappers of calls with an optional last argument.
 *
 * The argument is read whether or not the program passed one: reading an unused register is
 * harmless. The real function decides whether it uses the argument.
 */
#include "agent/calls/oscall.h"

#include <stdarg.h>

/* `type value` is the argument after the parameter `last`. */
#define OPTIONAL(type, value, last) \
	type value;                 \
	va_list rest;               \
                                    \
	va_start(rest, last);       \
	value = va_arg(rest, type); \
	va_end(rest)

LULL_EXPORT int open(const char *path, int flags, ...)
{
	OPTIONAL(mode_t, mode, flags);

	if (!lull_oscall_is_on())
		return lull_real.open(path, flags, mode);
	return lull_timed_open(path, flags, mode);
}

LULL_EXPORT int open64(const char *path, int flags, ...)
{
	OPTIONAL(mode_t, mode, flags);

	if (!lull_oscall_is_on())
		return lull_real.open64(path, flags, mode);
	return lull_timed_open64(path, flags, mode);
}

LULL_EXPORT int openat(int dir, const char *path, int flags, ...)
{
	OPTIONAL(mode_t, mode, flags);

	if (!lull_oscall_is_on())
		return lull_real.openat(dir, path, flags, mode);
	return lull_timed_openat(dir, path, flags, mode);
}

LULL_EXPORT int openat64(int dir, const char *path, int flags, ...)
{
	OPTIONAL(mode_t, mode, flags);

	if (!lull_oscall_is_on())
		return lull_real.openat64(dir, path, flags, mode);
	return lull_timed_openat64(dir, path, flags, mode);
}

LULL_EXPORT int ioctl(int fd, unsigned long request, ...)
{
	OPTIONAL(void *, arg, request);

	if (!lull_oscall_is_on())
		return lull_real.ioctl(fd, request, arg);
	return lull_timed_ioctl(fd, request, arg);
}

/* The commands of fcntl that wait. */
static bool is_waiting(int cmd)
{
	return cmd == F_SETLKW || cmd == F_OFD_SETLKW;
}

LULL_EXPORT int fcntl(int fd, int cmd, ...)
{
	OPTIONAL(void *, arg, cmd);

	if (!is_waiting(cmd) || !lull_oscall_is_on())
		return lull_real.fcntl(fd, cmd, arg);
	return lull_timed_fcntl(fd, cmd, arg);
}

LULL_EXPORT int fcntl64(int fd, int cmd, ...)
{
	OPTIONAL(void *, arg, cmd);

	if (!is_waiting(cmd) || !lull_oscall_is_on())
		return lull_real.fcntl64(fd, cmd, arg);
	return lull_timed_fcntl64(fd, cmd, arg);
}
