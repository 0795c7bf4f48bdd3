/*
 * lib_guest: calls the library in every way that could break when somebody stands in between, and checks each
 * result. Exit status 0: all was as it should be; else the line that failed. What it does is counted by
 * test_lib.c, which knows this file.
 */
#include "lib_watched.h"

#include <cerrno>
#include <csetjmp>
#include <csignal>
#include <stdexcept>

#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define CHECK(condition)                  \
	do {                              \
		if (!(condition))         \
			_exit(__LINE__ % 251 + 1); \
	} while (0)

static void values()
{
	struct big in, out;
	struct pair p;
	struct four f;
	float4 v;

	errno = 77;
	CHECK(w_add(2, 3) == 5);
	CHECK(w_many(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20) == 2870);
	CHECK(w_sum(7, 1.5, 2, 3.5, 4, 5.5, 6, 7.5) == 30);
	for (int i = 0; i < 64; i++)
		in.v[i] = i;
	out = w_big(in, 5);
	for (int i = 0; i < 64; i++)
		CHECK(out.v[i] == i + 5);
	p = w_pair(1.5, 2.5f);
	CHECK(p.a == 3 && p.b == 7.5f);
	f = w_four({ 1, 2, 3, 4 });
	CHECK(f.a == 4 && f.b == 3 && f.c == 2 && f.d == 1);
	CHECK(w_long_double(1.25L, 4) == 5);
	v = w_vector(float4{ 1, 2, 3, 4 }, float4{ 5, 6, 7, 8 });
	CHECK(v[0] == 5 && v[1] == 12 && v[2] == 21 && v[3] == 32);
	CHECK(w_jump(3, 4) == 7);
	CHECK(errno == 77);
}

static long recurse(long n)
{
	return n ? w_call(recurse, n - 1) : 0;
}

static long throws(long)
{
	return w_throw(1);
}

/* Destructors on the way have to run. */
struct witness {
	int *n;
	~witness()
	{
		++*n;
	}
};

static int throw_through(int depth, int *n)
{
	witness w{ n };

	if (depth)
		return throw_through(depth - 1, n) + 1;
	return (int)w_call(throws, 0);
}

static void exceptions()
{
	for (int i = 0; i < 50; i++) {
		int n = 0;
		bool is_caught = false;

		try {
			throw_through(3, &n);
		} catch (const std::runtime_error &) {
			is_caught = true;
		}
		CHECK(is_caught && n == 4);
		/* Caught by the very function that called. */
		try {
			w_throw(1);
			CHECK(false);
		} catch (const std::exception &) {
			n++;
		}
		CHECK(n == 5 && w_throw(0) == 7);
	}
}

static jmp_buf target;

static long jumps(long n)
{
	longjmp(target, (int)n);
}

static void jumps_out()
{
	for (volatile int i = 1; i <= 50; i++) {
		int r = setjmp(target);

		if (!r)
			w_call(jumps, i);
		CHECK(r == i || r == 0);
	}
	CHECK(w_add(1, 1) == 2);
}

static long walks(long)
{
	void *frames[64];

	return backtrace(frames, 64);
}

static void *thread(void *)
{
	for (int i = 0; i < 1000; i++)
		CHECK(w_add(i, 1) == i + 1);
	CHECK(recurse(20) == 20);
	return nullptr;
}

static long leaves(long)
{
	pthread_exit(nullptr);
}

static int n_unwound;

static void *leaving(void *)
{
	witness w{ &n_unwound };

	w_call(leaves, 0);
	return nullptr;
}

static void threads()
{
	pthread_t t[4], leaver;

	for (pthread_t &each : t)
		pthread_create(&each, nullptr, thread, nullptr);
	for (pthread_t &each : t)
		pthread_join(each, nullptr);
	pthread_create(&leaver, nullptr, leaving, nullptr);
	pthread_join(leaver, nullptr);
	CHECK(n_unwound == 1);
}

static volatile sig_atomic_t n_signals;

static void on_signal(int)
{
	if (w_add(n_signals, 1) != n_signals + 1)
		_exit(250);
	n_signals = n_signals + 1;
}

