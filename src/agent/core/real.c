#include "agent/core/real.h"

#include <errno.h>
#include <string.h>

/*
 * Versions: glibc keeps two implementations of the condition variables on x86_64, and a plain
 * dlsym() has been seen to give the older one, whose layout differs; so the present one is asked
 * for by its version. In all other families of the lists the versions differ in no more than a
 * check.
 *
 * Recursion: a dlsym() that succeeds does not allocate, so an interposed allocator cannot come back
 * here. One that fails does; who comes back here for the same name gets `missing`. Nobody else:
 * other threads may call meanwhile, and would take it for an answer.
 */

/* Stands in for what this libc does not have; nobody can have been linked against it. */
static long missing(void)
{
	errno = ENOSYS;
	return -1;
}

/* Store the next definition of `name` after ours in *slot. */
static void find(void **slot, const char *name)
{
	static __thread void **finding;
	void **before = finding, *at = NULL;

	if (finding && finding == slot) {
		*slot = (void *)missing;
		return;
	}
	finding = slot;
#ifdef __x86_64__
	if (strcmp(name, "pthread_cond_wait") == 0 || strcmp(name, "pthread_cond_timedwait") == 0 ||
	    strcmp(name, "pthread_cond_signal") == 0)
		at = dlvsym(RTLD_NEXT, name, "GLIBC_2.3.2");
#endif
	if (!at)
		at = dlsym(RTLD_NEXT, name);
	*slot = at ? at : (void *)missing;
	finding = before;
}

#define OSCALL(ix, kind, nest, type, name, params, args, worth) HOOK(type, name, params, args)

/* What each pointer begins at. */
#define HOOK(type, name, params, args)                 \
	static type first_##name params                \
	{                                              \
		find((void **)&lull_real.name, #name); \
		return lull_real.name args;            \
	}
#include "agent/core/hooks.def"
#include "wire/osrt.def"
#undef HOOK

/* The stub of a variadic function has its fixed parameters only: same registers, another type. */
#define HOOK(type, name, params, args) .name = (__typeof__(name) *)(void *)first_##name,
struct lull_real lull_real = {
#include "agent/core/hooks.def"
#include "wire/osrt.def"
};
#undef HOOK

#define HOOK(type, name, params, args) { (void **)&lull_real.name, #name },
static const struct {
	void **slot;
	const char *name;
} table[] = {
#include "agent/core/hooks.def"
#include "wire/osrt.def"
};
#undef HOOK

void lull_real_find_all(void)
{
	static bool is_done;

	if (is_done) /* in a forked child */
		return;
	is_done = true;
	for (size_t i = 0; i < LULL_COUNT_OF(table); i++)
		find(table[i].slot, table[i].name);
}
