/*
 * wire - the shared memory between agents and the recorder.
 *
 * A session has one or more recordings. Its folder, in /dev/shm where possible, is named by the
 * environment variable LULL_SESSION:
 *
 *	control			one struct lull_control, made by the recorder, mapped by all
 *	PID-COUNTER.image	one per program that a process runs, made by its agent
 *
 * An image file is:
 *
 *	struct lull_image	description of the process, its issue counters
 *	struct lull_slot[]	one per thread, until its chunks are read
 *	struct lull_chunk[]	state of each chunk
 *	data			chunks of LULL_CHUNK_BYTES, each a sequence of events
 *
 * Rules:
 *  1. A chunk has one producer at a time: a thread at a nesting level (0, or 1 inside a signal
 *     handler that interrupted level 0). FREE -> TAKEN -> OWNED is a compare-and-swap and a store
 *     by the producer, OWNED -> FULL a store by the producer, FULL -> FREE a store by the
 *     recorder, once the rows are in the file.
 *  2. An event is complete when lull_chunk.committed covers it: the producer stores `committed`
 *     with release after the bytes; a reader that loads it with acquire sees complete events only.
 *     Nothing beyond it is ever read.
 *  3. Chunks of one (slot, level) are read in order of their seq; a later one only after the
 *     earlier is FULL and read to its end.
 *  4. Names are stored as 64-bit hashes. A thread writes the definition of a hash before its first
 *     use in each recording (lull_control.record changes value), into the same stream, unless a
 *     thread that had the same slot has done so: a reader sees the definition before the use.
 *  5. If no chunk is free, the new event is dropped and counted in lull_slot.n_dropped.
 *  6. Times are raw counter values; the recorder keeps pairs of (counter, CLOCK_MONOTONIC) in the
 *     control page.
 */
#ifndef LULL_WIRE_WIRE_H
#define LULL_WIRE_WIRE_H

#include <stdatomic.h>

#include "base/hash.h"
#include "base/types.h"
#include "wire/kwish.h"

#define LULL_WIRE_MAGIC	 0x3457754c /* "LuW4": changes with every incompatible layout */
#define LULL_CHUNK_BYTES 65536u
#define LULL_N_CHUNKS	 4096u /* 256 MiB a process at most, taken only as needed */
#define LULL_N_SLOTS	 4096u
#define LULL_N_ISSUES	 64u
#define LULL_N_CLOCKS	 64u
#define LULL_N_FORKS	 32u
#define LULL_N_FITTING	 64u
#define LULL_ENV_SESSION "LULL_SESSION"
#define LULL_ENV_AGENT	 "LULL_AGENT" /* path of the agent, to put it back into LD_PRELOAD */
#define LULL_ENV_ASAN	 "ASAN_OPTIONS"

/* AddressSanitizer wants to be the first library, and ends a program in which the agent is. */
#define LULL_ASAN_WORD "verify_asan_link_order=0"

#define ISSUE(id, name, severity, text) LULL_ISSUE_##name = id,
enum lull_issue {
#include "wire/issues.def"
};
#undef ISSUE

#define EVENT(id, name, layout, doc) LULL_EVENT_##name = id,
enum lull_event_type {
#include "wire/wire.def"
};
#undef EVENT

/* What agents record; bits of lull_control.sources. */
enum {
#define SOURCE_BIT(name, bit, doc) LULL_SOURCE_##name = 1 << (bit),
#include "wire/sources.def"
};

/* How far the hooks of PyTorch came; bits of lull_image.torch. */
enum {
	LULL_TORCH_PACKAGE = 1, /* our package was loaded into the interpreter */
	LULL_TORCH_HOOKED = 2,	/* torch was imported and hooked */
	LULL_TORCH_OPS = 4,	/* operators are recorded */
};

/* What may begin a recording; bits of lull_control.watch. */
enum {
	LULL_WATCH_RANGES = 1,	     /* the range that capture_range names */
	LULL_WATCH_PROFILER_API = 2, /* cudaProfilerStart() */
	LULL_WATCH_STEPS = 4,	     /* steps, by lull_control.schedule */
	LULL_WATCH_PROGRAM = 8,	     /* lull_start(), lull_schedule() */
	LULL_WATCH_DUTY = 16,	     /* steps, when the recorder wants a window (--duty) */
};

