/*
 * bench_unwind - what a frame costs: unwound from known places, from unknown ones, interned, named.
 *
 *	make build/bench/bench_unwind && build/bench/bench_unwind
 *
 * Compiles test/data/capture.c without frame pointers, lets it capture itself below 40 recursive
 * calls and a qsort callback, and measures on that stack of some 55 frames. Run from the root of
 * the tree.
 */
#include <stdio.h>

#include "base/time.h"
#include "support/capture.h"
#include "support/program.h"
#include "symbol/resolve.h"

#define N_HITS	 20000
#define N_MISSES 200

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

static void bench_hits(struct capture *c)
{
	u64 begin_ns;

	capture_unwind(c);
	begin_ns = lull_now_ns();
	for (int i = 0; i < N_HITS; i++)
		capture_unwind(c);
	printf("unwind, place known      %7.1f ns/frame  (%zu frames, cut %d)\n",
	       (double)(lull_now_ns() - begin_ns) / (double)(N_HITS * c->found.n), c->found.n,
	       (int)c->found.cut);
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
	u64 n = 0, begin_ns = lull_now_ns();

	lull_resolver_init(&r, &paths);
	lull_resolver_use(&r, elf);
	for (u64 vaddr = code->vaddr; vaddr < code->vaddr + code->size_bytes; vaddr += 4, n++)
		lull_resolver_find(&r, vaddr, out);
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
	capture_release(&c);
	program_remove_dir(dir);
	return is_ok ? 0 : 1;
}
