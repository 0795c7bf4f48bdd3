#include "model/thread/doing.h"

#include <ctype.h>
#include <string.h>

#include "model/words.h"

static bool begins_any(const char *name, const char *const *words)
{
	for (; *words; words++) {
		if (!strncmp(name, *words, strlen(*words)))
			return true;
	}
	return false;
}

static bool has_any(const char *name, const char *const *words)
{
	for (; *words; words++) {
		if (strstr(name, *words))
			return true;
	}
	return false;
}

u32 lull_doing_call(const char *name)
{
	static const char *const locks[] = { "pthread_mutex_",
					     "pthread_rwlock_",
					     "pthread_spin_",
					     "flock",
					     "lockf",
					     "fcntl",
					     NULL };
	static const char *const queues[] = { "pthread_cond_",
					      "sem_",
					      "semop",
					      "semtimedop",
					      "pthread_barrier_",
					      "pthread_join",
					      "pthread_timedjoin",
					      "pthread_clockjoin",
					      "msgrcv",
					      NULL };
	static const char *const children[] = { "wait", "system", "pclose", NULL };
	/* A name is looked up by asking a server. */
	static const char *const sockets[] = { "recv", "__recv", "connect", "getaddrinfo", NULL };
	static const char *const events[] = { "poll",	"ppoll",   "__poll", "__ppoll",
					      "select", "pselect", "epoll_", NULL };
	static const char *const files[] = { "pread",	   "__pread", "fread",	 "__fread",
					     "fgets",	   "__fgets", "getline", "getdelim",
					     "__getdelim", NULL };

	if (begins_any(name, locks))
		return LULL_IN_LOCK;
	if (begins_any(name, queues))
		return LULL_IN_QUEUE;
	if (begins_any(name, children))
		return LULL_IN_QUEUE | LULL_IN_CHILD;
	if (begins_any(name, sockets))
		return LULL_IN_SOCKET;
	if (!strncmp(name, "accept", 6))
		return LULL_IN_DEMAND;
	if (begins_any(name, events))
		return LULL_IN_EVENTS;
	if (!strncmp(name, "mmap", 4) || !strcmp(name, "munmap"))
		return LULL_IN_MAPS;
	return begins_any(name, files) ? LULL_IN_FILE : 0;
}

u32 lull_doing_range(const char *name)
{
	return !strcmp(name, "gc.collect") || !strcmp(name, "gc") ? LULL_IN_GC : 0;
}

/* Of the Linux kernel: pages come and go. Those of files are read or written. */
static u32 kernel_bits(const char *function)
{
	static const char *const files[] = { "filemap_", "ext4_",	"xfs_",
					     "nfs_",	 "page_cache_", NULL };
	static const char *const written[] = { "write", "fsync", "sync_file", NULL };
	static const char *const faults[] = {
		"clear_page",	 "__pi_clear_page",  "clear_huge_page",
		"clear_subpage", "do_anonymous",     "handle_mm_fault",
		"__handle_mm",	 "exc_page_fault",   "asm_exc_page",
		"do_user_addr",	 "do_page_fault",    "do_mem_abort",
		"el0_da",	 "unmap_page_range", "zap_p",
		"vma_alloc",	 "folio_zero",	     "do_huge_pmd",
		"__do_huge_pmd", "page_fault",	     NULL
	};

	/* NVIDIA's driver for managed memory. */
	if (!strncmp(function, "uvm_", 4))
		return LULL_IN_MANAGED;
	if (begins_any(function, files))
		return has_any(function, written) ? LULL_IN_WRITE : LULL_IN_FILE;
	return begins_any(function, faults) ? LULL_IN_FAULT : 0;
}

/* Kernels of tensor libraries for CPUs; their dispatchers run for the device, too. */
static bool computes_tensors(const char *function, const char *module)
{
	static const char *const names[] = { "::AVX2::",
					     "::AVX512::",
					     "::DEFAULT::",
					     "::SVE",
					     "VectorizedLoop",
					     "cpublas",
					     "cpu_kernel",
					     "mkldnn",
					     "dnnl::",
					     "at::parallel_for",
					     "cpu_adam",
					     "function_ref<void (char**",
					     "mkl_",
					     "vectorized_loop",
					     "at::internal::invoke_parallel",
					     NULL };
	static const char *const modules[] = {
		"libgomp", "libiomp",	     "libmkl",	  "libopenblas", "libblas",
		"libdnnl", "libarm_compute", "libomp.so", "onnxruntime", "openvino",
		"tflite",  "libggml-cpu",    NULL
	};

	return has_any(function, names) || has_any(module, modules);
}

bool lull_doing_is_tensors(const char *function, const char *module)
{
	return !*function && strstr(module, "libtorch_cpu");
}