/* Which steps are recorded; see schedule.h of the agent. */
struct lull_schedule {
	u32 skip_first, wait, warmup, active, repeat;
};

/* A moment on both clocks. */
struct lull_clock_pair {
	u64 counter;
	u64 mono_ns;
};

/* The control page. Fields without _Atomic are set before any agent starts. */
struct lull_control {
	u32 magic;
	u32 collector_pid;
	/*
	 * 0: not recording. Else a number that differs between recordings of one session. The one
	 * word the hot paths look at.
	 */
	_Atomic u32 record;
	/* LULL_WATCH_*: what agents look for although nothing is recorded. */
	_Atomic u32 watch;
	u32 sources;  /* LULL_SOURCE_* */
	u32 is_clock; /* 1: the counter is not usable here, use CLOCK_MONOTONIC instead */
	u64 tick_hz;  /* counter ticks a second */
	u64 osrt_threshold_ticks; /* calls shorter than this are not recorded */
	u64 backtrace_ticks;	  /* calls longer than this get a stack */
	u32 backtrace_bytes;	  /* how much stack is copied */
	u32 timer_period_ns;	  /* CPU time between two samples of LULL_SOURCE_TIMER */
	u32 sample_bytes;	  /* how much stack such a sample copies */
	/* --capture-range=nvtx: set by the agent that sees the range, reset by the recorder. */
	_Atomic u32 capture_began;  /* ranges that began recording */
	_Atomic u32 capture_ended;  /* ranges that ended it */
	_Atomic u32 capture_missed; /* ranges that began while the recorder was not ready */
	u32 capture_repeats;	    /* how many ranges may begin a recording, 0 = no limit */
	char capture_range[256];    /* name of the range, "" = none */
	char capture_domain[256];   /* its domain, "" = the default one, "*" = any */
	_Atomic u32 last_record;    /* what `record` was or is: device work comes late */
	_Atomic u32
		next_record; /* value `record` takes when a range begins a recording; 0 = not now */
	_Atomic u32 flush_wanted;    /* +1 asks agents for what CUDA holds; they sleep on it */
	_Atomic u32 is_flush_forced; /* after a recording: unfinished work is not waited for */
	/*
	 * When the last recording began and ended. CUPTI delivers late: work of a device belongs to
	 * a recording if it began between the two, or if its call was made before the second.
	 */
	_Atomic u64 start_counter;
	_Atomic u64 stop_counter;
	/*
	 * How often agents bring in what CUPTI holds; 0: only when its buffers are full, and at the
	 * end.
	 */
	u32 cuda_flush_ms;
	/* CUDA calls of each kind that take so long get a stack; 0 = none does. */
	u64 cuda_backtrace_ticks[4]; /* LULL_N_CALL_KINDS */
	_Atomic u32 capture_pid;     /* process whose range began the present recording */
	/*
	 * Pairs of clocks: entry 0 is the first, the others a ring of the latest, n_clocks counts
	 * them all.
	 */
	_Atomic u64 n_clocks;
	struct lull_clock_pair clocks[LULL_N_CLOCKS];
	char report_path[4096]; /* where the report goes, for lull recover */
	u64 epoch_ns;		/* its epoch */
	char session_name[64];
	u32 mpi_family;		       /* 0 find out, 1 Open MPI, 2 MPICH */
	char libraries[4096];	       /* --trace-library: a line LIBRARY:PATTERN each */
	struct lull_schedule schedule; /* LULL_WATCH_STEPS */
	_Atomic u32 armed;   /* CUPTI is on although nothing is recorded: that is about to begin */
	_Atomic u32 is_over; /* nothing more will be recorded in this session */
	_Atomic u32 n_in_round; /* processes that are in the present round of steps */
	char ranks[256];	/* --ranks: other ranks are not recorded; "" = all (rank.h) */
	struct lull_kwish kernels;
	_Atomic u32 n_refused;	   /* processes in which an agent could not make its image */
	_Atomic u32 refused_errno; /* why, of the last one; 0 if it was nothing like this */
	_Atomic u32 wants_stamps;  /* 1: a server's requests come over the network; 2: seen */
	/*
	 * A capture range begins a recording before the recorder has its file. Should the
	 * recorder die in between, this is where the report goes, and which recording was the last
	 * that has a file.
	 */
	_Atomic u32 filed_record;
	char next_report_path[1024]; /* "" if it is longer */
	/* LULL_WATCH_DUTY: a window has so many steps, and takes so long, at least. */
	u32 window_steps;
	u64 window_ticks;
	/* The time between windows so far, for lull recover: it is left out of the report. */
	u64 left_out_ns;
	u64 collector_pid_ns; /* the PID namespace that collector_pid is of, 0 = unknown */
	/*
	 * Programs that can load the agent, as hashes of what stat() says about their files: most
	 * processes run one of few. Agents write them, each at its remainder.
	 */
	_Atomic u64 fitting[LULL_N_FITTING];
};

