#include "import/import.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/str.h"
#include "import/other_name.h"

#define IMPORT(name) extern const struct lull_import lull_import_##name;
#include "import/imports.def"
#undef IMPORT

const struct lull_import *const lull_imports[] = {
#define IMPORT(name) &lull_import_##name,
#include "import/imports.def"
#undef IMPORT
	NULL,
};

#define COPY_BYTES (256u << 10)

const struct lull_import *lull_import_find(const char *name)
{
	for (const struct lull_import *const *i = lull_imports; *i; i++)
		if (strcmp((*i)->name, name) == 0)
			return *i;
	return NULL;
}

/* ---- temporary files ---- */

/* A new private folder; free() the name. NULL with *err set if there can be none. */
static char *make_temporary_dir(struct lull_err *err)
{
	const char *tmp = getenv("TMPDIR");
	struct lull_str dir = LULL_STR_INIT;

	lull_str_addf(&dir, "%s/lull-import-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	if (mkdtemp(dir.at))
		return dir.at;
	lull_fail_errno(err, "creating a temporary folder %s", dir.at);
	lull_str_release(&dir);
	return NULL;
}

static char *path_in(const char *dir, const char *name)
{
	struct lull_str path = LULL_STR_INIT;

	lull_str_addf(&path, "%s/%s", dir, name);
	return path.at;
}

static int copy_unpacked(struct lull_import_job *job, struct lull_err *err)
{
	u8 *bytes = lull_alloc(COPY_BYTES, 1);
	int fd = lull_io_create(job->plain_path), rc = 0;
	u64 off = 0;
	i64 n = 0;

	if (fd < 0)
		rc = lull_fail_errno(err, "creating %s", job->plain_path);
	else
		rc = lull_stream_rewind(job->stream, err);
	while (!rc && (n = lull_stream_read(job->stream, bytes, COPY_BYTES, err)) > 0) {
		if (lull_io_write_at(fd, bytes, (size_t)n, off))
			rc = lull_fail_errno(err, "decompressing %s to %s", job->path,
					     job->plain_path);
		off += (u64)n;
	}
	if (!rc && n < 0)
		rc = (int)n;
	if (fd >= 0)
		close(fd);
	free(bytes);
	return rc;
}

int lull_import_plain_path(struct lull_import_job *job, const char **path, struct lull_err *err)
{
	*path = job->plain_path ? job->plain_path : job->path;
	if (job->plain_path || !lull_stream_is_packed(job->stream))
		return 0;
	job->plain_dir = make_temporary_dir(err);
	if (!job->plain_dir)
		return err->code;
	*path = job->plain_path = path_in(job->plain_dir, "unpacked");
	return copy_unpacked(job, err);
}

static void release_job(struct lull_import_job *job)
{
	if (job->plain_path)
		unlink(job->plain_path);
	if (job->plain_dir)
		rmdir(job->plain_dir);
	free(job->plain_path);
	free(job->plain_dir);
	lull_stream_close(job->stream);
}

/* ---- recognising ---- */

/* The first bytes, unpacked; the stream begins again afterwards. The number, or a negative code. */
static i64 read_head(struct lull_stream *s, u8 *head, struct lull_err *err)
{
	i64 n = lull_stream_read(s, head, LULL_IMPORT_HEAD_BYTES, err);
	int rc = n < 0 ? (int)n : lull_stream_rewind(s, err);

	return rc ? rc : n;
}

static const struct lull_import *recognise(const u8 *head, size_t len)
{
	const struct lull_import *best = NULL;
	int best_score = 0;

	for (const struct lull_import *const *i = lull_imports; *i; i++) {
		int score = (*i)->sniff(head, len);

		if (score > best_score) {
			best = *i;
			best_score = score;
		}
	}
	return best;
}

/* The sentence for a file that is none of ours; the closed formats have a way out. */
static int unknown_file(const char *path, const u8 *head, size_t len, struct lull_err *err)
{
	struct lull_str names = LULL_STR_INIT;
	const char *dot = strrchr(path, '.');
	int rc;

	for (const struct lull_import *const *i = lull_imports; *i; i++)
		lull_str_addf(&names, ", %s", (*i)->name);
	if (dot && (!strcmp(dot, ".nsys-rep") || !strcmp(dot, ".qdrep")))
		rc = lull_fail(err, LULL_E_UNSUPPORTED,
			       "%s: this format is closed; export it with "
			       "`nsys export -t sqlite` and give the .sqlite file",
			       path);
	else if (len >= 8 && !memcmp(head, "LULLFILE", 8))
		rc = lull_fail(err, LULL_E_USAGE, "%s is already a report", path);
	else if (!len)
		rc = lull_fail(err, LULL_E_FORMAT, "%s is empty", path);
	else
		rc = lull_fail(err, LULL_E_FORMAT,
			       "%s starts with byte %#04x and has none of the formats that lull "
			       "reads: .lull%s",
			       path, head[0], lull_str_text(&names));
	lull_str_release(&names);
	return rc;
}

static int choose_format(struct lull_import_job *job, struct lull_err *err)
{
	const char *type = job->options->type;
	u8 *head = lull_alloc(LULL_IMPORT_HEAD_BYTES, 1);
	i64 len = read_head(job->stream, head, err);
	int rc = len < 0 ? (int)len : 0;

	if (!rc && type) {
		job->result->format = lull_import_find(type);
		if (!job->result->format)
			rc = lull_fail(err, LULL_E_USAGE,
				       "there is no format %s; `lull import --list` shows them",
				       type);
	} else if (!rc) {
		job->result->format = recognise(head, (size_t)len);
		if (!job->result->format)
			rc = unknown_file(job->path, head, (size_t)len, err);
	}
	free(head);
	return rc;
}

/* ---- importing ---- */

/*
 * The same file gives the same id, so that two imports of it are known to be one recording, and
 * equal to the last byte.
 */
static void make_id(struct lull_import_job *job, u8 id[16])
{
	u8 *tail = lull_alloc(LULL_IMPORT_HEAD_BYTES, 1);
	size_t len = lull_stream_tail(job->stream, tail, LULL_IMPORT_HEAD_BYTES);
	u64 size_bytes = lull_stream_size_bytes(job->stream);
	u64 words[2] = { lull_hash(&size_bytes, sizeof(size_bytes)), lull_hash(tail, len) };
	int fd = open(job->path, O_RDONLY | O_CLOEXEC);

	if (fd >= 0) {
		i64 n = lull_io_read_at(fd, tail, LULL_IMPORT_HEAD_BYTES, 0);

		words[0] ^= lull_hash(tail, n > 0 ? (size_t)n : 0);
		close(fd);
	}
	memcpy(id, words, sizeof(words));
	free(tail);
}

int lull_import_begin(struct lull_import_job *job, const struct lull_file_info *info,
		      struct lull_err *err)
{
	struct lull_file_info mine = *info;
	int rc;

	if (job->writer)
		lull_writer_discard(job->writer);
	job->writer = NULL;
	mine.flags |= LULL_FILE_IMPORTED;
	make_id(job, mine.id);
	rc = lull_writer_open(&job->writer, job->out_path, &mine, err);
	if (!rc && job->options->is_temporary)
		lull_writer_set_temporary(job->writer);
	if (!rc) {
		const char *name = job->result->format->name;
		const char *slash = strrchr(job->path, '/');
		const char *base = slash ? slash + 1 : job->path;

		lull_import_meta(job, "import.format", name, strlen(name));
		lull_import_meta(job, "import.file", base, strlen(base));
	}
	return rc;
}

void lull_import_meta(struct lull_import_job *job, const char *key, const char *value, size_t len)
{
	struct lull_meta_row row = {
		.key = lull_writer_string(job->writer, key, strlen(key)),
		.value = lull_writer_string(job->writer, value, len),
	};

	if (row.value)
		lull_writer_add_dim(job->writer, LULL_TABLE_meta, &row);
}

/* Seal what run() wrote, or remove it. */
static int finish(struct lull_import_job *job, int rc, struct lull_err *err)
{
	struct lull_writer_stats stats;

	if (!job->writer)
		return rc;
	if (!rc)
		rc = lull_writer_error(job->writer, err);
	if (rc) {
		lull_writer_discard(job->writer);
		return rc;
	}
	if (lull_writer_stats(job->writer).n_other)
		lull_issue_write(job->writer, LULL_ISSUE_strings_full, 0,
				 lull_writer_stats(job->writer).n_other, NULL);
	rc = lull_writer_flush(job->writer, err);
	stats = lull_writer_stats(job->writer);
	job->result->n_rows = stats.n_rows;
	if (rc) {
		lull_writer_discard(job->writer);
		return rc;
	}
	rc = lull_writer_seal(job->writer, err);
	job->result->size_bytes = stats.size_bytes;
	return rc;
}

static void on_read(void *ctx, u64 done_bytes)
{
	struct lull_import_job *job = ctx;

	lull_progress_at(&job->progress, done_bytes);
}

int lull_import_file(const char *path, const char *out_path,
		     const struct lull_import_options *options, struct lull_import_result *result,
		     struct lull_err *err)
{
	static const struct lull_import_options none = { 0 };
	struct lull_import_result mine = { 0 };
	struct lull_import_job job = {
		.path = path,
		.out_path = out_path,
		.options = options ? options : &none,
		.result = result ? result : &mine,
	};
	int rc = lull_stream_open(&job.stream, path, err);

	*job.result = (struct lull_import_result){ 0 };
	if (rc)
		return rc;
	job.result->in_bytes = lull_stream_size_bytes(job.stream);
	lull_progress_init(&job.progress, job.options->is_quiet);
	lull_progress_begin(&job.progress, "importing", NULL, job.result->in_bytes);
	lull_stream_watch(job.stream, on_read, &job);
	rc = choose_format(&job, err);
	if (!rc) {
		rc = job.result->format->run(&job, err);
		rc = finish(&job, rc, err);
	}
	lull_progress_clear(&job.progress);
	release_job(&job);
	return rc;
}

/* ---- opening ---- */

bool lull_import_is_report(const char *path)
{
	char magic[8] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	bool is = fd >= 0 && lull_io_read_at(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
		  !memcmp(magic, "LULLFILE", sizeof(magic));

	if (fd >= 0)
		close(fd);
	return is;
}

static int open_file(const char *path, struct lull_reader **r, struct lull_err *err)
{
	static const struct lull_import_options options = { .is_temporary = true };
	struct stat st;
	char *dir, *report;
	int rc;

	if (lull_import_is_report(path))
		return lull_reader_open(r, path, err);
	if (!stat(path, &st) && S_ISDIR(st.st_mode))
		return lull_fail(
			err, LULL_E_FORMAT,
			"%s is a folder; give one of the reports in it (stats, why, view, "
			"timeline, diff, gate and export also read folders of rank reports)",
			path);
	dir = make_temporary_dir(err);
	if (!dir)
		return err->code;
	report = path_in(dir, "import.lull");
	rc = lull_import_file(path, report, &options, NULL, err);
	if (!rc)
		rc = lull_reader_open(r, report, err);
	unlink(report);
	rmdir(dir);
	free(report);
	free(dir);
	return rc;
}

int lull_import_open(const char *path, struct lull_reader **r, struct lull_err *err)
{
	struct lull_str used = LULL_STR_INIT;
	int rc;

	lull_other_name(path, &used);
	rc = open_file(lull_str_text(&used), r, err);
	if (rc)
		rc = lull_other_advice(lull_str_text(&used), err);
	lull_str_release(&used);
	return rc;
}
