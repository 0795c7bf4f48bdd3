#include "symbol/elf.h"

#include <elf.h>
#include <elfutils/libdw.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <gelf.h>
#include <inttypes.h>
#include <libelf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"

#define DELETED_SUFFIX " (deleted)"

/*
 * Larger than any vdso of Linux (two to four pages), to keep a damaged maps line from asking for
 * gigabytes.
 */
#define VDSO_MAX_BYTES (1u << 20)

/* More program headers than any linker writes; the number is from the file. */
#define MAX_SEGMENTS 65536

static void read_segments(struct lull_elf *e)
{
	size_t n;

	if (elf_getphdrnum(e->elf, &n))
		return;
	for (size_t i = 0; i < n && i < MAX_SEGMENTS; i++) {
		struct lull_elf_segment *s;
		GElf_Phdr ph;

		if (!gelf_getphdr(e->elf, (int)i, &ph))
			return;
		if (ph.p_type != PT_LOAD || !(ph.p_flags & PF_X))
			continue;
		s = lull_vec_push(&e->segments);
		*s = (struct lull_elf_segment){ ph.p_vaddr, ph.p_offset, ph.p_memsz };
	}
}

static void read_build_id(struct lull_elf *e)
{
	const void *bytes;
	ssize_t n = dwelf_elf_gnu_build_id(e->elf, &bytes);

	if (n <= 0)
		return;
	e->build_id.n_bytes = n < LULL_BUILD_ID_MAX ? (u32)n : LULL_BUILD_ID_MAX;
	memcpy(e->build_id.at, bytes, e->build_id.n_bytes);
}

/* Read the headers of e->elf, which may be NULL if libelf refused the file. */
static int read_headers(struct lull_elf *e, struct lull_err *err)
{
	GElf_Ehdr eh;

	if (!e->elf || elf_kind(e->elf) != ELF_K_ELF || !gelf_getehdr(e->elf, &eh))
		return lull_fail(err, LULL_E_FORMAT, "%s: not an ELF file", e->path);
	if (eh.e_ident[EI_CLASS] != ELFCLASS64 || eh.e_ident[EI_DATA] != ELFDATA2LSB)
		return lull_fail(err, LULL_E_FORMAT, "%s: not a 64-bit little-endian ELF file",
				 e->path);
	e->machine = eh.e_machine;
	read_segments(e);
	read_build_id(e);
	return LULL_OK;
}

static struct lull_elf *new_elf(const char *path)
{
	struct lull_elf *e = lull_alloc(1, sizeof(*e));

	e->path = lull_strdup(path);
	lull_vec_init(&e->segments, sizeof(struct lull_elf_segment));
	lull_vec_init(&e->symbols, sizeof(struct lull_elf_symbol));
	elf_version(EV_CURRENT);
	return e;
}

/*
 * A descriptor of a regular file, or -1. The type is checked before the open, since opening a
 * device file can do something; O_NONBLOCK covers the file that became a pipe in between.
 */
static int open_regular(const char *path)
{
	struct stat st;
	int fd;

	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0 && (fstat(fd, &st) || !S_ISREG(st.st_mode))) {
		close(fd);
		fd = -1;
	}
	return fd;
}

static int open_path(struct lull_elf **elf, const char *path, const struct lull_build_id *build_id,
		     struct lull_err *err)
{
	struct lull_elf *e;
	int fd = open_regular(path);

	if (fd < 0)
		return lull_fail(err, LULL_E_NOT_FOUND, "%s: no such regular file", path);
	e = new_elf(path);
	e->elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	/*
	 * The mapping stays; FDDONE makes libelf forget the descriptor, so that a thousand files
	 * cost none.
	 */
	if (e->elf)
		elf_cntl(e->elf, ELF_C_FDDONE);
	close(fd);
	if (read_headers(e, err)) {
		lull_elf_close(e);
		return err->code;
	}
	if (build_id && build_id->n_bytes && e->build_id.n_bytes &&
	    !lull_build_id_equal(&e->build_id, build_id)) {
		lull_elf_close(e);
		return lull_fail(err, LULL_E_NOT_FOUND, "%s: its build id has changed", path);
	}
	*elf = e;
	return LULL_OK;
}

