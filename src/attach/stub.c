/*
 * stub - the code that `lull attach` puts into a program, as bytes to copy.
 *
 * lull_attach_stub     called on the stopped thread, with the block: starts a thread and returns.
 * lull_attach_routine  that thread: loads the agent and jumps into it. The agent's entry returns
 *                      to the C library, so that it may unmap this code.
 *
 * Both run anywhere: they take all addresses from the block.
 */
#include <stddef.h>

#include "attach/attach_int.h"

_Static_assert(offsetof(struct lull_attach_block, thread) == 40, "stub");
_Static_assert(offsetof(struct lull_attach_block, created) == 48, "stub");
_Static_assert(offsetof(struct lull_attach_block, state) == 56, "stub");
_Static_assert(offsetof(struct lull_attach_block, entry) == 88, "stub");
_Static_assert(offsetof(struct lull_attach_block, agent_path) == 112, "stub");
_Static_assert(offsetof(struct lull_attach_block, text) == 1136, "stub");

/* 0x1002: RTLD_NOW | RTLD_NODELETE; its names are for nobody else. */
#ifdef __x86_64__
__asm__(".pushsection .text\n"
	".globl lull_attach_stub, lull_attach_routine, lull_attach_stub_end\n"
	".hidden lull_attach_stub, lull_attach_routine, lull_attach_stub_end\n"
	"lull_attach_stub:\n"
	"	push %rbx\n"
	"	mov %rdi, %rbx\n"
	"	lea 40(%rbx), %rdi\n"
	"	xor %esi, %esi\n"
	"	lea lull_attach_routine(%rip), %rdx\n"
	"	mov %rbx, %rcx\n"
	"	call *(%rbx)\n"
	"	cltq\n"
	"	mov %rax, 48(%rbx)\n"
	"	test %rax, %rax\n"
	"	jne 1f\n"
	"	mov 40(%rbx), %rdi\n"
	"	call *8(%rbx)\n"
	"1:	pop %rbx\n"
	"	ret\n"
	"lull_attach_routine:\n"
	"	push %rbx\n"
	"	mov %rdi, %rbx\n"
	"	movl $1, 56(%rbx)\n"
	"	lea 112(%rbx), %rdi\n"
	"	mov $0x1002, %esi\n"
	"	call *16(%rbx)\n"
	"	test %rax, %rax\n"
	"	je 2f\n"
	"	mov %rax, %rdi\n"
	"	lea 88(%rbx), %rsi\n"
	"	call *24(%rbx)\n"
	"	test %rax, %rax\n"
	"	je 2f\n"
	"	mov %rbx, %rdi\n"
	"	pop %rbx\n"
	"	jmp *%rax\n"
	"2:	call *32(%rbx)\n"
	"	test %rax, %rax\n"
	"	je 4f\n"
	"	xor %ecx, %ecx\n"
	"3:	movzbl (%rax,%rcx), %edx\n"
	"	test %edx, %edx\n"
	"	je 4f\n"
	"	mov %dl, 1136(%rbx,%rcx)\n"
	"	inc %ecx\n"
	"	cmp $255, %ecx\n"
	"	jne 3b\n"
	"4:	movl $2, 56(%rbx)\n"
	"	xor %eax, %eax\n"
	"	pop %rbx\n"
	"	ret\n"
	"lull_attach_stub_end:\n"
	".popsection\n");
#else
__asm__(".pushsection .text\n"
	".balign 8\n"
	".globl lull_attach_stub, lull_attach_routine, lull_attach_stub_end\n"
	".hidden lull_attach_stub, lull_attach_routine, lull_attach_stub_end\n"
	"lull_attach_stub:\n"
	"	stp x29, x30, [sp, #-32]!\n"
	"	mov x29, sp\n"
	"	str x19, [sp, #16]\n"
	"	mov x19, x0\n"
	"	add x0, x19, #40\n"
	"	mov x1, #0\n"
	"	adr x2, lull_attach_routine\n"
	"	mov x3, x19\n"
	"	ldr x9, [x19]\n"
	"	blr x9\n"
	"	sxtw x0, w0\n"
	"	str x0, [x19, #48]\n"
	"	cbnz x0, 1f\n"
	"	ldr x0, [x19, #40]\n"
	"	ldr x9, [x19, #8]\n"
	"	blr x9\n"
	"1:	ldr x19, [sp, #16]\n"
	"	ldp x29, x30, [sp], #32\n"
	"	ret\n"
	"lull_attach_routine:\n"
	"	stp x29, x30, [sp, #-32]!\n"
	"	mov x29, sp\n"
	"	str x19, [sp, #16]\n"
	"	mov x19, x0\n"
	"	mov w9, #1\n"
	"	str w9, [x19, #56]\n"
	"	add x0, x19, #112\n"
	"	mov w1, #0x1002\n"
	"	ldr x9, [x19, #16]\n"
	"	blr x9\n"
	"	cbz x0, 2f\n"
	"	add x1, x19, #88\n"
	"	ldr x9, [x19, #24]\n"
	"	blr x9\n"
	"	cbz x0, 2f\n"
	"	mov x16, x0\n"
	"	mov x0, x19\n"
	"	ldr x19, [sp, #16]\n"
	"	ldp x29, x30, [sp], #32\n"
	"	br x16\n"
	"2:	ldr x9, [x19, #32]\n"
	"	blr x9\n"
	"	cbz x0, 4f\n"
	"	add x10, x19, #1136\n"
	"	mov w11, #255\n"
	"3:	ldrb w9, [x0], #1\n"
	"	cbz w9, 4f\n"
	"	strb w9, [x10], #1\n"
	"	subs w11, w11, #1\n"
	"	b.ne 3b\n"
	"4:	mov w9, #2\n"
	"	add x10, x19, #56\n"
	"	stlr w9, [x10]\n"
	"	mov x0, #0\n"
	"	ldr x19, [sp, #16]\n"
	"	ldp x29, x30, [sp], #32\n"
	"	ret\n"
	"lull_attach_stub_end:\n"
	".popsection\n");
#endif

extern const u8 lull_attach_stub[] __attribute__((visibility("hidden")));
extern const u8 lull_attach_stub_end[] __attribute__((visibility("hidden")));

const u8 *lull_attach_code(size_t *n_bytes)
{
	/* As numbers: for C these are two objects, and only the assembler knows better. */
	*n_bytes = (uintptr_t)lull_attach_stub_end - (uintptr_t)lull_attach_stub;
	return lull_attach_stub;
}
