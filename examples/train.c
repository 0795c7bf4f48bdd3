/*
 * train - a small training loop, slow in the way that training loops are: it waits for its data.
 *
 *	train [--prefetch] [--steps=N] [--data=FILE]
 *
 * Default: 300 steps, and a file next to the program, which is created if it does not exist.
 *
 * A network with one hidden layer learns to classify ten kinds of pictures. The pictures are in a
 * compressed file; a batch is read, decompressed, smoothed, rotated a little and scaled down before
 * the network gets it. Without --prefetch the training thread does all of this itself, between two
 * steps. With it, a loader thread prepares the next batch at the same time: the same numbers in the
 * same order, so the loss at the end is the same to the last digit.
 *
 * Steps and ranges are named with lull.h; without a profiler those calls do nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <lull.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define PICTURE_SIDE   96 /* pixels, as stored */
#define PICTURE_PIXELS (PICTURE_SIDE * PICTURE_SIDE)
#define INPUT_SIDE     32 /* as the network sees it */
#define N_INPUTS       (INPUT_SIDE * INPUT_SIDE)
#define N_HIDDEN       256
#define N_KINDS	       10
#define N_PICTURES     1024
#define BATCH	       64
#define N_BUFFERS      2 /* one in use, one being prepared */
#define LEARNING_RATE  0.05f

/* Kept as functions of their own, so that a profile shows them by name. */
#define STAGE __attribute__((noinline))

/* ---- the data: one record per picture, a label and its pixels as (count, value) pairs ---- */

struct record {
	uint16_t n_runs;
	uint8_t label;
	uint8_t runs[2 * PICTURE_PIXELS];
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
	return (float)(next_random(state) >> 8) * 0x1p-24f;
}

/* Stripes whose direction is the label, with noise. */
static void draw(uint8_t *pixels, int label, uint32_t *random)
{
	float angle = (float)label * (float)M_PI / N_KINDS;
	float dx = cosf(angle) * 0.35f, dy = sinf(angle) * 0.35f, phase = random_float(random) * 6;

	for (int y = 0; y < PICTURE_SIDE; y++) {
		for (int x = 0; x < PICTURE_SIDE; x++) {
			float wave = sinf((float)x * dx + (float)y * dy + phase);
			int noise = (int)(next_random(random) % 64);

			pixels[y * PICTURE_SIDE + x] =
				(uint8_t)((int)(wave * 90 + 96 + (float)noise) & 0xf0);
		}
	}
}

static void pack(struct record *record, const uint8_t *pixels)
{
	int n = 0;

	for (int i = 0; i < PICTURE_PIXELS;) {
		int run = 1;

		while (run < 255 && i + run < PICTURE_PIXELS && pixels[i + run] == pixels[i])
			run++;
		record->runs[2 * n] = (uint8_t)run;
		record->runs[2 * n + 1] = pixels[i];
		i += run;
		n++;
	}
	record->n_runs = (uint16_t)n;
}

static int make_data(const char *path)
{
	static uint8_t pixels[PICTURE_PIXELS];
	static struct record record;
	uint32_t random = 2463534242u;
	FILE *f = fopen(path, "wb");

	if (!f)
		return -1;
	for (int i = 0; i < N_PICTURES; i++) {
		record.label = (uint8_t)(next_random(&random) % N_KINDS);
		draw(pixels, record.label, &random);
		pack(&record, pixels);
		fwrite(&record, sizeof(record), 1, f);
	}
	return fclose(f);
}

/* ---- loading: from the file to what the network takes ---- */

struct batch {
	float inputs[BATCH][N_INPUTS];
	uint8_t labels[BATCH];
};

STAGE static void read_picture(int fd, int ix, struct record *record)
{
	if (pread(fd, record, sizeof(*record), (off_t)ix * (off_t)sizeof(*record)) !=
	    sizeof(*record)) {
		perror("train: reading a picture");
		exit(1);
	}
}

STAGE static void unpack(const struct record *record, float *pixels)
{
	int at = 0;

	for (int i = 0; i < record->n_runs; i++)
		for (int k = 0; k < record->runs[2 * i] && at < PICTURE_PIXELS; k++)
			pixels[at++] = (float)record->runs[2 * i + 1] * (1.0f / 255);
}

STAGE static void smooth(const float *from, float *to)
{
	memcpy(to, from, sizeof(float) * PICTURE_PIXELS);
	for (int y = 1; y < PICTURE_SIDE - 1; y++) {
		for (int x = 1; x < PICTURE_SIDE - 1; x++) {
			const float *p = from + y * PICTURE_SIDE + x;
			float sum = 0;

			for (int row = -1; row <= 1; row++)
				sum += p[row * PICTURE_SIDE - 1] + 2 * p[row * PICTURE_SIDE] +
				       p[row * PICTURE_SIDE + 1];
			to[y * PICTURE_SIDE + x] = sum * (1.0f / 12);
		}
	}
}

