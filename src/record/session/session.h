/*
 * session - the folder in shared memory that one recorder and its agents share.
 *
 * What it gives:  a new folder with a control page and a place for a socket; or the folder of
 *                 another recorder, to communicate with it or to recover its data.
 * Where:          /dev/shm if it has space for buffers, else $TMPDIR or /tmp (slower, still safe).
 * Ownership:      the creator removes the folder with lull_session_remove().
 */
#ifndef LULL_RECORD_SESSION_SESSION_H
#define LULL_RECORD_SESSION_SESSION_H

#include <dirent.h>

#include "base/err.h"
#include "base/vec.h"
#include "wire/wire.h"

#define LULL_SESSION_PATH_MAX 400

struct lull_session {
	char path[LULL_SESSION_PATH_MAX];
	struct lull_control *control; /* mapped; NULL: not open */
	/*
	 * Open while `control` is. The folder may belong to the user of the recorded program, who
	 * can put anything under its names: it is only used by these.
	 */
	int dir_fd, control_fd;
	u32 given_to; /* user, 0: the folder is ours */
};

/*
 * Make a session with this name ("" = one is made up), below the folder `root` ("" = as we see
 * files). `need_bytes` is the room wanted for buffers.
 */
int lull_session_create(struct lull_session *s, const char *root, const char *name, u64 need_bytes,
			struct lull_err *err);

/* Map a session that exists. */
int lull_session_open(struct lull_session *s, const char *path, struct lull_err *err);

/* Give the folder and its control page to another user, for agents in programs of his. */
int lull_session_give(struct lull_session *s, u32 user, u32 group);

/* To list what is in the folder, from its beginning; NULL with errno. The caller closes it. */
DIR *lull_session_files(const struct lull_session *s);

/* Unmap; the folder stays. */
void lull_session_close(struct lull_session *s);

/* Unmap and delete the folder with all that is in it. */
void lull_session_remove(struct lull_session *s);

/* One session found on this machine. */
struct lull_session_entry {
	char path[LULL_SESSION_PATH_MAX];
	char name[64];
	u32 collector_pid;
	u32 owner;		/* of the folder; if that is not us, he wrote what is in it */
	bool is_alive;		/* its recorder runs */
	bool is_unfiled;	/* all of its recording is in shared memory: there is no file yet */
	char report_path[4096]; /* what it writes, "" if nothing */
};

/* Append all sessions of this user to `entries` (of struct lull_session_entry), oldest first. */
void lull_session_list(struct lull_vec *entries);

/* True if a process with this id exists (and is not a zombie). */
bool lull_is_alive(u32 pid);

#endif
