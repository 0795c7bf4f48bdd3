/*
 * Verdicts on kernels that the model of kmodel.h makes up: each family in many sizes, so that a
 * threshold that only fits one kernel is found, and neighbours that must not be taken for it.
 */
#include "unit/unit.h"

#include "unit/kmodel.h"

static void expect(struct kmodel m, const char *verdict, const char *detail)
{
	struct lull_judgement j;
	struct lull_profile p;

	km_run(m, &p);
	lull_judge(&j, &p);
	if (strcmp(lull_judgement_id(&j), verdict) != 0)
		fail_msg("%u blocks of %u: %s (%s), not %s; memory %.2f sm %.2f, %llu ns", m.blocks,
			 m.threads, lull_judgement_id(&j), j.n ? j.claims[0].detail : "", verdict,
			 j.loads.memory, j.loads.sm, (unsigned long long)p.dur_ns);
	if (detail)
		assert_string_equal(j.claims[0].detail, detail);
	assert_true(isnan(j.claims[0].gain) || j.claims[0].gain >= 1);
	assert_true(j.claims[0].n_proofs > 0);
	assert_true(*j.claims[0].fix);
	lull_profile_release(&p);
}

static f64 gain_of(struct kmodel m)
{
	struct lull_judgement j;
	struct lull_profile p;

	km_run(m, &p);
	lull_judge(&j, &p);
	lull_profile_release(&p);
	return j.n ? j.claims[0].gain : NAN;
}

/* ---- limits ---- */

static void streams_are_memory_bound(void **state)
{
	static const f64 widths[] = { 2, 4, 8, 16 };

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(widths); i++)
		for (u32 blocks = 132 * 64; blocks < 1u << 21; blocks *= 4) {
			expect((struct kmodel){ blocks, 256, .loads = 4, .stores = 4,
						.width = widths[i], .alu = 4 },
			       "memory-bound", "DRAM");
			/* Only loads, only stores. */
			expect((struct kmodel){ blocks, 128, .loads = 16, .width = widths[i] },
			       "memory-bound", "DRAM");
			expect((struct kmodel){ blocks, 1024, .stores = 8, .width = widths[i] },
			       "memory-bound", "DRAM");
		}
}

static void caches_and_the_host_are_named(void **state)
{
	(void)state;
	for (f64 hit = 0.9; hit <= 1; hit += 0.05)
		expect((struct kmodel){ 132 * 64, 256, .loads = 64, .width = 16, .l2_hit = hit },
		       "memory-bound", "L2 cache");
	expect((struct kmodel){ 132 * 32, 256, .shared = 4000, .fp32 = 2000 }, "memory-bound",
	       NULL);
	for (f64 share = 0.2; share <= 1; share += 0.2)
		expect((struct kmodel){ 1056, 256, .loads = 64, .stores = 1, .host_share = share },
		       "memory-bound", "the host's memory");
}

static void pipes_are_named(void **state)
{
	(void)state;
	for (f64 n = 1000; n <= 64000; n *= 4) {
		expect((struct kmodel){ 132 * 16, 256, .fp32 = n, .alu = n / 20, .stores = 1 },
		       "fp32-bound", NULL);
		expect((struct kmodel){ 132 * 16, 256, .fp64 = n, .alu = n / 20 }, "fp64-bound",
		       NULL);
		expect((struct kmodel){ 132 * 16, 256, .xu = n, .fp32 = n }, "sfu-bound", NULL);
		expect((struct kmodel){ 132 * 16, 256, .alu = n, .fp32 = n / 4 }, "alu-bound",
		       NULL);
		/* No pipe has half of what is issued. */
		expect((struct kmodel){ 132 * 16, 256, .fp32 = n, .alu = n / 2, .xu = n / 16,
					.loads = n / 4, .l1_hit = 1 },
		       "issue-bound", NULL);
	}
}

