#include "page/analyst.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "job/job.h"
#include "job/job_json.h"
#include "page/page.h"
#include "page/page_why.h"
#include "timeline/idle_cause.h"
#include "timeline/rounds_row.h"

#define MAX_BYTES (256u << 20) /* of a message; 500,000 pieces of idle time take 12 MB */
#define N_WALKS	  3u	       /* times the analysis walks its tables, for the progress */
#define NICE	  5

/* What the process says, each followed by `len` bytes. */
enum kind {
	SAYS_PROGRESS, /* u32: percent */
	SAYS_VERDICT,  /* the answer */
	SAYS_STEPS,    /* the answer */
	SAYS_CAUSES,   /* u64: device, then struct lull_idle */
	SAYS_ROUNDS,   /* struct lull_tl_round */
	SAYS_FAILED,   /* why it has no answer */
	SAYS_DONE,     /* with this report */
	SAYS_RANKS,    /* the job as JSON */
	SAYS_NO_RANKS, /* why it has no answer */
};

struct message {
	u32 kind;
	u32 report_ix;
	u64 len;
};

struct lull_analyst {
	struct lull_page *page;
	pid_t pid;
	int fd; /* what it says */
	pthread_t thread;
};

/* ---- in the process ---- */

struct work {
	struct lull_page *page;
	u32 report_ix;
	int fd;
	u64 n_rows, n_passed, last_passed;
	u32 percent;
};

static void write_all(int fd, const void *bytes, size_t len)
{
	const char *at = bytes;

	while (len) {
		ssize_t n = write(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(1); /* nobody listens */
		at += n;
		len -= (size_t)n;
	}
}

static void say(const struct work *w, enum kind kind, const void *bytes, size_t len)
{
	struct message m = { (u32)kind, w->report_ix, len };

	write_all(w->fd, &m, sizeof(m));
	write_all(w->fd, bytes, len);
}

/* Told of each block that is read. */
static void on_block(void *ctx, const struct lull_table_desc *table, u64 n_passed, u64 n_rows)
{
	struct work *w = ctx;
	u32 percent;

	(void)table;
	(void)n_rows;
	w->n_passed += n_passed > w->last_passed ? n_passed - w->last_passed : 0;
	w->last_passed = n_passed;
	percent = (u32)(100 * w->n_passed / (N_WALKS * w->n_rows + 1));
	percent = percent < 99 ? percent : 99;
	if (percent <= w->percent)
		return;
	w->percent = percent;
	say(w, SAYS_PROGRESS, &percent, sizeof(percent));
}

static u64 count_rows(const struct lull_reader *r)
{
	u64 n = 0;

	for (const struct lull_table_desc *d = lull_tables; d->name; d++)
		n += lull_reader_stats(r, d->id).n_rows;
	return n;
}

static void say_answer(const struct work *w, enum kind kind, const char *name)
{
	struct lull_args args = { .report_ix = w->report_ix };
	struct lull_err err = { LULL_OK, "" };
	char *bytes = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&bytes, &len);
	int rc;

	if (!to)
		_exit(1);
	rc = lull_page_answer(w->page, lull_answer_find(name), &args, to, &err);
	fclose(to);
	if (!rc)
		say(w, kind, bytes, len);
	free(bytes);
}

static void say_causes(const struct work *w, const struct lull_why *why)
{
	for (u32 i = 0; i < why->n_subjects; i++) {
		struct lull_vec bytes, pieces;
		u64 device = why->subjects[i].device;

		lull_vec_init(&pieces, sizeof(struct lull_idle));
		lull_page_pieces(&why->subjects[i], &pieces);
		lull_vec_init(&bytes, 1);
		lull_vec_add(&bytes, &device, sizeof(device));
		lull_vec_add(&bytes, pieces.at, pieces.n * sizeof(struct lull_idle));
		say(w, SAYS_CAUSES, bytes.at, bytes.n);
		lull_vec_release(&bytes);
		lull_vec_release(&pieces);
	}
}

static void say_rounds(const struct work *w, struct lull_page_report *report)
{
	struct lull_vec rounds;

	lull_page_rounds(report, &rounds);
	say(w, SAYS_ROUNDS, rounds.at, rounds.n * sizeof(struct lull_tl_round));
	lull_vec_release(&rounds);
}