u32 lull_doing_native(const char *function, const char *module)
{
	static const char *const gc[] = { "gc_collect",
					  "_PyGC_Collect",
					  "PyGC_Collect",
					  "gc_generation",
					  "deduce_unreachable",
					  "collect_main",
					  "subtract_refs",
					  "move_unreachable",
					  "gc_run",
					  "_Py_RunGC",
					  "gc_mark",
					  NULL };
	static const char *const touch[] = {
		"memset",	 "__memset",	"memcpy",   "__memcpy",
		"memmove",	 "__memmove",	"__GI_mem", "malloc",
		"__libc_malloc", "_int_malloc", "calloc",   "__libc_calloc",
		"sysmalloc",	 "munmap",	"__munmap", "__GI___munmap",
		"mmap",		 "__mmap",	"madvise",  "__madvise",
		"munmap_chunk",	 NULL
	};

	static const char *const compilers[] = { "libnvrtc", "libnvvm", "libnvidia-ptxjit",
						 "libLLVM", NULL };

	if (!strcmp(module, "[kernel]"))
		return kernel_bits(function);
	if (begins_any(function, gc))
		return LULL_IN_GC;
	if (begins_any(function, touch))
		return LULL_IN_TOUCH;
	if (has_any(module, compilers) || !strncmp(function, "nvrtc", 5))
		return LULL_IN_COMPILE;
	return computes_tensors(function, module) ? LULL_IN_CPU_OP : 0;
}

bool lull_doing_is_pool(const char *module)
{
	static const char *const modules[] = { "libgomp", "libiomp", "libomp.so", NULL };

	return has_any(module, modules);
}

u32 lull_doing_python(const char *function, const char *file)
{
	static const struct {
		const char *file, *function;
		u32 bits;
	} waits[] = {
		{ "/queue.py", "get", LULL_IN_QUEUE },
		{ "/threading.py", "wait", LULL_IN_QUEUE },
		{ "/threading.py", "join", LULL_IN_QUEUE },
		{ "/threading.py", "_wait_for_tstate_lock", LULL_IN_QUEUE },
		{ "/threading.py", "acquire", LULL_IN_LOCK },
		{ "/threading.py", "__enter__", LULL_IN_LOCK },
		{ "/multiprocessing/queues.py", "get", LULL_IN_QUEUE },
		{ "/multiprocessing/connection.py", "", LULL_IN_QUEUE },
		{ "/concurrent/futures/", "result", LULL_IN_QUEUE },
		{ "/concurrent/futures/thread.py", "_worker", LULL_IN_QUEUE },
		{ "/selectors.py", "select", LULL_IN_EVENTS },
		{ "/asyncio/base_events.py", "_run_once", LULL_IN_EVENTS },
		{ "/socketserver.py", "", LULL_IN_DEMAND },
		{ "/socket.py", "accept", LULL_IN_DEMAND },
		{ "/socket.py", "readinto", LULL_IN_SOCKET },
		{ "/ssl.py", "read", LULL_IN_SOCKET },
		{ "/http/client.py", "", LULL_IN_SOCKET },
		{ "/jax/_src/array.py", "_value", LULL_IN_RESULT },
		{ "/jax/_src/array.py", "_single_device_array", LULL_IN_RESULT },
		{ "/jax/_src/array.py", "__float__", LULL_IN_RESULT },
		{ "/jax/_src/array.py", "__int__", LULL_IN_RESULT },
		{ "/jax/_src/array.py", "__bool__", LULL_IN_RESULT },
		{ "/jax/_src/array.py", "block_until_ready", LULL_IN_RESULT },
		{ "/jax/_src/api.py", "block_until_ready", LULL_IN_RESULT },
		{ "/jax/_src/api.py", "device_get", LULL_IN_RESULT },
	};

	/* Python 3.11 and later name the class, too: "Queue.get". */
	if (strrchr(function, '.'))
		function = strrchr(function, '.') + 1;
	for (size_t i = 0; i < LULL_COUNT_OF(waits); i++) {
		if (strstr(file, waits[i].file) &&
		    !strncmp(function, waits[i].function, strlen(waits[i].function)))
			return waits[i].bits;
	}
	return 0;
}

/* Past the name of an operator, whose signs are no brackets. */
static const char *skip_operator(const char *at)
{
	/* Those with three signs, then with two: ">" may have "<" of its types right after it. */
	static const char *const signs[] = {
		"<=>", "<<=", ">>=", "->*", "<<", ">>", "<=", ">=", "==", "!=", "&&", "||", "++",
		"--",  "+=",  "-=",  "*=",  "/=", "%=", "&=", "|=", "^=", "->", "()", "[]", NULL
	};
	size_t i = 0;

	at += strlen("operator");
	while (signs[i] && strncmp(at, signs[i], strlen(signs[i])) != 0)
		i++;
	at += signs[i] ? strlen(signs[i]) : strspn(at, "<>=-!+*/%&|^~,") != 0;
	/* "operator< <int>", "operator bool" */
	return at + (*at == ' ');
}

