/*
 * mcp_call - processes that run for requests: starting, waiting, answering, cancelling.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "mcp/answer.h"
#include "mcp/mcp_int.h"

/* Before 2026-07-28; then LULL_RPC_INVALID_PARAMS. */
#define NO_RESOURCE (-32002)

/* Processes at the same time: more only take each other's memory and CPUs. */
#define MAX_RUNNING 16u

/* How long clients may keep a list: reports appear at any time. */
#define LIST_TTL_MS 1000

#define META_SERVER "io.modelcontextprotocol/serverInfo"

void lull_mcp_put_server(struct lull_json *j, const char *key)
{
	lull_json_key(j, key);
	lull_json_object(j);
	lull_json_key_text(j, "name", "lull");
	lull_json_key_text(j, "title", "lull, a GPU profiler");
	lull_json_key_text(j, "version", LULL_VERSION);
	lull_json_end(j);
}

struct lull_json *lull_mcp_result(struct lull_rpc_reply *r, const struct lull_rpc_out *out,
				  const struct lull_rpc_id *id, bool is_modern)
{
	struct lull_json *j = lull_rpc_result(r, out, id);

	lull_json_object(j);
	if (!is_modern)
		return j;
	lull_json_key_text(j, "resultType", "complete");
	lull_json_key(j, "_meta");
	lull_json_object(j);
	lull_mcp_put_server(j, META_SERVER);
	lull_json_end(j);
	return j;
}

void lull_mcp_put_ttl(struct lull_json *j, bool is_modern)
{
	if (!is_modern)
		return;
	lull_json_key_u64(j, "ttlMs", LIST_TTL_MS);
	lull_json_key_text(j, "cacheScope", "private");
}

void lull_mcp_wait(const struct lull_mcp_request *q, struct lull_mcp_call *call,
		   const struct lull_mcp_page *page)
{
	struct lull_jvalue token = lull_jpick_path(
		&q->m->params, (const char *const[]){ "_meta", "progressToken", NULL });
	bool is_text = token.first == '"';

	call->waiter = lull_rpc_id_copy(&q->m->id);
	call->is_modern = q->is_modern;
	call->page = *page;
	call->deadline_ns = lull_mcp_now_ns() + page->wait_s * 1000000000u;
	call->progress_ns = 0;
	free(call->token);
	call->token = NULL;
	if (is_text || token.first == '-' || (token.first >= '0' && token.first <= '9'))
		call->token = lull_strndup(token.text.at - is_text, token.text.len + 2u * is_text);
}

static size_t n_running(const struct lull_mcp_server *s)
{
	struct lull_mcp_call **calls = s->calls.at;
	size_t n = 0;

	for (size_t i = 0; i < s->calls.n; i++)
		n += !calls[i]->job.is_done;
	return n;
}

struct lull_mcp_call *lull_mcp_run(const struct lull_mcp_request *q, char **words,
				   const struct lull_mcp_page *page)
{
	struct lull_mcp_call *call;
	struct lull_err err;

	if (n_running(q->s) >= MAX_RUNNING) {
		lull_rpc_fail(&q->s->out, &q->m->id, LULL_RPC_INTERNAL,
			      "%u calls are running already: wait for one, or end it with the tool "
			      "job",
			      MAX_RUNNING);
		return NULL;
	}
	call = lull_alloc(1, sizeof(*call));
	call->job.pid_fd = call->job.out.fd = call->job.err.fd = -1;
	if (lull_mcp_job_start(&call->job, words, q->s->folder, &err)) {
		lull_rpc_fail(&q->s->out, &q->m->id, LULL_RPC_INTERNAL, "%s", err.msg);
		free(call);
		return NULL;
	}
	call->job.number = ++q->s->n_calls;
	*(struct lull_mcp_call **)lull_vec_push(&q->s->calls) = call;
	lull_mcp_wait(q, call, page);
	return call;
}

