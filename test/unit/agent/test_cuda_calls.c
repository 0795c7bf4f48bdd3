/*
 * CUDA calls as callbacks and wrappers tell of them: through the runtime, in the driver alone, with
 * recordings and captures that begin and end in the middle of it.
 */
#include "unit/unit.h"

#include <stdio.h>
#include <string.h>

/* The agent is linked into a library of its own; these parts of it are tested without the rest. */
#include "agent/cuda/cuda_attach.c"
#include "agent/cuda/cuda_calls.c"

enum { DRIVER = LULL_CUPTI_DOMAIN_DRIVER, RUNTIME = LULL_CUPTI_DOMAIN_RUNTIME };
enum { LAUNCH = 1, BEGIN_CAPTURE, END_CAPTURE, SYNCHRONIZE, LOAD, COPY, N_NAMES };
enum { ENTER, EXIT };

/* What the world around them is. */
static struct lull_control control;
static struct lull_image image;
static struct lull_thread thread;
static struct lull_slot slot;
static struct lull_chunk chunk;
static u8 room[1 << 16];
static bool has_wrappers, is_wanted[3][N_NAMES];
static u64 python_stack; /* where the thread is, 0 = in no Python */
static u32 n_looks;	 /* how often that was asked */

struct lull_real lull_real = { .syscall = syscall };
struct lull_agent lull_agent = { .control = &control, .image = &image, .has_session = true };
struct lull_cupti lull_cupti;
__thread struct lull_thread *lull_self;
_Atomic u32 lull_cuda_has_neighbour;

enum lull_cuda_xla lull_cuda_xla(void)
{
	return LULL_CUDA_XLA_NONE;
}

struct lull_thread *lull_thread_attach(void)
{
	thread = (struct lull_thread){ .magic = LULL_WIRE_MAGIC, .slot = &slot };
	lull_self = &thread;
	return &thread;
}

void lull_thread_sync(struct lull_thread *t, u32 record)
{
	memset(t->seen, 0, sizeof(t->seen));
	t->record = record;
}

bool lull_stream_refill(struct lull_thread *t, u32 level, u32 size_bytes)
{
	(void)size_bytes;
	t->stream[level & 1] = (struct lull_ring_stream){ room, room + sizeof(room), room, &chunk };
	return true;
}

bool lull_define_string(struct lull_thread *t, u64 hash, const char *text, size_t len)
{
	(void)t, (void)hash, (void)text, (void)len;
	return true;
}

int lull_cuda_want_call(u32 domain, u32 cbid, u32 who, bool is_on)
{
	(void)who;
	is_wanted[domain][cbid] = is_on;
	return 0;
}

bool lull_cuda_is_wrapped_call(const char *name)
{
	return has_wrappers && strcmp(name, "cudaLaunchKernel_v7000") == 0;
}

bool lull_cuda_is_mine(void)
{
	return true;
}

bool lull_cuda_is_over(void)
{
	return true;
}

bool lull_cupti_load(void)
{
	return true;
}

const char *lull_cupti_missing(void)
{
	return "";
}

/* What is not asked about here. */
#define NOTHING(name, ...)     \
	void name(__VA_ARGS__) \
	{                      \
	}
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunused-parameter"
NOTHING(lull_cuda_wrap, bool is_again)
NOTHING(lull_cuda_wrap_on, bool is_on)
NOTHING(lull_cuda_waited, struct lull_thread *t, u32 wait, const void *data, u64 start, u64 ticks)
NOTHING(lull_cuda_share_called, u32 domain, u32 cbid, const void *data)
NOTHING(lull_cuda_share_reset, void)
NOTHING(lull_cuda_resource, u32 cbid, const void *data)
NOTHING(lull_cuda_requested, u8 **buffer, size_t *size_bytes, size_t *max_records)
NOTHING(lull_cuda_forget_out, void)
NOTHING(lull_cuda_completed, void *context, u32 stream, u8 *buffer, size_t size, size_t valid)
NOTHING(lull_cuda_zeroed, void)
NOTHING(lull_cuda_stock, void)
NOTHING(lull_cuda_rouse, void)
NOTHING(lull_capture_by_call, bool is_start)
NOTHING(lull_kernel_called, void *user, u32 domain, u32 cbid, const void *data)
NOTHING(lull_stack_emit, struct lull_thread *t, const struct lull_event *e,
	const struct lull_wire_regs *regs, u32 max_bytes)
