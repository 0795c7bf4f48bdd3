/*
 * torch_late - the hooks of PyTorch in an interpreter that runs already (lull attach).
 *
 * Python runs python/lull/_attach.py on its main thread, between two instructions of the program:
 * the interpreter has a queue for such calls, which may be filled from any thread without its lock.
 * Up to 3.12 the main thread looks at the queue only after it has given its lock to another thread:
 * so ours takes the lock for a moment. A main thread that is in a long call of a library, such as a
 * server's that waits for its other threads, comes to it much later, or never: after a while our
 * thread runs the script itself, with the lock. Who comes to it then finds it done.
 */
#include <string.h>
#include <time.h>

#include "agent/core/late.h"
#include "agent/core/loaded.h"
#include "agent/core/ring.h"
#include "agent/core/sys.h"
#include "agent/python/torch.h"

/* How long the end waits for the interpreter, and how much of that for its main thread. */
#define LEAVE_TRIES 1000 /* of 1 ms */
#define MAIN_TRIES  300

/* So often the main thread is asked to put the hooks in, 100 ms each. */
#define MAIN_NUDGES 5u

typedef int pending_fn(void *arg);
typedef int add_fn(pending_fn *call, void *arg);
typedef int run_fn(const char *text, void *flags);
typedef int ensure_fn(void);
typedef void release_fn(int state);
typedef int is_up_fn(void);

static struct {
	add_fn *add;
	run_fn *run;
	ensure_fn *ensure;
	release_fn *release;
	is_up_fn *is_up;
	_Atomic u32 is_hooked; /* _attach.py has run, and is to be undone */
	_Atomic u32 is_undone; /* somebody is at it */
	_Atomic u32 is_asked;  /* the queue has a call of ours */
	_Atomic u32 is_wanted; /* the agent is here, and not about to leave */
	u32 n_nudges;	       /* since the queue has it */
} late;

static void *find(const struct dl_phdr_info *file, const char *name)
{
	const ElfW(Sym) *symbol = lull_loaded_symbol(file, name);

	return symbol ? (void *)(file->dlpi_addr + symbol->st_value) : NULL;
}

static int visit(struct dl_phdr_info *file, size_t size, void *unused)
{
	add_fn *add = (add_fn *)find(file, "Py_AddPendingCall");

	(void)size;
	(void)unused;
	late.run = (run_fn *)find(file, "PyRun_SimpleStringFlags");
	late.ensure = (ensure_fn *)find(file, "PyGILState_Ensure");
	late.release = (release_fn *)find(file, "PyGILState_Release");
	late.is_up = (is_up_fn *)find(file, "Py_IsInitialized");
	if (!add || !late.run || !late.ensure || !late.release || !late.is_up)
		return 0;
	late.add = add;
	return 1;
}

/* Add to a text, as far as there is room; three paths of 512 bytes have it. */
static void put(char *text, size_t room, const char *more)
{
	size_t used = strlen(text), n = strnlen(more, room - used - 1);

	memcpy(text + used, more, n);
	text[used + n] = '\0';
}

/* With the interpreter's lock. */
static void run_script(bool is_on)
{
	char text[2048] = "";
	const char *folder = lull_late_python_path(), *agent = lull_late_agent_path();

	/* They stand between quotes. */
	if (!*folder || strpbrk(folder, "'\\\n") || strpbrk(agent, "'\\\n"))
		return;
	put(text, sizeof(text), "try:\n    exec(compile(open('");
	put(text, sizeof(text), folder);
	put(text, sizeof(text),
	    "/lull/_attach.py').read(), '_attach.py', 'exec'), "
	    "{'__name__': '_lull_attach', 'folder': '");
	put(text, sizeof(text), folder);
	put(text, sizeof(text), "', 'agent': '");
	put(text, sizeof(text), agent);
	put(text, sizeof(text), is_on ? "', 'is_on': True" : "', 'is_on': False");
	put(text, sizeof(text), "})\nexcept BaseException:\n    pass\n");
	late.run(text, NULL);
}

static int hook(void *unused)
{
	(void)unused;
	if (lull_agent.has_session && !atomic_exchange(&late.is_hooked, 1)) {
		/* In this order: lull_torch_withdraw() sees nothing, or what to undo. */
		if (atomic_load(&late.is_wanted))
			run_script(true);
		else
			atomic_store(&late.is_hooked, 0);
	}
	atomic_store(&late.is_asked, 0);
	return 0;
}

/* A call of an earlier end may still be in the queue. */
static int unhook(void *unused)
{
	(void)unused;
	if (atomic_load(&late.is_wanted) || atomic_exchange(&late.is_undone, 1))
		return 0;
	if (atomic_load(&late.is_hooked))
		run_script(false);
	atomic_store(&late.is_hooked, 0);
	atomic_store(&late.is_undone, 0);
	return 0;
}

void lull_torch_enter(void)
{
	if (!late.add)
		lull_loaded_walk(visit, NULL);
	/* A program may be linked with Python and not have begun with it, or have ended it. */
	if (!late.add || !late.is_up() || !(lull_agent.control->sources & LULL_SOURCE_TORCH))
		return;
	atomic_store(&late.is_wanted, 1);
	if (atomic_exchange(&late.is_asked, 1))
		return;
	late.n_nudges = 0;
	if (late.add(hook, NULL) != 0)
		atomic_store(&late.is_asked, 0);
}

/* Have the lock for a moment, or for a call; this may take as long as somebody keeps it. */
static void with_lock(pending_fn *call)
{
	int state;

	if (!late.is_up())
		return;
	state = late.ensure();
	if (call)
		call(NULL);
	late.release(state);
}

void lull_torch_nudge(void)
{
	if (late.add && atomic_load(&late.is_asked))
		with_lock(++late.n_nudges > MAIN_NUDGES ? hook : NULL);
}

void lull_torch_withdraw(void)
{
	struct timespec ms = { 0, 1000000 };

	/* A recording may end before the interpreter has come to hook(). */
	atomic_store(&late.is_wanted, 0);
	if (!atomic_load(&late.is_hooked) || !late.is_up() || late.add(unhook, NULL) != 0)
		return;
	for (int i = 0; i < LEAVE_TRIES && atomic_load(&late.is_hooked); i++) {
		with_lock(i == MAIN_TRIES ? unhook : NULL);
		syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0L, &ms, NULL);
	}
}
