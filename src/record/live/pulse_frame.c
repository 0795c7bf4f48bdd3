#include "record/live/pulse_frame.h"

#include <stdlib.h>
#include <string.h>

/* Changes with the numbers of the line, so that another version of lull is noticed. */
#define KIND "pulse1"

/* The numbers before those of the devices, in the order of the struct. */
#define N_HEAD (offsetof(struct lull_pulse_frame, devices) / sizeof(u64))

/* The numbers of a device. */
#define N_DEVICE (3 + LULL_PULSE_N_CAUSES)

_Static_assert(sizeof(((struct lull_pulse_frame *)0)->devices[0]) == N_DEVICE * sizeof(u64),
	       "a device is numbers and nothing else");

void lull_pulse_frame_fill(struct lull_pulse_frame *f, const struct lull_pulse *p)
{
	f->n_steps = p->n_steps;
	f->step_ns = p->step_ns;
	f->last_step_ns = p->last_step_ns;
	f->n_launches = p->n_launches;
	f->n_devices = p->n_devices;
	for (u32 i = 0; i < p->n_devices; i++) {
		f->devices[i].pid = p->devices[i].pid;
		f->devices[i].number = p->devices[i].number;
		f->devices[i].busy_ns = p->devices[i].busy_ns;
		memcpy(f->devices[i].idle_ns, p->devices[i].idle_ns, sizeof(f->devices[i].idle_ns));
	}
}

/* The frame as its numbers: it has nothing else. */
static size_t n_numbers(u64 n_devices)
{
	return N_HEAD + (size_t)n_devices * N_DEVICE;
}

void lull_pulse_frame_write(struct lull_str *to, const struct lull_pulse_frame *f)
{
	u64 numbers[sizeof(*f) / sizeof(u64)];

	memcpy(numbers, f, sizeof(numbers));
	lull_str_puts(to, KIND);
	for (size_t i = 0; i < n_numbers(f->n_devices); i++)
		lull_str_addf(to, " %llu", (unsigned long long)numbers[i]);
}

int lull_pulse_frame_parse(struct lull_pulse_frame *f, const char *line, struct lull_err *err)
{
	u64 numbers[sizeof(*f) / sizeof(u64)] = { 0 };
	const char *at = line + sizeof(KIND) - 1;
	size_t n = 0;

	if (!strncmp(line, KIND " ", sizeof(KIND))) {
		for (; *at == ' ' && n < LULL_COUNT_OF(numbers); n++) {
			char *end;

			numbers[n] = strtoull(at, &end, 10);
			at = end;
		}
	}
	memcpy(f, numbers, sizeof(*f));
	if (n < N_HEAD || *at || f->n_devices > LULL_PULSE_MAX_DEVICES ||
	    n != n_numbers(f->n_devices))
		return lull_fail(err, LULL_E_FORMAT,
				 "the recorder of this session is another version of lull");
	return LULL_OK;
}
