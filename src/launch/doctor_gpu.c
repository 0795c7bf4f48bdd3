/*
 * The GPU: driver, the libraries a recording uses, and the right to read counters.
 *
 * Libraries are loaded but never initialised: starting CUDA here would take seconds and memory of a
 * GPU that somebody else may be using.
 */
#include "launch/doctor_int.h"

#include <dlfcn.h>
#include <glob.h>
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "launch/machine.h"

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

static void run_nvml(struct lull_doctor_finding *f)
{
	judge_driver_library(f, "libnvidia-ml.so.1", "no clocks, power and temperature");
}

const struct lull_doctor_check lull_doctor_check_nvml = {
	.name = "nvml",
	.group = LULL_DOCTOR_GPU,
	.title = "NVML",
	.run = run_nvml,
};

/* Where libcupti may be; a CUDA release changes the number behind .so. */
static const char *const cupti_names[] = { "libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8",
					   "libcupti.so" };
static const char *const cupti_patterns[] = {
	"/usr/local/cuda*/extras/CUPTI/lib64/libcupti.so*",
	"/usr/local/cuda*/targets/*/lib/libcupti.so*",
	"/opt/nvidia/hpc_sdk/*/*/cuda/*/extras/CUPTI/lib64/libcupti.so*",
};

static bool match(const char *pattern, struct lull_str *path)
{
	glob_t found;

	lull_str_clear(path);
	if (glob(pattern, 0, NULL, &found))
		return false;
	lull_str_puts(path, found.gl_pathv[0]);
	globfree(&found);
	return true;
}

/* The packages from which frameworks take their CUDA, in the folder that Python installs into. */
static bool find_cupti_of_python(struct lull_str *path)
{
	struct lull_str folder = LULL_STR_INIT, pattern = LULL_STR_INIT;
	bool is_found = false;

	if (lull_doctor_ask("python3 -c 'import sysconfig; print(sysconfig.get_path(\"platlib\"))'"
			    " 2>/dev/null",
			    &folder)) {
		lull_str_addf(&pattern, "%s/nvidia/*/lib/libcupti.so*", folder.at);
		is_found = match(pattern.at, path);
	}
	lull_str_release(&folder);
	lull_str_release(&pattern);
	return is_found;
}

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

static bool find_cupti(struct lull_str *path)
{
	const char *named = getenv("LULL_CUPTI_PATH");

	lull_str_clear(path);
	if (named && can_load(named)) {
		lull_str_puts(path, named);
		return true;
	}
	for (size_t i = 0; i < LULL_COUNT_OF(cupti_names); i++) {
		if (can_load(cupti_names[i])) {
			lull_str_puts(path, cupti_names[i]);
			return true;
		}
	}
	for (size_t i = 0; i < LULL_COUNT_OF(cupti_patterns); i++) {
		if (match(cupti_patterns[i], path))
			return true;
	}
	return find_cupti_of_python(path);
}

static void run_cupti(struct lull_doctor_finding *f)
{
	struct lull_str path = LULL_STR_INIT;

	if (find_cupti(&path)) {
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
		lull_doctor_say(f, LULL_DOCTOR_NO,
				"the driver gives kernel counters to the administrator only; the "
				"command below holds from the next restart on");
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
