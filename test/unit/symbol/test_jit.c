#include "symbol/jit.h"

#include <unistd.h>

#include "symbol/kallsyms.h"
#include "support/program.h"
#include "unit/unit.h"

static char dir[64];

/* Write DIR/name and give its path. */
static const char *write_file(const char *name, const void *bytes, size_t n)
{
	static char path[128];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, n, f), n);
	fclose(f);
	return path;
}

static const char *write_text(const char *name, const char *text)
{
	return write_file(name, text, strlen(text));
}

static void perf_map_names_addresses(void **state)
{
	const char *path = write_text("map", "1000 100 first\n"
					     "nonsense\n"
					     "2000 0 empty\n"
					     "3000 40 py::outer:/home/x y.py\n"
					     "1080 10 inside\n"
					     "1000 100 first again");
	struct lull_err err;
	struct lull_jit j;

	(void)state;
	lull_jit_init(&j);
	assert_null(lull_jit_find(&j, 0x1000, 0));
	assert_int_equal(lull_jit_read_map(&j, path, &err), LULL_OK);
	assert_string_equal(lull_jit_find(&j, 0x1000, UINT64_MAX), "first again");
	assert_string_equal(lull_jit_find(&j, 0x10ff, UINT64_MAX), "first again");
	assert_null(lull_jit_find(&j, 0x1100, UINT64_MAX));
	assert_null(lull_jit_find(&j, 0x2000, UINT64_MAX));
	assert_string_equal(lull_jit_find(&j, 0x303f, UINT64_MAX), "py::outer:/home/x y.py");
	assert_int_equal(lull_jit_read_map(&j, "/nowhere", &err), LULL_E_IO);
	lull_jit_release(&j);
}

static void map_of_a_process_is_found_by_its_pid(void **state)
{
	struct lull_err err;
	struct lull_jit j;
	char path[64];
	FILE *f;

	(void)state;
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
	f = fopen(path, "w");
	assert_non_null(f);
	fputs("5000 10 made\n", f);
	fclose(f);
	lull_jit_init(&j);
	assert_int_equal(lull_jit_read_process(&j, (u32)getpid(), &err), LULL_OK);
	assert_string_equal(lull_jit_find(&j, 0x5008, 0), "made");
	unlink(path);
	assert_int_equal(lull_jit_read_process(&j, (u32)getpid(), &err), LULL_E_NOT_FOUND);
	lull_jit_release(&j);
}

/* A jitdump under construction. */
struct dump {
	u8 at[1024];
	size_t n;
};

static void put32(struct dump *d, u32 v)
{
	memcpy(d->at + d->n, &v, sizeof(v));
	d->n += sizeof(v);
}

static void put64(struct dump *d, u64 v)
{
	memcpy(d->at + d->n, &v, sizeof(v));
	d->n += sizeof(v);
}

static void put_head(struct dump *d)
{
	*d = (struct dump){ 0 };
	put32(d, 0x4a695444);
	put32(d, 1);
	put32(d, 40);
	for (int i = 0; i < 3; i++)
		put32(d, 0);
	put64(d, 0);
	put64(d, 0);
}

static void put_load(struct dump *d, u64 time_ns, u64 addr, const char *name)
{
	put32(d, 0);
	put32(d, (u32)(56 + strlen(name) + 1 + 4));
	put64(d, time_ns);
	put64(d, 0); /* pid, tid */
	put64(d, addr);
	put64(d, addr);
	put64(d, 0x100);
	put64(d, 1);
	strcpy((char *)d->at + d->n, name);
	d->n += strlen(name) + 1 + 4;
}

static void put_move(struct dump *d, u64 time_ns, u64 from, u64 to)
{
	put32(d, 1);
	put32(d, 64);
	put64(d, time_ns);
	put64(d, 0);
	put64(d, from);
	put64(d, from);
	put64(d, to);
	put64(d, 0x100);
	put64(d, 1);
}

