/*
 * fleet_policy - which processes are recorded: rules, one a line, of which the first that fits
 * decides.
 *
 *	# comment
 *	skip cmdline=jupyter
 *	record label=train cmdline="python.* train" cgroup=/kubepods share=25% budget=0.5%
 *
 * cmdline, cgroup: extended regular expressions, found anywhere in the command line (words
 *                  separated by blanks) and in /proc/PID/cgroup. A rule without them fits
 *                  everybody.
 * share:           of the processes that fit, chosen at random, but once for each process.
 * budget:          what recording may cost.
 * label:           the folder of their reports; letters, digits, "-", "_" and ".".
 */
#ifndef LULL_FLEET_FLEET_POLICY_H
#define LULL_FLEET_FLEET_POLICY_H

#include <regex.h>

#include "base/err.h"
#include "base/types.h"
#include "base/vec.h"

struct lull_fleet_rule {
	bool is_skip;
	bool has_cmdline, has_cgroup;
	regex_t cmdline, cgroup;
	char label[64];
	f64 share, budget;
	u32 line; /* where it stands, 0: the default */
};

struct lull_fleet_policy {
	struct lull_vec rules; /* struct lull_fleet_rule */
};

/* A process that computes on a device. */
struct lull_fleet_process {
	u32 pid;
	u64 start_ticks; /* of /proc/PID/stat: with the pid, who it is */
	char cmdline[1024];
	char cgroup[1024];
};

enum lull_fleet_choice {
	LULL_FLEET_RECORD,
	LULL_FLEET_SKIP,       /* a rule says so */
	LULL_FLEET_NOT_CHOSEN, /* not in the share */
	LULL_FLEET_NO_RULE,    /* none fits */
};

/* One rule that fits everybody, with this budget. */
void lull_fleet_policy_init(struct lull_fleet_policy *p, f64 share, f64 budget);

/*
 * The rules of a text instead; `name` is that of the file, for messages. LULL_E_USAGE with line and
 * sentence for what is not understood.
 */
int lull_fleet_policy_parse(struct lull_fleet_policy *p, const char *text, const char *name,
			    struct lull_err *err);

/* What becomes of the process, and by which rule (NULL: none). */
enum lull_fleet_choice lull_fleet_policy_choose(const struct lull_fleet_policy *p,
						const struct lull_fleet_process *process,
						const struct lull_fleet_rule **rule);

/* Free the rules. */
void lull_fleet_policy_release(struct lull_fleet_policy *p);

/* "2%" or "0.02" to 0.02; false if it is no share from 0 to 1. */
bool lull_fleet_share(const char *text, f64 *share);

#endif
