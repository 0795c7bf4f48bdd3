#include "cause/location.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "model/callpath.h"
#include "model/thread/doing.h"
#include "model/thread/own_frame.h"
#include "model/words.h"

#define MAX_FRAMES 128

/* Native names say less: PyEval_SaveThread saves nothing. */
static u32 native_bits(const char *function)
{
	u32 bits = lull_name_bits(function) & LULL_IN_LOADER;

	if (strcasestr(function, "fsync") || strcasestr(function, "checkpoint") ||
	    strcasestr(function, "fwrite"))
		bits |= LULL_IN_STORAGE;
	return bits;
}

/* PyTorch's own work around operators: autograd's nodes, tensors that die, bindings of Python. */
static bool is_glue(const char *function)
{
	static const char *const parts[] = { "torch::autograd::", "torch::detail::",
					     "c10::TensorImpl", "THPVariable", NULL };

	for (size_t i = 0; parts[i]; i++) {
		if (!strncmp(function, parts[i], strlen(parts[i])))
			return true;
	}
	return false;
}

/* Functions that anybody calls; what they are called for is further out. */
static bool is_small(const char *function)
{
	static const char *const parts[] = {
		"Py",	 "_Py",	   "__",   "pthread",	   "std::",
		"gil_",	 "malloc", "free", "operator new", "operator delete",
		"cfree", "_int_",  NULL
	};

	for (size_t i = 0; parts[i]; i++) {
		if (!strncmp(function, parts[i], strlen(parts[i])))
			return true;
	}
	return !*function;
}

/* ---- whose function a frame is ---- */

/* Whether a name among the inlined ones is a function that the program's author knows. */
static bool is_own_inlined(const char *name)
{
	static const char *const made[] = { "operator", "_FUN", "{lambda", "<lambda", NULL };
	const char *types = strchr(name, '<'), *scope = strstr(name, "::");

	for (size_t i = 0; made[i]; i++) {
		if (!strncmp(name, made[i], strlen(made[i])))
			return false;
	}
	/* C++ templates of the standard library lose their scope here: "sort<...>". */
	return (!types || types == name || (scope && scope < types)) &&
	       lull_doing_is_own(name, "-", "");
}

/* A name without what it returns and takes, to be freed. */
static char *without_types(const char *function)
{
	size_t len;
	const char *name = lull_doing_name(function, &len);

	return lull_strndup(name, len);
}

/*
 * The innermost inlined function of the program itself, or NULL; the names are between semicolons,
 * outermost first. File and line are those of the last, so if it is a header's the last is, too.
 */
static char *own_inlined(const char *names, bool is_header)
{
	char *all = lull_strdup(names), *own = NULL, *rest = all;

	for (char *name = strsep(&rest, ";"); name; name = strsep(&rest, ";")) {
		if ((is_header && !rest) || !is_own_inlined(name))
			continue;
		free(own);
		own = without_types(name);
	}
	free(all);
	return own;
}

/* How long a name is without what the compiler adds to parts and copies of a function. */
static size_t len_written(const char *name, size_t len)
{
	static const char *const made[] = { "._omp_fn.", ".part.", ".constprop.",
					    ".isra.",	 ".cold",  NULL };

	for (size_t i = 0; made[i]; i++) {
		const char *at = strstr(name, made[i]);

		if (at && at > name && (size_t)(at - name) < len)
			len = (size_t)(at - name);
	}
	return len;
}

/* The name as it was written, without arguments, to be freed; NULL if it is that already. */
static char *plain_name(const struct lull_frame_row *frame, const char *function)
{
	size_t len;
	const char *name = lull_doing_name(function, &len);

	if (frame->kind != LULL_FRAME_NATIVE)
		return NULL;
	len = len_written(name, len);
	return len && name[len] ? lull_strndup(name, len) : NULL;
}

