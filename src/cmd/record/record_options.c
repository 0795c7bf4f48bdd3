#include "cmd/record/record_options.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "text/opt.h"
#include "base/duration.h"
#include "base/str.h"
#include "text/term.h"
#include "cmd/cmd.h"
#include "cmd/record/record_job.h"
#include "cmd/record/record_nsys.h"
#include "cmd/record/record_steps.h"
#include "cmd/record/trace_words.h"
#include "export/export.h"
#include "record/collector.h"
#include "record/gpu/nvml.h"
#include "trace/reader.h"
#include "wire/wire.h"

/* The words of the command line, before they mean anything. */
struct words {
	struct lull_vec trace, pytorch, libraries, env, exports, cuda_backtrace;
	int sample, cpuctxsw, sampler, capture_range, wait, graphs, mpi_family, gpu_metrics;
	u64 sampling_frequency, python_frequency, gpu_frequency;
	struct lull_vec gpu_devices;
	u64 osrt_threshold, osrt_backtrace_threshold;
	const char *capture_range_end, *steps, *nvtx_capture, *kill, *output, *session,
		*debug_symbols;
	const char *delay_text, *duration_text;
	f64 delay, duration; /* in seconds */
	u64 cuda_flush_ms;
	int cuda_scope, cuda_events;
	bool cuda_all_calls, um_cpu_faults, um_gpu_faults, flush_on_stop, stop_on_range_end;
	bool cuda_memory, force, stop_on_exit, stats, why, inherit_env, discard_env, resolve,
		python, quiet, start_later;
	struct lull_record_job job;
	struct lull_nsys_words nsys;
};

static const char *const scopes[] = { "none", "process-tree", "system-wide", "cpu", NULL };
static const char *const samplers[] = { "auto", "timer", NULL };
static const char *const cuda_scopes[] = { "process-tree", "system-wide", NULL };
static const char *const cuda_event_traces[] = { "auto", "false", "true", NULL };
static const char *const graph_traces[] = { "graph", "node", NULL };
static const char *const mpi_families[] = { "auto", "openmpi", "mpich", NULL };
static const char *const gpu_metrics[] = { "auto", "none", "nvml", "pm", NULL };
static const char *const captures[] = { "none", "nvtx", "cudaProfilerApi", "lull", NULL };
enum { CAPTURE_NVTX = 1, CAPTURE_PROFILER_API = 2, CAPTURE_LULL = 3 };

#define PYTHON_HZ_MAX  1000u
#define NSYS_PYTHON_HZ 2000u /* what scripts for nsys may ask for */

static const char *const waits[] = { "primary", "all", NULL };

static int parse_trace(struct words *w, u32 *sources, struct lull_err *err)
{
	const struct lull_vec *list = &w->trace;
	char **words = list->at;

	*sources = list->n ? 0 : lull_trace_default();
	for (size_t i = 0; i < list->n; i++)
		if (!lull_trace_word(words[i], sources, &w->env) &&
		    !lull_nsys_trace_word(&w->nsys, words[i], sources))
			return lull_fail(err, LULL_E_USAGE,
					 "--trace: '%s' is not known; choose among %s", words[i],
					 lull_trace_choices);
	return 0;
}

static int parse_kill(const char *text, int *signal, struct lull_err *err)
{
	char *end;
	long n;

	if (!text || strcasecmp(text, "sigterm") == 0)
		*signal = SIGTERM;
	else if (strcasecmp(text, "none") == 0)
		*signal = 0;
	else if (strcasecmp(text, "sigkill") == 0)
		*signal = SIGKILL;
	else if (n = strtol(text, &end, 10), *text && !*end && n > 0 && n < NSIG)
		*signal = (int)n;
	else
		return lull_fail(err, LULL_E_USAGE,
				 "--kill: '%s' is not none, sigterm, sigkill or a signal number",
				 text);
	return 0;
}

