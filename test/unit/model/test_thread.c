/*
 * What a thread does, by names; whether a descriptor is a file or a socket; when others work.
 */
#include "unit/report.h"

#include "model/chain.h"
#include "model/thread/call_names.h"
#include "model/thread/descriptors.h"
#include "model/thread/doing.h"
#include "model/thread/others.h"
#include "model/thread/stays.h"
#include "model/words.h"

static struct lull_reader *open_text(const struct report_dir *d, const char *text)
{
	struct lull_reader *r;
	struct lull_err err;

	report_ok(lull_text_write(text, d->file, &err), &err);
	report_ok(lull_reader_open(&r, d->file, &err), &err);
	return r;
}

static void close_report(const struct report_dir *d, struct lull_reader *r)
{
	lull_reader_close(r);
	unlink(d->file);
}

static void calls_are_told_apart(void **state)
{
	static const struct {
		const char *name;
		u32 bits;
	} calls[] = {
		{ "pthread_mutex_lock", LULL_IN_LOCK },
		{ "pthread_rwlock_wrlock", LULL_IN_LOCK },
		{ "flock", LULL_IN_LOCK },
		{ "lockf64", LULL_IN_LOCK },
		{ "fcntl", LULL_IN_LOCK },
		{ "pthread_cond_timedwait", LULL_IN_QUEUE },
		{ "pthread_timedjoin_np", LULL_IN_QUEUE },
		{ "sem_wait", LULL_IN_QUEUE },
		{ "semtimedop", LULL_IN_QUEUE },
		{ "waitpid", LULL_IN_QUEUE | LULL_IN_CHILD },
		{ "system", LULL_IN_QUEUE | LULL_IN_CHILD },
		{ "recvmsg", LULL_IN_SOCKET },
		{ "accept4", LULL_IN_DEMAND },
		{ "epoll_wait", LULL_IN_EVENTS },
		{ "pread64", LULL_IN_FILE },
		{ "fread", LULL_IN_FILE },
		{ "munmap", LULL_IN_MAPS },
		{ "read", 0 },
		{ "write", 0 },
		{ "nanosleep", 0 },
	};

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(calls); i++)
		assert_int_equal(lull_doing_call(calls[i].name), calls[i].bits);
}

static void functions_say_what_they_do(void **state)
{
	static const struct {
		const char *function, *module;
		u32 bits;
	} functions[] = {
		{ "clear_page_erms", "[kernel]", LULL_IN_FAULT },
		{ "filemap_fault", "[kernel]", LULL_IN_FILE },
		{ "ext4_file_read_iter", "[kernel]", LULL_IN_FILE },
		{ "page_cache_sync_ra", "[kernel]", LULL_IN_FILE },
		{ "ext4_buffered_write_iter", "[kernel]", LULL_IN_WRITE },
		{ "ext4_sync_file", "[kernel]", LULL_IN_WRITE },
		{ "xfs_file_fsync", "[kernel]", LULL_IN_WRITE },
		{ "clear_page_erms", "/home/u/sim", 0 },
		{ "uvm_vm_fault_entry", "[kernel]", LULL_IN_MANAGED },
		{ "gc_collect_main", "/usr/bin/python3.12", LULL_IN_GC },
		{ "__memset_avx2_unaligned_erms", "/lib/libc.so.6", LULL_IN_TOUCH },
		{ "void at::native::AVX512::(anonymous namespace)::add_kernel", "",
		  LULL_IN_CPU_OP },
		{ "at::_ops::add_Tensor::call", "/opt/libtorch_cpu.so", 0 },
		{ "", "/usr/lib/libgomp.so.1", LULL_IN_CPU_OP },
		{ "nvrtcCompileProgram", "", LULL_IN_COMPILE },
		{ "", "/usr/local/cuda/lib64/libnvrtc.so.13", LULL_IN_COMPILE },
		{ "main", "/home/u/sim", 0 },
	};

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(functions); i++)
		assert_int_equal(lull_doing_native(functions[i].function, functions[i].module),
				 functions[i].bits);
	assert_int_equal(lull_doing_python("get", "/usr/lib/python3.12/queue.py"), LULL_IN_QUEUE);
	assert_int_equal(lull_doing_python("Queue.get", "/usr/lib/python3.11/queue.py"),
			 LULL_IN_QUEUE);
	assert_int_equal(lull_doing_python("Thread._wait_for_tstate_lock",
					   "/usr/lib/python3.11/threading.py"),
			 LULL_IN_QUEUE);
	assert_int_equal(lull_doing_python("put", "/usr/lib/python3.12/queue.py"), 0);
	assert_int_equal(lull_doing_python("get", "/home/u/train.py"), 0);
}

