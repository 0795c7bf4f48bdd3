/*
 * What is counted of CUDA programs that mark no steps, from recordings of those of the corpus.
 */
#include "unit/unit.h"

#include "import/import.h"
#include "try/try_int.h"

#define N_STEPS 40
#define N_BLOCK 10

static const struct lull_try_options options = { .n_steps = N_STEPS,
						 .is_timed = true,
						 .n_warmup = 5 };

/* As if the program had run for this long before it was recorded. */
static void start(struct lull_try *t, u64 ran_ns)
{
	lull_try_init(t, &options);
	t->how.n_warmup = options.n_warmup;
	t->how.n_steps = N_STEPS;
	t->how.n_block = N_BLOCK;
	t->ran_ns = ran_ns;
}

static bool look(struct lull_try *t, const char *name, struct lull_try_loop *loop)
{
	char path[128];
	struct lull_err err = { LULL_OK, "" };
	struct lull_reader *r;
	bool is_found;

	snprintf(path, sizeof(path), "test/corpus/data/%s.lull", name);
	assert_int_equal(lull_import_open(path, &r, &err), LULL_OK);
	is_found = lull_try_loop_look(t, r, loop);
	lull_reader_close(r);
	return is_found;
}

/* The numbers are those of the loops in test/corpus/programs. */
static void launches_of_a_round_are_counted(void **state)
{
	static const struct {
		const char *name, *count;
	} programs[] = {
		{ "image_bands", "launches:24:3" },
		{ "photo_pyramid", "launches:19:0" }, /* of a channel */
		{ "frame_motion", "launches:2:0" },
		{ "wave_emitters", "launches:21:0" },
		{ "plate_heat", "launches:40:0" },
		{ "implicit_diffusion", "launches:121:1" }, /* and one more now and then */
	};

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(programs); i++) {
		struct lull_try_loop loop;
		struct lull_try t;

		start(&t, 1000000000);
		assert_true(look(&t, programs[i].name, &loop));
		assert_string_equal(t.count.at, programs[i].count);
		assert_non_null(strstr(t.steps_by.at, "a round of the loop that lull why finds"));
		lull_try_release(&t);
	}
}

static void nothing_is_skipped_if_only_a_part_was_recorded(void **state)
{
	struct lull_try_loop loop;
	struct lull_try t;

	(void)state;
	start(&t, 1000000000000);
	assert_true(look(&t, "image_bands", &loop));
	assert_string_equal(t.count.at, "launches:24:0");
	lull_try_release(&t);
}

static void few_rounds_get_short_blocks(void **state)
{
	struct lull_try_loop loop;
	struct lull_try t;

	(void)state;
	start(&t, 1000000000);
	assert_true(look(&t, "tile_histograms", &loop));
	assert_true(t.how.n_block >= 1 && t.how.n_block < N_BLOCK);
	assert_int_equal(t.how.n_steps, N_STEPS / N_BLOCK * t.how.n_block);
	lull_try_release(&t);
}

static void short_rounds_are_measured_for_some_time(void **state)
{
	struct lull_try_loop loop;
	struct lull_try t;

	(void)state;
	start(&t, 1000000000);
	assert_true(look(&t, "slab_heat", &loop));
	assert_true(t.how.n_block > N_BLOCK);
	lull_try_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(launches_of_a_round_are_counted),
		cmocka_unit_test(nothing_is_skipped_if_only_a_part_was_recorded),
		cmocka_unit_test(few_rounds_get_short_blocks),
		cmocka_unit_test(short_rounds_are_measured_for_some_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
