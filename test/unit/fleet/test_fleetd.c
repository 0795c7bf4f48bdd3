/*
 * Who is recorded, and which reports are kept.
 */
#include "unit/unit.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "fleet/fleet_keep.h"
#include "fleet/fleet_policy.h"
#include "fleet/fleetd.h"

#define S 1000000000ull

/* ---- the policy ---- */

static struct lull_fleet_process process(u32 pid, const char *cmdline, const char *cgroup)
{
	struct lull_fleet_process p = { .pid = pid, .start_ticks = 1000 + pid };

	snprintf(p.cmdline, sizeof(p.cmdline), "%s", cmdline);
	snprintf(p.cgroup, sizeof(p.cgroup), "%s", cgroup);
	return p;
}

static void begin(struct lull_fleet_policy *p, const char *text)
{
	struct lull_err err = { 0 };

	lull_fleet_policy_init(p, 1, 0.005);
	if (lull_fleet_policy_parse(p, text, "rules", &err) != 0)
		fail_msg("%s", err.msg);
}

static void the_first_rule_that_fits_decides(void **state)
{
	struct lull_fleet_process train = process(1, "python3 train.py -x", "0::/kubepods/a");
	struct lull_fleet_process note = process(2, "python3 -m jupyter", "0::/user.slice");
	struct lull_fleet_process other = process(3, "./serve", "0::/system.slice");
	const struct lull_fleet_rule *rule;
	struct lull_fleet_policy p;

	(void)state;
	begin(&p, "# who\n\n"
		  "skip cmdline=jupyter # not these\n"
		  "record label=t-1 cmdline=\"python3? train\" cgroup=/kubepods budget=0.1%\n"
		  "record label=py cmdline=^python");
	assert_int_equal(lull_fleet_policy_choose(&p, &train, &rule), LULL_FLEET_RECORD);
	assert_string_equal(rule->label, "t-1");
	assert_int_equal(rule->line, 4);
	assert_true(rule->budget > 0.00099 && rule->budget < 0.00101);
	assert_int_equal(lull_fleet_policy_choose(&p, &note, &rule), LULL_FLEET_SKIP);
	assert_int_equal(lull_fleet_policy_choose(&p, &other, &rule), LULL_FLEET_NO_RULE);
	assert_null(rule);
	snprintf(train.cgroup, sizeof(train.cgroup), "0::/user.slice");
	assert_int_equal(lull_fleet_policy_choose(&p, &train, &rule), LULL_FLEET_RECORD);
	assert_string_equal(rule->label, "py");
	assert_true(rule->budget > 0.00499 && rule->budget < 0.00501);
	lull_fleet_policy_release(&p);
}

static void a_share_of_the_processes_is_chosen_once_for_each(void **state)
{
	const struct lull_fleet_rule *rule;
	struct lull_fleet_policy p;
	u32 n = 0;

	(void)state;
	begin(&p, "record share=25%");
	for (u32 pid = 1; pid <= 4000; pid++) {
		struct lull_fleet_process one = process(pid, "x", "");
		enum lull_fleet_choice choice = lull_fleet_policy_choose(&p, &one, &rule);

		n += choice == LULL_FLEET_RECORD;
		for (int again = 0; again < 3; again++)
			assert_int_equal(lull_fleet_policy_choose(&p, &one, &rule), choice);
	}
	assert_in_range(n, 880, 1120);
	lull_fleet_policy_release(&p);
}

static void rules_that_make_no_sense_are_refused_with_their_line(void **state)
{
	static const char *const bad[] = {
		"record\nplay cmdline=x",     "record\nrecord cmdline=(",
		"record\nrecord share=0",     "record\nrecord budget=2",
		"record\nrecord label=../up", "record\nrecord label=.",
		"record\nrecord color=blue",  "record\nskip cmdline=a cmdline=b",
	};
	struct lull_fleet_policy p;
	struct lull_err err;

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(bad); i++) {
		lull_fleet_policy_init(&p, 1, 0.005);
		assert_int_equal(lull_fleet_policy_parse(&p, bad[i], "rules", &err), LULL_E_USAGE);
		assert_non_null(strstr(err.msg, "rules:2: "));
		lull_fleet_policy_release(&p);
	}
}

static void the_command_names_process_report_and_budget(void **state)
{
	struct lull_fleetd_options o = { .folder = "/r",
					 .report_ns = 90 * S,
					 .attach =
						 "a  --b={budget} -d {seconds} -o {output} {pid}" };
	struct lull_fleet_rule rule = { .label = "all", .budget = 0.005 };
	struct lull_fleet_process one = process(42, "x", "");
	char **words = lull_fleetd_words(&o, &one, &rule, 0);

	(void)state;
	assert_string_equal(words[0], "a");
	assert_string_equal(words[1], "--b=0.5%");
	assert_string_equal(words[3], "90");
	assert_non_null(strstr(words[5], "/r/all/"));
	assert_non_null(strstr(words[5], "-42-19700101T000000-000Z"));
	assert_string_equal(words[6], "42");
	assert_null(words[7]);
	lull_fleetd_free_words(words);
}

