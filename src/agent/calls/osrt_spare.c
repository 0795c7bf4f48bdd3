/*
 * osrt_spare: internal locks of the CUDA libraries and of Python go directly to libc.
 *
 * A training step takes 33,000 to 72,000 locks (PyTorch 2.11, H200: 15 per launch in the driver, 13
 * in the CUDA runtime, 7 in CUPTI, 4 whenever Python releases its interpreter lock), and nearly all
 * are free: even the few nanoseconds of a wrapper are one per cent of such a step. These locks are
 * not of interest. A thread that waits in the driver is in a CUDA call, which is recorded; a thread
 * that waits for the interpreter lock waits for its condition variable, which is still traced, as
 * are the semaphores that implement the locks of Python programs.
 *
 * So in the offset tables of these files the wrappers are replaced by the functions they wrap,
 * whether a recording is running or not. An entry that the loader has not filled in yet (lazy
 * binding) is left unchanged, and found the next time: another preloaded library may decide its
 * value.
 */
#include <errno.h>
#include <string.h>

#include "agent/core/loaded.h"
#include "agent/calls/lib.h"
#include "agent/calls/oscall.h"
#include "agent/calls/slots.h"

/* Names of files begin so. */
static const char *const drivers[] = { "libcuda.so", "libcudart.so", "libcupti.so", "libcublas" };

static LULL_EARLY u64
	n_adds; /* files that the loader had loaded at the last look; under its lock */

/* What the wrapper of this name wraps; 0 if that is not known. */
static u64 real_of(u64 addr)
{
	return lull_lib_is_wrapper(addr) ? 0 : addr;
}

/*
 * Know what is to be put there. Before the files are walked: that holds a lock of the loader, with
 * which nobody may ask the loader for a name.
 */
static void find_real(void)
{
	lull_real_find((void **)&lull_real.pthread_mutex_lock);
	lull_real_find((void **)&lull_real.pthread_cond_signal);
	lull_real_find((void **)&lull_real.pthread_rwlock_rdlock);
	lull_real_find((void **)&lull_real.pthread_rwlock_wrlock);
	lull_real_find((void **)&lull_real.pthread_spin_lock);
}

/* Whether the main program is the interpreter itself, not a program with Python in it. */
static bool is_python(void)
{
	return strncmp(program_invocation_short_name, "python", 6) == 0;
}

static u64 mutexes(const struct dl_phdr_info *file, const char *name, u64 present)
{
	(void)file;
	if (!lull_lib_is_wrapper(present))
		return 0;
	if (strcmp(name, "pthread_mutex_lock") == 0)
		return real_of((u64)lull_real.pthread_mutex_lock);
	/* It tells who gives the interpreter lock away. */
	if (strcmp(name, "pthread_cond_signal") == 0 &&
	    !(lull_agent.control->sources & LULL_SOURCE_GIL))
		return real_of((u64)lull_real.pthread_cond_signal);
	return 0;
}

static u64 locks(const struct dl_phdr_info *file, const char *name, u64 present)
{
	if (!lull_lib_is_wrapper(present))
		return 0;
	if (strcmp(name, "pthread_rwlock_rdlock") == 0)
		return real_of((u64)lull_real.pthread_rwlock_rdlock);
	if (strcmp(name, "pthread_rwlock_wrlock") == 0)
		return real_of((u64)lull_real.pthread_rwlock_wrlock);
	if (strcmp(name, "pthread_spin_lock") == 0)
		return real_of((u64)lull_real.pthread_spin_lock);
	return mutexes(file, name, present);
}

static bool is_driver(const char *name)
{
	for (size_t i = 0; i < LULL_COUNT_OF(drivers); i++)
		if (strncmp(name, drivers[i], strlen(drivers[i])) == 0)
			return true;
	return false;
}

static int visit(struct dl_phdr_info *file, size_t size, void *arg)
{
	const char *name = lull_loaded_file_name(file->dlpi_name);
	enum lull_slots result = LULL_SLOTS_DONE;
	bool *is_sure = arg; /* that there is something new */

	if (size < sizeof(*file) || (!*is_sure && file->dlpi_adds == n_adds))
		return 1;
	if (!*is_sure)
		n_adds = file->dlpi_adds;
	*is_sure = true;
	if (is_driver(name))
		result = lull_slots_replace_all(file, locks, NULL, NULL);
	else if ((*name ? strncmp(name, "libpython3", 10) == 0 : is_python()) &&
		 lull_loaded_symbol(file, "_PyRuntime"))
		result = lull_slots_replace_all(file, mutexes, NULL, NULL);
	if (result == LULL_SLOTS_EARLY)
		n_adds = 0; /* look again */
	return 0;
}

void lull_osrt_spare(bool is_again)
{
	int saved = errno;

	/* Without a session the addresses of what we wrap were never looked up. */
	if (lull_agent.has_session) {
		find_real();
		lull_loaded_walk(visit, &is_again);
	}
	errno = saved;
}
