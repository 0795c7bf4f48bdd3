/*
 * torch_learn - how this build of PyTorch lays out what its observers are shown.
 */
#include "agent/python/torch_int.h"

#include <string.h>

#include "agent/core/sys.h"

#define FUNCTION_WORDS 80u /* of a RecordFunction that are looked through; it has 50 to 60 */
#define TENSOR_WORDS   24u /* of a TensorImpl, which has at least so many */
#define LIST_WORDS     8u

struct lull_torch_layout lull_torch_layout;

static struct {
	struct lull_torch_probe probe;
	bool has_pair, has_list;
	i64 sequence; /* of the pair's operator */
} learn;

void lull_torch_learn_begin(const struct lull_torch_probe *probe)
{
	learn.probe = *probe;
}

static bool are_pair(u64 at, struct lull_torch_input inputs[2])
{
	return at % 8 == 0 && at > 65536 && lull_sys_peek(inputs, at, 2 * sizeof(*inputs)) &&
	       inputs[0].value == learn.probe.pair[0] && inputs[1].value == learn.probe.pair[1];
}

static void look_at_pair(const u64 *words)
{
	struct lull_torch_input inputs[2];

	for (u32 i = 1; i + 1 < FUNCTION_WORDS && !learn.has_pair; i++) {
		if (words[i + 1] != 2 || !are_pair(words[i], inputs))
			continue;
		learn.has_pair = inputs[0].tag == inputs[1].tag;
		lull_torch_layout.inputs_off = i * 8;
		lull_torch_layout.tensor_tag = inputs[0].tag;
		learn.sequence = (i64)words[i - 1];
	}
}

static void look_at_list(const u64 *words)
{
	struct lull_torch_input inputs[2], first = { 0 };
	u64 list[LIST_WORDS];

	if (!learn.has_pair ||
	    !lull_sys_peek(&first, words[lull_torch_layout.inputs_off / 8], sizeof(first)) ||
	    !lull_sys_peek(list, first.value, sizeof(list)))
		return;
	for (u32 i = 0; i + 1 < LIST_WORDS && !learn.has_list; i++) {
		if (list[i + 1] - list[i] != sizeof(inputs) || !are_pair(list[i], inputs))
			continue;
		learn.has_list = true;
		lull_torch_layout.vector_off = i * 8;
		lull_torch_layout.list_tag = first.tag;
	}
}

/* aten::roll of two numbers that nobody else has. */
static void look_at_numbers(const u64 *words)
{
	struct lull_torch_input inputs[2], members[2];
	u64 vector[2];

	if (!learn.has_list ||
	    !lull_sys_peek(inputs, words[lull_torch_layout.inputs_off / 8], sizeof(inputs)) ||
	    !lull_sys_peek(vector, inputs[1].value + lull_torch_layout.vector_off,
			   sizeof(vector)) ||
	    vector[1] - vector[0] != sizeof(members) ||
	    !lull_sys_peek(members, vector[0], sizeof(members)))
		return;
	lull_torch_layout.has_numbers = members[0].value == LULL_TORCH_NUMBER_1 &&
					members[1].value == LULL_TORCH_NUMBER_2 &&
					members[0].tag == members[1].tag;
	lull_torch_layout.numbers_tag = inputs[1].tag;
	lull_torch_layout.number_tag = members[0].tag;
}

/* aten::sum with keepdim=True. */
static void look_at_flag(const u64 *words)
{
	struct lull_torch_input inputs[3];

	if (!lull_torch_layout.has_numbers ||
	    !lull_sys_peek(inputs, words[lull_torch_layout.inputs_off / 8], sizeof(inputs)))
		return;
	lull_torch_layout.has_flag =
		(u8)inputs[2].value == 1 && inputs[2].tag != lull_torch_layout.number_tag;
	lull_torch_layout.flag_tag = inputs[2].tag;
}

void lull_torch_look(const void *function, u32 kind)
{
	const char *name = lull_torch_layout.name(function);
	u64 words[FUNCTION_WORDS];

	if (!name || kind != LULL_TORCH_OPERATOR ||
	    !lull_sys_peek(words, (u64)function, sizeof(words)))
		return;
	if (strcmp(name, "aten::maximum") == 0)
		look_at_pair(words);
	else if (strcmp(name, "aten::cat") == 0)
		look_at_list(words);
	else if (strcmp(name, "aten::roll") == 0)
		look_at_numbers(words);
	else if (strcmp(name, "aten::sum") == 0)
		look_at_flag(words);
}

static bool find_dims(const struct lull_torch_probe *probe)
{
	static const u64 four[] = { 4, 3, 5, 7, 11 }, six[] = { 2, 1, 3, 1, 5, 7 };
	u64 words[TENSOR_WORDS], sizes[6];

	if (!lull_sys_peek(words, probe->four_dims, sizeof(words)))
		return false;
	for (u32 i = 0; i + LULL_COUNT_OF(four) <= TENSOR_WORDS; i++) {
		if (memcmp(&words[i], four, sizeof(four)) != 0)
			continue;
		lull_torch_layout.dims_off = i * 8;
		return lull_sys_peek(words, probe->six_dims, sizeof(words)) && words[i] == 6 &&
		       lull_sys_peek(sizes, words[i + 1], sizeof(sizes)) &&
		       memcmp(sizes, six, sizeof(six)) == 0;
	}
	return false;
}

static bool find_type(const struct lull_torch_probe *probe)
{
	static const u16 types[] = { 0, 4, 6, 7 }; /* c10::ScalarType */
	u16 halves[4][TENSOR_WORDS * 4];

	for (u32 i = 0; i < LULL_COUNT_OF(types); i++)
		if (!lull_sys_peek(halves[i], probe->typed[i], sizeof(halves[i])))
			return false;
	for (u32 at = 0; at < TENSOR_WORDS * 4; at++) {
		u32 n = 0;

		while (n < LULL_COUNT_OF(types) && halves[n][at] == types[n])
			n++;
		if (n == LULL_COUNT_OF(types)) {
			lull_torch_layout.type_off = at * 2;
			return true;
		}
	}
	return false;
}

bool lull_torch_learn_end(const struct lull_torch_probe *probe)
{
	return learn.has_pair && learn.has_list &&
	       (probe->sequence == UINT64_MAX || learn.sequence == (i64)probe->sequence) &&
	       find_dims(probe) && find_type(probe);
}