/* A product on tensor cores keeps shared memory as busy as them, and is no memory-bound kernel. */
static void products_are_tensor_bound(void **state)
{
	(void)state;
	for (f64 tiles = 500; tiles <= 50000; tiles *= 10)
		for (f64 shared = 0; shared <= 0.26; shared += 0.13)
			expect((struct kmodel){ 132, 384, 168, 213000, .tensor_cycles = 16 * tiles,
						.shared = 16 * tiles * shared,
						.loads = tiles / 20 },
			       "tensor-bound", "tensor cores");
}

/* ---- wastes ---- */

static void strided_accesses_are_uncoalesced(void **state)
{
	(void)state;
	for (u32 stride = 2; stride <= 64; stride *= 2) {
		struct kmodel m = { 1 << 18,	 256,	   .loads = 4,
				    .stores = 1, .alu = 4, .stride = stride };

		expect(m, "uncoalesced", NULL);
		/* What could be won is what is thrown away: up to 8 sectors for one of floats. */
		assert_in_range((u64)(10 * gain_of(m)), 12, 82);
	}
	/* The naive transposition: packed loads, scattered stores. */
	expect((struct kmodel){ 1 << 16, 1024, .loads = 1, .stores = 1, .store_stride = 8192,
				.l2_hit = 0.5 },
	       "uncoalesced", NULL);
	assert_true(
		gain_of((struct kmodel){ 1 << 18, 256, .loads = 4, .stores = 1, .stride = 32 }) >
		gain_of((struct kmodel){ 1 << 18, 256, .loads = 4, .stores = 1, .stride = 4 }));
}

static void packed_and_shared_accesses_are_not_uncoalesced(void **state)
{
	(void)state;
	/* float4: 16 sectors, all of them used. */
	expect((struct kmodel){ 1 << 16, 256, .loads = 4, .stores = 4, .width = 16 },
	       "memory-bound", "DRAM");
	/* Scattered, but waited for one by one: memory is idle. */
	expect((struct kmodel){ 132, 32, .loads = 2000, .depth = 2000, .stride = 997 },
	       "latency-bound", "Long scoreboard");
}

static void bank_conflicts_of_all_degrees_are_found(void **state)
{
	(void)state;
	for (f64 ways = 2; ways <= 32; ways *= 2)
		expect((struct kmodel){ 1056, 256, 32, 8192, .shared = 2000, .ways = ways,
					.fp32 = 500 },
		       "bank-conflict", NULL);
	/* Conflicts in a kernel that hardly uses shared memory. */
	expect((struct kmodel){ 1056, 256, .shared = 10, .ways = 8, .fp32 = 20000 }, "fp32-bound",
	       NULL);
}

static void divergence_of_all_degrees_is_found(void **state)
{
	(void)state;
	for (f64 lanes = 1; lanes <= 20; lanes += 1) {
		struct kmodel m = { 1056, 256, .fp32 = 20000, .lanes = lanes };

		expect(m, "divergence", NULL);
		assert_true(fabs(gain_of(m) - 32 / lanes) < 0.35 * 32 / lanes);
	}
	expect((struct kmodel){ 1056, 256, .fp32 = 20000, .lanes = 29 }, "fp32-bound", NULL);
	/* Memory is the limit whatever the lanes do. */
	expect((struct kmodel){ 1 << 17, 256, .loads = 8, .stores = 8, .lanes = 12 },
	       "memory-bound", "DRAM");
	/* Blocks of half a warp waste the other half; of most of one, little. */
	expect((struct kmodel){ 132 * 64, 16, .fp32 = 20000, .lanes = 16 }, "divergence", NULL);
	expect((struct kmodel){ 132 * 64, 28, .fp32 = 20000, .lanes = 28 }, "fp32-bound", NULL);
}

static void atomics_on_one_address_are_found(void **state)
{
	(void)state;
	for (f64 n = 8; n <= 2048; n *= 4) {
		expect((struct kmodel){ 528, 256, .atomics = n, .alu = n }, "atomics", NULL);
		expect((struct kmodel){ 528, 256, .atomics = n, .loads = n, .alu = 2 * n,
					.l2_hit = 0.5 },
		       "atomics", NULL);
	}
	/* One for each warp at the end of a sum. */
	expect((struct kmodel){ 132 * 16, 256, .atomics = 1, .loads = 4000 }, "memory-bound",
	       "DRAM");
}

