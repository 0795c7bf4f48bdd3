/*
 * collector_int - shared by the files of the collector; no other file includes it.
 */
#ifndef LULL_RECORD_COLLECTOR_INT_H
#define LULL_RECORD_COLLECTOR_INT_H

#include "record/axis.h"
#include "record/clock.h"
#include "record/collector.h"
#include "record/session/dump.h"
#include "record/live/duty.h"
#include "record/live/flight.h"
#include "record/live/metrics_port.h"
#include "record/perf/perf.h"
#include "record/session/record_progress.h"
#include "record/live/pulse.h"
#include "record/recording.h"
#include "record/perf/sched.h"
#include "record/session/session.h"
#include "record/session/spawn.h"
#include "record/process/tree.h"
#include "record/session/witness.h"

struct lull_collector {
	const struct lull_collector_options *options;
	struct lull_collector_result *result;
	char **argv;

	struct lull_session session;
	struct lull_clock clock;
	struct lull_tree tree;
	struct lull_recording recording;
	struct lull_perf *perf; /* NULL if not used or refused */
	struct lull_sched *sched;
	struct lull_gpu_feed *gpu; /* NULL if devices are not looked at */
	struct lull_target target;
	struct lull_progress progress;
	struct lull_str agent_path;
	char attach_root[32]; /* where programs that we attach to see their files, "" as we do */
	int socket_fd;
	int signal_fd;
	int stamps_fd; /* has the kernel stamp packets, -1 while no server wants that */
	struct lull_witness witness;
	u32 sample_hz;		/* CPU samples a second by perf; 0 takes none */
	u64 sample_cost_ns;	/* of each, 0 if it was not measured */
	char perf_refusal[256]; /* why perf is not used, "" if it is */

	/* The present recording. */
	char report_path[4096];
	char work_path[4096]; /* where it is written until it is whole; mostly the same */
	u32 n_records;	      /* recordings begun so far */
	u64 begin_ns;
	u64 checkpoint_ns; /* when the last one was made */
	u64 stop_at_ns;	   /* end of --duration, 0 = none */
	u32 n_missed;	   /* capture ranges that were missed and told of */
	u32 n_refused;	   /* likewise, processes without an agent */
	u32 n_unopened;	   /* images that the last scan could not open for want of descriptors */
	bool is_counted;   /* these, and the issues of agents, are in the open report */
	u32 n_ranges_seen; /* capture ranges that ended */
	bool has_report_failed;
	struct lull_err report_err; /* first trouble with writing a report */

	/* A recording in windows (--duty). */
	struct lull_axis axis;
	struct lull_duty duty;
	struct lull_window_state {
		enum { LULL_WINDOW_REST, LULL_WINDOW_WANTED, LULL_WINDOW_OPEN } state;
		bool is_timed; /* we end it, not a step */
		u32 n_begun;   /* of those that control->capture_began counts, seen */
		u64 wanted_ns, begin_ns;
		u64 n_events; /* of the report, when it began */
	} window;

	struct lull_flight flight;
	char ring_path[4096];  /* its file, without ".part" */
	struct lull_vec dumps; /* struct lull_dump: reports that children of ours write */
	bool is_dumping;       /* we are such a child */

	/* What it says while it runs. */
	struct lull_pulse pulse;
	struct lull_metrics *metrics; /* NULL if nobody may ask */
	u64 turn_ns;		      /* when shares of the recent past were begun anew */

	/* The session. */
	u64 start_ns;	  /* when the program was started */
	u64 begin_at_ns;  /* end of --delay, 0 = none pending */
	u64 last_tick_ns; /* when the round before this one began: nothing unseen is older */
	u64 next_usage_ns;
	u64 next_python_ns;
	u64 ended_ns;	     /* when the program ended */
	bool has_said_wait;  /* that others are waited for */
	bool is_launched;    /* the program runs */
	bool is_over;	     /* leave the loop */
	bool is_salvaging;   /* finishing for a dead recorder: nobody saw processes end */
	u64 salvage_counter; /* when the report begins that it had not opened, 0 = it had */
	bool has_strangers;  /* we had children before we started any */
	bool is_shutdown;    /* asked to end the session */
	u32 n_interrupts;    /* Ctrl-C within a second, while the program runs */
	u64 interrupt_ns;    /* the first of them */
	bool sent_sigterm;   /* SIGTERM was sent to all processes: after this comes SIGKILL */
	u64 kill_at_ns;	     /* when a polite signal was not enough */
	u64 cpu_start_ns;    /* our own CPU time at the start of the recording */
	u64 cpu_forked_ns;   /* in a child that finishes a report: what its parent had used */
	u64 pid_ns;	     /* our own PID namespace, 0 until somebody asked (pidns.h) */
	bool has_hung;	     /* a kernel did not end, and the program was ended for it */
};

/* feed_agents.c: open new images, take their events, drop those that ended. */
void lull_feed_agents_scan(struct lull_collector *c);
void lull_feed_agents(struct lull_collector *c);
/* Take those that died out of the present round of steps; true if there were any. */
bool lull_feed_agents_leave_round(struct lull_collector *c);
/* Whether a process that is alive records the activity of a device. */
bool lull_feed_agents_have_cuda(const struct lull_collector *c);
/* Wake what sleeps in agents with CUDA: a recording has begun or ended. */
void lull_feed_agents_wake(struct lull_collector *c);
/*
 * Ask agents with CUDA to flush device records, and wait for it, a second at most. False
 * if there are none.
 */
bool lull_feed_agents_flush(struct lull_collector *c);
/*
 * Before a recording that no agent begins: have CUPTI switched on in all of them, and wait for it,
 * 5 s at most. They keep it on while `armed` or `record` is set.
 */
