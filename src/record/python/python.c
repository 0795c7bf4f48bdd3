#include "record/python/python.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "record/python/python_int.h"
#include "wire/python_objects.h"

/*
 * From _PyRuntime to a line of source:
 *
 *	_PyRuntime -> interpreter -> thread state -> frame -> frame -> ...
 *	                  |next          |next         |-> code object -> name, file, line table
 *	                                               |-> instruction: offset into the code -> line
 *
 *	3.9, 3.10    frames are objects on the heap (PyFrameObject)
 *	3.11, 3.12   frames lie one after the other in the thread's data stack; the thread state
 *	             leads there by way of a _PyCFrame on the C stack
 *	3.13, 3.14   the thread state leads there at once
 *
 * Because the data stack is contiguous, the 4 KiB below a frame mostly hold its callers too.
 */

#define INTERPRETERS_MAX 64
#define THREADS_MAX	 4096

/* Frames read at once; process_vm_readv costs the same up to about this much. */
#define WINDOW_BYTES 4096

/* Instruction pointers further than this from the code object are not in it. */
#define CODE_BYTES_MAX (16 << 20)

/* PyThreadState._status.active: attached, that is, holding the interpreter lock. */
#define STATUS_ACTIVE (1u << 4)

/* offsetof(struct pthread, tid) in glibc, the same since 2.4 because debuggers rely on it. */
#if defined(__x86_64__)
#define GLIBC_TID_OFF 720
#else
#define GLIBC_TID_OFF 208
#endif

struct lull_python {
	pid_t pid;
	struct lull_python_target target;
	struct lull_python_memory memory;
	struct lull_python_layout layout;
	struct lull_python_codes codes;
	lull_python_tid_fn *tid_lookup;
	void *tid_ctx;
	struct lull_map tids; /* those that /proc confirmed; Python before 3.11 only */
	u64 sample_number, n_torn;
	u64 gil_holder; /* thread state, or 0; Python before 3.12 only */
	u64 window_addr;
	size_t window_bytes; /* 0: nothing in it */
	u8 window[WINDOW_BYTES];
	u64 code_addrs[LULL_PYTHON_MAX_FRAMES];
	u64 instrs[LULL_PYTHON_MAX_FRAMES];
	i32 code_ix[LULL_PYTHON_MAX_FRAMES];
	struct lull_python_frame frames[LULL_PYTHON_MAX_FRAMES];
};

static int read_process(void *ctx, const struct iovec *to, const struct iovec *from, size_t n)
{
	pid_t pid = *(const pid_t *)ctx;
	ssize_t got = process_vm_readv(pid, to, n, from, n, 0);
	int n_whole = 0;

	if (got < 0)
		return errno == EFAULT ? 0 : -1;
	while ((size_t)n_whole < n && (size_t)got >= from[n_whole].iov_len)
		got -= (ssize_t)from[n_whole++].iov_len;
	return n_whole;
}

/* Addresses are the target's word and may be anything: sums of them must not go around. */
static bool is_address(u64 addr)
{
	return addr >= WINDOW_BYTES && addr <= UINT64_MAX - WINDOW_BYTES;
}

/* The frame at `addr`, from the window or by reading a new one; NULL if it is not there. */
static const u8 *frame_at(struct lull_python *py, u64 addr)
{
	u64 floor = addr & ~(u64)(WINDOW_BYTES - 1), end = addr + py->layout.frame_bytes;

	if (addr % 8 || !is_address(addr))
		return NULL;
	if (addr >= py->window_addr && end <= py->window_addr + py->window_bytes)
		return py->window + (addr - py->window_addr);
	/* Callers lie below on the data stack; on the heap of 3.9 and 3.10 they lie anywhere. */
	py->window_addr = py->layout.minor >= 11 ? end - WINDOW_BYTES : addr;
	py->window_bytes = end - py->window_addr;
	if (!lull_python_read(&py->memory, py->window_addr, py->window, py->window_bytes)) {
		/* The data stack may begin on this very page. */
		py->window_addr = floor > py->window_addr ? floor : addr;
		py->window_bytes = end - py->window_addr;
		if (!lull_python_read(&py->memory, py->window_addr, py->window, py->window_bytes)) {
			py->window_bytes = 0;
			return NULL;
		}
	}
	return py->window + (addr - py->window_addr);
}

/* The innermost frame of a thread state, 0 if it runs no Python. */
static u64 first_frame(struct lull_python *py, const u8 *tstate)
{
	u64 addr = lull_python_u64(tstate + py->layout.tstate_frame);

	if (py->layout.cframe_current == LULL_PYTHON_NONE || !addr)
		return addr;
	if (!lull_python_read(&py->memory, addr + (u64)py->layout.cframe_current, &addr, 8))
		return 0;
	return addr;
}

enum walk { WALK_WHOLE, WALK_CUT, WALK_TORN };

/* Follow the chain of frames and note code objects and instructions. */
static enum walk walk_frames(struct lull_python *py, u64 addr, size_t *n_frames)
{
	const struct lull_python_layout *l = &py->layout;

