/*
 * feed_kernel - progress of agents that measure kernels (wire/kwish.h): a status line; and kill
 * programs whose kernel hangs when it is replayed.
 *
 * Only another process can do that: the thread that launched the kernel waits inside the driver.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/time.h"
#include "record/collector_int.h"
#include "symbol/demangle.h"

/* Names of templates are long; the line has room for so much of one. */
#define SHOWN_BYTES 48

/* The kernel at hand, readable; "" if there is none. Free it. */
static char *busy_name(const struct lull_kwish *wish)
{
	char mangled[sizeof(wish->busy_name)], *name;

	/* An agent may write it right now: the worst is a torn name. */
	memcpy(mangled, wish->busy_name, sizeof(mangled));
	mangled[sizeof(mangled) - 1] = '\0';
	name = lull_demangle(mangled);
	return name ? name : strdup(mangled);
}

static u64 busy_ns(struct lull_collector *c, const struct lull_kwish *wish)
{
	u64 since_ns = lull_clock_ns_of(&c->clock, atomic_load(&wish->busy_since));
	u64 now_ns = lull_now_ns();

	return atomic_load(&wish->busy_pid) && now_ns > since_ns ? now_ns - since_ns : 0;
}

void lull_feed_kernels(struct lull_collector *c)
{
	struct lull_kwish *wish = &c->session.control->kernels;
	u64 limit_ns = c->options->kernel_timeout_ns;
	struct lull_str text = LULL_STR_INIT;
	u32 pid = atomic_load(&wish->busy_pid);
	struct lull_process *p;
	char *name;

	if (!c->options->kernels || !limit_ns || c->has_hung || !pid || busy_ns(c, wish) < limit_ns)
		return;
	c->has_hung = true;
	name = busy_name(wish);
	p = lull_tree_find(&c->tree, pid);
	if (wish->replay == LULL_REPLAY_RANGE)
		lull_str_addf(&text,
			      "the range %s did not end within %.0f s; give it more time with "
			      "--timeout, or choose a shorter one",
			      name, (f64)limit_ns / 1e9);
	else
		lull_str_addf(&text,
			      "%s did not end within %.0f s; leave it out with --kernel-name, try "
			      "--replay application, or give it more time with --timeout",
			      name, (f64)limit_ns / 1e9);
	if (lull_recording_is_on(&c->recording))
		lull_recording_issue(&c->recording, LULL_ISSUE_kernel_hung, p, 1, text.at);
	lull_str_release(&text);
	free(name);
	kill((pid_t)pid, SIGKILL);
	lull_control_kill(c, SIGKILL);
}

/* How many launches will be measured, 0 if nobody can tell. */
static u64 n_wanted(const struct lull_kwish *wish)
{
	u64 n = 0;

	for (u32 i = 0; i < wish->n_filters; i++) {
		if (!wish->filters[i].count)
			return 0;
		n += wish->filters[i].count;
	}
	return n;
}

bool lull_feed_kernels_show(struct lull_collector *c)
{
	const struct lull_kwish *wish = &c->session.control->kernels;
	u64 n_done = atomic_load(&wish->n_done), n_all = n_wanted(wish);
	u64 each_ns =
		n_done ? lull_clock_dur_ns(&c->clock, atomic_load(&wish->done_ticks)) / n_done : 0;
	struct lull_str line = LULL_STR_INIT;
	char *name;

	if (!c->options->kernels)
		return false;
	if (!lull_progress_is_due(&c->progress))
		return true;
	lull_str_addf(&line, "measured %llu", (unsigned long long)n_done);
	if (n_all)
		lull_str_addf(&line, " of %llu", (unsigned long long)n_all);
	lull_str_addf(&line, wish->replay == LULL_REPLAY_RANGE ? " ranges" : " launches");
	if (atomic_load(&wish->n_passes))
		lull_str_addf(&line, ", %u passes each", atomic_load(&wish->n_passes));
	if (n_all > n_done && each_ns)
		lull_str_addf(&line, ", %.0f s left", (f64)(n_all - n_done) * (f64)each_ns / 1e9);
	if (atomic_load(&wish->busy_pid)) {
		name = busy_name(wish);
		lull_str_addf(&line, ": %.*s", SHOWN_BYTES, name);
		free(name);
	} else if (!n_done) {
		lull_str_addf(&line, ", %llu seen",
			      (unsigned long long)atomic_load(&wish->n_launches));
	}
	lull_progress_draw(&c->progress, lull_str_text(&line));
	lull_str_release(&line);
	return true;
}
