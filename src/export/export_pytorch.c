/*
 * pytorch: the JSON that PyTorch's own profiler writes, for programs that read its traces:
 * TensorBoard's plugin, Holistic Trace Analysis, and lull import.
 *
 *	{"ph":"X","cat":"kernel","name":"gemm","pid":0,"tid":7,"ts":1.000,"dur":20.000,"args":{
 *	 "device":0,"stream":7,"correlation":12,"grid":[128,1,1],"block":[256,1,1],...}}
 *
 * A trace of PyTorch is about one process: the one with the most kernels is written. Devices are
 * processes with the number of the device, and streams are threads. Steps are annotations named
 * ProfilerStep#N. What PyTorch has no word for (calls of the C library, samples, counters) is left
 * out; chrome has it.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "export/export.h"
#include "model/names.h"
#include "model/nest.h"
#include "model/step.h"
#include "model/work.h"
#include "text/json.h"

struct pytorch {
	struct lull_json j;
	struct lull_reader *reader;
	struct lull_span window;
	const struct lull_lane_row *lanes;
	const struct lull_device_row *devices;
	u32 process; /* that is written */
	u32 pid;
};

/* ---- one event ---- */

/* Begin an event and its args; end_event() ends both. */
static void begin_event(struct pytorch *p, const char *category, const char *name, u64 start_ns,
			u64 dur_ns)
{
	lull_json_object(&p->j);
	lull_json_key_text(&p->j, "ph", "X");
	lull_json_key_text(&p->j, "cat", category);
	lull_json_key_text(&p->j, "name", name);
	lull_json_key(&p->j, "ts");
	lull_json_fixed(&p->j, (f64)start_ns / 1000, 3);
	lull_json_key(&p->j, "dur");
	lull_json_fixed(&p->j, (f64)dur_ns / 1000, 3);
}

static void put_thread(struct pytorch *p, u32 lane)
{
	lull_json_key_u64(&p->j, "pid", p->pid);
	lull_json_key_u64(&p->j, "tid", p->lanes[lane - 1].tid);
	lull_json_key(&p->j, "args");
	lull_json_object(&p->j);
}

static void put_stream(struct pytorch *p, u32 lane, u32 correlation)
{
	const struct lull_lane_row *row = &p->lanes[lane - 1];
	u32 device = row->device ? p->devices[row->device - 1].device_id : 0;

	lull_json_key_u64(&p->j, "pid", device);
	lull_json_key_u64(&p->j, "tid", row->stream_id);
	lull_json_key(&p->j, "args");
	lull_json_object(&p->j);
	lull_json_key_u64(&p->j, "device", device);
	lull_json_key_u64(&p->j, "context", row->context_id);
	lull_json_key_u64(&p->j, "stream", row->stream_id);
	lull_json_key_u64(&p->j, "correlation", correlation);
}

static void end_event(struct pytorch *p)
{
	lull_json_end(&p->j);
	lull_json_end(&p->j);
}

static void put_three(struct pytorch *p, const char *key, u32 x, u32 y, u32 z)
{
	lull_json_key(&p->j, key);
	lull_json_array(&p->j);
	lull_json_u64(&p->j, x);
	lull_json_u64(&p->j, y);
	lull_json_u64(&p->j, z);
	lull_json_end(&p->j);
}

static bool is_wanted(const struct pytorch *p, u32 lane, u64 start_ns, u64 dur_ns)
{
	return lane && p->lanes[lane - 1].process == p->process &&
	       lull_span_holds(p->window, start_ns, dur_ns);
}

/* Calls fn(p, &cols, i) for each row of a table that is wanted. */
#define EACH(p, table, fn)                                                                        \
	do {                                                                                      \
		struct lull_##table##_cols cols;                                                  \
		struct lull_cursor c;                                                             \
		size_t n;                                                                         \
                                                                                                  \
		lull_cursor_init(&c, (p)->reader, LULL_TABLE_##table, (p)->window.from_ns,        \
				 (p)->window.to_ns);                                              \
		while ((n = lull_cursor_next(&c, &cols)) > 0)                                     \
			for (size_t i = 0; i < n; i++)                                            \
				if (is_wanted(p, cols.lane[i], cols.start_ns[i], cols.dur_ns[i])) \
					fn(p, &cols, i);                                          \
		lull_cursor_release(&c);                                                          \
	} while (0)

/* ---- devices ---- */

static void put_kernel(struct pytorch *p, const struct lull_kernel_cols *cols, size_t i)
{
	size_t n;
	const struct lull_launch_row *launch = lull_reader_dim(p->reader, LULL_TABLE_launch, &n);
	static const struct lull_launch_row none;

	launch = cols->launch[i] ? &launch[cols->launch[i] - 1] : &none;
	begin_event(p, "kernel", lull_reader_string(p->reader, launch->name, NULL),
		    cols->start_ns[i], cols->dur_ns[i]);
	put_stream(p, cols->lane[i], cols->correlation[i]);
	put_three(p, "grid", launch->grid_x, launch->grid_y, launch->grid_z);
	put_three(p, "block", launch->block_x, launch->block_y, launch->block_z);
	lull_json_key_u64(&p->j, "registers per thread", launch->registers);
	lull_json_key_u64(&p->j, "shared memory",
			  launch->static_shared_bytes + launch->dynamic_shared_bytes);
	if (cols->graph_id[i])
		lull_json_key_u64(&p->j, "graph id", cols->graph_id[i]);
	end_event(p);
}

