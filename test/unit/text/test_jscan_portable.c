#define LULL_PORTABLE 1
#include "unit/jscan_cases.h"

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(loops_find_what_plain_ones_find) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
