/*
 * nvtx_late - NVTX in a program that ran before the agent came (lull attach).
 *
 * At its first call NVTX asks for a tool, finds none, and from then on its functions do nothing.
 * Each file that was built with NVTX's headers keeps this state in its data (nvtxGlobals_v3):
 *
 *	u32 state, u32		2: it has asked
 *	struct callbacks	16, and a function that tells where the others are
 *	struct version_info	24, the version, 0, and a function
 *	the functions		NULL if there is no tool
 *
 * The name is hidden, and mostly stripped. But these two sizes with pointers into the file's own
 * code after them are in no other data; so the writable data of each file is searched for them.
 * Where all functions are NULL they become ours, and NULL again when the agent leaves.
 *
 * An instance that has not asked yet, or is loaded later, asks the environment where the tool is.
 * The answer of lull_late_getenv() is the agent, so that not even its first range is missed.
 *
 * Domains and strings that the program has registered before have no handle: their ranges are in
 * the default domain, or without a name. The library of NVTX 2 (libnvToolsExt) is not found.
 */
#include "agent/nvtx/nvtx_int.h"

#include <time.h>

#include "agent/calls/lib.h"
#include "agent/core/loaded.h"
#include "agent/core/sys.h"

/* How many looks of the agent's thread pass until it searches again, where one has not asked. */
#define LOOKS 10

#define HAS_ASKED 2u

/* Newer ones may have more functions; what is before them stays. */
#define MAX_VERSION 64u

struct state {
	u32 state, pad;
	struct lull_nvtx_callbacks callbacks;
	struct lull_nvtx_version_info version;
};

/* How long the end waits for instances that are asking. */
#define ASKING_TRIES 1000 /* of 1 ms */

struct search {
	void (*found)(const struct lull_nvtx_callbacks *callbacks);
	bool is_for_all; /* also for those that have not asked, or not heard the answer yet */
	u32 n_fresh;	 /* that have not asked yet */
};

static struct {
	_Atomic u32 is_in;
	_Atomic i32 n_asking;
	u32 n_fresh, n_looks;
} late;

static bool is_code(const struct dl_phdr_info *file, u64 addr)
{
	for (int i = 0; i < file->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &file->dlpi_phdr[i];

		if (p->p_type == PT_LOAD && (p->p_flags & PF_X) &&
		    addr - (file->dlpi_addr + p->p_vaddr) < p->p_memsz)
			return true;
	}
	return false;
}

static bool is_state(const struct dl_phdr_info *file, const struct state *s)
{
	return s->callbacks.struct_bytes == sizeof(s->callbacks) &&
	       s->version.struct_bytes == sizeof(s->version) && s->state <= HAS_ASKED &&
	       s->version.version && s->version.version <= MAX_VERSION &&
	       is_code(file, (u64)s->callbacks.find_table) &&
	       is_code(file, (u64)s->version.tell_version);
}

static int visit(struct dl_phdr_info *file, size_t size, void *arg)
{
	struct search *search = arg;

	(void)size;
	for (int i = 0; i < file->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &file->dlpi_phdr[i];
		u64 at = (file->dlpi_addr + p->p_vaddr + 7) & ~(u64)7;
		u64 end = file->dlpi_addr + p->p_vaddr + p->p_filesz;

		if (p->p_type != PT_LOAD || !(p->p_flags & PF_W))
			continue;
		for (; at + sizeof(struct state) <= end; at += 8) {
			const struct state *s = (const struct state *)at;

			if (!is_state(file, s))
				continue;
			if (search->is_for_all ||
			    __atomic_load_n(&s->state, __ATOMIC_ACQUIRE) == HAS_ASKED)
				search->found(&s->callbacks);
			else
				search->n_fresh++;
		}
	}
	return 0;
}

/* Whether no tool is there: nobody's functions are replaced. */
static bool is_free(const struct lull_nvtx_callbacks *callbacks)
{
	lull_nvtx_fn ***table = NULL;
	u32 n = 0;

	if (!callbacks->find_table(LULL_NVTX_MODULE_CORE, &table, &n) || !table)
		return false;
	for (u32 i = 1; i < n; i++)
		if (table[i] && *table[i])
			return false;
	return true;
}

static void fill(const struct lull_nvtx_callbacks *callbacks)
{
	if (is_free(callbacks))
		lull_nvtx_fill(callbacks);
}

static void clear_table(const struct lull_nvtx_callbacks *callbacks, u32 module)
{
	lull_nvtx_fn ***table = NULL;
	u32 n = 0;

	if (!callbacks->find_table(module, &table, &n) || !table)
		return;
	for (u32 i = 1; i < n; i++)
		if (table[i] && lull_lib_is_wrapper((u64)*table[i]))
			*table[i] = NULL;
}

static void clear(const struct lull_nvtx_callbacks *callbacks)
{
#define CLEAR(id, name) clear_table(callbacks, LULL_NVTX_MODULE_##name);
	LULL_NVTX_MODULES(CLEAR)
#undef CLEAR
}

/* Returns how many there are that have not asked yet. */
static u32 fill_all(void)
{
	struct search s = { .found = fill };

	lull_loaded_walk(visit, &s);
	return s.n_fresh;
}

void lull_nvtx_late_enter(void)
{
	late.n_fresh = fill_all();
	late.n_looks = 0;
	atomic_store(&late.is_in, 1);
}

void lull_nvtx_late_look(void)
{
	if (late.is_in && late.n_fresh && ++late.n_looks % LOOKS == 0)
		late.n_fresh = fill_all();
}

bool lull_nvtx_late_begins(void)
{
	if (!lull_agent.is_late)
		return true;
	/* In this order: whoever leaves either sees us, or is seen. */
	atomic_fetch_add(&late.n_asking, 1);
	if (atomic_load(&late.is_in))
		return true;
	atomic_fetch_sub(&late.n_asking, 1);
	return false;
}

void lull_nvtx_late_ends(void)
{
	if (lull_agent.is_late)
		atomic_fetch_sub(&late.n_asking, 1);
}

void lull_nvtx_late_withdraw(void)
{
	struct search s = { .found = clear, .is_for_all = true };
	struct timespec ms = { 0, 1000000 };

	if (!atomic_exchange(&late.is_in, 0))
		return;
	for (int i = 0; i < ASKING_TRIES && atomic_load(&late.n_asking) > 0; i++)
		syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0L, &ms, NULL);
	lull_loaded_walk(visit, &s);
}
