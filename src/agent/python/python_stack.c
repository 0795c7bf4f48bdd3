#include "agent/python/python_stack.h"

#include <string.h>

#include "agent/core/loaded.h"
#include "agent/python/interpreter.h"
#include "agent/core/sys.h"
#include "base/rune.h"
#include "wire/python_objects.h"

#define NONE	       (-1) /* no such field in this version */
#define MINOR_MIN      9u
#define MINOR_MAX      14u
#define N_SLOTS	       96u  /* of _Py_DebugOffsets that are read, 3.13 and later */
#define NAME_CHARS_MAX 512u /* of a function or file; the rest is cut */

static struct {
	bool is_known;
	u32 minor;
#define FIELD(name, v9, v10, v11, v12, v13, v14, meaning) int name;
#include "wire/python_layouts.def"
#undef FIELD
	void *(*thread_state)(void);		      /* PyGILState_GetThisThreadState() */
	int (*line)(const void *code, int off_bytes); /* PyCode_Addr2Line() */
	int (*is_ending)(void); /* Py_IsFinalizing(), with another name before 3.13; or NULL */
	u64 own_file; /* the str that our own functions have as their file; they are left out */
} py;

struct place {
	u64 code, instr;
};

/* ---- reading ---- */

/* A u64 of our own memory; careful: it may not be there. 0 if it is not. */
static inline u64 load(u64 at, bool is_careful)
{
	u64 value = 0;

	if (!is_careful)
		return *(const u64 *)at;
	return lull_sys_peek(&value, at, sizeof(value)) ? value : 0;
}

/* The innermost frame of this thread, 0 if it runs no Python. */
static inline u64 first_frame(bool is_careful)
{
	u64 state = (u64)py.thread_state(), at;

	at = state ? load(state + (u64)py.tstate_frame, is_careful) : 0;
	return at && py.cframe_current != NONE ? load(at + (u64)py.cframe_current, is_careful) : at;
}

static inline bool is_trampoline(u64 frame, bool is_careful)
{
	return py.frame_owner != NONE &&
	       (u8)load(frame + (u64)py.frame_owner, is_careful) >= LULL_PYTHON_OWNER_INTERPRETER;
}

static inline bool is_own(u64 code, bool is_careful)
{
	return load(code + (u64)py.code_filename, is_careful) == py.own_file;
}

/* Where this thread is, innermost first; how many there are. */
static inline u32 walk(struct place *places, u32 room, bool is_careful)
{
	u32 n = 0, n_steps = 0;

	for (u64 frame = first_frame(is_careful); frame && n < room && n_steps < 4 * room;
	     n_steps++) {
		if (!is_trampoline(frame, is_careful)) {
			u64 instr = load(frame + (u64)py.frame_instr, is_careful);

			/* 3.14 marks deferred references in the low bits. */
			places[n].code = load(frame + (u64)py.frame_code, is_careful) & ~7ULL;
			places[n].instr = py.minor < 11 ? (u32)instr : instr;
			n += places[n].code && !is_own(places[n].code, is_careful);
		}
		frame = load(frame + (u64)py.frame_previous, is_careful);
	}
	return n;
}

static u32 line_of(const struct place *p)
{
	i64 off = py.minor == 9	   ? (i32)p->instr
		  : py.minor == 10 ? (i64)(i32)p->instr * 2
				   : (i64)(p->instr - p->code) - py.code_instrs;
	int line = off >= 0 && off < 1 << 24 ? py.line((const void *)p->code, (int)off) : 0;

	return line > 0 ? (u32)line : 0;
}

/* A str of Python; how many bytes. It is not asked for them: that may need the lock. */
static u32 text_of(u64 object, char to[static NAME_CHARS_MAX * 4])
{
	const u8 *at = (const u8 *)object, *data;
	u32 state, kind, n = 0;
	u64 n_chars;

	if (!object)
		return 0;
	memcpy(&state, at + py.str_state, sizeof(state));
	memcpy(&n_chars, at + py.str_len, sizeof(n_chars));
	kind = LULL_PYTHON_STR_KIND(state);
	if (!LULL_PYTHON_STR_COMPACT(state) || (kind != 1 && kind != 2 && kind != 4))
		return 0;
	data = at + (LULL_PYTHON_STR_ASCII(state) ? py.str_ascii_bytes : py.str_bytes - 8);
	for (u64 i = 0; i < n_chars && i < NAME_CHARS_MAX; i++) {
		u32 c = 0;

		memcpy(&c, data + i * kind, kind); /* little-endian, as both our machines are */
		n += lull_rune_put(to + n, c);
	}
	return n;
}

/* ---- definitions ---- */

static u64 name_of(struct lull_thread *t, u64 object)
{
	char text[NAME_CHARS_MAX * 4];

	return lull_name(t, text, text_of(object, text));
}

/* What a place is told from others by: an address alone may be another function later. */
static inline u64 place_hash(const struct place *p)
{
	/* walk() sets all that it counts. NOLINTNEXTLINE(clang-analyzer-core.*) */
	u64 name = *(const u64 *)(p->code + (u64)py.code_name);

	return lull_hash_mix(p->code ^ 0xa0761d6478bd642fULL, p->instr ^ name << 1);
}

