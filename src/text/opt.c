#include "text/opt.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "text/nearest.h"
#include "base/str.h"
#include "text/term.h"

struct parser {
	int argc;
	char **argv;
	const struct lull_opt *opts;
	int ix; /* the next word of argv */
	struct lull_err *err;
};

/* An option as the user wrote it, for messages: "--top" or "-n". */
struct spelling {
	char text[72];
};

static struct spelling spell(const struct lull_opt *opt, bool is_long)
{
	struct spelling s;

	if (is_long)
		snprintf(s.text, sizeof(s.text), "--%s", opt->name);
	else
		snprintf(s.text, sizeof(s.text), "-%c", opt->letter);
	return s;
}

static bool is_option(const struct lull_opt *opt)
{
	return opt->kind != LULL_OPT_USAGE && opt->kind != LULL_OPT_GROUP;
}

static bool takes_value(const struct lull_opt *opt)
{
	return opt->kind != LULL_OPT_FLAG && !(opt->kind == LULL_OPT_CALL && !opt->arg);
}

static int bad_value(struct lull_err *err, const char *text, const char *wanted)
{
	return lull_fail(err, LULL_E_USAGE, "\"%s\" is not %s", text, wanted);
}

int lull_opt_parse_bool(const char *text, bool *value, struct lull_err *err)
{
	static const char *const words[] = { "false", "true", "no", "yes", "off", "on", "0", "1" };

	for (size_t i = 0; i < LULL_COUNT_OF(words); i++) {
		if (strcmp(text, words[i]))
			continue;
		*value = i % 2;
		return LULL_OK;
	}
	return bad_value(err, text, "true or false");
}

static int set_u64(u64 *value, const char *text, struct lull_err *err)
{
	char *end;
	unsigned long long v;

	errno = 0;
	v = strtoull(text, &end, 0);
	if (end == text || *end || errno || strchr(text, '-'))
		return bad_value(err, text, "a whole number");
	*value = v;
	return LULL_OK;
}

static int set_i64(i64 *value, const char *text, struct lull_err *err)
{
	char *end;
	long long v;

	errno = 0;
	v = strtoll(text, &end, 0);
	if (end == text || *end || errno)
		return bad_value(err, text, "a whole number");
	*value = v;
	return LULL_OK;
}

static int set_f64(f64 *value, const char *text, struct lull_err *err)
{
	char *end;
	f64 v;

	errno = 0;
	v = strtod(text, &end);
	if (end == text || *end || errno || !isfinite(v))
		return bad_value(err, text, "a number");
	*value = v;
	return LULL_OK;
}

static void list_choices(struct lull_str *to, const struct lull_opt *opt, const char *before)
{
	for (int i = 0; opt->choices[i]; i++)
		lull_str_addf(to, "%s%s", i ? ", " : before, opt->choices[i]);
}

static int set_enum(const struct lull_opt *opt, const char *text, struct lull_err *err)
{
	struct lull_str wanted = LULL_STR_INIT;
	int rc;

	for (int i = 0; opt->choices[i]; i++) {
		if (!strcmp(opt->choices[i], text)) {
			*(int *)opt->value = i;
			return LULL_OK;
		}
	}
	list_choices(&wanted, opt, "one of ");
	rc = bad_value(err, text, lull_str_text(&wanted));
	lull_str_release(&wanted);
	return rc;
}

void lull_opt_list_add(struct lull_vec *list, const char *text)
{
	while (*text) {
		size_t len = strcspn(text, ",");

		if (len)
			*(char **)lull_vec_push(list) = lull_strndup(text, len);
		text += len + (text[len] == ',');
	}
}

void lull_opt_list_release(struct lull_vec *list)
{
	char **items = list->at;

	for (size_t i = 0; i < list->n; i++)
		free(items[i]);
	lull_vec_release(list);
}

/* `text` is NULL only for options that may go without a value; others get an empty word. */
static int set(const struct lull_opt *opt, const char *text, struct lull_err *err)
{
	const char *word = text ? text : "";

	switch (opt->kind) {
	case LULL_OPT_STR:
		*(const char **)opt->value = text;
		return LULL_OK;
	case LULL_OPT_WORD:
		*(const char **)opt->value = word;
		return LULL_OK;
	case LULL_OPT_U64:
		return set_u64(opt->value, word, err);
	case LULL_OPT_I64:
		return set_i64(opt->value, word, err);
	case LULL_OPT_F64:
		return set_f64(opt->value, word, err);
	case LULL_OPT_FLAG:
		*(bool *)opt->value = true;
		return LULL_OK;
	case LULL_OPT_BOOL:
		return lull_opt_parse_bool(text ? text : "true", opt->value, err);
	case LULL_OPT_ENUM:
		return set_enum(opt, word, err);
	case LULL_OPT_LIST:
		lull_opt_list_add(opt->value, word);
		return LULL_OK;
	case LULL_OPT_CALL:
		return opt->call(opt->value, text, err);
	default:
		return LULL_OK;
	}
}

