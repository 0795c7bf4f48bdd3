/*
 * naming - file name of a report: -o patterns, "report#" and existing files.
 *
 *	%p	process id of the recorded program	%h	host name
 *	%n	1, 2, ... until the name is free	%q{VAR}	value of an environment variable
 *	%%	a percent sign
 *
 * Without a pattern the name is report1.lull, report2.lull, ... in the current folder. ".lull" is
 * added if it is missing, and replaces ".nsys-rep" and ".ncu-rep". Ranks of a job would all use the
 * same name: unless the pattern has a %p or %q, "-rankN" is added before the suffix. The name is
 * chosen, not reserved: create the file with O_EXCL unless overwriting is wanted.
 */
#ifndef LULL_RECORD_SESSION_NAMING_H
#define LULL_RECORD_SESSION_NAMING_H

#include <sys/types.h>

#include "base/err.h"
#include "base/str.h"
#include "base/types.h"
#include "wire/rank.h"

struct lull_naming {
	const char *pattern; /* what -o said; NULL for the default */
	bool is_overwriting; /* -f: a file of that name is no obstacle */
	pid_t pid;	     /* for %p */
	const struct lull_rank
		*rank;	/* "-rankN" where the pattern tells ranks not apart, or NULL */
	i64 n_restarts; /* how often the job was begun again: "-restartN" too; 0 or less: no */
	u32 number;	/* "-N" unless the pattern has a %n, or the next that is free; 0: none */
	/* True for names that are taken though no file is there yet; may be NULL. */
	bool (*is_taken)(const void *ctx, const char *path);
	const void *ctx;
};

/*
 * Set `path` to the name. LULL_E_USAGE for a pattern that cannot be expanded (unknown letter,
 * variable not set), LULL_E_IO if the file exists and may not be overwritten. %n counts up even
 * when overwriting: who asks for numbers wants to keep the old reports.
 */
int lull_naming_format(const struct lull_naming *naming, struct lull_str *path,
		       struct lull_err *err);

/* Expand the pattern alone, with `n` for %n; for session names and tests. Appends to `to`. */
int lull_naming_expand(const char *pattern, pid_t pid, u32 n, struct lull_str *to,
		       struct lull_err *err);

#endif
