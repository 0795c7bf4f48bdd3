/*
 * nvtx_int - what the files of the NVTX source share; see source_nvtx.c for how they divide the
 * work.
 */
#ifndef LULL_AGENT_NVTX_NVTX_INT_H
#define LULL_AGENT_NVTX_NVTX_INT_H

#include "agent/nvtx/nvtx_abi.h"
#include "agent/core/range.h"

#define LULL_NVTX_TEXT_BYTES 1024u /* wide texts longer than this in UTF-8 are cut */
#define LULL_NVTX_DATA_BYTES 1024u /* payload bytes copied for one event */
#define LULL_NVTX_N_PAYLOADS 8u	   /* extended payloads copied for one event */

/* Room for the payloads of one event with their heads and padding. */
#define LULL_NVTX_TAIL_BYTES \
	(LULL_NVTX_DATA_BYTES + LULL_NVTX_N_PAYLOADS * (sizeof(struct lull_wire_payload) + 8))

/* A registered string; clients hold pointers to it. Equal texts share one. */
struct lull_nvtx_string {
	struct lull_nvtx_string *next; /* in its bucket */
	struct lull_text text;
	char bytes[];
};

struct lull_nvtx_category {
	struct lull_nvtx_category *next;
	_Atomic(struct lull_nvtx_string *) name;
	u32 number;
};

/* Where the message of an event lies in its payload. */
struct lull_nvtx_message {
	u32 type;    /* LULL_NVTX_TYPE_cstring or _registered_string, 0 = no message */
	u32 n_bytes; /* a text inside the payload; 0 = the payload holds a pointer to it */
	u64 off;
};

/* A payload schema or enumeration as it was registered. */
struct lull_nvtx_schema {
	struct lull_nvtx_schema *next;
	u64 schema_id;
	u64 size_bytes;
	struct lull_nvtx_string *name; /* may be NULL */
	struct lull_nvtx_message message;
	u32 kind; /* as payload_schema.kind in schema.def */
	u32 json_bytes;
	char json[];
};

/* A domain; clients hold pointers to it, NULL = the default one. Equal names share one. */
struct lull_nvtx_domain {
	struct lull_nvtx_string *name; /* NULL: the default domain */
	u32 ix;
	_Atomic(struct lull_nvtx_category *) categories;
	_Atomic(struct lull_nvtx_schema *) schemas;
};

/*
 * What one call says, taken out of the client's structures. Large: on the stack, filled by
 * lull_nvtx_call_*().
 */
struct lull_nvtx_call {
	struct lull_text name;
	struct lull_range_style style;
	struct lull_tail tail;
	char text[LULL_NVTX_TEXT_BYTES];
	_Alignas(8) u8 payloads[LULL_NVTX_TAIL_BYTES];
};

/* True if a range is worth looking at: a recording is on or may be begun by it. */
static inline bool lull_nvtx_is_on(void)
{
	return lull_has_recording() || lull_capture_is_watching();
}

/* The text of a C string; NULL is empty. */
static inline struct lull_text lull_nvtx_text(const char *text)
{
	return lull_text(text, text ? strlen(text) : 0);
}

/* source_nvtx_names.c: what clients register. Everything lives as long as the process. */

/* UTF-8 of a wide string in `to`; its length. What does not fit is cut between characters. */
size_t lull_nvtx_narrow(const wchar_t *from, char *to, size_t room);

/* The registered string of a text; NULL if it is empty or there is no memory left. */
struct lull_nvtx_string *lull_nvtx_string(const char *bytes, size_t len);

/* The domain of a handle; the default one for NULL and for handles that are not ours. */
struct lull_nvtx_domain *lull_nvtx_domain(struct lull_nvtx_domain *handle);

/* A domain by name, made if need be; NULL, the default one, when there are too many. */
struct lull_nvtx_domain *lull_nvtx_domain_add(const char *bytes, size_t len);

/* The domain of this index, NULL if there is none. */
struct lull_nvtx_domain *lull_nvtx_domain_at(u32 ix);

/* The name of a domain. */
struct lull_text lull_nvtx_domain_name(const struct lull_nvtx_domain *domain);

/* Name a category and tell the recorder. */
void lull_nvtx_category_add(struct lull_nvtx_domain *domain, u32 number, const char *bytes,
			    size_t len);

/* Tell the recorder all categories again: a forked child has an image of its own. */
void lull_nvtx_category_repeat(struct lull_nvtx_domain *domain);

/* Define a text for an event that is written whether or not a recording is on. */
void lull_nvtx_tell_text(struct lull_thread *t, const struct lull_text *text);

/* source_nvtx_schema.c: payload schemas and enumerations. */

/* The schema of this id, NULL if it is not registered in the domain. */
const struct lull_nvtx_schema *lull_nvtx_schema_find(struct lull_nvtx_domain *domain,
						     u64 schema_id);

/* An id for something registered: the client's own if it is a valid one, else a new one. */
u64 lull_nvtx_give_id(u64 wanted_id);

/* Register a schema or an enumeration; returns its id, 0 if the attributes make no sense. */
u64 lull_nvtx_schema_add(struct lull_nvtx_domain *domain, const struct lull_nvtx_schema_attr *attr);
u64 lull_nvtx_enum_add(struct lull_nvtx_domain *domain, const struct lull_nvtx_enum_attr *attr);

/* Tell the recorder all schemas again. */
void lull_nvtx_schema_repeat(struct lull_nvtx_domain *domain);

/* source_nvtx_payload.c: calls with extended payloads, and the extension modules. */

/* Copy payloads after the call, up to the limits; what is cut is counted. */
void lull_nvtx_call_payloads(struct lull_nvtx_call *call, struct lull_nvtx_domain *domain,
			     const struct lull_nvtx_data *data, size_t n);

/* Write our functions into the slots of an extension; modules we do not know stay as they are. */
void lull_nvtx_fill_extension(u32 module_id, struct lull_nvtx_segment *segment);

/* source_nvtx.c: the calls themselves. */

/* Write our functions into one table of an instance; older instances have shorter ones. */
void lull_nvtx_fill_table(const struct lull_nvtx_callbacks *callbacks, u32 module,
			  lull_nvtx_fn *const *ours, u32 n_ours);

/* Write all of them into an instance. */
void lull_nvtx_fill(const struct lull_nvtx_callbacks *callbacks);

/* nvtx_late.c: find instances in a program that ran already, look again now and then, leave. */
void lull_nvtx_late_enter(void);
void lull_nvtx_late_look(void);
void lull_nvtx_late_withdraw(void);

/*
 * An instance asks for a tool, and has been told. False: the agent is about to leave the program,
 * and the second is not to be called.
 */
bool lull_nvtx_late_begins(void);
void lull_nvtx_late_ends(void);

/* source_nvtx_cuda.c: the same for the names of CUDA's objects. */
void lull_nvtx_fill_cuda(const struct lull_nvtx_callbacks *callbacks);

/* Begin a call without name, category, colour or payload in this domain. */
void lull_nvtx_call_init(struct lull_nvtx_call *call, const struct lull_nvtx_domain *domain);

/* What NVTX's functions of these names do, once the call is understood. */
void lull_nvtx_mark(const struct lull_nvtx_call *call);
int lull_nvtx_push(const struct lull_nvtx_call *call);
int lull_nvtx_pop(const struct lull_nvtx_domain *domain, struct lull_tail tail);
u64 lull_nvtx_start(const struct lull_nvtx_call *call);
void lull_nvtx_end(const struct lull_nvtx_domain *domain, u64 range_id, struct lull_tail tail);

#endif
