/*
 * lend - the agent's file for a process that sees other files than we do, such as in a container.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "attach/attach.h"
#include "base/hash.h"

/* Folders from which programs may load files, as a rule. */
static const char *const folders[] = { "/tmp", "/var/tmp", "/dev/shm", "/run" };

static bool can_run_from(const char *path)
{
	struct statvfs st;

	return access(path, W_OK | X_OK) == 0 && statvfs(path, &st) == 0 &&
	       !(st.f_flag & ST_NOEXEC);
}

/* The file is there already, ours, and the same to the last byte. */
static bool is_there(const char *path, const u8 *bytes, size_t n_bytes)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	struct stat st;
	u8 *there = MAP_FAILED;
	bool is_same = false;

	if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
	    !(st.st_mode & 022) && (size_t)st.st_size == n_bytes)
		there = mmap(NULL, n_bytes, PROT_READ, MAP_PRIVATE, fd, 0);
	if (there != MAP_FAILED) {
		is_same = memcmp(there, bytes, n_bytes) == 0;
		munmap(there, n_bytes);
	}
	if (fd >= 0)
		close(fd);
	return is_same;
}

/* Whole under another name first: nobody loads a part of it. */
static bool write_copy(const char *path, const u8 *bytes, size_t n_bytes)
{
	char part[512];
	size_t done = 0;
	ssize_t n = 1;
	int fd;

	snprintf(part, sizeof(part), "%.480s.%d", path, (int)getpid());
	fd = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0755);
	if (fd < 0)
		return false;
	for (; done < n_bytes && n > 0; done += (size_t)n)
		n = write(fd, bytes + done, n_bytes - done);
	fchmod(fd, 0755);
	close(fd);
	if (n > 0 && rename(part, path) == 0)
		return true;
	unlink(part);
	return false;
}

static int copy_to(pid_t pid, const u8 *bytes, size_t n_bytes, struct lull_str *path,
		   struct lull_err *err)
{
	char there[400];

	for (size_t i = 0; i < LULL_COUNT_OF(folders); i++) {
		snprintf(there, sizeof(there), "/proc/%d/root%s", (int)pid, folders[i]);
		if (!can_run_from(there))
			continue;
		lull_str_clear(path);
		lull_str_addf(path, "%s/.lull-agent-%u-%016llx.so", folders[i], geteuid(),
			      (unsigned long long)lull_hash((const char *)bytes, n_bytes));
		snprintf(there, sizeof(there), "/proc/%d/root%s", (int)pid, path->at);
		if (is_there(there, bytes, n_bytes) || write_copy(there, bytes, n_bytes))
			return 0;
	}
	return lull_fail(
		err, LULL_E_UNSUPPORTED,
		"process %d sees other files than lull does, and none of its folders /tmp, "
		"/var/tmp, /dev/shm and /run can take the agent; run lull inside of its "
		"container",
		(int)pid);
}

int lull_attach_lend(pid_t pid, const char *agent_path, struct lull_str *path, struct lull_err *err)
{
	int fd = open(agent_path, O_RDONLY | O_CLOEXEC), rc;
	u8 *bytes = MAP_FAILED;
	struct stat st;

	if (fd >= 0 && fstat(fd, &st) == 0)
		bytes = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (bytes == MAP_FAILED)
		rc = lull_fail_errno(err, "reading '%s'", agent_path);
	else
		rc = copy_to(pid, bytes, (size_t)st.st_size, path, err);
	if (bytes != MAP_FAILED)
		munmap(bytes, (size_t)st.st_size);
	if (fd >= 0)
		close(fd);
	return rc;
}
