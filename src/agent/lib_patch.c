/*
 * lib_patch - put thunks into the offset tables of loaded files.
 *
 * Each file has a list of relocations by which the loader filled in the addresses of functions.
 * Where such an address is that of a function we watch, the thunk's takes its place. An entry that
 * the loader has not filled in yet (lazy binding) is only touched if there is one candidate alone;
 * else the loader's choice cannot be foreseen.
 *
 * Only calls may be diverted: a program that compares addresses of functions must find them as they
 * are (libcrypto asks whether its allocator is still its own). JUMP_SLOTs are for calls alone.
 * GLOB_DATs are for addresses, unless a file was built without JUMP_SLOTs (-fno-plt); then they are
 * for both, and are taken in all such files but the function's own.
 *
 * dlsym() is replaced the same way, in the same tables, so that what a program looks up by name is
 * watched too. It is not exported: a program that asks for the caller's next definition must be
 * answered by the loader itself, so such calls are handed on by a jump.
 *
 * Everything happens under the loader's lock, which dl_iterate_phdr() holds.
 */
#include "agent/lib.h"

#include <dlfcn.h>

#include "agent/arena.h"
#include "agent/elf.h"
#include "agent/sys.h"

#define N_FILES	   1024u
#define NAME_BYTES 1024u
#define MAP_BITS   15u

#ifdef __aarch64__
#define JUMP_SLOT R_AARCH64_JUMP_SLOT
#define GLOB_DAT  R_AARCH64_GLOB_DAT
#else
#define JUMP_SLOT R_X86_64_JUMP_SLOT
#define GLOB_DAT  R_X86_64_GLOB_DAT
#endif

/* STO_AARCH64_VARIANT_PCS: arguments in registers that we do not keep. */
#define IS_VARIANT_PCS(symbol) ((symbol)->st_other & 0x80)

static struct {
	bool is_on;
	u64 n_adds, n_subs; /* of the loader, at the last scan */
	u32 n_hooks;
	u32 page_bytes;
	/* Address and name of a function -> its hook + 1, open addressing. */
	u16 map[1u << MAP_BITS];
	struct dl_phdr_info files[N_FILES];
	u32 n_files;
	u16 owners[N_FILES]; /* files that have functions to watch */
	u32 n_owners;
	u64 scanned[N_FILES * 2]; /* where files begin whose tables were done; open addressing */
} patch;

/*
 * Names that must never be watched: they come back more than once or not at all, look at who called
 * them, or have a calling convention of their own.
 */
static const char *const untouchable[] = {
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

/* The file with functions to watch that this address lies in, or NULL. */
static const struct dl_phdr_info *owner_of(u64 addr)
{
	for (u32 i = 0; i < patch.n_owners; i++)
		if (lull_elf_contains(&patch.files[patch.owners[i]], addr))
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
	const struct dl_phdr_info *file = owner_of(target);
	struct lull_lib_want want;
	struct lull_lib_hook *hook;

	if (!file)
		return 0;
	want = wants(file, name);
	if (!want.is_wanted || !is_function(lull_elf_symbol(file, name)))
		return 0;
	hook = hook_of(target, name, &want);
	return hook ? lull_lib_thunk(hook) : 0;
}

/* The one file that exports this name; NULL if there are several, or none to watch. */
static const struct dl_phdr_info *only_owner(const char *name)
{
	const struct dl_phdr_info *owner = NULL;

	for (u32 i = 0; i < patch.n_owners && !owner; i++)
		if (lull_elf_symbol(&patch.files[patch.owners[i]], name))
			owner = &patch.files[patch.owners[i]];
	for (u32 i = 0; owner && i < patch.n_files; i++)
		if (&patch.files[i] != owner && lull_elf_symbol(&patch.files[i], name))
			return NULL;
	return owner;
}

/* The thunk for an entry that is not bound yet, 0 if it is not watched. */
static u64 thunk_by_name(const char *name)
{
	const struct dl_phdr_info *owner = only_owner(name);
	const ElfW(Sym) *symbol = owner ? lull_elf_symbol(owner, name) : NULL;

	/* What an IFUNC stands for is known when the loader has asked it. */
	if (!is_function(symbol) || (symbol->st_info & 0xf) == STT_GNU_IFUNC)
		return 0;
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
	lull_elf_walk(give_thunk, &l);
	return (void *)(l.thunk ? l.thunk : l.target);
}

/* One table of relocations of a file. */
struct table {
	const ElfW(Rela) * at;
	size_t n;
};

static struct table table_of(const struct dl_phdr_info *file, i64 tag, i64 size_tag)
{
	const ElfW(Dyn) *size = lull_elf_dynamic(file, size_tag);
	struct table table = { lull_elf_pointer(file, tag), 0 };

	if (table.at && size)
		table.n = size->d_un.d_val / sizeof(ElfW(Rela));
	return table;
}

/* What belongs into an entry of the offset table instead of what is there; 0: leave it. */
static u64 replacement(const struct dl_phdr_info *file, const char *name, u64 present)
{
	const ElfW(Sym) * own;

	if (strcmp(name, "dlsym") == 0)
		return (u64)find_symbol;
	if (!lull_elf_contains(file, present))
		return thunk_of(present, name);
	/* It points into the file itself: to its own function, or it is not bound yet. */
	own = lull_elf_symbol(file, name);
	if (own &&
	    ((own->st_info & 0xf) == STT_GNU_IFUNC || file->dlpi_addr + own->st_value == present))
		return thunk_of(present, name);
	return thunk_by_name(name);
}

/* The part of a file that is made read-only after loading, in whole pages. */
struct relro {
	u64 start, end;
	bool is_open;
};

static struct relro relro_of(const struct dl_phdr_info *file)
{
	u64 mask = ~(u64)(patch.page_bytes - 1);

	for (int i = 0; i < file->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &file->dlpi_phdr[i];
		u64 at = file->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_GNU_RELRO)
			return (struct relro){ at & mask, (at + p->p_memsz) & mask, false };
	}
	return (struct relro){ 0, 0, false };
}

