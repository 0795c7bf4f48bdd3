#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/time.h"
#include "record/python/python_int.h"
#include "support/patience.h"
#include "support/skip.h"

/*
 * Two ways to test without six interpreters: an image of memory built from the layout of each
 * version, and whatever interpreters are installed here. LULL_TEST_PYTHONS adds more of them,
 * separated by colons.
 */

/* an image of memory */

#define BASE	    0x100000ULL
#define IMAGE_BYTES (256 << 10)

struct image {
	u8 at[IMAGE_BYTES];
	u64 next; /* free address */
	const struct lull_python_layout *layout;
	u64 code_type;
	u32 n_calls;
	int failure; /* errno for every read, if not 0 */
};

static int read_image(void *ctx, const struct iovec *to, const struct iovec *from, size_t n)
{
	struct image *image = ctx;

	image->n_calls++;
	if (image->failure) {
		errno = image->failure;
		return -1;
	}
	for (size_t i = 0; i < n; i++) {
		u64 addr = (u64)(uintptr_t)from[i].iov_base;

		if (addr < BASE || from[i].iov_len > IMAGE_BYTES ||
		    addr > BASE + IMAGE_BYTES - from[i].iov_len)
			return (int)i;
		memcpy(to[i].iov_base, image->at + (addr - BASE), from[i].iov_len);
	}
	return (int)n;
}

static u64 place(struct image *image, size_t n_bytes)
{
	u64 addr = image->next;

	image->next += (n_bytes + 15) & ~15ULL;
	assert_true(image->next <= BASE + IMAGE_BYTES);
	return addr;
}

static void put(struct image *image, u64 addr, int off, u64 value, size_t n_bytes)
{
	assert_true(off >= 0);
	memcpy(image->at + (addr - BASE) + off, &value, n_bytes);
}

static void put_u64(struct image *image, u64 addr, int off, u64 value)
{
	put(image, addr, off, value, 8);
}

/* PyASCIIObject.state of a compact string with this many bytes per character. */
static u32 str_state(u32 kind, bool is_ascii)
{
	return kind << 2 | 1u << 5 | (u32)is_ascii << 6;
}

static u64 put_str(struct image *image, const char *text)
{
	const struct lull_python_layout *l = image->layout;
	u64 addr = place(image, (size_t)l->str_bytes + strlen(text) + 1);

	put_u64(image, addr, l->str_len, strlen(text));
	put(image, addr, l->str_state, str_state(1, true), 4);
	memcpy(image->at + (addr - BASE) + l->str_ascii_bytes, text, strlen(text));
	return addr;
}

static u64 put_bytes(struct image *image, const u8 *bytes, size_t n)
{
	u64 addr = place(image, (size_t)image->layout->bytes_data + n);

	put_u64(image, addr, image->layout->bytes_len, n);
	memcpy(image->at + (addr - BASE) + image->layout->bytes_data, bytes, n);
	return addr;
}

/* A line table that says: offsets 0-3 are the first line, 4-7 two lines further. */
static u64 put_lines(struct image *image)
{
	static const u8 lnotab[] = { 4, 2 }, ranges[] = { 4, 0, 4, 2 },
			locations[] = { 0x80 | 0 << 3 | 1, 0, 0x80 | 13 << 3 | 1, 2 << 1 };

	if (image->layout->minor == 9)
		return put_bytes(image, lnotab, sizeof(lnotab));
	if (image->layout->minor == 10)
		return put_bytes(image, ranges, sizeof(ranges));
	return put_bytes(image, locations, sizeof(locations));
}

static u64 put_code(struct image *image, const char *name, u32 first_line)
{
	const struct lull_python_layout *l = image->layout;
	u64 addr = place(image, 512);

	put_u64(image, addr, l->object_type, image->code_type);
	put_u64(image, addr, l->code_name, put_str(image, name));
	put_u64(image, addr, l->code_filename, put_str(image, "/src/train.py"));
	put(image, addr, l->code_first_line, first_line, 4);
	put_u64(image, addr, l->code_linetable, put_lines(image));
	return addr;
}

/* A frame at byte offset `off` of its code. */
static u64 put_frame(struct image *image, u64 previous, u64 code, u32 off)
{
	const struct lull_python_layout *l = image->layout;
	u64 addr = place(image, 192);

	put_u64(image, addr, l->frame_previous, previous);
	put_u64(image, addr, l->frame_code, l->minor >= 14 ? code | 1 : code);
	if (l->minor <= 10)
		put(image, addr, l->frame_instr, l->minor == 9 ? off : off / 2, 4);
	else
		put_u64(image, addr, l->frame_instr, code + (u64)l->code_instrs + off);
	return addr;
}

