#include "mcp/tool.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "text/nearest.h"

#define TOOL(name) extern const struct lull_mcp_tool lull_mcp_tool_##name;
#include "mcp/tools.def"
#undef TOOL

const struct lull_mcp_tool *const lull_mcp_tools[] = {
#define TOOL(name) &lull_mcp_tool_##name,
#include "mcp/tools.def"
#undef TOOL
	NULL,
};

/* A page that a model reads at once; 200 lines of 80 columns are some 4,000 tokens. */
#define DEFAULT_LINES 200
#define MAX_LINES     2000
/* Below the minute after which clients give up. */
#define DEFAULT_WAIT_S 45
#define MAX_WAIT_S     3600

/* Arguments that every tool has; the command does not see them. */
static const struct lull_mcp_arg page_args[] = {
	{ LULL_MCP_NUMBER, "from_line", NULL,
	  "first line of the answer to send (default: 1); a cut answer says how to go on", false,
	  NULL, NULL },
	{ LULL_MCP_NUMBER, "max_lines", NULL, "most lines to send (default: 200)", false, NULL,
	  NULL },
	{ LULL_MCP_NUMBER, "wait_s", NULL,
	  "seconds to wait for the answer (default: 45); then the call returns the number of a "
	  "job, "
	  "which goes on, and the tool job has its answer",
	  false, NULL, NULL },
	{ .kind = LULL_MCP_END },
};

const struct lull_mcp_tool *lull_mcp_tool_find(const char *name, const char **nearest)
{
	struct lull_nearest near = { .word = name };

	for (const struct lull_mcp_tool *const *t = lull_mcp_tools; *t; t++) {
		if (!strcmp((*t)->name, name))
			return *t;
		lull_nearest_add(&near, (*t)->name);
	}
	*nearest = near.best;
	return NULL;
}

/* ---- paths ---- */

static bool is_below(const char *path, const char *folder)
{
	size_t len = strlen(folder);

	return strcmp(folder, "/") == 0 ||
	       (strncmp(path, folder, len) == 0 && (path[len] == '/' || !path[len]));
}

int lull_mcp_path(const char *folder, const char *name, struct lull_str *path, struct lull_err *err)
{
	struct lull_str full = LULL_STR_INIT;
	char *slash, *parent = NULL;
	struct stat st;
	int rc = LULL_OK;

	lull_str_clear(path);
	if (!*name || strchr(name, '%') || name[strlen(name) - 1] == '/')
		return lull_fail(err, LULL_E_USAGE, "\"%s\" is no name of a file here", name);
	lull_str_addf(&full, "%s%s%s", *name == '/' ? "" : folder, *name == '/' ? "" : "/", name);
	slash = strrchr(full.at, '/');
	*slash = 0;
	parent = realpath(slash == full.at ? "/" : full.at, NULL);
	if (!parent)
		rc = lull_fail(err, LULL_E_USAGE, "there is no folder for %s: %s", name,
			       strerror(errno));
	else if (!is_below(parent, folder) || !strcmp(slash + 1, "..") || !strcmp(slash + 1, "."))
		rc = lull_fail(err, LULL_E_USAGE,
			       "%s is outside of %s, and nothing is written there", name, folder);
	if (!rc && parent) {
		lull_str_addf(path, "%s/%s", strcmp(parent, "/") ? parent : "", slash + 1);
		if (lstat(path->at, &st) == 0 && S_ISLNK(st.st_mode))
			rc = lull_fail(err, LULL_E_USAGE,
				       "%s is a symbolic link, and nothing is written through it",
				       name);
	}
	free(parent);
	lull_str_release(&full);
	return rc;
}

/* ---- arguments ---- */

static const struct lull_mcp_arg *find_arg(const struct lull_mcp_arg *args, const char *name,
					   struct lull_nearest *near)
{
	for (; args->kind != LULL_MCP_END; args++) {
		if (!strcmp(args->name, name))
			return args;
		lull_nearest_add(near, args->name);
	}
	return NULL;
}

static int check_names(const struct lull_mcp_tool *tool, const struct lull_jvalue *arguments,
		       struct lull_err *err)
{
	struct lull_str name = LULL_STR_INIT;
	struct lull_jitems items;
	struct lull_jvalue item;
	struct lull_jtext key;
	int rc = LULL_OK;

	lull_jitems_init(&items, arguments);
	while (!rc && lull_jitems_next(&items, &key, &item)) {
		struct lull_nearest near = { 0 };

		lull_str_clear(&name);
		lull_jtext_add(&name, &key);
		near.word = lull_str_text(&name);
		if (!find_arg(tool->args, near.word, &near) &&
		    !find_arg(page_args, near.word, &near))
			rc = lull_fail(err, LULL_E_USAGE, "%s has no argument %s%s%s", tool->name,
				       near.word, near.best ? ": did you mean " : "",
				       near.best ? near.best : "");
	}
	lull_jitems_release(&items);
	lull_str_release(&name);
	return rc;
}