	*n_frames = 0;
	for (size_t n_steps = 0; addr; n_steps++) {
		const u8 *frame;

		if (*n_frames == LULL_PYTHON_MAX_FRAMES || n_steps > 2 * LULL_PYTHON_MAX_FRAMES)
			return WALK_CUT;
		frame = frame_at(py, addr);
		if (!frame)
			return WALK_TORN;
		addr = lull_python_u64(frame + l->frame_previous);
		if (l->frame_owner != LULL_PYTHON_NONE &&
		    frame[l->frame_owner] >= LULL_PYTHON_OWNER_INTERPRETER)
			continue;
		/* 3.14 marks deferred references in the low bits. */
		py->code_addrs[*n_frames] = lull_python_u64(frame + l->frame_code) & ~7ULL;
		py->instrs[*n_frames] = lull_python_u64(frame + l->frame_instr);
		(*n_frames)++;
	}
	return WALK_WHOLE;
}

/* How far into its bytecode a frame is; -1 before the first instruction. */
static i64 code_offset(const struct lull_python *py, u64 code_addr, u64 instr)
{
	i64 off;

	if (py->layout.minor == 9)
		return (i32)instr;
	if (py->layout.minor == 10)
		return (i64)(i32)instr * 2;
	off = (i64)(instr - code_addr - (u64)py->layout.code_instrs);
	return off < CODE_BYTES_MAX && off > -CODE_BYTES_MAX ? off : -1;
}

static u32 line_of(const struct lull_python *py, struct lull_python_code *code, u64 instr)
{
	i64 off = code_offset(py, code->addr, instr);

	if (code->last_off != (u64)off) {
		code->last_line = lull_python_line(py->layout.minor, code, off);
		code->last_off = (u64)off;
	}
	return code->last_line;
}

/* Turn the noted frames into names and lines. Returns how many, innermost first, are good. */
static size_t resolve_frames(struct lull_python *py, size_t n_frames)
{
	struct lull_python_source source = { .memory = &py->memory,
					     .layout = &py->layout,
					     .code_type = py->target.code_type,
					     .sample_number = py->sample_number };

	lull_python_codes_find(&py->codes, &source, py->code_addrs, n_frames, py->code_ix);
	for (size_t i = 0; i < n_frames; i++) {
		struct lull_python_frame *f = &py->frames[i];
		struct lull_python_code *code;

		if (py->code_ix[i] < 0)
			return i;
		code = lull_vec_get(&py->codes.at, (size_t)py->code_ix[i]);
		*f = (struct lull_python_frame){ .code_id = code->id,
						 .first_line = code->first_line,
						 .function = code->function,
						 .file = code->file,
						 .line = line_of(py, code, py->instrs[i]) };
	}
	return n_frames;
}

/* The tid glibc keeps in its thread descriptor, if /proc knows such a thread. */
static u32 tid_from_glibc(struct lull_python *py, u64 pthread_id)
{
	char path[64];
	bool is_new;
	u32 tid, *is_known;

	if (!lull_python_read(&py->memory, pthread_id + GLIBC_TID_OFF, &tid, sizeof(tid)) || !tid)
		return 0;
	is_known = lull_map_add(&py->tids, tid, &is_new);
	if (is_new) {
		snprintf(path, sizeof(path), "/proc/%d/task/%u", py->pid, tid);
		*is_known = !access(path, F_OK);
	}
	return *is_known ? tid : 0;
}

static u32 tid_of(struct lull_python *py, const u8 *tstate)
{
	u64 pthread_id;
	u32 tid = 0;

	if (py->layout.tstate_native_id != LULL_PYTHON_NONE)
		return (u32)lull_python_u64(tstate + py->layout.tstate_native_id);
	pthread_id = lull_python_u64(tstate + py->layout.tstate_thread_id);
	if (py->tid_lookup)
		tid = py->tid_lookup(py->tid_ctx, pthread_id);
	return tid ? tid : tid_from_glibc(py, pthread_id);
}

static bool has_gil(const struct lull_python *py, u64 tstate_addr, const u8 *tstate)
{
	if (py->layout.tstate_status != LULL_PYTHON_NONE)
		return tstate[py->layout.tstate_status] & STATUS_ACTIVE;
	return py->gil_holder == tstate_addr;
}

/* Read one thread's stack; false if it changed under our eyes. */
static bool sample_thread(struct lull_python *py, u64 addr, u8 *tstate,
			  struct lull_python_stack *out)
{
	size_t n_frames, n_good;
	enum walk walk;

	if (!lull_python_read(&py->memory, addr, tstate, py->layout.tstate_bytes))
		return false;
	py->window_bytes = 0; /* what it holds is from another moment */
	walk = walk_frames(py, first_frame(py, tstate), &n_frames);
	n_good = resolve_frames(py, n_frames);
	*out = (struct lull_python_stack){ .has_gil = has_gil(py, addr, tstate),
					   .frames = py->frames,
					   .n_frames = n_good,
					   .is_cut = walk == WALK_CUT };
	return walk != WALK_TORN && n_good == n_frames;
}

