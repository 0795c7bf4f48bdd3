/*
 * nvtx: ranges, marks and names that the program and its libraries give through NVTX.
 *
 * Every shared object compiled with NVTX's headers holds an instance of its own. On its first NVTX
 * call an instance loads the library named by NVTX_INJECTION64_PATH, which is this agent, already
 * there, and calls InitializeInjectionNvtx2() and, for each extension,
 * InitializeInjectionNvtxExtension(). From then on it calls the functions that we write into its
 * tables; what we leave out does nothing. All instances share our domains.
 *
 *	source_nvtx.c		entry points, core functions, what push, pop, start, end do
 *	source_nvtx_names.c	domains, registered strings, categories
 *	source_nvtx_schema.c	payload schemas and enumerations, described in JSON
 *	source_nvtx_payload.c	extended payloads, the payload and counter extensions
 *	nvtx_late.c		instances that asked before the agent came
 *	nvtx.def		NVTX's binary interface
 *
 * Off means off: with nothing recorded, a call is a load and a branch, and levels are not counted.
 */
#include "agent/core/source.h"

#include "agent/core/arena.h"
#include "agent/core/process.h"
#include "agent/nvtx/nvtx_int.h"

static const struct lull_range_style plain_style = { .api = LULL_API_NVTX };

void lull_nvtx_call_init(struct lull_nvtx_call *call, const struct lull_nvtx_domain *domain)
{
	call->name = (struct lull_text){ 0 };
	call->style = plain_style;
	call->style.domain = lull_nvtx_domain_name(domain);
	call->style.domain_ix = domain->ix;
	call->tail = LULL_NO_TAIL;
}

void lull_nvtx_mark(const struct lull_nvtx_call *call)
{
	struct lull_thread *t = lull_recording();

	if (t)
		lull_range_mark(t, call->style.domain_ix, lull_label(t, &call->name, &call->style),
				call->tail);
}

int lull_nvtx_push(const struct lull_nvtx_call *call)
{
	struct lull_thread *t = lull_recording(), *holder = NULL;
	u32 ix = call->style.domain_ix;
	int level;

	if (!t)
		t = holder = lull_capture_begin(&call->name, &call->style.domain);
	if (!t)
		return LULL_NVTX_UNTRACKED;
	level = lull_range_push(t, ix, lull_label(t, &call->name, &call->style), call->tail);
	if (holder)
		lull_capture_hold_push(holder, ix, level);
	return level;
}

int lull_nvtx_pop(const struct lull_nvtx_domain *domain, struct lull_tail tail)
{
	struct lull_thread *t = lull_recording();

	return t ? lull_range_pop(t, domain->ix, tail) : LULL_NVTX_UNTRACKED;
}

u64 lull_nvtx_start(const struct lull_nvtx_call *call)
{
	struct lull_thread *t = lull_recording(), *holder = NULL;
	u64 range_id;

	if (!t)
		t = holder = lull_capture_begin(&call->name, &call->style.domain);
	if (!t)
		return 0;
	range_id = lull_range_start(t, call->style.domain_ix,
				    lull_label(t, &call->name, &call->style), call->tail);
	if (holder)
		lull_capture_hold_start(range_id);
	return range_id;
}

void lull_nvtx_end(const struct lull_nvtx_domain *domain, u64 range_id, struct lull_tail tail)
{
	struct lull_thread *t = lull_recording();

	if (t)
		lull_range_end(t, domain->ix, range_id, tail);
}

static void set_wide(struct lull_nvtx_call *call, const wchar_t *message)
{
	call->name =
		lull_text(call->text, lull_nvtx_narrow(message, call->text, sizeof(call->text)));
}

static void set_message(struct lull_nvtx_call *call, i32 type, const void *message)
{
	const struct lull_nvtx_string *string = message;

	if (type == LULL_NVTX_MESSAGE_ASCII)
		call->name = lull_nvtx_text(message);
	else if (type == LULL_NVTX_MESSAGE_WIDE)
		set_wide(call, message);
	else if (type == LULL_NVTX_MESSAGE_REGISTERED && lull_arena_owns(string))
		call->name = string->text;
}

