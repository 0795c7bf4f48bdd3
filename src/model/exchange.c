#include "model/exchange.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/sort.h"
#include "model/link.h"

/* Exchanges of a lot. */
#define LOT 64

/* collective.source */
enum { CALL = 1, PLUGIN = 2, IMPORTED = 3 };

/* A kernel of NCCL. */
struct ran {
	u64 start_ns, end_ns;
	u64 call_ns; /* when it was launched */
	u64 key;     /* of its call (model/link.h), by which they are in the order of launch */
	u32 what;    /* its launch */
	u32 process;
};

/* An operation that a thread put in line. */
struct asked {
	u64 at_ns;
	struct lull_exchange x;
	u64 seq;
	u32 process;
};

/* Kernels of one launch, of a graph, are in the order in which they ran. */
static int by_key(const void *a, const void *b)
{
	const struct ran *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static int by_call(const void *a, const void *b)
{
	const struct ran *x = a, *y = b;

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->call_ns != y->call_ns)
		return x->call_ns < y->call_ns ? -1 : 1;
	return by_key(a, b);
}

static int by_process(const void *a, const void *b)
{
	const struct asked *x = a, *y = b;

	return (x->process > y->process) - (x->process < y->process);
}

static int by_moment(const void *a, const void *b)
{
	const struct asked *x = a, *y = b;

	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	return (x->seq > y->seq) - (x->seq < y->seq);
}

static int by_start(const void *a, const void *b)
{
	const struct lull_exchange *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

static void sort(struct lull_vec *v, int (*by)(const void *, const void *))
{
	if (v->n)
		lull_sort(v->at, v->n, v->elem_bytes, by);
}

/* ---- what was asked for ---- */

static bool is_named(struct lull_reader *r, u32 name, const char *text)
{
	return strcmp(lull_reader_string(r, name, NULL), text) == 0;
}

/* The best kind of rows there is. */
static u8 best_source(struct lull_reader *r)
{
	struct lull_collective_cols cols;
	struct lull_cursor c;
	u8 best = 0;
	size_t n;

	lull_cursor_init(&c, r, LULL_TABLE_collective, 0, UINT64_MAX);
	lull_cursor_want(&c, "source");
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++)
			best = cols.source[i] > best ? cols.source[i] : best;
	lull_cursor_release(&c);
	return best;
}

static void collect_asked(struct lull_reader *r, struct lull_vec *to, u8 source)
{
	size_t n, n_lanes;
	const struct lull_lane_row *lanes = lull_reader_dim(r, LULL_TABLE_lane, &n_lanes);
	struct lull_collective_cols cols;
	struct lull_cursor c;

	lull_cursor_init(&c, r, LULL_TABLE_collective, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			struct asked *a;
			struct lull_exchange *x;

			if (cols.source[i] != source)
				continue;
			a = lull_vec_push(to);
			x = &a->x;
			a->at_ns = cols.start_ns[i];
			a->seq = source == CALL ? 0 : cols.seq[i];
			a->process = lull_work_process(lanes, 0, cols.lane[i]);
			x->start_ns = cols.start_ns[i];
			x->end_ns = lull_span_end_ns(cols.start_ns[i], cols.dur_ns[i]);
			x->comm = cols.comm[i];
			x->comm_name = cols.comm_name[i];
			x->name = cols.name[i];
			x->n_ranks = cols.n_ranks[i];
			x->rank = cols.rank[i];
			x->peer = cols.peer[i];
			x->is_send = is_named(r, x->name, "Send");
			x->is_peer = x->is_send || is_named(r, x->name, "Recv");
			x->size_bytes = cols.in_bytes[i] > cols.out_bytes[i] ? cols.in_bytes[i]
									     : cols.out_bytes[i];
		}
	}
	lull_cursor_release(&c);
	sort(to, by_moment);
}

/* ---- what ran ---- */

static void collect_ran(struct lull_reader *r, struct lull_vec *to)
{
	bool *is_nccl = lull_work_nccl(r);
	struct lull_work_cursor c;
	struct lull_work work;

	lull_work_begin(&c, r, LULL_WORK_KERNEL, LULL_WORK_WANT_CALL, LULL_SPAN_ALL);
	while (lull_work_next(&c, &work)) {
		struct ran *k;

		if (!is_nccl[work.what])
			continue;
		k = lull_vec_push(to);
		k->start_ns = work.start_ns;
		k->end_ns = lull_work_end_ns(&work);
		k->key = lull_link_work_key(&work);
		k->what = work.what;
		k->process = work.process;
	}
	lull_work_end(&c);
	free(is_nccl);
	sort(to, by_key);
}

/* When each was launched. */
static void find_calls(struct lull_reader *r, struct lull_vec *ran)
{
	struct ran *all = ran->at;
	struct lull_link link;
	struct lull_vec keys;

	lull_vec_init(&keys, sizeof(u64));
	for (size_t i = 0; i < ran->n; i++)
		lull_vec_add(&keys, &all[i].key, 1);
	lull_link_init_keys(&link, r, &keys);
	for (size_t i = 0; i < ran->n; i++) {
		const struct lull_call *call = lull_link_find_key(&link, all[i].key);

		all[i].call_ns = call ? call->start_ns : 0;
	}
	lull_link_release(&link);
	lull_vec_release(&keys);
	sort(ran, by_call);
}

/* ---- both ---- */

/* Whether the kernel was launched before the operation was put in line, or by another process. */
static bool is_earlier(const struct ran *k, const struct asked *a)
{
	return k->process < a->process || (k->process == a->process && k->call_ns < a->at_ns);
}

static void take(struct lull_exchanges *x, const struct asked *a, const struct ran *k)
{
	struct lull_exchange *to = lull_vec_push(&x->all);

	*to = a->x;
	to->start_ns = k->start_ns;
	to->end_ns = k->end_ns;
}

