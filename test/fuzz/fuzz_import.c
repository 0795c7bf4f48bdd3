/*
 * fuzz_import - throw changed files at the importers of JSON and of pickles, for a while.
 *
 *	fuzz_import [SECONDS [SEED]]		(default 10 s, seed 1)
 *
 * Two small traces, one of PyTorch and one of another program, and a memory snapshot are changed at
 * random: bytes, pieces moved, cut and doubled, words planted that matter to JSON or are opcodes of
 * pickles. They are imported as any format, half of them packed. Built with ASan and UBSan: they
 * are the judges, together with three rules: nothing may hang, a report that comes of it is whole,
 * and one that does not leaves nothing behind. The seed of a failure is the last one printed.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include "base/mem.h"
#include "base/time.h"
#include "import/import.h"
#include "report/report.h"

#define HANG_S	  20 /* a run takes milliseconds */
#define MAX_BYTES 16384

static const char pytorch[] =
	"{\"schemaVersion\": 1, \"deviceProperties\": [{\"id\": 0, \"name\": \"X\", \"numSms\": "
	"4}],\n"
	"\"distributedInfo\": {\"rank\": 1}, \"baseTimeNanoseconds\": 17, \"traceEvents\": [\n"
	"{\"ph\": \"X\", \"cat\": \"cpu_op\", \"name\": \"aten::mm\", \"pid\": 401, \"tid\": 428, "
	"\"ts\": "
	"100.001, \"dur\": 20.5, \"args\": {\"External id\": 7, \"Input Dims\": [[2, 3], [3, 4]], "
	"\"Input type\": [\"float\", \"float\"], \"Concrete Inputs\": [\"\", \"[1, 2]\"]}},\n"
	"{\"ph\": \"X\", \"cat\": \"cuda_runtime\", \"name\": \"cudaLaunchKernel\", \"pid\": 401, "
	"\"tid\": "
	"428, \"ts\": 105, \"dur\": 5, \"args\": {\"cbid\": 211, \"correlation\": 11}},\n"
	"{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": \"gemm\", \"pid\": 0, \"tid\": 7, \"ts\": "
	"120.032, "
	"\"dur\": 3.2, \"args\": {\"device\": 0, \"context\": 1, \"stream\": 7, \"correlation\": "
	"11, "
	"\"grid\": [16, 2, 1], \"block\": [128, 1, 1]}},\n"
	"{\"ph\": \"X\", \"cat\": \"kernel\", \"name\": "
	"\"ncclKernel_AllReduce_RING_LL_Sum_float(x)\", "
	"\"pid\": 0, \"tid\": 40, \"ts\": 1, \"dur\": 9, \"args\": {\"Collective name\": "
	"\"allreduce\", "
	"\"In msg nelems\": 100, \"dtype\": \"Float\", \"Process Group Ranks\": \"[0, 1]\"}},\n"
	"{\"ph\": \"X\", \"cat\": \"gpu_memcpy\", \"name\": \"Memcpy HtoD (Pinned -> Device)\", "
	"\"pid\": 0, "
	"\"tid\": 7, \"ts\": 130, \"dur\": 1, \"args\": {\"bytes\": 4096}},\n"
	"{\"ph\": \"X\", \"cat\": \"gpu_memset\", \"name\": \"Memset (Device)\", \"pid\": 0, "
	"\"tid\": 7, "
	"\"ts\": 131, \"dur\": 1, \"args\": {\"bytes\": 4}},\n"
	"{\"ph\": \"X\", \"cat\": \"cuda_sync\", \"name\": \"Context Sync\", \"pid\": 0, \"tid\": "
	"-1, \"ts\": "
	"140, \"dur\": 9, \"args\": {\"cuda_sync_kind\": \"Context Sync\", \"stream\": "
	"4294967295}},\n"
	"{\"ph\": \"X\", \"cat\": \"user_annotation\", \"name\": \"ProfilerStep#4\", \"pid\": 401, "
	"\"tid\": "
	"401, \"ts\": 90, \"dur\": 200, \"args\": {}},\n"
	"{\"ph\": \"X\", \"cat\": \"gpu_user_annotation\", \"name\": \"f\", \"pid\": 0, \"tid\": "
	"7, \"ts\": 9, "
	"\"dur\": 2},\n"
	"{\"ph\": \"X\", \"cat\": \"python_function\", \"name\": \"train.py(41): step\", \"pid\": "
	"401, "
	"\"tid\": 401, \"ts\": 91, \"dur\": 190},\n"
	"{\"ph\": \"i\", \"cat\": \"cpu_instant_event\", \"name\": \"[memory]\", \"pid\": 401, "
	"\"tid\": 428, "
	"\"ts\": 104, \"args\": {\"Bytes\": -512, \"Device Type\": 1, \"Addr\": 1398310583}},\n"
	"{\"ph\": \"X\", \"cat\": \"overhead\", \"name\": \"Buffer Flush\", \"pid\": -1, \"tid\": "
	"0, \"ts\": 5, "
	"\"dur\": 1},\n"
	"{\"name\": \"thread_name\", \"ph\": \"M\", \"ts\": 0, \"pid\": 401, \"tid\": 428, "
	"\"args\": "
	"{\"name\": \"thread 428 (pt_autograd_0)\"}}\n], \"traceName\": \"x.json\"}";