static void jitdump_names_addresses_at_their_time(void **state)
{
	struct lull_err err;
	struct lull_jit j;
	struct dump d;

	(void)state;
	put_head(&d);
	put_load(&d, 100, 0x1000, "early");
	put_load(&d, 200, 0x1000, "late");
	put_move(&d, 300, 0x1000, 0x8000);
	lull_jit_init(&j);
	assert_int_equal(lull_jit_read_dump(&j, write_file("dump", d.at, d.n), &err), LULL_OK);
	assert_null(lull_jit_find(&j, 0x1010, 99));
	assert_string_equal(lull_jit_find(&j, 0x1010, 150), "early");
	assert_string_equal(lull_jit_find(&j, 0x1010, 250), "late");
	assert_null(lull_jit_find(&j, 0x8010, 250));
	assert_string_equal(lull_jit_find(&j, 0x8010, 300), "late");
	lull_jit_release(&j);
}

static void damaged_jitdump_never_crashes(void **state)
{
	struct lull_err err;
	struct dump d, whole;
	u32 seed = 12345;

	(void)state;
	put_head(&whole);
	put_load(&whole, 100, 0x1000, "early");
	put_move(&whole, 300, 0x1000, 0x8000);
	for (size_t n = 0; n <= whole.n; n++) {
		struct lull_jit j;

		lull_jit_init(&j);
		lull_jit_read_dump(&j, write_file("dump", whole.at, n), &err);
		lull_jit_find(&j, 0x1010, 200);
		lull_jit_release(&j);
	}
	for (int round = 0; round < 500; round++) {
		struct lull_jit j;

		d = whole;
		for (int i = 0; i < 4; i++) {
			seed = seed * 1664525 + 1013904223;
			d.at[(seed >> 8) % d.n] = (u8)(seed >> 24);
		}
		lull_jit_init(&j);
		lull_jit_read_dump(&j, write_file("dump", d.at, d.n), &err);
		lull_jit_find(&j, 0x1010, 200);
		lull_jit_release(&j);
	}
}

static void kernel_functions_are_found(void **state)
{
	const char *path = write_text("kallsyms", "ffffffff81000000 T _stext\n"
						  "ffffffff81000100 t do_work\n"
						  "ffffffff81000200 D some_data\n"
						  "ffffffffc0001000 t ioctl_entry\t[driver]\n");
	struct lull_kallsyms k;
	struct lull_err err;

	(void)state;
	lull_kallsyms_init(&k);
	assert_null(lull_kallsyms_find(&k, 0xffffffff81000000ULL));
	assert_int_equal(lull_kallsyms_read(&k, path, &err), LULL_OK);
	assert_string_equal(lull_kallsyms_find(&k, 0xffffffff81000010ULL), "_stext");
	assert_string_equal(lull_kallsyms_find(&k, 0xffffffff81000210ULL), "do_work");
	assert_string_equal(lull_kallsyms_find(&k, 0xffffffffc0001abcULL), "ioctl_entry [driver]");
	assert_null(lull_kallsyms_find(&k, 0x1000));
	lull_kallsyms_release(&k);
}

static void hidden_kernel_addresses_are_an_error(void **state)
{
	const char *path =
		write_text("kallsyms", "0000000000000000 T _stext\n0000000000000000 t do_work\n");
	struct lull_kallsyms k;
	struct lull_err err;

	(void)state;
	lull_kallsyms_init(&k);
	assert_int_equal(lull_kallsyms_read(&k, path, &err), LULL_E_UNSUPPORTED);
	lull_kallsyms_release(&k);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(perf_map_names_addresses),
		cmocka_unit_test(map_of_a_process_is_found_by_its_pid),
		cmocka_unit_test(jitdump_names_addresses_at_their_time),
		cmocka_unit_test(damaged_jitdump_never_crashes),
		cmocka_unit_test(kernel_functions_are_found),
		cmocka_unit_test(hidden_kernel_addresses_are_an_error),
	};
	int rc;

	program_make_dir(dir);
	rc = cmocka_run_group_tests(tests, NULL, NULL);
	program_remove_dir(dir);
	return rc;
}
