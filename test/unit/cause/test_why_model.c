/*
 * The parts below `lull why`: sorting runs, periods, chains, steps as windows, the split of time.
 */
#include "unit/report.h"

#include "cause/why.h"
#include "model/period.h"
#include "model/runsort.h"

struct record {
	u64 key;
	u32 was;
	u32 filler;
};

static void runs_are_merged_and_equal_keys_keep_their_order(void **state)
{
	struct record at[1000];
	u32 seed = 7;

	(void)state;
	for (u32 i = 0; i < 1000; i++) {
		seed = seed * 1664525 + 1013904223;
		at[i] = (struct record){ i % 37 ? (seed >> 8) % 50 : 3, i, 0 };
	}
	lull_runsort(at, 1000, sizeof(*at));
	for (u32 i = 1; i < 1000; i++) {
		assert_true(at[i - 1].key <= at[i].key);
		assert_true(at[i - 1].key < at[i].key || at[i - 1].was < at[i].was);
	}
	lull_runsort(at, 0, sizeof(*at));
	lull_runsort(at, 1, sizeof(*at));
}

static void blocks_in_order_stay_so_while_their_lanes_are_merged(void **state)
{
	struct record at[600];

	(void)state;
	/* Six blocks of two lanes; the last one begins before the one before it ends. */
	for (u32 i = 0; i < 600; i++) {
		u32 block = i / 100, lane = i % 100 / 50, row = i % 50;

		at[i] = (struct record){ block * (block == 5 ? 190u : 200u) + row * 4 + lane, i,
					 0 };
	}
	lull_runsort(at, 600, sizeof(*at));
	for (u32 i = 1; i < 600; i++)
		assert_true(at[i - 1].key < at[i].key ||
			    (at[i - 1].key == at[i].key && at[i - 1].was < at[i].was));
}

/* ---- causes ---- */

/* A piece of any kind, as far as one number can say. */
static struct lull_claim random_claim(const struct lull_subject *s, u32 place, u64 *seed)
{
	struct lull_claim c = { .subject = s, .place = (enum lull_place)place };
	u64 bits = *seed = *seed * 6364136223846793005u + 1442695040888963407u;

	bits >>= 20;
	c.to_ns = bits % 3 ? 500 : 50000000;
	c.gap_ns = bits % 5 ? 50000000 : 500;
	c.event = LULL_NONE;
	c.inside = (u32)(bits >> 7) & (u32)(bits >> 11);
	c.pause = bits & 1 ? LULL_NO_PAUSE : (u8)(bits >> 1 & 3);
	c.stall = bits & 4 ? 0 : (u8)(bits >> 3 & 3);
	c.is_own = bits >> 5 & 1;
	c.is_seen = bits >> 6 & 1;
	c.is_moving = bits >> 8 & 1;
	c.is_lazy = bits >> 9 & 1;
	c.is_late = place == LULL_PLACE_COLLECTIVE && (bits >> 10 & 1);
	c.leads_in = bits >> 12 & 1;
	c.came_out = bits >> 13 & 1;
	c.marks = (u8)(bits >> 14);
	return c;
}

static void causes_claim_nothing_but_at_the_places_they_name(void **state)
{
	static struct lull_node nodes[1];
	static struct lull_unit units[1];
	struct lull_copy copy = { .size_bytes = 1u << 30, .direction = LULL_COPY_IN };
	struct lull_subject s = { .chain = { .nodes = nodes, .n = 1 },
				  .units = { .at = units, .n = 1 } };
	u64 seed = 1, n_claimed = 0;

	(void)state;
	nodes[0].unit = LULL_NONE;
	lull_vec_init(&s.units.copies, sizeof(copy));
	lull_vec_add(&s.units.copies, &copy, 1);
	lull_causes_by_place(s.by_place);
	for (u32 i = 0; i < 20000; i++) {
		struct lull_claim c = random_claim(&s, i % (LULL_PLACE_LOST + 1), &seed);
		int first = 0;

		nodes[0].kind = (u8)(seed >> 33 & 7);
		nodes[0].flags = (u8)(seed >> 40);
		((struct lull_copy *)s.units.copies.at)->src_kind = (u8)(seed >> 50 & 7);
		while (!lull_causes[first]->claim || !lull_causes[first]->claim(&c))
			first++;
		assert_int_equal(lull_cause_of(&c), first);
		n_claimed += first != (int)lull_cause_default(LULL_CAUSE_BLIND);
	}
	assert_true(n_claimed > 10000);
	lull_vec_release(&s.units.copies);
}