/* The function around a lambda that a library calls: "State<main::{lambda()#1}>::run" has main. */
static char *lambda_owner(const char *function)
{
	const char *end = strstr(function, "::{lambda"), *begin = end;
	int depth = 0;

	for (; begin && begin > function; begin--) {
		depth += strchr(")>", begin[-1]) != NULL;
		depth -= strchr("(<", begin[-1]) != NULL;
		if (depth < 0 || (!depth && strchr(" ,", begin[-1])))
			break;
	}
	if (!begin || begin == end)
		return NULL;
	return lull_strndup(begin, strcspn(begin, "(<") < (size_t)(end - begin)
					   ? strcspn(begin, "(<")
					   : (size_t)(end - begin));
}

/* The file and functions of a frame; the file is that of the innermost one. */
struct source {
	const char *function, *inlined, *calls, *file, *module;
};

static struct source source_of(struct lull_reader *r, const struct lull_frame_row *frame)
{
	return (struct source){
		.function = lull_reader_string(r, frame->function, NULL),
		.inlined = lull_reader_string(r, frame->inlined, NULL),
		.calls = lull_reader_string(r, frame->calls, NULL),
		.file = lull_reader_string(r, frame->file, NULL),
		.module = lull_frame_module(r, frame),
	};
}

/*
 * A number for the outermost namespace or crate of a function, or of the type "<Type as Trait>"
 * that it is of; 0 if there is none.
 */
static u64 scope_of(const char *function)
{
	size_t len;
	const char *name = lull_doing_name(function, &len), *stop = name + len, *end;

	name += strspn(name, "<&*[(");
	end = strstr(name, "::");
	if (!end || end >= stop || memchr(name, '<', (size_t)(end - name)))
		return 0;
	return lull_hash(name, (size_t)(end - name)) | 1;
}

#define IN_HEADER 1u
#define ELSEWHERE 2u

/*
 * Namespaces and crates all of whose functions lie in files of libraries, as far as the frames of
 * this report tell: much of them is compiled into the program.
 */
static void find_libraries(struct lull_map *scopes, struct lull_reader *r)
{
	size_t n;
	const struct lull_frame_row *frames = lull_reader_dim(r, LULL_TABLE_frame, &n);

	lull_map_init(scopes);
	for (size_t i = 0; i < n; i++) {
		struct source at = source_of(r, &frames[i]);
		u64 scope = frames[i].kind == LULL_FRAME_NATIVE ? scope_of(at.function) : 0;

		/*
		 * Where something was inlined, the file is not that of the function; a trait may be
		 * another's than the type.
		 */
		if (scope && *at.file && !*at.inlined && *at.function != '<')
			*lull_map_add(scopes, scope, NULL) |=
				lull_doing_is_header(at.file) ? IN_HEADER : ELSEWHERE;
	}
}

static bool is_library(const struct lull_map *scopes, const char *function)
{
	u64 scope = scope_of(function);
	const u32 *where = scope ? lull_map_find(scopes, scope) : NULL;

	return where && *where == IN_HEADER;
}

/*
 * The program's function that a library calls, which is the last that was inlined there; the names
 * before it may be the library's, without their scope.
 */
static char *called_back(struct source at)
{
	const char *last = strrchr(at.inlined, ';');

	last = last ? last + 1 : at.inlined;
	return is_own_inlined(last) ? without_types(last) : lambda_owner(at.function);
}

/*
 * Where the program calls the library's function that was inlined there: the innermost of the calls
 * (outermost first, file:line between semicolons) that is in no header. To be freed, or NULL.
 */
static char *own_call(const char *calls, u32 *line)
{
	char *all = lull_strdup(calls), *rest = all, *own = NULL;

	for (char *call = strsep(&rest, ";"); call; call = strsep(&rest, ";")) {
		char *colon = strrchr(call, ':');

		if (!colon || colon == call || lull_doing_is_header(call))
			continue;
		*colon = '\0';
		free(own);
		own = lull_strdup(call);
		*line = (u32)strtoul(colon + 1, NULL, 10);
	}
	free(all);
	return own;
}

