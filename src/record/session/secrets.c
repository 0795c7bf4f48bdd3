#include "record/session/secrets.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

/* Where a part of a name must stand to give it away. */
enum place {
	ANYWHERE,
	WORD_END, /* followed by a separator or nothing: HF_TOKEN, not TOKENIZERS_PARALLELISM */
	WORD,	  /* between separators: API_KEY, not MONKEY or KEYBOARD */
	BEGINNING,
};

static const struct {
	const char *text;
	enum place place;
} parts[] = {
	{ "SECRET", ANYWHERE },
	{ "PASSWORD", ANYWHERE },
	{ "PASSWD", ANYWHERE },
	{ "PASSPHRASE", ANYWHERE },
	{ "CREDENTIAL", ANYWHERE },
	{ "COOKIE", ANYWHERE },
	{ "APIKEY", ANYWHERE },
	{ "AUTHORIZATION", ANYWHERE },
	{ "PRIVATEKEY", ANYWHERE },
	{ "ACCESSKEY", ANYWHERE },
	{ "TOKEN", WORD_END },
	{ "TOKENS", WORD_END },
	{ "KEY", WORD },
	{ "KEYS", WORD },
	{ "AUTH", WORD },
	{ "PAT", WORD },
	{ "PWD", WORD },
	{ "PASS", WORD },
	{ "JWT", WORD },
	{ "BEARER", WORD },
	{ "AWS_", BEGINNING },
	{ "SESSION_", BEGINNING },
};

/* Names that look like secrets and are not: the current folder, and locks of the display server. */
static const char *const harmless[] = { "PWD", "OLDPWD", "SESSION_MANAGER", "XAUTHORITY" };

/* How well-known keys begin, and the least number of characters after that. */
static const struct {
	const char *text;
	size_t min_rest;
} key_formats[] = {
	{ "AKIA", 12 },	      { "ASIA", 12 },	{ "ghp_", 16 },	  { "gho_", 16 },
	{ "ghs_", 16 },	      { "ghu_", 16 },	{ "ghr_", 16 },	  { "github_pat_", 16 },
	{ "glpat-", 16 },     { "hf_", 16 },	{ "sk-", 16 },	  { "sk_live_", 12 },
	{ "pypi-", 16 },      { "xoxb-", 12 },	{ "xoxp-", 12 },  { "npm_", 16 },
	{ "AIza", 20 },	      { "nvapi-", 16 }, { "Bearer ", 8 }, { "Basic ", 8 },
	{ "-----BEGIN ", 3 },
};

static bool is_same(const char *a, const char *b, size_t len)
{
	return !strncasecmp(a, b, len);
}

static bool is_separator(char c)
{
	return !isalnum((unsigned char)c);
}

static bool has_part(const char *name, size_t len, const char *part, enum place place)
{
	size_t n = strlen(part);

	for (size_t i = 0; i + n <= len && (i == 0 || place != BEGINNING); i++) {
		bool is_end = i + n == len || is_separator(name[i + n]);

		if (!is_same(name + i, part, n))
			continue;
		if (place == ANYWHERE || place == BEGINNING || (place == WORD_END && is_end))
			return true;
		if (place == WORD && is_end && (i == 0 || is_separator(name[i - 1])))
			return true;
	}
	return false;
}

bool lull_secrets_is_name(const char *name, size_t len)
{
	for (size_t i = 0; i < LULL_COUNT_OF(harmless); i++) {
		if (strlen(harmless[i]) == len && is_same(name, harmless[i], len))
			return false;
	}
	for (size_t i = 0; i < LULL_COUNT_OF(parts); i++) {
		if (has_part(name, len, parts[i].text, parts[i].place))
			return true;
	}
	return false;
}

/* Three base64 parts joined by dots, the first of which is an encoded '{"'. */
static bool is_jwt(const char *value)
{
	int dots = 0;

	if (strncmp(value, "eyJ", 3))
		return false;
	for (; *value; value++) {
		if (*value == '.')
			dots++;
		else if (!isalnum((unsigned char)*value) && !strchr("-_=", *value))
			return false;
	}
	return dots == 2;
}

/* scheme://user:password@host, anywhere in the text. */
static bool has_url_password(const char *value)
{
	for (const char *at = value; (at = strstr(at, "://")); at += 3) {
		size_t len = strcspn(at + 3, "/?# ");
		const char *sign = memchr(at + 3, '@', len);

		if (sign && memchr(at + 3, ':', (size_t)(sign - at - 3)))
			return true;
	}
	return false;
}

