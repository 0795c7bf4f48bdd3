/*
 * What a program is, however it was started.
 */
#include "unit/unit.h"

#include "compare/program.h"

static void is(const char *exe, const char *cmdline, const char *name, const char *args)
{
	struct lull_program p;

	lull_program_of(&p, exe, cmdline);
	assert_string_equal(lull_str_text(&p.name), name);
	assert_string_equal(lull_str_text(&p.args), args);
	lull_program_release(&p);
}

static void a_script_is_one_in_any_interpreter_and_folder(void **state)
{
	(void)state;
	is("/usr/bin/python3.11", "python3.11 train.py --lr 3", "train.py", "--lr 3");
	is("/opt/conda/bin/python", "python3 /home/me/run/train.py --lr 3", "train.py", "--lr 3");
	is("/usr/bin/python3", "/usr/bin/python3 -u -X dev -W ignore train.py", "train.py", "");
	is("/usr/bin/bash", "bash ./run.sh a b", "run.sh", "a b");
}

static void a_module_is_its_name(void **state)
{
	(void)state;
	is("/usr/bin/python3", "python3 -m pkg.train x", "pkg.train", "x");
	is("/usr/bin/python3", "python3 -u -mpkg.train x", "pkg.train", "x");
	is("/usr/bin/python3", "python3 -c import torch", "-c", "import torch");
}

static void another_program_is_its_file(void **state)
{
	(void)state;
	is("/usr/bin/train", "./train --steps 5", "train", "--steps 5");
	is("/usr/bin/train", "", "train", "");
	is("/opt/my tools/train", "", "train", "");
	is("/usr/bin/python3.11", "", "python", "");
	is("/usr/bin/python3", "python3", "python", "");
	/* These only begin like an interpreter. */
	is("/usr/bin/shuffle", "shuffle 3", "shuffle", "3");
	is("", "", "", "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_script_is_one_in_any_interpreter_and_folder),
		cmocka_unit_test(a_module_is_its_name),
		cmocka_unit_test(another_program_is_its_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
