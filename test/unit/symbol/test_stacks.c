#include "symbol/stacks.h"

#include "support/program.h"
#include "trace/reader.h"
#include "unit/unit.h"

static char dir[64];

/* A report being written, with files and stacks. */
struct fixture {
	struct lull_writer *w;
	struct lull_files files;
	struct lull_space space;
	struct lull_stacks stacks;
	char path[128];
};

static void begin(struct fixture *f)
{
	struct lull_file_info info = { 0 };
	struct lull_err err;

	snprintf(f->path, sizeof(f->path), "%s/report.lull", dir);
	assert_int_equal(lull_writer_open(&f->w, f->path, &info, &err), LULL_OK);
	lull_files_init(&f->files);
	lull_space_init(&f->space, &f->files, 0);
	lull_stacks_init(&f->stacks, &f->files);
}

static void end(struct fixture *f)
{
	lull_stacks_release(&f->stacks);
	lull_space_release(&f->space);
	lull_files_release(&f->files);
	if (f->w)
		lull_writer_discard(f->w);
}

static const struct lull_frame_row *frame_of(struct fixture *f, u32 node)
{
	const struct lull_stack_row *row = lull_writer_dim(f->w, LULL_TABLE_stack, node);

	return lull_writer_dim(f->w, LULL_TABLE_frame, row->frame);
}

static u32 parent_of(struct fixture *f, u32 node)
{
	return ((const struct lull_stack_row *)lull_writer_dim(f->w, LULL_TABLE_stack, node))
		->parent;
}

/* Is this the text with this id? */
static bool is_text(struct fixture *f, u32 id, const char *text)
{
	return id == lull_writer_string(f->w, text, strlen(text));
}

static void equal_stacks_share_their_nodes(void **state)
{
	const struct lull_pc pcs[] = { { 0x10, 0x10, 0, LULL_PC_JIT },
				       { 0x20, 0x20, 0, LULL_PC_JIT },
				       { 0x30, 0x30, 0, LULL_PC_JIT } };
	const struct lull_pc other[] = { { 0x11, 0x11, 0, LULL_PC_JIT }, pcs[1], pcs[2] };
	struct fixture f;
	u32 a, b;

	(void)state;
	begin(&f);
	assert_int_equal(lull_stacks_add(&f.stacks, f.w, 1, pcs, 0), 0);
	a = lull_stacks_add(&f.stacks, f.w, 1, pcs, 3);
	assert_int_equal(lull_stacks_add(&f.stacks, f.w, 1, pcs, 3), a);
	b = lull_stacks_add(&f.stacks, f.w, 1, other, 3);
	assert_int_not_equal(a, b);
	assert_int_equal(parent_of(&f, a), parent_of(&f, b));
	assert_int_equal(lull_writer_n_dim(f.w, LULL_TABLE_stack), 4);
	assert_int_equal(lull_writer_n_dim(f.w, LULL_TABLE_frame), 4);
	/* JIT code of another process is other code. */
	assert_int_not_equal(lull_stacks_add(&f.stacks, f.w, 2, pcs, 3), a);
	/* The root is the outermost frame. */
	assert_int_equal(parent_of(&f, parent_of(&f, parent_of(&f, a))), 0);
	assert_int_equal(frame_of(&f, parent_of(&f, parent_of(&f, a)))->addr, 0x30);
	end(&f);
}

static void python_stacks_have_names_at_once(void **state)
{
	const struct lull_py_frame frames[] = { { "forward", "/m.py", 12 },
						{ "<module>", "/main.py", 3 } };
	struct fixture f;
	u32 node;

	(void)state;
	begin(&f);
	node = lull_stacks_add_python(&f.stacks, f.w, frames, 2);
	assert_int_equal(lull_stacks_add_python(&f.stacks, f.w, frames, 2), node);
	assert_int_equal(frame_of(&f, node)->kind, 2);
	assert_true(is_text(&f, frame_of(&f, node)->function, "forward"));
	assert_int_equal(frame_of(&f, node)->line, 12);
	assert_true(is_text(&f, frame_of(&f, parent_of(&f, node))->file, "/main.py"));
	end(&f);
}

static void jit_and_kernel_frames_get_their_names(void **state)
{
	const struct lull_pc pcs[] = { { 0xffffffff81000010ULL, 0xffffffff81000010ULL, 0,
					 LULL_PC_KERNEL },
				       { 0x1010, 0x1010, 0, LULL_PC_JIT } };
	struct lull_stacks_names names = { 0 };
	struct lull_kallsyms kernel;
	struct lull_err err;
	struct lull_jit jit;
	struct fixture f;
	char path[128];
	u32 node;

	(void)state;
	begin(&f);
	assert_int_equal(program_run("cd %s && echo '1000 100 jitted' >map && echo "
				     "'ffffffff81000000 T entry' >syms",
				     dir),
			 0);
	lull_jit_init(&jit);
	lull_kallsyms_init(&kernel);
	snprintf(path, sizeof(path), "%s/map", dir);
	assert_int_equal(lull_jit_read_map(&jit, path, &err), LULL_OK);
	snprintf(path, sizeof(path), "%s/syms", dir);
	assert_int_equal(lull_kallsyms_read(&kernel, path, &err), LULL_OK);
	node = lull_stacks_add(&f.stacks, f.w, 7, pcs, 2);
	lull_stacks_add_jit(&f.stacks, 7, &jit);
	names.kernel = &kernel;
	lull_stacks_resolve(&f.stacks, f.w, &names);
	assert_true(is_text(&f, frame_of(&f, node)->function, "entry"));
	assert_int_equal(frame_of(&f, node)->kind, 3);
	assert_true(is_text(&f, frame_of(&f, parent_of(&f, node))->function, "jitted"));
	lull_jit_release(&jit);
	lull_kallsyms_release(&kernel);
	end(&f);
}

