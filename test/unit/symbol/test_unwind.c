#include "symbol/unwind.h"

#include <elf.h>
#include <linux/perf_event.h>
#include <sys/auxv.h>

#include "support/capture.h"
#include "support/program.h"
#include "wire/wire.h"
#include "unit/unit.h"

static char dir[64];

/*
 * Compile test/data/capture.c with this compiler and these flags unless it was the last one done.
 */
static void compile(const char *compiler, const char *flags)
{
	static char last[256];
	char command[256];

	snprintf(command, sizeof(command), "%s %s", compiler, flags);
	if (!strcmp(command, last))
		return;
	strcpy(last, command);
	assert_int_equal(
		program_run("%s -iquote src test/data/capture.c -pthread -o %s/capture 2>&1",
			    command, dir),
		0);
}

/* Let the program capture itself, and unwind that. */
static void capture(struct capture *c, const char *compiler, const char *flags, const char *mode)
{
	char path[128];

	compile(compiler, flags);
	assert_int_equal(program_run("%s/capture %s %s/out", dir, mode, dir), 0);
	snprintf(path, sizeof(path), "%s/out", dir);
	assert_true(capture_load(c, path));
	capture_unwind(c);
}

/* The stack must be complete and hold these names in this order. */
static void expect(struct capture *c, const char *const *names)
{
	bool is_good = c->found.cut == LULL_CUT_NONE && capture_has(c, names);

	if (!is_good)
		capture_print(c);
	assert_true(is_good);
	capture_release(c);
}

static const char *const without_fp = "-O2 -fomit-frame-pointer -D_GNU_SOURCE";
static const char *const with_fp = "-O2 -fno-omit-frame-pointer -D_GNU_SOURCE";

static const char *const chain_to_start[] = {
	"interrupted",	 "compare",	      "qsort",	   "sorter",
	"dynamic_frame", "recursive",	      "recursive", "thread_body",
	"main",		 "__libc_start_main", "_start",	   NULL
};

static void signal_below_qsort_is_unwound_to_start(void **state)
{
	const char *const flags[] = { without_fp, with_fp, "-O0", "-O3 -fomit-frame-pointer",
				      "-Os -fomit-frame-pointer" };
	struct capture c;

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(flags); i++) {
		capture(&c, "cc", flags[i], "signal");
		expect(&c, chain_to_start);
	}
}

/* What an agent sends: pc, sp, fp and, on aarch64, lr. */
static void four_registers_are_enough(void **state)
{
	const char *const flags[] = { without_fp, with_fp };
	struct capture c;

	(void)state;
	test_skip_emulated("the compiler makes programs of another architecture");
	for (size_t i = 0; i < LULL_COUNT_OF(flags); i++) {
		struct lull_wire_regs wire;
		const struct lull_machine *m;

		capture(&c, "cc", flags[i], "signal");
		m = lull_machine_find(c.regs.machine);
		wire = (struct lull_wire_regs){ .pc = c.regs.pc,
						.sp = c.regs.at[m->sp],
						.fp = c.regs.at[m->fp],
						.lr = c.regs.at[30] };
		c.regs = lull_regs_from_wire(&wire);
		capture_unwind(&c);
		expect(&c, chain_to_start);
	}
}

static void cpp_program_is_unwound_to_start(void **state)
{
	struct capture c;

	(void)state;
	if (!program_can_build("c++ -x c++"))
		test_skip("there is no C++ compiler");
	capture(&c, "c++ -x c++", without_fp, "signal");
	expect(&c, chain_to_start);
	capture(&c, "c++ -x c++", with_fp, "signal");
	expect(&c, chain_to_start);
}

static void static_program_is_unwound_to_start(void **state)
{
	struct capture c;

	(void)state;
	if (!program_can_build("cc -static"))
		test_skip("there is no C library to link statically");
	capture(&c, "cc -static", without_fp, "signal");
	expect(&c, chain_to_start);
}