u64 lull_python_stack_anytime(struct lull_thread *t)
{
	(void)t;
	n_looks++;
	return python_stack;
}
bool lull_cuda_share_is_used(void)
{
	return false;
}
bool lull_launch_wait(void)
{
	return true;
}
int lull_cuda_want_kind(u32 kind, u32 who, bool is_on)
{
	return 0;
}
u32 lull_cuda_wait_of(const char *name)
{
	return 0;
}
int finalize_nothing(void);
int finalize_nothing(void)
{
	return 0;
}
static int unsubscribe_nothing(void *subscriber)
{
	return 0;
}
#pragma GCC diagnostic pop

static int name_of_call(u32 domain, u32 cbid, const char **name)
{
	static const char *const all[3][N_NAMES] = {
		[DRIVER] = { [LAUNCH] = "cuLaunchKernel",
			     [BEGIN_CAPTURE] = "cuStreamBeginCapture_v2",
			     [END_CAPTURE] = "cuStreamEndCapture",
			     [LOAD] = "cuLibraryLoadData" },
		[RUNTIME] = { [LAUNCH] = "cudaLaunchKernel_v7000",
			      [BEGIN_CAPTURE] = "cudaStreamBeginCapture_v10000",
			      [END_CAPTURE] = "cudaStreamEndCapture_v10000",
			      [SYNCHRONIZE] = "cudaStreamSynchronize_v3020",
			      [COPY] = "cudaMemcpy_v3020" },
	};

	*name = cbid < N_NAMES ? all[domain][cbid] : NULL;
	return *name ? 0 : 1;
}

/* CUPTI calls back. */
static void call_back(u32 domain, u32 cbid, int end, u32 correlation)
{
	static u32 result;
	struct {
		u32 site;
		const char *function;
		const void *params;
		u32 *result;
		const char *symbol;
		void *context;
		u32 context_id;
		u64 *word;
		u32 correlation;
	} data = { .site = end == EXIT ? LULL_CUPTI_SITE_EXIT : LULL_CUPTI_SITE_ENTER,
		   .result = &result,
		   .correlation = correlation };

	assert_int_equal(lull_cupti_call_correlation(&data), correlation);
	called_plain(NULL, domain, cbid, &data);
}

/* A call that begins and ends. */
static void whole(u32 domain, u32 cbid, u32 correlation)
{
	call_back(domain, cbid, ENTER, correlation);
	call_back(domain, cbid, EXIT, correlation);
}

/* A call of the runtime with its like in the driver inside. */
static void both(u32 cbid, u32 correlation)
{
	call_back(RUNTIME, cbid, ENTER, correlation);
	whole(DRIVER, cbid, correlation);
	call_back(RUNTIME, cbid, EXIT, correlation);
}

static void record(u32 number)
{
	if (number)
		atomic_store(&control.last_record, number);
	atomic_store(&control.record, number);
}

static const struct lull_wire_cuda_call *events(void)
{
	return (const void *)room;
}

static size_t n_events(void)
{
	return (size_t)(thread.stream[0].at - thread.stream[0].base) / sizeof(*events());
}

static void set_up(void)
{
	memset(&control, 0, sizeof(control));
	memset(&at, 0, sizeof(at));
	control.tick_hz = 1000000000;
	lull_cupti.version = 130000;
	lull_cupti.cuptiGetCallbackName = name_of_call;
	lull_cupti.cuptiFinalize = finalize_nothing;
	lull_cupti.cuptiUnsubscribe = unsubscribe_nothing;
	has_wrappers = false;
	python_stack = n_looks = 0;
	memset(was_long, 0, sizeof(was_long));
	lull_thread_attach();
	lull_stream_refill(&thread, 0, 0);
	lull_cuda_watch_calls(true);
}

static void the_runtime_stands_for_the_driver(void **state)
{
	(void)state;
	set_up();
	record(1);
	both(LAUNCH, 7);
	whole(DRIVER, LAUNCH, 8);
	assert_int_equal(n_events(), 2);
	assert_int_equal(events()[0].head.a, RUNTIME);
	assert_int_equal(events()[0].correlation, 7);
	assert_int_equal(events()[1].head.a, DRIVER);
	assert_int_equal(events()[1].correlation, 8);
}

