/*
 * Short recordings of the program: to choose remedies, and to look at the best one beside the
 * program as it is.
 *
 * They are made by `lull profile`, as the user would: the same defaults, and a recorder that fails
 * takes nothing with it.
 */
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/convert.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "text/opt.h"
#include "try/try_int.h"

/* Steps that are recorded, after those of warm-up; fewer of them where that takes longer. */
#define RECORDED_STEPS 20u
#define LEAST_STEPS    6u
#define RECORDED_NS    (8 * LULL_NS_PER_S)

/* Of a program that marks no steps: all of it, or a part of one that runs longer. */
#define LEAST_PART_S 20
#define PART_S	     10

/* How often we look for the report; how long a program may take to end after that. */
#define LOOK_US 20000
#define TERM_NS (10 * LULL_NS_PER_S)

/* A recorded run may take this many times as long as another. */
#define SLOWNESS 5

static void add_word(struct lull_vec *argv, const char *word)
{
	*(char **)lull_vec_push(argv) = lull_strdup(word);
}

/* The library that makes changes comes after the agent, which the recorder puts in front. */
static void set_mend(const char *library, const char *names)
{
	const char *old = getenv("LD_PRELOAD");
	struct lull_str preload = LULL_STR_INIT;

	lull_str_puts(&preload, library);
	if (old && *old)
		lull_str_addf(&preload, ":%s", old);
	setenv("LD_PRELOAD", preload.at, 1);
	setenv("LULL_MEND", names, 1);
	lull_str_release(&preload);
}

/* Set what the hooks of a trial read, for the recorder and the program that it starts. */
static void set_variables(const struct lull_trial_how *how, const struct lull_trial_change *change,
			  const char *folder)
{
	struct lull_str files = LULL_STR_INIT, changes = LULL_STR_INIT;

	setenv("LULL_TRY", folder, 1);
	for (size_t i = 0; i < change->n; i++) {
		char *const *words = change->remedies[i]->env.at;

		for (size_t n = 0; n < change->remedies[i]->env.n; n++)
			putenv(words[n]);
		if (change->remedies[i]->path)
			lull_str_addf(&files, "%s%s", files.len ? ":" : "",
				      change->remedies[i]->path);
		if (how->agent && change->remedies[i]->mend)
			lull_str_addf(&changes, "%s%s", changes.len ? "," : "",
				      change->remedies[i]->mend);
	}
	setenv("LULL_TRY_REMEDIES", lull_str_text(&files), 1);
	if (how->asks)
		setenv("LULL_TRY_ASKS", how->asks, 1);
	if (changes.len)
		set_mend(how->mend, changes.at);
	lull_str_release(&files);
	lull_str_release(&changes);
}

/* How many steps are recorded, as far as it is known what they take. */
static u32 recorded_steps(const struct lull_try *t)
{
	const struct lull_vec *steps = &t->base.last.seen.steps;

	if (!t->how.is_long || !steps->n)
		return RECORDED_STEPS;
	return (u32)fmin(fmax((f64)RECORDED_NS / lull_median(steps->at, steps->n), LEAST_STEPS),
			 RECORDED_STEPS);
}

bool lull_try_records_all(const struct lull_try *t)
{
	return t->ran_ns && !t->is_cut && t->ran_ns <= LEAST_PART_S * LULL_NS_PER_S;
}

/*
 * Which part is recorded. Steps that are only counted are none of a recording's: the agent may
 * leave CUPTI at a step, and these start inside of a call of CUDA.
 */
static void add_part(const struct lull_try *t, struct lull_vec *argv)
{
	char words[96];

	if (t->options->client || t->how.is_whole || t->how.by_calls)
		return;
	if (!t->is_unmarked) {
		snprintf(words, sizeof(words), "--steps=skip=%llu,active=%u,repeat=1",
			 (unsigned long long)t->how.n_warmup, recorded_steps(t));
		add_word(argv, words);
	} else if (!lull_try_records_all(t)) {
		snprintf(words, sizeof(words), "--delay=%.1f", (f64)t->ran_ns / 2e9);
		add_word(argv, words);
		snprintf(words, sizeof(words), "--duration=%d", PART_S);
		add_word(argv, words);
	}
}

