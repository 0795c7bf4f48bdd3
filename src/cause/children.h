/*
 * children - the child processes of a program, such as workers that load, or commands that it runs.
 *
 * Cost: one walk over the processes of the report.
 */
#ifndef LULL_CAUSE_CHILDREN_H
#define LULL_CAUSE_CHILDREN_H

#include "base/types.h"
#include "cause/why.h"

/* Those that run in the steady steps; each exec of one is a row of its own. */
struct lull_children {
	u32 n;
	f64 at_once; /* how many live at the same time, on average */
	f64 life_ns; /* of one, on average */
	u32 name;    /* string: of all of them; 0 if they differ */
};

/* Look at the children of the process. */
struct lull_children lull_children_find(const struct lull_subject *s);

/* If they come and go in the steps, add how often, and how long they live. False: they do not. */
bool lull_show_children(const struct lull_why *why, struct lull_finding *f);

#endif
