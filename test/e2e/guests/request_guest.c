/*
 * request_guest - a server in C without a network: it says which request its threads work for.
 *
 * Request 1 has two tokens. Request 2 arrives on the first thread and is answered on the second.
 * Request 3 is never answered. 4 is used twice: the second time while the first is still open.
 */
#include <pthread.h>
#include <stddef.h>

#include "lull.h"

static void *answer(void *unused)
{
	(void)unused;
	lull_work(2);
	lull_token();
	lull_done();
	return NULL;
}

int main(void)
{
	pthread_t other;

	lull_token(); /* of no request */
	lull_done();
	lull_request(1);
	lull_token();
	lull_token();
	lull_done();
	lull_request(2);
	lull_work(0);
	pthread_create(&other, NULL, answer, NULL);
	pthread_join(other, NULL);
	lull_request(3);
	lull_request(4);
	lull_request(4);
	lull_done();
	return 0;
}
