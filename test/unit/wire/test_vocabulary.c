/* What kernels and CUDA calls are, by the names that libraries really give them. */
#include "unit/unit.h"

#include "wire/vocabulary.h"

struct named {
	enum lull_kernel_class class;
	const char *name;
};

/* Names of recordings and of sources of the libraries, and names that look like another class. */
static const struct named known[] = {
	{ LULL_KERNEL_COLLECTIVE,
	  "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)" },
	{ LULL_KERNEL_COLLECTIVE, "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)" },
	{ LULL_KERNEL_COLLECTIVE,
	  "void ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)" },
	{ LULL_KERNEL_COLLECTIVE, "all_reduce_x" },
	{ LULL_KERNEL_COLLECTIVE,
	  "void vllm::cross_device_reduce_1stage<__half, 4>(vllm::RankData*, vllm::RankSignals, "
	  "vllm::Signal*, __half*, int, int)" },
	{ LULL_KERNEL_COLLECTIVE,
	  "void "
	  "flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<("
	  "flashinfer::trtllm_allreduce_fusion::AllReduceFusionPattern)1, __nv_bfloat16, 4>(int)" },
	{ LULL_KERNEL_COLLECTIVE, "void tensorrt_llm::kernels::oneShotAllReduceKernel<__half, 2, "
				  "true>(tensorrt_llm::kernels::AllReduceParams)" },
	{ LULL_KERNEL_COLLECTIVE, "userbuffers_fp16_sum_inplace_gpu_rr_rs" },
	{ LULL_KERNEL_COLLECTIVE, "nvshmemi_reduce_kernel" },
	{ LULL_KERNEL_COLLECTIVE, "void nvshmem::put_block<float>(float*)" },
	{ LULL_KERNEL_COLLECTIVE, "void mscclpp::allgather_kernel<4>(char*)" },
	{ LULL_KERNEL_COLLECTIVE, "triton_distributed_all_gather_kernel" },
	{ LULL_KERNEL_COLLECTIVE, "reduce_scatter_multimem" },
	{ LULL_KERNEL_COLLECTIVE, "void moe::moeAllToAllKernel<128>(int)" },
	{ LULL_KERNEL_REDUCTION, "small_reduce_kernel" },
	{ LULL_KERNEL_REDUCTION, "void at::native::reduce_kernel<512, 1, "
				 "at::native::ReduceOp<bool, at::native::func_wrapper_t<bool, "
				 "at::native::and_kernel_cuda(at::TensorIterator&)::{lambda()#1}> "
				 "> >(at::native::ReduceOp<bool>)" },
	{ LULL_KERNEL_REDUCTION,
	  "void at::native::reduce_kernel<128, 4, at::native::ReduceOp<float, "
	  "at::native::MeanOps<float, float, float, float>, unsigned int, float, 4, 4> "
	  ">(at::native::ReduceOp<float>)" },
	{ LULL_KERNEL_REDUCTION,
	  "void cub::DeviceReduceKernel<cub::Policy, float*, int, cub::Sum, float>(float*, int)" },
	{ LULL_KERNEL_REDUCTION, "warpAllReduceSum_kernel" },
	{ LULL_KERNEL_REDUCTION, "triton_red_fused_all_reduce_sum_4" },
	{ LULL_KERNEL_REDUCTION, "triton_per_fused_mean_pow_rsqrt_1" },
	{ LULL_KERNEL_REDUCTION, "input_reduce_fusion" },
	{ LULL_KERNEL_REDUCTION,
	  "void at::native::(anonymous namespace)::cunn_SoftMaxForward<4, float, float, float, "
	  "at::native::(anonymous namespace)::SoftMaxForwardEpilogue>(float*, float const*, int)" },
	{ LULL_KERNEL_REDUCTION,
	  "void at::native::(anonymous namespace)::layer_norm_grad_input_kernel_vectorized<float, "
	  "float, false>(float const*)" },
	{ LULL_KERNEL_REDUCTION,
	  "void at::native::(anonymous namespace)::GammaBetaBackwardCUDAKernelTemplate<float, "
	  "float, 32u, 32u, 256u, false, true, false>(long)" },
	{ LULL_KERNEL_REDUCTION, "void vllm::rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*)" },
	{ LULL_KERNEL_REDUCTION,
	  "void cublasLt::splitKreduce_kernel<32, 16, int, float, float, float, float, false, "
	  "float, float, float, true, false, false, false>(cublasLt::cublasSplitKParams<float>)" },
	{ LULL_KERNEL_REDUCTION,
	  "void at::native::(anonymous namespace)::nll_loss_forward_reduce_cuda_kernel_2d<float, "
	  "float, long>(float*)" },
	{ LULL_KERNEL_MATMUL, "nvjet_sm90_tst_128x256_64x4_2x1_v_bz_coopA_NTN" },
	{ LULL_KERNEL_MATMUL, "sm80_xmma_gemm_f32f32_f32f32_f32_nn_n_tilesize128x64x8_stage3_"
			      "warpsize2x2x1_ffma_aligna4_alignc4_execute_kernel__5x_cublas" },
	{ LULL_KERNEL_MATMUL, "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_"
			      "warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas" },
	{ LULL_KERNEL_MATMUL, "void "
			      "cutlass::Kernel2<cutlass_80_simt_sgemm_128x256_8x4_nt_align1>("
			      "cutlass_80_simt_sgemm_128x256_8x4_nt_align1::Params)" },
	{ LULL_KERNEL_MATMUL,
	  "void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int, "
	  "int>, cutlass::epilogue::fusion::LinCombEltAct<cutlass::epilogue::thread::GELU> > "
	  ">(int)" },
	{ LULL_KERNEL_MATMUL, "void gemmSN_TN_kernel<float, 128, 16, 2, 4, 4, 4, true, "
			      "cublasGemvTensorStridedBatched<float const> >(int)" },
	{ LULL_KERNEL_MATMUL, "volta_sgemm_128x64_nn" },
	{ LULL_KERNEL_MATMUL, "triton_tem_fused_addmm_relu_7" },
	{ LULL_KERNEL_MATMUL, "matmul_kernel" },
	{ LULL_KERNEL_MATMUL, "gemm_fusion_dot_12" },
	{ LULL_KERNEL_MATMUL, "Cijk_Ailk_Bljk_HHS_BH_MT128x128x16_SE" },
	{ LULL_KERNEL_ATTENTION,
	  "void pytorch_flash::flash_fwd_kernel<pytorch_flash::Flash_fwd_kernel_traits<64, 128, "
	  "128, 4, false, false, cutlass::bfloat16_t> >(pytorch_flash::Flash_fwd_params)" },
	{ LULL_KERNEL_ATTENTION, "fmha_cutlassB_f32_aligned_64x64_k64_sm80(PyTorchMemEffAttention::"
				 "AttentionBackwardKernel<cutlass::arch::Sm80, float>::Params)" },
	{ LULL_KERNEL_ATTENTION,
	  "void cutlass::device_kernel<flash::FlashAttnFwdSm90<flash::CollectiveMainloopFwdSm90<2> "
	  "> >(int)" },
	{ LULL_KERNEL_ATTENTION,
	  "void vllm::paged_attention_v2_kernel<__half, __half, 128, 16, 128, 512>(float*)" },
	{ LULL_KERNEL_ATTENTION, "triton_tem_fused_flex_attention_0" },
	{ LULL_KERNEL_ATTENTION, "_fwd_attention_kernel" },
	{ LULL_KERNEL_CONVOLUTION, "sm90_xmma_wgrad_implicit_gemm_indexed_bf16bf16_bf16f32_f32_"
				   "nhwckrsc_nhwc_tilesize128x128x64" },
	{ LULL_KERNEL_CONVOLUTION, "void implicit_convolve_sgemm<float, float, 1024, 5, 5, 3, 3, "
				   "3, 1, false, false, true>(int)" },
	{ LULL_KERNEL_CONVOLUTION,
	  "void at::native::(anonymous namespace)::conv_depthwise2d_forward_kernel<3, float, "
	  "int>(int)" },
	{ LULL_KERNEL_CONVOLUTION,
	  "void cudnn::winograd_nonfused::winogradForwardData4x4<float, float>(int)" },
	{ LULL_KERNEL_OPTIMIZER,
	  "void at::native::(anonymous "
	  "namespace)::multi_tensor_apply_kernel<at::native::(anonymous "
	  "namespace)::TensorListMetadata<2>, at::native::(anonymous "
	  "namespace)::BinaryOpListAlphaFunctor<float, 2, 2, 0>, std::plus<float>, float>(int)" },
	{ LULL_KERNEL_OPTIMIZER, "adamw_kernel" },
	{ LULL_KERNEL_ELEMENTWISE,
	  "void at::native::vectorized_elementwise_kernel<4, "
	  "at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&, "
	  "at::native::GeluType)::{lambda()#2}, std::array<char*, 2ul> >(int)" },
	{ LULL_KERNEL_ELEMENTWISE,
	  "void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>, "
	  "std::array<char*, 1ul> >(int)" },
	{ LULL_KERNEL_ELEMENTWISE, "void at::native::elementwise_kernel<128, 2, "
				   "at::native::gpu_kernel_impl_nocast<at::native::direct_copy_"
				   "kernel_cuda(at::TensorIteratorBase&)> >(int)" },
	{ LULL_KERNEL_ELEMENTWISE,
	  "void at::native::(anonymous "
	  "namespace)::distribution_elementwise_grid_stride_kernel<float, 4, "
	  "at::native::templates::cuda::normal_and_transform<float> >(long)" },
	{ LULL_KERNEL_ELEMENTWISE, "triton_poi_fused_all_gather_into_tensor_add_2" },
	{ LULL_KERNEL_ELEMENTWISE, "triton_poi_fused_add_mul_tanh_0" },
	{ LULL_KERNEL_ELEMENTWISE, "void vllm::act_and_mul_kernel<c10::BFloat16>(c10::BFloat16*)" },
	{ LULL_KERNEL_ELEMENTWISE, "convertTensor_kernel" },
	{ LULL_KERNEL_ELEMENTWISE, "cupy_add__float32_float32_float32" },
	{ LULL_KERNEL_ELEMENTWISE, "cupy_power__float64_float64_float64" },
	{ LULL_KERNEL_REDUCTION, "cupy_sum__float32_float32" },
	{ LULL_KERNEL_REDUCTION, "cupy_amax__float64_float64" },
	{ LULL_KERNEL_COPY, "cupy_copy__float32_float32" },
	{ LULL_KERNEL_COPY, "cupy_take__float32_int64_int64_int64_int64_float32" },
	{ LULL_KERNEL_COPY,
	  "void at::native::(anonymous namespace)::CatArrayBatchedCopy<at::native::(anonymous "
	  "namespace)::OpaqueType<4u>, unsigned int, 4, 64, 64>(int)" },
	{ LULL_KERNEL_COPY, "void at::native::vectorized_gather_kernel<16, long>(char*, char*, "
			    "long*, int, long, long, long, long, bool)" },
	{ LULL_KERNEL_COPY, "void at::native::(anonymous namespace)::indexSelectLargeIndex<float, "
			    "long, unsigned int, 2, 2, -2, true>(int)" },
	{ LULL_KERNEL_COPY,
	  "void at::native::(anonymous namespace)::embedding_backward_feature_kernel<float, float, "
	  "long>(long const*)" },
	{ LULL_KERNEL_COPY, "stream_copy(float4 const*, float4*, unsigned long)" },
	{ LULL_KERNEL_COPY, "memcpy_kernel" },
	{ LULL_KERNEL_OTHER, "my_kernel" },
	{ LULL_KERNEL_OTHER, "void at_fault::spin(long)" },
	{ LULL_KERNEL_OTHER, "" },
};