static int take_number(const struct lull_mcp_arg *arg, const struct lull_jvalue *v, u64 *number,
		       struct lull_err *err)
{
	i64 n = -1;

	if (v->first < '0' || v->first > '9' || !lull_jtext_i64(&v->text, &n) || n < 0 ||
	    memchr(v->text.at, '.', v->text.len) || v->text.len > 15)
		return lull_fail(err, LULL_E_USAGE, "%s has to be an integer of 0 or more",
				 arg->name);
	*number = (u64)n;
	return LULL_OK;
}

/* OPTION=VALUE, or VALUE. */
static void add_word(struct lull_vec *words, const char *option, const char *value)
{
	struct lull_str word = LULL_STR_INIT;

	lull_str_addf(&word, "%s%s%s", option ? option : "", option && value ? "=" : "",
		      value ? value : "");
	*(char **)lull_vec_push(words) = word.at;
}

static int check_choice(const struct lull_mcp_arg *arg, const char *value, struct lull_err *err)
{
	struct lull_str all = LULL_STR_INIT;
	const char *const *c = arg->choices;

	for (; c && *c; c++) {
		if (!strcmp(*c, value))
			return LULL_OK;
		lull_str_addf(&all, "%s%s", all.len ? ", " : "", *c);
	}
	if (arg->choices)
		lull_fail(err, LULL_E_USAGE, "%s cannot be \"%s\"; it is one of %s", arg->name,
			  value, lull_str_text(&all));
	lull_str_release(&all);
	return arg->choices ? LULL_E_USAGE : LULL_OK;
}

static int take_text(const struct lull_mcp_arg *arg, const struct lull_jvalue *v,
		     const char *folder, struct lull_vec *words, struct lull_err *err)
{
	struct lull_str text = LULL_STR_INIT, path = LULL_STR_INIT;
	int rc = LULL_OK;

	if (!lull_jvalue_text(v, &text))
		rc = lull_fail(err, LULL_E_USAGE, "%s has to be a string", arg->name);
	else if (arg->kind == LULL_MCP_WRITE)
		rc = lull_mcp_path(folder, lull_str_text(&text), &path, err);
	else if (!text.len)
		rc = lull_fail(err, LULL_E_USAGE, "%s is empty", arg->name);
	else
		rc = check_choice(arg, text.at, err);
	if (!rc)
		add_word(words, arg->option, path.len ? path.at : text.at);
	lull_str_release(&text);
	lull_str_release(&path);
	return rc;
}

static int take_list(const struct lull_mcp_arg *arg, const struct lull_jvalue *v,
		     struct lull_vec *words, struct lull_err *err)
{
	size_t n = words->n;
	struct lull_jitems items;
	struct lull_jvalue item;
	int rc = LULL_OK;

	if (v->first != '[')
		return lull_fail(err, LULL_E_USAGE, "%s has to be an array of strings", arg->name);
	lull_jitems_init(&items, v);
	while (!rc && lull_jitems_next(&items, NULL, &item)) {
		struct lull_str text = LULL_STR_INIT;

		if (lull_jvalue_text(&item, &text))
			add_word(words, arg->option, lull_str_text(&text));
		else
			rc = lull_fail(err, LULL_E_USAGE, "%s has to be an array of strings",
				       arg->name);
		lull_str_release(&text);
	}
	lull_jitems_release(&items);
	if (!rc && arg->is_required && words->n == n)
		rc = lull_fail(err, LULL_E_USAGE, "%s is empty", arg->name);
	return rc;
}

static int take_arg(const struct lull_mcp_arg *arg, const struct lull_jvalue *v, const char *folder,
		    struct lull_vec *words, struct lull_err *err)
{
	char digits[32];
	u64 number = 0;

	switch (arg->kind) {
	case LULL_MCP_FLAG:
		if (v->first != 't' && v->first != 'f')
			return lull_fail(err, LULL_E_USAGE, "%s has to be true or false",
					 arg->name);
		if (v->first == 't')
			add_word(words, arg->option, NULL);
		return LULL_OK;
	case LULL_MCP_NUMBER:
		if (take_number(arg, v, &number, err))
			return err->code;
		snprintf(digits, sizeof(digits), "%llu", (unsigned long long)number);
		add_word(words, arg->option, digits);
		return LULL_OK;
	case LULL_MCP_LIST:
		return take_list(arg, v, words, err);
	case LULL_MCP_TEXT:
	case LULL_MCP_WRITE:
	case LULL_MCP_END:
		break;
	}
	return take_text(arg, v, folder, words, err);
}