/* Map DIR/program at 0x100000 and give the address there of its function `name`. */
static u64 map_program(struct fixture *f, const char *name)
{
	struct lull_mmap m = {
		.start = 0x100000, .end = 0x200000, .bias = 0x100000, .has_bias = true
	};
	struct lull_elf *elf;
	char path[128];

	assert_int_equal(program_run("cc -O1 -g test/data/inlined.c -o %s/program", dir), 0);
	snprintf(path, sizeof(path), "%s/program", dir);
	m.path = path;
	lull_space_map(&f->space, &m);
	elf = lull_files_get(&f->files, lull_space_find(&f->space, m.start)->file_ix)->elf;
	lull_elf_find_symbol(elf, 0);
	for (size_t i = 0; i < elf->symbols.n; i++) {
		const struct lull_elf_symbol *s = lull_vec_get(&elf->symbols, i);

		if (!strcmp(s->name, name))
			return m.start + s->vaddr;
	}
	fail_msg("no function %s", name);
	return 0;
}

/*
 * Seal the report and write the stack of `node` as "function:line/kind;..." from the innermost
 * frame.
 */
static void read_back(struct fixture *f, u32 node, struct lull_str *text)
{
	const struct lull_stack_row *stacks;
	const struct lull_frame_row *frames;
	struct lull_reader *r = NULL;
	const char *calls = "";
	struct lull_err err;
	size_t n;

	assert_int_equal(lull_writer_seal(f->w, &err), LULL_OK);
	f->w = NULL;
	assert_int_equal(lull_reader_open(&r, f->path, &err), LULL_OK);
	stacks = lull_reader_dim(r, LULL_TABLE_stack, &n);
	frames = lull_reader_dim(r, LULL_TABLE_frame, &n);
	for (; node; node = stacks[node - 1].parent) {
		const struct lull_frame_row *frame = &frames[stacks[node - 1].frame - 1];

		lull_str_addf(text, "%s[%s]:%u;", lull_reader_string(r, frame->function, NULL),
			      lull_reader_string(r, frame->inlined, NULL), frame->line);
		calls = frame->calls ? lull_reader_string(r, frame->calls, NULL) : calls;
	}
	/* Two calls, of middle() and innermost(), each with its line. */
	assert_non_null(strstr(calls, "test/data/inlined.c:19;"));
	assert_string_equal(strrchr(calls, '/'), "/inlined.c:14");
	lull_reader_close(r);
}

static void inlined_functions_are_listed_in_the_one_around_them(void **state)
{
	struct lull_stacks_names names = { 0 };
	struct lull_str text = LULL_STR_INIT;
	const struct lull_module_row *module;
	struct lull_pc pcs[2];
	struct fixture f;
	u64 outer, main_addr;
	u32 nodes[16];

	(void)state;
	begin(&f);
	outer = map_program(&f, "outer");
	main_addr = map_program(&f, "main");
	/*
	 * All instructions of outer, so that the inlined ones are among them whatever the compiler
	 * did.
	 */
	for (u32 i = 0; i < LULL_COUNT_OF(nodes); i++) {
		pcs[0] = lull_space_pc(&f.space, outer + i, false);
		pcs[1] = lull_space_pc(&f.space, main_addr + 1, true);
		nodes[i] = lull_stacks_add(&f.stacks, f.w, 1, pcs, 2);
	}
	lull_stacks_add_module(&f.stacks, f.w, 1, lull_space_find(&f.space, outer));
	assert_int_equal(lull_writer_n_dim(f.w, LULL_TABLE_module), 1);
	module = lull_writer_dim(f.w, LULL_TABLE_module, 1);
	assert_int_not_equal(module->build_id, 0);
	lull_stacks_resolve(&f.stacks, f.w, &names);
	for (u32 i = 0; i < LULL_COUNT_OF(nodes); i++)
		if (frame_of(&f, nodes[i])->line == 9)
			nodes[0] = nodes[i];
	read_back(&f, nodes[0], &text);
	assert_memory_equal(text.at, "outer[middle;innermost]:9;main[]:", 33);
	lull_str_release(&text);
	end(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_stacks_share_their_nodes),
		cmocka_unit_test(python_stacks_have_names_at_once),
		cmocka_unit_test(jit_and_kernel_frames_get_their_names),
		cmocka_unit_test(inlined_functions_are_listed_in_the_one_around_them),
	};
	int rc;

	program_make_dir(dir);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	program_remove_dir(dir);
	return rc;
}
