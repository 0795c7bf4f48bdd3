/*
 * why - the answer: which cause comes first, what proves it, what its fix would gain.
 *
 *	struct lull_why why;
 *	if (lull_why_run(&why, reader, NULL, err))
 *		return err->code;
 *	why.first				(index into why.findings, or -1: cannot tell)
 *	why.is_probable				(it is a guess; why.unsure says why)
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
 * Cost:           linear in events; about 120 bytes for each kernel with its call. Of a recording
 *                 with more than some millions a part is looked at (model/window.h).
 */
#ifndef LULL_CAUSE_WHY_H
#define LULL_CAUSE_WHY_H

#include "base/err.h"
#include "base/types.h"
#include "base/vec.h"
#include "cause/cause.h"
#include "cause/location.h"
#include "cause/replay/replay.h"
#include "cause/subject.h"
#include "text/term.h"
#include "trace/reader.h"

/* A fact that proves a finding, with rows the reader can look at. */
struct lull_evidence {
	char text[240];
	const char *table;  /* whose rows show it, or NULL */
	u64 from_ns, to_ns; /* where to look */
	u64 n_rows;	    /* in the steady steps; 0 if not counted */
};

struct lull_opportunity_kind; /* cause/opportunity.h */

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
	f64 worth_ns;	/* by both, of each step: the order of the findings */
	f64 confidence; /* that it is what should come first */
	struct lull_prediction prediction;
	struct lull_location at;
	struct lull_advice advice;
	struct lull_vec evidence; /* struct lull_evidence */
};

/* A way to make the time shorter in which the device computes (cause/opportunity.h). */
struct lull_opportunity {
	const struct lull_opportunity_kind *kind;
	f64 touched_ns; /* of each step: what it is about */
	f64 share;	/* of the step */
	f64 gain_ns;	/* of each step */
	struct lull_prediction prediction;
	char text[LULL_ADVICE_BYTES]; /* what was seen */
	char fix[LULL_ADVICE_BYTES];
	char assumes[160];
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
	bool is_probable;	  /* it is a guess: */
	char unsure[320];	  /* why it is not sure, */
	char settle[512];	  /* and the command that would tell */
	char settle_how[80];	  /* what to mind there; "" if nothing */
	char cannot[512];	  /* why there is no answer; "" if there is one */
	char guess[640];	  /* then: what most of the time goes to; "" if there is no work */
	int guessed;		  /* its cause, with unsure and settle; or -1 */
	char no_prediction[256];  /* why nothing is predicted; "" if something is */
	struct lull_vec missing;  /* char *: sources that would tell more */
	struct lull_span window;  /* what was looked at; LULL_SPAN_ALL: all of it */
	f64 step_ns;		  /* mean of the steady steps, as recorded */
	f64 free_ns;		  /* without the cost of recording; step_ns if not known */
	f64 median_ns, spread;	  /* of the steady steps; standard deviation over mean */
	f64 idle_share, compute_share, copy_share, collective_share;
	/*
	 * By cause, also where there is no answer: of the steps, or of the whole recording where
	 * there are none. Compute counts for the default of LULL_CAUSE_BUSY.
	 */
	f64 shares[LULL_SUBJECT_CAUSES];
	bool is_simulated;
	bool is_calibrated;	       /* free_ns was measured */
	bool has_skew;		       /* clocks of host and device do not agree */
	const char *path;	       /* of the report, or NULL */
	struct lull_vec kernels;       /* struct lull_why_kernel, largest first */
	struct lull_vec opportunities; /* struct lull_opportunity, largest gain first */
	char utilization[160];	       /* what "100 %" means here; "" if not recorded */
};

struct lull_why_kernel {
	const char *name;
	u64 ns; /* in the steady steps */
	u64 n;
};

struct lull_why_options {
	u64 unrecorded_ns; /* a step without a recorder, as somebody measured; 0: estimate it */
	u32 without;	   /* LULL_WITHOUT_...: as if this had not been recorded */
	const char *path;  /* of the report, for commands that are suggested; NULL: not known */
};

/* Analyse the recording; `options` may be NULL. */
int lull_why_run(struct lull_why *why, struct lull_reader *r,
		 const struct lull_why_options *options, struct lull_err *err);

/* Free it. */
void lull_why_release(struct lull_why *why);

/* A cause, and how much of it is gone: 1 is all of it. */
struct lull_why_change {
	enum lull_cause_ix cause;
	f64 gone;
};

/*
 * The step with these changes (at most 4): free_ns with nothing gone, never longer with more gone,
 * never shorter than the kernels that stay. Not for a recording without predictions.
 */
struct lull_prediction lull_why_predict(const struct lull_why *why,
					const struct lull_why_change *changes, u32 n);

/*
 * What the step would be if: "CAUSE", "CAUSE=FACTOR" (FACTOR of its time left), "CAUSE+CAUSE", or
 * "kernel:NAME=FACTOR" (kernels with NAME in their name take FACTOR of their time). LULL_E_USAGE
 * for any other question, LULL_E_UNSUPPORTED if there is no prediction.
 */
int lull_why_ask(const struct lull_why *why, const char *question, struct lull_prediction *answer,
		 struct lull_err *err);

/* 850 ns, 12.3 us, 4.56 ms, 1.23 s: a time as answers say it. */
struct lull_number lull_why_time(f64 ns);

/* "0.62 of 1.43 ms": both in the unit of the second. */
struct lull_number lull_why_part(f64 part_ns, f64 whole_ns);

/* How the sentence about this finding ends, after "because". */
const char *lull_why_because(const struct lull_why *why, const struct lull_finding *f);

/* "9.38 and 10.57": both ends in the unit of the time between them, which is said before. */
struct lull_number lull_why_range(const struct lull_prediction *p);

/*
 * Where the work goes on elsewhere, the prediction is what comes if it holds nothing up there: how
 * many times as fast the step is at least, 0 where that is not worth saying.
 */
f64 lull_why_at_least(const struct lull_why *why, const struct lull_finding *f);

/* The first finding, or NULL. */
const struct lull_finding *lull_why_first(const struct lull_why *why);

/* Of the time of all steps, what those take that are left out as warm-up. */
f64 lull_why_warm_share(const struct lull_why *why);

/* Steps that are longer than the usual ones, such as those with a check or pictures. */
struct lull_longer {
	u32 n;	       /* 0 if there are none, or they take too little to speak of */
	f64 beyond_ns; /* of each step on average: what they do beyond the usual ones */
};

/*
 * Those of the steady steps. Calls of a model differ by what they are asked for, which nobody can
 * do less often: of these there are none.
 */
struct lull_longer lull_why_longer(const struct lull_why *why);

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
