/*
 * What communicators seem to be for.
 */
#include "unit/unit.h"

#include "job/job_int.h"

#define STEPS 10

/* Communicators of a job as its ranks tell of them. */
struct ranks {
	struct lull_job job;
	struct lull_vec comms, rank_of;
};

static void begin(struct ranks *r)
{
	memset(r, 0, sizeof(*r));
	lull_vec_init(&r->job.comms, sizeof(struct lull_job_comm_kind));
	lull_vec_init(&r->comms, sizeof(struct lull_job_comm));
	lull_vec_init(&r->rank_of, sizeof(i64));
}

static void end(struct ranks *r)
{
	lull_vec_release(&r->job.comms);
	lull_vec_release(&r->comms);
	lull_vec_release(&r->rank_of);
}

/* All ranks of a communicator do `op` so often in each step. */
static struct lull_job_comm *add(struct ranks *r, u64 comm, const char *name, i64 rank, u32 n_ranks,
				 enum lull_job_op op, u64 a_step)
{
	struct lull_job_comm *c = lull_vec_push(&r->comms);

	c->comm = comm;
	snprintf(c->name, sizeof(c->name), "%s", name);
	c->n_ranks = n_ranks;
	c->n_steps = STEPS;
	c->n[op] = a_step * STEPS;
	c->dur_ns = a_step * 1000;
	lull_vec_add(&r->rank_of, &rank, 1);
	return c;
}

/* Groups of `n` among 8 ranks that are `stride` apart. */
static void add_groups(struct ranks *r, u64 comm, const char *name, u32 n, i64 stride,
		       enum lull_job_op op, u64 a_step)
{
	for (i64 rank = 0; rank < 8; rank++)
		add(r, comm + (u64)(stride == 1 ? rank / n : rank % stride), name, rank, n, op,
		    a_step);
}

/* "2 x 4: all-reduce (data parallel?); ..." */
static void expect(struct ranks *r, const char *text)
{
	const struct lull_job_comm_kind *all;
	struct lull_str got = LULL_STR_INIT;

	lull_job_find_comms(&r->job, &r->comms, r->rank_of.at);
	all = r->job.comms.at;
	for (size_t i = 0; i < r->job.comms.n; i++) {
		lull_str_addf(&got, "%s%u x %u: ", i ? "; " : "", all[i].n_comms, all[i].n_ranks);
		lull_job_comm_ops(&all[i], &got);
		lull_str_puts(&got, " (");
		lull_job_comm_role(&all[i], &got);
		lull_str_puts(&got, ")");
	}
	assert_string_equal(lull_str_text(&got), text);
	lull_str_release(&got);
	end(r);
}

static void one_group_is_data_parallel(void **state)
{
	struct ranks r;

	(void)state;
	begin(&r);
	add_groups(&r, 1, "", 8, 1, LULL_JOB_ALL_REDUCE, 5);
	expect(&r, "1 x 8: all-reduce (data parallel?)");
}

static void gathering_and_scattering_is_sharded(void **state)
{
	struct ranks r;

	(void)state;
	begin(&r);
	for (i64 rank = 0; rank < 8; rank++)
		add(&r, 1, "", rank, 8, LULL_JOB_ALL_GATHER, 20)->n[LULL_JOB_REDUCE_SCATTER] =
			10 * STEPS;
	expect(&r, "1 x 8: all-gather, reduce-scatter (data parallel, sharded?)");
}

static void neighbours_that_exchange_most_are_tensor_parallel(void **state)
{
	struct ranks r;

	(void)state;
	begin(&r);
	add_groups(&r, 10, "", 2, 1, LULL_JOB_ALL_REDUCE, 40);
	add_groups(&r, 20, "", 4, 2, LULL_JOB_ALL_REDUCE, 5);
	expect(&r, "4 x 2: all-reduce (tensor parallel?); 2 x 4: all-reduce (data parallel?)");
}

static void neighbours_that_exchange_less_are_not(void **state)
{
	struct ranks r;

	(void)state;
	begin(&r);
	add_groups(&r, 10, "", 2, 1, LULL_JOB_ALL_REDUCE, 5);
	add_groups(&r, 20, "", 4, 2, LULL_JOB_ALL_REDUCE, 40);
	expect(&r, "2 x 4: all-reduce (data parallel?); 4 x 2: all-reduce (data parallel?)");
}

/* Sharding within a host and reducing between hosts looks the same as tensor parallelism. */
static void what_may_be_either_is_said_so(void **state)
{
	struct ranks r;

	(void)state;
	begin(&r);
	for (i64 rank = 0; rank < 8; rank++)
		add(&r, 10 + (u64)rank / 4, "", rank, 4, LULL_JOB_ALL_GATHER, 30)
			->n[LULL_JOB_REDUCE_SCATTER] = 10 * STEPS;
	add_groups(&r, 20, "", 2, 4, LULL_JOB_ALL_REDUCE, 5);
	expect(&r,
	       "2 x 4: all-gather, reduce-scatter (tensor parallel, or sharded data parallel?); "
	       "4 x 2: all-reduce (data parallel?)");
}

static void names_decide(void **state)
{
	struct ranks r;

	(void)state;
	begin(&r);
	add_groups(&r, 10, "TP_GROUP", 4, 2, LULL_JOB_ALL_REDUCE, 40);
	add_groups(&r, 20, "dp", 2, 1, LULL_JOB_ALL_REDUCE, 5);
	add_groups(&r, 30, "cp:0", 8, 1, LULL_JOB_ALL_GATHER, 2);
	expect(&r, "2 x 4: all-reduce (tensor parallel); 4 x 2: all-reduce (data parallel); "
		   "1 x 8: all-gather (context parallel)");
}

/* "tp" stands in this name, but is no word of it. */
static void parts_of_words_do_not(void **state)
{
	struct ranks r;

	(void)state;
	begin(&r);
	add_groups(&r, 10, "gtpu", 8, 1, LULL_JOB_ALL_REDUCE, 5);
	expect(&r, "1 x 8: all-reduce (data parallel?)");
}

static void sends_are_a_pipeline_and_all_to_all_is_for_experts(void **state)
{
	struct ranks r;

	(void)state;
	begin(&r);
	add_groups(&r, 10, "", 2, 1, LULL_JOB_PEER, 40);
	add_groups(&r, 20, "", 8, 1, LULL_JOB_ALL_TO_ALL, 5);
	expect(&r, "4 x 2: send and receive (pipeline parallel?); 1 x 8: all-to-all (expert "
		   "parallel?)");
}

static void what_is_rarely_used_has_no_role(void **state)
{
	struct ranks r;

	(void)state;
	begin(&r);
	add_groups(&r, 10, "", 8, 1, LULL_JOB_ALL_REDUCE, 5);
	for (i64 rank = 0; rank < 8; rank++)
		add(&r, 20 + (u64)rank / 2, "", rank, 2, LULL_JOB_OTHER, 0)->n[LULL_JOB_OTHER] = 1;
	expect(&r, "1 x 8: all-reduce (data parallel?); 4 x 2: others ()");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_group_is_data_parallel),
		cmocka_unit_test(gathering_and_scattering_is_sharded),
		cmocka_unit_test(neighbours_that_exchange_most_are_tensor_parallel),
		cmocka_unit_test(neighbours_that_exchange_less_are_not),
		cmocka_unit_test(what_may_be_either_is_said_so),
		cmocka_unit_test(names_decide),
		cmocka_unit_test(parts_of_words_do_not),
		cmocka_unit_test(sends_are_a_pipeline_and_all_to_all_is_for_experts),
		cmocka_unit_test(what_is_rarely_used_has_no_role),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
