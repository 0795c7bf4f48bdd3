#include "agent/calls/slots.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent/core/loaded.h"
#include "agent/calls/slots_calls.h"
#include "agent/core/sys.h"
#include "base/hash.h"

#ifdef __aarch64__
#define JUMP_SLOT R_AARCH64_JUMP_SLOT
#define GLOB_DAT  R_AARCH64_GLOB_DAT
#else
#define JUMP_SLOT R_X86_64_JUMP_SLOT
#define GLOB_DAT  R_X86_64_GLOB_DAT
#endif

/* How often files that are being loaded may be asked about again, all together. */
#define MAX_EARLY 1000u
static _Atomic u32 n_early;

/* One table of relocations of a file. */
struct table {
	const ElfW(Rela) * at;
	size_t n;
};

static struct table table_of(const struct dl_phdr_info *file, i64 tag, i64 size_tag)
{
	const ElfW(Dyn) *size = lull_loaded_dynamic(file, size_tag);
	struct table table = { lull_loaded_pointer(file, tag), 0 };

	if (table.at && size)
		table.n = size->d_un.d_val / sizeof(ElfW(Rela));
	return table;
}

/* Without those that come first and name nothing: 400,000 of them in libcublasLt. */
static struct table addresses_of(const struct dl_phdr_info *file)
{
	const ElfW(Dyn) *unnamed = lull_loaded_dynamic(file, DT_RELACOUNT);
	struct table table = table_of(file, DT_RELA, DT_RELASZ);

	if (unnamed && unnamed->d_un.d_val <= table.n) {
		table.at += unnamed->d_un.d_val;
		table.n -= unnamed->d_un.d_val;
	}
	return table;
}

/* The part of a file that is made read-only after loading, in whole pages. */
struct relro {
	u64 start, end;
	bool is_open, is_refused, is_early;
};

static struct relro relro_of(const struct dl_phdr_info *file)
{
	u64 mask = ~(u64)(sysconf(_SC_PAGESIZE) - 1);

	for (int i = 0; i < file->dlpi_phnum; i++) {
		const ElfW(Phdr) *p = &file->dlpi_phdr[i];
		u64 at = file->dlpi_addr + p->p_vaddr;

		if (p->p_type == PT_GNU_RELRO)
			return (struct relro){ .start = at & mask,
					       .end = (at + p->p_memsz) & mask };
	}
	return (struct relro){ 0 };
}

/* Reads hexadecimal digits; what follows them. */
static const char *read_hex(const char *at, u64 *value)
{
	for (*value = 0;; at++) {
		u32 digit = (u32)*at - '0', letter = (u32)*at - 'a';

		if (digit > 9 && letter > 5)
			return at;
		*value = *value << 4 | (digit <= 9 ? digit : letter + 10);
	}
}

/* Whether a line of /proc/self/maps ("START-END rw-p ...") is about this address; 'r', 'w' or 0. */
static char access_of(const char *line, u64 addr)
{
	u64 start, end;
	const char *at = read_hex(line, &start);

	if (*at != '-')
		return 0;
	at = read_hex(at + 1, &end);
	if (addr - start >= end - start || at[0] != ' ' || !at[1])
		return 0;
	return at[2] == 'w' ? 'w' : 'r';
}

/*
 * True if the loader is done with the file: making this part read-only is the last thing it does.
 * Before, another thread is about to write there.
 */
static bool is_read_only(u64 addr)
{
	char text[4096];
	int fd = lull_sys_open("/proc/self/maps", O_RDONLY, 0), error = errno;
	size_t n = 0;
	char found = 0;
	long got;

	while (fd >= 0 && !found && n < sizeof(text) - 1 &&
	       (got = lull_sys_read(fd, text + n, sizeof(text) - 1 - n)) > 0) {
		char *line = text, *end;

		n += (size_t)got;
		text[n] = '\0';
		for (; !found && (end = strchr(line, '\n')); line = end + 1)
			found = access_of(line, addr);
		n -= (size_t)(line - text);
		memmove(text, line, n);
	}
	if (fd >= 0)
		lull_sys_close(fd);
	/* Without /proc nobody can tell; that is rarer than a load at the same moment. */
	return (fd < 0 && error == ENOENT) || found == 'r';
}

/* Make the entry writable; false if that is refused, or too early. */
static bool open_relro(struct relro *r, u64 addr)
{
	if (addr - r->start >= r->end - r->start || r->is_open)
		return true;
	if (r->is_early || !is_read_only(addr)) {
		r->is_early = true;
		return false;
	}
	if (syscall(SYS_mprotect, r->start, r->end - r->start, PROT_READ | PROT_WRITE) != 0)
		r->is_refused = true;
	r->is_open = !r->is_refused;
	return r->is_open;
}

