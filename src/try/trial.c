#include "try/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/loader.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "text/opt.h"
#include "wire/wire.h"

/* How often we look whether the program has ended; every fifth time also at its logs. */
#define LOOK_US	    20000
#define LOOKS_A_LOG 5

/* A program that has its steps may take so long to end, then so long after SIGTERM. */
#define GRACE_NS (20 * LULL_NS_PER_S)
#define TERM_NS	 (5 * LULL_NS_PER_S)

/* Between words of the output. */
#define NUMBER_GAPS " \t\r\n,;:=()[]{}|/<>\"'"

/* Generations of processes that a program may leave. */
#define MOST_SWEEPS 100

/* Fewer blocks than this say nothing. */
#define LEAST_BLOCKS 2

/* As in python/lull/_try.py: so many steps no program has, so it is not ended. */
#define NEVER (1ULL << 62)

/* Numbers of the output that are compared at most. */
#define MOST_NUMBERS 1000

/* ---- the environment ---- */

static void set_var(struct lull_vec *env, const char *name, const char *value)
{
	struct lull_str s = LULL_STR_INIT;
	size_t n = strlen(name);
	char **at = env->at;

	lull_str_addf(&s, "%s=%s", name, value);
	for (size_t i = 0; i < env->n; i++) {
		if (strncmp(at[i], name, n) == 0 && at[i][n] == '=') {
			free(at[i]);
			at[i] = s.at;
			return;
		}
	}
	*(char **)lull_vec_push(env) = s.at;
}

static void put_front(struct lull_vec *env, const char *name, const char *word)
{
	const char *old = getenv(name);
	struct lull_str s = LULL_STR_INIT;

	lull_str_puts(&s, word);
	if (old && *old)
		lull_str_addf(&s, ":%s", old);
	set_var(env, name, s.at);
	lull_str_release(&s);
}

/* Variables of a recording around us must not reach the program. */
static bool is_ours(const char *variable)
{
	return strncmp(variable, LULL_ENV_SESSION "=", sizeof(LULL_ENV_SESSION)) == 0 ||
	       strncmp(variable, LULL_ENV_AGENT "=", sizeof(LULL_ENV_AGENT)) == 0;
}

static void add_remedies(struct lull_vec *env, const struct lull_trial_change *change)
{
	for (size_t i = 0; i < change->n; i++) {
		char *const *words = change->remedies[i]->env.at;

		for (size_t n = 0; n < change->remedies[i]->env.n; n++) {
			char *copy = lull_strdup(words[n]), *equals = strchr(copy, '=');

			*equals = '\0';
			set_var(env, copy, equals + 1);
			free(copy);
		}
	}
}

static u64 warmup_of(const struct lull_trial_how *how, const struct lull_trial_change *change)
{
	u64 n = how->n_warmup;

	for (size_t i = 0; i < change->n && !how->is_long; i++)
		n = change->remedies[i]->n_warmup > n ? change->remedies[i]->n_warmup : n;
	return n;
}

/* What a run is told. */
struct words {
	struct lull_str folder, files, changes;
	struct lull_str env; /* what remedies set, as one word */
	char numbers[96];
	bool is_own; /* no file is the user's */
};

static void make_words(struct words *w, const struct lull_trial_how *how,
		       const struct lull_trial_change *change, u32 number)
{
	*w = (struct words){ .is_own = true };
	lull_str_addf(&w->folder, "%s/%u", how->folder, number);
	snprintf(w->numbers, sizeof(w->numbers), "%llu,%llu,%llu,%llu,%d",
		 (unsigned long long)warmup_of(how, change),
		 (unsigned long long)(how->is_whole ? NEVER : how->n_steps),
		 (unsigned long long)(how->is_whole ? NEVER : how->n_block),
		 (unsigned long long)(how->is_whole ? 0 : how->most_ms), how->by_calls);
	for (size_t i = 0; i < change->n; i++) {
		const struct lull_remedy *r = change->remedies[i];
		char *const *env = r->env.at;

		for (size_t n = 0; n < r->env.n; n++)
			lull_str_addf(&w->env, "%s\n", env[n]);
		if (r->path)
			lull_str_addf(&w->files, "%s%s", w->files.len ? ":" : "", r->path);
		/* Some have a way of their own in Python. */
		if (r->mend && (how->agent || !r->path))
			lull_str_addf(&w->changes, "%s%s", w->changes.len ? "," : "", r->mend);
		w->is_own = w->is_own && (!r->path || r->is_own);
	}
}

