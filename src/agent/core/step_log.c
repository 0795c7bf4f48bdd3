#include "agent/core/step_log.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/decimal.h"
#include "agent/core/sys.h"
#include "base/time.h"
#include "lull.h"
#include "wire/wire.h"

/* As in python/lull/_try.py: steps that warm-up may take longer, and what counts as alike. */
#define MOST_WARMUP 40
#define LIKE	    1.5

#define PATH_BYTES 512

/* A line that grows; what does not fit is cut off. */
struct line {
	char text[PATH_BYTES];
	size_t len;
};

static struct {
	atomic_flag is_busy; /* a thread is in here; others are not counted */
	u64 n_warmup, n_steps, n_block;
	u64 n, n_in_block, n_measured;
	u64 times[4]; /* of the last steps, the latest at the end */
	u64 since_ns; /* start of the block; 0: not measuring yet */
	bool has_ended;
	struct line folder;
	void *driver;
} state = { .is_busy = ATOMIC_FLAG_INIT };

static void add_text(struct line *line, const char *text)
{
	for (; *text && line->len + 1 < sizeof(line->text); text++)
		line->text[line->len++] = *text;
	line->text[line->len] = '\0';
}

static void add_number(struct line *line, u64 value)
{
	char digits[LULL_DECIMAL_BYTES];

	add_text(line, lull_decimal(value, digits));
}

/* The letter, and one or two numbers; 0 is none. */
static void write_line(const char *letter, u64 first, u64 second)
{
	struct line path = { .len = 0 }, line = { .len = 0 };
	int saved = errno, fd;

	add_text(&path, state.folder.text);
	add_text(&path, "/");
	add_number(&path, lull_sys_pid());
	add_text(&path, ".log");
	add_text(&line, letter);
	for (int i = 0; i < 2; i++) {
		u64 number = i ? second : first;

		if (!number)
			continue;
		add_text(&line, " ");
		add_number(&line, number);
	}
	add_text(&line, "\n");
	fd = lull_sys_open(path.text, O_WRONLY | O_CREAT | O_APPEND, 0600);
	if (fd >= 0) {
		syscall(SYS_write, fd, line.text, line.len);
		lull_sys_close(fd);
	}
	errno = saved;
}

/* Wait for the device, if the program uses one. */
static void wait_for_device(void)
{
	int (*synchronize)(void);

	if (!state.driver)
		state.driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	*(void **)&synchronize = state.driver ? dlsym(state.driver, "cuCtxSynchronize") : NULL;
	if (synchronize)
		synchronize();
}

/*
 * The program is ended next, and what it wrote is compared: its own streams, so its own fflush().
 */
static void flush_output(void)
{
	int (*flush)(void *);

	*(void **)&flush = dlsym(RTLD_DEFAULT, "fflush");
	if (flush)
		flush(NULL);
}

static bool is_warm(void)
{
	u64 low = UINT64_MAX, high = 0;

	if (state.n <= state.n_warmup || state.n < 4)
		return false;
	for (int i = 1; i < 4; i++) {
		u64 ns = state.times[i] - state.times[i - 1];

		low = ns < low ? ns : low;
		high = ns > high ? ns : high;
	}
	return (double)high <= LIKE * (double)low || state.n > state.n_warmup + MOST_WARMUP;
}

static void warm_up(void)
{
	u64 now_ns = lull_now_ns();

	memmove(state.times, state.times + 1, 3 * sizeof(state.times[0]));
	state.times[3] = now_ns;
	state.n++;
	write_line("s", now_ns, 0);
	if (!is_warm())
		return;
	wait_for_device();
	state.since_ns = lull_now_ns();
	write_line("m", state.since_ns, 0);
}

static void end_block(void)
{
	u64 now_ns;

	wait_for_device();
	now_ns = lull_now_ns();
	write_line("b", state.n_in_block, now_ns - state.since_ns);
	state.n_measured += state.n_in_block;
	state.n_in_block = 0;
	state.since_ns = now_ns;
	if (state.n_measured >= state.n_steps) {
		state.has_ended = true;
		flush_output();
		write_line("e", 0, 0);
	}
}

static void step(unsigned long long number)
{
	(void)number;
	if (atomic_flag_test_and_set(&state.is_busy))
		return;
	if (state.has_ended)
		;
	else if (!state.since_ns)
		warm_up();
	else if (++state.n_in_block >= state.n_block)
		end_block();
	atomic_flag_clear(&state.is_busy);
}

/* The last step of the program; a block that is not full counts as well. */
static void step_end(void)
{
	if (atomic_flag_test_and_set(&state.is_busy))
		return;
	if (state.since_ns && !state.has_ended) {
		state.n_in_block++;
		end_block();
	}
	atomic_flag_clear(&state.is_busy);
}

static void ignore_name(const char *name)
{
	(void)name;
}

static void ignore(void)
{
}

static int say_no(void)
{
	return 0;
}

static void ignore_id(unsigned long long id)
{
	(void)id;
}

static void ignore_value(const char *name, unsigned long long value)
{
	(void)name;
	(void)value;
}

static int ignore_schedule(const struct lull_steps *steps)
{
	(void)steps;
	return 0;
}

/* The number at the start of the text, which then starts after the next comma. */
static u64 read_number(const char **text)
{
	u64 value = 0;

	for (; **text >= '0' && **text <= '9'; (*text)++)
		value = value * 10 + (u64)(**text - '0');
	*text += **text == ',';
	return value;
}

const struct lull_annotate_api *lull_step_log(void)
{
	static const struct lull_annotate_api api = {
		.size = sizeof(api),
		.push = ignore_name,
		.pop = ignore,
		.mark = ignore_name,
		.step = step,
		.step_end = step_end,
		.is_recording = say_no,
		.mark_value = ignore_value,
		.start = ignore,
		.stop = ignore,
		.schedule = ignore_schedule,
		.request = ignore_id,
		.work = ignore_id,
		.token = ignore,
		.done = ignore,
	};
	const char *folder = getenv("LULL_TRY"), *numbers = getenv("LULL_TRY_STEPS");

	if (!folder || getenv(LULL_ENV_SESSION) || !numbers)
		return NULL;
	state.folder.len = 0;
	add_text(&state.folder, folder);
	state.n_warmup = read_number(&numbers);
	state.n_steps = read_number(&numbers);
	state.n_block = read_number(&numbers);
	return state.n_block ? &api : NULL;
}
