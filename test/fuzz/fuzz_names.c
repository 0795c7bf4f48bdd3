/*
 * fuzz_names - throw changed symbol names at the demanglers.
 *
 *	fuzz_names [SECONDS [SEED]]		(default 10 s, seed 1)
 *
 * Names of C++ and of both schemes of Rust are changed: letters that mean something come, go and
 * move, numbers grow, parts are repeated and cut. Whoever compiles a program chooses its names.
 * Built with ASan and UBSan, the judges; nothing may hang. The seed of a failure is the last one
 * printed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/time.h"
#include "base/types.h"
#include "symbol/demangle.h"

#define HANG_S	  30 /* a name takes microseconds */
#define MAX_BYTES 4000
#define N_ROUNDS  1000 /* names between two looks at the clock */

static const char *const names[] = {
	"_RNvCs4X4t9plMPHF_5words8tokenise",
	"_RNvMNtNtCsgEmfK2I1SDS_4core4char7methodsc13is_whitespace",
	"_RNvXs2_NtNtCsjrHSEGnQ3l9_3std4hash6randomNtB5_13DefaultHasherNtNtCsgEmfK2I1SDS_"
	"4core4hash6"
	"Hasher5write",
	"_RNCNvCs4X4t9plMPHF_5words4mains_0",
	"_RIC1aTxRSjQAhj4_PeFUKCjmEuEE.llvm.17",
	"_RINvC1a1bDNtC1c1dp1eB3_EL_E",
	"_ZN5words8tokenise17h0123456789abcdefE",
	"_ZN4core3ptr42drop_in_place$LT$alloc..string..String$GT$17h0123456789abcdefE",
	"_ZN12_GLOBAL__N_14gemmIfLi4EEEvPT_",
};

struct fuzz {
	u64 state;
	char text[MAX_BYTES + 1];
	size_t len;
};

static u64 below(struct fuzz *f, u64 n)
{
	f->state ^= f->state << 13;
	f->state ^= f->state >> 7;
	f->state ^= f->state << 17;
	return f->state % n;
}

/* A letter that the grammars know, mostly. */
static char letter(struct fuzz *f)
{
	static const char known[] = "BBBBINNXYMCKLDFTAQRPOEESZ_0123456789spuaztv$.";

	return below(f, 10) ? known[below(f, sizeof(known) - 1)] : (char)(1 + below(f, 255));
}

/* Put bytes of the name, or of another place of it, between two others. */
static void insert(struct fuzz *f, size_t at, const char *from, size_t n)
{
	char copy[64];

	if (n > sizeof(copy) || f->len + n > MAX_BYTES)
		return;
	memcpy(copy, from, n);
	memmove(f->text + at + n, f->text + at, f->len - at);
	memcpy(f->text + at, copy, n);
	f->len += n;
}

static void change_once(struct fuzz *f)
{
	size_t at = 2 + below(f, f->len - 2), n = 1 + below(f, 40);
	char c = letter(f);

	n = n < f->len - at ? n : f->len - at;
	switch (below(f, 5)) {
	case 0:
		f->text[at] = c;
		break;
	case 1:
		insert(f, at, &c, 1);
		break;
	case 2: /* many times: what refers to itself grows */
		for (u64 times = 1 + below(f, 60); times; times--)
			insert(f, at, f->text + at, n);
		break;
	case 3:
		if (f->len - n < 4)
			break;
		memmove(f->text + at, f->text + at + n, f->len - at - n);
		f->len -= n;
		break;
	default:
		if (at >= 4)
			f->len = at;
	}
}

static void run(struct fuzz *f)
{
	const char *seed = names[below(f, sizeof(names) / sizeof(names[0]))], *base;
	char *name, *text;
	size_t len;

	f->len = strlen(seed);
	memcpy(f->text, seed, f->len);
	for (u64 n = 1 + below(f, 8); n; n--)
		change_once(f);
	/* Of its own size, so that the judges see a byte too far. */
	name = lull_strndup(f->text, f->len);
	text = lull_demangle(name);
	base = lull_base_name(text, &len);
	if (base < text || base + len > text + strlen(text))
		abort();
	free(text);
	free(name);
}

int main(int argc, char **argv)
{
	u64 seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 10;
	u64 seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, first = seed;
	u64 end_ns = lull_now_ns() + seconds * LULL_NS_PER_S;

	for (; lull_now_ns() < end_ns; seed++) {
		struct fuzz f = { .state = seed * 0x9e3779b97f4a7c15ULL | 1 };

		fprintf(stderr, "\rseed %llu", (unsigned long long)seed);
		alarm(HANG_S);
		for (int i = 0; i < N_ROUNDS; i++)
			run(&f);
		alarm(0);
	}
	fprintf(stderr, "\r");
	printf("fuzz_names: %llu names, no fault\n", (unsigned long long)(seed - first) * N_ROUNDS);
	return 0;
}
