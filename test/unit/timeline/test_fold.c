/* Levels of detail: nothing that happened is lost, and no more is shown than there was. */
#include "unit/unit.h"

#include "timeline/fold.h"
#include "timeline/idle.h"

static struct lull_rec event(u64 start_ns, u64 dur_ns, u32 name, u8 class)
{
	struct lull_rec rec = { .start_ns = start_ns,
				.end_ns = start_ns + dur_ns,
				.busy_ns = dur_ns,
				.name = name,
				.count = 1 };

	rec.share[class] = 255;
	return rec;
}

static u64 total_count(const struct lull_level *level)
{
	u64 n = 0;

	for (size_t i = 0; i < level->n; i++)
		n += level->recs[i].count;
	return n;
}

static u64 total_busy(const struct lull_level *level)
{
	u64 ns = 0;

	for (size_t i = 0; i < level->n; i++)
		ns += level->recs[i].busy_ns;
	return ns;
}

static void a_fold_tells_share_count_and_the_longest(void **state)
{
	const struct lull_rec events[] = { event(1024, 100, 1, 0), event(1200, 300, 2, 3),
					   event(1900, 20, 3, 0) };
	const struct lull_rec *recs;
	struct lull_fold f;

	(void)state;
	lull_fold_init(&f, 10, false);
	for (size_t i = 0; i < 3; i++)
		lull_fold_add(&f, &events[i]);
	lull_fold_finish(&f);
	recs = f.recs.at;
	assert_int_equal(f.recs.n, 1);
	assert_int_equal(recs[0].start_ns, 1024);
	assert_int_equal(recs[0].end_ns, 1920);
	assert_int_equal(recs[0].busy_ns, 420);
	assert_int_equal(recs[0].count, 3);
	assert_int_equal(recs[0].name, 2);
	assert_int_equal(recs[0].share[0], 73); /* 120 of 420 */
	assert_int_equal(recs[0].share[3], 182);
	lull_fold_release(&f);
}

static void what_is_longer_than_a_bucket_keeps_its_edges(void **state)
{
	const struct lull_rec events[] = { event(5, 10, 1, 0), event(100, 5000, 2, 0),
					   event(5101, 3, 3, 0) };
	const struct lull_rec *recs;
	struct lull_fold f;

	(void)state;
	lull_fold_init(&f, 10, false);
	for (size_t i = 0; i < 3; i++)
		lull_fold_add(&f, &events[i]);
	lull_fold_finish(&f);
	recs = f.recs.at;
	assert_int_equal(f.recs.n, 3);
	assert_int_equal(recs[1].start_ns, 100);
	assert_int_equal(recs[1].end_ns, 5100);
	lull_fold_release(&f);
}

static void few_events_stay_as_they_are(void **state)
{
	struct lull_fold f;
	struct lull_lod lod;

	(void)state;
	lull_fold_init(&f, 0, true);
	for (u64 i = 0; i < 1000; i++) {
		struct lull_rec e = event(i * 100, 10, 1, 0);

		lull_fold_add(&f, &e);
	}
	lull_fold_levels(&f, &lod);
	assert_int_equal(lod.n_levels, 1);
	assert_int_equal(lod.levels[0].log2, 0);
	assert_int_equal(lod.levels[0].n, 1000);
	lull_lod_release(&lod);
	lull_fold_release(&f);
}

/* A lane with bursts, a gap, and one very long event. */
static void add_many(struct lull_fold *f, u64 n)
{
	u64 at = 0;

	for (u64 i = 0; i < n; i++) {
		struct lull_rec e = event(at, 500 + i % 7 * 100, (u32)(i % 50), (u8)(i % 3));

		lull_fold_add(f, &e);
		at = e.end_ns + (i % 5000 ? 200 : 40000000);
		if (i == n / 2) {
			e = event(at, 3000000000ull, 99, 1);
			lull_fold_add(f, &e);
			at = e.end_ns;
		}
	}
}

