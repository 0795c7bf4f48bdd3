/*
 * What few exports have: calls of MPI, and faults and moves of unified memory.
 */
#include "import/nsys.h"

/* mpi_call.kind */
enum { P2P = 1, COLLECTIVE, REQUEST, OTHER = 6 };

/* um_event.kind */
enum { MOVED_IN = 1, MOVED_OUT, CPU_FAULT, GPU_FAULT, MOVED_ACROSS = 8 };

#define NOBODY (-1)

static u64 dur_ns(sqlite3_stmt *row, int start)
{
	u64 from = lull_nsys_u64(row, start), to = lull_nsys_u64(row, start + 1);

	return to > from ? to - from : 0;
}

/* ---- MPI ---- */

enum {
	CALL_START,
	CALL_END,
	CALL_TID,
	CALL_NAME,
	CALL_COMM,
	CALL_TAG,
	CALL_PEER,
	CALL_ROOT,
	CALL_BYTES,
	CALL_RECV
};

static const char *const call_cols[] = { "start",      "end",	   "globalTid",	 "textId",
					 "commHandle", "tag",	   "remoteRank", "rootRank",
					 "size",       "recvSize", NULL };

static const char *const rank_cols[] = { "globalTid", "rank", NULL };

/* The rank of a thread's process, + 1. */
static void take_rank(struct lull_nsys *n, sqlite3_stmt *row)
{
	*lull_map_add(n->ctx, lull_nsys_u64(row, 0) >> 24, NULL) = lull_nsys_u32(row, 1) + 1;
}

static i64 number_of(sqlite3_stmt *row, int col)
{
	return lull_nsys_is_null(row, col) ? NOBODY : sqlite3_column_int64(row, col);
}

/* Which rows there are, and which ranks. */
struct calls {
	struct lull_map ranks;
	u8 kind;
	u32 n_ranks;
};

static void take_call(struct lull_nsys *n, sqlite3_stmt *row)
{
	const struct calls *calls = n->ctx;
	u64 start = lull_nsys_u64(row, CALL_START), tid = lull_nsys_u64(row, CALL_TID);
	const u32 *rank = lull_map_find(&calls->ranks, tid >> 24);
	struct lull_mpi_call_row call = {
		.start_ns = start,
		.dur_ns = dur_ns(row, CALL_START),
		.lane = lull_nsys_thread(n, tid, start),
		.name = lull_nsys_string(n, row, CALL_NAME),
		.kind = calls->kind,
		.comm = lull_nsys_u64(row, CALL_COMM),
		.rank = rank ? *rank - 1 : 0,
		.n_ranks = rank ? calls->n_ranks : 0,
		.peer = number_of(row, CALL_PEER),
		.root = number_of(row, CALL_ROOT),
		.tag = number_of(row, CALL_TAG),
		.send_bytes = lull_nsys_u64(row, CALL_BYTES),
		.recv_bytes = lull_nsys_u64(row, CALL_RECV),
	};

	lull_writer_add(n->writer, LULL_TABLE_mpi_call, &call);
}

static void read_mpi(struct lull_nsys *n)
{
	static const struct {
		const char *table;
		u8 kind;
	} tables[] = { { "MPI_P2P_EVENTS", P2P },
		       { "MPI_COLLECTIVES_EVENTS", COLLECTIVE },
		       { "MPI_START_WAIT_EVENTS", REQUEST },
		       { "MPI_OTHER_EVENTS", OTHER } };
	struct calls calls = { .n_ranks = 0 };

	lull_map_init(&calls.ranks);
	n->ctx = &calls.ranks;
	lull_nsys_each(n, "MPI_RANKS", rank_cols, "", take_rank);
	calls.n_ranks = (u32)calls.ranks.n;
	n->ctx = &calls;
	for (size_t i = 0; i < LULL_COUNT_OF(tables); i++) {
		calls.kind = tables[i].kind;
		lull_nsys_each(n, tables[i].table, call_cols, "", take_call);
	}
	n->ctx = NULL;
	lull_map_release(&calls.ranks);
}

/* ---- unified memory ---- */

enum { CPU_START, CPU_PID, CPU_ADDRESS, CPU_PC };

