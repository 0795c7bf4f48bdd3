/*
 * names: the texts of names that records carry.
 *
 *	names?id=5,7-9,1073741825	an array of strings, in this order
 *
 * Texts are cut at 4096 bytes: templates make names of many kilobytes, and nobody reads them whole
 * in a picture.
 */
#include "page/page.h"

#include <stdlib.h>

#include "base/str.h"
#include "timeline/name.h"

#define MAX_NAMES     4096u
#define MAX_NAME_TEXT 4096u

static void put_name(struct lull_json *j, struct lull_reader *r, u32 id, struct lull_str *text)
{
	lull_str_clear(text);
	lull_name_text(text, r, id);
	lull_json_bytes(j, lull_str_text(text),
			text->len < MAX_NAME_TEXT ? text->len : MAX_NAME_TEXT);
}

static int run(struct lull_question *q, struct lull_err *err)
{
	const char *at = lull_args_get(q->args, "id");
	struct lull_str text = LULL_STR_INIT;
	struct lull_json j;
	size_t n = 0;
	int rc = LULL_OK;

	lull_json_init(&j, q->to);
	lull_json_array(&j);
	while (!rc && at && *at) {
		char *end;
		u64 first = strtoull(at, &end, 10), last = first;

		if (*end == '-')
			last = strtoull(end + 1, &end, 10);
		if (end == at || last > UINT32_MAX || first > last || (*end && *end != ','))
			rc = lull_fail(err, LULL_E_USAGE, "id is not a list of name ids");
		else if (last - first >= MAX_NAMES || (n += last - first + 1) > MAX_NAMES)
			rc = lull_fail(err, LULL_E_UNSUPPORTED, "more than %u names", MAX_NAMES);
		for (; !rc && first <= last; first++)
			put_name(&j, q->reader, (u32)first, &text);
		at = *end ? end + 1 : end;
	}
	lull_json_end(&j);
	lull_str_release(&text);
	return rc;
}

const struct lull_answer lull_answer_names = {
	.name = "names",
	.type = "application/json",
	.run = run,
};
