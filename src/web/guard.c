#include "web/guard.h"

#include <string.h>
#include <sys/random.h>

#define FORBIDDEN 403
#define NOT_FOUND 404

int lull_guard_init(struct lull_guard *g, struct lull_err *err)
{
	static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";
	u8 random[LULL_TOKEN_CHARS];

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return lull_fail_errno(err, "creating a random token");
	for (size_t i = 0; i < LULL_TOKEN_CHARS; i++)
		g->token[i] = digits[random[i] & 31];
	g->token[LULL_TOKEN_CHARS] = '\0';
	return LULL_OK;
}

/* The time this takes must not tell how much of it was right. */
static bool is_token(const struct lull_guard *g, const char *text, size_t len)
{
	u8 difference = len != LULL_TOKEN_CHARS;

	for (size_t i = 0; i < LULL_TOKEN_CHARS; i++)
		difference |= (u8)(g->token[i] ^ (i < len ? text[i] : 0));
	return !difference;
}

/* The name of "name:port" or "[::1]:port" is one of ours; any port, as it may be forwarded. */
static bool is_our_host(const struct lull_guard *g, const char *host)
{
	static const char *const names[] = { "127.0.0.1", "localhost", "[::1]" };
	const char *end = host + strlen(host), *colon = strrchr(host, ':');
	size_t len;

	if (colon && (*host != '[' || (colon > host && colon[-1] == ']')))
		end = colon;
	len = (size_t)(end - host);
	for (size_t i = 0; i < LULL_COUNT_OF(names); i++)
		if (strlen(names[i]) == len && !strncmp(names[i], host, len))
			return true;
	return g->host && strlen(g->host) == len && !strncmp(g->host, host, len);
}

/* "http://" and the Host itself; a page of a file sends "null". */
static bool is_our_origin(const char *origin, const char *host)
{
	static const char http[] = "http://", https[] = "https://";

	if (!strncmp(origin, http, sizeof(http) - 1))
		return !strcmp(origin + sizeof(http) - 1, host);
	/* A proxy in front may speak TLS. */
	return !strncmp(origin, https, sizeof(https) - 1) &&
	       !strcmp(origin + sizeof(https) - 1, host);
}

static bool is_our_fetch(const struct lull_guard_request *q, const char *rest)
{
	if (!q->fetch_site || !strcmp(q->fetch_site, "same-origin"))
		return true;
	/* Typed, or opened from the file with the address: the page itself, not its data. */
	if (*rest)
		return false;
	return !strcmp(q->fetch_site, "none") ||
	       (q->fetch_dest && !strcmp(q->fetch_dest, "document"));
}

int lull_guard_check(const struct lull_guard *g, const struct lull_guard_request *q,
		     const char **rest)
{
	const char *path = q->path, *slash;

	if (!q->host || !is_our_host(g, q->host))
		return FORBIDDEN;
	if (*path++ != '/')
		return NOT_FOUND;
	slash = strchr(path, '/');
	if (!slash || !is_token(g, path, (size_t)(slash - path)))
		return NOT_FOUND;
	*rest = slash + 1;
	if (!is_our_fetch(q, *rest) || (q->origin && !is_our_origin(q->origin, q->host)))
		return FORBIDDEN;
	return 0;
}
