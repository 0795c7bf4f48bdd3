/*
 * lib_patch - store thunks in the offset tables of loaded files (slots.h).
 *
 * An entry with the address of a traced function gets the address of its thunk. An entry that the
 * loader has not filled in yet (lazy binding) is only changed if there is a single candidate;
 * otherwise the loader's choice is not known in advance.
 *
 * dlsym() is replaced the same way, in the same tables, so that functions a program looks up by
 * name are traced too. It is not exported: a program that asks for the caller's next definition
 * must be answered by the loader itself, so such calls are forwarded by a jump.
 *
 * When the agent leaves a program that goes on, all entries get the functions back. Thunks that the
 * program has looked up stay good: they jump on, and hooks are never used for another function.
 *
 * Everything happens under the loader's lock, which dl_iterate_phdr() holds.
 */
#include "agent/calls/lib.h"

#include <dlfcn.h>

#include "agent/core/arena.h"
#include "agent/core/loaded.h"
#include "agent/calls/slots.h"
#include "agent/core/sys.h"

#define N_FILES	   1024u
#define NAME_BYTES 1024u
#define MAP_BITS   15u

/* STO_AARCH64_VARIANT_PCS: arguments in registers that we do not keep. */
#define IS_VARIANT_PCS(symbol) ((symbol)->st_other & 0x80)

static struct {
	_Atomic bool is_on; /* written under the lock */
	bool has_frames;
	u64 n_adds, n_subs; /* of the loader, at the last scan */
	u32 n_hooks;
	/* Address and name of a function -> its hook + 1, open addressing. */
	u16 map[1u << MAP_BITS];
	struct dl_phdr_info files[N_FILES];
	u32 n_files;
	u16 owners[N_FILES]; /* files that have functions to watch */
	u32 n_owners;
	struct lull_slots_known known;
} patch;

/*
 * Names that must never be watched: they come back more than once or not at all, look at who called
 * them, or have a calling convention of their own.
 */
static const char untouchable[][24] = {
	"setjmp",
	"_setjmp",
	"sigsetjmp",
	"__sigsetjmp",
	"longjmp",
	"_longjmp",
	"siglongjmp",
	"__longjmp_chk",
	"vfork",
	"__vfork",
	"getcontext",
	"setcontext",
	"swapcontext",
	"makecontext",
	"clone",
	"__clone",
	"clone3",
	"exit",
	"_exit",
	"_Exit",
	"quick_exit",
	"abort",
	"pthread_exit",
	"thrd_exit",
	"execve",
	"dlopen",
	"dlmopen",
	"dlsym",
	"dlvsym",
	"dlerror",
	"dl_iterate_phdr",
	"__libc_start_main",
	"__tls_get_addr",
	"_dl_runtime_resolve",
	"_mcount",
	"mcount",
	"__fentry__",
	"__morestack",
	"__errno_location",
	"__stack_chk_fail",
	"__cxa_throw",
	"__cxa_rethrow",
	"sigreturn",
	"syscall",
	"__gxx_personality_v0",
	"__gcc_personality_v0",
};

static const char *const untouchable_prefixes[] = {
	"_Unwind_", "__aarch64_", "__x86_", "_dl_", "__cyg_profile_", "_ZGV",
};

static bool is_untouchable(const char *name)
{
	for (size_t i = 0; i < LULL_COUNT_OF(untouchable); i++)
		if (strcmp(name, untouchable[i]) == 0)
			return true;
	for (size_t i = 0; i < LULL_COUNT_OF(untouchable_prefixes); i++)
		if (strncmp(name, untouchable_prefixes[i], strlen(untouchable_prefixes[i])) == 0)
			return true;
	return false;
}

/* What wants this function of this file; nobody for names and kinds that cannot be watched. */
static struct lull_lib_want wants(const struct dl_phdr_info *file, const char *name)
{
	struct lull_lib_want want = lull_mpi_wants(file, name);

	if (!want.is_wanted)
		want = lull_library_wants(file->dlpi_name, name);
	if (want.is_wanted && name && is_untouchable(name))
		want.is_wanted = false;
	return want;
}

/* The hook of a function, made at its first use; NULL when there are no thunks left. */
static struct lull_lib_hook *hook_of(u64 target, const char *name, const struct lull_lib_want *want)
{
	size_t len = strnlen(name, NAME_BYTES);
	u64 hash = lull_hash(name, len);
	struct lull_lib_hook *h;
	u32 at = (u32)(lull_hash_mix(target, hash) >> 40);
	char *kept;

