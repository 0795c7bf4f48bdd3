/*
 * lull-job - write the reports of a made-up job of many ranks (job.h).
 *
 *	lull-job FOLDER [ranks=64] [steps=10] [kernels=60] [buckets=4] [slow=RANK] [slow-from=STEP]
 *		 [slow-us=N] [cause=input|throttled|gc] [bare=1] [stages=N] [micro=N] [heavy=STAGE]
 *		 [offset-ms=N] [drift-ppm=N] [lost=FIRST-LAST] [truncated=RANK] [job=NAME] [seed=N]
 *		 [per-host=N] [bytes=N] [kernel-us=N] [version=TEXT] [mute=1] [tensor=N] [ranges=1]
 *
 * mute: nothing of NCCL is in the reports. tensor: groups of N neighbours exchange activations in
 * the forward pass, and gradients go between ranks with the same place in their groups. ranges:
 * passes are ranges named "rank3_forward".
 */
#include "sim/job.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "text/json.h"
#include "base/mem.h"
#include "base/str.h"

static const char *const causes[] = { "input", "throttled", "gc" };
/* What `lull why` calls them. */
static const char *const ids[] = { "input-pipeline", "throttled", "gc" };

static int set(struct job *j, const char *key, const char *value)
{
	const struct {
		const char *key;
		u64 *to;
		u64 unit;
	} numbers[] = { { "ranks", &j->n_ranks, 1 },
			{ "steps", &j->n_steps, 1 },
			{ "kernels", &j->n_kernels, 1 },
			{ "buckets", &j->n_buckets, 1 },
			{ "slow", (u64 *)&j->slow, 1 },
			{ "slow-from", &j->slow_from, 1 },
			{ "slow-us", &j->slow_ns, 1000 },
			{ "tensor", &j->n_tensor, 1 },
			{ "stages", &j->n_stages, 1 },
			{ "micro", &j->n_micro, 1 },
			{ "heavy", (u64 *)&j->heavy, 1 },
			{ "offset-ms", &j->max_offset_ns, 1000000 },
			{ "drift-ppm", &j->max_drift_ppm, 1 },
			{ "truncated", (u64 *)&j->truncated, 1 },
			{ "seed", &j->seed, 1 },
			{ "per-host", &j->per_host, 1 },
			{ "bytes", &j->bytes, 1 },
			{ "kernel-us", &j->kernel_ns, 1000 } };
	char *end;

	for (size_t i = 0; i < LULL_COUNT_OF(numbers); i++) {
		if (strcmp(numbers[i].key, key) != 0)
			continue;
		*numbers[i].to = strtoull(value, &end, 10) * numbers[i].unit;
		return *end || end == value;
	}
	if (strcmp(key, "job") == 0) {
		j->name = value;
		return 0;
	}
	if (strcmp(key, "version") == 0) {
		j->version = value;
		return 0;
	}
	if (strcmp(key, "mute") == 0) {
		j->is_mute = *value == '1';
		return 0;
	}
	if (strcmp(key, "ranges") == 0) {
		j->has_ranges = *value == '1';
		return 0;
	}
	if (strcmp(key, "bare") == 0) {
		j->is_bare = *value == '1';
		return 0;
	}
	for (size_t i = 0; strcmp(key, "cause") == 0 && i < LULL_COUNT_OF(causes); i++) {
		if (strcmp(causes[i], value) == 0) {
			j->cause = i;
			return 0;
		}
	}
	return strcmp(key, "lost") != 0 ||
	       sscanf(value, "%ld-%ld", (long *)&j->lost_first, (long *)&j->lost_last) != 2;
}

