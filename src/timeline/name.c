#include "timeline/name.h"

#include <ctype.h>
#include <string.h>

#include "base/types.h"
#include "cause/cause.h"

/* Whether `word` (lower case) is in `text`, whatever the case of that. */
static bool has(const char *text, const char *word)
{
	size_t len = strlen(word);

	for (; *text; text++) {
		size_t i = 0;

		while (i < len && tolower((unsigned char)text[i]) == word[i])
			i++;
		if (i == len)
			return true;
	}
	return false;
}

/*
 * Words in the names of kernels of cuBLAS, cuDNN, CUTLASS, PyTorch, Triton and NCCL; the first that
 * fits wins. What a kernel does is not known otherwise.
 */
static const struct {
	const char *word;
	u8 class;
} kernel_words[] = {
	{ "nccl", LULL_CLASS_COLLECTIVE },
	{ "allreduce", LULL_CLASS_COLLECTIVE },
	{ "allgather", LULL_CLASS_COLLECTIVE },
	{ "reducescatter", LULL_CLASS_COLLECTIVE },
	{ "nvshmem", LULL_CLASS_COLLECTIVE },
	{ "flash", LULL_CLASS_ATTENTION },
	{ "fmha", LULL_CLASS_ATTENTION },
	{ "attention", LULL_CLASS_ATTENTION },
	{ "softmax", LULL_CLASS_REDUCTION },
	{ "conv", LULL_CLASS_CONVOLUTION },
	{ "wgrad", LULL_CLASS_CONVOLUTION },
	{ "dgrad", LULL_CLASS_CONVOLUTION },
	{ "implicit_gemm", LULL_CLASS_CONVOLUTION },
	{ "winograd", LULL_CLASS_CONVOLUTION },
	{ "cudnn", LULL_CLASS_CONVOLUTION },
	{ "gemm", LULL_CLASS_MATMUL },
	{ "gemv", LULL_CLASS_MATMUL },
	{ "matmul", LULL_CLASS_MATMUL },
	{ "cutlass", LULL_CLASS_MATMUL },
	{ "xmma", LULL_CLASS_MATMUL },
	{ "nvjet", LULL_CLASS_MATMUL },
	{ "cublas", LULL_CLASS_MATMUL },
	{ "norm", LULL_CLASS_REDUCTION },
	{ "reduce", LULL_CLASS_REDUCTION },
	{ "triton_red", LULL_CLASS_REDUCTION },
	{ "triton_per", LULL_CLASS_REDUCTION },
	{ "elementwise", LULL_CLASS_ELEMENTWISE },
	{ "multi_tensor", LULL_CLASS_ELEMENTWISE },
	{ "triton_poi", LULL_CLASS_ELEMENTWISE },
	{ "foreach", LULL_CLASS_ELEMENTWISE },
	{ "fill", LULL_CLASS_ELEMENTWISE },
	{ "copy", LULL_CLASS_COPY },
	{ "memcpy", LULL_CLASS_COPY },
	{ "transpose", LULL_CLASS_COPY },
	{ "cat_array", LULL_CLASS_COPY },
};

enum lull_device_class lull_class_of_kernel(const char *name)
{
	for (size_t i = 0; i < LULL_COUNT_OF(kernel_words); i++) {
		if (has(name, kernel_words[i].word))
			return (enum lull_device_class)kernel_words[i].class;
	}
	return LULL_CLASS_OTHER;
}

enum lull_call_class lull_class_of_call(const char *name)
{
	if (has(name, "synchronize") || has(name, "eventquery"))
		return LULL_CALLS_WAIT;
	if (has(name, "launch"))
		return LULL_CALLS_LAUNCH;
	if (has(name, "memcpy") || has(name, "memset") || has(name, "malloc") ||
	    has(name, "free") || has(name, "memalloc"))
		return LULL_CALLS_MEMORY;
	return LULL_CALLS_OTHER;
}

static const char *fixed_text(u32 number)
{
	static const char *const texts[] = {
		[LULL_FIXED_MEMSET] = "Memset",
		[LULL_FIXED_GIL] = "waits for the GIL",
		[LULL_FIXED_RUNNABLE] = "runnable, waits for a CPU",
		[LULL_FIXED_BUSY] = "busy",
		[LULL_FIXED_IDLE] = "idle",
		[LULL_FIXED_NO_STACK] = "sample without a stack",
		[LULL_FIXED_COPY] = "Memcpy",
		[LULL_FIXED_COPY + 1] = "Memcpy HtoD",
		[LULL_FIXED_COPY + 2] = "Memcpy DtoH",
		[LULL_FIXED_COPY + 8] = "Memcpy DtoD",
		[LULL_FIXED_COPY + 9] = "Memcpy HtoH",
		[LULL_FIXED_COPY + 10] = "Memcpy PtoP",
	};

	if (number < LULL_COUNT_OF(texts) && texts[number])
		return texts[number];
	return "Memcpy";
}

void lull_name_text(struct lull_str *to, struct lull_reader *r, u32 name)
{
	u32 rest = name & LULL_NAME_REST;
	const char *text;
	size_t len;

	switch (name & ~LULL_NAME_REST) {
	case LULL_NAME_STEP:
		lull_str_addf(to, "step %u", rest);
		break;
	case LULL_NAME_FIXED:
		lull_str_puts(to, fixed_text(rest));
		break;
	case LULL_NAME_GRAPH:
		lull_str_addf(to, "CUDA graph %u", rest);
		break;
	case LULL_NAME_CPU:
		lull_str_addf(to, "on CPU %u", rest);
		break;
	case LULL_NAME_CAUSE:
		lull_str_puts(to, rest < LULL_N_CAUSES ? lull_causes[rest]->id : "idle");
		break;
	default:
		text = lull_reader_string(r, rest, &len);
		lull_str_add(to, text, len);
	}
}
