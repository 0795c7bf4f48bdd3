#include "agent/core/agent.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "agent/core/loaded.h"
#include "agent/core/process.h"
#include "agent/core/real.h"
#include "agent/core/ring.h"
#include "agent/core/source.h"
#include "agent/core/sys.h"
#include "wire/rank.h"

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

/*
 * States of one process (lull_agent.live->state, wiped to OFF in a forked child):
 *
 *	OFF ──constructor, atfork child, or first event──► STARTING ──► ON
 *	                                                       └──────► REFUSED (no room, no rights)
 *
 * Whoever moves OFF to STARTING sets the image up; others that come meanwhile do not record.
 *
 * Most forked children become another program at once: shells, make. One that nobody can miss yet
 * (put_off) only tells in its parent's image that it exists. It gets its own with its first event
 * or at its end; if it executes a program that has the agent, never.
 */

/* What hooks see before the constructor ran and in processes that nobody records. */
static struct lull_control no_control;

struct lull_agent lull_agent = { .control = &no_control };

#define SESSION_PATH_MAX 512

static LULL_EARLY char *const
	*first_argv; /* while the constructor runs: what the program is given */
static LULL_EARLY char session_path[SESSION_PATH_MAX];
static LULL_EARLY char image_path[SESSION_PATH_MAX + 64];

/*
 * Where control page and image of an attached process lie (late.c). They are never unmapped, but
 * covered with empty memory: a thread may be in the middle of an event. Those of the next time come
 * to the same place.
 */
static LULL_EARLY struct {
	void *control, *image;
	size_t image_bytes;
} late;

/* Map a file where it was the last time, or anywhere. */
static void *map_again(void *place, size_t size_bytes, int flags, int fd)
{
	long at;

	if (!place)
		return lull_sys_map(size_bytes, flags, fd);
	at = syscall(SYS_mmap, place, size_bytes, PROT_READ | PROT_WRITE, flags | MAP_FIXED, fd,
		     0L);
	return at == -1 ? NULL : (void *)at;
}

