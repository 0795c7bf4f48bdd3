/*
 * train_cuda - a small network trained on a GPU: a program to look at with lull.
 *
 *	train_cuda [--fixed] [--steps=N] [--hidden=N] [--slow=N]
 *
 * By default the training thread prepares each batch, copies it from pageable memory, and waits for
 * the device at the end of each step, so that host and device never work at the same time. With
 * --fixed another thread prepares the batches in pinned memory, a second stream copies them, and
 * the training thread waits only for data. The results are the same to the last bit. --slow=N makes
 * step N wait a quarter of a second for its batch, as a slow file server would.
 *
 * libcuda is opened at run time and the kernels are PTX text (train_cuda_ptx.h), so that this
 * builds without CUDA and runs on any GPU, or on the simulated device: LD_LIBRARY_PATH=build/sim.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lull.h"
#include "train_cuda_ptx.h"

#define BATCH	      64
#define N_INPUTS      512
#define N_OUTPUTS     16
#define N_BUFFERS     2	    /* batches under way */
#define N_SMOOTHINGS  12    /* what makes a batch expensive to prepare */
#define LEARNING_RATE 32.0f /* shared by the hidden units */
#define TILE	      16    /* threads of a block in x and y */
#define BLOCK	      256

/* ---- CUDA ---- */

#define CUDA_CALLS(CALL)                                                                    \
	CALL(cuInit, init, (unsigned))                                                      \
	CALL(cuDeviceGet, get_device, (int *, int))                                         \
	CALL(cuDeviceGetName, get_name, (char *, int, int))                                 \
	CALL(cuDevicePrimaryCtxRetain, retain, (void **, int))                              \
	CALL(cuCtxSetCurrent, set_current, (void *))                                        \
	CALL(cuCtxSynchronize, synchronize, (void))                                         \
	CALL(cuModuleLoadData, load, (void **, const void *))                               \
	CALL(cuModuleGetFunction, get_function, (void **, void *, const char *))            \
	CALL(cuLaunchKernel, launch,                                                        \
	     (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
	      void *, void **, void **))                                                    \
	CALL(cuMemAlloc_v2, alloc, (uint64_t *, size_t))                                    \
	CALL(cuMemAllocHost_v2, alloc_pinned, (void **, size_t))                            \
	CALL(cuMemcpyHtoD_v2, copy_in, (uint64_t, const void *, size_t))                    \
	CALL(cuMemcpyHtoDAsync_v2, copy_in_async, (uint64_t, const void *, size_t, void *)) \
	CALL(cuMemcpyDtoH_v2, copy_out, (void *, uint64_t, size_t))                         \
	CALL(cuStreamCreate, new_stream, (void **, unsigned))                               \
	CALL(cuStreamWaitEvent, stream_wait, (void *, void *, unsigned))                    \
	CALL(cuEventCreate, new_event, (void **, unsigned))                                 \
	CALL(cuEventRecord, record_event, (void *, void *))                                 \
	CALL(cuEventSynchronize, wait_event, (void *))                                      \
	CALL(cuGetErrorString, error_string, (int, const char **))

#define STREAM_NON_BLOCKING  1u
#define EVENT_DISABLE_TIMING 2u

static struct {
#define CALL(symbol, name, params) int(*name) params;
	CUDA_CALLS(CALL)
#undef CALL
	void *context;
	void *matmul, *relu, *relu_backward, *axpy;
} cuda;

static void check(int result, const char *what)
{
	const char *text = NULL;

	if (result == 0)
		return;
	cuda.error_string(result, &text);
	fprintf(stderr, "train_cuda: %s: %s\n", what, text ? text : "unknown error");
	exit(1);
}

#define DO(name, ...) check(cuda.name(__VA_ARGS__), #name)

