#include "unit/unit.h"

#include "text/kernel_name.h"
#include "text/term.h"

#define DOT   " \xc2\xb7 "
#define TIMES "\xc3\x97"

static void expect(const char *name, const char *result)
{
	struct lull_str to = LULL_STR_INIT;

	lull_kernel_short(&to, name);
	assert_string_equal(lull_str_text(&to), result);
	lull_str_release(&to);
}

static void loops_of_pytorch_are_named_after_their_functor(void **state)
{
	(void)state;
	expect("void at::native::vectorized_elementwise_kernel<4, "
	       "at::native::CUDAFunctor_add<float>, "
	       "std::array<char*, 3ul> >(int, at::native::CUDAFunctor_add<float>, "
	       "std::array<char*, 3ul>)",
	       "elementwise" DOT "add");
	expect("void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous "
	       "namespace)::lerp_scalar_kernel(at::TensorIteratorBase&, c10::Scalar "
	       "const&)::{lambda()#2}::operator()() const::{lambda()#2}::operator()() "
	       "const::{lambda(float, float)#1}, std::array<char*, 3ul> >(int)",
	       "elementwise" DOT "lerp");
	expect("void at::native::vectorized_elementwise_kernel<8, at::native::"
	       "GeluBackwardCUDAKernelImpl(at::TensorIteratorBase&, at::native::GeluType)::"
	       "{lambda()#2}::operator()() const::{lambda(float)#1}, std::array<char*, 3ul> >(int)",
	       "elementwise" DOT "gelu backward");
	expect("void at::native::vectorized_elementwise_kernel<4, at::native::BinaryFunctor<float, "
	       "float, float, at::native::binary_internal::MulFunctor<float> >, std::array<char*, "
	       "3ul> >(int)",
	       "elementwise" DOT "mul");
	expect("void at::native::elementwise_kernel<128, 2, at::native::gpu_kernel_impl_nocast<at::"
	       "native::direct_copy_kernel_cuda(at::TensorIteratorBase&)::{lambda()#3}::operator()("
	       ") "
	       "const::{lambda(float)#1}>(at::TensorIteratorBase&)::{lambda(int)#1}>(int)",
	       "elementwise" DOT "copy");
	expect("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::"
	       "func_wrapper_t<float, at::native::sum_functor<float, float, float>::operator()(at::"
	       "TensorIterator&)::{lambda(float, float)#1}>, unsigned int, float, 4, 4> >(int)",
	       "reduce" DOT "sum");
	expect("void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::"
	       "(anonymous namespace)::TensorListMetadata<2>, at::native::(anonymous namespace)::"
	       "TernaryOpScalarFunctor<float, 2, 2, 0>, at::native::LerpFunctor<float>, "
	       "float>(int)",
	       "foreach" DOT "lerp");
}

static void products_say_their_tile_and_type(void **state)
{
	(void)state;
	expect("nvjet_sm90_tst_96x128_64x7_2x1_v_bz_relubias_TNN", "gemm 96" TIMES "128 bf16");
	expect("nvjet_sm90_hsh_8x64_64x16_4x1_v_bz_bias_TNN", "gemm 8" TIMES "64 f16");
	expect("void cutlass::Kernel2<cutlass_80_simt_sgemm_128x256_8x4_nt_align1>("
	       "cutlass_80_simt_sgemm_128x256_8x4_nt_align1::Params)",
	       "gemm 128" TIMES "256 f32");
	expect("void cutlass::Kernel2<cutlass_80_tensorop_s1688gemm_128x128_16x5_nt_align4>(int)",
	       "gemm 128" TIMES "128 tf32");
	expect("void "
	       "cutlass::Kernel2<cutlass_75_tensorop_bf16_s1688gemm_bf16_64x64_nn_align1>(int)",
	       "gemm 64" TIMES "64 bf16");
	expect("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize128x64x8_stage3_warpsize2x2x1_ffma_"
	       "aligna4_alignc4_execute_kernel__5x_cublas",
	       "gemm 128" TIMES "64 f32");
	expect("sm90_xmma_gemm_f32f32_tf32f32_f32_tn_n_tilesize64x64x32_warpgroupsize1x1x1_execute_"
	       "segment_k_off_kernel__5x_cublas",
	       "gemm 64" TIMES "64 tf32");
	expect("ampere_sgemm_128x64_tn", "gemm 128" TIMES "64 f32");
	expect("ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_nt",
	       "gemm 128" TIMES "64 bf16");
}