enum lull_chunk_state {
	LULL_CHUNK_FREE = 0,
	LULL_CHUNK_OWNED = 1,
	LULL_CHUNK_FULL = 2,
	LULL_CHUNK_TAKEN = 3, /* being set up by its producer; not to be read */
};

enum lull_slot_state {
	LULL_SLOT_FREE = 0,
	LULL_SLOT_LIVE = 1,
	LULL_SLOT_STARTING = 3, /* being set up by its thread; not to be read */
	LULL_SLOT_ENDED =
		2, /* the thread is gone; the recorder frees the slot when its chunks are read */
};

enum lull_image_state {
	LULL_IMAGE_STARTING = 0,
	LULL_IMAGE_LIVE = 1,
	LULL_IMAGE_EXITED = 2, /* left through exit, _exit or quick_exit; exit_code is valid */
	LULL_IMAGE_EXECED = 3, /* about to become another program; back to LIVE if exec fails */
};

/* State of one chunk; a cache line each. */
struct lull_chunk {
	_Atomic u32 state;     /* enum lull_chunk_state */
	_Atomic u32 committed; /* bytes of whole events */
	u32 slot;
	u32 level;
	u64 seq;		/* unique in the image, rising in order of acquisition */
	_Atomic u32 has_memory; /* bytes of its data that have some; stays when it is freed */
	u8 pad[36];
};

/* One thread. */
struct lull_slot {
	_Atomic u32 state; /* enum lull_slot_state */
	u32 tid;
	u64 pthread_id; /* pthread_self(), which older Pythons know threads by */
	u64 start_counter;
	_Atomic u64 end_counter;
	_Atomic u64 n_dropped; /* events lost for lack of a chunk */
	u8 pad[24];
};

/* A forked child that has no image of its own yet. */
struct lull_fork {
	u32 pid, parent_pid;
	u64 counter;	 /* when */
	_Atomic u64 seq; /* its number from 1 on, once the rest is there */
};

