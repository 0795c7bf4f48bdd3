/*
 * source: where the samples of the program counter fell, hottest lines first.
 */
#include <stdio.h>
#include <string.h>

#include "counter/section.h"
#include "counter/stall.h"

/* As many as fit on a screen beside the rest. */
#define LINES 12

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static void put(const struct lull_profile *p, const struct lull_hot *hot, struct lull_sheet *to)
{
	int stall = lull_stall_find(hot->stall);
	char place[96], note[256];

	if (*hot->file)
		snprintf(place, sizeof(place), "%s:%u", base_name(hot->file), hot->line);
	else
		snprintf(place, sizeof(place), "+0x%llx", (unsigned long long)hot->pc_offset_bytes);
	snprintf(note, sizeof(note), "%s%s%s", place, hot->n_stall ? ": " : "",
		 stall >= 0 ? lull_stalls[stall].title : hot->stall);
	lull_sheet_put(
		to,
		&(struct lull_sheet_line){ .kind = LULL_SHEET_BAR,
					   .label = "",
					   .key = "hot",
					   .value = 100 * (f64)hot->n_samples / (f64)p->n_samples,
					   .unit = "%" },
		note);
}

static void run(const struct lull_profile *p, struct lull_sheet *to)
{
	const struct lull_hot *hot = p->hot.at;
	bool has_lines = false;

	if (!p->n_samples) {
		to->n_missing++;
		return;
	}
	for (size_t i = 0; i < p->hot.n; i++)
		has_lines |= *hot[i].file != 0;
	for (size_t i = 0; i < p->hot.n && i < LINES; i++)
		put(p, &hot[i], to);
	lull_sheet_say(to, "%llu samples in %zu places%s", (unsigned long long)p->n_samples,
		       p->hot.n,
		       has_lines ? "." : "; build with -lineinfo to see lines of the source.");
}

const struct lull_section lull_section_source = {
	.name = "source",
	.title = "Source",
	.what = "where warps were found, of all samples, and what they waited for most",
	.run = run,
};
