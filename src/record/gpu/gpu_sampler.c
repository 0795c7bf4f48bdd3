#include "record/gpu/gpu_sampler.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/str.h"
#include "base/time.h"
#include "record/session/helper.h"
#include "record/session/locate.h"
#include "record/gpu/pm.h"

/* Ten looks a second, as for processes; drivers update most of it no faster. */
#define LOOK_NS (LULL_NS_PER_S / 10)

/* Samples wait in the device's memory; this often they are taken out. */
#define DRAIN_MS 5

/* Room for a second of samples at 10 kHz, should the recorder be busy. */
#define PIPE_BYTES (1 << 20)

/* How long its end is waited for; half way it is made to. */
#define STOP_ROUNDS   300
#define STOP_ROUND_US 1000

struct sampler {
	const struct lull_gpu_sampler_options *options;
	int fd;
	struct lull_nvml *nvml;
	struct lull_pm *pm[LULL_MAX_GPUS];
	bool has_pm;
	/* The message in the making. */
	u32 device_ix;
	u32 n_values;
	struct lull_gpu_value values[LULL_GPU_MESSAGE_MAX / sizeof(struct lull_gpu_value)];
};

/* All of it in one piece; nobody who reads is the end. */
static void send_message(struct sampler *s, const struct lull_gpu_message *head, const void *body)
{
	u8 bytes[sizeof(*head) + LULL_GPU_MESSAGE_MAX];
	size_t n = sizeof(*head) + head->size_bytes, done = 0;

	memcpy(bytes, head, sizeof(*head));
	memcpy(bytes + sizeof(*head), body, head->size_bytes);
	while (done < n) {
		ssize_t w = write(s->fd, bytes + done, n - done);

		if (w < 0 && errno != EINTR)
			_exit(0);
		done += w > 0 ? (size_t)w : 0;
	}
}

static void send_text(struct sampler *s, u32 kind, const char *text)
{
	size_t n = strnlen(text, LULL_GPU_MESSAGE_MAX);
	struct lull_gpu_message head = { .kind = kind,
					 .size_bytes = (u32)n,
					 .time_ns = lull_now_ns() };

	send_message(s, &head, text);
}

static void send_values(struct sampler *s, u64 time_ns)
{
	struct lull_gpu_message head = {
		.kind = LULL_GPU_VALUES,
		.size_bytes = s->n_values * (u32)sizeof(s->values[0]),
		.time_ns = time_ns,
		.device_ix = s->device_ix,
	};

	if (s->n_values)
		send_message(s, &head, s->values);
	s->n_values = 0;
}

static void on_value(void *ctx, enum lull_metric_kind metric, f64 value)
{
	struct sampler *s = ctx;

	if (s->n_values < LULL_COUNT_OF(s->values))
		s->values[s->n_values++] =
			(struct lull_gpu_value){ .metric = metric, .value = value };
}

static void on_sample(void *ctx, u64 time_ns, const struct lull_pm_plan *plan, const f64 *values)
{
	struct sampler *s = ctx;

	for (u32 i = 0; i < plan->n; i++)
		on_value(s, plan->metrics[i], values[i]);
	send_values(s, time_ns);
}

static bool is_wanted(const struct sampler *s, u32 device_ix)
{
	return device_ix < 64 && s->options->devices >> device_ix & 1;
}

static void look(struct sampler *s)
{
	for (u32 i = 0; i < lull_nvml_n_devices(s->nvml); i++) {
		if (!is_wanted(s, i))
			continue;
		s->device_ix = i;
		lull_nvml_sample(s->nvml, i, on_value, s);
		send_values(s, lull_now_ns());
	}
}

static void drain(struct sampler *s)
{
	for (u32 i = 0; i < LULL_MAX_GPUS; i++) {
		u64 n_lost;

		if (!s->pm[i])
			continue;
		s->device_ix = i;
		n_lost = lull_pm_drain(s->pm[i], on_sample, s);
		if (n_lost) {
			struct lull_gpu_message head = { .kind = LULL_GPU_LOST,
							 .size_bytes = sizeof(n_lost),
							 .time_ns = lull_now_ns(),
							 .device_ix = i };

			send_message(s, &head, &n_lost);
		}
	}
}

static void announce(struct sampler *s)
{
	for (u32 i = 0; i < lull_nvml_n_devices(s->nvml); i++) {
		struct lull_gpu_message head = { .kind = LULL_GPU_DEVICE,
						 .size_bytes = sizeof(struct lull_gpu_facts),
						 .time_ns = lull_now_ns(),
						 .device_ix = i };

		if (is_wanted(s, i))
			send_message(s, &head, lull_nvml_facts(s->nvml, i));
	}
}

