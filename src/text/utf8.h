/*
 * utf8 - which bytes are text, for formats that refuse others.
 */
#ifndef LULL_TEXT_UTF8_H
#define LULL_TEXT_UTF8_H

#include "base/str.h"
#include "base/types.h"

#define LULL_UTF8_BAD "\xef\xbf\xbd" /* U+FFFD, the replacement for an invalid byte */

/* Bytes of the valid character at `s`, of which `left` > 0 bytes are there; 0 if there is none. */
size_t lull_utf8_len(const u8 *s, size_t left);

/* How many of the bytes are valid text, from the first on. */
size_t lull_utf8_valid(const char *text, size_t len);

/* Append the text with LULL_UTF8_BAD for each byte that is none. */
void lull_utf8_add(struct lull_str *to, const char *text, size_t len);

#endif
