/*
 * tool - what an agent can ask `lull mcp` for: a command of lull, and the arguments it may give.
 *
 * A tool is data. The server checks the arguments by the list, writes the schema from the same
 * list, and runs the command as a process of its own: a damaged report or a program that hangs
 * never takes the server with it, and a call can be cancelled.
 *
 * What it checks: types, required and unknown arguments. A value never becomes an option of the
 *                 command: it stands after "=" or after "--". Files are written below the folder of
 *                 the server alone.
 *
 * To add one:     src/mcp/tool_NAME.c with `const struct lull_mcp_tool lull_mcp_tool_NAME` at its
 *                 end, the line TOOL(NAME) in tools.def,
 *                 a call in test/npm/mcp_client.mjs, its row in doc/lull-mcp.1.md.
 */
#ifndef LULL_MCP_TOOL_H
#define LULL_MCP_TOOL_H

#include "base/err.h"
#include "base/types.h"
#include "base/vec.h"
#include "text/jpick.h"
#include "text/json.h"

enum lull_mcp_kind {
	LULL_MCP_END = 0,
	LULL_MCP_TEXT,	 /* a string: OPTION=VALUE, or a word of its own if there is no option */
	LULL_MCP_NUMBER, /* an integer of 0 or more, likewise */
	LULL_MCP_FLAG,	 /* true: the option alone */
	LULL_MCP_LIST,	 /* strings: the option with each of them; without an option words */
	LULL_MCP_WRITE,	 /* a file to write, below the folder of the server */
};

struct lull_mcp_arg {
	enum lull_mcp_kind kind;
	const char *name;
	const char *option; /* such as "--top"; NULL: a word after the options */
	const char *help;
	bool is_required;
	const char *const *choices; /* of TEXT, NULL at the end; or NULL */
	const char *fallback;	    /* the value of the option where none is given; or NULL */
};

#define LULL_MCP_MAX_WORDS 6

struct lull_mcp_tool {
	const char *name;
	const char *title;
	const char *help; /* for the model: what it answers, when to use it */
	const char *command[LULL_MCP_MAX_WORDS]; /* words after lull, NULL at the end */
	const struct lull_mcp_arg *args;	 /* ended by LULL_MCP_END */
	bool runs_program;			 /* it starts a program of the user */
	bool writes;				 /* it writes a file */
	const char *statuses[3]; /* exit statuses that are answers, in words, from 0 on */
	/* For a tool that is no command: answer from the server's own state; see methods.c. */
	bool is_job;
};

/* All of tools.def, NULL at the end. */
extern const struct lull_mcp_tool *const lull_mcp_tools[];

/* The tool of this name, or NULL; then *nearest is the closest name, or NULL. */
const struct lull_mcp_tool *lull_mcp_tool_find(const char *name, const char **nearest);

/* How much of an answer is sent, and how long a call waits for it: arguments of every tool. */
struct lull_mcp_page {
	u64 from_line, max_lines;
	u64 wait_s;
	bool has_wait; /* it was given */
};

/*
 * Check the arguments and make the words of the command: argv of lull, NULL at the end, each to be
 * freed, in `words` (char *). LULL_E_USAGE with a sentence for the model if something is wrong.
 */
int lull_mcp_words(const struct lull_mcp_tool *tool, const struct lull_jvalue *arguments,
		   const char *folder, struct lull_vec *words, struct lull_err *err);

/* The arguments that all tools have. LULL_E_USAGE if one of them is wrong. */
int lull_mcp_take_page(const struct lull_jvalue *arguments, struct lull_mcp_page *page,
		       struct lull_err *err);

/* The JSON Schema of the arguments, as one value. */
void lull_mcp_put_schema(const struct lull_mcp_tool *tool, struct lull_json *j);

/*
 * Set `path` to where a file may be written: below `folder`, which is a real path. LULL_E_USAGE if
 * the name leads elsewhere, through "..", a symbolic link, or a pattern such as %p.
 */
int lull_mcp_path(const char *folder, const char *name, struct lull_str *path,
		  struct lull_err *err);

#endif
