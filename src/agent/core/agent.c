#include "agent/core/agent.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "agent/core/loaded.h"
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
 */

/* What hooks see before the constructor ran and in processes that nobody records. */
static struct lull_control no_control;

struct lull_agent lull_agent = { .control = &no_control };

#define SESSION_PATH_MAX 512

static char session_path[SESSION_PATH_MAX];
static char image_path[SESSION_PATH_MAX + 64];

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

/* The head and the first entries of each table. */
static bool reserve_tables(int fd)
{
	long bytes = LULL_N_READY * LULL_ENTRY_BYTES;

	return (syscall(SYS_fallocate, fd, 0, 0L, LULL_IMAGE_SLOTS_OFF + bytes) == 0 &&
		syscall(SYS_fallocate, fd, 0, (long)LULL_IMAGE_CHUNKS_OFF, bytes) == 0) ||
	       errno == EOPNOTSUPP;
}

/* Create and map the image file; smaller ones are tried when address space is limited. */
static struct lull_image *map_image(u32 *n_chunks)
{
	struct lull_image *image = NULL;
	int fd = lull_sys_open(image_path, O_RDWR | O_CREAT | O_EXCL, 0600);

	if (fd < 0)
		return NULL;
	for (u32 n = allowed_chunks(); n >= 16 && !image; n /= 4) {
		size_t size_bytes = LULL_IMAGE_DATA_OFF + (size_t)n * LULL_CHUNK_BYTES;

		if (lull_sys_truncate(fd, size_bytes) != 0)
			break;
		image = lull_sys_map(size_bytes, MAP_SHARED | MAP_NORESERVE, fd);
		*n_chunks = n;
	}
	if (image && !reserve_tables(fd)) {
		lull_sys_unmap(image, LULL_IMAGE_DATA_OFF + (size_t)*n_chunks * LULL_CHUNK_BYTES);
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
	struct lull_rank rank = lull_rank_read(get_variable, NULL);

	return *control->ranks && rank.rank >= 0 &&
	       !lull_ranks_has(control->ranks, rank.rank, rank.n_ranks);
}

/* The inode of the namespace that our numbers of processes are of; 0 without /proc. */
static u64 pid_namespace(void)
{
	struct stat st;

	return syscall(SYS_newfstatat, AT_FDCWD, "/proc/self/ns/pid", &st, 0) == 0 ? st.st_ino : 0;
}

static void fill_image(struct lull_image *image, u32 n_chunks, u64 counter)
{
	long n = syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", image->exe,
			 sizeof(image->exe) - 1);

