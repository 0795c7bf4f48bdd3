/*
 * shorten - long texts made to fit, keeping what tells them apart.
 *
 * Columns are characters of UTF-8. What is left out is shown as one character, "…".
 */
#ifndef LULL_TEXT_SHORTEN_H
#define LULL_TEXT_SHORTEN_H

#include "base/str.h"
#include "base/types.h"

/* Append the text, cut at its end. */
void lull_shorten_end(struct lull_str *to, const char *text, size_t columns);

/*
 * Append the text without its middle ("void ge…tile"): names differ at their start more often than
 * at their end, but both matter.
 */
void lull_shorten_middle(struct lull_str *to, const char *text, size_t columns);

/*
 * Append the name of a function or kernel. Of a C++ name as much as has to go, in this order: the
 * return type, the parameters, what is inside template arguments, all template arguments, outer
 * namespaces; at last the middle. Frames of Python ("/srv/train.py(79): train; ...") and lines with
 * their function ("/srv/train.py:79 train") lose folders, then their end. Any other text loses its
 * middle.
 */
void lull_shorten_name(struct lull_str *to, const char *text, size_t columns);

#endif