static void a_call_whose_end_is_not_seen_blocks_nothing(void **state)
{
	(void)state;
	set_up();
	record(5);
	call_back(RUNTIME, SYNCHRONIZE, ENTER, 10);
	record(0);
	lull_cuda_watch_calls(false);
	record(6);
	lull_cuda_watch_calls(true);
	for (u32 i = 0; i < 100; i++)
		whole(DRIVER, LAUNCH, 20 + i);
	assert_int_equal(n_events(), 100);
}

/* The stack of a call, 0 = it has none. While it lasts the thread seems to go elsewhere. */
static u64 stack_of(u32 cbid, bool is_long, u64 stack)
{
	const struct lull_wire_cuda_call *e = (const void *)thread.stream[0].at;

	control.tick_hz = is_long ? 1000000 : 1ULL << 62;
	python_stack = stack;
	call_back(RUNTIME, cbid, ENTER, 3);
	thread.cuda.since -= is_long ? 1000 : 0;
	python_stack += 1000;
	call_back(RUNTIME, cbid, EXIT, 3);
	assert_ptr_not_equal(e, thread.stream[0].at);
	return e->head.a & LULL_HAS_PYSTACK ? *(const u64 *)(e + 1) : 0;
}

static void the_line_of_a_wait_is_found_while_the_device_works(void **state)
{
	(void)state;
	set_up();
	record(1);
	/* The first one, when it has ended; later ones, when they begin. */
	assert_int_equal(stack_of(SYNCHRONIZE, true, 1), 1001);
	assert_int_equal(stack_of(SYNCHRONIZE, true, 2), 2);
	assert_int_equal(n_looks, 2);
	/* A short one has none, and leaves none to others. */
	assert_int_equal(stack_of(SYNCHRONIZE, false, 3), 0);
	assert_int_equal(stack_of(COPY, true, 4), 1004);
	assert_int_equal(n_looks, 4);
	/* After a short one nothing is expected. */
	assert_int_equal(stack_of(SYNCHRONIZE, false, 5), 0);
	assert_int_equal(n_looks, 4);
}

static void captures_are_counted_evenly(void **state)
{
	(void)state;
	set_up();
	both(BEGIN_CAPTURE, 1); /* while nothing is recorded */
	record(7);
	both(END_CAPTURE, 2);
	assert_int_equal(atomic_load(&at.n_captures), 0);
	both(BEGIN_CAPTURE, 3);
	both(BEGIN_CAPTURE, 4);
	record(0);
	both(END_CAPTURE, 5);
	assert_int_not_equal(atomic_load(&at.n_captures), 0);
	both(END_CAPTURE, 6);
	assert_int_equal(atomic_load(&at.n_captures), 0);
}

/* What a wrapper does, and what CUPTI tells meanwhile; the launch has this number. */
static void wrapped(u32 correlation, bool has_callback)
{
	struct lull_text name = lull_text("cudaLaunchKernel", 16);
	struct lull_thread *t = lull_cuda_launch_begins();

	if (has_callback)
		call_back(RUNTIME, LAUNCH, ENTER, correlation);
	whole(DRIVER, LOAD, correlation - 1); /* the kernel's code, the first time */
	whole(DRIVER, LAUNCH, correlation);
	if (has_callback)
		call_back(RUNTIME, LAUNCH, EXIT, correlation);
	lull_cuda_launch_ends(t, &name, 3);
}

static void a_wrapped_launch_is_one_event(void **state)
{
	(void)state;
	for (int has_callback = 0; has_callback < 2; has_callback++) {
		set_up();
		record(1);
		wrapped(40, has_callback);
		whole(DRIVER, LAUNCH, 41);
		assert_int_equal(n_events(), 2);
		assert_int_equal(events()[0].head.a, RUNTIME);
		assert_int_equal(events()[0].name, lull_hash("cudaLaunchKernel", 16));
		assert_int_equal(events()[0].correlation, 40);
		assert_int_equal(events()[0].ret, 3);
		assert_int_equal(events()[1].correlation, 41);
		assert_int_equal(thread.cuda.call.word, 0);
	}
}

static void a_recording_that_ends_in_a_wrapped_launch_leaves_nothing(void **state)
{
	struct lull_text name = lull_text("cudaLaunchKernel", 16);
	struct lull_thread *t;

	(void)state;
	set_up();
	record(1);
	t = lull_cuda_launch_begins();
	record(0);
	whole(DRIVER, LAUNCH, 50);
	lull_cuda_launch_ends(t, &name, 0);
	assert_int_equal(n_events(), 0);
	assert_int_equal(thread.cuda.call.word, 0);
}

