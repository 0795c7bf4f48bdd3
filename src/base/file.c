#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_BYTES (64u << 10)

bool lull_file_read(const char *path, struct lull_str *text)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	char chunk[4096];
	ssize_t n = -1;

	lull_str_clear(text);
	if (fd < 0)
		return false;
	while (text->len < MAX_BYTES) {
		n = read(fd, chunk, sizeof(chunk));
		if (n <= 0 && !(n < 0 && errno == EINTR))
			break;
		if (n > 0)
			lull_str_add(text, chunk, (size_t)n);
	}
	close(fd);
	return n >= 0;
}

bool lull_file_line(const char *path, struct lull_str *text)
{
	if (!lull_file_read(path, text) || !text->len)
		return false;
	text->len = strcspn(text->at, "\n");
	text->at[text->len] = '\0';
	return true;
}

bool lull_file_i64(const char *path, i64 *value)
{
	struct lull_str text = LULL_STR_INIT;
	char *end = NULL;
	long long v = 0;

	if (lull_file_line(path, &text)) {
		v = strtoll(text.at, &end, 10);
		if (end == text.at)
			end = NULL;
	}
	lull_str_release(&text);
	if (end)
		*value = v;
	return end != NULL;
}

static void add_trimmed(struct lull_str *to, const char *from, size_t len)
{
	while (len && strchr(" \t\"", *from)) {
		from++;
		len--;
	}
	while (len && strchr(" \t\"", from[len - 1]))
		len--;
	lull_str_add(to, from, len);
}

bool lull_file_value(const char *text, const char *key, char separator, struct lull_str *to)
{
	size_t key_len = strlen(key);

	while (*text) {
		size_t len = strcspn(text, "\n");
		const char *at = text + key_len;

		if (len > key_len && !strncmp(text, key, key_len)) {
			at += strspn(at, " \t");
			if (*at == separator) {
				add_trimmed(to, at + 1, len - (size_t)(at + 1 - text));
				return true;
			}
		}
		text += len + (text[len] == '\n');
	}
	return false;
}

bool lull_file_ask(const char *command, struct lull_str *line)
{
	char text[4096] = "";
	FILE *pipe = popen(command, "re");

	lull_str_clear(line);
	if (!pipe)
		return false;
	if (fgets(text, sizeof(text), pipe))
		lull_str_add(line, text, strcspn(text, "\n"));
	return !pclose(pipe) && line->len;
}
