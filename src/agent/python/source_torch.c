/*
 * torch: steps and phases of PyTorch programs, as the package in python/ sees them.
 *
 * To Python the agent is an extension module, `_lull`: the interpreter finds PyInit__lull here, by
 * the path in LULL_AGENT. No header of Python is needed: the few functions that are called are
 * looked up in the process and are of its stable interface, and of its structs only that of a
 * method and that of a module are used, which have been the same since 3.5 (in builds with a lock;
 * the package does not load us into others).
 *
 * Each function is called with the lock held, so nothing here runs twice at the same time.
 */
#include "agent/core/source.h"

#include "agent/cuda/cuda.h"
#include "agent/core/loaded.h"
#include "agent/core/process.h"
#include "agent/python/python_stack.h"
#include "agent/core/range.h"
#include "agent/core/real.h"
#include "agent/core/schedule.h"
#include "agent/core/sys.h"
#include "agent/python/python_module.h"
#include "agent/python/torch.h"

struct lull_py lull_py;

#define NAME_BYTES 36u

/* Without pointers, which each start would have to relocate. */
#define AS_ROW(type, name, params) { #name, offsetof(struct lull_py, name) },
static const struct {
	char name[NAME_BYTES];
	u32 off;
} symbols[] = { PYTHON_FUNCTIONS(AS_ROW){ "_Py_NoneStruct", offsetof(struct lull_py, none) } };