/* none, stop, stop-shutdown, repeat[:N], repeat-shutdown:N */
static int parse_range_end(const char *text, struct lull_collector_options *o, struct lull_err *err)
{
	static const struct {
		const char *name;
		enum lull_range_end end;
	} ends[] = {
		{ "none", LULL_RANGE_END_NONE },
		{ "stop", LULL_RANGE_END_STOP },
		{ "stop-shutdown", LULL_RANGE_END_STOP_SHUTDOWN },
		{ "repeat", LULL_RANGE_END_REPEAT },
		{ "repeat-shutdown", LULL_RANGE_END_REPEAT_SHUTDOWN },
	};
	const char *colon = text ? strchr(text, ':') : NULL;
	char *end;
	size_t n = text ? (colon ? (size_t)(colon - text) : strlen(text)) : 0;

	o->range_end = LULL_RANGE_END_STOP_SHUTDOWN;
	if (!text)
		return 0;
	for (size_t i = 0; i < LULL_COUNT_OF(ends); i++) {
		if (strlen(ends[i].name) != n || strncmp(ends[i].name, text, n) != 0)
			continue;
		o->range_end = ends[i].end;
		o->range_repeats = colon ? (u32)strtoul(colon + 1, &end, 10) : 0;
		if (colon && (*end || end == colon + 1))
			break;
		if (o->range_end == LULL_RANGE_END_REPEAT_SHUTDOWN && !o->range_repeats)
			return lull_fail(err, LULL_E_USAGE,
					 "--capture-range-end=repeat-shutdown needs a count, "
					 "such as repeat-shutdown:3");
		return 0;
	}
	return lull_fail(err, LULL_E_USAGE,
			 "--capture-range-end: '%s' is not none, stop, stop-shutdown, repeat[:N] "
			 "or repeat-shutdown:N",
			 text);
}

/* Steps decide, so nothing else may; by default each round is a report and the program goes on. */
static int parse_steps(const struct words *w, struct lull_collector_options *o,
		       struct lull_err *err)
{
	if (!w->steps)
		return 0;
	if (o->begin != LULL_BEGIN_AT_ONCE || w->delay > 0)
		return lull_fail(err, LULL_E_USAGE,
				 "--steps cannot be combined with --capture-range, --start-later "
				 "or --delay; leave them out");
	if (lull_record_steps(w->steps, &o->schedule, err))
		return err->code;
	o->begin = LULL_BEGIN_ON_RANGE;
	o->watch = LULL_WATCH_STEPS;
	if (!w->capture_range_end) {
		o->range_end = LULL_RANGE_END_REPEAT;
		o->range_repeats = o->schedule.repeat;
	}
	return 0;
}

/* LIBRARY or LIBRARY:PATTERN each; the agent reads them as lines. */
static int parse_libraries(const struct lull_vec *list, struct lull_collector_options *o,
			   struct lull_err *err)
{
	char **words = list->at;
	size_t room = sizeof(((struct lull_control *)0)->libraries), used = 0;

	for (size_t i = 0; i < list->n; i++) {
		if (!*words[i] || words[i][0] == ':' || strchr(words[i], '/'))
			return lull_fail(err, LULL_E_USAGE,
					 "--trace-library: '%s' is not LIBRARY:PATTERN, such as "
					 "libfoo.so:foo_*",
					 words[i]);
		used += strlen(words[i]) + 3;
	}
	if (used >= room)
		return lull_fail(err, LULL_E_USAGE,
				 "--trace-library: %zu bytes of patterns, the limit is %zu; use "
				 "fewer or shorter ones",
				 used, room);
	o->libraries = list;
	if (list->n)
		o->sources |= LULL_SOURCE_LIBRARY;
	return 0;
}

enum { GPU_AUTO, GPU_NONE, GPU_NVML, GPU_PM }; /* gpu_metrics[] */

/* Numbers of devices, "all" or "none" to bits; "cuda-visible" is all, as far as we can see. */
static int parse_devices(const struct lull_vec *list, u64 *devices, struct lull_err *err)
{
	char **words = list->at, *end;

	*devices = 0;
	for (size_t i = 0; i < list->n; i++) {
		u64 ix = strtoull(words[i], &end, 10);

		if (strcmp(words[i], "all") == 0 || strcmp(words[i], "cuda-visible") == 0)
			*devices = UINT64_MAX;
		else if (strcmp(words[i], "none") == 0)
			*devices = 0;
		else if (*end || end == words[i] || ix >= LULL_MAX_GPUS)
			return lull_fail(
				err, LULL_E_USAGE,
				"--gpu-metrics-devices: '%s' is not a number, all or none; "
				"`lull doctor` lists the devices",
				words[i]);
		else
			*devices |= 1ull << ix;
	}
	return 0;
}

