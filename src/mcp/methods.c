/*
 * methods - what requests of the Model Context Protocol are answered with.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "mcp/answer.h"
#include "mcp/mcp_int.h"

/* Newest first. From 2026-07-28 on a request says its revision; before, initialize does. */
static const char *const versions[] = { "2026-07-28", "2025-11-25", "2025-06-18", "2025-03-26",
					"2024-11-05" };
#define MODERN	 0
#define NEWEST	 1 /* of those that initialize */
#define NEW_ERRS 1 /* up to here, wrong arguments are results that the model sees */

/* Codes of the protocol. */
#define UNSUPPORTED_VERSION (-32022)

#define META_VERSION "io.modelcontextprotocol/protocolVersion"

static const char instructions[] =
	"lull says why a GPU waits, and proves what a change brings. Start with profile (run the "
	"program and record it), attach (record one that runs) or, if there is a report (*.lull) "
	"already, with why: it names the cause, the lines of source, the fix and the step time to "
	"expect. Change one thing, profile again to another output, then diff the two reports and "
	"gate them. stats, query (SQL) and "
	"timeline show details; kernel measures inside a kernel; doctor says what this machine "
	"does "
	"not allow. Long calls become jobs.";

/* ---- results ---- */

static struct lull_json *answer(struct lull_rpc_reply *r, const struct lull_mcp_request *q)
{
	return lull_mcp_result(r, &q->s->out, &q->m->id, q->is_modern);
}

static void put_capabilities(struct lull_json *j)
{
	lull_json_key(j, "capabilities");
	lull_json_object(j);
	lull_json_key(j, "tools");
	lull_json_object(j);
	lull_json_end(j);
	lull_json_key(j, "resources");
	lull_json_object(j);
	lull_json_end(j);
	lull_json_end(j);
}

/* ---- start ---- */

static void on_initialize(const struct lull_mcp_request *q)
{
	struct lull_jvalue asked = lull_jpick(&q->m->params, "protocolVersion");
	struct lull_rpc_reply r;
	struct lull_json *j;
	size_t chosen = NEWEST;

	if (asked.first != '"') {
		lull_rpc_fail(&q->s->out, &q->m->id, LULL_RPC_INVALID_PARAMS,
			      "initialize needs protocolVersion, a string such as \"%s\"",
			      versions[NEWEST]);
		return;
	}
	for (size_t i = NEWEST; i < LULL_COUNT_OF(versions); i++)
		if (lull_jtext_is(&asked.text, versions[i]))
			chosen = i;
	q->s->has_old_errors = chosen > NEW_ERRS;
	j = answer(&r, q);
	lull_json_key_text(j, "protocolVersion", versions[chosen]);
	put_capabilities(j);
	lull_mcp_put_server(j, "serverInfo");
	lull_json_key_text(j, "instructions", instructions);
	lull_rpc_send(&r);
}

static void put_versions(struct lull_json *j, const char *key)
{
	lull_json_key_array(j, key);
	for (size_t i = 0; i < LULL_COUNT_OF(versions); i++)
		lull_json_text(j, versions[i]);
	lull_json_end(j);
}

static void on_discover(const struct lull_mcp_request *q)
{
	struct lull_rpc_reply r;
	struct lull_json *j = answer(&r, q);

	put_versions(j, "supportedVersions");
	put_capabilities(j);
	lull_json_key_text(j, "instructions", instructions);
	lull_mcp_put_ttl(j, q->is_modern);
	lull_rpc_send(&r);
}

static void on_ping(const struct lull_mcp_request *q)
{
	struct lull_rpc_reply r;

	answer(&r, q);
	lull_rpc_send(&r);
}

/* ---- tools ---- */

static bool is_offered(const struct lull_mcp_server *s, const struct lull_mcp_tool *tool)
{
	return !s->options->is_read_only || (!tool->runs_program && !tool->writes);
}

static void put_tool(struct lull_json *j, const struct lull_mcp_tool *tool)
{
	bool is_reading = !tool->runs_program && !tool->writes && !tool->is_job;

	lull_json_object(j);
	lull_json_key_text(j, "name", tool->name);
	lull_json_key_text(j, "title", tool->title);
	lull_json_key_text(j, "description", tool->help);
	lull_json_key(j, "inputSchema");
	lull_mcp_put_schema(tool, j);
	lull_json_key(j, "annotations");
	lull_json_object(j);
	lull_json_key(j, "readOnlyHint");
	lull_json_bool(j, is_reading);
	if (!is_reading) {
		/* A program that is run may do anything. */
		lull_json_key(j, "destructiveHint");
		lull_json_bool(j, tool->runs_program);
	}
	lull_json_key(j, "openWorldHint");
	lull_json_bool(j, tool->runs_program);
	lull_json_end(j);
	lull_json_end(j);
}