/* ---- periods ---- */

static size_t n_pieces(const char *text, size_t *first)
{
	u32 symbols[512];
	size_t n = strlen(text), found;
	struct lull_vec cuts;

	for (size_t i = 0; i < n; i++)
		symbols[i] = (u32)(text[i] - 'a');
	lull_vec_init(&cuts, sizeof(size_t));
	lull_period_find(symbols, n, 26, &cuts);
	found = cuts.n ? cuts.n - 1 : 0;
	*first = cuts.n ? *(size_t *)cuts.at : 0;
	lull_vec_release(&cuts);
	return found;
}

static void the_step_is_found_and_not_the_layer(void **state)
{
	size_t first;

	(void)state;
	/* Five layers of x and y, a loss, an update; three from loss to loss. */
	assert_int_equal(n_pieces("xyxyxyxyxyloxyxyxyxyxyloxyxyxyxyxyloxyxyxyxyxylo", &first), 3);
}

static void a_beginning_of_its_own_is_left_out(void **state)
{
	size_t first;

	(void)state;
	assert_int_equal(n_pieces("qwertabcabcabcabcabcabcabcabc", &first), 8);
	assert_int_equal(first, 5);
}

static void what_does_not_repeat_has_no_period(void **state)
{
	size_t first;

	(void)state;
	assert_int_equal(n_pieces("abcdefghijklmnop", &first), 0);
	assert_int_equal(n_pieces("", &first), 0);
	assert_int_equal(n_pieces("abab", &first), 0); /* two may be chance */
}

static void a_loop_inside_the_step_is_not_the_step(void **state)
{
	size_t first, n;

	(void)state;
	/* Twelve rounds of an update by tensor, u and v, after a long forward pass. */
	n = n_pieces("abcdefghijuvuvuvuvuvuvuvuvuvuvuvuvabcdefghijuvuvuvuvuvuvuvuvuvuvuvuv"
		     "abcdefghijuvuvuvuvuvuvuvuvuvuvuvuvabcdefghijuvuvuvuvuvuvuvuvuvuvuvuv",
		     &first);
	assert_int_equal(n, 4);
}

static void one_lost_event_does_not_hide_the_period(void **state)
{
	size_t first;

	(void)state;
	assert_int_equal(n_pieces("abcdeabcdeabcdeabceabcdeabcdeabcdeabcdeabcdeabcde", &first), 10);
}

/* ---- subjects ---- */

#define HEAD                                           \
	"process pid=10 has_agent=1\n"                 \
	"device process=1 device_id=0 name=a\n"        \
	"lane kind=1 process=1 tid=10 name=main\n"     \
	"lane kind=2 process=1 device=1 stream_id=7\n" \
	"lane kind=2 process=1 device=1 stream_id=8\n" \
	"lane kind=1 process=1 tid=11 name=second\n"   \
	"launch name=gemm\n"                           \
	"label name=step_1\n"                          \
	"label name=step_2\n"                          \
	"label name=step_3\n"                          \
	"label name=data_load\n"

static struct lull_reader *open_text(const struct report_dir *d, const char *text)
{
	struct lull_reader *r;
	struct lull_err err;

	report_ok(lull_text_write(text, d->file, &err), &err);
	report_ok(lull_reader_open(&r, d->file, &err), &err);
	return r;
}

/* The subject of process 1 on device 1; both streams are its. */
static void load(struct lull_subject *s, struct lull_reader *r)
{
	const u32 tracks[] = { 0, 0, 1, 1, 0 };

	lull_subject_init(s, r, 1, 1, tracks, 0);
	lull_subject_slice(s);
	lull_subject_attribute(s);
}

static void unload(const struct report_dir *d, struct lull_subject *s, struct lull_reader *r)
{
	lull_subject_release(s);
	lull_reader_close(r);
	unlink(d->file);
}

/* A host that runs ahead: calls of three steps in 30 us, work of 300 us. */
#define AHEAD                                                                                   \
	HEAD "range start=0us dur=10us lane=1 label=1\n"                                        \
	     "range start=10us dur=10us lane=1 label=2\n"                                       \
	     "range start=20us dur=10us lane=1 label=3\n"                                       \
	     "cuda_call start=1us dur=5us lane=1 name=cudaLaunchKernel correlation=1\n"         \
	     "cuda_call start=11us dur=5us lane=1 name=cudaLaunchKernel correlation=2\n"        \
	     "cuda_call start=21us dur=5us lane=1 name=cudaLaunchKernel correlation=3\n"        \
	     "cuda_call start=35us dur=300us lane=1 name=cudaDeviceSynchronize correlation=4\n" \
	     "kernel start=10us dur=100us lane=2 launch=1 correlation=1 process=1\n"            \
	     "kernel start=111us dur=100us lane=2 launch=1 correlation=2 process=1\n"           \
	     "kernel start=212us dur=100us lane=2 launch=1 correlation=3 process=1\n"

