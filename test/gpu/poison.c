/*
 * poison - a library for LD_PRELOAD: what libcupti frees is kept for a while, filled with a
 * pattern, so that whoever goes on using it falls at once and not some day.
 *
 * With `cuptiFinalize()` at the end of a call of CUDA, as CUPTI's manual wants it, the fourth
 * leaving killed a training loop on an H200 (CUDA 13.0): the call that ends goes on with memory
 * that was freed. See src/agent/cuda/cuda_attach.c. At exit it says on stderr how much it poisoned.
 */
#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#define N_KEPT	16384u
#define PATTERN 0xa5

static _Atomic(void *) kept[N_KEPT];
static atomic_uint n_kept;
static _Atomic uintptr_t from, to; /* where libcupti lies */

static int visit(struct dl_phdr_info *file, size_t size, void *unused)
{
	(void)size;
	(void)unused;
	if (!strstr(file->dlpi_name, "libcupti.so"))
		return 0;
	for (int i = 0; i < file->dlpi_phnum; i++) {
		const ElfW(Phdr) *part = &file->dlpi_phdr[i];

		if (part->p_type == PT_LOAD && (part->p_flags & PF_X)) {
			from = file->dlpi_addr + part->p_vaddr;
			to = from + part->p_memsz;
		}
	}
	return 1;
}

/* cuptiFinalize() is looked up by dlsym, so its library is found when it is asked for. */
void *dlopen(const char *path, int flags)
{
	static void *(*real)(const char *, int);
	void *handle;

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "dlopen");
	handle = real(path, flags);
	if (!to)
		dl_iterate_phdr(visit, NULL);
	return handle;
}

void free(void *at)
{
	static void (*real)(void *);
	uintptr_t caller = (uintptr_t)__builtin_return_address(0);

	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "free");
	if (at && caller >= from && caller < to) {
		memset(at, PATTERN, malloc_usable_size(at));
		at = atomic_exchange(&kept[atomic_fetch_add(&n_kept, 1) % N_KEPT], at);
	}
	real(at);
}

__attribute__((destructor)) static void tell(void)
{
	fprintf(stderr, "poisoned=%u\n", n_kept);
}
