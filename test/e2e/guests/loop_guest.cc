/*
 * loop_guest - a loop that leaves the device idle, each time for another reason.
 *
 *	loop_guest HOW [ROUNDS]
 *
 * Each round launches ten kernels, waits for them, and does what HOW says:
 *	sort	sorts on the CPU
 *	lock	takes a lock that another thread holds most of the time
 *	poll	sleeps and asks for an event, again and again
 *	sleep	sleeps
 *	small	copies a thousand numbers one by one
 *	fault	fills memory that it just allocated, and frees it
 *	read	reads a file
 *	net	receives from a socket that another thread is slow to fill
 *	demand	waits for a request that a client makes now and then
 *	queue	waits for a batch that another thread prepares, and copies it
 * Threads that the loop waits for begin when it wants something: it waits for them on any machine,
 * also on one where the loop itself is slow.
 * Status 77: there is no driver.
 */
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <semaphore.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lull.h"

#define CUDA_CALLS(CALL)                                                                    \
	CALL(cuInit, init, (unsigned))                                                      \
	CALL(cuDevicePrimaryCtxRetain, retain, (void **, int))                              \
	CALL(cuCtxSetCurrent, set_current, (void *))                                        \
	CALL(cuCtxSynchronize, synchronize, (void))                                         \
	CALL(cuModuleLoadData, load, (void **, const void *))                               \
	CALL(cuModuleGetFunction, get_function, (void **, void *, const char *))            \
	CALL(cuEventCreate, new_event, (void **, unsigned))                                 \
	CALL(cuEventRecord, record_event, (void *, void *))                                 \
	CALL(cuEventQuery, query_event, (void *))                                           \
	CALL(cuMemAlloc_v2, alloc, (uint64_t *, size_t))                                    \
	CALL(cuMemAllocHost_v2, alloc_host, (void **, size_t))                              \
	CALL(cuMemcpyHtoDAsync_v2, copy_in, (uint64_t, const void *, size_t, void *))       \
	CALL(cuLaunchKernel, launch,                                                        \
	     (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, \
	      void *, void **, void **))

#include "support/cuda_guest.h"

#define N_PARTICLES 60000
#define N_SMALL	    1000
#define N_FRESH	    (32u << 20)
#define N_READ	    (24u << 20)
#define N_BATCH	    (1u << 20)

static void *kernel, *event;
static uint64_t device_memory;
static float *pinned;
static std::vector<float> particles(N_PARTICLES);
static std::mutex mutex;
static std::condition_variable filled;
static std::atomic<bool> is_over;
static bool is_full;
static sem_t wanted; /* what another thread is to bring */
static int sockets[2];

static void launch_kernels(void)
{
	for (int i = 0; i < 10; i++)
		DO(launch, kernel, 1, 1, 1, 32, 1, 1, 0, nullptr, nullptr, nullptr);
}

/* Time on the CPU, not on the clock. */
__attribute__((noinline)) static void burn(unsigned ms)
{
	struct timespec now, end;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
	end.tv_nsec += 1000000L * ms;
	do
		clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	while ((now.tv_sec - end.tv_sec) * 1000000000L + now.tv_nsec - end.tv_nsec < 0);
}

__attribute__((noinline)) static void sort_particles(void)
{
	unsigned seed = 7;

	for (float &p : particles)
		p = (float)(seed = seed * 1103515245 + 12345);
	std::sort(particles.begin(), particles.end());
}

__attribute__((noinline)) static void update_statistics(void)
{
	while (!is_over) {
		mutex.lock();
		burn(6);
		mutex.unlock();
		usleep(300);
	}
}

__attribute__((noinline)) static void read_statistics(void)
{
	std::lock_guard<std::mutex> lock(mutex);
}

__attribute__((noinline)) static void wait_for_event(void)
{
	DO(record_event, event, nullptr);
	/* On a slow machine the event has happened before the first question. */
	do
		usleep(2000);
	while (cuda.query_event(event) != 0);
}

__attribute__((noinline)) static void copy_numbers(void)
{
	for (int i = 0; i < N_SMALL; i++)
		DO(copy_in, device_memory + 4 * (uint64_t)i, pinned + i, 4, nullptr);
}

__attribute__((noinline)) static void fill_fresh_memory(void)
{
	char *fresh = (char *)malloc(N_FRESH);

	memset(fresh, 1, N_FRESH);
	/* Somebody else might look at it. */
	__asm__ volatile("" : : "r"(fresh) : "memory");
	free(fresh);
}

__attribute__((noinline)) static void read_weights(int file, char *to)
{
	if (pread(file, to, N_READ, 0) != (ssize_t)N_READ)
		exit(1);
}