static void a_step_is_a_window_of_the_device(void **state)
{
	struct lull_reader *r = open_text(*state, AHEAD);
	struct lull_subject s;

	load(&s, r);
	assert_int_equal(s.rounds.all.n, 3);
	assert_int_equal(s.rounds.source, LULL_ROUNDS_RANGE);
	assert_int_equal(s.rounds.first_steady, 1);
	assert_int_equal(lull_round_begin_ns(&s.rounds, 1), 110000);
	assert_int_equal(lull_round_end_ns(&s.rounds, 1), 211000);
	assert_int_equal(lull_round_end_ns(&s.rounds, 2), 312000);
	/* The wait after the last step is of no step. */
	assert_int_equal(s.chain.nodes[3].round, LULL_NONE);
	assert_int_equal(s.window_ns, 202000);
	assert_int_equal(s.split_ns[LULL_SPLIT_COMPUTE], 200000);
	assert_int_equal(s.cost_ns[LULL_CAUSE_IX_kernel_gap], 2000);
	unload(*state, &s, r);
}

static void a_call_inside_a_call_is_the_same_call(void **state)
{
	struct lull_reader *r =
		open_text(*state, HEAD
			  "cuda_call start=1us dur=9us lane=1 name=cudaLaunchKernel correlation=1\n"
			  "cuda_call start=3us dur=5us lane=1 name=cuLaunchKernel correlation=2\n"
			  "cuda_call start=12us dur=5us lane=1 name=cudaMalloc correlation=3\n"
			  "kernel start=20us dur=5us lane=2 launch=1 correlation=2 process=1\n"
			  "kernel start=26us dur=5us lane=2 launch=1 correlation=9 process=1\n");
	struct lull_subject s;

	load(&s, r);
	assert_int_equal(s.chain.n, 2);
	assert_int_equal(s.units.at[0].node, 0);
	assert_int_equal(s.units.at[1].node, LULL_NONE);
	assert_int_equal(s.chain.n_units_linked, 1);
	assert_int_equal(s.chain.nodes[1].kind, LULL_KIND_OF_ALLOC);
	unload(*state, &s, r);
}

static void threads_that_take_turns_are_one_chain(void **state)
{
	struct lull_reader *r = open_text(
		*state,
		HEAD "cuda_call start=1us dur=9us lane=1 name=cudaLaunchKernel correlation=1\n"
		     "cuda_call start=20us dur=9us lane=4 name=cudaLaunchKernel correlation=2\n"
		     "cuda_call start=40us dur=9us lane=1 name=cudaLaunchKernel correlation=3\n"
		     "kernel start=15us dur=2us lane=2 launch=1 correlation=1 process=1\n"
		     "kernel start=35us dur=2us lane=2 launch=1 correlation=2 process=1\n"
		     "kernel start=55us dur=2us lane=2 launch=1 correlation=3 process=1\n");
	struct lull_subject s;

	load(&s, r);
	assert_int_equal(s.chain.n_chains, 1);
	assert_int_equal(lull_chain_gap_ns(&s.chain, 1), 10000);
	assert_int_equal(lull_chain_find(&s.chain, 0, 10000), 1);
	assert_int_equal(lull_chain_find(&s.chain, 0, 9999), 0);
	unload(*state, &s, r);
}

static void threads_that_overlap_have_chains_of_their_own(void **state)
{
	struct lull_reader *r = open_text(
		*state,
		HEAD "cuda_call start=1us dur=30us lane=1 name=cudaLaunchKernel correlation=1\n"
		     "cuda_call start=10us dur=9us lane=4 name=cudaLaunchKernel correlation=2\n"
		     "kernel start=15us dur=2us lane=2 launch=1 correlation=1 process=1\n"
		     "kernel start=35us dur=2us lane=3 launch=1 correlation=2 process=1\n");
	struct lull_subject s;

	load(&s, r);
	assert_int_equal(s.chain.n_chains, 2);
	assert_int_equal(s.chain.nodes[1].begin_ns, 10000);
	unload(*state, &s, r);
}

