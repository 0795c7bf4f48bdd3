/*
 * numbers - an array index for each correlation id of each process.
 *
 * Ids grow with time and leave few holes, so a process has an array indexed by id, starting at its
 * smallest. Where that would be mostly holes, a hash table is used.
 *
 *	lull_numbers_init(&n, n_processes);
 *	...	lull_numbers_measure(&n, process, number);	(each that will be added)
 *	lull_numbers_settle(&n);
 *	*lull_numbers_add(&n, process, number) = ix + 1;
 *	place = lull_numbers_find(&n, process, number);
 *
 * Memory:         4 bytes for each id between the first and the last of a process.
 */
#ifndef LULL_MODEL_NUMBERS_H
#define LULL_MODEL_NUMBERS_H

#include "base/map.h"
#include "base/types.h"

struct lull_numbers_process {
	u64 n;
	u32 first, last;
	u32 *places; /* by number - first; NULL: by hash */
};

struct lull_numbers {
	struct lull_numbers_process *processes; /* private: by process, 0 for none */
	size_t n_processes;			/* private */
	struct lull_map by_number;		/* private: by process and number */
};

/* Nothing is measured yet. Processes are 0 to n_processes. */
void lull_numbers_init(struct lull_numbers *n, size_t n_processes);

/* Free everything. */
void lull_numbers_release(struct lull_numbers *n);

/* All that is measured has its array or the hash from now on. */
void lull_numbers_settle(struct lull_numbers *n);

/* The place of a number that was measured, 0 if nothing was put there. Valid until the next one. */
u32 *lull_numbers_add(struct lull_numbers *n, u32 process, u32 number);

/* The place of any number, or NULL if it has none. */
static inline u32 *lull_numbers_find(const struct lull_numbers *n, u32 process, u32 number)
{
	const struct lull_numbers_process *p = &n->processes[process];

	if (!p->places)
		return lull_map_find(&n->by_number, (u64)process << 32 | number);
	return number >= p->first && number <= p->last ? &p->places[number - p->first] : NULL;
}

/* This number will be added. */
static inline void lull_numbers_measure(struct lull_numbers *n, u32 process, u32 number)
{
	struct lull_numbers_process *p = &n->processes[process];

	if (!p->n || number < p->first)
		p->first = number;
	if (!p->n || number > p->last)
		p->last = number;
	p->n++;
}

#endif
