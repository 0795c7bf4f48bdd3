/*
 * agent - the part of lull inside the recorded program: one per process image, passive until a
 * recording starts.
 *
 * State:    lull_agent, the agent's only mutable file-scope data. `control` is never NULL: without
 *           a session it points to a zeroed page, so hooks need no check for that.
 * Life:     OFF -> (constructor finds LULL_SESSION) -> ON. A forked child starts again with its
 *           own image. The agent does not return to OFF: control->record alone decides what is
 *           recorded. The exception is `lull attach`: the agent comes into a running program,
 *           leaves it (OFF), and may come again (late.c).
 * Errors:   counted with lull_issue(); never printed, never fatal.
 */
#ifndef LULL_AGENT_CORE_AGENT_H
#define LULL_AGENT_CORE_AGENT_H

#include "base/types.h"
#include "wire/wire.h"

struct lull_thread;

/*
 * On variables that each start writes: they come together, in the page after the data that the
 * loader has relocated (the Makefile sorts sections by name). Each page that is written costs a
 * short process a microsecond or two, and its parent's fork something, too.
 */
#define LULL_EARLY	 __attribute__((section(".bss.0early")))
#define LULL_EARLY_LARGE __attribute__((section(".bss.0large"))) /* only its beginning is */

/*
 * On functions that each start, exec or end calls: the linker puts this section before other code,
 * beside the files that the Makefile names first.
 */
#define LULL_AT_START __attribute__((section(".text.startup")))

/* What must not survive a fork; lives in memory the kernel wipes in the child. */
struct lull_agent_live {
	_Atomic u32 state; /* enum lull_agent_state */
	/*
	 * A forked child that has no image yet, since it may be about to become another program:
	 * its number, and when it began; else 0.
	 */
	_Atomic u32 waiting_pid;
	_Atomic u64 fork_counter;
	_Atomic u64 capture_id; /* id of the start/end range that holds the recording, 0 = none */
};

enum lull_agent_state {
	LULL_AGENT_OFF = 0, /* also: just forked */
	LULL_AGENT_STARTING = 1,
	LULL_AGENT_ON = 2,
	LULL_AGENT_REFUSED = 3, /* could not set up its image; stays silent */
};

struct lull_agent {
	struct lull_control *control;
	struct lull_agent_live *live;
	struct lull_image *image;
	struct lull_slot *slots;
	struct lull_chunk *chunks;
	u8 *data;
	struct lull_thread *threads; /* one per slot, wiped in a forked child */
	u32 n_slots;	/* so many of them; less than LULL_N_SLOTS where memory is limited */
	u32 pid;	/* of this process; in the child of a bare clone still of its parent */
	u32 parent_pid; /* whose fork this process is, 0 if that is not known */
	struct lull_image *parent_image; /* of a forked child: still mapped; NULL: none */
	bool has_session;
	bool follows_forks; /* forked children get their image at once (source.h) */
	bool is_late;	    /* `lull attach` brought it in: names are not interposed, entries are */
};

extern struct lull_agent lull_agent __attribute__((visibility("hidden")));

/* Make sure this process has an image (after a fork it has not). True if events can be written. */
bool lull_agent_ready(void);

/* Make the image of a forked child that has none yet (waiting_pid). */
void lull_agent_settle(void);

/*
 * Give these bytes of the image memory now. Later, a full /dev/shm would be a SIGBUS in the
 * program. Legal anywhere; false if there is none.
 */
bool lull_agent_back(u64 off_bytes, u64 size_bytes);

/* Slots that were ever needed, and some more. */
static inline u32 lull_agent_n_slots(void)
{
	u32 n = lull_agent.image ? atomic_load_explicit(&lull_agent.image->n_slots_ready,
							memory_order_acquire)
				 : 0;

	return n < lull_agent.n_slots ? n : lull_agent.n_slots;
}

/* Join a session in a running program: an image, all sources. False if that did not work. */
bool lull_agent_join(const char *session);

/* The recorder has ended the session, or is dead. */
bool lull_agent_is_session_over(void);

/* Leave it: sources have taken their hooks out. Threads that are late write to nowhere. */
void lull_agent_part(void);

/* Count trouble; legal anywhere, also in a signal handler. */
static inline void lull_issue(enum lull_issue issue, u64 n)
{
	if (lull_agent.image)
		atomic_fetch_add_explicit(&lull_agent.image->issues[issue], n,
					  memory_order_relaxed);
}

/* Look at the environment again for this process's place in a job, and say so in the image. */
void lull_agent_read_rank(void);

/*
 * The process leaves with this exit status (0..255). Called from exit paths, may be called twice.
 */
void lull_agent_leave(int status);

/*
 * The process is about to forbid itself system calls that we make: from here on nothing of it is
 * recorded, and nothing of ours calls the kernel.
 */
void lull_agent_silence(void);

/*
 * Write module events for everything that is mapped and not yet reported. Not legal in a signal
 * handler.
 */
void lull_modules_scan(void);

/* Report all of them, also those that were reported: the image is new. */
void lull_modules_again(void);

/* The same from the agent's own list, without asking the loader: for a forked child. */
void lull_modules_repeat(void);

#endif
