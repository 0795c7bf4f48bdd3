#include "symbol/stacks.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/sort.h"
#include "base/str.h"
#include "symbol/resolve.h"

#define KERNEL_PATH "[kernel]"

/* frame.kind of the schema, beyond those that a program counter can have. */
enum { FRAME_PYTHON = 2 };

/* A frame that has an address and will get a name. */
struct place {
	u64 vaddr;
	u32 file_ix;
	u32 frame;   /* its row */
	u32 process; /* whose JIT code it is; 0 for others */
	u8 kind;     /* enum lull_pc_kind */
};

void lull_stacks_init(struct lull_stacks *s, const struct lull_files *files)
{
	*s = (struct lull_stacks){ .files = files };
	lull_map_init(&s->modules);
	lull_map_init(&s->frames);
	lull_map_init(&s->nodes);
	lull_map_init(&s->jits);
	lull_vec_init(&s->jit_at, sizeof(struct lull_jit *));
	lull_vec_init(&s->places, sizeof(struct place));
}

void lull_stacks_release(struct lull_stacks *s)
{
	lull_map_release(&s->modules);
	lull_map_release(&s->frames);
	lull_map_release(&s->nodes);
	lull_map_release(&s->jits);
	lull_vec_release(&s->jit_at);
	lull_vec_release(&s->places);
}

static u32 string(struct lull_writer *w, const char *text)
{
	return text ? lull_writer_string(w, text, strlen(text)) : 0;
}

u32 lull_stacks_add_module(struct lull_stacks *s, struct lull_writer *w, u32 process,
			   const struct lull_mapping *m)
{
	char hex[2 * LULL_BUILD_ID_MAX + 1];
	const struct lull_file *file;
	bool is_new;
	u32 *id;

	if (m->file_ix == LULL_FILE_NONE)
		return 0;
	id = lull_map_add(&s->modules, m->file_ix, &is_new);
	if (!is_new)
		return *id;
	file = lull_files_get(s->files, m->file_ix);
	*id = lull_writer_add_dim(
		w, LULL_TABLE_module,
		&(struct lull_module_row){
			.path = string(w, file->path),
			.build_id = string(w, lull_build_id_format(&file->build_id, hex)),
			.process = process,
			.start_addr = m->start,
			.end_addr = m->end,
			.bias = m->bias,
		});
	return *id;
}

static u32 module_of(struct lull_stacks *s, struct lull_writer *w, u32 process,
		     const struct lull_pc *pc)
{
	struct lull_mapping nowhere = { .file_ix = pc->file_ix };

	if (pc->kind != LULL_PC_KERNEL)
		return lull_stacks_add_module(s, w, process, &nowhere);
	if (!s->kernel_module) {
		struct lull_module_row row = { .path = string(w, KERNEL_PATH) };

		s->kernel_module = lull_writer_add_dim(w, LULL_TABLE_module, &row);
	}
	return s->kernel_module;
}

/* The row of the frame at a place. */
static u32 frame_at(struct lull_stacks *s, struct lull_writer *w, u32 process,
		    const struct lull_pc *pc)
{
	/*
	 * JIT code of two processes may lie at the same address; a file's code is the same in all
	 * of them.
	 */
	u64 owner = pc->kind == LULL_PC_JIT ? process : 0;
	u64 key[3] = { pc->vaddr, (u64)pc->file_ix << 8 | pc->kind, owner };
	struct lull_frame_row row = { .kind = pc->kind, .addr = pc->vaddr };
	bool is_new;
	u32 *id = lull_map_add(&s->frames, lull_hash(key, sizeof(key)), &is_new);

	if (!is_new)
		return *id;
	row.module = module_of(s, w, process, pc);
	*id = lull_writer_add_dim(w, LULL_TABLE_frame, &row);
	*(struct place *)lull_vec_push(&s->places) =
		(struct place){ pc->vaddr, pc->file_ix, *id, (u32)owner, pc->kind };
	return *id;
}

void lull_stacks_adopt(struct lull_stacks *s, u32 frame, const struct lull_pc *pc)
{
	u64 key[3] = { pc->vaddr, (u64)pc->file_ix << 8 | pc->kind, 0 };

	*lull_map_add(&s->frames, lull_hash(key, sizeof(key)), NULL) = frame;
	*(struct place *)lull_vec_push(&s->places) =
		(struct place){ pc->vaddr, pc->file_ix, frame, 0, pc->kind };
}

u32 lull_stacks_python_frame(struct lull_stacks *s, struct lull_writer *w, u32 function, u32 file,
			     u32 line)
{
	struct lull_frame_row row = {
		.kind = FRAME_PYTHON, .line = line, .function = function, .file = file
	};
	/* Another length than the key of a place: the two cannot be mistaken for each other. */
	u32 key[] = { function, file, line };
	bool is_new;
	u32 *id = lull_map_add(&s->frames, lull_hash(key, sizeof(key)), &is_new);

	if (is_new)
		*id = lull_writer_add_dim(w, LULL_TABLE_frame, &row);
	return *id;
}

