#include "symbol/scopes.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/vec.h"

/* Nesting of DIEs that is followed: C++ nests namespaces, classes and blocks, but not like this. */
#define MAX_NESTING 256

/* Part of the code of one unit. */
struct unit_range {
	u64 low;
	u64 high;
	u64 die_off; /* of the unit's DIE in .debug_info */
};

/* Part of the code of one function, real or inlined. */
struct function_range {
	u64 low;
	u64 high;
	u64 die_off;
	u32 depth; /* in the tree: the deeper of two that cover an address is the inner one */
	bool is_inlined;
};

struct lull_scopes {
	Dwarf *dwarf;
	struct lull_vec units;	   /* of struct unit_range, by low */
	struct lull_vec functions; /* of struct function_range, by low; of the current unit */
	struct lull_vec
		max_high; /* of u64: highest end among functions [0, i], to stop a search early */
	u64 unit_off;	  /* the current unit; 0 = none, as no DIE is at 0 */
	Dwarf_Die unit;
};

static int compare_units(const void *a, const void *b)
{
	const struct unit_range *x = a, *y = b;

	return x->low < y->low ? -1 : x->low > y->low;
}

static int compare_functions(const void *a, const void *b)
{
	const struct function_range *x = a, *y = b;

	return x->low < y->low ? -1 : x->low > y->low;
}

static void add_unit(struct lull_scopes *s, Dwarf_Die *die)
{
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &low, &high)) > 0) {
		/* The linker gives code that it dropped the address 0. */
		if (low && low < high)
			*(struct unit_range *)lull_vec_push(&s->units) =
				(struct unit_range){ low, high, dwarf_dieoffset(die) };
	}
}

struct lull_scopes *lull_scopes_open(struct lull_elf *elf)
{
	Dwarf *dwarf = dwarf_begin_elf(elf->elf, DWARF_C_READ, NULL);
	struct lull_scopes *s;
	Dwarf_CU *cu = NULL;
	Dwarf_Die die, split;
	u8 type;

	if (!dwarf)
		return NULL;
	s = lull_alloc(1, sizeof(*s));
	s->dwarf = dwarf;
	lull_vec_init(&s->units, sizeof(struct unit_range));
	lull_vec_init(&s->functions, sizeof(struct function_range));
	lull_vec_init(&s->max_high, sizeof(u64));
	while (dwarf_get_units(dwarf, cu, &cu, NULL, &type, &die, &split) == 0)
		if (type == DW_UT_compile || type == DW_UT_skeleton)
			add_unit(s, &die);
	if (!s->units.n) {
		lull_scopes_close(s);
		return NULL;
	}
	lull_sort(s->units.at, s->units.n, sizeof(struct unit_range), compare_units);
	return s;
}

void lull_scopes_close(struct lull_scopes *s)
{
	if (!s)
		return;
	lull_vec_release(&s->units);
	lull_vec_release(&s->functions);
	lull_vec_release(&s->max_high);
	dwarf_end(s->dwarf);
	free(s);
}

static void add_function(struct lull_scopes *s, Dwarf_Die *die, u32 depth)
{
	bool is_inlined = dwarf_tag(die) == DW_TAG_inlined_subroutine;
	Dwarf_Addr base, low, high;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &low, &high)) > 0)
		if (low && low < high)
			*(struct function_range *)lull_vec_push(&s->functions) =
				(struct function_range){ low, high, dwarf_dieoffset(die), depth,
							 is_inlined };
}

/*
 * Collect the functions below a DIE; those of a namespace, a class or a block count as much as any.
 */
static void collect(struct lull_scopes *s, Dwarf_Die *parent, u32 depth)
{
	Dwarf_Die die;

	if (depth > MAX_NESTING || dwarf_child(parent, &die))
		return;
	do {
		switch (dwarf_tag(&die)) {
		case DW_TAG_subprogram:
		case DW_TAG_inlined_subroutine:
			add_function(s, &die, depth);
			collect(s, &die, depth + 1);
			break;
		case DW_TAG_lexical_block:
		case DW_TAG_try_block:
		case DW_TAG_catch_block:
		case DW_TAG_namespace:
		case DW_TAG_module:
		case DW_TAG_class_type:
		case DW_TAG_structure_type:
		case DW_TAG_union_type:
			collect(s, &die, depth + 1);
			break;
		default:
			break;
		}
	} while (dwarf_siblingof(&die, &die) == 0);
}

