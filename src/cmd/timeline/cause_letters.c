#include "cmd/timeline/cause_letters.h"

#include <ctype.h>
#include <string.h>

#include "cause/why.h"
#include "text/term.h"

static enum lull_colour colour_of(int cause)
{
	static const enum lull_colour colours[LULL_N_FAMILIES] = {
		[LULL_FAMILY_DATA] = LULL_COLOUR_YELLOW, [LULL_FAMILY_COPY] = LULL_COLOUR_CYAN,
		[LULL_FAMILY_WAIT] = LULL_COLOUR_RED,	 [LULL_FAMILY_LAUNCH] = LULL_COLOUR_MAGENTA,
		[LULL_FAMILY_HOST] = LULL_COLOUR_BLUE,	 [LULL_FAMILY_RANKS] = LULL_COLOUR_GREEN,
	};

	return colours[lull_causes[cause]->family];
}

static bool is_free(const struct lull_cause_letters *l, char letter)
{
	return !memchr(l->of, letter, LULL_N_CAUSES);
}

/* A letter of its name that no other cause has. */
static char letter_for(const struct lull_cause_letters *l, int cause)
{
	for (const char *id = lull_causes[cause]->id; *id; id++) {
		if (isalpha((unsigned char)*id) && is_free(l, (char)toupper(*id)))
			return (char)toupper(*id);
	}
	for (int c = 'A'; c <= 'Z'; c++) {
		if (is_free(l, (char)c))
			return (char)c;
	}
	return '?';
}

void lull_cause_letters_give(struct lull_cause_letters *l, const f64 *sum_ns)
{
	for (;;) {
		int most = -1;

		for (int c = 0; c < LULL_N_CAUSES; c++) {
			if (!l->of[c] && sum_ns[c] > 0 && (most < 0 || sum_ns[c] > sum_ns[most]))
				most = c;
		}
		if (most < 0)
			return;
		l->of[most] = letter_for(l, most);
	}
}

int lull_cause_letters_most(const struct lull_strip *causes, size_t cell)
{
	int most = 0;

	for (int c = 1; c < LULL_N_CAUSES; c++) {
		if (causes[c].cells[cell] > causes[most].cells[cell])
			most = c;
	}
	return most;
}

void lull_cause_letters_put(const struct lull_cause_letters *l, struct lull_str *to, int cause,
			    f64 part)
{
	if (part < LULL_LETTER_LEAST) {
		lull_str_add(to, " ", 1);
		return;
	}
	lull_str_addf(to, "%s%c%s", lull_term_colour(colour_of(cause), l->has_colour),
		      part >= LULL_LETTER_HALF ? l->of[cause] : tolower(l->of[cause]),
		      lull_term_colour(LULL_COLOUR_NONE, l->has_colour));
}

void lull_cause_letters_list(const struct lull_cause_letters *l, FILE *to, const u64 *cost_ns,
			     f64 whole_ns)
{
	bool is_listed[LULL_N_CAUSES] = { false };

	for (;;) {
		int most = -1;

		for (int c = 0; c < LULL_N_CAUSES; c++) {
			if (!is_listed[c] && cost_ns[c] && (most < 0 || cost_ns[c] > cost_ns[most]))
				most = c;
		}
		if (most < 0)
			return;
		is_listed[most] = true;
		fprintf(to, "  %s%c%s  %-20s %10s %3.0f %%\n",
			lull_term_colour(colour_of(most), l->has_colour),
			l->of[most] ? l->of[most] : ' ',
			lull_term_colour(LULL_COLOUR_NONE, l->has_colour), lull_causes[most]->id,
			lull_why_time((f64)cost_ns[most]).text,
			100 * (f64)cost_ns[most] / whole_ns);
	}
}
