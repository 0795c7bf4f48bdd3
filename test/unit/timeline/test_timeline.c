/* A report as rows and lanes, and the index of it. */
#include "unit/report.h"

#include "base/str.h"
#include "timeline/curve.h"
#include "timeline/detail.h"
#include "timeline/name.h"
#include "timeline/rounds_row.h"
#include "timeline/store.h"
#include "timeline/timeline.h"

static const char trace[] =
	"process pid=10 name=a\ndevice process=1 device_id=3 name=\"NVIDIA H200\" uuid=aa\n"
	"lane kind=1 process=1 tid=10 name=main\nlane kind=1 process=1 tid=11 name=loader\n"
	"lane kind=2 process=1 device=1 context_id=1 stream_id=7\n"
	"launch name=gemm\nlaunch name=ncclAllReduce\nlabel name=outer\nlabel name=inner\n"
	"range start=0us dur=90us lane=1 label=1 depth=0\n"
	"range start=10us dur=20us lane=1 label=2 depth=1\n"
	"cuda_call start=1us dur=4us lane=1 name=cudaLaunchKernel correlation=2\n"
	"kernel start=10us dur=20us lane=3 launch=1 correlation=2\n"
	"kernel start=25us dur=20us lane=3 launch=1 correlation=3\n" /* overlaps the first */
	"kernel start=60us dur=10us lane=3 launch=1 correlation=4\n"
	"oscall start=5us dur=7us lane=2 name=read\n"
	"usage start=1us process=1 rss_bytes=4096\nusage start=9us process=1 rss_bytes=8192\n";

struct opened {
	struct lull_reader *reader;
	struct lull_timeline *t;
};

static struct opened open_text(const struct report_dir *d, const char *text)
{
	struct opened o;
	struct lull_err err;

	unlink(d->file);
	report_ok(lull_text_write(text, d->file, &err), &err);
	report_ok(lull_reader_open(&o.reader, d->file, &err), &err);
	o.t = lull_timeline_new(o.reader, &(struct lull_timeline_options){ .has_no_index = true });
	return o;
}

static struct opened open_trace(const struct report_dir *d)
{
	return open_text(d, trace);
}

static void close_trace(struct opened *o)
{
	lull_timeline_free(o->t);
	lull_reader_close(o->reader);
}

static const struct lull_row *row(const struct lull_timeline *t, const char *key)
{
	u32 ix = lull_timeline_row_by_key(t, key);

	assert_int_not_equal(ix, LULL_NO_ROW);
	return lull_timeline_row(t, ix);
}

static void rows_are_devices_and_threads(void **state)
{
	struct opened o = open_trace(*state);

	assert_string_equal(row(o.t, "gpu3")->title, "GPU 3 H200");
	assert_string_equal(row(o.t, "gpu3/s1.7/kernel")->title, "Kernels, stream 7");
	assert_string_equal(row(o.t, "p1")->title, "a · 10");
	assert_string_equal(row(o.t, "p1/t1")->title, "main thread");
	assert_string_equal(row(o.t, "p1/t2")->title, "loader 11");
	assert_int_equal(row(o.t, "p1/t1/range")->n_lanes, 2);
	assert_int_equal(row(o.t, "p1/rss")->curve, 1);
	close_trace(&o);
}

static void kernels_that_overlap_are_both_there(void **state)
{
	struct opened o = open_trace(*state);
	const struct lull_row *kernels = row(o.t, "gpu3/s1.7/kernel");

	assert_int_equal(kernels->n_lanes, 2);
	assert_int_equal(kernels->n_events, 3);
	assert_int_equal(lull_timeline_lane(o.t, kernels->first_lane)->n_events, 2);
	close_trace(&o);
}

/* An imported trace may say itself when a device worked for a range: then nobody projects it. */
static void ranges_of_a_device_are_there_once(void **state)
{
	struct lull_str text = LULL_STR_INIT;
	struct opened o = open_trace(*state);

	assert_int_equal(row(o.t, "gpu3/projected")->n_events, 1);
	close_trace(&o);
	lull_str_puts(&text, trace);
	lull_str_puts(&text, "label name=outer api=4\nrange start=10us dur=35us lane=3 label=3\n");
	o = open_text(*state, lull_str_text(&text));
	assert_int_equal(lull_timeline_row_by_key(o.t, "gpu3/projected"), LULL_NO_ROW);
	assert_int_equal(row(o.t, "gpu3/s1.7/range")->n_events, 1);
	assert_int_equal(row(o.t, "p1/t1/range")->n_events, 2);
	close_trace(&o);
	lull_str_release(&text);
}