static void on_tools_list(const struct lull_mcp_request *q)
{
	struct lull_rpc_reply r;
	struct lull_json *j = answer(&r, q);

	lull_json_key_array(j, "tools");
	for (const struct lull_mcp_tool *const *t = lull_mcp_tools; *t; t++)
		if (is_offered(q->s, *t))
			put_tool(j, *t);
	lull_json_end(j);
	lull_mcp_put_ttl(j, q->is_modern);
	lull_rpc_send(&r);
}

/* What is wrong with the arguments: the model should see it and try again. */
static void refuse(const struct lull_mcp_request *q, const char *sentence)
{
	struct lull_rpc_reply r;

	if (q->s->has_old_errors && !q->is_modern) {
		lull_rpc_fail(&q->s->out, &q->m->id, LULL_RPC_INVALID_PARAMS, "%s", sentence);
		return;
	}
	lull_mcp_put_wrong(answer(&r, q), sentence);
	lull_rpc_send(&r);
}

static void release_words(struct lull_vec *words)
{
	char **all = words->at;

	for (size_t i = 0; i < words->n; i++)
		free(all[i]);
	lull_vec_release(words);
}

/* The tool job: wait for a call that was made before, or end it. */
static void call_job(const struct lull_mcp_request *q, const struct lull_jvalue *arguments,
		     const struct lull_mcp_page *page)
{
	struct lull_jvalue number = lull_jpick(arguments, "number");
	struct lull_mcp_call **calls = q->s->calls.at, *call = NULL;
	char sentence[160];
	i64 n = 0;

	lull_jtext_i64(&number.text, &n);
	for (size_t i = 0; i < q->s->calls.n; i++)
		if (calls[i]->tool && calls[i]->job.number == n)
			call = calls[i];
	if (!call)
		snprintf(sentence, sizeof(sentence), "there is no job %lld%s", (long long)n,
			 q->s->calls.n ? "" : "; no call became a job yet");
	else if (call->waiter.json)
		snprintf(sentence, sizeof(sentence), "another request waits for job %lld",
			 (long long)n);
	if (!call || call->waiter.json) {
		refuse(q, sentence);
		return;
	}
	if (lull_jpick(arguments, "cancel").first == 't')
		lull_mcp_job_cancel(&call->job);
	lull_mcp_wait(q, call, page);
}

static void call_tool(const struct lull_mcp_request *q, const struct lull_mcp_tool *tool)
{
	struct lull_jvalue arguments = lull_jpick(&q->m->params, "arguments");
	struct lull_mcp_page page;
	struct lull_mcp_call *call;
	struct lull_vec words;
	struct lull_err err;

	lull_vec_init(&words, sizeof(char *));
	if (arguments.first && arguments.first != '{')
		refuse(q, "arguments has to be an object");
	else if (lull_mcp_take_page(&arguments, &page, &err) ||
		 lull_mcp_words(tool, &arguments, q->s->folder, &words, &err))
		refuse(q, err.msg);
	else if (tool->is_job)
		call_job(q, &arguments, &page);
	else if ((call = lull_mcp_run(q, words.at, &page))) {
		call->tool = tool;
		call->job.keeps_end = tool->runs_program;
	}
	release_words(&words);
}

static void on_tools_call(const struct lull_mcp_request *q)
{
	struct lull_jvalue given = lull_jpick(&q->m->params, "name");
	struct lull_str name = LULL_STR_INIT;
	const struct lull_mcp_tool *tool;
	const char *nearest = NULL;

	if (!lull_jvalue_text(&given, &name)) {
		lull_rpc_fail(&q->s->out, &q->m->id, LULL_RPC_INVALID_PARAMS,
			      "tools/call needs name, the name of a tool");
		lull_str_release(&name);
		return;
	}
	tool = lull_mcp_tool_find(lull_str_text(&name), &nearest);
	if (tool && is_offered(q->s, tool))
		call_tool(q, tool);
	else if (tool)
		lull_rpc_fail(&q->s->out, &q->m->id, LULL_RPC_INVALID_PARAMS,
			      "the tool %s is off: the server was started with --read-only",
			      tool->name);
	else
		lull_rpc_fail(&q->s->out, &q->m->id, LULL_RPC_INVALID_PARAMS,
			      "unknown tool: %s%s%s", lull_str_text(&name),
			      nearest ? "; did you mean " : "", nearest ? nearest : "");
	lull_str_release(&name);
}

/* ---- resources ---- */

