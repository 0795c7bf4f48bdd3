/*
 * locate_cupti - where CUPTI is on this machine.
 */
#include "record/session/locate.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdlib.h>

#include "base/file.h"
#include "base/str.h"

/* The library stays loaded: what its initialisers allocate would be lost with it. */
static bool can_load(const char *name)
{
	return dlopen(name, RTLD_LAZY | RTLD_LOCAL) != NULL;
}

/* Where libcupti may be; a CUDA release changes the number after .so. */
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

	if (lull_file_ask("python3 -c 'import sysconfig; print(sysconfig.get_path(\"platlib\"))'"
			  " 2>/dev/null",
			  &folder)) {
		lull_str_addf(&pattern, "%s/nvidia/*/lib/libcupti.so*", folder.at);
		is_found = match(pattern.at, path);
	}
	lull_str_release(&folder);
	lull_str_release(&pattern);
	return is_found;
}

bool lull_locate_cupti(struct lull_str *path)
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
