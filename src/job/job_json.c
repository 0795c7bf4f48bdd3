#include "job/job_json.h"

#include <stdio.h>

#include "job/heat.h"

/* Cells of the picture: what a screen shows. */
#define MAX_ROWS    256
#define MAX_COLUMNS 512

static void text(struct lull_json *j, const char *key, const char *value)
{
	lull_json_key(j, key);
	lull_json_text(j, value && *value ? value : NULL);
}

static void known(struct lull_json *j, const char *key, i64 value)
{
	lull_json_key(j, key);
	if (value < 0)
		lull_json_null(j);
	else
		lull_json_i64(j, value);
}

static const char *cause_id(i32 cause)
{
	return cause < 0 ? NULL : lull_causes[cause]->id;
}

static const char *clocks_name(const struct lull_job *job)
{
	static const char *const names[] = { "same", "fitted", "durations", "none" };

	return names[job->clocks];
}

static void put_clocks(struct lull_json *j, const struct lull_job *job)
{
	lull_json_key(j, "clocks");
	lull_json_object(j);
	text(j, "how", clocks_name(job));
	text(j, "why", job->clocks_why);
	lull_json_key_i64(j, "domains", job->n_domains);
	lull_json_key_fixed(j, "residual_ns", job->residual_ns, 0);
	lull_json_key_fixed(j, "error_ns", job->error_ns, 0);
	lull_json_key_fixed(j, "bound_ns", job->bound_ns, 0);
	lull_json_key_i64(j, "checked_ranks", job->n_checked);
	lull_json_key_fixed(j, "checked_off_ns", job->off_ns, 0);
	lull_json_end(j);
}

static void put_clock(struct lull_json *j, const struct lull_job *job,
		      const struct lull_job_rank *rank)
{
	const struct lull_job_rank *ref = lull_vec_get(&job->ranks, job->reference_ix);
	i64 begin_ns = lull_job_time(rank, 0),
	    utc_ns = (i64)(rank->epoch_utc_ns - ref->epoch_utc_ns);

	lull_json_key(j, "clock");
	lull_json_object(j);
	/* What to add to the report's times, at its start, to get those of the job. */
	lull_json_key_i64(j, "begin_ns", begin_ns);
	/* How far the host's UTC is ahead of the reference's. */
	lull_json_key_i64(j, "utc_offset_ns", utc_ns - (begin_ns - lull_job_time(ref, 0)));
	lull_json_key_fixed(j, "drift_ppm", rank->clock.drift * 1e6, 6);
	lull_json_key_fixed(j, "residual_ns", rank->clock.residual_ns, 0);
	lull_json_key_fixed(j, "error_ns", rank->clock.error_ns, 0);
	lull_json_key_fixed(j, "bound_ns", rank->clock.bound_ns, 0);
	lull_json_key_i64(j, "collectives", (i64)rank->clock.n_points);
	lull_json_key_i64(j, "domain", rank->clock.domain);
	lull_json_end(j);
}

static void put_identity(struct lull_json *j, const struct lull_job *job,
			 const struct lull_job_rank *rank)
{
	lull_json_key_i64(j, "rank", rank->rank);
	text(j, "file", rank->file);
	text(j, "host", rank->host);
	known(j, "local_rank", rank->local_rank);
	text(j, "rank_from", rank->rank_from);
	put_clock(j, job, rank);
}

static void put_texts(struct lull_json *j, const char *key, const struct lull_vec *texts)
{
	char *const *at = texts->at;

	lull_json_key_array(j, key);
	for (size_t i = 0; i < texts->n; i++)
		lull_json_text(j, at[i]);
	lull_json_end(j);
}

static void put_skipped(struct lull_json *j, const struct lull_job *job)
{
	const struct lull_job_rank *all = job->skipped.at;

	lull_json_key_array(j, "skipped");
	for (size_t i = 0; i < job->skipped.n; i++) {
		lull_json_object(j);
		text(j, "file", all[i].file);
		text(j, "why", all[i].bad);
		lull_json_end(j);
	}
	lull_json_end(j);
}

