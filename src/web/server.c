#include "web/server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "page/assets.h"
#include "web/guard.h"

#define MAX_CONNECTIONS 64u
#define HEADER_BYTES	(16u << 10)
#define BODY_BYTES	(64u << 10)
#define MAX_SILENT_NS	(30 * LULL_NS_PER_S)

/* A connection: when it last got an answer, so that one that drips bytes does not stay for ever. */
struct connection {
	int fd;
	bool is_used, is_busy; /* busy: an answer is being made */
	u64 since_ns;
};

struct lull_server {
	struct MHD_Daemon *daemon;
	struct lull_page *page;
	struct lull_guard guard;
	char *url, *socket_path;
	u16 port;
	pthread_mutex_t lock; /* of what follows */
	struct connection connections[MAX_CONNECTIONS];
	u64 last_request_ns;
};

/* The body of a request while it arrives. */
struct upload {
	char *bytes;
	size_t len;
	bool is_too_large;
};

/* ---- answers ---- */

static const char *const headers[][2] = {
	{ "Content-Security-Policy",
	  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
	  "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; "
	  "frame-ancestors 'none'; require-trusted-types-for 'script'" },
	{ "X-Content-Type-Options", "nosniff" },
	{ "Referrer-Policy", "no-referrer" },
	{ "Cross-Origin-Resource-Policy", "same-origin" },
	{ "Cross-Origin-Opener-Policy", "same-origin" },
	{ "Cache-Control", "no-store" },
};

static enum MHD_Result send_bytes(struct MHD_Connection *c, unsigned status, const char *type,
				  struct MHD_Response *response)
{
	enum MHD_Result rc;

	if (!response)
		return MHD_NO;
	for (size_t i = 0; i < LULL_COUNT_OF(headers); i++)
		MHD_add_response_header(response, headers[i][0], headers[i][1]);
	MHD_add_response_header(response, "Content-Type", type);
	rc = MHD_queue_response(c, status, response);
	MHD_destroy_response(response);
	return rc;
}

static enum MHD_Result send_text(struct MHD_Connection *c, unsigned status, const char *text)
{
	return send_bytes(
		c, status, "text/plain; charset=utf-8",
		MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_MUST_COPY));
}

static enum MHD_Result refuse(struct MHD_Connection *c, int status)
{
	switch (status) {
	case MHD_HTTP_FORBIDDEN:
		return send_text(c, MHD_HTTP_FORBIDDEN, "refused\n");
	case MHD_HTTP_METHOD_NOT_ALLOWED:
		return send_text(c, MHD_HTTP_METHOD_NOT_ALLOWED, "no such method\n");
	case MHD_HTTP_CONTENT_TOO_LARGE:
		return send_text(c, MHD_HTTP_CONTENT_TOO_LARGE, "too large\n");
	default:
		return send_text(c, MHD_HTTP_NOT_FOUND, "not found\n");
	}
}

static unsigned status_of(const struct lull_err *err)
{
	switch (err->code) {
	case LULL_E_USAGE:
		return MHD_HTTP_BAD_REQUEST;
	case LULL_E_NOT_FOUND:
		return MHD_HTTP_NOT_FOUND;
	case LULL_E_UNSUPPORTED:
		return MHD_HTTP_CONTENT_TOO_LARGE;
	default:
		return MHD_HTTP_INTERNAL_SERVER_ERROR;
	}
}

static enum MHD_Result collect_argument(void *ctx, enum MHD_ValueKind kind, const char *key,
					const char *value)
{
	struct lull_args *args = ctx;

	(void)kind;
	if (args->n < LULL_COUNT_OF(args->names)) {
		args->names[args->n] = key;
		args->values[args->n++] = value ? value : "";
	}
	return MHD_YES;
}