static void spills_are_found(void **state)
{
	(void)state;
	for (f64 n = 50; n <= 5000; n *= 10)
		expect((struct kmodel){ 1056, 256, .local = n, .loads = n / 20, .fp32 = n },
		       "spill", NULL);
	/* Spills outside of the loop. */
	expect((struct kmodel){ 1056, 256, .local = 10, .loads = 1, .fp32 = 20000 }, "fp32-bound",
	       NULL);
}

/* ---- shape ---- */

static void small_grids_are_found(void **state)
{
	(void)state;
	for (u32 blocks = 1; blocks <= 96; blocks = blocks * 2 + 1)
		expect((struct kmodel){ blocks, 256, .fp32 = 200000 }, "small-grid", NULL);
	/* Split-K or not: a product of 64 tiles leaves half of the chip out. */
	expect((struct kmodel){ 64, 384, 168, 213000, .tensor_cycles = 100000 }, "small-grid",
	       NULL);
	expect((struct kmodel){ 128, 384, 168, 213000, .tensor_cycles = 100000 }, "tensor-bound",
	       NULL);
	assert_true(fabs(gain_of((struct kmodel){ 1, 256, .fp32 = 200000 }) - 132) < 5);
}

static void uneven_ends_are_tails(void **state)
{
	(void)state;
	for (f64 uneven = 0.25; uneven <= 0.8; uneven += 0.05)
		expect((struct kmodel){ 132 * 2 + 4, 1024, .fp32 = 40000, .uneven = uneven },
		       "tail", NULL);
	expect((struct kmodel){ 132 * 4, 1024, .fp32 = 40000, .uneven = 0.1 }, "fp32-bound", NULL);
}

static void tiny_kernels_pay_for_their_launch(void **state)
{
	(void)state;
	expect((struct kmodel){ 1, 32, .stores = 1 }, "launch-overhead", NULL);
	expect((struct kmodel){ 1000, 256, .fp32 = 10 }, "launch-overhead", NULL);
	expect((struct kmodel){ 64, 64, .loads = 1, .stores = 1, .depth = 1 }, "launch-overhead",
	       NULL);
}

/* ---- latency ---- */

static void few_warps_by_registers_or_shared_memory(void **state)
{
	(void)state;
	for (u32 kib = 80; kib <= 220; kib += 20)
		expect((struct kmodel){ 132 * 4, 128, 32, kib * 1024, .loads = 2000, .stores = 2000,
					.depth = 500, .l2_hit = 0.5 },
		       "low-occupancy", "shared memory");
	for (u32 registers = 96; registers <= 255; registers += 40)
		expect((struct kmodel){ 132 * 8, 256, registers, .loads = 200, .depth = 200 },
		       "low-occupancy", "registers");
	/* A fast product at an eighth of the warps: occupancy is a means, never the goal. */
	expect((struct kmodel){ 132, 256, 255, 220000, .tensor_cycles = 100000 }, "tensor-bound",
	       NULL);
}

static void dependent_loads_are_latency_bound(void **state)
{
	(void)state;
	for (f64 hops = 100; hops <= 10000; hops *= 10)
		for (u32 threads = 32; threads <= 256; threads *= 2)
			expect((struct kmodel){ 132, threads, .loads = hops, .depth = hops,
						.stride = 997 },
			       "latency-bound", "Long scoreboard");
}

static void waits_at_barriers_are_found(void **state)
{
	(void)state;
	for (f64 share = 0.5; share < 0.95; share += 0.1)
		expect((struct kmodel){ 528, 512, .fp32 = 4000, .barrier = share, .lanes = 32 },
		       "barrier", NULL);
}

/* ---- what is not known ---- */