static void set_payload(struct lull_nvtx_call *call, struct lull_nvtx_domain *domain,
			const struct lull_nvtx_event *event)
{
	struct lull_wire_payload *p = (struct lull_wire_payload *)call->payloads;

	if (event->payload_type == LULL_NVTX_PAYLOAD_EXT && event->n_payloads > 0) {
		lull_nvtx_call_payloads(call, domain, (const struct lull_nvtx_data *)event->payload,
					(size_t)event->n_payloads);
	} else if (event->payload_type >= LULL_NVTX_PAYLOAD_U64 &&
		   event->payload_type <= LULL_NVTX_PAYLOAD_F32) {
		/* Of the 4-byte types the client may have set 4 bytes only. */
		bool is_short = event->payload_type >= LULL_NVTX_PAYLOAD_U32;

		p->type = (u32)event->payload_type;
		p->n_bytes = 0;
		p->value = is_short ? (u32)event->payload : event->payload;
		call->tail = (struct lull_tail){ .bytes = p, .size_bytes = sizeof(*p) };
	}
}

/*
 * Attributes of a version we do not know, or cut short, leave a call without a name rather than a
 * wrong one.
 */
static void read_event(struct lull_nvtx_call *call, struct lull_nvtx_domain *domain,
		       const struct lull_nvtx_event *event)
{
	lull_nvtx_call_init(call, domain);
	if (!event)
		return;
	if (!event->version || event->version > LULL_NVTX_VERSION ||
	    event->size_bytes < sizeof(*event)) {
		lull_issue(LULL_ISSUE_nvtx_ignored, 1);
		return;
	}
	call->style.category = event->category;
	if (event->color_type == LULL_NVTX_COLOR_ARGB)
		call->style.color = event->color;
	set_message(call, event->message_type, event->message);
	set_payload(call, domain, event);
}

static void domain_mark_ex(struct lull_nvtx_domain *handle, const struct lull_nvtx_event *event)
{
	struct lull_nvtx_call call;

	if (!lull_nvtx_is_on())
		return;
	read_event(&call, lull_nvtx_domain(handle), event);
	lull_nvtx_mark(&call);
}

static u64 domain_range_start_ex(struct lull_nvtx_domain *handle,
				 const struct lull_nvtx_event *event)
{
	struct lull_nvtx_call call;

	if (!lull_nvtx_is_on())
		return 0;
	read_event(&call, lull_nvtx_domain(handle), event);
	return lull_nvtx_start(&call);
}

static void domain_range_end(struct lull_nvtx_domain *handle, u64 range_id)
{
	lull_nvtx_end(lull_nvtx_domain(handle), range_id, LULL_NO_TAIL);
}

static int domain_range_push_ex(struct lull_nvtx_domain *handle,
				const struct lull_nvtx_event *event)
{
	struct lull_nvtx_call call;

	if (!lull_nvtx_is_on())
		return LULL_NVTX_UNTRACKED;
	read_event(&call, lull_nvtx_domain(handle), event);
	return lull_nvtx_push(&call);
}

static int domain_range_pop(struct lull_nvtx_domain *handle)
{
	return lull_nvtx_pop(lull_nvtx_domain(handle), LULL_NO_TAIL);
}

static void domain_name_category_a(struct lull_nvtx_domain *handle, u32 category, const char *name)
{
	if (name)
		lull_nvtx_category_add(lull_nvtx_domain(handle), category, name, strlen(name));
}

static void domain_name_category_w(struct lull_nvtx_domain *handle, u32 category,
				   const wchar_t *name)
{
	char text[LULL_NVTX_TEXT_BYTES];

	lull_nvtx_category_add(lull_nvtx_domain(handle), category, text,
			       lull_nvtx_narrow(name, text, sizeof(text)));
}

static struct lull_nvtx_string *domain_register_string_a(struct lull_nvtx_domain *handle,
							 const char *text)
{
	(void)handle; /* a handle is only ever used in its own domain, so domains may share it */
	return lull_nvtx_string(text, text ? strlen(text) : 0);
}

static struct lull_nvtx_string *domain_register_string_w(struct lull_nvtx_domain *handle,
							 const wchar_t *wide)
{
	char text[LULL_NVTX_TEXT_BYTES];

	(void)handle;
	return lull_nvtx_string(text, lull_nvtx_narrow(wide, text, sizeof(text)));
}

static struct lull_nvtx_domain *domain_create_a(const char *name)
{
	return lull_nvtx_domain_add(name, name ? strlen(name) : 0);
}

static struct lull_nvtx_domain *domain_create_w(const wchar_t *name)
{
	char text[LULL_NVTX_TEXT_BYTES];

	return lull_nvtx_domain_add(text, lull_nvtx_narrow(name, text, sizeof(text)));
}

/* Another instance may still use the domain of this name, and events of it are on their way. */
static void domain_destroy(struct lull_nvtx_domain *handle)
{
	(void)handle;
}

