/*
 * train_cuda_ptx - the kernels of train_cuda.c, for any GPU from compute capability 5.0 on.
 *
 * One thread computes one number. Products and sums are rounded one by one, never fused, so that
 * every device gives the same bits.
 */
#ifndef TRAIN_CUDA_PTX_H
#define TRAIN_CUDA_PTX_H

/* The number of this thread in a flat grid is %r4; those beyond n are done. */
#define FLAT_INDEX                          \
	"	.reg .pred %p<3>;\n"              \
	"	.reg .b32 %r<6>;\n"               \
	"	.reg .f32 %f<6>;\n"               \
	"	.reg .b64 %rd<4>;\n"              \
	"	mov.u32 %r1, %ctaid.x;\n"         \
	"	mov.u32 %r2, %ntid.x;\n"          \
	"	mov.u32 %r3, %tid.x;\n"           \
	"	mad.lo.u32 %r4, %r1, %r2, %r3;\n" \
	"	mul.wide.u32 %rd3, %r4, 4;\n"     \
	"	ld.param.u32 %r5, [n];\n"         \
	"	setp.ge.u32 %p1, %r4, %r5;\n"     \
	"	@%p1 bra done;\n"

/* The thread's number of the array that a parameter points to. */
#define LOAD(address, value, param)                             \
	"	ld.param.u64 " address ", [" param "];\n"       \
	"	cvta.to.global.u64 " address ", " address ";\n" \
	"	add.u64 " address ", " address ", %rd3;\n"      \
	"	ld.global.f32 " value ", [" address "];\n"

#define DONE      \
	"done:\n" \
	"	ret;\n" \
	"}\n"

static const char ptx[] =
	".version 6.0\n"
	".target sm_50\n"
	".address_size 64\n"
	"\n"
	/* c[m][n] = a[m][k] * b[k][n]; distances of rows and columns say what is transposed */
	".visible .entry matmul(.param .u64 c, .param .u64 a, .param .u64 b,\n"
	"	.param .u32 m, .param .u32 n, .param .u32 k, .param .u32 a_row,\n"
	"	.param .u32 a_col, .param .u32 b_row, .param .u32 b_col)\n"
	"{\n"
	"	.reg .pred %p<4>;\n"
	"	.reg .b32 %r<24>;\n"
	"	.reg .f32 %f<5>;\n"
	"	.reg .b64 %rd<16>;\n"
	"	mov.u32 %r1, %ctaid.x;\n"
	"	mov.u32 %r2, %ntid.x;\n"
	"	mov.u32 %r3, %tid.x;\n"
	"	mad.lo.u32 %r4, %r1, %r2, %r3;\n" /* column */
	"	mov.u32 %r5, %ctaid.y;\n"
	"	mov.u32 %r6, %ntid.y;\n"
	"	mov.u32 %r7, %tid.y;\n"
	"	mad.lo.u32 %r8, %r5, %r6, %r7;\n" /* row */
	"	ld.param.u32 %r9, [m];\n"
	"	ld.param.u32 %r10, [n];\n"
	"	ld.param.u32 %r11, [k];\n"
	"	setp.ge.u32 %p1, %r4, %r10;\n"
	"	@%p1 bra done;\n"
	"	setp.ge.u32 %p2, %r8, %r9;\n"
	"	@%p2 bra done;\n"
	"	ld.param.u64 %rd1, [c];\n"
	"	ld.param.u64 %rd2, [a];\n"
	"	ld.param.u64 %rd3, [b];\n"
	"	cvta.to.global.u64 %rd1, %rd1;\n"
	"	cvta.to.global.u64 %rd2, %rd2;\n"
	"	cvta.to.global.u64 %rd3, %rd3;\n"
	"	ld.param.u32 %r12, [a_row];\n"
	"	ld.param.u32 %r13, [a_col];\n"
	"	ld.param.u32 %r14, [b_row];\n"
	"	ld.param.u32 %r15, [b_col];\n"
	"	mul.lo.u32 %r16, %r8, %r12;\n"
	"	mul.wide.u32 %rd4, %r16, 4;\n"
	"	add.u64 %rd2, %rd2, %rd4;\n" /* a's row */
	"	mul.lo.u32 %r17, %r4, %r15;\n"
	"	mul.wide.u32 %rd5, %r17, 4;\n"
	"	add.u64 %rd3, %rd3, %rd5;\n" /* b's column */
	"	mul.wide.u32 %rd6, %r13, 4;\n"
	"	mul.wide.u32 %rd7, %r14, 4;\n"
	"	mov.f32 %f1, 0f00000000;\n"
	"next:\n"
	"	ld.global.f32 %f2, [%rd2];\n"
	"	ld.global.f32 %f3, [%rd3];\n"
	"	mul.rn.f32 %f4, %f2, %f3;\n"
	"	add.rn.f32 %f1, %f1, %f4;\n"
	"	add.u64 %rd2, %rd2, %rd6;\n"
	"	add.u64 %rd3, %rd3, %rd7;\n"
	"	sub.u32 %r11, %r11, 1;\n"
	"	setp.ne.u32 %p3, %r11, 0;\n"
	"	@%p3 bra next;\n"
	"	mad.lo.u32 %r18, %r8, %r10, %r4;\n"
	"	mul.wide.u32 %rd8, %r18, 4;\n"
	"	add.u64 %rd1, %rd1, %rd8;\n"
	"	st.global.f32 [%rd1], %f1;\n" DONE

	/* x = max(x, 0) */
	".visible .entry relu(.param .u64 x, .param .u32 n)\n"
	"{\n" FLAT_INDEX LOAD(
		"%rd1", "%f1",
		"x") "	max.f32 %f2, %f1, 0f00000000;\n"
		     "	st.global.f32 [%rd1], %f2;\n" DONE

		     /* g = 0 where x is 0 */
		     ".visible .entry relu_backward(.param .u64 g, .param .u64 x, .param .u32 n)\n"
		     "{\n" FLAT_INDEX LOAD("%rd1", "%f1", "g")
			     LOAD("%rd2", "%f2",
				  "x") "	setp.gt.f32 %p2, %f2, 0f00000000;\n"
				       "	selp.f32 %f3, %f1, 0f00000000, %p2;\n"
				       "	st.global.f32 [%rd1], %f3;\n" DONE

				       /* y += s * x */
				       ".visible .entry axpy(.param .u64 y, .param .u64 x, .param "
				       ".f32 s, .param .u32 n)\n"
				       "{\n" FLAT_INDEX LOAD("%rd1", "%f1", "y")
					       LOAD("%rd2", "%f2",
						    "x") "	ld.param.f32 %f3, [s];\n"
							 "	mul.rn.f32 %f4, %f3, %f2;\n"
							 "	add.rn.f32 %f5, %f1, %f4;\n"
							 "	st.global.f32 [%rd1], %f5;\n" DONE;

#endif
