#include "symbol/resolve.h"

#include <unistd.h>

#include "support/program.h"
#include "unit/unit.h"
#include "symbol/demangle.h"

static char dir[64];

/* Compile test/data/inlined.c to DIR/NAME. */
static void build(const char *name, const char *flags)
{
	assert_int_equal(program_run("cc -O1 -Wl,--build-id %s test/data/inlined.c -o %s/%s", flags,
				     dir, name),
			 0);
}

static struct lull_elf *open_elf(const char *name)
{
	struct lull_elf *elf = NULL;
	struct lull_err err;
	char path[256];

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	assert_int_equal(lull_elf_open(&elf, &(struct lull_elf_name){ .path = path }, &err),
			 LULL_OK);
	return elf;
}

/* Address of a function, from a file that still has its symbols. */
static u64 address_of(struct lull_elf *elf, const char *name)
{
	lull_elf_find_symbol(elf, 0); /* loads them */
	for (size_t i = 0; i < elf->symbols.n; i++) {
		const struct lull_elf_symbol *s = lull_vec_get(&elf->symbols, i);

		if (!strcmp(s->name, name))
			return s->vaddr;
	}
	fail_msg("no symbol %s", name);
	return 0;
}

/* The address inside outer() at which most functions are inlined. */
static u64 find_inlined(struct lull_resolver *r, u64 outer, struct lull_symbol *out, size_t *n)
{
	for (u64 vaddr = outer; vaddr < outer + 64; vaddr++) {
		*n = lull_resolver_find(r, vaddr, out);
		if (*n == 3)
			return vaddr;
	}
	fail_msg("no address with two inlined functions");
	return 0;
}

/* Look for the three functions of `with_symbols` in `elf`, the same program. */
static void expect_inlined(struct lull_elf *elf, u64 outer, const char *debug_dirs)
{
	struct lull_debug_paths paths = { .dirs = debug_dirs };
	struct lull_symbol out[LULL_MAX_INLINED];
	struct lull_resolver r;
	size_t n;

	lull_resolver_init(&r, &paths);
	lull_resolver_use(&r, elf);
	find_inlined(&r, outer, out, &n);
	assert_string_equal(out[0].function, "innermost");
	assert_int_equal(out[0].line, 9);
	assert_true(out[0].is_inlined);
	assert_string_equal(out[1].function, "middle");
	assert_int_equal(out[1].line, 14);
	assert_string_equal(out[2].function, "outer");
	assert_int_equal(out[2].line, 19);
	assert_false(out[2].is_inlined);
	assert_non_null(strstr(out[0].file, "test/data/inlined.c"));
	assert_non_null(strstr(out[2].file, "test/data/inlined.c"));
	lull_resolver_release(&r);
}

static void inlined_functions_come_with_their_lines(void **state)
{
	const char *const flags[] = { "-g", "-g -gdwarf-4", "-g -gz",
				      "-g -gno-pubnames -ffunction-sections" };

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(flags); i++) {
		struct lull_elf *elf;

		build("whole", flags[i]);
		elf = open_elf("whole");
		expect_inlined(elf, address_of(elf, "outer"), NULL);
		lull_elf_close(elf);
	}
}

/* Split DIR/whole into DIR/stripped and the given debug file. */
static void split(const char *debug_path)
{
	build("whole", "-g");
	assert_int_equal(
		program_run(
			"cd %s && mkdir -p $(dirname %s) && objcopy --only-keep-debug whole %s && "
			"objcopy --strip-all --add-gnu-debuglink=%s whole stripped",
			dir, debug_path, debug_path, debug_path),
		0);
}

static void stripped_file_is_resolved_by_debuglink(void **state)
{
	const char *const places[] = { "whole.debug", ".debug/whole.debug",
				       "elsewhere/whole.debug" };
	char elsewhere[128];

	(void)state;
	snprintf(elsewhere, sizeof(elsewhere), "/nowhere::%s/elsewhere", dir);
	for (size_t i = 0; i < LULL_COUNT_OF(places); i++) {
		struct lull_elf *whole, *stripped;

		split(places[i]);
		whole = open_elf("whole");
		stripped = open_elf("stripped");
		assert_false(lull_elf_has_symtab(stripped));
		expect_inlined(stripped, address_of(whole, "outer"), elsewhere);
		lull_elf_close(whole);
		lull_elf_close(stripped);
		assert_int_equal(program_run("rm %s/%s", dir, places[i]), 0);
	}
}