/* Which devices to look at, and whether their counters are sampled. */
static int parse_gpu(const struct words *w, struct lull_collector_options *o, struct lull_err *err)
{
	bool is_named = w->gpu_devices.n > 0;
	u64 named;

	if (w->gpu_frequency < 10 || w->gpu_frequency > 200000)
		return lull_fail(err, LULL_E_USAGE,
				 "--gpu-metrics-frequency must lie between 10 and 200000 Hz");
	if (parse_devices(&w->gpu_devices, &named, err))
		return err->code;
	o->is_gpu_sampled = w->gpu_metrics != GPU_NONE;
	o->is_gpu_wanted = w->gpu_metrics >= GPU_NVML || named;
	o->gpu_devices = named ? named : UINT64_MAX;
	/* As elsewhere, naming devices is asking for their counters. */
	if (w->gpu_metrics == GPU_PM || (w->gpu_metrics == GPU_AUTO && is_named && named))
		o->gpu_rate_hz = w->gpu_frequency;
	return 0;
}

static enum lull_perf_scope scope_of(int word)
{
	return word == 0   ? LULL_PERF_NONE
	       : word == 2 ? LULL_PERF_SYSTEM_WIDE
			   : LULL_PERF_PROCESS_TREE;
}

static int check_env(const struct lull_vec *env, struct lull_err *err)
{
	char **at = env->at;

	for (size_t i = 0; i < env->n; i++)
		if (!strchr(at[i], '=') || at[i][0] == '=')
			return lull_fail(err, LULL_E_USAGE, "--env-var: '%s' is not NAME=VALUE",
					 at[i]);
	return 0;
}

static int check_exports(const struct lull_vec *exports, struct lull_err *err)
{
	const struct lull_export *format;
	char **at = exports->at;

	for (size_t i = 0; i < exports->n; i++)
		if (strcmp(at[i], "none") != 0 && lull_export_choose(at[i], &format, err))
			return lull_err_wrap(err, "--export");
	return 0;
}

/*
 * none, all, kernel, memory, sync, other; each may have a time in ns after a colon. Older scripts
 * say true or false.
 */
static int parse_backtrace(const char *word, u64 *limits_ns, struct lull_err *err)
{
	static const char *const kinds[] = { "kernel", "memory", "sync", "other", "all" };
	size_t n = strcspn(word, ":");
	char *end = NULL;
	u64 ns = word[n] ? strtoull(word + n + 1, &end, 10) : 1000;
	bool is_number = !word[n] || (!*end && end != word + n + 1);

	if (strcmp(word, "none") == 0 || strcmp(word, "false") == 0)
		return 0;
	if (strcmp(word, "true") == 0)
		n = strlen(word = "all");
	for (size_t i = 0; is_number && i < LULL_COUNT_OF(kinds); i++) {
		if (strlen(kinds[i]) != n || strncmp(word, kinds[i], n) != 0)
			continue;
		for (size_t j = 0; j < LULL_N_CALL_KINDS; j++)
			if (j == i || i == LULL_N_CALL_KINDS)
				limits_ns[j] = ns ? ns : 1;
		return 0;
	}
	return lull_fail(err, LULL_E_USAGE,
			 "--cudabacktrace: '%s' is not none, all, kernel, memory, sync or other, "
			 "optionally followed by :NS",
			 word);
}

static int parse_cuda(const struct words *w, struct lull_collector_options *o, struct lull_err *err)
{
	const struct {
		bool is_on;
		u32 source;
	} choices[] = {
		{ w->graphs == 1, LULL_SOURCE_GRAPH_NODES },
		{ w->cuda_memory, LULL_SOURCE_CUDA_MEMORY },
		{ w->cuda_all_calls, LULL_SOURCE_CUDA_ALL_CALLS },
		{ w->um_cpu_faults, LULL_SOURCE_UM_CPU_FAULTS },
		{ w->um_gpu_faults, LULL_SOURCE_UM_GPU_FAULTS },
	};

	if (w->cuda_scope != 0)
		return lull_fail(
			err, LULL_E_USAGE,
			"--cuda-trace-scope: only process-tree is supported; CUPTI shows each "
			"process only its own work");
	if (w->cuda_events == 2)
		return lull_fail(err, LULL_E_USAGE,
				 "--cuda-event-trace: only auto and false are supported; waits for "
				 "events are recorded without it");
	if (w->cuda_flush_ms > 60000)
		return lull_fail(err, LULL_E_USAGE,
				 "--cuda-flush-interval is 0 to 60000 milliseconds");
	for (size_t i = 0; i < w->cuda_backtrace.n; i++)
		if (parse_backtrace(((char **)w->cuda_backtrace.at)[i], o->cuda_backtrace_ns, err))
			return err->code;
	for (size_t i = 0; i < LULL_COUNT_OF(choices); i++)
		if (choices[i].is_on)
			o->sources |= choices[i].source;
	return 0;
}