static void release_words(struct words *w)
{
	lull_str_release(&w->folder);
	lull_str_release(&w->files);
	lull_str_release(&w->changes);
	lull_str_release(&w->env);
}

/* Steps of Python are seen by its hooks, without the agent. */
static void preload(struct lull_vec *env, const struct lull_trial_how *how, const struct words *w)
{
	struct lull_str files = LULL_STR_INIT;

	if (how->agent)
		lull_str_puts(&files, how->agent);
	if (w->changes.len)
		set_var(env, "LULL_MEND", w->changes.at);
	if (how->agent && how->count)
		set_var(env, "LULL_TRY_COUNT", how->count);
	if ((w->changes.len || (how->agent && how->count)) &&
	    !strpbrk(how->mend, LULL_PRELOAD_GAPS))
		lull_str_addf(&files, "%s%s", files.len ? ":" : "", how->mend);
	if (files.len)
		put_front(env, "LD_PRELOAD", files.at);
	lull_str_release(&files);
}

static void make_env(struct lull_vec *env, const struct lull_trial_how *how,
		     const struct lull_trial_change *change, const struct words *w)
{
	lull_vec_init(env, sizeof(char *));
	for (char **v = environ; *v; v++)
		if (!is_ours(*v))
			*(char **)lull_vec_push(env) = lull_strdup(*v);
	put_front(env, "PYTHONPATH", how->python);
	/* Sets of strings have the same order in all runs. */
	if (!getenv("PYTHONHASHSEED"))
		set_var(env, "PYTHONHASHSEED", "0");
	set_var(env, "LULL_TRY", w->folder.at);
	set_var(env, "LULL_TRY_STEPS", w->numbers);
	set_var(env, "LULL_TRY_REMEDIES", lull_str_text(&w->files));
	add_remedies(env, change);
	preload(env, how, w);
}

/* ---- the process ---- */

/* A run that is under way. */
struct run {
	pid_t pid;
	u64 began_ns, last_ns; /* when something new was in the logs */
	u64 ended_ns;	       /* when all steps were seen; 0: not yet */
	u64 sent_ns;	       /* SIGTERM; 0: not yet */
	u64 n_bytes;
	bool has_hung, is_stopped, is_cut;
	int wait_status;
	u64 rss_bytes;
	struct lull_warm_offer offer;
	int warm; /* index of the process that it was forked from; -1: none */
	bool is_forked;
	u64 import_ns; /* before it was forked, by another run */
	u64 once_ns;   /* by this one */
};

static int open_to(const char *folder, const char *name)
{
	struct lull_str path = LULL_STR_INIT;
	int fd;

	lull_str_addf(&path, "%s/%s", folder, name);
	fd = open(path.at, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	lull_str_release(&path);
	return fd;
}

/* In the child; `report` tells the parent why exec failed. */
static void become(char **argv, char **env, const int *streams, int report, int warm)
{
	sigset_t none;
	int error;

	setpgid(0, 0);
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int i = 0; i < 3; i++)
		dup2(streams[i], i);
	if (warm >= 0)
		fcntl(warm, F_SETFD, 0);
	execvpe(argv[0], argv, env);
	error = errno;
	if (write(report, &error, sizeof(error)) != sizeof(error))
		_exit(126);
	_exit(127);
}