/* Make the unit at this offset the current one. */
static void load_unit(struct lull_scopes *s, u64 die_off)
{
	const struct function_range *f;
	Dwarf_Die skeleton, split;
	u64 high = 0;

	if (s->unit_off == die_off)
		return;
	s->unit_off = die_off;
	s->functions.n = s->max_high.n = 0;
	if (!dwarf_offdie(s->dwarf, die_off, &skeleton))
		return;
	s->unit = skeleton;
	/*
	 * With -gsplit-dwarf the functions are in another file, which libdw opens if it is still
	 * there.
	 */
	if (dwarf_cu_info(skeleton.cu, NULL, NULL, NULL, &split, NULL, NULL, NULL) == 0 &&
	    split.addr)
		s->unit = split;
	collect(s, &s->unit, 0);
	if (!s->functions.n)
		return;
	lull_sort(s->functions.at, s->functions.n, sizeof(*f), compare_functions);
	f = s->functions.at;
	for (size_t i = 0; i < s->functions.n; i++) {
		high = f[i].high > high ? f[i].high : high;
		lull_vec_add(&s->max_high, &high, 1);
	}
}

/* Linkage name, else plain name, taken from the declaration or abstract instance where it is. */
static const char *name_of(Dwarf_Die *die)
{
	static const unsigned names[] = { DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name };
	Dwarf_Attribute attr;

	for (size_t i = 0; i < LULL_COUNT_OF(names); i++) {
		const char *name = dwarf_formstring(dwarf_attr_integrate(die, names[i], &attr));

		if (name)
			return name;
	}
	return NULL;
}

/* Where an inlined function was called. */
static void find_call(struct lull_scopes *s, Dwarf_Die *die, struct lull_scope *caller)
{
	Dwarf_Attribute attr;
	Dwarf_Word file_ix, line;
	Dwarf_Files *files;
	size_t n_files;

	if (dwarf_formudata(dwarf_attr(die, DW_AT_call_line, &attr), &line) == 0)
		caller->line = (u32)line;
	if (dwarf_formudata(dwarf_attr(die, DW_AT_call_file, &attr), &file_ix) == 0 &&
	    dwarf_getsrcfiles(&s->unit, &files, &n_files) == 0 && file_ix < n_files)
		caller->file = dwarf_filesrc(files, file_ix, NULL, NULL);
}

static void find_line(struct lull_scopes *s, u64 vaddr, struct lull_scope *innermost)
{
	Dwarf_Line *line = dwarf_getsrc_die(&s->unit, vaddr);
	int number;

	if (!line)
		return;
	innermost->file = dwarf_linesrc(line, NULL, NULL);
	if (dwarf_lineno(line, &number) == 0 && number > 0)
		innermost->line = (u32)number;
}

/* Index after the last element whose `low`, the first field, is not above the address. */
static size_t end_of(const struct lull_vec *v, u64 vaddr)
{
	size_t low = 0, high = v->n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (*(u64 *)lull_vec_get(v, mid) <= vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

/*
 * The functions that cover the address, deepest first, at most `max`; the deepest ones if there are
 * more.
 */
static size_t cover(struct lull_scopes *s, u64 vaddr, struct function_range *out, size_t max)
{
	const struct function_range *f = s->functions.at;
	const u64 *max_high = s->max_high.at;
	size_t n = 0, at;

	for (size_t i = end_of(&s->functions, vaddr); i-- > 0 && max_high[i] > vaddr;) {
		if (f[i].high <= vaddr)
			continue;
		for (at = n; at > 0 && out[at - 1].depth < f[i].depth; at--)
			if (at < max)
				out[at] = out[at - 1];
		if (at < max)
			out[at] = f[i];
		n += n < max;
	}
	return n;
}

/* Make the unit that covers the address the current one; false if none does. */
static bool find_unit(struct lull_scopes *s, u64 vaddr)
{
	const struct unit_range *u = s->units.at;
	size_t end = end_of(&s->units, vaddr);

	/*
	 * Units do not overlap, unless the linker folded equal functions; then any of them will do.
	 */
	if (!end || u[end - 1].high <= vaddr)
		return false;
	load_unit(s, u[end - 1].die_off);
	return true;
}

size_t lull_scopes_find(struct lull_scopes *s, u64 vaddr, struct lull_scope *out, size_t max)
{
	struct function_range found[32];
	size_t n;

	if (!max || !find_unit(s, vaddr))
		return 0;
	n = cover(s, vaddr, found, max < LULL_COUNT_OF(found) ? max : LULL_COUNT_OF(found));
	for (size_t i = 0; i < n; i++)
		out[i] = (struct lull_scope){ .is_inlined = found[i].is_inlined };
	for (size_t i = 0; i < n; i++) {
		Dwarf_Die die;
		Dwarf *dwarf = dwarf_cu_getdwarf(s->unit.cu);

		if (!dwarf_offdie(dwarf, found[i].die_off, &die))
			continue;
		out[i].function = name_of(&die);
		if (found[i].is_inlined && i + 1 < n)
			find_call(s, &die, &out[i + 1]);
	}
	/* Assembly has lines, but no functions that cover them. */
	if (!n)
		out[n++] = (struct lull_scope){ 0 };
	find_line(s, vaddr, &out[0]);
	return n;
}