static u64 put_tstate(struct image *image, u64 next, u64 frame, u32 tid)
{
	const struct lull_python_layout *l = image->layout;
	u64 addr = place(image, 512);

	if (l->cframe_current != LULL_PYTHON_NONE) {
		u64 cframe = place(image, 32);

		put_u64(image, cframe, l->cframe_current, frame);
		frame = cframe;
	}
	put_u64(image, addr, l->tstate_next, next);
	put_u64(image, addr, l->tstate_frame, frame);
	put_u64(image, addr, l->tstate_thread_id, 0x7000000 + tid);
	if (l->tstate_native_id != LULL_PYTHON_NONE)
		put_u64(image, addr, l->tstate_native_id, tid);
	return addr;
}

/* The addresses a test wants to spoil. */
struct scene {
	struct image image;
	struct lull_python_layout layout;
	struct lull_python_target target;
	u64 step, train, shim; /* frames, innermost first */
	u64 step_code;
	u64 holder; /* thread state */
	struct lull_python *py;
};

/* Real offsets of 3.13 (they are about the same in 3.14), by slot of each version's table. */
static void put_debug_offsets(struct scene *s, u32 minor)
{
	const struct {
		int slot13, slot14;
		u64 off;
	} all[] = {
		{ 5, 5, 808 },	{ 8, 8, 7264 },	 { 9, 9, 7344 },  { 21, 24, 8 },   { 27, 30, 32 },
		{ 23, 26, 72 }, { 24, 27, 152 }, { 25, 28, 160 }, { 29, 32, 8 },   { 30, 33, 0 },
		{ 31, 34, 56 }, { 33, 36, 70 },	 { 35, 40, 112 }, { 37, 42, 128 }, { 38, 43, 136 },
		{ 39, 44, 68 }, { 43, 48, 200 }, { 45, 51, 8 },	  { 65, 75, 16 },  { 66, 76, 32 },
		{ 69, 79, 16 }, { 68, 78, 32 },	 { 70, 80, 40 },  { 67, 77, 64 },
	};

	memcpy(s->image.at + (s->target.runtime - BASE), "xdebugpy", 8);
	put_u64(&s->image, s->target.runtime, 8, 3u << 24 | minor << 16);
	for (size_t i = 0; i < LULL_COUNT_OF(all); i++)
		put_u64(&s->image, s->target.runtime,
			8 * (minor == 13 ? all[i].slot13 : all[i].slot14), all[i].off);
}

static u32 tid_of_pthread(void *ctx, u64 pthread_id)
{
	(void)ctx;
	return (u32)(pthread_id - 0x7000000);
}

/* Mark who holds the lock the way this version does. */
static void put_gil(struct scene *s)
{
	const struct lull_python_layout *l = &s->layout;

	if (l->tstate_status != LULL_PYTHON_NONE) {
		put(&s->image, s->holder, l->tstate_status, 1u << 4, 4);
	} else {
		put_u64(&s->image, s->target.runtime, l->runtime_gil_holder, s->holder);
		put(&s->image, s->target.runtime, l->runtime_gil_holder + 8, 1, 4);
	}
}

/*
 * Two threads: one in step() called by train(), holding the lock, below a trampoline where the
 * version has such; another in wait().
 */
static void build(struct scene *s, u32 minor)
{
	struct lull_python_memory memory = { .read = read_image, .ctx = &s->image };
	u64 interp, other, train_code;
	struct lull_err err;

	memset(s, 0, sizeof(*s));
	s->image.next = BASE + 64;
	s->target.runtime = place(&s->image, 1024);
	s->target.code_type = s->image.code_type = place(&s->image, 16);
	s->target.version = 3u << 24 | minor << 16;
	if (minor >= 13)
		put_debug_offsets(s, minor);
	assert_int_equal(lull_python_layout_init(&s->layout, &memory, &s->target, &err), 0);
	s->image.layout = &s->layout;
	place(&s->image, 8192); /* room below the frames, as the window reads there */
	train_code = put_code(&s->image, "train", 10);
	s->step_code = put_code(&s->image, "Model.step", 20);
	s->shim = put_frame(&s->image, 0, train_code, 0);
	s->train = put_frame(&s->image, minor >= 12 ? s->shim : 0, train_code, 0);
	s->step = put_frame(&s->image, s->train, s->step_code, 4);
	if (s->layout.frame_owner != LULL_PYTHON_NONE)
		s->image.at[s->shim - BASE + (u64)s->layout.frame_owner] = 3;
	other = put_tstate(&s->image, 0,
			   put_frame(&s->image, 0, put_code(&s->image, "wait", 30), 2), 8);
	s->holder = put_tstate(&s->image, other, s->step, 7);
	interp = place(&s->image, 8192);
	put_u64(&s->image, interp, s->layout.interp_tstate_head, s->holder);
	put_u64(&s->image, s->target.runtime, s->layout.runtime_interp_head, interp);
	put_gil(s);
	s->py = lull_python_new(&s->target, &memory, &s->layout);
	lull_python_set_tid_lookup(s->py, tid_of_pthread, NULL);
}