static void analyse(struct work *w)
{
	struct lull_page_report *report = &w->page->reports[w->report_ix];

	w->n_rows = count_rows(report->slow);
	w->n_passed = w->last_passed = w->percent = 0;
	lull_reader_watch(report->slow, on_block, w);
	if (lull_page_why(report, true) == LULL_PAGE_WHY_DONE) {
		lull_reader_watch(report->slow, NULL, NULL);
		say_causes(w, report->why);
		say_rounds(w, report);
		say_answer(w, SAYS_STEPS, "steps");
		say_answer(w, SAYS_VERDICT, "verdict");
	} else {
		say(w, SAYS_FAILED, report->why_failed, strlen(report->why_failed));
	}
	say(w, SAYS_DONE, NULL, 0);
	lull_page_why_release(report);
}

/* The ranks of a job against each other; each report is opened, looked into and closed. */
static void analyse_job(struct work *w)
{
	struct lull_err err = { LULL_OK, "" };
	char *bytes = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&bytes, &len);
	struct lull_json j;

	if (!to)
		_exit(1);
	if (lull_job_run(w->page->job->job, &err)) {
		say(w, SAYS_NO_RANKS, err.msg, strlen(err.msg));
	} else {
		lull_json_init(&j, to);
		lull_job_json(&j, w->page->job->job);
		fflush(to);
		say(w, SAYS_RANKS, bytes, len);
	}
	fclose(to);
	free(bytes);
}

static void run_process(struct lull_page *page, int fd)
{
	struct work w = { .page = page, .fd = fd };
	sigset_t all;

	prctl(PR_SET_NAME, "lull-analyst");
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_DFL);
	sigfillset(&all);
	sigprocmask(SIG_UNBLOCK, &all, NULL);
	if (nice(NICE) < 0)
		errno = 0; /* then at the priority it has */
	if (page->job)
		analyse_job(&w);
	for (w.report_ix = 0; w.report_ix < page->n_reports; w.report_ix++)
		if (page->reports[w.report_ix].told.is_running)
			analyse(&w);
	_exit(0);
}

/* ---- in the server ---- */

