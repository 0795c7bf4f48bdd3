#include "launch/spawn.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "launch/locate.h"
#include "trace/wire.h"

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

/* The agent goes first, so that its names come before those of other preloaded libraries. */
static void set_preload(struct lull_vec *env, const char *agent_path)
{
	const char *old = get_var(env, "LD_PRELOAD");
	struct lull_str s = LULL_STR_INIT;

	lull_str_puts(&s, agent_path);
	if (old && *old && !strstr(old, agent_path))
		lull_str_addf(&s, ":%s", old);
	set_var(env, "LD_PRELOAD", s.at);
	lull_str_release(&s);
}

/* Our package goes first, so that its sitecustomize is the one that Python finds. */
static void set_python_path(struct lull_vec *env, const char *agent_path)
{
	const char *old = get_var(env, "PYTHONPATH");
	struct lull_str s = LULL_STR_INIT;

	if (lull_locate_python(agent_path, &s)) {
		if (old && *old && !strstr(old, s.at))
			lull_str_addf(&s, ":%s", old);
		set_var(env, "PYTHONPATH", s.at);
	}
	lull_str_release(&s);
}

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
	set_preload(env, e->agent_path);
	set_var(env, LULL_ENV_SESSION, e->session_path);
	set_var(env, LULL_ENV_AGENT, e->agent_path);
	if (e->has_nvtx)
		set_var(env, "NVTX_INJECTION64_PATH", e->agent_path);
	if (e->has_cuda)
		set_var(env, "CUDA_INJECTION64_PATH", e->agent_path);
	if (e->has_nccl && !get_var(env, "NCCL_PROFILER_PLUGIN"))
		set_var(env, "NCCL_PROFILER_PLUGIN", e->agent_path);
	if (e->has_torch)
		set_python_path(env, e->agent_path);
	lull_vec_push(env); /* the NULL at the end */
}

static void free_env(struct lull_vec *env)
{
	char **at = env->at;

	for (size_t i = 0; i < env->n; i++)
		free(at[i]);
	lull_vec_release(env);
}

/*
 * In the child: wait for the byte, then become the program. Only async-signal-safe calls from here
 * on.
 */
static void become(char **argv, char **env, const struct lull_spawn_env *e, int go_fd,
		   int status_fd)
{
	char byte;
	int error;

	if (read(go_fd, &byte, 1) != 1)
		_exit(127); /* the recorder is gone */
	if (e->is_deaf)
		signal(SIGCHLD, SIG_IGN);
	sigprocmask(SIG_SETMASK, e->signals, NULL);
	execvpe(argv[0], argv, env);
	error = errno;
	if (write(status_fd, &error, sizeof(error)) != sizeof(error))
		_exit(126);
	_exit(error == ENOENT ? 127 : 126);
}

int lull_spawn(struct lull_target *t, char **argv, const struct lull_spawn_env *e,
	       struct lull_err *err)
{
	int go[2], status[2];
	struct lull_vec env;

	memset(t, 0, sizeof(*t));
	if (pipe2(go, O_CLOEXEC) != 0)
		return lull_fail_errno(err, "making a pipe");
	if (pipe2(status, O_CLOEXEC) != 0) {
		close(go[0]);
		close(go[1]);
		return lull_fail_errno(err, "making a pipe");
	}
	build_env(&env, e);
	t->pid = fork();
	if (t->pid == 0) {
		close(go[1]);
		become(argv, env.at, e, go[0], status[1]);
	}
	free_env(&env);
	close(go[0]);
	close(status[1]);
	t->go_fd = go[1];
	t->status_fd = status[0];
	if (t->pid < 0)
		return lull_fail_errno(err, "starting '%s': fork", argv[0]);
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
