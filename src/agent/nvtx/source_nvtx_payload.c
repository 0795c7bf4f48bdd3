/*
 * nvtx payloads: events with bytes of the program's own, and the extensions of NVTX that carry
 * them.
 *
 * Each payload becomes a struct lull_wire_payload with its data after the event. The limits of
 * nvtx_int.h hold for all payloads of an event together; what is cut is counted.
 *
 * Counters and deferred events are accepted and counted as ignored, so that a report says that they
 * are missing.
 */
#include "agent/nvtx/nvtx_int.h"

#include "agent/core/arena.h"

/* Size of a payload whose client leaves it to the tool: a C string, or what its schema says. */
static size_t find_size(struct lull_nvtx_domain *domain, const struct lull_nvtx_data *d)
{
	const struct lull_nvtx_schema *schema;

	if (d->size_bytes != SIZE_MAX)
		return d->size_bytes;
	if (d->schema_id == LULL_NVTX_TYPE_cstring || d->schema_id == LULL_NVTX_TYPE_cstring_utf8)
		return strnlen(d->payload, LULL_NVTX_DATA_BYTES + 1);
	schema = lull_nvtx_schema_find(domain, d->schema_id);
	return schema ? schema->size_bytes : 0;
}

void lull_nvtx_call_payloads(struct lull_nvtx_call *call, struct lull_nvtx_domain *domain,
			     const struct lull_nvtx_data *data, size_t n)
{
	size_t left = LULL_NVTX_DATA_BYTES, used = 0;
	bool is_cut = n > LULL_NVTX_N_PAYLOADS;

	if (!data)
		return;
	for (size_t i = 0; i < n && i < LULL_NVTX_N_PAYLOADS; i++) {
		struct lull_wire_payload *p = (struct lull_wire_payload *)(call->payloads + used);
		size_t n_bytes = data[i].payload ? find_size(domain, &data[i]) : 0;
		size_t padded;

		if (n_bytes > left) {
			n_bytes = left;
			is_cut = true;
		}
		padded = lull_round8(n_bytes);
		p->type = LULL_PAYLOAD_EXTENDED;
		p->n_bytes = (u32)n_bytes;
		p->value = data[i].schema_id;
		if (n_bytes) {
			memset((u8 *)(p + 1) + padded - 8, 0,
			       8); /* the padding; the data comes on top */
			memcpy(p + 1, data[i].payload, n_bytes);
		}
		used += sizeof(*p) + padded;
		left -= n_bytes;
	}
	if (is_cut)
		lull_issue(LULL_ISSUE_payload_cut, 1);
	call->tail = (struct lull_tail){ .bytes = call->payloads, .size_bytes = (u32)used };
}

/* The text of a message inside a payload; the client vouches for its pointers. */
static struct lull_text read_message(const struct lull_nvtx_message *m, const u8 *payload,
				     size_t n_bytes)
{
	size_t need = m->n_bytes ? m->n_bytes : sizeof(void *);
	const struct lull_nvtx_string *string;
	const char *text;

	if (m->off > n_bytes || n_bytes - m->off < need)
		return (struct lull_text){ 0 };
	text = (const char *)payload + m->off;
	if (m->n_bytes)
		return lull_text(text, strnlen(text, m->n_bytes));
	memcpy(&text, payload + m->off, sizeof(text));
	if (m->type == LULL_NVTX_TYPE_cstring)
		return lull_nvtx_text(text);
	string = (const void *)text;
	return lull_arena_owns(string) ? string->text : (struct lull_text){ 0 };
}

/* A call whose every attribute is in its payloads. */
static void read_call(struct lull_nvtx_call *call, struct lull_nvtx_domain *domain,
		      const struct lull_nvtx_data *data, size_t n)
{
	lull_nvtx_call_init(call, domain);
	lull_nvtx_call_payloads(call, domain, data, n);
	for (size_t i = 0; data && i < n && !call->name.len; i++) {
		const struct lull_nvtx_schema *schema =
			lull_nvtx_schema_find(domain, data[i].schema_id);

		if (schema && schema->message.type && data[i].payload)
			call->name = read_message(&schema->message, data[i].payload,
						  find_size(domain, &data[i]));
	}
}

static u64 payload_schema_register(struct lull_nvtx_domain *handle,
				   const struct lull_nvtx_schema_attr *attr)
{
	return lull_nvtx_schema_add(lull_nvtx_domain(handle), attr);
}

static u64 payload_enum_register(struct lull_nvtx_domain *handle,
				 const struct lull_nvtx_enum_attr *attr)
{
	return lull_nvtx_enum_add(lull_nvtx_domain(handle), attr);
}

static void mark_payload(struct lull_nvtx_domain *handle, const struct lull_nvtx_data *data,
			 size_t n)
{
	struct lull_nvtx_call call;

	if (!lull_nvtx_is_on())
		return;
	read_call(&call, lull_nvtx_domain(handle), data, n);
	lull_nvtx_mark(&call);
}

static int range_push_payload(struct lull_nvtx_domain *handle, const struct lull_nvtx_data *data,
			      size_t n)
{
	struct lull_nvtx_call call;

	if (!lull_nvtx_is_on())
		return LULL_NVTX_UNTRACKED;
	read_call(&call, lull_nvtx_domain(handle), data, n);
	return lull_nvtx_push(&call);
}

