#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/time.h"
#include "launch/perf.h"
#include "launch/perf_int.h"
#include "launch/sched.h"

#define MS 1000000ULL

/* What a child tells about itself: the tids of its threads, in shared memory of the two. */
struct child {
	pid_t pid;
	int go_fd; /* one byte starts it, as the collector lets the target go */
	int tids_fd;
};

/* Everything the handlers saw. */
struct seen {
	u64 n_samples, n_in, n_out, n_preempted, n_forks, n_exits, n_mmaps, n_lost, n_disordered;
	u64 n_with_stack, n_with_sp, n_user_pc, weight_ns;
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
	s->n_with_stack += sample->stack_bytes > 0;
	if (!sample->regs_mask)
		return;
	s->n_user_pc += sample->is_kernel || reg_of(sample, PC_REG) == sample->ip;
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

static volatile u64 sink;

static void burn(u64 dur_ns)
{
	u64 until = lull_clock_ns(CLOCK_THREAD_CPUTIME_ID) + dur_ns;

	while (lull_clock_ns(CLOCK_THREAD_CPUTIME_ID) < until)
		for (int i = 0; i < 2000; i++)
			sink += (u64)i;
}

static u64 burn_ns;

static void *burn_thread(void *arg)
{
	u32 tid = (u32)syscall(SYS_gettid);

	if (write(*(int *)arg, &tid, sizeof(tid)) != sizeof(tid))
		_exit(1);
	burn(burn_ns);
	return NULL;
}

static void child_main(int go_fd, int tids_fd)
{
	pthread_t threads[2];
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (read(go_fd, &byte, 1) != 1)
		_exit(1);
	prctl(PR_SET_NAME, "burner");
	for (int i = 0; i < 2; i++)
		pthread_create(&threads[i], NULL, burn_thread, &tids_fd);
	for (int i = 0; i < 2; i++)
		pthread_join(threads[i], NULL);
	_exit(0);
}

static struct child start_child(u64 dur_ns)
{
	struct child c;
	int go[2], tids[2];

	assert_int_equal(pipe(go), 0);
	assert_int_equal(pipe(tids), 0);
	burn_ns = dur_ns;
	c.pid = fork();
	assert_true(c.pid >= 0);
	if (!c.pid)
		child_main(go[0], tids[1]);
	close(go[0]);
	close(tids[1]);
	c.go_fd = go[1];
	c.tids_fd = tids[0];
	return c;
}

static void let_go(const struct child *c)
{
	assert_int_equal(write(c->go_fd, "", 1), 1);
}

static void end_child(const struct child *c)
{
	close(c->go_fd);
	close(c->tids_fd);
	waitpid(c->pid, NULL, 0);
}

/* Open or skip, loudly, with the kernel's reason. */
static struct lull_perf *open_or_skip(const struct lull_perf_options *o, const struct child *c)
{
	struct lull_perf *p = NULL;
	struct lull_err err;

