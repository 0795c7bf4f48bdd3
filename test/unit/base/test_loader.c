#include "unit/unit.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/loader.h"

static char folder[] = "/tmp/lull-test-XXXXXX";

static const char *at(const char *name)
{
	static char path[256];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return path;
}

static void put(const char *name, const void *bytes, size_t n)
{
	FILE *f = fopen(at(name), "w");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	fclose(f);
	chmod(at(name), 0755);
}

/* An ELF file that names this loader, or none. */
static void put_program(const char *name, const char *loader)
{
	struct {
		Elf64_Ehdr head;
		Elf64_Phdr parts[2];
		char loader[300];
	} file = {
		.head = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64 },
			  .e_machine = LULL_LOADER_MACHINE,
			  .e_phoff = sizeof(Elf64_Ehdr),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 2 },
		.parts = { { .p_type = PT_PHDR }, { .p_type = loader ? PT_INTERP : PT_LOAD } },
	};

	file.parts[1].p_offset = sizeof(file) - sizeof(file.loader);
	file.parts[1].p_filesz = loader ? strlen(loader) + 1 : 0;
	if (loader)
		snprintf(file.loader, sizeof(file.loader), "%s", loader);
	put(name, &file, sizeof(file));
}

static bool fits(const char *name)
{
	int fd = lull_loader_open(AT_FDCWD, at(name));
	bool is_fit;

	assert_true(fd >= 0);
	is_fit = lull_loader_fits(fd);
	close(fd);
	return is_fit;
}

/* What is said of it holds for the file alone. */
static bool is_final(const char *name)
{
	int fd = lull_loader_open(AT_FDCWD, at(name));
	bool is_final;

	lull_loader_judge(fd, &is_final);
	close(fd);
	return is_final;
}

static void programs_are_told_by_their_loader(void **state)
{
	(void)state;
	put_program("ours", "/lib/" LULL_LOADER_NAME);
	put_program("elsewhere", "/nix/store/x/" LULL_LOADER_NAME);
	put_program("static", NULL);
	put_program("musl", "/lib/ld-musl-any.so.1");
	assert_true(fits("ours"));
	assert_true(fits("elsewhere"));
	assert_true(fits("static"));
	assert_false(fits("musl"));
}

static void other_processors_do_not_fit(void **state)
{
	Elf64_Ehdr head = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS32 }, .e_machine = EM_386 };

	(void)state;
	put("short", &head, sizeof(head));
	assert_false(fits("short"));
	head.e_ident[EI_CLASS] = ELFCLASS64;
	head.e_machine = EM_RISCV;
	put("riscv", &head, sizeof(head));
	assert_false(fits("riscv"));
}

static void put_script(const char *name, const char *before, const char *of)
{
	char text[600];
	int n = snprintf(text, sizeof(text), "%s%s/%s word\n", before, folder, of);

	put(name, text, (size_t)n);
}

static void scripts_are_what_runs_them(void **state)
{
	(void)state;
	put_program("musl", "/lib/ld-musl-any.so.1");
	put_program("ours", "/lib/" LULL_LOADER_NAME);
	put_script("one", "#!", "musl");
	put_script("two", "#! \t", "one");
	put_script("good", "#!", "ours");
	put_script("self", "#!", "self");
	assert_false(fits("one"));
	assert_false(fits("two"));
	assert_true(fits("good"));
	assert_true(fits("self"));
	assert_true(is_final("ours"));
	assert_false(is_final("good"));
	assert_false(is_final("self"));
	assert_false(is_final("nothing"));
}

static void what_is_not_understood_fits(void **state)
{
	Elf64_Ehdr head = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64 },
			    .e_machine = LULL_LOADER_MACHINE,
			    .e_phoff = ~0ull,
			    .e_phentsize = sizeof(Elf64_Phdr),
			    .e_phnum = 60000 };
	char long_line[4000];

	(void)state;
	put("empty", "", 0);
	put("cut", "\177ELF", 4);
	put("words", "echo hello\n", 11);
	put("nothing", "#!", 2);
	put("blank", "#! \n", 4);
	put("gone", "#!/no/such/file\n", 16);
	put("far", &head, sizeof(head));
	memset(long_line, 'x', sizeof(long_line));
	memcpy(long_line, "#!/", 3);
	put("long", long_line, sizeof(long_line));
	head.e_phoff = sizeof(head);
	put("none", &head, sizeof(head));
	assert_int_equal(mkfifo(at("fifo"), 0700), 0);
	for (const char *const *name =
		     (const char *const[]){ "empty", "cut", "words", "nothing", "blank", "gone",
					    "far", "long", "none", "fifo", "", NULL };
	     *name; name++)
		assert_true(fits(*name));
	assert_true(lull_loader_fits(-1));
}

/* The file found is that one; NULL = none is. */
static void check_found(const char *list, const char *name)
{
	int fd = lull_loader_search("tool", list);
	struct stat found, wanted;

	assert_int_equal(fd >= 0, name != NULL);
	if (!name)
		return;
	assert_int_equal(fstat(fd, &found) | stat(at(name), &wanted), 0);
	assert_int_equal(found.st_ino, wanted.st_ino);
	close(fd);
}

static void programs_are_searched_as_execvp_does(void **state)
{
	char list[2000], long_list[2000];

	(void)state;
	mkdir(at("a"), 0700);
	mkdir(at("b"), 0700);
	put("a/tool", "x", 1);
	put("b/tool", "y", 1);
	snprintf(list, sizeof(list), "/nonexistent:%s/a:%s/b", folder, folder);
	check_found(list, "a/tool");
	chmod(at("a/tool"), 0644);
	check_found(list, "b/tool");
	snprintf(long_list, sizeof(long_list), "/%0900d:%s/b", 0, folder);
	check_found(long_list, "b/tool");
	check_found("/nonexistent", NULL);
	check_found("", NULL);
	assert_int_equal(chdir(at("b")), 0);
	check_found("", "b/tool");
	check_found("/nonexistent:", "b/tool");
	assert_int_equal(chdir("/"), 0);
	assert_true(lull_loader_search("sh", NULL) >= 0);
}

static int make_folder(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	char command[300];

	(void)state;
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(programs_are_told_by_their_loader),
		cmocka_unit_test(other_processors_do_not_fit),
		cmocka_unit_test(scripts_are_what_runs_them),
		cmocka_unit_test(what_is_not_understood_fits),
		cmocka_unit_test(programs_are_searched_as_execvp_does),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
