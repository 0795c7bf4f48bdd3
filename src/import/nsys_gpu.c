/* What devices did, and the calls of CUDA that made them. */
#include "import/nsys.h"

#include <string.h>

/* nsys counts kinds of memory from 0 with 7 for unknown; CUPTI from 1 with 0. */
static u8 memory_kind(sqlite3_stmt *row, int col)
{
	u64 kind = lull_nsys_u64(row, col);

	return lull_nsys_is_null(row, col) || kind >= 7 ? 0 : (u8)(kind + 1);
}

static u64 dur_ns(sqlite3_stmt *row, int start_col)
{
	u64 start = lull_nsys_u64(row, start_col), end = lull_nsys_u64(row, start_col + 1);

	return end > start ? end - start : 0;
}

/* The columns with which all of what devices did begins. */
#define HEAD "start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid"
enum { START, END, DEVICE, CONTEXT, STREAM, CORRELATION, PID, N_HEAD };

struct head {
	u64 start_ns, dur_ns;
	u32 lane, process, correlation;
};

static struct head take_head(struct lull_nsys *n, sqlite3_stmt *row, bool is_device_known)
{
	u64 start = lull_nsys_u64(row, START);
	struct lull_nsys_stream s = {
		.process = lull_nsys_process(n, lull_nsys_u64(row, PID), start),
		.device_id = lull_nsys_u32(row, DEVICE),
		.context_id = lull_nsys_u32(row, CONTEXT),
		.stream_id = lull_nsys_u32(row, STREAM),
		.is_device_known = is_device_known,
	};

	return (struct head){
		.start_ns = start,
		.dur_ns = dur_ns(row, START),
		.lane = lull_nsys_stream_lane(n, &s),
		.process = s.process,
		.correlation = lull_nsys_u32(row, CORRELATION),
	};
}

/* ---- kernels ---- */

enum {
	DEMANGLED = N_HEAD,
	SHORT,
	MANGLED,
	REGISTERS,
	GRID_X,
	GRID_Y,
	GRID_Z,
	BLOCK_X,
	BLOCK_Y,
	BLOCK_Z,
	STATIC_SHARED,
	DYNAMIC_SHARED,
	LOCAL,
	EXECUTED,
	NODE,
	GRAPH,
	CLUSTER_X,
	CLUSTER_Y,
	CLUSTER_Z
};

static const char *const kernel_cols[] = {
	HEAD,
	"demangledName",
	"shortName",
	"mangledName",
	"registersPerThread",
	"gridX",
	"gridY",
	"gridZ",
	"blockX",
	"blockY",
	"blockZ",
	"staticSharedMemory",
	"dynamicSharedMemory",
	"localMemoryPerThread",
	"sharedMemoryExecuted",
	"graphNodeId",
	"graphId",
	"clusterX",
	"clusterY",
	"clusterZ",
	NULL,
};

static u32 take_launch(struct lull_nsys *n, sqlite3_stmt *row)
{
	struct lull_launch_row launch = {
		.name = lull_nsys_string(n, row, DEMANGLED),
		.mangled_name = lull_nsys_string(n, row, MANGLED),
		.grid_x = lull_nsys_u32(row, GRID_X),
		.grid_y = lull_nsys_u32(row, GRID_Y),
		.grid_z = lull_nsys_u32(row, GRID_Z),
		.block_x = lull_nsys_u32(row, BLOCK_X),
		.block_y = lull_nsys_u32(row, BLOCK_Y),
		.block_z = lull_nsys_u32(row, BLOCK_Z),
		.cluster_x = lull_nsys_u32(row, CLUSTER_X),
		.cluster_y = lull_nsys_u32(row, CLUSTER_Y),
		.cluster_z = lull_nsys_u32(row, CLUSTER_Z),
		.registers = lull_nsys_u32(row, REGISTERS),
		.static_shared_bytes = lull_nsys_u32(row, STATIC_SHARED),
		.dynamic_shared_bytes = lull_nsys_u32(row, DYNAMIC_SHARED),
		.shared_executed_bytes = lull_nsys_u32(row, EXECUTED),
		.local_bytes = lull_nsys_u32(row, LOCAL),
	};

	if (!launch.name)
		launch.name = lull_nsys_string(n, row, SHORT);
	if (launch.mangled_name == launch.name)
		launch.mangled_name = 0;
	return lull_nsys_launch(n, &launch);
}

static void take_kernel(struct lull_nsys *n, sqlite3_stmt *row)
{
	struct head head = take_head(n, row, true);
	struct lull_kernel_row kernel = {
		.start_ns = head.start_ns,
		.dur_ns = head.dur_ns,
		.lane = head.lane,
		.launch = take_launch(n, row),
		.correlation = head.correlation,
		.graph_id = lull_nsys_u32(row, GRAPH),
		.graph_node_id = lull_nsys_u64(row, NODE),
		.process = head.process,
	};

	lull_writer_add(n->writer, LULL_TABLE_kernel, &kernel);
}

/* ---- copies and memsets ---- */

