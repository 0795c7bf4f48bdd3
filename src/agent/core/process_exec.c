/*
 * process_exec: children and successors of the process keep the agent, whatever environment they
 * are given (process_env.h), unless they cannot hold it.
 *
 * All of this may run in the child of a vfork, in the memory of its parent: it uses the stack, and
 * for large environments a mapping that the thread keeps, since its child never comes back to undo
 * it.
 */
#include "agent/core/process.h"

#include <alloca.h>
#include <stdarg.h>
#include <sys/stat.h>

#include "agent/calls/oscall.h"
#include "agent/core/process_env.h"
#include "agent/core/source.h"
#include "agent/core/sys.h"
#include "base/loader.h"

#define STACK_BYTES 1536u /* of an environment; handlers run on as little as 8 KiB */

/* Set once a filter of system calls may kill who asks for a file. */
static bool is_sandboxed;

void lull_process_sandboxed(void)
{
	is_sandboxed = true;
}

/* What tells a file from others and from what it was before it changed; 0 if there is no file. */
static u64 key_of(int fd, const char *path)
{
	struct stat st;
	u64 parts[7];

	if (syscall(SYS_newfstatat, fd, path, &st, *path ? 0 : AT_EMPTY_PATH) != 0 ||
	    !S_ISREG(st.st_mode))
		return 0;
	parts[0] = st.st_dev;
	parts[1] = st.st_ino;
	parts[2] = (u64)st.st_size;
	parts[3] = (u64)st.st_mtim.tv_sec;
	parts[4] = (u64)st.st_mtim.tv_nsec;
	parts[5] = (u64)st.st_ctim.tv_sec;
	parts[6] = (u64)st.st_ctim.tv_nsec;
	return lull_hash(parts, sizeof(parts));
}

/* Whether the program in the file can load the agent; looked up once in a session for most. */
static bool is_fit(int fd, const char *path)
{
	u64 key = lull_agent.has_session ? key_of(fd, path) : 0;
	_Atomic u64 *known = &lull_agent.control->fitting[key % LULL_N_FITTING];
	bool fits, is_final = false;
	int own = -1;

	if (key && atomic_load_explicit(known, memory_order_relaxed) == key)
		return true;
	if (*path)
		fd = own = lull_loader_open(fd, path);
	fits = fd < 0 || lull_loader_judge(fd, &is_final);
	if (key && fits && is_final)
		atomic_store_explicit(known, key, memory_order_relaxed);
	if (own >= 0)
		lull_sys_close(own);
	return fits;
}

/*
 * False if the program would not start or complain with the agent: it has another loader, or cannot
 * read the agent (another root, another user). The file is `fd` itself if the path is "".
 */
static __attribute__((noinline)) bool can_hold(int fd, const char *path, bool is_searched)
{
	const char *agent = lull_child_env_agent();
	char room[LULL_LOADER_HEAD];
	int saved = errno;
	bool can;

	if (!agent || is_sandboxed)
		return true;
	if (path && !lull_sys_may_read((u64)path & ~7ull))
		return true; /* it will fail, or crash, as without us */
	can = syscall(SYS_faccessat, AT_FDCWD, agent, R_OK) == 0;
	if (can && is_searched && path)
		path = lull_loader_find(path, getenv("PATH"), room);
	if (can && path)
		can = is_fit(fd, path);
	errno = saved;
	return can;
}

/*
 * `list` becomes the environment to hand over: the given one, or another in this function's frame;
 * `given` stays what it was. A macro, because the other has to live as long as the caller.
 */
#define FOLLOW(list, can)                                                                   \
	char *const *given = (list);                                                        \
	struct lull_child_env env;                                                          \
	void *room;                                                                         \
                                                                                            \
	lull_child_env_plan(&env, given, can);                                              \
	if (env.room_bytes) {                                                               \
		room = env.room_bytes <= STACK_BYTES ? alloca(env.room_bytes)               \
						     : lull_child_env_room(env.room_bytes); \
		(list) = lull_child_env_build(&env, room);                                  \
	}

/*
 * Say that the image ends here, or (is_over false) that it did not. Not for a vfork child, which
 * has none.
 */