static void a_thread_that_only_waits_is_in_no_chain(void **state)
{
	struct lull_reader *r = open_text(
		*state, HEAD
		"cuda_call start=1us dur=9us lane=1 name=cudaLaunchKernel correlation=1\n"
		"cuda_call start=2us dur=90us lane=4 name=cudaStreamSynchronize correlation=2\n"
		"kernel start=15us dur=2us lane=2 launch=1 correlation=1 process=1\n");
	struct lull_subject s;

	load(&s, r);
	assert_int_equal(s.chain.n, 1);
	unload(*state, &s, r);
}

/* Steps of 100 us by the table; copies on two streams, a kernel over part of them. */
static void copies_at_once_count_once(void **state)
{
	struct lull_reader *r = open_text(
		*state,
		HEAD "step start=0us dur=100us lane=1 number=0\n"
		     "step start=100us dur=100us lane=1 number=1\n"
		     "cuda_call start=1us dur=5us lane=1 name=cudaLaunchKernel correlation=1\n"
		     "cuda_call start=101us dur=5us lane=1 name=cudaMemcpyAsync correlation=2\n"
		     "cuda_call start=107us dur=5us lane=1 name=cudaMemcpyAsync correlation=3\n"
		     "cuda_call start=113us dur=5us lane=1 name=cudaLaunchKernel correlation=4\n"
		     "kernel start=10us dur=90us lane=2 launch=1 correlation=1 process=1\n"
		     "memcpy start=110us dur=40us lane=2 size_bytes=9000 correlation=2 copy_kind=1 "
		     "src_kind=2 "
		     "dst_kind=3 process=1\n"
		     "memcpy start=130us dur=40us lane=3 size_bytes=9000 correlation=3 copy_kind=1 "
		     "src_kind=2 "
		     "dst_kind=3 process=1\n"
		     "kernel start=160us dur=40us lane=2 launch=1 correlation=4 process=1\n");
	struct lull_subject s;

	load(&s, r);
	assert_int_equal(s.window_ns, 100000);
	assert_int_equal(s.split_ns[LULL_SPLIT_COMPUTE], 40000);
	assert_int_equal(s.split_ns[LULL_SPLIT_COPY], 50000);
	assert_int_equal(s.split_ns[LULL_SPLIT_IDLE], 10000);
	assert_int_equal(s.cost_ns[LULL_CAUSE_IX_exposed_copy], 50000);
	assert_int_equal(s.cost_ns[LULL_CAUSE_IX_launch_bound], 10000);
	unload(*state, &s, r);
}

static void ranges_and_operators_make_one_line_of_time(void **state)
{
	struct lull_reader *r = open_text(
		*state,
		HEAD "op_label name=aten::mm kind=1\n"
		     "range start=10us dur=90us lane=1 label=4\n"
		     "op start=20us dur=30us lane=1 label=1\n"
		     "oscall start=30us dur=10us lane=1 name=read\n"
		     "cuda_call start=25us dur=2us lane=1 name=cudaLaunchKernel correlation=1\n"
		     "kernel start=40us dur=2us lane=2 launch=1 correlation=1 process=1\n");
	const struct lull_host_event *events;
	struct lull_subject s;
	u32 at;

	load(&s, r);
	events = s.host.events.at;
	assert_int_equal(lull_host_at(&s.host, 1, 5000), LULL_NONE);
	at = lull_host_at(&s.host, 1, 35000);
	assert_string_equal(lull_host_name(&events[at], r), "read");
	assert_true(events[at].inside & LULL_IN_LOADER);
	assert_true(events[at].inside & LULL_IN_CALLS);
	assert_true(events[at].inside & LULL_IN_READ);
	at = lull_host_at(&s.host, 1, 60000);
	assert_string_equal(lull_host_name(&events[at], r), "data_load");
	assert_int_equal(events[at].n_launches, 1);
	assert_false(events[at].inside & LULL_IN_CALLS);
	assert_int_equal(lull_host_at(&s.host, 1, 100000), LULL_NONE);
	assert_int_equal(lull_host_at(&s.host, 4, 60000), LULL_NONE);
	unload(*state, &s, r);
}

/* ---- names ---- */

