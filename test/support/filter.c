/*
 * filter - run one case of a test program: LULL_TEST_CASE=name, with * and ? as in cmocka's
 * filters.
 *
 * Linked into every program of cmocka; it sets the filter before main().
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

__attribute__((constructor)) static void choose_a_case(void)
{
	const char *name = getenv("LULL_TEST_CASE");

	if (name && *name)
		cmocka_set_test_filter(name);
}
