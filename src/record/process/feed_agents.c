/*
 * feed_agents - the agents' shared memory into the recording.
 *
 * New image files are found by listing the session folder. An image lives until its process is gone
 * (or has become another program) and everything it wrote is safe in the file.
 */
#include "record/collector_int.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/time.h"
#include "record/perf/callstack.h"
#include "record/decode/decode_event.h"
#include "record/decode/device_clock.h"
#include "record/process/image.h"
#include "record/process/pidns.h"
#include "record/session/secrets.h"

/* How often we look whether agents have flushed, or switched CUPTI on, 1 ms apart. */
#define FLUSH_TRIES 1000
#define ARM_TRIES   5000

/* What the drain callback needs. */
struct feed {
	struct lull_collector *c;
	struct lull_process *process;
};

static bool is_known(const struct lull_collector *c, const char *name)
{
	struct lull_process **all = c->tree.processes.at;

	for (size_t i = c->tree.processes.n; i-- > 0;)
		if (all[i]->file && strcmp(all[i]->file->name, name) == 0)
			return true;
	return false;
}

/* Numbers from here on stand for processes that were gone before we learned theirs. */
#define GONE_PID 0x40000000u

/* True if the image's process counts processes in another way than we do. */
static bool is_elsewhere(struct lull_collector *c, const struct lull_image *head)
{
	if (!c->pid_ns)
		c->pid_ns = lull_pidns_own();
	return head->pid_ns && c->pid_ns && head->pid_ns != c->pid_ns;
}

/* Our number of a process in the namespace of the image. */
static u32 our_pid(struct lull_collector *c, const struct lull_image *head, u32 pid)
{
	const struct lull_process *known = lull_tree_find_inner(&c->tree, head->pid_ns, pid);

	return known ? known->pid : lull_pidns_find(head->pid_ns, pid);
}

/* The process of an image in another namespace. */
static struct lull_process *place_elsewhere(struct lull_collector *c, const struct lull_image *head,
					    u64 start_ns)
{
	u32 pid = our_pid(c, head, head->pid);
	struct lull_process *p = lull_tree_place(
		&c->tree, pid ? pid : GONE_PID + (u32)c->tree.processes.n, start_ns);

	p->pid_ns = head->pid_ns;
	p->ns_pid = head->pid;
	if (!pid)
		p->end_ns = lull_now_ns();
	return p;
}

/*
 * Which entry of the tree the new image is: the program as we know it already, or one nobody told
 * us about.
 */
static struct lull_process *place_image(struct lull_collector *c, const struct lull_image *head)
{
	u64 start_ns = lull_clock_ns_of(&c->clock, head->start_counter);
	bool is_other = is_elsewhere(c, head);
	struct lull_process *p = is_other ? place_elsewhere(c, head, start_ns)
					  : lull_tree_place(&c->tree, head->pid, start_ns);
	u32 parent_pid = is_other && head->parent_pid ? our_pid(c, head, head->parent_pid)
						      : head->parent_pid;
	struct lull_process *parent;

	if (!p->parent_pid)
		p->parent_pid = parent_pid;
	if (!p->space) {
		/*
		 * A forked child has its parent's mappings; its own agent tells about all others.
		 */
		parent = lull_tree_find(&c->tree, p->parent_pid);
		if (parent)
			lull_callstack_fork(&c->recording, p, parent);
	}
	return p;
}

/* The arguments without secrets; cut off where the agent had no room for more. */
static char *cmdline_of(const struct lull_image *head)
{
	u32 n = head->cmdline_bytes < sizeof(head->cmdline) ? head->cmdline_bytes
							    : sizeof(head->cmdline);
	char *text = lull_strndup(head->cmdline, n);
	struct lull_str shown = LULL_STR_INIT;
	struct lull_vec args;

	lull_vec_init(&args, sizeof(char *));
	for (u32 i = 0; i < n; i += (u32)strlen(text + i) + 1)
		*(char **)lull_vec_push(&args) = text + i;
	lull_secrets_filter_argv((int)args.n, args.at, &shown);
	lull_vec_release(&args);
	free(text);
	return shown.at;
}

static void describe(struct lull_process *p, const struct lull_image *head)
{
	free(p->exe);
	free(p->cmdline);
	p->cmdline = cmdline_of(head);
	p->exe = lull_strndup(head->exe, strnlen(head->exe, sizeof(head->exe)));
	snprintf(p->name, sizeof(p->name), "%.15s", head->comm);
}