static struct lull_native_frame look_at(const struct lull_frame_row *frame, struct source at,
					const struct lull_map *scopes)
{
	bool is_header = !*at.file || lull_doing_is_header(at.file);
	struct lull_native_frame own = { .is_own = lull_doing_is_own(at.function, at.file,
								     at.module) };
	bool is_compiled_in = !own.is_own || is_library(scopes, at.function);
	const char *file;

	own.is_own = !is_compiled_in;
	own.file = is_header ? own_call(at.calls, &own.line) : NULL;
	file = own.file ? own.file : at.file;
	/* A library's function that calls the program's, which was inlined: a thread's lambda. */
	if (is_compiled_in && *at.inlined && (!is_header || own.file) &&
	    frame->kind == LULL_FRAME_NATIVE)
		own.is_own = lull_doing_is_own("inlined", file, at.module);
	if (is_compiled_in && own.is_own && !is_header)
		own.name = called_back(at);
	else if (*at.inlined)
		own.name = own_inlined(at.inlined, is_header);
	if (!own.name && is_compiled_in && own.is_own)
		own.name = lambda_owner(at.function);
	if (!own.name)
		own.name = plain_name(frame, at.function);
	return own;
}

struct lull_native_frame *lull_location_frames(struct lull_reader *r)
{
	size_t n;
	const struct lull_frame_row *frames = lull_reader_dim(r, LULL_TABLE_frame, &n);
	struct lull_native_frame *own = lull_alloc(n + 1, sizeof(*own));
	struct lull_map scopes;

	find_libraries(&scopes, r);
	for (size_t i = 0; i < n; i++)
		own[i] = look_at(&frames[i], source_of(r, &frames[i]), &scopes);
	lull_map_release(&scopes);
	return own;
}

void lull_location_free_frames(struct lull_native_frame *frames, struct lull_reader *r)
{
	size_t n;

	(void)lull_reader_dim(r, LULL_TABLE_frame, &n);
	for (size_t i = 0; frames && i < n; i++) {
		free(frames[i].name);
		free(frames[i].file);
	}
	free(frames);
}

/* ---- what a stack says ---- */

/* A walk over the frames of a stack, from the inside. */
struct walk {
	const struct lull_stack_row *stacks;
	const struct lull_frame_row *frames;
	u32 stack; /* the next one */
	u32 depth;
};

static struct walk walk_from(struct lull_reader *r, u32 stack)
{
	size_t n;

	return (struct walk){ .stacks = lull_reader_dim(r, LULL_TABLE_stack, &n),
			      .frames = lull_reader_dim(r, LULL_TABLE_frame, &n),
			      .stack = stack };
}

/* The number of the next frame, 0 after the last. */
static u32 next_frame(struct walk *w)
{
	u32 frame = 0;

	for (; w->stack && !frame && w->depth < MAX_FRAMES; w->depth++) {
		frame = w->stacks[w->stack - 1].frame;
		w->stack = w->stacks[w->stack - 1].parent;
	}
	return frame;
}

/* How far a stack has been looked at, from the inside. */
struct look {
	struct lull_reader *reader;
	bool has_python; /* a frame of Python was met */
	bool has_user;	 /* one outside of the Linux kernel was met */
	bool has_native; /* one with a meaning was met */
	bool has_media;	 /* one of a library that reads and writes images or sound */
	bool is_saving;	 /* that library was asked to write */
	bool is_reading; /* one that stores tensors was asked to read */
};

/*
 * Whether a function of a library for images or sound writes; _getencoder() of PIL makes an array.
 */
static bool is_saving(const char *function)
{
	return lull_name_bits(function) == LULL_IN_STORAGE ||
	       (strcasestr(function, "encode") && !strcasestr(function, "getencoder"));
}

