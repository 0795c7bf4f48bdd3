/*
 * kset - which metrics are to be measured: sets, sections and single ones, from kmetrics.def and
 * sets.def.
 *
 *	struct lull_kset set;
 *	lull_kset_init(&set);
 *	lull_kset_add_set(&set, "basic", err);
 *	lull_kset_add_metric(&set, "lts__t_bytes.sum", err);
 *	lull_kset_write(&set, text, sizeof(text), err);		what agents are told
 *
 * Names:     a metric is asked for by its key or by CUPTI's name; the latter is not looked up here.
 * Ownership: names that the user gave are borrowed.
 */
#ifndef LULL_COUNTER_KSET_H
#define LULL_COUNTER_KSET_H

#include "base/err.h"
#include "base/types.h"
#include "base/vec.h"

#define LULL_KMETRIC_NAMES 4u

/* One line of kmetrics.def. */
struct lull_kmetric_desc {
	const char *key;
	const char *unit;
	const char *meaning;
	const char *names[LULL_KMETRIC_NAMES]; /* CUPTI's, best first; NULL after the last */
};

/* One section or set. */
struct lull_kgroup {
	const char *name;
	const char *summary;
	const char *members; /* keys, or sections; separated by blanks, * at the end is any */
};

extern const struct lull_kmetric_desc lull_kmetrics[];
extern const size_t lull_n_kmetrics;
extern const struct lull_kgroup lull_ksections[];
extern const size_t lull_n_ksections;
extern const struct lull_kgroup lull_ksets[];
extern const size_t lull_n_ksets;

struct lull_kset {
	struct lull_vec
		metrics; /* const struct lull_kmetric_desc *, each once, in order of the list */
	struct lull_vec others; /* const char *: names of CUPTI's that the user gave */
	bool has_source;	/* the section of samples is among them */
	bool is_plain;		/* leave out what CUPTI counts by code that it adds to kernels */
};

/* The metric of this key, or NULL. */
const struct lull_kmetric_desc *lull_kmetric_find(const char *key);

/* Nothing but time and clocks. */
void lull_kset_init(struct lull_kset *set);

/*
 * Add the sections of a set, the metrics of a section, one metric. LULL_E_USAGE if there is none.
 */
int lull_kset_add_set(struct lull_kset *set, const char *name, struct lull_err *err);
int lull_kset_add_section(struct lull_kset *set, const char *name, struct lull_err *err);
int lull_kset_add_metric(struct lull_kset *set, const char *name, struct lull_err *err);

/* Whether some of it is counted by code that CUPTI adds: it then runs one kernel at a time. */
bool lull_kset_has_patches(const struct lull_kset *set);

/*
 * Write it as agents read it (agent/counters/kprof.h); LULL_E_USAGE if there is no room for that.
 */
int lull_kset_write(const struct lull_kset *set, char *to, size_t room, struct lull_err *err);

/* Free it. */
void lull_kset_release(struct lull_kset *set);

#endif