static void cover(void *place, size_t size_bytes)
{
	if (place)
		map_again(place, size_bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
}

/* The beginning of a file of /proc, as much as fits; returns its length. */
static u32 read_proc(const char *path, char *to, size_t room)
{
	int fd = lull_sys_open(path, O_RDONLY, 0);
	long n = fd < 0 ? 0 : lull_sys_read(fd, to, room);

	if (fd >= 0)
		lull_sys_close(fd);
	return n > 0 ? (u32)n : 0;
}

/*
 * Address space is the program's where it is limited: so much of the limit we may take for the
 * pool, and so much for the blocks of threads.
 */
#define POOL_SHARE   16
#define BLOCKS_SHARE 64

/*
 * Size of the pool that limits allow: an ftruncate beyond RLIMIT_FSIZE would raise SIGXFSZ in the
 * guest.
 */
static u32 allowed_chunks(void)
{
	u64 file_bytes = lull_sys_limit(RLIMIT_FSIZE), own_bytes = lull_sys_limit(RLIMIT_AS);
	u32 n = LULL_N_CHUNKS;

	own_bytes = own_bytes == UINT64_MAX ? own_bytes : own_bytes / POOL_SHARE;
	if (own_bytes > file_bytes)
		own_bytes = file_bytes;
	while (n && LULL_IMAGE_DATA_OFF + (u64)n * LULL_CHUNK_BYTES > own_bytes)
		n /= 2;
	return n;
}

/* How many threads can have a block. */
static u32 allowed_slots(void)
{
	u64 own_bytes = lull_sys_limit_private() / BLOCKS_SHARE;
	u64 n = own_bytes / sizeof(struct lull_thread);

	return n < LULL_N_SLOTS ? (u32)n : LULL_N_SLOTS;
}

/* The head and the first entries of each table, mapped if the kernel can do so. */
static bool reserve_tables(struct lull_image *image, int fd)
{
	long bytes = LULL_N_READY * LULL_ENTRY_BYTES;

	if (lull_sys_advise(image, LULL_IMAGE_SLOTS_OFF + (size_t)bytes, MADV_POPULATE_WRITE) ==
		    0 &&
	    lull_sys_advise((u8 *)image + LULL_IMAGE_CHUNKS_OFF, (size_t)bytes,
			    MADV_POPULATE_WRITE) == 0)
		return true;
	return (syscall(SYS_fallocate, fd, 0, 0L, LULL_IMAGE_SLOTS_OFF + bytes) == 0 &&
		syscall(SYS_fallocate, fd, 0, (long)LULL_IMAGE_CHUNKS_OFF, bytes) == 0) ||
	       errno == EOPNOTSUPP;
}

static void discard(void *image, size_t size_bytes)
{
	if (image == late.image)
		cover(image, size_bytes);
	else
		lull_sys_unmap(image, size_bytes);
}

/*
 * Create and map the image file; smaller ones are tried when address space is limited. NULL with
 * errno.
 */
static struct lull_image *map_image(u32 *n_chunks)
{
	struct lull_image *image = NULL;
	int fd = lull_sys_open(image_path, O_RDWR | O_CREAT | O_EXCL, 0600);

	if (fd < 0)
		return NULL;
	/* If not even the smallest is allowed. */
	errno = lull_sys_limit(RLIMIT_FSIZE) < lull_sys_limit(RLIMIT_AS) ? EFBIG : ENOMEM;
	for (u32 n = allowed_chunks(); n >= 16 && !image; n /= 4) {
		size_t size_bytes = LULL_IMAGE_DATA_OFF + (size_t)n * LULL_CHUNK_BYTES;

		if (lull_sys_truncate(fd, size_bytes) != 0)
			break;
		image = map_again(size_bytes <= late.image_bytes ? late.image : NULL, size_bytes,
				  MAP_SHARED | MAP_NORESERVE, fd);
		*n_chunks = n;
	}
	if (image && !reserve_tables(image, fd)) {
		discard(image, LULL_IMAGE_DATA_OFF + (size_t)*n_chunks * LULL_CHUNK_BYTES);
		image = NULL;
	}
	lull_sys_close(fd);
	if (!image)
		syscall(SYS_unlinkat, AT_FDCWD, image_path, 0);
	return image;
}

static const char *get_variable(void *ctx, const char *name)
{
	(void)ctx;
	return getenv(name);
}

static void fill_rank(struct lull_image *image)
{
	struct lull_rank rank = lull_rank_read(get_variable, NULL);

	if (rank.rank >= 0)
		lull_rank_job(get_variable, NULL, image->job, sizeof(image->job));
	atomic_store_explicit(&image->local_rank, (i32)rank.local_rank, memory_order_relaxed);
	atomic_store_explicit(&image->n_ranks, (i32)rank.n_ranks, memory_order_relaxed);
	/* Release: whoever sees the rank sees the rest. */
	atomic_store_explicit(&image->rank, (i32)rank.rank, memory_order_release);
}

void lull_agent_read_rank(void)
{
	if (lull_agent.image)
		fill_rank(lull_agent.image);
}

/* --ranks leaves this process out. */
static bool is_left_out(const struct lull_control *control)
{
	struct lull_rank rank;

	if (!*control->ranks)
		return false;
	rank = lull_rank_read(get_variable, NULL);
	return rank.rank >= 0 && !lull_ranks_has(control->ranks, rank.rank, rank.n_ranks);
}

/*
 * The inode of the namespace that our numbers of processes are of; 0 without /proc. The link says
 * it, too ("pid:[4026531836]"), and takes two thirds of the time that stat() takes.
 */
static u64 pid_namespace(void)
{
	char text[32];
	long n = syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/ns/pid", text, sizeof(text));
	u64 inode = 0;

	for (long i = (long)sizeof("pid:[") - 1; i < n && text[i] >= '0' && text[i] <= '9'; i++)
		inode = inode * 10 + (u64)(text[i] - '0');
	return inode;
}

/* The name of the program; this thread may be one of ours. */
static void read_name(struct lull_image *image)
{
	char path[48];
	u32 n;

	if (!lull_agent.is_late) {
		syscall(SYS_prctl, PR_GET_NAME, image->comm, 0L, 0L, 0L);
		return;
	}
	snprintf(path, sizeof(path), "/proc/self/task/%u/comm", lull_sys_pid());
	n = read_proc(path, image->comm, sizeof(image->comm));
	image->comm[n ? n - 1 : 0] = '\0'; /* in place of the end of the line */
}

/* As /proc/self/cmdline has them. */
static void copy_arguments(struct lull_image *image, char *const *argv)
{
	u32 n = 0;

	for (; *argv && n < sizeof(image->cmdline); argv++) {
		size_t len = strnlen(*argv, sizeof(image->cmdline) - 1 - n) + 1;

		memcpy(image->cmdline + n, *argv, len);
		n += (u32)len;
	}
	image->cmdline_bytes = n;
}

static void read_program(struct lull_image *image)
{
	long n = syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", image->exe,
			 sizeof(image->exe) - 1);

	image->exe[n > 0 ? n : 0] = '\0';
	if (first_argv)
		copy_arguments(image, first_argv);
	else
		image->cmdline_bytes =
			read_proc("/proc/self/cmdline", image->cmdline, sizeof(image->cmdline));
	image->pid_ns = pid_namespace();
}

