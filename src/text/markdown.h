/*
 * markdown - the manual pages of doc/ as plain text, as `man` would show them.
 *
 * Understands what these pages use: headings, paragraphs, lists, definitions (a term, then a line
 * that begins with a colon), tables, code that is indented or fenced, `code`, *emphasis*,
 * **strength** and links. All else is text.
 *
 * Why not tools/md2man and man(1): containers have neither man nor troff, and lull help has to work
 * there; and md2man is a script that `make install` can run for another architecture. No library
 * that is linked reads Markdown. That both show the same text is a test (test_manual.py).
 */
#ifndef LULL_TEXT_MARKDOWN_H
#define LULL_TEXT_MARKDOWN_H

#include <stdio.h>

#include "base/types.h"

/*
 * Print the page so that no line but one of code passes `width` columns. `is_styled`: bold and
 * underlined by escape sequences, else letters alone.
 */
void lull_markdown_print(FILE *to, const char *text, int width, bool is_styled);

#endif