static u32 python_bits(struct look *l, const struct lull_frame_row *frame)
{
	const char *file = lull_reader_string(l->reader, frame->file, NULL);
	const char *function = lull_reader_string(l->reader, frame->function, NULL);
	u32 bits = lull_file_bits(file);

	if (lull_file_is_media(file)) {
		l->has_media = true;
		l->is_saving |= is_saving(function);
		bits &= ~(u32)LULL_IN_LOADER;
	}
	l->is_reading |= (bits & LULL_IN_STORAGE) && lull_name_is_reading(function);
	bits |= lull_name_bits(function) & (LULL_IN_LOADER | LULL_IN_STORAGE);
	/* What the framework calls is the program's; what it does itself is its. */
	if (l->has_python)
		return bits & (LULL_IN_LOADER | LULL_IN_STORAGE);
	l->has_python = true;
	return bits | lull_doing_python(function, file);
}

static u32 frame_bits(struct look *l, const struct lull_frame_row *frame)
{
	const char *function = lull_reader_string(l->reader, frame->function, NULL);
	const char *module = lull_frame_module(l->reader, frame);
	u32 doing = lull_doing_native(function, module), bits = 0;

	if (frame->kind == LULL_FRAME_KERNEL)
		return doing;
	/* Whoever fills memory is innermost; its callers do something with it. */
	if (l->has_user)
		doing &= ~(u32)LULL_IN_TOUCH;
	else if (lull_doing_is_tensors(function, module))
		doing |= LULL_IN_CPU_OP;
	l->has_user = true;
	bits = native_bits(function) | doing;
	/* The innermost one with a meaning says whose work it is. */
	if (!l->has_native && !is_small(function)) {
		bits |= is_glue(function) ? LULL_IN_FRAMEWORK : 0;
		l->has_native = true;
	}
	return bits;
}

u32 lull_location_stack_bits(struct lull_reader *r, u32 stack)
{
	struct walk w = walk_from(r, stack);
	struct look l = { .reader = r };
	u32 bits = 0, frame;

	while ((frame = next_frame(&w))) {
		const struct lull_frame_row *f = &w.frames[frame - 1];

		bits |= f->kind == LULL_FRAME_PYTHON ? python_bits(&l, f) : frame_bits(&l, f);
	}
	if (l.is_reading)
		bits &= ~(u32)LULL_IN_STORAGE;
	if (l.has_media)
		bits |= l.is_saving ? LULL_IN_STORAGE : LULL_IN_LOADER;
	/* Whoever writes looks up pages and blocks, as whoever reads does. */
	return bits & LULL_IN_WRITE ? bits & ~(u32)LULL_IN_FILE : bits;
}

bool lull_location_is_generated(struct lull_reader *r, u32 stack)
{
	struct walk w = walk_from(r, stack);
	u32 frame = next_frame(&w);

	while (frame && w.frames[frame - 1].kind == LULL_FRAME_KERNEL)
		frame = next_frame(&w);
	return frame && w.frames[frame - 1].kind == LULL_FRAME_JIT &&
	       !*lull_reader_string(r, w.frames[frame - 1].function, NULL);
}

bool lull_location_is_update(struct lull_reader *r, u32 stack)
{
	struct walk w = walk_from(r, stack);
	u32 frame = next_frame(&w);

	while (frame && w.frames[frame - 1].kind != LULL_FRAME_PYTHON)
		frame = next_frame(&w);
	return frame && lull_file_bits(lull_reader_string(r, w.frames[frame - 1].file, NULL)) &
				LULL_IN_OPTIMIZER;
}

/* Whether code that is not Python is the program's own (lull_own_frame_by()). */
static bool is_own_native(const void *of, u32 frame)
{
	const struct lull_subject *s = of;

	return s->frames[frame - 1].is_own;
}

u32 lull_location_frame(const struct lull_subject *s, u32 stack)
{
	return lull_own_frame_by(s->reader, stack, is_own_native, s);
}

