/*
 * lull doctor - say what can be recorded on this machine, and how to get the rest.
 */
#include "cmd/cmd.h"

#include <stdio.h>
#include <string.h>

#include "text/opt.h"
#include "text/out.h"
#include "text/term.h"
#include "doctor/doctor.h"

/* Two blanks, the state, two blanks; then the title and two blanks. */
#define TITLE_COLUMN  11
#define REASON_COLUMN 32

/* Sentences wider than this are tiring to read, however wide the terminal is. */
#define MAX_TEXT_WIDTH 120

static enum lull_colour colour_of(enum lull_doctor_state state)
{
	static const enum lull_colour colours[] = { LULL_COLOUR_GREEN, LULL_COLOUR_YELLOW,
						    LULL_COLOUR_RED };

	return colours[state];
}

static void print_finding(const struct lull_doctor_check *check,
			  const struct lull_doctor_finding *f, int width)
{
	bool is_coloured = lull_term_has_colour(stdout);

	printf("  %s%-7s%s  %-*s", lull_term_colour(colour_of(f->state), is_coloured),
	       lull_doctor_state_name(f->state), lull_term_colour(LULL_COLOUR_NONE, is_coloured),
	       REASON_COLUMN - TITLE_COLUMN, check->title);
	lull_term_wrap(stdout, lull_str_text(&f->reason), REASON_COLUMN, width);
	/* Not wrapped: a command is there to be copied. */
	if (f->fix.len)
		printf("%*s$ %s%s%s\n", TITLE_COLUMN, "",
		       lull_term_colour(LULL_COLOUR_BOLD, is_coloured), f->fix.at,
		       lull_term_colour(LULL_COLOUR_NONE, is_coloured));
}

/* What the findings add up to. */
struct tally {
	int n[3]; /* by state */
	bool has_source;
};

static void count(struct tally *t, const struct lull_doctor_check *check,
		  const struct lull_doctor_finding *f)
{
	t->n[f->state]++;
	t->has_source |= check->is_source && f->state != LULL_DOCTOR_NO;
}

static void print_text(struct tally *t)
{
	int width = lull_term_width(stdout);
	const char *group = "";

	width = width > MAX_TEXT_WIDTH ? MAX_TEXT_WIDTH : width;
	for (size_t i = 0; lull_doctor_checks[i]; i++) {
		const struct lull_doctor_check *check = lull_doctor_checks[i];
		struct lull_doctor_finding f;

		if (strcmp(group, check->group))
			printf("%s%s\n", *group ? "\n" : "", check->group);
		group = check->group;
		lull_doctor_run(check, &f);
		print_finding(check, &f, width);
		count(t, check, &f);
		lull_doctor_release(&f);
	}
	printf("\n%d ok, %d limited, %d not possible\n", t->n[LULL_DOCTOR_OK],
	       t->n[LULL_DOCTOR_LIMITED], t->n[LULL_DOCTOR_NO]);
	if (!t->has_source)
		printf("Nothing can be recorded here.\n");
}

static int print_json(struct tally *t, struct lull_err *err)
{
	static const struct lull_out_column columns[] = {
		{ .name = "check" }, { .name = "state" }, { .name = "reason" }, { .name = "fix" }
	};
	struct lull_out_options options = LULL_OUT_OPTIONS_INIT;
	struct lull_out out;
	int rc;

	options.format = LULL_OUT_FORMAT_json;
	lull_out_init(&out, columns, LULL_COUNT_OF(columns));
	for (size_t i = 0; lull_doctor_checks[i]; i++) {
		struct lull_doctor_finding f;

		lull_doctor_run(lull_doctor_checks[i], &f);
		lull_out_row(&out);
		lull_out_text(&out, lull_doctor_checks[i]->name);
		lull_out_text(&out, lull_doctor_state_name(f.state));
		lull_out_text(&out, lull_str_text(&f.reason));
		lull_out_text(&out, f.fix.len ? f.fix.at : NULL);
		count(t, lull_doctor_checks[i], &f);
		lull_doctor_release(&f);
	}
	rc = lull_out_write(&out, &options, stdout, err);
	lull_out_release(&out);
	return rc;
}

int cmd_doctor(int argc, char **argv, struct lull_err *err)
{
	static const char *const formats[] = { "text", "json", NULL };
	int format = 0;
	const struct lull_opt opts[] = {
		OPT_USAGE("lull doctor [OPTIONS]",
			  "Say what can be recorded on this machine, and how to enable the rest."),
		OPT_ENUM('f', "format", &format, formats, "format of the answer (default: text)"),
		OPT_END(),
	};
	int first = lull_opt_parse(argc, argv, opts, err);
	struct tally t = { { 0 }, false };
	int rc = LULL_OK;

	if (first < 0)
		return first;
	if (first < argc)
		return lull_fail(err, LULL_E_USAGE, "unexpected argument \"%s\"", argv[first]);
	if (format)
		rc = print_json(&t, err);
	else
		print_text(&t);
	return rc ? rc : !t.has_source;
}