/* So many CPU samples as are cheap. */
#define BY_COST UINT64_MAX

/* Frequencies and times that make sense; a frequency that scripts for nsys have is brought down. */
static int check_numbers(struct words *w, struct lull_collector_options *o, struct lull_err *err)
{
	if (w->sampling_frequency != BY_COST &&
	    (w->sampling_frequency < 1 || w->sampling_frequency > 8000))
		return lull_fail(err, LULL_E_USAGE,
				 "--sampling-frequency must lie between 1 and 8000 Hz");
	if (w->python_frequency < 1 || w->python_frequency > NSYS_PYTHON_HZ)
		return lull_fail(err, LULL_E_USAGE,
				 "--python-sampling-frequency must lie between 1 and %u Hz",
				 PYTHON_HZ_MAX);
	if (w->python_frequency > PYTHON_HZ_MAX) {
		lull_nsys_notice(
			&w->nsys,
			"--python-sampling-frequency: the limit is %u Hz, which is used instead",
			PYTHON_HZ_MAX);
		o->python_rate_hz = PYTHON_HZ_MAX;
	}
	if (!w->stop_on_exit && w->duration <= 0)
		return lull_fail(err, LULL_E_USAGE, "--stop-on-exit=false needs a --duration");
	return 0;
}

static int parse_times(struct words *w, struct lull_err *err)
{
	if (w->delay_text && lull_duration_seconds(w->delay_text, &w->delay, err))
		return lull_err_wrap(err, "--delay");
	if (w->duration_text && lull_duration_seconds(w->duration_text, &w->duration, err))
		return lull_err_wrap(err, "--duration");
	return 0;
}

static int understand(struct words *w, struct lull_collector_options *o, struct lull_err *err)
{
	if (parse_times(w, err))
		return err->code;
	*o = (struct lull_collector_options){
		.samples = scope_of(w->sample),
		.switches = scope_of(w->cpuctxsw),
		.mpi_family = (u32)w->mpi_family,
		.is_timer_forced = w->sampler == 1,
		.rate_hz = w->sampling_frequency == BY_COST ? 0 : (u32)w->sampling_frequency,
		.is_python_sampled = w->python,
		.python_rate_hz = (u32)w->python_frequency,
		.osrt_threshold_ns = w->osrt_threshold,
		.cuda_flush_ms = (u32)w->cuda_flush_ms,
		.backtrace_threshold_ns = w->osrt_backtrace_threshold,
		.output = w->output,
		.is_overwriting = w->force,
		.delay_s = w->delay,
		.duration_s = w->duration,
		.begin = w->start_later ? LULL_BEGIN_ON_REQUEST : LULL_BEGIN_AT_ONCE,
		.is_kill_given = w->kill != NULL,
		.is_waiting_for_all = w->wait == 1,
		.is_stopping_on_exit = w->stop_on_exit,
		.env = &w->env,
		.is_env_inherited = w->inherit_env,
		.is_env_discarded = w->discard_env,
		.is_unresolved = !w->resolve,
		.debug_dirs = w->debug_symbols,
		.session_name = w->session ? w->session : "",
		.is_quiet = w->quiet,
		.has_output = w->stats || w->why || w->exports.n,
	};
	if (check_numbers(w, o, err))
		return err->code;
	o->watch = LULL_WATCH_PROFILER_API;
	if (w->capture_range == CAPTURE_PROFILER_API || w->capture_range == CAPTURE_LULL)
		o->begin = LULL_BEGIN_ON_RANGE;
	if (w->capture_range == CAPTURE_LULL)
		o->watch = LULL_WATCH_PROGRAM;
	if (w->nvtx_capture && w->capture_range != CAPTURE_NVTX && !w->quiet)
		fputs("lull: warning: --nvtx-capture has no effect without --capture-range=nvtx\n",
		      stderr);
	if (w->capture_range == CAPTURE_NVTX) {
		if (!w->nvtx_capture)
			return lull_fail(err, LULL_E_USAGE,
					 "--capture-range=nvtx needs --nvtx-capture=RANGE to name "
					 "the range");
		o->begin = LULL_BEGIN_ON_RANGE;
		o->capture_range = w->nvtx_capture;
		o->watch = LULL_WATCH_RANGES;
	}
	if (parse_trace(w, &o->sources, err))
		return err->code;
	if (!w->stop_on_range_end && !w->capture_range_end)
		w->capture_range_end = "none";
	o->is_cuda_wanted = w->trace.n && (o->sources & LULL_SOURCE_CUDA);
	return parse_cuda(w, o, err) || parse_libraries(&w->libraries, o, err) ||
			       parse_gpu(w, o, err) || parse_kill(w->kill, &o->kill_signal, err) ||
			       parse_range_end(w->capture_range_end, o, err) ||
			       lull_record_pytorch(&w->pytorch, &o->sources, err) ||
			       parse_steps(w, o, err) || check_env(&w->env, err) ||
			       check_exports(&w->exports, err) || lull_nsys_check(&w->nsys, err)
		       ? err->code
		       : 0;
}

