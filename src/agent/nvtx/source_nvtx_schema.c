/*
 * nvtx schemas: payload layouts and enumerations, told to the recorder as JSON.
 *
 * A payload is bytes; its schema says what they are. The agent copies both and decodes neither, but
 * for one thing: entries that give no offset follow each other by the rules of C, and the sizes
 * that takes are known here. So an entry of the JSON has an "offset" wherever it can be computed:
 *
 *	[{"name":"bytes","type":"uint64","size":8,"offset":8},
 *	 {"name":"op","type":"schema","schema":16777236,"offset":16}, ...]	a schema
 *	[{"name":"Sum","value":0}, ...]						an enumeration
 *
 * "type" is a name of nvtx.def, or "schema" with the id of another schema or enumeration. Arrays
 * have "array":"fixed", "zero", "index" or "payload" and the "length" that goes with it; "flags"
 * are NVTX's.
 */
#include "agent/nvtx/nvtx_int.h"

#include "agent/core/arena.h"
#include "agent/core/decimal.h"

/* Texts in a schema are labels for people; longer ones are cut. */
#define TEXT_MAX 256u

/* Entries are left out when the JSON grows beyond this; one more entry still fits into an event. */
#define JSON_MAX (LULL_EVENT_MAX - 4096u)

#define KIND_ENUM  128u
#define ARRAY_MASK ((u64)LULL_NVTX_ENTRY_ARRAY_FIXED * 7)

static struct {
	_Atomic u64 n_ids;
} schemas;

/* JSON in the making. With room 0 nothing is written and `len` tells how much room it takes. */
struct json {
	char *at;
	size_t room;
	size_t len;
};

/* Where the entries of a schema lie. */
struct layout {
	struct lull_nvtx_domain *domain;
	u64 end_off;   /* of the entry before */
	u64 align_max; /* of packed structures, 0 = natural */
	bool is_known; /* end_off means something */
	bool is_union; /* entries do not follow each other */
};

/* One entry of a layout. */
struct place {
	u64 n_bytes; /* of one element, 0 = not known */
	u64 off;
	bool has_off;
};

static void put(struct json *j, const char *bytes, size_t n)
{
	if (j->len + n <= j->room)
		memcpy(j->at + j->len, bytes, n);
	j->len += n;
}

static void put_text(struct json *j, const char *text)
{
	put(j, text, strlen(text));
}

static void put_u64(struct json *j, u64 value)
{
	char digits[LULL_DECIMAL_BYTES];
	const char *text = lull_decimal(value, digits);

	put(j, text, (size_t)(digits + sizeof(digits) - 1 - text));
}

static void put_quoted(struct json *j, const char *text)
{
	static const char hex[] = "0123456789abcdef";
	size_t len = strnlen(text, TEXT_MAX);

	put(j, "\"", 1);
	for (size_t i = 0; i < len; i++) {
		u8 c = (u8)text[i];

		if (c < 0x20) {
			const char escape[] = { '\\', 'u', '0', '0', hex[c >> 4], hex[c & 15] };

			put(j, escape, sizeof(escape));
			continue;
		}
		if (c == '"' || c == '\\')
			put(j, "\\", 1);
		put(j, (const char *)&c, 1);
	}
	put(j, "\"", 1);
}

static void put_number(struct json *j, const char *key, u64 value)
{
	put_text(j, key);
	put_u64(j, value);
}

static void put_string(struct json *j, const char *key, const char *text)
{
	put_text(j, key);
	put_quoted(j, text);
}

/* Name and size of a predefined type; NULL if there is none of this number. */
static const char *find_type(u64 type, u64 *n_bytes)
{
	switch (type) {
#define AS_CASE(id, name, theirs, bytes) \
	case id:                         \
		*n_bytes = bytes;        \
		return #name;
		LULL_NVTX_TYPES(AS_CASE)
#undef AS_CASE
	default:
		return NULL;
	}
}

static bool is_text_type(u64 type)
{
	return type >= LULL_NVTX_TYPE_cstring && type <= LULL_NVTX_TYPE_cstring_utf32;
}

