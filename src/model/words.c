#include "model/words.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "model/wait.h"

static bool begins(const char *name, const char *with)
{
	return !strncasecmp(name, with, strlen(with));
}

/*
 * Whether `name` holds one of the words, which end with NULL. Stacks are asked about by the
 * thousand, and strcasestr() once for each word takes ten times as long. The low five bits of a
 * letter are the same in upper and lower case.
 */
static bool has_any(const char *name, const char *const *words)
{
	u32 first = 0;

	for (size_t i = 0; words[i]; i++)
		first |= 1u << (words[i][0] & 31);
	for (; *name; name++) {
		if (!(first >> (*name & 31) & 1))
			continue;
		for (size_t i = 0; words[i]; i++)
			if (!((*name ^ words[i][0]) & 31) && begins(name, words[i]))
				return true;
	}
	return false;
}

bool lull_call_is_device_wide(const char *name)
{
	return strcasestr(name, "DeviceSynchronize") || strcasestr(name, "CtxSynchronize") ||
	       strcasestr(name, "ThreadSynchronize");
}

bool lull_kernel_is_costly(const char *name)
{
	static const char *const costly[] = { "tanh",	 "exp",	    "gelu", "erf",  "log",
					      "pow",	 "sin",	    "cos",  "sqrt", "silu",
					      "sigmoid", "softmax", NULL };

	return has_any(name, costly);
}

bool lull_kernel_is_peer(const char *name)
{
	return strcasestr(name, "sendrecv") || strcasestr(name, "send_recv") ||
	       strcasestr(name, "ncclRecv") || strcasestr(name, "ncclSend");
}

bool lull_name_is_xla_module(const char *name)
{
	return begins(name, "XlaModule:");
}

/* All of its ranges but those around what it executes. */
static bool is_xla_compiler(const char *name)
{
	return begins(name, "Xla") && !lull_name_is_xla_module(name);
}

bool lull_name_is_xla_part(const char *name)
{
	return begins(name, "Thunk:") || is_xla_compiler(name);
}

bool lull_name_is_reading(const char *name)
{
	static const char *const words[] = { "load", "restor", "resum", "read", NULL };

	return has_any(name, words) && !strcasestr(name, "upload");
}

/* Python's dumps() of json, pickle and the like makes a string; dump() writes it. */
static bool makes_string(const char *name)
{
	static const char end[] = "dumps";
	size_t len = strlen(name);

	return len >= strlen(end) && !strcmp(name + len - strlen(end), end);
}

/* A compiler's rewriter writes nothing, and what is deserialized is read. */
static bool is_storage(const char *name)
{
	static const char *const verbs[] = { "save",	 "dump",  "write", "upload",
					     "serializ", "fsync", NULL };
	static const char *const nouns[] = { "checkpoint", "snapshot", NULL };
	static const char *const others[] = { "rewrit", "deserializ", NULL };

	if (has_any(name, others) || begins(name, "torch") || makes_string(name))
		return false;
	return has_any(name, verbs) || (has_any(name, nouns) && !lull_name_is_reading(name));
}

u32 lull_name_bits(const char *name)
{
	static const char *const loader[] = {
		"dataload",    "data_load",	 "load_data",	  "load_batch", "next_batch",
		"get_batch",   "fetch",		 "decode",	  "collate",	"dataset",
		"__getitem__", "prefetch",	 "preprocess",	  "augment",	"tokeniz",
		"_next_data",  "input_pipeline", "prepare_batch", "read_batch", NULL
	};
	static const char *const optimizer[] = { "optimizer.step", "optimizer_step", "optim.step",
						 NULL };
	static const char *const framework[] = { "optimizer.", "distributeddataparallel",
						 "autograd", "ddp", NULL };
	u32 bits = 0;

	if (is_xla_compiler(name))
		return LULL_IN_COMPILE;
	if (has_any(name, loader))
		bits |= LULL_IN_LOADER;
	else if (is_storage(name))
		bits |= LULL_IN_STORAGE;
	if (has_any(name, optimizer) || !strcasecmp(name, "optimizer") ||
	    !strcasecmp(name, "optim"))
		bits |= LULL_IN_OPTIMIZER | LULL_IN_FRAMEWORK;
	if (has_any(name, framework))
		bits |= LULL_IN_FRAMEWORK;
	if (!strcasecmp(name, "compile") || begins(name, "compile."))
		bits |= LULL_IN_COMPILE;
	return bits;
}

bool lull_name_is_generation(const char *name, bool has_prefill)
{
	/* "prefill+decode", "step[DECODE bs=4]", "decode_next_token", "generate/decode" */
	static const char *const words[] = { "prefill", "bs=", "token", "generat", "logits", NULL };

	return strcasestr(name, "decode") && (has_prefill || has_any(name, words));
}