int lull_elf_open(struct lull_elf **elf, const struct lull_elf_name *name, struct lull_err *err)
{
	struct lull_str path = LULL_STR_INIT, below_root = LULL_STR_INIT;
	size_t len = strlen(name->path), suffix_len = strlen(DELETED_SUFFIX);
	bool is_deleted =
		len > suffix_len && !strcmp(name->path + len - suffix_len, DELETED_SUFFIX);
	int rc;

	if (is_deleted && !(name->build_id && name->build_id->n_bytes))
		return lull_fail(err, LULL_E_NOT_FOUND,
				 "%s: deleted, and without a build id to check another file",
				 name->path);
	if (name->path[0] != '/')
		return lull_fail(err, LULL_E_NOT_FOUND, "%s: not a file", name->path);
	lull_str_add(&path, name->path, is_deleted ? len - suffix_len : len);
	rc = LULL_E_NOT_FOUND;
	if (name->pid) {
		lull_str_addf(&below_root, "/proc/%" PRIu32 "/root%s", name->pid, path.at);
		rc = open_path(elf, below_root.at, name->build_id, err);
	}
	if (rc == LULL_E_NOT_FOUND)
		rc = open_path(elf, path.at, name->build_id, err);
	lull_str_release(&path);
	lull_str_release(&below_root);
	return rc;
}

/* Where the vdso lies in this process; false if the kernel gave us none. */
static bool find_vdso(u64 *start, u64 *end)
{
	FILE *maps = fopen("/proc/self/maps", "re");
	char line[512];
	bool is_found = false;

	if (!maps)
		return false;
	while (!is_found && fgets(line, sizeof(line), maps))
		is_found = strstr(line, "[vdso]") &&
			   sscanf(line, "%" SCNx64 "-%" SCNx64, start, end) == 2 && *start < *end &&
			   *end - *start <= VDSO_MAX_BYTES;
	fclose(maps);
	return is_found;
}

int lull_elf_open_vdso(struct lull_elf **elf, struct lull_err *err)
{
	struct lull_elf *e;
	u64 start, end;

	if (!find_vdso(&start, &end))
		return lull_fail(err, LULL_E_NOT_FOUND, "this process has no vdso");
	e = new_elf("[vdso]");
	e->image = lull_alloc(1, end - start);
	memcpy(e->image, (const void *)(uintptr_t)start, end - start);
	e->elf = elf_memory(e->image, end - start);
	if (read_headers(e, err)) {
		lull_elf_close(e);
		return err->code;
	}
	*elf = e;
	return LULL_OK;
}

void lull_elf_close(struct lull_elf *e)
{
	if (!e)
		return;
	if (e->cfi)
		dwarf_cfi_end(e->cfi);
	if (e->elf)
		elf_end(e->elf);
	lull_vec_release(&e->segments);
	lull_vec_release(&e->symbols);
	free(e->image);
	free(e->path);
	free(e);
}

/* The code segment that holds the address, or NULL. */
static const struct lull_elf_segment *segment_at(const struct lull_elf *e, u64 vaddr)
{
	const struct lull_elf_segment *s = e->segments.at;

	for (size_t i = 0; i < e->segments.n; i++)
		if (vaddr - s[i].vaddr < s[i].size_bytes)
			return &s[i];
	return NULL;
}

/*
 * How good a name is for its address: a function beats a bare label, one with a size beats one
 * without, a global one beats its local and weak aliases.
 */
static u32 rank_of(const GElf_Sym *sym)
{
	u32 type = GELF_ST_TYPE(sym->st_info);

	return (type != STT_NOTYPE ? 4 : 0) + (sym->st_size ? 2 : 0) +
	       (GELF_ST_BIND(sym->st_info) == STB_GLOBAL ? 1 : 0);
}

static bool is_code(const struct lull_elf *e, const GElf_Sym *sym, const char *name)
{
	u32 type = GELF_ST_TYPE(sym->st_info);

	if (sym->st_shndx == SHN_UNDEF || !name || !name[0])
		return false;
	if (type == STT_FUNC || type == STT_GNU_IFUNC)
		return true;
	/* Labels of assembly code; "$x" and the like only mark code and data for disassemblers. */
	return type == STT_NOTYPE && name[0] != '$' && segment_at(e, sym->st_value);
}

/* Add the functions of every symbol section of this type; true if there was one with symbols. */
static bool read_symbols(struct lull_elf *e, u32 section_type)
{
	Elf_Scn *scn = NULL;
	size_t n_before = e->symbols.n;

	while ((scn = elf_nextscn(e->elf, scn))) {
		GElf_Shdr sh;
		Elf_Data *data;

		if (!gelf_getshdr(scn, &sh) || sh.sh_type != section_type)
			continue;
		data = elf_getdata(scn, NULL);
		for (int i = 0; data && (size_t)i < data->d_size / sizeof(Elf64_Sym); i++) {
			struct lull_elf_symbol *s;
			const char *name;
			GElf_Sym sym;

			if (!gelf_getsym(data, i, &sym))
				break;
			name = elf_strptr(e->elf, sh.sh_link, sym.st_name);
			if (!is_code(e, &sym, name))
				continue;
			s = lull_vec_push(&e->symbols);
			*s = (struct lull_elf_symbol){ sym.st_value, sym.st_size, name,
						       rank_of(&sym) };
		}
	}
	return e->symbols.n > n_before;
}