void lull_job_json_manifest(struct lull_json *j, const struct lull_job *job)
{
	const struct lull_job_rank *all = job->ranks.at;

	lull_json_object(j);
	lull_json_key_i64(j, "format", 1);
	text(j, "job", all[job->reference_ix].job);
	known(j, "world_size", job->world_size);
	lull_json_key_i64(j, "reference_rank", all[job->reference_ix].rank);
	put_clocks(j, job);
	lull_json_key_array(j, "ranks");
	for (size_t i = 0; i < job->ranks.n; i++) {
		char id[33];

		lull_json_object(j);
		put_identity(j, job, &all[i]);
		for (int k = 0; k < 16; k++)
			snprintf(id + 2 * k, 3, "%02x", all[i].id[k]);
		text(j, "id", id);
		lull_json_key_i64(j, "size_bytes", (i64)all[i].size_bytes);
		lull_json_end(j);
	}
	lull_json_end(j);
	put_skipped(j, job);
	put_texts(j, "notes", &job->notes);
	lull_json_end(j);
}

int lull_job_write_manifest(const struct lull_job *job, struct lull_err *err)
{
	struct lull_str path = LULL_STR_INIT, part = LULL_STR_INIT;
	struct lull_json j;
	bool is_bad = true;
	int rc = LULL_OK;
	FILE *to;

	lull_str_addf(&path, "%s/job.json", job->folder);
	lull_str_addf(&part, "%s/.job.json.part", job->folder);
	to = fopen(lull_str_text(&part), "we");
	if (to) {
		lull_json_init(&j, to);
		j.is_pretty = true;
		lull_job_json_manifest(&j, job);
		fputc('\n', to);
		is_bad = ferror(to);
		is_bad |= fclose(to) != 0;
	}
	if (is_bad || rename(lull_str_text(&part), lull_str_text(&path))) {
		rc = lull_fail_errno(err, "writing %s", lull_str_text(&path));
		remove(lull_str_text(&part));
	}
	lull_str_release(&path);
	lull_str_release(&part);
	return rc;
}

/* ---- the answer ---- */

static void put_stragglers(struct lull_json *j, const struct lull_job *job)
{
	const struct lull_job_straggler *all = job->stragglers.at;

	lull_json_key_array(j, "stragglers");
	for (size_t i = 0; i < job->stragglers.n; i++) {
		const struct lull_job_rank *rank = lull_vec_get(&job->ranks, all[i].rank_ix);

		lull_json_object(j);
		lull_json_key_i64(j, "rank", rank->rank);
		text(j, "host", rank->host);
		text(j, "file", rank->file);
		lull_json_key(j, "since_step");
		if (all[i].is_always)
			lull_json_null(j);
		else
			lull_json_u64(j, all[i].since);
		lull_json_key_fixed(j, "late_ns", all[i].late_ns, 0);
		lull_json_key_fixed(j, "share_of_steps", all[i].share, 6);
		text(j, "cause", cause_id(all[i].cause));
		lull_json_key_fixed(j, "excess_ns", all[i].excess_ns, 0);
		text(j, "evidence", all[i].evidence);
		text(j, "fix",
		     lull_job_fix(job, rank,
				  all[i].cause >= 0
					  ? all[i].cause
					  : (int)lull_cause_among_ranks(LULL_RANKS_LATE)));
		lull_json_end(j);
	}
	lull_json_end(j);
}

static void put_kinds(struct lull_json *j, const struct lull_job *job)
{
	const struct lull_job_kind *all = job->kinds.at;

	lull_json_key_array(j, "collectives");
	for (size_t i = 0; i < job->kinds.n; i++) {
		lull_json_object(j);
		text(j, "name", all[i].name);
		text(j, "communicator", all[i].comm_name);
		lull_json_key_i64(j, "ranks", all[i].n_ranks);
		lull_json_key_i64(j, "size_below_bytes", (i64)(1ULL << all[i].size_class));
		lull_json_key_i64(j, "n", (i64)all[i].n);
		lull_json_key_i64(j, "total_ns", (i64)all[i].dur_ns);
		lull_json_key_i64(j, "wait_ns", (i64)all[i].wait_ns);
		lull_json_key_i64(j, "transfer_ns", (i64)all[i].transfer_ns);
		lull_json_key_i64(j, "exposed_ns", (i64)all[i].exposed_ns);
		lull_json_key_i64(j, "exposed_wait_ns", (i64)all[i].exposed_wait_ns);
		lull_json_key_i64(j, "bytes", (i64)all[i].size_bytes);
		lull_json_key_fixed(j, "algorithm_gb_s", lull_job_algorithm_bandwidth(&all[i]), 6);
		lull_json_key_fixed(j, "bus_gb_s", lull_job_bus_bandwidth(&all[i]), 6);
		lull_json_end(j);
	}
	lull_json_end(j);
}

