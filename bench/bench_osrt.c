/*
 * bench_osrt - what a wrapped call of the C library costs.
 *
 *	bench_osrt AGENT	ns per call: plain, and on top with the agent idle and recording
 *
 * Runs itself under the agent. The plain call is libc's own, found behind the wrapper's back;
 * recording is switched on with a threshold that no call reaches. The three take turns many times
 * over and the fastest of each counts, because whatever else the machine does only ever adds. Fails
 * if recording adds more than BUDGET_NS.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time.h"
#include "trace/wire.h"

#define N_CALLS	  20000
#define N_ROUNDS  400
#define BUDGET_NS 15.0

/* Functions as the guest finds them, and libc's own. */
struct libc {
	__typeof__(read) *read;
	__typeof__(write) *write;
	__typeof__(pthread_mutex_lock) *lock;
	__typeof__(sem_wait) *sem_wait;
	__typeof__(fwrite) *fwrite;
};

static int zero_fd, null_fd;
static FILE *stream;
static char byte;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static sem_t sem;

static void one_read(const struct libc *f)
{
	if (f->read(zero_fd, &byte, 1) != 1)
		exit(1);
}

static void one_write(const struct libc *f)
{
	if (f->write(null_fd, &byte, 1) != 1)
		exit(1);
}

static void one_lock(const struct libc *f)
{
	f->lock(&mutex);
	pthread_mutex_unlock(&mutex);
}

static void one_sem(const struct libc *f)
{
	f->sem_wait(&sem);
	sem_post(&sem);
}

static void one_fwrite(const struct libc *f)
{
	f->fwrite(&byte, 1, 1, stream);
}

static const struct {
	const char *name;
	void (*call)(const struct libc *);
} loops[] = {
	{ "read of 1 byte", one_read },
	{ "write of 1 byte", one_write },
	{ "free mutex, lock and unlock", one_lock },
	{ "free semaphore, wait and post", one_sem },
	{ "fwrite of 1 byte, buffered", one_fwrite },
};

static f64 run_once(void (*call)(const struct libc *), const struct libc *f)
{
	u64 begin = lull_now_ns();

	for (int i = 0; i < N_CALLS; i++)
		call(f);
	return (f64)(lull_now_ns() - begin) / N_CALLS;
}

static void keep_least(f64 *least, f64 value)
{
	if (value < *least)
		*least = value;
}

static struct lull_control *map_control(const char *folder)
{
	char path[128];
	void *at;
	int fd;

	snprintf(path, sizeof(path), "%s/control", folder);
	fd = open(path, O_RDWR);
	at = mmap(NULL, sizeof(struct lull_control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		exit(1);
	return at;
}

static int measure(const char *folder)
{
	struct lull_control *control = map_control(folder);
	void *own = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
	const struct libc wrapped = { read, write, pthread_mutex_lock, sem_wait, fwrite };
	const struct libc plain = {
		.read = dlsym(own, "read"),
		.write = dlsym(own, "write"),
		.lock = dlsym(own, "pthread_mutex_lock"),
		.sem_wait = dlsym(own, "sem_wait"),
		.fwrite = dlsym(own, "fwrite"),
	};
	int rc = 0;

	zero_fd = open("/dev/zero", O_RDONLY);
	null_fd = open("/dev/null", O_WRONLY);
	stream = fopen("/dev/null", "w");
	sem_init(&sem, 0, 1);
	printf("%-32s %10s %10s %10s\n", "ns per call", "plain", "idle", "recording");
	for (size_t i = 0; i < LULL_COUNT_OF(loops); i++) {
		f64 alone = 1e9, idle = 1e9, timed = 1e9;

		for (int round = 0; round < N_ROUNDS; round++) {
			keep_least(&alone, run_once(loops[i].call, &plain));
			keep_least(&idle, run_once(loops[i].call, &wrapped));
			control->record = 1;
			keep_least(&timed, run_once(loops[i].call, &wrapped));
			control->record = 0;
		}
		printf("%-32s %10.1f %+10.1f %+10.1f\n", loops[i].name, alone, idle - alone,
		       timed - alone);
		rc |= timed - alone > BUDGET_NS;
	}
	return rc;
}

static void make_session(const char *folder)
{
	struct lull_control control = {
		.magic = LULL_WIRE_MAGIC,
		.sources = LULL_SOURCE_OSRT,
		.tick_hz = LULL_NS_PER_S,
		.osrt_threshold_ticks = UINT64_MAX,
		.backtrace_ticks = UINT64_MAX,
	};
	char path[128];
	int fd;

	mkdir(folder, 0700);
	snprintf(path, sizeof(path), "%s/control", folder);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd < 0 || write(fd, &control, sizeof(control)) != sizeof(control)) {
		perror(path);
		exit(1);
	}
	close(fd);
}

int main(int argc, char **argv)
{
	char folder[64], command[256];
	int status;
	pid_t pid;

	if (getenv(LULL_ENV_SESSION))
		return measure(getenv(LULL_ENV_SESSION));
	if (argc < 2)
		return 2;
	snprintf(folder, sizeof(folder), "/dev/shm/lull-bench-%d", (int)getpid());
	make_session(folder);
	pid = fork();
	if (!pid) {
		setenv(LULL_ENV_SESSION, folder, 1);
		setenv("LD_PRELOAD", argv[1], 1);
		execv(argv[0], argv);
		_exit(127);
	}
	waitpid(pid, &status, 0);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command) || !WIFEXITED(status) ? 1 : WEXITSTATUS(status);
}
