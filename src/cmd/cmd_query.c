/*
 * lull query - query a report with SQL.
 */
#include "cmd/cmd.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "text/opt.h"
#include "base/str.h"
#include "text/term.h"
#include "base/time.h"
#include "cmd/losses.h"
#include "cmd/sink.h"
#include "import/import.h"
#include "query/query.h"
#include "report/step_window.h"

struct ask {
	struct lull_query *query;
	struct lull_query_limits limits;
	struct lull_out_options out;
	struct lull_step_option steps;
	FILE *to;
	bool is_done;
};

/* The query that Ctrl-C ends. */
static struct lull_query *volatile running;

static void on_interrupt(int number)
{
	(void)number;
	if (running)
		lull_query_stop(running);
}

static int run_sql(struct ask *a, const char *sql, struct lull_err *err)
{
	struct sigaction old, action = { .sa_handler = on_interrupt };
	int rc;

	running = a->query;
	sigaction(SIGINT, &action, &old);
	rc = lull_query_run(a->query, sql, &a->limits, &a->out, a->to, err);
	sigaction(SIGINT, &old, NULL);
	running = NULL;
	return rc;
}

/* ---- the prompt ---- */

static const char help[] = ".tables [PATTERN]   tables, or those whose names are like PATTERN\n"
			   ".schema [PATTERN]   their columns\n"
			   ".quit               end (so does Ctrl-D)\n"
			   "Anything else is SQL; a statement ends with a semicolon.\n";

/* A line that begins with a point. */
static int run_dot(struct ask *a, char *line, struct lull_err *err)
{
	char *rest = line;
	const char *word = strsep(&rest, " \t");
	const char *pattern = rest && *rest ? rest : NULL;

	if (!strcmp(word, ".quit") || !strcmp(word, ".exit"))
		a->is_done = true;
	else if (!strcmp(word, ".tables"))
		lull_query_list_tables(a->query, pattern, a->to);
	else if (!strcmp(word, ".help"))
		fputs(help, a->to);
	else if (strcmp(word, ".schema") != 0)
		return lull_fail(err, LULL_E_USAGE, "unknown command %s; .help lists them", word);
	else if (!lull_query_list_columns(a->query, pattern, a->to))
		return lull_fail(err, LULL_E_USAGE, "there is no table like %s; .tables lists them",
				 pattern);
	return LULL_OK;
}

static void trim(char *line)
{
	size_t len = strlen(line);

	while (len && strchr(" \t\r\n", line[len - 1]))
		line[--len] = '\0';
}

/* One line of input; a statement may take several. True if a statement failed. */
static bool take_line(struct ask *a, char *line, struct lull_str *sql)
{
	struct lull_err err = { LULL_OK, "" };
	bool is_bad = false;

	trim(line);
	if (!sql->len && !*line)
		return false;
	if (!sql->len && *line == '.') {
		run_dot(a, line, &err);
	} else {
		lull_str_addf(sql, "%s\n", line);
		if (!sqlite3_complete(sql->at))
			return false;
		is_bad = run_sql(a, sql->at, &err);
		lull_str_clear(sql);
	}
	if (err.code)
		fprintf(stderr, "lull query: %s\n", err.msg);
	return is_bad;
}

/* Statements from standard input: with a prompt if a person types them. */
static int converse(struct ask *a, struct lull_err *err)
{
	bool is_person = lull_term_is_tty(stdin) && lull_term_is_tty(stdout);
	struct lull_str sql = LULL_STR_INIT;
	size_t cap = 0, n_bad = 0;
	char *line = NULL;

	if (is_person)
		puts(".help explains, .tables lists, .quit ends");
	while (!a->is_done) {
		if (is_person) {
			fputs(sql.len ? "  ...> " : "lull> ", stdout);
			fflush(stdout);
		}
		if (getline(&line, &cap, stdin) < 0)
			break;
		n_bad += take_line(a, line, &sql);
	}
	/* The last statement of a script may lack its semicolon. */
	if (!a->is_done && sql.len) {
		lull_str_puts(&sql, ";");
		n_bad += take_line(a, sql.at + sql.len, &sql);
	}
	if (is_person)
		putchar('\n');
	lull_str_release(&sql);
	free(line);
	if (n_bad && !is_person)
		return lull_fail(err, LULL_E_USAGE, "%zu statement%s failed", n_bad,
				 n_bad == 1 ? "" : "s");
	return LULL_OK;
}

