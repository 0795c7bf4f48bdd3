/*
 * leaks - look for leaks at the end of a test program only if it still holds memory.
 *
 * LeakSanitizer walks all addresses that its allocator could have used. On aarch64 that takes four
 * seconds, and most programs have given everything back. So the program counts, and asks
 * LeakSanitizer, which knows what is still reachable, only if something is left.
 */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdio_ext.h>

static atomic_long n_held;

const char *__lsan_default_options(void);

/* Of AddressSanitizer; gcc does not install the header that has it. */
int __sanitizer_install_malloc_and_free_hooks(void (*on_malloc)(const volatile void *, size_t),
					      void (*on_free)(const volatile void *));

const char *__lsan_default_options(void)
{
	return "leak_check_at_exit=0";
}

static void on_malloc(const volatile void *at, size_t size_bytes)
{
	(void)size_bytes;
	if (at)
		n_held++;
}

static void on_free(const volatile void *at)
{
	if (at)
		n_held--;
}

__attribute__((constructor)) static void begin(void)
{
	__sanitizer_install_malloc_and_free_hooks(on_malloc, on_free);
}

__attribute__((destructor)) static void look(void)
{
	/* The buffer of standard output is nobody's to free. */
	if (n_held != (__fbufsize(stdout) > 1))
		__lsan_do_leak_check();
}
#endif
