/*
 * CPU samples and context switches: what the kernel lets this user do with perf_event_open().
 */
#include "doctor/doctor_int.h"

#include <errno.h>
#include <link.h>
#include <linux/capability.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include "base/file.h"
#include "text/term.h"
#include "record/session/machine.h"
#include "record/perf/perf.h"
#include "symbol/regs.h"

/* CAP_PERFMON came with Linux 5.8; older headers do not have it. */
#ifndef CAP_PERFMON
#define CAP_PERFMON 38
#endif

/*
 * One way to use perf events: what the probe said, and the highest paranoid level that permits it.
 */
struct perf_right {
	int errno_now;
	int paranoid_now;
	int paranoid_wanted;
	const char *without; /* what is missing without it */
};

/*
 * A refusal though the level would permit it comes from a seccomp filter, which is what containers
 * have; then the level is not the thing to change.
 */
static void explain_refusal(struct lull_doctor_finding *f, const struct perf_right *r)
{
	bool is_level = r->paranoid_now > r->paranoid_wanted;

	if (r->errno_now != EACCES && r->errno_now != EPERM) {
		lull_doctor_say(f, f->state, "%s: this Linux kernel does not support it (%s)",
				r->without, strerror(r->errno_now));
		return;
	}
	if (is_level)
		lull_doctor_say(f, f->state, "%s: kernel.perf_event_paranoid is %d", r->without,
				r->paranoid_now);
	else
		lull_doctor_say(f, f->state, "%s: perf_event_open fails (seccomp filter?)",
				r->without);
	/* Rights of a container reach its root only; for others the level of the host counts. */
	if ((!is_level || !geteuid()) &&
	    lull_doctor_fix_container(f, "--cap-add=PERFMON",
				      "securityContext: {capabilities: {add: [PERFMON]}}"))
		return;
	if (is_level)
		lull_doctor_fix(f, "sudo sysctl kernel.perf_event_paranoid=%d%s",
				r->paranoid_wanted,
				strcmp(lull_machine_container(), "none") ? "  # on the host" : "");
}

static void judge(struct lull_doctor_finding *f, enum lull_doctor_state if_refused,
		  const struct perf_right *r)
{
	if (!r->errno_now) {
		lull_doctor_say(f, LULL_DOCTOR_OK, "permitted (kernel.perf_event_paranoid is %d)",
				r->paranoid_now);
		return;
	}
	f->state = if_refused;
	explain_refusal(f, r);
}

static void run_samples(struct lull_doctor_finding *f)
{
	struct lull_perf_options options = LULL_PERF_OPTIONS_INIT;
	struct lull_perf_probe p;
	u64 cost_ns;

	lull_perf_probe(&p);
	judge(f, LULL_DOCTOR_NO,
	      &(struct perf_right){ p.samples_errno, p.paranoid, 2, "no CPU samples" });
	options.regs_mask = lull_regs_perf_mask();
	cost_ns = p.samples_errno ? 0 : lull_perf_cost_ns(&options);
	if (cost_ns)
		lull_doctor_say(
			f, LULL_DOCTOR_OK,
			"permitted (kernel.perf_event_paranoid is %d), %u a second: one takes "
			"%.1f us",
			p.paranoid, lull_perf_rate_hz(cost_ns), (f64)cost_ns / 1e3);
}

const struct lull_doctor_check lull_doctor_check_samples = {
	.name = "samples",
	.group = LULL_DOCTOR_CPU,
	.title = "CPU samples",
	.is_source = true,
	.run = run_samples,
};

static void run_kernel_samples(struct lull_doctor_finding *f)
{
	struct lull_perf_probe p;

	lull_perf_probe(&p);
	judge(f, LULL_DOCTOR_LIMITED,
	      &(struct perf_right){ p.kernel_errno, p.paranoid, 1, "user code only" });
}

const struct lull_doctor_check lull_doctor_check_kernel_samples = {
	.name = "kernel-samples",
	.group = LULL_DOCTOR_CPU,
	.title = "kernel samples",
	.run = run_kernel_samples,
};

static void run_switches(struct lull_doctor_finding *f)
{
	struct lull_perf_probe p;

	lull_perf_probe(&p);
	judge(f, LULL_DOCTOR_NO,
	      &(struct perf_right){ p.switches_errno, p.paranoid, 2, "no context switches" });
}

const struct lull_doctor_check lull_doctor_check_switches = {
	.name = "switches",
	.group = LULL_DOCTOR_CPU,
	.title = "context switches",
	.is_source = true,
	.run = run_switches,
};

static void run_system_wide(struct lull_doctor_finding *f)
{
	struct lull_perf_probe p;

	lull_perf_probe(&p);
	judge(f, LULL_DOCTOR_LIMITED,
	      &(struct perf_right){ p.system_wide_errno, p.paranoid, 0,
				    "the recorded program only, no other programs" });
}

