/*
 * remote - communicate with the recorder of a running session.
 *
 * A request is one line of text over a local socket in the session folder; the answer is "ok TEXT"
 * or "error TEXT". Only the same user has access to the folder.
 */
#ifndef LULL_RECORD_SESSION_REMOTE_H
#define LULL_RECORD_SESSION_REMOTE_H

#include "base/err.h"
#include "base/str.h"
#include "record/session/session.h"

/*
 * Send a request to the session with this name or path ("" = the only one there is) and wait for
 * the answer. `answer` receives the text. Fails with the recorder's own sentence if it refuses.
 */
int lull_remote_ask(const char *session, const char *request, struct lull_str *answer,
		    struct lull_err *err);

#endif