/* Past "decltype (f(1))", which stands for the type of the result. */
static const char *skip_decltype(const char *at)
{
	int depth = 0;

	for (at += strlen("decltype"); *at; at++) {
		depth += *at == '(';
		depth -= *at == ')';
		if (!depth && *at != ' ')
			return at + 1;
	}
	return at;
}

const char *lull_doing_name(const char *function, size_t *len)
{
	static const char anonymous[] = "(anonymous namespace)";
	const char *name = function, *at = function;
	int depth = 0;

	while (*at) {
		if (!strncmp(at, anonymous, sizeof(anonymous) - 1)) {
			at += sizeof(anonymous) - 1;
			continue;
		}
		if (!strncmp(at, "operator", 8) && (at == function || strchr(" :", at[-1]))) {
			at = skip_operator(at);
			continue;
		}
		if (!depth && !strncmp(at, "decltype", 8)) {
			at = skip_decltype(at);
			continue;
		}
		if (!depth && *at == '(')
			break;
		depth += *at == '<' || *at == '{';
		depth -= *at == '>' || *at == '}';
		if (!depth && *at == ' ')
			name = at + 1;
		at++;
	}
	*len = (size_t)(at - name);
	return name;
}

/* Libraries of which much is compiled into the program: what they are called for is further out. */
static const char *const compiled_in[] = {
	"std::",   "__gnu_cxx::", "__cxxabiv1::", "core::", "alloc::", "hashbrown::", "Eigen::",
	"boost::", "thrust::",	  "cub::",	  "tbb::",  "fmt::",   "absl::",      NULL
};

/* Whether a type or trait of Rust is of such a library, or names none, as "&mut [T]" and "u8". */
static bool is_of_library(const char *type)
{
	static const char *const words[] = { "mut ", "const ", "dyn ", NULL };
	size_t len;

	for (;;) {
		type += strspn(type, "<&*[( ");
		if (!begins_any(type, words))
			break;
		type += strcspn(type, " ");
	}
	for (len = 0; isalnum((unsigned char)type[len]) || type[len] == '_'; len++)
		;
	return strncmp(type + len, "::", 2) != 0 || begins_any(type, compiled_in);
}

/* "<Type as Trait>::function", "<Type>::function": the program's own if one of them is. */
static bool is_impl_of_library(const char *name)
{
	int depth = 0;

	if (!is_of_library(name + 1))
		return false;
	for (const char *at = name; *at; at++) {
		depth += *at == '<';
		/* That of "->" closes nothing. */
		depth -= *at == '>' && at[-1] != '-';
		if (depth == 1 && !strncmp(at, " as ", 4))
			return is_of_library(at + 4);
		if (!depth)
			return true;
	}
	return true;
}

static bool is_of_headers(const char *function)
{
	size_t len;
	const char *name = lull_doing_name(function, &len);

	return *name == '<' ? is_impl_of_library(name) : begins_any(name, compiled_in);
}

/* Libraries that come with the system, with Python, CUDA or a framework, and the kernel. */
static bool is_library(const char *module)
{
	static const char *const folders[] = { "/lib/",		  "/lib64/", "/usr/lib",
					       "/usr/local/cuda", "[",	     NULL };
	static const char *const parts[] = {
		"/site-packages/", "/dist-packages/", "/libpython", "/libcu",
		"/libstdc++",	   "/liblull-agent",  "/libtorch",  "/libnv",
		"/bin/python",	   "/lib-dynload/",   NULL
	};

	return begins_any(module, folders) || has_any(module, parts);
}

bool lull_doing_is_header(const char *file)
{
	static const char *const headers[] = {
		"/usr/include/", "/usr/lib/gcc", "/usr/local/cuda", "../sysdeps",
		"/include/c++/", "../csu",	 "../nptl",	    "./nptl",
		"/rustc/",	 "/rust/deps/",	 "/rustlib/",	    "/registry/src/",
		"library/core/", "library/std/", "library/alloc/",  NULL
	};

	return has_any(file, headers);
}

bool lull_doing_is_own(const char *function, const char *file, const char *module)
{
	/* nvcc puts the CUDA runtime into the program: its functions are libcudart_static_... */
	static const char *const runtime[] = {
		"Py",	     "_Py",  "cu",	 "__",		 "pthread",	 "futex",
		"libtorch",  "at::", "c10::",	 "torch::",	 "clone",	 "lull_",
		"_start",    "gil_", "take_gil", "start_thread", "operator new", "operator delete",
		"libcudart", NULL
	};

	if (!*function || begins_any(function, runtime) || is_of_headers(function) ||
	    is_library(module))
		return false;
	return *module || (*file && !lull_doing_is_header(file));
}
