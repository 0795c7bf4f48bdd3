/*
 * lib_frames - pools of frames, and everything about a watched call that is not its usual way.
 *
 * A pool belongs to one thread and is handed on when that ends. Its free list needs no atomics: a
 * signal handler on top of a push or pop returns what it took before it returns itself.
 */
#include "agent/calls/lib.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "agent/core/arena.h"
#include "agent/core/sys.h"

/* Frames taken at once, and at most: deeper recursion is not recorded. */
#define CHUNK_FRAMES 64u
#define MAX_FRAMES   4096u

static struct {
	atomic_flag is_busy; /* guards `idle`; whoever finds it taken goes without */
	struct lull_lib_pool *idle;
	pthread_key_t key;
	bool has_key;
} pools = { .is_busy = ATOMIC_FLAG_INIT };

#ifdef __x86_64__
/* lib_thunks.S: 1 if xsave can be used. */
u32 lull_lib_has_xsave __attribute__((visibility("hidden")));

static void find_xsave(void)
{
	u32 a = 1, b, c = 0, d;

	__asm__("cpuid" : "+a"(a), "=b"(b), "+c"(c), "=d"(d));
	lull_lib_has_xsave = c >> 27 & 1; /* OSXSAVE */
}
#else
static void find_xsave(void)
{
}
#endif

/* A thread has ended: another may have its frames. Those still taken stay as they are. */
static void on_thread_end(void *arg)
{
	struct lull_lib_pool *pool = arg;

	lull_lib_self = NULL;
	if (atomic_flag_test_and_set(&pools.is_busy))
		return;
	pool->top = NULL;
	pool->next = pools.idle;
	pools.idle = pool;
	atomic_flag_clear(&pools.is_busy);
}

void lull_lib_frames_init(void)
{
	find_xsave();
	atomic_flag_clear(&pools.is_busy); /* a fork may have copied it taken */
	if (!pools.has_key)
		pools.has_key = pthread_key_create(&pools.key, on_thread_end) == 0;
}

static bool grow(struct lull_lib_pool *pool)
{
	struct lull_lib_frame *f;

	if (pool->n_frames >= MAX_FRAMES)
		return false;
	f = lull_arena_take(CHUNK_FRAMES * sizeof(*f));
	if (!f)
		return false;
	for (u32 i = 0; i < CHUNK_FRAMES; i++) {
		f[i].next = pool->free;
		pool->free = &f[i];
	}
	pool->n_frames += CHUNK_FRAMES;
	return true;
}

/* A line of /proc/self/maps: is it the thread's own stack? Then keep its bounds. */
static bool use_mapping(struct lull_lib_pool *pool, char *line, u64 sp)
{
	char *at;
	u64 lo = strtoull(line, &at, 16);
	u64 hi = *at == '-' ? strtoull(at + 1, NULL, 16) : 0;
	struct rlimit limit;

	if (sp < lo || sp >= hi)
		return false;
	if (strstr(line, "[stack]")) {
		/* It grows; nothing else is put where it may grow to. */
		if (syscall(SYS_prlimit64, 0, RLIMIT_STACK, NULL, &limit) == 0 &&
		    limit.rlim_cur != RLIM_INFINITY && limit.rlim_cur < hi)
			lo = hi - limit.rlim_cur;
	} else if ((u64)pthread_self() - lo >= hi - lo) {
		return true; /* not where the thread began: a coroutine's */
	}
	pool->stack_lo = lo;
	pool->stack_hi = hi;
	return true;
}

/* Which stack the thread began on; none if that cannot be told. */
static void find_stack(struct lull_lib_pool *pool, u64 sp)
{
	int fd = lull_sys_open("/proc/self/maps", O_RDONLY, 0);
	char text[4096 + 1];
	size_t have = 0;
	bool is_found = false;
	long n;

	pool->stack_lo = pool->stack_hi = 0;
	while (fd >= 0 && !is_found && (n = lull_sys_read(fd, text + have, 4096 - have)) > 0) {
		char *line = text, *end;

		have += (size_t)n;
		text[have] = '\0';
		while (!is_found && (end = strchr(line, '\n'))) {
			*end = '\0';
			is_found = use_mapping(pool, line, sp);
			line = end + 1;
		}
		have = (size_t)(text + have - line);
		if (have >= 4096)
			break;
		memmove(text, line, have);
	}
	if (fd >= 0)
		lull_sys_close(fd);
}

static struct lull_lib_pool *take_pool(u64 sp)
{
	struct lull_lib_pool *pool = NULL;