u32 lull_stacks_add_frame(struct lull_stacks *s, struct lull_writer *w, u32 parent, u32 frame)
{
	bool is_new;
	u32 *id = lull_map_add(&s->nodes, (u64)parent << 32 | frame, &is_new);

	if (is_new)
		*id = lull_writer_add_dim(
			w, LULL_TABLE_stack,
			&(struct lull_stack_row){ .parent = parent, .frame = frame });
	return *id;
}

u32 lull_stacks_add(struct lull_stacks *s, struct lull_writer *w, u32 process,
		    const struct lull_pc *pcs, size_t n)
{
	u32 node = 0;

	while (n-- > 0)
		node = lull_stacks_add_frame(s, w, node, frame_at(s, w, process, &pcs[n]));
	return node;
}

u32 lull_stacks_add_python(struct lull_stacks *s, struct lull_writer *w,
			   const struct lull_py_frame *frames, size_t n)
{
	u32 node = 0;

	while (n-- > 0) {
		/* One after the other: the texts get their numbers in this order. */
		u32 function = string(w, frames[n].function), file = string(w, frames[n].file);

		node = lull_stacks_add_frame(
			s, w, node, lull_stacks_python_frame(s, w, function, file, frames[n].line));
	}
	return node;
}

void lull_stacks_add_jit(struct lull_stacks *s, u32 process, struct lull_jit *jit)
{
	bool is_new;
	u32 *ix = lull_map_add(&s->jits, process, &is_new);

	if (is_new) {
		*ix = (u32)s->jit_at.n;
		lull_vec_push(&s->jit_at);
	}
	*(struct lull_jit **)lull_vec_get(&s->jit_at, *ix) = jit;
}

/* Complete the row of a frame; what was inlined there, and where that was called, may be NULL. */
static void set_frame(struct lull_writer *w, u32 frame, const struct lull_symbol *symbol,
		      const char *inlined, const char *calls)
{
	struct lull_frame_row row =
		*(const struct lull_frame_row *)lull_writer_dim(w, LULL_TABLE_frame, frame);

	row.function = string(w, symbol->function);
	row.file = string(w, symbol->file);
	row.line = symbol->line;
	row.inlined = string(w, inlined);
	row.calls = string(w, calls);
	lull_writer_set_dim(w, LULL_TABLE_frame, frame, &row);
}

/*
 * One row for an address: the function that really is there, what was inlined into it at this
 * place, the line of the innermost and those of the calls. `symbols` come innermost first.
 */
static void set_symbols(struct lull_writer *w, u32 frame, const struct lull_symbol *symbols,
			size_t n)
{
	struct lull_symbol place = symbols[0];
	struct lull_str inlined = LULL_STR_INIT, calls = LULL_STR_INIT;

	place.function = symbols[n - 1].function;
	for (size_t i = n - 1; i-- > 0;) {
		const char *file = symbols[i + 1].file ? symbols[i + 1].file : "";

		if (!symbols[i].function)
			continue;
		lull_str_addf(&inlined, "%s%s", inlined.len ? ";" : "", symbols[i].function);
		lull_str_addf(&calls, "%s%s:%u", calls.len ? ";" : "", file, symbols[i + 1].line);
	}
	set_frame(w, frame, &place, inlined.at, calls.at);
	lull_str_release(&inlined);
	lull_str_release(&calls);
}

/* JIT and kernel frames have a name and nothing else. */
static void name_other(struct lull_stacks *s, struct lull_writer *w, const struct place *p,
		       const struct lull_kallsyms *kernel)
{
	const u32 *jit_ix = lull_map_find(&s->jits, p->process);
	struct lull_symbol symbol = { 0 };

	if (p->kind == LULL_PC_KERNEL && kernel)
		symbol.function = lull_kallsyms_find(kernel, p->vaddr);
	else if (p->kind == LULL_PC_JIT && jit_ix)
		symbol.function =
			lull_jit_find(*(struct lull_jit **)lull_vec_get(&s->jit_at, *jit_ix),
				      p->vaddr, UINT64_MAX);
	if (symbol.function)
		set_frame(w, p->frame, &symbol, NULL, NULL);
}

static int compare_places(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->file_ix != y->file_ix)
		return x->file_ix < y->file_ix ? -1 : 1;
	return x->vaddr < y->vaddr ? -1 : x->vaddr > y->vaddr;
}

void lull_stacks_resolve(struct lull_stacks *s, struct lull_writer *w,
			 const struct lull_stacks_names *names)
{
	struct lull_symbol symbols[LULL_MAX_INLINED];
	struct lull_resolver resolver;
	struct place *p = s->places.at;

	if (s->places.n)
		lull_sort(p, s->places.n, sizeof(*p), compare_places);
	lull_resolver_init(&resolver, &names->paths);
	for (size_t i = 0; i < s->places.n; i++) {
		size_t n;

		if (p[i].kind != LULL_PC_NATIVE) {
			name_other(s, w, &p[i], names->kernel);
			continue;
		}
		if (!i || p[i].file_ix != p[i - 1].file_ix)
			lull_resolver_use(&resolver, lull_files_get(s->files, p[i].file_ix)->elf);
		n = lull_resolver_find(&resolver, p[i].vaddr, symbols);
		if (n)
			set_symbols(w, p[i].frame, symbols, n);
	}
	lull_resolver_release(&resolver);
	s->places.n = 0;
}