/* Each operation has the kernel that its process launched next; of a group the first counts. */
static void pair_by_time(struct lull_exchanges *x, const struct lull_vec *asked,
			 const struct lull_vec *ran, struct lull_vec *seqs)
{
	const struct asked *a = asked->at;
	const struct ran *k = ran->at;
	size_t ix = 0, last = SIZE_MAX;

	for (size_t i = 0; i < asked->n; i++) {
		while (ix < ran->n && is_earlier(&k[ix], &a[i]))
			ix++;
		if (ix == ran->n || k[ix].process != a[i].process) {
			x->n_unpaired++;
		} else if (ix == last) {
			struct lull_exchange *group = lull_vec_get(&x->all, x->all.n - 1);

			group->size_bytes += a[i].x.size_bytes;
		} else {
			last = ix;
			take(x, &a[i], &k[ix]);
			lull_vec_add(seqs, &a[i].seq, 1);
		}
	}
}

static void pair(struct lull_exchanges *x, struct lull_reader *r, struct lull_vec *asked,
		 struct lull_vec *seqs)
{
	const struct asked *a = asked->at;
	struct lull_vec ran;

	lull_vec_init(&ran, sizeof(struct ran));
	collect_ran(r, &ran);
	sort(asked, by_process);
	if (ran.n == asked->n) {
		for (size_t i = 0; i < asked->n; i++) {
			take(x, &a[i], (const struct ran *)ran.at + i);
			lull_vec_add(seqs, &a[i].seq, 1);
		}
	} else {
		find_calls(r, &ran);
		pair_by_time(x, asked, &ran, seqs);
	}
	lull_vec_release(&ran);
}

/* Kernels alone: the launch's place stands for the name until keys are made. */
static void take_kernels(struct lull_exchanges *x, struct lull_reader *r)
{
	size_t n;
	const struct lull_launch_row *launches = lull_reader_dim(r, LULL_TABLE_launch, &n);
	struct lull_vec ran;
	const struct ran *k;

	lull_vec_init(&ran, sizeof(struct ran));
	collect_ran(r, &ran);
	k = ran.at;
	for (size_t i = 0; i < ran.n; i++) {
		struct lull_exchange *to = lull_vec_push(&x->all);

		to->start_ns = k[i].start_ns;
		to->end_ns = k[i].end_ns;
		to->name = k[i].what ? launches[k[i].what - 1].name : 0;
		to->peer = -1;
	}
	lull_vec_release(&ran);
}

/* ---- keys ---- */

static u64 hash3(u64 a, u64 b, u64 c)
{
	const u64 words[3] = { a, b, c };

	return lull_hash(words, sizeof(words));
}

/* What the two ends of a send have in common, or the operation of a communicator. */
static u64 stream_of(struct lull_reader *r, const struct lull_exchange *x)
{
	size_t len;
	const char *name = lull_reader_string(r, x->name, &len);
	u64 from = x->is_send ? x->rank : (u64)x->peer, to = x->is_send ? (u64)x->peer : x->rank;

	return x->is_peer ? hash3(x->comm, from, to + 1) : hash3(x->comm, lull_hash(name, len), 0);
}

/* `seqs` may be shorter or empty: then all are counted. */
static void make_keys(struct lull_exchanges *x, struct lull_reader *r, const struct lull_vec *seqs,
		      bool has_seq)
{
	struct lull_exchange *all = x->all.at;
	const u64 *seq = seqs->at;
	struct lull_map counts;

	lull_map_init(&counts);
	for (size_t i = 0; i < x->all.n; i++) {
		u64 stream = stream_of(r, &all[i]);
		u32 *count = lull_map_add(&counts, stream, NULL);
		bool is_told = has_seq && !all[i].is_peer && i < seqs->n;

		u64 number = is_told ? seq[i] : *count;

		all[i].key = hash3(stream, number, 7);
		all[i].lot = hash3(stream, number / LOT, 11);
		x->is_counted |= !is_told;
		(*count)++;
	}
	lull_map_release(&counts);
}

void lull_exchanges_init(struct lull_exchanges *x, struct lull_reader *r)
{
	u8 source = best_source(r);
	struct lull_vec asked, seqs;

	memset(x, 0, sizeof(*x));
	lull_vec_init(&x->all, sizeof(struct lull_exchange));
	lull_vec_init(&asked, sizeof(struct asked));
	lull_vec_init(&seqs, sizeof(u64));
	if (source)
		collect_asked(r, &asked, source);
	if (source == IMPORTED) {
		for (size_t i = 0; i < asked.n; i++) {
			const struct asked *a = lull_vec_get(&asked, i);

			lull_vec_add(&x->all, &a->x, 1);
			lull_vec_add(&seqs, &a->seq, 1);
		}
	} else if (source) {
		pair(x, r, &asked, &seqs);
	}
	if (!x->all.n)
		take_kernels(x, r);
	make_keys(x, r, &seqs, source > CALL);
	lull_vec_release(&asked);
	lull_vec_release(&seqs);
	sort(&x->all, by_start);
}

void lull_exchanges_release(struct lull_exchanges *x)
{
	lull_vec_release(&x->all);
}

const struct lull_exchange *lull_exchanges_find(const struct lull_exchanges *x, u64 start_ns,
						u64 end_ns)
{
	const struct lull_exchange *all = x->all.at;
	size_t i = lull_vec_upper(&x->all, offsetof(struct lull_exchange, start_ns), start_ns);

	while (i-- > 0 && all[i].start_ns == start_ns)
		if (all[i].end_ns == end_ns)
			return &all[i];
	return NULL;
}
