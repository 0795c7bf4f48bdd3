/*
 * rounds - the steps of a loop, as time windows on the device.
 *
 * On the host a step goes from one mark to the next. On the device it goes from the end of all
 * work of earlier steps to the end of its own work: otherwise steps would be too short if the host
 * runs ahead.
 *
 * Word:           a round is a step, marked or found. Where nothing is marked, it may be something
 *                 else that repeats, such as a request.
 * Marks:          what the program marks decides if it marks two steps or more that hold half of
 *                 the work or more; then what hooks of its framework saw. Else every way to cut the
 *                 run is a candidate (model/round/round_find.h), and the one that explains the run
 *                 best is taken: most of the work is in its rounds, and they are alike or of few
 *                 kinds.
 * Kinds:          rounds differ in kind if they launch, copy and wait for different things; the
 *                 time they take does not matter. Kind 0 is the usual one.
 * Warm-up:        the first step, and the steps right after it that are far longer than the others
 *                 of their kind, are not steady, unless such steps come again later.
 * Parts:          what repeats inside one call of the model, or inside the only step that a
 *                 profiler marked, is a part of a step: the step is taken, or it is said.
 * Remainder:      work launched after the last step belongs to no step. If nothing says where the
 *                 last one ends, it ends with its work.
 */
#ifndef LULL_MODEL_ROUNDS_H
#define LULL_MODEL_ROUNDS_H

#include "base/types.h"
#include "base/vec.h"
#include "model/chain.h"
#include "model/host.h"
#include "model/unit.h"
#include "trace/reader.h"

/* step.source */
#define LULL_STEP_SAID	0 /* by the program */
#define LULL_STEP_FOUND 1 /* by hooks of its framework */

enum lull_rounds_source {
	LULL_ROUNDS_NONE,
	LULL_ROUNDS_STEP,      /* the table `step` */
	LULL_ROUNDS_RANGE,     /* ranges named like steps */
	LULL_ROUNDS_OPTIMIZER, /* updates of the optimizer */
	LULL_ROUNDS_PERIOD,    /* found: nothing is marked */
	LULL_ROUNDS_HOOK,      /* the table `step`, by hooks of the framework */
	LULL_ROUNDS_FORWARD,   /* calls of the model, by hooks */
	LULL_ROUNDS_NAMED,     /* ranges of some other name that repeat */
	LULL_ROUNDS_OPS,       /* outermost operators of one name */
	LULL_ROUNDS_WAITS,     /* launches between waits, copies or gaps */
	LULL_ROUNDS_GROUP,     /* groups of equal launches: nothing says where rounds begin */
	LULL_N_ROUNDS_SOURCES,
};

/* Calls of modules are so named among calls of Python, where PyTorch's profiler recorded them. */
#define LULL_MODULE_PREFIX "nn.Module: "

/* Kinds of rounds at most; where there are more, the last one is all others. */
#define LULL_ROUNDS_MAX_KINDS 8

struct lull_round {
	u64 mark_ns; /* begin on the host */
	u64 end_ns;  /* end on the device */
	u32 kind;    /* 0: the usual one */
};

/* The steady rounds of one kind. */
struct lull_round_kind {
	u32 n;
	u64 n_launches; /* kernels, graphs, copies and memsets, in all of them */
	u64 dur_ns;	/* on the device, of all of them */
};

struct lull_rounds {
	struct lull_vec all; /* struct lull_round */
	u64 last_ns;	     /* end of the last one on the host */
	u64 first_ns;	     /* begin of the first one's window on the device */
	u32 first_steady;
	enum lull_rounds_source source;
	const char *name;  /* of the range, operator or call, or NULL; borrowed */
	u32 n_grouped;	   /* source GROUP: launches in a group */
	const char *model; /* they are parts of its calls, and no steps; or NULL; borrowed */
	u32 n_calls;	   /* of the model */
	u32 n_kinds;	   /* of steady rounds */
	struct lull_round_kind kinds[LULL_ROUNDS_MAX_KINDS];
};

/*
 * Find the steps of `process` (`without` as in lull_host_init()), and set the round of nodes and
 * units.
 */
void lull_rounds_init(struct lull_rounds *s, struct lull_reader *r, u32 process,
		      struct lull_chain *c, struct lull_units *units, const struct lull_host *h,
		      u32 without);

/* Free them. */
void lull_rounds_release(struct lull_rounds *s);

/* How they were found, for a sentence: "marked by the program". */
const char *lull_rounds_how(const struct lull_rounds *s, char *text, size_t size);

/* The same in a word, for tables: program, ranges, repeats, ... */
const char *lull_rounds_word(enum lull_rounds_source source);

/* Begin and end of a step's window on the device. */
static inline u64 lull_round_begin_ns(const struct lull_rounds *s, u32 round)
{
	return round ? ((const struct lull_round *)s->all.at)[round - 1].end_ns : s->first_ns;
}

static inline u64 lull_round_end_ns(const struct lull_rounds *s, u32 round)
{
	return ((const struct lull_round *)s->all.at)[round].end_ns;
}

/*
 * Whether the program marks its steps, or a hook of its framework counts them: their time is then
 * what lies between the marks. Steps that were found have only their windows on the device.
 */
static inline bool lull_rounds_are_marked(const struct lull_rounds *s)
{
	return s->source == LULL_ROUNDS_STEP || s->source == LULL_ROUNDS_HOOK ||
	       s->source == LULL_ROUNDS_RANGE;
}

/* Steps that count: all but the warm-up. */
static inline u32 lull_rounds_n_steady(const struct lull_rounds *s)
{
	return s->all.n > s->first_steady ? (u32)s->all.n - s->first_steady : 0;
}

#endif