static void the_program_is_known_from_its_libraries(void **state)
{
	static const struct {
		const char *function, *file, *module;
		bool is_own;
	} functions[] = {
		{ "sort_particles()", "/home/u/sim.cpp", "/home/u/sim", true },
		{ "sort_particles()", "", "/home/u/sim", true },
		{ "void std::__introsort_loop<float*, long>(float*)", "/usr/include/c++/12/a.h",
		  "/home/u/sim", false },
		{ "std::vector<Cell>::push_back(Cell&&)", "", "/home/u/sim", false },
		{ "std::vector<float> smooth<int>(std::vector<float> const&)", "", "/home/u/sim",
		  true },
		{ "void update<std::vector<float> >(int)", "", "/home/u/sim", true },
		{ "(anonymous namespace)::Tracker::loop()", "", "/home/u/sim", true },
		{ "void Eigen::internal::gebp_kernel<double>::operator()(int)", "", "/home/u/sim",
		  false },
		{ "<alloc::vec::Vec<f32> as core::ops::Drop>::drop", "", "/home/u/sim", false },
		{ "sim::world::World::advance", "", "/home/u/sim", true },
		{ "hashbrown::map::make_hash", "", "/home/u/sim", false },
		{ "<str>::split_once<char>", "", "/home/u/sim", false },
		{ "<&mut [u8] as std::io::Read>::read", "", "/home/u/sim", false },
		{ "<&mut I as core::iter::Iterator>::next", "", "/home/u/sim", false },
		{ "<core::iter::Map<core::slice::Iter<f32>, fn(f32) -> f32>>::next", "",
		  "/home/u/sim", false },
		{ "<sim::World>::advance", "", "/home/u/sim", true },
		{ "<&sim::World as core::fmt::Display>::fmt", "", "/home/u/sim", true },
		{ "<alloc::vec::Vec<f32> as sim::Smooth>::smooth", "", "/home/u/sim", true },
		{ "qsort_r", "", "/usr/lib/x86_64-linux-gnu/libc.so.6", false },
		{ "advance", "", "", false },
		{ "advance", "/home/u/sim.c", "", true },
		{ "", "", "/home/u/sim", false },
		{ "_PyEval_EvalFrameDefault", "", "/usr/bin/python3.12", false },
		{ "vectorcall", "", "/opt/pyenv/versions/3.12/bin/python3.12", false },
		{ "cuLaunchKernel", "", "/usr/lib/libcuda.so.1", false },
		{ "libcudart_static_92985ad401d8bcbae0", "", "/home/u/sim", false },
	};

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(functions); i++)
		if (lull_doing_is_own(functions[i].function, functions[i].file,
				      functions[i].module) != functions[i].is_own)
			fail_msg("%s of %s", functions[i].function, functions[i].module);
	assert_true(lull_doing_is_header("/usr/include/c++/12/bits/stl_algo.h"));
	assert_true(lull_doing_is_header("/rustc/59807616e1fa/library/core/src/hash/mod.rs"));
	assert_true(lull_doing_is_header("/home/u/.cargo/registry/src/index/rand-0.8/src/lib.rs"));
	assert_false(lull_doing_is_header("/home/u/include/sim.h"));
}

static void code_that_a_library_makes_is_not_the_programs(void **state)
{
	static const char *const made[] = {
		"<__array_function__ internals>", "<frozen runpy>",
		"<attrs generated init train.Options>",
		"/usr/lib/python3/dist-packages/numpy/core/numeric.py"
	};
	static const char *const written[] = { "<string>", "<stdin>", "<ipython-input-3-0a1b>",
					       "/home/u/train.py" };

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(made); i++)
		assert_true(lull_file_is_plumbing(made[i]));
	for (size_t i = 0; i < LULL_COUNT_OF(written); i++)
		assert_false(lull_file_is_plumbing(written[i]));
}