/* Stacks as text: "7* Model.step:22 train:10;8 wait:30;". */
static void on_stack(void *ctx, const struct lull_python_stack *stack)
{
	struct lull_str *text = ctx;

	lull_str_addf(text, "%u%s", stack->tid, stack->has_gil ? "*" : "");
	for (size_t i = 0; i < stack->n_frames; i++) {
		assert_string_equal(stack->frames[i].file, "/src/train.py");
		lull_str_addf(text, " %s:%u", stack->frames[i].function, stack->frames[i].line);
	}
	lull_str_puts(text, ";");
}

static void expect_stacks(struct scene *s, const char *expected)
{
	struct lull_str text = LULL_STR_INIT;
	struct lull_err err;

	assert_int_equal(lull_python_sample(s->py, on_stack, &text, &err), 0);
	assert_string_equal(lull_str_text(&text), expected);
	lull_str_release(&text);
}

static void every_version_gives_the_same_stacks(void **state)
{
	struct scene *s = lull_alloc(1, sizeof(*s));

	(void)state;
	for (u32 minor = 9; minor <= 14; minor++) {
		build(s, minor);
		expect_stacks(s, "7* Model.step:22 train:10;8 wait:30;");
		expect_stacks(s, "7* Model.step:22 train:10;8 wait:30;");
		assert_int_equal(lull_python_n_torn(s->py), 0);
		lull_python_free(s->py);
	}
	free(s);
}

static void a_second_sample_takes_few_calls(void **state)
{
	struct scene *s = lull_alloc(1, sizeof(*s));

	(void)state;
	build(s, 12);
	expect_stacks(s, "7* Model.step:22 train:10;8 wait:30;");
	s->image.n_calls = 0;
	expect_stacks(s, "7* Model.step:22 train:10;8 wait:30;");
	/* Runtime, interpreter; then thread state, C frame, frames and code objects of each thread.
	 */
	assert_true(s->image.n_calls <= 2 + 2 * 4);
	lull_python_free(s->py);
	free(s);
}

static void stale_pointers_cost_only_their_own_stack(void **state)
{
	struct scene *s = lull_alloc(1, sizeof(*s));

	(void)state;
	for (u32 minor = 9; minor <= 14; minor++) {
		build(s, minor);
		put_u64(&s->image, s->step, s->layout.frame_code, 0xdead0000);
		expect_stacks(s, "8 wait:30;");
		put_u64(&s->image, s->step, s->layout.frame_code,
			s->holder); /* mapped, but no code */
		expect_stacks(s, "8 wait:30;");
		put_u64(&s->image, s->step, s->layout.frame_previous, 0xdead0000);
		expect_stacks(s, "8 wait:30;");
		assert_int_equal(lull_python_n_torn(s->py), 3);
		lull_python_free(s->py);
	}
	free(s);
}

/* At either end of memory, where sums go around. */
static void pointers_at_the_ends_of_memory_are_stale(void **state)
{
	static const u64 ends[] = { 8, 4088, UINT64_MAX - 7, UINT64_MAX - 4095, 1ull << 63 };
	struct scene *s = lull_alloc(1, sizeof(*s));

	(void)state;
	for (u32 minor = 9; minor <= 14; minor++)
		for (size_t i = 0; i < LULL_COUNT_OF(ends); i++) {
			build(s, minor);
			/* The window is filled by the frame before it. */
			put_u64(&s->image, s->step, s->layout.frame_previous, ends[i]);
			expect_stacks(s, "8 wait:30;");
			lull_python_free(s->py);
		}
	free(s);
}

