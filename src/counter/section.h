/*
 * section - one section about a launch: numbers with their meaning, remarks, a chart.
 *
 * A section fills a sheet and never prints; text, CSV, JSON and the page show the same sheet.
 *
 * To add one: section_X.c with const struct lull_section lull_section_X at its end, SECTION(X) in
 * sections.def; the metrics it needs are KSECTION(X) in sets.def. Its line in doc/lull-kernel.1.md.
 */
#ifndef LULL_COUNTER_SECTION_H
#define LULL_COUNTER_SECTION_H

#include "base/str.h"
#include "base/types.h"
#include "base/vec.h"
#include "counter/profile.h"

enum lull_sheet_kind {
	LULL_SHEET_VALUE, /* label, value, unit, note */
	LULL_SHEET_BAR,	  /* the same, drawn as a share: value is in percent */
	LULL_SHEET_NOTE,  /* note only: a sentence */
	LULL_SHEET_CHART, /* note only: a line of a picture, as it is */
};

struct lull_sheet_line {
	enum lull_sheet_kind kind;
	const char *label; /* borrowed; "" if none */
	const char *key;   /* stable name for programs; "" if none */
	f64 value;
	const char *unit;
	size_t note_off;   /* in the sheet's texts */
	bool is_explained; /* the note only says what the label means */
};

struct lull_sheet {
	struct lull_vec lines; /* struct lull_sheet_line */
	struct lull_str texts;
	size_t n_missing; /* values that were requested but not measured */
};

struct lull_section {
	const char *name;
	const char *title;
	const char *what; /* the question it answers */
	void (*run)(const struct lull_profile *p, struct lull_sheet *to);
};

/* All of sections.def, NULL at the end. */
extern const struct lull_section *const lull_sections[];

/* The section of this name, or of the name other tools give it ("SpeedOfLight"); NULL if none. */
const struct lull_section *lull_section_find(const char *name);

/* A value and what it is called. */
struct lull_sheet_row {
	enum lull_k k;
	const char *label;
};

/* An empty sheet. */
void lull_sheet_init(struct lull_sheet *s);

/* Free it. */
void lull_sheet_release(struct lull_sheet *s);

/* Fill the sheet with the section, replacing its content. */
void lull_sheet_fill(struct lull_sheet *s, const struct lull_section *section,
		     const struct lull_profile *p);

/* The note of a line, "" if none. Borrowed until the sheet changes. */
const char *lull_sheet_note_of(const struct lull_sheet *s, const struct lull_sheet_line *line);

/* For sections: these values; what was not measured is left out and counted. */
void lull_sheet_rows(struct lull_sheet *s, const struct lull_profile *p,
		     const struct lull_sheet_row *rows, size_t n);

/* For sections: the same as bars; the values are percent. */
void lull_sheet_bars(struct lull_sheet *s, const struct lull_profile *p,
		     const struct lull_sheet_row *rows, size_t n);

/* For sections: one number that is in no list. NaN is left out and counted. */
void lull_sheet_put(struct lull_sheet *s, const struct lull_sheet_line *line, const char *note);

/* For sections: a sentence. */
void lull_sheet_say(struct lull_sheet *s, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* For sections: a line of a picture. */
void lull_sheet_draw(struct lull_sheet *s, const char *line);

#endif