/* Bytes of a character of a string type. */
static u64 char_bytes(u64 type)
{
	return type == LULL_NVTX_TYPE_cstring_utf16   ? 2
	       : type == LULL_NVTX_TYPE_cstring_utf32 ? 4
						      : 1;
}

/* Bytes that the entry takes in the payload, 0 if they vary; *n_bytes of one element. */
static u64 entry_bytes(const struct layout *l, const struct lull_nvtx_entry *e, u64 *n_bytes)
{
	const u64 by_reference =
		LULL_NVTX_ENTRY_POINTER | LULL_NVTX_ENTRY_FROM_BASE | LULL_NVTX_ENTRY_FROM_HERE;
	u64 array = e->flags & ARRAY_MASK;

	*n_bytes = 0;
	if (!find_type(e->type, n_bytes)) {
		const struct lull_nvtx_schema *nested = lull_nvtx_schema_find(l->domain, e->type);

		*n_bytes = nested ? nested->size_bytes : 0;
	}
	if (is_text_type(e->type)) {
		if ((e->flags & by_reference) || (!array && !e->detail))
			return sizeof(void *);
		*n_bytes = char_bytes(e->type);
		return !array || array == LULL_NVTX_ENTRY_ARRAY_FIXED ? e->detail * *n_bytes : 0;
	}
	if (e->flags & by_reference)
		return sizeof(void *);
	if (array)
		return array == LULL_NVTX_ENTRY_ARRAY_FIXED ? e->detail * *n_bytes : 0;
	return *n_bytes;
}

/* Alignment of a type of this size by the rules of C on 64-bit Linux. */
static u64 natural_align(u64 n_bytes)
{
	u64 align = n_bytes & -n_bytes;

	return align > 16 ? 16 : align;
}

static struct place place_entry(struct layout *l, const struct lull_nvtx_entry *e, bool is_first)
{
	struct place p = { 0 };
	u64 total = entry_bytes(l, e, &p.n_bytes);
	u64 align = natural_align(total == sizeof(void *) || !p.n_bytes ? total : p.n_bytes);

	if (l->align_max && align > l->align_max)
		align = l->align_max;
	p.has_off = e->offset || is_first || l->is_union || (l->is_known && align);
	if (!p.has_off)
		return p;
	p.off = e->offset;
	if (!e->offset && !is_first && !l->is_union)
		p.off = (l->end_off + align - 1) / align * align;
	l->is_known = total != 0;
	l->end_off = p.off + total;
	return p;
}

static void put_array(struct json *j, const struct lull_nvtx_entry *e)
{
	static const char *const kinds[] = { NULL, "fixed", "zero", "index", "payload" };
	u64 kind = (e->flags & ARRAY_MASK) / LULL_NVTX_ENTRY_ARRAY_FIXED;

	if (kind && kind < LULL_COUNT_OF(kinds))
		put_string(j, ",\"array\":", kinds[kind]);
	if (e->detail)
		put_number(j, ",\"length\":", e->detail);
	if (e->flags)
		put_number(j, ",\"flags\":", e->flags);
}

static void put_entry(struct json *j, struct layout *l, const struct lull_nvtx_entry *e,
		      bool is_first)
{
	struct place place = place_entry(l, e, is_first);
	u64 n_bytes;
	const char *type = find_type(e->type, &n_bytes);

	put_text(j, is_first ? "{" : ",{");
	put_string(j, "\"name\":", e->name ? e->name : "");
	put_string(j, ",\"type\":", type ? type : "schema");
	if (!type)
		put_number(j, ",\"schema\":", e->type);
	if (place.n_bytes)
		put_number(j, ",\"size\":", place.n_bytes);
	if (place.has_off)
		put_number(j, ",\"offset\":", place.off);
	put_array(j, e);
	if (e->description)
		put_string(j, ",\"description\":", e->description);
	put_text(j, "}");
}

static struct layout layout_of(struct lull_nvtx_domain *domain,
			       const struct lull_nvtx_schema_attr *a)
{
	return (struct layout){
		.domain = domain,
		.align_max = a->mask & LULL_NVTX_SCHEMA_HAS_ALIGN ? a->align_bytes : 0,
		.is_union = a->type == LULL_NVTX_SCHEMA_UNION ||
			    a->type == LULL_NVTX_SCHEMA_UNION_SELECTED,
	};
}

