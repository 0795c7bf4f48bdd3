/*
 * words - classify calls, ranges and functions by their names. wire/vocabulary.h does this for
 * kernels and CUDA calls.
 *
 * Names are hints, never proof: conclusions from names alone are used only where the mechanism
 * (which call, which memory, which thread waited) does not decide. Case does not matter.
 */
#ifndef LULL_MODEL_WORDS_H
#define LULL_MODEL_WORDS_H

#include "base/types.h"
#include "wire/vocabulary.h"

/* Whether a sync of this name waits for the whole device. */
bool lull_call_is_device_wide(const char *name);

/* Whether an elementwise kernel of this name computes something costly, such as tanh. */
bool lull_kernel_is_costly(const char *name);

/* Whether a collective of this name goes between two ranks only. */
bool lull_kernel_is_peer(const char *name);

/* Bits of what a range, an operator or a function is part of. */
#define LULL_IN_LOADER	  0x0001u /* reads or prepares input */
#define LULL_IN_STORAGE	  0x0002u /* writes a checkpoint or a log */
#define LULL_IN_FRAMEWORK 0x0004u /* the framework's own code around launches */
#define LULL_IN_OPTIMIZER 0x0008u /* the optimizer's update */
#define LULL_IN_NAMED	  0x0010u /* a named range, of the program or of our hooks */
#define LULL_IN_CALLS	  0x0020u /* an operator that makes CUDA calls */
#define LULL_IN_SYNC	  0x0040u /* an operator or range that waits and launches nothing */
#define LULL_IN_ALLOC	  0x0080u /* an operator or range that allocates and launches nothing */
#define LULL_IN_WRITE	  0x0100u /* a call that writes to a file */
#define LULL_IN_WAIT	  0x0200u /* a call that waits for another thread or process */
#define LULL_IN_READ	  0x0400u /* a call that reads a file or a pipe */
#define LULL_IN_SLEEP	  0x0800u /* sleeps */
#define LULL_IN_COMPILE	  0x2000u /* compiles device code */
#define LULL_IN_USER	  0x4000u /* a range the program itself named */
#define LULL_IN_PHASE	  0x1000u /* a named range that is a step or a phase of training */

/* What a range or a function of this name is part of: LOADER, STORAGE, OPTIMIZER, FRAMEWORK. */
u32 lull_name_bits(const char *name);

/*
 * Ranges of XLA (JAX): "XlaModule:#hlo_module=jit_step,program_id=7#" is around what it executes,
 * be it an operator or a step. Others are inside of those, or of its compiler ("XlaCompile:...").
 */
bool lull_name_is_xla_module(const char *name);
bool lull_name_is_xla_part(const char *name);

/*
 * Whether a name that holds "decode" is about the tokens of a language model, not about input that
 * is unpacked: `has_prefill` says that the program has ranges named prefill, too.
 */
bool lull_name_is_generation(const char *name, bool has_prefill);

/* Whether a function or range of this name reads what somebody stored: load_checkpoint. */
bool lull_name_is_reading(const char *name);

/* What an operator of the framework of this name is: as above, and views that only rename. */
u32 lull_op_bits(const char *name);

/* Whether this source file is of a library that reads images or sound, and also writes them. */
bool lull_file_is_media(const char *path);

/* What code in this source file is part of; of a library for images or sound: that it reads. */
u32 lull_file_bits(const char *path);

/* Whether a source file is of the interpreter or of a library: never a place to act on. */
bool lull_file_is_plumbing(const char *path);

/* What a call of the C library of this name does: WRITE, WAIT, READ, SLEEP. */
u32 lull_oscall_bits(const char *name);

/* Whether a range of this name marks a step: "step_12", "ProfilerStep#3", "iteration 7". */
bool lull_name_is_step(const char *name);

#endif
