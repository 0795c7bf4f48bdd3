#include "page/ahead.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/mem.h"
#include "page/page.h"
#include "timeline/detail.h"

struct lull_ahead {
	struct lull_page *page;
	pthread_t thread;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t changed;
	u32 n_questions; /* that are being answered, or wait to be */
	bool has_news;	 /* something was asked since the last look */
	bool is_ending;
};

/* Wait until there may be something to do and nobody is in the way; false at the end. */
static bool wait_for_turn(struct lull_ahead *a, bool is_done)
{
	bool is_ending;

	pthread_mutex_lock(&a->lock);
	while (!a->is_ending && (a->n_questions || (is_done && !a->has_news)))
		pthread_cond_wait(&a->changed, &a->lock);
	a->has_news = false;
	is_ending = a->is_ending;
	pthread_mutex_unlock(&a->lock);
	return !is_ending;
}

/* One block; false if all is there. */
static bool decode_one(struct lull_page *page)
{
	bool is_found = false;

	for (size_t i = 0; i < page->n_reports && !is_found; i++) {
		struct lull_page_report *report = &page->reports[i];
		bool is_open;

		pthread_mutex_lock(&page->open_lock);
		is_open = report->timeline != NULL;
		pthread_mutex_unlock(&page->open_lock);
		if (!is_open)
			continue;
		pthread_mutex_lock(&report->quick_lock);
		is_found = lull_detail_ahead(report->timeline);
		pthread_mutex_unlock(&report->quick_lock);
	}
	return is_found;
}

static void *loop(void *ctx)
{
	struct lull_ahead *a = ctx;
	bool is_done = true;

	while (wait_for_turn(a, is_done))
		is_done = !decode_one(a->page);
	return NULL;
}

struct lull_ahead *lull_ahead_start(struct lull_page *page)
{
	struct lull_ahead *a = lull_alloc(1, sizeof(*a));

	a->page = page;
	pthread_mutex_init(&a->lock, NULL);
	pthread_cond_init(&a->changed, NULL);
	if (!pthread_create(&a->thread, NULL, loop, a))
		return a;
	pthread_mutex_destroy(&a->lock);
	pthread_cond_destroy(&a->changed);
	free(a);
	return NULL;
}

void lull_ahead_begin(struct lull_ahead *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->n_questions++;
	pthread_mutex_unlock(&a->lock);
}

void lull_ahead_end(struct lull_ahead *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->n_questions--;
	a->has_news = true;
	if (!a->n_questions)
		pthread_cond_signal(&a->changed);
	pthread_mutex_unlock(&a->lock);
}

void lull_ahead_stop(struct lull_ahead *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->is_ending = true;
	pthread_cond_signal(&a->changed);
	pthread_mutex_unlock(&a->lock);
	pthread_join(a->thread, NULL);
	pthread_mutex_destroy(&a->lock);
	pthread_cond_destroy(&a->changed);
	free(a);
}
