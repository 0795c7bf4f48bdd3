/*
 * bench_lib - what a watched call of a library costs (--trace-library).
 *
 *	bench_lib AGENT		ns per call: plain, and on top with the agent idle and recording
 *
 * Runs itself under the agent, which watches a function of libc that does nothing. The plain call
 * goes through its address, which the agent leaves alone. The three take turns and the fastest of
 * each counts. Nobody takes the events out, so each chunk is touched for the first time.
 */
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time.h"
#include "trace/wire.h"

#define N_CALLS	 20000
#define N_ROUNDS 150 /* 3 M events of 32 bytes: they all fit */

typedef const char *version_fn(void);

static f64 run_plain(version_fn *volatile fn)
{
	u64 begin = lull_now_ns();

	for (int i = 0; i < N_CALLS; i++)
		fn();
	return (f64)(lull_now_ns() - begin) / N_CALLS;
}

static f64 run_watched(void)
{
	u64 begin = lull_now_ns();

	for (int i = 0; i < N_CALLS; i++)
		gnu_get_libc_version();
	return (f64)(lull_now_ns() - begin) / N_CALLS;
}

static void keep_least(f64 *least, f64 value)
{
	if (value < *least)
		*least = value;
}

static int measure(const char *folder)
{
	f64 plain = 1e9, idle = 1e9, timed = 1e9;
	struct lull_control *control;
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/control", folder);
	fd = open(path, O_RDWR);
	control = mmap(NULL, sizeof(*control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (control == MAP_FAILED)
		return 1;
	for (int round = 0; round < N_ROUNDS; round++) {
		keep_least(&plain, run_plain(gnu_get_libc_version));
		keep_least(&idle, run_watched());
		control->record = 1;
		keep_least(&timed, run_watched());
		control->record = 0;
	}
	printf("%-32s %10s %10s %10s\n", "ns per call", "plain", "idle", "recording");
	printf("%-32s %10.1f %+10.1f %+10.1f\n", "library call", plain, idle - plain,
	       timed - plain);
	return 0;
}

static int make_session(const char *folder)
{
	struct lull_control *control = calloc(1, sizeof(*control));
	char path[128];
	ssize_t n = -1;
	int fd;

	if (!control)
		return 1;
	control->magic = LULL_WIRE_MAGIC;
	control->sources = LULL_SOURCE_LIBRARY;
	control->tick_hz = LULL_NS_PER_S;
	strcpy(control->libraries, "libc.so:gnu_get_libc_version\n");
	mkdir(folder, 0700);
	snprintf(path, sizeof(path), "%s/control", folder);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	if (fd >= 0) {
		n = write(fd, control, sizeof(*control));
		close(fd);
	}
	free(control);
	return n != (ssize_t)sizeof(*control);
}

int main(int argc, char **argv)
{
	char folder[64], command[256];
	int status = 0;
	pid_t pid;

	if (getenv(LULL_ENV_SESSION))
		return measure(getenv(LULL_ENV_SESSION));
	if (argc < 2)
		return 2;
	snprintf(folder, sizeof(folder), "/dev/shm/lull-bench-%d", (int)getpid());
	if (make_session(folder)) {
		fprintf(stderr, "bench_lib: cannot write to %s\n", folder);
		return 1;
	}
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
