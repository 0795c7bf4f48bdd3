/*
 * lull view - show reports in the browser.
 *
 * Serves until Ctrl-C, or until there was no request for --idle. The address holds a secret,
 * so it is never put on a command line, where all users of the machine could read it: a browser is
 * started on a file that leads there and that only its owner can read.
 */
#include "cmd/cmd.h"

#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/duration.h"
#include "base/mem.h"
#include "text/opt.h"
#include "base/scratch.h"
#include "base/str.h"
#include "text/term.h"
#include "base/time.h"
#include "cmd/diff_json.h"
#include "cmd/losses.h"
#include "cmd/open.h"
#include "export/export.h"
#include "import/other_name.h"
#include "job/job.h"
#include "page/page.h"
#include "report/step_window.h"
#include "web/server.h"

#define DEFAULT_IDLE_NS (12ull * 3600 * LULL_NS_PER_S)
#define DEFAULT_EDITOR	"vscode://file{file}:{line}"

struct view {
	struct lull_page page;
	struct lull_server_options server;
	const char *idle, *fragment, *editor, *source;
	struct lull_step_option steps;
	bool has_no_browser, has_no_index, is_known_risk;
	u64 idle_ns;
	char *cache_dir, *redirect_path, *source_dir;
	/* Names of the files, which the page borrows; the last is for one that is too many. */
	struct lull_str opened[LULL_PAGE_REPORTS + 1], shown[LULL_PAGE_REPORTS + 1];
	int last_percent;
	pid_t browser; /* what was started to show it, 0 once it has ended */
};

/* ---- reports ---- */

static void show_progress(void *ctx, f64 share)
{
	struct view *v = ctx;
	int percent = (int)(share * 100);

	if (percent == v->last_percent || !lull_term_is_tty(stderr))
		return;
	v->last_percent = percent;
	fprintf(stderr, "\rlull: reading %d %%%s", percent, percent == 100 ? "\r\033[K" : "");
}

/* The folder for indexes that cannot be written next to their report. */
static char *find_cache_dir(void)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	struct lull_str path = LULL_STR_INIT;

	if (cache && *cache == '/')
		lull_str_addf(&path, "%s", cache);
	else if (home && *home == '/')
		lull_str_addf(&path, "%s/.cache", home);
	else
		return NULL;
	mkdir(lull_str_text(&path), 0700);
	lull_str_puts(&path, "/lull");
	mkdir(lull_str_text(&path), 0700);
	return path.at;
}

/* Write the steps that are asked for to a report of their own; `shown` becomes its name. */
static int cut_steps(struct view *v, const char *path, const char *to, struct lull_str *shown,
		     struct lull_err *err)
{
	const struct lull_export_target target = { .path = to };
	struct lull_export_options options = { .tables = { .elem_bytes = sizeof(char *) } };
	struct lull_str used = LULL_STR_INIT;
	struct lull_step_window window;
	struct lull_reader *r = NULL;
	const char *slash;
	int rc = lull_open(path, &r, &used, err);

	if (!rc)
		rc = lull_step_window_find(&window, &v->steps, r, err);
	if (!rc) {
		slash = strrchr(lull_str_text(&used), '/');
		lull_str_addf(shown, "%s, ", slash ? slash + 1 : lull_str_text(&used));
		lull_step_window_name(shown, &window);
		options.from_ns = window.span.from_ns;
		options.to_ns = window.span.to_ns;
		lull_step_window_say(&window, NULL);
		rc = lull_export_write(r, lull_export_find("lull"), &options, &target, err);
	}
	lull_losses_close(r, path);
	lull_str_release(&used);
	return rc;
}

/* The report of some steps has no name and is gone when it is closed. */
static int add_steps(struct view *v, const char *path, struct lull_err *err)
{
	size_t n = v->page.n_reports;
	struct lull_str *shown = &v->shown[n < LULL_PAGE_REPORTS ? n : LULL_PAGE_REPORTS];
	struct lull_timeline_options options = { .has_no_index = true,
						 .progress = show_progress,
						 .ctx = v };
	struct lull_scratch scratch = LULL_SCRATCH_INIT;
	int rc = lull_scratch_make(&scratch, "steps.lull", err);

	options.path = lull_str_text(&scratch.file);
	if (!rc)
		rc = cut_steps(v, path, options.path, shown, err);
	if (!rc)
		rc = lull_page_add(&v->page, options.path, lull_str_text(shown), &options, err);
	lull_scratch_remove(&scratch);
	return rc;
}