static const char *const cpu_cols[] = { "start", "globalPid", "address", "originalFaultPc", NULL };

static void take_cpu_fault(struct lull_nsys *n, sqlite3_stmt *row)
{
	u64 start = lull_nsys_u64(row, CPU_START);
	struct lull_um_event_row fault = {
		.start_ns = start,
		.kind = CPU_FAULT,
		.address = (u64)sqlite3_column_int64(row, CPU_ADDRESS),
		.n_faults = 1,
		.process = lull_nsys_process(n, lull_nsys_u64(row, CPU_PID), start),
		.pc = (u64)sqlite3_column_int64(row, CPU_PC),
	};

	lull_writer_add(n->writer, LULL_TABLE_um_event, &fault);
}

enum { GPU_START, GPU_END, GPU_PID, GPU_DEVICE, GPU_ADDRESS, GPU_FAULTS, GPU_ACCESS };

static const char *const gpu_cols[] = { "start",	   "end",     "globalPid",
					"deviceId",	   "address", "numberOfPageFaults",
					"faultAccessType", NULL };

static void take_gpu_fault(struct lull_nsys *n, sqlite3_stmt *row)
{
	u64 start = lull_nsys_u64(row, GPU_START);
	struct lull_um_event_row fault = {
		.start_ns = start,
		.dur_ns = dur_ns(row, GPU_START),
		.kind = GPU_FAULT,
		.address = (u64)sqlite3_column_int64(row, GPU_ADDRESS),
		.n_faults = lull_nsys_u64(row, GPU_FAULTS),
		.cause = lull_nsys_u32(row, GPU_ACCESS),
		.src_device_id = lull_nsys_u32(row, GPU_DEVICE),
		.process = lull_nsys_process(n, lull_nsys_u64(row, GPU_PID), start),
	};

	lull_writer_add(n->writer, LULL_TABLE_um_event, &fault);
}

enum {
	MOVE_START,
	MOVE_END,
	MOVE_PID,
	MOVE_KIND,
	MOVE_BYTES,
	MOVE_ADDRESS,
	MOVE_CAUSE,
	MOVE_DEVICE
};

static const char *const move_cols[] = { "start",	   "end",      "globalPid",
					 "copyKind",	   "bytes",    "virtualAddress",
					 "migrationCause", "deviceId", NULL };

/* Pages that move are copies of these kinds there. */
static void take_move(struct lull_nsys *n, sqlite3_stmt *row)
{
	static const u8 kinds[] = { MOVED_IN, MOVED_OUT, MOVED_ACROSS };
	u32 copy_kind = lull_nsys_u32(row, MOVE_KIND);
	u64 start = lull_nsys_u64(row, MOVE_START);
	struct lull_um_event_row move = {
		.start_ns = start,
		.dur_ns = dur_ns(row, MOVE_START),
		.address = (u64)sqlite3_column_int64(row, MOVE_ADDRESS),
		.size_bytes = lull_nsys_u64(row, MOVE_BYTES),
		.cause = lull_nsys_u32(row, MOVE_CAUSE),
		.dst_device_id = lull_nsys_u32(row, MOVE_DEVICE),
	};

	if (copy_kind < LULL_NSYS_UM_FIRST || copy_kind > LULL_NSYS_UM_LAST)
		return;
	move.kind = kinds[copy_kind - LULL_NSYS_UM_FIRST];
	move.process = lull_nsys_process(n, lull_nsys_u64(row, MOVE_PID), start);
	lull_writer_add(n->writer, LULL_TABLE_um_event, &move);
}

void lull_nsys_read_more(struct lull_nsys *n)
{
	read_mpi(n);
	lull_nsys_each(n, "CUDA_UM_CPU_PAGE_FAULT_EVENTS", cpu_cols, "", take_cpu_fault);
	lull_nsys_each(n, "CUDA_UM_GPU_PAGE_FAULT_EVENTS", gpu_cols, "", take_gpu_fault);
	/* Our own exports have these in a table of their own. */
	if (!n->is_ours)
		lull_nsys_each(n, "CUPTI_ACTIVITY_KIND_MEMCPY", move_cols, "", take_move);
}
