/*
 * kmodel - counters of kernels that nobody ran, from what their code does: a model of a chip, small
 * enough to see through, for tests of verdicts.
 *
 * A kernel is a grid, a mix of instructions, bytes, and how it waits. The time is that of the
 * slowest part; what the parts did in that time are the counters. Numbers of the chip are those of
 * an H200.
 */
#ifndef LULL_TEST_UNIT_KMODEL_H
#define LULL_TEST_UNIT_KMODEL_H

#include <math.h>

#include "counter/judge.h"

#define KM_SMS	 132
#define KM_HZ	 1.98e9
#define KM_DRAM	 4.8e12 /* bytes a second */
#define KM_L2	 7.0e12
#define KM_HOST	 5.5e10
#define KM_START 2000 /* ns that every kernel takes */

struct kmodel {
	u32 blocks, threads, registers, shared_bytes;
	/* for each thread */
	f64 fp32, fp64, alu, xu,
		tensor_cycles; /* instructions; cycles of the tensor cores for a warp */
	f64 loads, stores;     /* accesses of `width` bytes to global memory */
	f64 width;	       /* bytes, default 4 */
	u32 stride;	       /* elements between lanes of a load, default 1 */
	u32 store_stride;
	f64 l1_hit, l2_hit; /* shares of what is loaded */
	f64 shared, ways;   /* accesses to shared memory, lanes on one bank */
	f64 local;	    /* accesses to local memory */
	f64 atomics;	    /* to one address */
	f64 host_share;	    /* of the loads, in the host's memory */
	f64 lanes;	    /* that an instruction works for, default 32 */
	f64 depth;	    /* dependent accesses to memory in a row, each a full latency */
	f64 barrier;	    /* share of the time that warps stand at barriers */
	f64 uneven;	    /* share of the time that the mean multiprocessor has no work */
};

/* Sectors that a warp touches with these strides: 32 lanes, 32-byte sectors. */
static inline f64 km_sectors(f64 width, u32 stride)
{
	f64 span = 32 * width * stride / 32;

	return fmin(32 * fmax(1, width / 32), span);
}

static inline f64 km_max(f64 a, f64 b)
{
	return a > b ? a : b;
}

/* Times of the parts in ns. */
struct km_times {
	f64 dram, l2, l1, host, atomic, pipes, issue, latency, all;
	f64 wanted, touched, dram_bytes, l2_bytes;
	f64 warps_at_once, insts;
};

static inline void km_bytes(const struct kmodel *m, f64 n_warps, struct km_times *t)
{
	f64 ld = n_warps * m->loads * km_sectors(m->width, m->stride) * 32;
	f64 st = n_warps * m->stores * km_sectors(m->width, m->store_stride) * 32;
	f64 local = n_warps * m->local * 128;

	t->wanted = n_warps * (m->loads + m->stores) * 32 * m->width;
	t->touched = ld + st;
	t->l2_bytes = (ld * (1 - m->l1_hit)) * (1 - m->host_share) + st + local * 0.5;
	t->dram_bytes = t->l2_bytes * (1 - m->l2_hit);
	t->dram = t->dram_bytes / KM_DRAM * 1e9;
	t->l2 = t->l2_bytes / KM_L2 * 1e9;
	t->host = ld * m->host_share / KM_HOST * 1e9;
}

static inline void km_times(const struct kmodel *m, const struct lull_profile *p,
			    struct km_times *t)
{
	f64 n_warps = (f64)m->blocks * ceil(m->threads / 32.0);
	f64 sms = fmin(KM_SMS, m->blocks) * (1 - m->uneven);
	f64 widen = 32 / m->lanes, cycle = 1e9 / KM_HZ;

