/*
 * bench_unwind - what a frame costs: unwound from known places, from unknown ones, interned, named.
 *
 *	make build/bench/bench_unwind && build/bench/bench_unwind
 *
 * Compiles test/data/capture.c without frame pointers, lets it capture itself below 40 recursive
 * calls and a qsort callback, and measures on that stack of some 55 frames; beside known places, a
 * copy of 8 KiB, which the kernel makes of the stack for each sample. The least of some rounds
 * counts. Fails if the stack is not whole or half of the addresses have no name. Run from the root
 * of the tree.
 */
#include <stdio.h>

#include "base/time.h"
#include "support/capture.h"
#include "support/program.h"
#include "symbol/resolve.h"

#define N_ROUNDS    200
#define N_HITS	    100 /* some tenths of a millisecond: short enough not to be interrupted */
#define N_MISSES    200
#define MIN_FRAMES  40
#define MIN_PLACES  10 /* recursive calls are of one place */
#define STACK_BYTES 8192

static bool make_capture(struct capture *c, const char *dir, const char *mode)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/out", dir);
	return !program_run("cc -O2 -g -fomit-frame-pointer -D_GNU_SOURCE -iquote src "
			    "test/data/capture.c -pthread "
			    "-o %s/capture && %s/capture %s %s",
			    dir, dir, mode, path) &&
	       capture_load(c, path);
}

static void fail(const char *what, u64 found, u64 of)
{
	fprintf(stderr, "bench_unwind: %s: %llu of %llu\n", what, (unsigned long long)found,
		(unsigned long long)of);
	exit(1);
}

/* Nanoseconds for N_HITS copies of a stack. */
static u64 copy_stacks(void)
{
	static char from[STACK_BYTES], to[STACK_BYTES];
	u64 begin_ns = lull_now_ns();

	for (int i = 0; i < N_HITS; i++) {
		memcpy(to, from, sizeof(to));
		__asm__ volatile("" ::"r"(to) : "memory");
	}
	return lull_now_ns() - begin_ns;
}

static u64 unwind_stacks(struct capture *c)
{
	u64 begin_ns = lull_now_ns();

	for (int i = 0; i < N_HITS; i++)
		capture_unwind(c);
	return lull_now_ns() - begin_ns;
}

static void bench_hits(struct capture *c)
{
	u64 least_ns = UINT64_MAX, copy_ns = UINT64_MAX;

	capture_unwind(c);
	if (c->found.n < MIN_FRAMES || c->found.cut)
		fail("frames of a stack were found", c->found.n, MIN_FRAMES);
	for (int i = 0; i < N_ROUNDS; i++) {
		u64 copied_ns = copy_stacks(), ns = unwind_stacks(c);

		copy_ns = copied_ns < copy_ns ? copied_ns : copy_ns;
		least_ns = ns < least_ns ? ns : least_ns;
	}
	printf("unwind, place known      %7.1f ns/frame  (%zu frames, cut %d)\n",
	       (double)least_ns / (double)(N_HITS * c->found.n), c->found.n, (int)c->found.cut);
	printf("copy of 8 KiB            %7.1f ns\n", (double)copy_ns / N_HITS);
}

static void bench_misses(struct capture *c)
{
	u64 n_misses = 0, begin_ns = lull_now_ns();

	for (int i = 0; i < N_MISSES; i++) {
		lull_unwind_release(&c->unwind);
		lull_unwind_init(&c->unwind);
		capture_unwind(c);
		n_misses += c->unwind.cfi.n_misses;
	}
	if (n_misses < (u64)N_MISSES * MIN_PLACES)
		fail("places were looked up", n_misses, (u64)N_MISSES * MIN_PLACES);
	printf("unwind, place unknown    %7.1f ns/frame\n",
	       (double)(lull_now_ns() - begin_ns) / (double)n_misses);
}

/*
 * As above, with files that were only just opened, so that libdw has seen nothing of their tables
 * either.
 */
static void bench_cold(const char *dir)
{
	u64 n_misses = 0, sum_ns = 0;
	bool is_ok = true;
	char path[128];

	snprintf(path, sizeof(path), "%s/out", dir);
	for (int i = 0; i < N_MISSES && is_ok; i++) {
		struct capture c;
		u64 begin_ns;

		is_ok = capture_load(&c, path);
		begin_ns = lull_now_ns();
		if (is_ok)
			capture_unwind(&c);
		sum_ns += lull_now_ns() - begin_ns;
		n_misses += c.unwind.cfi.n_misses;
		capture_release(&c);
	}
	if (!is_ok || !n_misses)
		fail("places of new files were looked up", n_misses, N_MISSES);
	printf("unwind, file unknown     %7.1f ns/frame\n", (double)sum_ns / (double)n_misses);
}

/* Name every fourth byte of the code of the main program, as if each had been sampled. */
static void bench_resolve(struct capture *c)
{
	struct lull_debug_paths paths = { 0 };
	struct lull_symbol out[LULL_MAX_INLINED];
	struct lull_elf *elf = lull_files_get(&c->files, c->pcs[c->found.n - 1].file_ix)->elf;
	const struct lull_elf_segment *code = elf->segments.at;
	struct lull_resolver r;
	u64 n = 0, n_named = 0, begin_ns = lull_now_ns();

	lull_resolver_init(&r, &paths);
	lull_resolver_use(&r, elf);
	for (u64 vaddr = code->vaddr; vaddr < code->vaddr + code->size_bytes; vaddr += 4, n++)
		n_named += lull_resolver_find(&r, vaddr, out) > 0;
	if (n_named < n / 2 || !n)
		fail("addresses have a name", n_named, n);
	printf("resolve                  %7.1f ns/address (%llu addresses)\n",
	       (double)(lull_now_ns() - begin_ns) / (double)n, (unsigned long long)n);
	lull_resolver_release(&r);
}

int main(void)
{
	struct capture c;
	char dir[64];
	bool is_ok;

	program_make_dir(dir);
	is_ok = make_capture(&c, dir, "deep");
	if (is_ok) {
		bench_hits(&c);
		bench_misses(&c);
		bench_cold(dir);
		bench_resolve(&c);
	}
	if (!is_ok)
		fprintf(stderr, "bench_unwind: test/data/capture.c cannot be built or run\n");
	capture_release(&c);
	program_remove_dir(dir);
	return is_ok ? 0 : 1;
}
