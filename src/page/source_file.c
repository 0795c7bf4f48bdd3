#include "page/source_file.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/types.h"

#define MAX_BYTES (4u << 20)
#define MAX_PART  255u

/* Open `path` below a folder, part by part; -1 if it is not there or leads out of it. */
static int open_below(int folder, const char *path)
{
	int at = dup(folder);

	while (at >= 0) {
		size_t len = strcspn(path, "/");
		bool is_last = !path[len];
		char part[MAX_PART + 1];
		int next;

		if (!len || len > MAX_PART || !strncmp(path, "..", len) ||
		    !strncmp(path, ".", len)) {
			close(at);
			return -1;
		}
		memcpy(part, path, len);
		part[len] = '\0';
		/* Not blocking: a pipe of that name must not hold the page up. */
		next = openat(at, part,
			      O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK |
				      (is_last ? 0 : O_DIRECTORY));
		close(at);
		if (is_last || next < 0)
			return next;
		at = next;
		path += len + 1;
	}
	return -1;
}

static int open_source(const char *folder, const char *file)
{
	int dir = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC), fd = -1;

	for (const char *at = file; dir >= 0 && fd < 0 && at; at = strchr(at, '/')) {
		at += strspn(at, "/");
		if (*at)
			fd = open_below(dir, at);
	}
	if (dir >= 0)
		close(dir);
	return fd;
}

static int read_all(int fd, const char *file, struct lull_str *text, struct lull_err *err)
{
	char part[16384];
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_size > MAX_BYTES)
		return lull_fail(err, LULL_E_UNSUPPORTED, "%s is no file, or too large to show",
				 file);
	while ((n = read(fd, part, sizeof(part))) > 0 && text->len <= MAX_BYTES) {
		if (memchr(part, '\0', (size_t)n))
			return lull_fail(err, LULL_E_UNSUPPORTED, "%s is no text", file);
		lull_str_add(text, part, (size_t)n);
	}
	return n < 0 ? lull_fail(err, LULL_E_IO, "%s cannot be read", file) : LULL_OK;
}

int lull_source_read(const char *folder, const char *file, struct lull_str *text,
		     struct lull_err *err)
{
	int fd = open_source(folder, file), rc;

	if (fd < 0)
		return lull_fail(err, LULL_E_NOT_FOUND, "%s is not in %s", file, folder);
	rc = read_all(fd, file, text, err);
	close(fd);
	return rc;
}