static void names_have_no_types_around_them(void **state)
{
	static const char *const names[][2] = {
		{ "sort_particles()", "sort_particles" },
		{ "advance", "advance" },
		{ "std::vector<float> ns::smooth<int>(std::vector<float> const&)",
		  "ns::smooth<int>" },
		{ "limit(std::vector<float>&, int) [clone ._omp_fn.0]", "limit" },
		{ "(anonymous namespace)::Tracker::loop()",
		  "(anonymous namespace)::Tracker::loop" },
		{ "Grid::operator()(int) const", "Grid::operator()" },
		{ "bool operator< <int>(Cell<int> const&)", "operator< <int>" },
		{ "bool std::operator><float, int>(std::pair<float, int> const&)",
		  "std::operator><float, int>" },
		{ "decltype (forward<float>((a), b)) std::greater<void>::_S_cmp<float>(float&&)",
		  "std::greater<void>::_S_cmp<float>" },
		{ "Cell::operator<<=(int)", "Cell::operator<<=" },
		{ "Cell::operator bool() const", "Cell::operator bool" },
		{ "run(int)::{lambda(float)#1}::operator()(float) const", "run" },
		{ "Grid::run()", "Grid::run" },
		{ "<alloc::vec::Vec<f32> as core::ops::Drop>::drop",
		  "<alloc::vec::Vec<f32> as core::ops::Drop>::drop" },
		{ "", "" },
	};

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(names); i++) {
		size_t len;
		const char *name = lull_doing_name(names[i][0], &len);

		if (len != strlen(names[i][1]) || strncmp(name, names[i][1], len) != 0)
			fail_msg("%s is %.*s", names[i][0], (int)len, name);
	}
}

static u32 bits_of(const struct lull_descriptors *d, u32 lane, const char *name, i64 arg, i64 ret)
{
	return lull_descriptor_bits(
		d, &(struct lull_descriptor_call){
			   .name = name, .row = UINT64_MAX, .arg = arg, .ret = ret, .lane = lane });
}

static void descriptors_are_what_was_done_with_them(void **state)
{
	struct lull_reader *r =
		open_text(*state, "process pid=10\n"
				  "process pid=20\n"
				  "lane kind=1 process=1 tid=10\n"
				  "lane kind=1 process=2 tid=20\n"
				  "oscall start=1 dur=1 lane=1 name=openat ret=3\n"
				  "oscall start=2 dur=1 lane=1 name=connect arg=4\n"
				  "oscall start=3 dur=1 lane=1 name=accept ret=5 arg=9\n"
				  "oscall start=4 dur=1 lane=1 name=open ret=6\n"
				  "oscall start=5 dur=1 lane=1 name=send arg=6\n"
				  "oscall start=6 dur=1 lane=1 name=open ret=-1\n");
	struct lull_descriptors d;

	lull_descriptors_init(&d, r);
	assert_int_equal(bits_of(&d, 1, "read", 3, 9), LULL_IN_FILE);
	assert_int_equal(bits_of(&d, 1, "read", 4, 9), LULL_IN_SOCKET);
	assert_int_equal(bits_of(&d, 1, "recv", 5, 9), LULL_IN_SOCKET | LULL_IN_DEMAND);
	/* It was both, nobody knows it, it is another process's. */
	assert_int_equal(bits_of(&d, 1, "read", 6, 9), 0);
	assert_int_equal(bits_of(&d, 1, "recv", 6, 9), LULL_IN_SOCKET);
	assert_int_equal(bits_of(&d, 1, "read", 7, 9), 0);
	assert_int_equal(bits_of(&d, 2, "read", 3, 9), 0);
	/* No pipe holds so much. */
	assert_int_equal(bits_of(&d, 1, "read", 7, 1 << 20), LULL_IN_FILE);
	lull_descriptors_release(&d);
	close_report(*state, r);
}

