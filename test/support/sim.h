/*
 * sim - what tests of programs on the simulated device share.
 */
#ifndef LULL_TEST_SIM_H
#define LULL_TEST_SIM_H

#include <stdlib.h>
#include <string.h>

#include "support/profile.h"

/* The number after "name=" in a line of counts. */
static inline u64 sim_counted(const char *text, const char *name)
{
	size_t n = strlen(name);

	for (const char *at = text; (at = strstr(at, name)); at += n)
		if ((at == text || at[-1] == ' ' || at[-1] == '\n') && at[n] == '=')
			return strtoull(at + n + 1, NULL, 10);
	fail_msg("no '%s=' in: %s", name, text);
	return 0;
}

/* Set a variable that the stand-ins or the program look at. */
static inline void sim_set(const char *name, const char *value)
{
	assert_int_equal(setenv(name, value, 1), 0);
}

/*
 * The only device of the program. Where there is a driver, what NVML says of devices has rows of
 * its own, of no process.
 */
static inline const struct lull_device_row *sim_device(struct lull_reader *r)
{
	const struct lull_device_row *rows, *found = NULL;
	size_t n;

	rows = lull_reader_dim(r, LULL_TABLE_device, &n);
	for (size_t i = 0; i < n; i++)
		if (rows[i].process) {
			assert_null(found);
			found = &rows[i];
		}
	assert_non_null(found);
	return found;
}

/* Begin a test: these variables as at first, the stand-ins before any real library. */
static inline int sim_begin(const char *const *knobs, size_t n_knobs)
{
	for (size_t i = 0; i < n_knobs; i++)
		unsetenv(knobs[i]);
	sim_set("LD_LIBRARY_PATH", LULL_BUILD "/sim");
	test_profile_begin();
	return 0;
}

/* End it. */
static inline int sim_end(void **state)
{
	(void)state;
	test_profile_end();
	return 0;
}

#endif