const struct lull_doctor_check lull_doctor_check_system_wide = {
	.name = "system-wide",
	.group = LULL_DOCTOR_CPU,
	.title = "system-wide",
	.run = run_system_wide,
};

/* The kernel lends each user perf_event_mlock_kb for every CPU; beyond that ulimit -l counts. */
static u64 ring_bytes_allowed(u64 limit_bytes)
{
	i64 lent_kb = 516;

	lull_file_i64("/proc/sys/kernel/perf_event_mlock_kb", &lent_kb);
	return (u64)lent_kb * 1024 + limit_bytes / (u64)get_nprocs();
}

static void run_locked_memory(struct lull_doctor_finding *f)
{
	struct rlimit limit = { 0, 0 };
	u64 allowed_bytes;

	getrlimit(RLIMIT_MEMLOCK, &limit);
	if (limit.rlim_cur == RLIM_INFINITY || lull_doctor_has_capability(CAP_IPC_LOCK) ||
	    lull_doctor_has_capability(CAP_PERFMON)) {
		lull_doctor_say(f, LULL_DOCTOR_OK, "unlimited");
		return;
	}
	allowed_bytes = ring_bytes_allowed(limit.rlim_cur);
	if (allowed_bytes >= LULL_PERF_RING_BYTES) {
		lull_doctor_say(f, LULL_DOCTOR_OK, "%s", lull_format_bytes(limit.rlim_cur).text);
		return;
	}
	lull_doctor_say(f, LULL_DOCTOR_LIMITED,
			"%s: sample buffers of about %s per CPU instead of %s, samples may be lost",
			lull_format_bytes(limit.rlim_cur).text,
			lull_format_bytes(allowed_bytes).text,
			lull_format_bytes(LULL_PERF_RING_BYTES).text);
	if (!lull_doctor_fix_container(f, "--ulimit memlock=-1",
				       "securityContext: {capabilities: {add: [IPC_LOCK]}}"))
		lull_doctor_fix(f, "sudo prlimit --memlock=unlimited --pid $$");
}

const struct lull_doctor_check lull_doctor_check_locked_memory = {
	.name = "locked-memory",
	.group = LULL_DOCTOR_CPU,
	.title = "locked memory",
	.run = run_locked_memory,
};

/* The build id of libc as the hexadecimal path below .build-id/; "" if it has none. */
static void put_build_id(struct lull_str *to, const ElfW(Nhdr) * note, const char *end)
{
	while ((const char *)(note + 1) <= end) {
		const char *name = (const char *)(note + 1);
		const u8 *id = (const u8 *)name + ((note->n_namesz + 3) & ~3u);

		if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 &&
		    !memcmp(name, "GNU", 4)) {
			for (u32 i = 0; i < note->n_descsz; i++)
				lull_str_addf(to, i == 1 ? "/%02x" : "%02x", id[i]);
			return;
		}
		note = (const void *)(id + ((note->n_descsz + 3) & ~3u));
	}
}

static int find_libc(struct dl_phdr_info *info, size_t size, void *ctx)
{
	(void)size;
	if (!info->dlpi_name || !strstr(info->dlpi_name, "/libc.so"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const char *at = (const char *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);

		if (info->dlpi_phdr[i].p_type == PT_NOTE)
			put_build_id(ctx, (const void *)at, at + info->dlpi_phdr[i].p_memsz);
	}
	return 1;
}

/* Each distribution's own way to the symbols, found by its package manager. */
static void fix_symbols(struct lull_doctor_finding *f)
{
	if (!access("/usr/bin/apt-get", X_OK))
		lull_doctor_fix(f, "sudo apt-get install libc6-dbg");
	else if (!access("/usr/bin/dnf", X_OK))
		lull_doctor_fix(f, "sudo dnf debuginfo-install glibc");
	else if (!access("/usr/bin/zypper", X_OK))
		lull_doctor_fix(f, "sudo zypper install glibc-debuginfo");
}

static void run_libc_symbols(struct lull_doctor_finding *f)
{
	struct lull_str id = LULL_STR_INIT, path = LULL_STR_INIT;

	dl_iterate_phdr(find_libc, &id);
	lull_str_addf(&path, "/usr/lib/debug/.build-id/%s.debug", lull_str_text(&id));
	if (id.len && !access(path.at, R_OK)) {
		lull_doctor_say(f, LULL_DOCTOR_OK, "debug symbols of the C library are installed");
	} else {
		lull_doctor_say(f, LULL_DOCTOR_LIMITED,
				"no debug symbols of the C library: its inner functions have no "
				"names");
		fix_symbols(f);
	}
	lull_str_release(&id);
	lull_str_release(&path);
}

const struct lull_doctor_check lull_doctor_check_libc_symbols = {
	.name = "libc-symbols",
	.group = LULL_DOCTOR_CPU,
	.title = "C library symbols",
	.run = run_libc_symbols,
};
