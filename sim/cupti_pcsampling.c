/*
 * cupti_pcsampling - samples of the program counter, as CUPTI gives them: two instructions of the
 * kernel that was launched between Start and Stop, with numbers that do not change. The real one
 * tells each sample twice where no other warp issued; so does this.
 */
#include "cupti_int.h"

#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "wire/cuprof.h"

/* Samples that a kernel gives; the test knows them. */
enum { N_LOADS = 90, N_ISSUES = 10 };

static const char *const reasons[] = {
	"smsp__pcsamp_warps_issue_stalled_long_scoreboard",
	"smsp__pcsamp_warps_issue_stalled_long_scoreboard_not_issued",
	"smsp__pcsamp_warps_issue_stalled_selected",
	"smsp__pcsamp_warps_issue_stalled_no_instructions",
};

static struct {
	bool is_enabled, is_started;
	char kernel[256];
} sampler;

#define ENTRY		      SIM_EXPORT int
#define PC_CALL(name, params) ENTRY name(struct lull_pc_##params *p);
#include "wire/cuprof.def"
#undef PC_CALL

void lull_cupti_sample(const struct sim_work *work)
{
	if (sampler.is_started)
		snprintf(sampler.kernel, sizeof(sampler.kernel), "%s", work->name);
}

int cuptiPCSamplingEnable(struct lull_pc_context *p)
{
	if (lull_cupti_is_missing(__func__))
		return CUPTI_E_UNSUPPORTED;
	if (sampler.is_enabled || lull_cupti_profiler_is_on() || !p->context)
		return CUPTI_E_PARAMETER;
	sampler.is_enabled = true;
	return CUPTI_OK;
}

int cuptiPCSamplingDisable(struct lull_pc_context *p)
{
	(void)p;
	sampler.is_enabled = false;
	return CUPTI_OK;
}

int cuptiPCSamplingSetConfigurationAttribute(struct lull_pc_config *p)
{
	return sampler.is_enabled && p->n ? CUPTI_OK : CUPTI_E_PARAMETER;
}

int cuptiPCSamplingStart(struct lull_pc_context *p)
{
	(void)p;
	sampler.is_started = sampler.is_enabled;
	sampler.kernel[0] = '\0';
	return sampler.is_enabled ? CUPTI_OK : CUPTI_E_PARAMETER;
}

int cuptiPCSamplingStop(struct lull_pc_context *p)
{
	(void)p;
	sampler.is_started = false;
	return CUPTI_OK;
}

int cuptiPCSamplingGetNumStallReasons(struct lull_pc_n_reasons *p)
{
	*p->n = LULL_COUNT_OF(reasons);
	return CUPTI_OK;
}

int cuptiPCSamplingGetStallReasons(struct lull_pc_reasons *p)
{
	for (u32 i = 0; i < p->n && i < LULL_COUNT_OF(reasons); i++) {
		p->indices[i] = i + 1;
		snprintf(p->names[i], 128, "%s", reasons[i]);
	}
	return CUPTI_OK;
}

static void put(struct lull_pc_pc *pc, u64 offset, u32 first, u32 n_reasons, u32 n)
{
	pc->function = sampler.kernel;
	pc->pc_offset = offset;
	pc->n_stalls = n_reasons;
	for (u32 i = 0; i < n_reasons; i++)
		pc->stalls[i] = (struct lull_pc_stall){ first + i, n };
}

int cuptiPCSamplingGetData(struct lull_pc_get *p)
{
	struct lull_pc_data *data = p->data;

	if (!sampler.kernel[0] || data->n_room < 2)
		return CUPTI_OK;
	put(&data->pcs[0], 0x40, 1, 2, N_LOADS);
	put(&data->pcs[1], 0x50, 3, 2, N_ISSUES);
	data->n_pcs = 2;
	data->n_samples = N_LOADS + 2 * N_ISSUES;
	return CUPTI_OK;
}

/* Modules of the simulated device are texts, without lines. */
int cuptiGetSassToSourceCorrelation(struct lull_pc_source *p)
{
	p->file = NULL;
	return CUPTI_E_UNSUPPORTED;
}

int cuptiGetCubinCrc(struct lull_pc_crc *p)
{
	p->crc = p->cubin_bytes;
	return CUPTI_OK;
}
