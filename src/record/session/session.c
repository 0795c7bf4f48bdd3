#include "record/session/session.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/sort.h"
#include "base/time.h"
#include "record/process/pidns.h"

#define PREFIX "lull-"

/* Folders that may hold sessions, best first. */
static const char *place(int ix)
{
	const char *tmp = getenv("TMPDIR");

	switch (ix) {
	case 0:
		return "/dev/shm";
	case 1:
		return tmp && *tmp ? tmp : "/tmp";
	case 2:
		return tmp && *tmp && strcmp(tmp, "/tmp") != 0 ? "/tmp" : NULL;
	default:
		return NULL;
	}
}

/*
 * Shared memory smaller than this is the program's alone: containers have 64 MiB by default,
 * which loaders of data fill up, and then fall by SIGBUS.
 */
#define SMALL_BYTES (512ull << 20)

static bool has_room(const char *folder, u64 need_bytes, u64 least_bytes)
{
	struct statvfs st;

	if (access(folder, W_OK | X_OK) != 0 || statvfs(folder, &st) != 0)
		return false;
	return (u64)st.f_bavail * st.f_frsize >= need_bytes &&
	       (u64)st.f_blocks * st.f_frsize >= least_bytes;
}

/* Set `to` to the best folder with so much room; false if none has it. */
static bool find_place(const char *root, u64 need_bytes, char *to, size_t room)
{
	const char *folder;

	for (int i = 0; (folder = place(i)) != NULL; i++) {
		snprintf(to, room, "%s%s", root, folder);
		if (has_room(to, need_bytes, i ? 0 : SMALL_BYTES))
			return true;
	}
	snprintf(to, room, "%s%s", root, place(0));
	return has_room(to, need_bytes, 0);
}

/* No folder can be used: is there one at all? */
static int refuse_places(const char *root, u64 need_bytes, struct lull_err *err)
{
	char path[LULL_SESSION_PATH_MAX / 2];
	const char *folder;

	for (int i = 0; (folder = place(i)) != NULL; i++) {
		snprintf(path, sizeof(path), "%s%s", root, folder);
		if (access(path, W_OK | X_OK) == 0)
			return lull_fail(err, LULL_E_IO,
					 "no space for buffers: neither /dev/shm nor /tmp has %llu "
					 "MiB free; set TMPDIR",
					 (unsigned long long)(need_bytes >> 20));
	}
	return lull_fail(err, LULL_E_IO,
			 "no place for buffers: neither /dev/shm nor /tmp can be written to%s; "
			 "make one of them, or set TMPDIR to a folder that can",
			 *root ? " in the root of the program" : "");
}

static int map_control(struct lull_session *s, int flags, struct lull_err *err)
{
	struct stat st;
	void *at;

	s->control_fd = openat(s->dir_fd, "control",
			       O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | flags, 0600);
	if (s->control_fd < 0)
		return lull_fail_errno(err, "opening session '%s/control'", s->path);
	if ((flags & O_CREAT) && ftruncate(s->control_fd, sizeof(*s->control)) != 0)
		return lull_fail_errno(err, "sizing '%s/control'", s->path);
	if (fstat(s->control_fd, &st) != 0 || !S_ISREG(st.st_mode) ||
	    (size_t)st.st_size < sizeof(*s->control))
		return lull_fail(err, LULL_E_FORMAT,
				 "'%s/control' is not a session of this version", s->path);
	at = mmap(NULL, sizeof(*s->control), PROT_READ | PROT_WRITE, MAP_SHARED, s->control_fd, 0);
	if (at == MAP_FAILED)
		return lull_fail_errno(err, "mapping '%s/control'", s->path);
	s->control = at;
	return 0;
}