	for (;; at++) {
		u16 *ix = &patch.map[at & ((1u << MAP_BITS) - 1)];

		if (!*ix) {
			/* The name lies in a file that may be unloaded; the hook stays. */
			kept = patch.n_hooks < LULL_LIB_HOOKS ? lull_arena_take(len + 1) : NULL;
			if (!kept) {
				lull_issue(LULL_ISSUE_lib_many, 1);
				return NULL;
			}
			memcpy(kept, name, len);
			h = &lull_lib_hooks[patch.n_hooks++];
			*ix = (u16)patch.n_hooks;
			break;
		}
		h = &lull_lib_hooks[*ix - 1];
		if (h->hash == hash && atomic_load(&h->target) == target)
			return h;
	}
	h->hash = hash;
	h->name = kept;
	h->name_len = (u16)len;
	h->n_args = want->n_args;
	h->decoder = want->decoder;
	h->spec = want->spec;
	atomic_store(&h->target, target);
	return h;
}

/* The file with functions to watch that exports this name, or NULL. */
static const struct dl_phdr_info *first_owner(const char *name)
{
	for (u32 i = 0; i < patch.n_owners; i++)
		if (lull_loaded_symbol(&patch.files[patch.owners[i]], name))
			return &patch.files[patch.owners[i]];
	return NULL;
}

/*
 * The file with functions to watch that this address lies in, or NULL. Where the agent wraps a
 * function (of the C library), that is the file with the function.
 */
static const struct dl_phdr_info *owner_of(u64 addr, const char *name)
{
	if (lull_lib_is_wrapper(addr))
		return first_owner(name);
	for (u32 i = 0; i < patch.n_owners; i++)
		if (lull_loaded_contains(&patch.files[patch.owners[i]], addr))
			return &patch.files[patch.owners[i]];
	return NULL;
}

/* True if this symbol is a function that can be watched. */
static bool is_function(const ElfW(Sym) * symbol)
{
	u32 type = symbol ? symbol->st_info & 0xf : STT_NOTYPE;

	return (type == STT_FUNC || type == STT_GNU_IFUNC) && !IS_VARIANT_PCS(symbol);
}

/* The thunk for a function by its address, 0 if it is not watched. */
static u64 thunk_of(u64 target, const char *name)
{
	const struct dl_phdr_info *file = owner_of(target, name);
	struct lull_lib_want want;
	struct lull_lib_hook *hook;

	if (!file)
		return 0;
	want = wants(file, name);
	if (!want.is_wanted || !is_function(lull_loaded_symbol(file, name)))
		return 0;
	hook = hook_of(target, name, &want);
	return hook ? lull_lib_thunk(hook) : 0;
}

/* True if this is the one file that exports the name. */
static bool is_only_owner(const struct dl_phdr_info *owner, const char *name)
{
	for (u32 i = 0; i < patch.n_files; i++)
		if (&patch.files[i] != owner && lull_loaded_symbol(&patch.files[i], name))
			return false;
	return true;
}

/*
 * The thunk for an entry that is not bound yet, 0 if it is not watched. Of several functions of the
 * name nobody knows which it will be, nor what an IFUNC stands for until the loader has asked it.
 */
static u64 thunk_by_name(const char *name)
{
	const struct dl_phdr_info *owner = first_owner(name);
	const ElfW(Sym) *symbol = owner ? lull_loaded_symbol(owner, name) : NULL;

	if (!is_function(symbol))
		return 0;
	if ((symbol->st_info & 0xf) == STT_GNU_IFUNC || !is_only_owner(owner, name))
		return LULL_SLOT_LATER;
	return thunk_of(owner->dlpi_addr + symbol->st_value, name);
}

/* What a program has looked up, and the thunk for it. */
struct lookup {
	u64 target, thunk;
	const char *name;
};

/* First file of a walk: other threads may be at the same place, and change the tables. */
static int give_thunk(struct dl_phdr_info *first, size_t size, void *arg)
{
	struct lookup *l = arg;

	(void)first, (void)size;
	if (patch.is_on)
		l->thunk = thunk_of(l->target, l->name);
	return 1;
}

/* dlsym() as programs see it: what it finds is watched, too. */
static void *find_symbol(void *handle, const char *name)
{
	struct lookup l = { .name = name };

	lull_lib_scan();
	if (handle == RTLD_NEXT)
		return dlsym(handle, name);
	l.target = (u64)dlsym(handle, name);
	/* The caller may see files that we do not; and then the message must be its own, too. */
	if (!l.target)
		return dlsym(handle, name);
	lull_loaded_walk(give_thunk, &l);
	return (void *)(l.thunk ? l.thunk : l.target);
}

/*
 * Where the agent leaves again, somebody else's dlsym() stays: it could not be put back. An entry
 * that is not bound yet points into its own file.
 */
static bool is_dlsym(const struct dl_phdr_info *file, u64 present)
{
	return !lull_agent.is_late || present == (u64)dlsym || present == (u64)find_symbol ||
	       lull_loaded_contains(file, present);
}