/*
 * Written down before the words of kernel_words.def were; the words are not made to fit these.
 */
static const struct named unseen[] = {
	{ LULL_KERNEL_COLLECTIVE,
	  "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)" },
	{ LULL_KERNEL_COLLECTIVE, "ncclKernel_AllReduce_RING_LL_Sum_float(ncclWorkElem)" },
	{ LULL_KERNEL_COLLECTIVE,
	  "void vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>(vllm::RankData*, "
	  "vllm::RankSignals, vllm::Signal*, __nv_bfloat16*, int, int)" },
	{ LULL_KERNEL_COLLECTIVE,
	  "void tensorrt_llm::kernels::twoShotAllReduceKernel<__nv_bfloat16, 8, true, "
	  "false>(tensorrt_llm::kernels::AllReduceParams)" },
	{ LULL_KERNEL_COLLECTIVE,
	  "void c10d::symmetric_memory::multimem_one_shot_all_reduce_kernel<c10::BFloat16, "
	  "16>(c10::BFloat16*, unsigned long, unsigned int**, unsigned long, unsigned long)" },
	{ LULL_KERNEL_COLLECTIVE, "userbuffers_fp16_sum_inplace_gpu_mc" },
	{ LULL_KERNEL_COLLECTIVE, "mscclKernel_Sum_half_Simple_false" },
	{ LULL_KERNEL_COLLECTIVE, "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)" },
	{ LULL_KERNEL_REDUCTION,
	  "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
	  "at::native::func_wrapper_t<float, at::native::sum_functor<float, float, "
	  "float>::operator()(at::TensorIterator&)::{lambda(float, float)#1}>, unsigned int, "
	  "float, 4, 4> >(at::native::ReduceOp<float>)" },
	{ LULL_KERNEL_REDUCTION,
	  "void "
	  "cub::CUB_200302_900_NS::DeviceReduceSingleTileKernel<cub::CUB_200302_900_NS::"
	  "DeviceReducePolicy<int, int, cub::Sum>::Policy600, int*, int*, int, cub::Sum, int, "
	  "int>(int*, int*, int, cub::Sum, int)" },
	{ LULL_KERNEL_OPTIMIZER,
	  "void at::native::(anonymous "
	  "namespace)::multi_tensor_apply_kernel<at::native::(anonymous "
	  "namespace)::FusedOptimizerTensorListMetadata<4>, at::native::(anonymous "
	  "namespace)::FusedAdamMathFunctor<float, 4, (at::native::ADAM_MODE)1, false>, float "
	  "const*, double>(...)" },
	{ LULL_KERNEL_MATMUL, "ampere_bf16_s16816gemm_bf16_128x256_ldg8_f2f_stages_64x3_tn" },
	{ LULL_KERNEL_CONVOLUTION,
	  "sm80_xmma_fprop_implicit_gemm_tf32f32_tf32f32_f32_nhwckrsc_nchw_tilesize128x128x16_"
	  "stage4_warpsize2x2x1_g1_tensor16x8x8_kernel" },
	{ LULL_KERNEL_ATTENTION,
	  "void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<Flash_bwd_kernel_traits<64, "
	  "128, 128, 8, 4, 4, 4, false, false, cutlass::bfloat16_t> >(flash::Flash_bwd_params)" },
	{ LULL_KERNEL_ATTENTION,
	  "fmha_cutlassF_bf16_aligned_64x128_rf_sm80(PyTorchMemEffAttention::AttentionKernel<"
	  "cutlass::bfloat16_t, cutlass::arch::Sm80, true, 64, 128, 128, true, true>::Params)" },
	{ LULL_KERNEL_ATTENTION, "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_"
				 "3_64x128x64_4x1x1_kernel0_0" },
	{ LULL_KERNEL_ATTENTION, "_attn_fwd" },
	{ LULL_KERNEL_ELEMENTWISE, "triton_poi_fused_add_mul_silu_3" },
	{ LULL_KERNEL_REDUCTION, "triton_red_fused__softmax_add_2" },
	{ LULL_KERNEL_REDUCTION, "triton_per_fused_native_layer_norm_0" },
	{ LULL_KERNEL_MATMUL, "triton_tem_fused_mm_5" },
	{ LULL_KERNEL_COPY, "void at::native::(anonymous "
			    "namespace)::CatArrayBatchedCopy_aligned16_contig<at::native::("
			    "anonymous namespace)::OpaqueType<2u>, unsigned int, 2, 128, "
			    "1>(at::native::(anonymous namespace)::OpaqueType<2u>*)" },
	{ LULL_KERNEL_COPY, "void at::native::index_elementwise_kernel<128, 4, "
			    "at::native::gpu_index_kernel<at::native::index_kernel_impl<at::native:"
			    ":OpaqueType<2> >(at::TensorIteratorBase&)::{lambda(char*, char "
			    "const*, long)#1}>(at::TensorIteratorBase&)>(long)" },
	{ LULL_KERNEL_REDUCTION,
	  "void (anonymous namespace)::softmax_warp_forward<c10::BFloat16, c10::BFloat16, float, "
	  "10, false, false>(c10::BFloat16*, c10::BFloat16 const*, int, int, int)" },
	{ LULL_KERNEL_REDUCTION,
	  "void at::native::(anonymous namespace)::vectorized_layer_norm_kernel<float, float>(int, "
	  "float, float const*, float const*, float const*, float*, float*, float*)" },
	{ LULL_KERNEL_MATMUL,
	  "void "
	  "cutlass::Kernel2<cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align8>("
	  "cutlass_80_wmma_tensorop_bf16_s161616gemm_bf16_16x16_128x2_tn_align8::Params)" },
	{ LULL_KERNEL_MATMUL, "void gemv2T_kernel_val<int, int, __nv_bfloat16, __nv_bfloat16, "
			      "__nv_bfloat16, float, 128, 16, 4, 4, false, false, "
			      "cublasGemvParamsEx<int>>(cublasGemvParamsEx<int>, float, float)" },
	{ LULL_KERNEL_REDUCTION,
	  "void splitKreduce_kernel<32, 16, int, float, __nv_bfloat16, float, __nv_bfloat16, true, "
	  "false, false>(cublasSplitKParams<float>, float const*)" },
	{ LULL_KERNEL_ELEMENTWISE, "void at::native::elementwise_kernel_with_index<int, "
				   "at::native::arange_cuda_out(c10::Scalar "
				   "const&)::{lambda(long)#1}>(int, at::native::arange_cuda_out)" },
	{ LULL_KERNEL_REDUCTION, "void cudnn::bn_fw_tr_1C11_kernel_NCHW<float, float, int, 512, "
				 "true, 1, true>(cudnnTensorStruct, float const*)" },
	{ LULL_KERNEL_MATMUL, "fused_moe_kernel" },
	{ LULL_KERNEL_COLLECTIVE,
	  "void deep_ep::intranode::dispatch<8, 768, 8192>(int4*, float*, int*, long*, float*)" },
};