/* All threads of one interpreter. */
static void sample_threads(struct lull_python *py, u64 addr, lull_python_stack_fn *stack, void *ctx)
{
	u8 tstate[LULL_PYTHON_HEAD_BYTES];
	struct lull_python_stack out;

	for (u32 n = 0; addr && n < THREADS_MAX; n++) {
		bool is_whole = false;

		for (int tries = 0; tries < 2 && !is_whole; tries++)
			is_whole = sample_thread(py, addr, tstate, &out);
		if (!is_whole) {
			py->n_torn++;
			/* Without its thread state we do not know the next one either. */
			if (!lull_python_read(&py->memory, addr, tstate, py->layout.tstate_bytes))
				return;
		} else if (out.n_frames) {
			out.tid = tid_of(py, tstate);
			if (out.tid)
				stack(ctx, &out);
		}
		addr = lull_python_u64(tstate + py->layout.tstate_next);
	}
}

/* The first interpreter, and who holds the lock where _PyRuntime says so. */
static u64 read_runtime(struct lull_python *py)
{
	const struct lull_python_layout *l = &py->layout;
	u64 head = 0;
	struct {
		u64 holder;
		u32 is_locked, unused;
	} gil = { 0 };
	bool is_read[2] = { false, false };
	struct iovec to[2] = { { &head, 8 }, { &gil, sizeof(gil) } }, from[2] = { { 0 } };
	size_t n = l->runtime_gil_holder == LULL_PYTHON_NONE ? 1 : 2;

	from[0] = (struct iovec){
		(void *)(uintptr_t)(py->target.runtime + (u64)l->runtime_interp_head), 8
	};
	from[1] = (struct iovec){
		(void *)(uintptr_t)(py->target.runtime + (u64)l->runtime_gil_holder), sizeof(gil)
	};
	lull_python_read_many(&py->memory, to, from, n, is_read);
	py->gil_holder = is_read[1] && gil.is_locked == 1 ? gil.holder : 0;
	return is_read[0] ? head : 0;
}

int lull_python_sample(struct lull_python *py, lull_python_stack_fn *stack, void *ctx,
		       struct lull_err *err)
{
	const struct lull_python_layout *l = &py->layout;
	u64 interp, head, next;

	py->sample_number++;
	py->memory.failure = 0;
	interp = read_runtime(py);
	for (u32 n = 0; interp && n < INTERPRETERS_MAX; n++) {
		struct iovec to[2] = { { &next, 8 }, { &head, 8 } }, from[2];
		bool is_read[2];

		from[0] = (struct iovec){ (void *)(uintptr_t)(interp + (u64)l->interp_next), 8 };
		from[1] = (struct iovec){ (void *)(uintptr_t)(interp + (u64)l->interp_tstate_head),
					  8 };
		lull_python_read_many(&py->memory, to, from, 2, is_read);
		if (!is_read[0] || !is_read[1])
			break;
		sample_threads(py, head, stack, ctx);
		interp = next;
	}
	if (py->memory.failure == ESRCH)
		return lull_fail(err, LULL_E_NOT_FOUND, "process %d is gone", py->pid);
	if (py->memory.failure)
		return lull_fail(err, LULL_E_UNSUPPORTED, "reading process %d: %s", py->pid,
				 strerror(py->memory.failure));
	return LULL_OK;
}

struct lull_python *lull_python_new(const struct lull_python_target *target,
				    const struct lull_python_memory *memory,
				    const struct lull_python_layout *layout)
{
	struct lull_python *py = lull_alloc(1, sizeof(*py));

	py->target = *target;
	py->memory = *memory;
	py->layout = *layout;
	lull_python_codes_init(&py->codes);
	lull_map_init(&py->tids);
	return py;
}

int lull_python_attach(struct lull_python **out, pid_t pid, u64 runtime_hint, struct lull_err *err)
{
	struct lull_python_memory memory = { .read = read_process, .ctx = &pid };
	struct lull_python_target target = { 0 };
	struct lull_python_layout layout;
	struct lull_python *py;

	if (lull_python_find(&target, pid, &memory, runtime_hint, err) ||
	    lull_python_layout_init(&layout, &memory, &target, err))
		return lull_err_wrap(err, "process %d", pid);
	py = lull_python_new(&target, &memory, &layout);
	py->pid = pid;
	py->memory.ctx = &py->pid;
	*out = py;
	return LULL_OK;
}

void lull_python_free(struct lull_python *py)
{
	if (!py)
		return;
	lull_python_codes_release(&py->codes);
	lull_map_release(&py->tids);
	free(py);
}

void lull_python_set_tid_lookup(struct lull_python *py, lull_python_tid_fn *lookup, void *ctx)
{
	py->tid_lookup = lookup;
	py->tid_ctx = ctx;
}

const char *lull_python_version_text(const struct lull_python *py)
{
	return py->target.version_text;
}

u64 lull_python_n_torn(const struct lull_python *py)
{
	return py->n_torn;
}
