#include "unit/unit.h"

#include <dirent.h>
#include <poll.h>

#include "record/perf/perf.h"
#include "record/perf/perf_int.h"
#include "record/perf/sched.h"
#include "support/patience.h"
#include "unit/burner.h"

#define MS 1000000ULL

/* Everything the handlers saw. */
struct seen {
	u64 n_samples, n_in, n_out, n_preempted, n_forks, n_exits, n_mmaps, n_lost, n_disordered;
	u64 n_user, n_with_stack, n_with_sp, n_user_pc, weight_ns;
	u64 last_ns;
	u32 sampled_tids[64], n_tids;
	char comm[64];
	bool has_exec_comm;
};

static void in_order(struct seen *s, u64 time_ns)
{
	s->n_disordered += time_ns < s->last_ns;
	s->last_ns = time_ns;
}

/* Numbers of asm/perf_regs.h, and all that unwinding wants. */
#if defined(__x86_64__)
enum { SP_REG = 7, PC_REG = 8 };
#define REGS_MASK 0xff01ffULL
#else
enum { SP_REG = 31, PC_REG = 32 };
#define REGS_MASK 0x1ffffffffULL
#endif

static u64 reg_of(const struct lull_perf_sample *sample, int reg)
{
	return sample->regs[__builtin_popcountll(sample->regs_mask & ((1ULL << reg) - 1))];
}

static void on_sample(void *ctx, const struct lull_perf_sample *sample)
{
	struct seen *s = ctx;
	u32 i = 0;

	in_order(s, sample->time_ns);
	s->n_samples++;
	s->weight_ns += sample->weight_ns;
	while (i < s->n_tids && s->sampled_tids[i] != sample->tid)
		i++;
	if (i == s->n_tids && i < 64)
		s->sampled_tids[s->n_tids++] = sample->tid;
	/* Where a thread ends, in the kernel, it has no stack any more. */
	if (sample->is_kernel)
		return;
	s->n_user++;
	s->n_with_stack += sample->stack_bytes > 0;
	if (!sample->regs_mask)
		return;
	s->n_user_pc += reg_of(sample, PC_REG) == sample->ip;
	s->n_with_sp += reg_of(sample, SP_REG) != 0;
}

static void on_switched(void *ctx, const struct lull_perf_switch *sw)
{
	struct seen *s = ctx;

	in_order(s, sw->time_ns);
	s->n_in += sw->is_in;
	s->n_out += !sw->is_in;
	s->n_preempted += sw->is_preempted;
}

static void on_fork(void *ctx, const struct lull_perf_task *t)
{
	struct seen *s = ctx;

	in_order(s, t->time_ns);
	s->n_forks++;
}

static void on_exit_of(void *ctx, const struct lull_perf_task *t)
{
	struct seen *s = ctx;

	in_order(s, t->time_ns);
	s->n_exits++;
}

static void on_comm(void *ctx, const struct lull_perf_comm *c)
{
	struct seen *s = ctx;

	in_order(s, c->time_ns);
	snprintf(s->comm, sizeof(s->comm), "%s", c->name);
	s->has_exec_comm |= c->is_exec;
}

static void on_mmap(void *ctx, const struct lull_perf_mmap *m)
{
	struct seen *s = ctx;

	in_order(s, m->time_ns);
	s->n_mmaps += m->len_bytes > 0 && m->path[0];
}

static void on_lost(void *ctx, u64 n, u64 time_ns)
{
	struct seen *s = ctx;

	(void)time_ns;
	s->n_lost += n;
}

static const struct lull_perf_handlers handlers = {
	.sample = on_sample,
	.switched = on_switched,
	.fork = on_fork,
	.exit = on_exit_of,
	.comm = on_comm,
	.mmap = on_mmap,
	.lost = on_lost,
};

/* Open, or skip the test with the kernel's reason. */
static struct lull_perf *open_or_skip(const struct lull_perf_options *o, const struct burner *c)
{
	struct lull_perf *p = NULL;
	struct lull_err err;

	if (lull_perf_open(&p, o, c->pid, &err)) {
		kill(c->pid, SIGKILL);
		burner_end(c);
		test_skip("no perf events here: %s", err.msg);
	}
	return p;
}

static void drain_until_end(struct lull_perf *p, const struct burner *c, struct seen *s)
{
	u64 end_ns = test_patience_end_ns();

	while (!burner_has_ended(c)) {
		lull_perf_drain(p, &handlers, s);
		if (!test_patience_pause(end_ns))
			fail_msg("the child does not end");
	}
	lull_perf_flush(p, &handlers, s);
}

