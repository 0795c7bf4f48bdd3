/*
 * Heads of remedies, good and bad, and the logs of runs.
 */
#include "unit/unit.h"

#include <stdlib.h>
#include <math.h>
#include <unistd.h>

#include "try/remedy.h"
#include "try/try_int.h"
#include "try/try_log.h"

static char folder[] = "/tmp/lull-test-XXXXXX";

static const char *write_file(const char *name, const char *text)
{
	static char path[256];
	FILE *f;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	f = fopen(path, "we");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	return path;
}

static int read_text(struct lull_vec *all, const char *text, struct lull_err *err)
{
	lull_vec_init(all, sizeof(struct lull_remedy));
	return lull_remedy_read(all, write_file("mine.py", text), err);
}

static void a_head_says_all(void **state)
{
	const struct lull_remedy *r;
	const char *nearest;
	struct lull_vec all;
	struct lull_err err;

	(void)state;
	assert_int_equal(read_text(&all,
				   "#!/usr/bin/env python3\n"
				   "\"\"\"my-fix: does: things\n\ncauses: gc, host-sync\n"
				   "tolerance: 1e-3 because of order\nenv: A=B,C\nenv: D=\n"
				   "group: g\nby-name: yes\nwarmup: 7\nlimit: 30\nwrite: do it\n"
				   "A sentence for people, with a colon: here.\n\"\"\"\n"
				   "def apply(trial):\n    pass\n",
				   &err),
			 0);
	r = lull_remedy_find(&all, "my-fix", &nearest);
	assert_non_null(r);
	assert_string_equal(r->title, "does: things");
	assert_true(lull_remedy_is_for(r, "gc") && lull_remedy_is_for(r, "host-sync"));
	assert_false(lull_remedy_is_for(r, "host"));
	assert_string_equal(((char **)r->env.at)[0], "A=B,C");
	assert_int_equal(r->env.n, 2);
	assert_string_equal(r->because, "because of order");
	assert_true(r->is_by_name && !r->is_exact && r->path);
	assert_int_equal(r->n_warmup, 7);
	assert_null(lull_remedy_find(&all, "my-fxi", &nearest));
	assert_string_equal(nearest, "my-fix");
	lull_remedies_release(&all);
}

static void bad_heads_are_named_with_their_line(void **state)
{
	static const struct {
		const char *text, *part;
	} cases[] = {
		{ "", "empty" },
		{ "import os\n", "line 1" },
		{ "\"\"\"no name\n\"\"\"\n", "line 1" },
		{ "\"\"\"a: b\ncolour: red\n\"\"\"\ndef apply(t): pass\n", "line 2" },
		{ "\"\"\"a: b\n\nexact: maybe\n\"\"\"\n", "line 3" },
		{ "\"\"\"a: b\ntolerance: much\n\"\"\"\n", "line 2" },
		{ "\"\"\"a: b\nenv: 1A=2\n\"\"\"\n", "NAME=VALUE" },
		{ "\"\"\"a: b\nwarmup: -1\n\"\"\"\n", "line 2" },
		{ "\"\"\"a: b\n\"\"\"\n", "neither" },
	};

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(cases); i++) {
		struct lull_vec all;
		struct lull_err err = { 0, "" };

		assert_int_equal(read_text(&all, cases[i].text, &err), LULL_E_FORMAT);
		assert_non_null(strstr(err.msg, cases[i].part));
		assert_int_equal(all.n, 0);
		lull_remedies_release(&all);
	}
}

static void two_remedies_of_one_name_are_refused(void **state)
{
	static const char text[] = "\"\"\"a: b\nenv: A=B\n\"\"\"\n";
	struct lull_vec all;
	struct lull_err err;

	(void)state;
	assert_int_equal(read_text(&all, text, &err), 0);
	assert_int_equal(lull_remedy_read(&all, write_file("mine.py", text), &err), LULL_E_FORMAT);
	lull_remedies_release(&all);
}

static void ours_can_all_be_read(void **state)
{
	struct lull_vec all;
	struct lull_err err;

	(void)state;
	lull_vec_init(&all, sizeof(struct lull_remedy));
	assert_int_equal(lull_remedy_read_folder(&all, "python/lull/remedies", &err), 0);
	assert_true(all.n > 15);
	for (size_t i = 0; i < all.n; i++) {
		const struct lull_remedy *r = lull_vec_get(&all, i);

		assert_true(*r->write && r->causes.n);
		assert_true(r->is_exact || r->tolerance > 0);
	}
	lull_remedies_release(&all);
}