	if (!atomic_flag_test_and_set(&pools.is_busy)) {
		pool = pools.idle;
		if (pool)
			pools.idle = pool->next;
		atomic_flag_clear(&pools.is_busy);
	}
	if (!pool)
		pool = lull_arena_take(sizeof(*pool));
	if (!pool)
		return NULL;
	find_stack(pool, sp);
	lull_lib_self = pool;
	if (pools.has_key)
		pthread_setspecific(pools.key, pool);
	return pool;
}

static void give_back(struct lull_lib_pool *pool, struct lull_lib_frame *f)
{
	f->is_taken = 0;
	f->next = pool->free;
	atomic_signal_fence(memory_order_seq_cst);
	pool->free = f;
}

/* Write the event of a call that ended now, if it began in this recording and process. */
static void emit(struct lull_thread *t, const struct lull_lib_frame *f, u64 end, u32 flags)
{
	struct lull_wire_lib_call *e;

	if (f->record != t->record || f->image != (u32)lull_agent.image->start_counter)
		return;
	lull_name(t, f->hook->name, f->hook->name_len);
	e = lull_reserve_at(t, LULL_EVENT_lib_call, sizeof(*e), f->start);
	if (!e)
		return;
	e->head.a = f->depth | flags;
	e->dur_ticks = end - f->start;
	e->name = f->hook->hash;
	lull_commit(t, sizeof(*e));
}

/* The innermost calls whose callers are gone, seen from a call at `sp`. */
static void bury(struct lull_thread *t, struct lull_lib_pool *pool, u64 sp,
		 const struct lull_lib_frame *until)
{
	struct lull_lib_frame *f;

	while ((f = pool->top) && f != until && lull_lib_is_dead(pool, f, sp)) {
		pool->top = f->next;
		if (t && !f->hook->decoder)
			emit(t, f, lull_time(), LULL_LIB_LEFT);
		give_back(pool, f);
	}
}

/*
 * A watched function ends with a jump to another one: the frame goes on with that, so that a chain
 * of such jumps takes one frame as it takes one stack frame.
 */
static void follow_jump(struct lull_thread *t, const struct lull_lib_entry *e)
{
	struct lull_lib_frame *f = (struct lull_lib_frame *)e->saved;

	if (!lull_arena_owns(f) || !f->is_taken || f->sp != e->sp || f->hook->decoder ||
	    e->hook->decoder)
		return;
	emit(t, f, lull_time(), 0);
	lull_name(t, e->hook->name, e->hook->name_len);
	f->hook = e->hook;
	f->start = lull_time();
}

static struct lull_lib_frame *enter(const struct lull_lib_entry *e)
{
	struct lull_lib_pool *pool = lull_lib_self;
	struct lull_thread *t = lull_recording();

	if (!t || t->is_quiet)
		return NULL;
	if (!pool)
		pool = take_pool(e->sp);
	if (!pool)
		return NULL;
	if (e->ret == (u64)lull_lib_return) {
		follow_jump(t, e);
		return NULL;
	}
	bury(t, pool, e->sp, NULL);
	/* A layer between program and library calls the same function again by another name. */
	if (e->hook->decoder && pool->top && pool->top->hook->decoder == e->hook->decoder)
		return NULL;
	if (!pool->free && !grow(pool)) {
		lull_issue(LULL_ISSUE_lib_deep, 1);
		return NULL;
	}
	lull_name(t, e->hook->name, e->hook->name_len);
	return lull_lib_begin(pool, e);
}

void *lull_lib_enter_slow(void *entry, u64 unused)
{
	struct lull_lib_frame *f;
	int saved = errno;

	(void)unused;
	f = enter(entry);
	errno = saved;
	return f;
}

/* Take a frame out of the thread's list; it may be in none, or in another thread's. */
static void unlink_frame(struct lull_lib_pool *pool, struct lull_lib_frame *f)
{
	struct lull_lib_frame **at = &pool->top;

	for (u32 i = 0; *at && *at != f && i < MAX_FRAMES; i++)
		at = &(*at)->next;
	if (*at == f)
		*at = f->next;
}

void *lull_lib_exit_slow(void *frame, u64 result)
{
	struct lull_lib_pool *pool = lull_lib_self;
	struct lull_lib_frame *f = frame;
	struct lull_thread *t;
	u64 end = lull_time();
	int saved = errno;

	t = lull_recording();
	if (!pool)
		pool = take_pool(f->sp);
	if (pool) {
		bury(t, pool, f->sp, f);
		unlink_frame(pool, f);
	}
	if (t && f->hook->decoder == LULL_LIB_MPI)
		lull_mpi_returned(t, f, end - f->start, result);
	else if (t)
		emit(t, f, end, 0);
	if (pool)
		give_back(pool, f);
	errno = saved;
	return NULL;
}