static void on_cut(void *ctx, const struct lull_python_stack *stack)
{
	u32 *n_cut = ctx;

	*n_cut += stack->is_cut && stack->n_frames == LULL_PYTHON_MAX_FRAMES;
}

static void chains_without_end_are_cut(void **state)
{
	struct scene *s = lull_alloc(1, sizeof(*s));
	struct lull_err err;
	u32 n_cut = 0;

	(void)state;
	build(s, 11);
	put_u64(&s->image, s->train, s->layout.frame_previous, s->step);
	assert_int_equal(lull_python_sample(s->py, on_cut, &n_cut, &err), 0);
	assert_int_equal(n_cut, 1);
	lull_python_free(s->py);
	build(s, 12); /* trampolines only: nothing to show, and still an end */
	put_u64(&s->image, s->shim, s->layout.frame_previous, s->shim);
	n_cut = 0;
	assert_int_equal(lull_python_sample(s->py, on_cut, &n_cut, &err), 0);
	lull_python_free(s->py);
	build(s, 11);
	put_u64(&s->image, s->holder, s->layout.tstate_next, s->holder);
	assert_int_equal(lull_python_sample(s->py, on_cut, &n_cut, &err), 0);
	lull_python_free(s->py);
	free(s);
}

static void a_reused_address_is_another_code_object(void **state)
{
	struct scene *s = lull_alloc(1, sizeof(*s));

	(void)state;
	build(s, 11);
	expect_stacks(s, "7* Model.step:22 train:10;8 wait:30;");
	put(&s->image, s->step_code, s->layout.code_first_line, 50, 4);
	put_u64(&s->image, s->step_code, s->layout.code_name, put_str(&s->image, "fresh"));
	expect_stacks(s, "7* fresh:52 train:10;8 wait:30;");
	lull_python_free(s->py);
	free(s);
}

static void names_beyond_ascii_become_utf8(void **state)
{
	static const u16 wide[] = { 0x3b1, 'x', 0x6f22 };
	struct scene *s = lull_alloc(1, sizeof(*s));
	u64 name;

	(void)state;
	for (u32 minor = 9; minor <= 14; minor++) {
		build(s, minor);
		name = place(&s->image, 128);
		put_u64(&s->image, name, s->layout.str_len, 3);
		put(&s->image, name, s->layout.str_state, str_state(2, false), 4);
		memcpy(s->image.at + (name - BASE) + s->layout.str_bytes - 8, wide, sizeof(wide));
		put_u64(&s->image, s->step_code, s->layout.code_name, name);
		expect_stacks(s, "7* \xce\xb1x\xe6\xbc\xa2:22 train:10;8 wait:30;");
		lull_python_free(s->py);
	}
	free(s);
}

static void damaged_memory_never_overruns(void **state)
{
	struct scene *s = lull_alloc(1, sizeof(*s));
	u64 seed = 1, n_used;
	struct lull_err err;
	u32 n_cut = 0;

	(void)state;
	for (u32 round = 0; round < 600; round++) {
		build(s, 9 + round % 6);
		n_used = s->image.next - BASE;
		for (int k = 0; k < 200; k++) {
			seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
			s->image.at[(seed >> 20) % n_used] = (u8)(seed >> 56);
		}
		for (int k = 0; k < 2; k++)
			assert_int_equal(lull_python_sample(s->py, on_cut, &n_cut, &err), 0);
		lull_python_free(s->py);
	}
	free(s);
}

static void a_process_that_is_gone_is_an_error(void **state)
{
	struct scene *s = lull_alloc(1, sizeof(*s));
	struct lull_err err;
	u32 n_cut = 0;

	(void)state;
	build(s, 11);
	s->image.failure = ESRCH;
	assert_int_equal(lull_python_sample(s->py, on_cut, &n_cut, &err), LULL_E_NOT_FOUND);
	s->image.failure = EPERM;
	assert_int_equal(lull_python_sample(s->py, on_cut, &n_cut, &err), LULL_E_UNSUPPORTED);
	lull_python_free(s->py);
	free(s);
}