u32 lull_op_bits(const char *name)
{
	/* Operators that change how a tensor is looked at: they only prepare the next launch. */
	static const char *const views[] = { "aten::view",
					     "aten::t",
					     "aten::transpose",
					     "aten::reshape",
					     "aten::expand",
					     "aten::as_strided",
					     "aten::slice",
					     "aten::select",
					     "aten::detach",
					     "aten::unsqueeze",
					     "aten::squeeze",
					     "aten::permute",
					     "aten::empty",
					     "aten::empty_like",
					     "aten::empty_strided",
					     "aten::resize_",
					     "detach",
					     "aten::_unsafe_view",
					     "aten::result_type",
					     "aten::lift_fresh",
					     "aten::zeros_like",
					     NULL };
	static const char *const framework[] = {
		"autograd::",	  "Optimizer.", "DistributedDataParallel", "c10d::",  "nccl:",
		"Torch-Compiled", "Backward",	"AccumulateGrad",	   "torch::", NULL
	};

	for (size_t i = 0; views[i]; i++) {
		if (!strcmp(name, views[i]))
			return LULL_IN_FRAMEWORK;
	}
	if (begins(name, "enumerate(DataLoader)"))
		return LULL_IN_LOADER;
	if (begins(name, "Optimizer.step"))
		return LULL_IN_OPTIMIZER | LULL_IN_FRAMEWORK;
	return has_any(name, framework) ? LULL_IN_FRAMEWORK : 0;
}

bool lull_file_is_media(const char *path)
{
	static const char *const parts[] = { "/PIL/",	   "/cv2/",	 "torchvision/io",
					     "torchaudio", "/imageio/",	 "soundfile",
					     "torchcodec", "skimage/io", NULL };

	return has_any(path, parts);
}

u32 lull_file_bits(const char *path)
{
	static const char *const loader[] = {
		"torch/utils/data", "webdataset", "nvidia/dali", "torchvision/transforms",
		"datasets/",	    "tokenizers", NULL
	};
	static const char *const compiler[] = { "torch/_dynamo",
						"torch/_inductor",
						"torch/fx/",
						"triton/compiler",
						"triton/runtime/jit",
						"torch/utils/cpp_extension",
						"jax/_src/compil",
						"jax/_src/cache_key",
						"jax/_src/interpreters/mlir",
						"jax/_src/interpreters/partial_eval",
						"cupy/cuda/compiler",
						"numba/core/compiler",
						NULL };
	static const char *const storage[] = { "torch/serialization.py", "safetensors", "h5py",
					       "torch/distributed/checkpoint", NULL };
	static const char *const framework[] = { "torch/optim/",  "torch/autograd/", "torch/nn/",
						 "torch/_",	  "torch/cuda/",     "torch/amp/",
						 "torch/utils/_", "torch/overrides", NULL };

	/* The wrapper around every compiled function compiles nothing itself. */
	if (has_any(path, compiler) && !strstr(path, "eval_frame"))
		return LULL_IN_COMPILE;
	if (has_any(path, loader) || lull_file_is_media(path))
		return LULL_IN_LOADER;
	if (has_any(path, storage))
		return LULL_IN_STORAGE;
	if (strcasestr(path, "torch/optim/"))
		return LULL_IN_FRAMEWORK | LULL_IN_OPTIMIZER;
	return has_any(path, framework) ? LULL_IN_FRAMEWORK : 0;
}

/* Code that a library makes has no file: <__array_function__ internals>, <attrs generated ...>. */
static bool is_generated(const char *path)
{
	/* So has what people type, and the words after -c. */
	static const char *const typed[] = { "<string>", "<stdin>", "<ipython-", "<console>",
					     "<cell",	 "<input>", NULL };

	if (*path != '<')
		return false;
	for (size_t i = 0; typed[i]; i++) {
		if (!strncmp(path, typed[i], strlen(typed[i])))
			return false;
	}
	return true;
}

bool lull_file_is_plumbing(const char *path)
{
	static const char *const parts[] = { "/torch/",		"<frozen",   "/site-packages/",
					     "/dist-packages/", "<built-in", "/lib/python",
					     "/lull/_",		NULL };

	for (size_t i = 0; parts[i]; i++) {
		if (strstr(path, parts[i]))
			return true;
	}
	/* PyTorch's traces have paths as from the folder that is imported from. */
	return is_generated(path) || !strncmp(path, "torch/", 6);
}

u32 lull_oscall_bits(const char *name)
{
	/* A pipe, a terminal or a socket that nobody empties blocks its writer as storage does. */
	static const char *const writes[] = {
		"write",  "sync",   "fflush",	       "put", "send", "msgsnd", "fclose",
		"rename", "splice", "copy_file_range", NULL
	};
	static const char *const reads[] = { "read", "recv", "fgets", "getline",
					     "open", "stat", NULL };
	/* For the end of a process, or for a signal. */
	static const char *const waits[] = { "wait", "system", "sigsuspend", "pause", NULL };

	if (has_any(name, writes))
		return LULL_IN_WRITE;
	switch (lull_wait_of(name)) {
	case LULL_WAIT_LOCK:
		return LULL_IN_WAIT;
	case LULL_WAIT_SLEEP:
		return LULL_IN_SLEEP;
	case LULL_WAIT_IO:
		/* poll and select wait for somebody who writes: a worker's pipe, a queue. */
		return has_any(name, reads) ? LULL_IN_READ : LULL_IN_WAIT;
	case LULL_WAIT_OTHER:
		break;
	}
	return has_any(name, waits) ? LULL_IN_WAIT : 0;
}

bool lull_name_is_step(const char *name)
{
	static const char *const words[] = {
		"ProfilerStep", "train_step", "training_step", "train step", "training step",
		"step",		"iteration",  "iter",	       "batch",	     NULL
	};

	for (size_t i = 0; words[i]; i++) {
		const char *rest = name + strlen(words[i]);

		if (!begins(name, words[i]))
			continue;
		while (*rest && (isdigit((unsigned char)*rest) || strchr(" _#-:=/", *rest)))
			rest++;
		if (!*rest)
			return true;
	}
	return false;
}
