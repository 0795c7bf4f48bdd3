/*
 * library: calls of exported functions of libraries that the user names (--trace-library).
 *
 * What to watch comes in the control page, a line "LIBRARY:PATTERN" for each; both may hold * and
 * ?. How it is done: lib.h.
 */
#include "agent/core/source.h"

#include "agent/core/loaded.h"
#include "agent/calls/lib.h"

/* Does the text match? `end` is one past the pattern's last character. */
static bool is_match(const char *pattern, const char *end, const char *text)
{
	const char *star = NULL, *from = NULL;

	while (*text) {
		if (pattern < end && *pattern == '*') {
			star = ++pattern;
			from = text;
		} else if (pattern < end && (*pattern == '?' || *pattern == *text)) {
			pattern++;
			text++;
		} else if (star) {
			pattern = star;
			text = ++from;
		} else {
			return false;
		}
	}
	while (pattern < end && *pattern == '*')
		pattern++;
	return pattern == end;
}

/* libfoo.so also means libfoo.so.3: versions are the packager's business. */
static bool is_library(const char *pattern, const char *end, const char *path)
{
	const char *name = lull_loaded_file_name(path);
	size_t n = (size_t)(end - pattern);

	if (!*name)
		return false;
	return is_match(pattern, end, name) ||
	       (n < strlen(name) && memcmp(name, pattern, n) == 0 && name[n] == '.');
}

struct lull_lib_want lull_library_wants(const char *path, const char *name)
{
	const char *at = lull_agent.control->libraries;
	const char *stop = at + sizeof(lull_agent.control->libraries);
	struct lull_lib_want want = { 0 };

	if (!(lull_agent.control->sources & LULL_SOURCE_LIBRARY))
		return want;
	while (at < stop && *at && !want.is_wanted) {
		const char *end = strchr(at, '\n');
		const char *colon = strchr(at, ':');

		if (!end || !colon || colon > end)
			break;
		want.is_wanted =
			is_library(at, colon, path) && (!name || is_match(colon + 1, end, name));
		at = end + 1;
	}
	return want;
}

const struct lull_source lull_source_library = {
	.start = lull_lib_start,
	.is_of_each_fork = true,
	.loaded = lull_lib_scan,
	.withdraw = lull_lib_withdraw,
};
