#include "base/own_stack.h"

#include <pthread.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <ucontext.h>

/* What Linux gives by default; only what is used takes memory. */
#define STACK_BYTES (8u << 20)

/* Ten times as much as any command was seen to use. */
#define ENOUGH_BYTES (1u << 20)

/* Of the one call; makecontext() passes no pointers. */
static struct {
	int (*run)(int argc, char **argv);
	int argc;
	char **argv;
	int status;
	ucontext_t before, inside;
} call;

static void enter(void)
{
	call.status = call.run(call.argc, call.argv);
}

/* Threads get as much as the limit says. */
static void widen_threads(void)
{
	pthread_attr_t attr;

	if (pthread_attr_init(&attr) != 0)
		return;
	if (pthread_attr_setstacksize(&attr, STACK_BYTES) == 0)
		pthread_setattr_default_np(&attr);
	pthread_attr_destroy(&attr);
}

int lull_own_stack_run(int (*run)(int argc, char **argv), int argc, char **argv)
{
	struct rlimit limit;
	void *stack;

	if (getrlimit(RLIMIT_STACK, &limit) != 0 || limit.rlim_cur >= ENOUGH_BYTES)
		return run(argc, argv);
	stack = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
	if (stack == MAP_FAILED || getcontext(&call.inside) != 0)
		return run(argc, argv);
	widen_threads();
	call.run = run;
	call.argc = argc;
	call.argv = argv;
	call.inside.uc_stack.ss_sp = stack;
	call.inside.uc_stack.ss_size = STACK_BYTES;
	call.inside.uc_link = &call.before;
	makecontext(&call.inside, enter, 0);
	swapcontext(&call.before, &call.inside);
	return call.status;
}