/* Run an answer; what it writes is sent, with the time it took. */
static enum MHD_Result send_answer(struct lull_server *s, struct MHD_Connection *c,
				   const struct lull_answer *answer, const struct upload *upload)
{
	struct lull_args args = { .body = upload->bytes, .body_len = upload->len };
	struct lull_err err = { LULL_OK, "" };
	char *bytes = NULL, timing[96];
	size_t len = 0;
	FILE *to = open_memstream(&bytes, &len);
	struct MHD_Response *response;
	u64 began_ns = lull_now_ns(), cpu_ns = lull_clock_ns(CLOCK_THREAD_CPUTIME_ID), report = 0;
	int rc;

	if (!to)
		return MHD_NO;
	MHD_get_connection_values(c, MHD_GET_ARGUMENT_KIND, collect_argument, &args);
	rc = lull_args_u64(&args, "f", LULL_PAGE_RANKS, 0, &report, &err);
	args.report_ix = report;
	if (!rc)
		rc = lull_page_answer(s->page, answer, &args, to, &err);
	if (fclose(to) && !rc)
		rc = lull_fail(&err, LULL_E_NOMEM, "not enough memory for the answer");
	if (rc) {
		free(bytes);
		return send_text(c, status_of(&err), err.msg);
	}
	response = MHD_create_response_from_buffer(len, bytes, MHD_RESPMEM_MUST_FREE);
	/* The second is for a machine that is busy with other work. */
	snprintf(timing, sizeof(timing), "answer;dur=%.3f, cpu;dur=%.3f",
		 (f64)(lull_now_ns() - began_ns) / 1e6,
		 (f64)(lull_clock_ns(CLOCK_THREAD_CPUTIME_ID) - cpu_ns) / 1e6);
	if (response)
		MHD_add_response_header(response, "Server-Timing", timing);
	return send_bytes(c, MHD_HTTP_OK, answer->type, response);
}

/* ---- requests ---- */

static const char *header_of(struct MHD_Connection *c, const char *name)
{
	return MHD_lookup_connection_value(c, MHD_HEADER_KIND, name);
}

static enum MHD_Result serve(struct lull_server *s, struct MHD_Connection *c,
			     const struct lull_guard_request *q, const struct upload *upload)
{
	const struct lull_answer *answer;
	const struct lull_asset *asset;
	const char *rest = "", *type = header_of(c, "Content-Type");
	bool is_post = !strcmp(q->method, "POST");
	int refused = lull_guard_check(&s->guard, q, &rest);

	if (refused)
		return refuse(c, refused);
	answer = lull_answer_find(rest);
	asset = lull_asset_find(rest);
	if (!answer && !asset)
		return refuse(c, MHD_HTTP_NOT_FOUND);
	if (is_post != (answer && answer->has_body) ||
	    (!is_post && strcmp(q->method, "GET") && strcmp(q->method, "HEAD")))
		return refuse(c, MHD_HTTP_METHOD_NOT_ALLOWED);
	if (upload->is_too_large)
		return refuse(c, MHD_HTTP_CONTENT_TOO_LARGE);
	/* A type that forms cannot send: other pages would have to ask first. */
	if (is_post && (!type || strcmp(type, "application/sql")))
		return refuse(c, MHD_HTTP_FORBIDDEN);
	if (answer)
		return send_answer(s, c, answer, upload);
	return send_bytes(c, MHD_HTTP_OK, asset->type,
			  MHD_create_response_from_buffer((size_t)(asset->end - asset->at),
							  (void *)asset->at,
							  MHD_RESPMEM_PERSISTENT));
}

static void take_upload(struct upload *upload, const char *bytes, size_t len)
{
	if (upload->is_too_large || len > BODY_BYTES - upload->len) {
		upload->is_too_large = true;
		return;
	}
	upload->bytes = lull_realloc(upload->bytes, upload->len + len + 1, 1);
	memcpy(upload->bytes + upload->len, bytes, len);
	upload->len += len;
	upload->bytes[upload->len] = '\0';
}

static struct connection *connection_of(struct lull_server *s, struct MHD_Connection *c)
{
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	(void)s;
	return info ? info->socket_context : NULL;
}

