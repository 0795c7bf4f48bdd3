#include "agent/counters/kpc.h"

#include <stdatomic.h>
#include <string.h>

#include "agent/cuda/cupti.h"
#include "agent/core/sys.h"

/*
 * Every 2^12 cycles: a kernel of 100 us gives some 40 samples on each multiprocessor, one of 20 ms
 * a million in all, which still fits.
 */
#define PERIOD_LOG2    12u
#define SCRATCH_BYTES  ((u64)8 << 20)
#define HARDWARE_BYTES ((u64)128 << 20)

#define N_MODULES	 4096u
#define MAX_MODULE_BYTES ((u64)512 << 20)

static struct {
	bool has_tried, is_there;
#define PC_CALL(name, params) int (*name)(struct lull_pc_##params *);
#include "wire/cuprof.def"
#undef PC_CALL
} api;

static struct {
	_Atomic u32 n;
	_Atomic u64 used_bytes;
	struct module {
		u64 crc;
		const void *cubin;
		size_t size_bytes;
	} at[N_MODULES];
} modules;

static bool load(void)
{
	if (api.has_tried)
		return api.is_there;
	api.has_tried = api.is_there = true;
#define PC_CALL(name, params)                         \
	*(void **)&api.name = lull_cupti_find(#name); \
	api.is_there = api.is_there && api.name;
#include "wire/cuprof.def"
#undef PC_CALL
	return api.is_there;
}

static bool ask_reasons(struct lull_kpc *p)
{
	struct lull_pc_n_reasons count = LULL_PC_NEW(n_reasons);
	struct lull_pc_reasons reasons = LULL_PC_NEW(reasons);
	char *names[LULL_KPC_MAX_REASONS];
	size_t n = 0;

	count.context = reasons.context = p->context;
	count.n = &n;
	LULL_TRY(cuptiPCSamplingGetNumStallReasons, &count);
	if (n > LULL_KPC_MAX_REASONS)
		n = LULL_KPC_MAX_REASONS;
	for (size_t i = 0; i < n; i++)
		names[i] = p->names[i];
	reasons.n = p->n_reasons = n;
	reasons.indices = p->indices;
	reasons.names = names;
	LULL_TRY(cuptiPCSamplingGetStallReasons, &reasons);
	return true;
}

static void set_up_data(struct lull_kpc *p, struct lull_pc_data *data, u32 ix)
{
	*data = LULL_PC_NEW(data);
	/* Theirs is padded to 8 bytes. */
	data->struct_bytes = sizeof(*data);
	data->n_room = LULL_KPC_MAX_PCS;
	data->pcs = p->pcs[ix];
	for (u32 i = 0; i < LULL_KPC_MAX_PCS; i++) {
		p->pcs[ix][i] = (struct lull_pc_pc){ .struct_bytes = sizeof(struct lull_pc_pc),
						     .stalls = p->stalls[ix][i] };
		memset(p->stalls[ix][i], 0, sizeof(p->stalls[ix][i]));
	}
}

static bool configure(struct lull_kpc *p)
{
	struct lull_pc_attribute attributes[] = {
		{ .type = LULL_PC_MODE, .value.number = LULL_PC_MODE_SERIALIZED },
		{ .type = LULL_PC_PERIOD, .value.number = PERIOD_LOG2 },
		{ .type = LULL_PC_REASONS, .value.list = { p->n_reasons, p->indices } },
		{ .type = LULL_PC_SCRATCH_BYTES, .value.number = SCRATCH_BYTES },
		{ .type = LULL_PC_HARDWARE_BYTES, .value.number = HARDWARE_BYTES },
		{ .type = LULL_PC_START_STOP, .value.number = 1 },
		{ .type = LULL_PC_FORMAT, .value.number = 1 },
		{ .type = LULL_PC_BUFFER, .value.address = &p->buffer },
	};
	struct lull_pc_config config = LULL_PC_NEW(config);

	config.context = p->context;
	config.n = LULL_COUNT_OF(attributes);
	config.attributes = attributes;
	LULL_TRY(cuptiPCSamplingSetConfigurationAttribute, &config);
	return true;
}

struct lull_kpc *lull_kpc_open(void *context)
{
	struct lull_kpc *p = lull_sys_map(sizeof(*p), MAP_PRIVATE | MAP_ANONYMOUS, -1);

	if (!p)
		return NULL;
	p->context = context;
	if (!load())
		lull_refuse(&p->refused, "CUPTI without PC sampling", -1);
	return p;
}

bool lull_kpc_start(struct lull_kpc *p)
{
	struct lull_pc_context context = LULL_PC_NEW(context);

	if (p->refused.error)
		return false;
	set_up_data(p, &p->data, 0);
	set_up_data(p, &p->buffer, 1);
	context.context = p->context;
	LULL_TRY(cuptiPCSamplingEnable, &context);
	if ((p->n_reasons || ask_reasons(p)) && configure(p)) {
		LULL_TRY(cuptiPCSamplingStart, &context);
		return true;
	}
	api.cuptiPCSamplingDisable(&context);
	return false;
}

bool lull_kpc_stop(struct lull_kpc *p)
{
	struct lull_pc_context context = LULL_PC_NEW(context);
	struct lull_pc_get get = LULL_PC_NEW(get);
	int rc;

	context.context = get.context = p->context;
	get.data = &p->data;
	LULL_TRY(cuptiPCSamplingStop, &context);
	rc = api.cuptiPCSamplingGetData(&get);
	api.cuptiPCSamplingDisable(&context);
	/* A short kernel's samples are in the buffer that CUPTI fills itself. */
	if (!p->data.n_pcs && p->buffer.n_pcs)
		p->data = p->buffer;
	return rc == 0 || p->data.n_pcs || lull_refuse(&p->refused, "cuptiPCSamplingGetData", rc);
}

const char *lull_kpc_reason(const struct lull_kpc *p, u32 reason_ix)
{
	for (size_t i = 0; i < p->n_reasons; i++)
		if (p->indices[i] == reason_ix)
			return p->names[i];
	return "";
}

void lull_kpc_module(const void *cubin, size_t size_bytes)
{
	struct lull_pc_crc crc = LULL_PC_NEW(crc);
	u32 ix;
	void *copy;

	if (!cubin || !size_bytes || !load() ||
	    atomic_fetch_add(&modules.used_bytes, size_bytes) > MAX_MODULE_BYTES)
		return;
	crc.cubin = cubin;
	crc.cubin_bytes = size_bytes;
	copy = lull_sys_map(size_bytes, MAP_PRIVATE | MAP_ANONYMOUS, -1);
	if (!copy || api.cuptiGetCubinCrc(&crc) != 0)
		return;
	memcpy(copy, cubin, size_bytes);
	ix = atomic_fetch_add(&modules.n, 1);
	if (ix < N_MODULES)
		modules.at[ix] = (struct module){ crc.crc, copy, size_bytes };
}

bool lull_kpc_line(const struct lull_pc_pc *pc, struct lull_pc_source *source)
{
	u32 n = atomic_load(&modules.n);

	for (u32 i = 0; i < n && i < N_MODULES; i++) {
		const struct module *m = &modules.at[i];

		if (m->crc != pc->cubin_crc)
			continue;
		*source = LULL_PC_NEW(source);
		source->cubin = m->cubin;
		source->cubin_bytes = m->size_bytes;
		source->function = pc->function;
		source->pc_offset = pc->pc_offset;
		/*
		 * The names are from the host's allocator, which we do not use; they stay, some
		 * hundred KiB for a kernel of thousands of instructions.
		 */
		return api.cuptiGetSassToSourceCorrelation(source) == 0 && source->file;
	}
	return false;
}