static bool define_place(struct lull_thread *t, const struct place *p, u64 hash)
{
	u64 function = name_of(t, *(const u64 *)(p->code + (u64)py.code_name));
	u64 file = name_of(t, *(const u64 *)(p->code + (u64)py.code_filename));
	struct lull_wire_pyframe *e = lull_reserve(t, LULL_EVENT_pyframe, sizeof(*e));

	if (!e)
		return false;
	e->head.a = line_of(p);
	e->hash = hash;
	e->function = function;
	e->file = file;
	lull_commit(t, sizeof(*e));
	lull_remember(t, hash);
	return true;
}

static bool define_stack(struct lull_thread *t, u64 hash, const struct place *places, u32 n)
{
	u32 size_bytes = (u32)sizeof(struct lull_wire_pystack) + n * (u32)sizeof(u64);
	struct lull_wire_pystack *e;
	u64 *frames;

	for (u32 i = 0; i < n; i++) {
		u64 place = place_hash(&places[i]);

		if (!lull_is_defined(t, place) && !define_place(t, &places[i], place))
			return false;
	}
	e = lull_reserve(t, LULL_EVENT_pystack, size_bytes);
	if (!e)
		return false;
	e->head.a = n;
	e->hash = hash;
	frames = (u64 *)(e + 1);
	for (u32 i = 0; i < n; i++)
		frames[i] = place_hash(&places[i]);
	lull_commit(t, size_bytes);
	lull_remember(t, hash);
	return true;
}

u64 lull_python_stack(struct lull_thread *t)
{
	struct place places[LULL_PYTHON_STACK_MAX];
	u64 hash = 0x9e3779b97f4a7c15ULL;
	u32 n;

	if (!py.is_known)
		return 0;
	n = walk(places, LULL_PYTHON_STACK_MAX, false);
	if (!n)
		return 0;
	for (u32 i = 0; i < n; i++)
		hash = lull_hash_mix(hash ^ place_hash(&places[i]), 0xe7037ed1a0b428dbULL);
	if (!lull_is_defined(t, hash) && !define_stack(t, hash, places, n))
		return 0;
	return hash;
}

u64 lull_python_stack_anytime(struct lull_thread *t)
{
	return py.is_known && py.is_ending && !py.is_ending() ? lull_python_stack(t) : 0;
}

/* ---- finding out ---- */

static int visit(struct dl_phdr_info *file, size_t size, void *unused)
{
	const ElfW(Sym) *state = lull_loaded_symbol(file, "PyGILState_GetThisThreadState");
	const ElfW(Sym) *line = lull_loaded_symbol(file, "PyCode_Addr2Line");
	const ElfW(Sym) *ending = lull_loaded_symbol(file, "Py_IsFinalizing");

	(void)size;
	(void)unused;
	if (!state || !line)
		return 0;
	py.thread_state = (void *(*)(void))(file->dlpi_addr + state->st_value);
	py.line = (int (*)(const void *, int))(file->dlpi_addr + line->st_value);
	ending = ending ? ending : lull_loaded_symbol(file, "_Py_IsFinalizing");
	if (ending)
		py.is_ending = (int (*)(void))(file->dlpi_addr + ending->st_value);
	return 1;
}

/* From 3.13 on the interpreter tells its offsets; the list has their places there. */
static bool read_slots(void)
{
	u64 slots[N_SLOTS], runtime = lull_python_runtime();

	if (!runtime || !lull_sys_peek(slots, runtime, sizeof(slots)) ||
	    memcmp(slots, "xdebugpy", 8) != 0)
		return false;
#define FIELD(name, v9, v10, v11, v12, v13, v14, meaning) \
	py.name = py.name == NONE || slots[py.name] > 1 << 20 ? NONE : (int)slots[py.name];
#include "wire/python_layouts.def"
#undef FIELD
	return true;
}

static bool set_layout(u32 version)
{
	py.minor = version >> 16 & 0xff;
	if (version >> 24 != 3 || py.minor < MINOR_MIN || py.minor > MINOR_MAX)
		return false;
#define FIELD(name, v9, v10, v11, v12, v13, v14, meaning) \
	py.name = (const int[]){ v9, v10, v11, v12, v13, v14 }[py.minor - MINOR_MIN];
#include "wire/python_layouts.def"
#undef FIELD
	if (py.minor >= 13 && !read_slots())
		return false;
	return py.tstate_frame != NONE && py.frame_previous != NONE && py.frame_code != NONE &&
	       py.frame_instr != NONE && py.code_name != NONE && py.code_filename != NONE &&
	       py.str_len != NONE && py.str_state != NONE && py.str_ascii_bytes != NONE &&
	       py.str_bytes != NONE && (py.minor < 11 || py.code_instrs != NONE);
}

bool lull_python_stack_learn(u32 version, u64 code, u32 line, u64 caller_code)
{
	struct place places[2];

	if (py.is_known)
		return true;
	lull_loaded_walk(visit, NULL);
	py.is_known = py.thread_state && py.line && set_layout(version) &&
		      walk(places, 2, true) == 2 && places[0].code == code &&
		      places[1].code == caller_code && line_of(&places[0]) == line;
	if (py.is_known)
		py.own_file = *(const u64 *)(code + (u64)py.code_filename);
	return py.is_known;
}
