/*
 * What every recording needs: the agent, room for events in memory and on disk, a good clock.
 */
#include "doctor/doctor_int.h"

#include <errno.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/statvfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "text/term.h"
#include "record/session/locate.h"

/* A recording of eight ranks with the default rings fits. Docker gives a container 64 MiB. */
#define SHM_WANTED_BYTES (256ull << 20)

/* A quarter of an hour of a busy training loop. */
#define DISK_WANTED_BYTES (1ull << 30)

static void run_agent(struct lull_doctor_finding *f)
{
	struct lull_str path = LULL_STR_INIT;
	struct lull_err err;

	if (lull_locate_agent(&path, &err)) {
		lull_doctor_say(f, LULL_DOCTOR_NO, "%s", err.msg);
		lull_doctor_fix(f, "export LULL_AGENT_PATH=/path/to/" LULL_AGENT_NAME);
	} else {
		lull_doctor_say(f, LULL_DOCTOR_OK, "%s", path.at);
	}
	lull_str_release(&path);
}

const struct lull_doctor_check lull_doctor_check_agent = {
	.name = "agent",
	.group = LULL_DOCTOR_RECORDING,
	.title = "agent library",
	.is_source = true,
	.run = run_agent,
};

static void run_shared_memory(struct lull_doctor_finding *f)
{
	struct statvfs fs;
	u64 free_bytes;

	if (access("/dev/shm", W_OK) || statvfs("/dev/shm", &fs)) {
		lull_doctor_say(f, LULL_DOCTOR_NO, "/dev/shm is missing or cannot be written");
		lull_doctor_fix(f, "sudo mount -t tmpfs -o mode=1777 tmpfs /dev/shm");
		return;
	}
	free_bytes = (u64)fs.f_bavail * fs.f_frsize;
	if (free_bytes >= SHM_WANTED_BYTES) {
		lull_doctor_say(f, LULL_DOCTOR_OK, "%s free in /dev/shm",
				lull_format_bytes(free_bytes).text);
		return;
	}
	lull_doctor_say(f, LULL_DOCTOR_LIMITED,
			"only %s free in /dev/shm; busy programs may lose events",
			lull_format_bytes(free_bytes).text);
	if (!lull_doctor_fix_container(f, "--shm-size=1g",
				       "emptyDir: {medium: Memory} mounted on /dev/shm"))
		lull_doctor_fix(f, "sudo mount -o remount,size=1G /dev/shm");
}

const struct lull_doctor_check lull_doctor_check_shared_memory = {
	.name = "shared-memory",
	.group = LULL_DOCTOR_RECORDING,
	.title = "shared memory",
	.run = run_shared_memory,
};

static void run_disk(struct lull_doctor_finding *f)
{
	struct statvfs fs;
	u64 free_bytes;

	if (access(".", W_OK) || statvfs(".", &fs)) {
		lull_doctor_say(f, LULL_DOCTOR_LIMITED, "the current folder cannot be written");
		lull_doctor_fix(f, "lull profile -o /tmp/report ...");
		return;
	}
	free_bytes = (u64)fs.f_bavail * fs.f_frsize;
	lull_doctor_say(f, free_bytes < DISK_WANTED_BYTES ? LULL_DOCTOR_LIMITED : LULL_DOCTOR_OK,
			"%s free in the current folder", lull_format_bytes(free_bytes).text);
	if (f->state != LULL_DOCTOR_OK)
		lull_doctor_fix(f, "lull profile -o /another/disk/report ...");
}

const struct lull_doctor_check lull_doctor_check_disk = {
	.name = "disk",
	.group = LULL_DOCTOR_RECORDING,
	.title = "disk space",
	.run = run_disk,
};

/*
 * Events carry the raw CPU counter. It is only a clock if it runs at one speed on all cores, which
 * the kernel has found out when it uses the counter itself, and which x86 says in its flags.
 */
static bool is_counter_steady(const char *source)
{
	struct lull_str cpu = LULL_STR_INIT, flags = LULL_STR_INIT;
	bool is_steady = !strcmp(source, "tsc") || !strcmp(source, "arch_sys_counter");

	if (!is_steady && lull_file_read("/proc/cpuinfo", &cpu) &&
	    lull_file_value(cpu.at, "flags", ':', &flags))
		is_steady = strstr(flags.at, "constant_tsc") && strstr(flags.at, "nonstop_tsc");
	lull_str_release(&cpu);
	lull_str_release(&flags);
	return is_steady;
}

static void run_clock(struct lull_doctor_finding *f)
{
	struct lull_str source = LULL_STR_INIT;

	lull_file_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", &source);
	if (is_counter_steady(lull_str_text(&source)))
		lull_doctor_say(f, LULL_DOCTOR_OK, "the CPU counter is steady (clock source %s)",
				source.len ? source.at : "unknown");
	else
		lull_doctor_say(
			f, LULL_DOCTOR_LIMITED,
			"the Linux kernel does not trust the CPU counter (clock source %s); "
			"times of different cores may disagree",
			source.len ? source.at : "unknown");
	lull_str_release(&source);
}

const struct lull_doctor_check lull_doctor_check_clock = {
	.name = "clock",
	.group = LULL_DOCTOR_RECORDING,
	.title = "clock",
	.run = run_clock,
};

/*
 * Whether a program may be traced that is no child of the tracer: our child tries it on us, and
 * leaves at once. 0 or the errno.
 */
static int try_trace(void)
{
	pid_t parent = getpid(), child = fork();
	int status = 0;

	if (child == 0)
		_exit(ptrace(PTRACE_SEIZE, parent, NULL, NULL) == 0 ? 0 : errno);
	if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status))
		return EAGAIN;
	return WEXITSTATUS(status);
}

static void run_attach(struct lull_doctor_finding *f)
{
	i64 scope = 0;
	int rc = try_trace();

	lull_file_i64("/proc/sys/kernel/yama/ptrace_scope", &scope);
	if (!rc) {
		lull_doctor_say(f, LULL_DOCTOR_OK, "lull attach can enter programs of %s",
				geteuid() ? "this user" : "all users");
		return;
	}
	lull_doctor_say(f, LULL_DOCTOR_NO,
			"tracing a program that runs is refused: %s (ptrace_scope %d)",
			strerror(rc), (int)scope);
	if (scope && scope < 3 && geteuid() != 0)
		lull_doctor_fix(f, "sudo sysctl kernel.yama.ptrace_scope=0");
	else
		lull_doctor_fix_container(f, "--cap-add=SYS_PTRACE",
					  "securityContext: {capabilities: {add: [SYS_PTRACE]}}");
}

const struct lull_doctor_check lull_doctor_check_attach = {
	.name = "attach",
	.group = LULL_DOCTOR_RECORDING,
	.title = "running programs",
	.run = run_attach,
};