static void put_copy(struct pytorch *p, const struct lull_memcpy_cols *cols, size_t i)
{
	char name[64];

	lull_names_put_copy(name, sizeof(name), cols->copy_kind[i], cols->src_kind[i],
			    cols->dst_kind[i]);
	begin_event(p, "gpu_memcpy", name, cols->start_ns[i], cols->dur_ns[i]);
	put_stream(p, cols->lane[i], cols->correlation[i]);
	lull_json_key_u64(&p->j, "bytes", cols->size_bytes[i]);
	if (cols->dur_ns[i]) {
		lull_json_key(&p->j, "memory bandwidth (GB/s)");
		lull_json_f64(&p->j, (f64)cols->size_bytes[i] / (f64)cols->dur_ns[i]);
	}
	end_event(p);
}

static void put_memset(struct pytorch *p, const struct lull_memset_cols *cols, size_t i)
{
	char name[64];

	lull_names_put_memset(name, sizeof(name), cols->memory_kind[i]);
	begin_event(p, "gpu_memset", name, cols->start_ns[i], cols->dur_ns[i]);
	put_stream(p, cols->lane[i], cols->correlation[i]);
	lull_json_key_u64(&p->j, "bytes", cols->size_bytes[i]);
	end_event(p);
}

/* A graph that was recorded as one: its kernels are not known. */
static void put_graph(struct pytorch *p, const struct lull_graph_cols *cols, size_t i)
{
	char name[32];

	snprintf(name, sizeof(name), "CUDA graph %u", cols->graph_id[i]);
	begin_event(p, "kernel", name, cols->start_ns[i], cols->dur_ns[i]);
	put_stream(p, cols->lane[i], cols->correlation[i]);
	lull_json_key_u64(&p->j, "graph id", cols->graph_id[i]);
	end_event(p);
}

/* ---- threads ---- */

static void put_call(struct pytorch *p, const struct lull_cuda_call_cols *cols, size_t i)
{
	begin_event(p, cols->api[i] == 1 ? "cuda_driver" : "cuda_runtime",
		    lull_reader_string(p->reader, cols->name[i], NULL), cols->start_ns[i],
		    cols->dur_ns[i]);
	put_thread(p, cols->lane[i]);
	lull_json_key_u64(&p->j, "correlation", cols->correlation[i]);
	end_event(p);
}

/* Whether a text is a list of JSON that can be copied: numbers, and texts without escapes. */
static bool is_list(const char *text)
{
	bool is_in_text = false;
	int depth = 0;

	if (*text != '[')
		return false;
	for (; *text; text++) {
		if (*text == '\\' || (unsigned char)*text < ' ' ||
		    (!is_in_text && !strchr("\"0123456789,-[] ", *text)))
			return false;
		if (*text == '"')
			is_in_text = !is_in_text;
		else if (!is_in_text)
			depth += *text == '[' ? 1 : *text == ']' ? -1 : 0;
		if (depth < 1 && text[1])
			return false;
	}
	return !depth && !is_in_text;
}

/* The shapes or types of an operator's inputs, which are JSON already. */
static void put_list(struct pytorch *p, const char *key, u32 string)
{
	size_t len;
	const char *text = lull_reader_string(p->reader, string, &len);

	if (!string || !is_list(text))
		return;
	lull_json_key(&p->j, key);
	lull_json_raw(&p->j, text, len);
}

static void put_op(struct pytorch *p, const struct lull_op_cols *cols, size_t i)
{
	size_t n;
	const struct lull_op_label_row *label = lull_reader_dim(p->reader, LULL_TABLE_op_label, &n);

	if (!cols->label[i])
		return;
	label += cols->label[i] - 1;
	begin_event(p, "cpu_op", lull_reader_string(p->reader, label->name, NULL),
		    cols->start_ns[i], cols->dur_ns[i]);
	put_thread(p, cols->lane[i]);
	if (cols->external_id[i])
		lull_json_key_u64(&p->j, "External id", cols->external_id[i]);
	if (cols->sequence[i] >= 0)
		lull_json_key_u64(&p->j, "Sequence number", (u64)cols->sequence[i]);
	if (cols->forward_tid[i])
		lull_json_key_u64(&p->j, "Fwd thread id", cols->forward_tid[i]);
	put_list(p, "Input Dims", label->shapes);
	put_list(p, "Input type", label->types);
	put_list(p, "Concrete Inputs", label->inputs);
	end_event(p);
}

static void put_range(struct pytorch *p, const struct lull_range_cols *cols, size_t i)
{
	size_t n;
	const struct lull_label_row *label = lull_reader_dim(p->reader, LULL_TABLE_label, &n);
	const char *name;

	if (!cols->label[i] || lull_nest_is_shadow(label, cols->label[i]))
		return;
	label += cols->label[i] - 1;
	name = lull_reader_string(p->reader, label->name, NULL);
	/* Steps are written once, whatever marked them. */
	if (!strncmp(name, "ProfilerStep#", 13))
		return;
	begin_event(p, "user_annotation", name, cols->start_ns[i], cols->dur_ns[i]);
	put_thread(p, cols->lane[i]);
	end_event(p);
}