/* Queues between processes are sockets, too. */
static void connections_to_processes_of_the_recording_are_queues(void **state)
{
	static const char *const text = "process pid=10\n"
					"process pid=20\n"
					"lane kind=1 process=1 tid=10\n"
					"lane kind=1 process=2 tid=20\n"
					"oscall start=1 dur=1 lane=1 name=connect arg=4\n"
					"oscall start=2 dur=1 lane=1 name=connect arg=5\n"
					"oscall start=3 dur=1 lane=1 name=connect arg=6\n"
					"oscall start=4 dur=1 lane=2 name=accept ret=7 arg=3\n";
	static const char *const more = "oscall start=5 dur=1 lane=2 name=accept ret=8 arg=3\n";
	struct lull_descriptors d;

	for (u32 i = 0; i < 2; i++) {
		char all[1024];
		struct lull_reader *r;

		snprintf(all, sizeof(all), "%s%s", text, i ? more : "");
		r = open_text(*state, all);
		lull_descriptors_init(&d, r);
		assert_int_equal(bits_of(&d, 1, "read", 4, 9),
				 i ? LULL_IN_QUEUE | LULL_IN_EVENTS : LULL_IN_SOCKET);
		assert_int_equal(bits_of(&d, 2, "read", 7, 9), LULL_IN_SOCKET | LULL_IN_DEMAND);
		lull_descriptors_release(&d);
		close_report(*state, r);
	}
}

/* A parent and its child have an end each; what the child sends last is not read any more. */
static void sockets_that_get_what_another_one_sent_are_queues(void **state)
{
	static const char *const text = "process pid=10\n"
					"process pid=20 parent_pid=10\n"
					"lane kind=1 process=1 tid=10\n"
					"lane kind=1 process=2 tid=20\n"
					"oscall start=1 dur=1 lane=2 name=send arg=5 ret=100\n"
					"oscall start=2 dur=1 lane=1 name=recv arg=4 ret=60\n"
					"oscall start=3 dur=1 lane=1 name=recv arg=4 ret=40\n"
					"oscall start=4 dur=1 lane=2 name=send arg=5 ret=100\n"
					"oscall start=5 dur=1 lane=1 name=recv arg=4 ret=100\n"
					"oscall start=6 dur=1 lane=2 name=send arg=5 ret=70\n";
	static const struct {
		const char *more;
		u32 bits;
	} cases[] = {
		{ "", LULL_IN_QUEUE | LULL_IN_EVENTS },
		/* Nobody sent as much. */
		{ "oscall start=7 dur=1 lane=1 name=recv arg=4 ret=1\n", LULL_IN_SOCKET },
		/* One of them is connected to something else. */
		{ "oscall start=8 dur=1 lane=1 name=connect arg=4\n", LULL_IN_SOCKET },
		{ "oscall start=8 dur=1 lane=2 name=connect arg=5\n", LULL_IN_SOCKET },
	};

	for (u32 i = 0; i < LULL_COUNT_OF(cases); i++) {
		struct lull_descriptors d;
		struct lull_reader *r;
		char all[1024];

		snprintf(all, sizeof(all), "%s%s", text, cases[i].more);
		r = open_text(*state, all);
		lull_descriptors_init(&d, r);
		assert_int_equal(bits_of(&d, 1, "recv", 4, 100), cases[i].bits);
		/* The other end gets nothing back. */
		assert_int_equal(bits_of(&d, 2, "recv", 5, 100), LULL_IN_SOCKET);
		lull_descriptors_release(&d);
		close_report(*state, r);
	}
}

/* What a socket sends itself it does not get, however much comes back from elsewhere. */
static void a_socket_that_gets_as_much_as_it_sends_is_no_queue(void **state)
{
	struct lull_reader *r =
		open_text(*state, "process pid=10\n"
				  "lane kind=1 process=1 tid=10\n"
				  "oscall start=1 dur=1 lane=1 name=sendto arg=4 ret=100\n"
				  "oscall start=2 dur=1 lane=1 name=recvfrom arg=4 ret=100\n");
	struct lull_descriptors d;

	lull_descriptors_init(&d, r);
	assert_int_equal(bits_of(&d, 1, "recv", 4, 100), LULL_IN_SOCKET);
	lull_descriptors_release(&d);
	close_report(*state, r);
}

