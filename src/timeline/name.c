#include "timeline/name.h"

#include "base/types.h"
#include "cause/cause.h"
#include "model/words.h"

enum lull_device_class lull_class_of_kernel(const char *name)
{
	static const u8 classes[LULL_N_KERNEL_CLASSES] = {
		[LULL_KERNEL_OTHER] = LULL_CLASS_OTHER,
		[LULL_KERNEL_COLLECTIVE] = LULL_CLASS_COLLECTIVE,
		[LULL_KERNEL_OPTIMIZER] = LULL_CLASS_ELEMENTWISE,
		[LULL_KERNEL_MATMUL] = LULL_CLASS_MATMUL,
		[LULL_KERNEL_ATTENTION] = LULL_CLASS_ATTENTION,
		[LULL_KERNEL_CONVOLUTION] = LULL_CLASS_CONVOLUTION,
		[LULL_KERNEL_ELEMENTWISE] = LULL_CLASS_ELEMENTWISE,
		[LULL_KERNEL_REDUCTION] = LULL_CLASS_REDUCTION,
		[LULL_KERNEL_COPY] = LULL_CLASS_COPY,
	};

	return (enum lull_device_class)classes[lull_kernel_class_of(name)];
}

enum lull_call_class lull_class_of_call(const char *name)
{
	switch (lull_call_kind_of(name)) {
	case LULL_KIND_OF_SYNC:
		return LULL_CALLS_WAIT;
	case LULL_KIND_OF_LAUNCH:
		return LULL_CALLS_LAUNCH;
	case LULL_KIND_OF_COPY:
	case LULL_KIND_OF_ALLOC:
		return LULL_CALLS_MEMORY;
	case LULL_KIND_OF_EVENT:
	case LULL_KIND_OF_MODULE:
	case LULL_KIND_OF_QUERY:
	case LULL_KIND_OF_OTHER:
		break;
	}
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
