#include "rpc/rpc.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "text/jcheck.h"

/* ---- sending ---- */

static struct lull_json *start(struct lull_rpc_reply *r, const struct lull_rpc_out *out)
{
	r->out = out;
	r->text = NULL;
	lull_json_init(&r->json, lull_memstream(&r->text, &r->len));
	lull_json_object(&r->json);
	lull_json_key_text(&r->json, "jsonrpc", "2.0");
	return &r->json;
}

/* The id of an answer; null where the request had none that could be read. */
static void put_id(struct lull_json *j, const struct lull_rpc_id *id)
{
	lull_json_key(j, "id");
	if (id && id->json)
		lull_json_raw(j, id->json, strlen(id->json));
	else
		lull_json_null(j);
}

struct lull_json *lull_rpc_result(struct lull_rpc_reply *r, const struct lull_rpc_out *out,
				  const struct lull_rpc_id *id)
{
	struct lull_json *j = start(r, out);

	put_id(j, id);
	lull_json_key(j, "result");
	return j;
}

struct lull_json *lull_rpc_notify(struct lull_rpc_reply *r, const struct lull_rpc_out *out,
				  const char *method)
{
	struct lull_json *j = start(r, out);

	lull_json_key_text(j, "method", method);
	lull_json_key(j, "params");
	return j;
}

struct lull_json *lull_rpc_error(struct lull_rpc_reply *r, const struct lull_rpc_out *out,
				 const struct lull_rpc_id *id, int code, const char *sentence)
{
	struct lull_json *j = start(r, out);

	put_id(j, id);
	lull_json_key(j, "error");
	lull_json_object(j);
	lull_json_key_i64(j, "code", code);
	lull_json_key_text(j, "message", sentence);
	return j;
}

void lull_rpc_send(struct lull_rpc_reply *r)
{
	while (r->json.depth)
		lull_json_end(&r->json);
	fclose(r->json.to);
	if (r->out->has_headers)
		fprintf(r->out->to, "Content-Length: %zu\r\n\r\n", r->len);
	fwrite(r->text, 1, r->len, r->out->to);
	if (!r->out->has_headers)
		fputc('\n', r->out->to);
	fflush(r->out->to);
	free(r->text);
}

void lull_rpc_fail(const struct lull_rpc_out *out, const struct lull_rpc_id *id, int code,
		   const char *fmt, ...)
{
	struct lull_str text = LULL_STR_INIT;
	struct lull_rpc_reply r;
	va_list ap;

	va_start(ap, fmt);
	lull_str_vaddf(&text, fmt, ap);
	va_end(ap);
	lull_rpc_error(&r, out, id, code, lull_str_text(&text));
	lull_rpc_send(&r);
	lull_str_release(&text);
}

/* ---- receiving ---- */

struct lull_rpc_id lull_rpc_id_copy(const struct lull_rpc_id *id)
{
	return (struct lull_rpc_id){ id->json ? lull_strdup(id->json) : NULL };
}

/* The id as it stands in the text, with its quotes; false if it is neither string nor number. */
static bool take_id(struct lull_rpc_message *m, const struct lull_jvalue *object)
{
	struct lull_jvalue id = lull_jpick(object, "id");

	if (!id.first)
		return true;
	if (id.first == '"')
		m->id.json = lull_strndup(id.text.at - 1, id.text.len + 2);
	else if (id.first == '-' || (id.first >= '0' && id.first <= '9'))
		m->id.json = lull_strndup(id.text.at, id.text.len);
	return m->id.json != NULL;
}

static bool is_version_2(const struct lull_jvalue *object)
{
	struct lull_jvalue version = lull_jpick(object, "jsonrpc");

	return version.first == '"' && lull_jtext_is(&version.text, "2.0");
}

/* What is wrong with a message that is an object, or NULL; then *m is filled. */
static const char *take(struct lull_rpc_message *m, const struct lull_jvalue *object)
{
	struct lull_jvalue method = lull_jpick(object, "method");

	if (!take_id(m, object))
		return "the id has to be a string or a number";
	if (!is_version_2(object))
		return "jsonrpc has to be \"2.0\"";
	if (!method.first &&
	    (lull_jpick(object, "result").first || lull_jpick(object, "error").first))
		return NULL;
	if (!lull_jvalue_text(&method, &m->method) || !m->method.len)
		return "a message needs a method, a string";
	m->params = lull_jpick(object, "params");
	if (m->params.first && m->params.first != '{')
		return "params has to be an object";
	return NULL;
}

bool lull_rpc_parse(struct lull_rpc_message *m, const char *text, size_t len,
		    const struct lull_rpc_out *out)
{
	struct lull_jvalue object = lull_jpick_all(text, len);
	const char *wrong;
	size_t off;

	*m = (struct lull_rpc_message){ .method = LULL_STR_INIT };
	wrong = lull_jcheck(text, len, &off);
	if (wrong) {
		lull_rpc_fail(out, NULL, LULL_RPC_PARSE, "not JSON: %s, at byte %zu", wrong, off);
		return false;
	}
	wrong = object.first == '{'   ? take(m, &object)
		: object.first == '[' ? "batches are not supported: send one message at a time"
				      : "a message has to be an object";
	if (!wrong)
		return true;
	lull_rpc_fail(out, &m->id, LULL_RPC_INVALID_REQUEST, "%s", wrong);
	lull_rpc_message_release(m);
	return false;
}

void lull_rpc_message_release(struct lull_rpc_message *m)
{
	free(m->id.json);
	m->id.json = NULL;
	lull_str_release(&m->method);
}
