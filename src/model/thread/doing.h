/*
 * doing - what a thread does, by the names of the functions on its stack and of its calls.
 *
 * Adds to the bits of model/words.h. Names are hints; where a recorded call or the scheduler tells
 * the same, that comes first.
 */
#ifndef LULL_MODEL_THREAD_DOING_H
#define LULL_MODEL_THREAD_DOING_H

#include "base/types.h"

/* Bits of `inside`, beside those of model/words.h. */
#define LULL_IN_LOCK	0x00010000u /* waits for a lock that another thread holds */
#define LULL_IN_QUEUE	0x00020000u /* waits for what another thread or process hands over */
#define LULL_IN_SOCKET	0x00040000u /* reads from a socket */
#define LULL_IN_DEMAND	0x00080000u /* waits for a request: accept, or a socket that was accepted */
#define LULL_IN_FILE	0x00100000u /* reads a file */
#define LULL_IN_GC	0x00200000u /* Python's garbage collector */
#define LULL_IN_FAULT	0x00400000u /* the kernel maps and clears pages, or takes them away */
#define LULL_IN_TOUCH	0x00800000u /* fills or copies memory, which pages in what is fresh */
#define LULL_IN_CPU_OP	0x01000000u /* computes on tensors on the CPU */
#define LULL_IN_EVENTS	0x02000000u /* waits for events of descriptors: poll, select, epoll */
#define LULL_IN_MANAGED 0x10000000u /* the driver moves pages of managed memory for the host */
#define LULL_IN_MAPS	0x08000000u /* of a gap: large mappings are made or removed */
#define LULL_IN_CHILD	0x20000000u /* waits for the end of a child process */
#define LULL_IN_RESULT	0x40000000u /* waits for a value of the device (JAX) */
#define LULL_IN_OTHERS	0x04000000u /* of a wait: other threads run or read meanwhile */

/* What a call of the C library of this name does. */
u32 lull_doing_call(const char *name);

/* What a range of this name is. */
u32 lull_doing_range(const char *name);

/* What a native function, or one of the Linux kernel, does. `module` is its file. */
u32 lull_doing_native(const char *function, const char *module);

/* Whether it is a function without a name of a tensor library for CPUs: its loops have none. */
bool lull_doing_is_tensors(const char *function, const char *module);

/* Whether this file is the runtime of OpenMP, whose threads spin before they sleep. */
bool lull_doing_is_pool(const char *module);

/* What a Python function waits for or does, by its name and file. */
u32 lull_doing_python(const char *function, const char *file);

/*
 * In "std::vector<float> ns::f<int>(long) [clone .part.0]", where "ns::f<int>" begins, and its
 * length: types of templates come before it, arguments and what the compiler made of it behind.
 */
const char *lull_doing_name(const char *function, size_t *len);

/*
 * Whether a native function is the program's own rather than one of a library or a runtime: by its
 * name, the source file ("" if not known) and the file that holds its code.
 */
bool lull_doing_is_own(const char *function, const char *file, const char *module);

/* Whether a source file is a header of the system, whose lines are never a place to act on. */
bool lull_doing_is_header(const char *file);

#endif