/* ---- what is kept ---- */

static char folder[64];

static void make(const char *name, size_t n_bytes, u64 age_s)
{
	struct timespec times[2] = { { (time_t)(1000000 - age_s), 0 },
				     { (time_t)(1000000 - age_s), 0 } };
	char path[128];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)n_bytes), 0);
	close(fd);
	assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static bool has(const char *name)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	return access(path, F_OK) == 0;
}

static int set_up(void **state)
{
	(void)state;
	snprintf(folder, sizeof(folder), "/tmp/lull-keep-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static struct lull_fleet_kept keep(const struct lull_fleet_bound *bound, u64 now_s)
{
	struct lull_fleet_kept kept;
	struct lull_err err;

	assert_int_equal(lull_fleet_keep(folder, bound, now_s * S, &kept, &err), 0);
	return kept;
}

static void the_oldest_reports_go_until_the_rest_fits(void **state)
{
	struct lull_fleet_bound bound = { .max_bytes = 250 };
	struct lull_fleet_kept kept;
	char sub[128];

	(void)state;
	snprintf(sub, sizeof(sub), "%s/job", folder);
	assert_int_equal(mkdir(sub, 0700), 0);
	make("a.lull", 100, 400);
	make("job/b.lull", 100, 300);
	make("c.lull", 100, 200);
	make("d.lull", 100, 100);
	make("notes.txt", 100000, 1000);
	kept = keep(&bound, 1000000);
	assert_int_equal(kept.n_removed, 2);
	assert_int_equal(kept.n_bytes, 200);
	assert_false(has("a.lull") || has("job/b.lull"));
	assert_true(has("c.lull") && has("d.lull") && has("notes.txt"));
}

static void reports_that_are_too_old_go(void **state)
{
	struct lull_fleet_bound bound = { .max_age_ns = 250 * S };

	(void)state;
	make("a.lull", 10, 300);
	make("b.lull", 10, 200);
	assert_int_equal(keep(&bound, 1000000).n_removed, 1);
	assert_true(has("b.lull"));
	/* Of the future, as after a clock was set back. */
	assert_int_equal(keep(&bound, 10).n_removed, 0);
}

static bool is_c(const void *ctx, const char *path)
{
	(void)ctx;
	return strstr(path, "/c.lull") != NULL;
}

static void what_is_being_written_stays(void **state)
{
	struct lull_fleet_bound bound = { .max_bytes = 1, .max_age_ns = S, .is_busy = is_c };

	(void)state;
	make("a.lull.part", 1000, 500);
	make("b.lull", 10, 500);
	make("b.lull.part", 10, 500);
	make("c.lull", 10, 500);
	make("d.lull", 10, 500);
	assert_int_equal(keep(&bound, 1000000).n_removed, 1);
	assert_true(has("a.lull.part") && has("b.lull") && has("b.lull.part") && has("c.lull"));
	assert_false(has("d.lull"));
}

static void note_stale(void *ctx, const char *path)
{
	snprintf(ctx, 256, "%s", strrchr(path, '/') + 1);
}

static void what_nobody_writes_any_more_goes_with_the_oldest(void **state)
{
	char stale[256] = "", locked[128];
	struct lull_fleet_bound bound = { .max_bytes = 250, .on_stale = note_stale, .ctx = stale };
	struct lull_fleet_kept kept;
	int fd;

	(void)state;
	/* A machine went down while these were written; one of them is still locked. */
	make("a.lull.part", 1000, 20000);
	make("b.lull", 10, 15000);
	make("b.lull.part", 1000, 10000);
	make("c.lull.part", 20, 9000);
	make("d.lull.part", 50, 9000);
	make("e.lull", 100, 300);
	snprintf(locked, sizeof(locked), "%s/d.lull.part", folder);
	fd = open(locked, O_RDONLY | O_CLOEXEC);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	kept = keep(&bound, 1000000);
	assert_int_equal(kept.n_removed, 3);
	assert_int_equal(kept.n_reports, 1);
	assert_int_equal(kept.n_bytes, 170);
	assert_true(has("c.lull.part") && has("d.lull.part") && has("e.lull"));
	assert_string_equal(stale, "c.lull.part");
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_rule_that_fits_decides),
		cmocka_unit_test(a_share_of_the_processes_is_chosen_once_for_each),
		cmocka_unit_test(rules_that_make_no_sense_are_refused_with_their_line),
		cmocka_unit_test(the_command_names_process_report_and_budget),
		cmocka_unit_test_setup_teardown(the_oldest_reports_go_until_the_rest_fits, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(reports_that_are_too_old_go, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_is_being_written_stays, set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_nobody_writes_any_more_goes_with_the_oldest,
						set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
