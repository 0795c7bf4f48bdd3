#include "record/live/live_devices.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

#include "base/time.h"
#include "text/prometheus.h"

/* Older values are not told. */
#define AGE_NS (10 * LULL_NS_PER_S)

/* What counters are averaged over; DCGM's default is the same. */
#define MEAN_NS LULL_NS_PER_S

/* Scales of dcgm.def: DCGM tells memory in MiB, and shares from 0 to 1. */
#define MIB (1.0 / (1 << 20))
#define PCT 0.01

static const struct family {
	const char *name, *type, *help;
	f64 scale;
	enum lull_metric_kind first, second, plus;
} families[] = {
#define DCGM(name, type, scale, first, second, plus, help)                                  \
	{ "DCGM_FI_" #name,  #type, help, scale, LULL_METRIC_##first, LULL_METRIC_##second, \
	  LULL_METRIC_##plus },
#include "record/live/dcgm.def"
#undef DCGM
};

/* Values that come so often that they are averaged. */
#define METRIC(id, name, unit, source, meaning) [LULL_METRIC_##id] = source,
#define LIVE(id, name, unit, source)		[LULL_METRIC_##id] = source,
static const char *const sources[LULL_N_VALUES] = {
#include "record/live/metrics.def"
};
#undef METRIC
#undef LIVE

void lull_live_init(struct lull_live_devices *l)
{
	memset(l, 0, sizeof(*l));
	gethostname(l->host, sizeof(l->host) - 1);
}

void lull_live_announce(struct lull_live_devices *l, u32 device_ix,
			const struct lull_gpu_facts *facts)
{
	if (device_ix >= LULL_MAX_GPUS)
		return;
	l->at[device_ix].facts = *facts;
	l->at[device_ix].is_known = true;
}

void lull_live_add(struct lull_live_devices *l, u32 device_ix, u32 metric, u64 time_ns, f64 value)
{
	struct lull_live_value *v;

	if (device_ix >= LULL_MAX_GPUS || metric >= LULL_N_VALUES || !sources[metric])
		return;
	v = &l->at[device_ix].values[metric];
	if (strcmp(sources[metric], "pm") != 0) {
		v->told = value;
	} else if (!v->time_ns) {
		v->told = value; /* until there is a whole second */
		v->since_ns = time_ns;
	} else if (time_ns - v->since_ns >= MEAN_NS && v->n) {
		v->told = v->sum / (f64)v->n;
		v->since_ns = time_ns;
		v->sum = 0;
		v->n = 0;
	}
	v->sum += value;
	v->n++;
	v->time_ns = time_ns;
}

/* NaN if there is none, or none that is new enough. */
static f64 latest(const struct lull_live_device *d, enum lull_metric_kind metric, u64 now_ns)
{
	const struct lull_live_value *v = &d->values[metric];

	if (metric == LULL_METRIC_none || !v->time_ns)
		return NAN;
	return now_ns > v->time_ns && now_ns - v->time_ns > AGE_NS ? NAN : v->told;
}

static f64 value_of(const struct lull_live_device *d, const struct family *f, u64 now_ns)
{
	f64 value = latest(d, f->first, now_ns);

	if (isnan(value)) {
		value = latest(d, f->second, now_ns);
		if (f->plus != LULL_METRIC_none)
			value += latest(d, f->plus, now_ns);
	}
	return value * f->scale;
}

/* As the exporter writes them, and in its order. */
static void add_labels(const struct lull_live_devices *l, u32 ix, struct lull_str *to)
{
	const struct lull_gpu_facts *f = &l->at[ix].facts;
	const char *u = f->uuid;
	struct lull_str uuid = LULL_STR_INIT;

	if (strlen(u) == 32)
		lull_str_addf(&uuid, "GPU-%.8s-%.4s-%.4s-%.4s-%.12s", u, u + 8, u + 12, u + 16,
			      u + 20);
	lull_str_addf(to, "{gpu=\"%u\",", ix);
	lull_prom_label(to, "UUID", lull_str_text(&uuid));
	lull_str_puts(to, ",");
	lull_prom_label(to, "pci_bus_id", f->pci_bus_id);
	lull_str_addf(to, ",device=\"nvidia%u\",", ix);
	lull_prom_label(to, "modelName", f->name);
	lull_str_puts(to, ",");
	lull_prom_label(to, "Hostname", l->host);
	lull_str_puts(to, ",");
	lull_prom_label(to, "DCGM_FI_DRIVER_VERSION", f->driver);
	lull_str_puts(to, "}");
	lull_str_release(&uuid);
}

static void write_family(const struct lull_live_devices *l, const struct family *f, u64 now_ns,
			 struct lull_str *to)
{
	bool has_head = false;

	for (u32 i = 0; i < LULL_MAX_GPUS; i++) {
		f64 value;

		if (!l->at[i].is_known)
			continue;
		value = value_of(&l->at[i], f, now_ns);
		if (isnan(value))
			continue;
		if (!has_head)
			lull_prom_family(to, f->name, f->type, f->help);
		has_head = true;
		lull_str_puts(to, f->name);
		add_labels(l, i, to);
		lull_str_addf(to, " %.15g\n", value);
	}
}

void lull_live_write(const struct lull_live_devices *l, u64 now_ns, struct lull_str *to)
{
	for (size_t i = 0; i < LULL_COUNT_OF(families); i++)
		write_family(l, &families[i], now_ns, to);
}
