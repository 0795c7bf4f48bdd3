/*
 * cmd - the commands of lull.
 *
 * A command gets its own words (argv[0] is its name), prints its answer on standard output, returns
 *	0			done
 *	a negative lull_code	failed; main() prints the sentence in *err, once
 *	a positive number	the exit status to pass on, such as that of a recorded program
 *
 * To add one: src/cmd/cmd_x.c with int cmd_x(int argc, char **argv, struct lull_err *err), the line
 * CMD(x, "...") in cmds.def, the page doc/lull-x.1.md. Begin it with an option table (text/opt.h)
 * and return what lull_opt_parse() returns when that is negative; --help comes with it.
 */
#ifndef LULL_CMD_CMD_H
#define LULL_CMD_CMD_H

#include "base/err.h"

struct lull_cmd {
	const char *name;
	int (*run)(int argc, char **argv, struct lull_err *err);
	const char *summary; /* NULL for one that is not listed */
};

/* All of cmds.def, ended by an entry without a name. */
extern const struct lull_cmd lull_cmds[];

/* The command of this name, or NULL; then *nearest is the closest known name, or NULL. */
const struct lull_cmd *lull_cmd_find(const char *name, const char **nearest);

/* What to use for a command of nsys that is not there; NULL for any other word. */
const char *lull_cmd_instead(const char *name);

#define GROUP(first, title)
#define CMD(name, summary) int cmd_##name(int argc, char **argv, struct lull_err *err);
#include "cmd/cmds.def"
#undef CMD
#undef GROUP

#endif