static void unknown_versions_and_builds_are_refused(void **state)
{
	struct scene *s = lull_alloc(1, sizeof(*s));
	struct lull_python_memory memory = { .read = read_image, .ctx = &s->image };
	struct lull_err err;

	(void)state;
	build(s, 13);
	put_u64(&s->image, s->target.runtime, 16, 1); /* free-threaded */
	assert_int_equal(lull_python_layout_init(&s->layout, &memory, &s->target, &err),
			 LULL_E_UNSUPPORTED);
	s->image.at[s->target.runtime - BASE] = 'y'; /* no cookie */
	assert_int_equal(lull_python_layout_init(&s->layout, &memory, &s->target, &err),
			 LULL_E_UNSUPPORTED);
	s->target.version = 3u << 24 | 8u << 16;
	assert_int_equal(lull_python_layout_init(&s->layout, &memory, &s->target, &err),
			 LULL_E_UNSUPPORTED);
	lull_python_free(s->py);
	free(s);
}

static void offsets_out_of_bounds_are_refused(void **state)
{
	struct scene *s = lull_alloc(1, sizeof(*s));
	struct lull_python_memory memory = { .read = read_image, .ctx = &s->image };
	static const u64 absurd[] = { UINT64_MAX, 1 << 19, 1ULL << 40 };
	/* previous frame, thread's frame, code's line table, string's state (slots of 3.13). */
	static const int slots[] = { 29, 23, 38, 68 };
	struct lull_err err;

	(void)state;
	for (size_t i = 0; i < LULL_COUNT_OF(slots); i++) {
		for (size_t k = 0; k < LULL_COUNT_OF(absurd); k++) {
			build(s, 13);
			put_u64(&s->image, s->target.runtime, 8 * slots[i], absurd[k]);
			assert_int_equal(
				lull_python_layout_init(&s->layout, &memory, &s->target, &err),
				LULL_E_UNSUPPORTED);
			lull_python_free(s->py);
		}
	}
	free(s);
}

static u32 line(u32 minor, const u8 *table, size_t n, i64 off)
{
	struct lull_python_code code = { .first_line = 100,
					 .lines = (u8 *)table,
					 .n_lines_bytes = n };

	return lull_python_line(minor, &code, off);
}

static void line_tables_of_all_kinds(void **state)
{
	static const u8 lnotab[] = { 0, 1, 6, 1, 8, 0xfe };
	static const u8 ranges[] = { 6, 1, 2, 0x80, 4, 0xff };
	/* one line +1 for 1 unit; long form -2 for 8 units with its columns; none for 1 unit. */
	static const u8 locations[] = { 0x80 | 11 << 3, 4, 9, 0x80 | 14 << 3 | 7, 5, 0,
					0x41,		1, 3, 0x80 | 15 << 3 };

	(void)state;
	assert_int_equal(line(9, lnotab, sizeof(lnotab), 0), 101);
	assert_int_equal(line(9, lnotab, sizeof(lnotab), 6), 102);
	assert_int_equal(line(9, lnotab, sizeof(lnotab), 14), 100);
	assert_int_equal(line(9, lnotab, sizeof(lnotab), -1), 100);
	assert_int_equal(line(10, ranges, sizeof(ranges), 4), 101);
	assert_int_equal(line(10, ranges, sizeof(ranges), 6), 0);
	assert_int_equal(line(10, ranges, sizeof(ranges), 8), 100);
	assert_int_equal(line(10, ranges, sizeof(ranges), 12), 0);
	assert_int_equal(line(11, locations, sizeof(locations), 0), 101);
	assert_int_equal(line(13, locations, sizeof(locations), 2), 99);
	assert_int_equal(line(13, locations, sizeof(locations), 16), 99);
	assert_int_equal(line(13, locations, sizeof(locations), 18), 0);
	assert_int_equal(line(13, locations, 4, 2), 101); /* cut off within an entry */
	assert_int_equal(line(13, NULL, 0, 2), 0);
}

/* interpreters that are installed */

static const char script[] = "import threading, time\n"		 /* 1 */
			     "class Burner:\n"			 /* 2 */
			     "    def outer(self):\n"		 /* 3 */
			     "        self.middle()\n"		 /* 4 */
			     "    def middle(self):\n"		 /* 5 */
			     "        for _ in iter(int, 1):\n"	 /* 6 */
			     "            self.leaf()\n"	 /* 7 */
			     "    def leaf(self):\n"		 /* 8 */
			     "        n = 0\n"			 /* 9 */
			     "        while n < 10**9: n += 1\n" /* 10 */
			     "def sleeper():\n"			 /* 11 */
			     "    while True:\n"		 /* 12 */
			     "        time.sleep(1000)\n"	 /* 13 */
			     "def main():\n"			 /* 14 */
			     "    threading.Thread(target=Burner().outer, daemon=True).start()\n"
			     "    threading.Thread(target=sleeper, daemon=True).start()\n"
			     "    print('ready', flush=True)\n"
			     "    while True: time.sleep(0.0005)\n" /* 18 */
			     "main()\n";			    /* 19 */

