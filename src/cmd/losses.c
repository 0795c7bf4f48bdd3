#include "cmd/losses.h"

#include <stdlib.h>

#define LOG_TAG "cmd/losses"

#include "base/log.h"
#include "base/mem.h"
#include "text/term.h"
#include "cmd/info.h"
#include "trace/issue.h"

/* One line for each kind, with the counts of all processes together. */
static void warn_issues(struct lull_reader *r)
{
	u64 *counts = lull_alloc(UINT16_MAX + 1, sizeof(*counts));
	size_t n;
	const struct lull_issue_row *issues = lull_reader_dim(r, LULL_TABLE_issue, &n);

	for (size_t i = 0; i < n; i++) {
		if (issues[i].severity >= LULL_SEVERITY_LOSS)
			counts[issues[i].issue] += issues[i].count;
	}
	for (size_t i = 0; i < n; i++) {
		u64 *count = &counts[issues[i].issue];

		if (*count)
			log_warn("%s (%s: %s)", lull_reader_string(r, issues[i].text, NULL),
				 lull_reader_string(r, issues[i].name, NULL),
				 lull_format_grouped((i64)*count).text);
		*count = 0;
	}
	free(counts);
}

void lull_losses_warn_simulated(struct lull_reader *r)
{
	if (lull_info_is_simulated(r))
		log_warn("simulated device: no GPU did this work, and its times are made up");
}

void lull_losses_warn_cut(struct lull_reader *r, const char *path)
{
	if (!lull_reader_is_sealed(r))
		log_warn("%s has no end: it was cut off after %s, or is still being written; an "
			 "unknown number of events, names and whole tables may be missing; `lull "
			 "recover` makes a report of the rest",
			 path, lull_format_bytes(lull_reader_size_bytes(r)).text);
}

void lull_losses_warn(struct lull_reader *r, const char *path)
{
	lull_losses_warn_simulated(r);
	warn_issues(r);
	lull_losses_warn_cut(r, path);
	if (lull_reader_is_sealed(r) && lull_reader_lost_bytes(r))
		log_warn("%s is damaged: %s could not be read", path,
			 lull_format_bytes(lull_reader_lost_bytes(r)).text);
	if (lull_reader_warning(r))
		log_warn("%s", lull_reader_warning(r));
}

void lull_losses_warn_damage(const struct lull_reader *r, const char *path)
{
	struct lull_str what = LULL_STR_INIT;

	if (lull_reader_name_damage(r, &what))
		log_warn("%s is damaged: %s could not be read, and the answer lacks their rows; "
			 "copy the file again, or record again",
			 path, lull_str_text(&what));
	lull_str_release(&what);
}

void lull_losses_close(struct lull_reader *r, const char *path)
{
	if (r)
		lull_losses_warn_damage(r, path);
	lull_reader_close(r);
}
