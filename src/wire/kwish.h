/*
 * kwish - which kernels to measure, and the progress of it: a part of the control page.
 *
 * The recorder fills in the request before any agent starts. Agents write their progress, so that
 * the recorder can show it, and can kill a program whose kernel hangs while it is replayed.
 */
#ifndef LULL_WIRE_KWISH_H
#define LULL_WIRE_KWISH_H

#include <stdatomic.h>

#include "base/types.h"

#define LULL_KWISH_N_FILTERS	32u
#define LULL_KWISH_METRIC_BYTES 28672u

/* Kernels of a name; of those the first `skip` are left alone, the next `count` are measured. */
struct lull_kwish_filter {
	u64 skip;
	u64 count;	 /* 0 = no limit */
	u32 is_regex;	 /* POSIX extended; else the whole name or the mangled one */
	char name[1020]; /* "" = all */
};

/* Values of profiled.replay. */
enum { LULL_REPLAY_KERNEL = 1, LULL_REPLAY_APPLICATION = 2, LULL_REPLAY_RANGE = 3 };

/* Values of profiled.status. */
enum {
	LULL_PROFILED_OK = 0,
	LULL_PROFILED_DENIED = 1,
	LULL_PROFILED_BUSY = 2,
	LULL_PROFILED_UNSUPPORTED = 3,
	LULL_PROFILED_UNSAFE = 4,
	LULL_PROFILED_FAILED = 5,
};

/* A name of kernels that were launched; agents of several processes fill in the same table. */
struct lull_kwish_seen {
	_Atomic u32 state; /* 0 free, 1 being written, 2 has a name */
	_Atomic u64 n;	   /* launches */
	char name[116];	   /* without template and parameters; its beginning if it is long */
};

#define LULL_KWISH_N_SEEN 16u

struct lull_kwish {
	u32 n_filters;
	u32 replay;	/* LULL_REPLAY_* */
	u32 pass_ix;	/* of an application that runs once for each pass */
	u32 is_sampled; /* take samples of the program counter in place of counters */
	u32 has_range;	/* only inside ranges of that name */
	u32 is_range_regex;
	u64 devices; /* a bit for each */
	struct lull_kwish_filter filters[LULL_KWISH_N_FILTERS];
	char range[256];
	char range_domain[256]; /* "" = any */
	/* Where a program that runs once for each pass keeps its counters; "" = no such. */
	char data_folder[200];
	/* KEY TAB NAME [TAB NAME...] lines: see agent/counters/kprof.h. */
	char metrics[LULL_KWISH_METRIC_BYTES];

	/* What agents are at. */
	_Atomic u64 n_launches; /* seen */
	_Atomic u64 n_done;	/* measured */
	_Atomic u64 done_ticks; /* time that took */
	_Atomic u32 n_passes;	/* each is run so often; 0 = not known yet */
	_Atomic u32 busy_pid;	/* who measures right now, 0 = nobody */
	_Atomic u64 busy_since; /* counter */
	char busy_name[256];	/* its kernel, mangled */
	struct lull_kwish_seen seen[LULL_KWISH_N_SEEN]; /* the first names, for who found none */
};

#endif