static int truth(const struct job *j, struct lull_err *err)
{
	struct lull_str path = LULL_STR_INIT;
	struct lull_json out;
	FILE *to;

	lull_str_addf(&path, "%s/truth.json", j->folder);
	to = fopen(lull_str_text(&path), "we");
	lull_str_release(&path);
	if (!to)
		return lull_fail_errno(err, "creating truth.json in %s", j->folder);
	lull_json_init(&out, to);
	lull_json_object(&out);
	lull_json_key(&out, "slow");
	lull_json_i64(&out, j->slow);
	lull_json_key(&out, "slow_from");
	lull_json_u64(&out, j->slow_from);
	lull_json_key(&out, "cause");
	lull_json_text(&out, j->slow >= 0 ? ids[j->cause] : NULL);
	lull_json_key(&out, "heavy");
	lull_json_i64(&out, j->heavy);
	lull_json_key(&out, "offset_ns");
	lull_json_array(&out);
	for (u64 r = 0; r < j->n_ranks; r++) {
		u64 host = r / j->per_host;

		lull_json_f64(&out, host ? (f64)j->max_offset_ns * job_noise(j, host, 11, 0) : 0);
	}
	lull_json_end(&out);
	lull_json_key(&out, "drift_ppm");
	lull_json_array(&out);
	for (u64 r = 0; r < j->n_ranks; r++) {
		u64 host = r / j->per_host;

		lull_json_f64(&out, host ? (f64)j->max_drift_ppm * job_noise(j, host, 12, 0) : 0);
	}
	lull_json_end(&out);
	lull_json_end(&out);
	fputc('\n', to);
	return fclose(to) ? lull_fail_errno(err, "writing truth.json") : LULL_OK;
}

static int check(struct job *j, struct lull_err *err)
{
	if (j->is_bare || j->n_stages)
		j->n_buckets = 1;
	if (!j->n_ranks || !j->n_steps || !j->per_host || j->n_kernels < 3 || !j->n_buckets ||
	    j->n_buckets > JOB_MAX_BUCKETS || j->n_buckets * 2 > j->n_kernels ||
	    j->n_stages > JOB_MAX_STAGES || j->n_micro > JOB_MAX_MICRO || !j->n_micro ||
	    (j->n_stages && j->n_ranks % j->n_stages) || !j->n_tensor || j->n_ranks % j->n_tensor ||
	    (j->n_stages && j->n_tensor > 1))
		return lull_fail(err, LULL_E_USAGE, "these numbers do not make a job");
	return LULL_OK;
}

int main(int argc, char **argv)
{
	struct job j = { .name = "job-1",
			 .version = LULL_VERSION,
			 .n_ranks = 64,
			 .n_steps = 10,
			 .n_kernels = 60,
			 .n_buckets = 4,
			 .per_host = 8,
			 .seed = 1,
			 .bytes = 100000000,
			 .kernel_ns = 100000,
			 .slow = -1,
			 .slow_from = 4,
			 .slow_ns = 3000000,
			 .n_micro = 8,
			 .n_tensor = 1,
			 .heavy = -1,
			 .lost_first = -1,
			 .lost_last = -1,
			 .truncated = -1 };
	struct lull_err err = { .code = LULL_OK };
	int rc = argc < 2 ? lull_fail(&err, LULL_E_USAGE, "usage: lull-job FOLDER [KEY=VALUE]...")
			  : LULL_OK;

	for (int i = 2; !rc && i < argc; i++) {
		char *equals = strchr(argv[i], '=');

		if (equals)
			*equals = '\0';
		if (!equals || set(&j, argv[i], equals + 1))
			rc = lull_fail(&err, LULL_E_USAGE, "what is %s?", argv[i]);
	}
	if (!rc)
		rc = check(&j, &err);
	if (!rc) {
		j.folder = argv[1];
		if (mkdir(j.folder, 0777) && errno != EEXIST)
			rc = lull_fail_errno(&err, "creating %s", j.folder);
		j.ready_ns = lull_alloc(j.n_steps * j.n_buckets, sizeof(u64));
		job_meet(&j);
	}
	for (u64 r = 0; !rc && r < j.n_ranks; r++)
		if ((i64)r < j.lost_first || (i64)r > j.lost_last)
			rc = job_write(&j, r, &err);
	if (!rc)
		rc = truth(&j, &err);
	if (rc)
		fprintf(stderr, "lull-job: %s\n", err.msg);
	free(j.ready_ns);
	return rc ? 1 : 0;
}
