/* How long the server was silent, while requests come. */
#include "unit/unit.h"

#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/time.h"
#include "web/server.h"

#define N_TICKS	    200000
#define N_CLIENTS   2
#define NOT_FOUND   "GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
#define LONG_AGO_NS (3600 * LULL_NS_PER_S)

struct client {
	u16 port;
	atomic_bool is_ending;
	atomic_uint n_answers;
};

static void *ask(void *ctx)
{
	struct client *c = ctx;
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(c->port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char answer[4096];

	to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	if (connect(fd, (struct sockaddr *)&to, sizeof(to)))
		return NULL;
	while (!c->is_ending && send(fd, NOT_FOUND, strlen(NOT_FOUND), MSG_NOSIGNAL) > 0 &&
	       recv(fd, answer, sizeof(answer), 0) > 0)
		c->n_answers++;
	close(fd);
	return NULL;
}

/* A request that comes while the time is looked at is not one of long ago. */
static void requests_that_come_are_not_silence(void **state)
{
	const struct lull_server_options options = { .port = 0 };
	struct lull_page page = { 0 };
	struct lull_server *s = NULL;
	struct client client = { 0 };
	pthread_t threads[N_CLIENTS];
	u64 longest_ns = 0;
	struct lull_err err;

	(void)state;
	assert_int_equal(lull_server_start(&s, &page, &options, &err), LULL_OK);
	client.port = lull_server_port(s);
	for (int i = 0; i < N_CLIENTS; i++)
		assert_int_equal(pthread_create(&threads[i], NULL, ask, &client), 0);
	while (!client.n_answers)
		usleep(1000);
	for (int i = 0; i < N_TICKS; i++) {
		u64 ns = lull_server_tick(s);

		longest_ns = ns > longest_ns ? ns : longest_ns;
	}
	client.is_ending = true;
	for (int i = 0; i < N_CLIENTS; i++)
		pthread_join(threads[i], NULL);
	lull_server_stop(s);
	assert_true(longest_ns < LONG_AGO_NS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_that_come_are_not_silence),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
