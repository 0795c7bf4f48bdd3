#include "symbol/files.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"

void lull_files_init(struct lull_files *f)
{
	lull_vec_init(&f->at, sizeof(struct lull_file));
	lull_map_init(&f->by_key);
	((struct lull_file *)lull_vec_push(&f->at))->path = lull_strdup("");
}

void lull_files_release(struct lull_files *f)
{
	struct lull_file *files = f->at.at;

	for (size_t i = 0; i < f->at.n; i++) {
		lull_elf_close(files[i].elf);
		free(files[i].path);
	}
	lull_vec_release(&f->at);
	lull_map_release(&f->by_key);
}

/*
 * Memory that is not of a file: "", "//anon", "[heap]", "[stack]", "anon_inode:..."; not
 * "[vdso]".
 */
static bool is_anonymous(const char *path)
{
	return !strcmp(path, "//anon") || (path[0] != '/' && strcmp(path, "[vdso]"));
}

static u64 key_of(const struct lull_elf_name *name)
{
	struct lull_str path = LULL_STR_INIT;
	struct stat st = { 0 };
	u64 parts[4];

	if (name->pid)
		lull_str_addf(&path, "/proc/%" PRIu32 "/root%s", name->pid, name->path);
	if (name->path[0] == '/' && (!name->pid || stat(path.at, &st)) && stat(name->path, &st))
		st = (struct stat){ 0 };
	lull_str_release(&path);
	parts[0] = lull_hash(name->path, strlen(name->path));
	parts[1] = st.st_dev;
	parts[2] = st.st_ino;
	parts[3] = name->build_id ? lull_hash(name->build_id->at, name->build_id->n_bytes) : 0;
	return lull_hash(parts, sizeof(parts));
}

static void open_file(struct lull_file *file, const struct lull_elf_name *name)
{
	struct lull_err err;

	file->path = lull_strdup(name->path);
	if (name->build_id)
		file->build_id = *name->build_id;
	/* A file that does not open is still a module with a name; its addresses stay numbers. */
	if (!strcmp(name->path, "[vdso]") ? lull_elf_open_vdso(&file->elf, &err)
					  : lull_elf_open(&file->elf, name, &err))
		file->elf = NULL;
	else if (!file->build_id.n_bytes)
		file->build_id = file->elf->build_id;
}

u32 lull_files_add(struct lull_files *f, const struct lull_elf_name *name)
{
	bool is_new;
	u32 *ix;

	if (is_anonymous(name->path))
		return LULL_FILE_NONE;
	ix = lull_map_add(&f->by_key, key_of(name), &is_new);
	if (is_new) {
		*ix = (u32)f->at.n;
		open_file(lull_vec_push(&f->at), name);
	}
	return *ix;
}

const struct lull_file *lull_files_get(const struct lull_files *f, u32 file_ix)
{
	return lull_vec_get(&f->at, file_ix);
}