static void without_counters_nothing_is_claimed_but_the_shape(void **state)
{
	struct lull_judgement j;
	struct lull_profile p;

	(void)state;
	km_run((struct kmodel){ 528, 256, .fp32 = 20000 }, &p);
	for (int i = 0; i < LULL_N_KMETRICS; i++)
		p.metrics[i] = NAN;
	lull_judge(&j, &p);
	assert_string_equal(lull_judgement_id(&j), "unknown");
	assert_non_null(strstr(j.missing, "memory-bound (memory_throughput)"));
	p.launch.grid_x = 3;
	lull_judge(&j, &p);
	assert_string_equal(lull_judgement_id(&j), "small-grid");
	lull_profile_release(&p);
}

/* Any one metric may be missing: then another verdict, or none, but never a crash. */
static void every_metric_may_be_missing(void **state)
{
	static const struct kmodel kernels[] = {
		{ 1 << 16, 256, .loads = 4, .stores = 4 },
		{ 1 << 16, 256, .loads = 4, .stores = 1, .stride = 32 },
		{ 1056, 256, 32, 8192, .shared = 2000, .ways = 32 },
		{ 1056, 256, .fp32 = 20000, .lanes = 2 },
		{ 528, 256, .atomics = 100 },
		{ 132, 32, .loads = 2000, .depth = 2000 },
	};

	(void)state;
	for (size_t k = 0; k < LULL_COUNT_OF(kernels); k++)
		for (int i = 0; i < LULL_N_KMETRICS; i++) {
			struct lull_judgement j;
			struct lull_profile p;

			km_run(kernels[k], &p);
			p.metrics[i] = NAN;
			lull_judge(&j, &p);
			assert_non_null(lull_judgement_id(&j));
			for (size_t c = 0; c < j.n; c++)
				assert_true(isnan(j.claims[c].gain) || j.claims[c].gain >= 1);
			/* Infinite, negative and absurd values of a damaged report. */
			p.metrics[i] = 1e308;
			lull_judge(&j, &p);
			p.metrics[i] = -5;
			lull_judge(&j, &p);
			lull_profile_release(&p);
		}
}

/* Old reports, and those whose counters were refused, may lack the registers. */
static void shared_memory_limits_whatever_the_registers(void **state)
{
	struct lull_judgement j;
	struct lull_profile p;

	(void)state;
	km_run((struct kmodel){ 132, 128, 32, 204800, .loads = 2000, .depth = 500 }, &p);
	p.launch.registers = 0;
	lull_profile_settle(&p);
	assert_true(p.is_at_most);
	lull_judge(&j, &p);
	assert_string_equal(lull_judgement_id(&j), "low-occupancy");
	assert_string_equal(j.claims[0].detail, "shared memory");
	/* How many blocks fit cannot be told, and so no waves. */
	assert_true(isnan(lull_k_of(&p, LULL_K_waves)));
	lull_profile_release(&p);
}

static void guests_of_the_fp32_pipe_have_their_own_name(void **state)
{
	struct lull_judgement j;
	struct lull_profile p;

	(void)state;
	km_run((struct kmodel){ 132 * 16, 256, .fp32 = 20000 }, &p);
	p.metrics[LULL_K_op_fadd] = p.metrics[LULL_K_op_fmul] = p.metrics[LULL_K_op_ffma] = 0;
	p.metrics[LULL_K_op_hadd] = p.metrics[LULL_K_op_hmul] = 0;
	p.metrics[LULL_K_op_hfma] = 30 * p.metrics[LULL_K_inst_executed];
	p.metrics[LULL_K_op_integer] = 0;
	lull_judge(&j, &p);
	assert_string_equal(lull_judgement_id(&j), "fp16-bound");
	p.metrics[LULL_K_op_hfma] = 0.1 * p.metrics[LULL_K_inst_executed];
	p.metrics[LULL_K_op_integer] = 30 * p.metrics[LULL_K_inst_executed];
	lull_judge(&j, &p);
	assert_string_equal(lull_judgement_id(&j), "integer-bound");
	p.metrics[LULL_K_op_ffma] = p.metrics[LULL_K_op_integer];
	lull_judge(&j, &p);
	assert_string_equal(lull_judgement_id(&j), "fp32-bound");
	lull_profile_release(&p);
}

