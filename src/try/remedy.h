/*
 * remedy - a change that makes some programs faster, as a file that says all about it.
 *
 * A remedy is one Python file of python/lull/remedies/, or a file of the user's. The text at its
 * head, between """ and """, is for lull; the function apply(trial) puts the change in, inside the
 * program (python/lull/_try.py). One without apply() and without a line `mend:` sets variables of
 * the environment alone.
 *
 *	"""NAME: what it changes, as a phrase
 *
 *	causes: ids of lull why, with commas between them; the one it is made for first
 *	needs: WORD, ...              what has to be in the recording (need.h)
 *	asks: yes                     apply() changes nothing unless trial.changes() says so, and
 *	                              can be asked in a recording whether there is anything to do
 *	exact: yes                    results are equal to the bit; else
 *	tolerance: 1e-3 because ...   how far losses may lie apart, as a share
 *	env: A=B                      any number of them
 *	mend: NAME                    what liblull-mend.so does to a program that is not Python
 *	group: NAME                   two remedies of a group exclude each other
 *	by-name: yes                  only tried if --only names it
 *	warmup: N                     steps before it can be measured
 *	limit: SECONDS                that its run may take besides
 *	write: what a person would write into the program
 *	"""
 *
 * To add one: copy a file there; the folder is the list. `tools/gen-docs build/lull` writes
 * lull-try(1).
 */
#ifndef LULL_TRY_REMEDY_H
#define LULL_TRY_REMEDY_H

#include "base/err.h"
#include "base/types.h"
#include "base/vec.h"

struct lull_remedy {
	char *name, *title;
	char *write;		/* "" if it says nothing */
	char *group;		/* NULL: none */
	char *path;		/* absolute, of a file with apply(); NULL: environment alone */
	char *mend;		/* of liblull-mend.so (src/mend); NULL */
	char *because;		/* why results differ; NULL */
	struct lull_vec causes; /* char * */
	struct lull_vec needs;	/* const struct lull_need * */
	struct lull_vec env;	/* char *: A=B */
	bool is_exact, is_by_name;
	bool can_ask;  /* apply() can say whether it would change something */
	bool is_own;   /* of our folder */
	f64 tolerance; /* of losses that are not equal */
	u64 n_warmup;  /* 0: as usual */
	f64 limit_s;
};

/* Losses of a remedy that says nothing about them may lie this far apart, as a share. */
#define LULL_REMEDY_TOLERANCE 0.01

/*
 * Add the remedy of this file to `all`. LULL_E_NOT_FOUND or LULL_E_FORMAT with a sentence that
 * names the file and the line.
 */
int lull_remedy_read(struct lull_vec *all, const char *path, struct lull_err *err);

/* Add all files of a folder, in the order of their names. */
int lull_remedy_read_folder(struct lull_vec *all, const char *folder, struct lull_err *err);

/*
 * Add one that sets a variable, "A=B"; it is named like that. LULL_E_USAGE if it is no such word.
 */
int lull_remedy_of_variable(struct lull_vec *all, const char *word, struct lull_err *err);

/* The remedy of this name, or NULL; then *nearest is the closest name, or NULL. */
const struct lull_remedy *lull_remedy_find(const struct lull_vec *all, const char *name,
					   const char **nearest);

/* Whether the remedy is for this cause. */
bool lull_remedy_is_for(const struct lull_remedy *r, const char *cause);

/* Free the list. */
void lull_remedies_release(struct lull_vec *all);

#endif
