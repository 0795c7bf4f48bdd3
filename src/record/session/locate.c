#include "record/session/locate.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/types.h"

#ifndef LULL_LIBDIR
#define LULL_LIBDIR "/usr/local/lib/lull"
#endif

/* Set `path` to the folder of this executable; without /proc, by the name it was started with. */
static void own_folder(struct lull_str *path)
{
	const char *named = (const char *)getauxval(AT_EXECFN);
	char exe[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", exe, sizeof(exe));
	char *slash;

	if (len <= 0)
		len = named && realpath(named, exe) ? (ssize_t)strlen(exe) : 0;
	slash = len > 0 ? memrchr(exe, '/', (size_t)len) : NULL;
	lull_str_clear(path);
	if (slash)
		lull_str_add(path, exe, (size_t)(slash - exe));
}

/*
 * Make the path absolute: the target may have another working folder. False if it cannot be read.
 */
static bool settle(struct lull_str *path)
{
	char *real = access(path->at, R_OK) ? NULL : realpath(path->at, NULL);

	if (!real)
		return false;
	lull_str_clear(path);
	lull_str_puts(path, real);
	free(real);
	return true;
}

static bool find_named(const char *named, struct lull_str *path)
{
	static const char *const below[] = { "/" LULL_AGENT_NAME, "" };

	for (size_t i = 0; i < LULL_COUNT_OF(below); i++) {
		lull_str_clear(path);
		lull_str_addf(path, "%s%s", named, below[i]);
		if (settle(path))
			return true;
	}
	return false;
}

static bool find_installed(struct lull_str *path)
{
	static const char *const beside[] = { "", "/../lib", "/../lib/lull" };
	struct lull_str folder = LULL_STR_INIT;
	bool is_found = false;

	own_folder(&folder);
	for (size_t i = 0; i < LULL_COUNT_OF(beside) && folder.len && !is_found; i++) {
		lull_str_clear(path);
		lull_str_addf(path, "%s%s/" LULL_AGENT_NAME, folder.at, beside[i]);
		is_found = settle(path);
	}
	lull_str_release(&folder);
	if (is_found)
		return true;
	lull_str_clear(path);
	lull_str_puts(path, LULL_LIBDIR "/" LULL_AGENT_NAME);
	return settle(path);
}

int lull_locate_agent(struct lull_str *path, struct lull_err *err)
{
	const char *named = getenv("LULL_AGENT_PATH");

	if (named && *named) {
		if (find_named(named, path))
			return LULL_OK;
		return lull_fail(err, LULL_E_NOT_FOUND, "LULL_AGENT_PATH: no %s at %s",
				 LULL_AGENT_NAME, named);
	}
	if (find_installed(path))
		return LULL_OK;
	return lull_fail(err, LULL_E_NOT_FOUND,
			 "no %s beside the command, in ../lib, ../lib/lull or %s; set "
			 "LULL_AGENT_PATH",
			 LULL_AGENT_NAME, LULL_LIBDIR);
}

bool lull_locate_python(const char *agent_path, struct lull_str *path)
{
	static const char *const beside[] = { "/python", "/../python" };
	const char *slash = strrchr(agent_path, '/');

	for (size_t i = 0; slash && i < LULL_COUNT_OF(beside); i++) {
		lull_str_clear(path);
		lull_str_add(path, agent_path, (size_t)(slash - agent_path));
		lull_str_addf(path, "%s/sitecustomize.py", beside[i]);
		if (settle(path)) {
			path->len = (size_t)(strrchr(path->at, '/') - path->at);
			path->at[path->len] = '\0';
			return true;
		}
	}
	lull_str_clear(path);
	return false;
}
