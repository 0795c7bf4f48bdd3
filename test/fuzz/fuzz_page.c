/*
 * fuzz_page - throw questions and changed indexes at the page, for a while.
 *
 *	fuzz_page [SECONDS [SEED]]		(default 10 s, seed 1)
 *
 * Questions are made of the names that answers know and of values that they do not expect; the
 * index is one of a real timeline with bits changed, its checksum made right again. Built with ASan
 * and UBSan, which are the judges. The seed of a failure is the last one printed.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "page/page.h"
#include "timeline/store.h"
#include "trace/crc.h"
#include "trace/text.h"

#define HANG_S 30

static const char report[] =
	"process pid=10 name=a\ndevice process=1 device_id=0 name=GPU uuid=aa n_sms=10\n"
	"lane kind=1 process=1 tid=10 name=main\n"
	"lane kind=2 process=1 device=1 context_id=1 stream_id=7\n"
	"launch name=\"void gemm<float>(int)\" grid_x=1\nlabel name=step\n"
	"frame kind=2 function=f file=x.py line=3\nstack frame=1\n"
	"step start=0us dur=50us lane=1 number=1\nstep start=50us dur=50us lane=1 number=2\n"
	"range start=0us dur=90us lane=1 label=1 depth=0\n"
	"cuda_call start=1us dur=4us lane=1 name=cudaLaunchKernel correlation=2 api=2\n"
	"kernel start=10us dur=20us lane=2 launch=1 correlation=2 process=1\n"
	"kernel start=15us dur=20us lane=2 launch=1 correlation=3 process=1\n"
	"memcpy start=60us dur=5us lane=2 size_bytes=4096 copy_kind=1 correlation=4 process=1\n"
	"sample start=5us lane=1 stack=1 cpu=3\nsched start=0us dur=30us lane=1 cpu=1 "
	"end_reason=2\n"
	"sched start=40us dur=30us lane=1 cpu=1 end_reason=1\n"
	"cuda_call start=70us dur=25us lane=1 name=cudaStreamSynchronize correlation=5 api=2\n"
	"cuda_sync start=70us dur=25us lane=2 kind=3 correlation=5 process=1\n"
	"kernel start=72us dur=20us lane=2 launch=1 correlation=6 process=1\n"
	"oscall start=100us dur=60us lane=1 name=pthread_cond_wait\n"
	"gil_wait start=165us dur=30us lane=1\npysample start=170us lane=1 stack=1 has_gil=1\n"
	"op_label name=aten::mm kind=1\nop start=1us dur=30us lane=1 label=1 sequence=1\n"
	"alloc start=2us lane=1 device_kind=1 address=1 size_bytes=100 allocated_bytes=100\n"
	"alloc start=60us lane=1 device_kind=1 address=1 size_bytes=-100 reserved_bytes=200\n"
	"usage start=1us process=1 rss_bytes=4096\nusage start=9us process=1 rss_bytes=8192\n";

static u64 next_random(u64 *state)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return *state;
}

static void add_value(struct lull_str *to, u64 *seed)
{
	static const char *const odd[] = { "0-4294967295",
					   "3-1",
					   "x",
					   "-1",
					   "%zz",
					   "1,2,,3",
					   "(",
					   "a*",
					   "",
					   "gemm",
					   "cuda_gpu_kern_sum",
					   "18446744073709551615",
					   "nvtx_sum",
					   "[[:alpha:]",
					   "python" };
	u64 r = next_random(seed);

	if (r % 3)
		lull_str_addf(to, "%llu", (unsigned long long)(r >> (8 + r % 56)));
	else
		lull_str_puts(to, odd[(r >> 8) % LULL_COUNT_OF(odd)]);
}

/* One question of random arguments to a random answer. */
static void ask(struct lull_page *page, u64 *seed)
{
	static const char *const keys[] = { "l",     "t",     "r",    "id",   "c",	 "lane",
					    "dir",   "n",     "name", "q",    "from",	 "to",
					    "regex", "exact", "args", "kind", "process", "slack" };
	size_t n_answers = 0;
	struct lull_str text = LULL_STR_INIT;
	struct lull_err err;
	struct lull_args args;
	FILE *to = fopen("/dev/null", "w");

	while (lull_answers[n_answers])
		n_answers++;
	lull_str_puts(&text, "l=10&t=0-1&r=0-1");
	for (u64 n = next_random(seed) % 5; n; n--) {
		lull_str_clear(&text);
		for (u64 k = 0; k <= n; k++) {
			lull_str_addf(&text, "%s%s=", k ? "&" : "",
				      keys[next_random(seed) % LULL_COUNT_OF(keys)]);
			add_value(&text, seed);
		}
	}
	if (!lull_args_parse(&args, lull_str_text(&text), &err)) {
		args.body = "select 1";
		args.body_len = 8;
		lull_page_answer(page, lull_answers[next_random(seed) % n_answers], &args, to,
				 &err);
	}
	lull_args_release(&args);
	lull_str_release(&text);
	fclose(to);
}

