/*
 * lull - dispatch to the commands of src/cmd/, and print what went wrong.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/crash.h"
#include "base/err.h"
#include "base/log.h"
#include "base/own_stack.h"
#include "text/opt.h"
#include "text/term.h"
#include "cmd/cmd.h"
#include "cmd/last_report.h"

/* What this program was made of, for those who report a bug or link it again. */
#ifndef LULL_COMMIT
#define LULL_COMMIT "unknown"
#endif
#ifdef LULL_IS_RELEASE
#define BUILD_KIND "release"
#else
#define BUILD_KIND "built from source"
#endif
#ifdef __aarch64__
#define ARCH "aarch64"
#else
#define ARCH "x86_64"
#endif

enum exit_status {
	STATUS_OK = 0,
	STATUS_FAILURE = 1,
	STATUS_USAGE = 2,
};

/*
 * An answer that did not reach the file it was sent to is no answer: a full disk must not look like
 * success.
 */
static int flush_stdout(struct lull_err *err)
{
	return lull_err_flush(err, stdout, "standard output");
}

static int run(const struct lull_cmd *cmd, int argc, char **argv)
{
	struct lull_err err = { LULL_OK, "" };
	int rc = cmd->run(argc, argv, &err);

	if (rc == LULL_OPT_HELPED)
		rc = LULL_OK;
	if (rc >= 0 && flush_stdout(&err))
		rc = err.code;
	if (rc >= 0)
		return rc;
	fprintf(stderr, "lull %s: %s\n", cmd->name, err.msg);
	return rc == LULL_E_USAGE ? STATUS_USAGE : STATUS_FAILURE;
}

static int unknown(const char *word, const char *nearest)
{
	const char *instead = lull_cmd_instead(word);

	if (instead) {
		fprintf(stderr, "lull: there is no command %s; %s\n", word, instead);
		return STATUS_USAGE;
	}
	fprintf(stderr, "lull: unknown %s %s; ", *word == '-' ? "option" : "command", word);
	if (nearest)
		fprintf(stderr, "did you mean %s?\n", nearest);
	else
		fputs("`lull help` lists the commands\n", stderr);
	return STATUS_USAGE;
}

/*
 * Started with its standard streams closed, the next file that is opened would be one of them, and
 * messages would go into a report. Programs that we start find them closed all the same.
 */
static void fill_streams(void)
{
	int fd;

	do
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	while (fd >= 0 && fd <= STDERR_FILENO);
	if (fd >= 0)
		close(fd);
}

static int begin(int argc, char **argv)
{
	char help_word[] = "help";
	char *help[] = { help_word, NULL };
	const char *word = argc > 1 ? argv[1] : NULL, *nearest = NULL;
	const struct lull_cmd *cmd;

	fill_streams();
	lull_crash_watch();
	lull_log_init(LULL_LOG_WARN, getenv("LULL_DEBUG"));
	/* People see what they most likely came for; scripts see that a command is missing. */
	if (!word && lull_term_is_tty(stdin) && lull_term_is_tty(stdout) &&
	    lull_last_report(stdout))
		return fflush(stdout) ? STATUS_FAILURE : STATUS_OK;
	if (!word || !strcmp(word, "--help") || !strcmp(word, "-h")) {
		int status = run(lull_cmd_find("help", &nearest), 1, help);

		return word ? status : STATUS_USAGE;
	}
	if (!strcmp(word, "--version") || !strcmp(word, "-V") || !strcmp(word, "-v")) {
		puts("lull " LULL_VERSION " (commit " LULL_COMMIT ", " ARCH ", " BUILD_KIND ")");
		return fflush(stdout) ? STATUS_FAILURE : STATUS_OK;
	}
	cmd = lull_cmd_find(word, &nearest);
	return cmd ? run(cmd, argc - 1, argv + 1) : unknown(word, nearest);
}

int main(int argc, char **argv)
{
	return lull_own_stack_run(begin, argc, argv);
}