static bool read_all(int fd, void *bytes, size_t len)
{
	char *at = bytes;

	while (len) {
		ssize_t n = read(fd, at, len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return false;
		at += n;
		len -= (size_t)n;
	}
	return true;
}

static void take_causes(struct lull_page_report *report, const u8 *bytes, size_t len)
{
	struct lull_vec pieces;
	u64 device;

	if (len < sizeof(device))
		return;
	memcpy(&device, bytes, sizeof(device));
	lull_vec_init(&pieces, sizeof(struct lull_idle));
	lull_vec_add(&pieces, bytes + sizeof(device),
		     (len - sizeof(device)) / sizeof(struct lull_idle));
	pthread_mutex_lock(&report->quick_lock);
	lull_idle_set_causes(report->timeline, (u32)device, &pieces);
	pthread_mutex_unlock(&report->quick_lock);
	lull_vec_release(&pieces);
}

static void take_rounds(struct lull_page_report *report, const char *bytes, size_t len)
{
	struct lull_vec rounds;

	lull_vec_init(&rounds, sizeof(struct lull_tl_round));
	lull_vec_add(&rounds, bytes, len / sizeof(struct lull_tl_round));
	lull_page_show_rounds(report, &rounds);
	lull_vec_release(&rounds);
}

/* Takes the bytes over. */
static void take_ranks(struct lull_page_job *job, u32 kind, char *bytes)
{
	pthread_mutex_lock(&job->lock);
	if (kind == SAYS_RANKS && !job->ranks)
		job->ranks = bytes;
	else if (kind == SAYS_NO_RANKS && !job->failed)
		job->failed = bytes;
	else
		free(bytes);
	job->is_running = false;
	pthread_mutex_unlock(&job->lock);
}

/* Takes the bytes over. */
static void take(struct lull_page_report *report, u32 kind, char *bytes, size_t len)
{
	struct lull_told *told = &report->told;
	char **to = kind == SAYS_VERDICT  ? &told->verdict
		    : kind == SAYS_STEPS  ? &told->steps
		    : kind == SAYS_FAILED ? &report->why_failed
					  : NULL;

	if (kind == SAYS_CAUSES)
		take_causes(report, (const u8 *)bytes, len);
	if (kind == SAYS_ROUNDS)
		take_rounds(report, bytes, len);
	pthread_mutex_lock(&report->slow_lock);
	if (kind == SAYS_PROGRESS && len == sizeof(told->percent))
		memcpy(&told->percent, bytes, len);
	if (kind == SAYS_DONE)
		told->is_running = false;
	if (to && !*to) {
		*to = bytes;
		bytes = NULL;
	}
	pthread_mutex_unlock(&report->slow_lock);
	free(bytes);
}

/* Reports without an answer when the process is gone will get none. */
static void note_end(struct lull_page *page)
{
	if (page->job) {
		pthread_mutex_lock(&page->job->lock);
		if (page->job->is_running)
			page->job->failed = lull_strdup("the analysis ended before it was done, "
							"most likely because memory ran out");
		page->job->is_running = false;
		pthread_mutex_unlock(&page->job->lock);
	}
	for (size_t i = 0; i < page->n_reports; i++) {
		struct lull_page_report *report = &page->reports[i];

		pthread_mutex_lock(&report->slow_lock);
		if (report->told.is_running && !report->told.verdict && !report->why_failed)
			report->why_failed =
				lull_strdup("the analysis ended before it was done, most likely "
					    "because memory ran "
					    "out; run `lull why` on a machine with more memory");
		report->told.is_running = false;
		pthread_mutex_unlock(&report->slow_lock);
	}
}

static void *listen_to(void *ctx)
{
	struct lull_analyst *a = ctx;
	struct message m;

	while (read_all(a->fd, &m, sizeof(m))) {
		char *bytes;

		if (m.len > MAX_BYTES || m.report_ix >= a->page->n_reports)
			break;
		bytes = lull_alloc((size_t)m.len + 1, 1);
		if (!read_all(a->fd, bytes, (size_t)m.len)) {
			free(bytes);
			break;
		}
		if (a->page->job && (m.kind == SAYS_RANKS || m.kind == SAYS_NO_RANKS))
			take_ranks(a->page->job, m.kind, bytes);
		else
			take(&a->page->reports[m.report_ix], m.kind, bytes, (size_t)m.len);
	}
	note_end(a->page);
	return NULL;
}

/* Whether there is something to do. */
static bool mark_large(struct lull_page *page)
{
	bool is_any = page->job != NULL;

	if (page->job)
		page->job->is_running = true;
	for (size_t i = 0; i < page->n_reports; i++) {
		struct lull_page_report *report = &page->reports[i];

		report->told.is_running =
			!report->path && !report->why_failed && lull_page_why_is_large(report);
		is_any |= report->told.is_running;
	}
	return is_any;
}

struct lull_analyst *lull_analyst_start(struct lull_page *page)
{
	struct lull_analyst *a;
	int fds[2];
	pid_t pid;

	if (!mark_large(page))
		return NULL;
	if (pipe2(fds, O_CLOEXEC)) {
		note_end(page);
		return NULL;
	}
	pid = fork();
	if (!pid) {
		close(fds[0]);
		run_process(page, fds[1]);
	}
	close(fds[1]);
	a = lull_alloc(1, sizeof(*a));
	*a = (struct lull_analyst){ .page = page, .pid = pid, .fd = fds[0] };
	if (pid > 0 && !pthread_create(&a->thread, NULL, listen_to, a))
		return a;
	if (pid > 0)
		kill(pid, SIGKILL);
	note_end(page);
	close(a->fd);
	free(a);
	return NULL;
}

void lull_analyst_stop(struct lull_analyst *a)
{
	if (!a)
		return;
	kill(a->pid, SIGKILL); /* it may have ended, but nobody has asked for its status yet */
	pthread_join(a->thread, NULL);
	waitpid(a->pid, NULL, 0);
	close(a->fd);
	free(a);
}
