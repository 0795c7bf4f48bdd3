/*
 * Names of ranges without the rank at their start.
 */
#include "unit/unit.h"

#include "job/job_int.h"

static void a_rank_at_the_start_is_dropped(void **state)
{
	static const char *const names[] = { "rank3_forward",	 "rank 3 forward",
					     "Rank 12: forward", "[rank 3] forward",
					     "(rank_0)forward",	 "rank-7/forward",
					     "RANK=5|forward",	 "rank3.forward" };

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(names); i++)
		assert_string_equal(lull_job_plain_name(names[i]), "forward");
}

static void other_names_stay(void **state)
{
	static const char *const names[] = { "forward",	     "",
					     "rank",	     "rank3",
					     "ranking",	     "rank_all",
					     "rank2nd pass", "my rank3_forward",
					     "[rank 3]" };

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(names); i++)
		assert_string_equal(lull_job_plain_name(names[i]), names[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_rank_at_the_start_is_dropped),
		cmocka_unit_test(other_names_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
