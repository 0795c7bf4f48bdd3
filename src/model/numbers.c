#include "model/numbers.h"

#include <stdlib.h>

#include "base/mem.h"

/* More than this many places a number are a waste. */
#define MAX_HOLES 8

void lull_numbers_init(struct lull_numbers *n, size_t n_processes)
{
	*n = (struct lull_numbers){ .n_processes = n_processes };
	lull_map_init(&n->by_number);
	n->processes = lull_alloc(n_processes + 1, sizeof(*n->processes));
}

void lull_numbers_release(struct lull_numbers *n)
{
	for (size_t i = 0; n->processes && i <= n->n_processes; i++)
		free(n->processes[i].places);
	free(n->processes);
	n->processes = NULL;
	lull_map_release(&n->by_number);
}

void lull_numbers_settle(struct lull_numbers *n)
{
	for (size_t i = 0; i <= n->n_processes; i++) {
		struct lull_numbers_process *p = &n->processes[i];
		u64 n_places = (u64)p->last - p->first + 1;

		if (p->n && n_places / MAX_HOLES <= p->n)
			p->places = lull_alloc(n_places, sizeof(*p->places));
	}
}

u32 *lull_numbers_add(struct lull_numbers *n, u32 process, u32 number)
{
	struct lull_numbers_process *p = &n->processes[process];

	if (p->places)
		return &p->places[number - p->first];
	return lull_map_add(&n->by_number, (u64)process << 32 | number, NULL);
}
