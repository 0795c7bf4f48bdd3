#include "record/session/spawn.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/loader.h"
#include "base/mem.h"
#include "base/str.h"
#include "record/session/locate.h"
#include "wire/wire.h"

/* Set NAME=VALUE in a NULL-terminated list of owned strings. */
static void set_var(struct lull_vec *env, const char *name, const char *value)
{
	struct lull_str s = LULL_STR_INIT;
	size_t n = strlen(name);
	char **at = env->at;

	lull_str_addf(&s, "%s=%s", name, value);
	for (size_t i = 0; i < env->n; i++) {
		if (at[i] && strncmp(at[i], name, n) == 0 && at[i][n] == '=') {
			free(at[i]);
			at[i] = s.at;
			return;
		}
	}
	*(char **)lull_vec_push(env) = s.at;
}

static const char *get_var(const struct lull_vec *env, const char *name)
{
	size_t n = strlen(name);
	char **at = env->at;

	for (size_t i = 0; i < env->n; i++)
		if (strncmp(at[i], name, n) == 0 && at[i][n] == '=')
			return at[i] + n + 1;
	return NULL;
}

/* Put a word in front of a list between colons, unless it is there. */
static void set_front(struct lull_vec *env, const char *name, const char *word)
{
	const char *old = get_var(env, name);
	size_t n = strlen(word);
	struct lull_str s = LULL_STR_INIT;

	if (old && strncmp(old, word, n) == 0 && (!old[n] || old[n] == ':'))
		return;
	lull_str_puts(&s, word);
	if (old && *old)
		lull_str_addf(&s, ":%s", old);
	set_var(env, name, s.at);
	lull_str_release(&s);
}

/* True if the loader can take the path from LD_PRELOAD. */
static bool is_one_word(const char *path)
{
	return !strpbrk(path, LULL_PRELOAD_GAPS);
}

/* The path for the environment: a link in the session's folder where its own will not do. */
static int name_agent(struct lull_str *path, const struct lull_spawn_env *e, struct lull_err *err)
{
	lull_str_puts(path, e->agent_path);
	if (is_one_word(path->at))
		return 0;
	lull_str_clear(path);
	lull_str_addf(path, "%s/" LULL_AGENT_NAME, e->session_path);
	if (!is_one_word(path->at))
		return lull_fail(err, LULL_E_USAGE,
				 "'%s': a path with a space or a colon cannot be preloaded; set "
				 "TMPDIR to a path without them",
				 e->agent_path);
	if (symlink(e->agent_path, path->at) != 0)
		return lull_fail_errno(err, "linking '%s'", path->at);
	return 0;
}

/* False if the program is of another C library or processor. */
static bool can_hold_agent(const char *program)
{
	int fd = lull_loader_search(program, getenv("PATH"));
	bool can = fd < 0 || lull_loader_fits(fd);

	if (fd >= 0)
		close(fd);
	return can;
}

/* True if the program is to be searched for, and nobody can see a file of its name. */
static bool is_nowhere(const char *program)
{
	const char *path = getenv("PATH"), *end;
	struct lull_str file = LULL_STR_INIT;
	bool is_found = strchr(program, '/') || !path;

	for (; !is_found && path; path = *end ? end + 1 : NULL) {
		end = strchrnul(path, ':');
		lull_str_clear(&file);
		lull_str_addf(&file, "%.*s/%s", end > path ? (int)(end - path) : 1,
			      end > path ? path : ".", program);
		is_found = access(file.at, F_OK) == 0;
	}
	lull_str_release(&file);
	return !is_found;
}

/*
 * Append the parts of a list of paths, without the one that the first bytes of `s` are. An empty
 * part is the current folder, but an empty list has no part.
 */
static void add_other_parts(struct lull_str *s, const char *list, size_t own_len)
{
	while (list && *list) {
		size_t len = strcspn(list, ":");

		if (len != own_len || strncmp(s->at, list, len) != 0)
			lull_str_addf(s, ":%.*s", (int)len, list);
		if (list[len] && !list[len + 1])
			lull_str_puts(s, ":");
		list += len + (list[len] == ':');
	}
}

/* Our package goes first, so that its sitecustomize is the one that Python finds. */
static void set_python_path(struct lull_vec *env, const char *agent_path)
{
	struct lull_str s = LULL_STR_INIT;

	if (lull_locate_python(agent_path, &s)) {
		add_other_parts(&s, get_var(env, "PYTHONPATH"), s.len);
		set_var(env, "PYTHONPATH", s.at);
	}
	lull_str_release(&s);
}

/* The environment as it is without us. */
static void build_env(struct lull_vec *env, const struct lull_spawn_env *e)
{
	char **more = e->more ? e->more->at : NULL;

	lull_vec_init(env, sizeof(char *));
	for (char **v = environ; e->is_inherited && *v; v++)
		*(char **)lull_vec_push(env) = lull_strdup(*v);
	for (size_t i = 0; e->more && i < e->more->n; i++) {
		char *copy = lull_strdup(more[i]);
		char *eq = strchr(copy, '=');

		if (eq) {
			*eq = '\0';
			set_var(env, copy, eq + 1);
		}
		free(copy);
	}
}