/* ---- the command ---- */

struct words {
	const char *format, *output;
	bool force;
	f64 timeout_s;
	u64 max_rows;
};

/* Only what happened in the steps that are asked for. */
static int set_window(struct ask *a, struct lull_reader *r, struct lull_err *err)
{
	struct lull_step_window window;

	if (!lull_step_option_given(&a->steps))
		return LULL_OK;
	if (lull_step_window_find(&window, &a->steps, r, err))
		return err->code;
	lull_step_window_say(&window, NULL);
	lull_query_window(a->query, window.span);
	return LULL_OK;
}

static int ask_report(struct ask *a, const char *path, char **sql, int n_sql, struct lull_err *err)
{
	struct lull_reader *r;
	int rc = lull_import_open(path, &r, err);

	if (rc)
		return rc;
	lull_losses_warn_simulated(r);
	lull_losses_warn_cut(r, path);
	rc = lull_query_open(&a->query, r, err);
	if (!rc)
		rc = set_window(a, r, err);
	if (!rc && !n_sql)
		rc = converse(a, err);
	for (int i = 0; i < n_sql && !rc && !a->is_done; i++)
		rc = *sql[i] == '.' ? run_dot(a, sql[i], err) : run_sql(a, sql[i], err);
	lull_query_close(a->query);
	lull_losses_close(r, path);
	return rc;
}

static int to_sink(struct ask *a, const struct words *w, char **argv, int n, struct lull_err *err)
{
	struct lull_sink sink;
	struct lull_err second;
	int rc = lull_sink_spare_input(w->output, argv[0], err);

	if (!rc)
		rc = lull_sink_open(&sink, w->output ? w->output : "-", w->force, err);
	if (rc)
		return rc;
	a->to = sink.to;
	rc = ask_report(a, argv[0], argv + 1, n - 1, err);
	if (lull_sink_close(&sink, rc ? &second : err) && !rc)
		rc = err->code;
	return rc;
}

int cmd_query(int argc, char **argv, struct lull_err *err)
{
	struct words w = { .timeout_s = 60, .max_rows = 1000000 };
	struct ask a = { .out = LULL_OUT_OPTIONS_INIT };
	const struct lull_opt opts[] = {
		OPT_USAGE("lull query [OPTIONS] FILE [SQL...]",
			  "Query a report with SQL; without SQL, statements are read from standard "
			  "input. `.tables` and `.schema [TABLE]` list tables and columns."),
		OPT_STR('f', "format", "FORMAT", &w.format,
			"column, table, csv, tsv, json, hdoc or htable (default: column)"),
		OPT_STR('o', "output", "FILE", &w.output,
			"where to write: a file, - for standard output, or @PROGRAM"),
		OPT_BOOL(0, "force-overwrite", &w.force, "replace a file of that name"),
		OPT_F64(0, "timeout", "SECONDS", &w.timeout_s,
			"stop a statement after this time, 0 for no limit (default: 60)"),
		OPT_U64(0, "max-rows", "N", &w.max_rows,
			"stop after this many rows, 0 for no limit (default: 1000000)"),
		LULL_STEP_OPTIONS(&a.steps),
		OPT_END(),
	};
	int first = lull_opt_parse(argc, argv, opts, err);

	if (first < 0)
		return first;
	if (first == argc)
		return lull_fail(err, LULL_E_USAGE,
				 "give a report, such as lull query report1.lull \"SELECT * FROM "
				 "kernels LIMIT 10\"");
	if (w.timeout_s < 0 || w.timeout_s > 1e9)
		return lull_fail(err, LULL_E_USAGE, "--timeout: give seconds, or 0 for no limit");
	if (lull_step_option_check(&a.steps, err))
		return err->code;
	if (w.format && lull_out_options_parse(&a.out, w.format, err))
		return err->code;
	a.limits = (struct lull_query_limits){
		.timeout_ns = (u64)(w.timeout_s * (f64)LULL_NS_PER_S),
		.max_rows = w.max_rows,
	};
	return to_sink(&a, &w, argv + first, argc - first, err);
}
