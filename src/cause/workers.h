/*
 * workers - how many processes it takes to do work of a step beside it, and how fast they are.
 *
 * For causes whose fix lets other processes do what a thread does now. Each process makes what is
 * for one step in as long as the thread takes, so n of them do not let steps be shorter than the
 * work / n. As many are taken as keep up with the rest of the step, but fewer than the machine has
 * CPUs: the thread needs one, too.
 */
#ifndef LULL_CAUSE_WORKERS_H
#define LULL_CAUSE_WORKERS_H

#include "base/types.h"
#include "cause/replay/replay.h"
#include "cause/subject.h"

struct lull_workers {
	f64 work_ns; /* of a step, as a thread does it */
	u32 spare;   /* CPUs that are left for them; 0 if not known, or none is taken */
	u32 n;	     /* processes that keep up; 0 if there are not enough CPUs for those */
	f64 worth;   /* of one beside the thread: Python's send each other what they made */
};

/*
 * How many do work_ns for each step while the rest of it takes rest_ns. Work that takes no CPU, a
 * wait for another machine, can have any number.
 */
struct lull_workers lull_workers_for(const struct lull_subject *s, f64 work_ns, f64 rest_ns,
				     bool takes_cpu);

/* As many as there are: those that keep up, else one for each CPU that is left. */
u32 lull_workers_n(const struct lull_workers *w);

/* What a step takes at least with these; `scenario` as in struct lull_what_if. */
f64 lull_workers_step_ns(const struct lull_workers *w, int scenario);

/* Whether as many as there are CPUs for would bring next to nothing. */
bool lull_workers_are_few(const struct lull_workers *w, const struct lull_replay *p);

#endif
