/*
 * socket_guest - a server in C that says nothing about its requests, and its client.
 *
 * The first connection has two requests, the second one. The server prints how long each took, in
 * ns: from when it has read the request to when it has sent the answer.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

static struct sockaddr_in address;

static void expect(int is_so, const char *what)
{
	if (!is_so) {
		perror(what);
		exit(1);
	}
}

static long long now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void ask(int fd)
{
	char answer[6];
	size_t n = 0;

	expect(send(fd, "ask", 3, 0) == 3, "send");
	while (n < sizeof(answer)) {
		ssize_t more = recv(fd, answer + n, sizeof(answer) - n, 0);

		expect(more > 0, "recv");
		n += (size_t)more;
	}
}

static void *be_client(void *unused)
{
	(void)unused;
	for (int connection = 0; connection < 2; connection++) {
		int fd = socket(AF_INET, SOCK_STREAM, 0);

		expect(connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0, "connect");
		for (int i = 0; i < 2 - connection; i++)
			ask(fd);
		close(fd);
	}
	return NULL;
}

/* Answer all requests of a connection, each in two parts. */
static void serve(int fd)
{
	char question[8];

	while (recv(fd, question, sizeof(question), 0) > 0) {
		long long start_ns = now_ns();

		usleep(2000);
		expect(send(fd, "ans", 3, 0) == 3, "send");
		usleep(1000);
		printf("%lld\n", now_ns() - start_ns);
		expect(send(fd, "wer", 3, 0) == 3, "send");
	}
	close(fd);
}

int main(void)
{
	int listener = socket(AF_INET, SOCK_STREAM, 0);
	socklen_t len = sizeof(address);
	pthread_t client;

	address.sin_family = AF_INET;
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	expect(bind(listener, (struct sockaddr *)&address, sizeof(address)) == 0, "bind");
	expect(listen(listener, 8) == 0, "listen");
	expect(getsockname(listener, (struct sockaddr *)&address, &len) == 0, "getsockname");
	pthread_create(&client, NULL, be_client, NULL);
	for (int i = 0; i < 2; i++)
		serve(accept(listener, NULL, NULL));
	pthread_join(client, NULL);
	return 0;
}