static void idle_is_what_lies_between(void **state)
{
	struct opened o = open_trace(*state);
	const struct lull_row *idle = row(o.t, "gpu3/idle");
	const struct lull_found *found;
	struct lull_vec events;

	assert_int_equal(row(o.t, "gpu3")->busy_ns, 45000);
	assert_int_equal(idle->busy_ns, 15000);
	lull_vec_init(&events, sizeof(struct lull_found));
	lull_detail_events(o.t, idle->first_lane, (struct lull_span){ 50000, 50001 }, 10, &events);
	assert_int_equal(events.n, 1);
	found = events.at;
	assert_int_equal(found->event.start_ns, 45000);
	assert_int_equal(found->event.end_ns, 60000);
	assert_false(found->has_row);
	lull_vec_release(&events);
	close_trace(&o);
}

/*
 * A thread that was preempted twice for 1 ms. Its runs of more than 100 ms are in another block
 * than the others, so they must not be taken for time in which it only was ready to run.
 */
static void a_thread_is_on_a_cpu_once(void **state)
{
	struct opened o =
		open_text(*state, "process pid=10 name=a\nlane kind=1 process=1 tid=10 name=main\n"
				  "sched start=0ms dur=10ms lane=1 end_reason=2\n"
				  "sched start=11ms dur=9ms lane=1 end_reason=2\n"
				  "sched start=20ms dur=300ms lane=1 end_reason=2\n"
				  "sched start=320ms dur=10ms lane=1 end_reason=2\n"
				  "sched start=331ms dur=9ms lane=1 end_reason=2\n"
				  "sched start=340ms dur=300ms lane=1 end_reason=1\n");
	const struct lull_row *cpu = row(o.t, "p1/t1/cpu");
	struct lull_vec events;

	assert_int_equal(cpu->busy_ns, 638000000);
	lull_vec_init(&events, sizeof(struct lull_found));
	for (u64 at_ns = 0; at_ns < 640000000; at_ns += 1000000) {
		events.n = 0;
		lull_detail_events(o.t, cpu->first_lane,
				   (struct lull_span){ at_ns + 500000, at_ns + 500001 }, 10,
				   &events);
		assert_int_equal(events.n, 1);
		assert_int_equal(((struct lull_found *)events.at)->event.class,
				 at_ns == 10000000 || at_ns == 330000000);
	}
	lull_vec_release(&events);
	close_trace(&o);
}

static void an_index_gives_the_same_timeline(void **state)
{
	const struct report_dir *d = *state;
	struct lull_timeline_options options = { .path = d->file };
	struct opened o = open_trace(d);
	struct lull_timeline *t = lull_timeline_empty(o.reader);
	struct lull_str index = LULL_STR_INIT;

	lull_store_write(o.t, &options);
	assert_true(o.t->index_bytes > 0);
	assert_true(lull_store_read(t, &options));
	assert_int_equal(t->rows.n, o.t->rows.n);
	assert_int_equal(t->lanes.n, o.t->lanes.n);
	assert_int_equal(t->curves.n, o.t->curves.n);
	for (u32 i = 0; i < t->lanes.n; i++) {
		const struct lull_lod *a = &lull_timeline_lane(t, i)->lod;
		const struct lull_lod *b = &lull_timeline_lane(o.t, i)->lod;

		assert_int_equal(a->n_levels, b->n_levels);
		assert_int_equal(a->levels[0].n, b->levels[0].n);
		assert_memory_equal(a->levels[0].recs, b->levels[0].recs,
				    a->levels[0].n * sizeof(struct lull_rec));
	}
	lull_timeline_free(t);
	/* One of another report, or a cut one, is not taken. */
	lull_str_addf(&index, "%s-view", d->file);
	assert_int_equal(truncate(lull_str_text(&index), 60), 0);
	t = lull_timeline_empty(o.reader);
	assert_false(lull_store_read(t, &options));
	assert_int_equal(t->rows.n, 0);
	lull_timeline_free(t);
	unlink(lull_str_text(&index));
	lull_str_release(&index);
	close_trace(&o);
}

#define MANY 20000u /* kernels of the long lane: more than levels keep one by one */