static void all_levels_hold_all_events(void **state)
{
	struct lull_fold f;
	struct lull_lod lod;
	u64 busy_ns;

	(void)state;
	lull_fold_init(&f, 0, true);
	add_many(&f, 300000);
	busy_ns = f.busy_ns;
	lull_fold_levels(&f, &lod);
	assert_true(lod.n_levels > 2);
	assert_true(lod.levels[0].n < 300000 / 8);
	assert_true(lod.levels[lod.n_levels - 1].n < 2048);
	for (u32 l = 0; l < lod.n_levels; l++) {
		assert_int_equal(total_count(&lod.levels[l]), 300001);
		assert_int_equal(total_busy(&lod.levels[l]), busy_ns);
		for (size_t i = 1; i < lod.levels[l].n; i++)
			assert_true(lod.levels[l].recs[i - 1].end_ns <=
				    lod.levels[l].recs[i].start_ns);
	}
	assert_ptr_equal(lull_lod_level(&lod, 48), &lod.levels[lod.n_levels - 1]);
	assert_null(lull_lod_level(&lod, lod.levels[0].log2 - 1));
	lull_lod_release(&lod);
	lull_fold_release(&f);
}

static void the_long_event_is_in_every_level(void **state)
{
	struct lull_fold f;
	struct lull_lod lod;

	(void)state;
	lull_fold_init(&f, 0, true);
	add_many(&f, 200000);
	lull_fold_levels(&f, &lod);
	for (u32 l = 0; l < lod.n_levels; l++) {
		bool is_there = false;

		for (size_t i = 0; i < lod.levels[l].n; i++)
			is_there |= lod.levels[l].recs[i].name == 99;
		assert_true(is_there);
	}
	lull_lod_release(&lod);
	lull_fold_release(&f);
}

static void events_that_come_late_are_sorted_in(void **state)
{
	const struct lull_rec *recs;
	struct lull_fold f;

	(void)state;
	lull_fold_init(&f, 0, true);
	for (u64 i = 0; i < 100; i++) {
		struct lull_rec e = event((i ^ 1) * 1000, 10, (u32)i, 0);

		lull_fold_add(&f, &e);
	}
	lull_fold_finish(&f);
	recs = f.recs.at;
	assert_int_equal(f.recs.n, 100);
	for (size_t i = 1; i < 100; i++)
		assert_true(recs[i - 1].start_ns < recs[i].start_ns);
	lull_fold_release(&f);
}

/* ---- idle ---- */

struct told {
	u64 busy_ns, idle_ns;
	u64 last_ns;
	size_t n;
};

static void tell(void *ctx, struct lull_span span, bool is_busy)
{
	struct told *t = ctx;

	*(is_busy ? &t->busy_ns : &t->idle_ns) += span.to_ns - span.from_ns;
	if (t->n++)
		assert_int_equal(t->last_ns, span.from_ns);
	t->last_ns = span.to_ns;
}

static void idle_time_is_what_no_stream_works_in(void **state)
{
	struct lull_idle_sweep s;
	struct told told = { 0 };

	(void)state;
	lull_idle_init(&s, tell, &told);
	lull_idle_add(&s, 100, 200); /* one stream */
	lull_idle_add(&s, 400, 450);
	lull_idle_add(&s, 150, 300); /* another, which overlaps */
	lull_idle_add(&s, 420, 430);
	lull_idle_advance(&s, 400);
	lull_idle_add(&s, 600, 700);
	lull_idle_add(&s, 800, 800); /* no length */
	lull_idle_advance(&s, UINT64_MAX);
	assert_int_equal(told.busy_ns, 200 + 50 + 100);
	assert_int_equal(told.idle_ns, 100 + 150);
	assert_int_equal(told.n, 5);
	lull_idle_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fold_tells_share_count_and_the_longest),
		cmocka_unit_test(what_is_longer_than_a_bucket_keeps_its_edges),
		cmocka_unit_test(few_events_stay_as_they_are),
		cmocka_unit_test(all_levels_hold_all_events),
		cmocka_unit_test(the_long_event_is_in_every_level),
		cmocka_unit_test(events_that_come_late_are_sorted_in),
		cmocka_unit_test(idle_time_is_what_no_stream_works_in),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