	*t = (struct km_times){ 0 };
	km_bytes(m, n_warps, t);
	t->insts = n_warps * widen *
		   (m->fp32 + m->fp64 + m->alu + m->xu + m->loads + m->stores + m->shared +
		    m->local + m->atomics + 4);
	/* Warp instructions a cycle and multiprocessor: 4 fp32, 2 integer, 2 fp64, 0.5 special. */
	t->pipes = n_warps * widen / sms * cycle *
		   km_max(km_max(m->fp32 / 4, m->alu / 2), km_max(m->fp64 / 2, m->xu / 0.5));
	t->pipes = km_max(t->pipes, n_warps * m->tensor_cycles / 4 / sms * cycle);
	t->issue = t->insts / 4 / sms * cycle;
	t->l1 = cycle / sms *
		(n_warps * m->shared * m->ways + t->touched / 128 + n_warps * m->local);
	t->atomic = n_warps * m->atomics * 1.2; /* one a ns or so on one address */
	t->warps_at_once = fmin(p->occupancy.n_warps, ceil(n_warps / KM_SMS));
	/* 700 ns for each dependent access, all warps of a multiprocessor beside each other. */
	t->latency = m->depth * 700 * ceil(n_warps / KM_SMS / km_max(1, t->warps_at_once));
	t->all = KM_START + km_max(km_max(km_max(t->dram, t->l2) / 0.92, t->host),
				   km_max(km_max(t->l1, t->atomic),
					  km_max(km_max(t->pipes, t->issue) / 0.97, t->latency)));
	if (m->barrier > 0)
		t->all += m->barrier / (1 - m->barrier) * t->all;
}

#define KM_SET(key, x) (p->metrics[LULL_K_##key] = (x))

static inline void km_loads(const struct kmodel *m, const struct km_times *t,
			    struct lull_profile *p)
{
	f64 n_warps = (f64)m->blocks * ceil(m->threads / 32.0), widen = 32 / m->lanes;
	f64 sms = fmin(KM_SMS, m->blocks), busy = 100 / t->all, active = t->all - KM_START;
	f64 scale = 100 * widen * n_warps / KM_SMS / active * 1e9 / KM_HZ;

	KM_SET(dram_throughput, t->dram * busy);
	KM_SET(l2_throughput, t->l2 * busy);
	KM_SET(l1_throughput, 100 * t->l1 / active * sms / KM_SMS);
	KM_SET(memory_throughput, km_max(km_max(t->dram, t->l2), t->l1 * sms / KM_SMS) * busy);
	KM_SET(sm_throughput, km_max(t->pipes, t->issue) * busy * sms / KM_SMS);
	KM_SET(sm_active, 100 * active / t->all * sms / KM_SMS * (1 - m->uneven));
	KM_SET(sm_cycles, t->all * KM_HZ / 1e9);
	KM_SET(sm_active_max, active * KM_HZ / 1e9);
	KM_SET(sm_active_cycles, active * KM_HZ / 1e9 * sms / KM_SMS * (1 - m->uneven));
	KM_SET(pipe_fma, fmin(100, scale * m->fp32 / 4));
	KM_SET(pipe_alu, fmin(100, scale * m->alu / 2));
	KM_SET(pipe_fp64, fmin(100, scale * m->fp64 / 2));
	KM_SET(pipe_xu, fmin(100, scale * m->xu * 2));
	KM_SET(cycles_tensor,
	       fmin(100, 100 * n_warps * m->tensor_cycles / 4 / KM_SMS / active * 1e9 / KM_HZ));
	KM_SET(issue_active, fmin(1, t->issue / active));
	KM_SET(occupancy, 100 * t->warps_at_once / 64 * (m->uneven > 0 ? 1 - m->uneven : 1));
}

static inline void km_counts(const struct kmodel *m, const struct km_times *t,
			     struct lull_profile *p)
{
	f64 n_warps = (f64)m->blocks * ceil(m->threads / 32.0);
	f64 ld = km_sectors(m->width, m->stride), st = km_sectors(m->width, m->store_stride);