/* Resources name objects of the operating system; nothing we record refers to them. */
static void *domain_resource_create(struct lull_nvtx_domain *handle, void *attributes)
{
	(void)handle;
	(void)attributes;
	return NULL;
}

static void domain_resource_destroy(void *resource)
{
	(void)resource;
}

static void initialize(const void *reserved)
{
	(void)reserved;
}

/*
 * The functions below without a domain are those above in the default one; the commonest are made
 * short.
 */

static void mark_ex(const struct lull_nvtx_event *event)
{
	domain_mark_ex(NULL, event);
}

static void mark_a(const char *message)
{
	struct lull_thread *t = lull_recording();
	struct lull_text name;

	if (!t)
		return;
	name = lull_nvtx_text(message);
	lull_range_mark(t, 0, lull_label(t, &name, &plain_style), LULL_NO_TAIL);
}

static void mark_w(const wchar_t *message)
{
	struct lull_nvtx_call call;

	if (!lull_nvtx_is_on())
		return;
	lull_nvtx_call_init(&call, lull_nvtx_domain(NULL));
	set_wide(&call, message);
	lull_nvtx_mark(&call);
}

static u64 range_start_ex(const struct lull_nvtx_event *event)
{
	return domain_range_start_ex(NULL, event);
}

static u64 range_start_a(const char *message)
{
	struct lull_nvtx_call call;

	if (!lull_nvtx_is_on())
		return 0;
	lull_nvtx_call_init(&call, lull_nvtx_domain(NULL));
	call.name = lull_nvtx_text(message);
	return lull_nvtx_start(&call);
}

static u64 range_start_w(const wchar_t *message)
{
	struct lull_nvtx_call call;

	if (!lull_nvtx_is_on())
		return 0;
	lull_nvtx_call_init(&call, lull_nvtx_domain(NULL));
	set_wide(&call, message);
	return lull_nvtx_start(&call);
}

static void range_end(u64 range_id)
{
	domain_range_end(NULL, range_id);
}

static int range_push_ex(const struct lull_nvtx_event *event)
{
	return domain_range_push_ex(NULL, event);
}

/* Nothing is recorded; this range may begin a recording. */
static __attribute__((noinline)) int push_watched(const char *message)
{
	struct lull_nvtx_call call;

	lull_nvtx_call_init(&call, lull_nvtx_domain(NULL));
	call.name = lull_nvtx_text(message);
	return lull_nvtx_push(&call);
}

/*
 * Not inline: so that the call without a recording is a load and a branch, without a stack frame.
 */
static __attribute__((noinline)) int push_recorded(const char *message)
{
	struct lull_thread *t = lull_recording();
	struct lull_text name;

	if (!t)
		return LULL_NVTX_UNTRACKED;
	name = lull_nvtx_text(message);
	return lull_range_push(t, 0, lull_label(t, &name, &plain_style), LULL_NO_TAIL);
}

/* Expected to be off, here and in range_pop(): so no branch of the way out is taken. */
static int range_push_a(const char *message)
{
	if (__builtin_expect(lull_has_recording(), 0))
		return push_recorded(message);
	if (__builtin_expect(lull_capture_is_watching(), 0))
		return push_watched(message);
	return LULL_NVTX_UNTRACKED;
}

static int range_push_w(const wchar_t *message)
{
	struct lull_nvtx_call call;

	if (!lull_nvtx_is_on())
		return LULL_NVTX_UNTRACKED;
	lull_nvtx_call_init(&call, lull_nvtx_domain(NULL));
	set_wide(&call, message);
	return lull_nvtx_push(&call);
}

/* Not inline for the same reason. */
static __attribute__((noinline)) int pop_recorded(void)
{
	struct lull_thread *t = lull_recording();

	return t ? lull_range_pop(t, 0, LULL_NO_TAIL) : LULL_NVTX_UNTRACKED;
}

static int range_pop(void)
{
	if (__builtin_expect(lull_has_recording(), 0))
		return pop_recorded();
	return LULL_NVTX_UNTRACKED;
}

static void name_category_a(u32 category, const char *name)
{
	domain_name_category_a(NULL, category, name);
}

static void name_category_w(u32 category, const wchar_t *name)
{
	domain_name_category_w(NULL, category, name);
}

static void name_thread(u32 tid, const char *name, size_t len)
{
	if (len)
		lull_process_name(LULL_EVENT_thread_label, tid, name, len);
}

static void name_os_thread_a(u32 tid, const char *name)
{
	name_thread(tid, name, name ? strlen(name) : 0);
}

