/*
 * osrt_late - wrappers of the C library in a program that runs already.
 *
 * Its files were bound before the agent came, so names are not interposed: the wrappers' addresses
 * are put into the offset tables (slots.h), and those of the functions back when the agent leaves.
 * Only entries that hold the very function that a wrapper calls are replaced, or that the loader
 * has not filled in yet: what others have interposed stays.
 *
 * The agent's own definitions are found in its symbol table: by name, the loader finds those of the
 * C library first.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "agent/calls/lib.h"
#include "agent/calls/oscall.h"
#include "agent/calls/slots.h"
#include "agent/core/late.h"
#include "agent/core/loaded.h"
#include "base/hash.h"

/* Only here: the environment of a program that lull has started says where the agent is. */
static char *(*real_getenv)(const char *name) = getenv;

/* Functions of lull_real by their number, and this one. */
#define GETENV	  LULL_N_REAL
#define N_WRAPPED (LULL_N_REAL + 1)

static const char *name_of(u32 ix)
{
	return ix == GETENV ? "getenv" : lull_real_name(ix);
}

static u64 real_of(u32 ix)
{
	return ix == GETENV ? (u64)real_getenv : (u64)*lull_real_slot(ix);
}

/* Those that tell of timers of ours, which nobody has here, or would be told another parent. */
static const char unused[][16] = { "sigaction",	 "signal",	"ssignal",
				   "bsd_signal", "sysv_signal", "__sysv_signal",
				   "setitimer",	 "signalfd",	"getppid" };

/* By the hash of their name; files have 100,000 entries with other names. */
#define N_PLACES 1024u

static struct {
	bool is_looked_up;
	u16 places[N_PLACES];	 /* index + 1 */
	u64 wrappers[N_WRAPPED]; /* 0 until it was looked up */
	u64 n_adds;		 /* files that the loader had loaded at the last look */
	const void *own;	 /* program headers of the agent */
	struct lull_slots_known known;
} late;

static u32 place_of(const char *name)
{
	return (u32)(lull_hash(name, strlen(name)) % N_PLACES);
}

/* The number of the function; N_WRAPPED if it is not wrapped. */
static u32 find(const char *name)
{
	for (u32 at = place_of(name); late.places[at]; at = (at + 1) % N_PLACES) {
		u32 ix = late.places[at] - 1u;

		if (strcmp(name_of(ix), name) == 0)
			return ix;
	}
	return N_WRAPPED;
}

static bool is_unused(const char *name)
{
	for (size_t i = 0; i < LULL_COUNT_OF(unused); i++)
		if (strcmp(unused[i], name) == 0)
			return true;
	return false;
}

/* The file that this function is in: the agent. */
static int look_up(struct dl_phdr_info *file, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	if (!lull_loaded_contains(file, (u64)look_up))
		return 0;
	late.own = file->dlpi_phdr;
	for (u32 i = 0; i < N_WRAPPED; i++) {
		const ElfW(Sym) *symbol = lull_loaded_symbol(file, name_of(i));
		u32 at = place_of(name_of(i));

		if ((!symbol && i != GETENV) || is_unused(name_of(i)))
			continue;
		late.wrappers[i] =
			symbol ? file->dlpi_addr + symbol->st_value : (u64)lull_late_getenv;
		while (late.places[at])
			at = (at + 1) % N_PLACES;
		late.places[at] = (u16)(i + 1);
	}
	return 1;
}

/*
 * x86_64 has two kinds of condition variables, and an entry that is not filled in may mean either.
 */
static bool is_sure(const char *name)
{
	return strncmp(name, "pthread_cond_", 13) != 0;
}

static u64 wrapper_for(const struct dl_phdr_info *file, const char *name, u64 present)
{
	u32 ix = find(name);
	u64 wrapper = ix < N_WRAPPED ? late.wrappers[ix] : 0;

	if (!wrapper)
		return 0;
	if (present == wrapper || present == real_of(ix))
		return wrapper;
	if (!lull_loaded_contains(file, present))
		return 0;
	return is_sure(name) ? wrapper : LULL_SLOT_LATER;
}

static u64 real_for(const struct dl_phdr_info *file, const char *name, u64 present)
{
	u32 ix = find(name);

	(void)file;
	return ix < N_WRAPPED && late.wrappers[ix] && present == late.wrappers[ix] ? real_of(ix)
										   : 0;
}

/* The C library itself, the loader and the agent. */
static bool is_left_alone(const struct dl_phdr_info *file)
{
	static const char *const names[] = { "libc.so",	 "libpthread", "libdl.so",
					     "librt.so", "ld-linux",   "linux-vdso",
					     "libasan",	 "libtsan",    "libcupti.so" };
	const char *name = lull_loaded_file_name(file->dlpi_name);

	for (size_t i = 0; i < LULL_COUNT_OF(names); i++)
		if (strncmp(name, names[i], strlen(names[i])) == 0)
			return true;
	return file->dlpi_phdr == late.own;
}

static int put_in(struct dl_phdr_info *file, size_t size, void *arg)
{
	bool *is_first = arg;

	(void)size;
	if (*is_first && file->dlpi_adds == late.n_adds)
		return 1;
	*is_first = false;
	late.n_adds = file->dlpi_adds;
	if (!is_left_alone(file) &&
	    lull_slots_replace(file, wrapper_for, &late.known) == LULL_SLOTS_EARLY)
		late.n_adds = 0; /* look again */
	return 0;
}

static int take_out(struct dl_phdr_info *file, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	if (!is_left_alone(file))
		lull_slots_replace_all(file, real_for, NULL, NULL);
	return 0;
}

void lull_osrt_enter(void)
{
	bool is_first = true;

	if (!late.is_looked_up)
		lull_loaded_walk(look_up, NULL);
	late.is_looked_up = true;
	lull_loaded_walk(put_in, &is_first);
}

/* Calls from here may be part of a call of CUDA. */
static bool is_cuda(const struct dl_phdr_info *file)
{
	static const char *const names[] = { "libcuda", "libcupti", "libnv", "libcuinj" };
	const char *name = lull_loaded_file_name(file->dlpi_name);

	for (size_t i = 0; i < LULL_COUNT_OF(names); i++)
		if (strncmp(name, names[i], strlen(names[i])) == 0)
			return true;
	return false;
}

static int take_out_of_cuda(struct dl_phdr_info *file, size_t size, void *arg)
{
	(void)size;
	(void)arg;
	if (is_cuda(file))
		lull_slots_replace_all(file, real_for, NULL, NULL);
	return 0;
}

void lull_osrt_points(bool is_on)
{
	static const _Atomic u32 always = 1, never = 0;

	if (is_on)
		lull_loaded_walk(take_out_of_cuda, NULL);
	atomic_store(&lull_osrt.is_pointing, is_on);
	lull_osrt.record = is_on ? &always : &never;
}

void lull_osrt_withdraw(void)
{
	lull_loaded_walk(take_out, NULL);
	late.n_adds = 0;
	lull_slots_forget(&late.known);
}
