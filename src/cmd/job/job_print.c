#include "cmd/job/job_print.h"

#include <stdlib.h>
#include <string.h>

#include "base/convert.h"
#include "base/mem.h"
#include "text/out.h"
#include "base/str.h"
#include "text/term.h"
#include "job/heat.h"

/* Late ranks, and kinds of collectives, that are named. */
#define MAX_STRAGGLERS 4
#define MAX_KINDS      6
/* Rows of the picture. */
#define MAX_ROWS 24
/* Room left of it. */
#define HEAD_COLUMNS 16

struct printer {
	FILE *to;
	int width;
};

/* A paragraph, indented and wrapped. */
#define say(p, indent, ...) lull_term_say((p)->to, indent, (p)->width, __VA_ARGS__)

int lull_job_status(const struct lull_job *job, int rc)
{
	/* A launcher ends all processes when one fails, and then the reason would be lost. */
	return lull_team_speaks(&job->team) ? rc : LULL_OK;
}

void lull_job_print_notes(FILE *to, const struct lull_job *job, int width)
{
	struct printer p = { to, width };
	char *const *notes = job->notes.at;

	for (size_t i = 0; i < job->notes.n; i++)
		say(&p, 0, "%s", notes[i]);
}

void lull_job_print_clocks(FILE *to, const struct lull_job *job, int width)
{
	struct printer p = { to, width };

	switch (job->clocks) {
	case LULL_CLOCKS_SAME:
		say(&p, 0, "All ranks are on one host and share its clock.");
		break;
	case LULL_CLOCKS_FITTED:
		say(&p, 0,
		    "%u clocks fitted on collectives: offsets are known to %.1f us, and certain to "
		    "%.1f us; single collectives scatter by %.1f us.",
		    job->n_domains, job->error_ns / 1e3, job->bound_ns / 1e3,
		    job->residual_ns / 1e3);
		if (job->n_checked)
			say(&p, 0,
			    "Ranks of one host share a clock, and the fits of %u of them are off "
			    "by "
			    "%.1f us at worst.",
			    job->n_checked, job->off_ns / 1e3);
		break;
	default:
		say(&p, 0, "Clocks are not aligned: %s.%s", job->clocks_why,
		    job->clocks == LULL_CLOCKS_DURATIONS ? " Which rank waits is derived from how "
							   "long collectives last on each rank."
							 : "");
	}
}

/* ---- late ranks ---- */

static void rank_name(const struct lull_job_rank *rank, char *to, size_t cap)
{
	snprintf(to, cap, "%lld%s%.63s%s", (long long)rank->rank, *rank->host ? " (" : "",
		 rank->host, *rank->host ? ")" : "");
}

static void straggler(const struct printer *p, const struct lull_job *job,
		      const struct lull_job_straggler *s)
{
	const struct lull_job_rank *rank = lull_vec_get(&job->ranks, s->rank_ix);
	char name[96], since[48] = "in every step";

	rank_name(rank, name, sizeof(name));
	if (!s->is_always)
		snprintf(since, sizeof(since), "since step %u", s->since);
	say(p, 2, "rank %s: %.2f ms after the others %s (%.0f %% of the steps)", name,
	    s->late_ns / 1e6, since, s->share * 100);
	if (s->cause < 0) {
		say(p, 4, "its own cause is not known: lull why %s/%s", job->folder, rank->file);
		return;
	}
	say(p, 4, "its own cause: %s, %.2f ms/step more than on other ranks",
	    lull_causes[s->cause]->id, s->excess_ns / 1e6);
	if (*s->evidence)
		say(p, 6, "%s", s->evidence);
}

static void stragglers(const struct printer *p, const struct lull_job *job)
{
	const struct lull_job_straggler *all = job->stragglers.at;

	for (size_t i = 0; i < job->stragglers.n && i < MAX_STRAGGLERS; i++)
		straggler(p, job, &all[i]);
	if (job->stragglers.n > MAX_STRAGGLERS)
		say(p, 2, "and %zu more", job->stragglers.n - MAX_STRAGGLERS);
	if (job->stragglers.n)
		say(p, 2, "Fix: %s",
		    lull_job_fix(job, lull_vec_get(&job->ranks, all->rank_ix),
				 all->cause >= 0 ? all->cause
						 : (int)lull_cause_among_ranks(LULL_RANKS_LATE)));
}

