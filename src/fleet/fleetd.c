#include "fleet/fleetd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "fleet/fleet.h"
#include "fleet/fleet_find.h"
#include "fleet/fleet_keep.h"
#include "fleet/fleet_metrics.h"
#include "record/live/metrics_port.h"

#define LOG_TAG "fleetd"

/* Metrics are served, and children looked after, so often. */
#define TICK_MS 100

/* After a failure the next try waits for this many rounds, twice as many each time. */
#define MAX_BACKOFF 64u

/* How long recordings may take to write their reports at the end. */
#define END_NS (30 * LULL_NS_PER_S)

/* A process that we know. */
struct known {
	u32 pid;
	u64 start_ticks;
	pid_t child;	   /* its recording, 0: none */
	char *output;	   /* of that, without ".lull" */
	bool is_recovered; /* the child finishes the report of a recorder that was killed */
	u32 n_failures;	   /* one after the other */
	u64 next_round;	   /* not before */
	bool is_there;	   /* seen in this round */
};

struct fleetd {
	const struct lull_fleetd_options *o;
	struct lull_vec known; /* struct known */
	struct lull_vec tried; /* names of unfinished reports that we had recovered; char * */
	struct lull_fleet fleet;
	bool has_fleet;
	struct lull_fleet_status status;
	struct lull_metrics *metrics;
	u64 start_utc_ns, start_ns; /* both clocks at the start */
	u64 round;
	int signal_fd;
	bool is_over;
	bool has_said; /* that NVML cannot be asked */
};

static u64 boot_ns(void)
{
	return lull_clock_ns(CLOCK_BOOTTIME);
}

/* The wall clock as it would be if nobody had set it since the start. */
static u64 utc_ns(const struct fleetd *d)
{
	return d->start_utc_ns + (boot_ns() - d->start_ns);
}

/* ---- the command ---- */

static void put_word(struct lull_str *to, const char *template, const char *const pairs[][2],
		     size_t n)
{
	while (*template) {
		size_t i = 0;

		while (i < n && strncmp(template, pairs[i][0], strlen(pairs[i][0])) != 0)
			i++;
		if (i < n) {
			lull_str_puts(to, pairs[i][1]);
			template += strlen(pairs[i][0]);
		} else {
			lull_str_add(to, template ++, 1);
		}
	}
}

static void name_output(struct lull_str *to, const struct lull_fleetd_options *o,
			const struct lull_fleet_process *p, const struct lull_fleet_rule *rule,
			u64 now_utc_ns)
{
	time_t seconds = (time_t)(now_utc_ns / LULL_NS_PER_S);
	char host[128] = "host", when[32] = "";
	struct tm tm;

	gethostname(host, sizeof(host) - 1);
	if (gmtime_r(&seconds, &tm))
		strftime(when, sizeof(when), "%Y%m%dT%H%M%S", &tm);
	/* A process that is soon recorded again must not meet its own report. */
	lull_str_addf(to, "%s/%s/%s-%u-%s-%03uZ", o->folder, rule->label, host, p->pid, when,
		      (unsigned)(now_utc_ns / 1000000 % 1000));
}

char **lull_fleetd_words(const struct lull_fleetd_options *o, const struct lull_fleet_process *p,
			 const struct lull_fleet_rule *rule, u64 now_utc_ns)
{
	struct lull_str output = LULL_STR_INIT;
	char pid[16], budget[32], seconds[32], *copy = lull_strdup(o->attach), *rest = copy, *word;
	const char *const pairs[][2] = { { "{pid}", pid },
					 { "{output}", NULL },
					 { "{budget}", budget },
					 { "{seconds}", seconds } };
	const char *filled[LULL_COUNT_OF(pairs)][2];
	struct lull_vec words;

	name_output(&output, o, p, rule, now_utc_ns);
	snprintf(pid, sizeof(pid), "%u", p->pid);
	snprintf(budget, sizeof(budget), "%.4g%%", 100 * rule->budget);
	snprintf(seconds, sizeof(seconds), "%.10g", (f64)o->report_ns / 1e9);
	memcpy(filled, pairs, sizeof(filled));
	filled[1][1] = output.at;
	lull_vec_init(&words, sizeof(char *));
	while ((word = strsep(&rest, " "))) {
		struct lull_str text = LULL_STR_INIT;

		if (!*word)
			continue;
		put_word(&text, word, (const char *const(*)[2])filled, LULL_COUNT_OF(filled));
		*(char **)lull_vec_push(&words) = text.at;
	}
	*(char **)lull_vec_push(&words) = NULL;
	free(copy);
	lull_str_release(&output);
	return words.at;
}

