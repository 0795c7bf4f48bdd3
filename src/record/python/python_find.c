#include "record/python/python_int.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/*
 * The interpreter is the program itself (python3.11) or a library (libpython3.11.so.1.0), in both
 * cases a mapped file that defines _PyRuntime. Files whose names look like Python are tried; if
 * none is mapped, the program, which may have the interpreter linked in.
 */

/* One mapped file: where its first byte lies. */
struct module {
	u64 start;
	u64 inode;
	char path[PATH_MAX];
};

/* Symbols wanted, with their addresses in the file. */
enum { SYM_RUNTIME, SYM_VERSION, SYM_CODE_TYPE, N_SYMS };
static const char *const symbol_names[N_SYMS] = {
	[SYM_RUNTIME] = "_PyRuntime",
	[SYM_VERSION] = "Py_Version", /* an unsigned long; since 3.11 */
	[SYM_CODE_TYPE] = "PyCode_Type",
};

/* Parse a line of /proc/PID/maps into *module; false unless it maps the first byte of a file. */
static bool parse_map(const char *line, struct module *module)
{
	unsigned long long start, off, inode;
	int path_at = 0;

	if (sscanf(line, "%llx-%*x %*4s %llx %*x:%*x %llu %n", &start, &off, &inode, &path_at) != 3)
		return false;
	if (off || !inode || line[path_at] != '/')
		return false;
	module->start = start;
	module->inode = inode;
	snprintf(module->path, sizeof(module->path), "%s", line + path_at);
	module->path[strcspn(module->path, "\n")] = 0;
	return true;
}

/* "3.11" after "python" in the file's name, as 0x030b0000; 0 if there is none. */
static u32 version_of_path(const char *path)
{
	const char *base = strrchr(path, '/') + 1;
	const char *at = strstr(base, "python3.");
	unsigned minor;

	if (!at || sscanf(at, "python3.%u", &minor) != 1 || minor > 255)
		return 0;
	return 3u << 24 | minor << 16;
}

static bool looks_like_python(const char *path)
{
	const char *base = strrchr(path, '/') + 1;

	return !strncmp(base, "python", 6) || !strncmp(base, "libpython", 9);
}

/*
 * Open the file a process has mapped: below its own root first, for containers. The inode says
 * whether it is the same file; another one at that path (an upgrade, another container) is refused.
 */