/* ---- the other causes of a job ---- */

static void stages(const struct printer *p, const struct lull_job *job)
{
	const struct lull_job_stage *all = job->stages.at;

	for (size_t i = 0; i < job->stages.n; i++)
		say(p, 2,
		    "stage %zu, %u rank%s: computes %.2f ms/step (%.0f %%), waits %.2f ms in "
		    "sends and receives",
		    i, all[i].n, all[i].n == 1 ? "" : "s", all[i].compute_ns / 1e6,
		    all[i].share * 100, all[i].bubble_ns / 1e6);
}

static size_t busiest_stage(const struct lull_job *job)
{
	const struct lull_job_stage *all = job->stages.at;
	size_t best = 0;

	for (size_t i = 1; i < job->stages.n; i++)
		best = all[i].compute_ns > all[best].compute_ns ? i : best;
	return best;
}

static void exposed(const struct printer *p, const struct lull_job *job)
{
	const struct lull_job_verdict *v = &job->verdict;
	const struct lull_job_kind *all = job->kinds.at, *most = all;

	for (size_t i = 0; i < job->kinds.n; i++)
		most = all[i].exposed_ns > most->exposed_ns ? &all[i] : most;
	say(p, 2, "transfers take %.2f ms/step with nothing else running",
	    v->transfer * v->mean_ns / 1e6);
	if (job->kinds.n && most->dur_ns && most->size_bytes)
		say(p, 2, "most of it is %s of less than %s: %.0f %% of its time is not hidden",
		    most->name, lull_format_bytes(1ULL << most->size_class).text,
		    (f64)most->exposed_ns / (f64)most->dur_ns * 100);
	else if (job->kinds.n && most->dur_ns)
		say(p, 2, "most of it is %s: %.0f %% of its time is not hidden", most->name,
		    (f64)most->exposed_ns / (f64)most->dur_ns * 100);
	if (!job->n_met)
		say(p, 2,
		    "how much of that is waiting is not known: no collective is in two reports");
	if (!job->stragglers.n && !job->stages.n && v->wait > 0.01)
		say(p, 2,
		    "waiting for the last to arrive takes %.2f ms/step more, and that is another "
		    "rank each time",
		    v->wait * v->mean_ns / 1e6);
}

/* What the first cause is among the ranks. */
static enum lull_among_ranks ranks_of(const struct lull_job_verdict *v)
{
	return v->cause < 0 ? LULL_RANKS_NOTHING : lull_causes[v->cause]->ranks;
}

/* There is no answer: what is likely, if anything is, or why. */
static void say_likely(const struct printer *p, const struct lull_job_verdict *v)
{
	if (v->likely < 0) {
		say(p, 0, "Cannot tell what delays the job: %s.", v->why_not);
		return;
	}
	say(p, 0, "Probably %s: %s, %.2f ms of each step of %.2f ms (%.0f %%).",
	    lull_causes[v->likely]->id, lull_causes[v->likely]->title, v->likely_ns / 1e6,
	    v->mean_ns / 1e6, v->likely_ns / v->mean_ns * 100);
	say(p, 2, "Not sure: %s.", v->why_not);
	say(p, 2, "To be sure: lull why of one report says what to record.");
}

