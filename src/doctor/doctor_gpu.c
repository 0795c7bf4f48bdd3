/*
 * The GPU: driver, the libraries a recording uses, and the right to read counters.
 *
 * Libraries are loaded but never initialised: starting CUDA here would take seconds and memory of a
 * GPU that somebody else may be using.
 */
#include "doctor/doctor_int.h"

#include <dlfcn.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "record/session/locate.h"
#include "record/session/machine.h"
#include "record/gpu/nvml.h"
#include "record/gpu/pm.h"

static void run_driver(struct lull_doctor_finding *f)
{
	struct lull_str version = LULL_STR_INIT;

	if (lull_machine_driver(&version))
		lull_doctor_say(f, LULL_DOCTOR_OK, "NVIDIA %s", version.at);
	else
		lull_doctor_say(f, LULL_DOCTOR_NO,
				"no NVIDIA driver is loaded; recordings have no GPU part");
	lull_str_release(&version);
}

const struct lull_doctor_check lull_doctor_check_driver = {
	.name = "driver",
	.group = LULL_DOCTOR_GPU,
	.title = "driver",
	.run = run_driver,
};

/* The library stays loaded: what its initialisers allocate would be lost with it. */
static bool can_load(const char *name)
{
	return dlopen(name, RTLD_LAZY | RTLD_LOCAL) != NULL;
}

/*
 * Judge a library of the driver, which a container has only if its runtime passes it through. That
 * helps only where there is a GPU: the kernel's modules can be seen from inside.
 */
static void judge_driver_library(struct lull_doctor_finding *f, const char *name,
				 const char *without)
{
	if (can_load(name)) {
		lull_doctor_say(f, LULL_DOCTOR_OK, "%s", name);
		return;
	}
	lull_doctor_say(f, LULL_DOCTOR_NO, "no %s: %s", name, without);
	if (!access("/sys/module/nvidia", F_OK))
		lull_doctor_fix_container(f, "--gpus all",
					  "resources: {limits: {nvidia.com/gpu: 1}}");
}

static void run_cuda(struct lull_doctor_finding *f)
{
	judge_driver_library(f, "libcuda.so.1", "CUDA programs cannot run here");
}

const struct lull_doctor_check lull_doctor_check_cuda = {
	.name = "cuda",
	.group = LULL_DOCTOR_GPU,
	.title = "CUDA",
	.run = run_cuda,
};

/* "device 0 (NVIDIA H200), ..."; with_gpm: only those that have it. Returns how many. */
static u32 list_devices(const struct lull_nvml *nvml, bool with_gpm, struct lull_str *to)
{
	u32 n = 0;

	for (u32 i = 0; i < lull_nvml_n_devices(nvml); i++) {
		if (with_gpm && !lull_nvml_has_gpm(nvml, i))
			continue;
		lull_str_addf(to, "%sdevice %u (%s)", n++ ? ", " : "", i,
			      lull_nvml_facts(nvml, i)->name);
	}
	return n;
}

static void run_nvml(struct lull_doctor_finding *f)
{
	struct lull_str names = LULL_STR_INIT;
	struct lull_nvml *nvml;
	struct lull_err err;
	int rc = lull_nvml_open(&nvml, &err);

	if (rc == LULL_E_NOT_FOUND) {
		judge_driver_library(f, "libnvidia-ml.so.1", "no clocks, power and temperature");
	} else if (rc) {
		lull_doctor_say(f, LULL_DOCTOR_NO, "%s: no clocks, power and temperature", err.msg);
	} else if (!list_devices(nvml, false, &names)) {
		lull_doctor_say(f, LULL_DOCTOR_NO, "the driver has no device");
	} else {
		lull_doctor_say(f, LULL_DOCTOR_OK,
				"power, clocks, temperature, memory of %s, 10 times a second",
				names.at);
	}
	if (!rc)
		lull_nvml_close(nvml);
	lull_str_release(&names);
}

const struct lull_doctor_check lull_doctor_check_nvml = {
	.name = "nvml",
	.group = LULL_DOCTOR_GPU,
	.title = "NVML",
	.run = run_nvml,
};

/*
 * What cuptiGetVersion() says, which needs no driver; 0 if the library does not load. Since 13.0 it
 * is 130001 for 13.0.1, before that a count.
 */
static u32 cupti_version(const char *path)
{
	void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	int (*get_version)(u32 * version) = NULL;
	u32 version = 0;

	if (library)
		*(void **)&get_version = dlsym(library, "cuptiGetVersion");
	return get_version && get_version(&version) == 0 ? version : 0;
}

static void judge_cupti(struct lull_doctor_finding *f, const char *path)
{
	enum { CUDA_11_8 = 18, CUDA_13_0_0 = 130000 };
	u32 version = cupti_version(path);

	if (!version)
		lull_doctor_say(f, LULL_DOCTOR_OK, "%s", path);
	else if (version < CUDA_11_8)
		lull_doctor_say(
			f, LULL_DOCTOR_NO,
			"%s is older than CUDA 11.8: no CUDA calls, kernels and copies with "
			"it",
			path);
	else if (version == CUDA_13_0_0)
		lull_doctor_say(
			f, LULL_DOCTOR_OK,
			"%s, version 13.0.0: waits for the whole device may be missing; 13.0.1 "
			"has them",
			path);
	else if (version > CUDA_13_0_0)
		lull_doctor_say(f, LULL_DOCTOR_OK, "%s, version %u.%u.%u", path, version / 10000,
				version / 100 % 100, version % 100);
	else
		lull_doctor_say(f, LULL_DOCTOR_OK, "%s, version %u (CUDA 11.8 to 12.9)", path,
				version);
}

