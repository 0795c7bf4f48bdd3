#include "base/err.h"

#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int lull_fail(struct lull_err *err, enum lull_code code, const char *fmt, ...)
{
	va_list ap;

	err->code = code;
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	return code;
}

int lull_fail_errno(struct lull_err *err, const char *fmt, ...)
{
	int saved = errno;
	size_t n;
	va_list ap;

	err->code = LULL_E_IO;
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	n = strlen(err->msg);
	snprintf(err->msg + n, sizeof(err->msg) - n, ": %s", strerror(saved));
	return LULL_E_IO;
}

int lull_err_wrap(struct lull_err *err, const char *fmt, ...)
{
	char inner[sizeof(err->msg)];
	size_t n;
	va_list ap;

	memcpy(inner, err->msg, sizeof(inner));
	va_start(ap, fmt);
	vsnprintf(err->msg, sizeof(err->msg), fmt, ap);
	va_end(ap);
	n = strlen(err->msg);
	snprintf(err->msg + n, sizeof(err->msg) - n, ": %s", inner);
	return err->code;
}

int lull_err_flush(struct lull_err *err, FILE *to, const char *what)
{
	/* The errno of an earlier write is gone, but what it could not write is written again. */
	errno = 0;
	if (!fflush(to) && !ferror(to))
		return LULL_OK;
	return errno ? lull_fail_errno(err, "writing %s", what)
		     : lull_fail(err, LULL_E_IO, "%s could not be written completely", what);
}

/* Folders that take no new files, such as /proc, also say that the file does not exist. */
static bool has_folder(const char *path, int n)
{
	char folder[PATH_MAX];

	snprintf(folder, sizeof(folder), "%.*s", n, path);
	return access(folder, F_OK) == 0;
}

int lull_fail_creating(struct lull_err *err, const char *path)
{
	const char *slash = strrchr(path, '/');
	int n = slash && slash > path ? (int)(slash - path) : 0, saved = errno;
	bool is_missing = saved == ENOENT && n && !has_folder(path, n);

	errno = saved;
	if (!is_missing)
		return lull_fail_errno(err, "creating %s", path);
	return lull_fail(err, LULL_E_IO, "there is no folder %.*s; make it first: mkdir -p %.*s", n,
			 path, n, path);
}
