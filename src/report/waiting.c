#include "report/waiting.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* What PyTorch calls the threads of its autograd engine; imports may put words around it. */
#define AUTOGRAD_NAME "pt_autograd"

bool lull_lane_is_autograd(struct lull_reader *r, u32 lane)
{
	size_t n;
	const struct lull_lane_row *lanes = lull_reader_dim(r, LULL_TABLE_lane, &n);

	return lane && lane <= n &&
	       strstr(lull_reader_string(r, lanes[lane - 1].name, NULL), AUTOGRAD_NAME);
}

/* Ranges in which a thread waits for the backward pass. */
static bool is_backward(struct lull_reader *r, const struct lull_label_row *label)
{
	const char *name = lull_reader_string(r, label->name, NULL);

	return !strcmp(lull_reader_string(r, label->domain, NULL), "torch") &&
	       (!strcmp(name, "backward") || !strcmp(name, "autograd.grad"));
}

static void add_lane(struct lull_waiting *w, u32 lane)
{
	const u32 *at = w->lanes_of_backward.at;

	for (size_t i = 0; i < w->lanes_of_backward.n; i++) {
		if (at[i] == lane)
			return;
	}
	*(u32 *)lull_vec_push(&w->lanes_of_backward) = lane;
}

/* Threads that call backward(); main threads of the processes where nobody is seen to. */
static void find_lanes(struct lull_waiting *w, struct lull_reader *r)
{
	size_t n_processes;
	const struct lull_process_row *processes =
		lull_reader_dim(r, LULL_TABLE_process, &n_processes);
	const struct lull_nest_range *ranges = w->nest->ranges.at;
	const u32 *at;

	for (size_t i = 0; i < w->nest->ranges.n; i++) {
		if (w->is_backward[ranges[i].label])
			add_lane(w, ranges[i].lane);
	}
	w->main_lane = lull_alloc(n_processes + 1, sizeof(*w->main_lane));
	for (u32 i = 0; i < w->n_lanes; i++) {
		u32 process = w->lanes[i].process;

		if (process && process <= n_processes && w->lanes[i].tid &&
		    w->lanes[i].tid == processes[process - 1].pid)
			w->main_lane[process] = i + 1;
	}
	at = w->lanes_of_backward.at;
	for (size_t i = 0; i < w->lanes_of_backward.n; i++) {
		if (at[i])
			w->main_lane[w->lanes[at[i] - 1].process] = 0;
	}
}

void lull_waiting_init(struct lull_waiting *w, struct lull_reader *r, const struct lull_nest *nest)
{
	size_t n_labels;
	const struct lull_label_row *labels = lull_reader_dim(r, LULL_TABLE_label, &n_labels);

	*w = (struct lull_waiting){ .nest = nest };
	w->lanes = lull_reader_dim(r, LULL_TABLE_lane, &w->n_lanes);
	w->is_backward = lull_alloc(n_labels + 1, sizeof(*w->is_backward));
	for (size_t i = 0; i < n_labels; i++)
		w->is_backward[i + 1] = is_backward(r, &labels[i]);
	w->is_autograd = lull_alloc(w->n_lanes + 1, sizeof(*w->is_autograd));
	for (u32 i = 1; i <= w->n_lanes; i++)
		w->is_autograd[i] = lull_lane_is_autograd(r, i);
	lull_vec_init(&w->lanes_of_backward, sizeof(u32));
	find_lanes(w, r);
}

void lull_waiting_release(struct lull_waiting *w)
{
	free(w->is_backward);
	free(w->is_autograd);
	free(w->main_lane);
	lull_vec_release(&w->lanes_of_backward);
}

/* Whether the thread is inside of a backward pass at this time. */
static bool is_waiting(const struct lull_waiting *w, u32 lane, struct lull_span span)
{
	for (u32 number = lull_nest_find(w->nest, lane, span); number;
	     number = lull_nest_outside(w->nest, number, span)) {
		if (w->is_backward[lull_nest_get(w->nest, number)->label])
			return true;
	}
	return false;
}

u32 lull_waiting_lane(const struct lull_waiting *w, u32 lane, struct lull_span span)
{
	const u32 *at = w->lanes_of_backward.at;
	u32 process;

	if (!lane || lane > w->n_lanes || !w->is_autograd[lane])
		return lane;
	process = w->lanes[lane - 1].process;
	for (size_t i = 0; i < w->lanes_of_backward.n; i++) {
		if (at[i] && w->lanes[at[i] - 1].process == process && is_waiting(w, at[i], span))
			return at[i];
	}
	return w->main_lane[process] ? w->main_lane[process] : lane;
}