static const char chrome[] =
	"[{\"ph\":\"B\",\"name\":\"outer\",\"cat\":\"a\",\"pid\":1,\"tid\":2,\"ts\":10},"
	"{\"ph\":\"B\",\"name\":\"in\\u00e9\\ud83d\\ude00\",\"pid\":1,\"tid\":2,\"ts\":12},"
	"{\"ph\":\"E\",\"pid\":1,\"tid\":2,\"ts\":15},{\"ph\":\"E\",\"pid\":1,\"tid\":2,\"ts\":20},"
	"{\"ph\":\"b\",\"cat\":\"net\",\"id\":\"0x1\",\"name\":\"get\",\"pid\":1,\"tid\":2,\"ts\":"
	"11},"
	"{\"ph\":\"n\",\"cat\":\"net\",\"id\":\"0x1\",\"name\":\"get\",\"pid\":1,\"tid\":2,\"ts\":"
	"12},"
	"{\"ph\":\"e\",\"cat\":\"net\",\"id\":\"0x1\",\"name\":\"get\",\"pid\":1,\"tid\":3,\"ts\":"
	"31},"
	"{\"ph\":\"i\",\"name\":\"here\",\"pid\":1,\"tid\":2,\"ts\":13,\"s\":\"t\"},"
	"{\"ph\":\"C\",\"name\":\"mem\",\"pid\":1,\"ts\":14,\"args\":{\"used\":5,\"free\":2.5}},"
	"{\"ph\":\"X\",\"name\":\"early\",\"pid\":\"P\",\"tid\":\"T\",\"ts\":\"5\",\"dur\":1,"
	"\"args\":{\"k\":[]}},"
	"{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":\"p\"}},"
	"{\"ph\":\"s\",\"id\":1,\"cat\":\"flow\",\"name\":\"f\",\"pid\":1,\"tid\":2,\"ts\":11}]";

static const char xla[] =
	"{\"traceEvents\":[{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{"
	"\"name\":\"/device:GPU:0\"}},{\"ph\":\"M\",\"pid\":1,\"tid\":14,\"name\":"
	"\"thread_name\",\"args\":{\"name\":\"Stream #14(Compute)\"}},{\"ph\":\"M\",\"pid\":1,"
	"\"tid\":99,\"name\":\"thread_name\",\"args\":{\"name\":\"XLA Ops\"}},"
	"{\"ph\":\"X\",\"pid\":7,\"tid\":7,\"ts\":1,\"dur\":9,\"name\":\"$t.py:41 step\"},"
	"{\"ph\":\"X\",\"pid\":7,\"tid\":7,\"ts\":1,\"dur\":9,\"name\":\"train\",\"args\":{"
	"\"step_num\":\"3\"}},{\"ph\":\"X\",\"pid\":7,\"tid\":7,\"ts\":2,\"dur\":1,\"name\":"
	"\"cuLaunchKernel\",\"args\":{\"correlation_id\":\"5\"}},"
	"{\"ph\":\"X\",\"pid\":1,\"tid\":14,\"ts\":4,\"dur\":2,\"name\":\"fusion\",\"args\":{"
	"\"correlation_id\":\"5\",\"kernel_details\":\"regs:32 static_shared:8 "
	"grid:80,2,1 block:256,1,1\"}},{\"ph\":\"X\",\"pid\":1,\"tid\":14,\"ts\":7,\"dur\":1,"
	"\"name\":\"MemcpyD2H\",\"args\":{\"correlation_id\":6,\"memcpy_details\":\"kind_src:"
	"device kind_dst:pinned size:64\"}},{\"ph\":\"X\",\"pid\":1,\"tid\":14,\"ts\":8,"
	"\"dur\":1,\"name\":\"Memset\"},{}]}";