static void stripped_file_is_resolved_by_build_id(void **state)
{
	char hex[2 * LULL_BUILD_ID_MAX + 1], dirs[128];
	struct lull_elf *whole, *stripped;

	(void)state;
	split("whole.debug");
	whole = open_elf("whole");
	stripped = open_elf("stripped");
	lull_build_id_format(&stripped->build_id, hex);
	assert_int_equal(strlen(hex), 40);
	assert_int_equal(program_run("mkdir -p %s/ids/.build-id/%.2s && mv %s/whole.debug "
				     "%s/ids/.build-id/%.2s/%s.debug",
				     dir, hex, dir, dir, hex, hex + 2),
			 0);
	snprintf(dirs, sizeof(dirs), "%s/ids", dir);
	expect_inlined(stripped, address_of(whole, "outer"), dirs);
	lull_elf_close(whole);
	lull_elf_close(stripped);
}

static void debug_file_of_another_build_is_refused(void **state)
{
	struct lull_debug_paths paths = { 0 };
	struct lull_symbol out[LULL_MAX_INLINED];
	struct lull_elf *stripped;
	struct lull_resolver r;

	(void)state;
	split("whole.debug");
	build("other", "-g -O0 -DOTHER");
	assert_int_equal(program_run("objcopy --only-keep-debug %s/other %s/whole.debug", dir, dir),
			 0);
	stripped = open_elf("stripped");
	lull_resolver_init(&r, &paths);
	lull_resolver_use(&r, stripped);
	assert_null(r.debug);
	assert_int_equal(lull_resolver_find(&r, 0x700, out), 0);
	lull_resolver_release(&r);
	lull_elf_close(stripped);
}

static void symbols_are_used_when_there_is_no_debug_information(void **state)
{
	struct lull_debug_paths paths = { 0 };
	struct lull_symbol out[LULL_MAX_INLINED];
	struct lull_resolver r;
	struct lull_elf *elf;
	u64 outer;

	(void)state;
	build("plain", "");
	elf = open_elf("plain");
	outer = address_of(elf, "outer");
	lull_resolver_init(&r, &paths);
	lull_resolver_use(&r, elf);
	assert_int_equal(lull_resolver_find(&r, outer + 4, out), 1);
	assert_string_equal(out[0].function, "outer");
	assert_null(out[0].file);
	assert_int_equal(out[0].line, 0);
	assert_int_equal(lull_resolver_find(&r, ~0ULL, out), 0);
	lull_resolver_release(&r);
	lull_elf_close(elf);
}

static void label_without_size_ends_with_its_section(void **state)
{
	const struct lull_elf_symbol *s;
	struct lull_elf *elf;
	u64 init, start;

	(void)state;
	build("labels", "");
	elf = open_elf("labels");
	init = address_of(elf, "_init");
	start = address_of(elf, "_start");
	assert_true(init < start);
	s = lull_elf_find_symbol(elf, init);
	assert_non_null(s);
	assert_string_equal(s->name, "_init");
	/* The stubs for functions of libraries lie between them, in sections of their own. */
	s = lull_elf_find_symbol(elf, start - 1);
	assert_true(!s || strcmp(s->name, "_init") != 0);
	lull_elf_close(elf);
}

static void static_function_of_cpp_has_its_arguments(void **state)
{
	struct lull_debug_paths paths = { 0 };
	struct lull_symbol out[LULL_MAX_INLINED];
	struct lull_resolver r;
	struct lull_elf *elf;

	(void)state;
	if (!program_can_build("c++ -x c++"))
		test_skip("there is no C++ compiler");
	assert_int_equal(
		program_run("cd %s && echo 'namespace a { __attribute__((noinline)) static int "
			    "f(int x) { return x * x; } } "
			    "int main(int n, char **) { return a::f(n); }' >x.cc && "
			    "c++ -g -O1 x.cc -o cpp",
			    dir),
		0);
	elf = open_elf("cpp");
	lull_resolver_init(&r, &paths);
	lull_resolver_use(&r, elf);
	assert_int_equal(lull_resolver_find(&r, address_of(elf, "_ZN1aL1fEi"), out), 1);
	assert_string_equal(out[0].function, "a::f(int)");
	assert_int_equal(out[0].line, 1);
	lull_resolver_release(&r);
	lull_elf_close(elf);
}

