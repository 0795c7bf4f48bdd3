/*
 * Python stacks: an interpreter of a known version, and the right to read its memory.
 */
#include "doctor/doctor_int.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"

/* The versions that record/python/python knows. */
#define OLDEST_MINOR 9
#define NEWEST_MINOR 14

static void run_python(struct lull_doctor_finding *f)
{
	struct lull_str line = LULL_STR_INIT;
	int major = 0, minor = 0;

	if (!lull_file_ask("python3 --version 2>/dev/null", &line) ||
	    sscanf(line.at, "Python %d.%d", &major, &minor) != 2)
		lull_doctor_say(f, LULL_DOCTOR_LIMITED, "no python3 in PATH");
	else if (major == 3 && minor >= OLDEST_MINOR && minor <= NEWEST_MINOR)
		lull_doctor_say(f, LULL_DOCTOR_OK, "%s", line.at);
	else
		lull_doctor_say(f, LULL_DOCTOR_LIMITED,
				"%s: Python stacks are supported for 3.%d to 3.%d", line.at,
				OLDEST_MINOR, NEWEST_MINOR);
	lull_str_release(&line);
}

const struct lull_doctor_check lull_doctor_check_python = {
	.name = "python",
	.group = LULL_DOCTOR_PYTHON,
	.title = "interpreter",
	.run = run_python,
};

/* Read a word of a child, as a recording does; 0 or the errno. */
static int try_read(void)
{
	static const char word[] = "lull";
	char copy[sizeof(word)];
	struct iovec here = { copy, sizeof(copy) }, there = { (void *)word, sizeof(word) };
	pid_t child = fork();
	int rc = 0;

	if (child < 0)
		return errno;
	if (child == 0) {
		pause();
		_exit(0);
	}
	if (process_vm_readv(child, &here, 1, &there, 1, 0) != (ssize_t)sizeof(word))
		rc = errno;
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	return rc;
}

static void run_read_memory(struct lull_doctor_finding *f)
{
	i64 scope = 0;
	int rc = try_read();

	lull_file_i64("/proc/sys/kernel/yama/ptrace_scope", &scope);
	if (!rc) {
		lull_doctor_say(f, LULL_DOCTOR_OK,
				scope ? "programs that lull starts" : "permitted");
		return;
	}
	lull_doctor_say(f, LULL_DOCTOR_NO,
			"reading another process is refused: %s (ptrace_scope %d)", strerror(rc),
			(int)scope);
	if (!lull_doctor_fix_container(f, "--cap-add=SYS_PTRACE",
				       "securityContext: {capabilities: {add: [SYS_PTRACE]}}") &&
	    scope > 1)
		lull_doctor_fix(f, "sudo sysctl kernel.yama.ptrace_scope=1");
}

const struct lull_doctor_check lull_doctor_check_read_memory = {
	.name = "python-stacks",
	.group = LULL_DOCTOR_PYTHON,
	.title = "stacks from outside",
	.run = run_read_memory,
};
