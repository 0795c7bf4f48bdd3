/* Names of ranges that PyTorch's emit_nvtx() makes unique, and names that only look like them. */
#include "unit/unit.h"

#include "text/op_name.h"

static void check(const char *text, const char *name, const char *json)
{
	struct lull_str got = LULL_STR_INIT;
	size_t len = 0;

	assert_true(lull_op_name_split(text, strlen(text), &len, &got));
	assert_int_equal(len, strlen(name));
	assert_memory_equal(text, name, len);
	assert_string_equal(lull_str_text(&got), json);
	assert_true(lull_op_name_split(text, strlen(text), &len, NULL));
	lull_str_release(&got);
}

static void numbers_of_a_call_leave_its_name(void **state)
{
	(void)state;
	check("aten::addmm, seq = 47504, op_id = 998541", "aten::addmm",
	      "{\"seq\":47504,\"op_id\":998541}");
	check("aten::cat, op_id = 994974", "aten::cat", "{\"op_id\":994974}");
	check("aten::add, seq = 5", "aten::add", "{\"seq\":5}");
	check("AddBackward0, stashed seq=23, seq = 7", "AddBackward0",
	      "{\"stashed_seq\":23,\"seq\":7}");
	check("aten::mm, seq = 1, op_id = 2, sizes = [[4, 8], [8, 2], []]", "aten::mm",
	      "{\"seq\":1,\"op_id\":2,\"sizes\":\"[[4, 8], [8, 2], []]\"}");
	check("aten::mm, op_id = 2, sizes = [[4]], input_op_ids = [(1,0), (3,1)]", "aten::mm",
	      "{\"op_id\":2,\"sizes\":\"[[4]]\",\"input_op_ids\":\"[(1,0), (3,1)]\"}");
	check("FSDP::pre_forward (blocks.3, outer), op_id = 990878",
	      "FSDP::pre_forward (blocks.3, outer)", "{\"op_id\":990878}");
}

static void other_names_stay(void **state)
{
	static const char *const names[] = { "",
					     "aten::addmm",
					     "load, seq = ",
					     "load, seq = x",
					     "load, op_id = 12 and more",
					     "load, sizes = [1, 2",
					     "load, sizes = big",
					     "load, sizes = \"[1]\"",
					     "a, b, c",
					     ", op_id = 3",
					     "step, batch = 3" };
	struct lull_str json = LULL_STR_INIT;
	size_t len = 99;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		assert_false(lull_op_name_split(names[i], strlen(names[i]), &len, &json));
	assert_int_equal(len, 99);
	assert_int_equal(json.len, 0);
	lull_str_release(&json);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_of_a_call_leave_its_name),
		cmocka_unit_test(other_names_stay),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
