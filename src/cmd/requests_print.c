#include "cmd/requests_print.h"

#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "base/time.h"
#include "text/term.h"

/* A part below this share of the time is not worth a line. */
#define PART_SAID 0.005

/* What is busy for less of the time is far from a limit. */
#define LIMIT_SAID 0.05

/* Names of requests that are listed. */
#define MAX_GROUPS 10u

/* Of the median latency: what may be missing of a request is worth a line from here on. */
#define LATE_SAID 0.5

/* Fewer samples are chance. */
#define LEAST_SAMPLES 3u

struct printer {
	FILE *to;
	int width;
};

#define say(p, indent, ...) lull_term_say((p)->to, indent, (p)->width, __VA_ARGS__)

/* A rate: three digits, and no exponent. */
static struct lull_number rate_of(f64 hz)
{
	struct lull_number text;

	if (hz >= 1000)
		return lull_format_grouped((i64)(hz + 0.5));
	snprintf(text.text, sizeof(text.text), "%.3g", hz);
	return text;
}

static const char *plural(u64 n)
{
	return n == 1 ? "" : "s";
}

/* After what is a mean of so many. */
static const char *each(u64 n)
{
	return n == 1 ? "" : " each on average";
}

/* What one of them is called. */
static const char *noun(const struct lull_requests_answer *a)
{
	return a->requests.rounds ? "round" : "request";
}

static const char *time_of(f64 ns, struct lull_number *to)
{
	*to = lull_format_ns(ns > 0 ? (u64)(ns + 0.5) : 0);
	return to->text;
}

/* "train.py:41 load", the file without its folders. */
static void add_place(struct lull_str *to, const struct lull_requests_answer *a, u32 frame)
{
	size_t n;
	const struct lull_frame_row *frames = lull_reader_dim(a->reader, LULL_TABLE_frame, &n);
	const struct lull_frame_row *f = &frames[frame - 1];
	const char *file = lull_reader_string(a->reader, f->file, NULL);
	const char *slash = strrchr(file, '/');

	if (*file)
		lull_str_addf(to, "%s:%u ", slash ? slash + 1 : file, f->line);
	lull_str_puts(to, lull_reader_string(a->reader, f->function, NULL));
}

/* Those whose data may have waited for a thread that was busy. */
static void say_late(const struct printer *p, const struct lull_requests_answer *a)
{
	const struct lull_requests *q = &a->requests;
	const struct lull_one_request *all = q->all.at;
	u64 p50_ns = a->summary.latency.p50_ns;
	struct lull_str where = LULL_STR_INIT;
	u32 frame;
	struct lull_number most;
	u64 most_ns = 0, n = 0;

	for (size_t i = 0; i < q->all.n; i++) {
		n += (f64)all[i].late_ns >= LATE_SAID * (f64)p50_ns;
		most_ns = all[i].late_ns > most_ns ? all[i].late_ns : most_ns;
	}
	if (!n)
		return;
	frame = lull_request_late_frame(q);
	if (frame) {
		lull_str_puts(&where, ", mostly in ");
		add_place(&where, a, frame);
	}
	say(p, 0,
	    "Before %llu of them %s thread was busy and did not look at its connections, for up to "
	    "%s%s. They may have waited so long, which is not counted.",
	    (unsigned long long)n, n == 1 ? "its" : "their", time_of((f64)most_ns, &most),
	    lull_str_text(&where));
	lull_str_release(&where);
}

/* What they are, where nobody says so. */
static void say_found(const struct printer *p, const struct lull_requests_answer *a)
{
	const struct lull_requests *q = &a->requests;

	if (q->is_of_sockets)
		say(p, 0,
		    "Nobody says where requests begin and end: these go from data that came in on "
		    "a connection to the last data sent before more came.");
	if (q->is_of_sockets)
		say_late(p, a);
	if (q->rounds)
		say(p, 0,
		    "No requests were recorded: these are the rounds of the program's loop, each "
		    "from its start to the start of the next. If one request takes several of "
		    "them, mark it: with lull.request(): ... in Python, lull_request() in C.");
}

static void say_load(const struct printer *p, const struct lull_requests_answer *a)
{
	const struct lull_request_load *l = &a->summary.load;
	struct lull_str s = LULL_STR_INIT;
	struct lull_span served = a->requests.served;
	f64 busy = 100 * l->busy_share;

	lull_str_addf(&s, "%s %s%s in %s", lull_format_grouped((i64)a->requests.all.n).text,
		      noun(a), plural(a->requests.all.n),
		      lull_format_ns(served.to_ns - served.from_ns).text);
	if (l->rate_hz > 0)
		lull_str_addf(&s, ", %s%s a second", a->requests.rounds ? "" : "arriving at ",
			      rate_of(l->rate_hz).text);
	if (!a->requests.rounds)
		lull_str_addf(&s, "; %.2g at a time on average, %u at most", l->n_mean, l->n_max);
	if (a->requests.has_device)
		lull_str_addf(&s, "; GPU busy %.*f %% of that time", busy < 10, busy);
	say(p, 0, "%s.", lull_str_text(&s));
	say_found(p, a);
	lull_str_release(&s);
}

