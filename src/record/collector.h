/*
 * collector - start a program, record it and everything it starts, write reports.
 *
 * One loop in one thread: every tick it reads from perf, the agents, Python and /proc, converts
 * what it read to rows, and now and then makes the file safe (a checkpoint). It ends when all
 * processes of the program have ended, or on request.
 */
#ifndef LULL_RECORD_COLLECTOR_H
#define LULL_RECORD_COLLECTOR_H

#include "base/err.h"
#include "base/str.h"
#include "base/types.h"
#include "base/vec.h"
#include "record/perf/perf.h"
#include "wire/wire.h"

/* What begins a recording. */
enum lull_begin {
	LULL_BEGIN_AT_ONCE = 0,
	LULL_BEGIN_ON_REQUEST = 1, /* lull start */
	LULL_BEGIN_ON_RANGE = 2,   /* an NVTX or lull.h range */
};

/* What happens when a range that began a recording ends. */
enum lull_range_end {
	LULL_RANGE_END_NONE = 0,	    /* nothing: record to the end */
	LULL_RANGE_END_STOP = 1,	    /* one report; the program goes on */
	LULL_RANGE_END_STOP_SHUTDOWN = 2,   /* one report, then end the session */
	LULL_RANGE_END_REPEAT = 3,	    /* one report per range */
	LULL_RANGE_END_REPEAT_SHUTDOWN = 4, /* the same, then end the session */
};

struct lull_collector_options {
	u32 sources;	     /* LULL_SOURCE_* for the agents */
	bool is_cuda_wanted; /* CUDA was named: say so if nobody used it */
	enum lull_perf_scope samples;
	enum lull_perf_scope switches;
	bool is_timer_forced; /* timers inside the processes, as if perf were refused */
	u32 rate_hz;	      /* CPU samples a second, 0: as many as are cheap */
	bool is_python_sampled;
	u32 python_rate_hz;
	u64 osrt_threshold_ns;
	u64 cuda_backtrace_ns[LULL_N_CALL_KINDS]; /* for calls that take so long; 0 = none */
	u32 cuda_flush_ms; /* how often agents flush CUPTI, 0 = only when they must */
	u64 backtrace_threshold_ns;
	const char *output; /* pattern of -o, NULL = default */
	bool is_overwriting;
	const char *part_dir; /* where unfinished reports lie; NULL: by the file system (spool.h) */
	const char *ranks;    /* others are not recorded, as in lull_ranks_has(); NULL: all are */
	bool is_duty;	      /* record in windows (duty.h): this share of the time, 0 = as the */
	f64 duty_share;	      /* budget allows: what it may cost, as a share; 0 = not asked */
	f64 duty_budget;
	u64 duty_seed;	  /* 0 = random */
	f64 flight_s;	  /* keep the last seconds only (flight.h); 0: all */
	u32 flight_limit; /* dumps that rules may cause */
	f64 slow_factor;  /* rules for steps (pulse.h) */
	u64 slow_ns;
	const char *metrics_address; /* NULL: no metrics */
	u16 metrics_port;
	f64 delay_s;
	f64 duration_s; /* 0 = no limit */
	enum lull_begin begin;
	enum lull_range_end range_end;
	u32 range_repeats;	       /* 0 = no limit */
	u32 watch;		       /* LULL_WATCH_*: what begins it, with LULL_BEGIN_ON_RANGE */
	const char *capture_range;     /* name@domain, for LULL_WATCH_RANGES */
	struct lull_schedule schedule; /* for LULL_WATCH_STEPS */
	int kill_signal;    /* what ends the program when the recording is over; 0 = let it run */
	bool is_kill_given; /* --kill was on the command line */
	bool is_waiting_for_all;	  /* --wait=all: also for re-parented children */
	bool is_stopping_on_exit;	  /* --stop-on-exit */
	u32 mpi_family;			  /* as lull_control.mpi_family */
	bool is_gpu_sampled;		  /* look at devices, if there are any */
	bool is_gpu_wanted;		  /* that was asked for: say so if it is not possible */
	u64 gpu_devices;		  /* a bit for each */
	u64 gpu_rate_hz;		  /* sample counters so often, 0 not */
	const struct lull_kwish *kernels; /* measure these, NULL = none */
	const char *samples_from;	  /* report with samples of the same kernels, or NULL */
	u64 kernel_timeout_ns;		  /* a replay that takes longer is ended, 0 = no limit */
	const struct lull_vec *libraries; /* char *: LIBRARY[:PATTERN], may be NULL */
	const struct lull_vec *env;	  /* char *: A=B for the program, may be NULL */
	bool is_env_inherited;
	bool is_env_discarded; /* do not store the environment */
	bool is_unresolved;    /* --resolve-symbols=false */
	const char *debug_dirs;
	const char *session_name; /* "" = made up */
	bool is_quiet;
	bool has_output;	       /* something is printed to standard output after the run */
	bool is_run_again;	       /* the program is: it needs what we were given once more */
	const struct lull_vec *attach; /* pid_t: programs that run already; NULL: start one */
};

/* One report that was written. */
struct lull_report_done {
	char *path;
	u32 number; /* rises with the time at which they were begun */
	u64 size_bytes;
	u64 n_events;
	u64 n_lost;
	f64 seconds;
	char *notices; /* what the user must know of the GPU part, a line each; NULL if nothing */
};

struct lull_collector_result {
	int exit_status;	 /* of the program: its code, 128 + signal, 126 or 127 */
	struct lull_vec reports; /* struct lull_report_done */
	/* With kernels to be measured: launches seen and measured, how long that took, passes. */
	u64 n_launches, n_measured, measured_ns;
	u32 n_passes;
	struct lull_str ran; /* which kernels were launched, as people read it; "" if not known */
	bool has_hung;	     /* a kernel did not end, and the program was ended for it */
	u64 stop_ns;	     /* lull attach: the longest time for which a thread was stopped */
};

/*
 * Run the program, or attach to those of options->attach, and record it. Returns 0 when the program
 * ran, whatever its status; a negative code when it could not be started or the recorder failed.
 * Reports written so far are in the result in any case.
 */
int lull_collector_run(const struct lull_collector_options *o, char **argv,
		       struct lull_collector_result *result, struct lull_err *err);

/* Free the list of reports. */
void lull_collector_result_release(struct lull_collector_result *result);

#endif
