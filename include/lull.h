/*
 * lull.h - mark ranges, events and steps for the lull profiler. Header only, C99 and C++.
 *
 *	#include <lull.h>
 *
 *	for (int i = 0; i < n; i++) {
 *		lull_step(i);
 *		lull_push("load");
 *		load();
 *		lull_pop();
 *		lull_mark("loaded");
 *	}
 *	lull_step_end();
 *
 * A server says which request a thread works for:
 *
 *	lull_request(id);		a request arrived, and this thread works for it
 *	... lull_token() ...		a token of its answer is ready
 *	lull_done();			it is answered
 *
 * Without a profiler every call costs a load and a branch. Ranges nest per thread. If you have
 * NVTX, use it instead: lull records it just as well, and so do other tools.
 *
 * Link with -ldl on glibc before 2.34.
 */
#ifndef LULL_H
#define LULL_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#include <dlfcn.h>

/*
 * Which steps are recorded: skip the first `skip_first` steps. Then each round waits for `wait`
 * steps, warms up for `warmup` steps and records `active` steps. There are `repeat` rounds; 0
 * repeats to the end.
 */
struct lull_steps {
	unsigned skip_first, wait, warmup, active, repeat;
};

/* The agent's functions. New ones are added at the end; `size` says how many this agent has. */
struct lull_annotate_api {
	size_t size;
	void (*push)(const char *name);
	void (*pop)(void);
	void (*mark)(const char *name);
	void (*step)(unsigned long long number);
	void (*step_end)(void);
	int (*is_recording)(void);
	void (*mark_value)(const char *name, unsigned long long value);
	void (*start)(void);
	void (*stop)(void);
	int (*schedule)(const struct lull_steps *steps);
	void (*request)(unsigned long long id);
	void (*work)(unsigned long long id);
	void (*token)(void);
	void (*done)(void);
};

/*
 * The agent's functions, or NULL without a profiler. Looked up once per file that includes this.
 */
static inline const struct lull_annotate_api *lull_annotate(void)
{
	static const struct lull_annotate_api *api;
	static int is_known;

	/* Threads that race here look it up twice and store the same value. */
	if (!__atomic_load_n(&is_known, __ATOMIC_ACQUIRE)) {
		const struct lull_annotate_api *(*find)(void);

		*(void **)&find = dlsym(RTLD_DEFAULT, "lull_annotate_v1");
		if (find)
			__atomic_store_n(&api, find(), __ATOMIC_RELAXED);
		__atomic_store_n(&is_known, 1, __ATOMIC_RELEASE);
	}
	return __atomic_load_n(&api, __ATOMIC_RELAXED);
}

/* Start a range with this name on this thread. */
static inline void lull_push(const char *name)
{
	const struct lull_annotate_api *api = lull_annotate();

	if (api)
		api->push(name);
}

/* End the innermost range of this thread. */
static inline void lull_pop(void)
{
	const struct lull_annotate_api *api = lull_annotate();

	if (api)
		api->pop();
}

/* Mark this moment. */
static inline void lull_mark(const char *name)
{
	const struct lull_annotate_api *api = lull_annotate();

	if (api)
		api->mark(name);
}

/* Mark this moment, with a number: a loss, a queue length, a sequence number. */
static inline void lull_mark_value(const char *name, unsigned long long value)
{
	const struct lull_annotate_api *api = lull_annotate();

	if (api && api->size > offsetof(struct lull_annotate_api, mark_value))
		api->mark_value(name, value);
}

/* Start step `number` of the program's main loop; the previous one ends. */
static inline void lull_step(unsigned long long number)
{
	const struct lull_annotate_api *api = lull_annotate();

	if (api)
		api->step(number);
}

/* End the last step. */
static inline void lull_step_end(void)
{
	const struct lull_annotate_api *api = lull_annotate();

	if (api)
		api->step_end();
}

/*
 * Start and end a recording. They need lull profile --capture-range=lull; without it they do
 * nothing.
 */
static inline void lull_start(void)
{
	const struct lull_annotate_api *api = lull_annotate();

	if (api && api->size > offsetof(struct lull_annotate_api, start))
		api->start();
}

static inline void lull_stop(void)
{
	const struct lull_annotate_api *api = lull_annotate();

	if (api && api->size > offsetof(struct lull_annotate_api, stop))
		api->stop();
}

/*
 * Record only some steps, from the next lull_step() on; needs --capture-range=lull. Returns 1 if
 * the schedule is used, 0 without a profiler or if the command line has another one.
 */
static inline int lull_schedule(const struct lull_steps *steps)
{
	const struct lull_annotate_api *api = lull_annotate();

	if (!api || api->size <= offsetof(struct lull_annotate_api, schedule))
		return 0;
	return api->schedule(steps);
}

/*
 * Request `id` arrived, and this thread works for it. Ids are the program's, any number but 0; of
 * two requests that are open at the same time they differ.
 */
static inline void lull_request(unsigned long long id)
{
	const struct lull_annotate_api *api = lull_annotate();

	if (api && api->size > offsetof(struct lull_annotate_api, request))
		api->request(id);
}

/*
 * From now on this thread works for request `id`, which another thread may have taken; 0: for none.
 */
static inline void lull_work(unsigned long long id)
{
	const struct lull_annotate_api *api = lull_annotate();

	if (api && api->size > offsetof(struct lull_annotate_api, work))
		api->work(id);
}

/* A token of the answer to this thread's request is ready. */
static inline void lull_token(void)
{
	const struct lull_annotate_api *api = lull_annotate();

	if (api && api->size > offsetof(struct lull_annotate_api, token))
		api->token();
}

/* This thread's request is answered; the thread works for none. */
static inline void lull_done(void)
{
	const struct lull_annotate_api *api = lull_annotate();

	if (api && api->size > offsetof(struct lull_annotate_api, done))
		api->done();
}

/* 1 while a recording is on. */
static inline int lull_is_recording(void)
{
	const struct lull_annotate_api *api = lull_annotate();

	return api && api->is_recording();
}

#ifdef __cplusplus
}
#endif

#endif