static void set_busy(struct lull_server *s, struct MHD_Connection *c, bool is_busy)
{
	struct connection *connection = connection_of(s, c);

	pthread_mutex_lock(&s->lock);
	s->last_request_ns = lull_now_ns();
	if (connection)
		connection->is_busy = is_busy;
	if (connection)
		connection->since_ns = s->last_request_ns;
	pthread_mutex_unlock(&s->lock);
}

static enum MHD_Result on_request(void *ctx, struct MHD_Connection *c, const char *url,
				  const char *method, const char *version, const char *bytes,
				  size_t *len, void **state)
{
	struct lull_server *s = ctx;
	struct upload *upload = *state;
	struct lull_guard_request q = { .path = url, .method = method };
	enum MHD_Result rc;

	(void)version;
	if (!upload) {
		*state = lull_alloc(1, sizeof(*upload));
		return MHD_YES;
	}
	if (*len) {
		take_upload(upload, bytes, *len);
		*len = 0;
		return MHD_YES;
	}
	q.host = header_of(c, "Host");
	q.origin = header_of(c, "Origin");
	q.fetch_site = header_of(c, "Sec-Fetch-Site");
	q.fetch_dest = header_of(c, "Sec-Fetch-Dest");
	set_busy(s, c, true);
	rc = serve(s, c, &q, upload);
	set_busy(s, c, false);
	return rc;
}

static void on_completed(void *ctx, struct MHD_Connection *c, void **state,
			 enum MHD_RequestTerminationCode why)
{
	struct upload *upload = *state;

	(void)ctx;
	(void)c;
	(void)why;
	if (upload)
		free(upload->bytes);
	free(upload);
	*state = NULL;
}

/* A free place for a new connection, NULL if there is none. */
static struct connection *take_place(struct lull_server *s, int fd)
{
	for (size_t i = 0; i < MAX_CONNECTIONS; i++) {
		struct connection *c = &s->connections[i];

		if (c->is_used)
			continue;
		*c = (struct connection){ .fd = fd, .is_used = true, .since_ns = lull_now_ns() };
		return c;
	}
	return NULL;
}

static void on_connection(void *ctx, struct MHD_Connection *c, void **state,
			  enum MHD_ConnectionNotificationCode code)
{
	struct lull_server *s = ctx;
	struct connection *connection = *state;
	const union MHD_ConnectionInfo *info =
		MHD_get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);

	pthread_mutex_lock(&s->lock);
	if (code == MHD_CONNECTION_NOTIFY_STARTED)
		*state = info ? take_place(s, info->connect_fd) : NULL;
	else if (connection)
		connection->is_used = false;
	pthread_mutex_unlock(&s->lock);
}

/* ---- the server ---- */

static int listen_unix(const char *path, struct lull_err *err)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(address.sun_path))
		return lull_fail(err, LULL_E_USAGE, "%s: too long for the name of a socket", path);
	memcpy(address.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	/* Nobody may connect before the rights are set. */
	if (fd >= 0 && !fchmod(fd, 0600) &&
	    !bind(fd, (struct sockaddr *)&address, sizeof(address)) && !chmod(path, 0600) &&
	    !listen(fd, 16))
		return fd;
	if (fd >= 0)
		close(fd);
	return lull_fail_errno(err, "listening on %s", path);
}

static int listen_tcp(const char *text, u16 port, struct lull_err *err)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET, .sin_port = htons(port) };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6, .sin6_port = htons(port) };
	bool is_v4 = inet_pton(AF_INET, text, &v4.sin_addr) == 1;
	struct sockaddr *address = is_v4 ? (struct sockaddr *)&v4 : (struct sockaddr *)&v6;
	socklen_t len = is_v4 ? sizeof(v4) : sizeof(v6);
	int fd, on = 1;

	if (!is_v4 && inet_pton(AF_INET6, text, &v6.sin6_addr) != 1)
		return lull_fail(err, LULL_E_USAGE, "%s is not an address such as 127.0.0.1", text);
	fd = socket(address->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) &&
	    !bind(fd, address, len) && !listen(fd, 64))
		return fd;
	if (fd >= 0)
		close(fd);
	return lull_fail_errno(err, "listening on %s, port %u", text, port);
}

