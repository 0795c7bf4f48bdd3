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

/* Generations of processes that a program may leave. */
#define MOST_SWEEPS 100

/* Fewer blocks than this say nothing. */
#define LEAST_BLOCKS 2

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
	struct lull_str files = LULL_STR_INIT;

	for (size_t i = 0; i < change->n; i++) {
		char *const *words = change->remedies[i]->env.at;

		for (size_t n = 0; n < change->remedies[i]->env.n; n++) {
			char *copy = lull_strdup(words[n]), *equals = strchr(copy, '=');

			*equals = '\0';
			set_var(env, copy, equals + 1);
			free(copy);
		}
		if (change->remedies[i]->path)
			lull_str_addf(&files, "%s%s", files.len ? ":" : "",
				      change->remedies[i]->path);
	}
	set_var(env, "LULL_TRY_REMEDIES", lull_str_text(&files));
	lull_str_release(&files);
}

static u64 warmup_of(const struct lull_trial_how *how, const struct lull_trial_change *change)
{
	u64 n = how->n_warmup;

	for (size_t i = 0; i < change->n; i++)
		n = change->remedies[i]->n_warmup > n ? change->remedies[i]->n_warmup : n;
	return n;
}

static void make_env(struct lull_vec *env, const struct lull_trial_how *how,
		     const struct lull_trial_change *change, const char *folder)
{
	char numbers[96];

	lull_vec_init(env, sizeof(char *));
	for (char **v = environ; *v; v++)
		if (!is_ours(*v))
			*(char **)lull_vec_push(env) = lull_strdup(*v);
	snprintf(numbers, sizeof(numbers), "%llu,%llu,%llu",
		 (unsigned long long)warmup_of(how, change), (unsigned long long)how->n_steps,
		 (unsigned long long)how->n_block);
	put_front(env, "PYTHONPATH", how->python);
	/* Sets of strings have the same order in all runs. */
	if (!getenv("PYTHONHASHSEED"))
		set_var(env, "PYTHONHASHSEED", "0");
	set_var(env, "LULL_TRY", folder);
	set_var(env, "LULL_TRY_STEPS", numbers);
	add_remedies(env, change);
	if (how->agent)
		put_front(env, "LD_PRELOAD", how->agent);
	lull_vec_push(env); /* the NULL at the end */
}

/* ---- the process ---- */

/* A run that is under way. */
struct run {
	pid_t pid;
	u64 began_ns, last_ns; /* when something new was in the logs */
	u64 ended_ns;	       /* when all steps were seen; 0: not yet */
	u64 sent_ns;	       /* SIGTERM; 0: not yet */
	u64 n_bytes;
	bool has_hung, is_stopped;
	int wait_status;
	struct rusage use;
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
static void become(char **argv, char **env, const int *streams, int report)
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
	r->began_ns = r->last_ns = lull_now_ns();
	r->pid = fork();
	if (r->pid == 0)
		become(argv, env, streams, report[1]);
	for (int i = 0; i < 3; i++)
		close(streams[i]);
	close(report[1]);
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
	if (*how->is_stopped) {
		r->is_stopped = true;
	} else if (!r->ended_ns && !r->has_hung) {
		f64 quiet_s = (f64)(now_ns - r->last_ns) / 1e9;
		f64 whole_s = (f64)(now_ns - r->began_ns) / 1e9;

		r->has_hung = quiet_s > how->limit_s + limit_s ||
			      (how->most_s > 0 && whole_s > how->most_s + limit_s);
	}
	if (r->is_stopped || r->has_hung ||
	    (r->ended_ns && (how->agent || now_ns > r->ended_ns + GRACE_NS)))
		end(r, now_ns);
}

/* Kill the processes that are our children now; false if there are none. */
static bool kill_children(void)
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
		kill((pid_t)pid, SIGKILL);
		has_any = true;
	}
	lull_str_release(&text);
	while (waitpid(-1, NULL, WNOHANG) > 0)
		has_any = true;
	return has_any;
}

/*
 * Leave nothing of the program: its group, and what has left that. Orphans become our children
 * (lull_try_run()), and theirs after them.
 */