/* The options, in one table from pieces of a size that can be read. */
struct table {
	struct lull_opt at[160];
	size_t n;
};

static void add_opts(struct table *t, const struct lull_opt *opts, size_t n)
{
	for (size_t i = 0; i < n && t->n < LULL_COUNT_OF(t->at); i++)
		t->at[t->n++] = opts[i];
}

static void add_cuda(struct table *t, struct words *w)
{
	const struct lull_opt opts[] = {
		OPT_ENUM(0, "cuda-graph-trace", &w->graphs, graph_traces,
			 "CUDA graphs as a whole (default) or node by node"),
		OPT_BOOL(0, "cuda-memory-usage", &w->cuda_memory,
			 "allocations of device memory (default: false)"),
		OPT_BOOL(0, "cuda-trace-all-apis", &w->cuda_all_calls,
			 "also CUDA calls that only query state (default: false)"),
		OPT_LIST(0, "cudabacktrace", "KINDS", &w->cuda_backtrace,
			 "call stacks of CUDA calls longer than NS nanoseconds: none (default), "
			 "all, kernel, memory, sync, other, each with :NS (default: 1000)"),
		OPT_BOOL(0, "cuda-um-cpu-page-faults", &w->um_cpu_faults,
			 "unified memory: migrations and CPU page faults (default: false)"),
		OPT_BOOL(0, "cuda-um-gpu-page-faults", &w->um_gpu_faults,
			 "unified memory: migrations and GPU page faults (default: false)"),
		OPT_U64(0, "cuda-flush-interval", "MS", &w->cuda_flush_ms,
			"how often device records are flushed (default: 200); 0: when buffers are "
			"full, and at the end"),
		OPT_ENUM(0, "cuda-event-trace", &w->cuda_events, cuda_event_traces,
			 "completion times of CUDA events on the device; not supported: auto "
			 "(default) and false are accepted and record none"),
		OPT_ENUM(0, "cuda-trace-scope", &w->cuda_scope, cuda_scopes,
			 "processes whose CUDA work is recorded; only process-tree (default) is "
			 "supported"),
		OPT_BOOL(0, "flush-on-cudaprofilerstop", &w->flush_on_stop,
			 "flush device records at cudaProfilerStop(); always done (default: true)"),
	};

	add_opts(t, opts, LULL_COUNT_OF(opts));
}

static void add_what(struct table *t, struct words *w)
{
	const struct lull_opt opts[] = {
		OPT_GROUP("What to record"),
		OPT_LIST('t', "trace", "LIST", &w->trace, lull_trace_help),
		OPT_LIST(
			0, "trace-library", "LIBRARY:PATTERN", &w->libraries,
			"calls of exported functions of a library, such as libfoo.so:foo_*; may be "
			"repeated"),
		OPT_LIST(0, "pytorch", "LIST", &w->pytorch,
			 "phases of PyTorch programs: auto (default) and steps: steps, data, "
			 "forward, backward, optimizer; ops: also each operator and allocation; "
			 "modules: also the model's modules; none"),
		OPT_ENUM(0, "mpi-impl", &w->mpi_family, mpi_families,
			 "MPI implementation of the program (default: auto, detected from its "
			 "library)"),
		OPT_ENUM('s', "sample", &w->sample, scopes,
			 "CPU samples with call stacks (default: process-tree)"),
		OPT_ENUM(0, "cpuctxsw", &w->cpuctxsw, scopes,
			 "thread scheduling (default: process-tree)"),
		OPT_ENUM(0, "sampler", &w->sampler, samplers,
			 "how CPU samples are taken; auto (default): by perf, or by timers inside "
			 "the processes where perf is not permitted"),
		OPT_U64(0, "sampling-frequency", "HZ", &w->sampling_frequency,
			"CPU samples per second (default: 100, or fewer if these would slow the "
			"program down by more than 0.05 %)"),
	};

	add_opts(t, opts, LULL_COUNT_OF(opts));
}

