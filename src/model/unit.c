#include "model/unit.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/sort.h"
#include "model/runsort.h"
#include "model/window.h"
#include "model/work.h"

/* More streams than this share the last number: nothing here is exact about so many. */
#define MAX_STREAMS 4096

/* The class of each launch row, by row id. */
static u8 *classify(struct lull_reader *r)
{
	size_t n;
	const struct lull_launch_row *launches = lull_reader_dim(r, LULL_TABLE_launch, &n);
	u8 *classes = lull_alloc(n + 1, 1);

	for (size_t i = 0; i < n; i++)
		classes[i + 1] =
			(u8)lull_kernel_class_of(lull_reader_string(r, launches[i].name, NULL));
	return classes;
}

/* Stream number of a lane, by lane id; filled as lanes are met, 0 = not met. */
static u16 stream_of(struct lull_units *u, u16 *numbers, u32 lane)
{
	if (!numbers[lane]) {
		if (u->lanes.n < MAX_STREAMS)
			*(u32 *)lull_vec_push(&u->lanes) = lane;
		numbers[lane] = (u16)u->lanes.n;
	}
	return (u16)(numbers[lane] - 1);
}

static void fill(struct lull_units *u, struct lull_unit *unit, const struct lull_work *work,
		 const u8 *classes)
{
	unit->begin_ns = work->start_ns;
	unit->end_ns = lull_work_end_ns(work);
	unit->node = work->correlation;
	unit->what = work->what;
	unit->round = LULL_NONE;
	switch (work->kind) {
	case LULL_WORK_KERNEL:
		unit->class = classes[work->what];
		unit->kind = unit->class == LULL_KERNEL_COLLECTIVE ? LULL_UNIT_COLLECTIVE
								   : LULL_UNIT_KERNEL;
		break;
	case LULL_WORK_GRAPH:
		unit->kind = LULL_UNIT_KERNEL;
		unit->what = 0;
		break;
	case LULL_WORK_MEMSET:
		unit->kind = LULL_UNIT_MEMSET;
		break;
	default:
		unit->kind = LULL_UNIT_COPY;
		unit->what = (u32)u->copies.n;
		*(struct lull_copy *)lull_vec_push(&u->copies) =
			(struct lull_copy){ .size_bytes = work->size_bytes,
					    .direction = (u8)work->what,
					    .src_kind = work->src_kind,
					    .dst_kind = work->dst_kind };
	}
}

static int by_work(const void *a, const void *b)
{
	const struct lull_unit_pair *x = a, *y = b;

	if (x->n != y->n)
		return x->n < y->n ? 1 : -1;
	return (x->process > y->process) - (x->process < y->process);
}

struct pair_counter {
	struct lull_vec *pairs;
	struct lull_map known; /* process and track to index in pairs */
	const u32 *tracks;
};

static void count_pair(void *ctx, u32 process, u32 lane, u64 n_rows)
{
	struct pair_counter *c = ctx;
	bool is_new;
	u32 *ix = lull_map_add(&c->known, (u64)process << 32 | c->tracks[lane], &is_new);

	if (is_new) {
		*ix = (u32)c->pairs->n;
		*(struct lull_unit_pair *)lull_vec_push(c->pairs) =
			(struct lull_unit_pair){ process, c->tracks[lane], 0 };
	}
	((struct lull_unit_pair *)c->pairs->at)[*ix].n += n_rows;
}

void lull_units_pairs(struct lull_vec *pairs, struct lull_reader *r, const u32 *tracks)
{
	struct pair_counter c = { .pairs = pairs, .tracks = tracks };

	lull_map_init(&c.known);
	lull_work_owners(r, LULL_WORK_ALL, count_pair, &c);
	lull_map_release(&c.known);
	if (pairs->n)
		lull_sort(pairs->at, pairs->n, sizeof(struct lull_unit_pair), by_work);
}

void lull_units_init(struct lull_units *u, struct lull_reader *r, u32 process, u32 track,
		     const u32 *tracks)
{
	u8 *classes = classify(r);
	u16 *numbers = lull_alloc(lull_reader_n_dim(r, LULL_TABLE_lane) + 1, sizeof(*numbers));
	struct lull_span window = lull_window_of(r);
	struct lull_work_cursor c;
	struct lull_work work;

	*u = (struct lull_units){ .n_rows = lull_work_count(r, LULL_WORK_ALL) };
	/* Touched as far as it is needed. */
	u->at = lull_alloc(u->n_rows + 1, sizeof(*u->at));
	lull_vec_init(&u->copies, sizeof(struct lull_copy));
	lull_vec_init(&u->lanes, sizeof(u32));
	lull_work_begin(&c, r, LULL_WORK_ALL, LULL_WORK_WANT_CALL | LULL_WORK_WANT_BYTES, window);
	while (lull_work_next(&c, &work)) {
		if (tracks[work.lane] != track || work.process != process ||
		    u->n == LULL_NONE - 1 || work.start_ns < window.from_ns ||
		    work.start_ns >= window.to_ns)
			continue;
		u->at[u->n].stream = stream_of(u, numbers, work.lane);
		u->at[u->n].class = LULL_KERNEL_OTHER;
		fill(u, &u->at[u->n++], &work, classes);
	}
	lull_work_end(&c);
	lull_runsort(u->at, u->n, sizeof(*u->at));
	u->next = lull_alloc(u->n + 1, sizeof(*u->next));
	for (u32 i = 0; i < u->n; i++)
		u->next[i] = LULL_NONE;
	free(numbers);
	free(classes);
}

void lull_units_release(struct lull_units *u)
{
	free(u->at);
	free(u->next);
	lull_vec_release(&u->copies);
	lull_vec_release(&u->lanes);
}

const struct lull_copy *lull_units_copy(const struct lull_units *u, const struct lull_unit *unit)
{
	return lull_vec_get(&u->copies, unit->what);
}

const char *lull_units_name(const struct lull_unit *unit, struct lull_reader *r)
{
	size_t n;
	const struct lull_launch_row *launches = lull_reader_dim(r, LULL_TABLE_launch, &n);

	if (unit->kind == LULL_UNIT_COPY)
		return "copy";
	if (unit->kind == LULL_UNIT_MEMSET)
		return "memset";
	return unit->what ? lull_reader_string(r, launches[unit->what - 1].name, NULL)
			  : LULL_GRAPH_NAME;
}
