/*
 * viewer_device - what devices did, as events of a timeline.
 */
#include <string.h>

#include "base/hash.h"
#include "base/str.h"
#include "export/viewer_int.h"
#include "model/names.h"
#include "model/work.h"

/* ---- kernels ---- */

static void add_shape(struct lull_viewer_what *what, enum lull_viewer_arg_id id,
		      struct lull_str *text, const u32 shape[3])
{
	lull_str_addf(text, "%u x %u x %u", shape[0], shape[1], shape[2]);
	lull_viewer_bytes(what, id, text->at, text->len);
}

static void add_size(struct lull_viewer_what *what, enum lull_viewer_arg_id id, u32 bytes)
{
	if (bytes)
		lull_viewer_number(what, id, bytes);
}

static u32 name_of_launch(struct lull_viewer *t, u32 launch)
{
	u32 *name = lull_viewer_name(t, launch);
	struct lull_str grid = LULL_STR_INIT, block = LULL_STR_INIT, cluster = LULL_STR_INIT;
	struct lull_viewer_what what = { 0 };
	struct lull_launch_row row = { 0 };
	size_t len;
	const char *text;

	if (*name != 0)
		return *name;
	if (launch)
		row = t->launches[launch - 1];
	text = lull_reader_string(t->reader, row.name, &len);
	lull_viewer_call(&what, "kernel", text, len);
	add_shape(&what, LULL_VIEWER_ARG_grid, &grid,
		  (u32[]){ row.grid_x, row.grid_y, row.grid_z });
	add_shape(&what, LULL_VIEWER_ARG_block, &block,
		  (u32[]){ row.block_x, row.block_y, row.block_z });
	if (row.cluster_x)
		add_shape(&what, LULL_VIEWER_ARG_cluster, &cluster,
			  (u32[]){ row.cluster_x, row.cluster_y, row.cluster_z });
	add_size(&what, LULL_VIEWER_ARG_registers, row.registers);
	add_size(&what, LULL_VIEWER_ARG_static_shared, row.static_shared_bytes);
	add_size(&what, LULL_VIEWER_ARG_dynamic_shared, row.dynamic_shared_bytes);
	add_size(&what, LULL_VIEWER_ARG_local, row.local_bytes);
	*name = lull_viewer_add(t, &what);
	lull_str_release(&grid);
	lull_str_release(&block);
	lull_str_release(&cluster);
	return *name;
}

/* The number of the call, the arrow from it, and the graph it belongs to. */
static void add_origin(struct lull_viewer *t, struct lull_viewer_record *rec, u32 process,
		       u32 correlation, u32 graph_id)
{
	lull_viewer_value(rec, LULL_VIEWER_ARG_correlation, correlation);
	if (graph_id)
		lull_viewer_value(rec, LULL_VIEWER_ARG_graph, graph_id);
	lull_viewer_flow(t, rec, process, correlation,
			 graph_id ? LULL_VIEWER_FLOW_THROUGH : LULL_VIEWER_FLOW_IN);
}

static bool kernel_row(struct lull_viewer *t, const void *cols, size_t i,
		       struct lull_viewer_record *rec)
{
	const struct lull_kernel_cols *c = cols;

	rec->family = lull_viewer_family(t, c->lane[i], LULL_VIEWER_MAIN);
	rec->what = name_of_launch(t, c->launch[i]);
	add_origin(t, rec, lull_work_process(t->lanes, c->process[i], c->lane[i]),
		   c->correlation[i], c->graph_id[i]);
	if (c->graph_node_id[i])
		lull_viewer_value(rec, LULL_VIEWER_ARG_graph_node, c->graph_node_id[i]);
	return true;
}

const struct lull_viewer_source lull_viewer_kernel = { LULL_TABLE_kernel, kernel_row };

/* ---- copies and memsets ---- */

static u32 name_of_copy(struct lull_viewer *t, u8 copy_kind, u8 src_kind, u8 dst_kind)
{
	u32 *name =
		lull_viewer_hashed(t, lull_hash((u8[]){ 'c', copy_kind, src_kind, dst_kind }, 4));
	struct lull_str text = LULL_STR_INIT, memory = LULL_STR_INIT;
	struct lull_viewer_what what = { 0 };

	if (*name != 0)
		return *name;
	lull_str_addf(&text, "[CUDA memcpy %s]", lull_names_copy(copy_kind));
	lull_str_addf(&memory, "%s to %s", lull_names_memory(src_kind),
		      lull_names_memory(dst_kind));
	lull_viewer_call(&what, "memcpy", text.at, text.len);
	lull_viewer_bytes(&what, LULL_VIEWER_ARG_memory, memory.at, memory.len);
	*name = lull_viewer_add(t, &what);
	lull_str_release(&text);
	lull_str_release(&memory);
	return *name;
}

static bool memcpy_row(struct lull_viewer *t, const void *cols, size_t i,
		       struct lull_viewer_record *rec)
{
	const struct lull_memcpy_cols *c = cols;
	f64 rate = c->dur_ns[i] ? (f64)c->size_bytes[i] / (f64)c->dur_ns[i] : 0;
	u64 bits;

