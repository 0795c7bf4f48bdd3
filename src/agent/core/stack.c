#include "agent/core/stack.h"

#include "agent/core/sys.h"

#define PAGE_BYTES \
	4096u /* the smallest page there is; larger ones are asked for more often than needed */

static bool is_refused;

/* Eight bytes wherever they lie, read as the compiler finds them. */
typedef u64 word __attribute__((aligned(1), may_alias));

/*
 * rt_sigprocmask copies the new set before it looks at `how`: with a senseless `how` it changes
 * nothing and says EFAULT where memory is not readable, EINVAL where it is. Unlike process_vm_readv
 * no sandbox forbids it.
 */
static bool is_readable(u64 addr)
{
	return syscall(SYS_rt_sigprocmask, -1, addr, NULL, sizeof(u64)) == -1 && errno == EINVAL;
}

/*
 * Not memcpy: a program built with AddressSanitizer brings its own, which takes the gaps between
 * another function's variables for an error of the program.
 */
static void copy_words(void *to, u64 from_addr, u32 n_bytes)
{
	word *dst = to;
	const volatile word *src = (const volatile word *)from_addr;

	for (u32 i = 0; i < n_bytes / sizeof(word); i++)
		dst[i] = src[i];
}

/* Whether the word lies in the page of a variable of a function that runs: that is there. */
static bool is_beside(u64 addr, u64 own_addr)
{
	return addr / PAGE_BYTES == own_addr / PAGE_BYTES &&
	       (addr + sizeof(word) - 1) / PAGE_BYTES == own_addr / PAGE_BYTES;
}

static u32 copy(void *to, u64 from_addr, u32 n_bytes, u64 own_addr)
{
	u32 n = 0;

	while (!is_refused && n < n_bytes &&
	       (is_beside(from_addr + n, own_addr) || is_readable(from_addr + n))) {
		u32 in_page = PAGE_BYTES - (u32)((from_addr + n) % PAGE_BYTES);
		u32 piece = in_page < n_bytes - n ? in_page : n_bytes - n;

		/* A word across the border needs the next page, too: leave it to the next round. */
		piece &= ~7u;
		if (!piece)
			piece = 8;
		copy_words((u8 *)to + n, from_addr + n, piece);
		n += piece;
	}
	return n;
}

u32 lull_stack_copy(void *to, u64 from_addr, u32 n_bytes)
{
	return copy(to, from_addr, n_bytes, (u64)&n_bytes);
}

void lull_stack_refuse(void)
{
	is_refused = true;
}

void lull_stack_emit(struct lull_thread *t, const struct lull_event *e,
		     const struct lull_wire_regs *regs, u32 max_bytes)
{
	u32 wanted = is_refused ? 0 : max_bytes;
	u32 room = (wanted < LULL_STACK_MAX ? wanted : LULL_STACK_MAX) & ~7u;
	u32 before = room ? (u32)sizeof(struct lull_wire_stack) : 0;
	struct lull_wire_stack *s =
		lull_reserve_at(t, LULL_EVENT_stack, before + room + e->size_bytes, e->counter);
	struct lull_event *own;

	if (!s)
		return;
	if (room) {
		s->regs = *regs;
		s->head.a = copy(s + 1, regs->sp, room, (u64)&own);
		before += s->head.a;
		s->head.size_bytes = (u16)before;
	}
	own = (struct lull_event *)((u8 *)s + before);
	memcpy(own, e, e->size_bytes);
	if (before)
		own->a |= LULL_HAS_STACK;
	lull_commit(t, before + e->size_bytes);
}