/* The function of a frame of the program, and its file, or NULL. */
static const char *function_of(const struct lull_subject *s, u32 frame, const char **file)
{
	size_t n;
	const struct lull_frame_row *frames = lull_reader_dim(s->reader, LULL_TABLE_frame, &n);

	*file = lull_reader_string(s->reader, frames[frame - 1].file, NULL);
	/* A line of a library that was inlined there is none of the program; its call may be. */
	if (!**file || lull_doing_is_header(*file))
		*file = s->frames[frame - 1].file;
	if (s->frames[frame - 1].name)
		return s->frames[frame - 1].name;
	return lull_reader_string(s->reader, frames[frame - 1].function, NULL);
}

u64 lull_location_function(const struct lull_subject *s, u32 stack)
{
	size_t n;
	const struct lull_frame_row *frames = lull_reader_dim(s->reader, LULL_TABLE_frame, &n);
	u32 frame = lull_location_frame(s, stack);
	const char *file = NULL, *function = frame ? function_of(s, frame, &file) : NULL;

	if (!function)
		return 0;
	/* Native ones by name alone: what was inlined into a function has files of its own. */
	return (lull_hash(function, strlen(function)) | 1) ^
	       (frames[frame - 1].kind == LULL_FRAME_PYTHON ? (u64)frames[frame - 1].file << 1 : 0);
}

static void from_stack(struct lull_location *at, const struct lull_subject *s, u32 stack)
{
	size_t n;
	const struct lull_frame_row *frames = lull_reader_dim(s->reader, LULL_TABLE_frame, &n);
	u32 frame = lull_location_frame(s, stack);

	if (!frame)
		return;
	at->function = function_of(s, frame, &at->file);
	at->line = at->file && at->file == s->frames[frame - 1].file ? s->frames[frame - 1].line
								     : frames[frame - 1].line;
}

/* Of what a library does inside, only that it compiles is worth telling. */
static bool is_place(const char *name)
{
	if (lull_name_is_xla_part(name))
		return !strncmp(name, "XlaCompile:", 11);
	return !lull_name_is_step(name) && strncmp(name, "Optimizer.", 10) != 0;
}

struct lull_location lull_location_find(const struct lull_subject *s, u32 event, u32 stack)
{
	struct lull_location at = { .range = NULL };
	const struct lull_host_event *events = s->host.events.at;
	size_t n;
	const struct lull_frame_row *frames = lull_reader_dim(s->reader, LULL_TABLE_frame, &n);
	bool is_own = false;

	for (u32 e = event; e != LULL_NONE; e = events[e].parent) {
		const struct lull_host_event *ev = &events[e];
		const char *name = lull_host_name(ev, s->reader);

		if (ev->kind == LULL_HOST_RANGE && is_place(name)) {
			at.range = at.range ? at.range : name;
			at.outer = name;
		}
		if ((ev->kind == LULL_HOST_OP || ev->kind == LULL_HOST_OSCALL) && !at.what)
			at.what = name;
		if (ev->stack && !at.function) {
			from_stack(&at, s, ev->stack);
			at.is_call = at.function && ev->kind == LULL_HOST_OSCALL;
		}
		if (ev->kind == LULL_HOST_PYCALL && !is_own) {
			const char *file =
				lull_reader_string(s->reader, frames[ev->ref - 1].file, NULL);

			if (at.function && lull_file_is_plumbing(file))
				continue;
			at.function = name;
			at.file = *file ? file : NULL;
			at.line = frames[ev->ref - 1].line;
			is_own = at.file && !lull_file_is_plumbing(file);
		}
	}
	if (!at.function && stack) {
		from_stack(&at, s, stack);
		at.is_call =
			at.function && event != LULL_NONE && events[event].kind == LULL_HOST_OSCALL;
	}
	return at;
}

