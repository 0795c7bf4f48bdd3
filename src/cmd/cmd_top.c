/*
 * lull top - what a running session and the devices do right now.
 */
#include "cmd/cmd.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/convert.h"
#include "base/time.h"
#include "record/gpu/nvml.h"
#include "record/live/pulse_frame.h"
#include "record/session/remote.h"
#include "record/session/session.h"
#include "text/opt.h"
#include "text/term.h"

/* Columns of the bar that shows how busy a device is. */
#define BAR_COLUMNS 20

struct values {
	f64 at[LULL_N_VALUES];
	bool has[LULL_N_VALUES];
};

struct top {
	struct lull_session_entry session; /* name "" if there is none */
	struct lull_nvml *nvml;		   /* NULL if there is none */
	struct lull_pulse_frame last, now;
	bool is_once;
	int width;
	bool has_colour, is_ascii;
};

static void sleep_ns(u64 ns)
{
	struct timespec t = { (time_t)(ns / LULL_NS_PER_S), (long)(ns % LULL_NS_PER_S) };

	nanosleep(&t, NULL);
}

/* ---- which session ---- */

static int read_frame(const char *path, struct lull_pulse_frame *f, struct lull_err *err)
{
	struct lull_str answer = LULL_STR_INIT;
	int rc = lull_remote_ask(path, "pulse", &answer, err);

	if (!rc)
		rc = lull_pulse_frame_parse(f, lull_str_text(&answer), err);
	lull_str_release(&answer);
	return rc;
}

/* Whether the session is meant: by its name, or by the process of its program or its recorder. */
static bool is_meant(const struct lull_session_entry *e, const char *word)
{
	struct lull_pulse_frame f;
	struct lull_err err;
	u64 pid;

	if (!*word || !strcmp(e->name, word) || !strcmp(e->path, word))
		return true;
	if (word[strspn(word, "0123456789")])
		return false;
	pid = strtoull(word, NULL, 10);
	if (pid == e->collector_pid)
		return true;
	if (read_frame(e->path, &f, &err))
		return false;
	for (u64 i = 0; i < f.n_devices; i++) {
		if (f.devices[i].pid == pid)
			return true;
	}
	return f.pid == pid;
}

static int choose(struct top *t, const char *word, struct lull_err *err)
{
	struct lull_vec all;
	size_t n = 0;

	lull_vec_init(&all, sizeof(struct lull_session_entry));
	lull_session_list(&all);
	for (size_t i = 0; i < all.n; i++) {
		const struct lull_session_entry *e = lull_vec_get(&all, i);

		if (!e->is_alive || !is_meant(e, word))
			continue;
		t->session = *e;
		n++;
	}
	lull_vec_release(&all);
	if (n > 1)
		return lull_fail(
			err, LULL_E_USAGE,
			"%zu sessions run here; name one of them (lull sessions lists them)", n);
	if (!n && *word)
		return lull_fail(err, LULL_E_NOT_FOUND,
				 "no session or program '%s'; lull sessions lists them", word);
	return LULL_OK;
}

/* ---- devices ---- */

static void keep_value(void *ctx, enum lull_metric_kind metric, f64 value)
{
	struct values *v = ctx;

	v->at[metric] = value;
	v->has[metric] = true;
}

static void put_device(const struct top *t, u32 ix)
{
	const struct lull_gpu_facts *facts = lull_nvml_facts(t->nvml, ix);
	struct lull_str text = LULL_STR_INIT;
	struct values v = { 0 };

	lull_nvml_sample(t->nvml, ix, keep_value, &v);
	lull_str_addf(&text, "GPU %u %s:", ix, facts->name);
	if (v.has[LULL_METRIC_gpm_sm_active])
		lull_str_addf(&text, " SM active %.0f %%,", v.at[LULL_METRIC_gpm_sm_active]);
	if (v.has[LULL_METRIC_nvml_utilization])
		lull_str_addf(&text, " utilization %.0f %%,", v.at[LULL_METRIC_nvml_utilization]);
	if (v.has[LULL_METRIC_nvml_power])
		lull_str_addf(&text, " power %.0f", v.at[LULL_METRIC_nvml_power]);
	if (v.has[LULL_METRIC_nvml_power] && v.has[LULL_METRIC_nvml_power_limit])
		lull_str_addf(&text, " of %.0f", v.at[LULL_METRIC_nvml_power_limit]);
	if (v.has[LULL_METRIC_nvml_power])
		lull_str_puts(&text, " W,");
	if (v.has[LULL_METRIC_nvml_memory_used])
		lull_str_addf(
			&text, " memory %s of %s,",
			lull_format_bytes(lull_u64_of(v.at[LULL_METRIC_nvml_memory_used])).text,
			lull_format_bytes(facts->memory_bytes).text);
	if (v.has[LULL_METRIC_nvml_temperature])
		lull_str_addf(&text, " %.0f C,", v.at[LULL_METRIC_nvml_temperature]);
	if (v.has[LULL_METRIC_nvml_sm_clock])
		lull_str_addf(&text, " %.0f MHz,", v.at[LULL_METRIC_nvml_sm_clock]);
	text.at[text.len - 1] = '\0';
	lull_term_say(stdout, 0, t->width, "%s", text.at);
	lull_str_release(&text);
}

static void put_devices(const struct top *t)
{
	for (u32 i = 0; t->nvml && i < lull_nvml_n_devices(t->nvml); i++)
		put_device(t, i);
}

/* ---- the session ---- */

static void put_bar(const struct top *t, f64 share)
{
	int full = (int)(share * BAR_COLUMNS + 0.5);

	for (int i = 0; i < BAR_COLUMNS; i++)
		fputs(t->is_ascii ? i < full ? "#" : "."
		      : i < full  ? "\xe2\x96\x88"
				  : "\xe2\x96\x91",
		      stdout);
}

