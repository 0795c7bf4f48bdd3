#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/mem.h"

#ifdef LULL_IO_FAULTS
static struct {
	u64 n_calls;
	u64 fail_at;
	int error;
	bool is_lasting;
} faults;

void lull_io_fail_at(u64 n, int error, bool is_lasting)
{
	faults.n_calls = 0;
	faults.fail_at = n;
	faults.error = error;
	faults.is_lasting = is_lasting;
}

u64 lull_io_n_calls(void)
{
	return faults.n_calls;
}

static bool must_fail(void)
{
	faults.n_calls++;
	if (!faults.fail_at || faults.n_calls < faults.fail_at ||
	    (faults.n_calls > faults.fail_at && !faults.is_lasting))
		return false;
	errno = faults.error;
	return true;
}
#else
static bool must_fail(void)
{
	return false;
}
#endif

void lull_io_lock(int fd)
{
	/* Where there are no locks, we do without. */
	(void)flock(fd, LOCK_EX | LOCK_NB);
}

int lull_io_create(const char *path)
{
	int fd;

	if (must_fail())
		return -1;
	fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	if (fd >= 0)
		lull_io_lock(fd);
	return fd;
}

static int write_all(int fd, const u8 *p, size_t len, u64 off)
{
	while (len) {
		ssize_t n = pwrite(fd, p, len, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return -1;
		p += n;
		off += (u64)n;
		len -= (size_t)n;
	}
	return 0;
}

int lull_io_write_at(int fd, const void *bytes, size_t len, u64 off)
{
	if (must_fail()) {
		int error = errno;

		/* A full disk takes what still fits: leave half of it in the file. */
		write_all(fd, bytes, len / 2, off);
		errno = error;
		return -1;
	}
	return write_all(fd, bytes, len, off);
}

i64 lull_io_read_at(int fd, void *bytes, size_t len, u64 off)
{
	u8 *p = bytes;
	size_t got = 0;

	while (got < len) {
		ssize_t n = pread(fd, p + got, len - got, (off_t)(off + got));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -1;
		if (n == 0)
			break;
		got += (size_t)n;
	}
	return (i64)got;
}

void lull_io_start_writeback(int fd, u64 off, u64 len)
{
	/* Only a hint: file systems without it are as good a place for a report. */
	(void)sync_file_range(fd, (off_t)off, (off_t)len, SYNC_FILE_RANGE_WRITE);
}

int lull_io_sync_data(int fd)
{
	return must_fail() ? -1 : fdatasync(fd);
}

int lull_io_truncate(int fd, u64 len)
{
	return must_fail() ? -1 : ftruncate(fd, (off_t)len);
}

/*
 * As well as can be: the rename itself has worked. Some network file systems cannot sync a folder,
 * some folders may not be opened, or nothing may (too many open files). A disk that fails is
 * trouble.
 */
static int sync_folder_of(const char *path)
{
	char *copy = lull_strdup(path);
	int fd = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = fd >= 0 && fsync(fd) != 0 && errno == EIO ? -1 : 0;

	if (fd >= 0)
		close(fd);
	free(copy);
	return rc;
}

int lull_io_rename_synced(const char *from, const char *to)
{
	if (must_fail() || rename(from, to))
		return -1;
	return sync_folder_of(to);
}