/* Turn by a few degrees and shrink: each input is the mean of nine places of the turned picture. */
STAGE static void turn_and_shrink(const float *from, float *to, float angle)
{
	const float middle = PICTURE_SIDE / 2.0f, step = (float)PICTURE_SIDE / INPUT_SIDE;
	float c = cosf(angle), s = sinf(angle);

	for (int i = 0; i < N_INPUTS; i++) {
		float sum = 0;

		for (int k = 0; k < 9; k++) {
			float x = (float)(i % INPUT_SIDE) * step + (float)(k % 3) - middle;
			float y = (float)(i / INPUT_SIDE) * step + (float)(k / 3) - middle;
			int px = (int)(c * x - s * y + middle), py = (int)(s * x + c * y + middle);

			if (px >= 0 && px < PICTURE_SIDE && py >= 0 && py < PICTURE_SIDE)
				sum += from[py * PICTURE_SIDE + px];
		}
		to[i] = sum * (1.0f / 9) - 0.5f;
	}
}

struct loader {
	int fd;
	uint32_t random;
	int next_picture;
	struct record record;
	float pixels[PICTURE_PIXELS], smoothed[PICTURE_PIXELS];
};

static void prepare_batch(struct loader *loader, struct batch *batch)
{
	lull_push("prepare_batch");
	for (int i = 0; i < BATCH; i++) {
		read_picture(loader->fd, loader->next_picture, &loader->record);
		unpack(&loader->record, loader->pixels);
		smooth(loader->pixels, loader->smoothed);
		smooth(loader->smoothed, loader->pixels);
		turn_and_shrink(loader->pixels, batch->inputs[i],
				(random_float(&loader->random) - 0.5f) * 0.2f);
		batch->labels[i] = loader->record.label;
		loader->next_picture = (loader->next_picture + 1) % N_PICTURES;
	}
	lull_pop();
}

/* ---- the fix: a thread that is one batch ahead ---- */

struct prefetch {
	struct loader *loader;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct batch batches[N_BUFFERS];
	int n_made, n_used, n_wanted; /* batches so far, and in all */
};

static void *run_loader(void *arg)
{
	struct prefetch *p = arg;

	pthread_setname_np(pthread_self(), "loader");
	for (int i = 0; i < p->n_wanted; i++) {
		pthread_mutex_lock(&p->lock);
		while (p->n_made - p->n_used == N_BUFFERS)
			pthread_cond_wait(&p->changed, &p->lock);
		pthread_mutex_unlock(&p->lock);
		prepare_batch(p->loader, &p->batches[i % N_BUFFERS]);
		pthread_mutex_lock(&p->lock);
		p->n_made++;
		pthread_cond_signal(&p->changed);
		pthread_mutex_unlock(&p->lock);
	}
	return NULL;
}

static const struct batch *take_batch(struct prefetch *p)
{
	const struct batch *batch = &p->batches[p->n_used % N_BUFFERS];

	pthread_mutex_lock(&p->lock);
	while (p->n_made == p->n_used)
		pthread_cond_wait(&p->changed, &p->lock);
	pthread_mutex_unlock(&p->lock);
	return batch;
}

static void give_back(struct prefetch *p)
{
	pthread_mutex_lock(&p->lock);
	p->n_used++;
	pthread_cond_signal(&p->changed);
	pthread_mutex_unlock(&p->lock);
}

/* ---- the network ---- */

struct network {
	float w1[N_INPUTS][N_HIDDEN], w2[N_HIDDEN][N_KINDS];
	float g1[N_INPUTS][N_HIDDEN], g2[N_HIDDEN][N_KINDS];
	float hidden[BATCH][N_HIDDEN], out[BATCH][N_KINDS];
};

static void init_network(struct network *n)
{
	uint32_t random = 88675123u;

	for (int i = 0; i < N_INPUTS; i++)
		for (int j = 0; j < N_HIDDEN; j++)
			n->w1[i][j] = (random_float(&random) - 0.5f) * 0.1f;
	for (int j = 0; j < N_HIDDEN; j++)
		for (int k = 0; k < N_KINDS; k++)
			n->w2[j][k] = (random_float(&random) - 0.5f) * 0.1f;
}

STAGE static void forward(struct network *n, const struct batch *batch)
{
	memset(n->hidden, 0, sizeof(n->hidden));
	memset(n->out, 0, sizeof(n->out));
	for (int b = 0; b < BATCH; b++) {
		float *restrict hidden = n->hidden[b];

		for (int i = 0; i < N_INPUTS; i++) {
			const float *restrict weights = n->w1[i];
			float x = batch->inputs[b][i];

			for (int j = 0; j < N_HIDDEN; j++)
				hidden[j] += x * weights[j];
		}
		for (int j = 0; j < N_HIDDEN; j++) {
			hidden[j] = hidden[j] > 0 ? hidden[j] : 0;
			for (int k = 0; k < N_KINDS; k++)
				n->out[b][k] += hidden[j] * n->w2[j][k];
		}
	}
}