static int start(struct run *r, char **argv, char **env, const char *folder, struct lull_err *err)
{
	int streams[3] = { open("/dev/null", O_RDONLY | O_CLOEXEC), open_to(folder, "stdout"),
			   open_to(folder, "stderr") };
	int report[2], error = 0;
	ssize_t n;

	if (streams[0] < 0 || streams[1] < 0 || streams[2] < 0 || pipe2(report, O_CLOEXEC) != 0)
		return lull_fail_errno(err, "opening files in %s", folder);
	r->pid = fork();
	if (r->pid == 0)
		become(argv, env, streams, report[1], r->offer.theirs);
	for (int i = 0; i < 3; i++)
		close(streams[i]);
	close(report[1]);
	if (r->offer.theirs >= 0)
		close(r->offer.theirs);
	r->offer.theirs = -1;
	if (r->pid < 0) {
		close(report[0]);
		return lull_fail_errno(err, "starting '%s': fork", argv[0]);
	}
	setpgid(r->pid, r->pid);
	n = read(report[0], &error, sizeof(error));
	close(report[0]);
	if (n != sizeof(error))
		return LULL_OK;
	waitpid(r->pid, NULL, 0);
	errno = error;
	return lull_fail(err, error == ENOENT ? LULL_E_NOT_FOUND : LULL_E_IO,
			 error == ENOENT ? "'%s' not found; is the path right?"
					 : "'%s' cannot be executed",
			 argv[0]);
}

/* Ask the program to end, or insist after a while. */
static void end(struct run *r, u64 now_ns)
{
	if (!r->sent_ns) {
		kill(-r->pid, SIGTERM);
		r->sent_ns = now_ns;
	} else if (now_ns > r->sent_ns + TERM_NS) {
		kill(-r->pid, SIGKILL);
	}
}

static void look(struct run *r, const struct lull_trial_how *how, const char *folder, f64 limit_s)
{
	u64 now_ns = lull_now_ns();
	struct lull_try_seen seen;

	lull_try_seen_init(&seen);
	lull_try_log_read(&seen, folder);
	if (seen.n_bytes != r->n_bytes) {
		r->n_bytes = seen.n_bytes;
		r->last_ns = now_ns;
	}
	if (seen.has_ended && !r->ended_ns)
		r->ended_ns = now_ns;
	lull_try_seen_release(&seen);
	if (*how->is_stopped || (how->until_ns && now_ns > how->until_ns && !r->ended_ns)) {
		r->is_stopped = true;
	} else if (!r->ended_ns && !r->has_hung && !r->is_cut) {
		f64 quiet_s = (f64)(now_ns - r->last_ns) / 1e9;
		f64 whole_s = (f64)(now_ns - r->began_ns) / 1e9;

		r->has_hung = quiet_s > how->limit_s + limit_s ||
			      (how->most_s > 0 && whole_s > how->most_s + limit_s);
		r->is_cut = !r->has_hung && how->unmarked_s > 0 && !r->n_bytes &&
			    whole_s > how->unmarked_s;
	}
	if (r->is_stopped || r->has_hung || r->is_cut ||
	    (r->ended_ns && (how->agent || now_ns > r->ended_ns + GRACE_NS)))
		end(r, now_ns);
}

/* Kill the processes that are our children now, but for warm ones; false if there are none. */
static bool kill_children(const struct lull_warms *warms)
{
	struct lull_str text = LULL_STR_INIT;
	const char *at;
	char *end;
	bool has_any = false;

	lull_file_read("/proc/thread-self/children", &text);
	for (at = lull_str_text(&text);; at = end) {
		long pid = strtol(at, &end, 10);

		if (end == at)
			break;
		if (lull_warms_has(warms, (pid_t)pid))
			continue;
		kill((pid_t)pid, SIGKILL);
		waitpid((pid_t)pid, NULL, WNOHANG);
		has_any = true;
	}
	lull_str_release(&text);
	return has_any;
}

/*
 * Leave nothing of the program: its group, and what has left that. Orphans become our children
 * (lull_try_run()), and theirs after them.
 */