static void run_cupti(struct lull_doctor_finding *f)
{
	struct lull_str path = LULL_STR_INIT;

	if (lull_locate_cupti(&path)) {
		judge_cupti(f, path.at);
	} else {
		lull_doctor_say(f, LULL_DOCTOR_NO,
				"no libcupti: no CUDA calls, kernels and copies, unless the "
				"recorded program brings its own");
		lull_doctor_fix(f, "python3 -m pip install nvidia-cuda-cupti-cu12");
	}
	lull_str_release(&path);
}

const struct lull_doctor_check lull_doctor_check_cupti = {
	.name = "cupti",
	.group = LULL_DOCTOR_GPU,
	.title = "CUPTI",
	.run = run_cupti,
};

static void run_gpm(struct lull_doctor_finding *f)
{
	struct lull_str names = LULL_STR_INIT;
	struct lull_nvml *nvml;
	struct lull_err err;

	int rc = lull_nvml_open(&nvml, &err);

	if (rc) {
		lull_doctor_say(f, LULL_DOCTOR_NO, "%s: no counters at 10 Hz",
				rc == LULL_E_NOT_FOUND ? "no libnvidia-ml.so.1" : err.msg);
		return;
	}
	if (list_devices(nvml, true, &names))
		lull_doctor_say(f, LULL_DOCTOR_OK, "counters at 10 Hz of %s", names.at);
	else
		lull_doctor_say(f, LULL_DOCTOR_NO,
				"no device with GPM (Hopper and later): no counters at 10 Hz");
	lull_nvml_close(nvml);
	lull_str_release(&names);
}

const struct lull_doctor_check lull_doctor_check_gpm = {
	.name = "gpm",
	.group = LULL_DOCTOR_GPU,
	.title = "GPM",
	.run = run_gpm,
};

/* What a try of the library gave. */
struct pm_answer {
	int rc;
	u32 n; /* counters of one pass */
	char msg[512];
};

/* In a process of its own: CUPTI loads much, and nothing of that may end a doctor. */
static bool try_plan(const char *path, struct pm_answer *answer)
{
	struct lull_pm_plan plan;
	struct lull_err err = { .msg = "" };
	int ends[2];
	ssize_t n;
	pid_t pid;

	if (pipe(ends) != 0)
		return false;
	pid = fork();
	if (pid == 0) {
		memset(answer, 0, sizeof(*answer));
		answer->rc = lull_pm_plan_chip(&plan, path, "GH100", &err);
		answer->n = answer->rc ? 0 : plan.n;
		snprintf(answer->msg, sizeof(answer->msg), "%s", err.msg);
		_exit(write(ends[1], answer, sizeof(*answer)) != sizeof(*answer));
	}
	close(ends[1]);
	n = pid > 0 ? read(ends[0], answer, sizeof(*answer)) : -1;
	close(ends[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	return n == sizeof(*answer);
}

/* The library can be tried without a device; the device says its own word when it is sampled. */
static void run_pm_sampling(struct lull_doctor_finding *f)
{
	struct lull_str path = LULL_STR_INIT, driver = LULL_STR_INIT;
	struct pm_answer answer;

	if (!lull_locate_cupti(&path)) {
		lull_doctor_say(f, LULL_DOCTOR_NO,
				"no libcupti: --gpu-metrics=pm falls back to NVML");
	} else if (!try_plan(path.at, &answer)) {
		lull_doctor_say(f, LULL_DOCTOR_NO, "%s crashes a process that asks it for counters",
				path.at);
	} else if (answer.rc) {
		lull_doctor_say(f, LULL_DOCTOR_NO, "%s", answer.msg);
	} else {
		bool has_driver = lull_machine_driver(&driver);

		lull_doctor_say(f, has_driver ? LULL_DOCTOR_OK : LULL_DOCTOR_LIMITED,
				"%u counters in one pass on a GH100%s", answer.n,
				has_driver ? "; needs permission to read counters, see below"
					   : ", but no driver is loaded to sample them");
	}
	lull_str_release(&path);
	lull_str_release(&driver);
}

const struct lull_doctor_check lull_doctor_check_pm_sampling = {
	.name = "pm-sampling",
	.group = LULL_DOCTOR_GPU,
	.title = "counter sampling",
	.run = run_pm_sampling,
};

static void run_counters(struct lull_doctor_finding *f)
{
	struct lull_str params = LULL_STR_INIT, is_restricted = LULL_STR_INIT;

	if (!lull_file_read("/proc/driver/nvidia/params", &params))
		lull_doctor_say(f, LULL_DOCTOR_NO, "no NVIDIA driver is loaded");
	else if (!lull_file_value(params.at, "RmProfilingAdminOnly", ':', &is_restricted) ||
		 !strcmp(is_restricted.at, "0"))
		lull_doctor_say(f, LULL_DOCTOR_OK, "open to all users");
	else if (!geteuid() || lull_doctor_has_capability(CAP_SYS_ADMIN))
		lull_doctor_say(f, LULL_DOCTOR_OK, "open to the administrator, which you are");
	else {
		lull_doctor_say(
			f, LULL_DOCTOR_NO,
			"the driver allows only the administrator to read kernel counters; the "
			"command below takes effect after the next restart");
		lull_doctor_fix(f, "echo options nvidia NVreg_RestrictProfilingToAdminUsers=0 | "
				   "sudo tee /etc/modprobe.d/lull.conf");
	}
	lull_str_release(&params);
	lull_str_release(&is_restricted);
}

const struct lull_doctor_check lull_doctor_check_counters = {
	.name = "counters",
	.group = LULL_DOCTOR_GPU,
	.title = "kernel counters",
	.run = run_counters,
};
