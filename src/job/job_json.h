/*
 * job_json - a job as JSON: for scripts, for the page, and as the manifest of its folder.
 */
#ifndef LULL_JOB_JOB_JSON_H
#define LULL_JOB_JOB_JSON_H

#include "text/json.h"
#include "job/job.h"

/* The answer: `lull why FOLDER --format json`, described by `lull schema job`. */
void lull_job_json(struct lull_json *j, const struct lull_job *job);

/* The manifest: reports, ranks, hosts and clocks. */
void lull_job_json_manifest(struct lull_json *j, const struct lull_job *job);

/* Write the manifest as job.json into the folder. LULL_E_IO if that fails. */
int lull_job_write_manifest(const struct lull_job *job, struct lull_err *err);

#endif
