#include "model/thread/descriptors.h"

#include <stdlib.h>
#include <string.h>

#include "model/limits.h"
#include "model/thread/call_names.h"
#include "model/thread/doing.h"
#include "model/words.h"

#define IS_FILE	    1u
#define IS_SOCKET   2u
#define IS_ACCEPTED 4u /* a client made the connection */
#define IS_PIPE	    8u /* popen() gave it */

/*
 * Storage is read a sector at a time at least, and ahead: of a file, not each of several reads of
 * less than a sector waits. A pipe has its number by now.
 */
#define SECTOR_BYTES 512
#define WAITED_NS    150000u
#define MANY_WAITS   4u

/* Numbers that say how often a process accepts and makes connections. */
#define ACCEPTS	 UINT32_MAX
#define CONNECTS (UINT32_MAX - 1)

/* The share of a process's connections that have to be to processes of the recording. */
#define OURS_DEN 2u

static u32 process_of(struct lull_reader *r, u32 lane)
{
	size_t n;
	const struct lull_lane_row *lanes = lull_reader_dim(r, LULL_TABLE_lane, &n);

	return lane ? lanes[lane - 1].process : 0;
}

static void mark(struct lull_descriptors *d, u32 process, i64 number, u32 kind)
{
	if (number >= 0)
		*lull_map_add(&d->kinds, (u64)process << 32 | (u32)number, NULL) |= kind;
}

/* What a call says about the descriptors of its process. */
static void look_at(struct lull_descriptors *d, enum lull_call_effect effect, u32 process, i64 arg,
		    i64 ret)
{
	switch (effect) {
	case LULL_CALL_ASKED:
	case LULL_CALL_CLOSES:
		return;
	case LULL_CALL_OPENS:
		mark(d, process, ret, IS_FILE);
		return;
	case LULL_CALL_FOPENS:
		mark(d, process, arg, IS_FILE);
		return;
	case LULL_CALL_POPENS:
		mark(d, process, arg, IS_PIPE);
		return;
	case LULL_CALL_ACCEPTS:
		mark(d, process, ret, IS_SOCKET | IS_ACCEPTED);
		*lull_map_add(&d->kinds, (u64)process << 32 | ACCEPTS, NULL) += ret >= 0;
		d->n_accepts += ret >= 0;
		return;
	case LULL_CALL_CONNECTS:
		++*lull_map_add(&d->kinds, (u64)process << 32 | CONNECTS, NULL);
		mark(d, process, arg, IS_SOCKET);
		return;
	case LULL_CALL_TALKS:
		mark(d, process, arg, IS_SOCKET);
	}
}

/* What a call says about which sockets are the two ends of a pair. */
static void pair(struct lull_descriptors *d, struct lull_call_name call, u32 process, i64 arg,
		 i64 ret)
{
	i64 number = call.effect == LULL_CALL_ACCEPTS ? ret : arg;
	u64 key = (u64)process << 32 | (u32)number;

	if (number < 0)
		return;
	if (call.effect == LULL_CALL_ACCEPTS || call.effect == LULL_CALL_CONNECTS)
		lull_pairs_connect(&d->pairs, key);
	else if (call.effect == LULL_CALL_TALKS && (call.bits & LULL_IN_SOCKET))
		lull_pairs_get(&d->pairs, key, ret);
	else if (call.effect == LULL_CALL_TALKS)
		lull_pairs_send(&d->pairs, key, ret);
}

/* What was opened is for reading or for writing, as the first call on it says. */
static void follow(struct lull_descriptors *d, struct lull_call_name call, u32 process, i64 arg,
		   i64 ret, u64 row)
{
	i64 number = call.effect == LULL_CALL_OPENS ? ret : arg;
	u32 *open, *use;

	if (number < 0)
		return;
	if (call.effect == LULL_CALL_OPENS || call.effect == LULL_CALL_FOPENS) {
		*lull_map_add(&d->opens, (u64)process << 32 | (u32)number, NULL) = (u32)row + 1;
		return;
	}
	open = lull_map_find(&d->opens, (u64)process << 32 | (u32)number);
	if (!open || !*open)
		return;
	use = lull_map_add(&d->uses, *open, NULL);
	if (call.effect == LULL_CALL_CLOSES) {
		u32 what = *use;

		*lull_map_add(&d->uses, row + 1, NULL) = what;
		*open = 0;
	} else if (!*use) {
		*use = call.bits & LULL_IN_WRITE  ? LULL_IN_WRITE
		       : call.bits & LULL_IN_READ ? LULL_IN_FILE
						  : 0;
	}
}

/* Whether it reads from a pipe or the like, and no file that was opened with this number last. */
static bool is_strange(struct lull_descriptors *d, struct lull_call_name call, u64 number,
		       const struct lull_oscall_cols *cols, size_t i)
{
	u32 *n;

	if (call.effect == LULL_CALL_OPENS && cols->ret[i] >= 0)
		*lull_map_add(&d->waits, (number & ~(u64)UINT32_MAX) | (u32)cols->ret[i], NULL) = 0;
	if (call.effect == LULL_CALL_CLOSES)
		*lull_map_add(&d->waits, number, NULL) = MANY_WAITS;
	if (!(call.bits & LULL_IN_READ) || (call.bits & LULL_IN_FILE))
		return false;
	n = lull_map_add(&d->waits, number, NULL);
	if (*n < MANY_WAITS && cols->dur_ns[i] >= WAITED_NS && cols->ret[i] > 0 &&
	    cols->ret[i] < SECTOR_BYTES)
		++*n;
	return *n >= MANY_WAITS;
}