static void headline(const struct printer *p, const struct lull_job *job)
{
	const struct lull_job_verdict *v = &job->verdict;
	const struct lull_job_straggler *late = job->stragglers.at;
	char name[96];

	if (v->cause < 0) {
		say_likely(p, v);
	} else if (ranks_of(v) == LULL_RANKS_LATE) {
		rank_name(lull_vec_get(&job->ranks, late->rank_ix), name, sizeof(name));
		say(p, 0,
		    "Rank %s delays the job: the others wait for it %.2f ms of each step of %.2f "
		    "ms "
		    "(%.0f %%).",
		    name, v->cost_ns / 1e6, v->mean_ns / 1e6, v->cost_ns / v->mean_ns * 100);
	} else if (ranks_of(v) == LULL_RANKS_STAGE) {
		say(p, 0,
		    "Stage %zu of the pipeline has more to do than the others, which wait %.2f ms "
		    "of "
		    "each step of %.2f ms (%.0f %%).",
		    busiest_stage(job), v->cost_ns / 1e6, v->mean_ns / 1e6,
		    v->cost_ns / v->mean_ns * 100);
	} else if (ranks_of(v) == LULL_RANKS_EXCHANGE) {
		say(p, 0, "%s: %.2f ms of each step of %.2f ms (%.0f %%).",
		    v->hidden >= LULL_JOB_OVERLAPS
			    ? "Ranks exchange more than their computing hides"
			    : "Ranks exchange data while nothing computes",
		    v->cost_ns / 1e6, v->mean_ns / 1e6, v->cost_ns / v->mean_ns * 100);
	} else if (lull_causes[v->cause]->kind == LULL_CAUSE_BUSY) {
		say(p, 0, "The ranks compute %.0f %% of each step of %.2f ms: %s.",
		    v->compute * 100, v->mean_ns / 1e6, lull_causes[v->cause]->because);
	} else {
		say(p, 0,
		    "No rank delays the others. Each loses %.2f ms of a step of %.2f ms "
		    "because %s.",
		    v->cost_ns / 1e6, v->mean_ns / 1e6, lull_causes[v->cause]->because);
	}
}

static void cause(const struct printer *p, const struct lull_job *job)
{
	const struct lull_job_verdict *v = &job->verdict;
	const struct lull_job_rank *all = job->ranks.at;

	if (v->cause < 0)
		return;
	if (v->cost_ns > 0)
		say(p, 2, "%s: %.2f ms/step", lull_causes[v->cause]->id, v->cost_ns / 1e6);
	else
		say(p, 2, "%s", lull_causes[v->cause]->id);
	if (ranks_of(v) == LULL_RANKS_LATE) {
		stragglers(p, job);
		return;
	}
	if (ranks_of(v) == LULL_RANKS_STAGE)
		stages(p, job);
	else if (ranks_of(v) == LULL_RANKS_EXCHANGE)
		exposed(p, job);
	else
		for (size_t i = 0; i < job->ranks.n; i++)
			if (all[i].first == v->cause && *all[i].evidence[0].text) {
				say(p, 4, "rank %lld: %s", (long long)all[i].rank,
				    all[i].evidence[0].text);
				break;
			}
	say(p, 2, "Fix: %s",
	    ranks_of(v) == LULL_RANKS_EXCHANGE && v->hidden >= LULL_JOB_OVERLAPS
		    ? "it overlaps already: fewer bytes (gradients in 16 bits, several batches for "
		      "one exchange), a larger batch, or a faster network"
		    : lull_job_fix(job, NULL, v->cause));
	if (job->stragglers.n) {
		say(p, 0, "Besides, others wait for late ranks %.2f ms/step:",
		    v->wait * v->mean_ns / 1e6);
		stragglers(p, job);
	}
}

/* ---- ranks ---- */

/* 0-16, 18-63 */
static void rank_list(const struct lull_job *job, u32 group, struct lull_str *to)
{
	const struct lull_job_rank *all = job->ranks.at;
	size_t n_said = 0;

	for (size_t i = 0; i < job->ranks.n; i++) {
		size_t end = i;

		if (all[i].group != group)
			continue;
		while (end + 1 < job->ranks.n && all[end + 1].group == group &&
		       all[end + 1].rank == all[end].rank + 1)
			end++;
		if (n_said++ == 6) {
			lull_str_puts(to, ", ...");
			return;
		}
		lull_str_addf(to, "%s%lld", n_said > 1 ? ", " : "", (long long)all[i].rank);
		if (end > i)
			lull_str_addf(to, "%s%lld", end > i + 1 ? "-" : ", ",
				      (long long)all[end].rank);
		i = end;
	}
}

static void part(struct lull_str *to, const char *what, f64 share)
{
	if (share >= 0.005)
		lull_str_addf(to, ", %s %.0f %%", what, share * 100);
}

