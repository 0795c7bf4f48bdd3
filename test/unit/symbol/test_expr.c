#include "symbol/expr.h"

#include <dwarf.h>
#include <elf.h>

#include "unit/unit.h"

/* Memory in which every address holds itself plus 1; odd addresses are not there. */
static bool read_even(const void *memory, u64 addr, u64 *value)
{
	(void)memory;
	*value = addr + 1;
	return addr % 2 == 0;
}

static struct lull_regs x86_regs(u64 pc, u64 sp)
{
	struct lull_regs r = { .pc = pc, .machine = EM_X86_64 };

	lull_regs_set(&r, 7, sp);
	return r;
}

static bool eval(const struct lull_regs *regs, const struct lull_expr_op *ops, size_t n, u64 *value)
{
	struct lull_expr_env env = { .regs = regs, .cfa = 0x5000, .read = read_even };

	return lull_expr_eval(ops, n, &env, value);
}

/*
 * What linkers write for the procedure linkage table: 8 more on the stack after the push at offset
 * 11.
 */
static void procedure_linkage_table_is_understood(void **state)
{
	const struct lull_expr_op plt[] = {
		{ .atom = DW_OP_breg7, .number = 8 },
		{ .atom = DW_OP_breg16 },
		{ .atom = DW_OP_lit15 },
		{ .atom = DW_OP_and },
		{ .atom = DW_OP_lit11 },
		{ .atom = DW_OP_ge },
		{ .atom = DW_OP_lit3 },
		{ .atom = DW_OP_shl },
		{ .atom = DW_OP_plus },
	};
	struct lull_regs before = x86_regs(0x1026, 0x7000), after = x86_regs(0x102b, 0x7000);
	u64 value;

	(void)state;
	assert_true(eval(&before, plt, LULL_COUNT_OF(plt), &value));
	assert_int_equal(value, 0x7008);
	assert_true(eval(&after, plt, LULL_COUNT_OF(plt), &value));
	assert_int_equal(value, 0x7010);
}

static void memory_is_read_and_may_be_missing(void **state)
{
	struct lull_expr_op ops[] = { { .atom = DW_OP_bregx, .number = 7, .number2 = 160 },
				      { .atom = DW_OP_deref } };
	struct lull_regs r = x86_regs(0, 0x7000);
	u64 value;

	(void)state;
	assert_true(eval(&r, ops, 2, &value));
	assert_int_equal(value, 0x7000 + 160 + 1);
	ops[0].number2 = 161;
	assert_false(eval(&r, ops, 2, &value));
	ops[0].number = 3; /* rbx is not known */
	assert_false(eval(&r, ops, 2, &value));
	ops[0].number = 1000;
	assert_false(eval(&r, ops, 2, &value));
}

static void arithmetic_is_that_of_64_bits(void **state)
{
	static const struct {
		u8 atom;
		u64 a, b, result;
	} cases[] = {
		{ DW_OP_plus, ~0ULL, 2, 1 },
		{ DW_OP_minus, 1, 2, ~0ULL },
		{ DW_OP_mul, 3, 5, 15 },
		{ DW_OP_and, 12, 10, 8 },
		{ DW_OP_or, 12, 10, 14 },
		{ DW_OP_xor, 12, 10, 6 },
		{ DW_OP_shl, 1, 64, 0 },
		{ DW_OP_shr, ~0ULL, 63, 1 },
		{ DW_OP_shra, ~0ULL, 99, ~0ULL },
		{ DW_OP_lt, ~0ULL, 0, 1 },
		{ DW_OP_gt, ~0ULL, 0, 0 },
		{ DW_OP_le, 4, 4, 1 },
		{ DW_OP_eq, 4, 4, 1 },
		{ DW_OP_ne, 4, 4, 0 },
	};
	struct lull_regs r = x86_regs(0, 0);

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(cases); i++) {
		const struct lull_expr_op ops[] = { { .atom = DW_OP_constu, .number = cases[i].a },
						    { .atom = DW_OP_constu, .number = cases[i].b },
						    { .atom = cases[i].atom } };
		u64 value;

		assert_true(eval(&r, ops, 3, &value));
		assert_int_equal(value, cases[i].result);
	}
}

static void malformed_expressions_fail(void **state)
{
	struct lull_regs r = x86_regs(0x1000, 0x7000);
	struct lull_expr_op ops[40] = { { 0 } };
	u64 value, seed = 99;

	(void)state;
	assert_false(eval(&r, ops, 0, &value));
	for (size_t i = 0; i < LULL_COUNT_OF(ops); i++)
		ops[i] = (struct lull_expr_op){ .atom = DW_OP_lit1 };
	assert_false(eval(&r, ops, LULL_COUNT_OF(ops), &value)); /* too deep */
	for (int round = 0; round < 20000; round++) {
		for (size_t i = 0; i < LULL_COUNT_OF(ops); i++) {
			seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
			ops[i] = (struct lull_expr_op){ .atom = (u8)(seed >> 40),
							.number = seed >> 20 };
		}
		eval(&r, ops, (seed >> 33) % LULL_COUNT_OF(ops), &value);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(procedure_linkage_table_is_understood),
		cmocka_unit_test(memory_is_read_and_may_be_missing),
		cmocka_unit_test(arithmetic_is_that_of_64_bits),
		cmocka_unit_test(malformed_expressions_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