void lull_fleetd_free_words(char **words)
{
	for (char **w = words; *w; w++)
		free(*w);
	free(words);
}

/* ---- recordings ---- */

static struct known *find_known(struct fleetd *d, const struct lull_fleet_process *p)
{
	struct known *all = d->known.at, *k;

	for (size_t i = 0; i < d->known.n; i++)
		if (all[i].pid == p->pid && all[i].start_ticks == p->start_ticks)
			return &all[i];
	k = lull_vec_push(&d->known);
	*k = (struct known){ .pid = p->pid, .start_ticks = p->start_ticks };
	return k;
}

static void make_folder(const struct fleetd *d, const struct lull_fleet_rule *rule)
{
	struct lull_str path = LULL_STR_INIT;

	lull_str_addf(&path, "%s/%s", d->o->folder, rule->label);
	mkdir(path.at, 0777); /* whether it is there is told by who writes to it */
	lull_str_release(&path);
}

static void failed(struct fleetd *d, struct known *k)
{
	u64 rounds = 1ull << (k->n_failures < 6 ? k->n_failures : 6);

	d->status.n_failed++;
	k->n_failures++;
	k->next_round = d->round + 1 + (rounds < MAX_BACKOFF ? rounds : MAX_BACKOFF);
}

/* Run ourselves or another program, with signals as if a shell had started it; 0 or an error. */
static int spawn(char **words, pid_t *child)
{
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attributes;
	sigset_t none, interrupt;
	int rc;

	sigemptyset(&none);
	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	posix_spawnattr_init(&attributes);
	posix_spawnattr_setsigmask(&attributes, &none);
	/* A shell that started us in the background had us ignore it; recordings end by it. */
	posix_spawnattr_setsigdefault(&attributes, &interrupt);
	posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	/* Ourselves, also where we are not in PATH. */
	rc = posix_spawnp(child, strcmp(words[0], "lull") == 0 ? "/proc/self/exe" : words[0],
			  &actions, &attributes, words, environ);
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attributes);
	if (rc)
		log_warn("cannot run '%s': %s", words[0], strerror(rc));
	return rc;
}

static void start(struct fleetd *d, struct known *k, const struct lull_fleet_process *p,
		  const struct lull_fleet_rule *rule)
{
	struct lull_str output = LULL_STR_INIT;
	u64 now_ns = utc_ns(d);
	char **words = lull_fleetd_words(d->o, p, rule, now_ns);

	make_folder(d, rule);
	name_output(&output, d->o, p, rule, now_ns);
	if (spawn(words, &k->child)) {
		k->child = 0;
		failed(d, k);
		lull_str_release(&output);
	} else {
		d->status.n_begun++;
		d->status.n_running++;
		free(k->output);
		k->output = output.at;
	}
	lull_fleetd_free_words(words);
}

static void recover_part(struct fleetd *d, struct known *k, const char *part)
{
	if (spawn((char *[]){ "lull", "recover", (char *)part, NULL }, &k->child))
		k->child = 0;
	else
		d->status.n_running++;
	k->is_recovered = k->child != 0;
}

/*
 * A recorder that was killed leaves what it had not written in shared memory, up to 256 MiB a
 * process. Nobody else would come for it.
 */
static void recover(struct fleetd *d, struct known *k)
{
	struct lull_str part = LULL_STR_INIT;

	lull_str_addf(&part, "%s.lull.part", k->output);
	recover_part(d, k, part.at);
	lull_str_release(&part);
}

