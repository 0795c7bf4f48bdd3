/*
 * input-pipeline: the launching thread loads data, or waits for the thread or process that does.
 *
 * Signal:  in a gap of at least 150 us the thread is inside a range or function that loads; or the
 *          program's own time in the gap leads to a copy of at least 4 KiB to the device, and no
 *          range of another name covers it: the program prepared the batch there.
 * Not it:  code in a range with another name, although a copy follows it; work on a result that the
 *          device just gave, such as an environment that acts; gaps shorter than 150 us;
 *          loading while the device has work queued.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cause/cause.h"
#include "cause/children.h"
#include "cause/evidence.h"
#include "cause/gaps.h"
#include "cause/replay/replay.h"
#include "cause/thresholds.h"
#include "cause/workers.h"
#include "model/thread/doing.h"

static bool claim(const struct lull_claim *c)
{
	if (c->place != LULL_PLACE_GAP || c->gap_ns < LULL_TN(gap_long_ns))
		return false;
	if (c->inside & LULL_IN_LOADER)
		return true;
	return c->is_own && !(c->inside & LULL_IN_NAMED) && c->leads_in && !c->answers;
}

/* For which share of the steady steps other threads and processes of the program work. */
static f64 others_share(const struct lull_subject *s)
{
	u64 from_ns = lull_round_begin_ns(&s->rounds, s->rounds.first_steady);

	return s->window_ns ? (f64)lull_others_ns(&s->others, from_ns, from_ns + s->window_ns) /
				      (f64)s->window_ns
			    : 0;
}

/* How a step loads, and with how many workers it would. */
struct loading {
	struct lull_workers workers;
	f64 work_ns; /* of a step */
	f64 rest_ns; /* of the step without it */
	bool waits;  /* the thread waits for somebody who loads */
	bool asks;   /* the thread waits for another program or machine: that takes no CPU */
	bool paced;  /* the thread waits for one that sleeps or waits itself, once a step */
};

/* Loading of the replayed steps, also while the device has work; whether most is waiting. */
static void add_up(const struct lull_replay *p, struct loading *l)
{
	const struct lull_subject *s = p->subject;
	const struct lull_replay_node *nodes = p->nodes.at;
	const struct lull_slice *at = s->slices.at;
	const struct lull_host_event *events = s->host.events.at;
	f64 sum = 0, waited = 0, asked = 0;

	for (size_t i = 0; i < p->nodes.n; i++) {
		u32 ix = nodes[i].node;

		for (size_t k = s->chain.nodes[ix].slice;
		     k != LULL_NONE && k < s->slices.n && at[k].node == ix; k++) {
			f64 ns = (f64)(at[k].to_ns - at[k].from_ns);
			u32 inside;

			if (at[k].cause != LULL_CAUSE_IX_input_pipeline)
				continue;
			sum += ns;
			inside = at[k].event == LULL_NONE ? 0 : events[at[k].event].inside;
			waited += inside & (LULL_IN_WAIT | LULL_IN_READ) ? ns : 0;
			asked += inside & LULL_IN_SOCKET ? ns : 0;
		}
	}
	l->work_ns = sum / p->n_rounds;
	l->rest_ns = lull_replay_rest_ns(p, l->work_ns);
	l->waits = waited * 2 > sum;
	l->asks = asked * 2 > sum;
	l->paced = l->waits && !l->asks && s->giver.lane;
	/* Workers that cannot keep up work all the time, not only while the thread waits. */
	if (l->paced)
		l->work_ns = fmax(l->work_ns, p->measured_ns);
	else if (l->waits && !l->asks)
		l->work_ns = fmax(l->work_ns, fmax(lull_children_find(s).at_once, others_share(s)) *
						      p->measured_ns);
	/* Recording slowed them as it did the thread. */
	l->work_ns *= p->host_part;
}

static void take_out(struct lull_what_if *w)
{
	for (u32 i = 0; i < w->n; i++) {
		lull_what_if_drop_slices(w, i, LULL_CAUSE_IX_input_pipeline);
		/* In the worst case the copies stay as they are. */
		if (w->scenario > 0)
			continue;
		if ((w->nodes[i].flags & LULL_NODE_PAGED) && !(w->nodes[i].flags & LULL_NODE_OUT))
			lull_what_if_pin(w, i);
		if (w->nodes[i].flags & LULL_NODE_OWNED)
			lull_what_if_remove(w, i);
	}
}

