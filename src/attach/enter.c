#include "attach/attach.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "attach/attach_int.h"
#include "base/time.h"

/* How long a safe point is waited for, and the agent's answer. */
#define SAFE_NS	  (5 * LULL_NS_PER_S)
#define ANSWER_NS (20 * LULL_NS_PER_S)

/* A tracer that takes longer is ended, which harms nobody. */
#define TRACER_MS 15000

/* What the tracer tells. */
struct answer {
	int rc;
	struct lull_attach_done done;
	u64 block_addr;
	struct lull_err err;
};

static void fill_block(struct lull_attach_block *b, const struct lull_attach_target *target,
		       const struct lull_attach_wish *wish)
{
	const struct lull_attach_calls *c = &target->calls;

	memset(b, 0, sizeof(*b));
	b->pthread_create = c->pthread_create;
	b->pthread_detach = c->pthread_detach;
	b->dlopen = c->dlopen;
	b->dlsym = c->dlsym;
	b->dlerror = c->dlerror;
	b->created = -1;
	b->number = wish->number;
	snprintf(b->entry, sizeof(b->entry), "%s", LULL_ATTACH_ENTRY);
	snprintf(b->agent_path, sizeof(b->agent_path), "%s", wish->agent_path);
	snprintf(b->folder, sizeof(b->folder), "%s", wish->folder);
	snprintf(b->python_path, sizeof(b->python_path), "%s", wish->python_path);
}

/* Two pages in the program, the first with the code; their address, 0 if that failed. */
static u64 make_pages(struct lull_tracee *t, u64 page, struct lull_attach_block *b,
		      struct lull_err *err)
{
	const u64 map[] = { 0,	     2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			    (u64)-1, 0 };
	size_t n_code;
	const u8 *code = lull_attach_code(&n_code);
	i64 at, result;

	if (lull_attach_call(t, t->target->calls.mmap, map, 6, &at, err))
		return 0;
	if (at < 0 && at > -4096) {
		errno = (int)-at;
		lull_fail_errno(err, "process %d (%s): no memory for the agent",
				(int)t->target->pid, t->target->name);
		return 0;
	}
	b->map_addr = (u64)at;
	b->map_bytes = 2 * page;
	if (!lull_attach_write(t, (u64)at, code, n_code) ||
	    !lull_attach_write(t, (u64)at + page, b, sizeof(*b))) {
		lull_fail_errno(err, "process %d: writing", (int)t->target->pid);
		return 0;
	}
	if (lull_attach_call(t, t->target->calls.mprotect,
			     (u64[]){ (u64)at, page, PROT_READ | PROT_EXEC }, 3, &result, err))
		return 0;
	if (result) {
		const u64 all[] = { (u64)at, 2 * page };
		struct lull_err ignored;
		i64 unmapped;

		if (t->target->calls.munmap)
			lull_attach_call(t, t->target->calls.munmap, all, 2, &unmapped, &ignored);
		errno = (int)-result;
		lull_fail_errno(err, "process %d (%s): it may have no memory with code",
				(int)t->target->pid, t->target->name);
		return 0;
	}
	return (u64)at;
}

/* Start the agent's thread from the stopped one. */
static int start_thread(struct lull_tracee *t, struct lull_attach_block *b, u64 page,
			u64 *block_addr, struct lull_err *err)
{
	u64 at;
	i64 ignored;

	if (lull_attach_frame(t, err))
		return err->code;
	at = make_pages(t, page, b, err);
	if (!at)
		return err->code;
	*block_addr = at + page;
	return lull_attach_call(t, at, (u64[]){ at + page }, 1, &ignored, err);
}

static int tell_state(const struct lull_attach_target *t, const struct lull_attach_block *b,
		      struct lull_err *err)
{
	switch (b->state) {
	case LULL_ATTACH_ENTERED:
		return 0;
	case LULL_ATTACH_BUSY:
		return lull_fail(err, LULL_E_UNSUPPORTED,
				 "process %d (%s) is recorded by lull already; `lull sessions` "
				 "says where",
				 (int)t->pid, t->name);
	case LULL_ATTACH_UNLOADED:
		return lull_fail(err, LULL_E_UNSUPPORTED,
				 "process %d (%s): the agent cannot be loaded: %.255s", (int)t->pid,
				 t->name, b->text);
	default:
		return lull_fail(err, LULL_E_UNSUPPORTED,
				 "process %d (%s): the agent found no room for its buffers, or no "
				 "way to %s",
				 (int)t->pid, t->name, b->folder);
	}
}

/*
 * Wait for the agent's answer; it unmaps the block once we have said that we have it. The tracer
 * has ended by then: a thread that it could not stop in time would stop now, and stay so.
 */