bool lull_secrets_is_value(const char *value)
{
	for (size_t i = 0; i < LULL_COUNT_OF(key_formats); i++) {
		size_t n = strlen(key_formats[i].text);

		if (!strncmp(value, key_formats[i].text, n) &&
		    strcspn(value + n, " \t\n,:;/") >= key_formats[i].min_rest)
			return true;
	}
	return is_jwt(value) || has_url_password(value);
}

/* --max-tokens 4096 counts the words of a language model and is worth keeping. */
static bool is_token_count(const char *name, size_t len, const char *value)
{
	size_t digits = strspn(value, "0123456789");

	return has_part(name, len, "TOKENS", WORD_END) && digits &&
	       (!value[digits] || strchr(" ,;}", value[digits]));
}

static bool is_secret(const char *name, size_t len, const char *value)
{
	if (lull_secrets_is_value(value))
		return true;
	return lull_secrets_is_name(name, len) && !is_token_count(name, len, value);
}

const char *lull_secrets_filter_env(const char *name, const char *value)
{
	return is_secret(name, strlen(name), value) ? LULL_SECRETS_HIDDEN : value;
}

/* One word, in single quotes if a shell would take it apart. */
static void put_word(struct lull_str *to, const char *word)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
				    "-_=+./:,@%^()";

	if (*word && strspn(word, plain) == strlen(word)) {
		lull_str_puts(to, word);
		return;
	}
	lull_str_puts(to, "'");
	for (; *word; word++)
		lull_str_add(to, *word == '\'' ? "'\\''" : word, *word == '\'' ? 4 : 1);
	lull_str_puts(to, "'");
}

/* What names consist of: letters, digits and these. */
static bool is_of_name(char c)
{
	return !is_separator(c) || strchr("_-.", c);
}

/*
 * The name before the separator `at`: all before a first "=", as in "--token=X"; else the word
 * before it, as in "Authorization: X" and {"api_key": "X"}.
 */
static const char *name_before(const char *word, const char *at, size_t *len)
{
	const char *end = at, *begin;

	while (end > word && strchr(" \t\"'", end[-1]))
		end--;
	begin = end;
	while (begin > word && is_of_name(begin[-1]))
		begin--;
	if (*at == '=' && !memchr(word, ':', (size_t)(at - word)))
		begin = word;
	*len = (size_t)(end - begin);
	/* A path, as in a list of folders or a name of a test. */
	if (*at == ':' && begin > word && begin[-1] == '/')
		*len = 0;
	return begin;
}

/* Where the value of the separator `at` begins. */
static const char *value_after(const char *at)
{
	return at + 1 + strspn(at + 1, " \t\"'");
}

/*
 * Where in a word on its own a secret begins, NULL if there is none: "--token=X", "TOKEN=X" and
 * "Authorization: X" keep their name, of a value that gives itself away nothing is kept.
 */
static const char *secret_in(const char *word)
{
	bool has_url = has_url_password(word);
	size_t len;

	if (!has_url && lull_secrets_is_value(word))
		return word;
	for (const char *at = word; (at = strpbrk(at, "=:")); at++) {
		const char *name = name_before(word, at, &len);

		/* The :: of C++ and pytest, and the :// of an URL. */
		if (at[0] == ':' && strspn(at + 1, ":/")) {
			at += strspn(at + 1, ":/");
			continue;
		}
		if (has_url && strstr(word, "://") < at)
			break;
		if (*value_after(at) && is_secret(name, len, value_after(at)))
			return value_after(at);
	}
	return has_url ? word : NULL;
}

static void put_filtered(struct lull_str *to, const char *word)
{
	struct lull_str kept = LULL_STR_INIT;
	const char *secret = secret_in(word);

	if (secret)
		lull_str_add(&kept, word, (size_t)(secret - word));
	lull_str_puts(&kept, secret ? LULL_SECRETS_HIDDEN : word);
	put_word(to, lull_str_text(&kept));
	lull_str_release(&kept);
}

/* "--token X": the name is the whole word before. */
static bool is_value_of(const char *option, const char *word)
{
	return option[0] == '-' && word[0] != '-' && !strchr(option, '=') &&
	       is_secret(option, strlen(option), word);
}

void lull_secrets_filter_argv(int argc, char *const *argv, struct lull_str *to)
{
	for (int i = 0; i < argc; i++) {
		lull_str_puts(to, i ? " " : "");
		if (i > 1 && is_value_of(argv[i - 1], argv[i]))
			lull_str_puts(to, LULL_SECRETS_HIDDEN);
		else
			put_filtered(to, argv[i]);
	}
}
