/*
 * listen - run a program under the agent and write what it emits as lines of text, for tests in
 * shell.
 *
 *	listen OUT AGENT SOURCES THRESHOLD_NS BACKTRACE_NS PROGRAM ARGUMENTS...
 *
 * Plays the recorder: makes the session, empties chunks and frees slots while the program runs,
 * and exits with the program's status. Times are as they were written: ticks of the CPU's counter,
 * HZ of them a second. Environment: LISTEN_RECORD=0 records nothing, LISTEN_LATE=1 begins recording
 * when the agent is in the program, LISTEN_CLOCK=1 makes times nanoseconds of CLOCK_MONOTONIC.
 *
 *	hz HZ
 *	oscall PID TID NAME START DUR RET ARG STACK_BYTES
 *	gil_wait PID TID START DUR SLICES STACK_BYTES
 *	sample PID TID START WEIGHT_NS PC STACK_BYTES
 *	child PID TID CHILD_PID STATUS
 *	thread_name PID TID OF_TID NAME
 *	module PID TID PATH
 *	image PID STATE EXIT_CODE PARENT_PID N_SLOTS_LEFT N_DROPPED PYTHON_VERSION EXE
 *	issue PID ID COUNT
 *	fork PID PARENT_PID		of a child that had no image then
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time.h"
#include "wire/osrt.h"
#include "wire/wire.h"

#define N_IMAGES 4096

struct image {
	char name[64];
	struct lull_image *head;
	struct lull_slot *slots;
	struct lull_chunk *chunks;
	u8 *data;
	u32 done[LULL_N_CHUNKS]; /* bytes of each chunk already read */
	u64 n_dropped;
};

static struct image *images[N_IMAGES];
static u32 n_images;
static char folder[64];
static FILE *out;

static void die(const char *what)
{
	fprintf(stderr, "listen: %s: %s\n", what, strerror(errno));
	exit(125);
}

/* The counter at a moment of the clock: the reading that took least of several. */
static struct lull_clock_pair take_pair(void)
{
	struct lull_clock_pair best = { 0 };
	u64 least = UINT64_MAX;

	for (int i = 0; i < 100; i++) {
		u64 before = lull_now_ns(), counter = lull_counter(), after = lull_now_ns();

		if (after - before < least) {
			least = after - before;
			best.counter = counter;
			best.mono_ns = before + least / 2;
		}
	}
	return best;
}

static u64 measure_hz(void)
{
	struct lull_clock_pair from, to;

	if (getenv("LISTEN_CLOCK"))
		return LULL_NS_PER_S;
	from = take_pair();
	usleep(50000);
	to = take_pair();
	return (u64)((f64)(to.counter - from.counter) * 1e9 / (f64)(to.mono_ns - from.mono_ns));
}

static struct lull_control *make_control(char **argv, u64 hz)
{
	f64 ns_per_tick = 1e9 / (f64)hz;
	struct lull_control *c;
	char path[96];
	int fd;