/* Head of an image file. */
struct lull_image {
	u32 magic;
	u32 pid;
	u32 parent_pid;
	_Atomic u32 state;  /* enum lull_image_state */
	u64 start_counter;  /* also the image's id */
	u64 python_runtime; /* address of _PyRuntime, 0 if there is none (yet) */
	u32 python_version; /* PY_VERSION_HEX, 0 unknown */
	u32 exit_code;
	_Atomic u64 exit_counter;
	_Atomic u32 has_cuda;	/* 1 while device activity is recorded here */
	_Atomic u32 flush_done; /* value of control->flush_wanted that was last obeyed */
	_Atomic u32 n_held;	/* buffers that CUPTI held back then, for work that is unfinished */
	_Atomic u64 next_seq;
	_Atomic u32 chunk_hint; /* where to look for a free chunk */
	_Atomic u32 n_used;	/* chunks [0, n_used) were ever taken */
	u32 n_chunks;		/* size of the pool */
	_Atomic i32 n_free;	/* chunks that may be taken; may be negative for a moment */
	/*
	 * Entries [0, n) of the two tables have memory; what is beyond is not to be
	 * looked at, since that would take memory, or raise SIGBUS where there is none.
	 */
	_Atomic u32 n_slots_ready, n_chunks_ready;
	_Atomic u64 n_unplaced; /* events lost in recordings, of threads that have no slot */
	_Atomic u64 issues[LULL_N_ISSUES];
	u64 user_ns, system_ns, max_rss_bytes; /* filled at exit when the process gets to it */
	char cuda_detail[96];		       /* what CUPTI said, if it could not be used */
	char comm[16];			       /* the kernel's short name of the program */
	char exe[1024];
	/* Rank in a job (rank.h), -1 if not known; set again when CUDA is initialised. */
	_Atomic i32 rank, local_rank, n_ranks;
	char job[128]; /* valid where rank is not -1 */
	u32 cmdline_bytes;
	char cmdline[2048];	 /* arguments as in /proc/self/cmdline, a NUL after each */
	_Atomic u32 torch;	 /* LULL_TORCH_*: how far the hooks of PyTorch came */
	char torch_detail[96];	 /* what could not be hooked, a word each */
	_Atomic u32 is_in_round; /* counted in lull_control.n_in_round */
	u64 pid_ns; /* inode of the PID namespace that pid and parent_pid are of, 0 = unknown */
	u32 is_attached;      /* the agent came into a program that ran already, and will leave */
	_Atomic u32 has_left; /* the agent has left the process, which goes on (lull attach) */
	/*
	 * Children tell here that they exist: entry i % LULL_N_FORKS for each of [0, n_forks). Up
	 * to n_forks_read the recorder has read them. Who finds no room, or finds is_closed after
	 * it has written its entry, makes an image at once.
	 */
	_Atomic u64 n_forks, n_forks_read;
	_Atomic u32 is_closed; /* the recorder reads the entries for the last time */
	struct lull_fork forks[LULL_N_FORKS];
};

/* So many entries of a table at a time get memory: a page of the usual size. */
#define LULL_ENTRY_BYTES 64u
#define LULL_N_READY	 64u

#define LULL_IMAGE_HEAD_BYTES 8192u
#define LULL_IMAGE_SLOTS_OFF  LULL_IMAGE_HEAD_BYTES
#define LULL_IMAGE_CHUNKS_OFF (LULL_IMAGE_SLOTS_OFF + LULL_N_SLOTS * LULL_ENTRY_BYTES)
#define LULL_IMAGE_DATA_OFF   (LULL_IMAGE_CHUNKS_OFF + LULL_N_CHUNKS * LULL_ENTRY_BYTES)
#define LULL_IMAGE_BYTES      (LULL_IMAGE_DATA_OFF + (u64)LULL_N_CHUNKS * LULL_CHUNK_BYTES)

_Static_assert(sizeof(struct lull_chunk) == LULL_ENTRY_BYTES, "a chunk's state is one cache line");
_Static_assert(sizeof(struct lull_slot) == LULL_ENTRY_BYTES, "a slot is one cache line");
_Static_assert(sizeof(struct lull_image) <= LULL_IMAGE_HEAD_BYTES, "the head has its own pages");

/* Head of every event. Sizes are multiples of 8 and include the head. */
struct lull_event {
	u64 counter; /* when; for events with a duration: when it began */
	u16 type;    /* enum lull_event_type */
	u16 size_bytes;
	u32 a; /* meaning depends on the type */
};

/* string: a = length; the bytes follow, padded to 8. */
struct lull_wire_string {
	struct lull_event head;
	u64 hash; /* lull_hash() of the bytes */
};

/*
 * label: a = category. hash = lull_label_hash() of the rest. name and domain were defined before
 * (or 0).
 */
struct lull_wire_label {
	struct lull_event head;
	u64 hash;
	u64 name;
	u64 domain;
	u32 color;
	u32 api; /* 1 NVTX, 2 lull.h, 6 hooks of PyTorch */
};

/* push, start, mark, end: a = level | domain index << 16 (push), domain index << 16 (others).
 * pop has the same a as its push. Payloads may follow any of them, one
 * after the other (size_bytes tells). */
struct lull_wire_pop {
	struct lull_event head;
};
struct lull_wire_range {
	struct lull_event head;
	u64 label;
};
struct lull_wire_start {
	struct lull_event head;
	u64 label;
	u64 range_id; /* unique in the process, never 0 */
};
struct lull_wire_end {
	struct lull_event head;
	u64 range_id;
};