static void add_devices(struct table *t, struct words *w)
{
	const struct lull_opt opts[] = {
		OPT_ENUM(0, "gpu-metrics", &w->gpu_metrics, gpu_metrics,
			 "state of devices: auto (default): from NVML 10 times per second if a "
			 "device is found; none; nvml: from NVML in any case; pm: counters "
			 "sampled by the hardware"),
		OPT_LIST(0, "gpu-metrics-devices", "LIST", &w->gpu_devices,
			 "sample counters of these devices: numbers, all, none"),
		OPT_LIST(0, "gpu-metrics-device", "LIST", &w->gpu_devices,
			 "the same, as older scripts spell it"),
		OPT_U64(0, "gpu-metrics-frequency", "HZ", &w->gpu_frequency,
			"counter samples per second (default: 10000)"),
	};

	add_opts(t, opts, LULL_COUNT_OF(opts));
}

static void add_host(struct table *t, struct words *w)
{
	const struct lull_opt opts[] = {
		OPT_BOOL(0, "python-sampling", &w->python, "Python call stacks (default: true)"),
		OPT_U64(0, "python-sampling-frequency", "HZ", &w->python_frequency,
			"Python stacks per second (default: 100)"),
		OPT_U64(0, "osrt-threshold", "NS", &w->osrt_threshold,
			"leave out C library calls shorter than this (default: 1000)"),
		OPT_U64(0, "osrt-backtrace-threshold", "NS", &w->osrt_backtrace_threshold,
			"call stack for calls longer than this (default: 80000)"),
	};

	add_opts(t, opts, LULL_COUNT_OF(opts));
}

static void add_rest(struct table *t, struct words *w)
{
	const struct lull_opt opts[] = {
		OPT_GROUP("When to record"),
		OPT_STR('y', "delay", "TIME", &w->delay_text,
			"start recording this long after the program starts: 5, 500ms"),
		OPT_STR('d', "duration", "TIME", &w->duration_text,
			"stop after this long, and end the program: 10, 500ms, 2m"),
		OPT_ENUM('c', "capture-range", &w->capture_range, captures,
			 "what starts the recording (default: none, it starts immediately)"),
		OPT_STR(0, "capture-range-end", "MODE", &w->capture_range_end,
			"when it ends: none, stop, stop-shutdown (default), repeat[:N], "
			"repeat-shutdown:N"),
		OPT_BOOL(0, "stop-on-range-end", &w->stop_on_range_end,
			 "the same, as older scripts spell it: true is stop-shutdown, false none"),
		OPT_STR(0, "steps", "LIST", &w->steps,
			"record these steps only: skip=5,wait=1,warmup=1,active=3,repeat=1, each "
			"round in its own report; repeat=0 (default): to the end"),
		OPT_STR('p', "nvtx-capture", "RANGE[@DOMAIN]", &w->nvtx_capture,
			"the range for --capture-range=nvtx; @* is any domain"),
		OPT_BOOL('Y', "start-later", &w->start_later, "wait for lull start"),
		OPT_BOOL('x', "stop-on-exit", &w->stop_on_exit,
			 "end when the program ends (default: true; false needs --duration)"),
		OPT_GROUP("The program"),
		OPT_LIST('e', "env-var", "A=B", &w->env,
			 "set environment variables for the program"),
		OPT_BOOL('n', "inherit-environment", &w->inherit_env,
			 "pass lull's own environment to the program (default: true)"),
		OPT_STR(0, "kill", "SIGNAL", &w->kill,
			"signal that ends the program after the recording: none, sigterm "
			"(default), "
			"sigkill, a number"),
		OPT_ENUM(0, "wait", &w->wait, waits,
			 "wait for the program alone (primary), or for all processes it started "
			 "(all, default)"),
		OPT_GROUP("The report"),
		OPT_STR('o', "output", "NAME", &w->output,
			"report name; %p pid, %h host, %n counter, %q{VAR}, %% percent "
			"sign (default: report1, report2, ...)"),
		OPT_BOOL('f', "force-overwrite", &w->force, "overwrite an existing report"),
		OPT_BOOL(0, "stats", &w->stats, "print the summaries when done"),
		OPT_BOOL(0, "why", &w->why, "say why the GPU waits when done"),
		OPT_LIST(0, "export", "FORMAT", &w->exports,
			 "also write the report in these formats of lull export"),
		OPT_BOOL(0, "discard-environment", &w->discard_env,
			 "store no environment variables"),
		OPT_BOOL(0, "resolve-symbols", &w->resolve,
			 "look up function names after the run (default: true)"),
		OPT_STR(0, "debug-symbols", "DIRS", &w->debug_symbols,
			"folders with debug files, separated by colons"),
		OPT_STR(0, "session-new", "NAME", &w->session, "name of the session"),
		OPT_FLAG('q', "quiet", &w->quiet, "no status line and no summary at the end"),
	};

	add_opts(t, opts, LULL_COUNT_OF(opts));
}