static void groups(const struct printer *p, const struct lull_job *job)
{
	const struct lull_job_group *all = job->groups.at;

	for (size_t i = 0; i < job->groups.n; i++) {
		struct lull_str text = LULL_STR_INIT;

		lull_str_addf(&text, "%u rank%s%s (", all[i].n, all[i].n == 1 ? "" : "s",
			      all[i].is_late ? " that others wait for" : "");
		rank_list(job, (u32)i, &text);
		lull_str_addf(&text, "): computing %.0f %%", all[i].compute * 100);
		part(&text, "waiting", all[i].wait);
		part(&text, "moving bytes", all[i].transfer);
		part(&text, "in sends and receives", all[i].bubble);
		part(&text, "copying", all[i].copy);
		part(&text, "idle", all[i].idle);
		say(p, 2, "%s", lull_str_text(&text));
		lull_str_release(&text);
	}
}

static int kinds(const struct printer *p, const struct lull_job *job, bool has_all)
{
	static const struct lull_out_column columns[] = {
		{ .name = "Operation", .kind = LULL_OUT_TEXT },
		{ .name = "Ranks", .kind = LULL_OUT_ID },
		{ .name = "Below", .kind = LULL_OUT_BYTES },
		{ .name = "Lasts", .kind = LULL_OUT_NS, .decimals = 1 },
		{ .name = "Waits", .kind = LULL_OUT_PERCENT },
		{ .name = "Hidden", .kind = LULL_OUT_PERCENT },
		{ .name = "GB/s", .kind = LULL_OUT_FLOAT, .decimals = 1 },
		{ .name = "Bus GB/s", .kind = LULL_OUT_FLOAT, .decimals = 1 },
	};
	struct lull_out_options options = LULL_OUT_OPTIONS_INIT;
	const struct lull_job_kind *all = job->kinds.at;
	struct lull_err err;
	struct lull_out out;
	int rc;

	lull_out_init(&out, columns, LULL_COUNT_OF(columns));
	for (size_t i = 0; i < job->kinds.n && (has_all || i < MAX_KINDS); i++) {
		f64 dur = all[i].dur_ns ? (f64)all[i].dur_ns : 1;

		lull_out_row(&out);
		lull_out_text(&out, all[i].name);
		if (all[i].n_ranks)
			lull_out_i64(&out, all[i].n_ranks);
		else
			lull_out_skip(&out);
		if (all[i].size_bytes)
			lull_out_i64(&out, (i64)(1ULL << all[i].size_class));
		else
			lull_out_skip(&out);
		lull_out_f64(&out, (f64)all[i].dur_ns / (f64)(all[i].n ? all[i].n : 1));
		lull_out_f64(&out, (f64)all[i].wait_ns / dur * 100);
		lull_out_f64(&out, (1 - (f64)all[i].exposed_ns / dur) * 100);
		if (all[i].timed_bytes) {
			lull_out_f64(&out, lull_job_algorithm_bandwidth(&all[i]));
			lull_out_f64(&out, lull_job_bus_bandwidth(&all[i]));
		}
	}
	options.is_human = true;
	options.width = p->width;
	rc = lull_out_len(&out) ? lull_out_write(&out, &options, p->to, &err) : LULL_OK;
	lull_out_release(&out);
	return rc;
}

/* The groups that exchange data, if there are several kinds of them. */
static void comms(const struct printer *p, const struct lull_job *job)
{
	const struct lull_job_comm_kind *all = job->comms.at;

	for (size_t i = 0; job->comms.n > 1 && i < job->comms.n; i++) {
		struct lull_str text = LULL_STR_INIT;

		if (all[i].n_comms > 1)
			lull_str_addf(&text, "%u groups of %u (such as ", all[i].n_comms,
				      all[i].n_ranks);
		else
			lull_str_addf(&text, "group of %u (", all[i].n_ranks);
		lull_job_comm_members(&all[i], &text);
		lull_str_puts(&text, "): ");
		lull_job_comm_ops(&all[i], &text);
		if (all[i].role) {
			lull_str_puts(&text, " (");
			lull_job_comm_role(&all[i], &text);
			lull_str_puts(&text, ")");
		}
		say(p, 2, "%s", lull_str_text(&text));
		lull_str_release(&text);
	}
}

/* ---- the picture ---- */

static char shade_of(f64 ns, f64 most_ns)
{
	static const char shades[] = " .:-=+*#%@";

	u64 shade = lull_u64_of(ns / most_ns * (sizeof(shades) - 2) + 0.5);

	if (ns < 0)
		return '?';
	return shades[shade < sizeof(shades) - 2 ? shade : sizeof(shades) - 2];
}

