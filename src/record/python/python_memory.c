#include "record/python/python_int.h"

#include <errno.h>
#include <string.h>

void lull_python_read_many(struct lull_python_memory *m, const struct iovec *to,
			   const struct iovec *from, size_t n, bool *is_read)
{
	size_t i = 0;

	while (i < n) {
		int n_whole = m->read(m->ctx, to + i, from + i, n - i);

		if (n_whole < 0)
			m->failure = errno;
		for (int k = 0; k < n_whole; k++)
			is_read[i++] = true;
		/* The one it stopped at is not there; go on after it. */
		if (i < n)
			is_read[i++] = false;
		while (n_whole < 0 && i < n)
			is_read[i++] = false;
	}
}

bool lull_python_read(struct lull_python_memory *m, u64 addr, void *to, size_t n_bytes)
{
	struct iovec local = { to, n_bytes }, remote = { (void *)(uintptr_t)addr, n_bytes };
	bool is_read;

	if (!addr)
		return false;
	lull_python_read_many(m, &local, &remote, 1, &is_read);
	return is_read;
}

#define N_DEBUG_SLOTS 96 /* of _Py_DebugOffsets: 3.14 has 95, we use the first 81 */

#define NONE LULL_PYTHON_NONE

/* A minor version's column of python_layouts.def: offsets, or indices of slots from 3.13 on. */
static const struct lull_python_layout columns[] = {
#define FIELD(name, v9, v10, v11, v12, v13, v14, meaning) .name = v9,
	{
		.minor = 9,
#include "wire/python_layouts.def"
	},
#undef FIELD
#define FIELD(name, v9, v10, v11, v12, v13, v14, meaning) .name = v10,
	{
		.minor = 10,
#include "wire/python_layouts.def"
	},
#undef FIELD
#define FIELD(name, v9, v10, v11, v12, v13, v14, meaning) .name = v11,
	{
		.minor = 11,
#include "wire/python_layouts.def"
	},
#undef FIELD
#define FIELD(name, v9, v10, v11, v12, v13, v14, meaning) .name = v12,
	{
		.minor = 12,
#include "wire/python_layouts.def"
	},
#undef FIELD
#define FIELD(name, v9, v10, v11, v12, v13, v14, meaning) .name = v13,
	{
		.minor = 13,
#include "wire/python_layouts.def"
	},
#undef FIELD
#define FIELD(name, v9, v10, v11, v12, v13, v14, meaning) .name = v14,
	{
		.minor = 14,
#include "wire/python_layouts.def"
	},
#undef FIELD
};

/* Slots at the head of _Py_DebugOffsets, after the cookie. */
enum { SLOT_VERSION = 1, SLOT_FREE_THREADED = 2 };

/* Larger than any offset within an interpreter state, so that sums never overflow. */
#define OFFSET_MAX (1 << 20)

static int from_slot(const u64 *slots, int slot)
{
	return slot == NONE || slots[slot] > OFFSET_MAX ? NONE : (int)slots[slot];
}

static int read_debug_offsets(struct lull_python_layout *layout, struct lull_python_memory *m,
			      const struct lull_python_target *target, struct lull_err *err)
{
	u64 slots[N_DEBUG_SLOTS];

	if (!lull_python_read(m, target->runtime, slots, sizeof(slots)) ||
	    memcmp(slots, "xdebugpy", 8) || slots[SLOT_VERSION] >> 16 != target->version >> 16)
		return lull_fail(err, LULL_E_UNSUPPORTED, "Python %s without its debug offsets",
				 target->version_text);
	if (slots[SLOT_FREE_THREADED])
		return lull_fail(err, LULL_E_UNSUPPORTED, "free-threaded Python %s",
				 target->version_text);
#define FIELD(name, v9, v10, v11, v12, v13, v14, meaning) \
	layout->name = from_slot(slots, layout->name);
#include "wire/python_layouts.def"
#undef FIELD
	return LULL_OK;
}

/* Bytes from the start of a struct that hold all these fields; 0 if one is missing. */
static size_t extent(const int *offs, size_t n)
{
	size_t end = 0;

	for (size_t i = 0; i < n; i++) {
		if (offs[i] == NONE)
			return 0;
		if ((size_t)offs[i] + 8 > end)
			end = (size_t)offs[i] + 8;
	}
	return (end + 7) & ~(size_t)7;
}

#define EXTENT(...) \
	extent((const int[]){ __VA_ARGS__ }, sizeof((const int[]){ __VA_ARGS__ }) / sizeof(int))

/* The tables above are ours, but from 3.13 on the offsets come out of a foreign process. */
static bool measure(struct lull_python_layout *l)
{
	bool has_natives = l->minor >= 11, has_status = l->minor >= 12;

	l->tstate_bytes =
		EXTENT(l->tstate_next, l->tstate_frame, l->tstate_thread_id,
		       has_natives ? l->tstate_native_id : 0, has_status ? l->tstate_status : 0);
	l->frame_bytes = EXTENT(l->frame_previous, l->frame_code, l->frame_instr,
				has_status ? l->frame_owner : 0);
	l->code_bytes = EXTENT(l->object_type, l->code_filename, l->code_name, l->code_linetable,
			       l->code_first_line);
	l->str_head_bytes = EXTENT(l->str_len, l->str_state);
	return l->tstate_bytes && l->tstate_bytes <= LULL_PYTHON_HEAD_BYTES && l->frame_bytes &&
	       l->frame_bytes <= LULL_PYTHON_HEAD_BYTES && l->code_bytes &&
	       l->code_bytes <= LULL_PYTHON_HEAD_BYTES && l->str_head_bytes &&
	       l->str_head_bytes <= LULL_PYTHON_HEAD_BYTES &&
	       EXTENT(l->runtime_interp_head, l->interp_next, l->interp_tstate_head, l->bytes_len,
		      l->bytes_data, l->str_ascii_bytes, l->str_bytes,
		      has_natives ? l->code_instrs : 0);
}

int lull_python_layout_init(struct lull_python_layout *layout, struct lull_python_memory *m,
			    const struct lull_python_target *target, struct lull_err *err)
{
	u32 minor = target->version >> 16 & 0xff;

	for (size_t i = 0; i < LULL_COUNT_OF(columns); i++) {
		if (columns[i].minor != minor || target->version >> 24 != 3)
			continue;
		*layout = columns[i];
		if (minor >= 13 && read_debug_offsets(layout, m, target, err))
			return err->code;
		if (measure(layout))
			return LULL_OK;
		break;
	}
	return lull_fail(err, LULL_E_UNSUPPORTED, "Python %s is not supported",
			 target->version_text);
}
