/*
 * report - a small report in a temporary folder, and what a reader sees in it.
 */
#ifndef LULL_TEST_UNIT_REPORT_H
#define LULL_TEST_UNIT_REPORT_H

#include <limits.h>
#include <unistd.h>

#include "unit/unit.h"

#include "export/export.h"
#include "trace/reader.h"
#include "trace/text.h"
#include "trace/writer.h"

/* A folder of its own for each test program, and names inside it. */
struct report_dir {
	char path[PATH_MAX];
	char file[PATH_MAX + 16];  /* the report */
	char part[PATH_MAX + 32];  /* while it is written */
	char other[PATH_MAX + 16]; /* a second one */
};

/* cmocka set-up: make the folder. */
static inline int report_set_up(void **state)
{
	/* In memory where possible: a disk waits each time a file is written again. */
	const char *tmp = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : getenv("TMPDIR");
	struct report_dir *d = calloc(1, sizeof(*d));

	snprintf(d->path, sizeof(d->path), "%s/lull-unit-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(d->path))
		return -1;
	snprintf(d->file, sizeof(d->file), "%s/a.lull", d->path);
	snprintf(d->part, sizeof(d->part), "%s.part", d->file);
	snprintf(d->other, sizeof(d->other), "%s/b.lull", d->path);
	*state = d;
	return 0;
}

/* cmocka tear-down: remove it with what the tests left there. */
static inline int report_tear_down(void **state)
{
	struct report_dir *d = *state;
	char other_part[PATH_MAX + 32];

	snprintf(other_part, sizeof(other_part), "%s.part", d->other);
	unlink(d->file);
	unlink(d->part);
	unlink(d->other);
	unlink(other_part);
	rmdir(d->path);
	free(d);
	return 0;
}

/* Fails the test with the sentence if rc is not 0. */
static inline void report_ok(int rc, const struct lull_err *err)
{
	if (rc)
		fail_msg("%s", err->msg);
}

/* All rows of the reader's report as JSON lines; free it. `tables` NULL = all. */
static inline char *report_dump(struct lull_reader *r, const char *table)
{
	struct lull_export_options options = { .tables = { .elem_bytes = sizeof(char *) } };
	struct unit_stream s;
	struct lull_err err;

	if (table)
		lull_vec_add(&options.tables, &table, 1);
	unit_open(&s);
	report_ok(lull_export_find("jsonlines")->write(r, &options, s.to, &err), &err);
	fclose(s.to);
	lull_vec_release(&options.tables);
	return s.text;
}

/* The same for a file. */
static inline char *report_dump_file(const char *path, const char *table)
{
	struct lull_reader *r;
	struct lull_err err;
	char *dump;

	report_ok(lull_reader_open(&r, path, &err), &err);
	dump = report_dump(r, table);
	lull_reader_close(r);
	return dump;
}

/* The bytes of a file; free them. */
static inline unsigned char *report_load(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rb");
	unsigned char *bytes;

	assert_non_null(f);
	fseek(f, 0, SEEK_END);
	*len = (size_t)ftell(f);
	rewind(f);
	bytes = malloc(*len + 1);
	assert_int_equal(fread(bytes, 1, *len, f), *len);
	fclose(f);
	return bytes;
}

/* Make a file of these bytes. */
static inline void report_store(const char *path, const void *bytes, size_t len)
{
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	fclose(f);
}

/* True if every line of `some` is a line of `all`. */
static inline bool report_is_part_of(const char *some, const char *all)
{
	while (*some) {
		size_t len = strcspn(some, "\n") + 1;
		const char *at = all;

		while (*at && strncmp(at, some, len) != 0)
			at += strcspn(at, "\n") + 1;
		if (!*at)
			return false;
		some += len;
	}
	return true;
}

#endif
