/*
 * lull complete - what may stand where somebody pressed Tab, for the scripts of
 * packaging/completions.
 *
 *	lull complete WORD...		the words after `lull`, the last one unfinished
 *
 * Prints one candidate a line, with a tab and what it is; or, for what shells know better, a single
 * line:
 *
 *	:reports	a report, a file that lull imports, or a folder
 *	:parts		an unfinished report
 *	:files		any file
 *	:command	a program
 *	:program N	the command line of a program, which begins with word N (0 is `lull`)
 *
 * Options come from the tables of the commands themselves, so there is no second list. bash splits
 * words at "=": "--format", "=", "js" is the same as "--format=js".
 */
#include "cmd/cmd.h"

#include <ctype.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/str.h"
#include "base/vec.h"
#include "cmd/manual_pages.h"
#include "export/export.h"
#include "import/import.h"
#include "record/session/session.h"
#include "report/report.h"
#include "report/rule.h"
#include "text/opt.h"

struct ask {
	char **words; /* after `lull` */
	int n;
	const struct lull_opt *opts; /* of the command */
	const char *usage;	     /* its words after its name */
	const char *begun;	     /* what the candidates begin with */
	const char *front;	     /* printed in front of each: "--format=" */
	size_t front_len;
};

static void offer(const struct ask *ask, const char *text, const char *what)
{
	if (strncmp(text, ask->begun, strlen(ask->begun)) != 0)
		return;
	printf("%.*s%s\t%s\n", (int)ask->front_len, ask->front, text, what);
}

/* ---- kinds of values ---- */

/* Names come from shared memory: only what a shell takes as one plain word is offered. */
static bool is_plain(const char *name)
{
	for (; *name; name++)
		if (!isalnum((unsigned char)*name) && !strchr("._-", *name))
			return false;
	return true;
}

static void offer_sessions(const struct ask *ask)
{
	struct lull_vec all;

	lull_vec_init(&all, sizeof(struct lull_session_entry));
	lull_session_list(&all);
	for (size_t i = 0; i < all.n; i++) {
		const struct lull_session_entry *e = lull_vec_get(&all, i);

		if (e->is_alive && is_plain(e->name))
			offer(ask, e->name, "session");
	}
	lull_vec_release(&all);
}

static void offer_pid(const struct ask *ask, const char *pid)
{
	struct lull_str path = LULL_STR_INIT;
	char name[64] = "";
	struct stat st;
	FILE *f;

	lull_str_addf(&path, "/proc/%s", pid);
	/* Only one's own: others cannot be recorded. */
	if (!stat(path.at, &st) && st.st_uid == geteuid()) {
		lull_str_puts(&path, "/comm");
		f = fopen(path.at, "re");
		if (f && fgets(name, sizeof(name), f)) {
			name[strcspn(name, "\n")] = '\0';
			offer(ask, pid, name);
		}
		if (f)
			fclose(f);
	}
	lull_str_release(&path);
}

static void offer_pids(const struct ask *ask)
{
	DIR *proc = opendir("/proc");
	const struct dirent *e;

	while (proc && (e = readdir(proc)))
		if (isdigit((unsigned char)*e->d_name))
			offer_pid(ask, e->d_name);
	if (proc)
		closedir(proc);
}

static void offer_reports(const struct ask *ask, const struct lull_report *const *list)
{
	for (; *list; list++)
		offer(ask, (*list)->name, (*list)->summary);
}

static void offer_types(const struct ask *ask, bool is_export)
{
	for (size_t i = 0; is_export && lull_exports[i]; i++)
		offer(ask, lull_exports[i]->name, lull_exports[i]->summary);
	for (size_t i = 0; !is_export && lull_imports[i]; i++)
		offer(ask, lull_imports[i]->name, lull_imports[i]->summary);
}

static void offer_commands(const struct ask *ask)
{
	for (const struct lull_cmd *c = lull_cmds; c->name; c++)
		if (c->summary)
			offer(ask, c->name, c->summary);
}

/* Pages that are no commands: lull-report.5. */
static void offer_guides(const struct ask *ask)
{
	struct lull_str name = LULL_STR_INIT;

	for (const struct lull_manual_page *p = lull_pages; p->name; p++) {
		const char *dot = strrchr(p->name, '.');

		if (strncmp(p->name, "lull-", 5) != 0 || !dot || dot[1] == '1')
			continue;
		lull_str_clear(&name);
		lull_str_add(&name, p->name + 5, (size_t)(dot - p->name - 5));
		offer(ask, name.at, "guide");
	}
	lull_str_release(&name);
}

/* ---- options ---- */

static void offer_options(const struct ask *ask)
{
	struct lull_str name = LULL_STR_INIT;

	for (const struct lull_opt *o = ask->opts; o->kind != LULL_OPT_END; o++) {
		if (o->kind == LULL_OPT_USAGE || o->kind == LULL_OPT_GROUP || !o->help)
			continue;
		lull_str_clear(&name);
		if (o->name)
			lull_str_addf(&name, "--%s%s", o->name, lull_opt_takes_word(o) ? "=" : "");
		else
			lull_str_addf(&name, "-%c", o->letter);
		offer(ask, name.at, o->help);
	}
	offer(ask, "--help", "show the options and exit");
	lull_str_release(&name);
}

