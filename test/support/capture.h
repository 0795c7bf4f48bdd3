/*
 * capture - load what test/data/capture.c wrote, and unwind it.
 */
#ifndef LULL_TEST_CAPTURE_H
#define LULL_TEST_CAPTURE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "symbol/unwind.h"

#define CAPTURE_MAX_FRAMES 256

struct capture {
	struct lull_regs regs;
	struct lull_stack_bytes stack;
	u8 *bytes;
	struct lull_files files;
	struct lull_space space;
	struct lull_unwind unwind;
	struct lull_pc pcs[CAPTURE_MAX_FRAMES];
	struct lull_callstack found;
};

/* Read FILE and FILE.maps; false if something is missing. Release in any case. */
static inline bool capture_load(struct capture *c, const char *path)
{
	char maps[4096];
	struct lull_err err;
	u64 head[2] = { 0 };
	FILE *f = fopen(path, "r");
	bool is_ok;

	memset(c, 0, sizeof(*c));
	lull_files_init(&c->files);
	lull_space_init(&c->space, &c->files, 0);
	lull_unwind_init(&c->unwind);
	c->found = (struct lull_callstack){ .at = c->pcs, .cap = CAPTURE_MAX_FRAMES };
	if (!f)
		return false;
	is_ok = fread(&c->regs, sizeof(c->regs), 1, f) == 1 && fread(head, sizeof(head), 1, f) == 1;
	c->bytes = malloc(head[1] + 1);
	is_ok = is_ok && fread(c->bytes, 1, head[1], f) == head[1];
	fclose(f);
	c->stack = (struct lull_stack_bytes){ .addr = head[0], .at = c->bytes, .n_bytes = head[1] };
	snprintf(maps, sizeof(maps), "%s.maps", path);
	return is_ok && !lull_space_read_maps(&c->space, maps, &err);
}

/* Unwind into c->found. */
static inline void capture_unwind(struct capture *c)
{
	lull_unwind_sample(&c->unwind, &c->space, &c->regs, &c->stack, &c->found);
}

/* Name of the function of frame `i`, mangled, "?" if there is none. */
static inline const char *capture_name(const struct capture *c, size_t i)
{
	struct lull_elf *elf = lull_files_get(&c->files, c->pcs[i].file_ix)->elf;
	const struct lull_elf_symbol *s = elf ? lull_elf_find_symbol(elf, c->pcs[i].vaddr) : NULL;

	return s ? s->name : "?";
}

/* True if the stack holds functions whose names contain these, in this order, innermost first. */
static inline bool capture_has(const struct capture *c, const char *const *names)
{
	for (size_t i = 0; i < c->found.n && *names; i++)
		if (strstr(capture_name(c, i), *names))
			names++;
	return !*names;
}

/* Print the stack, for the reader of a failed test. */
static inline void capture_print(const struct capture *c)
{
	for (size_t i = 0; i < c->found.n; i++)
		fprintf(stderr, "  #%zu %#llx %s (%s)\n", i, (unsigned long long)c->pcs[i].addr,
			capture_name(c, i), lull_files_get(&c->files, c->pcs[i].file_ix)->path);
	fprintf(stderr, "  cut %d\n", (int)c->found.cut);
}

/* Free everything. */
static inline void capture_release(struct capture *c)
{
	lull_unwind_release(&c->unwind);
	lull_space_release(&c->space);
	lull_files_release(&c->files);
	free(c->bytes);
}

#endif
