/*
 * Rounds: which candidate is taken, kinds, where the last one ends, and that steps are the same.
 */
#include "unit/report.h"

#include "base/str.h"
#include "cause/why.h"
#include "model/step.h"

#define HEAD                                           \
	"process pid=10 has_agent=1\n"                 \
	"device process=1 device_id=0 name=a\n"        \
	"lane kind=1 process=1 tid=10 name=main\n"     \
	"lane kind=2 process=1 device=1 stream_id=7\n" \
	"launch name=a\n"                              \
	"launch name=b\n"                              \
	"launch name=c\n"                              \
	"launch name=fused_adam_kernel\n"              \
	"launch name=d\n"                              \
	"label name=forward api=6\n"                   \
	"label name=solve\n"                           \
	"label name=inner\n"                           \
	"label name=epoch\n"

/* A trace that is written call by call: each takes 5 us, and the device follows at once. */
struct writer {
	struct lull_str text;
	u64 now_us;
	u32 n;
};

static void begin(struct writer *w)
{
	*w = (struct writer){ .text = LULL_STR_INIT, .now_us = 1000 };
	lull_str_puts(&w->text, HEAD);
}

static void launch(struct writer *w, u32 kernel, u64 dur_us)
{
	w->n++;
	lull_str_addf(&w->text,
		      "cuda_call start=%lluus dur=5us lane=1 name=cudaLaunchKernel "
		      "correlation=%u\n"
		      "kernel start=%lluus dur=%lluus lane=2 launch=%u correlation=%u process=1\n",
		      (unsigned long long)w->now_us, w->n, (unsigned long long)w->now_us + 6,
		      (unsigned long long)dur_us, kernel, w->n);
	w->now_us += dur_us + 7;
}

static void wait(struct writer *w)
{
	w->n++;
	lull_str_addf(&w->text,
		      "cuda_call start=%lluus dur=4us lane=1 name=cudaStreamSynchronize "
		      "correlation=%u\n",
		      (unsigned long long)w->now_us, w->n);
	w->now_us += 5;
}

static void range(struct writer *w, u32 label, u64 from_us)
{
	lull_str_addf(&w->text, "range start=%lluus dur=%lluus lane=1 label=%u\n",
		      (unsigned long long)from_us, (unsigned long long)(w->now_us - from_us),
		      label);
}

static void step(struct writer *w, u64 from_us, u64 to_us, u32 number, u32 source)
{
	lull_str_addf(&w->text, "step start=%lluus dur=%lluus lane=1 number=%u source=%u\n",
		      (unsigned long long)from_us, (unsigned long long)(to_us - from_us), number,
		      source);
}

/* What was found in it: the subject of process 1 on device 1, and the steps of the reports. */
struct found {
	struct lull_reader *reader;
	struct lull_subject subject;
	struct lull_steps steps;
	const struct lull_rounds *rounds;
	const char *file;
};

static void look(struct found *f, const struct report_dir *d, struct writer *w)
{
	const u32 tracks[] = { 0, 0, 1 };
	struct lull_err err;

	f->file = d->file;
	report_ok(lull_text_write(lull_str_text(&w->text), d->file, &err), &err);
	report_ok(lull_reader_open(&f->reader, d->file, &err), &err);
	lull_subject_init(&f->subject, f->reader, 1, 1, tracks, 0);
	lull_steps_init_any(&f->steps, f->reader, LULL_SPAN_ALL);
	f->rounds = &f->subject.rounds;
	lull_str_release(&w->text);
}

static void leave(struct found *f)
{
	lull_steps_release(&f->steps);
	lull_subject_release(&f->subject);
	lull_reader_close(f->reader);
	unlink(f->file);
}

/* The steps of `lull stats` are the rounds of `lull why`. */
static void check_same(const struct found *f)
{
	const struct lull_round *rounds = f->rounds->all.at;
	const struct lull_step *steps = f->steps.all.at;

	assert_int_equal(f->steps.all.n, f->rounds->all.n);
	for (size_t i = 0; i < f->steps.all.n; i++) {
		struct lull_span host = lull_step_host(&steps[i]);

		assert_int_equal(host.from_ns, rounds[i].mark_ns);
		assert_int_equal(steps[i].source, f->rounds->source);
		if (lull_rounds_are_marked(f->rounds))
			continue;
		assert_int_equal(steps[i].start_ns, lull_round_begin_ns(f->rounds, (u32)i));
		assert_int_equal(steps[i].dur_ns, rounds[i].end_ns - steps[i].start_ns);
	}
}

/* A call of the model: three kernels in a range of our hooks. */
static void forward(struct writer *w, u32 middle)
{
	u64 from_us = w->now_us;

	launch(w, 1, 10);
	launch(w, middle, 10);
	launch(w, 1, 10);
	range(w, 1, from_us);
	w->now_us += 2;
	wait(w);
}