static void end_rest(pid_t group)
{
	kill(-group, SIGKILL);
	for (int i = 0; i < MOST_SWEEPS && kill_children(); i++)
		usleep(LOOK_US / 2);
}

/* Wait for the end of the program, and leave nothing of it. */
static void watch(struct run *r, const struct lull_trial_how *how,
		  const struct lull_trial_change *change, const char *folder)
{
	f64 limit_s = 0;

	for (size_t i = 0; i < change->n; i++)
		limit_s += change->remedies[i]->limit_s;
	for (u32 n = 1;; n++) {
		pid_t pid = wait4(r->pid, &r->wait_status, WNOHANG, &r->use);

		if (pid == r->pid || (pid < 0 && errno != EINTR))
			break;
		if (n % LOOKS_A_LOG == 0)
			look(r, how, folder, limit_s);
		usleep(LOOK_US);
	}
	end_rest(r->pid);
}

/* ---- what came of it ---- */

static void read_words(struct lull_trial *t, const char *folder)
{
	struct lull_str path = LULL_STR_INIT;
	char *line = NULL;
	size_t cap = 0;
	FILE *f;

	lull_str_addf(&path, "%s/stderr", folder);
	f = fopen(path.at, "re");
	while (f && getline(&line, &cap, f) > 0) {
		line[strcspn(line, "\r\n")] = '\0';
		if (line[strspn(line, " \t^~")])
			snprintf(t->words, sizeof(t->words), "%s", line + strspn(line, " \t"));
	}
	if (f)
		fclose(f);
	free(line);
	lull_str_release(&path);
}

static void judge(struct lull_trial *t, const struct run *r)
{
	bool is_signal = WIFSIGNALED(r->wait_status);

	t->status = is_signal ? 128 + WTERMSIG(r->wait_status) : WEXITSTATUS(r->wait_status);
	t->wall_ns = lull_now_ns() - r->began_ns;
	t->ready_ns = t->seen.began_ns > r->began_ns ? t->seen.began_ns - r->began_ns : 0;
	t->rss_bytes = (u64)r->use.ru_maxrss * 1024;
	if (t->seen.has_ended)
		t->end = LULL_TRIAL_DONE;
	else if (r->is_stopped)
		t->end = LULL_TRIAL_STOPPED;
	else if (r->has_hung)
		t->end = LULL_TRIAL_HUNG;
	else if (t->status)
		t->end = LULL_TRIAL_FAILED;
	else
		t->end = t->seen.steps.n >= LEAST_BLOCKS ? LULL_TRIAL_DONE : LULL_TRIAL_FEW_STEPS;
}

int lull_trial_run(struct lull_trial *t, const struct lull_trial_how *how,
		   const struct lull_trial_change *change, u32 number, struct lull_err *err)
{
	struct lull_str folder = LULL_STR_INIT;
	struct run r = { 0 };
	struct lull_vec env;
	int rc = LULL_OK;

	*t = (struct lull_trial){ .status = 0 };
	lull_try_seen_init(&t->seen);
	lull_str_addf(&folder, "%s/%u", how->folder, number);
	if (mkdir(folder.at, 0700) != 0)
		rc = lull_fail_errno(err, "making the folder %s", folder.at);
	make_env(&env, how, change, folder.at);
	if (!rc)
		rc = start(&r, how->argv, env.at, folder.at, err);
	if (!rc) {
		watch(&r, how, change, folder.at);
		lull_try_log_read(&t->seen, folder.at);
		read_words(t, folder.at);
		judge(t, &r);
	}
	lull_opt_list_release(&env);
	lull_str_release(&folder);
	return rc;
}

bool lull_trial_did(const struct lull_trial *t, const struct lull_trial_change *change)
{
	char *const *did = t->seen.did.at;

	for (size_t i = 0; i < change->n; i++) {
		bool has = !change->remedies[i]->path;

		for (size_t n = 0; n < t->seen.did.n && !has; n++)
			has = strcmp(did[n], change->remedies[i]->name) == 0;
		if (!has)
			return false;
	}
	return true;
}

void lull_trial_release(struct lull_trial *t)
{
	lull_try_seen_release(&t->seen);
}