/* What the process says of its place in a job; it may learn it late. */
static void read_rank(struct lull_collector *c, struct lull_process *p)
{
	const struct lull_image *head = p->file->head;
	i32 rank = atomic_load_explicit(&head->rank, memory_order_acquire);

	if (rank < 0)
		return;
	p->rank.rank = rank;
	p->rank.local_rank = atomic_load_explicit(&head->local_rank, memory_order_relaxed);
	p->rank.n_ranks = atomic_load_explicit(&head->n_ranks, memory_order_relaxed);
	if (memchr(head->job, 0, sizeof(head->job)))
		memcpy(c->recording.job, head->job, sizeof(head->job));
}

static void add_image(struct lull_collector *c, const char *name)
{
	struct lull_image_file *f = lull_alloc(1, sizeof(*f));
	struct lull_process *p;
	struct lull_err err;

	/* Not ready yet, or gone again: the next scan tells. */
	if (lull_image_open(f, c->session.dir_fd, name, &err) != 0) {
		c->n_unopened += err.code == LULL_E_NOMEM;
		free(f);
		return;
	}
	p = place_image(c, f->head);
	p->file = f;
	p->had_agent = true;
	p->is_loaded = false;
	p->is_ours = true;
	p->slot_tasks = lull_alloc(LULL_N_SLOTS, sizeof(*p->slot_tasks));
	if (p->pidfd < 0)
		p->pidfd = (int)syscall(SYS_pidfd_open, p->pid, 0);
	describe(p, f->head);
	read_rank(c, p);
}

/* Names are PID-COUNTER.image; the counter says in which order programs began. */
static int by_counter(const void *a, const void *b)
{
	u64 x = strtoull(strchr(*(char *const *)a, '-') + 1, NULL, 16);
	u64 y = strtoull(strchr(*(char *const *)b, '-') + 1, NULL, 16);

	return x < y ? -1 : x > y;
}

void lull_feed_agents_scan(struct lull_collector *c)
{
	DIR *dir = lull_session_files(&c->session);
	struct lull_vec names;
	struct dirent *e;

	if (!dir) {
		/* There may be none that is new, but nobody can tell. */
		if (errno == EMFILE || errno == ENFILE)
			c->n_unopened += !c->n_unopened;
		return;
	}
	lull_vec_init(&names, sizeof(char *));
	while ((e = readdir(dir))) {
		size_t n = strlen(e->d_name);

		if (n > 6 && strcmp(e->d_name + n - 6, ".image") == 0 && strchr(e->d_name, '-') &&
		    !is_known(c, e->d_name))
			*(char **)lull_vec_push(&names) = lull_strdup(e->d_name);
	}
	closedir(dir);
	if (names.n > 1)
		lull_sort(names.at, names.n, sizeof(char *), by_counter);
	c->n_unopened = 0;
	for (size_t i = 0; i < names.n; i++) {
		char *name = ((char **)names.at)[i];

		add_image(c, name);
		free(name);
	}
	lull_vec_release(&names);
}

/* The thread of a slot; slots are used again by later threads. */
static struct lull_task *task_of(struct lull_collector *c, struct lull_process *p, u32 slot_ix)
{
	const struct lull_slot *slot = &p->file->slots[slot_ix];
	u64 start_ns = lull_clock_ns_of(&c->clock, slot->start_counter);
	struct lull_task *task = p->slot_tasks[slot_ix];

	if (task && task->tid == slot->tid && task->slot_counter == slot->start_counter)
		return task;
	task = lull_tree_find_task(p, slot->tid);
	if (task && task->slot_counter && task->slot_counter != slot->start_counter)
		task->end_ns = start_ns; /* the id has come back */
	task = lull_tree_task(p, slot->tid, start_ns);
	task->slot_counter = slot->start_counter;
	task->pthread_id = slot->pthread_id;
	task->n_dropped_before = 0;
	p->slot_tasks[slot_ix] = task;
	return task;
}

/*
 * In a report that the recorder had not opened, events of an earlier one may lie before its own: of
 * these only names are taken, as between two reports.
 */
static bool decode(struct lull_collector *c, struct lull_task *task, u32 level,
		   const struct lull_event *event)
{
	struct lull_writer *writer = c->recording.writer;
	bool is_good;

	if (event->counter < c->salvage_counter)
		c->recording.writer = NULL;
	is_good = lull_decode(&c->recording, task, level, event);
	c->recording.writer = c->recording.writer ? c->recording.writer : writer;
	return is_good;
}

