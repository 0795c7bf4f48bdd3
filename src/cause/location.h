/*
 * location - where in the program something is: range, function, file and line.
 */
#ifndef LULL_CAUSE_LOCATION_H
#define LULL_CAUSE_LOCATION_H

#include "base/types.h"
#include "cause/subject.h"
#include "trace/reader.h"

struct lull_location {
	const char *range;    /* innermost named range, or NULL; all borrowed */
	const char *outer;    /* outermost named range, or NULL */
	const char *function; /* innermost function of the program itself, or NULL */
	const char *file;
	u32 line;
	const char *what; /* innermost thing recorded: operator, call of libc; or NULL */
	bool is_call;	  /* `what` is a call that the function makes */
};

/* LULL_IN_... of a call stack: loader, storage, or framework code in its innermost frame. */
u32 lull_location_stack_bits(struct lull_reader *r, u32 stack);

/*
 * Whether the innermost code outside of the Linux kernel was made while the program ran, and has no
 * name: it belongs to no file.
 */
bool lull_location_is_generated(struct lull_reader *r, u32 stack);

/* Whether the innermost frame of Python is the optimizer's; cheaper than all bits. */
bool lull_location_is_update(struct lull_reader *r, u32 stack);

/*
 * Whether a native stack is in a lock of Python that the interpreter takes for code of Python: in
 * threading.Lock.acquire(), not in a queue or a semaphore that is written in C.
 */
bool lull_location_is_lock(struct lull_reader *r, u32 stack);

/* Whether the innermost frame of a native stack is Python's interpreter itself. */
bool lull_location_is_interpreter(struct lull_reader *r, u32 stack);

/* Whether a frame of the stack is of a module with `part` in its name. */
bool lull_location_has_module(struct lull_reader *r, u32 stack, const char *part);

/* A number for the function of the program a stack is in; 0 if there is none. */
u64 lull_location_function(const struct lull_subject *s, u32 stack);

/* What is known of a frame of native code. */
struct lull_native_frame {
	/*
	 * The program's innermost function that was inlined there, or the frame's own without its
	 * arguments; NULL if the name of the frame will do.
	 */
	char *name;
	bool is_own; /* it is a function of the program, or one was inlined there */
	char *file;  /* where the program calls what was inlined from a library; NULL if not so */
	u32 line;    /* there */
};

/* All frames of the report, by number, from 0. */
struct lull_native_frame *lull_location_frames(struct lull_reader *r);

/* Free them. */
void lull_location_free_frames(struct lull_native_frame *frames, struct lull_reader *r);

/* The frame of the program's own code that a stack is in; 0 if there is none. */
u32 lull_location_frame(const struct lull_subject *s, u32 stack);

/* The place of a host event (or LULL_NONE) and a stack (or 0). */
struct lull_location lull_location_find(const struct lull_subject *s, u32 event, u32 stack);

/* Append "train.py:41  __getitem__ in data_load"; nothing if nothing is known. */
void lull_location_format(const struct lull_location *at, char *to, size_t cap_bytes);

#endif
