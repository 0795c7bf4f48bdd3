/*
 * rpc - messages of JSON-RPC 2.0, as the protocols of agents and of editors use them.
 *
 *	struct lull_rpc_message m;
 *	if (lull_rpc_parse(&m, text, len, out))		(an error was sent)
 *		return;
 *	struct lull_rpc_reply r;
 *	struct lull_json *j = lull_rpc_result(&r, out, &m.id);
 *	lull_json_text(j, "the result, any value");
 *	lull_rpc_send(&r);
 *	lull_rpc_message_release(&m);
 *
 * What it checks: that the text is JSON and a message; else the error of the standard is sent, with
 *                 a sentence that says what is wrong.
 * Ownership:      a message borrows from the text it was parsed from.
 * Threads:        one.
 */
#ifndef LULL_RPC_RPC_H
#define LULL_RPC_RPC_H

#include <stdio.h>

#include "base/str.h"
#include "base/types.h"
#include "text/jpick.h"
#include "text/json.h"

/* Of JSON-RPC 2.0. */
enum lull_rpc_code {
	LULL_RPC_PARSE = -32700,
	LULL_RPC_INVALID_REQUEST = -32600,
	LULL_RPC_NO_METHOD = -32601,
	LULL_RPC_INVALID_PARAMS = -32602,
	LULL_RPC_INTERNAL = -32603,
};

/* Where messages go. */
struct lull_rpc_out {
	FILE *to;
	bool has_headers; /* "Content-Length: N" before each message, else a line each */
};

/* The id of a request as it came; NULL for none. */
struct lull_rpc_id {
	char *json;
};

struct lull_rpc_message {
	struct lull_rpc_id id;	   /* of a request; none of a notification */
	struct lull_str method;	   /* "" for a reply to a request of ours */
	struct lull_jvalue params; /* an object, or .first is 0 */
};

/* A message that is being written. */
struct lull_rpc_reply {
	const struct lull_rpc_out *out;
	struct lull_json json;
	char *text;
	size_t len;
};

/* Read a message. False if it is none: then an error was sent, and nothing is to be released. */
bool lull_rpc_parse(struct lull_rpc_message *m, const char *text, size_t len,
		    const struct lull_rpc_out *out);

/* Free it. */
void lull_rpc_message_release(struct lull_rpc_message *m);

/* A copy of an id, to answer later; release it with free(id.json). */
struct lull_rpc_id lull_rpc_id_copy(const struct lull_rpc_id *id);

/* Start the answer to a request: the caller writes one value, then calls lull_rpc_send(). */
struct lull_json *lull_rpc_result(struct lull_rpc_reply *r, const struct lull_rpc_out *out,
				  const struct lull_rpc_id *id);

/* Start a notification: the caller writes its params. */
struct lull_json *lull_rpc_notify(struct lull_rpc_reply *r, const struct lull_rpc_out *out,
				  const char *method);

/*
 * Start an error with this sentence: the caller may write a value for its `data`, and has to call
 * lull_rpc_send().
 */
struct lull_json *lull_rpc_error(struct lull_rpc_reply *r, const struct lull_rpc_out *out,
				 const struct lull_rpc_id *id, int code, const char *sentence);

/* Close what is open and send the message. */
void lull_rpc_send(struct lull_rpc_reply *r);

/* An error without data, in one call. */
void lull_rpc_fail(const struct lull_rpc_out *out, const struct lull_rpc_id *id, int code,
		   const char *fmt, ...) __attribute__((format(printf, 4, 5)));

#endif