/* Left by a recorder that ended with the machine, or with a fleetd before us. */
static void recover_stale(void *ctx, const char *part)
{
	struct fleetd *d = ctx;
	char **tried = d->tried.at;
	struct known *k;
	size_t len = strlen(part);

	for (size_t i = 0; i < d->tried.n; i++)
		if (strcmp(tried[i], part) == 0)
			return;
	if (d->status.n_running >= d->o->at_once || len < 10 ||
	    strcmp(part + len - 10, ".lull.part") != 0)
		return;
	/* What cannot be recovered stays until it is too old or too much. */
	*(char **)lull_vec_push(&d->tried) = lull_strdup(part);
	k = lull_vec_push(&d->known);
	*k = (struct known){ .output = lull_strdup(part) };
	k->output[len - 10] = '\0';
	recover_part(d, k, part);
}

static void reap(struct fleetd *d)
{
	struct known *all = d->known.at;
	int status;

	for (size_t i = 0; i < d->known.n; i++) {
		struct known *k = &all[i];

		if (!k->child || waitpid(k->child, &status, WNOHANG) != k->child)
			continue;
		k->child = 0;
		d->status.n_running--;
		/* One that we have interrupted ends as it likes. */
		if (k->is_recovered || d->is_over ||
		    (WIFEXITED(status) && WEXITSTATUS(status) == 0)) {
			k->n_failures = k->is_recovered ? k->n_failures : 0;
			k->is_recovered = false;
			continue;
		}
		log_warn("the recording of process %u failed", k->pid);
		failed(d, k);
		if (WIFSIGNALED(status))
			recover(d, k);
	}
}

/* Forget those that are gone and have no recording any more. */
static void forget(struct fleetd *d)
{
	struct known *all = d->known.at;
	size_t n = 0;

	for (size_t i = 0; i < d->known.n; i++) {
		if (all[i].is_there || all[i].child)
			all[n++] = all[i];
		else
			free(all[i].output);
	}
	d->known.n = n;
}

static void look(struct fleetd *d)
{
	struct known *all;
	struct lull_vec found;
	struct lull_err err;

	lull_vec_init(&found, sizeof(struct lull_fleet_process));
	all = d->known.at;
	for (size_t i = 0; i < d->known.n; i++)
		all[i].is_there = false;
	if (lull_fleet_find(&found, &err) != 0 && !d->has_said) {
		log_warn("%s", err.msg);
		d->has_said = true;
	}
	d->status.n_processes = (u32)found.n;
	for (size_t i = 0; i < found.n; i++) {
		const struct lull_fleet_process *p = lull_vec_get(&found, i);
		const struct lull_fleet_rule *rule;
		struct known *k = find_known(d, p);

		k->is_there = true;
		if (!k->child && d->round >= k->next_round && d->status.n_running < d->o->at_once &&
		    lull_fleet_policy_choose(d->o->policy, p, &rule) == LULL_FLEET_RECORD)
			start(d, k, p, rule);
	}
	forget(d);
	lull_vec_release(&found);
}

/* ---- reports ---- */

static bool is_busy(const void *ctx, const char *path)
{
	const struct fleetd *d = ctx;
	const struct known *all = d->known.at;

	for (size_t i = 0; i < d->known.n; i++)
		if (all[i].child && strncmp(all[i].output, path, strlen(all[i].output)) == 0)
			return true;
	return false;
}

static void keep(struct fleetd *d)
{
	struct lull_fleet_bound bound = { d->o->max_bytes, d->o->max_age_ns, is_busy, recover_stale,
					  d };
	struct lull_fleet_kept kept;
	struct lull_err err;

	if (lull_fleet_keep(d->o->folder, &bound, utc_ns(d), &kept, &err) != 0)
		log_warn("%s", err.msg);
	d->status.n_bytes = kept.n_bytes;
	d->status.n_removed += kept.n_removed;
}