struct fuzz {
	u64 state;
	char bytes[MAX_BYTES];
	size_t len;
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

/* ---- a snapshot of memory, as Python pickles it ---- */

static void put(struct fuzz *f, const void *bytes, size_t n)
{
	memcpy(f->bytes + f->len, bytes, n);
	f->len += n;
}

static void put_op(struct fuzz *f, int op)
{
	u8 byte = (u8)op;

	put(f, &byte, 1);
}

static void put_text(struct fuzz *f, const char *text)
{
	put_op(f, 0x8c); /* SHORT_BINUNICODE */
	put_op(f, (int)strlen(text));
	put(f, text, strlen(text));
	put_op(f, 0x94); /* MEMOIZE */
}

static void put_number(struct fuzz *f, const char *key, u64 number)
{
	put_text(f, key);
	put_op(f, 0x8a); /* LONG1 */
	put_op(f, 8);
	put(f, &number, sizeof(number));
}

/* "frames": [{...}], of which the second one is the first again. */
static void put_frames(struct fuzz *f)
{
	put_text(f, "frames");
	put(f, "](}(", 4);
	put_number(f, "line", 41);
	put_text(f, "name");
	put_text(f, "step");
	put_text(f, "filename");
	put_text(f, "/srv/train.py");
	put(f, "u\x94h\1e", 5);
}

static void put_event(struct fuzz *f, const char *action, u64 address, u64 size)
{
	put(f, "}(", 2);
	put_text(f, "action");
	put_text(f, action);
	put_number(f, "addr", address);
	put_number(f, "size", size);
	put_number(f, "time_us", 1700000000000000 + size);
	put_frames(f);
	put_op(f, 'u');
}

static void make_snapshot(struct fuzz *f)
{
	f->len = 0;
	put(f, "\x80\4}(", 4);
	put_text(f, "segments");
	put(f, "](}(", 4);
	put_number(f, "device", 0);
	put_number(f, "address", 4096);
	put_number(f, "total_size", 1 << 20);
	put_text(f, "blocks");
	put(f, "](}(", 4);
	put_number(f, "size", 512);
	put_text(f, "state");
	put_text(f, "active_allocated");
	put_frames(f);
	put(f, "ueue", 4);
	put_text(f, "device_traces");
	put(f, "](](", 4);
	put_event(f, "alloc", 8192, 1024);
	put_event(f, "free_completed", 16384, 2048);
	put_event(f, "segment_alloc", 1 << 20, 1 << 20);
	put_event(f, "oom", 0, 1ULL << 40);
	put(f, "ee", 2);
	put_text(f, "settings");
	put(f, "}N\x88\x85su.", 7);
}

/* ---- changes ---- */

static void change_bytes(struct fuzz *f)
{
	for (size_t n = 1 + below(f, 4); n; n--)
		f->bytes[below(f, f->len)] = (char)next_random(f);
}

static void plant_word(struct fuzz *f)
{
	static const char *const words[] = {
		"\"",
		"\\",
		"{",
		"}",
		"[",
		"]",
		",",
		":",
		"null",
		"NaN",
		"-1",
		"1e308",
		"\\u",
		"\\ud83d",
		"0.0",
		"\n",
		"\"\"",
		"{}",
		"[[",
		"9999999999999999",
		"-",
		"true",
		"\"a\"",
		"1e-9",
		"\"ts\"",
		"\"args\"",
		"18446744073709551615",
		"\"traceEvents\"",
		"(",
		"e",
		"u",
		"s",
		"t",
		"h\1",
		"\x94",
		"\x8aT",
	};
	const char *word = words[below(f, LULL_COUNT_OF(words))];
	size_t at = below(f, f->len), n = strlen(word);

	if (f->len + n > MAX_BYTES)
		return;
	/* Half of them in place of what is there. */
	if (below(f, 2)) {
		memmove(f->bytes + at + n, f->bytes + at, f->len - at);
		f->len += n;
	}
	memcpy(f->bytes + at, word, n < f->len - at ? n : f->len - at);
}

static void double_piece(struct fuzz *f)
{
	size_t from = below(f, f->len), n = below(f, 300), to = below(f, f->len);

	n = n < f->len - from ? n : f->len - from;
	if (f->len + n > MAX_BYTES)
		return;
	memmove(f->bytes + to + n, f->bytes + to, f->len - to);
	f->len += n;
	memmove(f->bytes + to, f->bytes + (from < to ? from : from + n), n);
}

static void drop_piece(struct fuzz *f)
{
	size_t at = below(f, f->len), n = below(f, 60);

	n = n < f->len - at ? n : f->len - at;
	memmove(f->bytes + at, f->bytes + at + n, f->len - at - n);
	f->len -= n;
}

static void cut_end(struct fuzz *f)
{
	if (!below(f, 4))
		f->len -= below(f, f->len);
}

static void change(struct fuzz *f)
{
	void (*const changes[])(struct fuzz *) = { change_bytes, plant_word, plant_word,
						   double_piece, drop_piece, cut_end };

	for (size_t n = below(f, 6); n && f->len > 1; n--)
		changes[below(f, LULL_COUNT_OF(changes))](f);
}

/* ---- rules ---- */

static void fail(const char *what, const struct lull_err *err)
{
	fprintf(stderr, "\nfuzz_import: %s: %s\n", what, err->msg);
	exit(1);
}

static void write_trace(struct fuzz *f, const char *path)
{
	bool is_packed = below(f, 2);
	FILE *to = is_packed ? NULL : fopen(path, "we");
	gzFile packed = is_packed ? gzopen(path, "wb1") : NULL;

	if (is_packed) {
		gzwrite(packed, f->bytes, (unsigned)f->len);
		gzclose(packed);
	} else {
		fwrite(f->bytes, 1, f->len, to);
		fclose(to);
	}
}

/* Run the reports about operators and memory. */
static void run_reports(struct lull_reader *r)
{
	const struct lull_report_options options = LULL_REPORT_OPTIONS_INIT;
	struct lull_err err;

	for (size_t i = 0; lull_reports[i]; i++) {
		const struct lull_report *report = lull_reports[i];
		struct lull_out out;

		if (strncmp(report->name, "ops", 3) && strncmp(report->name, "alloc_", 6) &&
		    strcmp(report->name, "memory") != 0)
			continue;
		lull_out_init(&out, report->columns, report->n_columns);
		report->run(r, &out, &options, &err);
		lull_out_release(&out);
	}
}

/* Everything in the report can be read, and reports of it run. */
static void read_all(const char *path)
{
	struct lull_reader *r;
	struct lull_err err;

	if (lull_reader_open(&r, path, &err))
		fail("the report cannot be opened", &err);
	if (!lull_reader_is_sealed(r) || lull_reader_verify(r))
		fail("the report is damaged", &err);
	run_reports(r);
	if (lull_reader_n_dangling(r))
		fail("the report refers to what is not there", &err);
	lull_reader_close(r);
}

static void run_once(struct fuzz *f, const char *dir)
{
	static const char *const types[] = { NULL, "pytorch", "chrome", "snapshot" };
	static const struct {
		const char *text;
		size_t len;
	} traces[] = { { pytorch, sizeof(pytorch) - 1 },
		       { chrome, sizeof(chrome) - 1 },
		       { xla, sizeof(xla) - 1 } };
	const struct lull_import_options options = {
		.type = types[below(f, LULL_COUNT_OF(types))],
		.is_quiet = true,
		.is_temporary = true,
	};
	size_t which = below(f, LULL_COUNT_OF(traces) + 1);
	struct lull_err err;
	char trace[256], report[256], part[300];

	if (which == LULL_COUNT_OF(traces)) {
		make_snapshot(f);
	} else {
		f->len = traces[which].len;
		memcpy(f->bytes, traces[which].text, f->len);
	}
	change(f);
	snprintf(trace, sizeof(trace), "%s/trace", dir);
	snprintf(report, sizeof(report), "%s/a.lull", dir);
	snprintf(part, sizeof(part), "%s.part", report);
	write_trace(f, trace);
	if (!lull_import_file(trace, report, &options, NULL, &err))
		read_all(report);
	else if (!access(report, F_OK))
		fail("a failed import left a report", &err);
	if (!access(part, F_OK))
		fail("an import left its part", &err);
	unlink(report);
	unlink(trace);
}

static void on_hang(int signal)
{
	static const char text[] = "\nfuzz_import: hangs\n";

	(void)signal;
	if (write(2, text, sizeof(text) - 1) < 0)
		_exit(3);
	_exit(2);
}

int main(int argc, char **argv)
{
	u64 seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 10;
	u64 seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1, n = 0;
	u64 end_ns = lull_now_ns() + seconds * LULL_NS_PER_S;
	const char *tmp = getenv("TMPDIR");
	struct fuzz *f = lull_alloc(1, sizeof(*f));
	char dir[200];

	snprintf(dir, sizeof(dir), "%s/lull-fuzz-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(dir))
		return 1;
	signal(SIGALRM, on_hang);
	for (; lull_now_ns() < end_ns; seed++, n++) {
		fprintf(stderr, "\rseed %llu", (unsigned long long)seed);
		f->state = seed * 0x9e3779b97f4a7c15ULL | 1;
		alarm(HANG_S);
		run_once(f, dir);
	}
	rmdir(dir);
	free(f);
	printf("fuzz_import: %llu traces, nothing found\n", (unsigned long long)n);
	return 0;
}
