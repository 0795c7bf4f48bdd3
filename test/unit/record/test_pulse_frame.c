#include "unit/unit.h"

#include "record/live/pulse_frame.h"

static void a_frame_survives_the_line(void **state)
{
	struct lull_pulse_frame f = { .now_ns = UINT64_MAX, .pid = 42, .n_devices = 2 }, got;
	struct lull_str line = LULL_STR_INIT;
	struct lull_err err;

	(void)state;
	f.devices[1].number = 7;
	f.devices[1].idle_ns[LULL_PULSE_N_CAUSES - 1] = 12345;
	lull_pulse_frame_write(&line, &f);
	assert_int_equal(lull_pulse_frame_parse(&got, line.at, &err), LULL_OK);
	assert_memory_equal(&got, &f, sizeof(f));
	lull_str_release(&line);
}

static void other_lines_are_refused(void **state)
{
	static const char *const lines[] = { "",	   "pulse1",	   "pulse1 1 2 3",
					     "pulse2 1 2", "pulse1 1 x 3", "recording to a.lull" };
	struct lull_pulse_frame f = { .n_devices = 1 };
	struct lull_str line = LULL_STR_INIT;
	struct lull_err err;

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(lines); i++)
		assert_int_equal(lull_pulse_frame_parse(&f, lines[i], &err), LULL_E_FORMAT);
	/* Cut off, and more than there may be. */
	f = (struct lull_pulse_frame){ .n_devices = 1 };
	lull_pulse_frame_write(&line, &f);
	line.at[line.len - 2] = '\0';
	assert_int_equal(lull_pulse_frame_parse(&f, line.at, &err), LULL_E_FORMAT);
	lull_str_clear(&line);
	lull_str_puts(&line, "pulse1");
	for (int i = 0; i < 5000; i++)
		lull_str_puts(&line, " 9");
	assert_int_equal(lull_pulse_frame_parse(&f, line.at, &err), LULL_E_FORMAT);
	lull_str_release(&line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_frame_survives_the_line),
		cmocka_unit_test(other_lines_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