static void signal_frame_is_crossed(void **state)
{
	const char *const names[] = { "write_handler", "on_signal", "interrupted", "compare",
				      "sorter",	       "main",	    "_start",	   NULL };
	struct capture c;

	(void)state;
	test_skip_emulated("the compiler makes programs of another architecture");
	capture(&c, "cc", without_fp, "handler");
	expect(&c, names);
	capture(&c, "cc", with_fp, "handler");
	expect(&c, names);
}

static void leaf_interrupted_by_a_timer_is_unwound(void **state)
{
	const char *const names[] = { "busy_leaf", "interrupted", "compare", "sorter",
				      "main",	   "_start",	  NULL };
	struct capture c;

	(void)state;
	capture(&c, "cc", without_fp, "timer");
	assert_string_equal(capture_name(&c, 0), "busy_leaf");
	assert_string_equal(capture_name(&c, 1), "interrupted");
	expect(&c, names);
}

static void vdso_is_unwound(void **state)
{
	const char *const names[] = { "clock_gettime", "clock_reader", "interrupted", "compare",
				      "main",	       "_start",       NULL };
	struct capture c;

	(void)state;
	test_skip_emulated("the compiler makes programs of another architecture");
	if (!getauxval(AT_SYSINFO_EHDR))
		test_skip("the kernel gives programs no vDSO");
	capture(&c, "cc", without_fp, "vdso");
	assert_string_equal(lull_files_get(&c.files, c.pcs[0].file_ix)->path, "[vdso]");
	expect(&c, names);
}

static void thread_is_unwound_to_its_beginning(void **state)
{
	const char *const names[] = { "interrupted", "compare",	    "sorter",
				      "recursive",   "thread_body", NULL };
	struct capture c;
	size_t last;

	(void)state;
	capture(&c, "cc", without_fp, "thread");
	/*
	 * start_thread, and clone above it, whose names depend on the libc; main is not part of it.
	 */
	last = c.found.n - 1;
	assert_null(strstr(capture_name(&c, last), "main"));
	expect(&c, names);
}

static void signed_return_addresses_are_handled(void **state)
{
	struct capture c;

	(void)state;
#ifndef __aarch64__
	test_skip("only aarch64 signs return addresses");
#endif
	test_skip_emulated("the compiler makes programs of another architecture");
	capture(&c, "cc -mbranch-protection=standard", without_fp, "signal");
	expect(&c, chain_to_start);
	capture(&c, "cc -mbranch-protection=standard", without_fp, "timer");
	expect(&c, chain_to_start);
	/*
	 * The signature sits above bit 48; put one on every return address that points into the
	 * program.
	 */
	capture(&c, "cc", without_fp, "signal");
	for (size_t off = 0; off + 8 <= c.stack.n_bytes; off += 8) {
		u64 value;

		memcpy(&value, c.bytes + off, 8);
		if (lull_space_find(&c.space, value))
			value |= 0x002a000000000000ULL;
		memcpy(c.bytes + off, &value, 8);
	}
	capture_unwind(&c);
	expect(&c, chain_to_start);
}

#ifdef __aarch64__
/* Address of a function of the captured program in its file. */
static u64 address_of(struct lull_elf *elf, const char *name)
{
	lull_elf_find_symbol(elf, 0); /* loads them */
	for (size_t i = 0; i < elf->symbols.n; i++) {
		const struct lull_elf_symbol *symbol = lull_vec_get(&elf->symbols, i);

		if (!strcmp(symbol->name, name))
			return symbol->vaddr;
	}
	fail_msg("no function %s", name);
	return 0;
}
#endif

