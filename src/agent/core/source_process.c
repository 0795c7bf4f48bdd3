/*
 * process: what becomes of the process - it ends, reaps children, loads files, names threads.
 * Always on.
 *
 * exec and spawn are in process_exec.c.
 */
#include "agent/core/source.h"

#include <linux/seccomp.h>
#include <stdarg.h>

#include "agent/core/loaded.h"
#include "agent/calls/oscall.h"
#include "agent/core/process.h"
#include "agent/core/stack.h"
#include "agent/core/sys.h"

/*
 * A program that has started so many threads is likely to go on. A server that starts one for each
 * request, which waits for it, looks for new files so often only.
 */
#define MANY_THREADS   64u
#define LOOKS_A_SECOND 10u

static LULL_EARLY struct {
	_Atomic u32 n_threads;	/* that were started */
	_Atomic u64 looked;	/* when one of them looked for new files */
	_Atomic u32 is_loading; /* some may have come since, and nobody else looks */
} starts;

/* Ways out that run no exit handlers. */

LULL_EXPORT void _exit(int status)
{
	lull_sources_leave();
	lull_agent_leave(status);
	lull_real._exit(status);
	__builtin_unreachable();
}

LULL_EXPORT void _Exit(int status)
{
	lull_sources_leave();
	lull_agent_leave(status);
	lull_real._Exit(status);
	__builtin_unreachable();
}

LULL_EXPORT void quick_exit(int status)
{
	lull_sources_leave();
	lull_agent_leave(status);
	lull_real.quick_exit(status);
	__builtin_unreachable();
}

/*
 * Orphans come to the recorder, where alone they would come to init: daemons wait for that. A
 * process that began as the recorder's child is told so.
 */
LULL_EXPORT pid_t getppid(void)
{
	pid_t r = lull_real.getppid();
	u32 first = lull_agent.image ? lull_agent.image->parent_pid : lull_agent.parent_pid;

	if (lull_agent.has_session && first && (u32)r == lull_agent.control->collector_pid &&
	    (u32)r != first)
		return 1;
	return r;
}

/* A wait has returned `pid` with this status; anything but an end is not worth telling. */
static void emit_child(pid_t pid, int status)
{
	struct lull_thread *t;
	struct lull_wire_child *e;

	if (pid <= 0 || !(WIFEXITED(status) || WIFSIGNALED(status)))
		return;
	t = lull_thread();
	e = t ? lull_reserve(t, LULL_EVENT_child, sizeof(*e)) : NULL;
	if (!e)
		return;
	e->head.a = (u32)pid;
	e->status = (u32)status;
	lull_commit(t, sizeof(*e));
}

/* The waits: with a status of our own where the guest does not want one. */
#define WAIT(name, params, args)                                                        \
	LULL_EXPORT pid_t name params                                                   \
	{                                                                               \
		int own;                                                                \
		pid_t r;                                                                \
                                                                                        \
		if (!lull_agent.has_session)                                            \
			return lull_real.name args;                                     \
		if (!status)                                                            \
			status = &own;                                                  \
		r = lull_oscall_is_on() ? lull_timed_##name args : lull_real.name args; \
		if (r > 0)                                                              \
			emit_child(r, *status);                                         \
		return r;                                                               \
	}

WAIT(wait, (int *status), (status))
WAIT(waitpid, (pid_t pid, int *status, int flags), (pid, status, flags))
WAIT(wait3, (int *status, int flags, struct rusage *use), (status, flags, use))
WAIT(wait4, (pid_t pid, int *status, int flags, struct rusage *use), (pid, status, flags, use))

/* What waitpid would have said; 0x7f ("stopped") for what is not an end. */
static int status_of(const siginfo_t *info)
{
	switch (info->si_code) {
	case CLD_EXITED:
		return (info->si_status & 0xff) << 8;
	case CLD_KILLED:
		return info->si_status & 0x7f;
	case CLD_DUMPED:
		return (info->si_status & 0x7f) | 0x80;
	default:
		return 0x7f;
	}
}

LULL_EXPORT int waitid(idtype_t type, id_t id, siginfo_t *info, int flags)
{
	siginfo_t own;
	int r;

	if (!lull_agent.has_session)
		return lull_real.waitid(type, id, info, flags);
	if (!info)
		info = &own;
	r = lull_oscall_is_on() ? lull_timed_waitid(type, id, info, flags)
				: lull_real.waitid(type, id, info, flags);
	if (r == 0 && !(flags & WNOWAIT))
		emit_child(info->si_pid, status_of(info));
	return r;
}

/* Longer ones are cut; the recorder keeps less than this. */
#define NAME_BYTES 256u

void lull_process_name(enum lull_event_type type, u32 tid, const char *name, size_t len)
{
	struct lull_thread *t = lull_thread();
	struct lull_wire_thread_name *e;
	u32 n = len < NAME_BYTES ? (u32)len : NAME_BYTES;
	u32 size_bytes = (u32)sizeof(*e) + lull_round8(n);

	e = t ? lull_reserve(t, (u16)type, size_bytes) : NULL;
	if (!e)
		return;
	e->head.a = n;
	e->tid = tid;
	memcpy(e + 1, name, n);
	lull_commit(t, size_bytes);
}

/* The program has named a thread, 0 = the caller; the kernel reads as much. */
static void emit_name(u32 tid, const char *name)
{
	lull_process_name(LULL_EVENT_thread_name, tid, name, strnlen(name, 15));
}