static void say_left_out(const struct printer *p, const struct lull_requests *q)
{
	struct lull_str s = LULL_STR_INIT;
	const struct {
		u64 n;
		const char *what;
	} left[] = {
		{ q->n_cut_start, "began before the recording" },
		{ q->n_cut_end, "did not end in the recording" },
		{ q->n_hung_up, "had a client that hung up" },
		{ q->n_failed, "failed" },
		{ q->n_twice, "had an id that was used again" },
	};

	for (size_t i = 0; i < LULL_COUNT_OF(left); i++)
		if (left[i].n)
			lull_str_addf(&s, "%s%llu %s", s.len ? ", " : "",
				      (unsigned long long)left[i].n, left[i].what);
	if (s.len)
		say(p, 0, "Not counted: %s.", lull_str_text(&s));
	lull_str_release(&s);
}

static void put_quantiles(const struct printer *p, const char *what, const struct lull_quantiles *q)
{
	struct lull_number n[5];

	if (!q->n)
		return;
	fprintf(p->to, "%-15s %9s %9s %9s %9s %9s\n", what, time_of((f64)q->p50_ns, &n[0]),
		time_of((f64)q->p90_ns, &n[1]), time_of((f64)q->p99_ns, &n[2]),
		time_of((f64)q->max_ns, &n[3]), time_of(q->mean_ns, &n[4]));
}

static void put_latency(const struct printer *p, const struct lull_requests_answer *a)
{
	const struct lull_request_summary *s = &a->summary;
	const struct lull_request_group *g = s->groups.at;

	fprintf(p->to, "\n%-15s %9s %9s %9s %9s %9s\n", "", "p50", "p90", "p99", "max", "average");
	put_quantiles(p, a->requests.rounds ? "round" : "latency", &s->latency);
	put_quantiles(p, "first token", &s->first_token);
	put_quantiles(p, "between tokens", &s->between);
	if (s->groups.n < 2)
		return;
	fprintf(p->to, "\n%9s %9s %9s %9s %9s  %s\n", "requests", "p50", "p90", "p99", "max",
		"name");
	for (size_t i = 0; i < s->groups.n && i < MAX_GROUPS; i++) {
		struct lull_one_request one = {
			.name = g[i].name,
			.is_round = a->requests.rounds != LULL_ROUNDS_NONE,
		};
		struct lull_number n[4];

		fprintf(p->to, "%9zu %9s %9s %9s %9s  %s\n", g[i].latency.n,
			time_of((f64)g[i].latency.p50_ns, &n[0]),
			time_of((f64)g[i].latency.p90_ns, &n[1]),
			time_of((f64)g[i].latency.p99_ns, &n[2]),
			time_of((f64)g[i].latency.max_ns, &n[3]),
			lull_request_name(&one, a->reader));
	}
	if (s->groups.n > MAX_GROUPS)
		say(p, 0, "%zu more names are not shown.", s->groups.n - MAX_GROUPS);
}

static void put_part(const struct printer *p, const struct lull_request_summary *s, u32 part)
{
	struct lull_number n[4];

	if (s->part_mean_ns[part] < PART_SAID * s->latency.mean_ns &&
	    s->part_slow_ns[part] < PART_SAID * s->latency.mean_ns &&
	    s->part_typical_ns[part] < PART_SAID * s->latency.mean_ns)
		return;
	fprintf(p->to, "%-15s %9s %8.1f%% %9s %9s ", lull_request_part_word(part),
		time_of(s->part_mean_ns[part], &n[0]),
		100 * s->part_mean_ns[part] / s->latency.mean_ns,
		time_of(s->part_typical_ns[part], &n[1]), time_of(s->part_slow_ns[part], &n[2]));
	if (s->first_token.n)
		fprintf(p->to, "%9s ", time_of(s->part_prefill_ns[part], &n[3]));
	fprintf(p->to, " %s\n", lull_request_part_brief(part));
}