static void put_schema(struct json *j, struct lull_nvtx_domain *domain,
		       const struct lull_nvtx_schema_attr *a)
{
	struct layout layout = layout_of(domain, a);

	put_text(j, "[");
	for (size_t i = 0; i < a->n_entries && j->len < JSON_MAX; i++)
		put_entry(j, &layout, &a->entries[i], i == 0);
	put_text(j, "]");
}

static void put_enum(struct json *j, const struct lull_nvtx_enum_attr *a)
{
	put_text(j, "[");
	for (size_t i = 0; i < a->n_entries && j->len < JSON_MAX; i++) {
		const struct lull_nvtx_enum_entry *e = &a->entries[i];

		put_text(j, i ? ",{" : "{");
		put_string(j, "\"name\":", e->name ? e->name : "");
		put_number(j, ",\"value\":", e->value);
		put_text(j, e->is_flag ? ",\"flag\":true}" : "}");
	}
	put_text(j, "]");
}

/* The entry that holds the name of the event, if the schema has one that we can read. */
static struct lull_nvtx_message find_message(struct lull_nvtx_domain *domain,
					     const struct lull_nvtx_schema_attr *a)
{
	struct layout layout = layout_of(domain, a);

	for (size_t i = 0; i < a->n_entries; i++) {
		const struct lull_nvtx_entry *e = &a->entries[i];
		struct place place = place_entry(&layout, e, i == 0);
		bool is_text =
			e->type == LULL_NVTX_TYPE_cstring || e->type == LULL_NVTX_TYPE_cstring_utf8;
		u64 n_bytes = is_text ? entry_bytes(&layout, e, &place.n_bytes) : sizeof(void *);

		if (!(e->flags & LULL_NVTX_ENTRY_MESSAGE) || !place.has_off || !n_bytes)
			continue;
		if (is_text)
			return (struct lull_nvtx_message){
				.type = LULL_NVTX_TYPE_cstring,
				.n_bytes = place.n_bytes ? (u32)n_bytes : 0,
				.off = place.off,
			};
		if (e->type == LULL_NVTX_TYPE_registered_string)
			return (struct lull_nvtx_message){ .type = (u32)e->type, .off = place.off };
	}
	return (struct lull_nvtx_message){ 0 };
}

static void tell(struct lull_nvtx_domain *domain, const struct lull_nvtx_schema *s)
{
	struct lull_text domain_name = lull_nvtx_domain_name(domain);
	struct lull_thread *t = lull_thread();
	struct lull_wire_schema *e;
	u32 size_bytes = (u32)sizeof(*e) + lull_round8(s->json_bytes);

	if (!t)
		return;
	lull_nvtx_tell_text(t, &domain_name);
	if (s->name)
		lull_nvtx_tell_text(t, &s->name->text);
	e = lull_reserve(t, LULL_EVENT_schema, size_bytes);
	if (!e)
		return;
	e->head.a = s->json_bytes;
	e->schema_id = s->schema_id;
	e->domain = domain_name.hash;
	e->name = s->name ? s->name->text.hash : 0;
	e->size_bytes = s->size_bytes;
	e->kind = s->kind;
	e->pad = 0;
	memcpy(e + 1, s->json, s->json_bytes);
	lull_commit(t, size_bytes);
}

static void add(struct lull_nvtx_domain *domain, struct lull_nvtx_schema *s)
{
	const struct lull_nvtx_schema *old = lull_nvtx_schema_find(domain, s->schema_id);
	struct lull_nvtx_schema *head =
		atomic_load_explicit(&domain->schemas, memory_order_relaxed);

	/* Two libraries with one domain, or one library twice, may register the same. */
	if (old && old->json_bytes == s->json_bytes &&
	    memcmp(old->json, s->json, s->json_bytes) == 0)
		return;
	do {
		s->next = head;
		/* Release: whoever sees the schema sees it whole. */
	} while (!atomic_compare_exchange_weak_explicit(
		&domain->schemas, &head, s, memory_order_release, memory_order_relaxed));
	tell(domain, s);
}

