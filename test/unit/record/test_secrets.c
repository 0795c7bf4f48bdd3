#include "unit/unit.h"

#include "record/session/secrets.h"

static bool hides(const char *name, const char *value)
{
	return !strcmp(lull_secrets_filter_env(name, value), LULL_SECRETS_HIDDEN);
}

static void names_of_secrets_hide_their_value(void **state)
{
	static const char *const names[] = {
		"HF_TOKEN",	 "github_token", "WANDB_API_KEY", "MYSQL_PWD", "DB_PASSWORD",
		"CLIENT_SECRET", "GITLAB_PAT",	 "HTTP_AUTH",	  "MY_COOKIE", "AWS_REGION",
		"SESSION_ID",	 "CREDENTIALS",	 "KEY",		  "SSH_PASS",  "OPENAI_APIKEY",
		"API_TOKENS",	 "authToken",
	};

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(names); i++) {
		if (!hides(names[i], "x"))
			fail_msg("%s is not hidden", names[i]);
	}
}

static void ordinary_names_are_kept(void **state)
{
	static const char *const names[] = {
		"PWD",	   "OLDPWD",	  "PATH",    "KEYBOARD_LAYOUT", "MONKEY",
		"AUTHOR",  "COMPASS_DIR", "PATTERN", "CUDA_HOME",	"TOKENIZERS_PARALLELISM",
		"SESSION",
	};

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(names); i++) {
		if (hides(names[i], "x"))
			fail_msg("%s is hidden", names[i]);
	}
	assert_false(hides("MAX_TOKENS", "4096"));
}

static void values_that_look_like_keys_are_hidden_under_any_name(void **state)
{
	static const char *const values[] = {
		"AKIAIOSFODNN7EXAMPLE",
		"ghp_0123456789abcdefghijABCDEFGHIJ012345",
		"hf_abcdefghijklmnopqrstuvwxyz",
		"sk-proj-0123456789abcdefghij",
		"eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc_DEF-123",
		"postgres://me:hunter2@db.example:5432/x",
		"-----BEGIN PRIVATE KEY-----",
	};
	static const char *const kept[] = {
		"hf_hub",
		"sk-learn",
		"https://example.org/a:b@c",
		"eyJust.a.file.name",
		"AKIA",
		"git@example.org:x/y",
	};

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(values); i++) {
		if (!hides("X", values[i]))
			fail_msg("%s is not hidden", values[i]);
	}
	for (size_t i = 0; i < LULL_COUNT_OF(kept); i++) {
		if (hides("X", kept[i]))
			fail_msg("%s is hidden", kept[i]);
	}
}

static void command_lines_keep_everything_but_the_secret(void **state)
{
	char *argv[] = { "python",
			 "train.py",
			 "--token",
			 "abc",
			 "--password=x y",
			 "--auth",
			 "-v",
			 "API_KEY=1",
			 "--max-tokens",
			 "100",
			 "name=it's",
			 "",
			 "hf_abcdefghijklmnopqrstuvwxyz" };
	struct lull_str line = LULL_STR_INIT;

	(void)state;
	lull_secrets_filter_argv((int)LULL_COUNT_OF(argv), argv, &line);
	assert_string_equal(line.at,
			    "python train.py --token (hidden) --password=(hidden) --auth -v "
			    "API_KEY=(hidden) --max-tokens 100 'name=it'\\''s' '' (hidden)");
	lull_str_release(&line);
}

static void secrets_inside_a_word_are_found(void **state)
{
	static const char *const words[][2] = {
		{ "Authorization: Bearer abcDEF123456789012345", "'Authorization: (hidden)'" },
		{ "--header=Authorization:abc", "--header=Authorization:(hidden)" },
		{ "-HX-Api-Key: abc", "'-HX-Api-Key: (hidden)'" },
		{ "X-Forward: Bearer abcDEF123456789012345", "'X-Forward: (hidden)'" },
		{ "{\"lr\": 1, \"api_key\": \"abc\"}", "'{\"lr\": 1, \"api_key\": \"(hidden)'" },
		{ "cd /tmp; TOKEN=abc ./run", "'cd /tmp; TOKEN=(hidden)'" },
		{ "a=1,password=abc", "a=1,password=(hidden)" },
		{ "postgres://user:pass@host/db", "(hidden)" },
		{ "--db=postgres://user:pass@host/db", "--db=(hidden)" },
		{ "postgres://user:pass@host/db?token=x", "(hidden)" },
		{ "--id=AKIAIOSFODNN7EXAMPLE", "--id=(hidden)" },
		{ "--aws-secret-access-key=wJalrXUtnFEMI/K7MDENG",
		  "--aws-secret-access-key=(hidden)" },
	};
	static const char *const kept[] = { "Accept:json",	    "https://host:80/token/a",
					    "test_auth.py::a_test", "/opt/auth:/usr/bin",
					    "max_tokens:100",	    "--steps=a:1",
					    "localhost:8000" };
	struct lull_str line = LULL_STR_INIT;

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(words); i++) {
		char *argv[] = { (char *)words[i][0] };

		lull_str_clear(&line);
		lull_secrets_filter_argv(1, argv, &line);
		assert_string_equal(lull_str_text(&line), words[i][1]);
	}
	for (size_t i = 0; i < LULL_COUNT_OF(kept); i++) {
		char *argv[] = { (char *)kept[i] };

		lull_str_clear(&line);
		lull_secrets_filter_argv(1, argv, &line);
		assert_string_equal(lull_str_text(&line), kept[i]);
	}
	lull_str_release(&line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_of_secrets_hide_their_value),
		cmocka_unit_test(ordinary_names_are_kept),
		cmocka_unit_test(values_that_look_like_keys_are_hidden_under_any_name),
		cmocka_unit_test(command_lines_keep_everything_but_the_secret),
		cmocka_unit_test(secrets_inside_a_word_are_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