/* After the signing instruction nothing is saved yet: everything is still in its register. */
static void entry_of_a_signing_function_is_unwound(void **state)
{
	(void)state;
#ifndef __aarch64__
	test_skip("only aarch64 signs return addresses");
#else
	const struct lull_cfi_rule *rule;
	struct lull_regs regs = { .machine = EM_AARCH64 };
	struct lull_stack_bytes no_stack = { 0 };
	struct lull_elf *elf;
	struct capture c;
	u64 at;
	u32 code = 0;

	test_skip_emulated("the compiler makes programs of another architecture");
	capture(&c, "cc -mbranch-protection=pac-ret", without_fp, "signal");
	elf = lull_files_get(&c.files, c.pcs[c.found.n - 1].file_ix)->elf;
	for (at = address_of(elf, "sorter"); code != 0xd503233f /* paciasp */; at += 4)
		assert_true(lull_elf_read(elf, at, &code, sizeof(code)));
	rule = lull_cfi_find(&c.unwind.cfi, c.pcs[c.found.n - 1].file_ix, elf, at);
	assert_non_null(rule);
	lull_regs_set(&regs, 31, 0x7000);
	lull_regs_set(&regs, 30, 0x002a000000004242ULL);
	lull_regs_set(&regs, 19, 7);
	assert_int_equal(lull_cfi_step(&c.unwind.cfi, rule, &regs, &no_stack), LULL_CFI_OK);
	assert_int_equal(regs.pc, 0x4242);
	assert_int_equal(regs.at[31], 0x7000);
	assert_true(lull_regs_has(&regs, 19));
	assert_int_equal(regs.at[19], 7);
	capture_release(&c);
#endif
}

static void code_without_tables_is_unwound_by_frame_pointer(void **state)
{
	char flags[256];
	struct capture c;

	(void)state;
	snprintf(flags, sizeof(flags), "%s -fno-asynchronous-unwind-tables -fno-unwind-tables",
		 with_fp);
	capture(&c, "cc", flags, "signal");
	expect(&c, chain_to_start);
}

static void alternate_stack_is_cut_behind_the_interrupted_frame(void **state)
{
	const char *const names[] = { "write_handler", "on_signal", NULL };
	struct capture c;

	(void)state;
	capture(&c, "cc", without_fp, "altstack");
	assert_true(capture_has(&c, names));
	assert_int_equal(c.found.cut, LULL_CUT_STACK);
	assert_true(c.found.n >= 4);
	capture_release(&c);
}

static void short_stack_is_cut_and_completed_from_the_chain(void **state)
{
	struct capture c;
	struct lull_pc pcs[CAPTURE_MAX_FRAMES], chain_pcs[CAPTURE_MAX_FRAMES];
	struct lull_callstack chain = { .at = chain_pcs, .cap = CAPTURE_MAX_FRAMES };
	u64 ips[CAPTURE_MAX_FRAMES + 1] = { PERF_CONTEXT_USER };
	size_t n_full, i;

	(void)state;
	capture(&c, "cc", with_fp, "deep");
	assert_int_equal(c.found.cut, LULL_CUT_NONE);
	n_full = c.found.n;
	assert_true(n_full > 45);
	for (i = 0; i < n_full; i++)
		ips[i + 1] = c.pcs[i].addr;
	memcpy(pcs, c.pcs, sizeof(pcs));

	lull_unwind_chain(&c.space, ips, n_full + 1, &chain);
	assert_int_equal(chain.n, n_full);
	c.stack.n_bytes = 1200; /* about 25 of the frames */
	capture_unwind(&c);
	assert_int_equal(c.found.cut, LULL_CUT_STACK);
	assert_true(c.found.n < n_full);
	lull_unwind_merge(&c.found, &chain);
	assert_int_equal(c.found.cut, LULL_CUT_NONE);
	assert_int_equal(c.found.n, n_full);
	for (i = 0; i < n_full; i++)
		assert_int_equal(c.pcs[i].vaddr, pcs[i].vaddr);
	capture_release(&c);
}

static void a_chain_without_the_last_frame_adds_nothing(void **state)
{
	struct lull_pc own[4] = { { .addr = 1 }, { .addr = 2 } },
		       other[2] = { { .addr = 5 }, { .addr = 6 } };
	struct lull_callstack stack = { .at = own, .cap = 4, .n = 2, .cut = LULL_CUT_STACK };
	struct lull_callstack chain = { .at = other, .cap = 2, .n = 2 };

	(void)state;
	lull_unwind_merge(&stack, &chain);
	assert_int_equal(stack.n, 2);
	assert_int_equal(stack.cut, LULL_CUT_STACK);
}

static void a_full_result_says_so(void **state)
{
	struct capture c;

	(void)state;
	capture(&c, "cc", without_fp, "signal");
	c.found.cap = 3;
	capture_unwind(&c);
	assert_int_equal(c.found.n, 3);
	assert_int_equal(c.found.cut, LULL_CUT_CAPACITY);
	capture_release(&c);
}

