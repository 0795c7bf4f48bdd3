/*
 * op_name - names of ranges that carry what is true of one call only.
 *
 * PyTorch's emit_nvtx() names a range "aten::addmm, seq = 47504, op_id = 998541, sizes = [[2]]".
 * With the numbers in the name every range is the only one of its name, and nothing can be summed
 * by name; so the name ends before the first of them, and they are kept as the range's data.
 */
#ifndef LULL_TEXT_OP_NAME_H
#define LULL_TEXT_OP_NAME_H

#include "base/str.h"
#include "base/types.h"

/*
 * Whether the text has such parts at its end. If so, *name_len is the length of the name alone, and
 * the parts are appended to `json` (may be NULL) as one object: {"seq":47504,"op_id":998541}.
 */
bool lull_op_name_split(const char *text, size_t len, size_t *name_len, struct lull_str *json);

#endif