/* The agent goes first, so that its names come before those of other preloaded libraries. */
static void add_agent(struct lull_vec *env, const struct lull_spawn_env *e, const char *agent)
{
	set_front(env, "LD_PRELOAD", agent);
	set_front(env, LULL_ENV_ASAN, LULL_ASAN_WORD);
	set_var(env, LULL_ENV_SESSION, e->session_path);
	set_var(env, LULL_ENV_AGENT, agent);
	if (e->has_nvtx)
		set_var(env, "NVTX_INJECTION64_PATH", agent);
	if (e->has_cuda)
		set_var(env, "CUDA_INJECTION64_PATH", agent);
	if (e->has_nccl && !get_var(env, "NCCL_PROFILER_PLUGIN"))
		set_var(env, "NCCL_PROFILER_PLUGIN", agent);
	if (e->has_torch)
		set_python_path(env, e->agent_path);
}

static void free_env(struct lull_vec *env)
{
	char **at = env->at;

	for (size_t i = 0; i < env->n; i++)
		free(at[i]);
	lull_vec_release(env);
}

/* What the program is started with. */
struct start {
	char **argv;
	struct lull_vec env;   /* char *, the last is NULL */
	struct lull_vec plain; /* the same without us, where the other is too long for the kernel */
	bool is_nowhere;       /* no folder of PATH that we may look into has it */
};

/*
 * In the child: wait for the byte, then become the program. Only async-signal-safe calls from here
 * on.
 */
static void become(const struct start *s, const struct lull_spawn_env *e, int go_fd, int status_fd)
{
	char byte;
	int error;

	if (read(go_fd, &byte, 1) != 1)
		_exit(127); /* the recorder is gone */
	if (e->is_deaf)
		signal(SIGCHLD, SIG_IGN);
	sigprocmask(SIG_SETMASK, e->signals, NULL);
	execvpe(s->argv[0], s->argv, s->env.at);
	if (errno == E2BIG)
		execvpe(s->argv[0], s->argv, s->plain.at);
	/* A folder of PATH that may not be looked into says that for what is not there, too. */
	error = errno == EACCES && s->is_nowhere ? ENOENT : errno;
	if (write(status_fd, &error, sizeof(error)) != sizeof(error))
		_exit(126);
	_exit(error == ENOENT ? 127 : 126);
}

static int fork_held(struct lull_target *t, const struct start *s, const struct lull_spawn_env *e,
		     struct lull_err *err)
{
	int go[2], status[2];

	if (pipe2(go, O_CLOEXEC) != 0)
		return lull_fail_errno(err, "making a pipe");
	if (pipe2(status, O_CLOEXEC) != 0) {
		close(go[0]);
		close(go[1]);
		return lull_fail_errno(err, "making a pipe");
	}
	t->pid = fork();
	if (t->pid == 0) {
		close(go[1]);
		become(s, e, go[0], status[1]);
	}
	close(go[0]);
	close(status[1]);
	t->go_fd = go[1];
	t->status_fd = status[0];
	if (t->pid < 0)
		return lull_fail_errno(err, "starting '%s': fork", s->argv[0]);
	return 0;
}

void lull_spawn_let_go(bool has_output)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *e;

	while (dir && (e = readdir(dir))) {
		int fd = atoi(e->d_name), flags = fcntl(fd, F_GETFD);

		if (fd > STDERR_FILENO && flags >= 0 && !(flags & FD_CLOEXEC))
			close(fd);
	}
	if (dir)
		closedir(dir);
	if (null < 0)
		return;
	dup3(null, STDIN_FILENO, O_CLOEXEC);
	if (!has_output)
		dup3(null, STDOUT_FILENO, O_CLOEXEC);
	close(null);
}

int lull_spawn(struct lull_target *t, char **argv, const struct lull_spawn_env *e,
	       struct lull_err *err)
{
	struct lull_str agent = LULL_STR_INIT;
	struct start s = { .argv = argv, .is_nowhere = is_nowhere(argv[0]) };
	int rc = name_agent(&agent, e, err);

	memset(t, 0, sizeof(*t));
	if (!rc) {
		build_env(&s.plain, e);
		build_env(&s.env, e);
		if (can_hold_agent(argv[0]))
			add_agent(&s.env, e, agent.at);
		lull_vec_push(&s.env); /* the NULL at the end */
		lull_vec_push(&s.plain);
		rc = fork_held(t, &s, e, err);
		free_env(&s.env);
		free_env(&s.plain);
	}
	lull_str_release(&agent);
	return rc;
}

int lull_spawn_go(struct lull_target *t, const char *name, struct lull_err *err)
{
	ssize_t n = write(t->go_fd, "g", 1);
	int error = 0;

	close(t->go_fd);
	if (n == 1)
		n = read(t->status_fd, &error, sizeof(error));
	close(t->status_fd);
	if (n <= 0)
		return 0;
	waitpid(t->pid, &t->wait_status, 0);
	t->has_ended = true;
	if (error == ENOENT)
		return lull_fail(err, LULL_E_NOT_FOUND, "'%s' not found; is the path right?", name);
	errno = error;
	return lull_fail_errno(err, "cannot execute '%s'", name);
}