	if (lull_perf_open(&p, o, c->pid, &err)) {
		fprintf(stderr, "SKIPPED: %s\n", err.msg);
		kill(c->pid, SIGKILL);
		end_child(c);
		skip();
	}
	return p;
}

static bool has_ended(pid_t pid)
{
	siginfo_t info = { 0 };

	return !waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid == pid;
}

static void drain_until_end(struct lull_perf *p, const struct child *c, struct seen *s)
{
	while (!has_ended(c->pid)) {
		usleep(20000);
		lull_perf_drain(p, &handlers, s);
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

static void two_burning_threads_are_sampled_in_time_order(void **state)
{
	struct lull_perf_options o = LULL_PERF_OPTIONS_INIT;
	struct child c = start_child(300 * MS);
	struct lull_perf *p;
	struct seen s = { 0 };
	u32 tids[2];

	(void)state;
	o.regs_mask = REGS_MASK;
	p = open_or_skip(&o, &c);
	let_go(&c);
	drain_until_end(p, &c, &s);
	assert_int_equal(read(c.tids_fd, tids, sizeof(tids)), sizeof(tids));
	end_child(&c);
	lull_perf_close(p);
	assert_true(was_sampled(&s, tids[0]) && was_sampled(&s, tids[1]));
	/* 600 ms of CPU time at 1 kHz; a busy machine may coalesce some timer ticks. */
	assert_in_range(s.n_samples, 400, 800);
	assert_in_range(s.weight_ns, 400 * MS, 800 * MS);
	assert_int_equal(s.n_with_stack, s.n_samples);
	assert_int_equal(s.n_with_sp, s.n_samples);
	assert_int_equal(s.n_user_pc, s.n_samples);
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
	struct child c = start_child(50 * MS);
	struct lull_perf *p;
	struct seen s = { 0 };

	(void)state;
	o.samples = LULL_PERF_NONE;
	p = open_or_skip(&o, &c);
	let_go(&c);
	drain_until_end(p, &c, &s);
	end_child(&c);
	lull_perf_close(p);
	assert_int_equal(s.n_samples, 0);
	assert_true(s.n_in > 2 && s.n_out > 2);
	assert_int_equal(s.n_exits, 3);
}

static void samples_come_without_switches(void **state)
{
	struct lull_perf_options o = LULL_PERF_OPTIONS_INIT;
	struct child c = start_child(50 * MS);
	struct lull_perf *p;
	struct seen s = { 0 };

	(void)state;
	o.switches = LULL_PERF_NONE;
	o.stack_bytes = 0;
	p = open_or_skip(&o, &c);
	let_go(&c);
	drain_until_end(p, &c, &s);
	end_child(&c);
	lull_perf_close(p);
	assert_true(s.n_samples > 20);
	assert_int_equal(s.n_in + s.n_out, 0);
	assert_int_equal(s.n_with_stack, 0);
}

static void scopes_may_differ(void **state)
{
	struct lull_perf_options o = LULL_PERF_OPTIONS_INIT;
	struct child c = start_child(100 * MS);
	struct lull_perf *p;
	struct seen s = { 0 };
	u32 tids[2];

	(void)state;
	o.samples = LULL_PERF_SYSTEM_WIDE;
	p = open_or_skip(&o, &c);
	let_go(&c);
	drain_until_end(p, &c, &s);
	assert_int_equal(read(c.tids_fd, tids, sizeof(tids)), sizeof(tids));
	end_child(&c);
	lull_perf_close(p);
	assert_true(was_sampled(&s, tids[0]) && was_sampled(&s, tids[1]));
	assert_true(s.n_in > 2 && s.n_out > 2);
	/* A virtual CPU may be held up between the time of an event and its record. */
	assert_true(s.n_disordered * 1000 <= s.n_in + s.n_out + s.n_samples);
}

static void add_stay(void *ctx, const struct lull_sched_stay *row)
{
	*(u64 *)ctx += row->dur_ns;
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

static void stays_add_up_to_the_cpu_time(void **state)
{
	const struct lull_perf_handlers to_sched = { .switched = on_stay_switch,
						     .exit = on_stay_exit };
	struct lull_perf_options o = LULL_PERF_OPTIONS_INIT;
	struct child c = start_child(150 * MS);
	struct lull_perf *p;
	struct lull_sched sched;
	u64 on_cpu_ns = 0;

	(void)state;
	o.samples = LULL_PERF_NONE;
	p = open_or_skip(&o, &c);
	lull_sched_init(&sched, lull_now_ns(), add_stay, &on_cpu_ns);
	let_go(&c);
	while (!has_ended(c.pid)) {
		usleep(20000);
		lull_perf_drain(p, &to_sched, &sched);
	}
	lull_perf_flush(p, &to_sched, &sched);
	lull_sched_release(&sched);
	end_child(&c);
	lull_perf_close(p);
	/* Two threads with 150 ms each, and what starting them takes. */
	assert_in_range(on_cpu_ns, 298 * MS, 400 * MS);
}

static void pausing_reaches_threads_born_before_and_after(void **state)
{
	struct lull_perf_options o = LULL_PERF_OPTIONS_INIT;
	struct child c = start_child(450 * MS);
	struct lull_perf *p;
	struct lull_err err;
	struct seen paused = { 0 }, on = { 0 }, again = { 0 };

	(void)state;
	o.is_paused = true;
	p = open_or_skip(&o, &c);
	let_go(&c);
	usleep(150000); /* the threads are born and burn unseen */
	lull_perf_flush(p, &handlers, &paused);
	assert_int_equal(lull_perf_enable(p, true, &err), 0);
	usleep(200000);
	assert_int_equal(lull_perf_enable(p, false, &err), 0);
	lull_perf_flush(p, &handlers, &on);
	drain_until_end(p, &c, &again);
	end_child(&c);
	lull_perf_close(p);
	assert_int_equal(paused.n_samples, 0);
	assert_int_equal(paused.n_forks, 2); /* births are told even while paused */
	assert_true(on.n_samples > 10);	     /* 400 on an idle machine */
	assert_int_equal(on.n_tids, 2);
	assert_int_equal(again.n_samples, 0);
	assert_int_equal(again.n_in, 0);
	assert_int_equal(again.n_exits, 3);
}

static void an_exec_and_its_libraries_are_told(void **state)
{
	struct lull_perf_options o = LULL_PERF_OPTIONS_INIT;
	struct child c = { .tids_fd = -1 };
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
	let_go(&c);
	drain_until_end(p, &c, &s);
	end_child(&c);
	close(go[0]);
	lull_perf_close(p);
	assert_true(s.has_exec_comm);
	assert_string_equal(s.comm, "true");
	assert_true(s.n_mmaps >= 2); /* the program and the loader at least */
}

static void a_small_ring_wraps_and_counts_what_it_loses(void **state)
{
	struct lull_perf_options o = LULL_PERF_OPTIONS_INIT;
	struct child c = start_child(400 * MS);
	struct lull_perf *p;
	struct seen s = { 0 };

	(void)state;
	o.max_ring_bytes = 64 << 10;
	o.regs_mask = REGS_MASK;
	p = open_or_skip(&o, &c);
	assert_int_equal(lull_perf_info(p).ring_bytes, 64 << 10);
	let_go(&c);
	usleep(100000); /* far more than seven samples of 8 KiB */
	drain_until_end(p, &c, &s);
	end_child(&c);
	lull_perf_close(p);
	assert_true(s.n_samples > 20); /* many rounds of the ring */
	assert_int_equal(s.n_with_sp, s.n_samples);
	assert_int_equal(s.n_disordered, 0);
	assert_true(s.n_lost > 0);
}

static void the_descriptor_wakes_when_a_ring_fills(void **state)
{
	struct lull_perf_options o = LULL_PERF_OPTIONS_INIT;
	struct child c = start_child(300 * MS);
	struct pollfd wait;
	struct lull_perf *p;
	struct seen s = { 0 };

	(void)state;
	o.max_ring_bytes = 128 << 10;
	p = open_or_skip(&o, &c);
	wait = (struct pollfd){ .fd = lull_perf_fd(p), .events = POLLIN };
	assert_int_equal(poll(&wait, 1, 0), 0);
	let_go(&c);
	assert_int_equal(poll(&wait, 1, 2000), 1);
	drain_until_end(p, &c, &s);
	/* The dead target hung up; that must not keep the descriptor readable. */
	assert_int_equal(poll(&wait, 1, 0), 0);
	end_child(&c);
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
	/* More than an interrupt can take, less than two of them are apart. */
	if (cost_ns)
		assert_in_range(cost_ns, 1000, 500000);
}

static void the_probe_agrees_with_open(void **state)
{
	struct lull_perf_probe probe;
	struct lull_perf_options o = LULL_PERF_OPTIONS_INIT;
	struct child c = start_child(1 * MS);
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
	let_go(&c);
	end_child(&c);
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
		cmocka_unit_test(an_exec_and_its_libraries_are_told),
		cmocka_unit_test(a_small_ring_wraps_and_counts_what_it_loses),
		cmocka_unit_test(the_descriptor_wakes_when_a_ring_fills),
		cmocka_unit_test(a_truncated_record_reaches_no_handler),
		cmocka_unit_test(samples_are_fewer_where_they_cost_more),
		cmocka_unit_test(the_probe_agrees_with_open),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
