#include "record/session/naming.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define SUFFIX		".lull"
#define DEFAULT_PATTERN "report%n"

/* What people have in their scripts: the report gets our suffix instead. */
static const char *const foreign_suffixes[] = { ".nsys-rep", ".ncu-rep" };

/* A folder with more numbered reports than this is a mistake in the pattern, not a habit. */
#define MAX_NUMBER 100000

/* Append the value of the variable named in "{VAR}..."; *at moves after the brace. */
static int expand_variable(const char **at, struct lull_str *to, struct lull_err *err)
{
	const char *end = **at == '{' ? strchr(*at, '}') : NULL;
	const char *value;
	char *name;

	if (!end)
		return lull_fail(err, LULL_E_USAGE,
				 "%%q needs a variable in braces, such as %%q{HOSTNAME}");
	name = lull_strndup(*at + 1, (size_t)(end - *at - 1));
	value = getenv(name);
	if (value)
		lull_str_puts(to, value);
	else
		lull_fail(err, LULL_E_USAGE, "environment variable %s is not set", name);
	free(name);
	*at = end + 1;
	return value ? LULL_OK : err->code;
}

static void add_host(struct lull_str *to)
{
	char host[256] = "";

	gethostname(host, sizeof(host) - 1);
	lull_str_puts(to, host);
}

/* `*at` points after the percent sign and moves after what was used. */
static int expand_one(const char **at, pid_t pid, u32 n, struct lull_str *to, struct lull_err *err)
{
	char letter = *(*at)++;

	switch (letter) {
	case 'p':
		lull_str_addf(to, "%d", (int)pid);
		return LULL_OK;
	case 'h':
		add_host(to);
		return LULL_OK;
	case 'n':
		lull_str_addf(to, "%u", n);
		return LULL_OK;
	case 'q':
		return expand_variable(at, to, err);
	case '%':
		lull_str_puts(to, "%");
		return LULL_OK;
	case '\0':
		return lull_fail(err, LULL_E_USAGE,
				 "single %% at the end; write %%%% for a percent sign");
	default:
		return lull_fail(err, LULL_E_USAGE,
				 "%%%c is not supported; use %%p %%h %%n %%q{VAR} or %%%%", letter);
	}
}

int lull_naming_expand(const char *pattern, pid_t pid, u32 n, struct lull_str *to,
		       struct lull_err *err)
{
	const char *at = pattern;

	while (*at) {
		size_t len = strcspn(at, "%");

		lull_str_add(to, at, len);
		at += len;
		if (*at && (at++, expand_one(&at, pid, n, to, err)))
			return lull_err_wrap(err, "output name \"%s\"", pattern);
	}
	return LULL_OK;
}

/* True if the text ends so. */
static bool has_suffix(const struct lull_str *s, const char *suffix)
{
	size_t n = strlen(suffix);

	return s->len >= n && strcmp(s->at + s->len - n, suffix) == 0;
}

/* True if the pattern has one of these letters after a percent sign. */
static bool has_letter(const char *pattern, const char *letters)
{
	for (const char *at = pattern; (at = strchr(at, '%')) && at[1]; at += 2) {
		if (strchr(letters, at[1]))
			return true;
	}
	return false;
}

/* What tells this report from those of other ranks and from earlier ones of the same run. */
static void add_distinction(const struct lull_naming *naming, const char *pattern, u32 n,
			    struct lull_str *path)
{
	if (naming->rank && naming->rank->rank >= 0 && !has_letter(pattern, "pq")) {
		lull_str_addf(path, "-rank%" PRId64, naming->rank->rank);
		if (naming->n_restarts > 0)
			lull_str_addf(path, "-restart%" PRId64, naming->n_restarts);
	}
	if (naming->number && !has_letter(pattern, "n"))
		lull_str_addf(path, "-%u", naming->number + n - 1);
}

static void drop_suffix(struct lull_str *path, const char *suffix)
{
	if (!has_suffix(path, suffix))
		return;
	path->len -= strlen(suffix);
	path->at[path->len] = '\0';
}

static int expand_path(const struct lull_naming *naming, const char *pattern, u32 n,
		       struct lull_str *path, struct lull_err *err)
{
	lull_str_clear(path);
	if (lull_naming_expand(pattern, naming->pid, n, path, err))
		return err->code;
	if (!path->len || path->at[path->len - 1] == '/')
		return lull_fail(err, LULL_E_USAGE, "output name \"%s\" names no file", pattern);
	for (size_t i = 0; i < LULL_COUNT_OF(foreign_suffixes); i++)
		drop_suffix(path, foreign_suffixes[i]);
	drop_suffix(path, SUFFIX);
	add_distinction(naming, pattern, n, path);
	lull_str_puts(path, SUFFIX);
	return LULL_OK;
}

static bool is_folder(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

int lull_naming_format(const struct lull_naming *naming, struct lull_str *path,
		       struct lull_err *err)
{
	const char *pattern = naming->pattern ? naming->pattern : DEFAULT_PATTERN;

	for (u32 n = 1; n <= MAX_NUMBER; n++) {
		if (expand_path(naming, pattern, n, path, err))
			return err->code;
		if (access(path->at, F_OK) &&
		    !(naming->is_taken && naming->is_taken(naming->ctx, path->at)))
			return LULL_OK;
		if (has_letter(pattern, "n") || (naming->number && !naming->is_overwriting) ||
		    (naming->number && naming->is_taken && naming->is_taken(naming->ctx, path->at)))
			continue;
		if (is_folder(path->at))
			return lull_fail(err, LULL_E_IO, "%s is a folder", path->at);
		if (naming->is_overwriting)
			return LULL_OK;
		/* Also read by those who have no -f: lull start, and the Python API. */
		return lull_fail(err, LULL_E_IO,
				 "%s exists already; remove it, or let %%n in the name count up; "
				 "profile, launch, attach and kernel overwrite it with -f",
				 path->at);
	}
	return lull_fail(err, LULL_E_IO, "output name \"%s\": %d reports exist already", pattern,
			 MAX_NUMBER);
}
