/*
 * text_png - text of a terminal as a picture (PNG).
 *
 * What it takes:  lines of ASCII and of blocks (U+2581 to U+2588) in the colours of text/term.h.
 *                 Blocks are drawn as bars; letters in a colour stand on it, in white. Any other
 *                 character is a question mark.
 * Limits:         LULL_TEXT_PNG_COLUMNS x LULL_TEXT_PNG_LINES; what is beyond is cut.
 */
#ifndef LULL_TEXT_TEXT_PNG_H
#define LULL_TEXT_TEXT_PNG_H

#include <stdio.h>

#include "base/types.h"

#define LULL_TEXT_PNG_COLUMNS 400u
#define LULL_TEXT_PNG_LINES   400u

/* Write the picture. Errors stay in the stream. */
void lull_text_png(FILE *to, const char *text, size_t len);

#endif