void lull_feed_agents_arm(struct lull_collector *c);
/* Whether CUPTI then still held something back: work of the device is not finished. */
bool lull_feed_agents_is_held_back(const struct lull_collector *c);
/* Give chunks back; only after a checkpoint, or when nothing is recorded. */
void lull_feed_agents_release(struct lull_collector *c);
/* Bytes read from shared memory and not yet safe in the file. */
u64 lull_feed_agents_held(const struct lull_collector *c);
/* Counters of the agents become issues of the report. */
void lull_feed_agents_issues(struct lull_collector *c);

/*
 * feed_perf.c: open on the stopped target; take what the rings hold (`is_last`: up to the very
 * end).
 */
void lull_feed_perf_open(struct lull_collector *c);
void lull_feed_perf(struct lull_collector *c, bool is_last);
void lull_feed_perf_close(struct lull_collector *c);
/* A recording begins or ends: switch the events, end the stays on CPUs. */
void lull_feed_perf_begin(struct lull_collector *c);
void lull_feed_perf_end(struct lull_collector *c, u64 now_ns);

/* The part of it that each window does. */
void lull_feed_perf_resume(struct lull_collector *c, u64 begin_ns);

/*
 * feed_duty.c: fill in the control page; start; before events are read, and each tick; before the
 * report is closed. Whether nothing is recorded because no window is open.
 */
void lull_feed_duty_control(struct lull_collector *c);
void lull_feed_duty_begin(struct lull_collector *c);
void lull_feed_duty_follow(struct lull_collector *c);
void lull_feed_duty(struct lull_collector *c, u64 now_ns);
void lull_feed_duty_finish(struct lull_collector *c, u64 now_ns);
bool lull_feed_duty_is_paused(const struct lull_collector *c);

/* feed_proc.c: CPU and memory from /proc; Python stacks. */
void lull_feed_usage(struct lull_collector *c);
void lull_feed_python(struct lull_collector *c);
void lull_feed_python_free(struct lull_process *p);

/* feed_gpu.c: state of devices from the sampler beside us; its troubles become issues. */
void lull_feed_gpu_open(struct lull_collector *c);
void lull_feed_gpu(struct lull_collector *c);
void lull_feed_gpu_issues(struct lull_collector *c);
void lull_feed_gpu_close(struct lull_collector *c);
/* What --metrics-port tells of devices; NULL if they are not looked at. */
const struct lull_live_devices *lull_feed_gpu_live(const struct lull_collector *c);
/* The sampler's process, 0 if there is none; a child that was waited for may be it. */
pid_t lull_feed_gpu_pid(const struct lull_collector *c);
void lull_feed_gpu_ended(struct lull_collector *c, pid_t pid);

/* feed_kernel.c: what is measured right now, and the end of what never ends. */
void lull_feed_kernels(struct lull_collector *c);
/* Show it in the line of progress; false if no kernels are measured. */
bool lull_feed_kernels_show(struct lull_collector *c);

/* feed_metrics.c: listen if that is asked for; answer whoever asks. */
int lull_feed_metrics_open(struct lull_collector *c, struct lull_err *err);
void lull_feed_metrics(struct lull_collector *c, u64 now_ns);

/* collector.c: if a capture range has begun, open its report. */
void lull_collector_follow_begin(struct lull_collector *c);
/* The process that started the present recording has died. */
bool lull_collector_is_capturer_gone(const struct lull_collector *c);
/* Children that have ended: take their status. */
void lull_collector_reap(struct lull_collector *c);

/* session/attached.c: programs that run already. Look at them, before anything is made; */
int lull_attached_inspect(struct lull_collector *c, struct lull_err *err);
/* enter them and begin; */
int lull_attached_launch(struct lull_collector *c, struct lull_err *err);
/* notice that all of them have ended; */
void lull_attached_check(struct lull_collector *c);
/* wait until the agents have left. */
void lull_attached_part(struct lull_collector *c);

/* control.c: begin, end and cancel recordings. */
int lull_control_begin(struct lull_collector *c, const char *output, struct lull_err *err);
int lull_control_end(struct lull_collector *c, struct lull_err *err);
/* The same, but the report is finished by a child: a capture range may begin again at once. */
int lull_control_end_soon(struct lull_collector *c, struct lull_err *err);
void lull_control_cancel(struct lull_collector *c);
/* Switch the agents off and read all they wrote; the report stays open. */
void lull_control_pause(struct lull_collector *c);
/* The time as agents stamp it. */
u64 lull_control_counter(const struct lull_collector *c);
/* How much time the report covers so far. */
u64 lull_control_age_ns(const struct lull_collector *c, u64 now_ns);
/* Ready for the next capture range, and for our death before we have seen it. */
void lull_control_await_range(struct lull_collector *c);
/*
 * Choose report_path and work_path by the pattern `output` (NULL: that of the options); `number` as
 * in struct lull_naming.
 */
int lull_control_name(struct lull_collector *c, const char *output, u32 number,
		      struct lull_err *err);
/* CPU time of the recorder so far, also in a child that finishes a report. */
u64 lull_control_cpu_ns(const struct lull_collector *c);

/* All has been read: write the last rows, seal the report, add it to the result. */
int lull_control_finish(struct lull_collector *c, u64 now_ns, struct lull_err *err);
/* Events known to be lost in the open report so far. */
u64 lull_control_losses(const struct lull_collector *c);
/* Make the file safe if it is time to. */
void lull_control_checkpoint(struct lull_collector *c, bool is_forced);
/* End the program (and what it started) with the signal. */
void lull_control_kill(struct lull_collector *c, int signal);

/* remote.c: requests of lull start, stop, ... */
int lull_remote_listen(struct lull_collector *c, struct lull_err *err);
void lull_remote_serve(struct lull_collector *c);

#endif
