/*
 * FORMAT[:ARGUMENT...] into options. Each format lists the arguments it takes; what they set is the
 * table below.
 */
#include "text/out_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "text/nearest.h"

/* What the list of arguments of a format calls a width, which is a number or ".". */
#define WIDTH_ARG "WIDTH"

/* An argument that switches something on, or (`is_text`) takes the text after its "=". */
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
	{ "css=", offsetof(struct lull_out_options, css), true },
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

static bool is_width(const char *text, size_t len)
{
	return (len == 1 && *text == '.') || (len && len <= 4 && strspn(text, "0123456789") >= len);
}

int lull_out_width_of(const struct lull_out_options *options, size_t column)
{
	const char *at = options->widths;

	while (at && *at) {
		size_t len = strcspn(at, ":");

		if (is_width(at, len) && !column--)
			return *at == '.' ? LULL_OUT_AUTO_WIDTH : atoi(at);
		at += len + (at[len] != 0);
	}
	return LULL_OUT_AUTO_WIDTH;
}

size_t lull_out_arg_len(const char *text)
{
	size_t len = strlen(text);

	for (size_t i = 0; i < LULL_COUNT_OF(args); i++) {
		const char *next = args[i].is_text ? strstr(text, args[i].word) : NULL;

		if (next && next > text && next[-1] == ':' && (size_t)(next - 1 - text) < len)
			len = (size_t)(next - 1 - text);
	}
	return len;
}

static int set_arg(struct lull_out_options *options, const char *text, size_t len,
		   struct lull_err *err)
{
	const char *known = lull_out_format_args(options->format);

	if (is_width(text, len) && holds(known, WIDTH_ARG)) {
		options->widths = options->widths ? options->widths : text;
		return LULL_OK;
	}
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
		/* Text goes up to the next text: titles and addresses hold colons. */
		for (size_t i = 0; i < LULL_COUNT_OF(args); i++) {
			if (args[i].is_text && matches(&args[i], text, strlen(text)))
				len = lull_out_arg_len(text);
		}
		if (set_arg(options, text, len, err))
			return err->code;
	}
	return LULL_OK;
}
