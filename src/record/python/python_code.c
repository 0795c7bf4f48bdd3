#include "record/python/python_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/rune.h"
#include "wire/python_objects.h"

/*
 * Code objects are copied once and recognised by address, first line and address of the line table:
 * an address that the allocator hands out again differs in one of them. Each sample looks at the
 * head of every code object on its stacks once, all in one system call.
 */

/* Names longer than this are cut: generated code has names of any length. */
#define NAME_CHARS_MAX 512

/* A line table of 1 MiB belongs to a function of 100 000 lines. */
#define LINES_BYTES_MAX (1u << 20)

/* Programs that make code objects without end must not fill our memory; then we begin afresh. */
#define CODES_MAX 65536

/* Pieces of one read: the kernel takes 1024, and copies them one by one. */
#define BATCH 128

static u32 u32_of(const u8 *at)
{
	u32 v;

	memcpy(&v, at, 4);
	return v;
}

void lull_python_codes_init(struct lull_python_codes *codes)
{
	lull_vec_init(&codes->at, sizeof(struct lull_python_code));
	lull_map_init(&codes->by_addr);
}

/* Forget all copies. Ids go on, so that an id never means two things. */
static void drop_all(struct lull_python_codes *codes)
{
	struct lull_python_code *code = codes->at.at;

	for (size_t i = 0; i < codes->at.n; i++) {
		free(code[i].function);
		free(code[i].file);
		free(code[i].lines);
	}
	lull_vec_release(&codes->at);
	lull_map_release(&codes->by_addr);
}

void lull_python_codes_release(struct lull_python_codes *codes)
{
	drop_all(codes);
}

/* A copy of a str object as UTF-8, NULL if there is none at `addr`. The caller frees. */
static char *copy_str(const struct lull_python_source *src, u64 addr)
{
	const struct lull_python_layout *l = src->layout;
	u8 head[LULL_PYTHON_HEAD_BYTES], text[NAME_CHARS_MAX * 4];
	struct lull_str s = LULL_STR_INIT;
	u32 state, kind;
	u64 n, data;

	if (!lull_python_read(src->memory, addr, head, l->str_head_bytes))
		return NULL;
	n = lull_python_u64(head + l->str_len);
	state = u32_of(head + l->str_state);
	kind = LULL_PYTHON_STR_KIND(state);
	if (!LULL_PYTHON_STR_COMPACT(state) || (kind != 1 && kind != 2 && kind != 4) ||
	    n > LINES_BYTES_MAX)
		return NULL;
	if (n > NAME_CHARS_MAX)
		n = NAME_CHARS_MAX;
	data = addr + (u64)(LULL_PYTHON_STR_ASCII(state) ? l->str_ascii_bytes : l->str_bytes - 8);
	if (n && !lull_python_read(src->memory, data, text, n * kind))
		return NULL;
	for (u64 i = 0; i < n; i++) {
		char bytes[4];
		u32 c = 0;

		memcpy(&c, text + i * kind, kind); /* little-endian, as both our machines are */
		lull_str_add(&s, bytes, lull_rune_put(bytes, c));
	}
	return s.at ? s.at : lull_strdup("");
}

/* A copy of a bytes object; false if there is none at `addr`. */
static bool copy_bytes(const struct lull_python_source *src, u64 addr, u8 **bytes, size_t *n_bytes)
{
	const struct lull_python_layout *l = src->layout;
	u64 n;

	if (!lull_python_read(src->memory, addr + (u64)l->bytes_len, &n, 8) || n > LINES_BYTES_MAX)
		return false;
	*bytes = lull_alloc(n + 1, 1);
	*n_bytes = n;
	if (!n || lull_python_read(src->memory, addr + (u64)l->bytes_data, *bytes, n))
		return true;
	free(*bytes);
	*bytes = NULL;
	return false;
}

