/*
 * comm - which communicators a job has, and what they seem to be for.
 *
 * Frameworks split ranks into groups: tensor parallel ranks compute parts of one layer and exchange
 * activations all the time; data parallel ranks exchange gradients; pipeline stages send to each
 * other. NCCL only knows communicators. A guess is made from their size, what they do, how often,
 * and which ranks they have; it is shown with a question mark. Where the program has named a
 * communicator ("tp", "dp_group"), the name decides.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/sort.h"
#include "job/job_int.h"

/* Communicators of one rank; a job has a handful. */
#define MAX_COMMS 32u

/* Less often than every second step: a barrier, a checkpoint, a metric. */
#define IS_OFTEN 0.5

static const struct {
	const char *start; /* of the operation, in small letters without '_' */
	enum lull_job_op op;
} op_names[] = {
	{ "allreduce", LULL_JOB_ALL_REDUCE },
	{ "allgather", LULL_JOB_ALL_GATHER },
	{ "reducescatter", LULL_JOB_REDUCE_SCATTER },
	{ "alltoall", LULL_JOB_ALL_TO_ALL },
};

static enum lull_job_op op_of(const char *name)
{
	char plain[32];
	size_t n = 0;

	for (; *name && n + 1 < sizeof(plain); name++)
		if (isalpha((unsigned char)*name))
			plain[n++] = (char)tolower((unsigned char)*name);
	plain[n] = '\0';
	for (size_t i = 0; i < LULL_COUNT_OF(op_names); i++)
		if (strstr(plain, op_names[i].start))
			return op_names[i].op;
	return LULL_JOB_OTHER;
}

struct lull_job_comm *lull_job_comm_of(struct lull_vec *comms, struct lull_reader *r,
				       const struct lull_exchange *x)
{
	struct lull_job_comm *all = comms->at, *to;

	if (!x->n_ranks)
		return NULL;
	for (size_t i = 0; i < comms->n; i++)
		if (all[i].comm == x->comm && all[i].n_ranks == x->n_ranks)
			return &all[i];
	if (comms->n == MAX_COMMS)
		return NULL;
	to = lull_vec_push(comms);
	memset(to, 0, sizeof(*to));
	to->comm = x->comm;
	to->n_ranks = x->n_ranks;
	snprintf(to->name, sizeof(to->name), "%s", lull_reader_string(r, x->comm_name, NULL));
	return to;
}

void lull_job_comm_add(struct lull_job_comm *comm, struct lull_reader *r,
		       const struct lull_exchange *x)
{
	comm->n[x->is_peer ? LULL_JOB_PEER : op_of(lull_reader_string(r, x->name, NULL))]++;
	comm->size_bytes += x->size_bytes;
	comm->dur_ns += x->end_ns - x->start_ns;
}

/* ---- communicators of the job ---- */

/* One communicator with what all its ranks say. */
struct whole {
	u64 comm;
	struct lull_job_comm_kind k; /* n_comms is 1 */
};

static void add_comm(struct lull_vec *wholes, struct lull_map *by_comm,
		     const struct lull_job_comm *c, i64 rank)
{
	bool is_new;
	u32 *ix = lull_map_add(by_comm, c->comm ^ (u64)c->n_ranks << 40, &is_new);
	struct lull_job_comm_kind *k;
	struct whole *w;

	if (is_new) {
		*ix = (u32)wholes->n;
		w = lull_vec_push(wholes);
		memset(w, 0, sizeof(*w));
		w->comm = c->comm;
		w->k.n_comms = 1;
		w->k.n_ranks = c->n_ranks;
		memcpy(w->k.name, c->name, sizeof(w->k.name));
	}
	w = lull_vec_get(wholes, *ix);
	k = &w->k;
	if (k->n_members < LULL_JOB_MEMBERS)
		k->members[k->n_members++] = rank;
	for (u32 i = 0; i < LULL_JOB_N_OPS; i++)
		k->n[i] += c->n[i];
	k->n_steps += c->n_steps;
	k->size_bytes += c->size_bytes;
	k->dur_ns += c->dur_ns;
	k->exposed_ns += c->exposed_ns;
}

