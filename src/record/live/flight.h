/*
 * flight - keep the last seconds of a recording, and write them when something happens.
 *
 * The recording goes to a file as usual, the ring, which drops its oldest part from time to time
 * (lull_writer_trim()): at most twice the time to keep is on disk. A dump is a copy of its tail,
 * made into a separate report by a child of the recorder. The child has a copy of everything in
 * memory, so the recorder continues immediately and loses nothing.
 *
 * Triggers of a dump: SIGUSR1, `lull snapshot`, a slow step (pulse.h), a process that crashes. For
 * slow steps and crashes the number of dumps is limited, and the distance between two dumps is at
 * least their length; the next report counts the triggers that were ignored.
 *
 * When the program ends, the rest is written if the program failed, if a dump was requested, or if
 * the session was stopped; otherwise it is discarded.
 */
#ifndef LULL_RECORD_LIVE_FLIGHT_H
#define LULL_RECORD_LIVE_FLIGHT_H

#include "base/err.h"
#include "base/types.h"

struct lull_collector;

/* What asks for a dump. */
enum lull_flight_why {
	LULL_FLIGHT_ASKED,     /* a person: always answered */
	LULL_FLIGHT_TRIGGERED, /* a rule: limited */
};

struct lull_flight {
	bool is_on;
	u64 keep_ns;
	u64 trim_ns;  /* how much time it covered when it was last cut */
	u64 due_ns;   /* when to write the next dump, 0 = none is wanted */
	u64 quiet_ns; /* until then rules are not answered */
	u32 n_begun;  /* dumps, the one that is due not counted */
	u32 n_done;
	u32 n_triggered; /* of these, by rules */
	u64 n_refused;	 /* rules that were not answered since the last dump */
	u32 n_anew;	 /* how often the ring was begun anew, because too many names were known */
	u32 n_crashes;	 /* processes that have crashed so far */
	char reason[160];
	char last_path[4096]; /* the last dump that was finished, "" if it failed */
};

/* A dump is wanted, for this reason. Returns its number. */
u32 lull_flight_ask(struct lull_collector *c, enum lull_flight_why why, const char *reason);

/* One round: look at the rules, begin a dump that is due, cut the ring. */
void lull_flight_tick(struct lull_collector *c, u64 now_ns);

/* The dump with this number is written; `path` is "" if it failed. */
void lull_flight_done(struct lull_collector *c, u32 number, const char *path);

/*
 * The report that is open becomes a dump: it moves to a name of its own and gets the tail of the
 * ring only.
 */
int lull_flight_place(struct lull_collector *c, u64 now_ns, struct lull_err *err);

/* The program has ended. */
int lull_flight_end(struct lull_collector *c, struct lull_err *err);

#endif