/*
 * A forked child runs its parent's program. To ask /proc would cost it more than all else here. In
 * another PID namespace the parent has another number, or none.
 */
static bool copy_program(struct lull_image *image)
{
	const struct lull_image *from = lull_agent.parent_image;

	if (!from || (u32)syscall(SYS_getppid) != from->pid ||
	    from->cmdline_bytes > sizeof(from->cmdline))
		return false;
	memcpy(image->exe, from->exe, strnlen(from->exe, sizeof(from->exe) - 1) + 1);
	memcpy(image->cmdline, from->cmdline, from->cmdline_bytes);
	image->cmdline_bytes = from->cmdline_bytes;
	image->pid_ns = from->pid_ns;
	return true;
}

static void fill_image(struct lull_image *image, u32 n_chunks, u64 counter)
{
	if (!copy_program(image))
		read_program(image);
	read_name(image);
	image->pid = lull_sys_pid();
	/* The kernel's answer changes when the parent dies, which it may have done already. */
	image->parent_pid =
		lull_agent.parent_pid ? lull_agent.parent_pid : (u32)syscall(SYS_getppid);
	image->start_counter = counter;
	image->n_chunks = n_chunks;
	atomic_store_explicit(&image->n_free, (i32)n_chunks, memory_order_relaxed);
	atomic_store_explicit(&image->n_slots_ready, LULL_N_READY, memory_order_relaxed);
	atomic_store_explicit(&image->n_chunks_ready, LULL_N_READY, memory_order_relaxed);
	fill_rank(image);
	image->magic = LULL_WIRE_MAGIC;
	/* Release: a recorder that sees LIVE sees all of the head. */
	atomic_store_explicit(&image->state, LULL_IMAGE_LIVE, memory_order_release);
}

/* So a process with one thread writes to one page: the block of the first ends with it. */
#define LIVE_BYTES 64u

_Static_assert(sizeof(struct lull_agent_live) <= LIVE_BYTES &&
		       LIVE_BYTES + LULL_THREAD_CLEARED <= 4096,
	       "what is always written of the first block lies in the first page");

/* What does not survive a fork, and the blocks of threads. A forked child has the place. */
static bool map_live(void)
{
	u32 n_slots = allowed_slots();
	size_t size_bytes = LIVE_BYTES + (size_t)n_slots * sizeof(struct lull_thread);
	u8 *at = lull_sys_map(size_bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);

	if (!at || lull_sys_advise(at, size_bytes, MADV_WIPEONFORK) != 0)
		return false;
	lull_agent.live = (struct lull_agent_live *)at;
	/* A page that is written first is not made twice. */
	atomic_store(&lull_agent.live->state, LULL_AGENT_OFF);
	lull_agent.threads = (struct lull_thread *)(at + LIVE_BYTES);
	lull_agent.n_slots = n_slots;
	return true;
}

static char *put_number(char *to, u64 number, u32 base)
{
	char digits[24];
	u32 n = 0;

	do
		digits[n++] = "0123456789abcdef"[number % base];
	while ((number /= base));
	while (n)
		*to++ = digits[--n];
	return to;
}

/* PID-COUNTER.image. Without snprintf(), which takes pages of the C library that a short program
 * does not use otherwise. */