/* The option that is spelled so, up to its "="; NULL if there is none. */
static const struct lull_opt *find_option(const struct ask *ask, const char *word)
{
	bool is_long = !strncmp(word, "--", 2);
	size_t len = strcspn(word + 2 * is_long, "=");

	for (const struct lull_opt *o = ask->opts; o->kind != LULL_OPT_END; o++) {
		if (o->kind == LULL_OPT_USAGE || o->kind == LULL_OPT_GROUP)
			continue;
		if (is_long ? o->name && strlen(o->name) == len && !strncmp(o->name, word + 2, len)
			    : *word == '-' && o->letter && word[1] == o->letter && !word[2])
			return o;
	}
	return NULL;
}

static bool is_one_of(const char *text, const char *const *words)
{
	for (; *words; words++)
		if (strstr(text, *words))
			return true;
	return false;
}

static void offer_values(const struct ask *ask, const struct lull_opt *o)
{
	static const char *const files[] = { "FILE", "WHERE", "PATH", "REPORT", "FOLDER", NULL };
	const char *command = ask->words[0], *name = o->name ? o->name : "";

	for (size_t i = 0; o->choices && o->choices[i]; i++)
		offer(ask, o->choices[i], o->name);
	if (o->kind == LULL_OPT_BOOL) {
		offer(ask, "true", name);
		offer(ask, "false", name);
	} else if (!strcmp(name, "report") && !strcmp(command, "stats")) {
		offer_reports(ask, lull_reports);
	} else if (!strcmp(name, "rule") && !strcmp(command, "analyze")) {
		offer_reports(ask, lull_rules);
	} else if (!strcmp(name, "type")) {
		offer_types(ask, !strcmp(command, "export"));
	} else if (!strcmp(name, "session")) {
		offer_sessions(ask);
	} else if (!strcmp(name, "output") || (o->arg && is_one_of(o->arg, files))) {
		puts(":files");
	}
}

/* ---- other words ---- */

/* The index of the first word that is neither an option nor its value, -1 if there is none yet. */
static int first_word(const struct ask *ask)
{
	for (int i = 1; i < ask->n - 1; i++) {
		const struct lull_opt *o = find_option(ask, ask->words[i]);

		if (!strcmp(ask->words[i], "--"))
			return i + 1 < ask->n - 1 ? i + 1 : -1;
		if (*ask->words[i] != '-')
			return i;
		if (!strcmp(ask->words[i + 1], "="))
			i += 2;
		else if (o && lull_opt_takes_word(o) && !strchr(ask->words[i], '='))
			i++;
	}
	return -1;
}

static void offer_words(const struct ask *ask)
{
	static const char *const reports[] = { "FILE", "REPORT", "FOLDER", "BEFORE", "NEW", NULL };

	if (strstr(ask->usage, "COMMAND")) {
		offer_commands(ask);
		offer_guides(ask);
	}
	if (strstr(ask->usage, "SESSION|"))
		offer_sessions(ask);
	if (strstr(ask->usage, "PID"))
		offer_pids(ask);
	if (strstr(ask->usage, ".lull.part"))
		puts(":parts");
	else if (strstr(ask->usage, "PROGRAM") && !strstr(ask->usage, "REPORT"))
		puts(":command");
	else if (is_one_of(ask->usage, reports))
		puts(":reports");
}

/* ---- the question ---- */

/* The option whose value is asked for, or NULL; says what of it is there already. */
static const struct lull_opt *value_of(struct ask *ask)
{
	char **last = &ask->words[ask->n - 1];
	const struct lull_opt *o;
	const char *equals = strchr(*last, '=');

	if (ask->n > 2 && !strcmp(*last, "=")) {
		ask->begun = "";
		return find_option(ask, last[-1]);
	}
	if (ask->n > 3 && !strcmp(last[-1], "="))
		return find_option(ask, last[-2]);
	if (!strncmp(*last, "--", 2) && equals) {
		ask->front = *last;
		ask->front_len = (size_t)(equals + 1 - *last);
		ask->begun = equals + 1;
		return find_option(ask, *last);
	}
	o = ask->n > 2 && *last[-1] == '-' ? find_option(ask, last[-1]) : NULL;
	return o && lull_opt_takes_word(o) && !strchr(last[-1], '=') ? o : NULL;
}

static void answer(void *ctx, const struct lull_opt *opts)
{
	struct ask *ask = ctx;
	const struct lull_opt *o;
	int program;

	ask->opts = opts;
	if (opts->kind == LULL_OPT_USAGE)
		ask->usage = opts->name;
	program = strstr(ask->usage, "PROGRAM") ? first_word(ask) : -1;
	if (program >= 0) {
		printf(":program %d\n", program + 1);
		return;
	}
	o = value_of(ask);
	if (o && lull_opt_takes_value(o))
		offer_values(ask, o);
	else if (ask->front_len)
		return; /* the value of what is no option */
	else if (*ask->begun == '-')
		offer_options(ask);
	else
		offer_words(ask);
}

int cmd_complete(int argc, char **argv, struct lull_err *err)
{
	struct ask ask = { .words = argv + 1, .n = argc - 1, .usage = "", .begun = "" };
	const struct lull_cmd *cmd;
	const char *nearest;
	struct lull_err ignored;
	char *words[] = { NULL, NULL };

	(void)err;
	if (ask.n)
		ask.begun = ask.words[ask.n - 1];
	if (ask.n < 2) {
		offer_commands(&ask);
		return LULL_OK;
	}
	cmd = lull_cmd_find(ask.words[0], &nearest);
	if (!cmd || !cmd->summary)
		return LULL_OK;
	words[0] = ask.words[0];
	lull_opt_divert(answer, &ask);
	cmd->run(1, words, &ignored);
	lull_opt_divert(NULL, NULL);
	return LULL_OK;
}
