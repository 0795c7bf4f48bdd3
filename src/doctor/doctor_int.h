/*
 * doctor_int - how a check of `lull doctor` says what it found.
 */
#ifndef LULL_DOCTOR_DOCTOR_INT_H
#define LULL_DOCTOR_DOCTOR_INT_H

#include "doctor/doctor.h"

#define LULL_DOCTOR_RECORDING "Recording"
#define LULL_DOCTOR_CPU	      "CPU"
#define LULL_DOCTOR_PYTHON    "Python"
#define LULL_DOCTOR_GPU	      "GPU"
#define LULL_DOCTOR_MACHINE   "Machine"

#define CHECK(name) extern const struct lull_doctor_check lull_doctor_check_##name;
#include "doctor/doctor.def"
#undef CHECK

/* Set the state and the reason. */
void lull_doctor_say(struct lull_doctor_finding *finding, enum lull_doctor_state state,
		     const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* Set the command that changes the state. */
void lull_doctor_fix(struct lull_doctor_finding *finding, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/*
 * Set the command to what starts this container with more rights or room: `flag` is an option of
 * docker and podman, `pod` the same as a line of a Kubernetes pod. False, and no command, when this
 * is no container.
 */
bool lull_doctor_fix_container(struct lull_doctor_finding *finding, const char *flag,
			       const char *pod);

/* Whether this process has the capability (CAP_PERFMON, ...) of linux/capability.h. */
bool lull_doctor_has_capability(int capability);

#endif