/* What will be there instead, for the sentence that says that counters are refused. */
static const char *instead(const struct sampler *s)
{
	for (u32 i = 0; i < lull_nvml_n_devices(s->nvml); i++)
		if (is_wanted(s, i) && lull_nvml_has_gpm(s->nvml, i))
			return "; GPM and NVML at 10 Hz instead";
	return "; NVML at 10 Hz instead";
}

static void open_counters(struct sampler *s)
{
	struct lull_str path = LULL_STR_INIT, text = LULL_STR_INIT;
	u64 interval_ns = LULL_NS_PER_S / s->options->pm_rate_hz;
	struct lull_err err = { .msg = "no libcupti was found" };

	/* As NVML numbers them, and all of them. */
	setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
	unsetenv("CUDA_VISIBLE_DEVICES");
	if (lull_locate_cupti(&path))
		for (u32 i = 0; i < lull_nvml_n_devices(s->nvml); i++)
			if (is_wanted(s, i) &&
			    lull_pm_open(&s->pm[i], path.at, i, interval_ns, &err) == 0)
				s->has_pm = true;
	if (!s->has_pm) {
		lull_str_addf(&text, "%s%s", err.msg, instead(s));
		send_text(s, LULL_GPU_REFUSED, text.at);
	}
	lull_str_release(&path);
	lull_str_release(&text);
}

/* Until nobody reads any more. */
static void run(struct sampler *s)
{
	u64 next_ns = lull_now_ns();
	struct lull_err err;

	if (lull_nvml_open(&s->nvml, &err) != 0) {
		send_text(s, LULL_GPU_ABSENT, err.msg);
		return;
	}
	if (!lull_nvml_n_devices(s->nvml)) {
		send_text(s, LULL_GPU_ABSENT, "the driver has no device");
		return;
	}
	if (s->options->is_live)
		lull_nvml_want_live(s->nvml);
	announce(s);
	if (s->options->pm_rate_hz)
		open_counters(s);
	for (;;) {
		struct pollfd fd = { .fd = s->fd };
		u64 now_ns = lull_now_ns();
		int wait_ms;

		if (now_ns >= next_ns) {
			look(s);
			next_ns = now_ns + LOOK_NS;
		}
		drain(s);
		now_ns = lull_now_ns();
		wait_ms = s->has_pm	     ? DRAIN_MS
			  : now_ns < next_ns ? (int)((next_ns - now_ns) / 1000000) + 1
					     : 0;
		/* POLLERR: the other end is closed. */
		if (poll(&fd, 1, wait_ms) > 0 && (fd.revents & (POLLERR | POLLHUP)))
			return;
	}
}

static void leave_signals(void)
{
	sigset_t none;

	setsid(); /* Ctrl-C is not for us */
	signal(SIGPIPE, SIG_IGN);
	signal(SIGINT, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
}

bool lull_gpu_is_likely(void)
{
	const char *named = getenv("LULL_NVML_PATH");

	return (named && *named) || access("/dev/nvidiactl", F_OK) == 0 ||
	       access("/dev/dxg", F_OK) == 0;
}

int lull_gpu_sampler_start(struct lull_gpu_sampler *sampler,
			   const struct lull_gpu_sampler_options *options, struct lull_err *err)
{
	struct sampler s = { .options = options, .fd = LULL_HELPER_FD };
	int ends[2];

	if (pipe2(ends, O_CLOEXEC) != 0)
		return lull_fail_errno(err, "making a pipe");
	fcntl(ends[1], F_SETPIPE_SZ, PIPE_BYTES);
	sampler->pid = lull_helper_fork(ends[1], "lull-gpu");
	if (sampler->pid == 0) {
		leave_signals();
		run(&s);
		_exit(0);
	}
	close(ends[1]);
	if (sampler->pid < 0) {
		close(ends[0]);
		return lull_fail_errno(err, "starting the sampler of devices: fork");
	}
	fcntl(ends[0], F_SETFL, O_NONBLOCK);
	sampler->fd = ends[0];
	return 0;
}

void lull_gpu_sampler_stop(struct lull_gpu_sampler *sampler)
{
	if (sampler->fd >= 0)
		close(sampler->fd);
	sampler->fd = -1;
	for (int i = 0; sampler->pid && i < STOP_ROUNDS; i++) {
		if (i == STOP_ROUNDS / 2)
			kill(sampler->pid, SIGKILL);
		if (waitpid(sampler->pid, NULL, WNOHANG) != 0)
			sampler->pid = 0;
		else
			usleep(STOP_ROUND_US);
	}
}