static int add_report(struct view *v, const char *path, struct lull_err *err)
{
	size_t n = v->page.n_reports;
	struct lull_str *opened = &v->opened[n < LULL_PAGE_REPORTS ? n : LULL_PAGE_REPORTS];
	const char *name, *slash;
	struct lull_timeline_options options = { .cache_dir = v->cache_dir,
						 .has_no_index = v->has_no_index,
						 .progress = show_progress,
						 .ctx = v };

	v->last_percent = -1;
	if (lull_step_option_given(&v->steps)) {
		if (lull_job_is_folder(path))
			return lull_fail(err, LULL_E_USAGE,
					 "--steps and --steady are for one report; give one of "
					 "those in %s",
					 path);
		return add_steps(v, path, err);
	}
	if (lull_job_is_folder(path))
		return lull_page_add_job(&v->page, path, err);
	lull_other_name(path, opened);
	name = options.path = lull_str_text(opened);
	slash = strrchr(name, '/');
	if (lull_page_add(&v->page, name, slash ? slash + 1 : name, &options, err))
		return lull_other_advice(name, err);
	lull_losses_warn(v->page.reports[v->page.n_reports - 1].quick, name);
	lull_losses_warn_damage(v->page.reports[v->page.n_reports - 1].quick, name);
	return LULL_OK;
}

/* ---- the browser ---- */

/*
 * A page that leads to the address, for the eyes of its owner only; NULL if that is not possible.
 */
static char *write_redirect(const char *url)
{
	const char *folder = getenv("XDG_RUNTIME_DIR");
	struct lull_str path = LULL_STR_INIT;
	FILE *to;
	int fd;

	if (!folder || *folder != '/')
		folder = "/tmp";
	lull_str_addf(&path, "%s/lull-view-XXXXXX.html", folder);
	fd = mkstemps(path.at, 5);
	to = fd < 0 ? NULL : fdopen(fd, "w");
	if (!to) {
		if (fd >= 0)
			close(fd);
		lull_str_release(&path);
		return NULL;
	}
	fprintf(to,
		"<!doctype html><meta charset=utf-8><meta http-equiv=refresh "
		"content=\"0;url=%s\">\n",
		url);
	fclose(to);
	return path.at;
}

/* Whether this is a desktop, where a browser can be opened. */
static bool has_screen(void)
{
	return (getenv("DISPLAY") || getenv("WAYLAND_DISPLAY")) && !getenv("SSH_CONNECTION");
}

static bool open_browser(struct view *v, const char *url)
{
	char program[] = "xdg-open";
	char *argv[] = { program, NULL, NULL };
	posix_spawn_file_actions_t quiet;
	int rc;

	v->redirect_path = write_redirect(url);
	if (!v->redirect_path)
		return false;
	argv[1] = v->redirect_path;
	posix_spawn_file_actions_init(&quiet);
	posix_spawn_file_actions_addopen(&quiet, 1, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&quiet, 2, "/dev/null", O_WRONLY, 0);
	rc = posix_spawnp(&v->browser, program, &quiet, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&quiet);
	if (rc)
		v->browser = 0;
	return rc == 0;
}

static void say_where(struct view *v, const struct lull_server *server)
{
	const char *fragment = v->fragment ? v->fragment : "";
	struct lull_str url = LULL_STR_INIT;
	char host[256] = "HOST";
	bool is_shown = false;

	lull_str_addf(&url, "%s%s", lull_server_url(server), fragment);
	printf("lull: %s\n", lull_str_text(&url));
	if (!v->has_no_browser && has_screen() && !v->server.socket_path)
		is_shown = open_browser(v, lull_str_text(&url));
	gethostname(host, sizeof(host) - 1);
	if (v->server.socket_path)
		printf("lull: on your own machine: ssh -L 8080:%s %s\n", v->server.socket_path,
		       host);
	else if (!is_shown && !v->server.address)
		printf("lull: from another machine: ssh -L %u:127.0.0.1:%u %s, then open the "
		       "address above there\n",
		       lull_server_port(server), lull_server_port(server), host);
	printf("lull: Ctrl-C ends the server\n");
	fflush(stdout);
	lull_str_release(&url);
}

/* ---- the command ---- */

static void wait_for_end(struct view *v, struct lull_server *server, const sigset_t *signals)
{
	const struct timespec second = { .tv_sec = 1 };

	for (;;) {
		int got = sigtimedwait(signals, NULL, &second);

		if (got == SIGINT || got == SIGTERM || got == SIGHUP)
			return;
		if (v->browser > 0 && waitpid(v->browser, NULL, WNOHANG))
			v->browser = 0;
		if (lull_server_tick(server) > v->idle_ns) {
			fprintf(stderr, "lull: no request for %s; the server ends\n",
				lull_format_ns(v->idle_ns).text);
			return;
		}
	}
}

static int serve(struct view *v, struct lull_err *err)
{
	struct lull_server *server;
	sigset_t signals;

	/* Before any thread starts, so that all of them leave these to this one. */
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigaddset(&signals, SIGHUP);
	sigprocmask(SIG_BLOCK, &signals, NULL);
	signal(SIGPIPE, SIG_IGN);
	lull_page_start(&v->page);
	if (lull_server_start(&server, &v->page, &v->server, err))
		return err->code;
	if (v->server.address)
		fprintf(stderr,
			"lull: warning: everybody who can reach %s and knows the token can read "
			"these reports; nothing is encrypted\n",
			v->server.address);
	say_where(v, server);
	wait_for_end(v, server, &signals);
	lull_server_stop(server);
	return LULL_OK;
}