/* How many of `unseen` are told right. cudnn::bn_ is not: rules for it would be made to fit. */
#define UNSEEN_RIGHT 31

static bool is_right(const struct named *n)
{
	enum lull_kernel_class is = lull_kernel_class_of(n->name);

	if (is != n->class)
		print_message("%s: %s, not %s\n", n->name, lull_kernel_class_name(is),
			      lull_kernel_class_name(n->class));
	return is == n->class;
}

static void kernels_are_told_by_their_names(void **state)
{
	size_t n_wrong = 0;

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(known); i++)
		n_wrong += !is_right(&known[i]);
	assert_int_equal(n_wrong, 0);
}

static void names_that_nobody_had_in_mind_are_told_too(void **state)
{
	size_t n_right = 0;

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(unseen); i++)
		n_right += is_right(&unseen[i]);
	assert_in_range(n_right, UNSEEN_RIGHT, LULL_COUNT_OF(unseen));
}

/* This mistake makes compute time of exchange, or the other way round: it must not happen. */
static void a_local_kernel_is_no_collective_nor_the_other_way_round(void **state)
{
	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(unseen); i++)
		assert_int_equal(lull_kernel_class_of(unseen[i].name) == LULL_KERNEL_COLLECTIVE,
				 unseen[i].class == LULL_KERNEL_COLLECTIVE);
	for (size_t i = 0; i < LULL_COUNT_OF(known); i++)
		assert_int_equal(lull_kernel_class_of(known[i].name) == LULL_KERNEL_COLLECTIVE,
				 known[i].class == LULL_KERNEL_COLLECTIVE);
}