static void one_step_of_hooks_does_not_silence_the_calls_of_the_model(void **state)
{
	struct writer w;
	struct found f;

	begin(&w);
	for (int i = 0; i < 24; i++)
		forward(&w, i % 6 ? 2 : 3);
	step(&w, 990, w.now_us, 0, 1);
	look(&f, *state, &w);
	assert_int_equal(f.rounds->source, LULL_ROUNDS_FORWARD);
	assert_int_equal(f.rounds->all.n, 24);
	/* Each sixth is of another kind; the first one is warm-up. */
	assert_int_equal(f.rounds->n_kinds, 2);
	assert_int_equal(f.rounds->kinds[0].n, 20);
	assert_int_equal(f.rounds->kinds[1].n, 3);
	assert_int_equal(((struct lull_round *)f.rounds->all.at)[6].kind, 1);
	assert_int_equal(((struct lull_round *)f.rounds->all.at)[7].kind, 0);
	assert_true(f.steps.are_found);
	check_same(&f);
	leave(&f);
}

static void marks_of_the_program_that_hold_the_work_decide(void **state)
{
	struct writer w;
	struct found f;

	begin(&w);
	for (u32 i = 0; i < 4; i++) {
		u64 from_us = w.now_us;

		for (int k = 0; k < 6; k++)
			forward(&w, 2);
		step(&w, from_us, w.now_us, i, 0);
	}
	look(&f, *state, &w);
	assert_int_equal(f.rounds->source, LULL_ROUNDS_STEP);
	assert_int_equal(f.rounds->all.n, 4);
	assert_int_equal(f.rounds->n_kinds, 1);
	check_same(&f);
	assert_false(f.steps.are_found);
	leave(&f);
}

static void marks_of_the_program_that_hold_little_do_not_decide(void **state)
{
	struct writer w;
	struct found f;

	begin(&w);
	for (u32 i = 0; i < 3; i++) {
		u64 from_us = w.now_us;

		launch(&w, 3, 10);
		step(&w, from_us, w.now_us, i, 0);
	}
	for (int i = 0; i < 30; i++)
		forward(&w, 2);
	look(&f, *state, &w);
	assert_int_equal(f.rounds->source, LULL_ROUNDS_FORWARD);
	assert_int_equal(f.rounds->all.n, 30);
	check_same(&f);
	leave(&f);
}

static void ranges_around_others_that_repeat_are_the_rounds(void **state)
{
	struct writer w;
	struct found f;

	begin(&w);
	for (int i = 0; i < 10; i++) {
		u64 from_us = w.now_us;

		for (int k = 0; k < 5; k++) {
			u64 at_us = w.now_us;

			launch(&w, 1, 10);
			launch(&w, 2, 20);
			range(&w, 3, at_us);
		}
		range(&w, 2, from_us);
		w.now_us += 3;
	}
	look(&f, *state, &w);
	assert_int_equal(f.rounds->source, LULL_ROUNDS_NAMED);
	assert_string_equal(f.rounds->name, "solve");
	assert_int_equal(f.rounds->all.n, 10);
	check_same(&f);
	leave(&f);
}

/* Epochs are no rounds: what repeats inside of them is. */
static void epochs_are_no_rounds(void **state)
{
	struct writer w;
	struct found f;

	begin(&w);
	for (int i = 0; i < 9; i++) {
		u64 from_us = w.now_us;

		for (int k = 0; k < 5; k++) {
			u64 at_us = w.now_us;

			launch(&w, 1, 10);
			launch(&w, 2, 20);
			range(&w, 3, at_us);
		}
		range(&w, 4, from_us);
		w.now_us += 3;
	}
	look(&f, *state, &w);
	assert_int_equal(f.rounds->source, LULL_ROUNDS_NAMED);
	assert_string_equal(f.rounds->name, "inner");
	assert_int_equal(f.rounds->all.n, 45);
	check_same(&f);
	leave(&f);
}

static void equal_launches_are_grouped_by_waits(void **state)
{
	struct writer w;
	struct found f;

	begin(&w);
	for (int i = 0; i < 6; i++) {
		for (int k = 0; k < 20; k++)
			launch(&w, 1, 60);
		wait(&w);
	}
	look(&f, *state, &w);
	assert_int_equal(f.rounds->source, LULL_ROUNDS_WAITS);
	assert_string_equal(f.rounds->name, "cudaStreamSynchronize");
	assert_int_equal(f.rounds->all.n, 6);
	check_same(&f);
	leave(&f);
}