struct interpreter {
	pid_t pid;
	int out_fd;
};

/* Start the script and wait until it has made its threads. */
static struct interpreter start(const char *path)
{
	struct interpreter in;
	char ready[6] = "";
	int out[2];

	assert_int_equal(pipe(out), 0);
	in.pid = fork();
	assert_true(in.pid >= 0);
	if (!in.pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(out[1], 1);
		execlp(path, path, "-c", script, (char *)NULL);
		_exit(127);
	}
	close(out[1]);
	in.out_fd = out[0];
	if (read(in.out_fd, ready, 5) != 5 || strcmp(ready, "ready"))
		fail_msg("%s did not start", path);
	return in;
}

static void stop(const struct interpreter *in)
{
	kill(in->pid, SIGKILL);
	waitpid(in->pid, NULL, 0);
	close(in->out_fd);
}

/* How often each thread's stack was as the script says. */
struct tally {
	u32 n_burner, n_sleeper, n_main, n_gil, n_burner_gil, n_sleeper_gil;
	u32 main_tid;
};

static bool is_frame(const struct lull_python_stack *s, size_t ix, const char *name, u32 at_line)
{
	const char *dot;

	if (ix >= s->n_frames)
		return false;
	dot = strrchr(s->frames[ix].function, '.');
	return !strcmp(dot ? dot + 1 : s->frames[ix].function, name) &&
	       s->frames[ix].line == at_line && !strcmp(s->frames[ix].file, "<string>");
}

static void count_stack(void *ctx, const struct lull_python_stack *s)
{
	struct tally *t = ctx;
	bool is_burner = is_frame(s, 0, "leaf", 10) && is_frame(s, 1, "middle", 7) &&
			 is_frame(s, 2, "outer", 4);
	bool is_sleeper = is_frame(s, 0, "sleeper", 13) && s->n_frames >= 4;

	t->n_burner += is_burner;
	t->n_burner_gil += is_burner && s->has_gil;
	t->n_sleeper += is_sleeper;
	t->n_sleeper_gil += is_sleeper && s->has_gil;
	t->n_main += is_frame(s, 0, "main", 18) && is_frame(s, 1, "<module>", 19) &&
		     s->n_frames == 2 && s->tid == t->main_tid;
	t->n_gil += s->has_gil;
}

#define N_SAMPLES 200

/* One sample in which every thread is where it stays, and the burner has the lock. */
static bool is_settled(struct lull_python *py, pid_t pid)
{
	struct tally t = { .main_tid = (u32)pid };
	struct lull_err err;

	return lull_python_sample(py, count_stack, &t, &err) == 0 && t.n_burner == 1 &&
	       t.n_sleeper == 1 && t.n_main == 1 && t.n_burner_gil == 1;
}

/* Samples of a process that runs: now and then one is torn. */
static u32 take_samples(struct lull_python *py, struct tally *t)
{
	struct lull_err err;
	u32 n_doubtful = 0;

	for (int i = 0; i < N_SAMPLES; i++) {
		u32 n_gil = t->n_gil;

		assert_int_equal(lull_python_sample(py, count_stack, t, &err), 0);
		n_doubtful += t->n_gil > n_gil + 1;
		usleep(1500);
	}
	return n_doubtful;
}

static void check_interpreter(const char *path)
{
	struct interpreter in = start(path);
	struct tally t = { .main_tid = (u32)in.pid };
	struct lull_python *py = NULL;
	struct lull_err err = { .msg = "" };
	u32 n_doubtful;

	if (lull_python_attach(&py, in.pid, 0, &err)) {
		stop(&in);
		fail_msg("%s: %s", path, err.msg);
	}
	test_wait_for(is_settled(py, in.pid));
	n_doubtful = take_samples(py, &t);
	stop(&in);
	assert_int_equal(lull_python_sample(py, count_stack, &t, &err), LULL_E_NOT_FOUND);
	print_message("%s is %s: %u burner, %u sleeper, %u main, %u locks of %u\n", path,
		      lull_python_version_text(py), t.n_burner, t.n_sleeper, t.n_main, t.n_gil,
		      N_SAMPLES);
	assert_true(!strncmp(lull_python_version_text(py), "3.", 2));
	lull_python_free(py);
	assert_in_range(t.n_burner, N_SAMPLES * 95 / 100, N_SAMPLES);
	assert_in_range(t.n_sleeper, N_SAMPLES * 95 / 100, N_SAMPLES);
	assert_in_range(t.n_main, N_SAMPLES * 95 / 100, N_SAMPLES);
	/* One thread has the lock at a time, and who sleeps has it never. */
	assert_in_range(n_doubtful, 0, N_SAMPLES * 5 / 100);
	assert_int_equal(t.n_sleeper_gil, 0);
}

