/*
 * State of devices as --metrics-port tells it: units, averages, age, labels.
 */
#include "unit/unit.h"

#include <string.h>

#include "base/mem.h"
#include "base/time.h"
#include "record/live/live_devices.h"

#define S LULL_NS_PER_S

static struct lull_live_devices *make(const char *name)
{
	struct lull_live_devices *l = lull_alloc(1, sizeof(*l));
	struct lull_gpu_facts facts = { .uuid = "0123456789abcdef0123456789abcdef" };

	lull_live_init(l);
	snprintf(l->host, sizeof(l->host), "node1");
	snprintf(facts.name, sizeof(facts.name), "%s", name);
	lull_live_announce(l, 2, &facts);
	return l;
}

/* What is told at `now_ns`; valid until the next call. */
static const char *told(const struct lull_live_devices *l, u64 now_ns)
{
	static struct lull_str text;

	lull_str_clear(&text);
	lull_live_write(l, now_ns, &text);
	return lull_str_text(&text);
}

#define LABELS(name)                                                                           \
	"{gpu=\"2\",UUID=\"GPU-01234567-89ab-cdef-0123-456789abcdef\",pci_bus_id=\"\",device=" \
	"\"nvidia2\",modelName=\"" name "\",Hostname=\"node1\",DCGM_FI_DRIVER_VERSION=\"\"}"

static void values_have_the_units_of_the_exporter(void **state)
{
	struct lull_live_devices *l = make("H200");

	(void)state;
	assert_string_equal(told(l, S), "");
	lull_live_add(l, 2, LULL_METRIC_live_memory_used, S, 3.0 * (1 << 20));
	assert_string_equal(told(l, S), "# HELP DCGM_FI_DEV_FB_USED Memory in use by programs, in "
					"MiB.\n# TYPE DCGM_FI_DEV_FB_USED gauge\n"
					"DCGM_FI_DEV_FB_USED" LABELS("H200") " 3\n");
	free(l);
}

static void names_of_devices_are_escaped(void **state)
{
	struct lull_live_devices *l = make("a \"b\" \\ c\nd");

	(void)state;
	lull_live_add(l, 2, LULL_METRIC_nvml_power, S, 250.5);
	assert_non_null(strstr(told(l, S), "\nDCGM_FI_DEV_POWER_USAGE" LABELS(
						   "a \\\"b\\\" \\\\ c\\nd") " 250.5\n"));
	free(l);
}

static void old_values_are_not_told(void **state)
{
	struct lull_live_devices *l = make("H200");

	(void)state;
	lull_live_add(l, 2, LULL_METRIC_nvml_power, 5 * S, 250);
	assert_non_null(strstr(told(l, 15 * S), "POWER_USAGE"));
	assert_string_equal(told(l, 15 * S + 1), "");
	free(l);
}

static void sampled_counters_are_averaged_over_a_second(void **state)
{
	struct lull_live_devices *l = make("H200");

	(void)state;
	/* Half of the samples at 0, half at 80 %. */
	for (u64 i = 0; i <= 1000; i++)
		lull_live_add(l, 2, LULL_METRIC_pm_sm_active, S + i * S / 1000, i % 2 ? 80 : 0);
	assert_non_null(strstr(told(l, 2 * S), "\nDCGM_FI_PROF_SM_ACTIVE" LABELS("H200") " 0.4\n"));
	/* GPM, where there is any, is taken as it is. */
	lull_live_add(l, 2, LULL_METRIC_gpm_sm_active, 2 * S, 10);
	lull_live_add(l, 2, LULL_METRIC_gpm_sm_active, 2 * S, 20);
	assert_non_null(strstr(told(l, 2 * S), "\nDCGM_FI_PROF_SM_ACTIVE" LABELS("H200") " 0.2\n"));
	free(l);
}

static void reads_and_writes_of_memory_are_added(void **state)
{
	struct lull_live_devices *l = make("H200");

	(void)state;
	lull_live_add(l, 2, LULL_METRIC_pm_dram_read, S, 30);
	assert_string_equal(told(l, S), ""); /* half of it is no answer */
	lull_live_add(l, 2, LULL_METRIC_pm_dram_write, S, 20);
	assert_non_null(strstr(told(l, S), "\nDCGM_FI_PROF_DRAM_ACTIVE" LABELS("H200") " 0.5\n"));
	free(l);
}

static void strange_numbers_are_ignored(void **state)
{
	struct lull_live_devices *l = make("H200");

	(void)state;
	lull_live_add(l, LULL_MAX_GPUS, LULL_METRIC_nvml_power, S, 1);
	lull_live_add(l, 2, LULL_N_VALUES, S, 1);
	lull_live_add(l, 2, LULL_METRIC_none, S, 1);
	lull_live_add(l, 1, LULL_METRIC_nvml_power, S, 1); /* never announced */
	assert_string_equal(told(l, S), "");
	free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_have_the_units_of_the_exporter),
		cmocka_unit_test(names_of_devices_are_escaped),
		cmocka_unit_test(old_values_are_not_told),
		cmocka_unit_test(sampled_counters_are_averaged_over_a_second),
		cmocka_unit_test(reads_and_writes_of_memory_are_added),
		cmocka_unit_test(strange_numbers_are_ignored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
