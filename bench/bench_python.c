/*
 * bench_python - what a look at the Python stacks of a process costs the recorder.
 *
 *	make build/bench/bench_python && build/bench/bench_python [PYTHON]	(default: python3)
 *
 * Starts an interpreter with three threads deep in recursion and takes their stacks many times, as
 * the recorder does a hundred times a second. The interpreter is not stopped. Beside it, reads of 8
 * bytes of its memory, which a look consists of. Each line is "name value unit"; times are medians.
 * Fails if the threads and their frames are not seen, exits with 77 if there is no such
 * interpreter.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time.h"
#include "record/python/python.h"

#define N_SAMPLES  5000
#define N_THREADS  3
#define MIN_FRAMES 45 /* of all threads; Python has 18 a thread, 3.9 and 3.14 nearly so */
#define MAX_WAIT_S 60

/* Two threads of 18 frames that sleep, and the main thread, which computes in 18 frames. */
static const char program[] =
	"import threading, time\n"
	"def down(n, leaf):\n"
	"    return leaf() if n == 0 else down(n - 1, leaf)\n"
	"def sleep():\n"
	"    time.sleep(60)\n"
	"def compute():\n"
	"    x = 0\n"
	"    while True:\n"
	"        x += 1\n"
	"for i in range(2):\n"
	"    threading.Thread(target=down, args=(13, sleep), daemon=True).start()\n"
	"down(15, compute)\n";

struct seen {
	u64 n_stacks, n_frames;
};

static void on_stack(void *ctx, const struct lull_python_stack *stack)
{
	struct seen *seen = ctx;

	seen->n_stacks++;
	seen->n_frames += stack->n_frames;
}

static int by_value(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

static pid_t start(const char *python)
{
	pid_t pid = fork();

	if (pid == 0) {
		execlp(python, python, "-c", program, (char *)NULL);
		_exit(77);
	}
	return pid;
}

/* main() asks for its status. */
static bool has_ended(pid_t pid)
{
	siginfo_t info = { 0 };

	return waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid;
}

/* Until the threads are where they stay. */
static int attach(struct lull_python **py, pid_t pid, struct lull_err *err)
{
	u64 begin_ns = lull_now_ns(), attach_ns;
	int rc;

	for (;;) {
		struct seen seen = { 0 };

		attach_ns = lull_now_ns();
		rc = lull_python_attach(py, pid, 0, err);
		attach_ns = lull_now_ns() - attach_ns;
		if (!rc)
			rc = lull_python_sample(*py, on_stack, &seen, err);
		if (!rc && seen.n_stacks == N_THREADS && seen.n_frames >= MIN_FRAMES)
			break;
		lull_python_free(*py);
		*py = NULL;
		if (has_ended(pid) || lull_now_ns() - begin_ns > MAX_WAIT_S * LULL_NS_PER_S)
			return rc ? rc
				  : lull_fail(err, LULL_E_NOT_FOUND, "its threads are not seen");
		usleep(100000);
	}
	printf("python %s\n", lull_python_version_text(*py));
	printf("attach %.2f ms\n", (f64)attach_ns / 1e6);
	return LULL_OK;
}

/* A place in the memory of the process. */
static void *readable_place(pid_t pid)
{
	unsigned long long at = 0;
	char path[64];
	FILE *maps;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	maps = fopen(path, "r");
	if (maps && fscanf(maps, "%llx-", &at) != 1)
		at = 0;
	if (maps)
		fclose(maps);
	return (void *)(uintptr_t)at;
}

static void read_once(pid_t pid, void *place)
{
	u64 value;
	const struct iovec to = { &value, sizeof(value) }, from = { place, sizeof(value) };

	if (process_vm_readv(pid, &to, 1, &from, 1, 0) != sizeof(value)) {
		perror("bench_python: process_vm_readv");
		exit(1);
	}
}

static int measure(pid_t pid, struct lull_err *err)
{
	static u64 dur_ns[N_SAMPLES], read_ns[N_SAMPLES];
	struct lull_python *py = NULL;
	struct seen seen = { 0 };
	int rc = attach(&py, pid, err);
	void *place = readable_place(pid);

	for (int i = 0; i < N_SAMPLES && !rc; i++) {
		u64 begin_ns = lull_now_ns();

		read_once(pid, place);
		read_ns[i] = lull_now_ns() - begin_ns;
		begin_ns = lull_now_ns();
		rc = lull_python_sample(py, on_stack, &seen, err);
		dur_ns[i] = lull_now_ns() - begin_ns;
	}
	qsort(dur_ns, N_SAMPLES, sizeof(*dur_ns), by_value);
	qsort(read_ns, N_SAMPLES, sizeof(*read_ns), by_value);
	if (!rc && seen.n_frames < (u64)N_SAMPLES * MIN_FRAMES)
		rc = lull_fail(err, LULL_E_NOT_FOUND, "%.1f threads and %.1f frames were seen",
			       (f64)seen.n_stacks / N_SAMPLES, (f64)seen.n_frames / N_SAMPLES);
	if (!rc) {
		printf("sample %.1f us (%.1f threads, %.1f frames; %.1f %% torn)\n",
		       (f64)dur_ns[N_SAMPLES / 2] / 1e3, (f64)seen.n_stacks / N_SAMPLES,
		       (f64)seen.n_frames / N_SAMPLES,
		       100.0 * (f64)lull_python_n_torn(py) / N_SAMPLES);
		printf("read of its memory %.2f us\n", (f64)read_ns[N_SAMPLES / 2] / 1e3);
	}
	lull_python_free(py);
	return rc;
}

int main(int argc, char **argv)
{
	struct lull_err err;
	pid_t pid = start(argc > 1 ? argv[1] : "python3");
	int rc = measure(pid, &err), status = 0;

	kill(pid, SIGKILL);
	if (waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		printf("SKIPPED: no Python here\n");
		return 77;
	}
	if (rc)
		fprintf(stderr, "bench_python: %s\n", err.msg);
	return rc ? 1 : 0;
}
