/*
 * bench_nvtx: what an NVTX call costs the program, in nanoseconds and in reads of the clock.
 *
 *	bench_nvtx AGENT	prints "name value unit" lines; needs no headers and no collector
 *
 * The first process makes a session and runs itself again with the agent preloaded; that one
 * measures. A thread of its own plays the collector: it frees chunks as they fill. Each figure is
 * the least of several rounds, which is what the code costs when nothing disturbs it.
 */
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time.h"
#include "support/nvtx_instance.h"
#include "trace/wire.h"

#define N_ROUNDS 60
#define N_CALLS	 200000
#define N_NAMES	 200

static struct nvtx_instance instance;
static struct lull_control *control;
static _Atomic bool is_done;
static char session[64];

static void *map_file(const char *name, size_t size_bytes)
{
	char path[512];
	struct stat st;
	void *map;
	int fd;

	snprintf(path, sizeof(path), "%s/%s", session, name);
	fd = open(path, O_RDWR | O_CREAT, 0600);
	if (fd < 0 || (size_bytes && ftruncate(fd, (off_t)size_bytes) != 0) || fstat(fd, &st) != 0)
		return NULL;
	map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	return map == MAP_FAILED ? NULL : map;
}

static struct lull_image *find_image(void)
{
	DIR *dir = opendir(session);
	struct lull_image *image = NULL;
	struct dirent *entry;

	while (dir && !image && (entry = readdir(dir)))
		if (strstr(entry->d_name, ".image"))
			image = map_file(entry->d_name, 0);
	if (dir)
		closedir(dir);
	return image;
}

/* The collector's part: rule 1 of wire.h. */
static void *drain(void *arg)
{
	struct lull_image *image = arg;
	struct lull_chunk *chunks = (void *)((u8 *)image + LULL_IMAGE_CHUNKS_OFF);

	while (!atomic_load(&is_done)) {
		u32 n_used = atomic_load(&image->n_used);

		for (u32 i = n_used; i-- > 0;) {
			if (atomic_load(&chunks[i].state) != LULL_CHUNK_FULL)
				continue;
			atomic_store(&chunks[i].committed, 0);
			atomic_store_explicit(&chunks[i].state, LULL_CHUNK_FREE,
					      memory_order_release);
			atomic_store(&image->chunk_hint, i);
			atomic_fetch_add(&image->n_free, 1);
		}
		usleep(200);
	}
	return NULL;
}

static void two_clocks(void)
{
	lull_now_ns();
	lull_now_ns();
}

static void push_pop(void)
{
	instance.calls.range_push_a("forward");
	instance.calls.range_pop();
}

static void push_pop_ex(void)
{
	static const struct lull_nvtx_event event = {
		.version = LULL_NVTX_VERSION,
		.size_bytes = sizeof(event),
		.category = 3,
		.message_type = LULL_NVTX_MESSAGE_ASCII,
		.message = "ncclAllReduce",
		.payload_type = LULL_NVTX_PAYLOAD_U64,
		.payload = 1,
	};

	instance.calls.range_push_ex(&event);
	instance.calls.range_pop();
}

static void start_end(void)
{
	instance.calls.range_end(instance.calls.range_start_a("forward"));
}

static void mark(void)
{
	instance.calls.mark_a("forward");
}

/* A name that is new each time, as torch's emit_nvtx makes them. */
static void push_pop_unique(void)
{
	static u32 n;
	char name[] = "aten::add, seq = 00000000";

	for (u32 i = 0, v = n++; i < 8; i++, v /= 10)
		name[sizeof(name) - 2 - i] = (char)('0' + v % 10);
	instance.calls.range_push_a(name);
	instance.calls.range_pop();
}

/* As many names as a program of some size has, one after the other. */
static void push_pop_many(void)
{
	static char names[N_NAMES][16];
	static u32 n;
	char *name = names[n++ % N_NAMES];

	if (!*name)
		snprintf(name, sizeof(names[0]), "layer %u", n);
	instance.calls.range_push_a(name);
	instance.calls.range_pop();
}

/* What NVTX's inline functions do without a tool: look at the pointer. */
static void no_tool(void)
{
	static int (*volatile push)(const char *message);
	static int (*volatile pop)(void);

	if (push)
		push("forward");
	if (pop)
		pop();
}

static double measure(const char *name, void (*call)(void))
{
	double best = 0;

	for (int round = 0; round < N_ROUNDS; round++) {
		u64 begin = lull_now_ns();
		double ns;

		for (int i = 0; i < N_CALLS; i++)
			call();
		ns = (double)(lull_now_ns() - begin) / N_CALLS;
		if (!round || ns < best)
			best = ns;
	}
	printf("%-24s %7.1f ns\n", name, best);
	return best;
}

static int measure_all(const char *path)
{
	pthread_t thread;
	double clocks, pair;
	void *image;

	snprintf(session, sizeof(session), "%s", path);
	control = map_file("control", 0);
	image = find_image();
	if (!control || !image || !nvtx_instance_load(&instance)) {
		fprintf(stderr, "bench_nvtx: the agent is not here\n");
		return 1;
	}
	pthread_create(&thread, NULL, drain, image);
	clocks = measure("clock_gettime x 2", two_clocks);
	measure("push+pop, no tool", no_tool);
	measure("push+pop, off", push_pop);
	atomic_store(&control->record, 1);
	pair = measure("push+pop, on", push_pop);
	measure("push+pop ex, on", push_pop_ex);
	measure("push+pop 200 names, on", push_pop_many);
	measure("push+pop unique, on", push_pop_unique);
	measure("start+end, on", start_end);
	measure("mark, on", mark);
	printf("%-24s %7.2f\n", "push+pop / 2 clocks", pair / clocks);
	atomic_store(&is_done, true);
	pthread_join(thread, NULL);
	return 0;
}

static void remove_session(void)
{
	DIR *dir = opendir(session);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)))
		unlinkat(dirfd(dir), entry->d_name, 0);
	if (dir)
		closedir(dir);
	rmdir(session);
}

int main(int argc, char **argv)
{
	char *agent = argc > 1 ? realpath(argv[1], NULL) : NULL;
	int status = -1;
	pid_t pid;

	if (argc > 2)
		return measure_all(argv[2]);
	snprintf(session, sizeof(session), "%s/lull-bench-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	if (!agent || !mkdtemp(session) || !(control = map_file("control", sizeof(*control)))) {
		fprintf(stderr, "usage: bench_nvtx AGENT\n");
		return 2;
	}
	control->sources = LULL_SOURCE_NVTX;
	control->magic = LULL_WIRE_MAGIC;
	pid = fork();
	if (pid == 0) {
		setenv("LD_PRELOAD", agent, 1);
		setenv("NVTX_INJECTION64_PATH", agent, 1);
		setenv(LULL_ENV_SESSION, session, 1);
		execl("/proc/self/exe", argv[0], agent, session, NULL);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	remove_session();
	free(agent);
	return status != 0;
}