static int parse(int argc, char **argv, struct words *w, bool is_interactive, struct lull_err *err)
{
	const struct lull_opt usage[] = {
		OPT_USAGE(is_interactive ? "lull launch [OPTIONS] [--] PROGRAM [ARGS]"
					 : "lull profile [OPTIONS] [--] PROGRAM [ARGS]",
			  is_interactive ? "Start a program that lull start and lull stop "
					   "can record."
					 : "Run a program and record what it does."),
	};
	const struct lull_opt end[] = { OPT_END() };
	struct table t = { .n = 0 };

	add_opts(&t, usage, LULL_COUNT_OF(usage));
	add_what(&t, w);
	add_cuda(&t, w);
	add_devices(&t, w);
	add_host(&t, w);
	t.n += lull_record_job_opts(&w->job, t.at + t.n);
	add_rest(&t, w);
	t.n += lull_nsys_opts(&w->nsys, t.at + t.n);
	add_opts(&t, end, LULL_COUNT_OF(end));
	return lull_opt_parse_program(argc, argv, t.at, err);
}

static void print_lines(const char *before, const char *lines)
{
	while (lines && *lines) {
		size_t n = strcspn(lines, "\n");

		fprintf(stderr, "lull: %s%.*s\n", before, (int)n, lines);
		lines += n + (lines[n] == '\n');
	}
}

/* Why there is no report, and what would help. */
static void print_nothing(const struct words *w)
{
	const char *why = "";

	if (w->steps)
		why = ": the program reached no step that --steps selects; lull-pytorch(7) says "
		      "what "
		      "a step is";
	else if (w->capture_range == CAPTURE_PROFILER_API)
		why = ": the program never called cudaProfilerStart()";
	else if (w->capture_range == CAPTURE_LULL)
		why = ": the program never called lull_start()";
	else if (w->start_later)
		why = ": `lull start` was never run";
	else if (w->delay > 0)
		why = ": the program ended before --delay was over";
	else if (w->job.flight_s > 0)
		why = ": nothing triggered a report of --flight";
	if (w->capture_range == CAPTURE_NVTX)
		fprintf(stderr,
			"lull: nothing was recorded: no range %s started; is the name right? (@* "
			"after it means any domain)\n",
			w->nvtx_capture);
	else
		fprintf(stderr, "lull: nothing was recorded%s\n", why);
}

static u64 n_rows(const char *path, enum lull_table table)
{
	struct lull_reader *r;
	struct lull_err ignored;
	u64 n;

	if (lull_reader_open(&r, path, &ignored))
		return 0;
	n = lull_reader_stats(r, (u16)table).n_rows;
	lull_reader_close(r);
	return n;
}

void lull_record_print_next(const char *path)
{
	/* A device that worked is what `lull why` is about. */
	if (n_rows(path, LULL_TABLE_kernel) || n_rows(path, LULL_TABLE_graph))
		fprintf(stderr,
			"lull: next: lull why %s (why the GPU waits), or lull stats %s (tables)\n",
			path, path);
	else
		fprintf(stderr, "lull: next: lull stats %s\n", path);
}

/* A pattern that matches nothing looks like a library that does nothing. */
static void print_unmatched(const struct words *w, const char *path)
{
	if (w->libraries.n && !n_rows(path, LULL_TABLE_lib_call))
		fputs("lull: warning: --trace-library: no function that matches was called; are "
		      "the library and the pattern right, as in libfoo.so:foo_*?\n",
		      stderr);
}

static void print_done(const struct words *w, const struct lull_collector_result *result)
{
	const struct lull_report_done *done = result->reports.at;

	for (size_t i = 0; i < result->reports.n; i++) {
		fprintf(stderr, "lull: %s  %s, %s events in %.1f s, %s lost\n", done[i].path,
			lull_format_bytes(done[i].size_bytes).text,
			lull_format_count(done[i].n_events).text, done[i].seconds,
			done[i].n_lost ? lull_format_count(done[i].n_lost).text : "none");
		print_lines("warning: ", done[i].notices);
		print_unmatched(w, done[i].path);
	}
	if (result->reports.n)
		lull_record_print_next(done[result->reports.n - 1].path);
	else
		print_nothing(w);
}