static void mark_exec(bool is_over)
{
	struct lull_image *image = lull_agent.image;
	int saved = errno;

	if (is_over)
		lull_sources_execs();
	/* Release: whoever sees EXECED sees all that was emitted. */
	if (image && lull_agent.has_session && image->pid == lull_sys_pid())
		atomic_store_explicit(&image->state, is_over ? LULL_IMAGE_EXECED : LULL_IMAGE_LIVE,
				      memory_order_release);
	errno = saved;
}

/* Programs without the agent are told of by the process that becomes one. */
static bool tell_if_not(bool can)
{
	if (!can)
		lull_agent_settle();
	return can;
}

/*
 * The exec family: each is a call that returns only if it fails. What we add may be what makes the
 * arguments too long.
 */
#define EXEC(name, params, args, can)                  \
	LULL_EXPORT int name params                    \
	{                                              \
		int r;                                 \
		FOLLOW(envp, tell_if_not(can))         \
                                                       \
		mark_exec(true);                       \
		r = lull_real.name args;               \
		if (errno == E2BIG && envp != given) { \
			envp = given;                  \
			r = lull_real.name args;       \
		}                                      \
		mark_exec(false);                      \
		return r;                              \
	}

EXEC(execve, (const char *path, char *const argv[], char *const envp[]), (path, argv, envp),
     can_hold(AT_FDCWD, path, false))
EXEC(execvpe, (const char *file, char *const argv[], char *const envp[]), (file, argv, envp),
     can_hold(AT_FDCWD, file, true))
EXEC(fexecve, (int fd, char *const argv[], char *const envp[]), (fd, argv, envp),
     can_hold(fd, "", false))
EXEC(execveat, (int dir, const char *path, char *const argv[], char *const envp[], int flags),
     (dir, path, argv, envp, flags), can_hold(dir, path, false))

LULL_EXPORT int execv(const char *path, char *const argv[])
{
	return execve(path, argv, environ);
}

LULL_EXPORT int execvp(const char *file, char *const argv[])
{
	return execvpe(file, argv, environ);
}

/* Words of the list up to the NULL, both counted; the list is left after it. */
static size_t count_args(va_list *list)
{
	size_t n = 1;

	while (va_arg(*list, char *))
		n++;
	return n;
}

static void copy_args(char **argv, const char *first, va_list *list)
{
	*argv++ = (char *)first;
	do
		*argv = va_arg(*list, char *);
	while (*argv++);
}

/* Sets argv and envp; `has_env`: an environment follows the NULL. */
#define COLLECT(first, has_env)                                  \
	char **argv, **envp;                                     \
	va_list list;                                            \
                                                                 \
	va_start(list, first);                                   \
	argv = alloca((count_args(&list) + 1) * sizeof(char *)); \
	va_end(list);                                            \
	va_start(list, first);                                   \
	copy_args(argv, first, &list);                           \
	envp = (has_env) ? va_arg(list, char **) : environ;      \
	va_end(list)

LULL_EXPORT int execl(const char *path, const char *arg, ...)
{
	COLLECT(arg, false);

	return execve(path, argv, envp);
}

LULL_EXPORT int execlp(const char *file, const char *arg, ...)
{
	COLLECT(arg, false);

	return execvpe(file, argv, envp);
}

LULL_EXPORT int execle(const char *path, const char *arg, ...)
{
	COLLECT(arg, true);

	return execve(path, argv, envp);
}

#define SPAWN(name, is_searched)                                                                  \
	LULL_EXPORT int name(                                                                     \
		pid_t *pid, const char *path, const posix_spawn_file_actions_t *actions,          \
		const posix_spawnattr_t *attr, char *const argv[], char *const envp[])            \
	{                                                                                         \
		int r;                                                                            \
		FOLLOW(envp, can_hold(AT_FDCWD, path, is_searched))                               \
                                                                                                  \
		r = lull_oscall_is_on() ? lull_timed_##name(pid, path, actions, attr, argv, envp) \
					: lull_real.name(pid, path, actions, attr, argv, envp);   \
		if (r == E2BIG && envp != given)                                                  \
			r = lull_real.name(pid, path, actions, attr, argv, given);                \
		return r;                                                                         \
	}

SPAWN(posix_spawn, false)
SPAWN(posix_spawnp, true)