static bool was_sampled(const struct seen *s, u32 tid)
{
	for (u32 i = 0; i < s->n_tids; i++)
		if (s->sampled_tids[i] == tid)
			return true;
	return false;
}

/* Both threads of the child. */
static bool are_sampled(const struct seen *s, const struct burner *c)
{
	return was_sampled(s, c->page->threads[0].tid) && was_sampled(s, c->page->threads[1].tid);
}

/*
 * What the rings hold is less than they have room for and is read once, in the end: nothing is lost
 * however long this thread is held up, and all of it is put in order.
 */
static void two_burning_threads_are_sampled_in_time_order(void **state)
{
	struct lull_perf_options o = LULL_PERF_OPTIONS_INIT;
	struct burner c = burner_start(50 * MS, false);
	struct lull_perf *p;
	struct seen s = { 0 };

	(void)state;
	o.regs_mask = REGS_MASK;
	o.stack_bytes = 512;
	p = open_or_skip(&o, &c);
	burner_let_go(&c);
	test_wait_for(burner_has_ended(&c));
	lull_perf_flush(p, &handlers, &s);
	assert_true(are_sampled(&s, &c));
	assert_int_equal(s.weight_ns, s.n_samples * MS);
	burner_end(&c);
	lull_perf_close(p);
	assert_true(s.n_user > 0);
	assert_int_equal(s.n_with_stack, s.n_user);
	assert_int_equal(s.n_with_sp, s.n_user);
	assert_int_equal(s.n_user_pc, s.n_user);
	assert_int_equal(s.n_disordered, 0);
	assert_int_equal(s.n_lost, 0);
	assert_int_equal(s.n_forks, 2);
	assert_int_equal(s.n_exits, 3);
	assert_string_equal(s.comm, "burner");
	assert_true(s.n_in > 0 && s.n_out > 0);
	assert_true(s.n_in + 4 >= s.n_out && s.n_out + 4 >= s.n_in);
}

static void switches_come_without_samples(void **state)
{
	struct lull_perf_options o = LULL_PERF_OPTIONS_INIT;
	struct burner c = burner_start(10 * MS, false);
	struct lull_perf *p;
	struct seen s = { 0 };

	(void)state;
	o.samples = LULL_PERF_NONE;
	p = open_or_skip(&o, &c);
	burner_let_go(&c);
	drain_until_end(p, &c, &s);
	burner_end(&c);
	lull_perf_close(p);
	assert_int_equal(s.n_samples, 0);
	assert_true(s.n_in >= BURNER_THREADS * BURNER_NAPS);
	assert_true(s.n_out >= BURNER_THREADS * BURNER_NAPS);
	assert_int_equal(s.n_exits, 3);
}

static void samples_come_without_switches(void **state)
{
	struct lull_perf_options o = LULL_PERF_OPTIONS_INIT;
	struct burner c = burner_start(0, true);
	struct lull_perf *p;
	struct seen s = { 0 };

	(void)state;
	o.switches = LULL_PERF_NONE;
	o.stack_bytes = 0;
	p = open_or_skip(&o, &c);
	burner_let_go(&c);
	test_wait_for((lull_perf_drain(p, &handlers, &s), are_sampled(&s, &c)));
	burner_stop(&c);
	drain_until_end(p, &c, &s);
	burner_end(&c);
	lull_perf_close(p);
	assert_int_equal(s.n_in + s.n_out, 0);
	assert_int_equal(s.n_with_stack, 0);
}

static void scopes_may_differ(void **state)
{
	struct lull_perf_options o = LULL_PERF_OPTIONS_INIT;
	struct burner c = burner_start(0, true);
	struct lull_perf *p;
	struct seen s = { 0 };

	(void)state;
	o.samples = LULL_PERF_SYSTEM_WIDE;
	p = open_or_skip(&o, &c);
	burner_let_go(&c);
	test_wait_for((lull_perf_drain(p, &handlers, &s), are_sampled(&s, &c) && s.n_in > 2));
	burner_stop(&c);
	drain_until_end(p, &c, &s);
	burner_end(&c);
	lull_perf_close(p);
	assert_true(s.n_out > 2);
}

/* The stays of the threads of a child, by thread. */
struct stays {
	const struct burner *child;
	u64 on_cpu_ns[BURNER_THREADS], n[BURNER_THREADS];
};

