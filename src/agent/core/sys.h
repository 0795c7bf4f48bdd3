/*
 * sys - system calls of the agent itself.
 *
 * The agent exports many names of libc, so its own calls must not go through them: everything here
 * uses the real syscall(2). All of them set errno; callers that run inside the program's calls save
 * and restore it.
 */
#ifndef LULL_AGENT_CORE_SYS_H
#define LULL_AGENT_CORE_SYS_H

#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "agent/core/real.h"
#include "base/types.h"

/* source_process.c interposes it, for the guest. */
#define syscall(...) (lull_real.syscall)(__VA_ARGS__)

static inline int lull_sys_open(const char *path, int flags, int mode)
{
	return (int)syscall(SYS_openat, AT_FDCWD, path, flags | O_CLOEXEC, mode);
}

static inline long lull_sys_read(int fd, void *to, size_t n)
{
	return syscall(SYS_read, fd, to, n);
}

static inline void lull_sys_close(int fd)
{
	syscall(SYS_close, fd);
}

static inline int lull_sys_truncate(int fd, u64 size_bytes)
{
	return (int)syscall(SYS_ftruncate, fd, size_bytes);
}

/* Address, or NULL. */
static inline void *lull_sys_map(size_t size_bytes, int flags, int fd)
{
	/*
	 * The place in the file as long: it lies on the stack of x86_64, where an int is half a
	 * word.
	 */
	long at = syscall(SYS_mmap, NULL, size_bytes, PROT_READ | PROT_WRITE, flags, fd, 0L);

	return at == -1 ? NULL : (void *)at;
}

static inline void lull_sys_unmap(void *at, size_t size_bytes)
{
	syscall(SYS_munmap, at, size_bytes);
}

static inline int lull_sys_advise(void *at, size_t size_bytes, int advice)
{
	return (int)syscall(SYS_madvise, at, size_bytes, advice);
}

/* The soft limit RLIMIT_*, UINT64_MAX if there is none. */
static inline u64 lull_sys_limit(int which)
{
	struct rlimit limit;

	if (syscall(SYS_prlimit64, 0, which, NULL, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
		return UINT64_MAX;
	return limit.rlim_cur;
}

/* What limits memory of the process that is not shared. */
static inline u64 lull_sys_limit_private(void)
{
	u64 all = lull_sys_limit(RLIMIT_AS), data = lull_sys_limit(RLIMIT_DATA);

	return all < data ? all : data;
}

static inline u32 lull_sys_tid(void)
{
	return (u32)syscall(SYS_gettid);
}

static inline u32 lull_sys_pid(void)
{
	return (u32)syscall(SYS_getpid);
}

/* True if `n` bytes of our own memory could be read; what is not mapped is no accident. */
static inline bool lull_sys_peek(void *to, u64 from, size_t n)
{
	struct iovec local = { to, n }, remote = { (void *)from, n };
	int saved = errno;
	long got = syscall(SYS_process_vm_readv, (long)lull_sys_pid(), &local, 1L, &remote, 1L, 0L);

	errno = saved;
	return got == (long)n;
}

/* False if no word is there to be read; true also where a sandbox forbids to look. */
static inline bool lull_sys_may_read(u64 word_addr)
{
	u64 word;
	struct iovec local = { &word, 8 }, remote = { (void *)word_addr, 8 };
	int saved = errno;
	bool may = syscall(SYS_process_vm_readv, (long)lull_sys_pid(), &local, 1L, &remote, 1L,
			   0L) != -1 ||
		   errno != EFAULT;

	errno = saved;
	return may;
}

#endif