static u32 ops_of(const struct lull_job_comm_kind *k)
{
	u32 mask = 0;

	for (u32 i = 0; i < LULL_JOB_N_OPS; i++)
		mask |= k->n[i] ? 1u << i : 0;
	return mask;
}

/* Ranks between neighbours of a communicator; 0 if that differs. */
static i64 stride_of(const struct lull_job_comm_kind *k)
{
	i64 stride = k->n_members > 1 ? k->members[1] - k->members[0] : 0;

	for (u32 i = 1; i < k->n_members; i++)
		if (k->members[i] - k->members[i - 1] != stride)
			return 0;
	return stride;
}

static bool are_alike(const struct lull_job_comm_kind *a, const struct lull_job_comm_kind *b)
{
	return a->n_ranks == b->n_ranks && ops_of(a) == ops_of(b) && stride_of(a) == stride_of(b);
}

static void add_kind(struct lull_vec *kinds, const struct lull_job_comm_kind *from)
{
	struct lull_job_comm_kind *all = kinds->at, *to = NULL;

	for (size_t i = 0; i < kinds->n && !to; i++)
		if (are_alike(&all[i], from))
			to = &all[i];
	if (!to) {
		lull_vec_add(kinds, from, 1);
		return;
	}
	if (strcmp(to->name, from->name) != 0)
		to->name[0] = '\0';
	to->n_comms++;
	for (u32 i = 0; i < LULL_JOB_N_OPS; i++)
		to->n[i] += from->n[i];
	to->n_steps += from->n_steps;
	to->size_bytes += from->size_bytes;
	to->dur_ns += from->dur_ns;
	to->exposed_ns += from->exposed_ns;
}

/* ---- roles ---- */

static u64 count(const struct lull_job_comm_kind *k)
{
	u64 n = 0;

	for (u32 i = 0; i < LULL_JOB_N_OPS; i++)
		n += k->n[i];
	return n;
}

/* Operations of a rank in a step. */
static f64 rate(const struct lull_job_comm_kind *k)
{
	return k->n_steps ? (f64)count(k) / (f64)k->n_steps : 0;
}

/* Whether a word stands in a name, between other characters than letters. */
static bool has_word(const char *name, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = name; (at = strstr(at, word)); at += len)
		if ((at == name || !isalpha((unsigned char)at[-1])) &&
		    !isalpha((unsigned char)at[len]))
			return true;
	return false;
}

static const char *role_by_name(const char *name)
{
	static const struct {
		const char *word, *role;
	} words[] = {
		{ "tp", "tensor parallel" },
		{ "tensor", "tensor parallel" },
		{ "pp", "pipeline parallel" },
		{ "pipeline", "pipeline parallel" },
		{ "dp", "data parallel" },
		{ "data", "data parallel" },
		{ "fsdp", "data parallel, sharded" },
		{ "ep", "expert parallel" },
		{ "expert", "expert parallel" },
		{ "cp", "context parallel" },
		{ "context", "context parallel" },
	};
	char small[32] = "";

	for (size_t i = 0; name[i] && i + 1 < sizeof(small); i++)
		small[i] = (char)tolower((unsigned char)name[i]);
	for (size_t i = 0; i < LULL_COUNT_OF(words); i++)
		if (has_word(small, words[i].word))
			return words[i].role;
	return NULL;
}

/* Whether it shards what it exchanges: gathers and scatters instead of reducing as a whole. */
static bool is_sharded(const struct lull_job_comm_kind *k)
{
	return k->n[LULL_JOB_ALL_GATHER] && k->n[LULL_JOB_REDUCE_SCATTER] &&
	       k->n[LULL_JOB_ALL_GATHER] + k->n[LULL_JOB_REDUCE_SCATTER] >
		       k->n[LULL_JOB_ALL_REDUCE];
}

/* Whether it is one of those that exchange gradients or activations in every step. */
static bool is_steady(const struct lull_job_comm_kind *k)
{
	return k->n_ranks > 1 && rate(k) >= IS_OFTEN && count(k) > 2 * k->n[LULL_JOB_PEER] &&
	       count(k) > 2 * k->n[LULL_JOB_ALL_TO_ALL];
}

