/*
 * session - a benchmark that runs itself again, under the agent.
 *
 * The first process makes a session folder and starts itself with the agent preloaded; the second
 * one measures, plays the recorder and looks up what the agent wrote, so that a benchmark can tell
 * that what it measured was recorded.
 */
#ifndef LULL_BENCH_SESSION_H
#define LULL_BENCH_SESSION_H

#include "wire/wire.h"

/* True in the second process. */
bool bench_session_is_inside(void);

/*
 * In the first process: run argv again with the agent at this path, in a session of its own.
 * `control` needs `sources`, and what else differs from zero but magic and tick_hz. Returns its
 * exit status, or 1 if it could not be started or died.
 */
int bench_session_run(const char *agent, const struct lull_control *control, char **argv);

/* In the second process: the control page, and the image of this process. NULL: there is none. */
struct lull_control *bench_session_control(void);
struct lull_image *bench_session_image(void);

/*
 * Bytes and events of a type that are in the image now. While the program records on other threads
 * or chunks are being freed, the answer is a guess.
 */
u64 bench_session_n_bytes(const struct lull_image *image);
u64 bench_session_n_events(const struct lull_image *image, enum lull_event_type type);

/* Events that were dropped, for lack of a chunk or a slot. */
u64 bench_session_n_dropped(const struct lull_image *image);

#endif
