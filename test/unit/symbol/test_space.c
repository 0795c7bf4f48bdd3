#include "symbol/space.h"

#include "unit/unit.h"

struct fixture {
	struct lull_files files;
	struct lull_space space;
};

static void begin(struct fixture *f)
{
	lull_files_init(&f->files);
	lull_space_init(&f->space, &f->files, 0);
}

static void end(struct fixture *f)
{
	lull_space_release(&f->space);
	lull_files_release(&f->files);
}

/* Map a file that does not exist: its addresses are offsets. */
static void map(struct fixture *f, u64 start, u64 stop, const char *path)
{
	lull_space_map(&f->space, &(struct lull_mmap){ .start = start, .end = stop, .path = path });
}

/* The path of the mapping at an address, "" if there is none. */
static const char *path_at(struct fixture *f, u64 addr)
{
	const struct lull_mapping *m = lull_space_find(&f->space, addr);

	return m ? lull_files_get(&f->files, m->file_ix)->path : "";
}

static void address_is_found_in_its_mapping_only(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	assert_null(lull_space_find(&f.space, 0x1000));
	map(&f, 0x3000, 0x4000, "/c");
	map(&f, 0x1000, 0x2000, "/a");
	assert_string_equal(path_at(&f, 0x0fff), "");
	assert_string_equal(path_at(&f, 0x1000), "/a");
	assert_string_equal(path_at(&f, 0x1fff), "/a");
	assert_string_equal(path_at(&f, 0x2000), "");
	assert_string_equal(path_at(&f, 0x3800), "/c");
	assert_string_equal(path_at(&f, ~0ULL), "");
	end(&f);
}

static void new_mapping_cuts_what_it_overlaps(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	map(&f, 0x1000, 0x9000, "/old");
	map(&f, 0x3000, 0x4000, "/new"); /* in the middle */
	assert_int_equal(f.space.mappings.n, 3);
	assert_string_equal(path_at(&f, 0x2fff), "/old");
	assert_string_equal(path_at(&f, 0x3000), "/new");
	assert_string_equal(path_at(&f, 0x4000), "/old");
	/* What is left keeps its bias: it is still the same file at the same place. */
	assert_int_equal(lull_space_find(&f.space, 0x4000)->bias, 0x1000);
	map(&f, 0x2000, 0x5000,
	    "/over"); /* over the end of one, all of another, the start of a third */
	assert_string_equal(path_at(&f, 0x1fff), "/old");
	assert_string_equal(path_at(&f, 0x3000), "/over");
	assert_string_equal(path_at(&f, 0x5000), "/old");
	map(&f, 0x0000, 0xa000, "/all");
	assert_int_equal(f.space.mappings.n, 1);
	map(&f, 0x2000, 0x2000, "/empty");
	assert_int_equal(f.space.mappings.n, 1);
	end(&f);
}

static void unmap_leaves_both_sides(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	map(&f, 0x1000, 0x5000, "/a");
	lull_space_unmap(&f.space, 0x2000, 0x3000);
	assert_string_equal(path_at(&f, 0x1800), "/a");
	assert_string_equal(path_at(&f, 0x2800), "");
	assert_string_equal(path_at(&f, 0x3800), "/a");
	lull_space_unmap(&f.space, 0, ~0ULL);
	assert_int_equal(f.space.mappings.n, 0);
	end(&f);
}

static void child_keeps_the_mappings_of_before_the_fork(void **state)
{
	struct fixture f, child;

	(void)state;
	begin(&f);
	map(&f, 0x1000, 0x2000, "/a");
	lull_space_init(&child.space, &f.files, 0);
	lull_space_copy(&child.space, &f.space);
	map(&f, 0x1000, 0x2000, "/b");
	assert_string_equal(path_at(&f, 0x1000), "/b");
	assert_int_equal(lull_space_find(&child.space, 0x1000)->file_ix, 1);
	assert_string_equal(lull_files_get(&f.files, 1)->path, "/a");
	lull_space_clear(&child.space);
	assert_null(lull_space_find(&child.space, 0x1000));
	lull_space_release(&child.space);
	end(&f);
}

static void same_file_is_one_file(void **state)
{
	struct fixture f;

	(void)state;
	begin(&f);
	map(&f, 0x1000, 0x2000, "/a");
	map(&f, 0x3000, 0x4000, "/a");
	map(&f, 0x5000, 0x6000, "/b");
	map(&f, 0x7000, 0x8000, "//anon");
	assert_int_equal(f.files.at.n, 3); /* none, /a, /b */
	assert_int_equal(lull_space_find(&f.space, 0x7000)->file_ix, LULL_FILE_NONE);
	end(&f);
}

static void program_counter_of_a_return_is_one_less(void **state)
{
	struct fixture f;
	struct lull_pc pc;

	(void)state;
	begin(&f);
	lull_space_map(&f.space, &(struct lull_mmap){ .start = 0x1000,
						      .end = 0x2000,
						      .bias = 0x400,
						      .has_bias = true,
						      .path = "/a" });
	pc = lull_space_pc(&f.space, 0x1100, false);
	assert_int_equal(pc.vaddr, 0xd00);
	assert_int_equal(pc.kind, LULL_PC_NATIVE);
	pc = lull_space_pc(&f.space, 0x1100, true);
	assert_int_equal(pc.addr, 0x1100);
	assert_int_equal(pc.vaddr, 0xcff);
	/* A call may be the last instruction of a mapping. */
	assert_int_equal(lull_space_pc(&f.space, 0x2000, true).kind, LULL_PC_NATIVE);
	assert_int_equal(lull_space_pc(&f.space, 0x2000, false).kind, LULL_PC_JIT);
	assert_int_equal(lull_space_pc(&f.space, 0xffffffff81000000ULL, true).kind, LULL_PC_KERNEL);
	end(&f);
}

static void own_maps_lead_back_to_own_functions(void **state)
{
	const struct lull_elf_symbol *symbol;
	struct fixture f;
	struct lull_err err;
	struct lull_pc pc;

	(void)state;
	test_skip_emulated("/proc describes the emulator");
	begin(&f);
	assert_int_equal(lull_space_read_maps(&f.space, "/proc/self/maps", &err), LULL_OK);
	pc = lull_space_pc(&f.space, (u64)(uintptr_t)own_maps_lead_back_to_own_functions, false);
	symbol = lull_elf_find_symbol(lull_files_get(&f.files, pc.file_ix)->elf, pc.vaddr);
	assert_non_null(symbol);
	assert_string_equal(symbol->name, "own_maps_lead_back_to_own_functions");
	assert_int_equal(lull_space_read_maps(&f.space, "/nowhere", &err), LULL_E_IO);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(address_is_found_in_its_mapping_only),
		cmocka_unit_test(new_mapping_cuts_what_it_overlaps),
		cmocka_unit_test(unmap_leaves_both_sides),
		cmocka_unit_test(child_keeps_the_mappings_of_before_the_fork),
		cmocka_unit_test(same_file_is_one_file),
		cmocka_unit_test(program_counter_of_a_return_is_one_less),
		cmocka_unit_test(own_maps_lead_back_to_own_functions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
