#include "try/remedy.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "text/nearest.h"
#include "text/opt.h"
#include "try/need.h"

/* Where in a file we are, for sentences about it. */
struct place {
	const char *path;
	unsigned line;
};

static int bad(const struct place *at, struct lull_err *err, const char *what)
{
	return lull_fail(err, LULL_E_FORMAT, "%s, line %u: %s", at->path, at->line, what);
}

static void init(struct lull_remedy *r)
{
	lull_vec_init(&r->causes, sizeof(char *));
	lull_vec_init(&r->env, sizeof(char *));
	lull_vec_init(&r->needs, sizeof(const struct lull_need *));
	r->tolerance = LULL_REMEDY_TOLERANCE;
}

static void release(struct lull_remedy *r)
{
	free(r->name);
	free(r->title);
	free(r->write);
	free(r->group);
	free(r->path);
	free(r->mend);
	free(r->because);
	lull_opt_list_release(&r->causes);
	lull_opt_list_release(&r->env);
	lull_vec_release(&r->needs);
}

void lull_remedies_release(struct lull_vec *all)
{
	struct lull_remedy *at = all->at;

	for (size_t i = 0; i < all->n; i++)
		release(&at[i]);
	lull_vec_release(all);
}

static void set(char **to, const char *text)
{
	free(*to);
	*to = lull_strdup(text);
}

static void add_word(struct lull_vec *list, const char *text)
{
	*(char **)lull_vec_push(list) = lull_strdup(text);
}

/* "A=B", with a name that a shell could set. */
static bool is_variable(const char *word)
{
	size_t n = strcspn(word, "=");

	if (!n || word[n] != '=' || isdigit((unsigned char)*word))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)word[i]) && word[i] != '_')
			return false;
	return true;
}

/* ---- the lines of the head ---- */

static int read_causes(struct lull_remedy *r, const char *text, const struct place *at,
		       struct lull_err *err)
{
	(void)at;
	(void)err;
	for (const char *c = text; *c;) {
		size_t n = strcspn(c, ", ");

		if (n)
			*(char **)lull_vec_push(&r->causes) = lull_strndup(c, n);
		c += n + (c[n] != '\0');
	}
	return LULL_OK;
}

static int read_needs(struct lull_remedy *r, const char *text, const struct place *at,
		      struct lull_err *err)
{
	for (const char *c = text; *c;) {
		size_t n = strcspn(c, ", ");
		char *name = lull_strndup(c, n);
		const struct lull_need *need = lull_need_find(name);

		free(name);
		if (n && !need)
			return bad(at, err, "no such word for what a remedy needs");
		if (n)
			*(const struct lull_need **)lull_vec_push(&r->needs) = need;
		c += n + (c[n] != '\0');
	}
	return LULL_OK;
}

static int read_yes(bool *to, const char *text, const struct place *at, struct lull_err *err)
{
	return lull_opt_parse_bool(text, to, err) ? bad(at, err, "expected yes or no") : LULL_OK;
}

static int read_exact(struct lull_remedy *r, const char *text, const struct place *at,
		      struct lull_err *err)
{
	return read_yes(&r->is_exact, text, at, err);
}

static int read_by_name(struct lull_remedy *r, const char *text, const struct place *at,
			struct lull_err *err)
{
	return read_yes(&r->is_by_name, text, at, err);
}

static int read_asks(struct lull_remedy *r, const char *text, const struct place *at,
		     struct lull_err *err)
{
	return read_yes(&r->can_ask, text, at, err);
}

static int read_tolerance(struct lull_remedy *r, const char *text, const struct place *at,
			  struct lull_err *err)
{
	char *end;

	r->tolerance = strtod(text, &end);
	if (end == text || !(r->tolerance >= 0) || (*end && *end != ' '))
		return bad(at, err, "expected a share such as 1e-3");
	if (*end)
		set(&r->because, end + 1);
	return LULL_OK;
}

static int read_env(struct lull_remedy *r, const char *text, const struct place *at,
		    struct lull_err *err)
{
	if (!is_variable(text))
		return bad(at, err, "expected NAME=VALUE");
	add_word(&r->env, text);
	return LULL_OK;
}

static int read_group(struct lull_remedy *r, const char *text, const struct place *at,
		      struct lull_err *err)
{
	(void)at;
	(void)err;
	set(&r->group, text);
	return LULL_OK;
}