/* A pipe has the number of a file that was opened before, and closed unseen. */
static void short_reads_that_all_wait_are_of_no_file(void **state)
{
	struct lull_reader *r = open_text(
		*state, "process pid=10\n"
			"lane kind=1 process=1 tid=10\n"
			"oscall start=1 dur=1 lane=1 name=openat ret=3\n"
			"oscall start=1000000 dur=200000 lane=1 name=read arg=3 ret=4\n"
			"oscall start=2000000 dur=200000 lane=1 name=read arg=3 ret=4\n"
			"oscall start=3000000 dur=200000 lane=1 name=read arg=3 ret=600\n"
			"oscall start=4000000 dur=200000 lane=1 name=read arg=3 ret=4\n"
			"oscall start=5000000 dur=100000 lane=1 name=read arg=3 ret=4\n"
			"oscall start=6000000 dur=200000 lane=1 name=read arg=3 ret=4\n"
			"oscall start=7000000 dur=200000 lane=1 name=read arg=3 ret=600\n"
			"oscall start=8000000 dur=1 lane=1 name=open ret=3\n"
			"oscall start=9000000 dur=200000 lane=1 name=read arg=3 ret=4\n"
			"oscall start=10000000 dur=1 lane=1 name=close arg=3\n"
			"oscall start=11000000 dur=200000 lane=1 name=read arg=3 ret=4\n");
	static const u64 of_file[] = { 1, 2, 3, 4, 5, 9 }, of_none[] = { 6, 7, 11 };
	struct lull_descriptor_call call = { .name = "read", .arg = 3, .ret = 4, .lane = 1 };
	struct lull_descriptors d;

	lull_descriptors_init(&d, r);
	for (u32 i = 0; i < LULL_COUNT_OF(of_file); i++) {
		call.row = of_file[i];
		assert_int_equal(lull_descriptor_bits(&d, &call), LULL_IN_FILE);
	}
	for (u32 i = 0; i < LULL_COUNT_OF(of_none); i++) {
		call.row = of_none[i];
		assert_int_equal(lull_descriptor_bits(&d, &call), LULL_IN_QUEUE | LULL_IN_EVENTS);
	}
	lull_descriptors_release(&d);
	close_report(*state, r);
}

static void names_of_calls_say_the_same_each_time(void **state)
{
	static const struct {
		u32 bits;
		u8 effect;
	} calls[] = {
		{ LULL_IN_READ, LULL_CALL_OPENS },
		{ LULL_IN_READ, LULL_CALL_FOPENS },
		{ LULL_IN_DEMAND, LULL_CALL_ACCEPTS },
		{ LULL_IN_SOCKET, LULL_CALL_TALKS },
		{ 0, LULL_CALL_TALKS },
		{ LULL_IN_WRITE, LULL_CALL_ASKED },
	};
	struct lull_reader *r = open_text(*state, "process pid=10\n"
						  "lane kind=1 process=1 tid=10\n"
						  "oscall start=1 dur=1 lane=1 name=openat\n"
						  "oscall start=2 dur=1 lane=1 name=fopen\n"
						  "oscall start=3 dur=1 lane=1 name=accept4\n"
						  "oscall start=4 dur=1 lane=1 name=recv\n"
						  "oscall start=5 dur=1 lane=1 name=sendmsg\n"
						  "oscall start=6 dur=1 lane=1 name=sendfile\n");
	struct lull_call_names names;
	struct lull_oscall_cols cols;
	struct lull_cursor c;

	lull_call_names_init(&names, r);
	lull_cursor_init(&c, r, LULL_TABLE_oscall, 0, UINT64_MAX);
	assert_int_equal(lull_cursor_next(&c, &cols), LULL_COUNT_OF(calls));
	for (size_t i = 0; i < 2 * LULL_COUNT_OF(calls); i++) {
		size_t ix = i % LULL_COUNT_OF(calls);
		struct lull_call_name name = lull_call_name_of(&names, cols.name[ix]);

		assert_int_equal(name.bits & calls[ix].bits, calls[ix].bits);
		assert_int_equal(name.effect, calls[ix].effect);
	}
	/* A string that the report does not have. */
	assert_int_equal(lull_call_name_of(&names, 1u << 30).bits, lull_oscall_bits("?"));
	lull_cursor_release(&c);
	lull_call_names_release(&names);
	close_report(*state, r);
}