static int await_answer(const struct lull_attach_target *target, u64 addr, struct lull_err *err)
{
	const struct lull_attach_wish no_wish = { 0 };
	struct lull_tracee t = { .target = target, .wish = &no_wish };
	u64 until_ns = lull_now_ns() + ANSWER_NS;
	struct lull_attach_block b = { 0 };
	u32 yes = 1;

	for (;;) {
		if (!lull_attach_read(target->pid, addr, &b, sizeof(b)))
			return lull_fail(err, LULL_E_IO, "process %d ended meanwhile",
					 (int)target->pid);
		if (b.created > 0) {
			errno = (int)b.created;
			return lull_fail_errno(err, "process %d (%s): it may have no more threads",
					       (int)target->pid, target->name);
		}
		if (b.state >= LULL_ATTACH_UNLOADED)
			break;
		if (lull_now_ns() > until_ns)
			return lull_fail(
				err, LULL_E_UNSUPPORTED,
				"process %d (%s): its loader is busy and does not load the "
				"agent; it will come and leave again by itself",
				(int)target->pid, target->name);
		usleep(200);
	}
	lull_attach_write(&t, addr + offsetof(struct lull_attach_block, has_read), &yes,
			  sizeof(yes));
	return tell_state(target, &b, err);
}

static void trace(const struct lull_attach_target *target, const struct lull_attach_wish *wish,
		  struct answer *a)
{
	struct lull_tracee t = { .target = target, .wish = wish };
	u64 page = (u64)sysconf(_SC_PAGESIZE);
	struct lull_attach_block block;

	fill_block(&block, target, wish);
	a->rc = lull_attach_stop(&t, lull_now_ns() + SAFE_NS, &a->done.n_tries, &a->err);
	if (a->rc)
		return;
	if (target->has_filters)
		a->rc = lull_attach_check_filters(&t, &a->err);
	if (!a->rc)
		a->rc = start_thread(&t, &block, page, &a->block_addr, &a->err);
	lull_attach_let_go(&t);
	a->done.stop_ns = lull_now_ns() - t.stopped_ns;
	a->done.n_steps = t.n_steps;
}

/* Signals for the recorder are for the recorder; its end is the tracer's. */
static void become_tracer(const struct lull_attach_target *target,
			  const struct lull_attach_wish *wish, int to)
{
	struct answer a;
	sigset_t none;

	memset(&a, 0, sizeof(a));
	prctl(PR_SET_NAME, "lull-tracer");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGINT, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	trace(target, wish, &a);
	_exit(write(to, &a, sizeof(a)) == (ssize_t)sizeof(a) ? 0 : 1);
}

/* The tracer ended with this wait status and said nothing; -1: it took too long. */
static int tell_broken(const struct lull_attach_target *target, pid_t tracer, int status,
		       struct lull_err *err)
{
	char why[64];

	if (tracer < 0)
		snprintf(why, sizeof(why), "no process could be started");
	else if (status == -1)
		snprintf(why, sizeof(why), "it took longer than %d s", TRACER_MS / 1000);
	else if (WIFSIGNALED(status))
		snprintf(why, sizeof(why), "lull-tracer: signal %d", WTERMSIG(status));
	else
		snprintf(why, sizeof(why), "lull-tracer: status %d", WEXITSTATUS(status));
	return lull_fail(err, LULL_E_IO,
			 "process %d (%s): attaching was broken off (%s); it continues as before",
			 (int)target->pid, target->name, why);
}

int lull_attach_enter(const struct lull_attach_target *target, const struct lull_attach_wish *wish,
		      struct lull_attach_done *done, struct lull_err *err)
{
	struct pollfd fd = { .events = POLLIN };
	struct answer a;
	int ends[2], status = 0;
	pid_t tracer;
	bool is_told;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return lull_fail_errno(err, "making a pipe");
	tracer = fork();
	if (tracer == 0)
		become_tracer(target, wish, ends[1]);
	close(ends[1]);
	fd.fd = ends[0];
	while (tracer > 0 && poll(&fd, 1, TRACER_MS) < 0 && errno == EINTR)
		;
	is_told = tracer > 0 && (fd.revents & POLLIN) && read(ends[0], &a, sizeof(a)) == sizeof(a);
	close(ends[0]);
	if (tracer > 0 && !is_told && !fd.revents)
		kill(tracer, SIGKILL);
	if (tracer > 0)
		waitpid(tracer, &status, 0);
	if (!is_told)
		return tell_broken(target, tracer, fd.revents ? status : -1, err);
	*done = a.done;
	if (!a.rc)
		return await_answer(target, a.block_addr, err);
	*err = a.err;
	return a.rc;
}