/* Make the entry writable; false if that is refused. */
static bool open_relro(struct relro *r, u64 addr)
{
	if (addr - r->start >= r->end - r->start || r->is_open)
		return true;
	if (syscall(SYS_mprotect, r->start, r->end - r->start, PROT_READ | PROT_WRITE) != 0) {
		lull_issue(LULL_ISSUE_lib_refused, 1);
		return false;
	}
	r->is_open = true;
	return true;
}

static void patch_table(const struct dl_phdr_info *file, struct table table, u32 kind,
			struct relro *relro)
{
	const ElfW(Sym) *symbols = lull_elf_pointer(file, DT_SYMTAB);
	const char *strings = lull_elf_pointer(file, DT_STRTAB);

	for (size_t i = 0; symbols && strings && i < table.n; i++) {
		const ElfW(Rela) *r = &table.at[i];
		const ElfW(Sym) *s = &symbols[ELF64_R_SYM(r->r_info)];
		u64 *slot = (u64 *)(file->dlpi_addr + r->r_offset), thunk;

		if (ELF64_R_TYPE(r->r_info) != kind || !ELF64_R_SYM(r->r_info) || !*slot ||
		    (kind == GLOB_DAT && lull_elf_contains(file, *slot)))
			continue;
		thunk = replacement(file, strings + s->st_name, *slot);
		if (!thunk || *slot == thunk || !open_relro(relro, (u64)slot))
			continue;
		__atomic_store_n(slot, thunk, __ATOMIC_RELEASE);
	}
}

/* True the first time it sees a file. */
static bool is_news(const struct dl_phdr_info *file)
{
	u64 key = (u64)file->dlpi_phdr;

	for (u32 i = 0; i < LULL_COUNT_OF(patch.scanned); i++) {
		u64 *at = &patch.scanned[((key >> 12) + i) % LULL_COUNT_OF(patch.scanned)];

		if (*at == key)
			return false;
		if (!*at) {
			*at = key;
			return true;
		}
	}
	return true;
}

/*
 * True if the file's calls go through GLOB_DATs. What the compiler brings along itself (start-up
 * code, unwinding) may have JUMP_SLOTs in any case.
 */
static bool is_without_slots(const struct dl_phdr_info *file, struct table calls)
{
	static const char *const own[] = { "__libc_start_main", "__cxa_finalize",
					   "__cxa_atexit",	"__gmon_start__",
					   "__gxx_personality", "_Unwind_Resume",
					   "__stack_chk_fail",	"abort" };
	const ElfW(Sym) *symbols = lull_elf_pointer(file, DT_SYMTAB);
	const char *strings = lull_elf_pointer(file, DT_STRTAB);
	size_t n_own = 0;

	for (size_t i = 0; symbols && strings && i < calls.n; i++) {
		const char *name = strings + symbols[ELF64_R_SYM(calls.at[i].r_info)].st_name;

		for (size_t k = 0; k < LULL_COUNT_OF(own); k++)
			if (strncmp(name, own[k], strlen(own[k])) == 0) {
				n_own++;
				break;
			}
	}
	return n_own == calls.n;
}

static void patch_file(const struct dl_phdr_info *file)
{
	struct table calls = table_of(file, DT_JMPREL, DT_PLTRELSZ);
	struct relro relro = relro_of(file);

	patch_table(file, calls, JUMP_SLOT, &relro);
	if (is_without_slots(file, calls))
		patch_table(file, table_of(file, DT_RELA, DT_RELASZ), GLOB_DAT, &relro);
	if (relro.is_open)
		syscall(SYS_mprotect, relro.start, relro.end - relro.start, PROT_READ);
}

static int collect(struct dl_phdr_info *file, size_t size, void *unused)
{
	(void)unused;
	/* Ourselves, and what has no tables (the kernel's page). */
	if (size < sizeof(*file) || lull_elf_contains(file, (u64)&patch) ||
	    !lull_elf_dynamic(file, DT_STRTAB))
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
	if (first->dlpi_adds == patch.n_adds && first->dlpi_subs == patch.n_subs)
		return 1;
	/* Others may have come to the place of a file that went. */
	if (first->dlpi_subs != patch.n_subs)
		memset(patch.scanned, 0, sizeof(patch.scanned));
	patch.n_adds = first->dlpi_adds;
	patch.n_subs = first->dlpi_subs;
	patch.n_files = patch.n_owners = 0;
	dl_iterate_phdr(collect, NULL);
	for (u32 i = 0; i < patch.n_files; i++)
		if (is_news(&patch.files[i]))
			patch_file(&patch.files[i]);
	return 1;
}

void lull_lib_scan(void)
{
	int saved = errno;

	if (patch.is_on)
		lull_elf_walk(scan_all, NULL);
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
	lull_lib_frames_init();
	patch.page_bytes = (u32)sysconf(_SC_PAGESIZE);
	patch.is_on = true;
	lull_lib_scan();
}
