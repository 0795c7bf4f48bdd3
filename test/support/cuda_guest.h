/*
 * cuda_guest - functions of the CUDA driver in a program that tests record, found at run time.
 *
 *	#define CUDA_CALLS(CALL) \
 *		CALL(cuInit, init, (unsigned))
 *	#include "support/cuda_guest.h"
 *	...
 *	if (cuda_guest_find())
 *		return 77;	(there is no CUDA: skipped)
 *	DO(init, 0);		(ends the program if it fails, and says which call it was)
 */
#ifndef LULL_TEST_CUDA_GUEST_H
#define LULL_TEST_CUDA_GUEST_H

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>

static struct {
#define CALL(symbol, name, params) int(*name) params;
	CUDA_CALLS(CALL)
#undef CALL
} cuda;

/* A module with a kernel of no parameters that does nothing, "nothing". */
#define CUDA_GUEST_PTX                \
	".version 6.0\n"              \
	".target sm_50\n"             \
	".address_size 64\n"          \
	".visible .entry nothing()\n" \
	"{\n"                         \
	"	ret;\n"                     \
	"}\n"

static inline void cuda_guest_check(int result, const char *what)
{
	if (result != 0) {
		fprintf(stderr, "%s: %s gave %d\n", program_invocation_short_name, what, result);
		exit(1);
	}
}

#define DO(name, ...) cuda_guest_check(cuda.name(__VA_ARGS__), #name)

/* Look all of them up; -1 if there is no driver, or one without some of them. */
static inline int cuda_guest_find(void)
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

/*
 * What the simulated CUPTI says: "on" (calls and kinds that are recorded), "finalized" (how often),
 * "delivered" (records), "unified" (1: unified memory is watched, or was refused). UINT_MAX if it
 * is a real one; 0 as long as it is not loaded.
 */
static inline unsigned cuda_guest_ask(const char *what)
{
	void *library = dlopen("libcupti.so.13", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);
	unsigned (*ask)(const char *what) = NULL;
	unsigned answer = UINT_MAX;

	if (!library)
		return 0;
	*(void **)&ask = dlsym(library, "lull_sim_ask");
	if (ask)
		answer = ask(what);
	dlclose(library);
	return answer;
}

#endif