/* A launch whose loads are set one by one. */
static const char *judged(struct lull_profile *p, struct lull_judgement *j)
{
	lull_profile_settle(p);
	lull_judge(j, p);
	return lull_judgement_id(j);
}

/* The pipe of loads and stores is how shared memory is used, not a limit of its own. */
static void shared_memory_that_is_full_is_named(void **state)
{
	struct lull_judgement j;
	struct lull_profile p;

	(void)state;
	km_run((struct kmodel){ 132 * 16, 256, .fp32 = 2000 }, &p);
	p.metrics[LULL_K_memory_throughput] = p.metrics[LULL_K_l1_throughput] = 99;
	p.metrics[LULL_K_sm_throughput] = 99;
	p.metrics[LULL_K_sm_inst_throughput] = 50;
	p.metrics[LULL_K_issue_active] = 0.5;
	p.metrics[LULL_K_pipe_fma] = p.metrics[LULL_K_cycles_fma] = 25;
	p.metrics[LULL_K_pipe_lsu] = 99;
	assert_string_equal(judged(&p, &j), "memory-bound");
	assert_string_equal(j.claims[0].detail, "L1 cache and shared memory");
	lull_profile_release(&p);
}

/* Integers are multiplied by half of the pipe: it is full when the whole is half busy. */
static void products_of_integers_fill_half_a_pipe(void **state)
{
	struct lull_judgement j;
	struct lull_profile p;

	(void)state;
	km_run((struct kmodel){ 132 * 16, 256, .fp32 = 20000 }, &p);
	p.metrics[LULL_K_op_fadd] = p.metrics[LULL_K_op_fmul] = p.metrics[LULL_K_op_ffma] = 0;
	p.metrics[LULL_K_op_integer] = 30 * p.metrics[LULL_K_inst_executed];
	p.metrics[LULL_K_sm_inst_throughput] = p.metrics[LULL_K_pipe_fmaheavy] = 96;
	p.metrics[LULL_K_pipe_fma] = p.metrics[LULL_K_cycles_fma] = 48;
	p.metrics[LULL_K_issue_active] = 0.5;
	assert_string_equal(judged(&p, &j), "integer-bound");
	/* With fp32 both halves are as busy as the whole. */
	p.metrics[LULL_K_pipe_fma] = p.metrics[LULL_K_cycles_fma] = 96;
	p.metrics[LULL_K_op_ffma] = p.metrics[LULL_K_op_integer];
	assert_string_equal(judged(&p, &j), "fp32-bound");
	lull_profile_release(&p);
}

/* Stores that the L1 cache knows go to the L2 cache all the same. */
static void hits_of_stores_excuse_nothing(void **state)
{
	struct lull_judgement j;
	struct lull_profile p;

	(void)state;
	km_run((struct kmodel){ 65536, 256, .loads = 4, .stores = 4, .store_stride = 32 }, &p);
	p.metrics[LULL_K_l1_hit] = 75;
	p.metrics[LULL_K_dram_throughput] = 12;
	p.metrics[LULL_K_l2_throughput] = p.metrics[LULL_K_memory_throughput] = 77;
	assert_string_equal(judged(&p, &j), "uncoalesced");
	assert_true(j.claims[0].gain > 2);
	lull_profile_release(&p);
}

/* A little unevenness of few warps that wait: the warps come first, the end is told besides. */
static void a_slight_tail_is_not_what_to_begin_with(void **state)
{
	struct lull_judgement j;
	struct lull_profile p;

	(void)state;
	km_run((struct kmodel){ 132, 128, 32, 204800, .loads = 2000, .depth = 500 }, &p);
	p.metrics[LULL_K_sm_active_cycles] = 0.79 * p.metrics[LULL_K_sm_active_max];
	assert_string_equal(judged(&p, &j), "low-occupancy");
	assert_string_equal(j.claims[1].id, "tail");
	p.metrics[LULL_K_sm_active_cycles] = 0.3 * p.metrics[LULL_K_sm_active_max];
	assert_string_equal(judged(&p, &j), "tail");
	lull_profile_release(&p);
}