	KM_SET(inst_executed, t->insts);
	KM_SET(threads_on_per_inst, m->lanes);
	KM_SET(ld_requests, n_warps * m->loads);
	KM_SET(ld_sectors, n_warps * m->loads * ld);
	KM_SET(st_requests, n_warps * m->stores);
	KM_SET(st_sectors, n_warps * m->stores * st);
	KM_SET(ld_bytes_per_sector, m->loads > 0 ? m->width * 32 / ld : 0);
	KM_SET(st_bytes_per_sector, m->stores > 0 ? m->width * 32 / st : 0);
	KM_SET(l1_hit, 100 * m->l1_hit);
	KM_SET(l2_hit, 100 * m->l2_hit);
	KM_SET(dram_bytes, t->dram_bytes);
	KM_SET(l2_bytes, t->l2_bytes);
	KM_SET(l1_bytes, t->touched);
	KM_SET(l2_sectors, t->touched / 32);
	KM_SET(l2_sectors_host, n_warps * m->loads * ld * m->host_share);
	KM_SET(host_rd_sectors, n_warps * m->loads * ld * m->host_share);
	KM_SET(host_wr_sectors, 0);
	KM_SET(local_ld_inst, n_warps * m->local / 2);
	KM_SET(local_st_inst, n_warps * m->local / 2);
	KM_SET(atom_requests, 0);
	KM_SET(red_requests, n_warps * m->atomics);
	KM_SET(l2_atomic_max, fmin(100, 100 * t->atomic / t->all));
	KM_SET(l2_atomic, fmin(100, 100 * t->atomic / t->all) / 96);
	KM_SET(shared_wavefronts, n_warps * (m->shared * m->ways + 1));
	KM_SET(shared_conflicts, n_warps * m->shared * (m->ways - 1));
}

/* Warps for each issued instruction, divided among what they wait for. */
static inline void km_stalls(const struct kmodel *m, const struct km_times *t,
			     struct lull_profile *p)
{
	f64 all = km_max(1.5, t->warps_at_once / 4 / km_max(1e-4, p->metrics[LULL_K_issue_active]));
	f64 left = all - 1, barrier = m->barrier * left, rest = left - barrier;
	bool is_memory = km_max(km_max(t->dram, t->l2), km_max(t->latency, t->host)) >
			 km_max(t->pipes, t->issue);

	for (int i = 0; i < LULL_N_STALLS; i++)
		p->metrics[lull_stalls[i].metric] = 0;
	KM_SET(stall_selected, 1);
	KM_SET(stall_barrier, barrier);
	if (t->atomic >= t->all / 2)
		KM_SET(stall_lg_throttle, rest);
	else if (t->l1 > km_max(t->pipes, km_max(t->dram, t->latency)))
		KM_SET(stall_mio_throttle, rest);
	else if (is_memory || m->local > 0)
		KM_SET(stall_long_scoreboard, rest * 0.9), KM_SET(stall_wait, rest * 0.1);
	else
		KM_SET(stall_math_pipe_throttle, rest * 0.5),
			KM_SET(stall_not_selected, rest * 0.5);
	KM_SET(warp_latency, all);
}

/* The kernel's counters; release with lull_profile_release(). */
static inline void km_run(struct kmodel m, struct lull_profile *p)
{
	struct km_times t;

	m.width = m.width > 0 ? m.width : 4;
	m.stride = m.stride ? m.stride : 1;
	m.store_stride = m.store_stride ? m.store_stride : 1;
	m.ways = m.ways > 0 ? m.ways : 1;
	m.lanes = m.lanes > 0 ? m.lanes : 32;
	m.registers = m.registers ? m.registers : 32;
	lull_profile_init(p);
	p->name = "modelled";
	p->device = (struct lull_device_row){ .capability = 90, .n_sms = KM_SMS };
	p->launch = (struct lull_launch_row){ .grid_x = m.blocks,
					      .grid_y = 1,
					      .grid_z = 1,
					      .block_x = m.threads,
					      .block_y = 1,
					      .block_z = 1,
					      .registers = m.registers,
					      .dynamic_shared_bytes = m.shared_bytes };
	lull_profile_settle(p);
	km_times(&m, p, &t);
	p->dur_ns = (u64)t.all;
	km_loads(&m, &t, p);
	km_counts(&m, &t, p);
	km_stalls(&m, &t, p);
}

#endif