static void name_image(u64 counter)
{
	size_t len = strlen(session_path);
	char *to = image_path + len;

	memcpy(image_path, session_path, len);
	*to++ = '/';
	to = put_number(to, lull_sys_pid(), 10);
	*to++ = '-';
	to = put_number(to, counter, 16);
	memcpy(to, ".image", 7);
}

static bool open_image(void)
{
	struct lull_agent_live *live = lull_agent.live;
	struct lull_image *image;
	u64 forked = live->fork_counter, counter = forked ? forked : lull_time();
	u32 n_chunks = 0, pid = lull_sys_pid();

	/* on_forked_child() did not run: not yet, or never in the child of a bare clone. */
	if (lull_agent.pid && lull_agent.pid != pid) {
		lull_agent.parent_pid = lull_agent.pid;
		if (lull_agent.image)
			lull_agent.parent_image = lull_agent.image;
	}
	lull_agent.pid = pid;
	name_image(counter);
	image = map_image(&n_chunks);
	if (!image)
		return false;
	fill_image(image, n_chunks, counter);
	lull_agent.slots = (struct lull_slot *)((u8 *)image + LULL_IMAGE_SLOTS_OFF);
	lull_agent.chunks = (struct lull_chunk *)((u8 *)image + LULL_IMAGE_CHUNKS_OFF);
	lull_agent.data = (u8 *)image + LULL_IMAGE_DATA_OFF;
	lull_agent.image = image;
	return true;
}

/* By the file: kernels before 5.14 do not populate a mapping, and larger pages may not fit. */
static bool allocate(u64 off_bytes, u64 size_bytes)
{
	int fd = lull_sys_open(image_path, O_RDWR, 0);
	long rc;

	if (fd < 0)
		return false;
	rc = syscall(SYS_fallocate, fd, 0, (long)off_bytes, (long)size_bytes);
	lull_sys_close(fd);
	return rc == 0;
}

bool lull_agent_back(u64 off_bytes, u64 size_bytes)
{
	u8 *at = (u8 *)lull_agent.image + off_bytes;

	if (lull_sys_advise(at, size_bytes, MADV_POPULATE_WRITE) == 0)
		return true;
	return errno == EINVAL && allocate(off_bytes, size_bytes);
}

/* Our PID namespace as far as it is known without a look; else 0. */
static u64 known_pid_ns(void)
{
	if (lull_agent.image)
		return lull_agent.image->pid_ns;
	/* As in copy_program(). */
	return lull_agent.parent_image && (u32)syscall(SYS_getppid) == lull_agent.parent_image->pid
		       ? lull_agent.parent_image->pid_ns
		       : 0;
}

/* A recorder that lives takes the time more often than this. */
#define DESERTED_S 5

/*
 * Whether the recorder has died. What processes are still to come would fill memory with images
 * that nobody reads and nobody removes. In another PID namespace its number may be somebody else's,
 * who lives, or nobody's: then it is its clock that tells. An attached program in the same one
 * is left at once.
 */
static bool is_deserted(const struct lull_control *c)
{
	u64 n = atomic_load_explicit(&c->n_clocks, memory_order_acquire), pid_ns = known_pid_ns();
	const struct lull_clock_pair *last =
		&c->clocks[n < 2 ? 0 : 1 + (n - 2) % (LULL_N_CLOCKS - 1)];

	return n &&
	       ((lull_agent.is_late && pid_ns && pid_ns == c->collector_pid_ns) ||
		lull_time() > last->counter + DESERTED_S * c->tick_hz) &&
	       syscall(SYS_kill, (long)c->collector_pid, 0L) != 0 && errno == ESRCH;
}

/* Right after what failed. */
static void note_refused(struct lull_control *control)
{
	atomic_store(&control->refused_errno, (u32)errno);
	atomic_fetch_add(&control->n_refused, 1);
}