	rec->family = lull_viewer_family(t, c->lane[i], LULL_VIEWER_MAIN);
	rec->what = name_of_copy(t, c->copy_kind[i], c->src_kind[i], c->dst_kind[i]);
	lull_viewer_value(rec, LULL_VIEWER_ARG_size_bytes, c->size_bytes[i]);
	if (!c->graph_id[i]) {
		memcpy(&bits, &rate, sizeof(bits));
		lull_viewer_value(rec, LULL_VIEWER_ARG_bandwidth, bits);
	}
	add_origin(t, rec, lull_work_process(t->lanes, c->process[i], c->lane[i]),
		   c->correlation[i], c->graph_id[i]);
	return true;
}

const struct lull_viewer_source lull_viewer_memcpy = { LULL_TABLE_memcpy, memcpy_row };

static bool memset_row(struct lull_viewer *t, const void *cols, size_t i,
		       struct lull_viewer_record *rec)
{
	static const char text[] = "[CUDA memset]";
	const struct lull_memset_cols *c = cols;
	u32 *name = lull_viewer_name(t, c->memory_kind[i]);
	struct lull_viewer_what what = { 0 };
	const char *memory = lull_names_memory(c->memory_kind[i]);

	rec->family = lull_viewer_family(t, c->lane[i], LULL_VIEWER_MAIN);
	if (!*name) {
		lull_viewer_call(&what, "memset", text, sizeof(text) - 1);
		lull_viewer_bytes(&what, LULL_VIEWER_ARG_memory, memory, strlen(memory));
		*name = lull_viewer_add(t, &what);
	}
	rec->what = *name;
	lull_viewer_value(rec, LULL_VIEWER_ARG_size_bytes, c->size_bytes[i]);
	add_origin(t, rec, lull_work_process(t->lanes, c->process[i], c->lane[i]),
		   c->correlation[i], c->graph_id[i]);
	return true;
}

const struct lull_viewer_source lull_viewer_memset = { LULL_TABLE_memset, memset_row };

/* ---- graphs, waits, overhead ---- */

static bool graph_row(struct lull_viewer *t, const void *cols, size_t i,
		      struct lull_viewer_record *rec)
{
	const struct lull_graph_cols *c = cols;
	u32 *name = lull_viewer_hashed(
		t, lull_hash((u32[]){ LULL_TABLE_graph, c->graph_id[i] }, 2 * sizeof(u32)));
	struct lull_str text = LULL_STR_INIT;
	struct lull_viewer_what what = { 0 };

	rec->family = lull_viewer_family(t, c->lane[i], LULL_VIEWER_MAIN);
	if (!*name) {
		lull_str_addf(&text, "[CUDA graph %u]", c->graph_id[i]);
		lull_viewer_call(&what, "graph", text.at, text.len);
		*name = lull_viewer_add(t, &what);
		lull_str_release(&text);
	}
	rec->what = *name;
	add_origin(t, rec, lull_work_process(t->lanes, c->process[i], c->lane[i]),
		   c->correlation[i], 0);
	return true;
}

const struct lull_viewer_source lull_viewer_graph = { LULL_TABLE_graph, graph_row };

static bool cuda_sync_row(struct lull_viewer *t, const void *cols, size_t i,
			  struct lull_viewer_record *rec)
{
	const struct lull_cuda_sync_cols *c = cols;

	rec->family = lull_viewer_family(t, c->lane[i], LULL_VIEWER_WAITS);
	rec->what = lull_viewer_word(t, c->kind[i], "sync", lull_names_sync(c->kind[i]));
	lull_viewer_value(rec, LULL_VIEWER_ARG_correlation, c->correlation[i]);
	if (c->event_id[i])
		lull_viewer_value(rec, LULL_VIEWER_ARG_event, c->event_id[i]);
	return true;
}

const struct lull_viewer_source lull_viewer_cuda_sync = { LULL_TABLE_cuda_sync, cuda_sync_row };

/* Overhead has a thread id but no lane: threads of CUPTI itself cause some of it. */
static bool overhead_row(struct lull_viewer *t, const void *cols, size_t i,
			 struct lull_viewer_record *rec)
{
	const struct lull_overhead_cols *c = cols;
	u32 parts[] = { LULL_TABLE_overhead, c->process[i] };
	const char *word = lull_names_overhead(c->kind[i]);
	struct lull_viewer_what what = { 0 };
	u32 *name = lull_viewer_hashed(t, lull_hash(word, strlen(word)));

	rec->family = lull_viewer_other(
		t, lull_hash(parts, sizeof(parts)),
		&(struct lull_viewer_family){ .process = c->process[i], .name = "CUDA overhead" });
	if (!*name) {
		lull_viewer_call(&what, "overhead", word, strlen(word));
		*name = lull_viewer_add(t, &what);
	}
	rec->what = *name;
	return true;
}

const struct lull_viewer_source lull_viewer_overhead = { LULL_TABLE_overhead, overhead_row };