static void read_reports(struct fleetd *d)
{
	struct lull_err err;

	if (d->has_fleet)
		lull_fleet_release(&d->fleet);
	if (lull_fleet_read(&d->fleet, d->o->folder, true, &err) != 0)
		log_warn("%s", err.msg);
	lull_fleet_sum(&d->fleet);
	d->has_fleet = true;
	d->status.now_utc_ns = lull_clock_ns(CLOCK_REALTIME);
	if (d->o->otlp && lull_fleet_metrics_otlp(&d->fleet, &d->status, d->o->otlp, &err) != 0)
		log_warn("%s", err.msg);
}

static void tell(void *ctx, struct lull_str *to)
{
	const struct fleetd *d = ctx;

	lull_fleet_metrics_prometheus(&d->fleet, &d->status, to);
}

/* ---- the loop ---- */

static void wait_a_tick(struct fleetd *d)
{
	struct signalfd_siginfo info;
	struct pollfd fds[2] = {
		{ .fd = d->signal_fd, .events = POLLIN },
		{ .fd = d->metrics ? lull_metrics_fd(d->metrics) : -1, .events = POLLIN },
	};

	poll(fds, 2, TICK_MS);
	if (fds[0].revents && read(d->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		d->is_over = true;
	if (d->metrics)
		lull_metrics_serve(d->metrics);
	reap(d);
}

static void loop(struct fleetd *d)
{
	while (!d->is_over) {
		u64 next_ns = boot_ns() + d->o->every_ns;

		look(d);
		keep(d);
		read_reports(d);
		d->round++;
		do
			wait_a_tick(d);
		while (!d->is_over && boot_ns() < next_ns);
		d->is_over = d->is_over || (d->o->n_rounds && d->round >= d->o->n_rounds);
	}
}

/* Recordings write their reports when they are interrupted. */
static void end(struct fleetd *d)
{
	u64 deadline_ns = boot_ns() + END_NS;
	struct known *all = d->known.at;

	for (size_t i = 0; i < d->known.n; i++)
		if (all[i].child && !all[i].is_recovered)
			kill(all[i].child, SIGINT);
	while (d->status.n_running && boot_ns() < deadline_ns)
		wait_a_tick(d);
	for (size_t i = 0; i < d->known.n; i++)
		free(all[i].output);
	read_reports(d);
}

static int open_signals(struct fleetd *d, sigset_t *before, struct lull_err *err)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigprocmask(SIG_BLOCK, &set, before);
	d->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return d->signal_fd < 0 ? lull_fail_errno(err, "signalfd") : 0;
}

static int open_metrics(struct fleetd *d, struct lull_err *err)
{
	u16 port = d->o->metrics_port;

	if (!d->o->metrics_address)
		return 0;
	if (lull_metrics_open_text(&d->metrics, d->o->metrics_address, &port, tell, d, err))
		return err->code;
	fprintf(stderr, "lull: metrics at http://%s:%u/metrics\n", d->o->metrics_address, port);
	return 0;
}

int lull_fleetd_run(const struct lull_fleetd_options *o, struct lull_err *err)
{
	struct fleetd d = { .o = o, .signal_fd = -1 };
	sigset_t before;
	int rc;

	d.start_utc_ns = lull_clock_ns(CLOCK_REALTIME);
	d.start_ns = boot_ns();
	lull_vec_init(&d.known, sizeof(struct known));
	lull_vec_init(&d.tried, sizeof(char *));
	rc = lull_fleet_read(&d.fleet, o->folder, true, err);
	d.has_fleet = true;
	if (!rc)
		rc = open_signals(&d, &before, err);
	if (!rc)
		rc = open_metrics(&d, err);
	if (!rc) {
		lull_fleet_sum(&d.fleet);
		loop(&d);
		end(&d);
	}
	lull_metrics_close(d.metrics);
	if (d.signal_fd >= 0) {
		close(d.signal_fd);
		sigprocmask(SIG_SETMASK, &before, NULL);
	}
	for (size_t i = 0; i < d.tried.n; i++)
		free(((char **)d.tried.at)[i]);
	lull_vec_release(&d.tried);
	lull_vec_release(&d.known);
	lull_fleet_release(&d.fleet);
	return rc;
}