/* Skip the test where the memory of a child cannot be read, such as in some containers. */
static void need_memory_of_children(void)
{
	static int word = 42;
	struct iovec here = { &(int){ 0 }, sizeof(int) }, there = { &word, sizeof(word) };
	int refusal = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		pause();
		_exit(0);
	}
	if (process_vm_readv(pid, &here, 1, &there, 1, 0) != sizeof(int))
		refusal = errno;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	if (refusal)
		test_skip("the memory of another process cannot be read here: %s",
			  strerror(refusal));
}

static void installed_interpreters_show_their_stacks(void **state)
{
	const char *more = getenv("LULL_TEST_PYTHONS");
	char *list, *path, *rest;
	struct lull_str paths = LULL_STR_INIT;
	u32 n = 0;

	(void)state;
	test_skip_emulated("reads the memory of another process");
	need_memory_of_children();
	lull_str_addf(&paths, "/usr/bin/python3:/usr/local/bin/python3:%s", more ? more : "");
	list = lull_strdup(lull_str_text(&paths));
	for (path = strtok_r(list, ":", &rest); path; path = strtok_r(NULL, ":", &rest)) {
		if (access(path, X_OK))
			continue;
		check_interpreter(path);
		n++;
	}
	free(list);
	lull_str_release(&paths);
	if (!n)
		test_skip("there is neither /usr/bin/python3 nor /usr/local/bin/python3");
}

static void a_process_without_python_is_not_found(void **state)
{
	struct lull_python *py;
	struct lull_err err;

	(void)state;
	assert_int_equal(lull_python_attach(&py, getpid(), 0, &err), LULL_E_NOT_FOUND);
}

/*
 * It forked, and its agent had said where the interpreter is; then it ended. Nobody refused
 * anything.
 */
static void a_process_that_has_just_ended_is_not_found(void **state)
{
	struct lull_python *py;
	struct lull_err err;
	siginfo_t info;
	pid_t pid;

	(void)state;
	test_skip_emulated("reads the memory of another process");
	pid = fork();
	assert_true(pid >= 0);
	if (!pid)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(lull_python_attach(&py, pid, (u64)(uintptr_t)&info, &err),
			 LULL_E_NOT_FOUND);
	waitpid(pid, NULL, 0);
}

/* headers that are installed */

