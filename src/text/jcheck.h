/*
 * jcheck - whether a text is JSON, to the letter.
 *
 * jscan takes more than JSON, because traces of other tools are not always correct. A protocol has
 * to say what is wrong with a message instead: this checks the whole text first, and jscan and
 * jpick read it then.
 *
 * What it checks: RFC 8259: one value and nothing after it, escapes, numbers, control characters,
 *                 valid UTF-8; objects and arrays nested up to LULL_JCHECK_DEPTH.
 */
#ifndef LULL_TEXT_JCHECK_H
#define LULL_TEXT_JCHECK_H

#include "base/types.h"

#define LULL_JCHECK_DEPTH 128

/* NULL if the text is JSON; else what is wrong, in words, and *off is where. */
const char *lull_jcheck(const char *text, size_t len, size_t *off);

#endif