static void on_event(void *ctx, u32 slot_ix, u32 level, const struct lull_event *event)
{
	struct feed *feed = ctx;
	struct lull_collector *c = feed->c;
	struct lull_task *task = task_of(c, feed->process, slot_ix);

	feed->process->last_counter = event->counter;
	/*
	 * An agent counts a capture range as begun before it writes the range's first event; so if
	 * this is that event, the count is there to see, and the report opens before the event is
	 * decoded.
	 */
	if (!c->recording.writer && c->options->begin == LULL_BEGIN_ON_RANGE)
		lull_collector_follow_begin(c);
	lull_feed_duty_follow(c);
	if (!decode(c, task, level, event))
		feed->process->file->n_bad++;
}

/* Threads' ends and drop counters. */
static void read_slots(struct lull_collector *c, struct lull_process *p)
{
	u32 n = lull_image_n_slots(p->file);

	p->n_unplaced = atomic_load_explicit(&p->file->head->n_unplaced, memory_order_relaxed) -
			p->n_unplaced_before;
	for (u32 i = 0; i < n; i++) {
		const struct lull_slot *slot = &p->file->slots[i];
		u32 state = atomic_load_explicit(&slot->state, memory_order_acquire);
		u64 n_dropped;
		struct lull_task *task;

		if (state != LULL_SLOT_LIVE && state != LULL_SLOT_ENDED)
			continue;
		n_dropped = atomic_load_explicit(&slot->n_dropped, memory_order_relaxed);
		if (!n_dropped && state == LULL_SLOT_LIVE)
			continue;
		task = task_of(c, p, i);
		task->n_dropped = n_dropped - task->n_dropped_before;
		if (state == LULL_SLOT_ENDED && !task->end_ns)
			task->end_ns = lull_clock_ns_of(
				&c->clock,
				atomic_load_explicit(&slot->end_counter, memory_order_relaxed));
	}
}

static bool has_died(const struct lull_process *p)
{
	struct pollfd fd = { .fd = p->pidfd, .events = POLLIN };

	if (p->end_ns)
		return true;
	if (p->pidfd < 0)
		return !lull_is_alive(p->pid);
	return poll(&fd, 1, 0) == 1;
}

/* What the process itself could say about its end. */
static void read_end(struct lull_collector *c, struct lull_process *p, u64 now_ns)
{
	const struct lull_image *head = p->file->head;
	u32 state = atomic_load_explicit(&head->state, memory_order_acquire);
	bool has_left = state == LULL_IMAGE_EXITED;
	u64 counter = atomic_load_explicit(&head->exit_counter, memory_order_relaxed);

	if (head->user_ns || head->system_ns) {
		p->user_ns = head->user_ns;
		p->system_ns = head->system_ns;
		p->max_rss_bytes = head->max_rss_bytes;
	}
	if (has_left && p->exit_kind == LULL_EXIT_UNKNOWN) {
		p->exit_kind = LULL_EXIT_CODE;
		p->exit_code = head->exit_code;
	}
	if (!has_left || !counter)
		counter = c->is_salvaging ? p->last_counter : 0;
	p->has_cuda = atomic_load(&head->has_cuda);
	/*
	 * Whoever leaves by itself, or becomes another program, has flushed; a killed process took
	 * its last records with it.
	 */
	if (p->has_cuda && !has_left && state != LULL_IMAGE_EXECED &&
	    lull_recording_is_on(&c->recording))
		lull_recording_issue(&c->recording, LULL_ISSUE_device_tail, p, 1, NULL);
	if (!p->end_ns)
		p->end_ns = counter ? lull_clock_ns_of(&c->clock, counter) : now_ns;
}