static u16 port_of(int fd)
{
	struct sockaddr_in6 address = { 0 }; /* the port is at the same place in both */
	socklen_t len = sizeof(address);

	if (getsockname(fd, (struct sockaddr *)&address, &len))
		return 0;
	return ntohs(address.sin6_port);
}

/* A NUL in a path would end it early: such a path stays as it was sent, and names nothing. */
static size_t unescape(void *ctx, struct MHD_Connection *c, char *text)
{
	(void)ctx;
	(void)c;
	return strstr(text, "%00") ? strlen(text) : MHD_http_unescape(text);
}

static struct MHD_Daemon *start_daemon(struct lull_server *s, int fd)
{
	return MHD_start_daemon(
		MHD_USE_THREAD_PER_CONNECTION | MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_POLL, 0,
		NULL, NULL, on_request, s, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_CONNECTION_LIMIT, MAX_CONNECTIONS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)HEADER_BYTES, MHD_OPTION_CONNECTION_TIMEOUT, 30u,
		MHD_OPTION_UNESCAPE_CALLBACK, unescape, NULL, MHD_OPTION_NOTIFY_COMPLETED,
		on_completed, s, MHD_OPTION_NOTIFY_CONNECTION, on_connection, s, MHD_OPTION_END);
}

int lull_server_start(struct lull_server **out, struct lull_page *page,
		      const struct lull_server_options *options, struct lull_err *err)
{
	const char *address = options->address ? options->address : "127.0.0.1";
	struct lull_server *s = lull_alloc(1, sizeof(*s));
	struct lull_str url = LULL_STR_INIT;
	int fd;

	s->page = page;
	s->guard.host = options->host;
	s->last_request_ns = lull_now_ns();
	pthread_mutex_init(&s->lock, NULL);
	if (lull_guard_init(&s->guard, err))
		goto failed;
	fd = options->socket_path ? listen_unix(options->socket_path, err)
				  : listen_tcp(address, (u16)options->port, err);
	if (fd < 0)
		goto failed;
	if (options->socket_path)
		s->socket_path = lull_strdup(options->socket_path);
	else
		s->port = port_of(fd);
	s->daemon = start_daemon(s, fd);
	if (!s->daemon) {
		close(fd);
		lull_fail(err, LULL_E_IO, "the server could not be started");
		goto failed;
	}
	lull_str_addf(&url, strchr(address, ':') ? "http://[%s]:%u/%s/" : "http://%s:%u/%s/",
		      options->socket_path ? "localhost" : address,
		      options->socket_path ? 8080u : s->port, s->guard.token);
	s->url = url.at;
	*out = s;
	return LULL_OK;
failed:
	lull_server_stop(s);
	return err->code;
}

const char *lull_server_url(const struct lull_server *s)
{
	return s->url;
}

u16 lull_server_port(const struct lull_server *s)
{
	return s->port;
}

u64 lull_server_tick(struct lull_server *s)
{
	u64 now_ns, silent_ns;

	pthread_mutex_lock(&s->lock);
	now_ns = lull_now_ns(); /* under the lock: a request that comes now is not in its future */
	for (size_t i = 0; i < MAX_CONNECTIONS; i++) {
		struct connection *c = &s->connections[i];

		if (c->is_used && !c->is_busy && now_ns - c->since_ns > MAX_SILENT_NS)
			shutdown(c->fd, SHUT_RDWR);
	}
	silent_ns = now_ns - s->last_request_ns;
	pthread_mutex_unlock(&s->lock);
	return silent_ns;
}

void lull_server_stop(struct lull_server *s)
{
	if (!s)
		return;
	if (s->daemon)
		MHD_stop_daemon(s->daemon);
	if (s->socket_path)
		unlink(s->socket_path);
	pthread_mutex_destroy(&s->lock);
	free(s->socket_path);
	free(s->url);
	free(s);
}
