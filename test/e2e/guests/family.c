/*
 * family - starts processes in every way there is, and says the truth about each.
 *
 *	family all TOUR		one of each kind; TOUR is the path of the program tour
 *	family daemon FILE	a daemon by double fork that lives until there is this file, or,
 *				if it is "gone", until the first process has ended; it ends
 *				with status 4
 *
 * A line for each child: its name, which is also the mark it emits, its pid, its parent, how it
 * ended as in process.exit_kind, with which code, and how many programs ran in it.
 */
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lull.h"
#include "support/guest.h"

extern char **environ;

static void tell(const char *name, pid_t pid, int n_programs)
{
	int status = 0;

	if (waitpid(pid, &status, 0) != pid)
		exit(2);
	printf("%s %d %d %d %d %d\n", name, pid, getpid(), WIFSIGNALED(status) ? 2 : 1,
	       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status), n_programs);
	fflush(stdout);
}

static void by_fork(void)
{
	pid_t pid = fork();

	if (pid == 0) {
		lull_mark("fork");
		_exit(11);
	}
	tell("fork", pid, 1);
	pid = fork();
	if (pid == 0) {
		lull_mark("fork_killed");
		kill(getpid(), SIGKILL);
	}
	tell("fork_killed", pid, 1);
}

static void by_vfork(char *tour)
{
	char *words[] = { tour, "leaf", "vfork", "12", NULL };
	pid_t pid = vfork();

	if (pid == 0) {
		execv(tour, words);
		_exit(127);
	}
	tell("vfork", pid, 1);
}

static void by_spawn(char *tour)
{
	char *words[] = { tour, "leaf", "spawn", "13", NULL };
	pid_t pid;

	if (posix_spawn(&pid, tour, NULL, NULL, words, environ) != 0)
		exit(2);
	tell("spawn", pid, 1);
}

/* No handler of pthread_atfork() runs here. */
static void by_clone(void)
{
	pid_t pid = (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);

	if (pid == 0) {
		lull_mark("clone");
		_exit(14);
	}
	tell("clone", pid, 1);
}

/* The forked one, a shell, the leaf. */
static void by_chain(const char *tour)
{
	pid_t pid = fork();

	if (pid == 0) {
		lull_mark("chain_begin");
		execl("/bin/sh", "sh", "-c", "exec \"$0\" leaf chain 15", tour, (char *)NULL);
		_exit(127);
	}
	tell("chain", pid, 3);
}

static void be_daemon(pid_t first, const char *file, int begun_fd)
{
	lull_mark("daemon_begin");
	if (write(begun_fd, "", 1) != 1)
		_exit(2);
	close(begun_fd);
	if (strcmp(file, "gone") == 0)
		guest_wait_for(kill(first, 0) != 0);
	else
		guest_wait_for(access(file, F_OK) == 0);
	lull_mark("daemon");
	_exit(4);
}

static void daemon_of(const char *file)
{
	pid_t first = getpid(), pid = fork();
	int status, begun[2];
	char byte;

	if (pid == 0) {
		setsid();
		if (pipe(begun) != 0)
			_exit(2);
		pid = fork();
		if (pid == 0)
			be_daemon(first, file, begun[1]);
		if (read(begun[0], &byte, 1) != 1)
			_exit(2);
		printf("daemon %d %d 1 4 1\n", pid, getpid());
		fflush(stdout);
		_exit(0);
	}
	waitpid(pid, &status, 0);
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	if (strcmp(argv[1], "daemon") == 0) {
		daemon_of(argv[2]);
		return 5;
	}
	by_fork();
	by_vfork(argv[2]);
	by_spawn(argv[2]);
	by_clone();
	by_chain(argv[2]);
	return 5;
}
