#include "doctor/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "doctor/doctor_int.h"
#include "record/session/machine.h"

const struct lull_doctor_check *const lull_doctor_checks[] = {
#define CHECK(name) &lull_doctor_check_##name,
#include "doctor/doctor.def"
#undef CHECK
	NULL,
};

void lull_doctor_run(const struct lull_doctor_check *check, struct lull_doctor_finding *finding)
{
	*finding = (struct lull_doctor_finding){ LULL_DOCTOR_OK, LULL_STR_INIT, LULL_STR_INIT };
	check->run(finding);
}

void lull_doctor_release(struct lull_doctor_finding *finding)
{
	lull_str_release(&finding->reason);
	lull_str_release(&finding->fix);
}

const char *lull_doctor_state_name(enum lull_doctor_state state)
{
	static const char *const names[] = { "ok", "limited", "no" };

	return names[state];
}

void lull_doctor_say(struct lull_doctor_finding *finding, enum lull_doctor_state state,
		     const char *fmt, ...)
{
	va_list ap;

	finding->state = state;
	lull_str_clear(&finding->reason);
	va_start(ap, fmt);
	lull_str_vaddf(&finding->reason, fmt, ap);
	va_end(ap);
}

void lull_doctor_fix(struct lull_doctor_finding *finding, const char *fmt, ...)
{
	va_list ap;

	lull_str_clear(&finding->fix);
	va_start(ap, fmt);
	lull_str_vaddf(&finding->fix, fmt, ap);
	va_end(ap);
}

bool lull_doctor_fix_container(struct lull_doctor_finding *finding, const char *flag,
			       const char *pod)
{
	const char *container = lull_machine_container();

	if (!strcmp(container, "none"))
		return false;
	if (!strcmp(container, "kubernetes"))
		lull_doctor_fix(finding, "in the pod: %s", pod);
	else
		lull_doctor_fix(finding, "%s run %s ...",
				strcmp(container, "podman") ? "docker" : "podman", flag);
	return true;
}

bool lull_doctor_has_capability(int capability)
{
	struct lull_str status = LULL_STR_INIT, mask = LULL_STR_INIT;
	u64 bits = 0;

	if (lull_file_read("/proc/self/status", &status) &&
	    lull_file_value(status.at, "CapEff", ':', &mask))
		bits = strtoull(mask.at, NULL, 16);
	lull_str_release(&status);
	lull_str_release(&mask);
	return bits >> capability & 1;
}
