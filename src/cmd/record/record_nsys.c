#include "cmd/record/record_nsys.h"

#include <stdarg.h>
#include <string.h>

#include "wire/wire.h"

#define UNWIND "lull chooses how to unwind call stacks, and unwinds them completely"
#define EVENTS "CPU and system events are not counted"

/*
 * Options of nsys that mean nothing here. `fits` is the value that asks for what lull does anyway;
 * `why` completes "has no effect: ...", or says what to do instead where one is refused.
 */
static const struct nsys_opt {
	char letter;
	const char *name;
	const char *arg; /* NULL: true or false */
	const char *fits;
	const char *why;
	bool is_refused;
} nsys_opts[] = {
	{ 'w', "show-output", NULL, "true",
	  "lull does not redirect the program's output; use the shell to redirect it", false },
	{ 'b', "backtrace", "HOW", "auto", UNWIND, false },
	{ 0, "samples-per-backtrace", "N", "1", "each sample has its call stack", false },
	{ 0, "sampling-period", "N", NULL, "samples are taken by time; use --sampling-frequency",
	  false },
	{ 0, "gpuctxsw", NULL, "false", "GPU context switches are not recorded", false },
	{ 0, "gpu-metrics-set", "NAME", NULL, "--gpu-metrics=pm has one set of counters", false },
	{ 0, "python-backtrace", "WHEN", "none",
	  "Python stacks are sampled (--python-sampling), not taken at calls", false },
	{ 0, "python-functions-trace", "FILE", NULL,
	  "Python functions are sampled (--python-sampling), not traced", false },
	{ 0, "dask", "WHAT", "none", "functions of Dask are not traced", false },
	{ 0, "trace-fork-before-exec", NULL, "true", "processes are recorded from the fork on",
	  false },
	{ 0, "nvtx-domain-include", "NAMES", NULL,
	  "all domains are recorded; `lull query` chooses among them", false },
	{ 0, "nvtx-domain-exclude", "NAMES", NULL,
	  "all domains are recorded; `lull query` chooses among them", false },
	{ 0, "osrt-backtrace-depth", "N", NULL, UNWIND, false },
	{ 0, "osrt-backtrace-stack-size", "BYTES", NULL, UNWIND, false },
	{ 0, "osrt-file-access", NULL, "false", "-t osrt records file calls, without file names",
	  false },
	{ 0, "syscall", "SCOPE", "none",
	  "system calls are not recorded; -t osrt records C library calls", false },
	{ 0, "nic-metrics", "HOW", "none", "network cards are not sampled", false },
	{ 0, "event-sample", "SCOPE", "none", EVENTS, false },
	{ 0, "event-sampling-interval", "MS", NULL, EVENTS, false },
	{ 0, "event-sampling-frequency", "HZ", NULL, EVENTS, false },
	{ 0, "cpu-core-events", "LIST", NULL, EVENTS, false },
	{ 0, "cpu-metrics", "LIST", NULL, EVENTS, false },
	{ 0, "os-events", "LIST", NULL, EVENTS, false },
	{ 0, "ftrace", "LIST", NULL, "ftrace events are not recorded", false },
	{ 0, "ftrace-keep-user-config", NULL, "true", "lull does not change ftrace settings",
	  false },
	{ 0, "enable", "PLUGIN", NULL, "lull has no plugins", false },
	{ 0, "command-file", "FILE", NULL,
	  "is not supported; put the contents on the command line: lull profile $(cat FILE) "
	  "PROGRAM",
	  true },
	{ 0, "run-as", "USER", NULL,
	  "is not supported; run lull itself as that user: sudo -u USER lull profile PROGRAM",
	  true },
	{ 0, "after-collection-start", "COMMAND", NULL,
	  "is not supported; lull runs no command when a recording starts", true },
	{ 0, "after-report-ready", "COMMAND", NULL,
	  "is not supported; run the command after lull: lull profile PROGRAM; COMMAND", true },
};

_Static_assert(LULL_COUNT_OF(nsys_opts) <= LULL_NSYS_OPTS, "make room for all options");

/* What -t of nsys knows besides. Some words of it switch CUDA on, as they do there. */
static const struct {
	const char *name;
	u32 source;
} nsys_words[] = {
	{ "opengl", 0 },
	{ "opengl-annotations", 0 },
	{ "vulkan", 0 },
	{ "vulkan-annotations", 0 },
	{ "dx11", 0 },
	{ "dx11-annotations", 0 },
	{ "dx12", 0 },
	{ "dx12-annotations", 0 },
	{ "openxr", 0 },
	{ "openxr-annotations", 0 },
	{ "openacc", LULL_SOURCE_CUDA },
	{ "openmp", 0 },
	{ "ucx", 0 },
	{ "oshmem", 0 },
	{ "cudla", LULL_SOURCE_CUDA },
	{ "cudla-verbose", LULL_SOURCE_CUDA },
	{ "nvvideo", 0 },
	{ "nvmedia", 0 },
	{ "gds", 0 },
	{ "s3", 0 },
	{ "s3-verbose", 0 },
	{ "syscall", 0 },
	{ "wddm", 0 },
	{ "tegra-accelerators", 0 },
};

size_t lull_nsys_opts(struct lull_nsys_words *n, struct lull_opt *opts)
{
	for (size_t i = 0; i < LULL_COUNT_OF(nsys_opts); i++) {
		const struct nsys_opt *o = &nsys_opts[i];

		n->flags[i] = !o->arg && !strcmp(o->fits, "true");
		opts[i] =
			o->arg ? (struct lull_opt)OPT_STR(o->letter, o->name, o->arg, &n->texts[i],
							  NULL)
			       : (struct lull_opt)OPT_BOOL(o->letter, o->name, &n->flags[i], NULL);
	}
	return LULL_COUNT_OF(nsys_opts);
}

void lull_nsys_notice(struct lull_nsys_words *n, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	lull_str_vaddf(&n->notices, fmt, args);
	va_end(args);
	lull_str_puts(&n->notices, "\n");
}

int lull_nsys_check(struct lull_nsys_words *n, struct lull_err *err)
{
	for (size_t i = 0; i < LULL_COUNT_OF(nsys_opts); i++) {
		const struct nsys_opt *o = &nsys_opts[i];
		const char *given = o->arg ? n->texts[i] : n->flags[i] ? "true" : "false";

		if (!given || (o->fits && !strcmp(given, o->fits)))
			continue;
		if (o->is_refused)
			return lull_fail(err, LULL_E_USAGE, "--%s %s", o->name, o->why);
		lull_nsys_notice(n, "--%s has no effect: %s", o->name, o->why);
	}
	if (n->words.len)
		lull_nsys_notice(n, "--trace: not supported, ignored: %s", n->words.at);
	return LULL_OK;
}

bool lull_nsys_trace_word(struct lull_nsys_words *n, const char *word, u32 *sources)
{
	for (size_t i = 0; i < LULL_COUNT_OF(nsys_words); i++) {
		if (strcmp(word, nsys_words[i].name) != 0)
			continue;
		*sources |= nsys_words[i].source;
		lull_str_addf(&n->words, "%s%s", n->words.len ? ", " : "", word);
		return true;
	}
	return false;
}

void lull_nsys_release(struct lull_nsys_words *n)
{
	lull_str_release(&n->words);
	lull_str_release(&n->notices);
}