/* Options, or the words after them. */
static int take_args(const struct lull_mcp_tool *tool, const struct lull_jvalue *arguments,
		     const char *folder, bool are_options, struct lull_vec *words,
		     struct lull_err *err)
{
	for (const struct lull_mcp_arg *arg = tool->args; arg->kind != LULL_MCP_END; arg++) {
		struct lull_jvalue v = lull_jpick(arguments, arg->name);

		if ((arg->option != NULL) != are_options)
			continue;
		if ((!v.first || v.first == 'n') && arg->is_required)
			return lull_fail(err, LULL_E_USAGE, "%s needs the argument %s: %s",
					 tool->name, arg->name, arg->help);
		if (v.first && v.first != 'n' && take_arg(arg, &v, folder, words, err))
			return err->code;
		if ((!v.first || v.first == 'n') && arg->fallback)
			add_word(words, arg->option, arg->fallback);
	}
	return LULL_OK;
}

int lull_mcp_words(const struct lull_mcp_tool *tool, const struct lull_jvalue *arguments,
		   const char *folder, struct lull_vec *words, struct lull_err *err)
{
	int rc = check_names(tool, arguments, err);

	add_word(words, NULL, "lull");
	for (const char *const *w = tool->command; *w; w++)
		add_word(words, NULL, *w);
	if (!rc)
		rc = take_args(tool, arguments, folder, true, words, err);
	add_word(words, NULL, "--");
	if (!rc)
		rc = take_args(tool, arguments, folder, false, words, err);
	lull_vec_push(words);
	return rc;
}

int lull_mcp_take_page(const struct lull_jvalue *arguments, struct lull_mcp_page *page,
		       struct lull_err *err)
{
	u64 *numbers[] = { &page->from_line, &page->max_lines, &page->wait_s };

	*page = (struct lull_mcp_page){ 1, DEFAULT_LINES, DEFAULT_WAIT_S, false };
	for (size_t i = 0; i < LULL_COUNT_OF(numbers); i++) {
		struct lull_jvalue v = lull_jpick(arguments, page_args[i].name);

		if (!v.first || v.first == 'n')
			continue;
		if (take_number(&page_args[i], &v, numbers[i], err))
			return err->code;
		page->has_wait |= numbers[i] == &page->wait_s;
	}
	page->from_line = page->from_line ? page->from_line : 1;
	if (!page->max_lines || page->max_lines > MAX_LINES)
		page->max_lines = MAX_LINES;
	if (page->wait_s > MAX_WAIT_S)
		page->wait_s = MAX_WAIT_S;
	return LULL_OK;
}

/* ---- the schema ---- */

static void put_property(struct lull_json *j, const struct lull_mcp_arg *arg)
{
	static const char *const types[] = {
		[LULL_MCP_TEXT] = "string",    [LULL_MCP_WRITE] = "string",
		[LULL_MCP_NUMBER] = "integer", [LULL_MCP_FLAG] = "boolean",
		[LULL_MCP_LIST] = "array",
	};

	lull_json_key(j, arg->name);
	lull_json_object(j);
	lull_json_key_text(j, "type", types[arg->kind]);
	lull_json_key_text(j, "description", arg->help);
	if (arg->kind == LULL_MCP_NUMBER)
		lull_json_key_u64(j, "minimum", 0);
	if (arg->kind == LULL_MCP_LIST) {
		lull_json_key(j, "items");
		lull_json_object(j);
		lull_json_key_text(j, "type", "string");
		lull_json_end(j);
	}
	if (arg->choices) {
		lull_json_key_array(j, "enum");
		for (const char *const *c = arg->choices; *c; c++)
			lull_json_text(j, *c);
		lull_json_end(j);
	}
	lull_json_end(j);
}

void lull_mcp_put_schema(const struct lull_mcp_tool *tool, struct lull_json *j)
{
	lull_json_object(j);
	lull_json_key_text(j, "type", "object");
	lull_json_key(j, "properties");
	lull_json_object(j);
	for (const struct lull_mcp_arg *arg = tool->args; arg->kind != LULL_MCP_END; arg++)
		put_property(j, arg);
	for (const struct lull_mcp_arg *arg = page_args; arg->kind != LULL_MCP_END; arg++)
		put_property(j, arg);
	lull_json_end(j);
	lull_json_key_array(j, "required");
	for (const struct lull_mcp_arg *arg = tool->args; arg->kind != LULL_MCP_END; arg++)
		if (arg->is_required)
			lull_json_text(j, arg->name);
	lull_json_end(j);
	lull_json_key(j, "additionalProperties");
	lull_json_bool(j, false);
	lull_json_end(j);
}