static void add_stay(void *ctx, const struct lull_sched_stay *row)
{
	struct stays *s = ctx;

	for (int i = 0; i < BURNER_THREADS; i++) {
		if (s->child->page->threads[i].tid != row->tid)
			continue;
		s->on_cpu_ns[i] += row->dur_ns;
		s->n[i]++;
	}
}

static void on_stay_switch(void *ctx, const struct lull_perf_switch *sw)
{
	struct lull_sched_event e = { sw->pid, sw->tid, sw->time_ns, sw->cpu };

	if (sw->is_in)
		lull_sched_in(ctx, &e);
	else
		lull_sched_out(ctx, &e, sw->is_preempted);
}

static void on_stay_exit(void *ctx, const struct lull_perf_task *t)
{
	struct lull_sched_event e = { .pid = t->pid, .tid = t->tid, .time_ns = t->time_ns };

	lull_sched_exit(ctx, &e);
}

/* The scheduler's own work around a stay counts as CPU time of the thread; a few us each. */
#define SWITCH_NS 50000

/*
 * A thread on a CPU burns it, but for interrupts and for the host of a virtual machine, which may
 * take the CPU itself away: so its stays are no less than the CPU time that it measured, and no
 * more than its life without the time in which it was ready and had no CPU.
 */
static void expect_stays(const struct burner_thread *t, u64 on_cpu_ns, u64 n_stays)
{
	u64 life_ns = t->gone_ns - t->born_ns;
	/* The clocks of the scheduler and of the system may be half a thousandth apart. */
	u64 apart_ns = life_ns / 1000 + n_stays * SWITCH_NS;

	print_message("%.3f ms of CPU time, %.3f ms in %llu stays, %.3f ms alive, %.3f ms ready\n",
		      (double)t->cpu_ns / 1e6, (double)on_cpu_ns / 1e6, (unsigned long long)n_stays,
		      (double)life_ns / 1e6, (double)t->delay_ns / 1e6);
	assert_true(n_stays >= BURNER_NAPS);
	assert_true(on_cpu_ns + apart_ns >= t->cpu_ns);
	assert_true(on_cpu_ns + t->delay_ns <= life_ns + apart_ns);
}

static void stays_add_up_to_the_cpu_time(void **state)
{
	const struct lull_perf_handlers to_sched = { .switched = on_stay_switch,
						     .exit = on_stay_exit };
	struct lull_perf_options o = LULL_PERF_OPTIONS_INIT;
	struct burner c = burner_start(150 * MS, false);
	struct stays stays = { .child = &c };
	struct lull_sched sched;
	struct lull_perf *p;

	(void)state;
	o.samples = LULL_PERF_NONE;
	p = open_or_skip(&o, &c);
	lull_sched_init(&sched, lull_now_ns(), add_stay, &stays);
	burner_let_go(&c);
	test_wait_for((lull_perf_drain(p, &to_sched, &sched), burner_has_ended(&c)));
	lull_perf_flush(p, &to_sched, &sched);
	lull_sched_release(&sched);
	for (int i = 0; i < BURNER_THREADS; i++)
		expect_stays(&c.page->threads[i], stays.on_cpu_ns[i], stays.n[i]);
	burner_end(&c);
	lull_perf_close(p);
}

static void pause_and_resume(bool is_lasting)
{
	struct lull_perf_options o = LULL_PERF_OPTIONS_INIT;
	struct burner c = burner_start(0, true);
	struct lull_perf *p;
	struct lull_err err;
	struct seen paused = { 0 }, on = { 0 }, again = { 0 };
	u64 burned_ns;

	o.is_paused = true;
	o.is_lasting = is_lasting;
	p = open_or_skip(&o, &c);
	burner_let_go(&c);
	/* The threads are born and burn unseen. */
	test_wait_for(burner_cpu_ns(&c) > 50 * MS);
	lull_perf_flush(p, &handlers, &paused);
	assert_int_equal(lull_perf_enable(p, true, &err), 0);
	test_wait_for((lull_perf_drain(p, &handlers, &on), are_sampled(&on, &c)));
	assert_int_equal(lull_perf_enable(p, false, &err), 0);
	lull_perf_flush(p, &handlers, &on);
	burned_ns = burner_cpu_ns(&c);
	test_wait_for(burner_cpu_ns(&c) > burned_ns + 50 * MS);
	burner_stop(&c);
	drain_until_end(p, &c, &again);
	burner_end(&c);
	lull_perf_close(p);
	assert_int_equal(paused.n_samples, 0);
	assert_int_equal(paused.n_forks, 2); /* births are told even while paused */
	assert_int_equal(on.n_tids, 2);
	assert_int_equal(again.n_samples, 0);
	assert_int_equal(again.n_in, 0);
	assert_int_equal(again.n_exits, 3);
}

