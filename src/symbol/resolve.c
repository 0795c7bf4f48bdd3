#include "symbol/resolve.h"

#include <stdlib.h>

#include "symbol/demangle.h"

void lull_resolver_init(struct lull_resolver *r, const struct lull_debug_paths *paths)
{
	*r = (struct lull_resolver){ .paths = *paths };
}

static void clear_names(struct lull_resolver *r)
{
	for (size_t i = 0; i < LULL_MAX_INLINED; i++) {
		free(r->names[i]);
		r->names[i] = NULL;
	}
}

void lull_resolver_release(struct lull_resolver *r)
{
	lull_resolver_use(r, NULL);
}

void lull_resolver_use(struct lull_resolver *r, struct lull_elf *elf)
{
	clear_names(r);
	lull_scopes_close(r->scopes);
	lull_elf_close(r->debug);
	r->elf = elf;
	r->debug = NULL;
	r->scopes = elf ? lull_scopes_open(elf) : NULL;
	if (!elf || r->scopes)
		return;
	r->debug = lull_debugfile_open(elf, &r->paths);
	if (r->debug)
		r->scopes = lull_scopes_open(r->debug);
}

/* The name from the best symbol table there is, mangled, or NULL. */
static const char *find_symbol(struct lull_resolver *r, u64 vaddr)
{
	const struct lull_elf_symbol *s = NULL;

	if (r->debug && !lull_elf_has_symtab(r->elf))
		s = lull_elf_find_symbol(r->debug, vaddr);
	if (!s)
		s = lull_elf_find_symbol(r->elf, vaddr);
	return s ? s->name : NULL;
}

size_t lull_resolver_find(struct lull_resolver *r, u64 vaddr, struct lull_symbol *out)
{
	struct lull_scope scopes[LULL_MAX_INLINED];
	size_t n = 0;

	clear_names(r);
	if (!r->elf)
		return 0;
	if (r->scopes)
		n = lull_scopes_find(r->scopes, vaddr, scopes, LULL_MAX_INLINED);
	if (!n)
		scopes[n++] = (struct lull_scope){ 0 };
	if (!scopes[n - 1].function)
		scopes[n - 1].function = find_symbol(r, vaddr);
	if (n == 1 && !scopes[0].function)
		return 0;
	for (size_t i = 0; i < n; i++) {
		if (scopes[i].function)
			r->names[i] = lull_demangle(scopes[i].function);
		out[i] = (struct lull_symbol){ r->names[i], scopes[i].file, scopes[i].line,
					       scopes[i].is_inlined };
	}
	return n;
}