static int check(struct view *v, struct lull_err *err)
{
	if (v->server.address && !v->is_known_risk)
		return lull_fail(err, LULL_E_USAGE,
				 "--listen lets others on the network read the reports; add "
				 "--i-know to confirm, or use ssh -L or --socket");
	if (v->server.port > 65535)
		return lull_fail(err, LULL_E_USAGE, "--port is a number up to 65535");
	if (lull_step_option_check(&v->steps, err))
		return err->code;
	v->idle_ns = DEFAULT_IDLE_NS;
	if (v->idle && lull_duration_parse(v->idle, &v->idle_ns, err))
		return lull_err_wrap(err, "option --idle");
	return LULL_OK;
}

/*
 * The address becomes a link of the page. It has to start with a scheme of an editor: a script
 * would run in the page.
 */
static int set_editor(struct view *v, struct lull_err *err)
{
	const char *editor = v->editor ? v->editor : DEFAULT_EDITOR;
	size_t len = strspn(editor, "abcdefghijklmnopqrstuvwxyz0123456789+.-");

	if (!strcmp(editor, "none"))
		return LULL_OK;
	if (!len || strncmp(editor + len, "://", 3) != 0 || !strstr(editor, "{file}") ||
	    !strncmp(editor, "javascript:", 11) || !strncmp(editor, "data:", 5))
		return lull_fail(err, LULL_E_USAGE,
				 "option --editor: expected an address such as " DEFAULT_EDITOR
				 ", or none; got %s",
				 editor);
	v->page.editor = editor;
	return LULL_OK;
}

/* The folder that a report is in, or the folder itself. */
static char *folder_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	if (lull_job_is_folder(path))
		return lull_strdup(path);
	return slash ? lull_strndup(path, slash > path ? (size_t)(slash - path) : 1)
		     : lull_strdup(".");
}

static int run(struct view *v, int n, char **paths, struct lull_err *err)
{
	if (check(v, err) || set_editor(v, err))
		return err->code;
	v->cache_dir = find_cache_dir();
	for (int i = 0; i < n; i++) {
		if (*paths[i] == '#') /* the part of a shared address that says what to show */
			v->fragment = paths[i];
		else if (add_report(v, paths[i], err))
			return err->code;
		else if (!v->source_dir)
			v->source_dir = folder_of(paths[i]);
	}
	if (!v->page.n_reports)
		return lull_fail(err, LULL_E_USAGE, "give a report, such as report1.lull");
	v->page.diff = lull_diff_json;
	v->page.source_dir = v->source ? v->source : v->source_dir;
	return serve(v, err);
}

int cmd_view(int argc, char **argv, struct lull_err *err)
{
	struct view v = { 0 };
	const struct lull_opt opts[] = {
		OPT_USAGE("lull view [OPTIONS] REPORT...",
			  "Show reports in the browser; the second one is compared with the "
			  "first. A folder is a job: its ranks are shown above each other."),
		OPT_FLAG('n', "no-browser", &v.has_no_browser,
			 "print the address; do not open a browser"),
		OPT_U64('p', "port", "N", &v.server.port, "port to listen on (default: any)"),
		OPT_STR(0, "socket", "PATH", &v.server.socket_path,
			"listen on a Unix socket that only you can open, for ssh -L"),
		OPT_STR(0, "listen", "ADDRESS", &v.server.address,
			"listen on another address than 127.0.0.1; needs --i-know"),
		OPT_FLAG(0, "i-know", &v.is_known_risk,
			 "confirm that others on the network may read the reports"),
		OPT_STR(0, "host", "NAME", &v.server.host,
			"another host name for this server, such as a proxy's"),
		OPT_STR(0, "idle", "TIME", &v.idle,
			"exit when there was no request for this time (default: 12h)"),
		OPT_STR(0, "editor", "ADDRESS", &v.editor,
			"what a click on a line of source opens, with {file} and {line} in it; "
			"none: nothing (default: " DEFAULT_EDITOR ")"),
		OPT_STR(0, "source", "FOLDER", &v.source,
			"where the program's source is (default: the folder of the report)"),
		OPT_FLAG(0, "no-index", &v.has_no_index,
			 "neither read nor write an index next to large reports"),
		LULL_STEP_OPTIONS(&v.steps),
		OPT_END(),
	};
	int first = lull_opt_parse(argc, argv, opts, err), rc;

	if (first < 0)
		return first;
	if (first == argc)
		return lull_fail(err, LULL_E_USAGE, "give a report, such as report1.lull");
	rc = run(&v, argc - first, argv + first, err);
	if (v.redirect_path)
		unlink(v.redirect_path);
	free(v.redirect_path);
	free(v.cache_dir);
	free(v.source_dir);
	lull_page_release(&v.page);
	for (size_t i = 0; i < LULL_COUNT_OF(v.opened); i++) {
		lull_str_release(&v.opened[i]);
		lull_str_release(&v.shown[i]);
	}
	return rc;
}
