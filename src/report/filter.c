#include "report/filter.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "base/duration.h"
#include "base/mem.h"
#include "base/sort.h"
#include "model/nest.h"
#include "base/vec.h"
#include "model/span.h"

static void cut(struct lull_report_options *options, u64 from_ns, u64 to_ns)
{
	if (from_ns > options->from_ns)
		options->from_ns = from_ns;
	if (to_ns < options->to_ns)
		options->to_ns = to_ns;
}

/* One side of START/END; an empty one leaves *ns as it is. */
static int parse_side(const char *text, size_t len, u64 *ns, struct lull_err *err)
{
	char *side;
	int rc;

	if (!len)
		return LULL_OK;
	side = lull_strndup(text, len);
	rc = lull_duration_parse(side, ns, err);
	free(side);
	return rc;
}

int lull_filter_time(struct lull_report_options *options, const char *text, struct lull_err *err)
{
	const char *slash = strchr(text, '/');
	u64 from_ns = 0, to_ns = UINT64_MAX;

	if (!slash)
		return lull_fail(err, LULL_E_USAGE, "\"%s\" is not START/END, such as 1s/2.5s",
				 text);
	if (parse_side(text, (size_t)(slash - text), &from_ns, err) ||
	    parse_side(slash + 1, strlen(slash + 1), &to_ns, err))
		return err->code;
	if (to_ns < from_ns)
		return lull_fail(err, LULL_E_USAGE, "\"%s\" ends before it starts", text);
	cut(options, from_ns, to_ns);
	return LULL_OK;
}

/* RANGE[@DOMAIN][/INDEX] taken apart; owns its texts. */
struct wanted {
	char *name;
	char *domain; /* "" for the default one, "*" for any */
	u64 index;
};

static bool is_digits(const char *text)
{
	if (!*text)
		return false;
	for (; *text; text++) {
		if (!isdigit((unsigned char)*text))
			return false;
	}
	return true;
}

/* The last "@" that has no backslash in front of it, or NULL. */
static char *find_at(char *text)
{
	char *at = NULL;

	for (; *text; text++) {
		if (*text == '\\' && text[1] == '@')
			text++;
		else if (*text == '@')
			at = text;
	}
	return at;
}

static void unescape(char *text)
{
	char *to = text;

	for (; *text; text++) {
		if (*text == '\\' && text[1] == '@')
			text++;
		*to++ = *text;
	}
	*to = 0;
}

/* Range names hold slashes too, so only digits after the last one are an index. */
static void take_apart(struct wanted *w, const char *text)
{
	char *name = lull_strdup(text), *slash = strrchr(name, '/'), *at;

	*w = (struct wanted){ .name = name };
	if (slash && is_digits(slash + 1)) {
		w->index = strtoull(slash + 1, NULL, 10);
		*slash = 0;
	}
	at = find_at(name);
	w->domain = lull_strdup(at ? at + 1 : "");
	if (at)
		*at = 0;
	unescape(name);
}

/* One byte for each label id: whether it is the wanted one. */
static u8 *match_labels(const struct wanted *w, struct lull_reader *r)
{
	size_t n;
	const struct lull_label_row *labels = lull_reader_dim(r, LULL_TABLE_label, &n);
	u8 *is_match = lull_alloc(n + 1, sizeof(*is_match));

	for (size_t i = 0; i < n; i++)
		is_match[i + 1] =
			!lull_nest_is_shadow(labels, (u32)i + 1) &&
			!strcmp(lull_reader_string(r, labels[i].name, NULL), w->name) &&
			(!strcmp(w->domain, "*") ||
			 !strcmp(lull_reader_string(r, labels[i].domain, NULL), w->domain));
	return is_match;
}

static void collect(struct lull_vec *spans, struct lull_reader *r, const u8 *is_match)
{
	struct lull_range_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, r, LULL_TABLE_range, 0, UINT64_MAX);
	lull_cursor_want(&c, "start_ns");
	lull_cursor_want(&c, "dur_ns");
	lull_cursor_want(&c, "label");
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			if (is_match[cols.label[i]])
				*(struct lull_span *)lull_vec_push(spans) =
					(struct lull_span){ cols.start_ns[i],
							    cols.start_ns[i] + cols.dur_ns[i] };
		}
	}
	lull_cursor_release(&c);
}

static int by_start(const void *a, const void *b)
{
	const struct lull_span *x = a, *y = b;

	if (x->from_ns != y->from_ns)
		return x->from_ns < y->from_ns ? -1 : 1;
	return (x->to_ns > y->to_ns) - (x->to_ns < y->to_ns);
}

static int not_found(const struct wanted *w, size_t n, struct lull_err *err)
{
	struct lull_str where = LULL_STR_INIT;
	int rc;

	if (!*w->domain)
		lull_str_puts(&where, "the default domain (@* means any)");
	else if (!strcmp(w->domain, "*"))
		lull_str_puts(&where, "any domain");
	else
		lull_str_addf(&where, "domain \"%s\"", w->domain);
	rc = lull_fail(err, LULL_E_NOT_FOUND,
		       "no range \"%s\" with index %llu: there are %zu in %s", w->name,
		       (unsigned long long)w->index, n, lull_str_text(&where));
	lull_str_release(&where);
	return rc;
}

int lull_filter_nvtx(struct lull_report_options *options, struct lull_reader *r, const char *text,
		     struct lull_err *err)
{
	struct lull_vec spans;
	struct wanted w;
	u8 *is_match;
	int rc = LULL_OK;

	take_apart(&w, text);
	is_match = match_labels(&w, r);
	lull_vec_init(&spans, sizeof(struct lull_span));
	collect(&spans, r, is_match);
	if (spans.n)
		lull_sort(spans.at, spans.n, sizeof(struct lull_span), by_start);
	if (w.index < spans.n) {
		const struct lull_span *span = lull_vec_get(&spans, w.index);

		cut(options, span->from_ns, span->to_ns);
	} else {
		rc = not_found(&w, spans.n, err);
	}
	lull_vec_release(&spans);
	free(is_match);
	free(w.name);
	free(w.domain);
	return rc;
}

int lull_filter_steps(struct lull_report_options *options, struct lull_reader *r,
		      const struct lull_step_option *option, bool is_quiet, struct lull_err *err)
{
	struct lull_step_window window;

	if (!lull_step_option_given(option))
		return LULL_OK;
	if (lull_step_window_find(&window, option, r, err))
		return err->code;
	if (!is_quiet)
		lull_step_window_say(&window, NULL);
	cut(options, window.span.from_ns, window.span.to_ns);
	return LULL_OK;
}
