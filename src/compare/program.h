/*
 * program - what a report is a recording of: the script and its arguments.
 *
 * What it gives:  two names that are the same however the program was started: not `env`, a shell,
 *                 a launcher or a shim of pyenv, and not the version of the interpreter.
 * Rule:           the process whose steps are compared decides. Of an interpreter's command line
 *                 the script counts (without its folder), or the module of -m; of any other
 *                 program its file name. A child of Python's multiprocessing is its parent.
 */
#ifndef LULL_COMPARE_PROGRAM_H
#define LULL_COMPARE_PROGRAM_H

#include "base/str.h"
#include "trace/reader.h"

struct lull_program {
	struct lull_str name; /* "train.py", "torch.distributed.run" of -m, "train" */
	struct lull_str args; /* its arguments as they were written, "" if there are none */
};

/* The program of this process; of the first one that ran if `process` is 0. */
void lull_program_init(struct lull_program *p, struct lull_reader *r, u32 process);

/* The same of a command line; `exe` is the program's path, for a command line that is empty. */
void lull_program_of(struct lull_program *p, const char *exe, const char *cmdline);

/* Free it. */
void lull_program_release(struct lull_program *p);

#endif
