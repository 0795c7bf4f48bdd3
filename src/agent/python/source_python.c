/*
 * python: where the interpreter is, for the recorder, which reads its stacks, and for the source of
 * its lock. Always on.
 */
#include "agent/python/interpreter.h"

#include "agent/core/agent.h"
#include "agent/core/loaded.h"
#include "agent/core/source.h"
#include "agent/python/gil.h"

/* Where the interpreter is; the same in a forked child, whose image has to be told again. */
static LULL_EARLY struct {
	u64 runtime_addr;
	u64 runtime_bytes;
	u32 version; /* PY_VERSION_HEX; 0 before 3.11, which does not export it */
	u64 n_adds;  /* files the loader had loaded when it was looked for in vain */
} python;

LULL_AT_START static int visit(struct dl_phdr_info *file, size_t size, void *arg)
{
	const ElfW(Sym) * runtime, *version;
	bool *is_first = arg;

	(void)size;
	/* Nothing was loaded since: it is no more there than it was. */
	if (*is_first && file->dlpi_adds == python.n_adds)
		return 1;
	*is_first = false;
	python.n_adds = file->dlpi_adds;
	runtime = lull_loaded_symbol(file, "_PyRuntime");
	if (!runtime)
		return 0;
	version = lull_loaded_symbol(file, "Py_Version");
	if (version)
		python.version =
			(u32) * (const unsigned long *)(file->dlpi_addr + version->st_value);
	python.runtime_bytes = runtime->st_size;
	python.runtime_addr = file->dlpi_addr + runtime->st_value;
	return 1;
}

LULL_AT_START void lull_python_find(void)
{
	bool is_first = true;

	if (!python.runtime_addr)
		lull_loaded_walk(visit, &is_first);
	if (!python.runtime_addr || !lull_agent.image)
		return;
	lull_sources_follow_forks();
	lull_agent.image->python_version = python.version;
	lull_agent.image->python_runtime = python.runtime_addr;
	lull_gil_watch(python.runtime_addr, python.runtime_bytes);
}

u64 lull_python_runtime(void)
{
	return python.runtime_addr;
}

const struct lull_source lull_source_python = {
	.start = lull_python_find,
	.loaded = lull_python_find,
};