void lull_mcp_no_resource(const struct lull_mcp_server *s, const struct lull_rpc_id *id,
			  bool is_modern, const char *uri, const char *sentence)
{
	struct lull_rpc_reply r;
	struct lull_json *j = lull_rpc_error(
		&r, &s->out, id, is_modern ? LULL_RPC_INVALID_PARAMS : NO_RESOURCE, sentence);

	lull_json_key(j, "data");
	lull_json_object(j);
	lull_json_key_text(j, "uri", uri);
	lull_rpc_send(&r);
}

static void answer_resource(struct lull_mcp_server *s, struct lull_mcp_call *call)
{
	const struct lull_str *text = &call->job.out.text;
	struct lull_rpc_reply r;
	struct lull_json *j;

	if (!call->job.is_done || call->job.status) {
		lull_mcp_no_resource(s, &call->waiter, call->is_modern, call->uri,
				     call->job.is_done ? lull_str_text(&call->job.err.text)
						       : "reading it takes too long; call a tool");
		return;
	}
	j = lull_mcp_result(&r, &s->out, &call->waiter, call->is_modern);
	lull_json_key_array(j, "contents");
	lull_json_object(j);
	lull_json_key_text(j, "uri", call->uri);
	lull_json_key_text(j, "mimeType", call->resource->type);
	lull_json_key(j, "text");
	lull_json_bytes(j, lull_str_text(text), text->len);
	lull_json_end(j);
	lull_json_end(j);
	lull_mcp_put_ttl(j, call->is_modern);
	lull_rpc_send(&r);
}

void lull_mcp_answer(struct lull_mcp_server *s, struct lull_mcp_call *call)
{
	struct lull_rpc_reply r;
	struct lull_json *j;

	if (call->resource) {
		answer_resource(s, call);
	} else {
		j = lull_mcp_result(&r, &s->out, &call->waiter, call->is_modern);
		lull_mcp_put_answer(j, call->tool, &call->job, &call->page);
		lull_rpc_send(&r);
	}
	free(call->waiter.json);
	call->waiter.json = NULL;
}

/* The last line of what a process said so far. */
static void add_last_line(struct lull_str *to, const struct lull_str *text)
{
	size_t end = text->len, from;

	while (end && (text->at[end - 1] == '\n' || text->at[end - 1] == '\r'))
		end--;
	from = end;
	while (from && text->at[from - 1] != '\n' && text->at[from - 1] != '\r')
		from--;
	lull_str_add(to, text->at + from, end - from < 200 ? end - from : 200);
}

void lull_mcp_tell_progress(struct lull_mcp_server *s, struct lull_mcp_call *call)
{
	f64 seconds = (f64)lull_mcp_job_dur_ns(&call->job) / 1e9;
	struct lull_str message = LULL_STR_INIT;
	struct lull_rpc_reply r;
	struct lull_json *j = lull_rpc_notify(&r, &s->out, "notifications/progress");

	if (call->job.err.text.len)
		add_last_line(&message, &call->job.err.text);
	else
		lull_str_addf(&message, "running for %.0f s", seconds);
	lull_json_object(j);
	lull_json_key(j, "progressToken");
	lull_json_raw(j, call->token, strlen(call->token));
	lull_json_key_fixed(j, "progress", seconds, 3);
	lull_json_key_text(j, "message", lull_str_text(&message));
	lull_rpc_send(&r);
	lull_str_release(&message);
}

void lull_mcp_cancel(const struct lull_mcp_request *q)
{
	struct lull_jvalue id = lull_jpick(&q->m->params, "requestId");
	struct lull_mcp_call **calls = q->s->calls.at;
	bool is_text = id.first == '"';
	char *json =
		id.first ? lull_strndup(id.text.at - is_text, id.text.len + 2u * is_text) : NULL;

	for (size_t i = 0; json && i < q->s->calls.n; i++) {
		if (!calls[i]->waiter.json || strcmp(calls[i]->waiter.json, json) != 0)
			continue;
		lull_mcp_job_cancel(&calls[i]->job);
		free(calls[i]->waiter.json);
		calls[i]->waiter.json = NULL;
	}
	free(json);
}
