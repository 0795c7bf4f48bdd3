/*
 * Before and after: kernels lined up by name, and the sentence that says why the time changed.
 */
#include "unit/unit.h"

#include "counter/change.h"
#include "counter/roofline.h"
#include "unit/kmodel.h"

static void add(struct lull_profiles *to, const char *name, struct kmodel m)
{
	struct lull_profile *p = lull_vec_push(&to->items);

	km_run(m, p);
	p->name = name;
}

static void begin(struct lull_profiles *to)
{
	lull_vec_init(&to->items, sizeof(struct lull_profile));
	to->n_left = 0;
}

static void less_work_is_the_reason(void **state)
{
	struct lull_profiles before, after;
	const struct lull_change *c;
	struct lull_vec changes;

	(void)state;
	begin(&before);
	begin(&after);
	add(&before, "tile(float*, int)",
	    (struct kmodel){ 1 << 18, 256, .loads = 4, .stride = 32 });
	add(&after, "tile(float *, int)", (struct kmodel){ 1 << 18, 256, .loads = 4 });
	add(&before, "same(int)", (struct kmodel){ 2112, 256, .fp32 = 9000 });
	add(&after, "same(int)", (struct kmodel){ 2112, 256, .fp32 = 9000 });
	add(&after, "fresh()", (struct kmodel){ 2112, 256, .fp32 = 9000 });
	lull_changes_find(&changes, &before, &after);
	c = changes.at;
	assert_int_equal(changes.n, 3);
	assert_string_equal(c[0].name, "tile(float*, int)");
	assert_true(c[0].is_changed);
	assert_non_null(strstr(c[0].why, "faster, because fewer bytes of DRAM move"));
	assert_string_equal(c[0].verdict[0], "uncoalesced");
	assert_string_equal(c[0].verdict[1], "memory-bound");
	assert_string_equal(c[1].why, "it takes as long as before");
	assert_false(c[1].is_changed);
	assert_string_equal(c[2].why, "only measured after");
	assert_null(c[2].verdict[0]);
	lull_vec_release(&changes);
	/* The other way round it is slower, and nothing is called a reason. */
	lull_changes_find(&changes, &after, &before);
	c = changes.at;
	assert_non_null(strstr(c[0].why, "slower; DRAM bytes: "));
	assert_null(strstr(c[0].why, "because"));
	lull_vec_release(&changes);
	lull_profiles_release(&before);
	lull_profiles_release(&after);
}

static void a_busier_chip_is_the_reason_where_the_work_is_the_same(void **state)
{
	struct lull_profiles before, after;
	const struct lull_change *c;
	struct lull_vec changes;

	(void)state;
	begin(&before);
	begin(&after);
	add(&before, "sum", (struct kmodel){ 16, 256, .fp32 = 80000 });
	add(&after, "sum", (struct kmodel){ 16 * 16, 256, .fp32 = 5000 });
	lull_changes_find(&changes, &before, &after);
	c = changes.at;
	assert_non_null(strstr(c[0].why, "faster, because "));
	assert_non_null(strstr(c[0].why, "the multiprocessors"));
	assert_string_equal(c[0].verdict[0], "small-grid");
	lull_vec_release(&changes);
	lull_profiles_release(&before);
	lull_profiles_release(&after);
}

/* The product of 8192 x 8192 in bf16 on an H200: counters as they were read. */
static void a_product_lies_under_the_ceiling_of_its_type(void **state)
{
	struct lull_roofline r;
	struct lull_profile p;

	(void)state;
	lull_profile_init(&p);
	p.dur_ns = 1357088;
	p.device.n_sms = 132;
	for (int i = LULL_K_op_fadd; i <= LULL_K_op_hfma; i++)
		p.metrics[i] = 0;
	p.metrics[LULL_K_inst_executed] = 1.83e8;
	p.metrics[LULL_K_tensor_bf16] = 1116691496960.0;
	p.metrics[LULL_K_peak_tensor_bf16] = 1081344;
	p.metrics[LULL_K_peak_ffma] = 16896;
	p.metrics[LULL_K_sm_clock] = 1.628e9;
	p.metrics[LULL_K_dram_bytes] = 1.4015e9;
	p.metrics[LULL_K_dram_clock] = 3.199e9;
	p.metrics[LULL_K_peak_dram] = 1504;
	lull_roofline_of(&r, &p);
	assert_int_equal(r.type, LULL_CEILING_tensor_bf16);
	/* 132 multiprocessors, 4096 operations a cycle of dense operands. */
	assert_true(fabs(r.ceiling[r.type] / (132 * 4096 * 1.628e9) - 1) < 1e-3);
	assert_true(r.rate / r.roof[LULL_SLOPE_dram] > 0.9 && r.rate < r.roof[LULL_SLOPE_dram]);
	assert_true(fabs(r.intensity[LULL_SLOPE_dram] - 796.8) < 1);
	lull_profile_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(less_work_is_the_reason),
		cmocka_unit_test(a_busier_chip_is_the_reason_where_the_work_is_the_same),
		cmocka_unit_test(a_product_lies_under_the_ceiling_of_its_type),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
