#include "report/report.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "text/nearest.h"

#define REPORT(name) extern const struct lull_report lull_report_##name;
#include "report/reports.def"
#undef REPORT

const struct lull_report *const lull_reports[] = {
#define REPORT(name) &lull_report_##name,
#include "report/reports.def"
#undef REPORT
	NULL,
};

static const char cuda_option[] = "--trace=cuda";
static const char memory_option[] = "--cuda-memory-usage=true";
static const char torch_option[] = "--pytorch=ops, or give a trace of torch.profiler";
static const char um_option[] =
	"--cuda-um-cpu-page-faults=true --cuda-um-gpu-page-faults=true, in a program that uses it";

/* What a table is called when it is missed, and the options of `lull profile` that fill it. */
static const struct {
	u64 need;
	const char *what;
	const char *how;
} sources[] = {
	{ LULL_NEED(range), "NVTX range data",
	  "--trace=nvtx, and ranges of NVTX or lull.h in the program" },
	{ LULL_NEED(oscall), "OS Runtime trace data", "--trace=osrt" },
	{ LULL_NEED(lib_call), "library calls",
	  "--trace-library=LIBRARY:PATTERN, and calls of functions that match" },
	{ LULL_NEED(gil_wait), "waits for Python's interpreter lock",
	  "--trace=python-gil (on by default: then there was no long wait)" },
	{ LULL_NEED(sample), "CPU samples", "--sample=process-tree" },
	{ LULL_NEED(sched), "scheduling data", "--cpuctxsw=process-tree" },
	{ LULL_NEED(pysample), "Python samples", "--python-sampling=true" },
	{ LULL_NEED(kernel) | LULL_NEED(graph), "CUDA kernel data", cuda_option },
	{ LULL_NEED(memcpy) | LULL_NEED(memset), "GPU memory data", cuda_option },
	{ LULL_NEED(cuda_call), "CUDA trace data", cuda_option },
	{ LULL_NEED(cuda_memory), "GPU memory usage data", memory_option },
	{ LULL_NEED(um_event), "CUDA Unified Memory data", um_option },
	{ LULL_NEED(mpi_call), "MPI event data", "--trace=mpi" },
	{ LULL_NEED(collective), "NCCL operations", "--trace=nccl" },
	{ LULL_NEED(alloc), "framework allocations", torch_option },
	{ LULL_NEED(op), "operators", torch_option },
	{ LULL_NEED(counter), "measured device values", "--gpu-metrics=nvml or pm" },
	{ LULL_NEED(step), "steps", "lull_step() of lull.h in the program's loop" },
};

/* Reports of other tools whose data nothing here records. */
static const struct {
	const char *name;
	const char *what;
} missing_reports[] = {
	{ "openmp_sum", "OpenMP event data" },
	{ "openacc_sum", "OpenACC event data" },
	{ "syscall_sum", "system call data" },
	{ "network_congestion", "network data" },
	{ "nvvideo_api_sum", "NvVideo API data" },
	{ "vulkan_api_sum", "Vulkan trace data" },
	{ "vulkan_api_trace", "Vulkan trace data" },
	{ "vulkan_marker_sum", "Vulkan trace data" },
	{ "vulkan_gpu_marker_sum", "Vulkan trace data" },
	{ "opengl_khr_range_sum", "OpenGL trace data" },
	{ "opengl_khr_gpu_range_sum", "OpenGL trace data" },
	{ "dx11_pix_sum", "DX11 trace data" },
	{ "dx12_pix_sum", "DX12 trace data" },
	{ "dx12_gpu_marker_sum", "DX12 trace data" },
	{ "dx12_mem_ops", "DX12 trace data" },
	{ "wddm_queue_sum", "WDDM trace data" },
};

const struct lull_report *lull_report_find(const struct lull_report *const *list, const char *name,
					   const char **nearest)
{
	struct lull_nearest near = { .word = name };

	for (; *list; list++) {
		const char *old_name = (*list)->old_name;

		if (!strcmp((*list)->name, name) || (old_name && !strcmp(old_name, name)))
			return *list;
		lull_nearest_add(&near, (*list)->name);
	}
	*nearest = near.best;
	return NULL;
}

const char *lull_report_missing(const char *name)
{
	for (size_t i = 0; i < LULL_COUNT_OF(missing_reports); i++) {
		size_t len = strlen(missing_reports[i].name);

		if (!strncmp(missing_reports[i].name, name, len) && strchr(":", name[len]))
			return missing_reports[i].what;
	}
	return NULL;
}

