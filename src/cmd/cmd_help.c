/*
 * lull help - list the commands, or show the manual page of one through a pager.
 */
#include "cmd/cmd.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "text/markdown.h"
#include "text/opt.h"
#include "base/str.h"
#include "text/term.h"
#include "cmd/manual_pages.h"

/* Lines that are longer are hard to read. */
#define MAX_WIDTH 100

/* Columns before a summary: two blanks, the longest command, two blanks. */
#define SUMMARY_INDENT 14

/* Where groups of commands begin. */
static const struct {
	const char *first, *title;
} groups[] = {
#define GROUP(first, title) { #first, title },
#define CMD(name, summary)
#include "cmd/cmds.def"
#undef CMD
#undef GROUP
};

static void print_group(FILE *to, const char *first)
{
	for (size_t i = 0; i < LULL_COUNT_OF(groups); i++)
		if (strcmp(groups[i].first, first) == 0)
			fprintf(to, "\n%s\n", groups[i].title);
}

static void list_commands(FILE *to)
{
	int width = lull_term_width(to);

	fputs("usage: lull COMMAND [OPTIONS] [ARGUMENTS]\n", to);
	for (const struct lull_cmd *c = lull_cmds; c->name; c++) {
		if (!c->summary)
			continue;
		print_group(to, c->name);
		fprintf(to, "  %-*s", SUMMARY_INDENT - 2, c->name);
		lull_term_wrap(to, c->summary, SUMMARY_INDENT, width);
	}
	fputs("\n`lull COMMAND --help` lists the options of a command,\n`lull help COMMAND` shows "
	      "its manual page.\n",
	      to);
}

static const struct lull_manual_page *find_page(const char *name)
{
	for (const struct lull_manual_page *p = lull_pages; p->name; p++) {
		const char *dot = strrchr(p->name, '.');

		if (dot && !strncmp(p->name, name, (size_t)(dot - p->name)) && !name[dot - p->name])
			return p;
	}
	return NULL;
}

/*
 * A page is named lull-COMMAND, a guide such as lull-report has the same form, and lull(1) is
 * itself.
 */
static const struct lull_manual_page *find_topic(const char *topic)
{
	struct lull_str name = LULL_STR_INIT;
	const struct lull_manual_page *page;

	lull_str_addf(&name, "lull-%s", topic);
	page = find_page(lull_str_text(&name));
	lull_str_release(&name);
	return page ? page : find_page(topic);
}

static int show(const struct lull_manual_page *page, struct lull_err *err)
{
	const char *pager = getenv("PAGER");
	FILE *pipe;

	int width = lull_term_width(stdout);

	if (width > MAX_WIDTH)
		width = MAX_WIDTH;
	if (!lull_term_is_tty(stdout)) {
		lull_markdown_print(stdout, page->text, width, false);
		return LULL_OK;
	}
	fflush(stdout);
	/* Do not die of SIGPIPE if the user leaves the pager early. */
	signal(SIGPIPE, SIG_IGN);
	pipe = popen(pager && *pager ? pager : "less -FRX", "w");
	if (!pipe)
		return lull_fail_errno(err, "starting the pager");
	lull_markdown_print(pipe, page->text, width, lull_term_has_colour(stdout));
	pclose(pipe);
	return LULL_OK;
}

int cmd_help(int argc, char **argv, struct lull_err *err)
{
	const struct lull_opt opts[] = {
		OPT_USAGE("lull help [COMMAND]",
			  "List the commands, or show the manual page of one."),
		OPT_END(),
	};
	int first = lull_opt_parse(argc, argv, opts, err);
	const char *nearest = NULL;
	const struct lull_manual_page *page;

	if (first < 0)
		return first;
	if (first == argc) {
		list_commands(stdout);
		return LULL_OK;
	}
	page = find_topic(argv[first]);
	if (page)
		return show(page, err);
	if (lull_cmd_find(argv[first], &nearest))
		return lull_fail(err, LULL_E_NOT_FOUND,
				 "no manual page for %s; try `lull %s --help`", argv[first],
				 argv[first]);
	return lull_fail(err, LULL_E_USAGE, "no command %s%s%s%s", argv[first],
			 nearest ? "; did you mean " : "", nearest ? nearest : "",
			 nearest ? "?" : "");
}
