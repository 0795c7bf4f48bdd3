#include "import/jevents.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define TAIL_BYTES (64u << 10)

/* ---- where time begins ---- */

/* The smallest time that is not 0 after a `"ts":` in this text; `so_far` if there is none. */
static i64 smallest_ts(const char *at, size_t len, i64 so_far)
{
	static const char key[] = "\"ts\"";
	const char *end = at + len, *p = at;

	while ((p = memmem(p, (size_t)(end - p), key, sizeof(key) - 1))) {
		struct lull_jtext number = { .at = p += sizeof(key) - 1 };
		i64 ts_ns;

		while (p < end && (*p == ' ' || *p == ':' || *p == '"'))
			p++;
		number.at = p;
		while (p < end && ((*p >= '0' && *p <= '9') || *p == '.' || *p == '-'))
			p++;
		number.len = (size_t)(p - number.at);
		/* One that is cut off by the end of the text is not the number it seems. */
		if (p < end && lull_jtext_milli(&number, &ts_ns) && ts_ns && ts_ns < so_far)
			so_far = ts_ns;
	}
	return so_far;
}

/* PyTorch writes when it began at the end of the file, other programs write events in order. */
static void guess_origin(struct lull_jevents *all)
{
	char *tail = lull_alloc(TAIL_BYTES, 1);
	size_t len = lull_stream_tail(all->scan.stream, tail, TAIL_BYTES);

	all->origin_ns = smallest_ts(all->scan.p, (size_t)(all->scan.end - all->scan.p), INT64_MAX);
	all->origin_ns = smallest_ts(tail, len, all->origin_ns);
	if (all->origin_ns == INT64_MAX)
		all->origin_ns = 0;
	free(tail);
}

int lull_jevents_init(struct lull_jevents *all, struct lull_stream *stream, struct lull_err *err)
{
	int rc;

	*all = (struct lull_jevents){ .earliest_ns = INT64_MAX };
	lull_jevent_names_init(&all->names);
	rc = lull_jscan_init(&all->scan, stream, err);
	if (!rc)
		guess_origin(all);
	return rc;
}

void lull_jevents_release(struct lull_jevents *all)
{
	lull_jscan_release(&all->scan);
}

bool lull_jevents_must_repeat(const struct lull_jevents *all)
{
	return all->earliest_ns < all->origin_ns;
}

int lull_jevents_repeat(struct lull_jevents *all, struct lull_err *err)
{
	all->origin_ns = all->earliest_ns;
	all->n_events = all->n_bad = all->stop_off = 0;
	all->is_cut = all->is_invalid = all->has_array = false;
	if (lull_stream_rewind(all->scan.stream, err))
		return err->code;
	return lull_jscan_restart(&all->scan, err);
}

/* ---- walking ---- */

/* The walk in progress. */
struct walk {
	struct lull_jevents *all;
	const struct lull_jevents_handler *handler;
	void *ctx;
	struct lull_jevent event;
};

/* Nothing follows any more. Returns 1: the walk is over. */
static int give_up(struct walk *w)
{
	struct lull_jscan *j = &w->all->scan;

	if (j->is_end && lull_jscan_peek(j) == 0 && j->p == j->end)
		w->all->is_cut = true;
	else
		w->all->is_invalid = true;
	w->all->stop_off = lull_jscan_off(j);
	return 1;
}

/* The next character that is no blank, refilled as needed; 0 at the end of the text. */
static int next_char(struct lull_jscan *j, char *c, struct lull_err *err)
{
	while (!(*c = lull_jscan_peek(j)) && j->p == j->end) {
		int rc = lull_jscan_refill(j, j->p, err);

		if (rc)
			return rc == LULL_E_NOT_FOUND ? 0 : rc;
	}
	return 0;
}

static void tell(struct walk *w)
{
	struct lull_jevents *all = w->all;
	const struct lull_jevent *e = &w->event;

	all->n_events++;
	if (e->has_ts && e->ph != 'M') {
		if (e->ts_ns < all->earliest_ns)
			all->earliest_ns = e->ts_ns;
		if (all->earliest_ns < all->origin_ns)
			return;
	}
	w->handler->event(w->ctx, e);
}

/* What is at j->p is no event: skip it. 0, 1 if the walk is over, or a negative code. */
static int skip_bad(struct walk *w, const char *begin, struct lull_err *err)
{
	struct lull_jscan *j = &w->all->scan;
	int rc;

	j->p = begin;
	w->all->n_bad++;
	rc = lull_jscan_skip(j, err);
	if (rc == LULL_E_NOT_FOUND) {
		w->all->n_bad--;
		return give_up(w);
	}
	return rc;
}

