/*
 * device_clock - how well the device's times fit the host's, measured on the program's own work.
 *
 * CUPTI stamps records with our counter, by a comparison of clocks of its own that can be off. Two
 * things must hold: work begins after the call that asked for it began, and has ended when a wait
 * for it returns. The shortest distance of the first kind says how late the device's times can be
 * at most, of the second kind how early; a negative distance is an error that was seen. Work that
 * seems to begin before its call is moved behind it, and counted.
 */
#ifndef LULL_LAUNCH_DEVICE_CLOCK_H
#define LULL_LAUNCH_DEVICE_CLOCK_H

#include "launch/recording.h"

/* A wait of the host that has returned. */
struct lull_device_wait {
	u32 correlation;
	u32 lane; /* of the stream, 0 for all streams */
	u64 end_ns;
	bool is_host;
};

/* A call with this number began. */
void lull_device_clock_call(struct lull_process *p, u32 correlation, u64 start_ns);

/* Work of that call began at `start_ns` by the device's clock; returns when it can have. */
u64 lull_device_clock_work(struct lull_recording *r, struct lull_process *p, u32 correlation,
			   u64 start_ns);

/* A kernel of this call ended. */
void lull_device_clock_ended(struct lull_process *p, u32 lane, u32 correlation, u64 end_ns);

/* The host has waited for the device. */
void lull_device_clock_wait(struct lull_recording *r, struct lull_process *p,
			    const struct lull_device_wait *wait);

/* Note what was measured in the report: cuda.clock_*. */
void lull_device_clock_note(struct lull_recording *r);

#endif