static void name_os_thread_w(u32 tid, const wchar_t *name)
{
	char text[LULL_NVTX_TEXT_BYTES];

	name_thread(tid, text, lull_nvtx_narrow(name, text, sizeof(text)));
}

/* Declared once more, so that the compiler compares each function with its type in nvtx.def. */
#define AS_PROTOTYPE(slot, ours, theirs, ret, args) static ret ours args;
LULL_NVTX_CORE(AS_PROTOTYPE)
LULL_NVTX_CORE2(AS_PROTOTYPE)
#undef AS_PROTOTYPE

#define AS_SLOT(slot, ours, theirs, ret, args) [slot] = (lull_nvtx_fn *)ours,
static lull_nvtx_fn *const core[] = { LULL_NVTX_CORE(AS_SLOT) };
static lull_nvtx_fn *const core2[] = { LULL_NVTX_CORE2(AS_SLOT) };
#undef AS_SLOT

void lull_nvtx_fill_table(const struct lull_nvtx_callbacks *callbacks, u32 module,
			  lull_nvtx_fn *const *ours, u32 n_ours)
{
	lull_nvtx_fn ***table = NULL;
	u32 n = 0;

	if (!callbacks->find_table(module, &table, &n) || !table)
		return;
	for (u32 i = 1; i < n && i < n_ours; i++)
		if (table[i] && ours[i])
			*table[i] = ours[i];
}

void lull_nvtx_fill(const struct lull_nvtx_callbacks *callbacks)
{
	lull_nvtx_fill_table(callbacks, LULL_NVTX_MODULE_CORE, core, LULL_COUNT_OF(core));
	lull_nvtx_fill_table(callbacks, LULL_NVTX_MODULE_CORE2, core2, LULL_COUNT_OF(core2));
	lull_nvtx_fill_cuda(callbacks);
	lull_sources_follow_forks();
}

static bool is_wanted(void)
{
	return lull_agent.has_session && ((lull_agent.control->sources & LULL_SOURCE_NVTX) ||
					  lull_agent.control->capture_range[0]);
}

/* An NVTX instance asks for a tool. 1: it has one; 0: its functions shall do nothing. */
int InitializeInjectionNvtx2(lull_nvtx_get_export *get_export)
	__attribute__((visibility("default")));

int InitializeInjectionNvtx2(lull_nvtx_get_export *get_export)
{
	const struct lull_nvtx_callbacks *callbacks;
	const struct lull_nvtx_version_info *version;

	if (!is_wanted() || !get_export)
		return 0;
	callbacks = get_export(LULL_NVTX_EXPORT_CALLBACKS);
	if (!callbacks || callbacks->struct_bytes < sizeof(*callbacks) || !callbacks->find_table)
		return 0;
	version = get_export(LULL_NVTX_EXPORT_VERSIONINFO);
	if (version && version->struct_bytes >= sizeof(*version) && version->tell_version)
		version->tell_version(LULL_NVTX_VERSION);
	if (!lull_nvtx_late_begins())
		return 0;
	lull_nvtx_fill(callbacks);
	lull_nvtx_late_ends();
	return 1;
}

/*
 * An extension of an NVTX instance asks for a tool. 1: it has one, for the functions that are
 * filled in.
 */
int InitializeInjectionNvtxExtension(struct lull_nvtx_module_info *module)
	__attribute__((visibility("default")));

int InitializeInjectionNvtxExtension(struct lull_nvtx_module_info *module)
{
	/* In a program that ran already nobody would take the functions out again. */
	if (lull_agent.is_late || !is_wanted() || !module ||
	    module->struct_bytes < sizeof(*module) || !module->n_segments || !module->segments ||
	    !module->segments->slots)
		return 0;
	lull_nvtx_fill_extension(module->module_id, module->segments);
	lull_sources_follow_forks();
	return 1;
}

/* A forked child has an image of its own, which knows nothing of what was registered before. */
LULL_AT_START static void start(void)
{
	struct lull_nvtx_domain *domain;

	for (u32 ix = 0; (domain = lull_nvtx_domain_at(ix)); ix++) {
		lull_nvtx_category_repeat(domain);
		lull_nvtx_schema_repeat(domain);
	}
	if (lull_agent.is_late && is_wanted())
		lull_nvtx_late_enter();
}

const struct lull_source lull_source_nvtx = {
	.start = start,
	.idle = lull_nvtx_late_look,
	.withdraw = lull_nvtx_late_withdraw,
};
