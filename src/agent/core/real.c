#include "agent/core/real.h"

#include <errno.h>
#include <string.h>

#include "agent/core/agent.h"
#include "agent/core/loaded.h"

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

/*
 * The files that were loaded before main, after the agent: where its wrappers' functions are. They
 * stay, and stand in the order in which they are searched. So a function can be found when it is
 * first called, also in a signal handler. To ask dlsym() for all of them at the start would take a
 * tenth of the time that a short program lives.
 */
static LULL_EARLY struct {
	u32 n;
	bool is_more; /* too many: all were looked up at the start */
	struct lull_loaded_names files[32];
} next;

/* The function in one of those files; NULL if there is none, or only the loader can tell. */
static void *find_next(const char *name)
{
	for (u32 i = 0; i < next.n; i++) {
		const ElfW(Sym) *symbol = lull_loaded_find(&next.files[i], name);

		if (symbol)
			return ELF64_ST_TYPE(symbol->st_info) == STT_FUNC
				       ? (void *)(next.files[i].bias + symbol->st_value)
				       : NULL;
	}
	return NULL;
}

/* Store the next definition of `name` after ours in *slot. */
static void find(void **slot, const char *name)
{
	static __thread void **finding;
	void **before = finding, *at = find_next(name);

	if (at) {
		*slot = at;
		return;
	}
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

/* What each pointer begins at; in a section of their own, which tells them from functions. */
#define HOOK(type, name, params, args)                                         \
	__attribute__((section("lull_first"))) static type first_##name params \
	{                                                                      \
		find((void **)&lull_real.name, #name);                         \
		return lull_real.name args;                                    \
	}
#include "agent/core/hooks.def"
#include "wire/osrt.def"
#undef HOOK

/* The linker's names of where the section begins and ends. */
extern const char __start_lull_first[] __attribute__((visibility("hidden")));
extern const char __stop_lull_first[] __attribute__((visibility("hidden")));

/* The stub of a variadic function has its fixed parameters only: same registers, another type. */
#define HOOK(type, name, params, args) .name = (__typeof__(name) *)(void *)first_##name,
struct lull_real lull_real = {
#include "agent/core/hooks.def"
#include "wire/osrt.def"
};
#undef HOOK

/*
 * In the order of the pointers. Not pointers themselves: the loader would have to relocate each,
 * and copy the pages they are in, at the start of every process.
 */
#define HOOK(type, name, params, args) #name,
static const char names[LULL_N_REAL][LULL_REAL_NAME_BYTES] = {
#include "agent/core/hooks.def"
#include "wire/osrt.def"
};
#undef HOOK

#define HOOK(type, name, params, args) \
	_Static_assert(sizeof(#name) <= LULL_REAL_NAME_BYTES, "the name fits, with its end");
#include "agent/core/hooks.def"
#include "wire/osrt.def"
#undef HOOK

const char *lull_real_name(u32 ix)
{
	return names[ix];
}

void **lull_real_slot(u32 ix)
{
	return (void **)&lull_real + ix;
}

static int visit(struct dl_phdr_info *file, size_t size, void *arg)
{
	bool *is_after = arg;

	(void)size;
	if (!*is_after)
		*is_after = lull_loaded_contains(file, (u64)&lull_real);
	else if (next.n == LULL_COUNT_OF(next.files))
		next.is_more = true;
	else if (lull_loaded_names(file, &next.files[next.n]))
		next.n++;
	return 0;
}

void lull_real_find(void **slot)
{
	const char *at = *slot;

	if (at >= __start_lull_first && at < __stop_lull_first)
		find(slot, names[slot - (void **)&lull_real]);
}

void lull_real_begin(void)
{
	next.n = 0;
}

void lull_real_find_all(void)
{
	static LULL_EARLY bool is_done;
	bool is_after = false;

	if (is_done) /* in a forked child */
		return;
	is_done = true;
	if (!lull_agent.is_late && lull_loaded_walk(visit, &is_after) && !next.is_more) {
		/* The caller's address and stack matter: no stub may stand between. */
		lull_real_find((void **)&lull_real.dlopen);
		lull_real_find((void **)&lull_real.syscall);
		return;
	}
	for (u32 i = 0; i < LULL_N_REAL; i++)
		find(lull_real_slot(i), names[i]);
}