static void convolutions_and_attention_say_which_way(void **state)
{
	(void)state;
	expect("sm90_xmma_fprop_implicit_gemm_bf16bf16_bf16f32_f32_nhwckrsc_nhwc_"
	       "tilesize128x256x64_"
	       "warpgroupsize2x1x1_g1_execute_segment_k_off_kernel__5x_cudnn",
	       "conv fprop 128" TIMES "256 bf16");
	expect("void "
	       "cutlass__5x_cudnn::Kernel<cutlass_tensorop_s1688dgrad_optimized_tf32_256x64_16x4_"
	       "nhwc_unity_stride_align4>(int)",
	       "conv dgrad 256" TIMES "64 tf32");
	expect("fmha_cutlassB_f32_aligned_64x64_k64_sm80(PyTorchMemEffAttention::"
	       "AttentionBackwardKernel<cutlass::arch::Sm80>::Params)",
	       "attention backward 64" TIMES "64 f32");
	expect("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_"
	       "cga1x1x1_kernel0_0",
	       "attention forward 64" TIMES "128 f16");
	expect("_ZN17cutlass__5x_cudnn6KernelINS_4conv6kernel23ImplicitGemmConvolutionINS1_"
	       "11threadblock22ImplicitGemmMultistageINS_4gemm9GemmShapeILi64ELi128ELi32EEENS4_"
	       "52Conv2dWgradOutputGradientTileAccessIteratorOptimizedINS_10bfloat16_tEEEEEvNT_"
	       "6ParamsE",
	       "conv wgrad 64" TIMES "128 bf16");
}

static void others_of_libraries_are_words(void **state)
{
	(void)state;
	expect("void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float, "
	       "false>(int)",
	       "layer_norm");
	expect("void at::native::(anonymous "
	       "namespace)::layer_norm_grad_input_kernel_vectorized<float, "
	       "float, false>(float const*)",
	       "layer_norm backward");
	expect("void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, "
	       "float, "
	       "at::native::(anonymous namespace)::LogSoftMaxForwardEpilogue>(float*)",
	       "softmax forward");
	expect("void at::native::(anonymous "
	       "namespace)::nll_loss_backward_reduce_cuda_kernel_2d<float, "
	       "long>(float*)",
	       "nll_loss backward reduce_2d");
	expect("void at_cuda_detail::cub::detail::scan::DeviceScanKernel<int>(int)", "cub scan");
	expect("std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float>(int)",
	       "gemv");
	expect("ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
	       "nccl AllReduce Sum f32");
	expect("triton_poi_fused_add_mul_tanh_0", "triton" DOT "add mul tanh");
}

static void kernels_of_a_program_keep_their_identifier(void **state)
{
	(void)state;
	expect("stream_copy(float4 const*, float4*, unsigned long)", "stream_copy");
	expect("void mine::BlockReduceKernel<float, 4>(float*)", "mine::BlockReduceKernel");
	expect("void (anonymous namespace)::step<1>(int)", "step");
	expect("my_gemm_128x64(float*)", "my_gemm_128x64");
	expect(":forward/void mine::f<1>(int)", ":forward/mine::f");
}

static void what_is_no_kernel_stays(void **state)
{
	(void)state;
	expect("[CUDA memcpy Host-to-Device]", "[CUDA memcpy Host-to-Device]");
	expect("cudaLaunchKernel", "cudaLaunchKernel");
	expect("", "");
	expect("<", "<");
	expect("(", "(");
}

static void no_name_is_longer_than_promised(void **state)
{
	char name[600];
	struct lull_str to = LULL_STR_INIT;

	(void)state;
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	lull_kernel_short(&to, name);
	assert_int_equal(lull_term_columns(to.at), LULL_KERNEL_SHORT_MAX);
	lull_str_release(&to);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loops_of_pytorch_are_named_after_their_functor),
		cmocka_unit_test(products_say_their_tile_and_type),
		cmocka_unit_test(convolutions_and_attention_say_which_way),
		cmocka_unit_test(others_of_libraries_are_words),
		cmocka_unit_test(kernels_of_a_program_keep_their_identifier),
		cmocka_unit_test(what_is_no_kernel_stays),
		cmocka_unit_test(no_name_is_longer_than_promised),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