/* Turns the outputs into errors; returns the mean loss. */
static float softmax_loss(struct network *n, const struct batch *batch)
{
	float loss = 0;

	for (int b = 0; b < BATCH; b++) {
		float sum = 0, max = n->out[b][0];

		for (int k = 1; k < N_KINDS; k++)
			max = n->out[b][k] > max ? n->out[b][k] : max;
		for (int k = 0; k < N_KINDS; k++)
			sum += n->out[b][k] = expf(n->out[b][k] - max);
		for (int k = 0; k < N_KINDS; k++)
			n->out[b][k] /= sum;
		loss -= logf(n->out[b][batch->labels[b]] + 1e-9f);
		n->out[b][batch->labels[b]] -= 1;
	}
	return loss / BATCH;
}

STAGE static void backward(struct network *n, const struct batch *batch)
{
	float error[N_HIDDEN];

	memset(n->g1, 0, sizeof(n->g1));
	memset(n->g2, 0, sizeof(n->g2));
	for (int b = 0; b < BATCH; b++) {
		for (int j = 0; j < N_HIDDEN; j++) {
			error[j] = 0;
			for (int k = 0; k < N_KINDS; k++) {
				error[j] += n->out[b][k] * n->w2[j][k];
				n->g2[j][k] += n->out[b][k] * n->hidden[b][j];
			}
			error[j] = n->hidden[b][j] > 0 ? error[j] : 0;
		}
		for (int i = 0; i < N_INPUTS; i++) {
			float *restrict gradients = n->g1[i];
			float x = batch->inputs[b][i];

			for (int j = 0; j < N_HIDDEN; j++)
				gradients[j] += x * error[j];
		}
	}
}

STAGE static void update(struct network *n)
{
	for (int i = 0; i < N_INPUTS; i++)
		for (int j = 0; j < N_HIDDEN; j++)
			n->w1[i][j] -= LEARNING_RATE / BATCH * n->g1[i][j];
	for (int j = 0; j < N_HIDDEN; j++)
		for (int k = 0; k < N_KINDS; k++)
			n->w2[j][k] -= LEARNING_RATE / BATCH * n->g2[j][k];
}

/* ---- the loop ---- */

static float train_on(struct network *network, const struct batch *batch)
{
	float loss;

	lull_push("forward");
	forward(network, batch);
	loss = softmax_loss(network, batch);
	lull_pop();
	lull_push("backward");
	backward(network, batch);
	lull_pop();
	lull_push("optimizer");
	update(network);
	lull_pop();
	return loss;
}

static float train_alone(struct network *network, struct loader *loader, int n_steps)
{
	static struct batch batch;
	float loss = 0;

	for (int i = 0; i < n_steps; i++) {
		lull_step((unsigned long long)i);
		lull_push("data_load");
		prepare_batch(loader, &batch);
		lull_pop();
		loss = train_on(network, &batch);
	}
	lull_step_end();
	return loss;
}

static float train_prefetched(struct network *network, struct loader *loader, int n_steps)
{
	static struct prefetch p = { .lock = PTHREAD_MUTEX_INITIALIZER,
				     .changed = PTHREAD_COND_INITIALIZER };
	float loss = 0;

	p.loader = loader;
	p.n_wanted = n_steps;
	if (pthread_create(&p.thread, NULL, run_loader, &p) != 0) {
		fputs("train: no thread for the loader\n", stderr);
		exit(1);
	}
	for (int i = 0; i < n_steps; i++) {
		const struct batch *batch;

		lull_step((unsigned long long)i);
		lull_push("data_load");
		batch = take_batch(&p);
		lull_pop();
		loss = train_on(network, batch);
		give_back(&p);
	}
	lull_step_end();
	pthread_join(p.thread, NULL);
	return loss;
}

static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

struct options {
	bool is_prefetching;
	int n_steps;
	const char *data;
};

static int parse(int argc, char **argv, struct options *o)
{
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--prefetch") == 0)
			o->is_prefetching = true;
		else if (strncmp(argv[i], "--steps=", 8) == 0)
			o->n_steps = (int)strtol(argv[i] + 8, NULL, 10);
		else if (strncmp(argv[i], "--data=", 7) == 0)
			o->data = argv[i] + 7;
		else
			return -1;
	}
	return o->n_steps > 0 ? 0 : -1;
}

int main(int argc, char **argv)
{
	struct options o = { .n_steps = 300 };
	static struct network network;
	static struct loader loader = { .random = 362436069u };
	char default_data[4096];
	double begin_s;
	float loss;

	snprintf(default_data, sizeof(default_data), "%s.data", argv[0]);
	o.data = default_data;
	if (parse(argc, argv, &o) != 0) {
		fputs("usage: train [--prefetch] [--steps=N] [--data=FILE]\n", stderr);
		return 2;
	}
	if (access(o.data, R_OK) != 0 && make_data(o.data) != 0) {
		fprintf(stderr, "train: making %s: %s\n", o.data, strerror(errno));
		return 1;
	}
	loader.fd = open(o.data, O_RDONLY | O_CLOEXEC);
	init_network(&network);
	begin_s = now_s();
	loss = o.is_prefetching ? train_prefetched(&network, &loader, o.n_steps)
				: train_alone(&network, &loader, o.n_steps);
	printf("train: %d steps, %.1f ms each, loss %.4f\n", o.n_steps,
	       (now_s() - begin_s) * 1e3 / o.n_steps, (double)loss);
	return 0;
}