/* True if the loader has not added the file's address to this JUMP_SLOT yet. GLOB_DATs are 0. */
static bool is_raw(const struct dl_phdr_info *file, u64 entry)
{
	return file->dlpi_addr && lull_loaded_contains(file, file->dlpi_addr + entry);
}

/* A file whose entries are being replaced. */
struct work {
	const struct dl_phdr_info *file;
	const ElfW(Sym) * symbols;
	const char *strings;
	lull_slot_choice *choice;
	struct relro relro;
	bool has_later;
	struct lull_slots_file done;
};

/* What belongs into the entry of this relocation; 0: leave it, or it is of another kind. */
static u64 chosen_for(struct work *w, const ElfW(Rela) * r, u32 kind)
{
	const u64 *slot = (const u64 *)(w->file->dlpi_addr + r->r_offset);
	u64 chosen;

	if (ELF64_R_TYPE(r->r_info) != kind || !ELF64_R_SYM(r->r_info) || !*slot ||
	    (kind == GLOB_DAT && lull_loaded_contains(w->file, *slot)))
		return 0;
	if (kind == JUMP_SLOT && is_raw(w->file, *slot)) {
		w->relro.is_early = true;
		return 0;
	}
	chosen = w->choice(w->file, w->strings + w->symbols[ELF64_R_SYM(r->r_info)].st_name, *slot);
	if (chosen != LULL_SLOT_LATER)
		return chosen;
	w->has_later = true;
	return 0;
}

static void put(struct work *w, u64 *slot, u64 chosen)
{
	if (*slot != chosen && !open_relro(&w->relro, (u64)slot))
		return;
	if (*slot != chosen)
		__atomic_store_n(slot, chosen, __ATOMIC_RELEASE);
	w->done.slot = slot;
	w->done.chosen = chosen;
	w->done.n_replaced++;
}

static void replace_in(struct work *w, struct table table, u32 kind)
{
	for (size_t i = 0; i < table.n && !w->relro.is_refused; i++) {
		u64 chosen = chosen_for(w, &table.at[i], kind);

		if (kind == JUMP_SLOT && w->relro.is_early)
			break;
		if (chosen)
			put(w, (u64 *)(w->file->dlpi_addr + table.at[i].r_offset), chosen);
	}
}

/*
 * Entries whose file does not call through them, as hashes of entry and address; the last one that
 * fell into each place. After a dlclose() all files are asked about again, and reading code takes a
 * while. Under the loader's lock.
 */
static u64 uncalled[1024];

static u64 key_of(const u64 *slot)
{
	return lull_hash_mix((u64)slot, *slot);
}

/* GLOB_DATs that are chosen, before it is known whether the file calls through them. */
struct batch {
	struct lull_slot_use uses[64];
	u64 chosen[64];
	u32 n;
};

static void replace_called(struct work *w, struct batch *b)
{
	if (b->n)
		lull_slots_find_calls(w->file, b->uses, b->n);
	for (u32 i = 0; i < b->n; i++) {
		u64 key = key_of(b->uses[i].slot);

		if (b->uses[i].is_called)
			put(w, b->uses[i].slot, b->chosen[i]);
		else
			uncalled[key % LULL_COUNT_OF(uncalled)] = key;
	}
	b->n = 0;
}

/* GLOB_DATs of a file that also has JUMP_SLOTs: those that it calls through. */
static void replace_shared(struct work *w, struct table table)
{
	struct batch b = { .n = 0 };

	for (size_t i = 0; i < table.n && !w->relro.is_refused && !w->relro.is_early; i++) {
		u64 *slot = (u64 *)(w->file->dlpi_addr + table.at[i].r_offset);
		u64 chosen = chosen_for(w, &table.at[i], GLOB_DAT), key;

		if (!chosen)
			continue;
		key = key_of(slot);
		if (*slot == chosen)
			put(w, slot, chosen);
		else if (uncalled[key % LULL_COUNT_OF(uncalled)] != key) {
			b.uses[b.n] = (struct lull_slot_use){ slot, false };
			b.chosen[b.n++] = chosen;
		}
		if (b.n == LULL_COUNT_OF(b.uses))
			replace_called(w, &b);
	}
	replace_called(w, &b);
}

/*
 * True if the file's calls go through GLOB_DATs. What the compiler brings along itself (start-up
 * code, unwinding) may have JUMP_SLOTs in any case.
 */
