/*
 * torch_memory - allocations and releases of PyTorch's caching allocator.
 *
 * The allocator calls c10::reportMemoryUsageToProfiler() for each block, whether a profiler is
 * active or not. The agent comes before libc10 in the symbol order, so it receives that call, and
 * forwards it to libc10. Its two totals are signed in older versions (1.13), which gives
 * the same function another mangled name.
 */
#include "agent/core/loaded.h"
#include "agent/python/python_stack.h"
#include "agent/core/real.h"
#include "agent/core/ring.h"

#define NAME	    "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"
#define NAME_SIGNED "_ZN3c1027reportMemoryUsageToProfilerEPvlllNS_6DeviceE"
#define DEVICE_CUDA 1 /* c10::DeviceType::CUDA */

/* c10::Device */
struct device {
	signed char type;
	signed char index;
};

typedef void report_fn(void *at, i64 size_bytes, size_t allocated_bytes, size_t reserved_bytes,
		       struct device device);

report_fn lull_torch_report __asm__(NAME) LULL_EXPORT;
report_fn lull_torch_report_signed __asm__(NAME_SIGNED) LULL_EXPORT;

/* Where there is none. */
static void nowhere(void *at, i64 size_bytes, size_t allocated_bytes, size_t reserved_bytes,
		    struct device device)
{
	(void)at;
	(void)size_bytes;
	(void)allocated_bytes;
	(void)reserved_bytes;
	(void)device;
}

static report_fn *_Atomic real;

static int visit(struct dl_phdr_info *file, size_t size, void *found)
{
	const ElfW(Sym) *symbol = lull_loaded_symbol(file, NAME);
	u64 at;

	if (!symbol)
		symbol = lull_loaded_symbol(file, NAME_SIGNED);
	at = symbol ? file->dlpi_addr + symbol->st_value : 0;
	(void)size;
	if (!at || at == (u64)lull_torch_report || at == (u64)lull_torch_report_signed)
		return 0;
	*(u64 *)found = at;
	return 1;
}

/* That of libc10, which is there before anybody calls it. */
static report_fn *find_real(void)
{
	report_fn *known = atomic_load_explicit(&real, memory_order_relaxed);
	u64 found = 0;

	if (known)
		return known;
	if (!lull_loaded_walk(visit, &found))
		return nowhere;
	known = found ? (report_fn *)found : nowhere;
	atomic_store_explicit(&real, known, memory_order_relaxed);
	return known;
}

static void emit(const void *at, i64 size_bytes, size_t allocated_bytes, size_t reserved_bytes,
		 struct device device)
{
	struct lull_thread *t = lull_recording();
	bool is_in_operator = t && t->torch.n_open && t->torch.ops[t->torch.n_open - 1].n_operators;
	u64 stack = t && !is_in_operator && size_bytes > 0 ? lull_python_stack(t) : 0;
	struct lull_wire_alloc *e;

	e = t ? lull_reserve(t, LULL_EVENT_alloc, sizeof(*e)) : NULL;
	if (!e)
		return;
	e->head.a = (device.type == DEVICE_CUDA ? 1u : 0u) | (u32)(u8)device.index << 8;
	e->address = (u64)at;
	e->size_bytes = size_bytes;
	e->allocated_bytes = allocated_bytes;
	e->reserved_bytes = reserved_bytes;
	e->stack = stack;
	lull_commit(t, sizeof(*e));
}

static void report(void *at, i64 size_bytes, size_t allocated_bytes, size_t reserved_bytes,
		   struct device device)
{
	report_fn *next = find_real();

	if (lull_agent.control->sources & LULL_SOURCE_TORCH_MEMORY)
		emit(at, size_bytes, allocated_bytes, reserved_bytes, device);
	next(at, size_bytes, allocated_bytes, reserved_bytes, device);
}

void lull_torch_report(void *at, i64 size_bytes, size_t allocated_bytes, size_t reserved_bytes,
		       struct device device)
{
	report(at, size_bytes, allocated_bytes, reserved_bytes, device);
}

void lull_torch_report_signed(void *at, i64 size_bytes, size_t allocated_bytes,
			      size_t reserved_bytes, struct device device)
{
	report(at, size_bytes, allocated_bytes, reserved_bytes, device);
}