/* What belongs into an entry of the offset table instead of what is there; 0: leave it. */
static u64 replacement(const struct dl_phdr_info *file, const char *name, u64 present)
{
	const ElfW(Sym) * own;

	if (strcmp(name, "dlsym") == 0)
		return is_dlsym(file, present) ? (u64)find_symbol : 0;
	if (!lull_loaded_contains(file, present))
		return thunk_of(present, name);
	/* It points into the file itself: to its own function, or it is not bound yet. */
	own = lull_loaded_symbol(file, name);
	if (own &&
	    ((own->st_info & 0xf) == STT_GNU_IFUNC || file->dlpi_addr + own->st_value == present))
		return thunk_of(present, name);
	return thunk_by_name(name);
}

static void patch_file(const struct dl_phdr_info *file)
{
	enum lull_slots result = lull_slots_replace(file, replacement, &patch.known);

	if (result == LULL_SLOTS_REFUSED)
		lull_issue(LULL_ISSUE_lib_refused, 1);
	if (result == LULL_SLOTS_EARLY)
		patch.n_adds = 0; /* look again */
}

static int collect(struct dl_phdr_info *file, size_t size, void *unused)
{
	(void)unused;
	/* Ourselves, and what has no tables (the kernel's page). */
	if (size < sizeof(*file) || lull_loaded_contains(file, (u64)&patch) ||
	    !lull_loaded_dynamic(file, DT_STRTAB))
		return 0;
	if (patch.n_files >= N_FILES)
		return 0;
	if (wants(file, NULL).is_wanted)
		patch.owners[patch.n_owners++] = (u16)patch.n_files;
	patch.files[patch.n_files++] = *file;
	return 0;
}

/* First file of the walk: the loader's lock is held until we return. */
static int scan_all(struct dl_phdr_info *first, size_t size, void *unused)
{
	(void)size, (void)unused;
	if (!patch.is_on)
		return 1; /* the agent has left meanwhile */
	if (first->dlpi_adds == patch.n_adds && first->dlpi_subs == patch.n_subs)
		return 1;
	patch.n_adds = first->dlpi_adds;
	patch.n_subs = first->dlpi_subs;
	patch.n_files = patch.n_owners = 0;
	dl_iterate_phdr(collect, NULL);
	for (u32 i = 0; i < patch.n_files; i++)
		patch_file(&patch.files[i]);
	return 1;
}

void lull_lib_scan(void)
{
	int saved = errno;

	if (patch.is_on)
		lull_loaded_walk(scan_all, NULL);
	errno = saved;
}

/* What was in an entry before us; 0: it is not ours. */
static u64 original(const struct dl_phdr_info *file, const char *name, u64 present)
{
	u64 ix = (present - (u64)lull_lib_thunks) / LULL_LIB_THUNK_BYTES;

	(void)file, (void)name;
	if (present == (u64)find_symbol)
		return (u64)dlsym;
	return ix < patch.n_hooks ? atomic_load(&lull_lib_hooks[ix].target) : 0;
}

static int take_out(struct dl_phdr_info *file, size_t size, void *unused)
{
	(void)unused;
	if (size >= sizeof(*file) && !lull_loaded_contains(file, (u64)&patch))
		lull_slots_replace_all(file, original, NULL, NULL);
	return 0;
}

/* First file of a walk, as in scan_all(). */
static int take_out_all(struct dl_phdr_info *first, size_t size, void *unused)
{
	(void)first, (void)size, (void)unused;
	patch.is_on = false;
	patch.n_adds = patch.n_subs = 0;
	lull_slots_forget(&patch.known);
	dl_iterate_phdr(take_out, NULL);
	return 1;
}

void lull_lib_withdraw(void)
{
	int saved = errno;

	if (patch.is_on)
		lull_loaded_walk(take_out_all, NULL);
	errno = saved;
}

/* A shadow stack that the processor checks would refuse our return. */
static bool has_shadow_stack(void)
{
#if defined(__x86_64__)
	u64 ssp = 0;

	__asm__ volatile("rdsspq %0" : "+r"(ssp)); /* does nothing where there is none */
	return ssp != 0;
#elif defined(__aarch64__)
	u64 status = 0;

	/* PR_GET_SHADOW_STACK_STATUS; unknown before Linux 6.13 */
	return syscall(SYS_prctl, 74L, &status, 0L, 0L, 0L) == 0 && (status & 1);
#else
	return true;
#endif
}

void lull_lib_start(void)
{
	if (patch.is_on) /* a forked child: the tables are as its parent left them */
		return;
	if (has_shadow_stack()) {
		lull_issue(LULL_ISSUE_lib_refused, 1);
		return;
	}
	/* Once: of the last time that we were here, calls may still be on their way. */
	if (!patch.has_frames)
		lull_lib_frames_init();
	patch.has_frames = true;
	patch.is_on = true;
	lull_lib_scan();
}