/* Lane 1 launches; 2 is its helper, 3 a child's thread, 4 a stranger's, 5 ours. */
#define THREADS                          \
	"process pid=10\n"               \
	"process pid=20 parent_pid=10\n" \
	"process pid=30\n"               \
	"lane kind=1 process=1 tid=10\n" \
	"lane kind=1 process=1 tid=11\n" \
	"lane kind=1 process=2 tid=20\n" \
	"lane kind=1 process=3 tid=30\n" \
	"lane kind=1 process=1 tid=12 name=lull-flush\n"

static void others_at_work_count_once(void **state)
{
	struct lull_reader *r =
		open_text(*state, THREADS "sched start=100 dur=500 lane=1 end_reason=1\n"
					  "sched start=100 dur=50 lane=2 end_reason=1\n"
					  "sched start=120 dur=60 lane=3 end_reason=1\n"
					  "sched start=300 dur=99 lane=4 end_reason=1\n"
					  "sched start=300 dur=99 lane=5 end_reason=1\n"
					  "sched start=600 dur=10 lane=2 end_reason=2\n"
					  "sched start=700 dur=10 lane=2 end_reason=1\n"
					  "sample start=500 lane=2 weight_ns=50\n"
					  "oscall start=250 dur=10 lane=3 name=pread ret=9\n"
					  "oscall start=270 dur=10 lane=3 name=nanosleep\n");
	u8 launches[6] = { 0, 1, 0, 0, 0, 0 };
	struct lull_chain c = { .chain_of_lane = launches };
	struct lull_others o;

	lull_others_init(&o, r, 1, &c, 0);
	assert_true(o.is_known);
	assert_int_equal(lull_others_ns(&o, 0, 1000), 200);
	assert_int_equal(lull_others_ns(&o, 110, 130), 20);
	assert_int_equal(lull_others_ns(&o, 170, 255), 15);
	assert_int_equal(lull_others_ns(&o, 300, 600), 0);
	assert_int_equal(lull_others_ns(&o, 30, 20), 0);
	lull_others_release(&o);
	lull_others_init_launching(&o, r, &c, 0);
	assert_int_equal(lull_others_ns(&o, 0, 1000), 500);
	lull_others_release(&o);
	close_report(*state, r);
}

static void without_a_scheduler_samples_say_who_works(void **state)
{
	struct lull_reader *r = open_text(*state, THREADS "sample start=500 lane=2 weight_ns=50\n"
							  "sample start=900 lane=1 weight_ns=50\n");
	u8 launches[6] = { 0, 1, 0, 0, 0, 0 };
	struct lull_chain c = { .chain_of_lane = launches };
	struct lull_others o;

	lull_others_init(&o, r, 1, &c, 0);
	assert_true(o.is_known);
	assert_int_equal(lull_others_ns(&o, 0, 1000), 50);
	lull_others_release(&o);
	close_report(*state, r);
}

/* Its threads are on a CPU, but in the runtime of OpenMP: they wait for work. */
static void threads_that_spin_are_not_at_work(void **state)
{
	struct lull_reader *r =
		open_text(*state, THREADS "module path=/usr/lib/libgomp.so.1 process=1\n"
					  "module path=/usr/lib/libtorch_cpu.so process=1\n"
					  "frame kind=1 module=1\n"
					  "frame kind=1 module=2\n"
					  "frame kind=3 function=finish_task_switch\n"
					  "stack frame=1\n"
					  "stack frame=2\n"
					  "stack frame=3 parent=1\n"
					  "sched start=100 dur=50 lane=2 end_reason=1\n"
					  "sched start=300 dur=70 lane=3 end_reason=1\n"
					  "sample start=110 lane=2 weight_ns=50 stack=1\n"
					  "sample start=120 lane=2 weight_ns=50 stack=3\n"
					  "sample start=130 lane=2 weight_ns=50 stack=2\n"
					  "sample start=310 lane=3 weight_ns=50 stack=1\n"
					  "sample start=320 lane=3 weight_ns=50 stack=2\n");
	u8 launches[6] = { 0, 1, 0, 0, 0, 0 };
	struct lull_chain c = { .chain_of_lane = launches };
	struct lull_others o;

	lull_others_init(&o, r, 1, &c, 0);
	assert_int_equal(lull_others_ns(&o, 0, 1000), 70);
	lull_others_release(&o);
	close_report(*state, r);
}