static bool is_without_slots(const struct work *w, struct table calls)
{
	static const char *const own[] = { "__libc_start_main", "__cxa_finalize",
					   "__cxa_atexit",	"__gmon_start__",
					   "__gxx_personality", "_Unwind_Resume",
					   "__stack_chk_fail",	"abort" };
	size_t n_own = 0;

	for (size_t i = 0; i < calls.n && n_own == i; i++) {
		const char *name = w->strings + w->symbols[ELF64_R_SYM(calls.at[i].r_info)].st_name;

		for (size_t k = 0; k < LULL_COUNT_OF(own); k++)
			if (strncmp(name, own[k], strlen(own[k])) == 0) {
				n_own++;
				break;
			}
	}
	return n_own == calls.n;
}

/* Places of the table in which a file may be. */
#define N_WAYS 8u

static u64 key_of_file(const struct dl_phdr_info *file)
{
	const u64 parts[] = {
		lull_hash(file->dlpi_name, strlen(file->dlpi_name)),
		file->dlpi_addr,
		(u64)file->dlpi_phdr,
		(u64)lull_loaded_pointer(file, DT_STRTAB),
		table_of(file, DT_JMPREL, DT_PLTRELSZ).n,
	};

	return lull_hash(parts, sizeof(parts)) | 1;
}

static const struct lull_slots_file *find_known(const struct lull_slots_known *known, u64 key)
{
	for (u32 i = 0; i < N_WAYS; i++) {
		const struct lull_slots_file *f = &known->files[(key + i) % LULL_SLOTS_FILES];

		if (f->key == key)
			return !f->slot || *f->slot == f->chosen ? f : NULL;
	}
	return NULL;
}

/* The place it has, or a free one; if there is none, another file is asked about again. */
static void remember(struct lull_slots_known *known, const struct lull_slots_file *file)
{
	struct lull_slots_file *place = NULL;

	for (u32 i = 0; i < N_WAYS; i++) {
		struct lull_slots_file *f = &known->files[(file->key + i) % LULL_SLOTS_FILES];

		if (f->key == file->key || (!f->key && !place))
			place = f;
	}
	*(place ? place : &known->files[file->key % LULL_SLOTS_FILES]) = *file;
}

void lull_slots_forget(struct lull_slots_known *known)
{
	memset(known, 0, sizeof(*known));
}

static enum lull_slots replace(struct work *w, bool is_with_addresses)
{
	struct table calls = table_of(w->file, DT_JMPREL, DT_PLTRELSZ);

	w->symbols = lull_loaded_pointer(w->file, DT_SYMTAB);
	w->strings = lull_loaded_pointer(w->file, DT_STRTAB);
	w->relro = relro_of(w->file);
	if (!w->symbols || !w->strings)
		return LULL_SLOTS_DONE;
	replace_in(w, calls, JUMP_SLOT);
	if (is_with_addresses || is_without_slots(w, calls))
		replace_in(w, addresses_of(w->file), GLOB_DAT);
	else
		replace_shared(w, addresses_of(w->file));
	if (w->relro.is_open)
		syscall(SYS_mprotect, w->relro.start, w->relro.end - w->relro.start, PROT_READ);
	if (w->relro.is_refused)
		return LULL_SLOTS_REFUSED;
	if (!w->relro.is_early)
		return LULL_SLOTS_DONE;
	/* It may stay so: another tool has left it open, or there are no descriptors. */
	return atomic_fetch_add(&n_early, 1) < MAX_EARLY ? LULL_SLOTS_EARLY : LULL_SLOTS_DONE;
}

static enum lull_slots replace_new(const struct dl_phdr_info *file, lull_slot_choice *choice,
				   bool is_with_addresses, struct lull_slots_known *known,
				   u32 *n_replaced)
{
	struct work w = { .file = file, .choice = choice, .done.key = key_of_file(file) };
	const struct lull_slots_file *before = known ? find_known(known, w.done.key) : NULL;
	enum lull_slots result = LULL_SLOTS_DONE;

	if (before)
		w.done = *before;
	else
		result = replace(&w, is_with_addresses);
	if (known && !before && result != LULL_SLOTS_EARLY && !w.has_later)
		remember(known, &w.done);
	if (n_replaced)
		*n_replaced += w.done.n_replaced;
	return result;
}

enum lull_slots lull_slots_replace(const struct dl_phdr_info *file, lull_slot_choice *choice,
				   struct lull_slots_known *known)
{
	return replace_new(file, choice, false, known, NULL);
}

enum lull_slots lull_slots_replace_all(const struct dl_phdr_info *file, lull_slot_choice *choice,
				       struct lull_slots_known *known, u32 *n_replaced)
{
	return replace_new(file, choice, true, known, n_replaced);
}
