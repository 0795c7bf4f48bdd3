/*
 * try_int - what the files of the engine share.
 */
#ifndef LULL_TRY_TRY_INT_H
#define LULL_TRY_TRY_INT_H

#include "try/try.h"

/* A candidate of these remedies; returns its index. */
size_t lull_try_add(struct lull_try *t, const struct lull_remedy *const *remedies, size_t n);

/*
 * Before anything runs: find our own files, read the remedies, and fill t->entries with what the
 * options name (try_prepare.c). LULL_E_USAGE for a name that no remedy has.
 */
int lull_try_prepare(struct lull_try *t, struct lull_err *err);

/*
 * After the first run of the program as it is, whose number of steps may depend on the time that
 * they take: all runs have as many from now on, since other steps may take longer.
 */
void lull_try_settle_steps(struct lull_try *t);

/*
 * Where the options name nothing: fill t->entries with what `lull why` on a short recording
 * suggests (try_choose.c).
 */
int lull_try_choose(struct lull_try *t, struct lull_err *err);

/*
 * Record some steps of the program with these remedies, by `lull profile`; `path` is the report,
 * which must not exist. LULL_E_IO if there is none afterwards.
 */
int lull_try_record(struct lull_try *t, const struct lull_trial_change *change, const char *path,
		    struct lull_err *err);

/*
 * The same in this folder, which is made; where options have a client, it asks the program, and
 * *is_answered tells whether it succeeded.
 */
int lull_try_record_in(struct lull_try *t, const struct lull_trial_change *change, const char *path,
		       const char *folder, bool *is_answered, struct lull_err *err);

/* Let the client ask the server, until it succeeds; false if it never does (try_client.c). */
bool lull_try_attend(const struct lull_try *t, pid_t server, const char *folder);

/* Like lull_trial_run(), for a program that a client asks: its steps are requests. */
int lull_try_serve(struct lull_try *t, struct lull_trial *trial,
		   const struct lull_trial_change *change, u32 number, struct lull_err *err);

/* Compare the losses of a run with those of the program as it is (try_values.c). */
void lull_try_values_note(const struct lull_try *t, struct lull_try_entry *e,
			  const struct lull_trial *trial);

/* Keep only those numbers of the output that this run of the program has as well. */
void lull_try_values_firm(struct lull_try *t, const struct lull_trial *trial);

/* False if they differ by more than the remedies may, and more than those of equal runs do. */
bool lull_try_values_fit(const struct lull_try *t, struct lull_try_entry *e);

/* The largest difference of two rows of losses, as a share; 0 if all are equal to the bit. */
f64 lull_try_values_apart(const struct lull_vec *a, const struct lull_vec *b);

/* Seconds that are left; INFINITY without a budget. */
f64 lull_try_left_s(const struct lull_try *t);

#endif