static void logs_of_several_processes_are_one_run(void **state)
{
	struct lull_try_seen s;
	const struct lull_try_place *place;

	(void)state;
	write_file("10.log", "r 1\ns 5\nm 9\nb 10 1000\nb 10 2000\nl 0x1p+0\ne\nd x\n");
	write_file("11.log",
		   "r 0\na 1\ns 5\ns 6\nu\nm 7\nb 10 3000\nb 10 500\nl 0x1.8p+1\nl nan\ne\n"
		   "w x /a b/t.py:12 add y=1\nk /c\nk /c\np +line\ng 77\n");
	write_file("12.log", "s 1\ns 2\ns 3\ns 4\nt bad\nb 0 5\nb x\nz\n\nw x\nw x y\nb 10 99999");
	lull_try_seen_init(&s);
	lull_try_log_read(&s, folder);
	assert_int_equal(s.rank, 0);
	assert_int_equal(s.n_steps, 1);
	assert_int_equal(s.n_measured, 20);
	assert_int_equal(s.began_ns, 7);
	assert_float_equal(((f64 *)s.steps.at)[0], 300, 0);
	assert_int_equal(s.values.n, 2);
	assert_true(s.has_loss && s.has_ended && s.is_python);
	assert_int_equal(s.device_bytes, 77);
	assert_int_equal(s.kept.n, 1);
	assert_int_equal(s.did.n, 1);
	assert_string_equal(((char **)s.trouble.at)[0], "bad");
	assert_string_equal(s.patch.at, "+line\n");
	assert_int_equal(s.places.n, 1);
	place = s.places.at;
	assert_string_equal(place->file, "/a b/t.py");
	assert_int_equal(place->line, 12);
	assert_string_equal(place->text, "add y=1");
	lull_try_seen_release(&s);
}

static void losses_are_compared_to_the_bit_or_as_shares(void **state)
{
	f64 a[] = { 2, 4, NAN }, b[] = { 2, 4.2, NAN }, c[] = { 2, 4, 1 };
	struct lull_vec x = { a, 3, 3, sizeof(f64) }, y = { b, 3, 3, sizeof(f64) },
			z = { c, 3, 3, sizeof(f64) };

	(void)state;
	assert_true(lull_try_values_apart(&x, &x) == 0);
	assert_float_equal(lull_try_values_apart(&x, &y), 0.2 / 4.2, 1e-12);
	assert_true(isinf(lull_try_values_apart(&x, &z)));
	y.n = 1;
	assert_true(lull_try_values_apart(&x, &y) == 0);
}

static void numbers_that_differ_from_run_to_run_are_no_results(void **state)
{
	/* The result and the time of each run; one was ended before it could write. */
	f64 a[] = { 42, 7.5 }, b[] = { 42, 7.25 };
	struct lull_try t = { 0 };
	struct lull_try_entry e = { 0 };
	struct lull_trial first = { .has_output = true }, cut = { .has_output = true },
			  second = { .has_output = true };

	(void)state;
	first.seen.values = (struct lull_vec){ a, 2, 2, sizeof(f64) };
	second.seen.values = (struct lull_vec){ b, 2, 2, sizeof(f64) };
	lull_vec_init(&t.values, sizeof(f64));
	lull_vec_init(&t.firm, sizeof(u32));
	lull_vec_init(&e.values, sizeof(f64));
	lull_vec_add(&t.values, a, 2);
	lull_try_values_firm(&t, &first);
	lull_try_values_firm(&t, &cut);
	lull_try_values_note(&t, &e, &second);
	/* Only one run has told the time: nobody knows whether it is a result. */
	assert_true(lull_try_values_fit(&t, &e) && !e.has_values);
	lull_try_values_firm(&t, &second);
	assert_true(lull_try_values_fit(&t, &e) && e.has_values && e.is_equal);
	b[0] = 43;
	lull_try_values_note(&t, &e, &second);
	assert_false(lull_try_values_fit(&t, &e));
	lull_vec_release(&t.values);
	lull_vec_release(&t.firm);
	lull_vec_release(&e.values);
}

static int set_up(void **state)
{
	(void)state;
	return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
	static const char *const names[] = { "mine.py", "10.log", "11.log", "12.log" };
	char path[256];

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(names); i++) {
		snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
		unlink(path);
	}
	return rmdir(folder);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_head_says_all),
		cmocka_unit_test(bad_heads_are_named_with_their_line),
		cmocka_unit_test(two_remedies_of_one_name_are_refused),
		cmocka_unit_test(ours_can_all_be_read),
		cmocka_unit_test(logs_of_several_processes_are_one_run),
		cmocka_unit_test(losses_are_compared_to_the_bit_or_as_shares),
		cmocka_unit_test(numbers_that_differ_from_run_to_run_are_no_results),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