static void put_steps(struct pytorch *p)
{
	const struct lull_step *step;
	struct lull_steps steps;

	lull_steps_init_any(&steps, p->reader, p->window);
	step = steps.all.at;
	for (size_t i = 0; i < steps.all.n; i++, step++) {
		char name[48];

		struct lull_span host = lull_step_host(step);
		u64 start_ns = host.from_ns, dur_ns = host.to_ns - start_ns;

		if (!is_wanted(p, step->lane, start_ns, dur_ns))
			continue;
		snprintf(name, sizeof(name), "ProfilerStep#%llu", (unsigned long long)step->number);
		begin_event(p, "user_annotation", name, start_ns, dur_ns);
		put_thread(p, step->lane);
		end_event(p);
	}
	lull_steps_release(&steps);
}

/* ---- all of it ---- */

static void count_work(void *ctx, u32 process, u32 lane, u64 n_rows)
{
	u64 *counts = ctx;

	(void)lane;
	counts[process] += n_rows;
}

/* The process with the most kernels, else the first. */
static u32 main_process(struct lull_reader *r, size_t n_processes)
{
	u64 *counts = lull_alloc(n_processes + 1, sizeof(*counts));
	u32 best = 1;

	lull_work_owners(r, LULL_WORK_COMPUTE, count_work, counts);
	for (u32 i = 1; i <= n_processes; i++)
		best = counts[i] > counts[best] ? i : best;
	free(counts);
	return best;
}

static void put_devices(struct pytorch *p, size_t n_devices)
{
	lull_json_key(&p->j, "deviceProperties");
	lull_json_array(&p->j);
	for (size_t i = 0; i < n_devices; i++) {
		const struct lull_device_row *d = &p->devices[i];

		if (d->process != p->process)
			continue;
		lull_json_object(&p->j);
		lull_json_key_u64(&p->j, "id", d->device_id);
		lull_json_key_text(&p->j, "name", lull_reader_string(p->reader, d->name, NULL));
		lull_json_key_u64(&p->j, "totalGlobalMem", d->memory_bytes);
		lull_json_key_u64(&p->j, "computeMajor", d->capability / 10);
		lull_json_key_u64(&p->j, "computeMinor", d->capability % 10);
		lull_json_key_u64(&p->j, "numSms", d->n_sms);
		lull_json_end(&p->j);
	}
	lull_json_end(&p->j);
}

static void put_names(struct pytorch *p, size_t n_lanes)
{
	for (size_t i = 0; i < n_lanes; i++) {
		const struct lull_lane_row *lane = &p->lanes[i];

		if (lane->process != p->process || lane->kind == LULL_LANE_STREAM || !lane->name)
			continue;
		lull_json_object(&p->j);
		lull_json_key_text(&p->j, "ph", "M");
		lull_json_key_text(&p->j, "name", "thread_name");
		put_thread(p, (u32)i + 1);
		lull_json_key_text(&p->j, "name", lull_reader_string(p->reader, lane->name, NULL));
		end_event(p);
	}
}

static void put_events(struct pytorch *p, size_t n_lanes)
{
	lull_json_key(&p->j, "traceEvents");
	lull_json_array(&p->j);
	if (p->process) {
		put_names(p, n_lanes);
		put_steps(p);
		EACH(p, range, put_range);
		EACH(p, op, put_op);
		EACH(p, cuda_call, put_call);
		EACH(p, kernel, put_kernel);
		EACH(p, graph, put_graph);
		EACH(p, memcpy, put_copy);
		EACH(p, memset, put_memset);
	}
	lull_json_end(&p->j);
}

static int write_report(struct lull_reader *r, const struct lull_export_options *options, FILE *to,
			struct lull_err *err)
{
	struct pytorch p = { .reader = r, .window = lull_export_window(options) };
	size_t n_processes, n_devices, n_lanes;
	const struct lull_process_row *processes =
		lull_reader_dim(r, LULL_TABLE_process, &n_processes);

	p.lanes = lull_reader_dim(r, LULL_TABLE_lane, &n_lanes);
	p.devices = lull_reader_dim(r, LULL_TABLE_device, &n_devices);
	if (n_processes) {
		p.process = main_process(r, n_processes);
		p.pid = processes[p.process - 1].pid;
	}
	lull_json_init(&p.j, to);
	lull_json_object(&p.j);
	lull_json_key_u64(&p.j, "schemaVersion", 1);
	put_devices(&p, n_devices);
	put_events(&p, n_lanes);
	lull_json_end(&p.j);
	putc('\n', to);
	return lull_export_finish(to, err);
}

const struct lull_export lull_export_pytorch = {
	.name = "pytorch",
	.suffix = ".pt.trace.json",
	.summary = "a trace as of PyTorch's profiler, for TensorBoard's plugin and others",
	.write = write_report,
};