/*
 * The value of an option that had none attached: the next word. A bool takes it only if it says
 * true or false, because there the value is optional and the next word may be the program to run.
 */
static int take_word(struct parser *p, const struct lull_opt *opt, const char **text, bool is_long)
{
	const char *next = p->ix < p->argc ? p->argv[p->ix] : NULL;

	*text = NULL;
	if (!takes_value(opt) || opt->kind == LULL_OPT_WORD)
		return LULL_OK;
	if (opt->kind == LULL_OPT_BOOL &&
	    (!next || (strcmp(next, "true") && strcmp(next, "false"))))
		return LULL_OK;
	if (!next)
		return lull_fail(p->err, LULL_E_USAGE, "option %s needs a value%s%s",
				 spell(opt, is_long).text, opt->arg ? ": " : "",
				 opt->arg ? opt->arg : "");
	*text = next;
	p->ix++;
	return LULL_OK;
}

static int set_or_explain(struct parser *p, const struct lull_opt *opt, const char *text,
			  bool is_long)
{
	if (!set(opt, text, p->err))
		return LULL_OK;
	return lull_err_wrap(p->err, "option %s", spell(opt, is_long).text);
}

static const struct lull_opt *find(const struct lull_opt *opts, char letter, const char *name,
				   size_t len)
{
	for (; opts->kind != LULL_OPT_END; opts++) {
		if (!is_option(opts))
			continue;
		if (letter && opts->letter == letter)
			return opts;
		if (name && opts->name && !strncmp(opts->name, name, len) && !opts->name[len])
			return opts;
	}
	return NULL;
}

static int unknown_long(struct parser *p, const char *name, size_t len)
{
	struct lull_nearest near = { 0 };
	char *word = lull_strndup(name, len);
	int rc;

	near.word = word;
	lull_nearest_add(&near, "help");
	for (const struct lull_opt *o = p->opts; o->kind != LULL_OPT_END; o++) {
		if (is_option(o) && o->name)
			lull_nearest_add(&near, o->name);
	}
	if (find(p->opts, 0, "format", strlen("format")))
		lull_nearest_add(&near, "json");
	rc = lull_fail(p->err, LULL_E_USAGE, "unknown option --%s; %s%s%s", word,
		       near.best ? "did you mean --" : "see ", near.best ? near.best : "--help",
		       near.best ? "?" : "");
	free(word);
	return rc;
}

/* "--json" is what many type first: it is short for --format json. */
static const struct lull_opt *find_short_for(const struct lull_opt *opts, const char *word,
					     const char **text)
{
	if (strcmp(word, "json") != 0)
		return NULL;
	*text = word;
	return find(opts, 0, "format", strlen("format"));
}

static int print_help(const struct lull_opt *opts)
{
	lull_opt_help(stdout, opts, lull_term_width(stdout));
	return LULL_OPT_HELPED;
}

static int parse_long(struct parser *p, const char *word)
{
	size_t len = strcspn(word, "=");
	const struct lull_opt *opt = find(p->opts, 0, word, len);
	const char *text = NULL;

	/* "--help=TAG" asks other tools for a part of it; all of it has that part. */
	if (!opt && len == strlen("help") && !strncmp(word, "help", len))
		return print_help(p->opts);
	if (!opt) {
		opt = find_short_for(p->opts, word, &text);
		return opt ? set_or_explain(p, opt, text, true) : unknown_long(p, word, len);
	}
	if (word[len] == '=') {
		text = word + len + 1;
		if (!takes_value(opt))
			return lull_fail(p->err, LULL_E_USAGE, "option --%s takes no value",
					 opt->name);
	} else if (take_word(p, opt, &text, true)) {
		return p->err->code;
	}
	return set_or_explain(p, opt, text, true);
}

/*
 * One word of letters: those that take no value may be joined ("-vv"); the first that does ends it.
 */
static int parse_letters(struct parser *p, const char *word)
{
	for (; *word; word++) {
		const struct lull_opt *opt = find(p->opts, *word, NULL, 0);
		const char *text = NULL;
		bool is_attached = opt && takes_value(opt) && word[1];

		if (!opt && *word == 'h')
			return print_help(p->opts);
		if (!opt)
			return lull_fail(p->err, LULL_E_USAGE, "unknown option -%c; see --help",
					 *word);
		if (is_attached)
			text = word + 1 + (word[1] == '=');
		else if (take_word(p, opt, &text, false))
			return p->err->code;
		if (set_or_explain(p, opt, text, false))
			return p->err->code;
		if (is_attached)
			break;
	}
	return LULL_OK;
}

/* Parse options from p->ix on until a word that is none, "--", or the end. */
static int parse_options(struct parser *p, bool *is_over)
{
	while (p->ix < p->argc) {
		const char *word = p->argv[p->ix];
		int rc;

		if (word[0] != '-' || !word[1])
			return LULL_OK;
		p->ix++;
		*is_over = !strcmp(word, "--");
		if (*is_over)
			return LULL_OK;
		rc = word[1] == '-' ? parse_long(p, word + 2) : parse_letters(p, word + 1);
		if (rc)
			return rc;
	}
	return LULL_OK;
}

