/*
 * file - small text files of the system, such as those of /proc and /sys, as a whole.
 *
 * They report no size, may be missing on another machine, and often only one line is needed; so the
 * functions only say whether something was read.
 */
#ifndef LULL_BASE_FILE_H
#define LULL_BASE_FILE_H

#include "base/str.h"
#include "base/types.h"

/* Set `text` to the file's content, at most 64 KiB of it. False (and "") if it cannot be read. */
bool lull_file_read(const char *path, struct lull_str *text);

/* Set `text` to the file's first line without its end. False (and "") if it cannot be read. */
bool lull_file_line(const char *path, struct lull_str *text);

/* The first line that a shell command prints; false if it fails or prints nothing. */
bool lull_file_ask(const char *command, struct lull_str *line);

/* The whole number at the start of the file; false if there is none. */
bool lull_file_i64(const char *path, i64 *value);

/*
 * Append the value of the first line "key<separator>value" of `text` to `to`, without the blanks
 * and double quotes around it. False if no line begins with the key.
 */
bool lull_file_value(const char *text, const char *key, char separator, struct lull_str *to);

#endif
