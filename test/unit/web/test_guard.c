/* Who may ask the server, without a server. */
#include "unit/unit.h"

#include "page/page.h"
#include "web/guard.h"

static int check(const struct lull_guard *g, struct lull_guard_request q, const char *after)
{
	char path[128];
	const char *rest = "";
	int rc;

	snprintf(path, sizeof(path), "/%s/%s", g->token, after);
	q.path = q.path ? q.path : path;
	q.method = "GET";
	rc = lull_guard_check(g, &q, &rest);
	if (!rc)
		assert_string_equal(rest, after);
	return rc;
}

static void a_token_is_long_and_never_the_same(void **state)
{
	struct lull_guard a, b;
	struct lull_err err;

	(void)state;
	assert_int_equal(lull_guard_init(&a, &err), 0);
	assert_int_equal(lull_guard_init(&b, &err), 0);
	assert_int_equal(strlen(a.token), LULL_TOKEN_CHARS);
	assert_string_not_equal(a.token, b.token);
}

static void only_our_names_are_hosts(void **state)
{
	static const char *const good[] = { "127.0.0.1", "127.0.0.1:80", "localhost:9000", "[::1]",
					    "[::1]:8080" };
	static const char *const bad[] = {
		"evil.example", "localhost.evil",   "127.0.0.1.evil", "127.0.0.2",  "",
		"::1",		"evil.example:127", "[::1].evil",     "hub.example"
	};
	struct lull_guard g = { .host = NULL };
	struct lull_err err;

	(void)state;
	lull_guard_init(&g, &err);
	for (size_t i = 0; i < LULL_COUNT_OF(good); i++)
		assert_int_equal(check(&g, (struct lull_guard_request){ .host = good[i] }, "meta"),
				 0);
	for (size_t i = 0; i < LULL_COUNT_OF(bad); i++)
		assert_int_equal(check(&g, (struct lull_guard_request){ .host = bad[i] }, "meta"),
				 403);
	assert_int_equal(check(&g, (struct lull_guard_request){ .host = NULL }, "meta"), 403);
	g.host = "hub.example";
	assert_int_equal(check(&g, (struct lull_guard_request){ .host = "hub.example:1" }, "meta"),
			 0);
}

static void other_tokens_are_not_found(void **state)
{
	static const char *const bad[] = {
		"/", "", "meta", "/x/meta", "/aaaaaaaaaaaaaaaaaaaaaaaaaa/", "//meta"
	};
	struct lull_guard g = { .host = NULL };
	struct lull_err err;

	(void)state;
	lull_guard_init(&g, &err);
	for (size_t i = 0; i < LULL_COUNT_OF(bad); i++) {
		struct lull_guard_request q = { .host = "localhost", .path = bad[i] };

		assert_int_equal(check(&g, q, ""), 404);
	}
}

static void other_pages_are_refused(void **state)
{
	struct lull_guard g = { .host = NULL };
	struct lull_guard_request q = { .host = "localhost:1" };
	struct lull_err err;

	(void)state;
	lull_guard_init(&g, &err);
	q.origin = "http://localhost:1";
	assert_int_equal(check(&g, q, "meta"), 0);
	q.origin = "http://localhost:2";
	assert_int_equal(check(&g, q, "meta"), 403);
	q.origin = "null";
	assert_int_equal(check(&g, q, "meta"), 403);
	q.origin = NULL;
	q.fetch_site = "same-origin";
	assert_int_equal(check(&g, q, "meta"), 0);
	q.fetch_site = "same-site";
	assert_int_equal(check(&g, q, "meta"), 403);
	q.fetch_site = "none";
	assert_int_equal(check(&g, q, "meta"), 403);
	assert_int_equal(check(&g, q, ""), 0);
}

static void arguments_are_taken_apart(void **state)
{
	struct lull_args args;
	struct lull_err err;
	u64 v;

	(void)state;
	assert_int_equal(lull_args_parse(&args, "a=1&b=x%20y+z&c&d=", &err), 0);
	assert_string_equal(lull_args_get(&args, "b"), "x y z");
	assert_string_equal(lull_args_get(&args, "c"), "");
	assert_null(lull_args_get(&args, "e"));
	assert_int_equal(lull_args_u64(&args, "a", 10, 0, &v, &err), 0);
	assert_int_equal(v, 1);
	assert_int_equal(lull_args_u64(&args, "b", 10, 0, &v, &err), LULL_E_USAGE);
	assert_int_equal(lull_args_u64(&args, "e", 10, 7, &v, &err), 0);
	assert_int_equal(v, 7);
	lull_args_release(&args);
	assert_int_equal(lull_args_parse(&args, "a=%zz", &err), LULL_E_USAGE);
	lull_args_release(&args);
	assert_int_equal(lull_args_parse(&args, "a=%00", &err), LULL_E_USAGE);
	lull_args_release(&args);
	assert_int_equal(lull_args_parse(&args, "f=99999", &err), LULL_E_USAGE);
	lull_args_release(&args);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_token_is_long_and_never_the_same),
		cmocka_unit_test(only_our_names_are_hosts),
		cmocka_unit_test(other_tokens_are_not_found),
		cmocka_unit_test(other_pages_are_refused),
		cmocka_unit_test(arguments_are_taken_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
