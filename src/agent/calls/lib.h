/*
 * lib - record calls of exported functions of shared libraries, without their prototypes.
 *
 * How it works: a pointer to the function in some file's global offset table is replaced by a thunk
 *               (lib_patch.c). The thunk saves the return address, replaces it by the address of
 *               lull_lib_return, and jumps to the function with all arguments unchanged. The
 *               function returns to lull_lib_return, which writes the event and jumps to the
 *               caller.
 * State:        each active call has a struct lull_lib_frame. Until it returns, a callee-saved
 *               register (x19, rbx) points to its frame. So the return path needs no shadow stack,
 *               and unwind tables can describe the true return address: exceptions, backtraces and
 *               cancellation work as before. Frames are independent of each other, so coroutines
 *               may return in any order and on any thread.
 * Leaving:      a call that is left by an exception or longjmp never reaches lull_lib_return. The
 *               next call on the same stack finds its frame dead, and writes its event with
 *               LULL_LIB_LEFT.
 * Memory:       thunks are part of the agent's text: nothing is made executable at run time.
 *               Frames and pools are never unmapped; pools are reused.
 * Fork:         the child continues with its parent's frames; calls during which the fork happened
 *               are written by the parent only.
 */
#ifndef LULL_AGENT_CALLS_LIB_H
#define LULL_AGENT_CALLS_LIB_H

#include <link.h>

#include "agent/core/ring.h"

#define LULL_LIB_HOOKS 8192u /* functions; as many thunks are in lib_thunks.S */
#define LULL_LIB_ARGS  12u   /* words of arguments that are kept for decoders */

struct lull_lib_frame;

/* A function that is watched; its index is that of its thunk. lib_thunks.S knows the layout. */
struct lull_lib_hook {
	_Atomic u64 target; /* the function itself */
	u64 hash;	    /* of its name */
	const char *name;
	u16 name_len;
	u8 n_args; /* words of arguments to keep, 0 for functions nobody decodes */
	u8 pad;
	u16 decoder; /* enum lull_lib_decoder */
	u16 spec;    /* for the decoder */
};

enum lull_lib_decoder {
	LULL_LIB_PLAIN = 0, /* a lib_call event */
	LULL_LIB_MPI = 1,
};

/* One call on its way. lib_thunks.S knows the first three. */
struct lull_lib_frame {
	u64 ret;		     /* where the caller goes on */
	u64 saved;		     /* what the caller had in the register that points here */
	u64 sp;			     /* the caller's stack pointer after the call */
	u64 start;		     /* counter */
	struct lull_lib_frame *next; /* the call around it; the next free one */
	const struct lull_lib_hook *hook;
	u32 depth;
	u32 record;   /* recording it began in */
	u32 image;    /* process it began in: the low half of its image's id */
	u32 is_taken; /* 0: free */
	u64 args[LULL_LIB_ARGS];
};

/* What a thread has of it. */
struct lull_lib_pool {
	struct lull_lib_frame *free;
	struct lull_lib_frame *top; /* the innermost call on its way */
	u64 stack_lo, stack_hi;	    /* the thread's own stack */
	u32 n_frames;		    /* made for this pool so far */
	struct lull_lib_pool *next; /* while nobody has it */
};

extern __thread struct lull_lib_pool *lull_lib_self __attribute__((visibility("hidden")));
extern struct lull_lib_hook lull_lib_hooks[LULL_LIB_HOOKS] __attribute__((visibility("hidden")));
extern const u8 lull_lib_thunks[], lull_lib_return[] __attribute__((visibility("hidden")));

/* Bytes from one thunk to the next. */
#define LULL_LIB_THUNK_BYTES 16u

/* The thunk of a hook. */
static inline u64 lull_lib_thunk(const struct lull_lib_hook *hook)
{
	return (u64)lull_lib_thunks + (u64)(hook - lull_lib_hooks) * LULL_LIB_THUNK_BYTES;
}

/* Whether a function is the agent's, as its wrappers are, and not a thunk. */
static inline bool lull_lib_is_wrapper(u64 addr)
{
	extern const u8 __ehdr_start[] __attribute__((visibility("hidden")));
	extern const u8 _end[] __attribute__((visibility("hidden")));

	return addr - (u64)__ehdr_start < (u64)_end - (u64)__ehdr_start &&
	       addr - (u64)lull_lib_thunks >= (u64)LULL_LIB_HOOKS * LULL_LIB_THUNK_BYTES;
}

/* How a call began, as lib_thunks.S hands it over. */
struct lull_lib_entry {
	const struct lull_lib_hook *hook;
	u64 sp;	   /* as lull_lib_frame.sp */
	u64 ret;   /* return address */
	u64 saved; /* the register that is to point to the frame */
	const u64 *regs;
};

/*
 * lib_hot.c: from the thunks, on the hot path, in general registers only. enter gives the frame, or
 * NULL if the call is not to be watched.
 */
struct lull_lib_frame *lull_lib_enter(const struct lull_lib_entry *entry);
void lull_lib_exit(struct lull_lib_frame *frame, u64 result);

/* lib_thunks.S: call `fn(a, b)` with the floating-point and vector registers kept. */
void *lull_lib_keep_vectors(void *(*fn)(void *a, u64 b), void *a, u64 b);

/* lib_frames.c: what the hot path leaves to others; called with lull_lib_keep_vectors(). */
void *lull_lib_enter_slow(void *entry, u64 unused);
void *lull_lib_exit_slow(void *frame, u64 result);

/* Once per process image, before the first thunk is put in. */
void lull_lib_frames_init(void);

/* Take a frame out of the pool for this call; NULL if there is none. In lib_hot.c. */
struct lull_lib_frame *lull_lib_begin(struct lull_lib_pool *pool, const struct lull_lib_entry *e);

/* True if the frame's caller is gone: `sp` is of the same stack, and not deeper. */
static inline bool lull_lib_is_dead(const struct lull_lib_pool *pool,
				    const struct lull_lib_frame *f, u64 sp)
{
	u64 size = pool->stack_hi - pool->stack_lo;

	return f->sp <= sp && f->sp - pool->stack_lo < size && sp - pool->stack_lo < size;
}

/*
 * lib_patch.c: look at files that were loaded since the last time, and put thunks in. Cheap if
 * there is nothing new; keeps errno. Not legal in a signal handler.
 */
void lull_lib_scan(void);

/* Begin to watch; once per process image. */
void lull_lib_start(void);

/*
 * Put the functions back and watch no more, until the next start. Calls on their way return to the
 * agent, which stays loaded.
 */
void lull_lib_withdraw(void);

/* How a function of this name is recorded; 0 args and decoder PLAIN if nothing is known of it. */
struct lull_lib_want {
	bool is_wanted;
	u8 n_args;
	u16 decoder;
	u16 spec;
};

/*
 * source_library.c, source_mpi.c: is the function `name` of the file at `path` to be watched? With
 * `name` NULL: may any of that file be?
 */
struct lull_lib_want lull_library_wants(const char *path, const char *name);
struct lull_lib_want lull_mpi_wants(const struct dl_phdr_info *file, const char *name);

/* source_mpi.c: a watched call has returned; writes its event. */
void lull_mpi_returned(struct lull_thread *t, const struct lull_lib_frame *frame, u64 dur_ticks,
		       u64 result);

#endif