/* The workers that keep up with the rest of the step: more bring nothing. */
static struct loading find_loading(const struct lull_replay *p)
{
	struct loading l = { .work_ns = 0 };

	add_up(p, &l);
	l.workers = lull_workers_for(p->subject, l.work_ns, l.rest_ns, !l.asks && !l.paced);
	return l;
}

/* Whether the thread's own code goes over items one by one: with arrays it takes a small part. */
static bool is_one_by_one(const struct lull_subject *s, const struct loading *l)
{
	return !l->waits && lull_samples_interpreted(s, LULL_CAUSE_IX_input_pipeline);
}

/*
 * Whether loading is too much for the workers that there are CPUs for: it goes over items one by
 * one, or as many workers bring next to nothing. Then it has to take less, and only the rest of the
 * step is left.
 */
static bool is_cheaper(const struct lull_replay *p, const struct loading *l)
{
	if (l->workers.n)
		return false;
	return is_one_by_one(p->subject, l) || lull_workers_are_few(&l->workers, p);
}

static void apply(struct lull_what_if *w)
{
	struct loading l = find_loading(w->replay);

	take_out(w);
	if (w->scenario <= 0 && is_cheaper(w->replay, &l))
		return;
	w->floor_ns = lull_workers_step_ns(&l.workers, w->scenario);
	/* A timer or a device may give no more than now. */
	if (l.paced && w->scenario > 0)
		w->floor_ns = l.work_ns;
	w->is_told = true;
}

/* Workers are only half of the fix if most of the step after it is still what they take. */
static void add_cheaper(const struct lull_why *why, const struct loading *l,
			struct lull_advice *advice)
{
	u32 n = lull_workers_n(&l->workers);
	f64 step_ns = fmin(lull_workers_step_ns(&l->workers, 0), why->replay.free_ns);
	size_t len = strlen(advice->fix);

	if (l->rest_ns * 2 > step_ns)
		return;
	snprintf(advice->fix + len, sizeof(advice->fix) - len,
		 "; and make each item cheaper: %u worker%s would still take %s for a step", n,
		 n == 1 ? "" : "s", lull_why_time(step_ns).text);
}

/* What to do, by the workers it takes. */
static void suit(const struct lull_why *why, bool is_torch, struct lull_advice *advice)
{
	struct loading l;
	u32 n;

	if (!why->has_replay)
		return;
	l = find_loading(&why->replay);
	n = lull_workers_n(&l.workers);
	if (l.waits && is_cheaper(&why->replay, &l)) {
		snprintf(advice->assumes, sizeof(advice->assumes),
			 "an item then takes less than the rest of the step");
		return;
	}
	if (l.paced) {
		snprintf(advice->assumes, sizeof(advice->assumes), "%s",
			 why->lead->giver.is_sleep ? "the thread that hands over need not sleep"
						   : "what that thread waits for can come faster");
		return;
	}
	if (l.asks) {
		snprintf(advice->assumes, sizeof(advice->assumes), "%s",
			 n > 1 ? "the other side answers several requests at once"
			       : "the other side answers as fast as now");
		return;
	}
	if (is_cheaper(&why->replay, &l)) {
		snprintf(advice->fix, sizeof(advice->fix),
			 "%s: %u worker%s would leave a step of %s",
			 is_one_by_one(why->lead, &l)
				 ? "prepare the whole batch with array operations, or on the device"
				 : "make each item cheaper (decode less, decode on the device, "
				   "store it as it is used)",
			 n, n == 1 ? "" : "s",
			 lull_why_time(
				 fmin(lull_workers_step_ns(&l.workers, 0), why->replay.free_ns))
				 .text);
		snprintf(advice->assumes, sizeof(advice->assumes),
			 "it then takes less than the rest of the step");
		return;
	}
	if (is_torch && l.workers.spare)
		snprintf(advice->fix, sizeof(advice->fix),
			 "DataLoader(num_workers=%u, pin_memory=True) and .to(device, "
			 "non_blocking=True)",
			 n);
	if (!l.waits && !l.workers.n)
		add_cheaper(why, &l, advice);
	if (n > 1)
		snprintf(advice->assumes, sizeof(advice->assumes),
			 "each of the %u workers has a CPU to itself", n);
}