/* Whether nothing is to be seen in a row. */
static bool is_blank(const struct lull_heat *h, u32 row, f64 most_ns)
{
	for (u32 c = 0; c < h->n_columns; c++)
		if (shade_of(h->ns[(size_t)row * h->n_columns + c], most_ns) != ' ')
			return false;
	return true;
}

static void heat(const struct printer *p, const struct lull_job *job)
{
	const struct lull_job_rank *all = job->ranks.at;
	struct lull_heat h;
	f64 most_ns;

	lull_heat_init(&h, job, LULL_HEAT_LATE, MAX_ROWS, (u32)(p->width - HEAD_COLUMNS - 2));
	/* Differences of less than a tenth of the step are no picture. */
	most_ns = h.most_ns > job->verdict.step_ns / 10 ? h.most_ns : job->verdict.step_ns / 10;
	if (h.n_columns && h.most_ns > 0)
		say(p, 0,
		    "How late ranks arrive, by step from %u on (@ is %s after the others%s%s):",
		    job->first_step, lull_format_ns(lull_u64_of(most_ns)).text,
		    h.ranks_a_row > 1 ? "; a line shows the latest of its ranks" : "",
		    h.steps_a_column > 1 ? "; a column is several steps" : "");
	for (u32 r = 0, end; h.most_ns > 0 && r < h.n_rows; r = end) {
		size_t first = (size_t)r * h.ranks_a_row, last;
		char name[48];

		/* Ranks with nothing to show share a line. */
		for (end = r + 1;
		     end < h.n_rows && is_blank(&h, r, most_ns) && is_blank(&h, end, most_ns);
		     end++)
			;
		last = (size_t)end * h.ranks_a_row - 1;
		last = last < job->ranks.n ? last : job->ranks.n - 1;
		snprintf(name, sizeof(name), "%lld-%lld", (long long)all[first].rank,
			 (long long)all[last].rank);
		if (first == last)
			*strchr(name, '-') = '\0';
		fprintf(p->to, "  %*s |", HEAD_COLUMNS - 5, name);
		for (u32 c = 0; c < h.n_columns; c++)
			fputc(shade_of(h.ns[(size_t)r * h.n_columns + c], most_ns), p->to);
		fputs("|\n", p->to);
	}
	lull_heat_release(&h);
}

static u32 count_hosts(const struct lull_job *job)
{
	const struct lull_job_rank *all = job->ranks.at;
	u32 n = 0;

	for (size_t i = 0; i < job->ranks.n; i++) {
		size_t k = i;

		while (k > 0 && strcmp(all[k - 1].host, all[i].host) != 0)
			k--;
		n += k == 0;
	}
	return n;
}

void lull_job_print(FILE *to, const struct lull_job *job, int width, bool has_all)
{
	struct printer p = { to, width };
	u32 n_hosts = count_hosts(job);

	lull_job_print_notes(to, job, width);
	headline(&p, job);
	cause(&p, job);
	say(&p, 0,
	    "%zu rank%s on %u host%s, %u step%s of %.2f ms on average (median "
	    "%.2f). Ranks by what they do:",
	    job->ranks.n, job->ranks.n == 1 ? "" : "s", n_hosts, n_hosts == 1 ? "" : "s",
	    job->n_steps, job->n_steps == 1 ? "" : "s", job->verdict.mean_ns / 1e6,
	    job->verdict.step_ns / 1e6);
	groups(&p, job);
	if (ranks_of(&job->verdict) != LULL_RANKS_STAGE && job->stages.n) {
		say(&p, 0, "The pipeline:");
		stages(&p, job);
	}
	if (job->kinds.n) {
		say(&p, 0, "What they exchange:");
		kinds(&p, job, has_all);
		comms(&p, job);
	}
	heat(&p, job);
	lull_job_print_clocks(to, job, width);
	if (job->thinned > 1)
		say(&p, 0, "There are too many collectives for memory: only every %uth was read.",
		    job->thinned);
	if (job->n_mismatched * 10 > job->n_met)
		say(&p, 0,
		    "%llu of %llu collectives have different sizes on different ranks: recordings "
		    "may have started at different steps, and waiting times may be wrong.",
		    (unsigned long long)job->n_mismatched, (unsigned long long)job->n_met);
}
