#include "import/other_name.h"

#include <string.h>
#include <unistd.h>

#define LOG_TAG "import/other_name"

#include "base/log.h"
#include "base/types.h"

/* Files of other tools by their names, and what to do if their content is not known. */
static const struct other {
	const char *suffix;
	const char *advice; /* %.*s is the path without suffix; NULL if there is none */
} others[] = {
	{ ".nsys-rep", "is in a closed format; `nsys export -t sqlite %.*s.nsys-rep` converts it "
		       "into a SQLite file that lull can read" },
	{ ".qdrep", "is in a closed format; `nsys export -t sqlite %.*s.qdrep` converts it into a "
		    "SQLite file that lull can read" },
	{ ".ncu-rep", "is in a closed format that only the vendor's tools can read" },
	{ ".sqlite", NULL },
};

static size_t suffix_at(const char *path, const char *suffix)
{
	size_t len = strlen(path), n = strlen(suffix);

	return len > n && !strcmp(path + len - n, suffix) ? len - n : 0;
}

/* Whose name this is, and where its suffix begins; NULL if it is none of them. */
static const struct other *find(const char *path, size_t *at)
{
	for (size_t i = 0; i < LULL_COUNT_OF(others); i++) {
		*at = suffix_at(path, others[i].suffix);
		if (*at)
			return &others[i];
	}
	*at = strlen(path);
	return NULL;
}

void lull_other_name(const char *path, struct lull_str *used)
{
	size_t stem;

	lull_str_clear(used);
	find(path, &stem);
	if (*path && access(path, F_OK) && !suffix_at(path, ".lull")) {
		lull_str_add(used, path, stem);
		lull_str_puts(used, ".lull");
		if (!access(used->at, R_OK)) {
			log_warn("%s does not exist; reading %s", path, used->at);
			return;
		}
		lull_str_clear(used);
	}
	lull_str_puts(used, path);
}

int lull_other_advice(const char *path, struct lull_err *err)
{
	struct lull_str advice = LULL_STR_INIT;
	const struct other *other;
	size_t stem;

	other = find(path, &stem);
	if ((err->code != LULL_E_UNSUPPORTED && err->code != LULL_E_FORMAT) || !other ||
	    !other->advice)
		return err->code;
	lull_str_addf(&advice, other->advice, (int)stem, path);
	lull_fail(err, LULL_E_UNSUPPORTED, "%s %s", path, lull_str_text(&advice));
	lull_str_release(&advice);
	return err->code;
}
