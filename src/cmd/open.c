#include "cmd/open.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "import/import.h"

/* Files of other tools by their names, and what to do if their content is not known. */
static const struct {
	const char *suffix;
	const char *advice; /* %.*s is the path without suffix; NULL if there is none */
} others[] = {
	{ ".nsys-rep",
	  "is in a closed format; `nsys export -t sqlite %.*s.nsys-rep` makes a SQLite file of it "
	  "that lull can read" },
	{ ".qdrep",
	  "is in a closed format; `nsys export -t sqlite %.*s.qdrep` makes a SQLite file of it "
	  "that lull can read" },
	{ ".ncu-rep", "is in a closed format that only its maker's tools can read" },
	{ ".sqlite", NULL },
};

static size_t suffix_at(const char *path, const char *suffix)
{
	size_t len = strlen(path), n = strlen(suffix);

	return len > n && !strcmp(path + len - n, suffix) ? len - n : 0;
}

/* The number of the suffix in `others`, and where it begins; -1 if it is none of them. */
static int find_suffix(const char *path, size_t *at)
{
	for (size_t i = 0; i < LULL_COUNT_OF(others); i++) {
		*at = suffix_at(path, others[i].suffix);
		if (*at)
			return (int)i;
	}
	*at = strlen(path);
	return -1;
}

/* X.lull instead of X or X.nsys-rep that are not there. */
static bool find_ours(const char *path, size_t len, struct lull_str *used)
{
	if (!access(path, F_OK) || suffix_at(path, ".lull"))
		return false;
	lull_str_clear(used);
	lull_str_add(used, path, len);
	lull_str_puts(used, ".lull");
	return !access(used->at, R_OK);
}

int lull_open(const char *path, struct lull_reader **r, struct lull_str *used, struct lull_err *err)
{
	struct lull_str advice = LULL_STR_INIT;
	size_t stem;
	int other = find_suffix(path, &stem), rc;

	if (find_ours(path, stem, used)) {
		fprintf(stderr, "there is no %s; reading %s\n", path, used->at);
	} else {
		lull_str_clear(used);
		lull_str_puts(used, path);
	}
	rc = lull_import_open(used->at, r, err);
	if ((rc == LULL_E_UNSUPPORTED || rc == LULL_E_FORMAT) && other >= 0 &&
	    others[other].advice && !strcmp(used->at, path)) {
		lull_str_addf(&advice, others[other].advice, (int)stem, path);
		rc = lull_fail(err, LULL_E_UNSUPPORTED, "%s %s", path, lull_str_text(&advice));
	}
	lull_str_release(&advice);
	return rc;
}