/* Prints "field offset" for what python_layouts.def says of 3.9 to 3.12. */
static const char probe[] =
	"#define Py_BUILD_CORE 1\n"
	"#include <Python.h>\n#include <frameobject.h>\n#include <stddef.h>\n#include <stdio.h>\n"
	"#include <internal/pycore_runtime.h>\n#include <internal/pycore_interp.h>\n"
	"#define P(name, type, member) printf(#name \" %zu\\n\", offsetof(type, member));\n"
	"#if PY_MINOR_VERSION >= 11\n#include <internal/pycore_frame.h>\n"
	"#define FRAME _PyInterpreterFrame\n#else\n#define FRAME PyFrameObject\n#endif\n"
	"int main(void) {\n"
	"printf(\"minor %d\\n\", PY_MINOR_VERSION);\n"
	"P(runtime_interp_head, _PyRuntimeState, interpreters.head)\n"
	"P(interp_next, PyInterpreterState, next)\n"
	"P(tstate_next, PyThreadState, next)\nP(tstate_thread_id, PyThreadState, thread_id)\n"
	"P(frame_code, FRAME, f_code)\n"
	"P(code_filename, PyCodeObject, co_filename)\nP(code_first_line, PyCodeObject, "
	"co_firstlineno)\n"
	"P(object_type, PyObject, ob_type)\nP(bytes_len, PyVarObject, ob_size)\n"
	"P(bytes_data, PyBytesObject, ob_sval)\nP(str_len, PyASCIIObject, length)\n"
	"P(str_state, PyASCIIObject, state)\n"
	"printf(\"str_ascii_bytes %zu\\n\", sizeof(PyASCIIObject));\n"
	"printf(\"str_bytes %zu\\n\", sizeof(PyUnicodeObject));\n"
	"#if PY_MINOR_VERSION < 12\n"
	"P(runtime_gil_holder, _PyRuntimeState, ceval.gil.last_holder)\n#else\n"
	"P(tstate_status, PyThreadState, _status)\nP(frame_owner, FRAME, owner)\n#endif\n"
	"#if PY_MINOR_VERSION >= 11\n"
	"P(interp_tstate_head, PyInterpreterState, threads.head)\n"
	"P(tstate_frame, PyThreadState, cframe)\nP(tstate_native_id, PyThreadState, "
	"native_thread_id)\n"
	"P(cframe_current, _PyCFrame, current_frame)\nP(frame_previous, FRAME, previous)\n"
	"P(frame_instr, FRAME, prev_instr)\nP(code_name, PyCodeObject, co_qualname)\n"
	"P(code_instrs, PyCodeObject, co_code_adaptive)\n"
	"#else\n"
	"P(interp_tstate_head, PyInterpreterState, tstate_head)\n"
	"P(tstate_frame, PyThreadState, frame)\nP(frame_previous, FRAME, f_back)\n"
	"P(frame_instr, FRAME, f_lasti)\nP(code_name, PyCodeObject, co_name)\n"
	"#endif\n"
	"#if PY_MINOR_VERSION >= 10\nP(code_linetable, PyCodeObject, co_linetable)\n"
	"#else\nP(code_linetable, PyCodeObject, co_lnotab)\n#endif\n"
	"return 0; }\n";

static int field_of(const struct lull_python_layout *layout, const char *name)
{
#define FIELD(field, v9, v10, v11, v12, v13, v14, meaning) \
	if (!strcmp(name, #field))                         \
		return layout->field;
#include "wire/python_layouts.def"
#undef FIELD
	return -2;
}

static void layouts_agree_with_installed_headers(void **state)
{
	char command[256], dir[] = "/tmp/lull-python-XXXXXX", path[64], name[64];
	struct lull_python_target target = { .version = 3u << 24 };
	struct lull_python_layout layout;
	unsigned minor = 0, off, n = 0;
	struct lull_err err;
	FILE *f;

	(void)state;
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/probe.c", dir);
	f = fopen(path, "w");
	fputs(probe, f);
	fclose(f);
	snprintf(command, sizeof(command),
		 "cc -w $(python3-config --includes) -o %s/probe %s 2>/dev/null && %s/probe; rm -r "
		 "%s",
		 dir, path, dir, dir);
	f = popen(command, "r");
	if (!f || fscanf(f, "minor %u", &minor) != 1 || minor > 12) {
		if (f)
			pclose(f);
		test_skip("no headers of Python 3.9 to 3.12 are installed");
	}
	target.version |= minor << 16;
	assert_int_equal(lull_python_layout_init(&layout, NULL, &target, &err), 0);
	while (fscanf(f, "%63s %u", name, &off) == 2) {
		if (field_of(&layout, name) != (int)off)
			fail_msg("%s is %u in the headers of 3.%u, %d here", name, off, minor,
				 field_of(&layout, name));
		n++;
	}
	pclose(f);
	assert_true(n >= 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_version_gives_the_same_stacks),
		cmocka_unit_test(a_second_sample_takes_few_calls),
		cmocka_unit_test(stale_pointers_cost_only_their_own_stack),
		cmocka_unit_test(pointers_at_the_ends_of_memory_are_stale),
		cmocka_unit_test(chains_without_end_are_cut),
		cmocka_unit_test(a_reused_address_is_another_code_object),
		cmocka_unit_test(names_beyond_ascii_become_utf8),
		cmocka_unit_test(damaged_memory_never_overruns),
		cmocka_unit_test(a_process_that_is_gone_is_an_error),
		cmocka_unit_test(unknown_versions_and_builds_are_refused),
		cmocka_unit_test(offsets_out_of_bounds_are_refused),
		cmocka_unit_test(line_tables_of_all_kinds),
		cmocka_unit_test(installed_interpreters_show_their_stacks),
		cmocka_unit_test(a_process_without_python_is_not_found),
		cmocka_unit_test(a_process_that_has_just_ended_is_not_found),
		cmocka_unit_test(layouts_agree_with_installed_headers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