/* Run another command of lull on each report, as if the user had typed it. */
static int follow_up(const struct lull_collector_result *result, const char *command,
		     const char *type, bool is_overwriting, struct lull_err *err)
{
	char *force = is_overwriting ? "--force-overwrite=true" : "--force-overwrite=false";
	const struct lull_report_done *done = result->reports.at;
	const char *nearest;
	const struct lull_cmd *cmd = lull_cmd_find(command, &nearest);
	int rc = 0;

	for (size_t i = 0; cmd && i < result->reports.n && !rc; i++) {
		char *with_type[] = {
			(char *)command, force, "-t", (char *)type, done[i].path, NULL
		};
		char *plain[] = { (char *)command, done[i].path, NULL };

		rc = type ? cmd->run(5, with_type, err) : cmd->run(2, plain, err);
	}
	return rc;
}

static int finish(const struct words *w, const struct lull_collector_result *result,
		  struct lull_err *err)
{
	char **exports = w->exports.at;
	int rc = 0;

	if (!w->quiet)
		print_done(w, result);
	for (size_t i = 0; i < w->exports.n && !rc; i++)
		if (strcmp(exports[i], "none") != 0)
			rc = follow_up(result, "export", exports[i], w->force, err);
	if (w->stats && !rc)
		rc = follow_up(result, "stats", NULL, false, err);
	if (w->why && !rc)
		rc = follow_up(result, "why", NULL, false, err);
	return rc;
}

int lull_record(int argc, char **argv, bool is_interactive, struct lull_err *err)
{
	struct words w = {
		.sample = 1,
		.cpuctxsw = 1,
		.wait = 1,
		.sampling_frequency = BY_COST,
		.python_frequency = 100,
		.gpu_frequency = 10000,
		.osrt_threshold = 1000,
		.osrt_backtrace_threshold = 80000,
		.cuda_flush_ms = 200,
		.job = { .flight_limit = 10 },
		.flush_on_stop = true,
		.stop_on_range_end = true,
		.stop_on_exit = true,
		.inherit_env = true,
		.resolve = true,
		.python = true,
	};
	struct lull_collector_options options;
	struct lull_collector_result result = { 0 };
	int first, rc;

	lull_vec_init(&w.trace, sizeof(char *));
	lull_vec_init(&w.libraries, sizeof(char *));
	lull_vec_init(&w.pytorch, sizeof(char *));
	lull_vec_init(&w.gpu_devices, sizeof(char *));
	lull_vec_init(&w.env, sizeof(char *));
	lull_vec_init(&w.exports, sizeof(char *));
	lull_vec_init(&w.cuda_backtrace, sizeof(char *));
	first = parse(argc, argv, &w, is_interactive, err);
	rc = first < 0 ? first : 0;
	if (!rc && first >= argc)
		rc = lull_fail(err, LULL_E_USAGE, "no program given; try: lull %s ./app", argv[0]);
	w.start_later = w.start_later || is_interactive;
	if (!rc)
		rc = understand(&w, &options, err);
	if (!rc)
		rc = lull_record_job_parse(&w.job, argv + first, &options, err);
	if (!rc && !w.quiet)
		print_lines("", w.nsys.notices.at);
	if (!rc)
		rc = lull_record_job_step_aside(&w.job, argv + first, &w.env, &result.exit_status,
						err);
	if (!rc) {
		rc = lull_collector_run(&options, argv + first, &result, err);
		if (!rc)
			rc = finish(&w, &result, err);
		else if (result.reports.n && !w.quiet)
			print_done(&w, &result);
	}
	/* The program's own failure is what scripts look for; ours is said, and yields to it. */
	if (rc < 0 && result.exit_status)
		fprintf(stderr, "lull %s: %s\n", argv[0], err->msg);
	if (!rc || result.exit_status)
		rc = result.exit_status;
	lull_collector_result_release(&result);
	lull_record_job_release(&w.job);
	lull_nsys_release(&w.nsys);
	lull_opt_list_release(&w.trace);
	lull_opt_list_release(&w.libraries);
	lull_opt_list_release(&w.pytorch);
	lull_opt_list_release(&w.gpu_devices);
	lull_opt_list_release(&w.env);
	lull_opt_list_release(&w.exports);
	lull_opt_list_release(&w.cuda_backtrace);
	return rc;
}
