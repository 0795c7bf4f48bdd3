/*
 * kernel_list - what `lull kernel` can measure: metrics, sections, sets, and what they cost on a
 * chip, for which CUPTI is asked and no device is needed.
 */
#include <stdio.h>
#include <string.h>

#include "text/out.h"
#include "base/str.h"
#include "cmd/kernel/kernel_collect.h"
#include "counter/kplan.h"
#include "record/session/locate.h"

/* The chip for which the sets were made: the default of --chip. */
#define DEFAULT_CHIP "GH100"

static int open_plan(const char *chip, struct lull_kplan **plan, struct lull_err *err)
{
	struct lull_str path = LULL_STR_INIT;
	int rc;

	*plan = NULL;
	if (!lull_locate_cupti(&path))
		return lull_fail(err, LULL_E_NOT_FOUND,
				 "CUPTI was not found; set LULL_CUPTI_PATH to its libcupti.so");
	rc = lull_kplan_open(plan, path.at, chip, err);
	lull_str_release(&path);
	return rc;
}

static int write_out(struct lull_out *out, struct lull_err *err)
{
	const struct lull_out_options options = LULL_OUT_OPTIONS_INIT;
	int rc = lull_out_write(out, &options, stdout, err);

	lull_out_release(out);
	return rc;
}

static void put_metric(void *ctx, const char *name, const char *unit, const char *text)
{
	struct lull_out *out = ctx;

	lull_out_row(out);
	lull_out_text(out, name);
	lull_out_text(out, unit);
	lull_out_text(out, text);
}

/* All that CUPTI has for the chip; names get a suffix such as .sum or .avg.per_second. */
static int list_all(const char *chip, struct lull_err *err)
{
	static const struct lull_out_column columns[] = {
		{ .name = "Metric", .kind = LULL_OUT_TEXT },
		{ .name = "Unit", .kind = LULL_OUT_TEXT },
		{ .name = "Meaning", .kind = LULL_OUT_TEXT },
	};
	struct lull_kplan *plan;
	struct lull_out out;

	if (open_plan(chip, &plan, err))
		return err->code;
	lull_out_init(&out, columns, LULL_COUNT_OF(columns));
	lull_kplan_list(plan, put_metric, &out);
	lull_kplan_close(plan);
	return write_out(&out, err);
}

static int list_ours(struct lull_err *err)
{
	static const struct lull_out_column columns[] = {
		{ .name = "Key", .kind = LULL_OUT_TEXT },
		{ .name = "Unit", .kind = LULL_OUT_TEXT },
		{ .name = "Meaning", .kind = LULL_OUT_TEXT },
		{ .name = "CUPTI's Name", .kind = LULL_OUT_TEXT },
	};
	struct lull_out out;

	lull_out_init(&out, columns, LULL_COUNT_OF(columns));
	for (size_t i = 0; i < lull_n_kmetrics; i++) {
		put_metric(&out, lull_kmetrics[i].key, lull_kmetrics[i].unit,
			   lull_kmetrics[i].meaning);
		lull_out_text(&out, lull_kmetrics[i].names[0]);
	}
	return write_out(&out, err);
}

/* Metrics and passes of a group, if there is a CUPTI. */
static int put_cost(struct lull_out *out, struct lull_kplan *plan, const struct lull_kset *set,
		    struct lull_err *err)
{
	struct lull_kcost cost;

	if (!plan) {
		lull_out_i64(out, (i64)set->metrics.n);
		lull_out_skip(out);
		return 0;
	}
	if (lull_kplan_passes(plan, set, &cost, err))
		return err->code;
	lull_out_i64(out, cost.n_metrics);
	lull_out_i64(out, cost.n_passes);
	lull_vec_release(&cost.missing);
	return 0;
}

typedef int add_fn(struct lull_kset *set, const char *name, struct lull_err *err);

static int list_groups(const struct lull_kgroup *groups, size_t n, add_fn *add, const char *chip,
		       struct lull_err *err)
{
	static const struct lull_out_column columns[] = {
		{ .name = "Name", .kind = LULL_OUT_TEXT },
		{ .name = "Metrics", .kind = LULL_OUT_INT },
		{ .name = "Passes", .kind = LULL_OUT_INT },
		{ .name = "What", .kind = LULL_OUT_TEXT },
	};
	struct lull_kplan *plan = NULL;
	struct lull_out out;
	struct lull_err why;
	int rc = open_plan(chip ? chip : DEFAULT_CHIP, &plan, &why);

	/* Without CUPTI the list is still of use; a chip that was named has to be one. */
	if (rc && chip)
		return lull_fail(err, why.code, "%s", why.msg);
	lull_out_init(&out, columns, LULL_COUNT_OF(columns));
	rc = 0;
	for (size_t i = 0; i < n && !rc; i++) {
		struct lull_kset set;

		lull_kset_init(&set);
		rc = add(&set, groups[i].name, err);
		lull_out_row(&out);
		lull_out_text(&out, groups[i].name);
		if (!rc)
			rc = put_cost(&out, plan, &set, err);
		lull_out_text(&out, groups[i].summary);
		lull_kset_release(&set);
	}
	if (!rc)
		rc = write_out(&out, err);
	else
		lull_out_release(&out);
	if (!rc)
		fprintf(stderr, "%s%s%s\n", plan ? "Passes on " : "Passes not counted: ",
			plan ? (chip ? chip : DEFAULT_CHIP) : why.msg,
			plan && !chip ? "; --chip names another" : "");
	lull_kplan_close(plan);
	return rc;
}

bool lull_kernel_collect_is_list(const struct lull_kernel_collect *k)
{
	return k->list_metrics || k->list_sets || k->list_sections;
}

int lull_kernel_collect_list(const struct lull_kernel_collect *k, struct lull_err *err)
{
	if (k->list_metrics)
		return k->chip ? list_all(k->chip, err) : list_ours(err);
	if (k->list_sets)
		return list_groups(lull_ksets, lull_n_ksets, lull_kset_add_set, k->chip, err);
	return list_groups(lull_ksections, lull_n_ksections, lull_kset_add_section, k->chip, err);
}