static struct lull_nvtx_string *keep_name(const char *name)
{
	return name ? lull_nvtx_string(name, strlen(name)) : NULL;
}

static struct lull_nvtx_schema *take(size_t json_bytes)
{
	struct lull_nvtx_schema *s = lull_arena_take(sizeof(*s) + json_bytes);

	if (s)
		s->json_bytes = (u32)json_bytes;
	else
		lull_issue(LULL_ISSUE_nvtx_ignored, 1);
	return s;
}

const struct lull_nvtx_schema *lull_nvtx_schema_find(struct lull_nvtx_domain *domain, u64 schema_id)
{
	/* Acquire: pairs with the release in add(). */
	const struct lull_nvtx_schema *s =
		atomic_load_explicit(&domain->schemas, memory_order_acquire);

	while (s && s->schema_id != schema_id)
		s = s->next;
	return s;
}

u64 lull_nvtx_give_id(u64 wanted_id)
{
	if (wanted_id >= LULL_NVTX_ID_STATIC && wanted_id < LULL_NVTX_ID_DYNAMIC)
		return wanted_id;
	return LULL_NVTX_ID_DYNAMIC +
	       atomic_fetch_add_explicit(&schemas.n_ids, 1, memory_order_relaxed);
}

u64 lull_nvtx_schema_add(struct lull_nvtx_domain *domain, const struct lull_nvtx_schema_attr *attr)
{
	const u64 needed = LULL_NVTX_SCHEMA_HAS_ENTRIES | LULL_NVTX_SCHEMA_HAS_N_ENTRIES;
	struct json j = { 0 };
	struct lull_nvtx_schema *s;
	u64 schema_id;

	if (!attr || (attr->mask & needed) != needed || !attr->entries)
		return 0;
	schema_id = lull_nvtx_give_id(attr->mask & LULL_NVTX_SCHEMA_HAS_ID ? attr->schema_id : 0);
	put_schema(&j, domain, attr);
	s = take(j.len);
	if (!s)
		return schema_id;
	s->schema_id = schema_id;
	s->size_bytes = attr->mask & LULL_NVTX_SCHEMA_HAS_BYTES ? attr->size_bytes : 0;
	s->name = keep_name(attr->mask & LULL_NVTX_SCHEMA_HAS_NAME ? attr->name : NULL);
	s->kind =
		attr->mask & LULL_NVTX_SCHEMA_HAS_TYPE ? (u32)attr->type : LULL_NVTX_SCHEMA_STATIC;
	s->message = find_message(domain, attr);
	j = (struct json){ .at = s->json, .room = s->json_bytes };
	put_schema(&j, domain, attr);
	add(domain, s);
	return schema_id;
}

u64 lull_nvtx_enum_add(struct lull_nvtx_domain *domain, const struct lull_nvtx_enum_attr *attr)
{
	const u64 needed = LULL_NVTX_ENUM_HAS_ENTRIES | LULL_NVTX_ENUM_HAS_N_ENTRIES;
	struct json j = { 0 };
	struct lull_nvtx_schema *s;
	u64 schema_id;

	if (!attr || (attr->mask & needed) != needed || !attr->entries)
		return 0;
	schema_id = lull_nvtx_give_id(attr->mask & LULL_NVTX_ENUM_HAS_ID ? attr->schema_id : 0);
	put_enum(&j, attr);
	s = take(j.len);
	if (!s)
		return schema_id;
	s->schema_id = schema_id;
	s->size_bytes = attr->mask & LULL_NVTX_ENUM_HAS_BYTES ? attr->size_bytes : 0;
	s->name = keep_name(attr->mask & LULL_NVTX_ENUM_HAS_NAME ? attr->name : NULL);
	s->kind = KIND_ENUM;
	j = (struct json){ .at = s->json, .room = s->json_bytes };
	put_enum(&j, attr);
	add(domain, s);
	return schema_id;
}

LULL_AT_START void lull_nvtx_schema_repeat(struct lull_nvtx_domain *domain)
{
	const struct lull_nvtx_schema *s =
		atomic_load_explicit(&domain->schemas, memory_order_acquire);

	for (; s; s = s->next)
		tell(domain, s);
}
