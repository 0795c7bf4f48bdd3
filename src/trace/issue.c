#include "trace/issue.h"

#include <string.h>

static const struct lull_issue_desc issues[] = {
#define ISSUE(id_, name_, severity_, text_) \
	{ .id = (id_), .severity = LULL_SEVERITY_##severity_, .name = #name_, .text = text_ },
#include "wire/issues.def"
#undef ISSUE
};

const struct lull_issue_desc *lull_issue_find(u16 id)
{
	for (size_t i = 0; i < LULL_COUNT_OF(issues); i++)
		if (issues[i].id == id)
			return &issues[i];
	return NULL;
}

const char *lull_severity_name(u8 severity)
{
	static const char *const names[] = { "?", "notice", "loss", "error" };

	return names[severity < LULL_COUNT_OF(names) ? severity : 0];
}

static u32 intern(struct lull_writer *w, const char *text)
{
	return text ? lull_writer_string(w, text, strlen(text)) : 0;
}

u32 lull_issue_write(struct lull_writer *w, enum lull_issue issue, u32 process, u64 count,
		     const char *detail)
{
	const struct lull_issue_desc *desc = lull_issue_find((u16)issue);
	struct lull_issue_row row = {
		.issue = desc->id,
		.name = intern(w, desc->name),
		.severity = desc->severity,
		.process = process,
		.count = count,
		.text = intern(w, desc->text),
		.detail = intern(w, detail),
	};

	return lull_writer_add_dim(w, LULL_TABLE_issue, &row);
}
