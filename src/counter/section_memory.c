/*
 * memory: what moved between the levels, how much of it caches held, how well it was packed.
 */
#include "counter/section.h"

static const struct lull_sheet_row traffic[] = {
	{ LULL_K_dram_rate, "DRAM bandwidth" },	 { LULL_K_dram_throughput, "  of its peak" },
	{ LULL_K_dram_read_bytes, "DRAM read" }, { LULL_K_dram_write_bytes, "DRAM written" },
	{ LULL_K_l2_bytes, "L2 traffic" },	 { LULL_K_l2_hit, "L2 hit rate" },
	{ LULL_K_l1_bytes, "L1 traffic" },	 { LULL_K_l1_hit, "L1 hit rate" },
};

/* Shown where the kernel does such things. */
static const struct lull_sheet_row packing[] = {
	{ LULL_K_sectors_per_load, "Sectors per load" },
	{ LULL_K_sectors_per_store, "Sectors per store" },
	{ LULL_K_packing, "Bytes used of those touched" },
	{ LULL_K_local_sectors, "Local memory sectors" },
	{ LULL_K_local_share, "Local loads and stores" },
	{ LULL_K_atomic_share, "Atomics of all accesses" },
	{ LULL_K_l2_atomic_max, "Busiest atomic unit" },
	{ LULL_K_l2_sectors_peer, "Sectors of other devices" },
	{ LULL_K_tma_bytes, "Loaded by TMA" },
	{ LULL_K_dshared_sectors, "Cluster shared sectors" },
};

static const struct lull_sheet_row shared[] = {
	{ LULL_K_shared_load, "Shared memory busy" },
	{ LULL_K_shared_wavefronts, "Shared memory turns" },
	{ LULL_K_conflict_share, "  for bank conflicts" },
};

/* Every kernel reads parameters from the host's memory and takes turns of shared memory. */
#define HOST_RATE   5e9
#define SHARED_LOAD 1

static const struct lull_sheet_row host = { LULL_K_host_rate, "Host memory traffic" };

static void run(const struct lull_profile *p, struct lull_sheet *to)
{
	lull_sheet_rows(to, p, traffic, LULL_COUNT_OF(traffic));
	for (size_t i = 0; i < LULL_COUNT_OF(packing); i++)
		if (lull_k_of(p, packing[i].k) > 0)
			lull_sheet_rows(to, p, &packing[i], 1);
	if (lull_k_of(p, LULL_K_shared_load) >= SHARED_LOAD)
		lull_sheet_rows(to, p, shared, LULL_COUNT_OF(shared));
	if (lull_k_of(p, LULL_K_host_rate) >= HOST_RATE)
		lull_sheet_rows(to, p, &host, 1);
}

const struct lull_section lull_section_memory = {
	.name = "memory",
	.title = "Memory Workload",
	.what = "what moved between the levels, hit rates, packing of accesses",
	.run = run,
};