/* The word at p->ix goes after all others, and is no longer looked at. */
static void move_to_end(struct parser *p, int argc)
{
	char *word = p->argv[p->ix];

	memmove(p->argv + p->ix, p->argv + p->ix + 1,
		(size_t)(argc - p->ix - 1) * sizeof(*p->argv));
	p->argv[argc - 1] = word;
	p->argc--;
}

/* Who wants to know options; nobody, as a rule. */
static struct {
	lull_opt_reader *reader;
	void *ctx;
} diverted;

void lull_opt_divert(lull_opt_reader *reader, void *ctx)
{
	diverted.reader = reader;
	diverted.ctx = ctx;
}

bool lull_opt_takes_value(const struct lull_opt *opt)
{
	return takes_value(opt);
}

bool lull_opt_takes_word(const struct lull_opt *opt)
{
	return takes_value(opt) && opt->kind != LULL_OPT_WORD && opt->kind != LULL_OPT_BOOL;
}

static bool divert(const struct lull_opt *opts)
{
	if (diverted.reader)
		diverted.reader(diverted.ctx, opts);
	return diverted.reader != NULL;
}

int lull_opt_parse(int argc, char **argv, const struct lull_opt *opts, struct lull_err *err)
{
	struct parser p = { argc, argv, opts, 1, err };
	bool is_over = false;

	if (divert(opts))
		return LULL_OPT_HELPED;
	while (p.ix < p.argc) {
		int rc = is_over ? LULL_OK : parse_options(&p, &is_over);

		if (rc)
			return rc;
		if (p.ix < p.argc)
			move_to_end(&p, argc);
	}
	return p.ix;
}

int lull_opt_parse_program(int argc, char **argv, const struct lull_opt *opts, struct lull_err *err)
{
	struct parser p = { argc, argv, opts, 1, err };
	bool is_over = false;
	int rc = divert(opts) ? LULL_OPT_HELPED : parse_options(&p, &is_over);

	return rc ? rc : p.ix;
}

/*
 * Columns before the help text: "  -o, --output=FILE  ". Longer options put their text on the next
 * line.
 */
#define HELP_INDENT 28

static void spell_for_help(struct lull_str *s, const struct lull_opt *opt)
{
	lull_str_clear(s);
	if (opt->letter)
		lull_str_addf(s, "  -%c%s", opt->letter, opt->name ? ", " : "");
	else
		lull_str_puts(s, "      ");
	if (opt->name)
		lull_str_addf(s, "--%s", opt->name);
	if (opt->kind == LULL_OPT_BOOL || opt->kind == LULL_OPT_WORD)
		lull_str_addf(s, "[=%s]", opt->arg);
	else if (opt->kind == LULL_OPT_ENUM)
		lull_str_puts(s, "=NAME");
	else if (takes_value(opt))
		lull_str_addf(s, "%s%s", opt->name ? "=" : " ", opt->arg);
}

static void help_text(struct lull_str *s, const struct lull_opt *opt)
{
	lull_str_clear(s);
	lull_str_puts(s, opt->help);
	if (opt->kind == LULL_OPT_ENUM)
		list_choices(s, opt, ": ");
}

static void help_line(FILE *to, const struct lull_opt *opt, int width)
{
	struct lull_str left = LULL_STR_INIT, right = LULL_STR_INIT;

	spell_for_help(&left, opt);
	help_text(&right, opt);
	fputs(lull_str_text(&left), to);
	if ((int)left.len + 2 > HELP_INDENT)
		fprintf(to, "\n%*s", HELP_INDENT, "");
	else
		fprintf(to, "%*s", HELP_INDENT - (int)left.len, "");
	lull_term_wrap(to, lull_str_text(&right), HELP_INDENT, width);
	lull_str_release(&left);
	lull_str_release(&right);
}

void lull_opt_help(FILE *to, const struct lull_opt *opts, int width)
{
	const struct lull_opt help = {
		.kind = LULL_OPT_FLAG,
		.letter = find(opts, 'h', NULL, 0) ? 0 : 'h',
		.name = "help",
		.help = "show this help and exit",
	};

	for (const struct lull_opt *o = opts; o->kind != LULL_OPT_END; o++) {
		if (o->kind == LULL_OPT_USAGE) {
			fprintf(to, "usage: %s\n\n", o->name);
			lull_term_wrap(to, o->help, 0, width);
			fputs(o[1].kind == LULL_OPT_GROUP ? "" : "\n", to);
		} else if (o->kind == LULL_OPT_GROUP) {
			fprintf(to, "%s%s\n", o == opts ? "" : "\n", o->name);
		} else if (o->help) {
			help_line(to, o, width);
		}
	}
	help_line(to, &help, width);
}