static int find_cuda(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

	if (!library)
		return -1;
#define CALL(symbol, name, params)                      \
	*(void **)&cuda.name = dlsym(library, #symbol); \
	if (!cuda.name)                                 \
		return -1;
	CUDA_CALLS(CALL)
#undef CALL
	return 0;
}

/* Returns true if the device is the simulated one. */
static bool start_cuda(void)
{
	char name[128] = "";
	void *module;
	int device;

	DO(init, 0);
	DO(get_device, &device, 0);
	DO(get_name, name, sizeof(name), device);
	DO(retain, &cuda.context, device);
	DO(set_current, cuda.context);
	DO(load, &module, ptx);
	DO(get_function, &cuda.matmul, module, "matmul");
	DO(get_function, &cuda.relu, module, "relu");
	DO(get_function, &cuda.relu_backward, module, "relu_backward");
	DO(get_function, &cuda.axpy, module, "axpy");
	printf("train_cuda: on %s\n", name);
	return strstr(name, "Simulated") != NULL;
}

/* A matrix on the device, as a kernel reads it. */
struct matrix {
	uint64_t at;
	uint32_t n_rows, n_columns;
	uint32_t row, column; /* distances */
};

static struct matrix new_matrix(uint32_t n_rows, uint32_t n_columns)
{
	struct matrix m = { 0, n_rows, n_columns, n_columns, 1 };

	DO(alloc, &m.at, sizeof(float) * n_rows * n_columns);
	return m;
}

static struct matrix transposed(struct matrix m)
{
	return (struct matrix){ m.at, m.n_columns, m.n_rows, m.column, m.row };
}

static void matmul(struct matrix c, struct matrix a, struct matrix b, void *stream)
{
	void *params[] = { &c.at,	 &a.at,	 &b.at,	    &c.n_rows, &c.n_columns,
			   &a.n_columns, &a.row, &a.column, &b.row,    &b.column };

	DO(launch, cuda.matmul, (c.n_columns + TILE - 1) / TILE, (c.n_rows + TILE - 1) / TILE, 1,
	   TILE, TILE, 1, 0, stream, params, NULL);
}

static void launch_flat(void *function, uint32_t n, void **params, void *stream)
{
	DO(launch, function, (n + BLOCK - 1) / BLOCK, 1, 1, BLOCK, 1, 1, 0, stream, params, NULL);
}

static void relu(struct matrix x, void *stream)
{
	uint32_t n = x.n_rows * x.n_columns;
	void *params[] = { &x.at, &n };

	launch_flat(cuda.relu, n, params, stream);
}

static void relu_backward(struct matrix g, struct matrix x, void *stream)
{
	uint32_t n = g.n_rows * g.n_columns;
	void *params[] = { &g.at, &x.at, &n };

	launch_flat(cuda.relu_backward, n, params, stream);
}

static void axpy(struct matrix y, struct matrix x, float s, void *stream)
{
	uint32_t n = y.n_rows * y.n_columns;
	void *params[] = { &y.at, &x.at, &s, &n };

	launch_flat(cuda.axpy, n, params, stream);
}

/* ---- data ---- */

struct batch {
	float inputs[BATCH][N_INPUTS];
	float wanted[BATCH][N_OUTPUTS];
};

static uint32_t next_random(uint32_t *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 17;
	*state ^= *state << 5;
	return *state;
}

static float random_float(uint32_t *state)
{
	return (float)(next_random(state) >> 8) * (1.0f / 16777216) - 0.5f;
}

/* Noise that is smoothed again and again, and the sums of its parts as what is to be learnt. */
static void prepare_row(float *inputs, float *wanted, uint32_t *random)
{
	for (int i = 0; i < N_INPUTS; i++)
		inputs[i] = random_float(random);
	for (int pass = 0; pass < N_SMOOTHINGS; pass++)
		for (int i = 1; i < N_INPUTS - 1; i++)
			inputs[i] =
				0.25f * inputs[i - 1] + 0.5f * inputs[i] + 0.25f * inputs[i + 1];
	for (int k = 0; k < N_OUTPUTS; k++) {
		wanted[k] = 0;
		for (int i = k; i < N_INPUTS; i += N_OUTPUTS)
			wanted[k] += inputs[i];
	}
}

static void prepare_batch(struct batch *batch, uint32_t *random)
{
	lull_push("prepare_batch");
	for (int i = 0; i < BATCH; i++)
		prepare_row(batch->inputs[i], batch->wanted[i], random);
	lull_pop();
}

/* ---- the network ---- */

struct network {
	struct matrix w1, w2, g1, g2, hidden, hidden_error, out;
	float rate;
};

/* A batch on the device. */
struct loaded {
	uint64_t at;
	void *is_copied, *is_used; /* events */
};

static struct matrix inputs_of(const struct loaded *l)
{
	return (struct matrix){ l->at, BATCH, N_INPUTS, N_INPUTS, 1 };
}

static struct matrix wanted_of(const struct loaded *l)
{
	return (struct matrix){ l->at + offsetof(struct batch, wanted), BATCH, N_OUTPUTS, N_OUTPUTS,
				1 };
}

static void init_weights(struct matrix w, uint32_t *random)
{
	size_t n = (size_t)w.n_rows * w.n_columns;
	float *weights = malloc(n * sizeof(*weights));

	if (!weights)
		exit(1);
	for (size_t i = 0; i < n; i++)
		weights[i] = random_float(random) * 0.1f;
	DO(copy_in, w.at, weights, n * sizeof(*weights));
	free(weights);
}

static void init_network(struct network *n, uint32_t n_hidden)
{
	uint32_t random = 88675123u;

	n->rate = LEARNING_RATE / (float)n_hidden / BATCH;
	n->w1 = new_matrix(N_INPUTS, n_hidden);
	n->w2 = new_matrix(n_hidden, N_OUTPUTS);
	n->g1 = new_matrix(N_INPUTS, n_hidden);
	n->g2 = new_matrix(n_hidden, N_OUTPUTS);
	n->hidden = new_matrix(BATCH, n_hidden);
	n->hidden_error = new_matrix(BATCH, n_hidden);
	n->out = new_matrix(BATCH, N_OUTPUTS);
	init_weights(n->w1, &random);
	init_weights(n->w2, &random);
}

static void train_on(struct network *n, const struct loaded *batch, void *stream)
{
	lull_push("forward");
	matmul(n->hidden, inputs_of(batch), n->w1, stream);
	relu(n->hidden, stream);
	matmul(n->out, n->hidden, n->w2, stream);
	axpy(n->out, wanted_of(batch), -1, stream); /* from here on it is the error */
	lull_pop();
	lull_push("backward");
	matmul(n->g2, transposed(n->hidden), n->out, stream);
	matmul(n->hidden_error, n->out, transposed(n->w2), stream);
	relu_backward(n->hidden_error, n->hidden, stream);
	matmul(n->g1, transposed(inputs_of(batch)), n->hidden_error, stream);
	lull_pop();
	lull_push("optimizer");
	axpy(n->w1, n->g1, -n->rate, stream);
	axpy(n->w2, n->g2, -n->rate, stream);
	lull_pop();
}

/* Mean of the squared errors of the last step. */
static double loss_of(const struct network *n)
{
	static float error[BATCH][N_OUTPUTS];
	double sum = 0;

	DO(copy_out, error, n->out.at, sizeof(error));
	for (int i = 0; i < BATCH; i++)
		for (int k = 0; k < N_OUTPUTS; k++)
			sum += (double)error[i][k] * (double)error[i][k];
	return sum / (BATCH * N_OUTPUTS);
}

/* A number that is the same only if all bits of the weights are. */
static uint32_t checksum(struct matrix w)
{
	size_t n = (size_t)w.n_rows * w.n_columns;
	uint32_t *bits = malloc(n * sizeof(*bits));
	uint32_t sum = 2166136261u;

	if (!bits)
		exit(1);
	DO(copy_out, bits, w.at, n * sizeof(*bits));
	for (size_t i = 0; i < n; i++)
		sum = (sum ^ bits[i]) * 16777619u;
	free(bits);
	return sum;
}

/* ---- as it is: one thread, one thing after another ---- */

static void train_alone(struct network *network, int n_steps, int slow_step)
{
	const struct timespec quarter = { 0, 250000000 };
	struct batch *batch = malloc(sizeof(*batch));
	struct loaded loaded = { 0 };
	uint32_t random = 362436069u;

	if (!batch)
		exit(1);
	DO(alloc, &loaded.at, sizeof(*batch));
	for (int i = 0; i < n_steps; i++) {
		lull_step((unsigned long long)i);
		lull_push("data_load");
		if (i == slow_step)
			nanosleep(&quarter, NULL);
		prepare_batch(batch, &random);
		DO(copy_in, loaded.at, batch, sizeof(*batch));
		lull_pop();
		train_on(network, &loaded, NULL);
		DO(synchronize);
	}
	lull_step_end();
	free(batch);
}

/* ---- repaired: batches come from a thread of their own, through pinned memory ---- */

struct prefetch {
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct batch *batches[N_BUFFERS]; /* pinned */
	struct loaded loaded[N_BUFFERS];
	int n_made, n_taken, n_wanted;
};

/* Wait until the batch that was in this buffer is on the device. */
static void wait_for_buffer(struct prefetch *p, int ix)
{
	pthread_mutex_lock(&p->lock);
	while (ix - p->n_taken >= N_BUFFERS)
		pthread_cond_wait(&p->changed, &p->lock);
	pthread_mutex_unlock(&p->lock);
	if (ix >= N_BUFFERS)
		DO(wait_event, p->loaded[ix % N_BUFFERS].is_copied);
}

static void *run_loader(void *arg)
{
	struct prefetch *p = arg;
	uint32_t random = 362436069u;

	pthread_setname_np(pthread_self(), "loader");
	DO(set_current, cuda.context);
	for (int i = 0; i < p->n_wanted; i++) {
		wait_for_buffer(p, i);
		prepare_batch(p->batches[i % N_BUFFERS], &random);
		pthread_mutex_lock(&p->lock);
		p->n_made++;
		pthread_cond_signal(&p->changed);
		pthread_mutex_unlock(&p->lock);
	}
	return NULL;
}

/* The next batch, on its way to the device; `stream` will wait for it. */
static struct loaded *take_batch(struct prefetch *p, void *copy_stream, void *stream)
{
	int ix = p->n_taken % N_BUFFERS;
	struct loaded *loaded = &p->loaded[ix];

	pthread_mutex_lock(&p->lock);
	while (p->n_made == p->n_taken)
		pthread_cond_wait(&p->changed, &p->lock);
	pthread_mutex_unlock(&p->lock);
	if (p->n_taken >= N_BUFFERS)
		DO(stream_wait, copy_stream, loaded->is_used, 0);
	DO(copy_in_async, loaded->at, p->batches[ix], sizeof(struct batch), copy_stream);
	DO(record_event, loaded->is_copied, copy_stream);
	DO(stream_wait, stream, loaded->is_copied, 0);
	pthread_mutex_lock(&p->lock);
	p->n_taken++;
	pthread_cond_signal(&p->changed);
	pthread_mutex_unlock(&p->lock);
	return loaded;
}

static void start_prefetch(struct prefetch *p, int n_steps)
{
	p->n_wanted = n_steps;
	for (int i = 0; i < N_BUFFERS; i++) {
		DO(alloc_pinned, (void **)&p->batches[i], sizeof(struct batch));
		DO(alloc, &p->loaded[i].at, sizeof(struct batch));
		DO(new_event, &p->loaded[i].is_copied, EVENT_DISABLE_TIMING);
		DO(new_event, &p->loaded[i].is_used, EVENT_DISABLE_TIMING);
	}
	if (pthread_create(&p->thread, NULL, run_loader, p) != 0)
		exit(1);
}

static void train_prefetched(struct network *network, int n_steps)
{
	static struct prefetch p = { .lock = PTHREAD_MUTEX_INITIALIZER,
				     .changed = PTHREAD_COND_INITIALIZER };
	void *stream, *copy_stream;

	DO(new_stream, &stream, STREAM_NON_BLOCKING);
	DO(new_stream, &copy_stream, STREAM_NON_BLOCKING);
	start_prefetch(&p, n_steps);
	for (int i = 0; i < n_steps; i++) {
		struct loaded *batch;

		lull_step((unsigned long long)i);
		lull_push("data_load");
		batch = take_batch(&p, copy_stream, stream);
		lull_pop();
		train_on(network, batch, stream);
		DO(record_event, batch->is_used, stream);
	}
	lull_step_end();
	pthread_join(p.thread, NULL);
	DO(synchronize);
}

/* ---- */

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

struct options {
	bool is_fixed;
	int n_steps;
	int n_hidden;  /* 0 = as suits the device */
	int slow_step; /* -1 = none */
};

static int parse(int argc, char **argv, struct options *o)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--fixed") == 0)
			o->is_fixed = true;
		else if (strncmp(argv[i], "--steps=", 8) == 0)
			o->n_steps = atoi(argv[i] + 8);
		else if (strncmp(argv[i], "--hidden=", 9) == 0)
			o->n_hidden = atoi(argv[i] + 9);
		else if (strncmp(argv[i], "--slow=", 7) == 0)
			o->slow_step = atoi(argv[i] + 7);
		else
			return -1;
	}
	return o->n_steps > 0 && o->n_hidden >= 0 ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct options o = { .n_steps = 200, .slow_step = -1 };
	struct network network;
	bool is_simulated;
	double begin_s, ms;

	if (parse(argc, argv, &o) != 0) {
		fputs("usage: train_cuda [--fixed] [--steps=N] [--hidden=N] [--slow=N]\n", stderr);
		return 2;
	}
	if (find_cuda() != 0) {
		fputs("train_cuda: no libcuda.so.1; LD_LIBRARY_PATH=build/sim simulates one\n",
		      stderr);
		return 1;
	}
	is_simulated = start_cuda();
	if (!o.n_hidden)
		o.n_hidden = is_simulated ? 64 : 8192;
	init_network(&network, (uint32_t)o.n_hidden);
	DO(synchronize);
	begin_s = now_s();
	if (o.is_fixed)
		train_prefetched(&network, o.n_steps);
	else
		train_alone(&network, o.n_steps, o.slow_step);
	ms = (now_s() - begin_s) * 1e3 / o.n_steps;
	printf("RESULT steps=%d ms_per_step=%.3f loss=%.6f checksum=%08x\n", o.n_steps, ms,
	       loss_of(&network), checksum(network.w1) ^ checksum(network.w2));
	return 0;
}