static void feed_socket(void)
{
	static const char parts[65536] = "";

	while (sem_wait(&wanted), !is_over) {
		usleep(5000);
		if (write(sockets[1], parts, sizeof(parts)) < 0)
			return;
	}
}

__attribute__((noinline)) static void receive_state(void)
{
	static char parts[65536];

	sem_post(&wanted);
	if (recv(sockets[0], parts, sizeof(parts), MSG_WAITALL) != (ssize_t)sizeof(parts))
		exit(1);
}

/* A client on the same machine, which has other things to do. */
static void ask_now_and_then(int port)
{
	struct sockaddr_in to = {};

	to.sin_family = AF_INET;
	to.sin_port = htons((uint16_t)port);
	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	while (sem_wait(&wanted), !is_over) {
		int client = socket(AF_INET, SOCK_STREAM, 0);

		usleep(6000);
		if (connect(client, (struct sockaddr *)&to, sizeof(to)))
			exit(1);
		close(client);
	}
}

__attribute__((noinline)) static void serve_request(int listener)
{
	struct pollfd fds = { listener, POLLIN, 0 };

	sem_post(&wanted);
	if (poll(&fds, 1, -1) != 1)
		exit(1);
	close(accept(listener, nullptr, nullptr));
}

static int listen_here(int *port)
{
	struct sockaddr_in at = {};
	socklen_t size = sizeof(at);
	int listener = socket(AF_INET, SOCK_STREAM, 0);

	at.sin_family = AF_INET;
	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) || listen(listener, 8) ||
	    getsockname(listener, (struct sockaddr *)&at, &size))
		exit(1);
	*port = ntohs(at.sin_port);
	return listener;
}

__attribute__((noinline)) static void decode_images(void)
{
	while (sem_wait(&wanted), !is_over) {
		burn(6);
		std::unique_lock<std::mutex> lock(mutex);
		is_full = true;
		filled.notify_all();
	}
}

__attribute__((noinline)) static void take_batch(void)
{
	std::unique_lock<std::mutex> lock(mutex);

	sem_post(&wanted);
	filled.wait(lock, [] { return is_full; });
	is_full = false;
	lock.unlock();
	DO(copy_in, device_memory, pinned, N_BATCH, nullptr);
}

static void start_cuda(void)
{
	void *context, *module;

	DO(init, 0);
	DO(retain, &context, 0);
	DO(set_current, context);
	DO(load, &module, CUDA_GUEST_PTX);
	DO(get_function, &kernel, module, "nothing");
	DO(new_event, &event, 0);
	DO(alloc, &device_memory, N_BATCH);
	DO(alloc_host, (void **)&pinned, N_BATCH);
}

int main(int argc, char **argv)
{
	const char *how = argc > 1 ? argv[1] : "sort";
	int n_rounds = argc > 2 ? atoi(argv[2]) : 60, port = 0, file = -1;
	std::vector<char> weights(N_READ);
	std::thread other;

	if (cuda_guest_find())
		return 77;
	sem_init(&wanted, 0, 0);
	start_cuda();
	auto is = [&](const char *name) { return !strcmp(how, name); };
	if (is("lock"))
		other = std::thread(update_statistics);
	if (is("queue"))
		other = std::thread(decode_images);
	if (is("net")) {
		if (socketpair(AF_UNIX, SOCK_STREAM, 0, sockets))
			return 1;
		other = std::thread(feed_socket);
	}
	if (is("demand")) {
		file = listen_here(&port);
		other = std::thread(ask_now_and_then, port);
	}
	if (is("read")) {
		char path[] = "loop_guest_XXXXXX";

		file = mkstemp(path);
		unlink(path);
		if (write(file, weights.data(), N_READ) != (ssize_t)N_READ)
			return 1;
	}
	for (int i = 0; i < n_rounds; i++) {
		lull_step((unsigned long long)i);
		launch_kernels();
		if (!is("poll"))
			DO(synchronize, );
		if (is("sort"))
			sort_particles();
		else if (is("lock"))
			read_statistics();
		else if (is("poll"))
			wait_for_event();
		else if (is("sleep"))
			usleep(4000);
		else if (is("small"))
			copy_numbers();
		else if (is("fault"))
			fill_fresh_memory();
		else if (is("read"))
			read_weights(file, weights.data());
		else if (is("net"))
			receive_state();
		else if (is("demand"))
			serve_request(file);
		else if (is("queue"))
			take_batch();
	}
	lull_step_end();
	is_over = true;
	sem_post(&wanted);
	if (other.joinable())
		other.join();
	return 0;
}