static void names_are_demangled(void **state)
{
	const char *const names[][2] = {
		{ "main", "main" },
		{ "_ZN2at6native3addERKNS_6TensorE", "at::native::add(at::Tensor const&)" },
		{ "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
		  "core::fmt::Write::write_fmt" },
		{ "_ZN60_$LT$alloc..string..String$u20$as$u20$core..fmt..Display$GT$"
		  "3fmt17hfedcba9876543210E",
		  "<alloc::string::String as core::fmt::Display>::fmt" },
		{ "_Znonsense", "_Znonsense" },
		{ "_RNvCs4X4t9plMPHF_5words8tokenise", "words::tokenise" },
		{ "_RNvMNtNtCsgEmfK2I1SDS_4core4char7methodsc13is_whitespace",
		  "<char>::is_whitespace" },
		{ "_RNvXs2_NtNtCsjrHSEGnQ3l9_3std4hash6randomNtB5_13DefaultHasherNtNtCsgEmfK2I1SDS_"
		  "4core4hash6Hasher6finish",
		  "<std::hash::random::DefaultHasher as core::hash::Hasher>::finish" },
		{ "_RINvMNtCsgEmfK2I1SDS_4core3cmpNtB3_8Ordering9then_withNCNvXs0_NtNtB5_5panic8"
		  "locationNtBY_8LocationNtB3_3Ord3cmps_0EB5_",
		  "<core::cmp::Ordering>::then_with<<core::panic::location::Location as "
		  "core::cmp::Ord>::cmp::{closure#1}>" },
		{ "_RNSNvNvCs2_3foo3barSb3new", "_RNSNvNvCs2_3foo3barSb3new" },
		{ "_RIC1aTxRSjQAhj4_PeFUKCjmEuEE.llvm.17",
		  "a<(i64, &[usize], &mut [u8; _], *const str, unsafe fn(usize, u32))>" },
		{ "_RIC1aDNtB2_1fpNtB2_1tbNtB2_1gELB__", "_RIC1aDNtB2_1fpNtB2_1tbNtB2_1gELB__" },
		{ "_RNvB_1a", "_RNvB_1a" },
		{ "_RNvC1a9short", "_RNvC1a9short" },
		{ "_R", "_R" },
		{ "_Rescue", "_Rescue" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(names); i++) {
		char *text = lull_demangle(names[i][0]);

		assert_string_equal(text, names[i][1]);
		free(text);
	}
}

static void file_that_is_not_there_is_an_error(void **state)
{
	const struct lull_build_id other = { .at = { 1, 2, 3 }, .n_bytes = 3 };
	struct lull_elf *elf = NULL;
	struct lull_err err;
	char path[256];

	(void)state;
	build("plain", "");
	assert_int_equal(lull_elf_open(&elf, &(struct lull_elf_name){ .path = "/nowhere/x" }, &err),
			 LULL_E_NOT_FOUND);
	assert_int_equal(lull_elf_open(&elf, &(struct lull_elf_name){ .path = "/dev/zero" }, &err),
			 LULL_E_NOT_FOUND);
	assert_int_equal(
		lull_elf_open(&elf, &(struct lull_elf_name){ .path = "test/data/inlined.c" }, &err),
		LULL_E_NOT_FOUND);
	assert_int_equal(
		lull_elf_open(&elf, &(struct lull_elf_name){ .path = "/etc/passwd" }, &err),
		LULL_E_FORMAT);
	snprintf(path, sizeof(path), "%s/plain", dir);
	assert_int_equal(lull_elf_open(&elf,
				       &(struct lull_elf_name){ .path = path, .build_id = &other },
				       &err),
			 LULL_E_NOT_FOUND);
	assert_non_null(strstr(err.msg, "build id has changed"));
	strcat(path, " (deleted)");
	assert_int_equal(lull_elf_open(&elf, &(struct lull_elf_name){ .path = path }, &err),
			 LULL_E_NOT_FOUND);
}

static void deleted_file_is_found_again_by_build_id(void **state)
{
	struct lull_elf *elf, *again = NULL;
	struct lull_err err;
	char path[256];

	(void)state;
	build("plain", "");
	elf = open_elf("plain");
	snprintf(path, sizeof(path), "%s/plain (deleted)", dir);
	assert_int_equal(
		lull_elf_open(&again,
			      &(struct lull_elf_name){ .path = path, .build_id = &elf->build_id },
			      &err),
		LULL_OK);
	lull_elf_close(again);
	lull_elf_close(elf);
}

static void file_is_opened_below_the_root_of_a_process(void **state)
{
	struct lull_elf *elf = NULL;
	struct lull_err err;
	char path[256];

	(void)state;
	build("plain", "");
	snprintf(path, sizeof(path), "%s/plain", dir);
	assert_int_equal(
		lull_elf_open(&elf, &(struct lull_elf_name){ .path = path, .pid = 1u << 30 }, &err),
		LULL_OK);
	assert_string_equal(elf->path, path); /* there is no such process */
	lull_elf_close(elf);
	assert_int_equal(
		lull_elf_open(&elf, &(struct lull_elf_name){ .path = path, .pid = (u32)getpid() },
			      &err),
		LULL_OK);
	assert_int_equal(strncmp(elf->path, "/proc/", 6), 0);
	lull_elf_close(elf);
}

static void vdso_has_symbols(void **state)
{
	struct lull_elf *elf = NULL;
	struct lull_err err;

	(void)state;
	if (lull_elf_open_vdso(&elf, &err))
		test_skip("no vDSO here: %s", err.msg);
	assert_true(elf->segments.n > 0);
	lull_elf_find_symbol(elf, 0);
	assert_true(elf->symbols.n > 0);
	lull_elf_close(elf);
}

/* Use everything of a file that may be damaged. */
static void use_file(const char *path)
{
	struct lull_debug_paths paths = { 0 };
	struct lull_symbol out[LULL_MAX_INLINED];
	struct lull_elf *elf = NULL;
	struct lull_resolver r;
	struct lull_err err;

	if (lull_elf_open(&elf, &(struct lull_elf_name){ .path = path }, &err))
		return;
	lull_elf_cfi(elf);
	lull_resolver_init(&r, &paths);
	lull_resolver_use(&r, elf);
	for (u64 vaddr = 0x600; vaddr < 0x900; vaddr += 8)
		lull_resolver_find(&r, vaddr, out);
	lull_resolver_release(&r);
	lull_elf_close(elf);
}

static void write_file(const char *path, const char *bytes, size_t n)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	fclose(f);
}

