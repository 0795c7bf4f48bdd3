#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"

/*
 * The one mutable state of base/: passing a logger to every function would cost more than it
 * explains.
 */
static struct {
	enum lull_log_level level;
	const char *debug_tags;
	void (*warnings)(const char *warning); /* NULL: they are printed */
} state;

void lull_log_init(enum lull_log_level level, const char *debug_tags)
{
	state.level = level;
	state.debug_tags = debug_tags;
}

void lull_log_divert(void (*to)(const char *warning))
{
	state.warnings = to;
}

int lull_log_louder(void *ctx, const char *value, struct lull_err *err)
{
	(void)ctx, (void)value, (void)err;
	if (state.level < LULL_LOG_TRACE)
		state.level++;
	return LULL_OK;
}

static bool is_tag_on(const char *tag)
{
	const char *at = state.debug_tags;

	while (at && *at) {
		size_t len = strcspn(at, ",");

		if (len == strlen(tag) && !strncmp(at, tag, len))
			return true;
		at += len + (at[len] == ',');
	}
	return false;
}

void lull_log(enum lull_log_level level, const char *tag, const char *fmt, ...)
{
	struct lull_str line = LULL_STR_INIT;
	va_list ap;

	if (level > state.level && !is_tag_on(tag))
		return;
	if (level == LULL_LOG_WARN && state.warnings) {
		va_start(ap, fmt);
		lull_str_vaddf(&line, fmt, ap);
		va_end(ap);
		state.warnings(lull_str_text(&line));
		lull_str_release(&line);
		return;
	}
	lull_str_puts(&line, "lull: ");
	if (level == LULL_LOG_WARN)
		lull_str_puts(&line, "warning: ");
	else if (level >= LULL_LOG_DEBUG)
		lull_str_addf(&line, "%s: ", tag);
	va_start(ap, fmt);
	lull_str_vaddf(&line, fmt, ap);
	va_end(ap);
	lull_str_puts(&line, "\n");
	fwrite(line.at, 1, line.len, stderr);
	lull_str_release(&line);
}
