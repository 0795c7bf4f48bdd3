/*
 * exchange: operations and kernels are put together, and keys agree between ranks.
 */
#include "unit/report.h"

#include "model/exchange.h"

#define HEAD                                            \
	"process pid=10 name=train\n"                   \
	"device process=1 device_id=0 name=GPU\n"       \
	"lane kind=1 process=1 tid=10 name=main\n"      \
	"lane kind=2 process=1 device=1 stream_id=7\n"  \
	"launch name=gemm\n"                            \
	"launch name=ncclDevKernel_AllReduce_Sum_f32\n" \
	"launch name=ncclDevKernel_SendRecv\n"

static struct lull_reader *open_text(struct report_dir *d, const char *path, const char *text)
{
	struct lull_reader *r;
	struct lull_err err;

	(void)d;
	unlink(path);
	report_ok(lull_text_write(text, path, &err), &err);
	report_ok(lull_reader_open(&r, path, &err), &err);
	return r;
}

static void operations_get_the_times_of_their_kernels(void **state)
{
	struct report_dir *d = *state;
	struct lull_reader *r = open_text(
		d, d->file,
		HEAD "collective start=10us dur=1us lane=1 source=2 name=AllReduce comm=5 seq=3 "
		     "n_ranks=4 rank=1 in_bytes=100 out_bytes=100 peer=-1\n"
		     "cuda_call start=11us dur=1us lane=1 name=cudaLaunchKernel correlation=1\n"
		     "kernel start=50us dur=30us lane=2 launch=2 correlation=1 process=1\n"
		     "kernel start=20us dur=10us lane=2 launch=1 correlation=9 process=1\n");
	struct lull_exchanges x;
	const struct lull_exchange *at;

	lull_exchanges_init(&x, r);
	assert_int_equal(x.all.n, 1);
	at = x.all.at;
	assert_int_equal(at->start_ns, 50000);
	assert_int_equal(at->end_ns, 80000);
	assert_int_equal(at->n_ranks, 4);
	assert_int_equal(at->size_bytes, 100);
	assert_false(x.is_counted);
	assert_ptr_equal(lull_exchanges_find(&x, 50000, 80000), at);
	assert_null(lull_exchanges_find(&x, 50000, 80001));
	lull_exchanges_release(&x);
	lull_reader_close(r);
}

static void a_group_is_one_exchange(void **state)
{
	struct report_dir *d = *state;
	struct lull_reader *r = open_text(
		d, d->file,
		HEAD "collective start=10us dur=1us lane=1 source=1 name=AllReduce comm=5 "
		     "in_bytes=100 peer=-1\n"
		     "collective start=12us dur=1us lane=1 source=1 name=AllReduce comm=5 "
		     "in_bytes=50 peer=-1\n"
		     "collective start=30us dur=1us lane=1 source=1 name=AllReduce comm=5 "
		     "in_bytes=7 peer=-1\n"
		     "collective start=90us dur=1us lane=1 source=1 name=AllReduce comm=5 "
		     "in_bytes=8 peer=-1\n"
		     "cuda_call start=14us dur=1us lane=1 name=cudaLaunchKernel correlation=1\n"
		     "cuda_call start=31us dur=1us lane=1 name=cudaLaunchKernel correlation=2\n"
		     "kernel start=50us dur=30us lane=2 launch=2 correlation=1 process=1\n"
		     "kernel start=80us dur=30us lane=2 launch=2 correlation=2 process=1\n");
	struct lull_exchanges x;
	const struct lull_exchange *at;

	lull_exchanges_init(&x, r);
	at = x.all.at;
	assert_int_equal(x.all.n, 2);
	assert_int_equal(at[0].size_bytes, 150);
	assert_int_equal(at[1].size_bytes, 7);
	assert_int_equal(at[1].start_ns, 80000);
	assert_int_equal(x.n_unpaired, 1);
	assert_true(x.is_counted);
	lull_exchanges_release(&x);
	lull_reader_close(r);
}

/* Ids restart in every process: two ranks of one report have the same ones. */
static void operations_get_the_kernels_of_their_own_process(void **state)
{
	struct report_dir *d = *state;
	struct lull_reader *r = open_text(
		d, d->file,
		HEAD "process pid=20 name=train\n"
		     "device process=2 device_id=1 name=GPU\n"
		     "lane kind=1 process=2 tid=20 name=main\n"
		     "lane kind=2 process=2 device=2 stream_id=7\n"
		     "collective start=10us dur=1us lane=1 source=1 name=AllReduce comm=5 "
		     "in_bytes=100 peer=-1\n"
		     "collective start=12us dur=1us lane=1 source=1 name=AllReduce comm=5 "
		     "in_bytes=50 peer=-1\n"
		     "collective start=11us dur=1us lane=3 source=1 name=AllReduce comm=5 "
		     "in_bytes=7 peer=-1\n"
		     "cuda_call start=14us dur=1us lane=1 name=cudaLaunchKernel correlation=1\n"
		     "cuda_call start=13us dur=1us lane=3 name=cudaLaunchKernel correlation=1\n"
		     "kernel start=50us dur=30us lane=2 launch=2 correlation=1 process=1\n"
		     "kernel start=40us dur=30us lane=4 launch=2 correlation=1 process=2\n");
	struct lull_exchanges x;
	const struct lull_exchange *at;

	lull_exchanges_init(&x, r);
	at = x.all.at;
	assert_int_equal(x.all.n, 2);
	assert_int_equal(at[0].start_ns, 40000);
	assert_int_equal(at[0].size_bytes, 7);
	assert_int_equal(at[1].start_ns, 50000);
	assert_int_equal(at[1].size_bytes, 150);
	assert_int_equal(x.n_unpaired, 0);
	lull_exchanges_release(&x);
	lull_reader_close(r);
}

