/*
 * requests - the requests of a server in a report: each one, and what its time went to.
 *
 * A request lasts from the mark of its arrival to that of its end (wire/request_mark.h). Its work
 * is what threads did and launched while they worked for it. Each nanosecond of it belongs to one
 * part of parts.def, so that the parts add up to the latency exactly; breakdown.c says which.
 *
 * Left out:       requests that began before the recording or did not end in it, and requests whose
 *                 id was used again while they were open. They are counted.
 * Memory:         24 bytes per CUDA call and 48 per piece of device work, besides the requests.
 */
#ifndef LULL_REQUEST_REQUESTS_H
#define LULL_REQUEST_REQUESTS_H

#include "base/err.h"
#include "base/types.h"
#include "base/vec.h"
#include "model/rounds.h"
#include "model/span.h"
#include "trace/reader.h"

/* What the time of a request goes to. */
enum lull_request_part {
#define PART(name, word, brief, meaning) LULL_PART_OF_##name,
#include "request/parts.def"
#undef PART
	LULL_N_REQUEST_PARTS,
};

/* The words of parts.def, for tables, and what they mean: in a few words, and all of it. */
const char *lull_request_part_word(enum lull_request_part part);
const char *lull_request_part_brief(enum lull_request_part part);
const char *lull_request_part_meaning(enum lull_request_part part);

/* How a request ended. */
enum lull_request_end {
	LULL_REQUEST_OK,
	LULL_REQUEST_IS_HUNG_UP, /* the client left before it had its answer */
	LULL_REQUEST_IS_FAILED,	 /* by an exception, or with a status of 500 or more */
};

struct lull_one_request {
	u64 id; /* of the program; of two processes they may be equal */
	u64 start_ns, end_ns;
	u64 first_token_ns; /* 0 if there were no tokens */
	u64 last_token_ns;
	u64 part_ns[LULL_N_REQUEST_PARTS];
	u64 prefill_ns[LULL_N_REQUEST_PARTS]; /* of it, until the first token */
	u64 gpu_ns;  /* what it launched, added up: more than its parts where it overlaps */
	u64 call_ns; /* its longest C library call */
	u64 late_ns; /* WANT_SOCKETS: it may have waited for so long before, unseen */
	u32 call;    /* string: its name, 0 if there is none */
	u32 process;
	u32 lane; /* thread on which it arrived */
	u32 name; /* label */
	u32 how;  /* label: how it ended */
	u32 data; /* string: its traceparent, 0 if none */
	u32 n_tokens;
	u32 n_launches;
	u32 n_open;	  /* requests that were open when it arrived, without it */
	u32 served_by[2]; /* lanes of threads that worked for it, 0 for none (WANT_WHERE) */
	u8 end;		  /* enum lull_request_end */
	bool is_round;
};

/* Time of a request that belongs to one part. */
struct lull_request_piece {
	u64 from_ns, to_ns;
	u32 request; /* index in `all` */
	u8 part;     /* enum lull_request_part */
};

/* Samples of threads that work for a request in a function, while its time belongs to a part. */
struct lull_request_place {
	u32 request;  /* index in `all` */
	u32 frame;    /* the line; 0: in none of the program */
	u32 function; /* the first frame of that function that was met */
	u32 n;
	/* enum lull_request_part; LOCK: of threads that hold the lock; LATE: of late_ns */
	u8 part;
};
#define LULL_PLACE_LATE ((u8)LULL_N_REQUEST_PARTS)

enum lull_request_turn_kind {
	LULL_TURN_WAITS,      /* for its turn: parts QUEUE and OTHERS */
	LULL_TURN_HAS_DEVICE, /* a device works for it, or is told to */
	LULL_TURN_HAS_THREAD, /* a thread is kept for long, whether it computes or waits */
};

struct lull_request_turn {
	u64 from_ns, to_ns;
	u32 request; /* index in `all` */
	u32 lane;    /* of the thread, if it is one */
	u8 kind;     /* enum lull_request_turn_kind */
};

/* What else to keep. */
#define LULL_REQUESTS_WANT_PIECES 1u
/* If nobody names requests, take what a server reads and sends on its connections. */
#define LULL_REQUESTS_WANT_SOCKETS 2u
/* If that gives none either, take the rounds of the program's loop, unless it trains. */
#define LULL_REQUESTS_WANT_ROUNDS 4u
/* Places and turns. */
#define LULL_REQUESTS_WANT_WHERE 8u

struct lull_requests {
	struct lull_vec all;	 /* struct lull_one_request, by start */
	struct lull_vec pieces;	 /* struct lull_request_piece, by request, then time; if wanted */
	struct lull_vec places;	 /* struct lull_request_place, by request; if wanted */
	struct lull_vec turns;	 /* struct lull_request_turn, by request; if wanted */
	struct lull_vec gaps;	 /* u64: from a token of a request to its next */
	struct lull_span span;	 /* of the recording, or the window */
	struct lull_span served; /* from the first arrival to the last end */
	u64 busy_ns;		 /* of `served`: time in which a device worked, at least one */
	u64 n_cut_start, n_cut_end, n_twice; /* left out */
	u64 n_hung_up, n_failed;	     /* not left out */
	bool has_work;			     /* threads said for which request they work */
	bool has_device;		     /* work of a device was recorded */
	bool has_sched;			     /* when threads had a CPU is known */
	bool is_of_sockets;		     /* nobody names them (WANT_SOCKETS) */
	enum lull_rounds_source rounds;	     /* they are rounds of a loop (WANT_ROUNDS), or NONE */
	bool trains;			     /* there are none, because the program trains */
	/*
	 * Busy time of the thread that worked most, waits not counted, among those that worked for
	 * half of the requests or more; 0 if there is none.
	 */
	u64 thread_busy_ns;
	u32 busiest_lane;
};

/*
 * Find the requests in `window`, and what their time went to; `wants` are bits of
 * LULL_REQUESTS_WANT_. LULL_E_NOT_FOUND with a sentence if there is none that is complete. Released
 * in any case.
 */
int lull_requests_init(struct lull_requests *q, struct lull_reader *r, struct lull_span window,
		       unsigned wants, struct lull_err *err);

/*
 * Keep those that were answered only; pieces are dropped. LULL_E_NOT_FOUND with a sentence if there
 * is none; then all stay.
 */
int lull_requests_keep_answered(struct lull_requests *q, struct lull_err *err);

/* Free them. */
void lull_requests_release(struct lull_requests *q);

/* The name of a request, and how it ended: "GET /generate", "200". Borrowed. Those of sockets have
 * the same name, and no end; so do rounds. */
const char *lull_request_name(const struct lull_one_request *one, struct lull_reader *r);
const char *lull_request_how(const struct lull_one_request *one, struct lull_reader *r);

static inline u64 lull_request_ns(const struct lull_one_request *one)
{
	return one->end_ns - one->start_ns;
}

#endif
