/*
 * pulse_frame - the live values of a recording as one line, which a session tells `lull top`.
 *
 * Values count from the first time that somebody asked, so the first frame is empty; the difference
 * of two frames is what happened between them.
 */
#ifndef LULL_RECORD_LIVE_PULSE_FRAME_H
#define LULL_RECORD_LIVE_PULSE_FRAME_H

#include "base/err.h"
#include "base/str.h"
#include "base/types.h"
#include "record/live/pulse.h"

struct lull_pulse_frame {
	u64 now_ns; /* when it was asked */
	u64 pid;    /* of the program */
	u64 age_ns; /* of the session */
	u64 is_recording, n_events, n_lost;
	u64 n_steps, step_ns, last_step_ns;
	u64 n_launches;
	u64 n_devices;
	struct {
		u64 pid, number;
		u64 busy_ns;
		u64 idle_ns[LULL_PULSE_N_CAUSES];
	} devices[LULL_PULSE_MAX_DEVICES];
};

/* Take what is in the pulse; the caller fills the rest. */
void lull_pulse_frame_fill(struct lull_pulse_frame *f, const struct lull_pulse *p);

/* Append the line. */
void lull_pulse_frame_write(struct lull_str *to, const struct lull_pulse_frame *f);

/* Read a line; LULL_E_FORMAT if it is another kind of line. */
int lull_pulse_frame_parse(struct lull_pulse_frame *f, const char *line, struct lull_err *err);

#endif
