#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "record/process/tree.h"

/* As wait() has them. */
#define EXITED_WITH_0 0

static int set_up(void **state)
{
	static struct lull_tree tree;

	lull_tree_init(&tree);
	*state = &tree;
	return 0;
}

static int tear_down(void **state)
{
	lull_tree_release(*state);
	return 0;
}

static void a_fork_that_is_told_twice_is_one(void **state)
{
	struct lull_process *p = lull_tree_fork(*state, 7, 1, 100), *again;

	again = lull_tree_fork(*state, 7, 1, 150);
	assert_ptr_equal(p, again);
	assert_int_equal(p->start_ns, 100);
}

static void a_fork_that_is_told_again_after_its_end_is_one(void **state)
{
	struct lull_tree *t = *state;
	struct lull_process *p = lull_tree_fork(t, 7, 1, 100);

	lull_tree_ended(p, EXITED_WITH_0, 200);
	assert_ptr_equal(lull_tree_fork(t, 7, 1, 150), p);
	assert_ptr_equal(lull_tree_place(t, 7, 150), p);
	assert_int_equal(t->processes.n, 1);
	assert_int_equal(p->start_ns, 100);
	assert_int_equal(p->end_ns, 200);
}

static void news_of_a_fork_come_after_all_others(void **state)
{
	struct lull_tree *t = *state;
	struct lull_process *p = lull_tree_place(t, 7, 150);

	lull_tree_ended(p, EXITED_WITH_0, 200);
	assert_ptr_equal(lull_tree_fork(t, 7, 1, 100), p);
	assert_int_equal(p->parent_pid, 1);
	assert_int_equal(t->processes.n, 1);
}

static void a_number_that_is_used_again_is_another_process(void **state)
{
	struct lull_tree *t = *state;
	struct lull_process *p = lull_tree_fork(t, 7, 1, 100), *later;

	lull_tree_ended(p, EXITED_WITH_0, 200);
	later = lull_tree_fork(t, 7, 2, 300);
	assert_ptr_not_equal(later, p);
	assert_int_equal(later->parent_pid, 2);
	assert_int_equal(lull_tree_image(later), 0);
	assert_int_equal(t->processes.n, 2);
}

static void what_a_child_executes_takes_its_place(void **state)
{
	struct lull_tree *t = *state;
	struct lull_process *p = lull_tree_fork(t, 7, 1, 100);

	assert_ptr_equal(lull_tree_exec(t, 7, 150), p);
	assert_ptr_equal(lull_tree_place(t, 7, 160), p);
	assert_int_equal(t->processes.n, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_fork_that_is_told_twice_is_one, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_fork_that_is_told_again_after_its_end_is_one,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(news_of_a_fork_come_after_all_others, set_up,
						tear_down),
		cmocka_unit_test_setup_teardown(a_number_that_is_used_again_is_another_process,
						set_up, tear_down),
		cmocka_unit_test_setup_teardown(what_a_child_executes_takes_its_place, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