static void on_resources_list(const struct lull_mcp_request *q)
{
	struct lull_jvalue given = lull_jpick(&q->m->params, "cursor");
	struct lull_str cursor = LULL_STR_INIT;
	struct lull_rpc_reply r;
	struct lull_json *j;
	struct lull_err err;

	lull_jvalue_text(&given, &cursor);
	j = answer(&r, q);
	if (lull_mcp_put_resources(j, q->s->folder, given.first ? lull_str_text(&cursor) : NULL,
				   &err)) {
		while (r.json.depth)
			lull_json_end(&r.json);
		fclose(r.json.to);
		free(r.text);
		lull_rpc_fail(&q->s->out, &q->m->id, LULL_RPC_INVALID_PARAMS, "%s", err.msg);
	} else {
		lull_mcp_put_ttl(j, q->is_modern);
		lull_rpc_send(&r);
	}
	lull_str_release(&cursor);
}

static void on_templates_list(const struct lull_mcp_request *q)
{
	struct lull_rpc_reply r;
	struct lull_json *j = answer(&r, q);

	lull_mcp_put_templates(j);
	lull_mcp_put_ttl(j, q->is_modern);
	lull_rpc_send(&r);
}

static void on_resources_read(const struct lull_mcp_request *q)
{
	const struct lull_mcp_page page = { 1, 100000, 120, false };
	struct lull_jvalue given = lull_jpick(&q->m->params, "uri");
	struct lull_str uri = LULL_STR_INIT;
	const struct lull_mcp_resource *resource;
	struct lull_mcp_call *call;
	struct lull_vec words;
	struct lull_err err;

	lull_vec_init(&words, sizeof(char *));
	if (!lull_jvalue_text(&given, &uri))
		lull_rpc_fail(&q->s->out, &q->m->id, LULL_RPC_INVALID_PARAMS,
			      "resources/read needs uri, a string");
	else if (lull_mcp_resource_find(lull_str_text(&uri), q->s->folder, &resource, &words, &err))
		lull_mcp_no_resource(q->s, &q->m->id, q->is_modern, lull_str_text(&uri), err.msg);
	else if ((call = lull_mcp_run(q, words.at, &page))) {
		call->resource = resource;
		call->uri = lull_strdup(lull_str_text(&uri));
	}
	release_words(&words);
	lull_str_release(&uri);
}

/* ---- messages ---- */

static const struct {
	const char *name;
	void (*run)(const struct lull_mcp_request *q);
	bool is_notification;
} methods[] = {
	{ "initialize", on_initialize, false },
	{ "server/discover", on_discover, false },
	{ "ping", on_ping, false },
	{ "tools/list", on_tools_list, false },
	{ "tools/call", on_tools_call, false },
	{ "resources/list", on_resources_list, false },
	{ "resources/templates/list", on_templates_list, false },
	{ "resources/read", on_resources_read, false },
	{ "notifications/cancelled", lull_mcp_cancel, true },
};

/* The revision that a request says; false if it is none that is known, which was answered. */
static bool take_version(struct lull_mcp_request *q)
{
	struct lull_jvalue meta = lull_jpick(&q->m->params, "_meta");
	struct lull_jvalue version = lull_jpick(&meta, META_VERSION);
	struct lull_rpc_reply r;
	struct lull_json *j;

	q->is_modern = version.first == '"' && lull_jtext_is(&version.text, versions[MODERN]);
	if (!version.first || q->is_modern)
		return true;
	if (q->m->id.json) {
		j = lull_rpc_error(&r, &q->s->out, &q->m->id, UNSUPPORTED_VERSION,
				   "this revision of the protocol is not supported");
		lull_json_key(j, "data");
		lull_json_object(j);
		put_versions(j, "supported");
		lull_json_key(j, "requested");
		lull_json_bytes(j, version.text.at, version.text.len);
		lull_rpc_send(&r);
	}
	return false;
}

static void dispatch(struct lull_mcp_request *q)
{
	const char *name = lull_str_text(&q->m->method);
	bool is_request = q->m->id.json != NULL;

	if (!*name || !take_version(q))
		return; /* a reply: no request was sent */
	for (size_t i = 0; i < LULL_COUNT_OF(methods); i++)
		if (!strcmp(methods[i].name, name) && methods[i].is_notification == !is_request) {
			methods[i].run(q);
			return;
		}
	if (is_request)
		lull_rpc_fail(&q->s->out, &q->m->id, LULL_RPC_NO_METHOD, "there is no method %s",
			      name);
}

void lull_mcp_handle(struct lull_mcp_server *s, const char *text, size_t len)
{
	struct lull_rpc_message m;
	struct lull_mcp_request q = { .s = s, .m = &m };

	if (!lull_rpc_parse(&m, text, len, &s->out))
		return;
	dispatch(&q);
	lull_rpc_message_release(&m);
}
