/*
 * stage - the pipeline of a job, found from sends and receives.
 *
 * Ranks that send to and receive from each other are neighbours. A chain of neighbours is one
 * replica of the pipeline: its end with the smaller rank is stage 0. A ring (which interleaved
 * schedules make) is cut at its smallest rank.
 */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "job/job_int.h"

/* Exchanges between two have to be this part of what is exposed. */
#define PIPELINE 0.2

struct links {
	u32 to[2];
	u32 n;
};

static u64 place_of(u64 comm, u32 rank)
{
	const u64 words[2] = { comm, rank };

	return lull_hash(words, sizeof(words));
}

static void link_to(struct links *l, u32 other)
{
	for (u32 i = 0; i < l->n; i++)
		if (l->to[i] == other)
			return;
	if (l->n < 2)
		l->to[l->n] = other;
	l->n++;
}

static struct links *find_links(const struct lull_job *job)
{
	const struct lull_job_rank *all = job->ranks.at;
	struct links *links = lull_alloc(job->ranks.n, sizeof(*links));
	struct lull_map who;

	lull_map_init(&who);
	for (size_t i = 0; i < job->ranks.n; i++)
		for (u32 k = 0; k < all[i].n_peers; k++)
			*lull_map_add(&who, place_of(all[i].peers[k].comm, all[i].peers[k].own),
				      NULL) = (u32)i + 1;
	for (size_t i = 0; i < job->ranks.n; i++) {
		for (u32 k = 0; k < all[i].n_peers; k++) {
			const struct lull_job_peer *p = &all[i].peers[k];
			const u32 *other = lull_map_find(&who, place_of(p->comm, p->other));

			if (other && *other != (u32)i + 1)
				link_to(&links[i], *other - 1);
		}
	}
	lull_map_release(&who);
	return links;
}

/* Walk a chain from its end. */
static void walk(struct lull_job *job, const struct links *links, u32 from)
{
	struct lull_job_rank *all = job->ranks.at;
	i32 stage = 0;
	u32 at = from;

	for (bool is_on = true; is_on; stage++) {
		all[at].stage = stage;
		is_on = false;
		for (u32 k = 0; k < links[at].n && k < 2 && !is_on; k++) {
			if (all[links[at].to[k]].stage < 0) {
				at = links[at].to[k];
				is_on = true;
			}
		}
	}
}

static void sum_stages(struct lull_job *job)
{
	const struct lull_job_rank *all = job->ranks.at;

	for (size_t i = 0; i < job->ranks.n; i++) {
		struct lull_job_stage *s;

		if (all[i].stage < 0)
			continue;
		while (job->stages.n <= (size_t)all[i].stage)
			lull_vec_push(&job->stages);
		s = lull_vec_get(&job->stages, (size_t)all[i].stage);
		if (!all[i].n_steps || !all[i].window_ns)
			continue;
		s->n++;
		s->compute_ns += (f64)all[i].compute_ns / all[i].n_steps;
		s->bubble_ns += (f64)all[i].bubble_ns / all[i].n_steps;
		s->share += (f64)all[i].compute_ns / (f64)all[i].window_ns;
	}
	for (size_t i = 0; i < job->stages.n; i++) {
		struct lull_job_stage *s = lull_vec_get(&job->stages, i);

		s->compute_ns /= s->n ? s->n : 1;
		s->bubble_ns /= s->n ? s->n : 1;
		s->share /= s->n ? s->n : 1;
	}
}

void lull_job_find_stages(struct lull_job *job)
{
	struct lull_job_rank *all = job->ranks.at;
	u64 between = 0, exposed = 0;
	struct links *links;

	for (size_t i = 0; i < job->ranks.n; i++) {
		between += all[i].bubble_ns;
		exposed += all[i].bubble_ns + all[i].wait_ns + all[i].transfer_ns;
	}
	if (!between || (f64)between < PIPELINE * (f64)exposed)
		return;
	links = find_links(job);
	for (u32 i = 0; i < job->ranks.n; i++)
		if (links[i].n == 1 && all[i].stage < 0)
			walk(job, links, i);
	for (u32 i = 0; i < job->ranks.n; i++)
		if (links[i].n > 1 && all[i].stage < 0)
			walk(job, links, i);
	free(links);
	sum_stages(job);
}