/* A child that has no image yet, and may never have one. */
static void on_fork(struct lull_collector *c, struct lull_process *by, const struct lull_fork *f)
{
	const struct lull_image *head = by->file->head;
	bool is_other = is_elsewhere(c, head);
	u32 pid = is_other ? our_pid(c, head, f->pid) : f->pid;
	u32 parent_pid = is_other ? our_pid(c, head, f->parent_pid) : f->parent_pid;
	struct lull_process *p;

	if (!pid)
		return; /* gone; its number here was never known */
	p = lull_tree_fork(&c->tree, pid, parent_pid, lull_clock_ns_of(&c->clock, f->counter));
	p->is_ours = true;
	if (p->had_agent)
		return;
	if (!p->space)
		lull_callstack_fork(&c->recording, p, by);
	if (!*p->name)
		memcpy(p->name, by->name, sizeof(p->name));
	if (!p->exe && by->exe)
		p->exe = lull_strdup(by->exe);
	if (!p->cmdline && by->cmdline)
		p->cmdline = lull_strdup(by->cmdline);
}

static void read_forks(struct lull_collector *c, struct lull_process *p, bool is_last)
{
	struct lull_image *head = p->file->head;
	u64 n = atomic_load(&head->n_forks_read);

	if (is_last)
		atomic_store(&head->is_closed, 1);
	while (atomic_load(&head->forks[n % LULL_N_FORKS].seq) == n + 1) {
		struct lull_fork f = head->forks[n % LULL_N_FORKS];

		atomic_store(&head->n_forks_read, ++n);
		on_fork(c, p, &f);
	}
}

static void feed_process(struct lull_collector *c, struct lull_process *p)
{
	struct feed feed = { c, p };
	/*
	 * Death first: what a dead process has written is all there is, so the drain that follows
	 * is the last.
	 */
	bool is_dead = has_died(p);

	read_forks(c, p, is_dead);
	lull_image_drain(p->file, on_event, &feed);
	if (is_dead && !p->is_drained) {
		read_end(c, p, lull_now_ns());
		p->is_drained = true;
	}
}

void lull_feed_agents(struct lull_collector *c)
{
	for (size_t i = 0; i < c->tree.processes.n; i++) {
		struct lull_process *p = ((struct lull_process **)c->tree.processes.at)[i];

		if (p->file)
			feed_process(c, p);
	}
	lull_device_clock_release(&c->recording);
	lull_pulse_settle(&c->pulse);
}

bool lull_feed_agents_leave_round(struct lull_collector *c)
{
	struct lull_process **all = c->tree.processes.at;
	bool has_left = false;

	for (size_t i = 0; i < c->tree.processes.n; i++) {
		struct lull_image *head = all[i]->file ? all[i]->file->head : NULL;

		if (!head || !atomic_load(&head->is_in_round) || !has_died(all[i]) ||
		    !atomic_exchange(&head->is_in_round, 0))
			continue;
		atomic_fetch_sub(&c->session.control->n_in_round, 1);
		has_left = true;
	}
	return has_left;
}

/* The process records the activity of a device. */
static bool has_cuda(const struct lull_process *p)
{
	return p->file && atomic_load(&p->file->head->has_cuda) && !has_died(p);
}

bool lull_feed_agents_have_cuda(const struct lull_collector *c)
{
	struct lull_process **all = c->tree.processes.at;

	for (size_t i = 0; i < c->tree.processes.n; i++)
		if (has_cuda(all[i]))
			return true;
	return false;
}

/* True if a process that is alive has yet to answer the request; a later flush covers this one. */
static bool is_flush_pending(const struct lull_collector *c, u32 wanted)
{
	struct lull_process **all = c->tree.processes.at;

	for (size_t i = 0; i < c->tree.processes.n; i++)
		if (has_cuda(all[i]) &&
		    (i32)(atomic_load(&all[i]->file->head->flush_done) - wanted) < 0)
			return true;
	return false;
}

