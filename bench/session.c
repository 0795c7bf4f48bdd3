#include "bench/session.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time.h"

bool bench_session_is_inside(void)
{
	return getenv(LULL_ENV_SESSION) != NULL;
}

static bool write_control(const char *folder, const struct lull_control *wanted)
{
	struct lull_control *control = malloc(sizeof(*control));
	bool is_ok;
	char path[128];
	int fd;

	if (!control)
		return false;
	memcpy(control, wanted, sizeof(*control));
	control->magic = LULL_WIRE_MAGIC;
	control->tick_hz = LULL_NS_PER_S;
	snprintf(path, sizeof(path), "%s/control", folder);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	is_ok = fd >= 0 && write(fd, control, sizeof(*control)) == (ssize_t)sizeof(*control);
	if (fd >= 0)
		close(fd);
	free(control);
	return is_ok;
}

static void remove_folder(const char *folder)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(folder);
}

static int start_again(const char *agent, const char *folder, char **argv)
{
	int status = -1;
	pid_t pid = fork();

	if (!pid) {
		setenv(LULL_ENV_SESSION, folder, 1);
		setenv("LD_PRELOAD", agent, 1);
		setenv("NVTX_INJECTION64_PATH", agent, 1);
		execv("/proc/self/exe", argv);
		_exit(127);
	}
	if (pid < 0 || waitpid(pid, &status, 0) != pid || !WIFEXITED(status))
		return 1;
	return WEXITSTATUS(status);
}

int bench_session_run(const char *agent, const struct lull_control *control, char **argv)
{
	char folder[64], *path = realpath(agent, NULL);
	int rc = 1;

	snprintf(folder, sizeof(folder), "%s/lull-bench-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	if (!path || !mkdtemp(folder))
		perror(path ? folder : agent);
	else if (!write_control(folder, control))
		perror(folder);
	else
		rc = start_again(path, folder, argv);
	remove_folder(folder);
	free(path);
	return rc;
}

static void *map_file(const char *folder, const char *name)
{
	char path[512];
	struct stat st;
	void *map = MAP_FAILED;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd >= 0 && fstat(fd, &st) == 0)
		map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (fd >= 0)
		close(fd);
	return map == MAP_FAILED ? NULL : map;
}

struct lull_control *bench_session_control(void)
{
	const char *folder = getenv(LULL_ENV_SESSION);

	return folder ? map_file(folder, "control") : NULL;
}

struct lull_image *bench_session_image(void)
{
	const char *folder = getenv(LULL_ENV_SESSION);
	DIR *dir = folder ? opendir(folder) : NULL;
	struct lull_image *image = NULL;
	struct dirent *entry;
	char prefix[32];

	snprintf(prefix, sizeof(prefix), "%d-", (int)getpid());
	while (dir && !image && (entry = readdir(dir)))
		if (strncmp(entry->d_name, prefix, strlen(prefix)) == 0 &&
		    strstr(entry->d_name, ".image"))
			image = map_file(folder, entry->d_name);
	if (dir)
		closedir(dir);
	return image;
}

static const struct lull_chunk *chunk_of(const struct lull_image *image, u32 i)
{
	return (const struct lull_chunk *)((const u8 *)image + LULL_IMAGE_CHUNKS_OFF) + i;
}

/* Bytes of whole events in a chunk. */
static u32 n_committed(const struct lull_chunk *c)
{
	u32 state = atomic_load_explicit(&c->state, memory_order_acquire);

	return state == LULL_CHUNK_OWNED || state == LULL_CHUNK_FULL
		       ? atomic_load_explicit(&c->committed, memory_order_acquire)
		       : 0;
}

u64 bench_session_n_bytes(const struct lull_image *image)
{
	u64 n = 0;

	for (u32 i = 0; i < atomic_load(&image->n_used); i++)
		n += n_committed(chunk_of(image, i));
	return n;
}

u64 bench_session_n_events(const struct lull_image *image, enum lull_event_type type)
{
	u64 n = 0;

	for (u32 i = 0; i < atomic_load(&image->n_used); i++) {
		const u8 *at = (const u8 *)image + LULL_IMAGE_DATA_OFF + (u64)i * LULL_CHUNK_BYTES;
		const u8 *end = at + n_committed(chunk_of(image, i));
		const struct lull_event *e;

		for (; at < end; at += e->size_bytes) {
			e = (const struct lull_event *)at;
			if (!e->size_bytes)
				break;
			n += e->type == type;
		}
	}
	return n;
}

u64 bench_session_n_dropped(const struct lull_image *image)
{
	const struct lull_slot *slots = (const void *)((const u8 *)image + LULL_IMAGE_SLOTS_OFF);
	u64 n = atomic_load(&image->n_unplaced);

	for (u32 i = 0; i < atomic_load(&image->n_slots_ready); i++)
		n += atomic_load(&slots[i].n_dropped);
	return n;
}
