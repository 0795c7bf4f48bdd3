/*
 * fuzz_sqlite - throw changed SQLite files at the importer, and changed reports at SQL.
 *
 *	fuzz_sqlite [SECONDS [SEED]]		(default 10 s, seed 1)
 *
 * A small report is exported to SQLite; bits, values at the edge, runs of bytes and the end of that
 * file are changed; then it is imported, and every table of what came of it is asked in SQL. In
 * every other round the report itself is changed and asked. Built with ASan and UBSan, the judges;
 * nothing may hang. The seed of a failure is the last one printed.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "export/export.h"
#include "import/import.h"
#include "query/query.h"
#include "trace/text.h"

#define HANG_S	  30 /* a run takes some 10 milliseconds */
#define MAX_BYTES (1u << 20)

static const char report[] =
	"meta key=host.name value=test\nprocess pid=10 name=train\n"
	"device process=1 device_id=0 name=GPU uuid=aa n_sms=10\n"
	"lane kind=1 process=1 tid=10 name=main\nlane kind=2 process=1 device=1 stream_id=7\n"
	"module path=/bin/x\nframe module=1 addr=64 function=f\nframe module=1 addr=65\n"
	"stack frame=1\nstack parent=1 frame=2\nlabel name=forward domain=mine\n"
	"label name=backward category=3 category_name=io\n"
	"launch name=\"void gemm<int>(int)\" grid_x=4 block_x=32\n"
	"range start=100us dur=20us lane=1 label=1\n"
	"range start=105us dur=5us depth=1 lane=1 label=2 payload_type=2 payload=7\n"
	"mark start=310us lane=1 label=2\n"
	"oscall start=1us dur=7us lane=1 name=read ret=-1 stack=2\n"
	"sample start=5us lane=1 stack=2 cpu=3\nsched start=5us dur=3us lane=1 cpu=3\n"
	"cuda_call start=1us dur=2us lane=1 name=cudaLaunchKernel correlation=1 api=2\n"
	"kernel start=4us dur=9us lane=2 launch=1 correlation=1 process=1\n"
	"memcpy start=14us dur=9us lane=2 size_bytes=100 copy_kind=1 correlation=2 process=1\n"
	"memset start=24us dur=9us lane=2 size_bytes=100 correlation=3 process=1\n"
	"cuda_sync start=24us dur=9us lane=2 kind=3 correlation=4 process=1\n"
	"step start=1us dur=40us lane=1 number=1\n";

static const char *const queries[] = {
	"SELECT sum(length(text)), sum(end - start) FROM NVTX_EVENTS n",
	"SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r "
	"USING "
	"(correlationId) JOIN StringIds s ON s.id = k.shortName WHERE k.start > 5",
	"SELECT * FROM SAMPLING_CALLCHAINS c JOIN COMPOSITE_EVENTS e USING (id)",
	"SELECT * FROM OSRT_API LEFT JOIN OSRT_CALLCHAINS c ON c.id = callchainId",
	"SELECT * FROM StringIds",
	"SELECT * FROM SCHED_EVENTS WHERE start BETWEEN 1 AND 9000",
	"SELECT * FROM idle, steps",
	"SELECT * FROM kernels JOIN calls USING (correlation)",
	"SELECT * FROM copies, ranges, marks, oscalls, samples",
	"SELECT * FROM TARGET_INFO_GPU, TARGET_INFO_CUDA_DEVICE, TARGET_INFO_CUDA_STREAM",
	"SELECT * FROM PROCESSES, ThreadNames, ANALYSIS_DETAILS, META_DATA_CAPTURE",
};

struct fuzz {
	u64 state;
	u8 *bytes;
	size_t len;
};

struct paths {
	struct lull_str report, sqlite, back;
};

static u64 next_random(struct fuzz *f)
{
	f->state ^= f->state << 13;
	f->state ^= f->state >> 7;
	f->state ^= f->state << 17;
	return f->state;
}

static size_t below(struct fuzz *f, size_t n)
{
	return n ? (size_t)(next_random(f) % n) : 0;
}

static void change_once(struct fuzz *f)
{
	static const u8 edges[] = { 0, 1, 0x7f, 0x80, 0xff };
	size_t at = below(f, f->len), n;

	switch (below(f, 5)) {
	case 0:
		f->bytes[at] ^= (u8)(1u << below(f, 8));
		return;
	case 1:
	case 2:
		n = 1 + below(f, 8);
		memset(f->bytes + at, edges[below(f, sizeof(edges))],
		       n < f->len - at ? n : f->len - at);
		return;
	case 3:
		n = below(f, 300);
		memset(f->bytes + at, (int)below(f, 256), n < f->len - at ? n : f->len - at);
		return;
	default:
		/* Rarely: what is after the end cannot be reached. */
		if (!below(f, 4))
			f->len -= below(f, f->len / 2);
	}
}

static void store(const char *path, const struct fuzz *f)
{
	FILE *to = fopen(path, "wb");

	if (!to || fwrite(f->bytes, 1, f->len, to) != f->len || fclose(to)) {
		perror(path);
		exit(1);
	}
}