/* A range has no shape; what it may lack is work. */
static void ranges_are_judged_without_a_shape(void **state)
{
	struct lull_judgement j;
	struct lull_profile p;

	(void)state;
	km_run((struct kmodel){ 132 * 64, 256, .loads = 16, .width = 4 }, &p);
	p.replay = LULL_REPLAY_RANGE;
	p.n_launches = p.n_launches_least = 5;
	p.launch = (struct lull_launch_row){ 0 };
	p.metrics[LULL_K_sm_active_max] = p.metrics[LULL_K_sm_cycles];
	assert_string_equal(judged(&p, &j), "memory-bound");
	p.metrics[LULL_K_sm_active_max] = 0.3 * p.metrics[LULL_K_sm_cycles];
	assert_string_equal(judged(&p, &j), "launch-overhead");
	assert_true(fabs(j.claims[0].gain - 1 / 0.3) < 0.01);
	lull_profile_release(&p);
}

/* Where only some waits were measured, the longest of them may not be the longest. */
static void the_longest_wait_is_only_named_if_it_is_known(void **state)
{
	struct lull_profile p;

	(void)state;
	lull_profile_init(&p);
	p.metrics[LULL_K_warp_latency] = 10;
	p.metrics[LULL_K_stall_barrier] = 1;
	p.metrics[LULL_K_stall_long_scoreboard] = 3;
	assert_int_equal(lull_stall_top(&p), -1);
	assert_true(fabs(lull_stall_share(&p, LULL_STALLED_long_scoreboard) - 0.3) < 1e-9);
	p.metrics[LULL_K_stall_long_scoreboard] = 6;
	assert_int_equal(lull_stall_top(&p), LULL_STALLED_long_scoreboard);
	lull_profile_release(&p);
}

/* All formulas of kvalues.def end, and nothing is made up from nothing. */
static void values_without_metrics_are_absent(void **state)
{
	struct lull_profile p;

	(void)state;
	lull_profile_init(&p);
	for (int i = 0; i < LULL_N_K; i++) {
		f64 value = lull_k_of(&p, (enum lull_k)i);

		if (!isnan(value) && i != LULL_K_blocks && i != LULL_K_block_threads)
			fail_msg("%s is %f", lull_k_infos[i].key, value);
	}
	lull_profile_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(streams_are_memory_bound),
		cmocka_unit_test(caches_and_the_host_are_named),
		cmocka_unit_test(pipes_are_named),
		cmocka_unit_test(products_are_tensor_bound),
		cmocka_unit_test(strided_accesses_are_uncoalesced),
		cmocka_unit_test(packed_and_shared_accesses_are_not_uncoalesced),
		cmocka_unit_test(bank_conflicts_of_all_degrees_are_found),
		cmocka_unit_test(divergence_of_all_degrees_is_found),
		cmocka_unit_test(atomics_on_one_address_are_found),
		cmocka_unit_test(spills_are_found),
		cmocka_unit_test(small_grids_are_found),
		cmocka_unit_test(uneven_ends_are_tails),
		cmocka_unit_test(tiny_kernels_pay_for_their_launch),
		cmocka_unit_test(few_warps_by_registers_or_shared_memory),
		cmocka_unit_test(dependent_loads_are_latency_bound),
		cmocka_unit_test(waits_at_barriers_are_found),
		cmocka_unit_test(without_counters_nothing_is_claimed_but_the_shape),
		cmocka_unit_test(every_metric_may_be_missing),
		cmocka_unit_test(shared_memory_limits_whatever_the_registers),
		cmocka_unit_test(guests_of_the_fp32_pipe_have_their_own_name),
		cmocka_unit_test(shared_memory_that_is_full_is_named),
		cmocka_unit_test(products_of_integers_fill_half_a_pipe),
		cmocka_unit_test(hits_of_stores_excuse_nothing),
		cmocka_unit_test(a_slight_tail_is_not_what_to_begin_with),
		cmocka_unit_test(ranges_are_judged_without_a_shape),
		cmocka_unit_test(the_longest_wait_is_only_named_if_it_is_known),
		cmocka_unit_test(values_without_metrics_are_absent),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