static void a_wrapped_launch_is_followed_behind_a_recording(void **state)
{
	struct lull_text name = lull_text("cudaLaunchKernel", 16);
	struct lull_thread *t;

	(void)state;
	set_up();
	t = lull_cuda_launch_begins();
	assert_null(t);
	assert_int_not_equal(thread.cuda.call.word, 0); /* is_calm() waits for it */
	whole(DRIVER, LAUNCH, 60);
	assert_int_not_equal(thread.cuda.call.word, 0);
	lull_cuda_launch_ends(t, &name, 0);
	assert_int_equal(thread.cuda.call.word, 0);
}

static void the_runtime_calls_back_where_there_is_no_wrapper(void **state)
{
	(void)state;
	set_up();
	assert_true(is_wanted[RUNTIME][LAUNCH] && is_wanted[DRIVER][LAUNCH]);
	lull_cuda_watch_calls(false);
	has_wrappers = true;
	lull_cuda_watch_calls(true);
	assert_false(is_wanted[RUNTIME][LAUNCH]);
	assert_true(is_wanted[DRIVER][LAUNCH] && is_wanted[RUNTIME][SYNCHRONIZE]);
	/* After a recording others are to be seen, too. */
	atomic_store(&at.has_points, 1);
	assert_true(lull_cuda_follow_on());
	assert_true(is_wanted[RUNTIME][LAUNCH]);
	lull_cuda_watch_calls(false);
	assert_false(is_wanted[RUNTIME][LAUNCH] || is_wanted[DRIVER][LAUNCH]);
}

static void what_takes_time_is_recorded_and_questions_are_not(void **state)
{
	static const char *const work[] = {
		"cudaLaunchKernel_v7000",
		"cudaMemcpyAsync_ptsz_v7000",
		"cuMemcpyBatchAsync",
		"cuCtxSynchronize_v2",
		"cudaEventRecord_v3020",
		"cuMemHostRegister_v2",
		"cuMemRelease",
		"cuMemPoolTrimTo",
		"cuModuleGetFunction",
		"cuLinkComplete",
		"cuGraphExecUpdate_v2",
		"cudaSetDevice_v3020",
		"cudaProfilerStart_v4000",
		"cuStreamWriteValue32_v2",
		"cuLibraryUnload",
		"cudaIpcOpenMemHandle_v4010",
	};
	static const char *const questions[] = {
		"cudaGetDevice_v3020",
		"cudaStreamQuery_v3020",
		"cuEventQuery",
		"cuMemGetInfo_v2",
		"cuCtxGetCurrent",
		"cudaPointerGetAttributes_v4000",
		"cuFuncGetAttribute",
		"cuMemHostGetFlags",
		"cudaStreamGetPriority_v5050",
		"cuStreamGetCaptureInfo",
		"cudaGetLastError_v3020",
	};

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(work); i++)
		assert_false(is_left_out(work[i]));
	for (size_t i = 0; i < LULL_COUNT_OF(questions); i++)
		assert_true(is_left_out(questions[i]));
	assert_string_equal(user_name("__cudaLaunchKernel_v13000"), "cudaLaunchKernel_v13000");
	assert_int_equal(length_of("cudaLaunchKernel_ptsz_v7000"), strlen("cudaLaunchKernel"));
	assert_int_equal(length_of("cuMemcpyHtoDAsync_v2_ptsz"), strlen("cuMemcpyHtoDAsync"));
	assert_int_equal(length_of("cuMemcpy_ptds"), strlen("cuMemcpy"));
	assert_int_equal(length_of("cuInit"), strlen("cuInit"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_takes_time_is_recorded_and_questions_are_not),
		cmocka_unit_test(the_runtime_stands_for_the_driver),
		cmocka_unit_test(a_call_whose_end_is_not_seen_blocks_nothing),
		cmocka_unit_test(the_line_of_a_wait_is_found_while_the_device_works),
		cmocka_unit_test(captures_are_counted_evenly),
		cmocka_unit_test(a_wrapped_launch_is_one_event),
		cmocka_unit_test(a_recording_that_ends_in_a_wrapped_launch_leaves_nothing),
		cmocka_unit_test(a_wrapped_launch_is_followed_behind_a_recording),
		cmocka_unit_test(the_runtime_calls_back_where_there_is_no_wrapper),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
