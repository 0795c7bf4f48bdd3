#include "model/thread/descriptors.h"

#include <string.h>

#include "model/limits.h"
#include "model/thread/doing.h"

#define IS_FILE	    1u
#define IS_SOCKET   2u
#define IS_ACCEPTED 4u /* a client made the connection */

/* The number that says whether a process accepts at all. */
#define ACCEPTS UINT32_MAX

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

static void look_at(struct lull_descriptors *d, const char *name, u32 process, i64 arg, i64 ret)
{
	if (!strncmp(name, "open", 4) || !strncmp(name, "fopen", 5)) {
		mark(d, process, name[0] == 'o' ? ret : arg, IS_FILE);
	} else if (!strncmp(name, "accept", 6)) {
		mark(d, process, ret, IS_SOCKET | IS_ACCEPTED);
		mark(d, process, ACCEPTS, IS_ACCEPTED);
	} else if (lull_doing_call(name) & LULL_IN_SOCKET || !strncmp(name, "send", 4)) {
		if (strncmp(name, "sendfile", 8) != 0)
			mark(d, process, arg, IS_SOCKET);
	}
}

void lull_descriptors_init(struct lull_descriptors *d, struct lull_reader *r)
{
	struct lull_oscall_cols cols;
	struct lull_cursor c;
	size_t n;

	d->reader = r;
	lull_map_init(&d->kinds);
	lull_cursor_init(&c, r, LULL_TABLE_oscall, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++)
			look_at(d, lull_reader_string(r, cols.name[i], NULL),
				process_of(r, cols.lane[i]), cols.arg[i], cols.ret[i]);
	}
	lull_cursor_release(&c);
}

void lull_descriptors_release(struct lull_descriptors *d)
{
	lull_map_release(&d->kinds);
}

u32 lull_descriptor_bits(const struct lull_descriptors *d, u32 lane, const char *call, i64 arg,
			 i64 ret)
{
	const u32 *kind;

	if (strncmp(call, "read", 4) != 0 && strncmp(call, "__read", 6) != 0 &&
	    !(lull_doing_call(call) & LULL_IN_SOCKET))
		return 0;
	kind = lull_map_find(&d->kinds, (u64)process_of(d->reader, lane) << 32 | (u32)arg);
	if (kind && (*kind & IS_ACCEPTED))
		return LULL_IN_SOCKET | LULL_IN_DEMAND;
	if (kind && *kind == IS_SOCKET)
		return LULL_IN_SOCKET;
	if ((kind && *kind == IS_FILE) || ret >= (i64)LULL_LN(file_read_bytes))
		return LULL_IN_FILE;
	return 0;
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