static void damaged_files_never_crash(void **state)
{
	char path[128], bytes[65536], damaged[65536];
	u64 seed = 0x2545f4914f6cdd1dULL;
	size_t n;
	FILE *f;

	(void)state;
	build("whole", "-g");
	snprintf(path, sizeof(path), "%s/whole", dir);
	f = fopen(path, "r");
	n = fread(bytes, 1, sizeof(bytes), f);
	fclose(f);
	snprintf(path, sizeof(path), "%s/damaged", dir);
	for (size_t cut = 0; cut < n; cut += n / 40) {
		write_file(path, bytes, cut);
		use_file(path);
	}
	for (int round = 0; round < 150; round++) {
		memcpy(damaged, bytes, n);
		for (int i = 0; i < 1 + round % 20; i++) {
			seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
			/* Every second round spoils the headers, where sizes and offsets are. */
			damaged[(seed >> 33) % (round % 2 ? 1024 : n)] = (char)(seed >> 25);
		}
		write_file(path, damaged, n);
		use_file(path);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(inlined_functions_come_with_their_lines),
		cmocka_unit_test(stripped_file_is_resolved_by_debuglink),
		cmocka_unit_test(stripped_file_is_resolved_by_build_id),
		cmocka_unit_test(debug_file_of_another_build_is_refused),
		cmocka_unit_test(symbols_are_used_when_there_is_no_debug_information),
		cmocka_unit_test(label_without_size_ends_with_its_section),
		cmocka_unit_test(static_function_of_cpp_has_its_arguments),
		cmocka_unit_test(names_are_demangled),
		cmocka_unit_test(file_that_is_not_there_is_an_error),
		cmocka_unit_test(deleted_file_is_found_again_by_build_id),
		cmocka_unit_test(file_is_opened_below_the_root_of_a_process),
		cmocka_unit_test(vdso_has_symbols),
		cmocka_unit_test(damaged_files_never_crash),
	};
	int rc;

	program_make_dir(dir);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	program_remove_dir(dir);
	return rc;
}
