/*
 * deny - run a program that may not use some system calls, as in a container.
 *
 *	deny CALL[,CALL...] COMMAND [ARGUMENT...]	calls: perf_event_open ptrace process_vm_readv
 *
 * The calls fail with EPERM in it and in everything it starts, as under the seccomp filters of
 * container engines. Needs no rights.
 */
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define MAX_CALLS 16

static const struct {
	const char *name;
	int number;
} calls[] = {
	{ "perf_event_open", __NR_perf_event_open },
	{ "ptrace", __NR_ptrace },
	{ "process_vm_readv", __NR_process_vm_readv },
};

static int number_of(const char *name)
{
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (strcmp(calls[i].name, name) == 0)
			return calls[i].number;
	fprintf(stderr, "deny: no such call: %s\n", name);
	exit(2);
}

/* Load the number of the call, refuse it if it is one of those, else allow it. */
static void install(const int *numbers, unsigned n)
{
	struct sock_filter code[MAX_CALLS + 3];
	struct sock_fprog program = { .len = (unsigned short)(n + 3), .filter = code };

	code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS,
					       offsetof(struct seccomp_data, nr));
	for (unsigned i = 0; i < n; i++)
		code[1 + i] = (struct sock_filter)BPF_JUMP(
			BPF_JMP | BPF_JEQ | BPF_K, (unsigned)numbers[i], (unsigned char)(n - i), 0);
	code[1 + n] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	code[2 + n] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) {
		perror("deny: seccomp");
		exit(2);
	}
}

int main(int argc, char **argv)
{
	int numbers[MAX_CALLS];
	unsigned n = 0;

	if (argc < 3) {
		fprintf(stderr, "usage: deny CALL[,CALL...] COMMAND [ARGUMENT...]\n");
		return 2;
	}
	for (char *name = strtok(argv[1], ","); name && n < MAX_CALLS; name = strtok(NULL, ","))
		numbers[n++] = number_of(name);
	install(numbers, n);
	execvp(argv[2], argv + 2);
	perror(argv[2]);
	return 127;
}
