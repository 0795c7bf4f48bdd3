/*
 * try_int - what the files of the engine share.
 */
#ifndef LULL_TRY_TRY_INT_H
#define LULL_TRY_TRY_INT_H

#include "cause/subject.h"
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

/* Whether a recording of a program that marks no steps has all of it, or only a part. */
bool lull_try_records_all(const struct lull_try *t);

/* Why there is no loop whose rounds could be counted. */
struct lull_try_loop {
	char why_not[200]; /* a phrase: "it has no loop ..." */
	bool is_idle;	   /* nothing happens on a device */
};

/* Calls of a chain that repeat: nodes first .. first + n - 1, each like the one `period` later. */
struct lull_try_repeat {
	u32 first, n, period;
};

/* Whether the calls of the program repeat, at least so often (try_period.c). */
bool lull_try_repeat(struct lull_try_repeat *found, const struct lull_subject *s, u32 least_rounds);

/* After how many calls a row of them repeats; 0 if it does not, or not so often. */
u32 lull_try_period(const u32 *calls, u32 n, u32 least_rounds);

/*
 * Record a program that marks no steps, and find what to count instead: sets t->how.count, or
 * returns false (try_loop.c).
 */
bool lull_try_loop_find(struct lull_try *t, struct lull_try_loop *loop);

/* The same in a recording that exists: sets t->count, t->steps_by and the lengths of blocks. */
bool lull_try_loop_look(struct lull_try *t, struct lull_reader *r, struct lull_try_loop *loop);

/*
 * Run an entry once. *is_out: it does not run again. A failure is that of the command, not of the
 * program.
 */
int lull_try_run_entry(struct lull_try *t, struct lull_try_entry *e, u32 n_left, bool *is_out,
		       struct lull_err *err);

/* As if the program had not been run yet. */
void lull_try_forget_base(struct lull_try *t);

/*
 * The program as it is, once: it must work, and have steps that are marked or found, or end by
 * itself (try_base.c).
 */
int lull_try_run_base(struct lull_try *t, struct lull_err *err);

/*
 * If runs that end after their steps tell nothing about the results of the best, let it run to its
 * end; one whose results differ is out, and the next one is the best (try_results.c).
 */
void lull_try_check_results(struct lull_try *t);

/* The entry with the largest gain, or -1. */
int lull_try_largest(const struct lull_try *t);

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