#define CHECK(type, name, params) \
	_Static_assert(sizeof(#name) <= NAME_BYTES, "the name fits, with its end");
PYTHON_FUNCTIONS(CHECK)
#undef CHECK

static void **slot_of(u32 ix)
{
	return (void **)((u8 *)&lull_py + symbols[ix].off);
}

static LULL_EARLY struct {
	u64 gc_counter; /* when the collection began that runs */
	u32 told;	/* LULL_TORCH_*, for images of forked children */
} state;

static int visit(struct dl_phdr_info *file, size_t size, void *unused)
{
	(void)size;
	(void)unused;
	if (!lull_loaded_symbol(file, "PyModule_Create2"))
		return 0;
	for (u32 i = 0; i < LULL_COUNT_OF(symbols); i++) {
		const ElfW(Sym) *symbol = lull_loaded_symbol(file, symbols[i].name);

		*slot_of(i) = symbol ? (void *)(file->dlpi_addr + symbol->st_value) : NULL;
	}
	return 1;
}

/* A garbage collection shorter than this is not worth a range. */
#define GC_MIN_US 100

static const struct lull_range_style said = { .api = LULL_API_ANNOTATE };
static struct lull_range_style hooked = { .domain_ix = LULL_DOMAIN_TORCH, .api = LULL_API_TORCH };

/* ---- phases ---- */

static py_object *enter(py_object *self, py_object *name)
{
	struct lull_thread *t = lull_recording();

	(void)self;
	if (t) {
		struct lull_text text = lull_py_text(name);

		lull_range_push(t, LULL_DOMAIN_TORCH, lull_label(t, &text, &hooked), LULL_NO_TAIL);
	}
	return lull_py_none();
}

static py_object *leave(py_object *self, py_object *unused)
{
	struct lull_thread *t = lull_recording();

	(void)self;
	(void)unused;
	if (t)
		lull_range_pop(t, LULL_DOMAIN_TORCH, LULL_NO_TAIL);
	return lull_py_none();
}

/* hooked_mark(text): something that the hooks saw. */
static py_object *hooked_mark(py_object *self, py_object *name)
{
	struct lull_thread *t = lull_recording();

	(void)self;
	if (t) {
		struct lull_text text = lull_py_text(name);

		lull_range_mark(t, LULL_DOMAIN_TORCH, lull_label(t, &text, &hooked), LULL_NO_TAIL);
	}
	return lull_py_none();
}

/* gc(phase, info), as Python's gc.callbacks are called: a range if it took long. */
static py_object *gc(py_object *self, py_object *const *args, i64 n_args)
{
	static const char name[] = "gc.collect";
	struct lull_text text = lull_text(name, sizeof(name) - 1), phase;
	struct lull_thread *t = lull_recording();
	struct lull_wire_range *push;
	struct lull_event *pop;
	u64 label, now;

	(void)self;
	if (!t || n_args < 1)
		return lull_py_none();
	now = lull_time();
	phase = lull_py_text(args[0]);
	if (phase.len == 5) { /* "start" */
		state.gc_counter = now;
		return lull_py_none();
	}
	if (!state.gc_counter ||
	    (now - state.gc_counter) < lull_agent.control->tick_hz / 1000000 * GC_MIN_US)
		return lull_py_none();
	label = lull_label(t, &text, &hooked);
	push = label ? lull_reserve_at(t, LULL_EVENT_push, sizeof(*push), state.gc_counter) : NULL;
	state.gc_counter = 0;
	if (!push)
		return lull_py_none();
	push->head.a = t->torch.level | LULL_DOMAIN_TORCH << 16;
	push->label = label;
	lull_commit(t, sizeof(*push));
	pop = lull_reserve_at(t, LULL_EVENT_pop, sizeof(*pop), now);
	if (pop) {
		pop->a = t->torch.level | LULL_DOMAIN_TORCH << 16;
		lull_commit(t, sizeof(*pop));
	}
	return lull_py_none();
}

/* ---- what the program says itself ---- */

static py_object *push(py_object *self, py_object *name)
{
	struct lull_thread *t = lull_recording();
	struct lull_text text;

	(void)self;
	if (t) {
		text = lull_py_text(name);
		lull_range_push(t, 0, lull_label(t, &text, &said), LULL_NO_TAIL);
	} else if (lull_capture_is_watching()) {
		text = lull_py_text(name);
		t = lull_capture_begin(&text, &said.domain);
		if (t)
			lull_capture_hold_push(
				t, 0,
				lull_range_push(t, 0, lull_label(t, &text, &said), LULL_NO_TAIL));
	}
	return lull_py_none();
}

static py_object *pop(py_object *self, py_object *unused)
{
	struct lull_thread *t = lull_recording();

	(void)self;
	(void)unused;
	if (t)
		lull_range_pop(t, 0, LULL_NO_TAIL);
	return lull_py_none();
}

static py_object *mark(py_object *self, py_object *name)
{
	struct lull_thread *t = lull_recording();

	(void)self;
	if (t) {
		struct lull_text text = lull_py_text(name);

		lull_range_mark(t, 0, lull_label(t, &text, &said), LULL_NO_TAIL);
	}
	return lull_py_none();
}

/* step(number): said by the program. */
static py_object *step(py_object *self, py_object *number)
{
	(void)self;
	lull_schedule_step(lull_py_number(number), 0);
	return lull_py_none();
}

/* hooked_step(number): found by hooks. */
static py_object *hooked_step(py_object *self, py_object *number)
{
	(void)self;
	lull_schedule_step(lull_py_number(number), LULL_STEP_HOOKED);
	return lull_py_none();
}

/* no_step(): the step that was seen to begin is none. */
static py_object *no_step(py_object *self, py_object *unused)
{
	(void)self;
	(void)unused;
	lull_schedule_step(0, LULL_STEP_HOOKED | LULL_STEP_END | LULL_STEP_NONE);
	return lull_py_none();
}

static py_object *step_end(py_object *self, py_object *unused)
{
	(void)self;
	(void)unused;
	lull_schedule_step(0, LULL_STEP_END);
	return lull_py_none();
}

/* schedule(skip_first, wait, warmup, active, repeat): 1 if somebody records by it. */
static py_object *schedule(py_object *self, py_object *const *args, i64 n_args)
{
	struct lull_schedule s;

	(void)self;
	if (n_args < 5)
		return lull_py.PyLong_FromUnsignedLongLong(0);
	s.skip_first = (u32)lull_py_number(args[0]);
	s.wait = (u32)lull_py_number(args[1]);
	s.warmup = (u32)lull_py_number(args[2]);
	s.active = (u32)lull_py_number(args[3]);
	s.repeat = (u32)lull_py_number(args[4]);
	return lull_py.PyLong_FromUnsignedLongLong(lull_schedule_set(&s));
}

/* start() and stop() of a recording that the program controls. */
static py_object *start_recording(py_object *self, py_object *unused)
{
	(void)self;
	(void)unused;
	lull_schedule_program(true);
	return lull_py_none();
}

static py_object *stop_recording(py_object *self, py_object *unused)
{
	(void)self;
	(void)unused;
	lull_schedule_program(false);
	return lull_py_none();
}

/* ---- the rest ---- */

static py_object *is_recording(py_object *self, py_object *unused)
{
	(void)self;
	(void)unused;
	lull_sources_passed();
	return lull_py.PyLong_FromUnsignedLongLong(lull_has_recording());
}

static py_object *sources(py_object *self, py_object *unused)
{
	(void)self;
	(void)unused;
	return lull_py.PyLong_FromUnsignedLongLong(lull_agent.control->sources);
}

/*
 * thread_name(text): what this thread does. Newer versions of PyTorch name their threads, too, and
 * later than this, but all workers alike.
 */
static py_object *thread_name(py_object *self, py_object *name)
{
	struct lull_text text = lull_py_text(name);

	(void)self;
	if (text.len)
		lull_process_name(LULL_EVENT_thread_label, 0, text.bytes, text.len);
	return lull_py_none();
}

static void show(void)
{
	if (lull_agent.image)
		atomic_store_explicit(&lull_agent.image->torch, state.told, memory_order_relaxed);
}

LULL_AT_START static void start(void)
{
	if (lull_agent.is_late)
		lull_torch_enter();
	else
		show();
}

/* tell(bits): how far the hooks came, LULL_TORCH_*. */
static py_object *tell(py_object *self, py_object *bits)
{
	(void)self;
	state.told |= (u32)lull_py_number(bits);
	show();
	return lull_py_none();
}

/* trouble(word): this could not be hooked. */
static py_object *trouble(py_object *self, py_object *name)
{
	struct lull_text text = lull_py_text(name);
	struct lull_image *image = lull_agent.image;
	size_t used, room;

	(void)self;
	if (!image)
		return lull_py_none();
	lull_issue(LULL_ISSUE_torch_partly, 1);
	used = strnlen(image->torch_detail, sizeof(image->torch_detail));
	room = sizeof(image->torch_detail) - used;
	if (text.len + 2 < room) {
		if (used)
			image->torch_detail[used++] = ' ';
		memcpy(image->torch_detail + used, text.bytes, text.len);
	}
	return lull_py_none();
}

static void read_probe(struct lull_torch_probe *probe, py_object *const *args)
{
	u64 *to = &probe->pair[0];

	for (u32 i = 0; i < sizeof(*probe) / sizeof(u64); i++)
		to[i] = lull_py_number(args[i]);
}

/*
 * ops_watch(8 addresses of tensors, a sequence number), ops_learn(the same): 1 if it is possible.
 */
static py_object *ops_watch(py_object *self, py_object *const *args, i64 n_args)
{
	struct lull_torch_probe probe;

	(void)self;
	if (n_args != sizeof(probe) / sizeof(u64))
		return lull_py.PyLong_FromUnsignedLongLong(0);
	read_probe(&probe, args);
	return lull_py.PyLong_FromUnsignedLongLong(lull_torch_watch(&probe));
}

static py_object *ops_learn(py_object *self, py_object *const *args, i64 n_args)
{
	struct lull_torch_probe probe;
	bool is_known;

	(void)self;
	if (n_args != sizeof(probe) / sizeof(u64))
		return lull_py.PyLong_FromUnsignedLongLong(0);
	read_probe(&probe, args);
	is_known = lull_torch_learn(&probe);
	if (!is_known)
		lull_issue(LULL_ISSUE_torch_no_ops, 1);
	return lull_py.PyLong_FromUnsignedLongLong(is_known);
}

/* ops_follow(): 0 if operators must be learned first. */
static py_object *ops_follow(py_object *self, py_object *unused)
{
	(void)self;
	(void)unused;
	return lull_py.PyLong_FromUnsignedLongLong(lull_torch_follow());
}

/* stacks_learn(version, code, line, code of the caller): 1 if lines can be recorded. */
static py_object *stacks_learn(py_object *self, py_object *const *args, i64 n_args)
{
	(void)self;
	return lull_py.PyLong_FromUnsignedLongLong(
		n_args == 4 &&
		lull_python_stack_learn((u32)lull_py_number(args[0]), lull_py_number(args[1]),
					(u32)lull_py_number(args[2]), lull_py_number(args[3])));
}

static py_object *ops_on(py_object *self, py_object *is_on)
{
	(void)self;
	lull_torch_ops(lull_py_number(is_on) != 0);
	return lull_py_none();
}

static const struct py_method methods[] = {
	{ "enter", (void *)enter, WITH_ONE, "a phase begins" },
	{ "leave", (void *)leave, WITHOUT_ARGS, "the innermost phase ends" },
	{ "hooked_mark", (void *)hooked_mark, WITH_ONE, "the hooks saw something" },
	{ "push", (void *)push, WITH_ONE, "a range begins" },
	{ "pop", (void *)pop, WITHOUT_ARGS, "the innermost range ends" },
	{ "mark", (void *)mark, WITH_ONE, "something happened" },
	{ "step", (void *)step, WITH_ONE, "a step begins" },
	{ "hooked_step", (void *)hooked_step, WITH_ONE, "a step was seen to begin" },
	{ "no_step", (void *)no_step, WITHOUT_ARGS, "that was none" },
	{ "step_end", (void *)step_end, WITHOUT_ARGS, "the last step ends" },
	{ "schedule", (void *)schedule, WITH_ARGS, "which steps are recorded" },
	{ "start", (void *)start_recording, WITHOUT_ARGS, "begin to record" },
	{ "stop", (void *)stop_recording, WITHOUT_ARGS, "end the recording" },
	{ "is_recording", (void *)is_recording, WITHOUT_ARGS, "1 while it is recorded" },
	{ "sources", (void *)sources, WITHOUT_ARGS, "what is to be recorded" },
	{ "thread_name", (void *)thread_name, WITH_ONE, "name this thread" },
	{ "gc", (void *)gc, WITH_ARGS, "for gc.callbacks" },
	{ "tell", (void *)tell, WITH_ONE, "how far the hooks came" },
	{ "trouble", (void *)trouble, WITH_ONE, "this could not be hooked" },
	{ "ops_watch", (void *)ops_watch, WITH_ARGS, "look at the next operators" },
	{ "ops_learn", (void *)ops_learn, WITH_ARGS, "1 if operators can be recorded" },
	{ "ops_follow", (void *)ops_follow, WITHOUT_ARGS, "record operators if it is recorded" },
	{ "stacks_learn", (void *)stacks_learn, WITH_ARGS, "1 if lines can be recorded" },
	{ "ops_on", (void *)ops_on, WITH_ONE, "record operators, or not" },
	{ "request_now", (void *)lull_py_request_now, WITHOUT_ARGS, "when a request arrives" },
	{ "request_arrival", (void *)lull_py_request_arrival, WITH_ONE, "when data came" },
	{ "request_came", (void *)lull_py_request_came, WITH_ONE, "when data came to a loop" },
	{ "request_took", (void *)lull_py_request_took, WITH_ONE, "when its data came" },
	{ "request_waiting", (void *)lull_py_request_waiting, WITH_ARGS, "the same, if it waits" },
	{ "request", (void *)lull_py_request, WITH_ARGS, "a request arrived; its id" },
	{ "request_mark", (void *)lull_py_request_mark, WITH_ARGS, "something became of it" },
	{ "request_end", (void *)lull_py_request_end, WITH_ARGS, "it ends on its own thread" },
	{ "request_work", (void *)lull_py_request_work, WITH_ARGS, "what this thread works for" },
	{ "request_trouble", (void *)lull_py_request_trouble, WITHOUT_ARGS, "not hooked" },
	{ "request_turns", (void *)lull_py_request_turns, WITH_ARGS, "what requests are" },
	{ "request_work_for", (void *)lull_py_request_work_for, WITH_ONE, "turn to it" },
	{ "request_told", (void *)lull_py_request_told, WITHOUT_ARGS, "what it works for" },
	{ "request_set_told", (void *)lull_py_request_set_told, WITH_ONE, "the same" },
	{ "request_token", (void *)lull_py_request_token, WITH_ONE, "a token is ready" },
	{ "request_handles", (void *)lull_py_request_handles, WITH_ONE, "for callbacks" },
	{ "request_tag", (void *)lull_py_request_tag, WITH_ARGS, "put into a queue" },
	{ "request_untag", (void *)lull_py_request_untag, WITH_ARGS, "taken from a queue" },
	{ NULL, NULL, 0, NULL },
};

py_object *PyInit__lull(void) LULL_EXPORT;

py_object *PyInit__lull(void)
{
	static struct py_module module = {
		.n_references = 1,
		.name = "_lull",
		.doc = "the agent of the lull profiler, as Python sees it",
		.size = -1,
	};
	py_object *made;

	lull_loaded_walk(visit, NULL);
	for (u32 i = 0; i < LULL_COUNT_OF(symbols); i++)
		if (!*slot_of(i))
			return NULL;
	hooked.domain = lull_text("torch", 5);
	made = lull_py.PyModule_Create2(&module, PYTHON_API);
	/* Not in the definition: faulthandler would list us where the program crashes. */
	if (made && lull_py.PyModule_AddFunctions(made, methods)) {
		lull_py.Py_DecRef(made);
		return NULL;
	}
	return made;
}

static void forget(struct lull_thread *t)
{
	t->torch.level = 0;
	t->torch.n_open = 0;
}

/* Not only from the next step on. */
static void began(void)
{
	if (lull_agent.control->sources & LULL_SOURCE_TORCH_OPS)
		lull_torch_follow();
}

const struct lull_source lull_source_torch = {
	.start = start,
	.renewed = forget,
	.began = began,
	.idle = lull_torch_nudge,
	.withdraw = lull_torch_withdraw,
};