/* Tensor parallel groups are of neighbours, and the busiest where there are others. */
static const char *guess(const struct lull_job_comm_kind *k, u32 n_steady, bool is_busiest)
{
	if (k->n[LULL_JOB_PEER] * 2 >= count(k))
		return "pipeline parallel";
	if (k->n[LULL_JOB_ALL_TO_ALL] * 2 >= count(k))
		return "expert parallel";
	if (!is_steady(k))
		return NULL;
	if (n_steady > 1 && is_busiest && stride_of(k) == 1)
		return is_sharded(k) ? "tensor parallel, or sharded data parallel"
				     : "tensor parallel";
	return is_sharded(k) ? "data parallel, sharded" : "data parallel";
}

static void find_roles(struct lull_vec *kinds)
{
	struct lull_job_comm_kind *all = kinds->at;
	size_t busiest = SIZE_MAX;
	u32 n_steady = 0;

	for (size_t i = 0; i < kinds->n; i++) {
		if (!is_steady(&all[i]))
			continue;
		n_steady++;
		if (busiest == SIZE_MAX || rate(&all[i]) > rate(&all[busiest]))
			busiest = i;
	}
	for (size_t i = 0; i < kinds->n; i++) {
		all[i].role = role_by_name(all[i].name);
		all[i].is_named = all[i].role != NULL;
		if (!all[i].role)
			all[i].role = guess(&all[i], n_steady, i == busiest);
	}
}

static int by_use(const void *a, const void *b)
{
	const struct lull_job_comm_kind *x = a, *y = b;

	if (x->dur_ns != y->dur_ns)
		return x->dur_ns < y->dur_ns ? 1 : -1;
	if (x->n_ranks != y->n_ranks)
		return x->n_ranks < y->n_ranks ? 1 : -1;
	return (x->members[0] > y->members[0]) - (x->members[0] < y->members[0]);
}

void lull_job_find_comms(struct lull_job *job, const struct lull_vec *comms, const i64 *rank_of)
{
	const struct lull_job_comm *all = comms->at;
	const struct whole *whole;
	struct lull_map by_comm;
	struct lull_vec wholes;

	lull_map_init(&by_comm);
	lull_vec_init(&wholes, sizeof(struct whole));
	for (size_t i = 0; i < comms->n; i++)
		add_comm(&wholes, &by_comm, &all[i], rank_of[i]);
	whole = wholes.at;
	for (size_t i = 0; i < wholes.n; i++)
		add_kind(&job->comms, &whole[i].k);
	if (job->comms.n)
		lull_sort(job->comms.at, job->comms.n, sizeof(struct lull_job_comm_kind), by_use);
	find_roles(&job->comms);
	lull_vec_release(&wholes);
	lull_map_release(&by_comm);
}

/* ---- words ---- */

void lull_job_comm_ops(const struct lull_job_comm_kind *k, struct lull_str *to)
{
	static const char *const names[] = { "all-reduce", "all-gather",       "reduce-scatter",
					     "all-to-all", "send and receive", "others" };
	u64 left[LULL_JOB_N_OPS];
	bool has_any = false;

	memcpy(left, k->n, sizeof(left));
	for (;;) {
		u32 best = 0;

		for (u32 i = 1; i < LULL_JOB_N_OPS; i++)
			best = left[i] > left[best] ? i : best;
		if (!left[best])
			return;
		lull_str_addf(to, "%s%s", has_any ? ", " : "", names[best]);
		has_any = true;
		left[best] = 0;
	}
}

void lull_job_comm_members(const struct lull_job_comm_kind *k, struct lull_str *to)
{
	if (stride_of(k) == 1 && k->n_members > 2) {
		lull_str_addf(to, "%lld-%lld", (long long)k->members[0],
			      (long long)k->members[k->n_members - 1]);
		return;
	}
	for (u32 i = 0; i < k->n_members && i < 4; i++)
		lull_str_addf(to, "%s%lld", i ? ", " : "", (long long)k->members[i]);
	if (k->n_members > 4)
		lull_str_puts(to, ", ...");
}

void lull_job_comm_role(const struct lull_job_comm_kind *k, struct lull_str *to)
{
	lull_str_addf(to, "%s%s", k->role ? k->role : "", k->role && !k->is_named ? "?" : "");
}
