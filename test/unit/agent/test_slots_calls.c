/*
 * Code that calls through an entry of an offset table, and code that only takes an address there.
 */
#include "unit/unit.h"

#include <sys/mman.h>

/* The agent is linked into a library of its own; this part of it needs nothing else. */
#include "agent/calls/slots_calls.c"

#define PAGE 4096u

/* A page of code, and a page with an entry in the middle. */
static u8 *code;
static u64 *entry;

static int make_pages(void **state)
{
	u8 *pages =
		mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	if (pages == MAP_FAILED)
		return -1;
	code = pages;
	entry = (u64 *)(pages + PAGE + 1024);
	return 0;
}

static int drop_pages(void **state)
{
	(void)state;
	return munmap(code, 2 * PAGE);
}

/* Are these the bytes of code that calls through the entry? */
static bool calls(const void *bytes, size_t n_bytes)
{
	const ElfW(Phdr) segments[] = {
		{ .p_type = PT_LOAD, .p_flags = PF_R | PF_W, .p_filesz = PAGE },
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_X,
		  .p_vaddr = (u64)code,
		  .p_filesz = n_bytes },
	};
	const struct dl_phdr_info file = { .dlpi_phdr = segments, .dlpi_phnum = 2 };
	struct lull_slot_use uses[2] = { { entry - 5, false }, { entry, false } };

	assert_true(n_bytes <= PAGE);
	if (bytes != code)
		memcpy(code, bytes, n_bytes);
	lull_slots_find_calls(&file, uses, 2);
	assert_false(uses[0].is_called);
	return uses[1].is_called;
}

#ifdef __aarch64__

#define ADRP(d)	   (0xb0000000 | (d))			     /* the next page */
#define LDR(d, n)  (0xf9400000 | 128 << 10 | (n) << 5 | (d)) /* entry, of 1024 bytes on */
#define BLR(n)	   (0xd63f0000 | (n) << 5)
#define BR(n)	   (0xd61f0000 | (n) << 5)
#define BL	   0x94000010
#define B	   0x14000010
#define MOV(d, n)  (0xaa0003e0 | (n) << 16 | (d))
#define STR(d)	   (0xf9002fe0 | (d)) /* [sp, #88] */
#define STP(d, d2) (0xa9010000 | (d2) << 10 | 31 << 5 | (d))
#define LDP(d, d2) (0xa9400000 | (d2) << 10 | 31 << 5 | (d))
#define FMOV(v)	   (0x1e601000 | (v)) /* fmov d<v>, #2.0 */
#define UMOV(d)	   (0x4e083c00 | (d)) /* mov x<d>, v0.d[0] */
#define FCVT(d)	   (0x9e780000 | (d)) /* fcvtzs x<d>, d0 */
#define CBZ(d)	   (0xb4000040 | (d))
#define B_LE	   0x5400010d

#define CALLS(...) calls((const u32[]){ __VA_ARGS__ }, sizeof((const u32[]){ __VA_ARGS__ }))

static void calls_are_seen(void **state)
{
	(void)state;
	assert_true(CALLS(ADRP(16), LDR(17, 16), 0x91100210 /* add x16, x16 */, BR(17)));
	assert_true(CALLS(ADRP(0), LDR(1, 0), MOV(0, 2), BLR(1)));
	/* Kept in a register over a loop, a branch, a store and another call. */
	assert_true(CALLS(ADRP(22), LDR(22, 22), STR(22), B_LE, BL, MOV(0, 19), BLR(22)));
	assert_true(CALLS(ADRP(22), LDR(22, 22), STP(19, 22), BLR(22)));
	/* Registers of vectors have the same numbers. */
	assert_true(CALLS(ADRP(8), LDR(8, 8), FMOV(8), BLR(8)));
	/* Is it there at all? */
	assert_true(CALLS(ADRP(0), LDR(0, 0), CBZ(0), BLR(0)));
}

static void addresses_are_not_calls(void **state)
{
	(void)state;
	assert_false(CALLS(ADRP(0), LDR(0, 0), BL, BLR(0)));
	assert_false(CALLS(ADRP(0), LDR(0, 0), STR(0), MOV(0, 1), BLR(0)));
	/* An argument of a call at the end of a function, and one of the next function. */
	assert_false(CALLS(ADRP(2), LDR(2, 2), B, BLR(2)));
	assert_false(CALLS(ADRP(20), LDR(20, 20), LDP(19, 20), BLR(20)));
	assert_false(CALLS(ADRP(3), LDR(3, 3), UMOV(3), BLR(3)));
	assert_false(CALLS(ADRP(3), LDR(3, 3), FCVT(3), BLR(3)));
	/* Another entry, and an address that is none. */
	assert_false(CALLS(ADRP(1), LDR(1, 1) + (1 << 10), BLR(1)));
	assert_false(CALLS(MOV(1, 2), LDR(1, 1), BLR(1)));
}

#elif defined(__x86_64__)

/* Bytes, in which "...." is the distance from there to the entry. */
static bool calls_in(const u8 *bytes, size_t n)
{
	memset(code, 0x90, PAGE);
	memcpy(code, bytes, n);
	for (size_t i = 0; i + 4 <= n; i++)
		if (memcmp(bytes + i, "....", 4) == 0) {
			i32 distance = (i32)((u8 *)entry - (code + i + 4));

			memcpy(code + i, &distance, 4);
		}
	return calls(code, PAGE);
}
#define CALLS(text) calls_in((const u8 *)(text), sizeof(text) - 1)

static void calls_are_seen(void **state)
{
	(void)state;
	assert_true(CALLS("\xf3\x0f\x1e\xfa\xff\x25...."));		/* .plt.got: jmp *entry */
	assert_true(CALLS("\x90\xff\x15...."));				/* call *entry */
	assert_true(CALLS("\x90\x4c\x8b\x35....\x89\xdf\x41\xff\xd6")); /* in r14 */
	assert_true(CALLS("\x90\x48\x8b\x1d....\x89\xdf\xff\xd3"));	/* in rbx */
	assert_true(CALLS("\x90\x48\x8b\x2d....\x89\xdf\xff\xe5"));	/* jmp *rbp */
}

static void addresses_are_not_calls(void **state)
{
	static const u8 load[] = "\x90\x48\x8b\x1d...."; /* mov entry, %rbx */
	u8 far[2000];

	(void)state;
	assert_false(CALLS("\x90\x48\x8b\x3d....\xe8\x11\x22\x33\x44")); /* passed on in rdi */
	assert_false(CALLS("\x90\x48\x8b\x1d....\x41\xff\xd3"));	 /* the call is of r11 */
	assert_false(CALLS("\x90\x4c\x8b\x35....\xff\xd6"));		 /* the call is of rsi */
	assert_false(CALLS("\x90\xff\x35...."));			 /* push */
	assert_false(CALLS("\x90\x48\x8b\x1d....\x90\x90"));
	memset(far, 0x90, sizeof(far));
	memcpy(far, load, sizeof(load) - 1);
	memcpy(far + 1500, "\xff\xd3", 2);
	assert_false(calls_in(far, sizeof(far)));
}

#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(calls_are_seen, make_pages, drop_pages),
		cmocka_unit_test_setup_teardown(addresses_are_not_calls, make_pages, drop_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