static void put_comm(struct lull_json *j, const struct lull_job_comm_kind *k)
{
	struct lull_str ops = LULL_STR_INIT;
	u64 n = 0;

	for (u32 i = 0; i < LULL_JOB_N_OPS; i++)
		n += k->n[i];
	lull_job_comm_ops(k, &ops);
	lull_json_object(j);
	lull_json_key_i64(j, "groups", k->n_comms);
	lull_json_key_i64(j, "ranks", k->n_ranks);
	text(j, "name", k->name);
	text(j, "operations", lull_str_text(&ops));
	lull_json_key_i64(j, "n", (i64)n);
	lull_json_key_i64(j, "rank_steps", (i64)k->n_steps);
	lull_json_key_i64(j, "bytes", (i64)k->size_bytes);
	lull_json_key_i64(j, "total_ns", (i64)k->dur_ns);
	lull_json_key_i64(j, "exposed_ns", (i64)k->exposed_ns);
	text(j, "role", k->role);
	lull_json_key(j, "is_guess");
	lull_json_bool(j, k->role && !k->is_named);
	lull_json_key_array(j, "members");
	for (u32 i = 0; i < k->n_members; i++)
		lull_json_i64(j, k->members[i]);
	lull_json_end(j);
	lull_json_end(j);
	lull_str_release(&ops);
}

static void put_comms(struct lull_json *j, const struct lull_job *job)
{
	const struct lull_job_comm_kind *all = job->comms.at;

	lull_json_key_array(j, "communicators");
	for (size_t i = 0; i < job->comms.n; i++)
		put_comm(j, &all[i]);
	lull_json_end(j);
}

static void put_groups(struct lull_json *j, const struct lull_job *job)
{
	const struct lull_job_group *all = job->groups.at;
	const struct lull_job_rank *ranks = job->ranks.at;

	lull_json_key_array(j, "groups");
	for (size_t i = 0; i < job->groups.n; i++) {
		lull_json_object(j);
		lull_json_key_i64(j, "n", all[i].n);
		text(j, "cause", cause_id(all[i].cause));
		lull_json_key(j, "is_late");
		lull_json_bool(j, all[i].is_late);
		lull_json_key_fixed(j, "compute", all[i].compute, 6);
		lull_json_key_fixed(j, "wait", all[i].wait, 6);
		lull_json_key_fixed(j, "transfer", all[i].transfer, 6);
		lull_json_key_fixed(j, "bubble", all[i].bubble, 6);
		lull_json_key_fixed(j, "copy", all[i].copy, 6);
		lull_json_key_fixed(j, "idle", all[i].idle, 6);
		lull_json_key_array(j, "ranks");
		for (size_t k = 0; k < job->ranks.n; k++)
			if (ranks[k].group == i)
				lull_json_i64(j, ranks[k].rank);
		lull_json_end(j);
		lull_json_end(j);
	}
	lull_json_end(j);
}

static void put_stages(struct lull_json *j, const struct lull_job *job)
{
	const struct lull_job_stage *all = job->stages.at;

	lull_json_key_array(j, "stages");
	for (size_t i = 0; i < job->stages.n; i++) {
		lull_json_object(j);
		lull_json_key_i64(j, "stage", (i64)i);
		lull_json_key_i64(j, "ranks", all[i].n);
		lull_json_key_fixed(j, "compute_ns", all[i].compute_ns, 0);
		lull_json_key_fixed(j, "bubble_ns", all[i].bubble_ns, 0);
		lull_json_key_fixed(j, "compute", all[i].share, 6);
		lull_json_end(j);
	}
	lull_json_end(j);
}

static void put_heat(struct lull_json *j, const struct lull_job *job, const char *key,
		     enum lull_heat_kind kind)
{
	struct lull_heat heat;

