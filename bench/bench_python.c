/*
 * bench_python - what a look at the Python stacks of a process costs the recorder.
 *
 *	make build/bench/bench_python && build/bench/bench_python [PYTHON]	(default: python3)
 *
 * Starts an interpreter with three threads deep in recursion and takes their stacks many times, as
 * the recorder does a hundred times a second. The interpreter is not stopped. Each line is "name
 * value unit"; the time is the median.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time.h"
#include "launch/python.h"

#define N_SAMPLES 5000

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
		_exit(127);
	}
	sleep(1); /* until the threads are where they stay */
	return pid;
}

static int measure(pid_t pid, struct lull_err *err)
{
	static u64 dur_ns[N_SAMPLES];
	struct seen seen = { 0 };
	struct lull_python *py;
	u64 begin_ns = lull_now_ns();
	int rc = lull_python_attach(&py, pid, 0, err);

	if (rc)
		return rc;
	printf("python %s\n", lull_python_version_text(py));
	printf("attach %.2f ms\n", (f64)(lull_now_ns() - begin_ns) / 1e6);
	for (int i = 0; i < N_SAMPLES && !rc; i++) {
		begin_ns = lull_now_ns();
		rc = lull_python_sample(py, on_stack, &seen, err);
		dur_ns[i] = lull_now_ns() - begin_ns;
	}
	qsort(dur_ns, N_SAMPLES, sizeof(*dur_ns), by_value);
	if (!rc)
		printf("sample %.1f us (%.1f threads, %.1f frames; %.1f %% torn)\n",
		       (f64)dur_ns[N_SAMPLES / 2] / 1e3, (f64)seen.n_stacks / N_SAMPLES,
		       (f64)seen.n_frames / N_SAMPLES,
		       100.0 * (f64)lull_python_n_torn(py) / N_SAMPLES);
	lull_python_free(py);
	return rc;
}

int main(int argc, char **argv)
{
	struct lull_err err;
	pid_t pid = start(argc > 1 ? argv[1] : "python3");
	int rc = measure(pid, &err);

	if (rc)
		fprintf(stderr, "bench_python: %s\n", err.msg);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return rc ? 1 : 0;
}