static void open_many(const struct report_dir *d, struct opened *o)
{
	struct lull_str text = LULL_STR_INIT;
	struct lull_err err;

	lull_str_puts(&text, "process pid=10 name=a\ndevice process=1 device_id=3 name=x uuid=aa\n"
			     "lane kind=2 process=1 device=1 context_id=1 stream_id=7\n"
			     "launch name=gemm\nlaunch name=ncclAllReduce\n");
	for (u32 i = 0; i < MANY; i++)
		lull_str_addf(&text, "kernel start=%u dur=%u lane=1 launch=%u correlation=%u\n",
			      i * 1000, 300 + i % 7 * 50, 1 + (i % 5 == 0), i + 1);
	unlink(d->other);
	report_ok(lull_text_write(lull_str_text(&text), d->other, &err), &err);
	report_ok(lull_reader_open(&o->reader, d->other, &err), &err);
	o->t = lull_timeline_new(o->reader,
				 &(struct lull_timeline_options){ .has_no_index = true });
	lull_str_release(&text);
}

static u64 busy_in(struct lull_timeline *t, u32 lane, u32 log2, struct lull_span span)
{
	struct lull_fold fold;
	u64 sum = 0;

	lull_fold_init(&fold, log2, false);
	lull_detail_fold(t, lane, span, &fold);
	for (size_t i = 0; i < fold.recs.n; i++)
		sum += ((const struct lull_rec *)fold.recs.at)[i].busy_ns;
	lull_fold_release(&fold);
	return sum;
}

static void what_is_decoded_ahead_changes_nothing(void **state)
{
	struct lull_span span = { 2000000, 3000000 };
	struct opened o;
	u32 kernels, gpu, idle;
	u64 busy;

	open_many(*state, &o);
	kernels = row(o.t, "gpu3/s1.7/kernel")->first_lane;
	gpu = row(o.t, "gpu3")->first_lane;
	idle = row(o.t, "gpu3/idle")->first_lane;
	/* From the levels nothing is decoded, and nothing has to be. */
	assert_int_equal(busy_in(o.t, kernels, 24, (struct lull_span){ 0, 20000000 }),
			 row(o.t, "gpu3/s1.7/kernel")->busy_ns);
	assert_false(lull_detail_ahead(o.t));
	busy = busy_in(o.t, kernels, 4, span);
	assert_false(lull_detail_ahead(o.t)); /* its only block is there now */
	assert_int_equal(busy_in(o.t, kernels, 4, span), busy);
	/* One stream: what it is busy with is what the device is, and the rest is idle. */
	assert_int_equal(busy_in(o.t, gpu, 4, span), busy);
	assert_int_equal(busy_in(o.t, idle, 4, span), span.to_ns - span.from_ns - busy);
	close_trace(&o);
}

/* Rounds come when the analysis has ended; those of several loops at once have no row. */
static void rounds_are_put_on_their_row(void **state)
{
	struct opened o = open_trace(*state);
	struct lull_tl_round rounds[] = { { 4, { 10000, 30000 } }, { 5, { 30000, 70000 } } };
	struct lull_vec events;

	lull_rounds_row_add(o.t);
	assert_int_equal(row(o.t, "rounds")->n_events, 0);
	rounds[1].span.from_ns = 29000;
	lull_rounds_row_set(o.t, rounds, 2);
	assert_int_equal(row(o.t, "rounds")->n_events, 0);
	rounds[1].span.from_ns = 30000;
	lull_rounds_row_set(o.t, rounds, 2);
	assert_int_equal(row(o.t, "rounds")->n_events, 2);
	assert_int_equal(row(o.t, "rounds")->busy_ns, 60000);
	lull_vec_init(&events, sizeof(struct lull_found));
	lull_detail_events(o.t, row(o.t, "rounds")->first_lane, (struct lull_span){ 40000, 50000 },
			   10, &events);
	assert_int_equal(events.n, 1);
	assert_int_equal(((const struct lull_found *)events.at)->event.name, LULL_NAME_STEP | 5);
	lull_vec_release(&events);
	close_trace(&o);
}

static const struct lull_curve *curve(const struct lull_timeline *t, const char *key)
{
	return lull_vec_get(&t->curves, row(t, key)->curve - 1);
}