enum {
	BYTES = N_HEAD,
	COPY_KIND,
	SRC_KIND,
	DST_KIND,
	SRC_DEVICE,
	DST_DEVICE,
	COPY_NODE,
	COPY_FLAGS,
	COPY_GRAPH
};

static const char *const memcpy_cols[] = {
	HEAD,	       "bytes",	      "copyKind",  "srcKind",	  "dstKind", "srcDeviceId",
	"dstDeviceId", "graphNodeId", "lullFlags", "lullGraphId", NULL,
};

static void take_memcpy(struct lull_nsys *n, sqlite3_stmt *row)
{
	struct head head = take_head(n, row, true);
	struct lull_memcpy_row copy = {
		.start_ns = head.start_ns,
		.dur_ns = head.dur_ns,
		.lane = head.lane,
		.size_bytes = lull_nsys_u64(row, BYTES),
		.correlation = head.correlation,
		.copy_kind = (u8)lull_nsys_u32(row, COPY_KIND),
		.src_kind = memory_kind(row, SRC_KIND),
		.dst_kind = memory_kind(row, DST_KIND),
		.flags = (u8)lull_nsys_u32(row, COPY_FLAGS),
		.graph_id = lull_nsys_u32(row, COPY_GRAPH),
		.graph_node_id = lull_nsys_u64(row, COPY_NODE),
		.src_device_id = lull_nsys_u32(row, SRC_DEVICE),
		.dst_device_id = lull_nsys_u32(row, DST_DEVICE),
		.process = head.process,
	};

	lull_writer_add(n->writer, LULL_TABLE_memcpy, &copy);
}

enum { SET_VALUE = N_HEAD, SET_BYTES, SET_NODE, SET_KIND, SET_GRAPH };

static const char *const memset_cols[] = { HEAD,      "value",	     "bytes", "graphNodeId",
					   "memKind", "lullGraphId", NULL };

static void take_memset(struct lull_nsys *n, sqlite3_stmt *row)
{
	struct head head = take_head(n, row, true);
	struct lull_memset_row set = {
		.start_ns = head.start_ns,
		.dur_ns = head.dur_ns,
		.lane = head.lane,
		.size_bytes = lull_nsys_u64(row, SET_BYTES),
		.correlation = head.correlation,
		.value = lull_nsys_u32(row, SET_VALUE),
		.memory_kind = memory_kind(row, SET_KIND),
		.graph_id = lull_nsys_u32(row, SET_GRAPH),
		.graph_node_id = lull_nsys_u64(row, SET_NODE),
		.process = head.process,
	};

	lull_writer_add(n->writer, LULL_TABLE_memset, &set);
}

/* ---- graphs and waits ---- */

static const char *const graph_cols[] = { HEAD, "graphId", NULL };

static void take_graph(struct lull_nsys *n, sqlite3_stmt *row)
{
	struct head head = take_head(n, row, true);
	struct lull_graph_row graph = {
		.start_ns = head.start_ns,
		.dur_ns = head.dur_ns,
		.lane = head.lane,
		.correlation = head.correlation,
		.graph_id = lull_nsys_u32(row, N_HEAD),
		.process = head.process,
	};

	lull_writer_add(n->writer, LULL_TABLE_graph, &graph);
}

enum { SYNC_TYPE = N_HEAD, OLD_SYNC_TYPE, EVENT, EVENT_SYNC, SYNC_RESULT };

static const char *const sync_cols[] = {
	HEAD, "syncType", "deprecatedSyncType", "eventId", "eventSyncId", "lullReturnValue", NULL,
};

static void take_sync(struct lull_nsys *n, sqlite3_stmt *row)
{
	struct head head = take_head(n, row, n->is_ours);
	u32 event = lull_nsys_u32(row, EVENT);
	struct lull_cuda_sync_row sync = {
		.start_ns = head.start_ns,
		.dur_ns = head.dur_ns,
		.lane = head.lane,
		.kind = (u8)lull_nsys_u32(row, lull_nsys_is_null(row, SYNC_TYPE) ? OLD_SYNC_TYPE
										 : SYNC_TYPE),
		.correlation = head.correlation,
		.event_id = event == UINT32_MAX ? 0 : event,
		.event_sync_id = lull_nsys_u64(row, EVENT_SYNC),
		.ret = lull_nsys_u32(row, SYNC_RESULT),
		.process = head.process,
	};

	lull_writer_add(n->writer, LULL_TABLE_cuda_sync, &sync);
}

/* ---- calls ---- */

enum {
	CALL_START,
	CALL_END,
	CALL_CLASS,
	CALL_TID,
	CALL_CORRELATION,
	CALL_NAME,
	CALL_RESULT,
	CALL_CHAIN
};

static const char *const call_cols[] = { "start",	"end",		 "eventClass",
					 "globalTid",	"correlationId", "nameId",
					 "returnValue", "callchainId",	 NULL };

