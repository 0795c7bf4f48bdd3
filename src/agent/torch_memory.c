/*
 * torch_memory - what PyTorch's caching allocator gives out and takes back.
 *
 * The allocator tells c10::reportMemoryUsageToProfiler() of each block, whether a profiler is there
 * or not. We are in front of libc10 in the order of symbols, so that call comes to us; it goes on
 * to libc10 as if we were not there. The signature is that of 1.11 and later.
 */
#include "agent/elf.h"
#include "agent/real.h"
#include "agent/ring.h"

#define SYMBOL	    "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"
#define DEVICE_CUDA 1 /* c10::DeviceType::CUDA */

/* c10::Device */
struct device {
	signed char type;
	signed char index;
};

typedef void report_fn(void *at, i64 size_bytes, size_t allocated_bytes, size_t reserved_bytes,
		       struct device device);

report_fn lull_torch_report __asm__(SYMBOL) LULL_EXPORT;

static report_fn *_Atomic real;

static int visit(struct dl_phdr_info *file, size_t size, void *found)
{
	const ElfW(Sym) *symbol = lull_elf_symbol(file, SYMBOL);
	u64 at = symbol ? file->dlpi_addr + symbol->st_value : 0;

	(void)size;
	if (!at || at == (u64)lull_torch_report)
		return 0;
	*(u64 *)found = at;
	return 1;
}

static report_fn *find_real(void)
{
	report_fn *known = atomic_load_explicit(&real, memory_order_relaxed);
	u64 found = 0;

	if (known)
		return known;
	lull_elf_walk(visit, &found);
	known = (report_fn *)found;
	atomic_store_explicit(&real, known, memory_order_relaxed);
	return known;
}

static void emit(const void *at, i64 size_bytes, size_t allocated_bytes, size_t reserved_bytes,
		 struct device device)
{
	struct lull_thread *t = lull_recording();
	struct lull_wire_alloc *e;

	e = t ? lull_reserve(t, LULL_EVENT_alloc, sizeof(*e)) : NULL;
	if (!e)
		return;
	e->head.a = (device.type == DEVICE_CUDA ? 1u : 0u) | (u32)(u8)device.index << 8;
	e->address = (u64)at;
	e->size_bytes = size_bytes;
	e->allocated_bytes = allocated_bytes;
	e->reserved_bytes = reserved_bytes;
	lull_commit(t, sizeof(*e));
}

void lull_torch_report(void *at, i64 size_bytes, size_t allocated_bytes, size_t reserved_bytes,
		       struct device device)
{
	report_fn *next = find_real();

	if (lull_agent.control->sources & LULL_SOURCE_TORCH_MEMORY)
		emit(at, size_bytes, allocated_bytes, reserved_bytes, device);
	if (next)
		next(at, size_bytes, allocated_bytes, reserved_bytes, device);
}