/* Read an index in which something was changed; a checksum that is right lets it through. */
static void try_index(struct lull_reader *r, const struct lull_timeline_options *options,
		      const char *index, const struct lull_str *good, u64 *seed)
{
	u8 *bytes = lull_alloc(good->len, 1);
	size_t len = good->len;
	struct lull_timeline *t;
	FILE *to;

	memcpy(bytes, good->at, len);
	for (u64 n = next_random(seed) % 8; n; n--)
		bytes[next_random(seed) % len] ^= (u8)(1u << next_random(seed) % 8);
	if (next_random(seed) % 4 == 0)
		len = next_random(seed) % len;
	if (len > 48)
		lull_put_u32(bytes + 12, lull_crc32c(0, bytes + 48, len - 48));
	to = fopen(index, "w");
	fwrite(bytes, 1, len, to);
	fclose(to);
	free(bytes);
	/* Made without an index, then read from the changed one as far as that goes. */
	t = lull_timeline_new(r, &(struct lull_timeline_options){ .has_no_index = true });
	lull_timeline_free(t);
	t = lull_timeline_empty(r);
	lull_store_read(t, options);
	lull_timeline_free(t);
}

int main(int argc, char **argv)
{
	u64 seconds = argc > 1 ? strtoull(argv[1], NULL, 10) : 10;
	u64 first = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	u64 end_ns = lull_now_ns() + seconds * LULL_NS_PER_S, n = 0;
	char folder[] = "/tmp/lull-fuzz-XXXXXX";
	struct lull_str path = LULL_STR_INIT, index = LULL_STR_INIT, good = LULL_STR_INIT;
	struct lull_timeline_options options = { 0 };
	struct lull_page page = { 0 };
	struct lull_err err;

	if (!mkdtemp(folder))
		return 1;
	lull_str_addf(&path, "%s/a.lull", folder);
	lull_str_addf(&index, "%s-view", lull_str_text(&path));
	options.path = lull_str_text(&path);
	if (lull_text_write(report, lull_str_text(&path), &err) ||
	    lull_page_add(&page, lull_str_text(&path), "a",
			  &(struct lull_timeline_options){ .has_no_index = true }, &err)) {
		fprintf(stderr, "fuzz_page: %s\n", err.msg);
		return 1;
	}
	lull_store_write(page.reports[0].timeline, &options);
	lull_file_read(lull_str_text(&index), &good);
	for (u64 seed = first; lull_now_ns() < end_ns; seed++, n++) {
		u64 state = seed * 0x9e3779b97f4a7c15ull + 1;

		alarm(HANG_S);
		fprintf(stderr, "\rseed %llu ", (unsigned long long)seed);
		for (int i = 0; i < 20; i++)
			ask(&page, &state);
		try_index(page.reports[0].quick, &options, lull_str_text(&index), &good, &state);
	}
	printf("fuzz_page: %llu rounds of questions and indexes\n", (unsigned long long)n);
	lull_page_release(&page);
	unlink(lull_str_text(&path));
	unlink(lull_str_text(&index));
	rmdir(folder);
	lull_str_release(&path);
	lull_str_release(&index);
	lull_str_release(&good);
	return 0;
}