bool lull_agent_ready(void)
{
	u32 state = LULL_AGENT_OFF;

	if (!lull_agent.live || !lull_agent.has_session)
		return false;
	/* The child of a vfork in the memory of a process that waits: the image is not its own. */
	if (lull_agent.live->waiting_pid && lull_agent.live->waiting_pid != lull_sys_pid())
		return false;
	if (!atomic_compare_exchange_strong(&lull_agent.live->state, &state, LULL_AGENT_STARTING))
		return state == LULL_AGENT_ON;
	if (lull_agent.live->waiting_pid)
		lull_ring_forked();
	if (is_deserted(lull_agent.control) || !open_image()) {
		note_refused(lull_agent.control);
		atomic_store(&lull_agent.live->state, LULL_AGENT_REFUSED);
		return false;
	}
	lull_agent.live->waiting_pid = 0;
	atomic_store(&lull_agent.live->state, LULL_AGENT_ON);
	return true;
}

void lull_agent_settle(void)
{
	if (lull_agent.live && lull_agent.live->waiting_pid)
		lull_agent_ready();
}

void lull_agent_leave(int status)
{
	struct lull_image *image;
	struct rusage use;

	lull_agent_settle();
	image = lull_agent.image;
	if (!image || !lull_agent.has_session ||
	    atomic_load(&lull_agent.live->state) != LULL_AGENT_ON || image->pid != lull_sys_pid())
		return;
	if (syscall(SYS_getrusage, RUSAGE_SELF, &use) == 0) {
		image->user_ns =
			(u64)use.ru_utime.tv_sec * LULL_NS_PER_S + (u64)use.ru_utime.tv_usec * 1000;
		image->system_ns =
			(u64)use.ru_stime.tv_sec * LULL_NS_PER_S + (u64)use.ru_stime.tv_usec * 1000;
		image->max_rss_bytes = (u64)use.ru_maxrss * 1024;
	}
	image->exit_code = (u32)status & 0xff;
	atomic_store_explicit(&image->exit_counter, lull_time(), memory_order_relaxed);
	/* Release: whoever sees EXITED sees the status. */
	atomic_store_explicit(&image->state, LULL_IMAGE_EXITED, memory_order_release);
}

static void on_exit_status(int status, void *unused)
{
	int saved = errno;

	(void)unused;
	lull_sources_flush();
	lull_modules_scan();
	lull_agent_leave(status);
	errno = saved;
}

void lull_agent_silence(void)
{
	if (!lull_agent.has_session)
		return;
	lull_agent_settle();
	lull_issue(LULL_ISSUE_sandboxed, 1);
	lull_thread_leave();
	lull_agent.has_session = false;
	lull_agent.control = &no_control;
}

/* Tell the recorder, by the image of the next ancestor that has one, that this process exists. */
static bool tell_fork(struct lull_image *image, u64 counter)
{
	u64 n = atomic_load_explicit(&image->n_forks, memory_order_relaxed);
	struct lull_fork *f;

	do {
		if (n - atomic_load(&image->n_forks_read) >= LULL_N_FORKS)
			return false;
	} while (!atomic_compare_exchange_weak(&image->n_forks, &n, n + 1));
	f = &image->forks[n % LULL_N_FORKS];
	f->pid = lull_agent.pid;
	f->parent_pid = lull_agent.parent_pid;
	f->counter = counter;
	atomic_store(&f->seq, n + 1);
	/* Either we see that it is closed, or the recorder sees the entry. */
	return !atomic_load(&image->is_closed);
}

/*
 * Let the image of this forked child wait, if it can. With other threads about, or sources that
 * somebody looks at from outside, such as the stacks of an interpreter, it cannot. In another PID
 * namespace the parent has another number, or none.
 */
static bool put_off(void)
{
	struct lull_agent_live *live = lull_agent.live;
	u64 counter = lull_time();

	if (!lull_agent.has_session || lull_agent.is_late || lull_agent.follows_forks ||
	    !lull_loaded_was_alone() || !lull_agent.parent_image ||
	    (u32)syscall(SYS_getppid) != lull_agent.parent_pid ||
	    !tell_fork(lull_agent.parent_image, counter))
		return false;
	live->fork_counter = counter;
	live->waiting_pid = lull_agent.pid;
	return true;
}

/* What most children call at once is looked up here, once, and not by each of them. */
static void on_fork(void)
{
	lull_loaded_before_fork();
	lull_real_find((void **)&lull_real.execve);
	lull_real_find((void **)&lull_real._exit);
}