static void signals()
{
	struct itimerval timer = { { 0, 500 }, { 0, 500 } }, off = {};
	long n = 0;

	signal(SIGALRM, on_signal);
	setitimer(ITIMER_REAL, &timer, nullptr);
	while (n_signals < 100)
		n = w_add((int)n, 1);
	setitimer(ITIMER_REAL, &off, nullptr);
	CHECK(n > 0);
}

static void forks()
{
	pid_t pid = w_fork();
	int status;

	if (!pid) {
		CHECK(w_add(4, 4) == 8);
		_exit(42);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 42);
	pid = vfork();
	if (!pid) {
		w_add(1, 2);
		_exit(43);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 43);
}

/* Two coroutines whose calls end in the order in which they began. */
static ucontext_t home, first, second;

static long yields(long which)
{
	swapcontext(which ? &second : &first, which ? &first : &second);
	return which;
}

static void run_first()
{
	CHECK(w_call(yields, 0) == 1);
	setcontext(&second);
}

static void run_second()
{
	CHECK(w_call(yields, 1) == 2);
	setcontext(&home);
}

static void coroutines()
{
	static char stacks[2][65536] __attribute__((aligned(16)));
	volatile bool is_back = false;

	getcontext(&home);
	if (is_back)
		return;
	is_back = true;
	getcontext(&first);
	first.uc_stack = { stacks[0], 0, sizeof(stacks[0]) };
	makecontext(&first, run_first, 0);
	getcontext(&second);
	second.uc_stack = { stacks[1], 0, sizeof(stacks[1]) };
	makecontext(&second, run_second, 0);
	setcontext(&first);
}

static void looked_up()
{
	int (*add)(int, int);

	*(void **)&add = dlsym(RTLD_DEFAULT, "w_add");
	CHECK(add && add(5, 6) == 11);
	CHECK(!dlsym(RTLD_DEFAULT, "w_nothing_of_this_name"));
	CHECK(dlerror());
}

static number_fn *const table[] = { w_shared, w_direct, w_told };

static void *calls_by_pointer(void *fn)
{
	CHECK(((number_fn *)fn)(5) == 7);
	return nullptr;
}

/* A file that calls and tells an address may be gone before what it told. */
static number_fn *address_of_plugin()
{
	void *plugin = dlopen("libplugin.so", RTLD_NOW);
	number_fn *(*call_and_tell)(int *n), *told;
	int n = 0;

	CHECK(plugin);
	*(void **)&call_and_tell = dlsym(plugin, "call_and_tell");
	CHECK(call_and_tell);
	told = call_and_tell(&n);
	CHECK(n == 10 * 2);
	CHECK(dlclose(plugin) == 0 && !dlopen("libplugin.so", RTLD_NOW | RTLD_NOLOAD));
	return told;
}

/* Calls of functions whose addresses are taken, too: w_shared 100 times, w_direct 100 + 10 + 3 times. */
static void addresses()
{
	number_fn *volatile shared = w_shared, *volatile direct = w_direct, *volatile told = w_told;
	pthread_t other;
	int n = 0;

	for (int i = 0; i < 100; i++)
		n += w_shared(i) + w_direct(i);
	CHECK(n == 2 * 4950 + 100 + 200);
	/* Addresses are what they were: in data, and in entries that nothing is called through. */
	for (int i = W_SHARED; i <= W_TOLD; i++)
		CHECK(table[i] == w_own(i) && table[i](1) == i + 2);
#ifndef NO_PLT
	CHECK(told == w_own(W_TOLD));
#endif
	/* Or they stand for the function, wherever they go; w_shared may be recorded once more. */
	CHECK(shared == w_shared && direct == w_direct);
	CHECK(shared(1) == 2 && direct(1) == 3 && told(1) == 4);
	CHECK(pthread_create(&other, nullptr, calls_by_pointer, (void *)direct) == 0);
	CHECK(pthread_join(other, nullptr) == 0);
	calls_by_pointer((void *)address_of_plugin());
}

int main(int argc, char **)
{
	values();
	CHECK(recurse(500) == 500);
	exceptions();
	jumps_out();
	CHECK(w_call(walks, 0) > 4);
	threads();
	signals();
	/* Any argument: not here. Emulators do not wipe what a child of fork must not inherit. */
	if (argc == 1)
		forks();
	coroutines();
	looked_up();
	addresses();
	return 0;
}
