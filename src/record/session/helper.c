#include "record/session/helper.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

pid_t lull_helper_fork(int fd, const char *name)
{
	pid_t recorder = getpid(), pid = fork();
	int null;

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != recorder)
		_exit(0);
	null = open("/dev/null", O_RDWR);
	for (int i = 0; i < LULL_HELPER_FD; i++)
		dup2(null, i);
	dup2(fd, LULL_HELPER_FD);
	syscall(SYS_close_range, LULL_HELPER_FD + 1u, ~0u, 0u);
	prctl(PR_SET_NAME, name);
	return 0;
}