/* A line is written in each round, which takes no longer than a launch. */
static void equal_launches_are_grouped_by_calls_of_the_c_library(void **state)
{
	struct writer w;
	struct found f;

	begin(&w);
	for (int i = 0; i < 6; i++) {
		for (int k = 0; k < 20; k++)
			launch(&w, 1, 60);
		lull_str_addf(&w.text, "oscall start=%lluus dur=3us lane=1 name=fwrite\n",
			      (unsigned long long)w.now_us);
		w.now_us += 5;
	}
	launch(&w, 1, 60);
	look(&f, *state, &w);
	assert_int_equal(f.rounds->source, LULL_ROUNDS_WAITS);
	assert_string_equal(f.rounds->name, "fwrite");
	check_same(&f);
	leave(&f);
}

/* Each fourth step does more, and nothing but launches is seen. */
static void extra_work_in_some_steps_does_not_hide_the_loop(void **state)
{
	struct writer w;
	struct found f;

	begin(&w);
	for (int i = 0; i < 30; i++) {
		launch(&w, 1, 100);
		for (int k = 0; k < 10; k++) {
			launch(&w, 2, 60);
			launch(&w, 3, 60);
		}
		for (int k = 0; k < 8 && i % 4 == 3; k++)
			launch(&w, 5, 60);
	}
	look(&f, *state, &w);
	assert_int_equal(f.rounds->source, LULL_ROUNDS_PERIOD);
	assert_in_range(f.rounds->all.n, 29, 30);
	assert_int_equal(f.rounds->n_kinds, 2);
	assert_int_equal(f.rounds->kinds[1].n, 7);
	check_same(&f);
	leave(&f);
}

static void equal_launches_with_nothing_between_are_groups(void **state)
{
	struct writer w;
	struct found f;
	char text[256];

	begin(&w);
	for (int i = 0; i < 300; i++)
		launch(&w, 1, 13);
	look(&f, *state, &w);
	assert_int_equal(f.rounds->source, LULL_ROUNDS_GROUP);
	assert_int_equal(f.rounds->n_grouped, 51); /* a millisecond of 20 us each */
	assert_int_equal(f.rounds->all.n, 5);
	assert_non_null(strstr(lull_rounds_how(f.rounds, text, sizeof(text)),
			       "groups of 51 equal launches"));
	check_same(&f);
	leave(&f);
}

/* Fewer than three groups of a millisecond are no rounds. */
static void a_few_equal_launches_are_no_rounds(void **state)
{
	struct writer w;
	struct found f;

	begin(&w);
	for (int i = 0; i < 40; i++)
		launch(&w, 1, 13);
	look(&f, *state, &w);
	assert_int_equal(f.rounds->source, LULL_ROUNDS_NONE);
	assert_int_equal(f.steps.all.n, 0);
	leave(&f);
}

/* One launch that takes long is a round: nothing is grouped. */
static void long_launches_are_rounds(void **state)
{
	struct writer w;
	struct found f;

	begin(&w);
	for (int i = 0; i < 12; i++)
		launch(&w, 1, 3000);
	look(&f, *state, &w);
	assert_int_equal(f.rounds->source, LULL_ROUNDS_PERIOD);
	assert_int_equal(f.rounds->all.n, 12);
	leave(&f);
}

/* Four parts that are alike, and the last one updates the model: the update ends the step. */
static void parts_of_a_step_are_not_steps(void **state)
{
	struct writer w;
	struct found f;

	begin(&w);
	for (int i = 0; i < 12; i++) {
		for (int part = 0; part < 4; part++) {
			launch(&w, 1, 20);
			for (int k = 0; k < 10; k++) {
				launch(&w, 2, 30);
				launch(&w, 3, 40);
			}
		}
		launch(&w, 4, 50);
	}
	look(&f, *state, &w);
	assert_int_equal(f.rounds->source, LULL_ROUNDS_OPTIMIZER);
	assert_int_equal(f.rounds->all.n, 12);
	assert_int_equal(f.rounds->n_kinds, 1);
	check_same(&f);
	leave(&f);
}

/* Weights that are read before the loop are no rounds, though they start as its rounds do. */
static void the_start_of_the_program_is_no_round(void **state)
{
	struct writer w;
	struct found f;

	begin(&w);
	for (int i = 0; i < 6; i++)
		launch(&w, 1, 10);
	for (int i = 0; i < 20; i++) {
		launch(&w, 1, 10);
		for (int k = 0; k < 8; k++) {
			launch(&w, 2, 90);
			launch(&w, 3, 90);
		}
	}
	look(&f, *state, &w);
	assert_int_equal(f.rounds->source, LULL_ROUNDS_PERIOD);
	assert_int_equal(f.rounds->all.n, 20);
	leave(&f);
}