static void names_are_told_apart(void **state)
{
	(void)state;
	assert_int_equal(lull_call_kind_of("cudaEventSynchronize"), LULL_KIND_OF_SYNC);
	assert_int_equal(lull_call_kind_of("cudaEventRecord"), LULL_KIND_OF_EVENT);
	assert_int_equal(lull_call_kind_of("cuMemcpyHtoDAsync_v2"), LULL_KIND_OF_COPY);
	assert_int_equal(lull_call_kind_of("cudaGraphLaunch"), LULL_KIND_OF_LAUNCH);
	assert_int_equal(lull_call_kind_of("cudaFreeAsync"), LULL_KIND_OF_ALLOC);
	assert_int_equal(lull_call_kind_of("cuModuleLoadData"), LULL_KIND_OF_MODULE);
	assert_int_equal(lull_call_kind_of("cudaGetDevice"), LULL_KIND_OF_OTHER);
	assert_int_equal(lull_kernel_class_of("ncclDevKernel_AllReduce"), LULL_KERNEL_COLLECTIVE);
	/* A lambda is no LAMB. */
	assert_int_equal(lull_kernel_class_of("vectorized_elementwise_kernel<{lambda()#2}>"),
			 LULL_KERNEL_ELEMENTWISE);
	assert_int_equal(lull_kernel_class_of("nvjet_sm90_tst"), LULL_KERNEL_MATMUL);
	assert_int_equal(lull_kernel_class_of("multi_tensor_apply_kernel<Adam>"),
			 LULL_KERNEL_OPTIMIZER);
	assert_true(lull_name_is_step("step_12"));
	assert_true(lull_name_is_step("ProfilerStep#3"));
	assert_true(lull_name_is_step("iteration 7"));
	assert_false(lull_name_is_step("optimizer_step"));
	assert_false(lull_name_is_step("steps per second"));
	assert_true(lull_name_bits("enumerate(DataLoader)#_next_data") & LULL_IN_LOADER);
	assert_true(lull_name_bits("save_checkpoint") & LULL_IN_STORAGE);
	assert_true(lull_name_bits("upload_checkpoint") & LULL_IN_STORAGE);
	assert_true(lull_name_bits("json.dump") & LULL_IN_STORAGE);
	assert_int_equal(lull_name_bits("json.dumps"), 0);
	assert_true(lull_name_bits("dumps_of_weights") & LULL_IN_STORAGE);
	assert_int_equal(lull_name_bits("checkpoint.load"), 0);
	assert_int_equal(lull_name_bits("restore_snapshot"), 0);
	assert_int_equal(lull_name_bits("metrics"), 0);
	assert_int_equal(lull_oscall_bits("fsync"), LULL_IN_WRITE);
	assert_int_equal(lull_oscall_bits("puts"), LULL_IN_WRITE);
	assert_int_equal(lull_oscall_bits("sendmsg"), LULL_IN_WRITE);
	assert_int_equal(lull_oscall_bits("msgsnd"), LULL_IN_WRITE);
	assert_int_equal(lull_oscall_bits("copy_file_range"), LULL_IN_WRITE);
	assert_int_equal(lull_oscall_bits("waitpid"), LULL_IN_WAIT);
	assert_int_equal(lull_oscall_bits("sigtimedwait"), LULL_IN_WAIT);
	assert_int_equal(lull_oscall_bits("pthread_create"), 0);
	assert_int_equal(lull_oscall_bits("poll"), LULL_IN_WAIT);
	assert_int_equal(lull_oscall_bits("read"), LULL_IN_READ);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs_are_merged_and_equal_keys_keep_their_order),
		cmocka_unit_test(blocks_in_order_stay_so_while_their_lanes_are_merged),
		cmocka_unit_test(causes_claim_nothing_but_at_the_places_they_name),
		cmocka_unit_test(the_step_is_found_and_not_the_layer),
		cmocka_unit_test(a_beginning_of_its_own_is_left_out),
		cmocka_unit_test(what_does_not_repeat_has_no_period),
		cmocka_unit_test(a_loop_inside_the_step_is_not_the_step),
		cmocka_unit_test(one_lost_event_does_not_hide_the_period),
		cmocka_unit_test(a_step_is_a_window_of_the_device),
		cmocka_unit_test(a_call_inside_a_call_is_the_same_call),
		cmocka_unit_test(threads_that_take_turns_are_one_chain),
		cmocka_unit_test(threads_that_overlap_have_chains_of_their_own),
		cmocka_unit_test(a_thread_that_only_waits_is_in_no_chain),
		cmocka_unit_test(copies_at_once_count_once),
		cmocka_unit_test(ranges_and_operators_make_one_line_of_time),
		cmocka_unit_test(names_are_told_apart),
	};

	return cmocka_run_group_tests(tests, report_set_up, report_tear_down);
}