/* Copy the code object whose head is given; returns its index, -1 if it cannot be read. */
static i32 add_code(struct lull_python_codes *codes, const struct lull_python_source *src, u64 addr,
		    const u8 *head)
{
	const struct lull_python_layout *l = src->layout;
	struct lull_python_code code = { .addr = addr, .checked_in = src->sample_number };

	code.linetable_addr = lull_python_u64(head + l->code_linetable);
	code.first_line = u32_of(head + l->code_first_line);
	code.last_off = UINT64_MAX;
	code.function = copy_str(src, lull_python_u64(head + l->code_name));
	code.file = copy_str(src, lull_python_u64(head + l->code_filename));
	if (!code.function || !code.file ||
	    !copy_bytes(src, code.linetable_addr, &code.lines, &code.n_lines_bytes)) {
		free(code.function);
		free(code.file);
		return -1;
	}
	code.id = codes->next_id++;
	*lull_map_add(&codes->by_addr, addr, NULL) = (u32)codes->at.n;
	lull_vec_add(&codes->at, &code, 1);
	return (i32)codes->at.n - 1;
}

/* The index of the code object whose head was just read. */
static i32 check_code(struct lull_python_codes *codes, const struct lull_python_source *src,
		      u64 addr, const u8 *head)
{
	const struct lull_python_layout *l = src->layout;
	const u32 *ix = lull_map_find(&codes->by_addr, addr);

	if (src->code_type && lull_python_u64(head + l->object_type) != src->code_type)
		return -1;
	if (ix) {
		struct lull_python_code *code = lull_vec_get(&codes->at, *ix);

		if (code->first_line == u32_of(head + l->code_first_line) &&
		    code->linetable_addr == lull_python_u64(head + l->code_linetable)) {
			code->checked_in = src->sample_number;
			return (i32)*ix;
		}
	}
	return add_code(codes, src, addr, head);
}

/* The index of a code object that was already looked at in this sample, else -1. */
static i32 find_checked(const struct lull_python_codes *codes, u64 addr, u64 sample_number)
{
	const u32 *ix = lull_map_find(&codes->by_addr, addr);
	const struct lull_python_code *code;

	if (!ix)
		return -1;
	code = lull_vec_get(&codes->at, *ix);
	return code->checked_in == sample_number ? (i32)*ix : -1;
}

static void find_batch(struct lull_python_codes *codes, const struct lull_python_source *src,
		       const u64 *addrs, size_t n, i32 *ix)
{
	u8 heads[BATCH][LULL_PYTHON_HEAD_BYTES];
	struct iovec to[BATCH], from[BATCH];
	bool is_read[BATCH] = { false };
	size_t slot[BATCH], n_asked = 0, bytes = src->layout->code_bytes;

	for (size_t i = 0; i < n; i++) {
		ix[i] = find_checked(codes, addrs[i], src->sample_number);
		/* Recursion: the frame above asked already. */
		if (ix[i] < 0 && (!n_asked || addrs[i] != addrs[i - 1])) {
			to[n_asked] = (struct iovec){ &heads[n_asked], bytes };
			from[n_asked++] = (struct iovec){ (void *)(uintptr_t)addrs[i], bytes };
		}
		slot[i] = n_asked - 1;
	}
	if (n_asked)
		lull_python_read_many(src->memory, to, from, n_asked, is_read);
	for (size_t i = 0; i < n; i++) {
		if (ix[i] < 0)
			ix[i] = find_checked(codes, addrs[i], src->sample_number);
		if (ix[i] < 0 && is_read[slot[i]])
			ix[i] = check_code(codes, src, addrs[i], heads[slot[i]]);
	}
}

void lull_python_codes_find(struct lull_python_codes *codes, const struct lull_python_source *src,
			    const u64 *addrs, size_t n, i32 *ix)
{
	if (codes->at.n > CODES_MAX)
		drop_all(codes);
	for (size_t i = 0; i < n; i += BATCH)
		find_batch(codes, src, addrs + i, n - i < BATCH ? n - i : BATCH, ix + i);
}
