/*
 * copies: by direction and kind of memory, and memsets.
 */
#include <stdio.h>

#include "compare/diff.h"
#include "model/work.h"

static const char *memory_word(u8 kind)
{
	static const char *const words[] = { "",      "pageable", "pinned", "device",
					     "array", "managed",  "static", "managed" };

	return kind < LULL_COUNT_OF(words) ? words[kind] : "";
}

static const char *direction_word(u32 kind)
{
	switch (kind) {
	case 1:
		return "host to device";
	case 2:
		return "device to host";
	case 8:
		return "within a device";
	case 9:
		return "host to host";
	case 10:
		return "device to device";
	default:
		return "other";
	}
}

/* Only the host's side tells anything about a copy between host and device. */
static void name_of(const struct lull_work *work, char *to, size_t cap_bytes)
{
	const char *memory = work->what == 1   ? memory_word(work->src_kind)
			     : work->what == 2 ? memory_word(work->dst_kind)
					       : "";

	if (work->kind == LULL_WORK_MEMSET)
		snprintf(to, cap_bytes, "memset");
	else
		snprintf(to, cap_bytes, "%s%s%s", direction_word(work->what), *memory ? ", " : "",
			 memory);
}

static void collect(struct lull_reader *r, struct lull_diff *to)
{
	struct lull_work_cursor c;
	struct lull_work work;
	char name[64];

	lull_work_begin(&c, r, LULL_WORK_MEMORY, LULL_WORK_WANT_BYTES, LULL_SPAN_ALL);
	while (lull_work_next(&c, &work)) {
		name_of(&work, name, sizeof(name));
		lull_diff_count(to, name, work.start_ns, work.dur_ns, work.size_bytes);
	}
	lull_work_end(&c);
}

const struct lull_diff_kind lull_diff_copies = {
	.name = "copies",
	.title = "Copies",
	.has_bytes = true,
	.collect = collect,
};
