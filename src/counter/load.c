#include "counter/load.h"

#include <math.h>

const struct lull_part_info lull_parts[] = {
#define LOAD(part, kind, verdict, name, help, formula) \
	{ #part, LULL_LOAD_##kind, verdict, name, help },
#include "counter/loads.def"
#undef LOAD
};

/*
 * A pipe explains a busy issue when it has at least this share of it: a loop around four multiply-
 * adds issues a fifth more than the pipe executes, and is still limited by the pipe.
 */
#define PIPE_OF_ISSUE 0.75

static f64 most(f64 a, f64 b)
{
	return isnan(a) ? b : isnan(b) ? a : fmax(a, b);
}

static f64 first(f64 a, f64 b)
{
	return isnan(a) ? b : a;
}

static f64 clamp(f64 share)
{
	return share > 1 ? 1 : share < 0 ? 0 : share;
}

/* If it was not measured, multiprocessors are assumed to have had work all the time. */
static f64 active(const struct lull_profile *p)
{
	f64 share = p->metrics[LULL_K_sm_active];

	if (isnan(share))
		share = 100 * p->metrics[LULL_K_sm_active_cycles] / p->metrics[LULL_K_sm_cycles];
	/* Counted in different passes, it may come out above all of the time. */
	return isnan(share) ? 1 : clamp(share / 100);
}

static void fill(struct lull_loads *to, const struct lull_profile *p)
{
#define M(key)	    lull_k_of(p, LULL_K_##key)
#define MOST(a, b)  most(a, b)
#define FIRST(a, b) first(a, b)
#define ACTIVE(x)   ((x)*active(p))
#define LOAD(part, kind, verdict, name, help, formula) \
	to->of[LULL_PART_##part] = clamp((formula) / 100);
#include "counter/loads.def"
#undef LOAD
#undef M
#undef MOST
#undef FIRST
#undef ACTIVE
}

static int highest(const struct lull_loads *loads, unsigned kinds)
{
	int top = -1;

	for (int i = 0; i < LULL_N_PARTS; i++)
		if ((kinds & lull_parts[i].kind) && !isnan(loads->of[i]) &&
		    (top < 0 || loads->of[i] > loads->of[top]))
			top = i;
	return top;
}

static f64 value(const struct lull_loads *loads, int part)
{
	return part < 0 ? NAN : loads->of[part];
}

/*
 * DRAM cannot be more than about 93 % busy, other levels can; and what misses them ends there. So
 * from this load on, or nearly as busy as the busiest, it is the limit.
 */
#define DRAM_FULL  0.7
#define DRAM_CLOSE 0.8

static int memory_part(const struct lull_loads *loads)
{
	int top = highest(loads, LULL_LOAD_MEMORY);
	f64 dram = loads->of[LULL_PART_dram];

	return top >= 0 && (dram >= DRAM_FULL || dram >= DRAM_CLOSE * loads->of[top])
		       ? (int)LULL_PART_dram
		       : top;
}

/* What the sum is of: pipes that compute. The others are ways to memory, and addresses. */
static f64 busiest_math(const struct lull_loads *loads)
{
	static const enum lull_chip_part parts[] = { LULL_PART_tensor, LULL_PART_fp32,
						     LULL_PART_imad,   LULL_PART_fp64,
						     LULL_PART_alu,    LULL_PART_xu };
	f64 top = NAN;

	for (size_t i = 0; i < LULL_COUNT_OF(parts); i++)
		top = most(top, loads->of[parts[i]]);
	return top;
}

void lull_loads_of(struct lull_loads *to, const struct lull_profile *p)
{
	f64 issue;

	fill(to, p);
	issue = to->of[LULL_PART_issue];
	to->of[LULL_PART_issue] = NAN;
	to->pipe_part = highest(to, LULL_LOAD_PIPE);
	to->of[LULL_PART_issue] = issue;
	if (!isnan(issue) && (to->pipe_part < 0 || to->of[to->pipe_part] < PIPE_OF_ISSUE * issue))
		to->pipe_part = LULL_PART_issue;
	to->memory_part = memory_part(to);
	/* The sums are what the vendor calls the load; parts stand in where they were not read. */
	to->memory = first(to->of[LULL_PART_memory], value(to, to->memory_part));
	to->memory = most(to->memory, to->of[LULL_PART_host]);
	to->sm = first(to->of[LULL_PART_sm], most(busiest_math(to), issue));
	/* The sum leaves these out; constants that differ between lanes keep one of them busy. */
	to->sm = most(to->sm, most(to->of[LULL_PART_adu], to->of[LULL_PART_cbu]));
	to->top = most(to->memory, to->sm);
}

/* From here on a pipe is at its peak, whatever feeds it. */
#define PIPE_FULL 0.8

bool lull_loads_is_compute(const struct lull_loads *loads)
{
	bool is_fed = loads->memory_part == LULL_PART_l1 ||
		      loads->memory_part == LULL_PART_shared || loads->memory_part < 0;

	if (isnan(loads->memory) || loads->sm > loads->memory)
		return true;
	/* Loads and stores are how warps use that memory: their pipe is no limit of its own. */
	return is_fed && loads->pipe_part >= 0 && loads->pipe_part != LULL_PART_issue &&
	       loads->pipe_part != LULL_PART_lsu && loads->of[loads->pipe_part] >= PIPE_FULL;
}

f64 lull_loads_gain(const struct lull_loads *loads, unsigned kinds, f64 left)
{
	f64 before = 0, after = 0;

	for (int i = 0; i < LULL_N_PARTS; i++) {
		f64 load = loads->of[i];
		unsigned kind = lull_parts[i].kind;

		/* A sum over parts goes down with the parts it is a sum of. */
		if (i == LULL_PART_sm)
			kind = LULL_LOAD_PIPE;
		else if (i == LULL_PART_memory)
			kind = LULL_LOAD_MEMORY;
		if (isnan(load))
			continue;
		before = fmax(before, load);
		after = fmax(after, kinds & kind ? load * left : load);
	}
	return after > 0 && before > after ? before / after : 1;
}