static void end_rest(pid_t group, const struct lull_warms *warms)
{
	kill(-group, SIGKILL);
	for (int i = 0; i < MOST_SWEEPS && kill_children(warms); i++)
		usleep(LOOK_US / 2);
}

static struct lull_warm *warm_of(const struct run *r, const struct lull_trial_how *how)
{
	return lull_vec_get(&how->warms->all, (size_t)r->warm);
}

/* Fork the run from a process that has its imports; false if there is none, or it failed. */
static bool fork_from(struct run *r, const struct lull_trial_how *how, const struct words *w,
		      int warm)
{
	pid_t pid = warm < 0 ? -1
			     : lull_warms_run(how->warms, warm, w->folder.at, w->numbers,
					      lull_str_text(&w->files));

	if (pid < 0)
		return false;
	r->pid = pid;
	r->warm = warm;
	r->is_forked = true;
	return true;
}

/* A program that was offered to become warm has done its imports: fork this run from it. */
static void take_offer(struct run *r, const struct lull_trial_how *how, const struct words *w)
{
	u64 import_ns = lull_now_ns() - r->began_ns;
	int warm;

	if (!lull_warms_take(how->warms, &r->offer, r->pid, lull_str_text(&w->env), &warm))
		return;
	((struct lull_warm *)lull_vec_get(&how->warms->all, (size_t)warm))->import_ns = import_ns;
	r->once_ns = import_ns;
	if (!fork_from(r, how, w, warm))
		r->wait_status = SIGKILL;
}

/* Whether the program has ended. */
static bool has_ended(struct run *r, const struct lull_trial_how *how, const struct words *w)
{
	struct lull_warm_end end;
	struct rusage use;
	pid_t pid;

	take_offer(r, how, w);
	if (r->warm >= 0) {
		if (!lull_warms_poll(how->warms, r->warm, &end))
			return false;
		r->wait_status = end.wait_status;
		r->rss_bytes = end.rss_kib * 1024;
		r->warm = end.is_gone ? -1 : r->warm;
		return true;
	}
	pid = wait4(r->pid, &r->wait_status, WNOHANG, &use);
	if (pid == r->pid)
		r->rss_bytes = (u64)use.ru_maxrss * 1024;
	return pid == r->pid || (pid < 0 && errno != EINTR);
}

/* Wait for the end of the program, and leave nothing of it. */
static void watch(struct run *r, const struct lull_trial_how *how,
		  const struct lull_trial_change *change, const struct words *w)
{
	f64 limit_s = 0;

	for (size_t i = 0; i < change->n; i++)
		limit_s += change->remedies[i]->limit_s;
	for (u32 n = 1; !has_ended(r, how, w); n++) {
		if (n % LOOKS_A_LOG == 0)
			look(r, how, w->folder.at, limit_s);
		usleep(LOOK_US);
	}
	lull_warm_withdraw(&r->offer);
	end_rest(r->pid, how->warms);
}

/* ---- what came of it ---- */

/* The exception that a traceback of Python ends with; its message may have more lines. */
struct raised {
	char text[320];
	bool is_open; /* in a traceback, before the exception */
	bool goes_on; /* the line ended with a colon: the next one says more */
};

static void look_for_raised(struct raised *r, const char *line)
{
	size_t len = strlen(r->text);

	if (strncmp(line, "Traceback (most recent call last)", 33) == 0) {
		*r = (struct raised){ .is_open = true };
	} else if (r->goes_on && *line) {
		snprintf(r->text + len, sizeof(r->text) - len, " %s", line + strspn(line, " \t"));
		r->goes_on = false;
	} else if (r->is_open && *line && *line != ' ') {
		snprintf(r->text, sizeof(r->text), "%s", line);
		r->is_open = false;
		r->goes_on = line[strlen(line) - 1] == ':';
	}
}