int lull_report_run(const struct lull_report *report, struct lull_reader *r, struct lull_out *out,
		    const struct lull_report_options *options, struct lull_err *err)
{
	int rc = report->run(r, out, options, err);

	if (!rc && report->sorted_by && !report->is_long)
		lull_out_settle(out, (size_t)report->sorted_by - 1);
	return rc;
}

/* So many kernels are searched in less than 0.1 s. */
#define QUICK_ROWS 100000
/* Fewer steps than this that the recording counts may not be those of the loop. */
#define QUICK_NEEDED 3

/* The tables of `needs` that have rows. */
static u64 filled(const struct lull_reader *r, u64 needs)
{
	u64 has = 0;

	for (u16 id = 0; needs >> id; id++) {
		if (needs >> id & 1 && lull_reader_stats(r, id).n_rows)
			has |= 1ULL << id;
	}
	return has;
}

/* "A or B; record with X or Y". */
static void explain(u64 missing, struct lull_str *why)
{
	const char *before = "", *how = NULL;

	for (size_t i = 0; i < LULL_COUNT_OF(sources); i++) {
		if (!(sources[i].need & missing))
			continue;
		lull_str_addf(why, "%s%s", before, sources[i].what);
		before = " or ";
	}
	before = "; record with ";
	for (size_t i = 0; i < LULL_COUNT_OF(sources); i++) {
		if (!(sources[i].need & missing) || how == sources[i].how)
			continue;
		how = sources[i].how;
		lull_str_addf(why, "%s%s", before, how);
		before = " or ";
	}
}

bool lull_report_has_data(const struct lull_report *report, const struct lull_reader *r,
			  struct lull_str *why)
{
	u64 missing = report->needs & ~filled(r, report->needs);

	if (report->needs_any && !filled(r, report->needs_any))
		missing |= report->needs_any;
	if (missing)
		explain(missing, why);
	return !missing;
}

bool lull_report_is_quick(const struct lull_report *report, const struct lull_reader *r)
{
	u64 n_rows = 0, n_needed = 0;

	for (u16 id = 0; report->needs_quick >> id; id++)
		n_needed += report->needs_quick >> id & 1 ? lull_reader_stats(r, id).n_rows : 0;
	if (!report->needs_quick || n_needed >= QUICK_NEEDED)
		return true;
	for (u16 id = 0; report->needs_any >> id; id++)
		n_rows += report->needs_any >> id & 1 ? lull_reader_stats(r, id).n_rows : 0;
	return n_rows <= QUICK_ROWS;
}

/* Whether `word` of `len` bytes is in a list whose words are separated by `separator`. */
static bool holds(const char *list, char separator, const char *word, size_t len)
{
	const char separators[] = { separator, 0 };

	while (list && *list) {
		size_t n = strcspn(list, separators);

		if (n == len && !memcmp(list, word, len))
			return true;
		list += n + (list[n] != 0);
	}
	return false;
}

int lull_report_check_args(const struct lull_report *report, const char *args, struct lull_err *err)
{
	while (args && *args) {
		size_t len = strcspn(args, ":"), name_len = strcspn(args, "=:");

		if (args[name_len] == '=')
			name_len++;
		if (!holds(report->args, ' ', args, name_len))
			return lull_fail(err, LULL_E_USAGE,
					 "report %s takes no argument \"%.*s\"%s%s", report->name,
					 (int)len, args, report->args ? ", only: " : "",
					 report->args ? report->args : "");
		args += len + (args[len] != 0);
	}
	return LULL_OK;
}

bool lull_report_has_arg(const struct lull_report_options *options, const char *word)
{
	return holds(options->args, ':', word, strlen(word));
}

char *lull_report_arg_value(const struct lull_report_options *options, const char *name)
{
	const char *args = options->args;
	size_t len = strlen(name);

	while (args && *args) {
		size_t n = strcspn(args, ":");

		if (n > len && !memcmp(args, name, len) && args[len] == '=')
			return lull_strndup(args + len + 1, n - len - 1);
		args += n + (args[n] != 0);
	}
	return NULL;
}

int lull_report_arg_rows(const struct lull_report_options *options, size_t otherwise, size_t *n,
			 struct lull_err *err)
{
	char *text = lull_report_arg_value(options, "rows"), *end = NULL;
	long rows = text ? strtol(text, &end, 10) : 0;
	int rc = LULL_OK;

	*n = !text ? otherwise : rows < 0 ? SIZE_MAX : (size_t)rows;
	if (text && (end == text || *end))
		rc = lull_fail(err, LULL_E_USAGE, "rows=%s is not a number", text);
	free(text);
	return rc;
}
