/*
 * lib_thunks - the way into a watched function and out of it again; see lib.h.
 *
 * A thunk says which function it stands for and goes to lull_lib_entry. While nobody records that jumps
 * on to the function at once. Else lull_lib_enter() decides; it and lull_lib_exit() use general registers
 * only, so arguments and results in all others stay where they are.
 *
 * In lull_lib_return a register holds the frame, and the unwinding rules are: the caller's program counter,
 * that register and the stack pointer are the first three words of the frame. The CFA lies one byte below
 * the true one, because unwinders tell frames apart by it and this one has no room on the stack.
 *
 * Branch protection: thunks begin with a landing pad (bti c, endbr64). The return address is replaced before the
 * function can sign it. Hardware shadow stacks do refuse it: lull_lib_start() stays off where they are on.
 */
#define HOOK_SHIFT 5	/* log2 of sizeof(struct lull_lib_hook) */
#define FRAME_SP 16	/* offsetof(struct lull_lib_frame, sp) */
#define RECORD 8	/* offsetof(struct lull_control, record) */
#define N_THUNKS 8192	/* LULL_LIB_HOOKS */

#define CFA_expression 0x0f	/* DW_CFA_def_cfa_expression */
#define REG_expression 0x10	/* DW_CFA_expression */
#define OP_deref 0x06
#define OP_minus 0x1c
#define OP_lit1 0x31

	.text
	.hidden lull_lib_thunks
	.hidden lull_lib_return
	.globl lull_lib_return
	.hidden lull_lib_keep_vectors
	.hidden lull_lib_enter
	.hidden lull_lib_exit
	.hidden lull_lib_hooks
	.hidden lull_agent

#if defined(__aarch64__)

#define OP_frame 0x83	/* DW_OP_breg19 */

	.globl lull_lib_thunks
	.type lull_lib_thunks, %function
	.balign 16
lull_lib_thunks:
	.cfi_startproc
	.set i, 0
	.rept N_THUNKS
	hint #34		/* bti c */
	mov w16, #i
	b lull_lib_entry
	nop
	.set i, i + 1
	.endr
	.cfi_endproc
	.size lull_lib_thunks, . - lull_lib_thunks

	.type lull_lib_entry, %function
