/*
 * attach_block - what `lull attach` writes into a running program, and what the agent answers.
 *
 * Two pages: the first has the code of attach/stub.c, the second this block. The agent unmaps both
 * as soon as the answer was read.
 */
#ifndef LULL_WIRE_ATTACH_BLOCK_H
#define LULL_WIRE_ATTACH_BLOCK_H

#include "base/types.h"

/* The entry of the agent, found by dlsym(). */
#define LULL_ATTACH_ENTRY "lull_agent_attach"

/* Name of the agent's thread, as long as it is in the program. */
#define LULL_ATTACH_THREAD "lull-attach"

/* What has become of it, in the order of time. */
enum lull_attach_state {
	LULL_ATTACH_WAITING = 0, /* the thread has not begun */
	LULL_ATTACH_BEGUN = 1,
	LULL_ATTACH_UNLOADED = 2, /* the agent could not be loaded: `text` says why */
	LULL_ATTACH_ENTERED = 3,  /* the agent records */
	LULL_ATTACH_BUSY = 4,	  /* another recorder has it */
	LULL_ATTACH_REFUSED = 5,  /* no room, or no way to the folder */
};

/* Offsets are known to stub.c. */
struct lull_attach_block {
	u64 pthread_create, pthread_detach, dlopen, dlsym, dlerror; /* 0: addresses there */
	u64 thread;						    /* 40 */
	i64 created;	      /* 48: what pthread_create() said; -1 until then */
	u32 state;	      /* 56: enum lull_attach_state */
	u32 has_read;	      /* 60: the answer was read */
	u64 map_addr;	      /* 64: both pages */
	u64 map_bytes;	      /* 72 */
	u64 number;	      /* 80: differs between attachments */
	char entry[24];	      /* 88: LULL_ATTACH_ENTRY */
	char agent_path[512]; /* 112 */
	char folder[512];     /* 624: of the session */
	char text[256];	      /* 1136 */
	char python_path[512];
};

#endif