static void put_parts(const struct printer *p, const struct lull_requests_answer *a)
{
	if (!a->requests.has_work) {
		say(p, 0,
		    "No thread said which request it works for, so what their time goes to is "
		    "not known.");
		return;
	}
	fprintf(p->to, "\n%-15s %9s %9s %9s %9s%s\n", "of it", "average", "share", "typical",
		"slowest", a->summary.first_token.n ? "   prefill" : "");
	for (u32 part = 0; part < LULL_N_REQUEST_PARTS; part++)
		put_part(p, &a->summary, part);
	say(p, 0, "Typical: the %zu between the quartiles; slowest: the slowest %zu%s.",
	    a->summary.n_typical, a->summary.n_slow,
	    a->summary.first_token.n ? "; prefill: until the first token, on average" : "");
}

/* "17 (412 ms, at 3.250000 s)" */
static void add_request(struct lull_str *to, const struct lull_requests_answer *a, u32 ix)
{
	const struct lull_one_request *one = lull_vec_get(&a->requests.all, ix);

	lull_str_addf(to, "%llu (%s, at %.6f s)", (unsigned long long)one->id,
		      lull_format_ns(lull_request_ns(one)).text,
		      (f64)one->start_ns / LULL_NS_PER_S);
}

/* What one that waits has waited in, if that is one call. */
static void say_call(const struct printer *p, const struct lull_requests_answer *a,
		     const struct lull_one_request *one)
{
	if (one->call && one->call_ns >= one->part_ns[LULL_PART_OF_WAIT] / 2)
		say(p, 2, "The slow one spends %s in one call of %s().",
		    lull_format_ns(one->call_ns).text,
		    lull_reader_string(a->reader, one->call, NULL));
}

static void say_place(const struct printer *p, const struct lull_requests_answer *a,
		      const struct lull_tail_cause *c)
{
	struct lull_str s = LULL_STR_INIT;

	add_place(&s, a, c->frame);
	say(p, 2, "%u of %u samples %s: %s.", c->n_there, c->n_samples,
	    c->part == LULL_PART_OF_LOCK ? "of the thread that has it" : "there",
	    lull_str_text(&s));
	lull_str_release(&s);
}

/* Those that are slow because others are. */
static void say_behind(const struct printer *p, const struct lull_requests_answer *a,
		       const struct lull_tail_cause *c)
{
	struct lull_number ns;

	if (c->n_behind)
		say(p, 2, "%u more of the %zu wait%s behind these, for %s%s%s.", c->n_behind,
		    a->tail.n_slow, c->n_behind == 1 ? "s" : "", time_of(c->behind_ns, &ns),
		    each(c->n_behind), c->is_on_thread ? ": they need the same thread" : "");
}

static void say_cause(const struct printer *p, const struct lull_requests_answer *a,
		      const struct lull_tail_cause *c, bool is_first)
{
	struct lull_str s = LULL_STR_INIT;
	struct lull_number extra, p99;

	say(p, 0, "%s%s: %u of the %zu, %s%s.",
	    is_first ? "They are slow because " : "Then: ", lull_request_tail_title(&a->tail, c),
	    c->n_slow, a->tail.n_slow, time_of(c->extra_ns, &extra), each(c->n_slow));
	say_behind(p, a, c);
	if (c->frame && c->n_there >= LEAST_SAMPLES && c->n_there * 2 > c->n_samples)
		say_place(p, a, c);
	add_request(&s, a, c->example);
	lull_str_puts(&s, "; a typical one: ");
	add_request(&s, a, a->tail.usual);
	if (c->part == LULL_PART_OF_QUEUE && c->n_open <= 0)
		say(p, 2, "No other request was open when these arrived.");
	else if (c->part == LULL_PART_OF_QUEUE || c->part == LULL_PART_OF_OTHERS ||
		 c->n_open >= a->tail.n_open + 2)
		say(p, 2, "When these arrived, %.2g requests were open on average; otherwise %.2g.",
		    c->n_open, a->tail.n_open);
	say(p, 2, "Example: %s %s.", noun(a), lull_str_text(&s));
	if (c->part == LULL_PART_OF_WAIT)
		say_call(p, a, lull_vec_get(&a->requests.all, c->example));
	lull_str_release(&s);
	say(p, 2, "Fix: %s. p99 without it: %s.", lull_request_tail_fix(&a->tail, c),
	    time_of((f64)c->p99_ns, &p99));
}

/* What has no cause, and what the slowest of it has most of. */
static void say_rest(const struct printer *p, const struct lull_requests_answer *a)
{
	const struct lull_request_tail *t = &a->tail;
	struct lull_str s = LULL_STR_INIT;

	lull_str_addf(&s, "%zu %s no cause that passes the test", t->n_unexplained,
		      t->n_unexplained == 1 ? "has" : "have");
	if (t->rest_part >= 0 && a->requests.has_work) {
		lull_str_addf(&s, "%s %s ", t->n_unexplained == 1 ? ":" : "; the slowest is",
			      noun(a));
		add_request(&s, a, t->rest);
		lull_str_addf(&s, ", with %s more of %s (%s) than the median",
			      lull_format_ns(t->rest_ns).text,
			      lull_request_part_word((enum lull_request_part)t->rest_part),
			      lull_request_part_brief((enum lull_request_part)t->rest_part));
	}
	say(p, 0, "%s.", lull_str_text(&s));
	lull_str_release(&s);
}