	snprintf(folder, sizeof(folder), "/dev/shm/lull-listen-%d", (int)getpid());
	if (mkdir(folder, 0700) != 0)
		die(folder);
	snprintf(path, sizeof(path), "%s/control", folder);
	fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
	if (fd < 0 || ftruncate(fd, sizeof(*c)) != 0)
		die(path);
	c = mmap(NULL, sizeof(*c), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (c == MAP_FAILED)
		die(path);
	c->magic = LULL_WIRE_MAGIC;
	c->collector_pid = (u32)getpid();
	c->sources = (u32)atoi(argv[3]);
	c->tick_hz = hz;
	c->is_clock = getenv("LISTEN_CLOCK") != NULL;
	c->osrt_threshold_ticks = (u64)(atof(argv[4]) / ns_per_tick);
	c->backtrace_ticks = (u64)(atof(argv[5]) / ns_per_tick);
	c->backtrace_bytes = 6144;
	c->sample_bytes = 8192;
	c->timer_period_ns = 1000000;
	c->record = getenv("LISTEN_RECORD") || getenv("LISTEN_LATE") ? 0 : 1;
	return c;
}

static void print_event(const struct image *image, const struct lull_chunk *chunk,
			const struct lull_event *e, u32 stack_bytes)
{
	u32 pid = image->head->pid, tid = image->slots[chunk->slot].tid;
	const void *p = e;

	switch (e->type) {
	case LULL_EVENT_oscall: {
		const struct lull_wire_oscall *o = p;

		fprintf(out, "oscall %u %u %s %lu %lu %ld %ld %u\n", pid, tid,
			lull_osrt_name(e->a & ~LULL_HAS_STACK), e->counter, o->dur_ticks, o->ret,
			o->arg, stack_bytes);
		break;
	}
	case LULL_EVENT_gil_wait:
		fprintf(out, "gil_wait %u %u %lu %lu %u %u\n", pid, tid, e->counter,
			((const struct lull_wire_gil_wait *)p)->dur_ticks, e->a & ~LULL_HAS_STACK,
			stack_bytes);
		break;
	case LULL_EVENT_sample:
		fprintf(out, "sample %u %u %lu %lu %lx %u\n", pid, tid, e->counter,
			((const struct lull_wire_sample *)p)->weight_ns,
			((const struct lull_wire_stack *)((const u8 *)p -
							  sizeof(struct lull_wire_stack) -
							  stack_bytes))
				->regs.pc,
			stack_bytes);
		break;
	case LULL_EVENT_child:
		fprintf(out, "child %u %u %u %lu\n", pid, tid, e->a,
			((const struct lull_wire_child *)p)->status);
		break;
	case LULL_EVENT_thread_name:
		fprintf(out, "thread_name %u %u %lu %.*s\n", pid, tid,
			((const struct lull_wire_thread_name *)p)->tid, (int)e->a,
			(const char *)p + sizeof(struct lull_wire_thread_name));
		break;
	case LULL_EVENT_module:
		fprintf(out, "module %u %u %.*s\n", pid, tid, (int)e->a,
			(const char *)p + sizeof(struct lull_wire_module) +
				((const struct lull_wire_module *)p)->build_id_bytes);
		break;
	}
}

/* Print what is new in a chunk, and give it back once it is full and read. */
static void read_chunk(struct image *image, u32 ix)
{
	struct lull_chunk *chunk = &image->chunks[ix];
	u32 state = atomic_load(&chunk->state);
	u32 committed = atomic_load(&chunk->committed);
	u32 stack_bytes = 0;
	bool has_stack = false;

	if (state != LULL_CHUNK_OWNED && state != LULL_CHUNK_FULL)
		return;
	while (image->done[ix] < committed) {
		const struct lull_event *e =
			(const void *)(image->data + (size_t)ix * LULL_CHUNK_BYTES +
				       image->done[ix]);

		if (e->size_bytes < sizeof(*e) || image->done[ix] + e->size_bytes > committed) {
			fprintf(out, "broken %u %u\n", image->head->pid, image->done[ix]);
			image->done[ix] = committed;
			break;
		}
		if (has_stack != ((e->type == LULL_EVENT_oscall || e->type == LULL_EVENT_sample ||
				   e->type == LULL_EVENT_gil_wait) &&
				  (e->a & LULL_HAS_STACK)))
			fprintf(out, "broken %u stack does not match event %u\n", image->head->pid,
				e->type);
		has_stack = e->type == LULL_EVENT_stack;
		if (!has_stack)
			print_event(image, chunk, e, stack_bytes);
		stack_bytes = has_stack ? e->a : 0;
		image->done[ix] += e->size_bytes;
	}
	if (state == LULL_CHUNK_FULL) {
		image->done[ix] = 0;
		atomic_store(&chunk->committed, 0);
		atomic_store(&chunk->state, LULL_CHUNK_FREE);
		/* It has memory: it is taken again before one that has none. */
		if (ix < atomic_load(&image->head->chunk_hint))
			atomic_store(&image->head->chunk_hint, ix);
		atomic_fetch_add(&image->head->n_free, 1);
	}
}

/*
 * Free the slots of threads that have ended and of which nothing is left to read; returns how many
 * remain.
 */
static u32 free_slots(struct image *image)
{
	static u8 is_used[LULL_N_SLOTS];
	u32 n_left = 0;

	memset(is_used, 0, sizeof(is_used));
	for (u32 i = 0; i < image->head->n_used; i++)
		if (atomic_load(&image->chunks[i].state) != LULL_CHUNK_FREE)
			is_used[image->chunks[i].slot] = 1;
	for (u32 i = 0; i < image->head->n_slots_ready; i++) {
		struct lull_slot *slot = &image->slots[i];

		if (atomic_load(&slot->state) == LULL_SLOT_ENDED && !is_used[i]) {
			image->n_dropped += atomic_load(&slot->n_dropped);
			atomic_store(&slot->state, LULL_SLOT_FREE);
		}
		n_left += atomic_load(&slot->state) != LULL_SLOT_FREE;
	}
	return n_left;
}

static void add_image(const char *name)
{
	struct image *image;
	struct stat st;
	char path[160];
	int fd;

	for (u32 i = 0; i < n_images; i++)
		if (strcmp(images[i]->name, name) == 0)
			return;
	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_RDWR);
	if (fd < 0 || fstat(fd, &st) != 0 || (u64)st.st_size < LULL_IMAGE_DATA_OFF ||
	    n_images == N_IMAGES) {
		if (fd >= 0)
			close(fd);
		return;
	}
	image = calloc(1, sizeof(*image));
	snprintf(image->name, sizeof(image->name), "%s", name);
	image->head = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (image->head == MAP_FAILED)
		die(path);
	image->slots = (void *)((u8 *)image->head + LULL_IMAGE_SLOTS_OFF);
	image->chunks = (void *)((u8 *)image->head + LULL_IMAGE_CHUNKS_OFF);
	image->data = (u8 *)image->head + LULL_IMAGE_DATA_OFF;
	images[n_images++] = image;
}

