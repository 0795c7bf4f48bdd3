/*
 * ranks: a job and its ranks, as `lull why FOLDER` finds them.
 *
 *	{"state": "known", "job": {...}}	job: lull schema job
 *	{"state": "running"}, {"state": "cannot", "detail": ...}, {"state": "absent"}
 */
#include "page/page.h"

static void put_state(struct lull_json *j, const char *state, const char *detail)
{
	lull_json_object(j);
	lull_page_pair_text(j, "state", state);
	if (detail)
		lull_page_pair_text(j, "detail", detail);
	lull_json_end(j);
}

static int run(struct lull_question *q, struct lull_err *err)
{
	struct lull_page_job *job = q->page->job;
	struct lull_json j;

	(void)err;
	lull_json_init(&j, q->to);
	if (!job) {
		put_state(&j, "absent", NULL);
		return LULL_OK;
	}
	pthread_mutex_lock(&job->lock);
	if (job->ranks)
		fprintf(q->to, "{\"state\":\"known\",\"job\":%s}", job->ranks);
	else if (job->failed)
		put_state(&j, "cannot", job->failed);
	else
		put_state(&j, "running", NULL);
	pthread_mutex_unlock(&job->lock);
	return LULL_OK;
}

const struct lull_answer lull_answer_ranks = {
	.name = "ranks",
	.type = "application/json",
	.run = run,
};
