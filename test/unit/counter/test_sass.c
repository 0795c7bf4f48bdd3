/*
 * Machine code as the disassemblers print it.
 */
#include "unit/unit.h"

#include "counter/sass.h"

static const char cuobjdump[] =
	"Fatbin elf code:\n================\narch = sm_90\n\n\tcode for sm_90\n"
	"\t\tFunction : _Z5otherv\n"
	"        /*0000*/                   NOP ;                   /* 0x0000000000007918 */\n"
	"\t\tFunction : _Z4copyPf\n\t.headerflags\t@\"EF_CUDA_SM90\"\n"
	"        /*0000*/                   LDC R1, c[0x0][0x28] ;  /* 0x00000a00ff017b82 */\n"
	"                                                           /* 0x000fe20000000800 */\n"
	"        /*0010*/              @!P0 LDG.E.128 R4, desc[UR4][R6.64+R4.X8] ;  /* 0x1 */\n"
	"        /*0020*/               @P1 FFMA R8, R4, R5, RZ ;   /* 0x2 */\n"
	"        /*0030*/                   EXIT ;                  /* 0x3 */\n";

static const char nvdisasm[] = ".section\t.text._Z4copyPf,\"ax\",@progbits\n"
			       ".text._Z4copyPf:\n"
			       "        /*0000*/                   IADD3 R1, R1, -0x10, RZ ;\n"
			       "        /*0010*/                   EXIT ;\n"
			       ".section\t.text._Z4copyPfi,\"ax\",@progbits\n"
			       "        /*0000*/                   NOP ;\n";

static void instructions_have_predicates_and_registers(void **state)
{
	const struct lull_sass *s;
	struct lull_vec all;

	(void)state;
	lull_vec_init(&all, sizeof(struct lull_sass));
	lull_sass_parse(cuobjdump, "_Z4copyPf", &all);
	assert_int_equal(all.n, 4);
	s = lull_sass_at(&all, 0x10);
	assert_non_null(s);
	assert_string_equal(s->text, "LDG.E.128 R4, desc[UR4][R6.64+R4.X8]");
	assert_string_equal(s->predicate, "@!P0");
	assert_string_equal(s->registers, "R4 UR4 R6");
	s = lull_sass_at(&all, 0x20);
	assert_string_equal(s->registers, "R8 R4 R5");
	assert_string_equal(s->predicate, "@P1");
	s = lull_sass_at(&all, 0x30);
	assert_string_equal(s->text, "EXIT");
	assert_string_equal(s->registers, "");
	assert_null(lull_sass_at(&all, 0x40));
	lull_vec_release(&all);
}

static void functions_are_told_apart(void **state)
{
	struct lull_vec all;

	(void)state;
	lull_vec_init(&all, sizeof(struct lull_sass));
	lull_sass_parse(nvdisasm, "_Z4copyPf", &all);
	assert_int_equal(all.n, 2);
	assert_string_equal(((struct lull_sass *)all.at)->registers, "R1");
	lull_vec_release(&all);
	lull_sass_parse(nvdisasm, "_Z4cop", &all);
	assert_int_equal(all.n, 0);
	lull_sass_parse("/*", "", &all);
	lull_sass_parse("Function : \n/*0\n/*00*/\n/*0010*/ @", "", &all);
	assert_int_equal(all.n, 0);
	lull_vec_release(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(instructions_have_predicates_and_registers),
		cmocka_unit_test(functions_are_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