static void drain(void)
{
	DIR *dir = opendir(folder);
	struct dirent *d;

	while (dir && (d = readdir(dir)))
		if (strstr(d->d_name, ".image"))
			add_image(d->d_name);
	if (dir)
		closedir(dir);
	for (u32 i = 0; i < n_images; i++) {
		for (u32 c = 0; c < images[i]->head->n_used; c++)
			read_chunk(images[i], c);
		free_slots(images[i]);
	}
}

static void print_images(void)
{
	for (u32 i = 0; i < n_images; i++) {
		struct lull_image *head = images[i]->head;
		u32 n_left = free_slots(images[i]);

		for (u32 k = 0; k < head->n_slots_ready; k++)
			if (atomic_load(&images[i]->slots[k].state) != LULL_SLOT_FREE)
				images[i]->n_dropped += atomic_load(&images[i]->slots[k].n_dropped);
		fprintf(out, "image %u %u %u %u %u %lu %x %s\n", head->pid,
			atomic_load(&head->state), head->exit_code, head->parent_pid, n_left,
			images[i]->n_dropped, head->python_version, head->exe);
		for (u32 k = 0; k < LULL_N_ISSUES; k++)
			if (atomic_load(&head->issues[k]))
				fprintf(out, "issue %u %u %lu\n", head->pid, k,
					atomic_load(&head->issues[k]));
		for (u32 k = 0; k < LULL_N_FORKS; k++)
			if (atomic_load(&head->forks[k].seq))
				fprintf(out, "fork %u %u\n", head->forks[k].pid,
					head->forks[k].parent_pid);
	}
}

static void remove_folder(void)
{
	char path[160];

	for (u32 i = 0; i < n_images; i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, images[i]->name);
		unlink(path);
	}
	snprintf(path, sizeof(path), "%s/control", folder);
	unlink(path);
	rmdir(folder);
}

static pid_t launch(char **argv)
{
	pid_t pid = fork();

	if (pid == 0) {
		setenv("LULL_SESSION", folder, 1);
		setenv("LULL_AGENT", argv[2], 1);
		setenv("LD_PRELOAD", argv[2], 1);
		execvp(argv[6], argv + 6);
		_exit(127);
	}
	return pid;
}

static bool is_any_live(void)
{
	for (u32 i = 0; i < n_images; i++)
		if (atomic_load(&images[i]->head->state) == LULL_IMAGE_LIVE)
			return true;
	return false;
}

int main(int argc, char **argv)
{
	bool is_late = getenv("LISTEN_LATE") != NULL;
	struct lull_control *control;
	int status;
	pid_t pid;
	u64 hz;

	if (argc < 7)
		return 125;
	hz = measure_hz();
	out = fopen(argv[1], "w");
	if (!out)
		die(argv[1]);
	fprintf(out, "hz %lu\n", hz);
	control = make_control(argv, hz);
	pid = launch(argv);
	while (waitpid(pid, &status, WNOHANG) == 0) {
		drain();
		usleep(2000);
		if (is_late && is_any_live())
			control->record = 1;
	}
	drain();
	print_images();
	remove_folder();
	fclose(out);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