static int read_write(struct lull_remedy *r, const char *text, const struct place *at,
		      struct lull_err *err)
{
	(void)at;
	(void)err;
	set(&r->write, text);
	return LULL_OK;
}

static int read_number(f64 *to, const char *text, const struct place *at, struct lull_err *err)
{
	char *end;

	*to = strtod(text, &end);
	return end == text || *end || !(*to >= 0 && *to <= 1e6) ? bad(at, err, "expected a number")
								: LULL_OK;
}

static int read_warmup(struct lull_remedy *r, const char *text, const struct place *at,
		       struct lull_err *err)
{
	f64 n = 0;
	int rc = read_number(&n, text, at, err);

	if (!rc)
		r->n_warmup = (u64)n;
	return rc;
}

static int read_limit(struct lull_remedy *r, const char *text, const struct place *at,
		      struct lull_err *err)
{
	return read_number(&r->limit_s, text, at, err);
}

static int read_mend(struct lull_remedy *r, const char *text, const struct place *at,
		     struct lull_err *err)
{
	(void)at;
	(void)err;
	free(r->mend);
	r->mend = lull_strdup(text);
	return LULL_OK;
}

static const struct {
	const char *name;
	int (*read)(struct lull_remedy *r, const char *text, const struct place *at,
		    struct lull_err *err);
} keys[] = {
	{ "causes", read_causes }, { "exact", read_exact },   { "tolerance", read_tolerance },
	{ "env", read_env },	   { "group", read_group },   { "by-name", read_by_name },
	{ "mend", read_mend },	   { "warmup", read_warmup }, { "limit", read_limit },
	{ "write", read_write },   { "needs", read_needs },   { "asks", read_asks },
};

static bool is_name(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("-_.", text[i]))
			return false;
	return n > 0;
}

/* NAME: TITLE */
static int read_title(struct lull_remedy *r, const char *text, const struct place *at,
		      struct lull_err *err)
{
	size_t n = strcspn(text, ":");

	if (text[n] != ':' || !is_name(text, n))
		return bad(
			at, err,
			"a remedy starts with \"\"\"NAME: what it changes; `lull help try` has an "
			"example");
	r->name = lull_strndup(text, n);
	r->title = lull_strdup(text + n + 1 + strspn(text + n + 1, " "));
	return LULL_OK;
}

/* KEY: TEXT; a line without a key that we know is for people. */
static int read_key(struct lull_remedy *r, char *line, const struct place *at, struct lull_err *err)
{
	size_t n = strcspn(line, ":");

	if (line[n] != ':' || !is_name(line, n))
		return LULL_OK;
	for (size_t i = 0; i < LULL_COUNT_OF(keys); i++)
		if (strlen(keys[i].name) == n && strncmp(keys[i].name, line, n) == 0)
			return keys[i].read(r, line + n + 1 + strspn(line + n + 1, " "), at, err);
	return bad(at, err, "no such line in the head of a remedy");
}

/* The head: from the first """ to the next one. */
static int read_head(struct lull_remedy *r, FILE *f, struct place *at, struct lull_err *err)
{
	static const char quotes[] = "\"\"\"";
	bool is_inside = false, has_ended = false;
	char *line = NULL;
	size_t cap = 0;
	int rc = LULL_OK;

	while (!rc && !has_ended && getline(&line, &cap, f) > 0) {
		char *text = line, *end;

		at->line++;
		line[strcspn(line, "\r\n")] = '\0';
		if (!is_inside && (*line == '#' || !*line))
			continue;
		end = strstr(line + (is_inside ? 0 : strspn(line, quotes)), quotes);
		has_ended = end != NULL;
		if (end == line)
			break;
		if (end)
			*end = '\0';
		if (!is_inside && strncmp(line, quotes, 3) == 0)
			rc = read_title(r, text + 3, at, err);
		else
			rc = is_inside ? read_key(r, text, at, err) : read_title(r, "", at, err);
		is_inside = true;
	}
	free(line);
	return !rc && !r->name ? bad(at, err, "it is empty") : rc;
}