/* Open the folder at s->path and map its control page; flags are for the latter. */
static int open_folder(struct lull_session *s, int flags, struct lull_err *err)
{
	int rc;

	s->control_fd = -1;
	s->dir_fd = open(s->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (s->dir_fd < 0)
		return lull_fail_errno(err, "opening session '%s'", s->path);
	rc = map_control(s, flags, err);
	if (!rc)
		return 0;
	if (s->control_fd >= 0 && (flags & O_CREAT))
		unlinkat(s->dir_fd, "control", 0);
	if (s->control_fd >= 0)
		close(s->control_fd);
	close(s->dir_fd);
	return rc;
}

int lull_session_create(struct lull_session *s, const char *root, const char *name, u64 need_bytes,
			struct lull_err *err)
{
	char folder[LULL_SESSION_PATH_MAX / 2];
	void (*on_limit)(int);
	int rc;

	memset(s, 0, sizeof(*s));
	if (!find_place(root, need_bytes, folder, sizeof(folder)))
		return refuse_places(root, need_bytes, err);
	snprintf(s->path, sizeof(s->path), "%s/" PREFIX "%u-%u-%llx", folder, getuid(), getpid(),
		 (unsigned long long)lull_clock_ns(CLOCK_REALTIME));
	if (mkdir(s->path, 0700) != 0)
		return lull_fail_errno(err, "creating '%s'", s->path);
	/* A limit on the size of files is an error here, and the program's own affair later. */
	on_limit = signal(SIGXFSZ, SIG_IGN);
	rc = open_folder(s, O_CREAT | O_EXCL, err);
	signal(SIGXFSZ, on_limit);
	if (rc) {
		rmdir(s->path);
		return rc;
	}
	s->control->collector_pid = (u32)getpid();
	s->control->collector_pid_ns = lull_pidns_own();
	if (*name)
		snprintf(s->control->session_name, sizeof(s->control->session_name), "%s", name);
	else
		snprintf(s->control->session_name, sizeof(s->control->session_name), "lull-%u",
			 getpid());
	s->control->magic = LULL_WIRE_MAGIC;
	return 0;
}

int lull_session_open(struct lull_session *s, const char *path, struct lull_err *err)
{
	size_t len = strlen(path);
	int rc;

	memset(s, 0, sizeof(*s));
	if (len >= sizeof(s->path))
		return lull_fail(err, LULL_E_USAGE, "session path '%s' is too long", path);
	memcpy(s->path, path, len + 1);
	rc = open_folder(s, 0, err);
	if (s->control && s->control->magic != LULL_WIRE_MAGIC) {
		lull_session_close(s);
		return lull_fail(err, LULL_E_FORMAT, "'%s' is a session of another version of lull",
				 path);
	}
	return rc;
}

int lull_session_give(struct lull_session *s, u32 user, u32 group)
{
	if (s->given_to == user)
		return 0;
	if (fchown(s->control_fd, user, group) != 0 || fchown(s->dir_fd, user, group) != 0)
		return LULL_E_IO;
	s->given_to = user;
	return 0;
}

void lull_session_close(struct lull_session *s)
{
	if (!s->control)
		return;
	munmap(s->control, sizeof(*s->control));
	close(s->control_fd);
	close(s->dir_fd);
	s->control = NULL;
}

DIR *lull_session_files(const struct lull_session *s)
{
	int fd = openat(s->dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);

	if (fd >= 0 && !dir)
		close(fd);
	return dir;
}

void lull_session_remove(struct lull_session *s)
{
	DIR *dir = s->control ? lull_session_files(s) : NULL;
	struct dirent *e;

	while (dir && (e = readdir(dir)))
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			unlinkat(dirfd(dir), e->d_name, 0);
	if (dir)
		closedir(dir);
	if (s->control)
		rmdir(s->path);
	lull_session_close(s);
}

bool lull_is_alive(u32 pid)
{
	char path[64], text[512];
	const char *state;
	ssize_t n;
	int fd;

	if (kill((pid_t)pid, 0) != 0 && errno == ESRCH)
		return false;
	snprintf(path, sizeof(path), "/proc/%u/stat", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return errno != ENOENT;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	/* The name in parentheses may hold anything; the state follows the last one. */
	state = strrchr(text, ')');
	return !(state && (state[2] == 'Z' || state[2] == 'X'));
}

static void add_entry(struct lull_vec *entries, const char *folder, const char *name)
{
	struct lull_session_entry *e;
	char path[LULL_SESSION_PATH_MAX];
	struct lull_session s;
	struct lull_err err;
	struct stat st;

	if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
		return;
	if (lull_session_open(&s, path, &err) != 0 || !s.control)
		return;
	e = lull_vec_push(entries);
	memcpy(e->path, s.path, sizeof(e->path));
	memcpy(e->name, s.control->session_name, sizeof(e->name) - 1);
	e->collector_pid = s.control->collector_pid;
	e->owner = fstat(s.dir_fd, &st) == 0 ? st.st_uid : UINT32_MAX;
	e->is_alive = lull_is_alive(e->collector_pid);
	e->is_unfiled =
		atomic_load(&s.control->last_record) > atomic_load(&s.control->filed_record);
	if (e->is_unfiled)
		memcpy(e->report_path, s.control->next_report_path,
		       sizeof(s.control->next_report_path) - 1);
	else
		memcpy(e->report_path, s.control->report_path, sizeof(e->report_path) - 1);
	lull_session_close(&s);
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct lull_session_entry *)a)->path,
		      ((const struct lull_session_entry *)b)->path);
}

void lull_session_list(struct lull_vec *entries)
{
	char mine[64];

	snprintf(mine, sizeof(mine), PREFIX "%u-", getuid());
	for (int i = 0; place(i); i++) {
		/* TMPDIR may be the first place, too. */
		bool is_again = i && strcmp(place(i), place(0)) == 0;
		DIR *dir = is_again ? NULL : opendir(place(i));
		struct dirent *e;

		while (dir && (e = readdir(dir)))
			if (strncmp(e->d_name, mine, strlen(mine)) == 0)
				add_entry(entries, place(i), e->d_name);
		if (dir)
			closedir(dir);
	}
	if (entries->n)
		lull_sort(entries->at, entries->n, entries->elem_bytes, by_path);
}