/*
 * After a push, pop, start, end or mark. `n_bytes` of data follow, padded to 8, when it is
 * extended.
 */
struct lull_wire_payload {
	u32 type; /* as range.payload_type in schema.def */
	u32 n_bytes;
	u64 value; /* bits of the value, low half for types of 4 bytes; extended: schema id */
};
#define LULL_PAYLOAD_EXTENDED 9u

/* oscall: a = index in osrt.def | LULL_HAS_STACK when a stack event precedes it. */
struct lull_wire_oscall {
	struct lull_event head;
	u64 dur_ticks;
	i64 ret;
	i64 arg;
};
#define LULL_HAS_STACK 0x80000000u

/* stack: a = bytes of stack that follow, copied from regs.sp upwards. */
struct lull_wire_regs {
	u64 pc;
	u64 sp;
	u64 fp;
	u64 lr; /* aarch64; 0 on x86_64 */
};
struct lull_wire_stack {
	struct lull_event head;
	struct lull_wire_regs regs;
};

/* gil_wait: a = number of slices | LULL_HAS_STACK. */
struct lull_wire_gil_wait {
	struct lull_event head;
	u64 dur_ticks;
};

/* sample: a = CPU | LULL_HAS_STACK. */
struct lull_wire_sample {
	struct lull_event head;
	u64 weight_ns;
};

/* thread_name, thread_label: a = length; the bytes follow. tid 0 = the writing thread. */
struct lull_wire_thread_name {
	struct lull_event head;
	u64 tid;
};

/* module: a = length of the path; build id bytes then path follow, padded to 8 together. */
struct lull_wire_module {
	struct lull_event head;
	u64 start_addr;
	u64 end_addr;
	u64 bias;
	u32 build_id_bytes;
	u32 pad;
};

/*
 * step: the step with this number begins (and the one before ends). a: LULL_STEP_* bits.
 */
#define LULL_STEP_END	  1u /* only ends the current one */
#define LULL_STEP_NONE	  4u /* with END: the current one was none, forget it */
#define LULL_STEP_HOOKED  2u /* found by the hooks of a framework, not said by the program */
#define LULL_STEP_OUTSIDE 8u /* of no window: it is counted and timed, and no more (--duty) */
struct lull_wire_step {
	struct lull_event head;
	u64 number;
};

/* category: a = category number. */
struct lull_wire_category {
	struct lull_event head;
	u64 domain;
	u64 name;
};

/* schema: a = bytes of JSON that follow. */
struct lull_wire_schema {
	struct lull_event head;
	u64 schema_id;
	u64 domain;
	u64 name;
	u64 size_bytes;
	u32 kind;
	u32 pad;
};

/* child: a = pid, status as wait() gave it. */
struct lull_wire_child {
	struct lull_event head;
	u64 status;
};

/* Where on a device something ran; in all events below. */
struct lull_wire_place {
	u32 device;
	u32 context;
	u32 stream;
	u32 correlation;
};

/* device: a = length of the name, which follows. */
struct lull_wire_device {
	struct lull_event head;
	u32 device;
	u32 capability; /* 10 * major + minor */
	u32 n_sms;
	u32 l2_bytes;
	u64 memory_bytes;
	u64 clock_khz;
	u64 bandwidth_kbytes;
	u8 uuid[16];
};

/* launch: the name was defined before; hash = lull_hash() of `shape`. */
struct lull_wire_shape {
	u64 name;
	u32 grid[3];
	u32 block[3];
	u32 cluster[3];
	u32 registers;
	u32 static_shared_bytes;
	u32 dynamic_shared_bytes;
	u32 shared_executed_bytes;
	u32 local_bytes;
};
struct lull_wire_launch {
	struct lull_event head;
	u64 hash;
	struct lull_wire_shape shape;
};

/* kernel, memcpy, memset, cuda_sync, graph: counter is the start on the device. */
struct lull_wire_kernel {
	struct lull_event head;
	u64 dur_ticks;
	u64 launch; /* hash */
	struct lull_wire_place place;
	u64 graph_node;
	u64 graph;
};

