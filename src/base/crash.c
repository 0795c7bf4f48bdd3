#include "base/crash.h"

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/types.h"

/* Words of the stack that are read, and addresses that are printed. */
#define SEEN_WORDS 4096
#define MAX_PLACES 32

/* Of the linker: where our code lies. */
extern const char __executable_start[], etext[];

static char stack[1 << 14];

/* Nothing but write() may be called here. */
struct line {
	char text[1024];
	size_t n;
};

static void add(struct line *l, const char *text)
{
	size_t n = strlen(text);

	if (n > sizeof(l->text) - l->n)
		n = sizeof(l->text) - l->n;
	memcpy(l->text + l->n, text, n);
	l->n += n;
}

static void add_hex(struct line *l, u64 value)
{
	char digits[19] = "";
	size_t at = sizeof(digits) - 1;

	do {
		digits[--at] = "0123456789abcdef"[value & 15];
		value >>= 4;
	} while (value);
	add(l, digits + at);
}

static bool is_code(uintptr_t at)
{
	return at >= (uintptr_t)__executable_start && at < (uintptr_t)etext;
}

/* Relative to the start of our code, or absolute if it is elsewhere. */
static void add_place(struct line *l, uintptr_t at)
{
	add(l, is_code(at) ? " +" : " 0x");
	add_hex(l, is_code(at) ? at - (uintptr_t)__executable_start : at);
}

static uintptr_t pc_of(const ucontext_t *context)
{
#if defined(__x86_64__)
	return (uintptr_t)context->uc_mcontext.gregs[REG_RIP];
#elif defined(__aarch64__)
	return (uintptr_t)context->uc_mcontext.pc;
#else
	return 0;
#endif
}

static uintptr_t sp_of(const ucontext_t *context)
{
#if defined(__x86_64__)
	return (uintptr_t)context->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
	return (uintptr_t)context->uc_mcontext.sp;
#else
	return 0;
#endif
}

/*
 * Words on the stack that look like return addresses: a guess at the call chain that needs no
 * tables. A word that cannot be read ends it by a second signal, which is the default by then.
 */
static void add_callers(struct line *l, uintptr_t sp)
{
	u32 n = 0;

	for (u32 i = 0; sp && i < SEEN_WORDS && n < MAX_PLACES; i++) {
		uintptr_t word;

		memcpy(&word, (const void *)(sp + i * sizeof(word)), sizeof(word));
		if (is_code(word)) {
			add_place(l, word);
			n++;
		}
	}
}

static void say(const struct line *l)
{
	if (write(STDERR_FILENO, l->text, l->n) < 0)
		return;
}

static void on_crash(int signal, siginfo_t *info, void *context)
{
	struct line l = { .n = 0 };

	add(&l, "\nlull: lull crashed (signal 0x");
	add_hex(&l, (u64)signal);
	add(&l, ", address 0x");
	add_hex(&l, (u64)(uintptr_t)info->si_addr);
	add(&l,
	    ", version " LULL_VERSION "). This is a bug. Please report it with these addresses:");
	say(&l);
	l.n = 0;
	add_place(&l, pc_of(context));
	say(&l);
	l.n = 0;
	add_callers(&l, sp_of(context));
	add(&l, "\nThe program continues. If a recording was on, it is in a file .lull.part; `lull "
		"recover` makes a report from it.\n");
	say(&l);
	raise(signal); /* the default by now, and let through when this returns */
}

void lull_crash_watch(void)
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
	return; /* they have more to say */
#endif
	static const int signals[] = { SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT };
	stack_t alternate = { .ss_sp = stack, .ss_size = sizeof(stack) };
	struct sigaction action = { .sa_sigaction = on_crash,
				    .sa_flags = (int)(SA_SIGINFO | SA_ONSTACK | SA_RESETHAND) };

	if (sigaltstack(&alternate, NULL) != 0)
		return;
	for (size_t i = 0; i < LULL_COUNT_OF(signals); i++)
		sigaction(signals[i], &action, NULL);
}
