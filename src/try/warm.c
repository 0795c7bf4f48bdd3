#include "try/warm.h"

#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Each holds the memory of an import. */
#define MOST_WARM 4

/* A process that is ready forks at once; before that, it may have modules to load. */
#define FORK_MS 120000

static struct lull_warm *at(const struct lull_warms *w, int index)
{
	return lull_vec_get(&w->all, (size_t)index);
}

void lull_warms_init(struct lull_warms *w)
{
	*w = (struct lull_warms){ .is_off = false };
	lull_vec_init(&w->all, sizeof(struct lull_warm));
}

/* End a process; those after it move up. */
static void forget(struct lull_warms *w, int index)
{
	struct lull_warm *one = at(w, index);

	close(one->fd);
	kill(one->pid, SIGKILL);
	waitpid(one->pid, NULL, 0);
	lull_str_release(&one->env);
	lull_str_release(&one->wants);
	memmove(one, one + 1, (--w->all.n - (size_t)index) * sizeof(*one));
}

void lull_warms_release(struct lull_warms *w)
{
	while (w->all.n)
		forget(w, (int)w->all.n - 1);
	lull_vec_release(&w->all);
}

int lull_warms_find(const struct lull_warms *w, const char *env)
{
	for (size_t i = 0; i < w->all.n; i++)
		if (strcmp(lull_str_text(&at(w, (int)i)->env), env) == 0)
			return (int)i;
	return -1;
}

bool lull_warms_has(const struct lull_warms *w, pid_t pid)
{
	for (size_t i = 0; i < w->all.n; i++)
		if (at(w, (int)i)->pid == pid)
			return true;
	return false;
}

bool lull_warm_offer(const struct lull_warms *w, struct lull_warm_offer *offer)
{
	int ends[2];

	*offer = (struct lull_warm_offer){ -1, -1 };
	if (w->is_off || w->all.n >= MOST_WARM ||
	    socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return false;
	*offer = (struct lull_warm_offer){ ends[0], ends[1] };
	return true;
}

void lull_warm_withdraw(struct lull_warm_offer *offer)
{
	if (offer->ours >= 0)
		close(offer->ours);
	if (offer->theirs >= 0)
		close(offer->theirs);
	*offer = (struct lull_warm_offer){ -1, -1 };
}

/* A message, if one comes within the time; "" if the other end is closed. */
static bool receive(int fd, char *text, size_t size, int ms)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n;

	if (poll(&p, 1, ms) != 1)
		return false;
	n = recv(fd, text, size - 1, 0);
	text[n > 0 ? n : 0] = '\0';
	return true;
}

static bool say(int fd, const char *text, size_t len)
{
	return send(fd, text, len, MSG_NOSIGNAL) == (ssize_t)len;
}

bool lull_warms_take(struct lull_warms *w, struct lull_warm_offer *offer, pid_t pid,
		     const char *env, int *index)
{
	struct lull_warm *one;
	char text[64];
	long found;

	if (offer->ours < 0 || !receive(offer->ours, text, sizeof(text), 0))
		return false;
	if (sscanf(text, "ready %ld", &found) != 1) {
		lull_warm_withdraw(offer);
		return false;
	}
	if (found != pid) {
		say(offer->ours, "no", 2);
		return false;
	}
	one = lull_vec_push(&w->all);
	one->pid = pid;
	one->fd = offer->ours;
	lull_str_puts(&one->env, env);
	offer->ours = -1;
	lull_warm_withdraw(offer);
	*index = (int)w->all.n - 1;
	return true;
}

/* Let it load what its first run has imported besides. */
static bool load(struct lull_warms *w, struct lull_warm *one)
{
	struct lull_str text = LULL_STR_INIT;
	bool is_good;

	if (w->is_plain || one->has_loaded || !one->wants.len)
		return true;
	one->has_loaded = true;
	lull_str_addf(&text, "load %s", one->wants.at);
	is_good = say(one->fd, text.at, text.len);
	lull_str_release(&text);
	return is_good;
}

pid_t lull_warms_run(struct lull_warms *w, int index, const char *folder, const char *numbers,
		     const char *files)
{
	struct lull_str text = LULL_STR_INIT;
	struct lull_warm *one = at(w, index);
	char answer[64] = "";
	long pid = -1;

	lull_str_addf(&text, "run\n%s\n%s\n%s", folder, numbers, files);
	if (!load(w, one) || !say(one->fd, text.at, text.len) ||
	    !receive(one->fd, answer, sizeof(answer), FORK_MS) ||
	    sscanf(answer, "pid %ld", &pid) != 1) {
		/* What it loaded may have made forks unsafe. */
		w->is_off |= !one->has_loaded;
		w->is_plain |= one->has_loaded;
		forget(w, index);
		pid = -1;
	}
	lull_str_release(&text);
	return (pid_t)pid;
}

bool lull_warms_poll(struct lull_warms *w, int index, struct lull_warm_end *end)
{
	char text[64];

	*end = (struct lull_warm_end){ .is_gone = false };
	if (!receive(at(w, index)->fd, text, sizeof(text), 0))
		return false;
	if (sscanf(text, "end %d %" SCNu64, &end->wait_status, &end->rss_kib) != 2) {
		*end = (struct lull_warm_end){ .wait_status = SIGKILL, .is_gone = true };
		forget(w, index);
	}
	return true;
}