static void the_last_step_ends_with_its_work(void **state)
{
	struct writer w;
	struct found f;
	u64 last_us, end_us;

	begin(&w);
	for (u32 i = 0; i < 5; i++) {
		last_us = w.now_us;
		for (int k = 0; k < 10; k++)
			launch(&w, 1 + (u32)k % 2, 50);
		wait(&w);
		if (i < 4)
			step(&w, last_us, w.now_us, i, 1);
	}
	end_us = w.now_us;
	for (int k = 0; k < 40; k++)
		launch(&w, 3, 50);
	wait(&w);
	step(&w, last_us, w.now_us + 500000, 4, 1);
	look(&f, *state, &w);
	assert_int_equal(f.rounds->source, LULL_ROUNDS_HOOK);
	assert_int_equal(f.rounds->all.n, 5);
	assert_true(f.rounds->last_ns <= end_us * 1000);
	assert_true(f.rounds->last_ns + 10000 > end_us * 1000);
	assert_true(lull_round_end_ns(f.rounds, 4) <= end_us * 1000);
	assert_int_equal(((struct lull_step *)f.steps.all.at)[4].dur_ns,
			 f.rounds->last_ns - last_us * 1000);
	assert_false(f.steps.are_found);
	leave(&f);
}

/* A range at the start of each round does not say where the last one ends. */
static void a_short_range_does_not_cut_the_last_round(void **state)
{
	struct writer w;
	struct found f;

	begin(&w);
	for (int i = 0; i < 10; i++) {
		u64 from_us = w.now_us;

		launch(&w, 1, 10);
		range(&w, 2, from_us);
		for (int k = 0; k < 9; k++)
			launch(&w, 2 + (u32)k % 2, 100);
	}
	look(&f, *state, &w);
	assert_int_equal(f.rounds->source, LULL_ROUNDS_NAMED);
	assert_int_equal(f.rounds->all.n, 10);
	assert_int_equal(f.rounds->n_kinds, 1);
	assert_true(f.rounds->last_ns + 110000 > w.now_us * 1000);
	leave(&f);
}

/* The last step evaluates as others do: it is whole. */
static void a_large_last_step_of_a_known_kind_is_whole(void **state)
{
	struct writer w;
	struct found f;
	u64 last_us = 0;

	begin(&w);
	for (u32 i = 0; i < 9; i++) {
		last_us = w.now_us;
		for (int k = 0; k < (i % 3 == 2 ? 30 : 10); k++)
			launch(&w, 1 + (u32)k % 2, 50);
		step(&w, last_us, w.now_us, i, 1);
	}
	look(&f, *state, &w);
	assert_int_equal(f.rounds->source, LULL_ROUNDS_HOOK);
	assert_int_equal(f.rounds->last_ns, w.now_us * 1000);
	assert_int_equal(f.rounds->n_kinds, 2);
	assert_int_equal(f.rounds->kinds[1].n, 3);
	leave(&f);
}

/* Steps 0 and 1 are long, and so is each third one: that is no warm-up. */
static void long_steps_that_come_again_are_no_warm_up(void **state)
{
	struct writer w;
	struct found f;

	for (int comes_again = 0; comes_again < 2; comes_again++) {
		begin(&w);
		for (u32 i = 0; i < 20; i++) {
			u64 from_us = w.now_us;

			w.now_us += i < 2 || (comes_again && i % 3 == 1) ? 5000 : 100;
			launch(&w, 1, 50);
			launch(&w, 2, 50);
			step(&w, from_us, w.now_us, i, 0);
		}
		look(&f, *state, &w);
		assert_int_equal(f.rounds->first_steady, comes_again ? 1 : 2);
		leave(&f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_step_of_hooks_does_not_silence_the_calls_of_the_model),
		cmocka_unit_test(marks_of_the_program_that_hold_the_work_decide),
		cmocka_unit_test(marks_of_the_program_that_hold_little_do_not_decide),
		cmocka_unit_test(ranges_around_others_that_repeat_are_the_rounds),
		cmocka_unit_test(epochs_are_no_rounds),
		cmocka_unit_test(equal_launches_are_grouped_by_waits),
		cmocka_unit_test(equal_launches_are_grouped_by_calls_of_the_c_library),
		cmocka_unit_test(extra_work_in_some_steps_does_not_hide_the_loop),
		cmocka_unit_test(equal_launches_with_nothing_between_are_groups),
		cmocka_unit_test(a_few_equal_launches_are_no_rounds),
		cmocka_unit_test(long_launches_are_rounds),
		cmocka_unit_test(parts_of_a_step_are_not_steps),
		cmocka_unit_test(the_start_of_the_program_is_no_round),
		cmocka_unit_test(the_last_step_ends_with_its_work),
		cmocka_unit_test(a_short_range_does_not_cut_the_last_round),
		cmocka_unit_test(a_large_last_step_of_a_known_kind_is_whole),
		cmocka_unit_test(long_steps_that_come_again_are_no_warm_up),
	};

	return cmocka_run_group_tests(tests, report_set_up, report_tear_down);
}
