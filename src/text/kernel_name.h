/*
 * kernel_name - names of kernels as people say them: "elementwise · add", "gemm 256×128 bf16".
 *
 * The only place that makes them short: tables, `lull why` and the page use it. The rules are in
 * kernel_short.def: functors of PyTorch's loops, tiles and types of CUTLASS, nvjet and cuDNN,
 * operators of Triton, collectives of NCCL. Kernels of nobody known keep their own identifier.
 *
 * Names:          demangled, as in reports; of mangled ones only what can be told without
 *                 demangling them. Texts that are no names of kernels ("[CUDA memcpy ...]") stay.
 * Cost:           some 10 us a name: shorten each name once, not each event.
 */
#ifndef LULL_TEXT_KERNEL_NAME_H
#define LULL_TEXT_KERNEL_NAME_H

#include "base/str.h"
#include "base/types.h"

/* No short name has more columns. */
#define LULL_KERNEL_SHORT_MAX 60u

/*
 * Append the short name. Different kernels may have the same one: text/labels.h keeps them apart.
 */
void lull_kernel_short(struct lull_str *to, const char *name);

/* A piece of a name by which it can be told from others: a type, a number or an identifier. */
struct lull_kernel_token {
	const char *at;
	u32 len;
	bool is_type;
};

/*
 * The pieces of a name in their order, without those that every name has; at most `max`. Returns
 * how many. They point into the name.
 */
size_t lull_kernel_tokens(const char *name, struct lull_kernel_token *tokens, size_t max);

/* Append a piece as it is shown: "bf16", "<4>", "softmax". */
void lull_kernel_token_put(struct lull_str *to, const struct lull_kernel_token *token);

#endif