static void make_command(const struct lull_try *t, const char *path, struct lull_vec *argv)
{
	lull_vec_init(argv, sizeof(char *));
	add_word(argv, "lull");
	add_word(argv, "profile");
	add_word(argv, "-q");
	add_part(t, argv);
	add_word(argv, "-o");
	add_word(argv, path);
	for (char **word = t->options->argv; *word; word++)
		add_word(argv, *word);
	lull_vec_push(argv);
}

static void become_recorder(char **argv, const struct lull_trial_how *how,
			    const struct lull_trial_change *change, const char *folder)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	setpgid(0, 0);
	set_variables(how, change, folder);
	for (int i = 0; i < 3 && null >= 0; i++)
		dup2(null, i);
	execv("/proc/self/exe", argv);
	_exit(127);
}

/*
 * Wait for the recorder. Once the report is there, or it takes too long, the program is to end: a
 * signal to the recorder reaches it.
 */
static void wait_for(const struct lull_try *t, pid_t pid, const char *path, bool is_done)
{
	u64 sent_ns = 0, began_ns = lull_now_ns();
	u64 most_ns =
		lull_u64_of((t->how.limit_s + SLOWNESS * (f64)t->base.last.wall_ns / 1e9) * 1e9);
	int status;

	while (waitpid(pid, &status, WNOHANG) == 0) {
		u64 now_ns = lull_now_ns();
		bool is_over = is_done || *t->how.is_stopped || now_ns > began_ns + most_ns ||
			       access(path, R_OK) == 0;

		if (is_over && !sent_ns) {
			kill(pid, SIGTERM);
			sent_ns = now_ns;
		} else if (sent_ns && now_ns > sent_ns + TERM_NS) {
			kill(-pid, SIGKILL);
		}
		usleep(LOOK_US);
	}
	kill(-pid, SIGKILL);
}

int lull_try_record_in(struct lull_try *t, const struct lull_trial_change *change, const char *path,
		       const char *folder, bool *is_answered, struct lull_err *err)
{
	struct lull_vec argv;
	pid_t pid;

	if (mkdir(folder, 0700) != 0)
		return lull_fail_errno(err, "making the folder %s", folder);
	make_command(t, path, &argv);
	pid = fork();
	if (pid == 0)
		become_recorder(argv.at, &t->how, change, folder);
	if (pid > 0 && t->options->client)
		*is_answered = lull_try_attend(t, pid, folder);
	if (pid > 0)
		wait_for(t, pid, path, t->options->client);
	lull_opt_list_release(&argv);
	if (pid < 0)
		return lull_fail_errno(err, "recording: fork");
	if (access(path, R_OK) != 0)
		return lull_fail(err, LULL_E_IO, "the program could not be recorded");
	return LULL_OK;
}

int lull_try_record(struct lull_try *t, const struct lull_trial_change *change, const char *path,
		    struct lull_err *err)
{
	struct lull_str folder = LULL_STR_INIT;
	bool is_answered;
	int rc;

	lull_str_addf(&folder, "%s/recorded-%u", t->folder.at, ++t->n_trials);
	rc = lull_try_record_in(t, change, path, folder.at, &is_answered, err);
	lull_str_release(&folder);
	return rc;
}

int lull_try_keep(struct lull_try *t, struct lull_err *err)
{
	const struct lull_try_entry *best = lull_try_best(t);
	const struct lull_trial_change none = { NULL, 0 };
	struct lull_str path = LULL_STR_INIT;
	int rc;

	if (mkdir(t->options->keep, 0777) != 0)
		return lull_fail_errno(err, "making the folder %s", t->options->keep);
	lull_str_addf(&path, "%s/baseline.lull", t->options->keep);
	rc = lull_try_record(t, &none, path.at, err);
	if (!rc && best) {
		const struct lull_trial_change change = { best->remedies, best->n };

		lull_str_clear(&path);
		lull_str_addf(&path, "%s/best.lull", t->options->keep);
		rc = lull_try_record(t, &change, path.at, err);
	}
	lull_str_release(&path);
	return rc;
}