/* All kernels of a graph have the id of its launch: none of them lacks its call. */
static void an_operation_before_a_graph_gets_its_first_kernel(void **state)
{
	struct report_dir *d = *state;
	struct lull_reader *r = open_text(
		d, d->file,
		HEAD "collective start=10us dur=1us lane=1 source=1 name=AllReduce comm=5 "
		     "in_bytes=100 peer=-1\n"
		     "cuda_call start=14us dur=1us lane=1 name=cudaGraphLaunch correlation=1\n"
		     "kernel start=50us dur=10us lane=2 launch=2 correlation=1 process=1\n"
		     "kernel start=70us dur=10us lane=2 launch=2 correlation=1 process=1\n");
	struct lull_exchanges x;

	lull_exchanges_init(&x, r);
	assert_int_equal(x.all.n, 1);
	assert_int_equal(((const struct lull_exchange *)x.all.at)->start_ns, 50000);
	lull_exchanges_release(&x);
	lull_reader_close(r);
}

static void a_send_and_its_receive_have_one_key(void **state)
{
	struct report_dir *d = *state;
	struct lull_reader *a = open_text(
		d, d->file,
		HEAD "collective start=10us dur=1us lane=1 source=2 name=Send comm=5 rank=0 "
		     "n_ranks=2 peer=1\n"
		     "collective start=20us dur=1us lane=1 source=2 name=Recv comm=5 rank=0 "
		     "n_ranks=2 peer=1\n"
		     "kernel start=50us dur=30us lane=2 launch=3 correlation=1 process=1\n"
		     "kernel start=90us dur=30us lane=2 launch=3 correlation=2 process=1\n");
	struct lull_reader *b = open_text(
		d, d->other,
		HEAD "collective start=10us dur=1us lane=1 source=2 name=Recv comm=5 rank=1 "
		     "n_ranks=2 peer=0\n"
		     "collective start=20us dur=1us lane=1 source=2 name=Send comm=5 rank=1 "
		     "n_ranks=2 peer=0\n"
		     "kernel start=60us dur=20us lane=2 launch=3 correlation=1 process=1\n"
		     "kernel start=90us dur=30us lane=2 launch=3 correlation=2 process=1\n");
	struct lull_exchanges x, y;
	const struct lull_exchange *p, *q;

	lull_exchanges_init(&x, a);
	lull_exchanges_init(&y, b);
	assert_int_equal(x.all.n, 2);
	assert_int_equal(y.all.n, 2);
	p = x.all.at;
	q = y.all.at;
	assert_int_equal(p[0].key, q[0].key);
	assert_int_equal(p[1].key, q[1].key);
	assert_int_not_equal(p[0].key, p[1].key);
	assert_true(p[0].is_send && p[0].is_peer && !q[0].is_send);
	lull_exchanges_release(&x);
	lull_exchanges_release(&y);
	lull_reader_close(a);
	lull_reader_close(b);
}

static void kernels_alone_are_counted_by_name(void **state)
{
	struct report_dir *d = *state;
	struct lull_reader *r = open_text(
		d, d->file,
		HEAD "kernel start=50us dur=30us lane=2 launch=2 correlation=1 process=1\n"
		     "kernel start=90us dur=30us lane=2 launch=2 correlation=2 process=1\n");
	struct lull_exchanges x;
	const struct lull_exchange *at;

	lull_exchanges_init(&x, r);
	at = x.all.at;
	assert_int_equal(x.all.n, 2);
	assert_int_not_equal(at[0].key, at[1].key);
	assert_true(x.is_counted);
	assert_int_equal(at[0].n_ranks, 0);
	lull_exchanges_release(&x);
	lull_reader_close(r);
}

static void a_report_without_any_has_none(void **state)
{
	struct report_dir *d = *state;
	struct lull_reader *r = open_text(d, d->file, HEAD);
	struct lull_exchanges x;

	lull_exchanges_init(&x, r);
	assert_int_equal(x.all.n, 0);
	assert_null(lull_exchanges_find(&x, 0, 0));
	lull_exchanges_release(&x);
	lull_reader_close(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operations_get_the_times_of_their_kernels),
		cmocka_unit_test(a_group_is_one_exchange),
		cmocka_unit_test(operations_get_the_kernels_of_their_own_process),
		cmocka_unit_test(an_operation_before_a_graph_gets_its_first_kernel),
		cmocka_unit_test(a_send_and_its_receive_have_one_key),
		cmocka_unit_test(kernels_alone_are_counted_by_name),
		cmocka_unit_test(a_report_without_any_has_none),
	};

	return cmocka_run_group_tests(tests, report_set_up, report_tear_down);
}