/* Append the name of a range; of "XlaModule:#hlo_module=jit_step,program_id=7#" what matters. */
static size_t add_range(char *to, size_t cap_bytes, const char *name)
{
	size_t kind = strcspn(name, ":");
	const char *value = strncmp(name + kind, ":#", 2) ? NULL : strchr(name + kind, '=');

	if (!value)
		return (size_t)snprintf(to, cap_bytes, "%s", name);
	value++;
	return (size_t)snprintf(to, cap_bytes, "%.*s %.*s", (int)kind, name,
				(int)strcspn(value, ",#"), value);
}

void lull_location_format(const struct lull_location *at, char *to, size_t cap_bytes)
{
	const char *slash = at->file ? strrchr(at->file, '/') : NULL;
	const char *file = slash ? slash + 1 : at->file;
	size_t len = 0;

	*to = '\0';
	if (file)
		len += (size_t)snprintf(to, cap_bytes, "%s:%u", file, at->line);
	if (at->function && len < cap_bytes)
		len += (size_t)snprintf(to + len, cap_bytes - len, "%s%s", len ? "  " : "",
					at->function);
	if (at->range && len < cap_bytes && !(at->function && !strcmp(at->function, at->range))) {
		len += (size_t)snprintf(to + len, cap_bytes - len, "%s", len ? " in " : "");
		len += len < cap_bytes ? add_range(to + len, cap_bytes - len, at->range) : 0;
	}
	if (at->outer && at->outer != at->range && len < cap_bytes) {
		len += (size_t)snprintf(to + len, cap_bytes - len, "%s", len ? " in " : "");
		len += len < cap_bytes ? add_range(to + len, cap_bytes - len, at->outer) : 0;
	}
	if (at->what && (!at->function || at->is_call) && len < cap_bytes)
		snprintf(to + len, cap_bytes - len, "%s%s", len ? ", " : "", at->what);
}

bool lull_location_has_module(struct lull_reader *r, u32 stack, const char *part)
{
	struct walk w = walk_from(r, stack);
	u32 frame = next_frame(&w);

	while (frame && !strstr(lull_frame_module(r, &w.frames[frame - 1]), part))
		frame = next_frame(&w);
	return frame;
}

/* How CPython's locks wait: the function that PyThread_... and, since 3.13, mutexes go through. */
static bool is_lock(const char *function)
{
	static const char *const names[] = { "PyThread_acquire_lock", "_PyMutex_Lock",
					     "PyMutex_Lock", "_PyRecursiveMutex_Lock", NULL };

	for (size_t i = 0; names[i]; i++) {
		if (!strncmp(function, names[i], strlen(names[i])))
			return true;
	}
	return false;
}

bool lull_location_is_lock(struct lull_reader *r, u32 stack)
{
	struct walk w = walk_from(r, stack);
	bool has_lock = false;
	u32 frame, module = 0;

	while ((frame = next_frame(&w))) {
		const struct lull_frame_row *f = &w.frames[frame - 1];
		const char *function = lull_reader_string(r, f->function, NULL);

		if (f->kind == LULL_FRAME_PYTHON || strstr(function, "EvalFrame"))
			return has_lock;
		module = module ? module : f->module;
		/* A queue or a semaphore in C waits so, too. */
		if (f->module != module || strcasestr(function, "queue"))
			return false;
		has_lock = has_lock || is_lock(function);
	}
	return false;
}

bool lull_location_is_interpreter(struct lull_reader *r, u32 stack)
{
	size_t n_stacks, n_frames;
	const struct lull_stack_row *stacks = lull_reader_dim(r, LULL_TABLE_stack, &n_stacks);
	const struct lull_frame_row *frames = lull_reader_dim(r, LULL_TABLE_frame, &n_frames);
	const char *module;
	u32 frame;

	if (!stack || stack > n_stacks)
		return false;
	frame = stacks[stack - 1].frame;
	if (!frame || frame > n_frames)
		return false;
	module = lull_frame_module(r, &frames[frame - 1]);
	return strstr(module, "/bin/python") || strstr(module, "/libpython");
}
