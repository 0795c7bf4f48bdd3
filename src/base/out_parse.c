/*
 * FORMAT[:ARGUMENT...] into options. Each format lists the arguments it takes; what they set is the
 * table below.
 */
#include "base/out_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/nearest.h"

/* An argument that switches something on, or (`is_text`) takes the text behind its "=". */
struct arg {
	const char *word;
	size_t off; /* of the field in struct lull_out_options */
	bool is_text;
};

static const struct arg args[] = {
	{ "nohdr", offsetof(struct lull_out_options, has_no_header), false },
	{ "nolimit", offsetof(struct lull_out_options, is_never_cut), false },
	{ "nofmt", offsetof(struct lull_out_options, is_ungrouped), false },
	{ "esc", offsetof(struct lull_out_options, has_escapes), false },
	{ "title=", offsetof(struct lull_out_options, title), true },
};

/* Whether the blank-separated `list` holds the word. */
static bool holds(const char *list, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = list; (at = strstr(at, word)); at += len) {
		if ((at == list || at[-1] == ' ') && (!at[len] || at[len] == ' '))
			return true;
	}
	return false;
}

static bool matches(const struct arg *arg, const char *text, size_t len)
{
	size_t word = strlen(arg->word);

	return arg->is_text ? len >= word && !memcmp(text, arg->word, word)
			    : len == word && !memcmp(text, arg->word, len);
}

static int set_arg(struct lull_out_options *options, const char *text, size_t len,
		   struct lull_err *err)
{
	const char *known = lull_out_format_args(options->format);

	for (size_t i = 0; i < LULL_COUNT_OF(args); i++) {
		u8 *field = (u8 *)options + args[i].off;

		if (!matches(&args[i], text, len) || !holds(known, args[i].word))
			continue;
		if (args[i].is_text)
			*(const char **)(void *)field = text + strlen(args[i].word);
		else
			*(bool *)field = true;
		return LULL_OK;
	}
	return lull_fail(err, LULL_E_USAGE, "format %s takes no argument \"%.*s\"%s%s",
			 lull_out_format_names[options->format], (int)len, text,
			 *known ? ", only: " : "", known);
}

static int set_format(struct lull_out_options *options, const char *text, size_t len,
		      struct lull_err *err)
{
	char *word = lull_strndup(text, len);
	struct lull_nearest near = { .word = word };
	int rc = LULL_OK, format = 0;

	for (; lull_out_format_names[format]; format++) {
		if (!strcmp(lull_out_format_names[format], word))
			break;
		lull_nearest_add(&near, lull_out_format_names[format]);
	}
	if (lull_out_format_names[format])
		options->format = format;
	else
		rc = lull_fail(err, LULL_E_USAGE, "no format %s; %s%s%s", word,
			       near.best ? "did you mean " : "see --help-formats",
			       near.best ? near.best : "", near.best ? "?" : "");
	free(word);
	return rc;
}

int lull_out_options_parse(struct lull_out_options *options, const char *text, struct lull_err *err)
{
	size_t len = strcspn(text, ":");

	if (set_format(options, text, len, err))
		return err->code;
	for (text += len; *text; text += len) {
		text++;
		len = strcspn(text, ":");
		/* Text goes to the end of the word: titles hold colons. */
		for (size_t i = 0; i < LULL_COUNT_OF(args); i++) {
			if (args[i].is_text && matches(&args[i], text, strlen(text)))
				len = strlen(text);
		}
		if (set_arg(options, text, len, err))
			return err->code;
	}
	return LULL_OK;
}