lull_lib_entry:
	.cfi_startproc
	adrp x17, lull_lib_hooks
	add x17, x17, :lo12:lull_lib_hooks
	add x17, x17, x16, lsl #HOOK_SHIFT
	adrp x9, lull_agent
	ldr x9, [x9, :lo12:lull_agent]
	ldr w9, [x9, #RECORD]
	cbnz w9, 1f
	ldr x17, [x17]
	br x17
1:	stp x29, x30, [sp, #-144]!
	.cfi_def_cfa_offset 144
	.cfi_offset 29, -144
	.cfi_offset 30, -136
	mov x29, sp
	stp x0, x1, [sp, #16]
	stp x2, x3, [sp, #32]
	stp x4, x5, [sp, #48]
	stp x6, x7, [sp, #64]
	str x8, [sp, #80]
	/* struct lull_lib_entry */
	add x10, sp, #144
	stp x17, x10, [sp, #96]
	stp x30, x19, [sp, #112]
	add x10, sp, #16
	str x10, [sp, #128]
	add x0, sp, #96
	bl lull_lib_enter
	mov x9, x0
	ldr x17, [sp, #96]
	ldr x17, [x17]
	ldp x0, x1, [sp, #16]
	ldp x2, x3, [sp, #32]
	ldp x4, x5, [sp, #48]
	ldp x6, x7, [sp, #64]
	ldr x8, [sp, #80]
	ldp x29, x30, [sp], #144
	.cfi_def_cfa_offset 0
	.cfi_restore 29
	.cfi_restore 30
	cbz x9, 2f
	.cfi_remember_state
	mov x19, x9
	.cfi_escape REG_expression, 19, 2, OP_frame, 8
	adr x30, lull_lib_return
	.cfi_escape REG_expression, 30, 2, OP_frame, 0
	br x17
	.cfi_restore_state
2:	br x17
	.cfi_endproc
	.size lull_lib_entry, . - lull_lib_entry

	.type lull_lib_return, %function
	.cfi_startproc
	.cfi_escape CFA_expression, 5, OP_frame, FRAME_SP, OP_deref, OP_lit1, OP_minus
	.cfi_escape REG_expression, 30, 2, OP_frame, 0
	.cfi_escape REG_expression, 19, 2, OP_frame, 8
	.cfi_escape REG_expression, 31, 2, OP_frame, FRAME_SP
	nop			/* a return address is looked up by the byte before it */
lull_lib_return:
	stp x0, x1, [sp, #-80]!
	stp x2, x3, [sp, #16]
	stp x4, x5, [sp, #32]
	stp x6, x7, [sp, #48]
	ldp x9, x10, [x19]
	stp x9, x10, [sp, #64]
	mov x1, x0
	mov x0, x19
	bl lull_lib_exit
	ldp x2, x3, [sp, #16]
	ldp x4, x5, [sp, #32]
	ldp x6, x7, [sp, #48]
	ldp x30, x19, [sp, #64]
	ldp x0, x1, [sp], #80
	.cfi_def_cfa 31, 0
	.cfi_restore 19
	.cfi_restore 30
	.cfi_restore 31
	ret
	.cfi_endproc
	.size lull_lib_return, . - lull_lib_return

	/* Only v0-v7 can hold arguments or results; functions that use more are never watched. */
	.globl lull_lib_keep_vectors
	.type lull_lib_keep_vectors, %function
lull_lib_keep_vectors:
	.cfi_startproc
	stp x29, x30, [sp, #-144]!
	.cfi_def_cfa_offset 144
	.cfi_offset 29, -144
	.cfi_offset 30, -136
	mov x29, sp
	stp q0, q1, [sp, #16]
	stp q2, q3, [sp, #48]
	stp q4, q5, [sp, #80]
	stp q6, q7, [sp, #112]
	mov x9, x0
	mov x0, x1
	mov x1, x2
	blr x9
	ldp q0, q1, [sp, #16]
	ldp q2, q3, [sp, #48]
	ldp q4, q5, [sp, #80]
	ldp q6, q7, [sp, #112]
	ldp x29, x30, [sp], #144
	.cfi_def_cfa_offset 0
	.cfi_restore 29
	.cfi_restore 30
	ret
	.cfi_endproc
	.size lull_lib_keep_vectors, . - lull_lib_keep_vectors

#elif defined(__x86_64__)

#define OP_frame 0x73	/* DW_OP_breg3: rbx */

	.globl lull_lib_thunks
	.type lull_lib_thunks, @function
	.balign 16
lull_lib_thunks:
	.cfi_startproc
	.set i, 0
	.rept N_THUNKS
	endbr64
	movl $i, %r11d
	.byte 0xe9		/* jmp, always with four bytes of distance */
	.long lull_lib_entry - . - 4
	nop
	.set i, i + 1
	.endr
	.cfi_endproc
	.size lull_lib_thunks, . - lull_lib_thunks

	/* Undo what lull_lib_entry pushed; the function's address comes into r11. */
	.macro RESTORE
	popq %r11
	movq (%r11), %r11
	addq $32, %rsp
	.cfi_def_cfa_offset 72
	popq %rdi
	popq %rsi
	popq %rdx
	popq %rcx
	popq %r8
	popq %r9
	popq %r10
	popq %rax
	.cfi_def_cfa_offset 8
	.endm

	.type lull_lib_entry, @function
lull_lib_entry:
	.cfi_startproc
	pushq %r10
	.cfi_def_cfa_offset 16
	leaq lull_lib_hooks(%rip), %r10
	shlq $HOOK_SHIFT, %r11
	addq %r10, %r11
	movq lull_agent(%rip), %r10
	cmpl $0, RECORD(%r10)
	popq %r10
	.cfi_def_cfa_offset 8
	jne 1f
	jmp *(%r11)
1:	pushq %rax
	pushq %r10
	pushq %r9
	pushq %r8
	pushq %rcx
	pushq %rdx
	pushq %rsi
	pushq %rdi
	.cfi_def_cfa_offset 72
	/* struct lull_lib_entry; rsp is a multiple of 16 then */
	leaq (%rsp), %rax
	pushq %rax
	pushq %rbx
	pushq 80(%rsp)
	leaq 96(%rsp), %rax
	pushq %rax
	pushq %r11
	.cfi_def_cfa_offset 112
	movq %rsp, %rdi
	call lull_lib_enter
	testq %rax, %rax
	jz 2f
	.cfi_remember_state
	movq %rax, %rbx
	.cfi_escape REG_expression, 3, 2, OP_frame, 8
	leaq lull_lib_return(%rip), %rcx
	movq %rcx, 104(%rsp)
	.cfi_escape REG_expression, 16, 2, OP_frame, 0
	RESTORE
	jmp *%r11
	.cfi_restore_state
2:	RESTORE
	jmp *%r11
	.cfi_endproc
	.size lull_lib_entry, . - lull_lib_entry

	.type lull_lib_return, @function
	.cfi_startproc
	.cfi_escape CFA_expression, 5, OP_frame, FRAME_SP, OP_deref, OP_lit1, OP_minus
	.cfi_escape REG_expression, 16, 2, OP_frame, 0
	.cfi_escape REG_expression, 3, 2, OP_frame, 8
	.cfi_escape REG_expression, 7, 2, OP_frame, FRAME_SP
	nop			/* a return address is looked up by the byte before it */
lull_lib_return:
	pushq (%rbx)
	pushq %rax
	pushq %rdx
	pushq %rcx
	pushq %r8
	pushq 8(%rbx)
	movq %rbx, %rdi
	movq %rax, %rsi
	call lull_lib_exit
	popq %rbx
	popq %r8
	popq %rcx
	popq %rdx
	popq %rax
	.cfi_def_cfa 7, 8
	.cfi_restore 3
	.cfi_offset 16, -8
	.cfi_restore 7
	ret
	.cfi_endproc
	.size lull_lib_return, . - lull_lib_return

	/*
	 * All of x87, SSE, AVX and AVX-512 where the machine can save it, else x87 and SSE. The area is 2,688
	 * bytes at most in the standard layout.
	 */
	.globl lull_lib_keep_vectors
	.type lull_lib_keep_vectors, @function
lull_lib_keep_vectors:
	.cfi_startproc
	pushq %rbp
	.cfi_def_cfa_offset 16
	.cfi_offset 6, -16
	movq %rsp, %rbp
	.cfi_def_cfa_register 6
	subq $2816, %rsp
	andq $-64, %rsp
	movq %rdi, %r10
	movq %rsi, %rdi
	movq %rdx, %rsi
	cmpl $0, lull_lib_has_xsave(%rip)
	je 1f
	xorl %eax, %eax
	movq %rax, 512(%rsp)
	movq %rax, 520(%rsp)
	movq %rax, 528(%rsp)
	movq %rax, 536(%rsp)
	movq %rax, 544(%rsp)
	movq %rax, 552(%rsp)
	movq %rax, 560(%rsp)
	movq %rax, 568(%rsp)
	xorl %edx, %edx
	movl $0xe7, %eax
	xsave64 (%rsp)
	call *%r10
	movq %rax, %r10
	xorl %edx, %edx
	movl $0xe7, %eax
	xrstor64 (%rsp)
	jmp 2f
1:	fxsave64 (%rsp)
	call *%r10
	movq %rax, %r10
	fxrstor64 (%rsp)
2:	movq %r10, %rax
	leave
	.cfi_def_cfa 7, 8
	ret
	.cfi_endproc
	.size lull_lib_keep_vectors, . - lull_lib_keep_vectors

	.hidden lull_lib_has_xsave

#endif

	.section .note.GNU-stack, "", %progbits
