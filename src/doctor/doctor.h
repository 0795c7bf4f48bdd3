/*
 * doctor - what can be recorded on this machine, what cannot, and the one command that changes it.
 *
 * A check looks at one thing and leaves a finding: a state, the reason in a sentence, and a command
 * where there is one that helps. It changes nothing and needs no rights. A finding that depends on
 * the rights of the user is found out by trying, not by reading settings.
 *
 * To add one: a function and a const struct lull_doctor_check lull_doctor_check_X in one of the
 * doctor_*.c files, CHECK(X) in doctor.def where it should be listed, its name in
 * doc/lull-doctor.1.md.
 */
#ifndef LULL_DOCTOR_DOCTOR_H
#define LULL_DOCTOR_DOCTOR_H

#include "base/str.h"
#include "base/types.h"

enum lull_doctor_state {
	LULL_DOCTOR_OK,
	LULL_DOCTOR_LIMITED, /* works in part */
	LULL_DOCTOR_NO,
};

struct lull_doctor_finding {
	enum lull_doctor_state state;
	struct lull_str reason;
	struct lull_str fix; /* a command, "" if nothing helps or nothing is needed */
};

struct lull_doctor_check {
	const char *name;  /* stable, for scripts: "kernel-samples" */
	const char *group; /* heading under which it is listed */
	const char *title;
	bool is_source; /* something can be recorded if this is not NO */
	void (*run)(struct lull_doctor_finding *finding);
};

/* The checks of doctor.def, NULL at the end. */
extern const struct lull_doctor_check *const lull_doctor_checks[];

/* Run a check into an empty finding; lull_doctor_release() it afterwards. */
void lull_doctor_run(const struct lull_doctor_check *check, struct lull_doctor_finding *finding);

/* Free the texts. */
void lull_doctor_release(struct lull_doctor_finding *finding);

/* "ok", "limited" or "no". */
const char *lull_doctor_state_name(enum lull_doctor_state state);

#endif