static void say_tail(const struct printer *p, const struct lull_requests_answer *a)
{
	const struct lull_request_tail *t = &a->tail;
	const struct lull_tail_cause *c = t->causes.at;

	fputc('\n', p->to);
	if (!t->is_known) {
		say(p, 0, "Too few %ss to say why some are slow: %u are needed.", noun(a),
		    LULL_TAIL_MIN);
		return;
	}
	if (!t->n_slow) {
		say(p, 0, "None takes more than %.1f times the median.", LULL_SLOW_FACTOR);
		return;
	}
	say(p, 0, "%zu %s%s (%.1f %%) %s more than %.1f times the median.", t->n_slow, noun(a),
	    plural(t->n_slow), 100.0 * (f64)t->n_slow / (f64)a->requests.all.n,
	    t->n_slow == 1 ? "takes" : "take", LULL_SLOW_FACTOR);
	for (size_t i = 0; i < t->causes.n && a->requests.has_work; i++)
		say_cause(p, a, &c[i], !i);
	if (t->n_unexplained)
		say_rest(p, a);
}

static void say_limit(const struct printer *p, const struct lull_requests_answer *a)
{
	const struct lull_request_load *l = &a->summary.load;

	f64 share = l->is_device ? l->busy_share : l->thread_share;

	if (l->limit_hz <= 0 || l->rate_hz <= 0 || share < LIMIT_SAID)
		return;
	fputc('\n', p->to);
	say(p, 0, "Served as now, %s is busy all the time at %s requests a second.",
	    l->is_device ? "the GPU" : "the busiest thread", rate_of(l->limit_hz).text);
}

/* "900 us and 4.00 ms" */
static const char *both_of(const struct lull_replayed *r, struct lull_str *to)
{
	struct lull_number n[2];

	to->len = 0;
	lull_str_addf(to, "%s and %s", time_of((f64)r->p50_ns, &n[0]),
		      time_of((f64)r->p99_ns, &n[1]));
	return lull_str_text(to);
}

static void say_replay(const struct printer *p, const struct lull_requests_answer *a)
{
	const struct lull_load_replay *r = &a->replay;
	struct lull_str s = LULL_STR_INIT;

	if (!r->is_known) {
		if (a->tail.is_known && a->requests.has_work && r->wait_share < LULL_REPLAY_WAIT)
			say(p, 0,
			    "A second replica or batches would bring nothing now: requests wait "
			    "for "
			    "their turn %.1f %% of their time.",
			    100 * r->wait_share);
		return;
	}
	say(p, 0,
	    "Replayed with these arrivals and service times, %u at a time, p50 and p99 are %s.",
	    r->n_servers, both_of(&r->now, &s));
	say(p, 2, "With a second replica: %s.", both_of(&r->replica, &s));
	say(p, 2, "With batches of up to %u, if one takes as long as its longest request: %s.",
	    LULL_REPLAY_BATCH, both_of(&r->batches, &s));
	say(p, 2, "With twice the load: %s.", both_of(&r->more, &s));
	lull_str_release(&s);
}

static void put_intervals(const struct printer *p, const struct lull_requests_answer *a)
{
	const struct lull_request_interval *at = a->intervals.at;

	if (!a->intervals.n)
		return;
	fprintf(p->to, "\n%11s %9s %9s %9s %9s %9s\n", "from (s)", "arrivals", "open", "waiting",
		"p50", "max");
	for (size_t i = 0; i < a->intervals.n; i++) {
		struct lull_number n[2];

		fprintf(p->to, "%11.6f %9u %9.2f %9.2f %9s %9s\n",
			(f64)at[i].from_ns / LULL_NS_PER_S, at[i].n_arrived, at[i].n_open,
			at[i].n_waiting, at[i].n_arrived ? time_of((f64)at[i].p50_ns, &n[0]) : "",
			at[i].n_arrived ? time_of((f64)at[i].max_ns, &n[1]) : "");
	}
}

void lull_requests_print(FILE *to, const struct lull_requests_answer *a, int width)
{
	const struct printer p = { to, width };

	say_load(&p, a);
	say_left_out(&p, &a->requests);
	put_latency(&p, a);
	put_parts(&p, a);
	say_tail(&p, a);
	put_intervals(&p, a);
	/* A loop waits for nobody: more of them come only if each takes less. */
	if (a->requests.rounds)
		return;
	say_limit(&p, a);
	say_replay(&p, a);
}
