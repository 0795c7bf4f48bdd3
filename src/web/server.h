/*
 * server - the page and its answers over HTTP, for one user of this machine.
 *
 * Where:          127.0.0.1 and a free port, unless told otherwise; or a socket of the file system
 *                 that only its user may open.
 * Bounds:         64 connections, 16 KB of headers, 64 KB of body, 30 s from one request to the
 *                 next; answers have bounds of their own. Nothing reaches the file system: what is
 *                 served is part of the program or computed.
 * Threads:        one for each connection; answers lock what they read (page/page.h).
 */
#ifndef LULL_WEB_SERVER_H
#define LULL_WEB_SERVER_H

#include "base/err.h"
#include "base/types.h"
#include "page/page.h"

struct lull_server_options {
	const char *address;	 /* to listen on; NULL: 127.0.0.1 */
	u64 port;		 /* 0: any that is free */
	const char *socket_path; /* instead of both; NULL: none */
	const char *host;	 /* one more name that requests may use; NULL: none */
};

struct lull_server;

/* Start the server; the page is borrowed until lull_server_stop(). */
int lull_server_start(struct lull_server **s, struct lull_page *page,
		      const struct lull_server_options *options, struct lull_err *err);

/* The address of the page, such as http://127.0.0.1:1234/TOKEN/. Borrowed. */
const char *lull_server_url(const struct lull_server *s);

/* The port it listens on; 0 for a socket of the file system. */
u16 lull_server_port(const struct lull_server *s);

/*
 * To be called about once a second: ends connections that are silent or too slow. Returns how long
 * ago the last request came, in ns.
 */
u64 lull_server_tick(struct lull_server *s);

/* Stop the server; waits for answers in progress. Accepts NULL. */
void lull_server_stop(struct lull_server *s);

#endif