static void curves_have_true_scales(void **state)
{
	struct opened o = open_text(
		*state,
		"process pid=10 name=a\ndevice process=1 device_id=0 uuid=aa memory_bytes=1000\n"
		"metric name=sm_active unit=%\nmetric name=power unit=W\n"
		"metric name=power_limit unit=W\nmetric name=memory_used unit=B\n"
		"metric name=load unit=%\nmetric name=pcie_tx unit=B/s\n"
		"counter start=1us device=1 metric=1 value=3\n"
		"counter start=1us device=1 metric=2 value=130\n"
		"counter start=1us device=1 metric=3 value=700\n"
		"counter start=1us device=1 metric=4 value=10\n"
		"counter start=1us device=1 metric=5 value=107\n"
		"counter start=1us device=1 metric=6 value=55\n");

	assert_true(lull_curve_top(o.t, curve(o.t, "gpu0/sm_active")) == 100);
	assert_true(lull_curve_top(o.t, curve(o.t, "gpu0/power")) == 700);
	assert_true(lull_curve_top(o.t, curve(o.t, "gpu0/memory_used")) == 1000);
	assert_true(lull_curve_top(o.t, curve(o.t, "gpu0/load")) == 200);
	assert_true(lull_curve_top(o.t, curve(o.t, "gpu0/pcie_tx")) == 55);
	close_trace(&o);
}

/* Tables are sorted thread by thread: what two threads allocate is one curve by time. */
static void memory_of_two_threads_is_one_curve(void **state)
{
	struct opened o = open_text(
		*state,
		"process pid=10 name=a\ndevice process=1 device_id=0 uuid=aa\n"
		"lane kind=1 process=1 tid=10 name=main\nlane kind=1 process=1 tid=11 "
		"name=backward\n"
		"alloc start=1us lane=1 device_kind=1 allocated_bytes=10 reserved_bytes=50\n"
		"alloc start=5us lane=1 device_kind=1 allocated_bytes=20 reserved_bytes=50\n"
		"alloc start=2us lane=2 device_kind=1 allocated_bytes=40 reserved_bytes=50\n"
		"alloc start=3us lane=2 device_kind=1 allocated_bytes=30 reserved_bytes=50\n"
		"cuda_memory start=1us device=1 memory_kind=3 operation=1 size_bytes=7\n"
		"cuda_memory start=4us device=1 memory_kind=3 operation=2 size_bytes=8\n"
		"cuda_memory start=2us device=1 memory_kind=3 operation=1 size_bytes=5\n");
	const struct lull_curve *used = curve(o.t, "gpu0/allocated");
	const struct lull_point *p = used->points.at;

	assert_int_equal(used->points.n, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(p[i].at_ns, ((u64[]){ 1000, 2000, 3000, 5000 })[i]);
		assert_true(p[i].last == ((f64[]){ 10, 40, 30, 20 })[i]);
	}
	used = curve(o.t, "gpu0/memory");
	p = used->points.at;
	assert_int_equal(used->points.n, 3);
	for (size_t i = 0; i < 3; i++)
		assert_true(p[i].last == ((f64[]){ 7, 12, 4 })[i]);
	close_trace(&o);
}

static void names_say_what_kernels_do(void **state)
{
	(void)state;
	assert_int_equal(lull_class_of_kernel("ncclDevKernel_AllReduce"), LULL_CLASS_COLLECTIVE);
	assert_int_equal(lull_class_of_kernel("sm90_xmma_gemm_bf16"), LULL_CLASS_MATMUL);
	assert_int_equal(lull_class_of_kernel("flash_fwd_kernel"), LULL_CLASS_ATTENTION);
	assert_int_equal(lull_class_of_kernel("cudnn_implicit_gemm"), LULL_CLASS_CONVOLUTION);
	assert_int_equal(lull_class_of_kernel("vectorized_layer_norm"), LULL_CLASS_REDUCTION);
	assert_int_equal(lull_class_of_kernel("my_kernel"), LULL_CLASS_OTHER);
	assert_int_equal(lull_class_of_call("cudaStreamSynchronize"), LULL_CALLS_WAIT);
	assert_int_equal(lull_class_of_call("cudaLaunchKernelExC"), LULL_CALLS_LAUNCH);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_devices_and_threads),
		cmocka_unit_test(kernels_that_overlap_are_both_there),
		cmocka_unit_test(ranges_of_a_device_are_there_once),
		cmocka_unit_test(idle_is_what_lies_between),
		cmocka_unit_test(a_thread_is_on_a_cpu_once),
		cmocka_unit_test(an_index_gives_the_same_timeline),
		cmocka_unit_test(what_is_decoded_ahead_changes_nothing),
		cmocka_unit_test(rounds_are_put_on_their_row),
		cmocka_unit_test(curves_have_true_scales),
		cmocka_unit_test(memory_of_two_threads_is_one_curve),
		cmocka_unit_test(names_say_what_kernels_do),
	};

	return cmocka_run_group_tests(tests, report_set_up, report_tear_down);
}