/* Whether the rest of the file has apply(). */
static bool has_apply(FILE *f)
{
	char *line = NULL;
	size_t cap = 0;
	bool has = false;

	while (!has && getline(&line, &cap, f) > 0)
		has = strncmp(line, "def apply(", 10) == 0;
	free(line);
	return has;
}

static int read_file(struct lull_remedy *r, FILE *f, const char *path, struct lull_err *err)
{
	struct place at = { path, 0 };
	bool is_python;

	if (read_head(r, f, &at, err))
		return err->code;
	is_python = has_apply(f);
	if (!r->write)
		r->write = lull_strdup("");
	if (!is_python && !r->env.n && !r->mend)
		return lull_fail(err, LULL_E_FORMAT,
				 "%s has neither apply(trial) nor a line env:", path);
	r->path = is_python ? realpath(path, NULL) : NULL;
	if (r->path && strchr(r->path, ':'))
		return lull_fail(err, LULL_E_USAGE, "%s: a path with a colon cannot be passed on",
				 r->path);
	return LULL_OK;
}

int lull_remedy_read(struct lull_vec *all, const char *path, struct lull_err *err)
{
	FILE *f = fopen(path, "re");
	const char *nearest = NULL;
	struct lull_remedy r = { 0 };
	int rc;

	if (!f)
		return lull_fail(err, errno == ENOENT ? LULL_E_NOT_FOUND : LULL_E_IO,
				 "reading the remedy %s: %s", path, strerror(errno));
	init(&r);
	rc = read_file(&r, f, path, err);
	fclose(f);
	if (!rc && lull_remedy_find(all, r.name, &nearest))
		rc = lull_fail(err, LULL_E_FORMAT, "%s: there is a remedy %s already", path,
			       r.name);
	if (rc)
		release(&r);
	else
		lull_vec_add(all, &r, 1);
	return rc;
}

static int by_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int lull_remedy_read_folder(struct lull_vec *all, const char *folder, struct lull_err *err)
{
	DIR *dir = opendir(folder);
	struct lull_vec names;
	struct dirent *e;
	char **at;
	int rc = LULL_OK;

	if (!dir)
		return lull_fail_errno(err, "opening the folder of remedies, %s", folder);
	lull_vec_init(&names, sizeof(char *));
	while ((e = readdir(dir))) {
		size_t n = strlen(e->d_name);

		if (n > 3 && strcmp(e->d_name + n - 3, ".py") == 0)
			add_word(&names, e->d_name);
	}
	closedir(dir);
	lull_sort(names.at, names.n, sizeof(char *), by_text);
	at = names.at;
	for (size_t i = 0; i < names.n && !rc; i++) {
		struct lull_str path = LULL_STR_INIT;

		lull_str_addf(&path, "%s/%s", folder, at[i]);
		rc = lull_remedy_read(all, path.at, err);
		if (!rc)
			((struct lull_remedy *)lull_vec_get(all, all->n - 1))->is_own = true;
		lull_str_release(&path);
	}
	lull_opt_list_release(&names);
	return rc;
}

int lull_remedy_of_variable(struct lull_vec *all, const char *word, struct lull_err *err)
{
	struct lull_remedy r = { 0 };
	struct lull_str write = LULL_STR_INIT;

	if (!is_variable(word))
		return lull_fail(err, LULL_E_USAGE, "'%s' is not NAME=VALUE", word);
	init(&r);
	lull_str_addf(&write, "%s in the environment", word);
	r.name = lull_strdup(word);
	r.title = lull_strdup("a variable of the environment");
	r.write = write.at;
	add_word(&r.env, word);
	lull_vec_add(all, &r, 1);
	return LULL_OK;
}

const struct lull_remedy *lull_remedy_find(const struct lull_vec *all, const char *name,
					   const char **nearest)
{
	const struct lull_remedy *at = all->at;
	struct lull_nearest near = { .word = name };

	for (size_t i = 0; i < all->n; i++) {
		if (strcmp(at[i].name, name) == 0)
			return &at[i];
		lull_nearest_add(&near, at[i].name);
	}
	*nearest = near.best;
	return NULL;
}

bool lull_remedy_is_for(const struct lull_remedy *r, const char *cause)
{
	char *const *at = r->causes.at;

	for (size_t i = 0; i < r->causes.n; i++)
		if (strcmp(at[i], cause) == 0)
			return true;
	return false;
}