static void only_nccl_s_own_kernels_are_of_nccl(void **state)
{
	(void)state;
	assert_true(lull_kernel_is_nccl("ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)"));
	assert_true(lull_kernel_is_nccl("void ncclKernel_AllReduce_RING_LL_Sum_float(int)"));
	assert_false(lull_kernel_is_nccl("all_reduce_x"));
	assert_false(lull_kernel_is_nccl("void mine::f<ncclComm>(ncclComm*)"));
}

static void odd_names_are_other_kernels(void **state)
{
	static const char *const odd[] = { "",	   "_",	   "<",	  "(",
					   ">",	   "::",   " ",	  "a<b",
					   "void", "f<<(", "(((", "(anonymous namespace)",
					   "-><" };

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(odd); i++)
		assert_int_equal(lull_kernel_class_of(odd[i]), LULL_KERNEL_OTHER);
}

static void calls_are_told_by_their_names(void **state)
{
	static const struct {
		enum lull_call_kind kind;
		const char *name;
	} calls[] = {
		{ LULL_KIND_OF_SYNC, "cudaEventSynchronize" },
		{ LULL_KIND_OF_SYNC, "cuCtxSynchronize" },
		{ LULL_KIND_OF_EVENT, "cudaEventRecord" },
		{ LULL_KIND_OF_QUERY, "cudaEventQuery" },
		{ LULL_KIND_OF_QUERY, "cuStreamQuery" },
		{ LULL_KIND_OF_EVENT, "cudaStreamWaitEvent" },
		{ LULL_KIND_OF_COPY, "cuMemcpyHtoDAsync_v2" },
		{ LULL_KIND_OF_COPY, "cudaMemcpyAsync" },
		{ LULL_KIND_OF_LAUNCH, "cudaLaunchKernelExC" },
		{ LULL_KIND_OF_LAUNCH, "cudaGraphLaunch" },
		{ LULL_KIND_OF_LAUNCH, "cudaMemsetAsync" },
		{ LULL_KIND_OF_ALLOC, "cudaMallocAsync" },
		{ LULL_KIND_OF_ALLOC, "cudaFreeAsync" },
		{ LULL_KIND_OF_ALLOC, "cuMemHostAlloc" },
		{ LULL_KIND_OF_MODULE, "cuModuleLoadData" },
		{ LULL_KIND_OF_OTHER, "cudaGetDevice" },
		{ LULL_KIND_OF_OTHER, "cudaStreamIsCapturing" },
	};

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(calls); i++)
		assert_int_equal(lull_call_kind_of(calls[i].name), calls[i].kind);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_are_told_by_their_names),
		cmocka_unit_test(names_that_nobody_had_in_mind_are_told_too),
		cmocka_unit_test(a_local_kernel_is_no_collective_nor_the_other_way_round),
		cmocka_unit_test(only_nccl_s_own_kernels_are_of_nccl),
		cmocka_unit_test(odd_names_are_other_kernels),
		cmocka_unit_test(calls_are_told_by_their_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
