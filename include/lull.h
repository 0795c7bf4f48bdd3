/*
 * lull.h - name what your program does, for the lull profiler. Header only, C99 and C++.
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
 * Without a profiler every call is a load and a branch. Ranges nest per thread. Where NVTX is at
 * hand, use
 * NVTX: lull records it just as well, and so do other tools.
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
 * Which steps are recorded: none of the first skip_first; then rounds of `wait` steps without any
 * cost, `warmup` steps to get ready, `active` recorded ones; `repeat` rounds, 0 for no end.
 */
struct lull_steps {
	unsigned skip_first, wait, warmup, active, repeat;
};

/* What the agent offers; grows at the end only, `size` tells how much of it there is. */
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
};

/*
 * The agent's functions, or NULL when nobody profiles. Looked up once per file that includes this.
 */
static inline const struct lull_annotate_api *lull_annotate(void)
{
	static const struct lull_annotate_api *api;
	static int is_known;

	/* Racing threads look it up twice and store the same value. */
	if (!__atomic_load_n(&is_known, __ATOMIC_ACQUIRE)) {
		const struct lull_annotate_api *(*find)(void);

		*(void **)&find = dlsym(RTLD_DEFAULT, "lull_annotate_v1");
		if (find)
			__atomic_store_n(&api, find(), __ATOMIC_RELAXED);
		__atomic_store_n(&is_known, 1, __ATOMIC_RELEASE);
	}
	return __atomic_load_n(&api, __ATOMIC_RELAXED);
}

/* A range with this name begins on this thread. */
static inline void lull_push(const char *name)
{
	const struct lull_annotate_api *api = lull_annotate();

	if (api)
		api->push(name);
}

/* The innermost range of this thread ends. */
static inline void lull_pop(void)
{
	const struct lull_annotate_api *api = lull_annotate();

	if (api)
		api->pop();
}

/* Something happened now. */
static inline void lull_mark(const char *name)
{
	const struct lull_annotate_api *api = lull_annotate();

	if (api)
		api->mark(name);
}

/* The same, with a number to look at later: a loss, a queue length, a sequence number. */
static inline void lull_mark_value(const char *name, unsigned long long value)
{
	const struct lull_annotate_api *api = lull_annotate();

	if (api && api->size > offsetof(struct lull_annotate_api, mark_value))
		api->mark_value(name, value);
}

/* Step `number` of the program's main loop begins; the one before it ends. */
static inline void lull_step(unsigned long long number)
{
	const struct lull_annotate_api *api = lull_annotate();

	if (api)
		api->step(number);
}

/* The last step ends. */
static inline void lull_step_end(void)
{
	const struct lull_annotate_api *api = lull_annotate();

	if (api)
		api->step_end();
}

/*
 * Begin to record now, and end it. For lull profile --capture-range=lull; without it they do
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
 * Record some steps only, from the next lull_step() on; with --capture-range=lull. 1 if it is
 * so, 0 if nobody profiles or the command line decides.
 */
static inline int lull_schedule(const struct lull_steps *steps)
{
	const struct lull_annotate_api *api = lull_annotate();

	if (!api || api->size <= offsetof(struct lull_annotate_api, schedule))
		return 0;
	return api->schedule(steps);
}

/* 1 while a profiler records. */
static inline int lull_is_recording(void)
{
	const struct lull_annotate_api *api = lull_annotate();

	return api && api->is_recording();
}

#ifdef __cplusplus
}
#endif

#endif