/* The last line, or what an exception says that nobody caught: Python exits with 1 then. */
static void read_words(struct lull_trial *t, const char *folder)
{
	struct lull_str path = LULL_STR_INIT;
	struct raised raised = { .is_open = false };
	char *line = NULL;
	size_t cap = 0;
	FILE *f;

	lull_str_addf(&path, "%s/stderr", folder);
	f = fopen(path.at, "re");
	while (f && getline(&line, &cap, f) > 0) {
		line[strcspn(line, "\r\n")] = '\0';
		look_for_raised(&raised, line);
		if (line[strspn(line, " \t^~")])
			snprintf(t->words, sizeof(t->words), "%s", line + strspn(line, " \t"));
	}
	if (t->status == 1 && *raised.text)
		snprintf(t->words, sizeof(t->words), "%s", raised.text);
	if (f)
		fclose(f);
	free(line);
	lull_str_release(&path);
}

/* Numbers of a line; a word that only starts with digits is none. */
static void add_numbers(struct lull_vec *to, char *line)
{
	char *rest = NULL;

	for (char *word = strtok_r(line, NUMBER_GAPS, &rest); word && to->n < MOST_NUMBERS;
	     word = strtok_r(NULL, NUMBER_GAPS, &rest)) {
		char *end;
		f64 value = strtod(word, &end);

		if (end != word && !*end)
			*(f64 *)lull_vec_push(to) = value;
	}
}

void lull_trial_read_output(struct lull_trial *t, const char *folder)
{
	struct lull_str path = LULL_STR_INIT;
	char *line = NULL;
	size_t cap = 0;
	ssize_t n;
	FILE *f;

	if (t->seen.values.n)
		return;
	lull_str_addf(&path, "%s/stdout", folder);
	f = fopen(path.at, "re");
	/* A line without an end was cut off. */
	while (f && (n = getline(&line, &cap, f)) > 0 && line[n - 1] == '\n')
		add_numbers(&t->seen.values, line);
	t->has_output = t->seen.values.n > 0;
	if (f)
		fclose(f);
	free(line);
	lull_str_release(&path);
}

/* How long the program ran after PyTorch was loaded; 0 if that is not known. */
static u64 ran_ns(const struct lull_try_seen *seen)
{
	return seen->loaded_ns && seen->over_ns > seen->loaded_ns ? seen->over_ns - seen->loaded_ns
								  : 0;
}

/* A whole run is one value, twice because a single one is no block. */
static void take_whole(struct lull_trial *t, bool has_start)
{
	u64 ns = has_start ? t->wall_ns : ran_ns(&t->seen);

	t->seen.steps.n = 0;
	for (int i = 0; i < LEAST_BLOCKS; i++)
		*(f64 *)lull_vec_push(&t->seen.steps) = (f64)ns;
	t->seen.n_measured = 1;
	t->is_whole = !has_start;
	t->end = ns ? LULL_TRIAL_DONE : LULL_TRIAL_FEW_STEPS;
}

/* Whether the program has ended by itself without steps. One that no other follows is none. */
static bool is_stepless(const struct lull_trial *t)
{
	return t->end == LULL_TRIAL_FEW_STEPS && t->seen.n_steps + t->seen.n_measured <= 1 &&
	       ran_ns(&t->seen);
}

static void judge(struct lull_trial *t, const struct run *r, bool is_whole)
{
	bool is_signal = WIFSIGNALED(r->wait_status);

	t->status = is_signal ? 128 + WTERMSIG(r->wait_status) : WEXITSTATUS(r->wait_status);
	t->wall_ns = lull_now_ns() - r->began_ns;
	t->ready_ns = t->seen.began_ns > r->began_ns ? t->seen.began_ns - r->began_ns : 0;
	t->ready_ns += t->ready_ns ? r->import_ns : 0;
	t->rss_bytes = r->rss_bytes;
	t->is_forked = r->is_forked;
	t->once_ns = r->once_ns;
	t->is_cut = r->is_cut;
	if (t->seen.has_ended)
		t->end = LULL_TRIAL_DONE;
	else if (r->is_stopped)
		t->end = LULL_TRIAL_STOPPED;
	else if (r->has_hung)
		t->end = LULL_TRIAL_HUNG;
	else if (r->is_cut)
		t->end = LULL_TRIAL_FEW_STEPS;
	else if (t->status)
		t->end = LULL_TRIAL_FAILED;
	else
		t->end = is_whole || t->seen.steps.n >= LEAST_BLOCKS ? LULL_TRIAL_DONE
								     : LULL_TRIAL_FEW_STEPS;
}