/* What to do about who loads, where the thread waits. */
static void advise_waits(const struct lull_why *why, struct lull_finding *f)
{
	struct loading l;

	lull_advise_others(why, f);
	if (!why->has_replay)
		return;
	l = find_loading(&why->replay);
	if (l.asks && !lull_subject_is_torch(why->lead))
		snprintf(f->advice.fix, sizeof(f->advice.fix),
			 "ask for the next batch in another thread while the device computes, for "
			 "several things at once, and keep in memory what is asked for again");
	else if (l.waits && is_cheaper(&why->replay, &l))
		snprintf(f->advice.fix, sizeof(f->advice.fix),
			 "make each item cheaper: decode less, decode on the device, cache, read "
			 "from faster storage; for more threads or processes the %u CPUs of this "
			 "machine are too few",
			 why->lead->n_cpus);
}

/* Who loads instead, or that nobody does. */
static void prove(struct lull_why *why, struct lull_finding *f)
{
	size_t n;
	const struct lull_process_row *processes =
		lull_reader_dim(why->reader, LULL_TABLE_process, &n);
	bool waits = lull_finding_waits(why, f);
	struct lull_children c = lull_children_find(why->lead);

	if (!processes[why->lead->process - 1].has_agent)
		return;
	if (waits)
		advise_waits(why, f);
	/* Threads that live for less than the time between two samples have none. */
	if (waits &&
	    (lull_show_producer(why, f) || lull_show_runner(why, f) || lull_show_giver(why, f)))
		return;
	if (lull_show_children(why, f))
		return;
	if (c.n)
		lull_show(f, "process", NULL, "%u child process%s not keep up", c.n,
			  c.n == 1 ? "; if it loads data, it does" : "es; those that load data do");
	else if (!waits && !lull_show_producer(why, f))
		lull_show(f, "process", NULL, "the program has no other process to load data");
}

const struct lull_cause lull_cause_input_pipeline = {
	.id = "input-pipeline",
	.title = "the launching thread loads data, or waits for it",
	.because = "the launching thread prepares the batch itself or waits for it",
	.why = "A loader in the launching thread (num_workers=0), or workers that cannot keep up, "
	       "leave the device idle at the start of each step. Counted: gaps of at least 150 "
	       "us in which the thread is inside a range or function with a name of loading "
	       "(dataloader, collate, decode, __getitem__, ...), or in which its own work leads "
	       "to a copy of at least 4 KiB to the device outside of any range with another "
	       "name, unless it starts from a result of at least 64 bytes that the device just "
	       "gave. The prediction moves loading to other processes and pins its copies. It "
	       "uses as many workers as it takes to keep up with the rest of the step, each as "
	       "fast as the thread (in Python 0.7 times), but fewer than the machine has CPUs, "
	       "unless the time goes to waits for another program or machine. Where CPUs "
	       "are too few, and the thread runs Python over items one by one, or as many "
	       "workers would gain next to nothing, it takes loading as made cheaper, and the "
	       "rest of the step is left; how long the workers would take is then the upper end "
	       "of the range. Where no thread works meanwhile, and the waits end when another "
	       "thread has slept or got data from elsewhere, it takes that one to keep up with "
	       "the rest of the step; the upper end is that it cannot, as a timer or a device.",
	.fix = "prepare the next batch in another thread or process, in pinned memory, while the "
	       "device computes, and copy it with cudaMemcpyAsync()",
	.fix_torch = "a DataLoader with workers (num_workers) and pin_memory=True, and "
		     ".to(device, non_blocking=True)",
	.fix_more = "let more threads or processes prepare batches, or make each item cheaper: "
		    "decode less, decode on the device, cache, read from faster storage",
	.fix_more_torch = "let more workers prepare batches (num_workers of a DataLoader), or make "
			  "each item cheaper: decode less, decode on the GPU (NVIDIA DALI), cache, "
			  "read from faster storage",
	.assumes = "one worker has a CPU to itself",
	.kind = LULL_CAUSE_SPECIFIC,
	.family = LULL_FAMILY_DATA,
	.is_ceiling = true,
	.moves = true,
	.needs = LULL_NEED_WORK | LULL_NEED_CALLS,
	.claims_at = LULL_AT(GAP),
	.claim = claim,
	.suit = suit,
	.apply = apply,
	.prove = prove,
};
