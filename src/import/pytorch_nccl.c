/*
 * Collectives. Newer versions of PyTorch describe the collective next to its NCCL kernel; in older
 * traces only the kernel's name says it: ncclKernel_AllReduce_RING_LL_Sum_float(...).
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/sort.h"
#include "import/pytorch_int.h"

enum { SOURCE_KERNEL = 3 };

/* Rows are held back to be numbered in the order of time; this many take some 16 MB. */
#define MAX_WAITING (128u << 10)

static u64 element_bytes(const struct lull_jtext *type)
{
	static const struct {
		const char *name;
		u8 bytes;
	} types[] = {
		{ "Float", 4 },	 { "Half", 2 },	  { "BFloat16", 2 },	 { "Double", 8 },
		{ "Long", 8 },	 { "Int", 4 },	  { "Short", 2 },	 { "Byte", 1 },
		{ "Char", 1 },	 { "Bool", 1 },	  { "ComplexFloat", 8 }, { "ComplexDouble", 16 },
		{ "UInt64", 8 }, { "UInt32", 4 }, { "UInt16", 2 },
	};

	for (size_t i = 0; i < LULL_COUNT_OF(types); i++)
		if (lull_jtext_is(type, types[i].name))
			return types[i].bytes;
	return type->len >= 6 && !memcmp(type->at, "Float8", 6) ? 1 : 0;
}

/* Which one of the group this rank is: its place in "[0, 1, 4]". */
static u32 place_in(const struct lull_jtext *ranks, i64 rank)
{
	const char *p = ranks->at, *end = p + ranks->len;
	u32 place = 0;

	while (p < end) {
		struct lull_jtext number;
		i64 value;

		if (*p < '0' || *p > '9') {
			p++;
			continue;
		}
		number = (struct lull_jtext){ p, 0, false };
		while (p < end && *p >= '0' && *p <= '9')
			p++;
		number.len = (size_t)(p - number.at);
		if (lull_jtext_i64(&number, &value) && value == rank)
			return place;
		place++;
	}
	/* Long lists are written with "..." in the middle. */
	return rank >= 0 ? (u32)rank : 0;
}

/* What the arguments say. */
static void take_args(struct lull_chrome *c, const struct lull_jevent *e,
		      struct lull_collective_row *row)
{
	struct lull_jtext name = lull_jevent_text(e, LULL_ARG_collective);
	struct lull_jtext type = lull_jevent_text(e, LULL_ARG_datatype);
	struct lull_jtext group = lull_jevent_text(e, LULL_ARG_group_name);
	struct lull_jtext ranks = lull_jevent_text(e, LULL_ARG_group_ranks);
	struct lull_jtext text = lull_jevent_text(e, LULL_ARG_group_description);
	u64 bytes = element_bytes(&type);

	row->name = lull_mapper_text(&c->map, &name);
	row->datatype = lull_mapper_text(&c->map, &type);
	row->comm = lull_hash_mix(lull_mapper_hash(&group) ^ 11, lull_mapper_hash(&ranks));
	row->comm_name = lull_mapper_text(&c->map, text.len ? &text : &group);
	row->n_ranks = (u32)lull_jevent_int(e, LULL_ARG_group_size, 0);
	row->rank = place_in(&ranks, lull_pytorch(c)->rank);
	row->in_bytes = (u64)lull_jevent_int(e, LULL_ARG_in_elements, 0) * bytes;
	row->out_bytes = (u64)lull_jevent_int(e, LULL_ARG_out_elements, 0) * bytes;
	row->seq = (u64)lull_jevent_int(e, LULL_ARG_comm_seq, 0);
	row->peer =
		lull_jevent_int(e, LULL_ARG_dst_rank, lull_jevent_int(e, LULL_ARG_src_rank, -1));
}

/* The part of the name from `p` to the next '_' or '('; *p is then past it. */
static struct lull_jtext next_part(const char **p, const char *end)
{
	struct lull_jtext part = { *p, 0, false };

	while (*p < end && **p != '_' && **p != '(')
		(*p)++;
	part.len = (size_t)(*p - part.at);
	if (*p < end && **p == '_')
		(*p)++;
	else
		*p = end;
	return part;
}

/*
 * ncclKernel_ and ncclDevKernel_ NAME _ ALGORITHM _ PROTOCOL [_ OP _ TYPE]; OP and TYPE may lead.
 */
static bool take_name(struct lull_chrome *c, const struct lull_jevent *e,
		      struct lull_collective_row *row)
{
	static const char *const prefixes[] = { "ncclKernel_", "ncclDevKernel_" };
	static const char *const ops[] = { "Sum", "Prod", "Max", "Min", "Avg", "PreMulSum" };
	const char *p = e->name.at, *end = p + e->name.len;
	struct lull_jtext part;
	size_t cut = 0;

	for (size_t i = 0; i < LULL_COUNT_OF(prefixes); i++)
		if (e->name.len > strlen(prefixes[i]) &&
		    !memcmp(p, prefixes[i], strlen(prefixes[i])))
			cut = strlen(prefixes[i]);
	if (!cut)
		return false;
	p += cut;
	part = next_part(&p, end);
	if (!row->name)
		row->name = lull_mapper_text(&c->map, &part);
	while (p < end) {
		part = next_part(&p, end);
		for (size_t i = 0; i < LULL_COUNT_OF(ops); i++) {
			if (!lull_jtext_is(&part, ops[i]))
				continue;
			row->op = lull_mapper_text(&c->map, &part);
			part = next_part(&p, end);
			if (!row->datatype)
				row->datatype = lull_mapper_text(&c->map, &part);
			return true;
		}
	}
	return true;
}

void lull_pytorch_collective(struct lull_chrome *c, const struct lull_jevent *e,
			     const struct lull_kernel_row *kernel)
{
	struct lull_pytorch *pt = lull_pytorch(c);
	struct lull_collective_row row = {
		.start_ns = kernel->start_ns,
		.dur_ns = kernel->dur_ns,
		.lane = kernel->lane,
		.source = SOURCE_KERNEL,
		.peer = -1,
		.correlation = kernel->correlation,
	};
	bool has_args = lull_jevent_has(e, LULL_ARG_collective);

	if (!has_args && (e->name.len < 4 || memcmp(e->name.at, "nccl", 4)))
		return;
	if (has_args)
		take_args(c, e, &row);
	if (!take_name(c, e, &row) && !has_args)
		return;
	lull_vec_add(&pt->collectives, &row, 1);
	if (pt->collectives.n >= MAX_WAITING)
		lull_pytorch_write_collectives(c);
}

static int by_comm(const void *a, const void *b)
{
	const struct lull_collective_row *x = a, *y = b;

	if (x->comm != y->comm)
		return x->comm < y->comm ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

void lull_pytorch_write_collectives(struct lull_chrome *c)
{
	struct lull_pytorch *pt = lull_pytorch(c);
	struct lull_collective_row *rows = pt->collectives.at;
	u64 seq = 0;

	if (pt->collectives.n)
		lull_sort(rows, pt->collectives.n, sizeof(*rows), by_comm);
	for (size_t i = 0; i < pt->collectives.n; i++) {
		if (i && rows[i].comm != rows[i - 1].comm)
			seq = 0;
		seq++;
		if (!rows[i].seq)
			rows[i].seq = seq;
		lull_writer_add(c->map.writer, LULL_TABLE_collective, &rows[i]);
	}
	pt->collectives.n = 0;
}