static int range_pop_payload(struct lull_nvtx_domain *handle, const struct lull_nvtx_data *data,
			     size_t n)
{
	struct lull_nvtx_domain *domain = lull_nvtx_domain(handle);
	struct lull_nvtx_call call;

	if (!lull_nvtx_is_on())
		return LULL_NVTX_UNTRACKED;
	lull_nvtx_call_init(&call, domain);
	lull_nvtx_call_payloads(&call, domain, data, n);
	return lull_nvtx_pop(domain, call.tail);
}

static u64 range_start_payload(struct lull_nvtx_domain *handle, const struct lull_nvtx_data *data,
			       size_t n)
{
	struct lull_nvtx_call call;

	if (!lull_nvtx_is_on())
		return 0;
	read_call(&call, lull_nvtx_domain(handle), data, n);
	return lull_nvtx_start(&call);
}

static void range_end_payload(struct lull_nvtx_domain *handle, u64 range_id,
			      const struct lull_nvtx_data *data, size_t n)
{
	struct lull_nvtx_domain *domain = lull_nvtx_domain(handle);
	struct lull_nvtx_call call;

	if (!lull_nvtx_is_on())
		return;
	lull_nvtx_call_init(&call, domain);
	lull_nvtx_call_payloads(&call, domain, data, n);
	lull_nvtx_end(domain, range_id, call.tail);
}

/* Deferred events carry timestamps that they get here, on the clock of all other events. */
static i64 timestamp_get(void)
{
	return (i64)lull_time();
}

static u64 time_domain_register(struct lull_nvtx_domain *handle,
				const struct lull_nvtx_time_domain_attr *attr)
{
	(void)handle;
	return lull_nvtx_give_id(attr ? attr->time_domain_id : 0);
}

static u64 scope_register(struct lull_nvtx_domain *handle, const struct lull_nvtx_scope_attr *attr)
{
	(void)handle;
	return lull_nvtx_give_id(attr && attr->struct_bytes >= sizeof(*attr) ? attr->scope_id : 0);
}

static u64 counter_register(struct lull_nvtx_domain *handle,
			    const struct lull_nvtx_counter_attr *attr)
{
	(void)handle;
	return lull_nvtx_give_id(attr && attr->struct_bytes >= sizeof(*attr) ? attr->counter_id
									     : 0);
}

static void count_ignored(void)
{
	if (lull_recording())
		lull_issue(LULL_ISSUE_nvtx_ignored, 1);
}

static void event_submit(struct lull_nvtx_domain *handle, const struct lull_nvtx_data *data,
			 size_t n)
{
	(void)handle, (void)data, (void)n;
	count_ignored();
}

static void event_batch_submit(struct lull_nvtx_domain *handle, const void *batch)
{
	(void)handle, (void)batch;
	count_ignored();
}

static void counter_sample_int64(struct lull_nvtx_domain *handle, u64 counter_id, i64 value)
{
	(void)handle, (void)counter_id, (void)value;
	count_ignored();
}

static void counter_sample_float64(struct lull_nvtx_domain *handle, u64 counter_id, f64 value)
{
	(void)handle, (void)counter_id, (void)value;
	count_ignored();
}

static void counter_sample(struct lull_nvtx_domain *handle, u64 counter_id, const void *values,
			   size_t n_bytes)
{
	(void)handle, (void)counter_id, (void)values, (void)n_bytes;
	count_ignored();
}

static void counter_sample_no_value(struct lull_nvtx_domain *handle, u64 counter_id, u8 reason)
{
	(void)handle, (void)counter_id, (void)reason;
	count_ignored();
}

static void counter_batch_submit(struct lull_nvtx_domain *handle, const void *batch)
{
	(void)handle, (void)batch;
	count_ignored();
}

/* Declared once more, so that the compiler compares each function with its type in nvtx.def. */
#define AS_PROTOTYPE(slot, ours, theirs, ret, args) static ret ours args;
LULL_NVTX_PAYLOAD(AS_PROTOTYPE)
LULL_NVTX_COUNTERS(AS_PROTOTYPE)
#undef AS_PROTOTYPE

#define AS_SLOT(slot, ours, theirs, ret, args) [slot] = (lull_nvtx_fn *)ours,
static lull_nvtx_fn *const payload_slots[] = { LULL_NVTX_PAYLOAD(AS_SLOT) };
static lull_nvtx_fn *const counter_slots[] = { LULL_NVTX_COUNTERS(AS_SLOT) };
#undef AS_SLOT

void lull_nvtx_fill_extension(u32 module_id, struct lull_nvtx_segment *segment)
{
	lull_nvtx_fn *const *ours = module_id == LULL_NVTX_EXT_PAYLOAD	  ? payload_slots
				    : module_id == LULL_NVTX_EXT_COUNTERS ? counter_slots
									  : NULL;
	size_t n = module_id == LULL_NVTX_EXT_PAYLOAD ? LULL_COUNT_OF(payload_slots)
						      : LULL_COUNT_OF(counter_slots);

	for (size_t i = 0; ours && i < n && i < segment->n_slots; i++)
		if (ours[i])
			segment->slots[i] = (intptr_t)ours[i];
}
