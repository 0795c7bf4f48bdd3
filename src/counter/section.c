#include "counter/section.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

#define SECTION(name) extern const struct lull_section lull_section_##name;
#include "counter/sections.def"
#undef SECTION

const struct lull_section *const lull_sections[] = {
#define SECTION(name) &lull_section_##name,
#include "counter/sections.def"
#undef SECTION
	NULL,
};

/* Names of sections in other tools. */
static const struct {
	const char *theirs, *ours;
} known_as[] = {
	{ "SpeedOfLight", "speed" },
	{ "SpeedOfLight_RooflineChart", "roofline" },
	{ "SpeedOfLight_HierarchicalDoubleRooflineChart", "roofline" },
	{ "SpeedOfLight_HierarchicalSingleRooflineChart", "roofline" },
	{ "SpeedOfLight_HierarchicalHalfRooflineChart", "roofline" },
	{ "SpeedOfLight_HierarchicalTensorRooflineChart", "roofline" },
	{ "MemoryWorkloadAnalysis", "memory" },
	{ "MemoryWorkloadAnalysis_Chart", "memory" },
	{ "MemoryWorkloadAnalysis_Tables", "memory" },
	{ "ComputeWorkloadAnalysis", "compute" },
	{ "InstructionStats", "compute" },
	{ "SchedulerStats", "scheduler" },
	{ "WarpStateStats", "warps" },
	{ "Occupancy", "occupancy" },
	{ "LaunchStats", "launch" },
	{ "SourceCounters", "source" },
};

const struct lull_section *lull_section_find(const char *name)
{
	for (size_t i = 0; i < LULL_COUNT_OF(known_as); i++)
		if (strcasecmp(name, known_as[i].theirs) == 0)
			name = known_as[i].ours;
	for (const struct lull_section *const *s = lull_sections; *s; s++)
		if (strcasecmp((*s)->name, name) == 0)
			return *s;
	return NULL;
}

void lull_sheet_init(struct lull_sheet *s)
{
	memset(s, 0, sizeof(*s));
	lull_vec_init(&s->lines, sizeof(struct lull_sheet_line));
	lull_str_add(&s->texts, "", 1);
}

void lull_sheet_release(struct lull_sheet *s)
{
	lull_vec_release(&s->lines);
	lull_str_release(&s->texts);
}

void lull_sheet_fill(struct lull_sheet *s, const struct lull_section *section,
		     const struct lull_profile *p)
{
	s->lines.n = 0;
	s->n_missing = 0;
	lull_str_clear(&s->texts);
	lull_str_add(&s->texts, "", 1);
	section->run(p, s);
}

const char *lull_sheet_note_of(const struct lull_sheet *s, const struct lull_sheet_line *line)
{
	return s->texts.at + line->note_off;
}

static size_t keep(struct lull_sheet *s, const char *text)
{
	size_t at = s->texts.len;

	if (!text || !*text)
		return 0;
	lull_str_add(&s->texts, text, strlen(text) + 1);
	return at;
}

void lull_sheet_put(struct lull_sheet *s, const struct lull_sheet_line *line, const char *note)
{
	struct lull_sheet_line *at;

	if (isnan(line->value)) {
		s->n_missing++;
		return;
	}
	at = lull_vec_push(&s->lines);
	*at = *line;
	if (!at->key)
		at->key = "";
	at->note_off = keep(s, note);
}

static void put_k(struct lull_sheet *s, const struct lull_profile *p,
		  const struct lull_sheet_row *row, enum lull_sheet_kind kind)
{
	const struct lull_k_info *info = &lull_k_infos[row->k];

	lull_sheet_put(s,
		       &(struct lull_sheet_line){ .kind = kind,
						  .label = row->label,
						  .key = info->key,
						  .value = lull_k_of(p, row->k),
						  .unit = info->unit,
						  .is_explained = true },
		       info->meaning);
}

void lull_sheet_rows(struct lull_sheet *s, const struct lull_profile *p,
		     const struct lull_sheet_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		put_k(s, p, &rows[i], LULL_SHEET_VALUE);
}

void lull_sheet_bars(struct lull_sheet *s, const struct lull_profile *p,
		     const struct lull_sheet_row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		put_k(s, p, &rows[i], LULL_SHEET_BAR);
}

void lull_sheet_say(struct lull_sheet *s, const char *fmt, ...)
{
	struct lull_sheet_line line = { .kind = LULL_SHEET_NOTE, .label = "", .unit = "" };
	struct lull_str text = LULL_STR_INIT;
	va_list ap;

	va_start(ap, fmt);
	lull_str_vaddf(&text, fmt, ap);
	va_end(ap);
	lull_sheet_put(s, &line, lull_str_text(&text));
	lull_str_release(&text);
}

void lull_sheet_draw(struct lull_sheet *s, const char *line)
{
	lull_sheet_put(
		s, &(struct lull_sheet_line){ .kind = LULL_SHEET_CHART, .label = "", .unit = "" },
		line);
}
