/* What nsys knows of processes, threads and devices. A file of lull has that in tables of its own. */
#include "import/nsys.h"

#include <string.h>

#include "base/str.h"

/* ---- processes and threads ---- */

static u32 base_name(struct lull_nsys *n, const char *path)
{
	const char *slash = strrchr(path, '/');
	const char *name = slash ? slash + 1 : path;

	return lull_writer_string(n->writer, name, strlen(name));
}

static void take_process(struct lull_nsys *n, sqlite3_stmt *row)
{
	u64 global_pid = lull_nsys_u64(row, 0);
	u32 id = lull_nsys_process(n, global_pid, 0);
	const char *name = (const char *)sqlite3_column_text(row, 1);
	struct lull_process_row process;

	if (!name)
		return;
	process = *(const struct lull_process_row *)lull_writer_dim(n->writer, LULL_TABLE_process,
								    id);
	process.exe = lull_nsys_text(n, row, 1);
	process.name = base_name(n, name);
	lull_writer_set_dim(n->writer, LULL_TABLE_process, id, &process);
}

static void take_thread_name(struct lull_nsys *n, sqlite3_stmt *row)
{
	u32 id = lull_nsys_thread(n, lull_nsys_u64(row, 1), 0);
	u32 name = lull_nsys_string(n, row, 0);
	struct lull_lane_row lane;

	if (!id)
		return;
	lane = *(const struct lull_lane_row *)lull_writer_dim(n->writer, LULL_TABLE_lane, id);
	lane.name = name;
	lull_writer_set_dim(n->writer, LULL_TABLE_lane, id, &lane);
}

/* ---- devices ---- */

/* What TARGET_INFO_GPU says, by the id that TARGET_INFO_CUDA_DEVICE refers to. */
struct gpus {
	struct lull_map by_id; /* index + 1 */
	struct lull_vec all;   /* struct lull_device_row */
};

enum {
	GPU_ID,
	GPU_NAME,
	GPU_L2,
	GPU_MEMORY,
	GPU_BANDWIDTH,
	GPU_CLOCK,
	GPU_SMS,
	GPU_UUID,
	GPU_MAJOR,
	GPU_MINOR
};

static const char *const gpu_cols[] = {
	"id",	     "name",	"l2CacheSize", "totalMemory",  "memoryBandwidth",
	"clockRate", "smCount", "uuid",	       "computeMajor", "computeMinor",
	NULL
};

static void take_gpu(struct lull_nsys *n, sqlite3_stmt *row)
{
	struct gpus *gpus = n->ctx;
	struct lull_device_row *gpu = lull_vec_push(&gpus->all);

	*gpu = (struct lull_device_row){
		.name = lull_nsys_text(n, row, GPU_NAME),
		.uuid = lull_nsys_text(n, row, GPU_UUID),
		.capability = lull_nsys_u32(row, GPU_MAJOR) * 10 + lull_nsys_u32(row, GPU_MINOR),
		.n_sms = lull_nsys_u32(row, GPU_SMS),
		.memory_bytes = lull_nsys_u64(row, GPU_MEMORY),
		.l2_bytes = lull_nsys_u64(row, GPU_L2),
		.clock_hz = lull_nsys_u64(row, GPU_CLOCK),
		.bandwidth_bytes = lull_nsys_u64(row, GPU_BANDWIDTH),
	};
	*lull_map_add(&gpus->by_id, lull_nsys_u64(row, GPU_ID), NULL) = (u32)gpus->all.n;
}

/* A process is known by its number alone here: any virtual machine will do. */
static u32 process_of_pid(struct lull_nsys *n, u32 pid)
{
	u32 n_processes = lull_writer_n_dim(n->writer, LULL_TABLE_process);

	for (u32 id = 1; id <= n_processes; id++) {
		const struct lull_process_row *p =
			lull_writer_dim(n->writer, LULL_TABLE_process, id);

		if (p->pid == pid)
			return id;
	}
	return lull_nsys_process(n, 1ull << 48 | (u64)pid << 24, 0);
}

static void take_cuda_device(struct lull_nsys *n, sqlite3_stmt *row)
{
	const struct gpus *gpus = n->ctx;
	const u32 *gpu = lull_map_find(&gpus->by_id, lull_nsys_u64(row, 0));
	u32 device_id = lull_nsys_u32(row, 1);
	u32 process = process_of_pid(n, lull_nsys_u32(row, 2));
	u32 id = lull_nsys_device(n, process, device_id);
	struct lull_device_row device = { 0 };

	if (gpu)
		device = *(const struct lull_device_row *)lull_vec_get(&gpus->all, *gpu - 1);
	device.process = process;
	device.device_id = device_id;
	if (!lull_nsys_is_null(row, 3))
		device.uuid = lull_nsys_text(n, row, 3);
	lull_writer_set_dim(n->writer, LULL_TABLE_device, id, &device);
}

static void read_devices(struct lull_nsys *n)
{
	static const char *const cuda_cols[] = { "gpuId", "cudaId", "pid", "uuid", NULL };
	struct gpus gpus;

	lull_map_init(&gpus.by_id);
	lull_vec_init(&gpus.all, sizeof(struct lull_device_row));
	n->ctx = &gpus;
	lull_nsys_each(n, "TARGET_INFO_GPU", gpu_cols, "", take_gpu);
	lull_nsys_each(n, "TARGET_INFO_CUDA_DEVICE", cuda_cols, "", take_cuda_device);
	n->ctx = NULL;
	lull_map_release(&gpus.by_id);
	lull_vec_release(&gpus.all);
}

/* ---- the recording ---- */

static void take_details(struct lull_nsys *n, sqlite3_stmt *row)
{
	n->end_ns = lull_nsys_u64(row, 0);
}

static void take_export(struct lull_nsys *n, sqlite3_stmt *row)
{
	const char *name = (const char *)sqlite3_column_text(row, 0);
	const char *value = (const char *)sqlite3_column_text(row, 1);
	const char *key = NULL;

	if (!name || !value)
		return;
	if (!strcmp(name, "EXPORT_PRODUCT_VERSION"))
		key = "import.version";
	else if (!strcmp(name, "EXPORT_SCHEMA_VERSION"))
		key = "import.schema";
	if (key)
		lull_import_meta(n->job, key, value, strlen(value));
}

/* Columns of META_DATA_CAPTURE are not taken: the environment of the program is among them. */
void lull_nsys_read_target(struct lull_nsys *n)
{
	static const char *const process_cols[] = { "globalPid", "name", NULL };
	static const char *const thread_cols[] = { "nameId", "globalTid", NULL };
	static const char *const details_cols[] = { "duration", NULL };
	static const char *const export_cols[] = { "name", "value", NULL };

	lull_nsys_each(n, "ANALYSIS_DETAILS", details_cols, "", take_details);
	if (n->is_ours) {
		lull_nsys_skip(n, "PROCESSES");
		lull_nsys_skip(n, "ThreadNames");
		lull_nsys_skip(n, "DIAGNOSTIC_EVENT");
		return;
	}
	lull_nsys_each(n, "META_DATA_EXPORT", export_cols, "", take_export);
	lull_nsys_each(n, "PROCESSES", process_cols, "", take_process);
	lull_nsys_each(n, "ThreadNames", thread_cols, "", take_thread_name);
	read_devices(n);
}
