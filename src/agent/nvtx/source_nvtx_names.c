/*
 * nvtx names: domains, registered strings and categories.
 *
 * Handles are addresses in the agent's arena. Nothing here is ever freed or moved, so lists and
 * tables grow by compare-and-swap alone: a reader sees an entry whole or not at all, and a thread
 * that is interrupted anywhere, also by a fork, blocks nobody. Racing registrations of one text may
 * keep it twice; that costs memory only.
 */
#include "agent/nvtx/nvtx_int.h"

#include "agent/core/arena.h"

#define N_BUCKETS 4096u

/* Domain indices are 16 bits in an event; so many domains are a leak of the program. */
#define N_DOMAINS 1024u

static struct {
	_Atomic(struct lull_nvtx_domain *) domains[N_DOMAINS]; /* entry i has index i + 1 */
	_Atomic(struct lull_nvtx_string *) strings[N_BUCKETS];
} names;

/* What each start looks at. */
static LULL_EARLY struct lull_nvtx_domain default_domain;
static LULL_EARLY _Atomic u32 has_domains; /* other ones */

/* UTF-8 of one character in `to`, which has room for 4; the number of bytes. */
static size_t encode(u32 c, u8 *to)
{
	static const u8 lead[] = { 0, 0x00, 0xc0, 0xe0, 0xf0 };
	size_t n;

	if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		c = 0xfffd; /* not a character: the replacement sign */
	n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
	for (size_t i = n; i-- > 1; c >>= 6)
		to[i] = (u8)(0x80 | (c & 0x3f));
	to[0] = (u8)(lead[n] | c);
	return n;
}

size_t lull_nvtx_narrow(const wchar_t *from, char *to, size_t room)
{
	size_t len = 0;

	for (; from && *from && len + 4 <= room; from++)
		len += encode((u32)*from, (u8 *)to + len);
	return len;
}

struct lull_nvtx_string *lull_nvtx_string(const char *bytes, size_t len)
{
	struct lull_text text = lull_text(bytes, len);
	_Atomic(struct lull_nvtx_string *) *bucket = &names.strings[text.hash % N_BUCKETS];
	/* Acquire: whoever sees an entry sees its text. */
	struct lull_nvtx_string *head = atomic_load_explicit(bucket, memory_order_acquire), *s;

	if (!len)
		return NULL;
	for (s = head; s; s = s->next)
		if (s->text.hash == text.hash)
			return s;
	s = lull_arena_take(sizeof(*s) + len + 1);
	if (!s) {
		lull_issue(LULL_ISSUE_nvtx_ignored, 1);
		return NULL;
	}
	memcpy(s->bytes, bytes, len);
	s->text = (struct lull_text){ .hash = text.hash, .bytes = s->bytes, .len = len };
	do {
		s->next = head;
	} while (!atomic_compare_exchange_weak_explicit(bucket, &head, s, memory_order_release,
							memory_order_relaxed));
	return s;
}

struct lull_nvtx_domain *lull_nvtx_domain(struct lull_nvtx_domain *handle)
{
	return lull_arena_owns(handle) ? handle : &default_domain;
}

struct lull_nvtx_domain *lull_nvtx_domain_add(const char *bytes, size_t len)
{
	struct lull_nvtx_string *name = lull_nvtx_string(bytes, len);
	struct lull_nvtx_domain *fresh = NULL;

	for (u32 i = 0; name && i < N_DOMAINS; i++) {
		struct lull_nvtx_domain *found =
			atomic_load_explicit(&names.domains[i], memory_order_acquire);

		if (!found) {
			fresh = fresh ? fresh : lull_arena_take(sizeof(*fresh));
			if (!fresh)
				break;
			fresh->name = name;
			fresh->ix = i + 1;
			atomic_store(&has_domains, 1);
			/* Release: whoever sees the domain sees its name and index. */
			if (atomic_compare_exchange_strong_explicit(&names.domains[i], &found,
								    fresh, memory_order_release,
								    memory_order_acquire))
				return fresh;
		}
		if (found->name->text.hash == name->text.hash)
			return found;
	}
	if (name)
		lull_issue(LULL_ISSUE_nvtx_ignored, 1);
	return NULL;
}

LULL_AT_START struct lull_nvtx_domain *lull_nvtx_domain_at(u32 ix)
{
	if (!ix)
		return &default_domain;
	return ix <= N_DOMAINS && atomic_load(&has_domains)
		       ? atomic_load_explicit(&names.domains[ix - 1], memory_order_acquire)
		       : NULL;
}

struct lull_text lull_nvtx_domain_name(const struct lull_nvtx_domain *domain)
{
	return domain->name ? domain->name->text : (struct lull_text){ 0 };
}

void lull_nvtx_tell_text(struct lull_thread *t, const struct lull_text *text)
{
	/*
	 * Not lull_name(): outside a recording nobody has reset what the thread remembers.
	 */
	if (text->hash)
		lull_define_string(t, text->hash, text->bytes, text->len);
}

static void tell_category(const struct lull_nvtx_domain *domain,
			  struct lull_nvtx_category *category)
{
	struct lull_text domain_name = lull_nvtx_domain_name(domain);
	const struct lull_nvtx_string *name = atomic_load(&category->name);
	struct lull_thread *t = lull_thread();
	struct lull_wire_category *e;

	if (!t)
		return;
	lull_nvtx_tell_text(t, &domain_name);
	lull_nvtx_tell_text(t, &name->text);
	e = lull_reserve(t, LULL_EVENT_category, sizeof(*e));
	if (!e)
		return;
	e->head.a = category->number;
	e->domain = domain_name.hash;
	e->name = name->text.hash;
	lull_commit(t, sizeof(*e));
}

void lull_nvtx_category_add(struct lull_nvtx_domain *domain, u32 number, const char *bytes,
			    size_t len)
{
	struct lull_nvtx_category *head =
		atomic_load_explicit(&domain->categories, memory_order_acquire);
	struct lull_nvtx_category *c = head;
	struct lull_nvtx_string *name = lull_nvtx_string(bytes, len);

	if (!name)
		return;
	while (c && c->number != number)
		c = c->next;
	if (c) {
		if (atomic_exchange(&c->name, name) == name)
			return;
	} else {
		c = lull_arena_take(sizeof(*c));
		if (!c)
			return;
		c->number = number;
		atomic_init(&c->name, name);
		do {
			c->next = head;
		} while (!atomic_compare_exchange_weak_explicit(
			&domain->categories, &head, c, memory_order_release, memory_order_relaxed));
	}
	tell_category(domain, c);
}

LULL_AT_START void lull_nvtx_category_repeat(struct lull_nvtx_domain *domain)
{
	struct lull_nvtx_category *c =
		atomic_load_explicit(&domain->categories, memory_order_acquire);

	for (; c; c = c->next)
		tell_category(domain, c);
}