/* memcpy: a = copy kind | source kind << 8 | destination kind << 16 | flags << 24. */
struct lull_wire_memcpy {
	struct lull_event head;
	u64 dur_ticks;
	u64 size_bytes;
	struct lull_wire_place place;
	u64 graph_node;
	u32 graph;
	u32 src_device;
	u32 dst_device;
	u32 pad;
};

/* memset: a = value. */
struct lull_wire_memset {
	struct lull_event head;
	u64 dur_ticks;
	u64 size_bytes;
	struct lull_wire_place place;
	u64 graph_node;
	u32 graph;
	u32 memory_kind;
};

/*
 * cuda_call: a = api, as in schema.def | LULL_HAS_STACK, or | LULL_HAS_PYSTACK when the hash of a
 * pystack follows.
 */
#define LULL_HAS_PYSTACK 0x40000000u
struct lull_wire_cuda_call {
	struct lull_event head;
	u64 dur_ticks;
	u64 name; /* hash */
	u32 ret;
	u32 correlation;
};

/* What a call is about; who calls is recorded for each kind as the user says. */
enum {
	LULL_TRACED_KERNEL = 0,
	LULL_TRACED_MEMORY = 1,
	LULL_TRACED_SYNC = 2,
	LULL_TRACED_OTHER = 3,
	LULL_N_CALL_KINDS = 4,
};

/* cuda_sync: a = kind. */
struct lull_wire_cuda_sync {
	struct lull_event head;
	u64 dur_ticks;
	struct lull_wire_place place;
	u64 event_sync;
	u32 event;
	u32 ret;
};

/* cuda_memory: a = operation | memory kind << 8. */
struct lull_wire_cuda_memory {
	struct lull_event head;
	struct lull_wire_place place;
	u64 address;
	u64 size_bytes;
};

/* graph: a = graph id. */
struct lull_wire_graph {
	struct lull_event head;
	u64 dur_ticks;
	struct lull_wire_place place;
};

/* overhead: a = kind. */
struct lull_wire_overhead {
	struct lull_event head;
	u64 dur_ticks;
	u64 tid;
};

/* um_event: a = kind, as in schema.def. */
struct lull_wire_um_event {
	struct lull_event head;
	u64 dur_ticks;
	u64 address;
	u64 value; /* bytes or faults */
	u32 src_device;
	u32 dst_device;
	u32 cause;
	u32 pad;
};

/* cuda_module: a = kind. */
enum {
	LULL_MODULE_LOADED = 1,
	LULL_MODULE_UNLOADED = 2,
	LULL_MODULE_COMPILED = 3,
	LULL_MODULE_CACHED = 4,
	LULL_MODULE_STORED = 5,
};
struct lull_wire_cuda_module {
	struct lull_event head;
	u64 dur_ticks;
	u64 size_bytes;
	u64 path; /* hash, 0 = none */
	u32 module_id;
	u32 context;
	u32 correlation;
	u32 tid;
};

/* cuda_context: a = context id. */
struct lull_wire_cuda_context {
	struct lull_event head;
	u32 device;
	u32 null_stream;
	u32 parent;
	u16 api;
	u16 is_green;
	u32 n_sms;
	u32 pad;
};

/* cuda_stream: a = stream id. */
struct lull_wire_cuda_stream {
	struct lull_event head;
	u32 context;
	i32 priority;
	u32 kind; /* as in schema.def */
	u32 pad;
};

/* cuda_name: a = what (LULL_NAMED_*). The name was defined before. */
struct lull_wire_cuda_name {
	struct lull_event head;
	u64 id;
	u64 name;
};
enum { LULL_NAMED_STREAM = 1, LULL_NAMED_CONTEXT = 2, LULL_NAMED_DEVICE = 3 };
/* lib_call: a = depth | LULL_LIB_LEFT. */
struct lull_wire_lib_call {
	struct lull_event head;
	u64 dur_ticks;
	u64 name; /* hash */
};
#define LULL_LIB_LEFT 0x80000000u /* by an exception or longjmp; dur_ticks: until that was seen */

