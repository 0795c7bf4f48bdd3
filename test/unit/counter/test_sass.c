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

/* As cuobjdump of CUDA 12.4 prints a program that has code for two chips. */
static const char two_chips[] =
	"\nFatbin elf code:\n================\narch = sm_80\ncode version = [1,7]\n\n\tcode for "
	"sm_80\n"
	"\t\tFunction : matmul\n"
	"\t.headerflags\t@\"EF_CUDA_TEXMODE_UNIFIED EF_CUDA_64BIT_ADDRESS EF_CUDA_SM80\"\n"
	"        /*0000*/                   IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28] ;  /* 0x1 */\n"
	"        /*0010*/                   S2R R0, SR_CTAID.X ;                     /* 0x2 */\n"
	"\t\t..........\n\n\nFatbin elf code:\n================\narch = sm_90\n\n\tcode for "
	"sm_90a\n"
	"\t\tFunction : matmul\n"
	"        /*0000*/                   LDC R1, c[0x0][0x28] ;                   /* 0x3 */\n"
	"        /*0010*/                   S2R R3, SR_TID.X ;                       /* 0x4 */\n"
	"        /*0020*/                   BRA 0x20;                                /* 0x5 */\n";

/* As nvdisasm of CUDA 12.4 prints a cubin: its sections, of which few are code. */
static const char sections[] =
	"//--------------------- .text.matmul              --------------------------\n"
	"\t.section\t.text.matmul,\"ax\",@progbits\n\t.sectionflags\t@\"SHF_BARRIERS=1\"\n"
	"matmul:\n.text.matmul:\n"
	"        /*0000*/                   BSSY B0, `(.L_x_7) ;\n.L_x_0:\n"
	"        /*0010*/                   BRA `(.L_x_0);\n"
	"//--------------------- .nv.constant0.matmul      --------------------------\n"
	"\t.section\t.nv.constant0.matmul,\"a\",@progbits\n"
	"        /*0000*/ \t.byte\t0xff, 0xff, 0xff\n";

static void instructions_have_predicates_and_registers(void **state)
{
	const struct lull_sass *s;
	struct lull_vec all;

	(void)state;
	lull_vec_init(&all, sizeof(struct lull_sass));
	lull_sass_parse(cuobjdump, "_Z4copyPf", 90, &all);
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
	lull_sass_parse(nvdisasm, "_Z4copyPf", 90, &all);
	assert_int_equal(all.n, 2);
	assert_string_equal(((struct lull_sass *)all.at)->registers, "R1");
	lull_vec_release(&all);
	lull_sass_parse(nvdisasm, "_Z4cop", 90, &all);
	assert_int_equal(all.n, 0);
	lull_sass_parse("/*", "", 90, &all);
	lull_sass_parse("Function : \n/*0\n/*00*/\n/*0010*/ @", "", 90, &all);
	assert_int_equal(all.n, 0);
	lull_vec_release(&all);
}

static size_t n_for(u32 capability, const char *first)
{
	struct lull_vec all;
	size_t n;

	lull_vec_init(&all, sizeof(struct lull_sass));
	lull_sass_parse(two_chips, "matmul", capability, &all);
	n = all.n;
	if (n)
		assert_string_equal(((struct lull_sass *)all.at)->text, first);
	lull_vec_release(&all);
	return n;
}

static void code_is_that_of_the_device(void **state)
{
	(void)state;
	assert_int_equal(n_for(90, "LDC R1, c[0x0][0x28]"), 3);
	assert_int_equal(n_for(80, "IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28]"), 2);
	assert_int_equal(n_for(86, "IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28]"), 2);
	assert_int_equal(n_for(75, ""), 0);
	assert_int_equal(n_for(0, "IMAD.MOV.U32 R1, RZ, RZ, c[0x0][0x28]"), 2);
}

static void data_is_no_code(void **state)
{
	struct lull_vec all;

	(void)state;
	lull_vec_init(&all, sizeof(struct lull_sass));
	lull_sass_parse(sections, "matmul", 90, &all);
	assert_int_equal(all.n, 2);
	assert_string_equal(lull_sass_at(&all, 0x10)->text, "BRA `(.L_x_0)");
	lull_vec_release(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(instructions_have_predicates_and_registers),
		cmocka_unit_test(functions_are_told_apart),
		cmocka_unit_test(code_is_that_of_the_device),
		cmocka_unit_test(data_is_no_code),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