	image->exe[n > 0 ? n : 0] = '\0';
	syscall(SYS_prctl, PR_GET_NAME, image->comm, 0L, 0L, 0L);
	image->cmdline_bytes =
		read_proc("/proc/self/cmdline", image->cmdline, sizeof(image->cmdline));
	image->pid = lull_sys_pid();
	image->pid_ns = pid_namespace();
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

/* The blocks of threads, which a forked child has from its parent. */
static bool map_threads(void)
{
	u32 n_slots = allowed_slots();
	size_t size_bytes = (size_t)n_slots * sizeof(struct lull_thread);

	if (lull_agent.threads)
		return true;
	lull_agent.threads =
		lull_sys_map(size_bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
	if (!lull_agent.threads)
		return false;
	lull_sys_advise(lull_agent.threads, size_bytes, MADV_WIPEONFORK);
	lull_agent.n_slots = n_slots;
	return true;
}

static bool open_image(void)
{
	struct lull_image *image;
	u64 counter = lull_time();
	u32 n_chunks = 0;

	/* A child of a bare clone: on_forked_child() did not run. */
	if (lull_agent.image)
		lull_agent.parent_pid = lull_agent.image->pid;
	snprintf(image_path, sizeof(image_path), "%s/%u-%llx.image", session_path, lull_sys_pid(),
		 (unsigned long long)counter);
	image = map_threads() ? map_image(&n_chunks) : NULL;
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

/* A recorder that lives takes the time more often than this. */
#define DESERTED_NS (5 * LULL_NS_PER_S)

/*
 * Whether the recorder has died. What processes are still to come would fill memory with images
 * that nobody reads and nobody removes. In another PID namespace its number may be somebody else's,
 * who lives, or nobody's: then it is its clock that tells.
 */
static bool is_deserted(const struct lull_control *c)
{
	u64 n = atomic_load_explicit(&c->n_clocks, memory_order_acquire);
	const struct lull_clock_pair *last =
		&c->clocks[n < 2 ? 0 : 1 + (n - 2) % (LULL_N_CLOCKS - 1)];

	return n && lull_now_ns() > last->mono_ns + DESERTED_NS &&
	       syscall(SYS_kill, (long)c->collector_pid, 0L) != 0 && errno == ESRCH;
}

bool lull_agent_ready(void)
{
	u32 state = LULL_AGENT_OFF;

	if (!lull_agent.live || !lull_agent.has_session)
		return false;
	if (!atomic_compare_exchange_strong(&lull_agent.live->state, &state, LULL_AGENT_STARTING))
		return state == LULL_AGENT_ON;
	if (is_deserted(lull_agent.control) || !open_image()) {
		atomic_fetch_add(&lull_agent.control->n_refused, 1);
		atomic_store(&lull_agent.live->state, LULL_AGENT_REFUSED);
		return false;
	}
	atomic_store(&lull_agent.live->state, LULL_AGENT_ON);
	return true;
}

void lull_agent_leave(int status)
{
	struct lull_image *image = lull_agent.image;
	struct rusage use;

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
	lull_issue(LULL_ISSUE_sandboxed, 1);
	lull_thread_leave();
	lull_agent.has_session = false;
	lull_agent.control = &no_control;
}

static void on_forked_child(void)
{
	int saved = errno;

	/* The parent's image must not be touched from here; lull_self points to wiped memory. */
	lull_agent.parent_pid = lull_agent.image ? lull_agent.image->pid : 0;
	lull_agent.image = NULL;
	lull_self = NULL;
	lull_loaded_forked();
	if (lull_agent_ready()) {
		lull_modules_repeat();
		lull_sources_start();
	}
	errno = saved;
}

static struct lull_control *map_control(void)
{
	char path[SESSION_PATH_MAX + 16];
	struct lull_control *control;
	int fd;

	snprintf(path, sizeof(path), "%s/control", session_path);
	fd = lull_sys_open(path, O_RDWR, 0);
	if (fd < 0)
		return NULL;
	control = lull_sys_map(sizeof(*control), MAP_SHARED, fd);
	lull_sys_close(fd);
	if (control && control->magic != LULL_WIRE_MAGIC) {
		lull_sys_unmap(control, sizeof(*control));
		return NULL;
	}
	return control;
}

__attribute__((constructor)) static void begin(void)
{
	const char *session = getenv(LULL_ENV_SESSION);
	size_t len = session ? strlen(session) : 0;
	struct lull_control *control;
	int saved = errno;

	if (!session || len >= sizeof(session_path))
		goto out;
	memcpy(session_path, session, len + 1);
	control = map_control();
	if (!control || is_left_out(control))
		goto out;
	lull_agent.live = lull_sys_map(4096, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	if (!lull_agent.live || lull_sys_advise(lull_agent.live, 4096, MADV_WIPEONFORK) != 0)
		goto out;
	lull_agent.control = control;
	lull_agent.has_session = true;
	lull_ring_init();
	pthread_atfork(lull_loaded_before_fork, NULL, on_forked_child);
	on_exit(on_exit_status, NULL);
	if (lull_agent_ready()) {
		lull_modules_scan();
		lull_sources_start();
	}
out:
	errno = saved;
}