static void take_call(struct lull_nsys *n, sqlite3_stmt *row)
{
	u64 start = lull_nsys_u64(row, CALL_START);
	struct lull_cuda_call_row call = {
		.start_ns = start,
		.dur_ns = dur_ns(row, CALL_START),
		.lane = lull_nsys_thread(n, lull_nsys_u64(row, CALL_TID), start),
		.name = lull_nsys_string(n, row, CALL_NAME),
		.correlation = lull_nsys_u32(row, CALL_CORRELATION),
		.ret = lull_nsys_u32(row, CALL_RESULT),
		.api = lull_nsys_u32(row, CALL_CLASS) == 1 ? 1 : 2,
		.stack = lull_nsys_stack(n, row, CALL_CHAIN, LULL_NSYS_CUDA_CHAINS),
	};

	lull_writer_add(n->writer, LULL_TABLE_cuda_call, &call);
}

/* ---- overhead and memory ---- */

enum { OVER_START, OVER_END, OVER_TID, OVER_TYPE, OVER_KIND };

static const char *const overhead_cols[] = { "start",	     "end",	 "globalTid",
					     "overheadType", "lullKind", NULL };

/* CUPTI's kinds: 1 compiling, then multiples of 65536; nsys numbers them from 2 on. */
static u32 overhead_kind(u32 type)
{
	if (type == 2)
		return 1;
	return type >= 3 && type <= 8 ? (type - 2) << 16 : 0;
}

static void take_overhead(struct lull_nsys *n, sqlite3_stmt *row)
{
	u64 start = lull_nsys_u64(row, OVER_START), tid = lull_nsys_u64(row, OVER_TID);
	struct lull_overhead_row over = {
		.start_ns = start,
		.dur_ns = dur_ns(row, OVER_START),
		.kind = lull_nsys_is_null(row, OVER_KIND)
				? overhead_kind(lull_nsys_u32(row, OVER_TYPE))
				: lull_nsys_u32(row, OVER_KIND),
		.tid = (u32)(tid & 0xffffff),
		.process = tid >> 24 ? lull_nsys_process(n, tid, start) : 0,
	};

	lull_writer_add(n->writer, LULL_TABLE_overhead, &over);
}

enum {
	MEM_START,
	MEM_PID,
	MEM_DEVICE,
	MEM_ADDRESS,
	MEM_BYTES,
	MEM_KIND,
	MEM_OPERATION,
	MEM_CORRELATION,
	MEM_LULL_DEVICE /* ours: 0 if it is on none, for which nsys has no number */
};

static const char *const memory_cols[] = {
	"start",   "globalPid",		  "deviceId",	   "address",	 "bytes",
	"memKind", "memoryOperationType", "correlationId", "lullDevice", NULL,
};

static void take_memory(struct lull_nsys *n, sqlite3_stmt *row)
{
	u64 start = lull_nsys_u64(row, MEM_START);
	u32 process = lull_nsys_process(n, lull_nsys_u64(row, MEM_PID), start);
	bool is_nowhere =
		!lull_nsys_is_null(row, MEM_LULL_DEVICE) && !lull_nsys_u32(row, MEM_LULL_DEVICE);
	u32 device_id = lull_nsys_u32(row, MEM_DEVICE);
	struct lull_cuda_memory_row memory = {
		.start_ns = start,
		.device = is_nowhere ? 0 : lull_nsys_device(n, process, device_id),
		.operation = lull_nsys_u32(row, MEM_OPERATION) == 1 ? 2 : 1,
		.memory_kind = memory_kind(row, MEM_KIND),
		.address = (u64)sqlite3_column_int64(row, MEM_ADDRESS),
		.size_bytes = lull_nsys_u64(row, MEM_BYTES),
		.correlation = lull_nsys_u32(row, MEM_CORRELATION),
		.process = process,
	};

	lull_writer_add(n->writer, LULL_TABLE_cuda_memory, &memory);
}

void lull_nsys_read_gpu(struct lull_nsys *n)
{
	/* Those that name their device come before those that do not. */
	lull_nsys_each(n, "CUPTI_ACTIVITY_KIND_KERNEL", kernel_cols, "", take_kernel);
	lull_nsys_each(n, "CUPTI_ACTIVITY_KIND_MEMCPY", memcpy_cols, "", take_memcpy);
	lull_nsys_each(n, "CUPTI_ACTIVITY_KIND_MEMSET", memset_cols, "", take_memset);
	lull_nsys_each(n, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", graph_cols, "", take_graph);
	lull_nsys_each(n, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", sync_cols, "", take_sync);
	lull_nsys_read_chains(n, "CUDA_CALLCHAINS", LULL_NSYS_CUDA_CHAINS);
	lull_nsys_each(n, "CUPTI_ACTIVITY_KIND_RUNTIME", call_cols, "", take_call);
	/* Old exports have a table for each. */
	lull_nsys_each(n, "CUPTI_ACTIVITY_KIND_DRIVER", call_cols, "", take_call);
	lull_nsys_each(n, "CUPTI_ACTIVITY_KIND_OVERHEAD", overhead_cols, "", take_overhead);
	lull_nsys_each(n, "PROFILER_OVERHEAD", overhead_cols, "", take_overhead);
	lull_nsys_each(n, "CUDA_GPU_MEMORY_USAGE_EVENTS", memory_cols, "", take_memory);
}