void lull_descriptors_init(struct lull_descriptors *d, struct lull_reader *r)
{
	static const char *const wanted[] = { "dur_ns", "lane", "name", "arg", "ret" };
	struct lull_call_names names;
	struct lull_oscall_cols cols;
	struct lull_cursor c;
	u64 row = 0;
	size_t n;

	d->reader = r;
	d->n_accepts = 0;
	lull_map_init(&d->kinds);
	lull_map_init(&d->opens);
	lull_map_init(&d->uses);
	lull_map_init(&d->waits);
	lull_vec_init(&d->strange, sizeof(u64));
	lull_pairs_init(&d->pairs);
	lull_call_names_init(&names, r);
	lull_cursor_init(&c, r, LULL_TABLE_oscall, 0, UINT64_MAX);
	for (size_t i = 0; i < LULL_COUNT_OF(wanted); i++)
		lull_cursor_want(&c, wanted[i]);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++, row++) {
			struct lull_call_name call = lull_call_name_of(&names, cols.name[i]);
			u32 process;

			if (call.effect == LULL_CALL_ASKED &&
			    !(call.bits & (LULL_IN_READ | LULL_IN_WRITE)))
				continue;
			process = process_of(r, cols.lane[i]);
			look_at(d, call.effect, process, cols.arg[i], cols.ret[i]);
			pair(d, call, process, cols.arg[i], cols.ret[i]);
			follow(d, call, process, cols.arg[i], cols.ret[i], row);
			if (is_strange(d, call, (u64)process << 32 | (u32)cols.arg[i], &cols, i))
				lull_vec_add(&d->strange, &row, 1);
		}
	}
	lull_cursor_release(&c);
	lull_call_names_release(&names);
	lull_pairs_match(&d->pairs);
}

void lull_descriptors_release(struct lull_descriptors *d)
{
	lull_map_release(&d->kinds);
	lull_map_release(&d->opens);
	lull_map_release(&d->uses);
	lull_map_release(&d->waits);
	lull_vec_release(&d->strange);
	lull_pairs_release(&d->pairs);
}

u32 lull_descriptor_use(const struct lull_descriptors *d, u64 row)
{
	const u32 *use = lull_map_find(&d->uses, row + 1);

	return use ? *use : 0;
}

bool lull_descriptor_is_pipe(const struct lull_descriptors *d, u32 lane, i64 arg)
{
	const u32 *kind =
		lull_map_find(&d->kinds, (u64)process_of(d->reader, lane) << 32 | (u32)arg);

	return kind && (*kind & IS_PIPE);
}

static int by_number(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return (x > y) - (x < y);
}

static bool is_strange_row(const struct lull_descriptors *d, u64 row)
{
	return d->strange.n && bsearch(&row, d->strange.at, d->strange.n, sizeof(row), by_number);
}

static u32 count_of(const struct lull_descriptors *d, u64 process, u32 what)
{
	const u32 *n = lull_map_find(&d->kinds, process << 32 | what);

	return n ? *n : 0;
}

/* Whether what this process connects to are other processes of the recording, as queues do. */
static bool has_ours(const struct lull_descriptors *d, u32 process)
{
	u32 n = count_of(d, process, CONNECTS);

	return n && d->n_accepts - count_of(d, process, ACCEPTS) >= (n + OURS_DEN - 1) / OURS_DEN;
}

u32 lull_descriptor_bits(const struct lull_descriptors *d, const struct lull_descriptor_call *call)
{
	u32 process = process_of(d->reader, call->lane);
	const u32 *kind = lull_map_find(&d->kinds, (u64)process << 32 | (u32)call->arg);

	/* Only a socket can be received from, whatever had its number before. */
	bool is_of_sockets = lull_doing_call(call->name) & LULL_IN_SOCKET;

	if (!strcmp(call->name, "getaddrinfo"))
		return 0;
	if (strncmp(call->name, "read", 4) != 0 && strncmp(call->name, "__read", 6) != 0 &&
	    !is_of_sockets)
		return 0;
	if (kind && (*kind & IS_ACCEPTED))
		return LULL_IN_SOCKET | LULL_IN_DEMAND;
	if (is_of_sockets && lull_pairs_has(&d->pairs, (u64)process << 32 | (u32)call->arg))
		return LULL_IN_QUEUE | LULL_IN_EVENTS;
	if (kind && (*kind == IS_SOCKET || ((*kind & IS_SOCKET) && is_of_sockets)) &&
	    !has_ours(d, process))
		return LULL_IN_SOCKET;
	if (call->ret >= (i64)LULL_LN(file_read_bytes))
		return LULL_IN_FILE;
	if ((kind && *kind == IS_SOCKET) || is_strange_row(d, call->row))
		return LULL_IN_QUEUE | LULL_IN_EVENTS; /* as poll() */
	return kind && *kind == IS_FILE ? LULL_IN_FILE : 0;
}

bool lull_descriptors_accept(const struct lull_descriptors *d, const struct lull_chain *c)
{
	size_t n;
	const struct lull_process_row *processes =
		lull_reader_dim(d->reader, LULL_TABLE_process, &n);

	for (u32 k = 0; k < c->n_chains; k++) {
		u64 process = process_of(d->reader, c->nodes[c->first[k]].lane);

		if (lull_map_find(&d->kinds, process << 32 | ACCEPTS) ||
		    (process && processes[process - 1].is_server))
			return true;
	}
	return false;
}