/* Raise the word that agents with CUDA sleep on: one that is about to fall asleep stays awake. */
static u32 rouse(struct lull_collector *c)
{
	u32 wanted = atomic_fetch_add(&c->session.control->flush_wanted, 1) + 1;

	syscall(SYS_futex, &c->session.control->flush_wanted, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	return wanted;
}

void lull_feed_agents_wake(struct lull_collector *c)
{
	rouse(c);
}

/* Have agents with CUDA look at the control page, and wait until they have obeyed. */
static void ask(struct lull_collector *c, int n_tries)
{
	u32 wanted = rouse(c);

	for (int i = 0; i < n_tries && is_flush_pending(c, wanted); i++) {
		usleep(1000);
		lull_feed_agents(c);
	}
}

bool lull_feed_agents_flush(struct lull_collector *c)
{
	/* Before it is asked: it may have answered by the time we look. */
	bool is_any = lull_feed_agents_have_cuda(c);

	ask(c, FLUSH_TRIES);
	return is_any;
}

void lull_feed_agents_arm(struct lull_collector *c)
{
	lull_feed_agents_scan(c);
	/* Before it is looked who has CUDA: one that begins with it now sees that it is wanted. */
	atomic_store(&c->session.control->armed, 1);
	ask(c, ARM_TRIES);
}

bool lull_feed_agents_is_held_back(const struct lull_collector *c)
{
	struct lull_process **all = c->tree.processes.at;

	for (size_t i = 0; i < c->tree.processes.n; i++) {
		const struct lull_image *head = all[i]->file ? all[i]->file->head : NULL;

		if (head && atomic_load(&head->n_held) && !has_died(all[i]))
			return true;
	}
	return false;
}

/* What the agent says about an issue, NULL if nothing. */
static const char *detail_of(const struct lull_image *head, u32 issue)
{
	switch (issue) {
	case LULL_ISSUE_no_cupti:
	case LULL_ISSUE_cupti_refused:
	case LULL_ISSUE_cupti_taken:
		return *head->cuda_detail && memchr(head->cuda_detail, 0, sizeof(head->cuda_detail))
			       ? head->cuda_detail
			       : NULL;
	case LULL_ISSUE_torch_partly:
		return memchr(head->torch_detail, 0, sizeof(head->torch_detail))
			       ? head->torch_detail
			       : NULL;
	default:
		return NULL;
	}
}

/* PyTorch is there, but our hooks are not: say why there are no phases. */
static void check_torch(struct lull_collector *c, struct lull_process *p)
{
	u32 bits = atomic_load_explicit(&p->file->head->torch, memory_order_relaxed);

	if (!p->has_torch || !(c->options->sources & LULL_SOURCE_TORCH) ||
	    (bits & LULL_TORCH_HOOKED))
		return;
	p->has_torch = false; /* said */
	lull_recording_issue(&c->recording, LULL_ISSUE_torch_not_hooked, p, 1,
			     bits & LULL_TORCH_PACKAGE
				     ? "torch was imported past sys.meta_path, or its import failed"
				     : "python ran with -I, -E or -S, or another PYTHONPATH");
}

static void issues_of(struct lull_collector *c, struct lull_process *p)
{
	const struct lull_image *head = p->file->head;

	for (u32 i = 1; i < LULL_N_ISSUES; i++) {
		u64 n = atomic_load_explicit(&head->issues[i], memory_order_relaxed);

		/*
		 * nested_drop and no_memory also count in the slots; they are named here, counted
		 * there.
		 */
		if (n > p->file->n_issues[i])
			lull_recording_issue(&c->recording, i, p, n - p->file->n_issues[i],
					     detail_of(head, i));
		p->file->n_issues[i] = n;
	}
	check_torch(c, p);
	lull_recording_issue(&c->recording, LULL_ISSUE_bad_event, p, p->file->n_bad, NULL);
	p->file->n_bad = 0;
}

void lull_feed_agents_issues(struct lull_collector *c)
{
	struct lull_process **all = c->tree.processes.at;

	for (size_t i = 0; i < c->tree.processes.n; i++) {
		if (!all[i]->file)
			continue;
		read_slots(c, all[i]);
		read_rank(c, all[i]);
		issues_of(c, all[i]);
	}
}

static void drop_image(const struct lull_collector *c, struct lull_process *p)
{
	unlinkat(c->session.dir_fd, p->file->name, 0);
	lull_image_close(p->file);
	free(p->file);
	p->file = NULL;
	free(p->slot_tasks);
	p->slot_tasks = NULL;
}

void lull_feed_agents_release(struct lull_collector *c)
{
	struct lull_process **all = c->tree.processes.at;

	for (size_t i = 0; i < c->tree.processes.n; i++) {
		if (!all[i]->file)
			continue;
		read_slots(c, all[i]);
		if (all[i]->is_drained) {
			read_rank(c, all[i]);
			issues_of(c, all[i]);
			drop_image(c, all[i]);
		} else {
			lull_image_release(all[i]->file);
		}
	}
}

u64 lull_feed_agents_held(const struct lull_collector *c)
{
	struct lull_process **all = c->tree.processes.at;
	u64 n = 0;

	for (size_t i = 0; i < c->tree.processes.n; i++)
		if (all[i]->file)
			n += all[i]->file->unreleased_bytes;
	return n;
}
