/*
 * real - the functions that the agent interposes, as the next library defines them; generated from
 * wire/osrt.def and agent/core/hooks.def.
 *
 * What it gives: lull_real.NAME, called exactly like NAME. It is the next definition after the
 *                agent's, so other preloaded libraries and sanitizers still work. Never NULL.
 * When:          each pointer starts as a stub that looks the function up on the first call, so
 *                wrappers work before our constructor runs.
 * Threads:       two threads may look up the same function; both store the same address.
 */
#ifndef LULL_AGENT_CORE_REAL_H
#define LULL_AGENT_CORE_REAL_H

#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/msg.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/sem.h>
#include <sys/sendfile.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/types.h"

/* On every wrapper: the agent is built with hidden symbols. */
#define LULL_EXPORT __attribute__((visibility("default")))

/* Entries of libc that its headers declare only when they use them themselves. */
ssize_t __read_chk(int fd, void *buf, size_t n, size_t room);
ssize_t __pread_chk(int fd, void *buf, size_t n, off_t at, size_t room);
ssize_t __pread64_chk(int fd, void *buf, size_t n, off64_t at, size_t room);
int __open_2(const char *path, int flags);
int __open64_2(const char *path, int flags);
int __openat_2(int dir, const char *path, int flags);
int __openat64_2(int dir, const char *path, int flags);
int __poll_chk(struct pollfd *fds, nfds_t n, int timeout_ms, size_t room);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask,
		size_t room);
ssize_t __recv_chk(int fd, void *buf, size_t n, size_t room, int flags);
ssize_t __recvfrom_chk(int fd, void *buf, size_t n, size_t room, int flags, __SOCKADDR_ARG addr,
		       socklen_t *len);
size_t __fread_chk(void *to, size_t room, size_t each, size_t n, FILE *stream);
char *__fgets_chk(char *to, size_t room, int n, FILE *stream);
sighandler_t bsd_signal(int sig, sighandler_t handler);

/*
 * The words of syscall(2) that lie in registers. On x86_64 a seventh lies on the stack, where it
 * stays, since the call after ours is a jump. It must not be a parameter: the compiler would write
 * it back, and where the guest passed fewer that is a variable of its own, maybe one that another
 * thread changes (a futex).
 */
#ifdef __x86_64__
#define LULL_SYSCALL_PARAMS (long number, u64 a, u64 b, u64 c, u64 d, u64 e)
#define LULL_SYSCALL_ARGS   (number, a, b, c, d, e)
#else
#define LULL_SYSCALL_PARAMS (long number, u64 a, u64 b, u64 c, u64 d, u64 e, u64 f)
#define LULL_SYSCALL_ARGS   (number, a, b, c, d, e, f)
#endif

struct lull_real {
#define OSCALL(ix, kind, nest, type, name, params, args, worth) __typeof__(name) *name;
#define HOOK(type, name, params, args)				__typeof__(name) *name;
#include "agent/core/hooks.def"
#include "wire/osrt.def"
#undef HOOK
#undef OSCALL
};

extern struct lull_real lull_real __attribute__((visibility("hidden")));

/* All of them are pointers: each has a number. */
#define LULL_N_REAL	     ((u32)(sizeof(struct lull_real) / sizeof(void *)))
#define LULL_REAL_NAME_BYTES 32u

/* The name of the function of this number, and its pointer in lull_real. */
const char *lull_real_name(u32 ix);
void **lull_real_slot(u32 ix);

/*
 * First of all, by the constructor: write what is read soon. A page that is read before it is
 * written costs two faults.
 */
void lull_real_begin(void);

/*
 * Once the process has all files that it starts with: learn where functions are. Not legal in a
 * signal handler. What is looked up later is found without the loader.
 */
void lull_real_find_all(void);

/* Look the function of this pointer up now, for those who want its address and do not call it. */
void lull_real_find(void **slot);

#endif
