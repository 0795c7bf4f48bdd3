/*
 * change - the same kernels before and after a change: what differs, and why the time does.
 *
 * Kernels are the same if their names are, up to the list of arguments; several launches of one are
 * averaged. The sentence names the amount of work, or else the rate, whose change comes closest to
 * that of the time.
 */
#ifndef LULL_COUNTER_CHANGE_H
#define LULL_COUNTER_CHANGE_H

#include "base/types.h"
#include "base/vec.h"
#include "counter/profile.h"
#include "counter/stall.h"

enum lull_change_kind { LULL_CHANGE_WORK, LULL_CHANGE_RATE, LULL_CHANGE_FACT };

enum lull_change_ix {
#define CHANGE(key, kind, label, reason) LULL_CHANGE_##key,
#include "counter/changes.def"
#undef CHANGE
	LULL_N_CHANGES,
};

struct lull_change_info {
	enum lull_k k;
	enum lull_change_kind kind;
	const char *label, *reason;
};

/* By enum lull_change_ix. */
extern const struct lull_change_info lull_change_infos[];

/* One kernel; [0] is before, [1] after. */
struct lull_change {
	const char *name;	       /* borrowed from the side that has it */
	const char *was;	       /* what it was called before, NULL if the same */
	u64 n[2];		       /* launches */
	f64 dur_ns[2];		       /* mean */
	f64 values[LULL_N_CHANGES][2]; /* means, NaN where not measured */
	f64 stalls[LULL_N_STALLS][2];
	const char *verdict[2]; /* of the longest launch, NULL if there is none */
	bool is_changed;	/* its time did */
	char why[320];		/* the sentence */
};

/*
 * Line them up by name; the only one left on each side is taken for the same, with a new name.
 * struct lull_change, largest difference of time first, those on one side only last.
 * Release `to` with lull_vec_release(); the profiles have to live as long.
 */
void lull_changes_find(struct lull_vec *to, const struct lull_profiles *before,
		       const struct lull_profiles *after);

/* The wait that changed most, -1 if none was measured on both sides. */
int lull_change_stall(const struct lull_change *c);

#endif
