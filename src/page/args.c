/* The arguments of questions: the part of an address after "?". */
#include "page/page.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static int hex(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decode one name or value in place of `to`; the byte after it, NULL if an escape is bad. */
static const char *decode(const char *from, char **to)
{
	for (; *from && *from != '&' && *from != '='; from++) {
		if (*from == '%') {
			int high = hex(from[1]), low = high < 0 ? -1 : hex(from[2]);

			if (low < 0 || (high == 0 && low == 0))
				return NULL;
			*(*to)++ = (char)(high << 4 | low);
			from += 2;
		} else {
			*(*to)++ = *from == '+' ? ' ' : *from;
		}
	}
	*(*to)++ = '\0';
	return from;
}

int lull_args_parse(struct lull_args *args, const char *text, struct lull_err *err)
{
	char *to;
	u64 report = 0;

	*args = (struct lull_args){ .text = lull_alloc(strlen(text) + 34, 2) };
	to = args->text;
	while (*text) {
		if (args->n == LULL_COUNT_OF(args->names))
			return lull_fail(err, LULL_E_USAGE, "too many arguments");
		args->names[args->n] = to;
		text = decode(text, &to);
		if (!text)
			return lull_fail(err, LULL_E_USAGE, "bad escape in the arguments");
		args->values[args->n] = to;
		if (*text == '=') {
			text = decode(text + 1, &to);
			if (!text || *text == '=')
				return lull_fail(err, LULL_E_USAGE, "bad argument %s",
						 args->names[args->n]);
		} else {
			*to++ = '\0';
		}
		args->n++;
		text += *text == '&';
	}
	if (lull_args_u64(args, "f", LULL_PAGE_RANKS, 0, &report, err))
		return err->code;
	args->report_ix = report;
	return LULL_OK;
}

void lull_args_release(struct lull_args *args)
{
	free(args->text);
	args->text = NULL;
	args->n = 0;
}

const char *lull_args_get(const struct lull_args *args, const char *name)
{
	for (size_t i = 0; i < args->n; i++)
		if (!strcmp(args->names[i], name))
			return args->values[i];
	return NULL;
}

int lull_args_u64(const struct lull_args *args, const char *name, u64 max, u64 otherwise, u64 *v,
		  struct lull_err *err)
{
	const char *text = lull_args_get(args, name);
	char *end;

	*v = otherwise;
	if (!text)
		return LULL_OK;
	if (*text < '0' || *text > '9' || strlen(text) > 20)
		return lull_fail(err, LULL_E_USAGE, "%s is not a number", name);
	*v = strtoull(text, &end, 10);
	if (*end || *v > max)
		return lull_fail(err, LULL_E_USAGE, "%s is not a number up to %llu", name,
				 (unsigned long long)max);
	return LULL_OK;
}

int lull_args_span(const struct lull_args *args, u64 origin_ns, struct lull_span *span,
		   struct lull_err *err)
{
	if (lull_args_u64(args, "from", UINT64_MAX, 0, &span->from_ns, err) ||
	    lull_args_u64(args, "to", UINT64_MAX, UINT64_MAX, &span->to_ns, err))
		return err->code;
	if (span->to_ns < span->from_ns)
		return lull_fail(err, LULL_E_USAGE, "to is before from");
	span->from_ns = lull_span_end_ns(span->from_ns, origin_ns);
	span->to_ns = lull_span_end_ns(span->to_ns, origin_ns);
	return LULL_OK;
}