	lull_heat_init(&heat, job, kind, MAX_ROWS, MAX_COLUMNS);
	lull_json_key(j, key);
	lull_json_object(j);
	lull_json_key_i64(j, "ranks_a_row", heat.ranks_a_row);
	lull_json_key_i64(j, "steps_a_column", heat.steps_a_column);
	lull_json_key_i64(j, "first_step", job->first_step);
	lull_json_key_fixed(j, "most_ns", heat.most_ns, 0);
	lull_json_key_array(j, "rows");
	for (u32 r = 0; r < heat.n_rows; r++) {
		lull_json_array(j);
		for (u32 c = 0; c < heat.n_columns; c++) {
			f64 ns = heat.ns[(size_t)r * heat.n_columns + c];

			if (ns < 0)
				lull_json_null(j);
			else
				lull_json_fixed(j, ns, 0);
		}
		lull_json_end(j);
	}
	lull_json_end(j);
	lull_json_end(j);
	lull_heat_release(&heat);
}

static void put_ranks(struct lull_json *j, const struct lull_job *job)
{
	const struct lull_job_rank *all = job->ranks.at;

	lull_json_key_array(j, "ranks");
	for (size_t i = 0; i < job->ranks.n; i++) {
		lull_json_object(j);
		put_identity(j, job, &all[i]);
		text(j, "cause", cause_id(all[i].first));
		known(j, "stage", all[i].stage);
		lull_json_key_i64(j, "group", all[i].group);
		lull_json_key_i64(j, "steps", all[i].n_steps);
		lull_json_key_fixed(j, "step_ns", all[i].step_ns, 0);
		lull_json_key_i64(j, "window_ns", (i64)all[i].window_ns);
		lull_json_key_i64(j, "compute_ns", (i64)all[i].compute_ns);
		lull_json_key_i64(j, "wait_ns", (i64)all[i].wait_ns);
		lull_json_key_i64(j, "transfer_ns", (i64)all[i].transfer_ns);
		lull_json_key_i64(j, "bubble_ns", (i64)all[i].bubble_ns);
		lull_json_key_i64(j, "copy_ns", (i64)all[i].copy_ns);
		lull_json_key_i64(j, "idle_ns", (i64)all[i].idle_ns);
		lull_json_key_i64(j, "late_ns", all[i].late_ns);
		lull_json_key_i64(j, "exposed_ns", (i64)lull_job_exposed_ns(&all[i]));
		lull_json_key_i64(j, "overlapped_ns", (i64)lull_job_overlapped_ns(&all[i]));
		lull_json_end(j);
	}
	lull_json_end(j);
}

static void put_verdict(struct lull_json *j, const struct lull_job *job)
{
	const struct lull_job_verdict *v = &job->verdict;

	text(j, "first", cause_id(v->cause));
	text(j, "cannot_tell", v->why_not);
	text(j, "likely", cause_id(v->likely));
	lull_json_key_fixed(j, "step_ns", v->step_ns, 0);
	lull_json_key_fixed(j, "mean_step_ns", v->mean_ns, 0);
	lull_json_key_fixed(j, "cost_ns", v->cost_ns, 0);
	lull_json_key_i64(j, "steps", v->n_steps);
	lull_json_key_i64(j, "first_step", job->first_step);
	lull_json_key(j, "shares");
	lull_json_object(j);
	lull_json_key_fixed(j, "compute", v->compute, 6);
	lull_json_key_fixed(j, "wait", v->wait, 6);
	lull_json_key_fixed(j, "transfer", v->transfer, 6);
	lull_json_key_fixed(j, "bubble", v->bubble, 6);
	lull_json_key_fixed(j, "copy", v->copy, 6);
	lull_json_key_fixed(j, "idle", v->idle, 6);
	lull_json_end(j);
	lull_json_key_fixed(j, "hidden", v->hidden, 6);
}

void lull_job_json(struct lull_json *j, const struct lull_job *job)
{
	lull_json_object(j);
	text(j, "folder", job->folder);
	known(j, "world_size", job->world_size);
	put_verdict(j, job);
	put_clocks(j, job);
	lull_json_key_i64(j, "collectives_met", (i64)job->n_met);
	lull_json_key_i64(j, "each", job->thinned);
	put_texts(j, "notes", &job->notes);
	put_skipped(j, job);
	put_stragglers(j, job);
	put_stages(j, job);
	put_groups(j, job);
	put_kinds(j, job);
	put_comms(j, job);
	put_heat(j, job, "late", LULL_HEAT_LATE);
	put_heat(j, job, "waiting", LULL_HEAT_WAIT);
	put_ranks(j, job);
	lull_json_end(j);
}