/* mpi_call: a = kind, as in schema.def. */
struct lull_wire_mpi_call {
	struct lull_event head;
	u64 dur_ticks;
	u64 name; /* hash */
	u64 comm;
	u64 comm_name; /* hash */
	u64 send_bytes;
	u64 recv_bytes;
	i32 peer; /* LULL_MPI_* if it is no rank; root and tag too */
	i32 root;
	i32 tag;
	i32 ret;
	u32 rank;
	u32 n_ranks;
};
#define LULL_MPI_NONE	(-1)
#define LULL_MPI_ANY	(-2)
#define LULL_MPI_NOBODY (-3) /* MPI_PROC_NULL */

/* collective: a = id of the thread that called. Texts are hashes; 0 = not told. */
struct lull_wire_collective {
	struct lull_event head;
	u64 dur_ticks;
	u64 name;
	u64 comm;
	u64 comm_name;
	u64 datatype;
	u64 algorithm;
	u64 protocol;
	u64 size_bytes; /* of one rank's argument */
	u64 seq;
	u64 net_bytes;
	u64 net_ticks;
	i32 peer; /* or root; -1 none */
	u32 n_ranks;
	u32 rank;
	u32 n_channels;
	u32 n_steps;
	u32 pad;
};

/*
 * profiled: a = replay | status << 8, as in schema.def. The launch was defined before; the
 * counters of it follow as kmetric events.
 */
struct lull_wire_profiled {
	struct lull_event head;
	u64 launch; /* hash */
	struct lull_wire_place place;
	u64 ordinal;
	u64 cost_ticks;
	f64 dur_ns;
	f64 sm_clock_hz;
	f64 dram_clock_hz;
	u64 why; /* hash of what CUPTI said, 0 = nothing */
	u32 n_passes;
	u32 n_launches; /* of a range: in the run that had most, and least */
	u32 n_launches_least;
	u32 pad;
};

/* kmetric: of the launch that was last profiled on this thread. */
struct lull_wire_kmetric {
	struct lull_event head;
	u64 key;  /* hash */
	u64 name; /* hash */
	f64 value;
};

/* pcsample: a = line. */
struct lull_wire_pcsample {
	struct lull_event head;
	u64 ordinal;  /* of the launch it belongs to, as in profiled */
	u64 function; /* hash */
	u64 pc_offset;
	u64 stall; /* hash */
	u64 file;  /* hash, 0 = not known */
	u64 n_samples;
};

/*
 * op_label: a = bytes of the shapes, as JSON, which follow; after them n_types_bytes of types and
 * n_inputs_bytes of plain inputs, as JSON; padded to 8 together. The name was defined before.
 */
struct lull_wire_op_label {
	struct lull_event head;
	u64 hash;
	u64 name;
	u32 kind; /* as in schema.def */
	u32 n_types_bytes;
	u32 n_inputs_bytes;
	u32 unused;
};

/* op: a = depth. */
struct lull_wire_op {
	struct lull_event head;
	u64 dur_ticks;
	u64 label; /* hash */
	i64 sequence;
	u64 forward_tid;
	u64 stack; /* hash of the Python stack if no operator is around it; 0 if there is none */
};

/* alloc: a = kind of device | its number << 8. */
struct lull_wire_alloc {
	struct lull_event head;
	u64 address;
	i64 size_bytes;
	u64 allocated_bytes;
	u64 reserved_bytes;
	u64 stack; /* as of an operator, outside of all operators */
};

/* pyframe: a = line, 0 if not known. The two names were defined before. */
struct lull_wire_pyframe {
	struct lull_event head;
	u64 hash;
	u64 function; /* hash of its name */
	u64 file;
};

/* pystack: a = how many hashes of frames follow, innermost first, all defined before. */
struct lull_wire_pystack {
	struct lull_event head;
	u64 hash;
};

/*
 * The hash that names a label; both sides compute it, so that recovery can find labels by their
 * content.
 */
static inline u64 lull_label_hash(u64 name, u64 domain, u32 category, u32 color, u32 api)
{
	u64 h = lull_hash_mix(name ^ 0x9e3779b97f4a7c15ULL, domain + 0xe7037ed1a0b428dbULL);

	if (category | color)
		h = lull_hash_mix(h ^ ((u64)category << 32 | color), 0xa0761d6478bd642fULL);
	h ^= (u64)api << 56;
	return h ? h : 1;
}

#endif