/* A part of a report need not hold the moment of accepting; the process row keeps it. */
static void clients_of_a_server_are_not_read_from(void **state)
{
	static const char *const heads[] = { "process pid=10\n", "process pid=10 is_server=1\n" };
	u8 launches[3] = { 0, 1, 0 };
	struct lull_chain c = { .chain_of_lane = launches };

	for (size_t i = 0; i < LULL_COUNT_OF(heads); i++) {
		struct lull_others o;
		struct lull_reader *r;
		char text[512];

		snprintf(text, sizeof(text),
			 "%slane kind=1 process=1 tid=10\nlane kind=1 process=1 tid=11\n"
			 "oscall start=100 dur=80 lane=2 name=recv ret=9 arg=5\n",
			 heads[i]);
		r = open_text(*state, text);
		lull_others_init(&o, r, 1, &c, 0);
		assert_int_equal(lull_others_ns(&o, 0, 1000), i ? 0 : 80);
		lull_others_release(&o);
		close_report(*state, r);
	}
}

static void add_stay(struct lull_writer *w, u64 start_ns, u64 dur_ns)
{
	lull_writer_add(
		w, LULL_TABLE_sched,
		&(struct lull_sched_row){
			.start_ns = start_ns, .dur_ns = dur_ns, .lane = 1, .end_reason = 1 });
}

/* A stay is written when it ends; shorter ones of later blocks may have begun before. */
static void stays_come_in_the_order_of_time(void **state)
{
	const struct report_dir *d = *state;
	const struct lull_file_info info = { .epoch_ns = 1 };
	const u8 all[2] = { 1, 1 };
	struct lull_vec stays;
	struct lull_writer *w;
	struct lull_reader *r;
	struct lull_err err;

	report_ok(lull_writer_open(&w, d->file, &info, &err), &err);
	lull_writer_add_dim(w, LULL_TABLE_process, &(struct lull_process_row){ .pid = 1 });
	lull_writer_add_dim(w, LULL_TABLE_lane,
			    &(struct lull_lane_row){ .kind = 1, .process = 1, .tid = 1 });
	add_stay(w, 100, 10);
	add_stay(w, 5000, 10);
	report_ok(lull_writer_flush(w, &err), &err);
	add_stay(w, 200, 4000);
	add_stay(w, 6000, 10);
	report_ok(lull_writer_seal(w, &err), &err);
	report_ok(lull_reader_open(&r, d->file, &err), &err);
	lull_vec_init(&stays, sizeof(struct lull_stay));
	assert_true(lull_stays_collect(&stays, r, 0, UINT64_MAX, all));
	assert_int_equal(stays.n, 4);
	for (size_t i = 1; i < stays.n; i++)
		assert_true(((struct lull_stay *)stays.at)[i - 1].end_ns <=
			    ((struct lull_stay *)stays.at)[i].begin_ns);
	lull_vec_release(&stays);
	close_report(d, r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(calls_are_told_apart),
		cmocka_unit_test(functions_say_what_they_do),
		cmocka_unit_test(the_program_is_known_from_its_libraries),
		cmocka_unit_test(code_that_a_library_makes_is_not_the_programs),
		cmocka_unit_test(names_have_no_types_around_them),
		cmocka_unit_test(descriptors_are_what_was_done_with_them),
		cmocka_unit_test(connections_to_processes_of_the_recording_are_queues),
		cmocka_unit_test(sockets_that_get_what_another_one_sent_are_queues),
		cmocka_unit_test(a_socket_that_gets_as_much_as_it_sends_is_no_queue),
		cmocka_unit_test(short_reads_that_all_wait_are_of_no_file),
		cmocka_unit_test(names_of_calls_say_the_same_each_time),
		cmocka_unit_test(others_at_work_count_once),
		cmocka_unit_test(without_a_scheduler_samples_say_who_works),
		cmocka_unit_test(threads_that_spin_are_not_at_work),
		cmocka_unit_test(clients_of_a_server_are_not_read_from),
		cmocka_unit_test(stays_come_in_the_order_of_time),
	};

	return cmocka_run_group_tests(tests, report_set_up, report_tear_down);
}
