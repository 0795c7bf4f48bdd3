#include <string.h>

#include "compare/gate_int.h"
#include "compare/program.h"
#include "trace/issue.h"

static const char *device_of(struct lull_reader *r)
{
	size_t n;
	const struct lull_device_row *rows = lull_reader_dim(r, LULL_TABLE_device, &n);

	return n ? lull_reader_string(r, rows[0].name, NULL) : "";
}

/* Rows that were lost, so that counts and times of what is left are too small. */
static u64 n_lost(struct lull_reader *r, const char **what)
{
	size_t n;
	const struct lull_issue_row *rows = lull_reader_dim(r, LULL_TABLE_issue, &n);
	u64 sum = 0;

	for (size_t i = 0; i < n; i++)
		if (rows[i].severity >= LULL_SEVERITY_LOSS) {
			sum += rows[i].count;
			*what = lull_reader_string(r, rows[i].name, NULL);
		}
	return sum;
}

/* Whether something is compared that is measured step by step. */
static bool needs_steps(const struct lull_gate *gate)
{
	const struct lull_gate_check *checks = gate->checks.at;

	for (size_t i = 0; i < gate->checks.n; i++)
		if (checks[i].sql || !checks[i].metric->sample)
			return true;
	return !gate->checks.n;
}

static bool is_whole(const struct lull_gate *gate, const struct lull_gate_run *run,
		     struct lull_str *why)
{
	const char *what = "";
	u64 lost = n_lost(run->reader, &what);

	if (!lull_reader_is_sealed(run->reader))
		lull_str_addf(why, "%s is truncated; lull recover completes it", run->path);
	else if (lull_reader_n_damaged(run->reader))
		lull_str_addf(why, "%s is damaged", run->path);
	else if (!lull_windows_len(&run->steps) && needs_steps(gate))
		lull_str_addf(why,
			      "%s has no steps to compare; mark them (lull_step(), an NVTX range "
			      "around each), or record more of them",
			      run->path);
	else if (lost && !gate->allows_losses)
		lull_str_addf(why, "%s lost %llu events (%s); record again, or use --allow-losses",
			      run->path, (unsigned long long)lost, what);
	return !why->len;
}

/* False, with the reason, for reports of different programs. */
static bool is_same_program(const struct lull_gate_run *a, const struct lull_gate_run *b,
			    struct lull_str *why)
{
	struct lull_program x, y;

	lull_program_init(&x, a->reader, a->steps.process);
	lull_program_init(&y, b->reader, b->steps.process);
	if (strcmp(lull_str_text(&x.name), lull_str_text(&y.name)) != 0)
		lull_str_addf(why, "%s ran '%s', %s ran '%s'; --any-program compares them anyway",
			      a->path, lull_str_text(&x.name), b->path, lull_str_text(&y.name));
	lull_program_release(&x);
	lull_program_release(&y);
	return !why->len;
}

static bool is_same(const struct lull_gate *gate, const struct lull_gate_run *a,
		    const struct lull_gate_run *b, struct lull_str *why)
{
	if (!gate->allows_other_program && !is_same_program(a, b, why))
		return false;
	if (!gate->allows_other_device && strcmp(device_of(a->reader), device_of(b->reader)) != 0)
		lull_str_addf(
			why,
			"%s was recorded on '%s', %s on '%s'; --any-device compares them anyway",
			a->path, device_of(a->reader), b->path, device_of(b->reader));
	return !why->len;
}

/*
 * Other arguments may be the change itself (--workers 8) or mean nothing (--out run2), so that they
 * are only said. Ranks of a job have arguments of their own; the first of each side is looked at.
 */
static void compare_arguments(struct lull_gate *gate)
{
	const struct lull_gate_run *a = gate->before.at, *b = gate->after.at;
	struct lull_program x, y;

	if (!gate->before.n || !gate->after.n)
		return;
	lull_program_init(&x, a->reader, a->steps.process);
	lull_program_init(&y, b->reader, b->steps.process);
	if (strcmp(lull_str_text(&x.args), lull_str_text(&y.args)) != 0)
		lull_str_addf(&gate->note, "the arguments differ: '%s' in the baseline, '%s' now",
			      lull_str_text(&x.args), lull_str_text(&y.args));
	lull_program_release(&x);
	lull_program_release(&y);
}

bool lull_gate_may_compare(struct lull_gate *gate)
{
	const struct lull_vec *const sides[] = { &gate->before, &gate->after };
	const struct lull_gate_run *first = gate->before.n ? gate->before.at : gate->after.at;

	for (size_t k = 0; k < LULL_COUNT_OF(sides); k++) {
		const struct lull_gate_run *runs = sides[k]->at;

		for (size_t i = 0; i < sides[k]->n; i++)
			if (!is_whole(gate, &runs[i], &gate->why) ||
			    !is_same(gate, first, &runs[i], &gate->why))
				return false;
	}
	compare_arguments(gate);
	return true;
}
