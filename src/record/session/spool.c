#include "record/session/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/io.h"
#include "base/mem.h"

/*
 * Long writes are what these file systems are made for; 4 MiB is a stripe or more on all of them.
 */
#define COPY_BYTES (4u << 20)

/* Numbers of statfs(2) and of the file systems' own sources. */
static const u32 shared_types[] = {
	0x6969,	    /* NFS */
	0x0bd00bd0, /* Lustre */
	0x47504653, /* GPFS, Spectrum Scale */
	0x19830326, /* BeeGFS */
	0x00c36400, /* Ceph */
	0xff534d42, /* CIFS */
	0xfe534d42, /* SMB 2 */
	0x517b,	    /* SMB */
	0x01021997, /* 9P */
	0x6b414653, /* AFS */
};

/* The folder that the path lies in. */
static void folder_of(const char *path, struct lull_str *to)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		lull_str_puts(to, ".");
	else
		lull_str_add(to, path, slash == path ? 1 : (size_t)(slash - path));
}

bool lull_spool_is_shared(const char *path)
{
	struct lull_str folder = LULL_STR_INIT;
	struct statfs s;
	int rc;

	folder_of(path, &folder);
	rc = statfs(folder.at, &s);
	lull_str_release(&folder);
	for (size_t i = 0; !rc && i < LULL_COUNT_OF(shared_types); i++)
		if ((u32)s.f_type == shared_types[i])
			return true;
	return false;
}

int lull_spool_place(const char *folder, const char *path, struct lull_str *to,
		     struct lull_err *err)
{
	const char *slash = strrchr(path, '/');
	const char *tmp = getenv("TMPDIR");

	lull_str_clear(to);
	if (!folder && !lull_spool_is_shared(path)) {
		lull_str_puts(to, path);
		return 0;
	}
	if (!folder)
		folder = tmp && *tmp ? tmp : "/tmp";
	if (access(folder, W_OK | X_OK) != 0)
		return lull_fail_errno(err, "the folder for unfinished reports, %s", folder);
	lull_str_addf(to, "%s/lull-%d-%s", folder, (int)getpid(), slash ? slash + 1 : path);
	return 0;
}

static int copy_all(int from, int to)
{
	u8 *buffer = lull_alloc(COPY_BYTES, 1);
	u64 off = 0;
	ssize_t n;

	while ((n = read(from, buffer, COPY_BYTES)) != 0) {
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || lull_io_write_at(to, buffer, (size_t)n, off))
			break;
		off += (u64)n;
	}
	free(buffer);
	return n ? -1 : lull_io_sync_data(to);
}

static int copy(const char *from, const char *path, struct lull_err *err)
{
	struct lull_str part = LULL_STR_INIT;
	int rc = 0, in = open(from, O_RDONLY | O_CLOEXEC), out = -1;

	lull_str_addf(&part, "%s.part", path);
	if (in >= 0)
		out = lull_io_create(part.at);
	if (in < 0 || out < 0 || copy_all(in, out) || lull_io_rename_synced(part.at, path)) {
		rc = lull_fail_errno(err, "writing %s", path);
		if (out >= 0)
			unlink(part.at);
	}
	if (in >= 0)
		close(in);
	if (out >= 0)
		close(out);
	lull_str_release(&part);
	return rc;
}

int lull_spool_deliver(const char *from, const char *path, struct lull_err *err)
{
	struct lull_err cause;

	if (strcmp(from, path) == 0 || rename(from, path) == 0)
		return 0;
	if (copy(from, path, &cause) != 0)
		return lull_fail(err, cause.code, "%.300s; the complete report is at %s", cause.msg,
				 from);
	unlink(from);
	return 0;
}