/* No event may go to the parent's image from here; lull_self points to wiped memory. */
static void leave_parent(void)
{
	lull_agent.parent_pid = lull_agent.pid;
	lull_agent.pid = lull_sys_pid();
	if (lull_agent.image)
		lull_agent.parent_image = lull_agent.image;
	lull_agent.image = NULL;
	lull_self = NULL;
}

static void on_forked_child(void)
{
	/* Handlers that are older than ours run before it, and what they call may be recorded. */
	bool has_image = atomic_load(&lull_agent.live->state) == LULL_AGENT_ON;
	int saved = errno;

	if (!has_image)
		leave_parent();
	lull_loaded_forked();
	lull_process_forked();
	if (!has_image && put_off())
		goto out;
	if (!has_image)
		lull_ring_forked();
	if (lull_agent_ready()) {
		lull_modules_repeat();
		lull_sources_start();
	}
out:
	errno = saved;
}

static struct lull_control *map_control(void)
{
	char path[SESSION_PATH_MAX + 16];
	size_t len = strlen(session_path);
	struct lull_control *control;
	int fd;

	memcpy(path, session_path, len);
	memcpy(path + len, "/control", 9);
	fd = lull_sys_open(path, O_RDWR, 0);
	if (fd < 0)
		return NULL;
	control = map_again(late.control, sizeof(*control), MAP_SHARED, fd);
	lull_sys_close(fd);
	if (control && control->magic != LULL_WIRE_MAGIC) {
		if (control == late.control)
			cover(control, sizeof(*control));
		else
			lull_sys_unmap(control, sizeof(*control));
		return NULL;
	}
	return control;
}

/* What is made once in a process, however often it is attached to. */
static bool make_live(void)
{
	if (lull_agent.live)
		return true;
	if (!map_live())
		return false;
	lull_ring_init();
	pthread_atfork(on_fork, NULL, on_forked_child);
	on_exit(on_exit_status, NULL);
	return true;
}

static bool join_session(const char *session)
{
	size_t len = session ? strlen(session) : 0;
	struct lull_control *control;

	if (!session || len >= sizeof(session_path))
		return false;
	memcpy(session_path, session, len + 1);
	control = map_control();
	if (!control || is_left_out(control))
		return false;
	if (!make_live()) {
		note_refused(control);
		return false;
	}
	lull_agent.control = control;
	lull_agent.has_session = true;
	return lull_agent_ready();
}

bool lull_agent_join(const char *session)
{
	lull_agent.is_late = true;
	if (!join_session(session)) {
		u32 refused = LULL_AGENT_REFUSED;

		/* There may be room the next time. */
		if (lull_agent.live)
			atomic_compare_exchange_strong(&lull_agent.live->state, &refused,
						       LULL_AGENT_OFF);
		lull_agent.has_session = false;
		lull_agent.control = &no_control;
		return false;
	}
	late.control = lull_agent.control;
	if (!late.image || lull_agent.image != late.image) {
		late.image = lull_agent.image;
		late.image_bytes =
			LULL_IMAGE_DATA_OFF + (size_t)lull_agent.image->n_chunks * LULL_CHUNK_BYTES;
	}
	lull_agent.image->is_attached = 1;
	lull_modules_again();
	lull_sources_start();
	return true;
}

bool lull_agent_is_session_over(void)
{
	const struct lull_control *c = lull_agent.control;

	/* The last recording is told to be the last before it ends. */
	return (atomic_load(&c->is_over) && !atomic_load(&c->record)) || is_deserted(c);
}

void lull_agent_part(void)
{
	lull_agent.has_session = false;
	lull_agent.control = &no_control;
	lull_ring_forget();
	atomic_store(&lull_agent.live->state, LULL_AGENT_OFF);
	/* Release: the recorder may remove everything when it sees this. */
	atomic_store_explicit(&lull_agent.image->has_left, 1, memory_order_release);
	cover(late.image, late.image_bytes);
	cover(late.control, sizeof(*lull_agent.control));
}

/* The loader hands over what main() will get. */
__attribute__((constructor)) static void begin(int argc, char **argv)
{
	int saved = errno;

	first_argv = argc > 0 ? argv : NULL;
	lull_real_begin();
	if (join_session(getenv(LULL_ENV_SESSION))) {
		lull_modules_scan();
		lull_sources_start();
	}
	first_argv = NULL;
	errno = saved;
}