static void pausing_reaches_threads_born_before_and_after(void **state)
{
	(void)state;
	pause_and_resume(false);
}

static void events_that_last_are_paused_as_others(void **state)
{
	(void)state;
	pause_and_resume(true);
}

static u32 count_perf_events(void)
{
	DIR *dir = opendir("/proc/self/fd");
	struct dirent *e;
	u32 n = 0;

	while (dir && (e = readdir(dir))) {
		char name[64] = "";

		if (readlinkat(dirfd(dir), e->d_name, name, sizeof(name) - 1) > 0)
			n += strstr(name, "perf_event") != NULL;
	}
	if (dir)
		closedir(dir);
	return n;
}

/* Each is copied for each new thread. */
static void events_that_last_are_one_for_each_cpu(void **state)
{
	struct lull_perf_options o = LULL_PERF_OPTIONS_INIT;
	struct burner c = burner_start(0, true);
	u32 n_before = count_perf_events(), n_cpus, n_events;
	struct lull_perf *p;

	(void)state;
	o.is_lasting = true;
	p = open_or_skip(&o, &c);
	n_cpus = lull_perf_info(p).n_cpus;
	n_events = count_perf_events() - n_before;
	burner_let_go(&c);
	burner_stop(&c);
	burner_end(&c);
	lull_perf_close(p);
	assert_int_equal(n_events, n_cpus);
}

static void an_exec_and_its_libraries_are_told(void **state)
{
	struct lull_perf_options o = LULL_PERF_OPTIONS_INIT;
	struct burner c = { .page = mmap(NULL, sizeof(*c.page), PROT_READ,
					 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) };
	struct lull_perf *p;
	struct seen s = { 0 };
	char byte;
	int go[2];

	(void)state;
	assert_int_equal(pipe(go), 0);
	c.go_fd = go[1];
	c.pid = fork();
	if (!c.pid) {
		if (read(go[0], &byte, 1) == 1)
			execl("/bin/true", "true", NULL);
		_exit(1);
	}
	p = open_or_skip(&o, &c);
	burner_let_go(&c);
	drain_until_end(p, &c, &s);
	burner_end(&c);
	close(go[0]);
	lull_perf_close(p);
	assert_true(s.has_exec_comm);
	assert_string_equal(s.comm, "true");
	assert_true(s.n_mmaps >= 2); /* the program and the loader at least */
}

static void a_small_ring_wraps_and_counts_what_it_loses(void **state)
{
	struct lull_perf_options o = LULL_PERF_OPTIONS_INIT;
	struct burner c = burner_start(0, true);
	u64 end_ns = test_patience_end_ns(), burned_ns = 0;
	struct lull_perf *p;
	struct seen s = { 0 };

	(void)state;
	o.max_ring_bytes = 64 << 10;
	o.regs_mask = REGS_MASK;
	p = open_or_skip(&o, &c);
	assert_int_equal(lull_perf_info(p).ring_bytes, 64 << 10);
	burner_let_go(&c);
	/* Far more than seven samples of 8 KiB each time, for many rounds of the ring. */
	while (!s.n_lost || s.n_samples <= 20) {
		while (burner_cpu_ns(&c) < burned_ns + 60 * MS)
			if (!test_patience_pause(end_ns))
				fail_msg("the child does not go on");
		burned_ns = burner_cpu_ns(&c);
		lull_perf_drain(p, &handlers, &s);
	}
	burner_stop(&c);
	drain_until_end(p, &c, &s);
	burner_end(&c);
	lull_perf_close(p);
	assert_int_equal(s.n_with_sp, s.n_user);
}

static void the_descriptor_wakes_when_a_ring_fills(void **state)
{
	struct lull_perf_options o = LULL_PERF_OPTIONS_INIT;
	struct burner c = burner_start(0, true);
	struct pollfd wait;
	struct lull_perf *p;
	struct seen s = { 0 };

	(void)state;
	o.max_ring_bytes = 128 << 10;
	p = open_or_skip(&o, &c);
	wait = (struct pollfd){ .fd = lull_perf_fd(p), .events = POLLIN };
	assert_int_equal(poll(&wait, 1, 0), 0);
	burner_let_go(&c);
	assert_int_equal(poll(&wait, 1, (int)test_patience_s() * 1000), 1);
	burner_stop(&c);
	drain_until_end(p, &c, &s);
	/* The dead target hung up; that must not keep the descriptor readable. */
	assert_int_equal(poll(&wait, 1, 0), 0);
	burner_end(&c);
	lull_perf_close(p);
}