static int compare_symbols(const void *a, const void *b)
{
	const struct lull_elf_symbol *x = a, *y = b;

	if (x->vaddr != y->vaddr)
		return x->vaddr < y->vaddr ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank > y->rank ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* Read symbols once, sort them, and keep the best name of each address. */
static void load_symbols(struct lull_elf *e)
{
	struct lull_elf_symbol *s;
	size_t n = 0;

	if (e->has_symbols)
		return;
	e->has_symbols = true;
	e->has_symtab = read_symbols(e, SHT_SYMTAB);
	if (!e->has_symtab && !read_symbols(e, SHT_DYNSYM))
		return;
	s = e->symbols.at;
	lull_sort(s, e->symbols.n, sizeof(*s), compare_symbols);
	for (size_t i = 0; i < e->symbols.n; i++)
		if (!n || s[n - 1].vaddr != s[i].vaddr)
			s[n++] = s[i];
	e->symbols.n = n;
}

/* Whether two addresses are in one section of code, or no sections are known. */
static bool share_section(const struct lull_elf *e, u64 a, u64 b)
{
	Elf_Scn *scn = NULL;
	GElf_Shdr sh;

	while ((scn = elf_nextscn(e->elf, scn))) {
		if (gelf_getshdr(scn, &sh) && (sh.sh_flags & SHF_EXECINSTR) &&
		    (a - sh.sh_addr < sh.sh_size) != (b - sh.sh_addr < sh.sh_size))
			return false;
	}
	return true;
}

const struct lull_elf_symbol *lull_elf_find_symbol(struct lull_elf *e, u64 vaddr)
{
	const struct lull_elf_symbol *s;
	size_t n;

	load_symbols(e);
	n = lull_vec_upper(&e->symbols, offsetof(struct lull_elf_symbol, vaddr), vaddr);
	if (!n)
		return NULL;
	s = lull_vec_get(&e->symbols, n - 1);
	/* One without a size reaches to the next one, but not out of its section: to the PLT. */
	if (s->size_bytes ? vaddr - s->vaddr >= s->size_bytes
			  : segment_at(e, vaddr) != segment_at(e, s->vaddr) ||
				    !share_section(e, vaddr, s->vaddr))
		return NULL;
	return s;
}

bool lull_elf_has_symtab(struct lull_elf *e)
{
	load_symbols(e);
	return e->has_symtab;
}

struct Dwarf_CFI_s *lull_elf_cfi(struct lull_elf *e)
{
	if (!e->has_cfi) {
		e->has_cfi = true;
		e->cfi = dwarf_getcfi_elf(e->elf);
	}
	return e->cfi;
}

const struct lull_elf_segment *lull_elf_find_segment(const struct lull_elf *e, u64 file_off)
{
	const struct lull_elf_segment *s = e->segments.at;
	const u64 page_mask = ~(u64)0xffff;

	/*
	 * Mappings begin at a page, segments anywhere in it; 64 KiB is the largest page of either
	 * machine.
	 */
	for (size_t i = 0; i < e->segments.n; i++)
		if (file_off >= (s[i].file_off & page_mask) &&
		    file_off < s[i].file_off + s[i].size_bytes)
			return &s[i];
	return NULL;
}

bool lull_elf_read(const struct lull_elf *e, u64 vaddr, void *to, size_t n_bytes)
{
	const struct lull_elf_segment *s = segment_at(e, vaddr);
	size_t file_bytes;
	const char *file;
	u64 off;

	if (!s || n_bytes > s->size_bytes - (vaddr - s->vaddr))
		return false;
	file = elf_rawfile(e->elf, &file_bytes);
	off = s->file_off + (vaddr - s->vaddr);
	if (!file || off > file_bytes || n_bytes > file_bytes - off)
		return false;
	memcpy(to, file + off, n_bytes);
	return true;
}

bool lull_build_id_equal(const struct lull_build_id *a, const struct lull_build_id *b)
{
	return a->n_bytes && a->n_bytes == b->n_bytes && !memcmp(a->at, b->at, a->n_bytes);
}

struct lull_build_id lull_build_id_parse(const char *hex)
{
	struct lull_build_id id = { .n_bytes = 0 };
	size_t n = strlen(hex) / 2;

	if (strlen(hex) % 2 || n > sizeof(id.at))
		return id;
	for (size_t i = 0; i < n; i++) {
		char pair[3] = { hex[2 * i], hex[2 * i + 1], '\0' }, *end;

		id.at[i] = (u8)strtoul(pair, &end, 16);
		if (*end)
			return id;
	}
	id.n_bytes = (u32)n;
	return id;
}

char *lull_build_id_format(const struct lull_build_id *id, char *to)
{
	to[0] = '\0';
	for (u32 i = 0; i < id->n_bytes && i < LULL_BUILD_ID_MAX; i++)
		sprintf(to + 2 * i, "%02x", id->at[i]);
	return to;
}
