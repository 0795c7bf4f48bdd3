#include "symbol/debugfile.h"

#include <dlfcn.h>
#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"

#define SYSTEM_DIR "/usr/lib/debug"

/* The search for one file. */
struct search {
	const struct lull_elf *elf;
	const char *link; /* name in .gnu_debuglink, NULL if there is none */
	GElf_Word link_crc;
	char build_id[2 * LULL_BUILD_ID_MAX + 1];
	struct lull_str path; /* scratch */
	struct lull_elf *found;
};

/*
 * CRC-32 of a whole file as .gnu_debuglink has it: reflected polynomial 0xedb88320, inverted at
 * both ends.
 */
static u32 crc_of(const char *bytes, size_t n)
{
	u32 table[256], crc = ~0u;

	for (u32 i = 0; i < 256; i++) {
		table[i] = i;
		for (int bit = 0; bit < 8; bit++)
			table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320u : 0);
	}
	for (size_t i = 0; i < n; i++)
		crc = table[(crc ^ (u8)bytes[i]) & 0xff] ^ crc >> 8;
	return ~crc;
}

static bool is_match(const struct search *s, struct lull_elf *candidate)
{
	size_t n;
	const char *bytes;

	if (s->elf->build_id.n_bytes && candidate->build_id.n_bytes)
		return lull_build_id_equal(&s->elf->build_id, &candidate->build_id);
	bytes = elf_rawfile(candidate->elf, &n);
	return s->link && bytes && crc_of(bytes, n) == s->link_crc;
}

/* Look at the path in s->path; true if it is the one. */
static bool try_path(struct search *s)
{
	struct lull_elf_name name = { .path = lull_str_text(&s->path) };
	struct lull_err err;

	/* A file may name itself in its debuglink; it would be found beside itself. */
	if (!strcmp(name.path, s->elf->path) || lull_elf_open(&s->found, &name, &err))
		return false;
	if (is_match(s, s->found))
		return true;
	lull_elf_close(s->found);
	s->found = NULL;
	return false;
}

/* DIR/.build-id/xx/yyyy.debug */
static bool try_build_id(struct search *s, const char *dir, size_t dir_len)
{
	if (strlen(s->build_id) < 3)
		return false;
	lull_str_clear(&s->path);
	lull_str_add(&s->path, dir, dir_len);
	lull_str_addf(&s->path, "/.build-id/%.2s/%s.debug", s->build_id, s->build_id + 2);
	return try_path(s);
}

/* DIR, the directory of the file, BETWEEN, the name of the link. */
static bool try_link(struct search *s, const char *dir, size_t dir_len, const char *between)
{
	const char *slash = strrchr(s->elf->path, '/');

	if (!s->link || !slash)
		return false;
	lull_str_clear(&s->path);
	lull_str_add(&s->path, dir, dir_len);
	lull_str_add(&s->path, s->elf->path, (size_t)(slash + 1 - s->elf->path));
	lull_str_addf(&s->path, "%s%s", between, s->link);
	return try_path(s);
}

/* DIR/LINK, for a flat directory that the user named. */
static bool try_flat(struct search *s, const char *dir, size_t dir_len)
{
	if (!s->link)
		return false;
	lull_str_clear(&s->path);
	lull_str_add(&s->path, dir, dir_len);
	lull_str_addf(&s->path, "/%s", s->link);
	return try_path(s);
}

static bool try_dir(struct search *s, const char *dir, size_t dir_len)
{
	return try_build_id(s, dir, dir_len) || try_link(s, dir, dir_len, "") ||
	       try_flat(s, dir, dir_len);
}

static bool try_list(struct search *s, const char *dirs)
{
	while (dirs && *dirs) {
		size_t len = strcspn(dirs, ":");

		if (len && try_dir(s, dirs, len))
			return true;
		dirs += len + (dirs[len] == ':');
	}
	return false;
}

/* Ask debuginfod through its library, which is loaded only here and never linked. */
static bool try_debuginfod(struct search *s)
{
	void *library, *client = NULL;
	void *(*begin)(void);
	void (*end)(void *);
	int (*find)(void *, const unsigned char *, int, char **);
	char *path = NULL;
	int fd = -1;

	library = s->elf->build_id.n_bytes ? dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL)
					   : NULL;
	if (!library)
		return false;
	/* Through void **, since ISO C has no conversion from object to function pointers. */
	*(void **)&begin = dlsym(library, "debuginfod_begin");
	*(void **)&find = dlsym(library, "debuginfod_find_debuginfo");
	*(void **)&end = dlsym(library, "debuginfod_end");
	if (begin && find && end)
		client = begin();
	if (client)
		fd = find(client, s->elf->build_id.at, (int)s->elf->build_id.n_bytes, &path);
	if (fd >= 0) {
		close(fd);
		lull_str_clear(&s->path);
		lull_str_puts(&s->path, path);
		try_path(s);
	}
	free(path);
	if (client)
		end(client);
	/* The library stays loaded, because it has started threads and has thread-local data. */
	return s->found;
}

struct lull_elf *lull_debugfile_open(const struct lull_elf *elf,
				     const struct lull_debug_paths *paths)
{
	struct search s = { .elf = elf, .path = LULL_STR_INIT };

	s.link = dwelf_elf_gnu_debuglink(elf->elf, &s.link_crc);
	lull_build_id_format(&elf->build_id, s.build_id);
	if (!try_list(&s, paths->dirs) && !try_dir(&s, SYSTEM_DIR, strlen(SYSTEM_DIR)) &&
	    !try_link(&s, "", 0, "") && !try_link(&s, "", 0, ".debug/") &&
	    paths->can_use_debuginfod)
		try_debuginfod(&s);
	lull_str_release(&s.path);
	return s.found;
}
