#include "trace/row_sort.h"

#include <string.h>

#define DIGIT_VALUES 256u
/* Python frames listed after their operators would need 470 moves a row by insertion. */
#define MOVES_PER_ROW 8u

static bool is_before(const struct lull_sort_key *a, const struct lull_sort_key *b)
{
	return a->start_ns < b->start_ns || (a->start_ns == b->start_ns && a->dur_ns > b->dur_ns);
}

/* End of the rows of one lane that begin at `from`. */
static size_t lane_end(const struct lull_sort_key *keys, size_t from, size_t n)
{
	u32 lane = keys[from].lane;
	size_t i = from + 1;

	while (i < n && keys[i].lane == lane)
		i++;
	return i;
}

/*
 * One stable counting pass by eight bits of the lane. Threads are drained one after the other, so
 * neighbours mostly share their lane: they are counted and moved together.
 */
static void count_pass(const struct lull_sort_key *from, struct lull_sort_key *to, size_t n,
		       unsigned shift)
{
	u32 at[DIGIT_VALUES] = { 0 };
	u32 sum = 0;

	for (size_t i = 0, end; i < n; i = end) {
		end = lane_end(from, i, n);
		at[from[i].lane >> shift & (DIGIT_VALUES - 1)] += (u32)(end - i);
	}
	for (unsigned d = 0; d < DIGIT_VALUES; d++) {
		u32 count = at[d];

		at[d] = sum;
		sum += count;
	}
	for (size_t i = 0, end; i < n; i = end) {
		u32 *place = &at[from[i].lane >> shift & (DIGIT_VALUES - 1)];

		end = lane_end(from, i, n);
		memcpy(to + *place, from + i, (end - i) * sizeof(*to));
		*place += (u32)(end - i);
	}
}

/*
 * Sort by lane; bytes of the lane number that are the same in all rows need no pass. Returns which
 * of the two arrays the result is in.
 */
static struct lull_sort_key *sort_lanes(struct lull_sort_key *keys, struct lull_sort_key *spare,
					size_t n)
{
	struct lull_sort_key *from = keys, *to = spare;
	u32 any = 0, all = UINT32_MAX;

	for (size_t i = 0; i < n; i++) {
		any |= keys[i].lane;
		all &= keys[i].lane;
	}
	for (unsigned shift = 0; shift < 32; shift += 8) {
		struct lull_sort_key *swap = from;

		if (((any ^ all) >> shift & (DIGIT_VALUES - 1)) == 0)
			continue;
		count_pass(from, to, n, shift);
		from = to;
		to = swap;
	}
	return from;
}

/* Insertion sort; false, with the rows still complete, when it has used up its moves. */
static bool insert_all(struct lull_sort_key *keys, size_t n)
{
	size_t budget = n * MOVES_PER_ROW;

	for (size_t i = 1; i < n; i++) {
		struct lull_sort_key key = keys[i];
		size_t k = i;

		while (k > 0 && is_before(&key, &keys[k - 1])) {
			keys[k] = keys[k - 1];
			k--;
		}
		keys[k] = key;
		if (i - k > budget)
			return false;
		budget -= i - k;
	}
	return true;
}

/* End of the ascending run that begins at `from`. */
static size_t run_end(const struct lull_sort_key *keys, size_t from, size_t n)
{
	size_t i = from + 1;

	while (i < n && !is_before(&keys[i], &keys[i - 1]))
		i++;
	return i < n ? i : n;
}

/* Merge the runs [a, mid) and [mid, end) of `from` into the same places of `to`. */
static void merge_two(const struct lull_sort_key *from, struct lull_sort_key *to, size_t a,
		      size_t mid, size_t end)
{
	size_t b = mid, out = a;

	while (a < mid && b < end)
		to[out++] = is_before(&from[b], &from[a]) ? from[b++] : from[a++];
	memcpy(to + out, from + a, (mid - a) * sizeof(*to));
	out += mid - a;
	memcpy(to + out, from + b, (end - b) * sizeof(*to));
}

/* Merge neighbouring ascending runs until one is left. */
static void merge_all(struct lull_sort_key *keys, struct lull_sort_key *spare, size_t n)
{
	struct lull_sort_key *from = keys, *to = spare;

	while (run_end(from, 0, n) < n) {
		struct lull_sort_key *swap = from;

		for (size_t a = 0; a < n;) {
			size_t mid = run_end(from, a, n);
			size_t end = mid < n ? run_end(from, mid, n) : n;

			merge_two(from, to, a, mid, end);
			a = end;
		}
		from = to;
		to = swap;
	}
	if (from != keys)
		memcpy(keys, from, n * sizeof(*keys));
}

const struct lull_sort_key *lull_sort_keys(struct lull_sort_key *keys, struct lull_sort_key *spare,
					   size_t n)
{
	struct lull_sort_key *sorted = sort_lanes(keys, spare, n);
	struct lull_sort_key *room = sorted == keys ? spare : keys;

	for (size_t i = 0, end; i < n; i = end) {
		end = lane_end(sorted, i, n);
		if (!insert_all(sorted + i, end - i))
			merge_all(sorted + i, room, end - i);
	}
	return sorted;
}
