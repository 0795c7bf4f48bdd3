/*
 * why - the answer: which cause comes first, what proves it, what its fix would gain.
 *
 *	struct lull_why why;
 *	if (lull_why_run(&why, reader, NULL, err))
 *		return err->code;
 *	why.first				(index into why.findings, or -1: cannot tell)
 *	why.lead->intervals			(idle time by cause, for the page)
 *	lull_why_release(&why);
 *
 * What it gives:  findings, the most worthwhile first; the device's time, each nanosecond counted
 *                 once; intervals of idle time and steps, each by cause. If there is no answer, the
 *                 reason.
 * Failures:       LULL_E_NOT_FOUND if the recording has no device work, LULL_E_USAGE if the given
 *                 step time is less than its kernels take.
 * Ownership:      owns all of it; texts that are not arrays borrow from the reader, which has to
 *                 stay open.
 * Cost:           linear in events; about 120 bytes for each kernel with its call.
 */
#ifndef LULL_CAUSE_WHY_H
#define LULL_CAUSE_WHY_H

#include "base/err.h"
#include "base/types.h"
#include "base/vec.h"
#include "cause/cause.h"
#include "cause/location.h"
#include "cause/replay.h"
#include "cause/subject.h"
#include "trace/reader.h"

/* A fact that proves a finding, with rows the reader can look at. */
struct lull_evidence {
	char text[240];
	const char *table;  /* whose rows show it, or NULL */
	u64 from_ns, to_ns; /* where to look */
	u64 n_rows;	    /* in the steady steps; 0 if not counted */
};

struct lull_prediction {
	bool is_known;
	f64 step_ns, low_ns, high_ns;
	f64 ratio; /* how many times as fast */
};

struct lull_finding {
	enum lull_cause_ix cause;
	f64 cost_ns;	/* of each step */
	f64 share;	/* of the step */
	f64 gain_ns;	/* what the fix would bring, of each step; 0 if not known */
	f64 confidence; /* that it comes first; orders answers, no probability */
	struct lull_prediction prediction;
	struct lull_location at;
	struct lull_advice advice;
	struct lull_vec evidence; /* struct lull_evidence */
};

struct lull_why {
	struct lull_reader *reader;
	struct lull_subject *subjects; /* one for each process and device */
	u32 n_subjects;
	struct lull_subject *lead; /* the one the answer is about */
	struct lull_replay replay;
	bool has_replay;
	struct lull_vec findings; /* struct lull_finding */
	int first;		  /* the answer, or -1 */
	char cannot[512];	  /* why there is none; "" if there is one */
	char no_prediction[256];  /* why nothing is predicted; "" if something is */
	struct lull_vec missing;  /* char *: sources that would tell more */
	f64 step_ns;		  /* mean of the steady steps, as recorded */
	f64 free_ns;		  /* without the cost of recording; step_ns if not known */
	f64 median_ns, spread;	  /* of the steady steps; standard deviation over mean */
	f64 idle_share, compute_share, copy_share, collective_share;
	bool is_simulated;
	bool is_calibrated;	 /* free_ns was measured */
	struct lull_vec kernels; /* struct lull_why_kernel, largest first */
};

struct lull_why_kernel {
	const char *name;
	u64 ns; /* in the steady steps */
	u64 n;
};

struct lull_why_options {
	u64 unrecorded_ns; /* a step without a recorder, as somebody measured; 0: estimate it */
	u32 without;	   /* LULL_WITHOUT_...: as if this had not been recorded */
};

/* Analyse the recording; `options` may be NULL. */
int lull_why_run(struct lull_why *why, struct lull_reader *r,
		 const struct lull_why_options *options, struct lull_err *err);

/* Free it. */
void lull_why_release(struct lull_why *why);

/*
 * What the step would be if: "CAUSE", "CAUSE=FACTOR" (FACTOR of its time left), or
 * "kernel:NAME=FACTOR" (kernels with NAME in their name take FACTOR of their time). LULL_E_USAGE
 * for any other question, LULL_E_UNSUPPORTED if there is no prediction.
 */
int lull_why_ask(const struct lull_why *why, const char *question, struct lull_prediction *answer,
		 struct lull_err *err);

/* The first finding, or NULL. */
const struct lull_finding *lull_why_first(const struct lull_why *why);

/*
 * Of each step, the time without compute: idle, and copies and collectives with nothing beside
 * them. The causes share it.
 */
f64 lull_why_waste_ns(const struct lull_why *why);

/* Whether the cause has more than that: pages of managed memory move beside kernels, too. */
bool lull_why_is_beside(const struct lull_why *why, const struct lull_finding *f);

/*
 * The cause with the most time, where that is another than the first, and the first has less than
 * half of the time without compute; else NULL. A cause with a fix of its own comes first even then.
 */
const struct lull_finding *lull_why_most(const struct lull_why *why);

/* The finding of this cause, or NULL. */
const struct lull_finding *lull_why_find(const struct lull_why *why, enum lull_cause_ix cause);

/* Steady steps of the subject the answer is about. */
u32 lull_why_n_steps(const struct lull_why *why);

#endif
