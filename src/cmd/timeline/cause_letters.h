/*
 * cause_letters - causes of idle time as letters and colours of a drawing in the terminal.
 */
#ifndef LULL_CMD_TIMELINE_CAUSE_LETTERS_H
#define LULL_CMD_TIMELINE_CAUSE_LETTERS_H

#include <stdio.h>

#include "base/str.h"
#include "cause/cause.h"
#include "text/strip.h"

/* From this share of a cell on a cause has its letter there; from half on it is a capital. */
#define LULL_LETTER_LEAST 0.125
#define LULL_LETTER_HALF  0.5

struct lull_cause_letters {
	char of[LULL_SUBJECT_CAUSES]; /* 0: none yet */
	bool has_colour;	      /* escape sequences are written */
};

/*
 * Give letters to the causes whose sum is above 0, the largest first, and keep those that are
 * given: a letter of the name of each, as far as no other has it.
 */
void lull_cause_letters_give(struct lull_cause_letters *l, const f64 *sum_ns);

/* Append one character for a cell that `cause` has such a part of: a blank below the least. */
void lull_cause_letters_put(const struct lull_cause_letters *l, struct lull_str *to, int cause,
			    f64 part);

/* Print a line for each cause with time, the most first: its letter, name, time and share. */
void lull_cause_letters_list(const struct lull_cause_letters *l, FILE *to, const u64 *cost_ns,
			     f64 whole_ns);

/* The cause that has most of a cell; strips by cause. */
int lull_cause_letters_most(const struct lull_strip *causes, size_t cell);

#endif