/* The kernel's number of another thread, 0 if it has not emitted anything yet. */
static u32 tid_of(pthread_t thread)
{
	for (u32 i = 0; i < lull_agent_n_slots(); i++) {
		struct lull_slot *slot = &lull_agent.slots[i];

		/* Acquire: a slot that is LIVE has its ids. */
		if (atomic_load_explicit(&slot->state, memory_order_acquire) == LULL_SLOT_LIVE &&
		    slot->pthread_id == (u64)thread)
			return slot->tid;
	}
	return 0;
}

LULL_EXPORT int pthread_setname_np(pthread_t thread, const char *name)
{
	int r = lull_real.pthread_setname_np(thread, name);
	u32 tid;

	if (r || !lull_agent.has_session)
		return r;
	tid = thread == pthread_self() ? 0 : tid_of(thread);
	if (tid || thread == pthread_self())
		emit_name(tid, name);
	return r;
}

/* A filter of system calls is about to be set. */
static __attribute__((noinline)) void enter_sandbox(void)
{
	lull_sources_stop();
	lull_agent_silence();
	lull_process_sandboxed();
}

LULL_EXPORT int prctl(int option, ...)
{
	u64 a[4];
	va_list rest;
	int r;

	/* As the real one: four words, whether or not they were passed. */
	va_start(rest, option);
	for (int i = 0; i < 4; i++)
		a[i] = va_arg(rest, u64);
	va_end(rest);
	if (option == PR_SET_SECCOMP)
		enter_sandbox();
	r = lull_real.prctl(option, a[0], a[1], a[2], a[3]);
	if (option == PR_SET_NAME && r == 0 && lull_agent.has_session)
		emit_name(0, (const char *)a[0]);
	return r;
}

long lull_guest_syscall LULL_SYSCALL_PARAMS __asm__("syscall");

/*
 * syscall(2): libseccomp sets its filters with it. The call to the real function has to be a jump
 * (real.h); so a clone that comes back on another stack finds no frame of ours. A filter at NULL
 * only asks what the kernel knows.
 */
LULL_EXPORT long lull_guest_syscall LULL_SYSCALL_PARAMS
{
	if (__builtin_expect(number == SYS_seccomp, 0) &&
	    (a == SECCOMP_SET_MODE_STRICT || (a == SECCOMP_SET_MODE_FILTER && c)))
		enter_sandbox();
	return (lull_real.syscall)LULL_SYSCALL_ARGS;
}

/* A dlopen, and whether it may be made from here instead of from the guest's code. */
struct load {
	u64 caller_addr;
	bool is_local_name; /* found by the caller's RUNPATH, or relative to its place */
	bool is_main;	    /* the next file visited is the program itself */
	bool is_free;
};

static int visit_caller(struct dl_phdr_info *file, size_t size, void *arg)
{
	struct load *load = arg;
	bool is_main = load->is_main;

	(void)size;
	load->is_main = false;
	if (!lull_loaded_contains(file, load->caller_addr))
		return 0;
	/* The program's own RPATH is searched for everybody. */
	load->is_free = (is_main || !lull_loaded_dynamic(file, DT_RPATH)) &&
			(!load->is_local_name || !lull_loaded_dynamic(file, DT_RUNPATH));
	return 1;
}

/*
 * The loader takes the file that calls dlopen from the return address and searches its RPATH and
 * RUNPATH: the former also for what the new file needs, the latter for names without a slash only.
 * It loads into its namespace, too; one that we cannot see is never free.
 */
static __attribute__((noinline)) bool is_free_to_load(const char *path, u64 caller_addr)
{
	struct load load = {
		.caller_addr = caller_addr,
		.is_local_name = path && (!strchr(path, '/') || strchr(path, '$')),
		.is_main = true,
	};

	if (lull_agent.has_session)
		lull_loaded_walk(visit_caller, &load);
	return load.is_free;
}

/*
 * Where the caller matters the call is a jump; what it loads is noticed later
 * (lull_process_starts_thread).
 */
LULL_EXPORT void *dlopen(const char *path, int mode)
{
	void *handle;

	if (!is_free_to_load(path, (u64)__builtin_return_address(0))) {
		atomic_store(&starts.is_loading, 1);
		return lull_real.dlopen(path, mode);
	}
	handle = lull_oscall_is_on() ? lull_timed_dlopen(path, mode) : lull_real.dlopen(path, mode);
	if (handle)
		lull_process_loaded();
	return handle;
}

void lull_process_loaded(void)
{
	int saved = errno;

	lull_modules_scan();
	lull_sources_loaded();
	errno = saved;
}

void lull_process_starts_thread(void)
{
	u64 now = lull_time(), hz = lull_agent.control->tick_hz;
	u32 n = atomic_fetch_add_explicit(&starts.n_threads, 1, memory_order_relaxed);

	if (n >= MANY_THREADS && !atomic_load_explicit(&starts.is_loading, memory_order_relaxed) &&
	    now - atomic_load_explicit(&starts.looked, memory_order_relaxed) < hz / LOOKS_A_SECOND)
		return;
	atomic_store_explicit(&starts.looked, now, memory_order_relaxed);
	/* Before the look: a load that begins meanwhile is for the next one. */
	atomic_store(&starts.is_loading, 0);
	lull_process_loaded();
}

void lull_process_forked(void)
{
	/* In the child the first write copies a page. */
	if (atomic_load(&starts.n_threads))
		atomic_store(&starts.n_threads, 0);
}

/*
 * Valgrind says of each stack copied that our system call and our reading are errors.
 */
static int visit_valgrind(struct dl_phdr_info *file, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	if (!file->dlpi_name || !strstr(file->dlpi_name, "/vgpreload_"))
		return 0;
	lull_stack_refuse();
	return 1;
}

static void start(void)
{
	lull_loaded_walk(visit_valgrind, NULL);
	lull_real_find_all();
	lull_process_keep_environment();
}

const struct lull_source lull_source_process = {
	.start = start,
};
