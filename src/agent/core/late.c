/*
 * late - the agent's entry into a program that runs already, and its way out.
 *
 * `lull attach` starts a thread in the program that loads the agent and calls lull_agent_attach()
 * (src/attach/). The thread stays while something is recorded: it starts the sources, and takes
 * their hooks out again when the session is over. If the recorder dies it leaves, too.
 *
 * After that nothing of ours is called. The library stays mapped, with its buffers empty: a thread
 * of the program may be in the middle of one of its functions for as long as it likes, such as a
 * read() that waits. The next `lull attach` finds it there.
 */
#include "agent/core/agent.h"

#include <limits.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "agent/core/late.h"
#include "agent/core/real.h"
#include "agent/core/ring.h"
#include "agent/core/schedule.h"
#include "agent/core/source.h"
#include "agent/core/sys.h"
#include "wire/attach_block.h"

/* How often the thread looks whether the session is over, if nobody wakes it. */
#define LOOK_MS 100

/* How long the answer waits to be read. */
#define ANSWER_TRIES 5000 /* of 1 ms */

static struct {
	_Atomic u32 is_in; /* a session is joined, or about to be */
	u32 pid;	   /* of the process in which the thread is; a forked child has none */
	u64 number;
	char python_path[512], agent_path[512];
} late;

const char *lull_late_python_path(void)
{
	return late.python_path;
}

const char *lull_late_agent_path(void)
{
	return late.agent_path;
}

char *lull_late_getenv(const char *name)
{
	char *value = getenv(name);

	if (!value && late.is_in && lull_agent.has_session && late.agent_path[0] &&
	    strcmp(name, "NVTX_INJECTION64_PATH") == 0)
		return late.agent_path;
	return value;
}

static void nap(long ms)
{
	struct timespec time = { 0, ms * 1000000 };

	syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0L, &time, NULL);
}

static void withdraw(void)
{
	struct lull_thread *t = lull_thread();

	lull_sources_withdraw();
	if (t)
		t->is_quiet--;
	lull_thread_leave();
	lull_agent_part();
}

/* A child that was forked while we were attached has all but our thread. */
static void clean_up_after_fork(void)
{
	if (!late.is_in || late.pid == lull_sys_pid())
		return;
	if (lull_agent.has_session && lull_agent_is_session_over()) {
		if (lull_agent.image && lull_agent_ready())
			withdraw();
		late.is_in = 0;
	}
}

static enum lull_attach_state join(const struct lull_attach_block *b)
{
	struct lull_thread *t;
	u32 expected = 0;

	clean_up_after_fork();
	if (!lull_agent.is_late && lull_agent.has_session)
		return LULL_ATTACH_BUSY;
	if (!atomic_compare_exchange_strong(&late.is_in, &expected, 1))
		return LULL_ATTACH_BUSY;
	late.pid = lull_sys_pid();
	late.number = b->number;
	memcpy(late.python_path, b->python_path, sizeof(late.python_path) - 1);
	memcpy(late.agent_path, b->agent_path, sizeof(late.agent_path) - 1);
	lull_schedule_reset();
	if (!lull_agent_join(b->folder)) {
		atomic_store(&late.is_in, 0);
		return LULL_ATTACH_REFUSED;
	}
	t = lull_thread();
	if (t)
		t->is_quiet++;
	return LULL_ATTACH_ENTERED;
}

/* Tell what has become of it, and give the pages back; nobody returns into them. */
static void answer(struct lull_attach_block *b, enum lull_attach_state state)
{
	void *pages = (void *)b->map_addr;
	size_t n_bytes = b->map_bytes;

	__atomic_store_n(&b->state, state, __ATOMIC_RELEASE);
	for (int i = 0; i < ANSWER_TRIES && !__atomic_load_n(&b->has_read, __ATOMIC_ACQUIRE); i++)
		nap(1);
	lull_sys_unmap(pages, n_bytes);
}

static void wait_for_end(void)
{
	struct lull_control *control = lull_agent.control;
	struct timespec limit = { 0, LOOK_MS * 1000000 };

	while (!lull_agent_is_session_over()) {
		u32 seen = atomic_load(&control->flush_wanted);

		lull_sources_idle();
		syscall(SYS_futex, &control->flush_wanted, FUTEX_WAIT, seen, &limit, NULL, 0);
	}
}

void *lull_agent_attach(struct lull_attach_block *b) __attribute__((visibility("default")));

/* On a thread of its own, which has all signals blocked. */
void *lull_agent_attach(struct lull_attach_block *b)
{
	enum lull_attach_state state;
	u64 all = ~(u64)0;

	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, NULL, sizeof(all));
	state = join(b);
	/*
	 * Only now: threads that libraries start meanwhile, such as CUPTI, have the name, too. One
	 * that is not in keeps nobody out.
	 */
	if (state == LULL_ATTACH_ENTERED)
		syscall(SYS_prctl, PR_SET_NAME, LULL_ATTACH_THREAD, 0L, 0L, 0L);
	answer(b, state);
	if (state == LULL_ATTACH_ENTERED) {
		wait_for_end();
		withdraw();
		atomic_store(&late.is_in, 0);
	}
	return NULL;
}
