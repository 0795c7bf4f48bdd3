#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/syscall.h>

#include "attach/attach_int.h"
#include "unit/unit.h"

#define ALLOW	      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)
#define KILL	      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)
#define LOAD	      (BPF_LD | BPF_W | BPF_ABS)
#define LOAD_NUMBER   BPF_STMT(LOAD, (u32)offsetof(struct seccomp_data, nr))
#define LOAD_THIRD    BPF_STMT(LOAD, (u32)offsetof(struct seccomp_data, args[2]))
#define IF(op, value) BPF_JUMP(BPF_JMP | (op) | BPF_K, value, 0, 1)

#define EXPECT_CALL(wanted, ...)                                                               \
	do {                                                                                   \
		const struct sock_filter code[] = { __VA_ARGS__ };                             \
		const char *found = lull_attach_harmful_call(code, (long)LULL_COUNT_OF(code)); \
		assert_string_equal(found ? found : "none", wanted);                           \
	} while (0)

static void answers_that_end_nothing_are_taken(void **state)
{
	(void)state;
	EXPECT_CALL("none", ALLOW);
	EXPECT_CALL("none", BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_LOG));
	EXPECT_CALL("none", BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1));
}

static void answers_that_end_the_program_are_not(void **state)
{
	static const u32 answers[] = { SECCOMP_RET_KILL_PROCESS, SECCOMP_RET_KILL_THREAD,
				       SECCOMP_RET_TRAP, SECCOMP_RET_TRACE };

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(answers); i++)
		EXPECT_CALL("ftruncate", LOAD_NUMBER, IF(BPF_JEQ, SYS_ftruncate),
			    BPF_STMT(BPF_RET | BPF_K, answers[i]), ALLOW);
}

static void calls_that_the_agent_does_not_make_do_not_matter(void **state)
{
	(void)state;
	EXPECT_CALL("none", LOAD_NUMBER, IF(BPF_JEQ, SYS_reboot), KILL, ALLOW);
	EXPECT_CALL("mmap", LOAD_NUMBER, IF(BPF_JEQ, SYS_reboot), ALLOW, KILL);
}

/* PROT_EXEC is 4, in the third argument of mprotect(). */
static void arguments_are_looked_at(void **state)
{
	(void)state;
	EXPECT_CALL("mprotect", LOAD_NUMBER,
		    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3), LOAD_THIRD,
		    IF(BPF_JSET, 4), KILL, ALLOW);
	EXPECT_CALL("none", LOAD_NUMBER, BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_mprotect, 0, 3),
		    LOAD_THIRD, IF(BPF_JSET, 8), KILL, ALLOW);
}

/* The number, computed in a roundabout way: ((nr + 5) * 2 - 10) / 2. */
static void filters_compute_and_remember(void **state)
{
	(void)state;
	EXPECT_CALL("kill", LOAD_NUMBER, BPF_STMT(BPF_ALU | BPF_ADD | BPF_K, 5),
		    BPF_STMT(BPF_ST, 3), BPF_STMT(BPF_LDX | BPF_IMM, 2),
		    BPF_STMT(BPF_LD | BPF_MEM, 3), BPF_STMT(BPF_ALU | BPF_MUL | BPF_X, 0),
		    BPF_STMT(BPF_ALU | BPF_SUB | BPF_K, 10), BPF_STMT(BPF_ALU | BPF_RSH | BPF_K, 1),
		    BPF_STMT(BPF_MISC | BPF_TAX, 0), BPF_STMT(BPF_LD | BPF_IMM, SYS_kill),
		    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_X, 0, 0, 2), BPF_STMT(BPF_JMP | BPF_JA, 0),
		    KILL, ALLOW);
}

static void a_filter_without_an_end_ends_the_program(void **state)
{
	(void)state;
	EXPECT_CALL("mmap", LOAD_NUMBER);
	EXPECT_CALL("mmap", BPF_STMT(BPF_JMP | BPF_JA, 0xffffffff), ALLOW);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_that_end_nothing_are_taken),
		cmocka_unit_test(answers_that_end_the_program_are_not),
		cmocka_unit_test(calls_that_the_agent_does_not_make_do_not_matter),
		cmocka_unit_test(arguments_are_looked_at),
		cmocka_unit_test(filters_compute_and_remember),
		cmocka_unit_test(a_filter_without_an_end_ends_the_program),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