/* What a device did since the last frame. */
static void put_shares(const struct top *t, u64 i)
{
	u64 busy_ns = t->now.devices[i].busy_ns - t->last.devices[i].busy_ns, all_ns = busy_ns;
	u64 idle_ns[LULL_PULSE_N_CAUSES];
	struct lull_str text = LULL_STR_INIT;
	f64 share;

	for (int c = 0; c < LULL_PULSE_N_CAUSES; c++) {
		idle_ns[c] = t->now.devices[i].idle_ns[c] - t->last.devices[i].idle_ns[c];
		all_ns += idle_ns[c];
	}
	share = all_ns ? (f64)busy_ns / (f64)all_ns : 0;
	for (int c = 0; c < LULL_PULSE_N_CAUSES; c++) {
		if (idle_ns[c] && idle_ns[c] * 200 >= all_ns)
			lull_str_addf(&text, "%s %s %.0f %%", text.len ? "," : "",
				      lull_pulse_causes[c], 100 * (f64)idle_ns[c] / (f64)all_ns);
	}
	printf("device %llu of process %llu: ", (unsigned long long)t->now.devices[i].number,
	       (unsigned long long)t->now.devices[i].pid);
	put_bar(t, share);
	if (all_ns)
		printf(" busy %.0f %%\n", 100 * share);
	else
		printf(" no work\n");
	if (text.len)
		lull_term_say(stdout, 2, t->width, "idle:%s", text.at);
	lull_str_release(&text);
}

static void put_steps(const struct top *t)
{
	u64 n = t->now.n_steps - t->last.n_steps, ns = t->now.step_ns - t->last.step_ns;
	u64 span_ns = t->now.now_ns - t->last.now_ns;
	f64 per_s = span_ns ? 1e9 / (f64)span_ns : 0;

	if (n)
		printf("step %s on average, %s the last, %.3g a second\n",
		       lull_format_ns(ns / n).text, lull_format_ns(t->now.last_step_ns).text,
		       (f64)n * per_s);
	else
		printf("no step ended\n");
	printf("%s launches a second\n",
	       lull_format_count(lull_u64_of((f64)(t->now.n_launches - t->last.n_launches) * per_s))
		       .text);
}

static void put_session(const struct top *t)
{
	const struct lull_pulse_frame *f = &t->now;

	printf("%s%.63s%s, process %llu, %s: %s", lull_term_colour(LULL_COLOUR_BOLD, t->has_colour),
	       t->session.name, lull_term_colour(LULL_COLOUR_NONE, t->has_colour),
	       (unsigned long long)f->pid, lull_format_ns(f->age_ns).text,
	       f->is_recording ? "recording" : "not recording");
	if (f->is_recording)
		printf(", %s event%s", lull_format_grouped((i64)f->n_events).text,
		       f->n_events == 1 ? "" : "s");
	if (f->n_lost)
		printf(", %s lost", lull_format_grouped((i64)f->n_lost).text);
	putchar('\n');
	put_steps(t);
	for (u64 i = 0; i < f->n_devices; i++)
		put_shares(t, i);
}

/* ---- the command ---- */

static int show(struct top *t, struct lull_err *err)
{
	t->last = t->now;
	if (*t->session.path && read_frame(t->session.path, &t->now, err))
		return err->code;
	if (!t->is_once && lull_term_is_tty(stdout))
		fputs("\033[H\033[J", stdout);
	if (*t->session.path)
		put_session(t);
	put_devices(t);
	fflush(stdout);
	return LULL_OK;
}

/* Everything is said of the time between two looks, so the first one shows nothing. */
static int show_all(struct top *t, struct lull_err *err)
{
	for (u32 i = 0; t->nvml && i < lull_nvml_n_devices(t->nvml); i++)
		lull_nvml_sample(t->nvml, i, keep_value, &(struct values){ 0 });
	if (*t->session.path && read_frame(t->session.path, &t->now, err))
		return err->code;
	do {
		sleep_ns(LULL_NS_PER_S);
		if (show(t, err) == LULL_OK)
			continue;
		/* Sessions end, that is no failure. */
		printf("the session has ended\n");
		return LULL_OK;
	} while (!t->is_once);
	return LULL_OK;
}

int cmd_top(int argc, char **argv, struct lull_err *err)
{
	struct top t = { .width = lull_term_width(stdout) };
	const struct lull_opt opts[] = {
		OPT_USAGE("lull top [OPTIONS] [SESSION|PID]",
			  "Show what a running session and the devices do, each second anew."),
		OPT_FLAG(0, "once", &t.is_once, "print it once and exit"),
		OPT_END(),
	};
	int first = lull_opt_parse(argc, argv, opts, err), rc;
	struct lull_err no_nvml;

	if (first < 0)
		return first;
	if (argc - first > 1)
		return lull_fail(err, LULL_E_USAGE, "expected one session; see lull top --help");
	t.has_colour = lull_term_has_colour(stdout);
	t.is_ascii = !lull_term_is_utf8();
	if (choose(&t, argc > first ? argv[first] : "", err))
		return err->code;
	if (lull_nvml_open(&t.nvml, &no_nvml))
		t.nvml = NULL;
	if (!*t.session.path && !t.nvml)
		return lull_fail(err, LULL_E_NOT_FOUND,
				 "no session is running, and the devices cannot be asked: %s; "
				 "start a session with lull profile or lull launch",
				 no_nvml.msg);
	rc = show_all(&t, err);
	lull_nvml_close(t.nvml);
	return rc;
}