/* A small generator, so that a failure can be repeated. */
static u64 next_random(u64 *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* An address that is likely to mean something: in a mapping, in the stack, or anything. */
static u64 random_address(struct capture *c, u64 *seed)
{
	const struct lull_mapping *m = c->space.mappings.at;
	u64 kind = next_random(seed) % 3, value = next_random(seed);

	if (kind == 0)
		return value;
	if (kind == 1)
		return c->stack.addr + value % (c->stack.n_bytes + 64) / 8 * 8;
	m += next_random(seed) % c->space.mappings.n;
	return m->start + value % (m->end - m->start);
}

static void random_registers_and_stacks_never_crash(void **state)
{
	struct capture c;
	u64 seed = 88172645463325252ULL;

	(void)state;
	capture(&c, "cc", without_fp, "signal");
	for (int round = 0; round < 500; round++) {
		c.regs.pc = random_address(&c, &seed);
		c.regs.mask = (u32)next_random(&seed);
		c.regs.mask |= (u32)next_random(&seed);
		for (u32 i = 0; i < LULL_N_REGS; i++)
			c.regs.at[i] = random_address(&c, &seed);
		for (size_t off = 0; off + 8 <= c.stack.n_bytes; off += 8) {
			u64 value = random_address(&c, &seed);

			memcpy(c.bytes + off, &value, 8);
		}
		capture_unwind(&c);
		assert_true(c.found.n >= 1);
	}
	capture_release(&c);
}

static void an_unknown_machine_gives_nothing(void **state)
{
	struct capture c;

	(void)state;
	capture(&c, "cc", without_fp, "signal");
	c.regs.machine = EM_S390;
	capture_unwind(&c);
	assert_int_equal(c.found.n, 0);
	assert_int_equal(c.found.cut, LULL_CUT_NO_RULE);
	capture_release(&c);
}

static void perf_registers_are_put_in_their_dwarf_places(void **state)
{
	u64 mask = lull_regs_perf_mask(), values[64];
	struct lull_regs r;

	(void)state;
	for (u64 i = 0; i < 64; i++)
		values[i] = 100 + i;
	r = lull_regs_from_perf(mask, values);
#ifdef __aarch64__
	assert_int_equal(r.pc, 132);
	assert_int_equal(r.at[31], 131);
	assert_int_equal(r.at[30], 130);
#else
	assert_int_equal(r.pc, 108);
	assert_int_equal(r.at[7], 107);	 /* rsp */
	assert_int_equal(r.at[3], 101);	 /* rbx */
	assert_int_equal(r.at[15], 116); /* r15: the last, segments and flags are not asked for */
#endif
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(signal_below_qsort_is_unwound_to_start),
		cmocka_unit_test(four_registers_are_enough),
		cmocka_unit_test(cpp_program_is_unwound_to_start),
		cmocka_unit_test(static_program_is_unwound_to_start),
		cmocka_unit_test(signal_frame_is_crossed),
		cmocka_unit_test(leaf_interrupted_by_a_timer_is_unwound),
		cmocka_unit_test(vdso_is_unwound),
		cmocka_unit_test(thread_is_unwound_to_its_beginning),
		cmocka_unit_test(signed_return_addresses_are_handled),
		cmocka_unit_test(entry_of_a_signing_function_is_unwound),
		cmocka_unit_test(code_without_tables_is_unwound_by_frame_pointer),
		cmocka_unit_test(alternate_stack_is_cut_behind_the_interrupted_frame),
		cmocka_unit_test(short_stack_is_cut_and_completed_from_the_chain),
		cmocka_unit_test(a_chain_without_the_last_frame_adds_nothing),
		cmocka_unit_test(a_full_result_says_so),
		cmocka_unit_test(random_registers_and_stacks_never_crash),
		cmocka_unit_test(an_unknown_machine_gives_nothing),
		cmocka_unit_test(perf_registers_are_put_in_their_dwarf_places),
	};
	int rc;

	program_make_dir(dir);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	program_remove_dir(dir);
	return rc;
}
