/*
 * Sections and JSON of launches with any numbers in them: damaged reports, counters that
 * overflowed, metrics that are missing. Nothing may crash, and nothing may be undefined.
 */
#include "unit/unit.h"

#include "counter/judge.h"
#include "counter/section.h"
#include "counter/tell.h"
#include "unit/random.h"

static f64 any_value(struct test_random *r)
{
	static const f64 odd[] = { 0, -1, 1, 100, 1e-300, 1e300, 1e18, -1e18, 0.5, 4096 };
	u64 pick = test_random_bits(r) % 16;

	if (pick < LULL_COUNT_OF(odd))
		return odd[pick];
	return pick == 15 ? NAN : (f64)(test_random_bits(r) % 1000000) / 100;
}

static void any_launch(struct test_random *r, struct lull_profile *p)
{
	lull_profile_init(p);
	p->name = "any";
	p->dur_ns = test_random_bits(r) % 3 ? test_random_bits(r) % 10000000 : UINT64_MAX;
	p->launch.grid_x = (u32)test_random_bits(r);
	p->launch.grid_x >>= test_random_bits(r) % 32;
	p->launch.grid_y = p->launch.grid_z = 1 + (u32)(test_random_bits(r) % 3);
	p->launch.block_x = (u32)(test_random_bits(r) % 1200);
	p->launch.block_y = p->launch.block_z = 1;
	p->launch.registers = (u32)(test_random_bits(r) % 300);
	p->launch.dynamic_shared_bytes = (u32)test_random_bits(r);
	p->launch.dynamic_shared_bytes >>= test_random_bits(r) % 32;
	p->device.capability = test_random_bits(r) % 2 ? 90 : (u32)(test_random_bits(r) % 130);
	p->device.n_sms = (u32)(test_random_bits(r) % 200);
	p->device.bandwidth_bytes = test_random_bits(r) % 2 ? 0 : 4800000000000;
	for (int i = 0; i < LULL_N_KMETRICS; i++)
		p->metrics[i] = any_value(r);
	lull_profile_settle(p);
}

static void any_numbers_can_be_shown(void **state)
{
	struct test_random r = { 7 };
	FILE *to = fopen("/dev/null", "w");
	struct lull_sheet sheet;

	(void)state;
	assert_non_null(to);
	lull_sheet_init(&sheet);
	for (unsigned i = 0; i < 3000; i += test_stride(10)) {
		struct lull_judgement judgement;
		struct lull_profile p;
		struct lull_json j;

		any_launch(&r, &p);
		lull_judge(&judgement, &p);
		for (const struct lull_section *const *s = lull_sections; *s; s++) {
			const struct lull_sheet_line *lines;

			lull_sheet_fill(&sheet, *s, &p);
			lines = sheet.lines.at;
			for (size_t l = 0; l < sheet.lines.n; l++)
				fprintf(to, "%s %s %s\n", lines[l].label,
					lull_k_format(lines[l].value, lines[l].unit).text,
					lull_sheet_note_of(&sheet, &lines[l]));
		}
		lull_json_init(&j, to);
		lull_tell_launch(&j, &p);
		lull_profile_release(&p);
	}
	lull_sheet_release(&sheet);
	fclose(to);
}

static void numbers_are_as_people_read_them(void **state)
{
	(void)state;
	assert_string_equal(lull_k_format(4.0e12, "B/s").text, "4.00 TB/s");
	assert_string_equal(lull_k_format(61.3e12, "FLOP/s").text, "61.3 TFLOP/s");
	assert_string_equal(lull_k_format(2112, "count").text, "2,112");
	assert_string_equal(lull_k_format(2.87e9, "count").text, "2.87 G");
	assert_string_equal(lull_k_format(0, "B").text, "0 B");
	assert_string_equal(lull_k_format(87.64, "%").text, "87.6 %");
	assert_string_equal(lull_k_format(NAN, "%").text, "not measured");
}

static void sections_are_found_by_the_names_of_others(void **state)
{
	(void)state;
	assert_string_equal(lull_section_find("SpeedOfLight")->name, "speed");
	assert_string_equal(lull_section_find("warpstatestats")->name, "warps");
	assert_string_equal(lull_section_find("memory")->name, "memory");
	assert_null(lull_section_find("Nothing"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_numbers_can_be_shown),
		cmocka_unit_test(numbers_are_as_people_read_them),
		cmocka_unit_test(sections_are_found_by_the_names_of_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
