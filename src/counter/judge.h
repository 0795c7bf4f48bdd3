/*
 * judge - why a kernel takes as long as it does, and the one thing to try.
 *
 * The decision, as people teach it, in four stages:
 *
 *	SHAPE    most of the chip never had work: too short, too few blocks, an uneven end. Nothing
 *	         inside the kernel matters before this.
 *	WASTE    work that a better access pattern would not do: spills, bank conflicts, contended
 *	         atomics, scattered accesses, lanes without work. What costs most comes first.
 *	LIMIT    one part of the chip is busy (LULL_BUSY): memory or a pipe. Memory far above the
 *	         multiprocessors is memory-bound, the other way round compute-bound.
 *	LATENCY  nothing is busy: warps wait, for each other, for memory, for results.
 *
 * Every verdict looks at every launch. Those that claim it are sorted by stage, within WASTE by
 * gain, within the others by their order in verdicts.def. The first is the verdict; the others are
 * listed after it.
 *
 * Gains:          upper bounds: until the next part of the chip is the limit, nothing else changed.
 * Abstention:     a verdict that lacks a metric says so; if no one claims the launch and something
 *                 was missing, the answer is "unknown" and names what to measure.
 *
 * To add one: verdict_X.c with const struct lull_kverdict lull_verdict_X at its end, VERDICT(X) in
 * verdicts.def, its cases in test/unit/counter/test_judge.c; then `tools/gen-docs build/lull` for
 * lull-kernels(7).
 */
#ifndef LULL_COUNTER_JUDGE_H
#define LULL_COUNTER_JUDGE_H

#include "base/types.h"
#include "counter/load.h"
#include "counter/profile.h"
#include "counter/stall.h"

/* A part is busy from here on; below, adding work costs no time. The rule of NVIDIA's guides. */
#define LULL_BUSY 0.6

/* Less than this is not worth a verdict that names a waste. */
#define LULL_MIN_GAIN 1.2

#define LULL_PROOFS 4

enum lull_stage {
	LULL_STAGE_SHAPE,
	LULL_STAGE_WASTE,
	LULL_STAGE_LIMIT,
	LULL_STAGE_LATENCY,
};

struct lull_kverdict;

/* A claim of one verdict on one launch. */
struct lull_kclaim {
	const struct lull_kverdict *by;
	const char *id;	   /* "fp32-bound"; by->id unless the verdict has several */
	const char *title; /* by->title unless another sentence says it better */
	char detail[48];   /* which level, pipe, resource or stall; "" if none */
	f64 gain;	   /* times faster, at most; NaN if not known */
	size_t n_proofs;
	char proofs[LULL_PROOFS][160]; /* sentences with numbers */
	char fix[320];
};

/* What a verdict sees. */
struct lull_case {
	const struct lull_profile *p;
	struct lull_loads loads;
	const char *missing; /* set by a verdict that cannot decide: keys it lacks */
};

struct lull_kverdict {
	const char *id;	   /* never changes */
	const char *title; /* one sentence */
	const char *why;   /* for the manual: mechanism, threshold and its reason */
	enum lull_stage stage;
	/* True if the launch is one of these; fill the claim then. */
	bool (*claim)(struct lull_case *c, struct lull_kclaim *claim);
};

/* All of verdicts.def in its order, NULL at the end. */
extern const struct lull_kverdict *const lull_verdicts[];
#define LULL_MAX_VERDICTS 32

struct lull_judgement {
	size_t n;				      /* 0: unknown */
	struct lull_kclaim claims[LULL_MAX_VERDICTS]; /* the verdict first */
	char missing[320];   /* verdicts that could not be checked and would have mattered, with the
			      metric each lacks; "" if none */
	char unchecked[160]; /* the same without the metrics */
	struct lull_loads loads;
};

/* Judge a launch. */
void lull_judge(struct lull_judgement *to, const struct lull_profile *p);

/* The verdict's id, "unknown" if there is none. */
const char *lull_judgement_id(const struct lull_judgement *j);

/* For verdicts: add a sentence. */
void lull_prove(struct lull_kclaim *claim, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* For verdicts: say what helps. */
void lull_advise(struct lull_kclaim *claim, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* For verdicts: a metric of the launch, or false and what is missing is noted. */
bool lull_case_get(struct lull_case *c, enum lull_k k, f64 *value);

/* For verdicts: sum of the shares of these stalls, ended by -1; 0 for those not measured. */
f64 lull_case_stalls(const struct lull_case *c, const enum lull_stall_ix *stalls, size_t n);

#endif