/* Take the event at j->p. 0, 1 if the walk is over, or a negative code. */
static int take_event(struct walk *w, struct lull_err *err)
{
	struct lull_jscan *j = &w->all->scan;
	const char *begin = j->p;
	enum lull_jscan_result got;
	int rc;

	while ((got = lull_jevent_take(j, &w->all->names, &w->event)) == LULL_JSCAN_MORE) {
		rc = lull_jscan_refill(j, begin, err);
		begin = j->p;
		if (rc == LULL_E_NOT_FOUND && j->is_end) {
			w->all->is_cut = true;
			w->all->stop_off = lull_jscan_off(j);
			return 1;
		}
		if (rc == LULL_E_NOT_FOUND)
			return skip_bad(w, begin, err);
		if (rc)
			return rc;
	}
	if (got == LULL_JSCAN_BAD)
		return skip_bad(w, begin, err);
	tell(w);
	return 0;
}

/* The array at j->p. A bare one may end with the text. */
static int take_array(struct walk *w, bool is_bare, struct lull_err *err)
{
	struct lull_jscan *j = &w->all->scan;
	int rc = 0;
	char c;

	w->all->has_array = true;
	j->p++;
	while (!rc) {
		rc = next_char(j, &c, err);
		if (rc)
			return rc;
		if (c == '{') {
			rc = take_event(w, err);
		} else if (c == ',') {
			j->p++;
		} else if (c == ']') {
			j->p++;
			return 0;
		} else if (!c && j->p == j->end) {
			return is_bare ? 1 : give_up(w);
		} else {
			rc = skip_bad(w, j->p, err);
		}
	}
	return rc;
}

/*
 * The value of a pair next to the events, at j->p. It is not passed on if it is larger than the
 * window may be.
 */
static int take_value(struct walk *w, const struct lull_jtext *key, struct lull_err *err)
{
	struct lull_jscan *j = &w->all->scan;
	enum lull_jscan_result got;
	struct lull_jtext value;
	int rc;
	char first;

	while ((got = lull_jscan_value(j, &value, &first)) == LULL_JSCAN_MORE) {
		rc = lull_jscan_refill(j, j->p, err);
		if (rc == LULL_E_NOT_FOUND && !j->is_end)
			rc = lull_jscan_skip(j, err);
		else if (!rc)
			continue;
		return rc == LULL_E_NOT_FOUND ? give_up(w) : rc;
	}
	if (got == LULL_JSCAN_BAD)
		return give_up(w);
	w->handler->pair(w->ctx, key, &value, first);
	return 0;
}

static int take_pair(struct walk *w, struct lull_err *err)
{
	struct lull_jscan *j = &w->all->scan;
	const char *begin = j->p;
	enum lull_jscan_result got;
	struct lull_jtext key;
	int rc;
	char c;

	while ((got = lull_jscan_pair(j, &key)) == LULL_JSCAN_MORE) {
		rc = lull_jscan_refill(j, begin, err);
		if (rc)
			return rc == LULL_E_NOT_FOUND ? give_up(w) : rc;
		begin = j->p;
	}
	if (got == LULL_JSCAN_END)
		return 1;
	if (got == LULL_JSCAN_BAD)
		return give_up(w);
	if (!lull_jtext_is(&key, "traceEvents")) {
		/* The value may move the window that the key is in. */
		char *name = lull_strndup(key.at, key.len);

		key.at = name;
		rc = take_value(w, &key, err);
		free(name);
		return rc;
	}
	rc = next_char(j, &c, err);
	if (rc)
		return rc;
	return c == '[' ? take_array(w, false, err) : give_up(w);
}

static int take_object(struct walk *w, struct lull_err *err)
{
	int rc;

	w->all->scan.p++;
	while (!(rc = take_pair(w, err)))
		;
	return rc;
}

int lull_jevents_walk(struct lull_jevents *all, const struct lull_jevents_handler *handler,
		      void *ctx, struct lull_err *err)
{
	struct walk w = { .all = all, .handler = handler, .ctx = ctx };
	struct lull_jscan *j = &all->scan;
	int rc;
	char c;

	if (j->end - j->p >= 3 && !memcmp(j->p, "\xef\xbb\xbf", 3))
		j->p += 3;
	rc = next_char(j, &c, err);
	if (rc)
		return rc;
	if (c != '{' && c != '[')
		return lull_fail(err, LULL_E_FORMAT,
				 "not JSON: it starts with byte %#04x, not with { or [", (u8)c);
	rc = c == '[' ? take_array(&w, true, err) : take_object(&w, err);
	if (rc < 0)
		return rc;
	all->is_cut |= lull_stream_is_cut(j->stream);
	if (!all->n_events && all->is_invalid)
		return lull_fail(err, LULL_E_FORMAT,
				 "invalid JSON from byte %llu on, and no event before it",
				 (unsigned long long)all->stop_off);
	if (!all->n_events && all->is_cut)
		return lull_fail(err, LULL_E_FORMAT, "it ends at byte %llu, before the first event",
				 (unsigned long long)all->stop_off);
	if (!all->n_events && all->n_bad)
		return lull_fail(err, LULL_E_FORMAT, "none of its %llu events could be understood",
				 (unsigned long long)all->n_bad);
	if (!all->has_array)
		return lull_fail(err, LULL_E_FORMAT,
				 "JSON, but not a trace: it has no array \"traceEvents\"");
	return 0;
}
