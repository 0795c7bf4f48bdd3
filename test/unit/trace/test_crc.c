#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "trace/crc.h"

static void crc_of_the_published_vector_is_right(void **state)
{
	(void)state;
	assert_int_equal(lull_crc32c(0, "123456789", 9), 0xe3069283u);
	assert_int_equal(lull_crc32c_table(0, "123456789", 9), 0xe3069283u);
}

static void instruction_and_table_agree_at_every_length(void **state)
{
	u8 bytes[300];

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (u8)(i * 37 + (i >> 3));
	for (size_t len = 0; len < sizeof(bytes) - 3; len++)
		assert_int_equal(lull_crc32c(0, bytes + 3, len),
				 lull_crc32c_table(0, bytes + 3, len));
}

static void crc_of_two_parts_is_the_crc_of_the_whole(void **state)
{
	const char text[] = "a report is columns, and columns are planes";

	(void)state;
	for (size_t cut = 0; cut < sizeof(text); cut++) {
		u32 first = lull_crc32c(0, text, cut);

		assert_int_equal(lull_crc32c(first, text + cut, sizeof(text) - cut),
				 lull_crc32c(0, text, sizeof(text)));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crc_of_the_published_vector_is_right),
		cmocka_unit_test(instruction_and_table_agree_at_every_length),
		cmocka_unit_test(crc_of_two_parts_is_the_crc_of_the_whole),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