static void load(const char *path, struct fuzz *f)
{
	FILE *from = fopen(path, "rb");

	f->bytes = lull_alloc(MAX_BYTES, 1);
	f->len = from ? fread(f->bytes, 1, MAX_BYTES, from) : 0;
	if (from)
		fclose(from);
}

/* Ask everything of a report, if it can be opened. */
static void ask(const char *path)
{
	const struct lull_query_limits limits = { .timeout_ns = 2 * LULL_NS_PER_S,
						  .max_rows = 1000 };
	const struct lull_out_options options = { .format = LULL_OUT_FORMAT_csv,
						  .sort_ix = LULL_OUT_UNSORTED };
	struct lull_query *q;
	struct lull_reader *r;
	struct lull_err err;
	FILE *null;

	if (lull_reader_open(&r, path, &err))
		return;
	null = fopen("/dev/null", "w");
	if (null && !lull_query_open(&q, r, &err)) {
		for (size_t i = 0; i < LULL_COUNT_OF(queries); i++)
			lull_query_run(q, queries[i], &limits, &options, null, &err);
		lull_query_close(q);
	}
	if (null)
		fclose(null);
	lull_reader_close(r);
}

static void run(const struct paths *p, const struct fuzz *original, bool is_report, u64 seed)
{
	struct fuzz f = { .state = seed * 0x9e3779b97f4a7c15ULL | 1, .len = original->len };
	const char *path = is_report ? p->report.at : p->sqlite.at;
	struct lull_err err;

	f.bytes = lull_alloc(f.len, 1);
	memcpy(f.bytes, original->bytes, f.len);
	for (size_t n = 1 + below(&f, 6); n; n--)
		change_once(&f);
	store(path, &f);
	alarm(HANG_S);
	if (is_report)
		ask(path);
	else if (!lull_import_file(path, p->back.at, NULL, NULL, &err))
		ask(p->back.at);
	alarm(0);
	unlink(p->back.at);
	free(f.bytes);
}

/* Small pages, and none that nobody reads, so that most changes hit something. */
static void shrink(const char *path)
{
	sqlite3 *db = NULL;
	sqlite3_stmt *names = NULL;
	struct lull_str sql = LULL_STR_INIT;

	if (sqlite3_open(path, &db) == SQLITE_OK &&
	    sqlite3_prepare_v2(db, "SELECT name FROM sqlite_master WHERE name LIKE 'ENUM%'", -1,
			       &names, NULL) == SQLITE_OK)
		while (sqlite3_step(names) == SQLITE_ROW)
			lull_str_addf(&sql, "DROP TABLE %s;", sqlite3_column_text(names, 0));
	sqlite3_finalize(names);
	lull_str_puts(&sql, "PRAGMA page_size = 512; VACUUM;");
	sqlite3_exec(db, sql.at, NULL, NULL, NULL);
	sqlite3_close(db);
	lull_str_release(&sql);
}

/* The report and its export. */
static int make(const struct paths *p, struct fuzz *as_report, struct fuzz *as_sqlite,
		struct lull_err *err)
{
	const struct lull_export_options all = { .tables = { .elem_bytes = sizeof(char *) } };
	const struct lull_export_target target = { p->sqlite.at, true };
	struct lull_reader *r;

	if (lull_text_write(report, p->report.at, err) || lull_reader_open(&r, p->report.at, err))
		return err->code;
	if (lull_export_write(r, lull_export_find("sqlite"), &all, &target, err))
		return err->code;
	lull_reader_close(r);
	shrink(p->sqlite.at);
	load(p->report.at, as_report);
	load(p->sqlite.at, as_sqlite);
	return 0;
}

int main(int argc, char **argv)
{
	u64 seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 10;
	u64 seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, first = seed;
	u64 end_ns = lull_now_ns() + seconds * LULL_NS_PER_S;
	const char *folder = access("/dev/shm", W_OK) == 0 ? "/dev/shm" : "/tmp";
	struct paths p = { LULL_STR_INIT, LULL_STR_INIT, LULL_STR_INIT };
	struct fuzz as_report = { 0 }, as_sqlite = { 0 };
	struct lull_err err;

	lull_str_addf(&p.report, "%s/lull-fuzz-sql-%d.lull", folder, (int)getpid());
	lull_str_addf(&p.sqlite, "%s/lull-fuzz-sql-%d.sqlite", folder, (int)getpid());
	lull_str_addf(&p.back, "%s/lull-fuzz-sql-%d-back.lull", folder, (int)getpid());
	if (make(&p, &as_report, &as_sqlite, &err)) {
		fprintf(stderr, "fuzz_sqlite: %s\n", err.msg);
		return 1;
	}
	for (; lull_now_ns() < end_ns; seed++) {
		fprintf(stderr, "\rseed %llu", (unsigned long long)seed);
		run(&p, seed & 1 ? &as_sqlite : &as_report, !(seed & 1), seed);
	}
	fprintf(stderr, "\r");
	printf("fuzz_sqlite: %llu files of %zu and %zu bytes, no fault\n",
	       (unsigned long long)(seed - first), as_sqlite.len, as_report.len);
	unlink(p.report.at);
	unlink(p.sqlite.at);
	lull_str_release(&p.report);
	lull_str_release(&p.sqlite);
	lull_str_release(&p.back);
	free(as_report.bytes);
	free(as_sqlite.bytes);
	return 0;
}
