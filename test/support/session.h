/*
 * session - run a program under the agent as the recorder would, and read back what it wrote.
 *
 * What it gives: a session folder with a control page, a child process with the agent in its
 *                environment, and the events of all images as an array, in the order in which each
 *                thread wrote them.
 * Ownership:     test_events_release() frees the events and everything they point to.
 * Failure:       a test cannot go on without its session, so everything here fails the test at
 *                once.
 */
#ifndef LULL_TEST_SUPPORT_SESSION_H
#define LULL_TEST_SUPPORT_SESSION_H

#include "wire/wire.h"

struct test_session {
	char path[64];
	struct lull_control *control;
};

/* One event of one thread. */
struct test_event {
	u32 pid;
	u32 tid;
	u32 type;  /* enum lull_event_type */
	u32 level; /* 1: written inside a signal handler */
	union {	   /* the event itself; what lies after it follows in memory */
		const struct lull_event *head;
		const struct lull_wire_string *string;
		const struct lull_wire_label *label;
		const struct lull_wire_range *range;
		const struct lull_wire_start *start;
		const struct lull_wire_end *end;
		const struct lull_wire_thread_name *thread_name;
		const struct lull_wire_category *category;
		const struct lull_wire_schema *schema;
		const struct lull_wire_step *step;
	};
};

struct test_events {
	struct test_event *all;
	size_t n;
	u64 issues[LULL_N_ISSUES]; /* of all images together */
	u32 n_images;
	u64 n_dropped;
	void **maps; /* images, kept mapped */
};

/* Make the folder and a control page that records `sources` (LULL_SOURCE_*) from the start. */
void test_session_open(struct test_session *s, u32 sources);

/* Run `argv` with the agent at this path and wait for it; returns its wait status. */
int test_session_run(struct test_session *s, const char *agent, char *const argv[]);

/* Read every image of the session. */
void test_session_read(const struct test_session *s, struct test_events *events);

/* Remove the folder. */
void test_session_close(struct test_session *s);

/* The text that a process defined for a hash, "" for 0, NULL if it is not defined. */
const char *test_events_text(const struct test_events *events, u32 pid, u64 hash);

/* The label that a process defined for a hash, NULL if it is not defined. */
const struct lull_wire_label *test_events_label(const struct test_events *events, u32 pid,
						u64 hash);

/* The text of an event with a label: push, start, mark. */
const char *test_events_name(const struct test_events *events, const struct test_event *e);

/* The n-th (from 0) event of this type whose label has this name; NULL if there is none. */
const struct test_event *test_events_find(const struct test_events *events, u32 type,
					  const char *name, u32 n);

/* The number of events of a type. */
size_t test_events_count(const struct test_events *events, u32 type);

/* The payload after an event, the n-th from 0; NULL if it has fewer. */
const struct lull_wire_payload *test_event_payload(const struct test_event *e, u32 n);

/* Unmap and free. */
void test_events_release(struct test_events *events);

#endif
