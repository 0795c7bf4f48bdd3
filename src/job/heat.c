#include "job/heat.h"

#include <stdlib.h>

#include "base/mem.h"

static f64 value_of(const struct lull_job_step *step, enum lull_heat_kind kind)
{
	switch (kind) {
	case LULL_HEAT_LATE:
		return step->late_ns > 0 ? (f64)step->late_ns : 0;
	case LULL_HEAT_WAIT:
		return (f64)(step->wait_ns + step->bubble_ns);
	default:
		return (f64)step->dur_ns;
	}
}

void lull_heat_init(struct lull_heat *h, const struct lull_job *job, enum lull_heat_kind kind,
		    u32 max_rows, u32 max_columns)
{
	const struct lull_job_rank *all = job->ranks.at;
	u32 n_ranks = (u32)job->ranks.n, n;

	h->ranks_a_row = (n_ranks + max_rows - 1) / max_rows;
	h->steps_a_column = (job->n_steps + max_columns - 1) / max_columns;
	h->ranks_a_row = h->ranks_a_row ? h->ranks_a_row : 1;
	h->steps_a_column = h->steps_a_column ? h->steps_a_column : 1;
	h->n_rows = (n_ranks + h->ranks_a_row - 1) / h->ranks_a_row;
	h->n_columns = (job->n_steps + h->steps_a_column - 1) / h->steps_a_column;
	h->ns = lull_alloc((size_t)h->n_rows * h->n_columns + 1, sizeof(*h->ns));
	h->most_ns = 0;
	for (size_t i = 0; i < (size_t)h->n_rows * h->n_columns; i++)
		h->ns[i] = -1;
	for (u32 i = 0; i < n_ranks; i++) {
		const struct lull_job_step *steps = lull_job_steps(job, &all[i], &n);

		for (u32 k = 0; k < n; k++) {
			f64 value = value_of(&steps[k], kind), *to;

			if (steps[k].number >= job->n_steps)
				continue;
			to = &h->ns[(size_t)(i / h->ranks_a_row) * h->n_columns +
				    steps[k].number / h->steps_a_column];
			*to = value > *to ? value : *to;
			h->most_ns = value > h->most_ns ? value : h->most_ns;
		}
	}
}

void lull_heat_release(struct lull_heat *h)
{
	free(h->ns);
	h->ns = NULL;
}
