/*
 * labels - texts made to fit a column, and different wherever the texts are.
 *
 *	struct lull_labels labels;
 *	lull_labels_init(&labels, true);
 *	lull_labels_add(&labels, texts, n);		(all that are shown together)
 *	lull_labels_fit(&labels, lull_labels_width(&labels));
 *	puts(lull_labels_get(&labels, texts[0]));
 *	lull_labels_release(&labels);
 *
 * Kernels get their short name (text/kernel_name.h). Those that would have the same one also get
 * what tells them apart: first the type of their numbers, then other template arguments, and "#2"
 * where that does not fit. Other texts get as short as the column wants (text/shorten.h).
 *
 * Limits:         of many texts (LULL_LABELS_MAX) the first are forgotten, and later ones may get
 *                 their labels.
 */
#ifndef LULL_TEXT_LABELS_H
#define LULL_TEXT_LABELS_H

#include "base/intern.h"
#include "base/map.h"
#include "base/str.h"
#include "base/types.h"
#include "base/vec.h"

/* A screen shows tens of rows; a trace of millions of rows has few names or too many to compare. */
#define LULL_LABELS_MAX 20000u

struct lull_labels {
	bool are_kernels;
	size_t columns;		  /* what a label may take; SIZE_MAX before lull_labels_fit() */
	struct lull_intern texts; /* private: the texts by number */
	struct lull_vec labels;	  /* private: struct lull_str by number of the text */
	struct lull_map taken;	  /* private: hash of a label to the number of its text */
};

/* No labels yet, of any width. */
void lull_labels_init(struct lull_labels *l, bool are_kernels);

/* Free them. */
void lull_labels_release(struct lull_labels *l);

/* Find labels for these texts, those that have none yet. Texts are copied. */
void lull_labels_add(struct lull_labels *l, const char *const *texts, size_t n);

/* The columns of the widest label. */
size_t lull_labels_width(const struct lull_labels *l);

/* Make all labels, and those that are added later, fit into so many columns. */
void lull_labels_fit(struct lull_labels *l, size_t columns);

/* The label of a text, which is added if it is new. Valid until the next call. */
const char *lull_labels_get(struct lull_labels *l, const char *text);

#endif