static void a_truncated_record_reaches_no_handler(void **state)
{
	struct {
		struct perf_event_header h;
		u64 body[8];
	} r = { .h = { .misc = 0 } };
	static const u32 types[] = { PERF_RECORD_SAMPLE, PERF_RECORD_COMM, PERF_RECORD_MMAP2,
				     PERF_RECORD_FORK,	 PERF_RECORD_LOST, PERF_RECORD_SWITCH };
	const struct lull_perf_format format = { .weight_ns = 1,
						 .has_stack = true,
						 .regs_mask = REGS_MASK };
	struct seen s = { 0 };

	(void)state;
	memset(r.body, 0xff, sizeof(r.body)); /* absurd lengths, names without an end */
	for (size_t i = 0; i < LULL_COUNT_OF(types); i++) {
		r.h.type = types[i];
		r.h.size = types[i] == PERF_RECORD_SWITCH ? 24 : 32;
		assert_false(lull_perf_record(&r.h, &format, &handlers, &s));
		r.h.size = types[i] == PERF_RECORD_SWITCH ? 24 : sizeof(r);
		if (types[i] != PERF_RECORD_FORK && types[i] != PERF_RECORD_LOST)
			assert_false(lull_perf_record(&r.h, &format, &handlers, &s));
	}
	assert_int_equal(s.n_samples + s.n_forks + s.n_lost + s.n_in + s.n_mmaps, 0);
}

/* As many as are wanted where they are cheap, and 0.05 % of the time, or 50, where they are not. */
static void samples_are_fewer_where_they_cost_more(void **state)
{
	struct lull_perf_options options = LULL_PERF_OPTIONS_INIT;
	u64 cost_ns = lull_perf_cost_ns(&options);

	(void)state;
	assert_int_equal(lull_perf_rate_hz(0), 100);
	assert_int_equal(lull_perf_rate_hz(3000), 100);
	assert_int_equal(lull_perf_rate_hz(5000), 100);
	assert_int_equal(lull_perf_rate_hz(6000), 80);
	assert_int_equal(lull_perf_rate_hz(10000), 50);
	assert_int_equal(lull_perf_rate_hz(21000), 50);
	assert_int_equal(lull_perf_rate_hz(5000000), 50);
	/* What a sample costs is this machine's business; what follows from it is not. */
	assert_in_range(lull_perf_rate_hz(cost_ns), LULL_PERF_MIN_RATE_HZ, LULL_PERF_CHEAP_HZ);
}

static void the_probe_agrees_with_open(void **state)
{
	struct lull_perf_probe probe;
	struct lull_perf_options o = LULL_PERF_OPTIONS_INIT;
	struct burner c = burner_start(1 * MS, false);
	struct lull_perf *p = NULL;
	struct lull_err err;
	int rc;

	(void)state;
	lull_perf_probe(&probe);
	rc = lull_perf_open(&p, &o, c.pid, &err);
	assert_int_equal(probe.samples_errno == 0, rc == 0);
	if (!rc)
		assert_int_equal(lull_perf_info(p).has_kernel, probe.kernel_errno == 0);
	else
		assert_non_null(strstr(err.msg, "paranoid"));
	lull_perf_close(p);
	burner_let_go(&c);
	burner_end(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_burning_threads_are_sampled_in_time_order),
		cmocka_unit_test(switches_come_without_samples),
		cmocka_unit_test(samples_come_without_switches),
		cmocka_unit_test(scopes_may_differ),
		cmocka_unit_test(stays_add_up_to_the_cpu_time),
		cmocka_unit_test(pausing_reaches_threads_born_before_and_after),
		cmocka_unit_test(events_that_last_are_paused_as_others),
		cmocka_unit_test(events_that_last_are_one_for_each_cpu),
		cmocka_unit_test(an_exec_and_its_libraries_are_told),
		cmocka_unit_test(a_small_ring_wraps_and_counts_what_it_loses),
		cmocka_unit_test(the_descriptor_wakes_when_a_ring_fills),
		cmocka_unit_test(a_truncated_record_reaches_no_handler),
		cmocka_unit_test(samples_are_fewer_where_they_cost_more),
		cmocka_unit_test(the_probe_agrees_with_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