/* Start the program, from the beginning or from where its imports are done. */
static int start_run(struct run *r, const struct lull_trial_how *how,
		     const struct lull_trial_change *change, const struct words *w,
		     struct lull_err *err)
{
	bool can_fork = how->warms && !how->agent && w->is_own && !w->changes.len;
	struct lull_vec env;
	char fd[16];
	int rc;

	r->began_ns = r->last_ns = lull_now_ns();
	if (can_fork && fork_from(r, how, w, lull_warms_find(how->warms, lull_str_text(&w->env)))) {
		r->import_ns = warm_of(r, how)->import_ns;
		return LULL_OK;
	}
	make_env(&env, how, change, w);
	/* Remedies have to be there before what they change, so a program starts without. */
	if (can_fork && !w->files.len && lull_warm_offer(how->warms, &r->offer)) {
		snprintf(fd, sizeof(fd), "%d", r->offer.theirs);
		set_var(&env, "LULL_TRY_WARM", fd);
	}
	lull_vec_push(&env); /* the NULL at the end */
	rc = start(r, how->argv, env.at, w->folder.at, err);
	lull_opt_list_release(&env);
	return rc;
}

/* What the run imported after PyTorch can be loaded ahead for the next ones. */
static void note_imports(const struct run *r, const struct lull_trial_how *how,
			 const struct lull_try_seen *seen)
{
	if (r->warm >= 0 && seen->imports.len && !warm_of(r, how)->wants.len)
		lull_str_puts(&warm_of(r, how)->wants, seen->imports.at);
}

int lull_trial_run(struct lull_trial *t, const struct lull_trial_how *how,
		   const struct lull_trial_change *change, u32 number, struct lull_err *err)
{
	struct run r = { .offer = { -1, -1 }, .warm = -1 };
	struct words w;
	int rc = LULL_OK;

	*t = (struct lull_trial){ .status = 0 };
	lull_try_seen_init(&t->seen);
	make_words(&w, how, change, number);
	if (mkdir(w.folder.at, 0700) != 0)
		rc = lull_fail_errno(err, "making the folder %s", w.folder.at);
	if (!rc)
		rc = start_run(&r, how, change, &w, err);
	if (!rc) {
		watch(&r, how, change, &w);
		lull_try_log_read(&t->seen, w.folder.at);
		note_imports(&r, how, &t->seen);
		judge(t, &r, how->is_whole);
		read_words(t, w.folder.at);
		if (how->is_whole ? t->end == LULL_TRIAL_DONE : how->may_be_whole && is_stepless(t))
			take_whole(t, how->is_whole && how->has_start);
		lull_trial_read_output(t, w.folder.at);
	}
	lull_warm_withdraw(&r.offer);
	release_words(&w);
	return rc;
}

bool lull_trial_did(const struct lull_trial *t, const struct lull_trial_change *change)
{
	char *const *did = t->seen.did.at;

	for (size_t i = 0; i < change->n; i++) {
		const struct lull_remedy *r = change->remedies[i];
		bool has = !r->mend && (!t->seen.is_python || !r->path);

		for (size_t n = 0; n < t->seen.did.n && !has; n++)
			has = strcmp(did[n], r->name) == 0;
		if (!has)
			return false;
	}
	return true;
}

void lull_trial_release(struct lull_trial *t)
{
	lull_try_seen_release(&t->seen);
}
