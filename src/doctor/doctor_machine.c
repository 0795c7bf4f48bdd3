/*
 * The surroundings: a container takes rights away that the host's settings seem to give.
 */
#include "doctor/doctor_int.h"

#include <string.h>

#include "base/file.h"
#include "record/session/machine.h"

static bool has_seccomp(void)
{
	struct lull_str status = LULL_STR_INIT, mode = LULL_STR_INIT;
	bool is_on = lull_file_read("/proc/self/status", &status) &&
		     lull_file_value(status.at, "Seccomp", ':', &mode) && strcmp(mode.at, "0");

	lull_str_release(&status);
	lull_str_release(&mode);
	return is_on;
}

static void run_container(struct lull_doctor_finding *f)
{
	const char *container = lull_machine_container();
	bool is_inside = strcmp(container, "none") != 0;

	lull_doctor_say(f, LULL_DOCTOR_OK, "%s%s%s", is_inside ? "inside " : "none",
			is_inside ? container : "",
			has_seccomp() ? ", with a seccomp filter" : ", no seccomp filter");
}

const struct lull_doctor_check lull_doctor_check_container = {
	.name = "container",
	.group = LULL_DOCTOR_MACHINE,
	.title = "container",
	.run = run_container,
};
