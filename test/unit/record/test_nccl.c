/*
 * How many bytes a rank gives and gets, from the size that NCCL calls the message's.
 */
#include "unit/unit.h"

#include "record/decode/decode_nccl.h"

static void expect(const char *name, i64 root, u64 in_bytes, u64 out_bytes)
{
	/* Rank 1 of 4, 100 bytes. */
	struct lull_nccl_traffic t = lull_nccl_traffic(name, 100, 4, 1, root);

	if (t.in_bytes != in_bytes || t.out_bytes != out_bytes)
		fail_msg("%s, root %d: %d in, %d out", name, (int)root, (int)t.in_bytes,
			 (int)t.out_bytes);
}

static void each_operation_has_its_own_traffic(void **state)
{
	(void)state;
	expect("AllReduce", -1, 100, 100);
	expect("AllGather", -1, 100, 400);
	expect("ReduceScatter", -1, 400, 100);
	expect("AlltoAll", -1, 400, 400);
	expect("Send", 3, 100, 0);
	expect("Recv", 3, 0, 100);
}

static void the_root_is_another(void **state)
{
	(void)state;
	expect("Broadcast", 0, 0, 100);
	expect("Broadcast", 1, 100, 100);
	expect("Reduce", 0, 100, 0);
	expect("Reduce", 1, 100, 100);
	expect("Gather", 0, 100, 0);
	expect("Gather", 1, 100, 400);
	expect("Scatter", 0, 0, 100);
	expect("Scatter", 1, 400, 100);
}

static void without_the_number_of_ranks_one_counts(void **state)
{
	struct lull_nccl_traffic t = lull_nccl_traffic("AllGather", 100, 0, 0, -1);

	(void)state;
	assert_int_equal(t.in_bytes, 100);
	assert_int_equal(t.out_bytes, 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_operation_has_its_own_traffic),
		cmocka_unit_test(the_root_is_another),
		cmocka_unit_test(without_the_number_of_ranks_one_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
