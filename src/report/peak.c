#include "report/peak.h"

#include <ctype.h>
#include <string.h>

#define TERA 1e12

const char *const lull_precision_names[LULL_N_PRECISIONS] = { "fp64", "fp32", "tf32", "fp16/bf16",
							      "fp8" };

/* The name of a model, and not the beginning of another one's: "A40" is no A4000. */
static bool names(const char *device, const char *model)
{
	const char *at = strstr(device, model);

	return at && !isalnum((unsigned char)at[strlen(model)]);
}

f64 lull_peak_flops(const char *device, enum lull_precision precision)
{
	static const struct {
		const char *name;
		f64 tflops[LULL_N_PRECISIONS];
	} peaks[] = {
#define PEAK(name, fp64, fp32, tf32, half, fp8) { name, { fp64, fp32, tf32, half, fp8 } },
#include "report/peaks.def"
#undef PEAK
	};

	/* Slower ones of the same name, and parts of one. */
	if (strstr(device, "Laptop") || strstr(device, "MIG"))
		return 0;
	for (size_t i = 0; i < LULL_COUNT_OF(peaks); i++)
		if (names(device, peaks[i].name))
			return peaks[i].tflops[precision] * TERA;
	return 0;
}

enum lull_precision lull_precision_of(const char *types)
{
	static const struct {
		const char *name; /* or its beginning */
		enum lull_precision precision;
	} known[] = {
		{ "float\"", LULL_PRECISION_FP32 },	{ "double\"", LULL_PRECISION_FP64 },
		{ "c10::Half\"", LULL_PRECISION_HALF }, { "c10::BFloat16\"", LULL_PRECISION_HALF },
		{ "c10::Float8", LULL_PRECISION_FP8 },
	};

	for (const char *p = strchr(types, '"'); p; p = strchr(p + 1, '"'))
		for (size_t i = 0; i < LULL_COUNT_OF(known); i++)
			if (!strncmp(p + 1, known[i].name, strlen(known[i].name)))
				return known[i].precision;
	return LULL_N_PRECISIONS;
}
