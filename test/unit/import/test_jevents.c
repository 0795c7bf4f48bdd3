#include "unit/unit.h"

#include <unistd.h>

#include "import/jevents.h"

/* What a walk told. */
struct told {
	u64 n_events, n_pairs;
	char names[512]; /* of the events, one after the other */
	i64 last_ns;
	i64 correlation;
	size_t args_len;
};

static void on_event(void *ctx, const struct lull_jevent *e)
{
	struct told *told = ctx;

	told->n_events++;
	strncat(told->names, e->name.at ? e->name.at : "", e->name.len);
	told->last_ns = e->ts_ns;
	told->correlation = lull_jevent_int(e, LULL_ARG_correlation, -1);
	told->args_len = e->args.len;
}

static void on_pair(void *ctx, const struct lull_jtext *key, const struct lull_jtext *value,
		    char first)
{
	struct told *told = ctx;

	(void)key;
	(void)value;
	(void)first;
	told->n_pairs++;
}

/* Walk this text as a file; the code of the walk. */
static int walk(const char *text, size_t len, struct lull_jevents *all, struct told *told)
{
	static const struct lull_jevents_handler handler = { on_event, on_pair };
	char path[] = "/tmp/lull-jevents-XXXXXX";
	struct lull_stream *stream;
	struct lull_err err;
	int fd = mkstemp(path), rc;

	*told = (struct told){ 0 };
	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, len), (ssize_t)len);
	close(fd);
	assert_int_equal(lull_stream_open(&stream, path, &err), 0);
	assert_int_equal(lull_jevents_init(all, stream, &err), 0);
	rc = lull_jevents_walk(all, &handler, told, &err);
	if (!rc && lull_jevents_must_repeat(all)) {
		*told = (struct told){ 0 };
		assert_int_equal(lull_jevents_repeat(all, &err), 0);
		rc = lull_jevents_walk(all, &handler, told, &err);
	}
	lull_jevents_release(all);
	lull_stream_close(stream);
	unlink(path);
	return rc;
}

static const char whole[] =
	"{\"schemaVersion\": 1, \"traceEvents\": [\n"
	"{\"ph\": \"X\", \"name\": \"a\", \"ts\": 10, \"args\": {\"correlation\": 5, \"x\": "
	"[\"]\"]}},\n"
	"{\"ph\": \"X\", \"name\": \"b\", \"ts\": 11, \"args\": {\"correlation\": 6, \"x\": "
	"[\"]\"]}},\n"
	"{\"ph\": \"X\", \"name\": \"c\", \"ts\": 12, \"args\": {\"x\": {}, \"correlation\": 7}}\n"
	"], \"end\": [1, 2]}";

static void a_text_cut_at_every_byte_gives_the_events_before(void **state)
{
	struct lull_jevents all;
	struct told told;
	u64 n_before = 0;

	(void)state;
	for (size_t len = 1; len < sizeof(whole); len++) {
		int rc = walk(whole, len, &all, &told);

		assert_true(told.n_events >= n_before);
		n_before = told.n_events;
		if (len == sizeof(whole) - 1) {
			assert_int_equal(rc, 0);
			assert_false(all.is_cut || all.is_invalid);
		} else if (rc) {
			assert_int_equal(told.n_events, 0);
		} else {
			assert_true(all.is_cut || all.is_invalid);
			assert_true(all.stop_off <= len);
		}
	}
	assert_int_equal(n_before, 3);
	assert_string_equal(told.names, "abc");
	assert_int_equal(told.correlation, 7);
	assert_int_equal(told.n_pairs, 2);
}

static void events_of_any_shape_are_taken_apart_alike(void **state)
{
	static const char *const shapes[] = {
		"[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1.5,\"args\":{\"correlation\":9}}]",
		"[ { \"args\" : { \"correlation\" : 9 } , \"ts\" : 1.5 , \"name\" : \"a\" , \"ph\" "
		": \"X\" } ]",
		"[\n\t{\n\t\"ph\": \"X\",\r\n\"name\":\"a\", \"ts\": \"1.5\",\"args\": "
		"{\"correlation\": \"9\"}\n}\n",
		"\xef\xbb\xbf[{\"ph\":\"X\",\"name\":\"a\",\"ts\":15e-1,\"args\":{\"correlation\":"
		"9,}},]",
		"{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1.5,\"args\":{"
		"\"correlation\":9}}]}",
	};
	struct lull_jevents all;
	struct told told;

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(shapes); i++) {
		assert_int_equal(walk(shapes[i], strlen(shapes[i]), &all, &told), 0);
		assert_int_equal(told.n_events, 1);
		assert_string_equal(told.names, "a");
		assert_int_equal(told.last_ns, 1500);
		assert_int_equal(told.correlation, 9);
		assert_false(all.is_cut || all.is_invalid);
	}
}

static void arguments_that_are_no_object_are_none(void **state)
{
	/* The key is guessed from the event before; what follows it is not. */
	static const char text[] =
		"[{\"ph\":\"X\",\"name\":\"a\",\"ts\":1,\"args\":{\"correlation\":9}},"
		"{\"ph\":\"X\",\"name\":\"b\",\"ts\":2,\"args\":null},"
		"{\"ph\":\"X\",\"name\":\"c\",\"ts\":3,\"args\":[1]}]";
	struct lull_jevents all;
	struct told told;

	(void)state;
	assert_int_equal(walk(text, sizeof(text) - 1, &all, &told), 0);
	assert_string_equal(told.names, "abc");
	assert_int_equal(told.correlation, -1);
	assert_int_equal(told.args_len, 0);
	assert_int_equal(all.n_bad, 0);
}

static void an_event_larger_than_any_is_skipped(void **state)
{
	enum { LEN = 20 << 20 };
	char *text = calloc(LEN + 200, 1);
	struct lull_jevents all;
	struct told told;
	size_t n;

	(void)state;
	strcpy(text, "[{\"ph\":\"X\",\"name\":\"");
	n = strlen(text);
	memset(text + n, 'x', LEN);
	strcpy(text + n + LEN, "\",\"ts\":1},{\"ph\":\"X\",\"name\":\"b\",\"ts\":2}]");
	assert_int_equal(walk(text, strlen(text), &all, &told), 0);
	assert_string_equal(told.names, "b");
	assert_int_equal(all.n_bad, 1);
	assert_false(all.is_cut || all.is_invalid);
	free(text);
}

static void the_earliest_event_is_the_origin_wherever_it_stands(void **state)
{
	enum { N = 40000 };
	char *text = calloc(N + 2, 64);
	struct lull_jevents all;
	struct told told;
	size_t len = 0;

	(void)state;
	/* In the middle, where no guess from the ends of the file finds it. */
	text[len++] = '[';
	for (int i = 0; i < N; i++)
		len += (size_t)sprintf(text + len, "{\"ph\":\"X\",\"name\":\"\",\"ts\":%d},",
				       i == N / 2 ? 500 : 100000 + i);
	assert_int_equal(walk(text, len, &all, &told), 0);
	assert_int_equal(told.n_events, N);
	assert_int_equal(all.origin_ns, 500000);
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_text_cut_at_every_byte_gives_the_events_before),
		cmocka_unit_test(events_of_any_shape_are_taken_apart_alike),
		cmocka_unit_test(arguments_that_are_no_object_are_none),
		cmocka_unit_test(an_event_larger_than_any_is_skipped),
		cmocka_unit_test(the_earliest_event_is_the_origin_wherever_it_stands),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