static int open_module(pid_t pid, const struct module *module)
{
	char rooted[PATH_MAX + 32];
	const char *paths[2] = { rooted, module->path };

	snprintf(rooted, sizeof(rooted), "/proc/%d/root%s", pid, module->path);
	for (size_t i = 0; i < LULL_COUNT_OF(paths); i++) {
		int fd = open(paths[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		struct stat st;

		if (fd < 0)
			continue;
		if (!fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_ino == module->inode)
			return fd;
		close(fd);
	}
	return -1;
}

static void find_in_table(Elf *elf, Elf_Scn *scn, const GElf_Shdr *shdr, u64 addrs[N_SYMS])
{
	Elf_Data *data = elf_getdata(scn, NULL);
	size_t n = data && shdr->sh_entsize ? data->d_size / shdr->sh_entsize : 0;

	for (size_t i = 0; i < n; i++) {
		GElf_Sym sym;
		const char *name;

		if (!gelf_getsym(data, (int)i, &sym) || sym.st_shndx == SHN_UNDEF)
			continue;
		name = elf_strptr(elf, shdr->sh_link, sym.st_name);
		for (int k = 0; name && k < N_SYMS; k++)
			if (!strcmp(name, symbol_names[k]))
				addrs[k] = sym.st_value;
	}
}

/* Addresses of the wanted symbols, 0 for those not there. */
static void find_symbols(Elf *elf, u64 addrs[N_SYMS])
{
	static const u32 tables[] = { SHT_DYNSYM, SHT_SYMTAB };

	for (size_t t = 0; t < LULL_COUNT_OF(tables) && !addrs[SYM_RUNTIME]; t++) {
		Elf_Scn *scn = NULL;
		GElf_Shdr shdr;

		while ((scn = elf_nextscn(elf, scn)))
			if (gelf_getshdr(scn, &shdr) && shdr.sh_type == tables[t])
				find_in_table(elf, scn, &shdr, addrs);
	}
}

/* The address in the headers of the file's first byte, which is mapped at module->start. */
static u64 first_vaddr(Elf *elf)
{
	size_t n = 0;
	GElf_Phdr phdr;

	elf_getphdrnum(elf, &n);
	for (size_t i = 0; i < n; i++)
		if (gelf_getphdr(elf, (int)i, &phdr) && phdr.p_type == PT_LOAD && !phdr.p_offset)
			return phdr.p_vaddr;
	return 0;
}

/* Before 3.11 no symbol tells the version, but PY_VERSION is a string in the read-only data. */
static void find_version_text(Elf *elf, u32 version, char text[24])
{
	Elf_Scn *scn = NULL;
	char lead[16];
	int n_lead;

	lead[0] = 0;
	n_lead = 1 + snprintf(lead + 1, sizeof(lead) - 1, "3.%u.", version >> 16 & 0xff);
	while ((scn = elf_nextscn(elf, scn))) {
		GElf_Shdr shdr;
		Elf_Data *data;
		const char *at, *end;

		if (!gelf_getshdr(scn, &shdr) || shdr.sh_type != SHT_PROGBITS ||
		    shdr.sh_flags & (SHF_WRITE | SHF_EXECINSTR) ||
		    !(data = elf_getdata(scn, NULL)) || !data->d_buf)
			continue;
		at = memmem(data->d_buf, data->d_size, lead, (size_t)n_lead);
		end = (const char *)data->d_buf + data->d_size;
		if (!at || end - at < n_lead + 2 || !isdigit((unsigned char)at[n_lead]))
			continue;
		snprintf(text, 24, "%.*s", (int)strnlen(at + 1, (size_t)(end - at - 1)), at + 1);
		return;
	}
}

static void set_version(struct lull_python_target *target, u32 version)
{
	target->version = version;
	if (version & 0xffff)
		snprintf(target->version_text, sizeof(target->version_text), "3.%u.%u",
			 version >> 16 & 0xff, version >> 8 & 0xff);
	else
		snprintf(target->version_text, sizeof(target->version_text), "3.%u",
			 version >> 16 & 0xff);
}

/* See whether this file is the interpreter, and learn what it tells. */
static bool try_module(struct lull_python_target *target, const struct module *module, int fd,
		       struct lull_python_memory *m)
{
	u64 addrs[N_SYMS] = { 0 }, bias, version = 0;
	Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);

	if (!elf)
		return false;
	find_symbols(elf, addrs);
	bias = module->start - first_vaddr(elf);
	if (addrs[SYM_RUNTIME])
		target->runtime = addrs[SYM_RUNTIME] + bias;
	if (addrs[SYM_CODE_TYPE])
		target->code_type = addrs[SYM_CODE_TYPE] + bias;
	if (addrs[SYM_VERSION] && lull_python_read(m, addrs[SYM_VERSION] + bias, &version, 8)) {
		set_version(target, (u32)version);
	} else if (addrs[SYM_RUNTIME]) {
		set_version(target, version_of_path(module->path));
		find_version_text(elf, target->version, target->version_text);
	}
	elf_end(elf);
	return addrs[SYM_RUNTIME] != 0;
}

/* A file without symbols: from 3.13 on _PyRuntime itself begins with a cookie and the version. */
static void read_version(struct lull_python_target *target, struct lull_python_memory *m)
{
	u64 slots[2];

	if (lull_python_read(m, target->runtime, slots, sizeof(slots)) &&
	    !memcmp(slots, "xdebugpy", 8))
		set_version(target, (u32)slots[1]);
}

/* Say whether the process is gone or closed to us. Want of descriptors may pass. */
static int refuse(struct lull_err *err, const char *what, int why)
{
	bool is_gone = why == ENOENT || why == ESRCH || why == EMFILE || why == ENFILE;

	return lull_fail(err, is_gone ? LULL_E_NOT_FOUND : LULL_E_UNSUPPORTED, "%s: %s", what,
			 strerror(why));
}

int lull_python_find(struct lull_python_target *target, pid_t pid, struct lull_python_memory *m,
		     u64 runtime_hint, struct lull_err *err)
{
	char path[32], line[PATH_MAX + 128];
	struct module module;
	bool is_found = false, is_first = true;
	FILE *maps;

	elf_version(EV_CURRENT);
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	maps = fopen(path, "re");
	if (!maps)
		return refuse(err, path, errno);
	while (!is_found && fgets(line, sizeof(line), maps)) {
		int fd;

		if (!parse_map(line, &module))
			continue;
		/* The first file mapped is the program, at least unless it was loaded by hand. */
		if (!is_first && !looks_like_python(module.path))
			continue;
		is_first = false;
		fd = open_module(pid, &module);
		if (fd < 0)
			continue;
		is_found = try_module(target, &module, fd, m);
		close(fd);
	}
	if (ferror(maps)) {
		fclose(maps);
		return refuse(err, path, errno);
	}
	fclose(maps);
	if (runtime_hint)
		target->runtime = runtime_hint;
	if (target->runtime && !target->version)
		read_version(target, m);
	if (!target->runtime)
		return lull_fail(err, LULL_E_NOT_FOUND, "no Python interpreter is mapped");
	if (m->failure)
		return refuse(err, "reading its memory", m->failure);
	return LULL_OK;
}
