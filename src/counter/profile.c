#include "counter/profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/sort.h"

void lull_profile_init(struct lull_profile *p)
{
	memset(p, 0, sizeof(*p));
	p->name = p->range = p->device_name = "";
	for (int i = 0; i < LULL_N_KMETRICS; i++)
		p->metrics[i] = NAN;
	lull_vec_init(&p->extras, sizeof(struct lull_extra));
	lull_vec_init(&p->hot, sizeof(struct lull_hot));
}

void lull_profile_release(struct lull_profile *p)
{
	lull_vec_release(&p->extras);
	lull_vec_release(&p->hot);
}

/* So few never limit what fits. */
#define FEWEST_REGISTERS 16

void lull_profile_settle(struct lull_profile *p)
{
	const struct lull_chip *chip = lull_chip_find(p->device.capability);
	struct lull_launch_shape shape = {
		p->launch.block_x * p->launch.block_y * p->launch.block_z,
		p->launch.registers,
		p->launch.static_shared_bytes + p->launch.dynamic_shared_bytes,
	};

	if (!chip || !shape.n_threads)
		return;
	p->is_at_most = !shape.n_registers;
	if (p->is_at_most)
		shape.n_registers = FEWEST_REGISTERS;
	lull_occupancy(chip, &shape, &p->occupancy);
	p->has_occupancy = p->occupancy.n_blocks > 0;
}

const char *lull_profile_trouble(const struct lull_profile *p)
{
	switch (p->status) {
	case LULL_PROFILE_READ:
		return NULL;
	case LULL_PROFILE_NOT_ALLOWED:
		return "counters were not allowed; run as root, or load the driver with "
		       "NVreg_RestrictProfilingToAdminUsers=0";
	case LULL_PROFILE_IN_USE:
		return "another profiler held the counters; end it and try again";
	case LULL_PROFILE_NOT_HERE:
		return "this device does not give its counters away (virtual machine, MIG or "
		       "confidential computing)";
	case LULL_PROFILE_NOT_REPLAYED:
		return "it may wait for another device, so it was not run again; try --replay "
		       "application";
	default:
		return "CUPTI could not read its counters";
	}
}

/* ---- reading ---- */

static void fill(struct lull_profile *p, struct lull_reader *r, const struct lull_profiled_cols *c,
		 size_t i)
{
	size_t n_launches, n_devices, n_labels;
	const struct lull_launch_row *launches = lull_reader_dim(r, LULL_TABLE_launch, &n_launches);
	const struct lull_device_row *devices = lull_reader_dim(r, LULL_TABLE_device, &n_devices);
	const struct lull_label_row *labels = lull_reader_dim(r, LULL_TABLE_label, &n_labels);

	lull_profile_init(p);
	p->id = c->profiled_id[i];
	p->start_ns = c->start_ns[i];
	p->dur_ns = c->dur_ns[i];
	p->ordinal = c->ordinal[i];
	p->cost_ns = c->cost_ns[i];
	p->n_passes = c->n_passes[i];
	p->status = c->status[i];
	p->replay = c->replay[i];
	p->n_launches = c->n_launches[i];
	p->n_launches_least = c->n_launches_least[i];
	p->process = c->process[i];
	p->stream_id = c->stream_id[i];
	if (c->launch[i] && c->launch[i] <= n_launches) {
		p->launch = launches[c->launch[i] - 1];
		p->name = lull_reader_string(r, p->launch.name, NULL);
	}
	if (c->device[i] && c->device[i] <= n_devices) {
		p->device = devices[c->device[i] - 1];
		p->device_name = lull_reader_string(r, p->device.name, NULL);
	}
	if (c->range[i] && c->range[i] <= n_labels)
		p->range = lull_reader_string(r, labels[c->range[i] - 1].name, NULL);
	if (c->sm_clock_hz[i])
		p->metrics[LULL_K_sm_clock] = (f64)c->sm_clock_hz[i];
	if (c->dram_clock_hz[i])
		p->metrics[LULL_K_dram_clock] = (f64)c->dram_clock_hz[i];
	lull_profile_settle(p);
}

static void read_launches(struct lull_profiles *to, struct lull_reader *r, struct lull_map *by_id)
{
	struct lull_profiled_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, r, LULL_TABLE_profiled, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++) {
			if (to->items.n >= LULL_PROFILES_MAX) {
				to->n_left++;
				continue;
			}
			fill(lull_vec_push(&to->items), r, &cols, i);
			*lull_map_add(by_id, cols.profiled_id[i], NULL) = (u32)to->items.n;
		}
	lull_cursor_release(&c);
}

/* The launch of this number, NULL if it is not there. */
static struct lull_profile *find(struct lull_profiles *all, struct lull_map *by_id, u64 id)
{
	u32 *place = lull_map_find(by_id, id);

	return place ? (struct lull_profile *)lull_vec_get(&all->items, *place - 1) : NULL;
}

/* Which metric a string of the report names, -1 if none; remembered, there are few strings. */
static int metric_of(struct lull_reader *r, struct lull_map *known, u32 key)
{
	u32 *place = lull_map_find(known, key);

	if (!place) {
		place = lull_map_add(known, key, NULL);
		*place = (u32)(lull_k_find(lull_reader_string(r, key, NULL)) + 1);
	}
	return (int)*place - 1;
}

static void read_metrics(struct lull_profiles *to, struct lull_reader *r, struct lull_map *by_id)
{
	struct lull_kmetric_cols cols;
	struct lull_cursor c;
	struct lull_map keys;
	size_t n;

	lull_map_init(&keys);
	lull_cursor_init(&c, r, LULL_TABLE_kmetric, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++) {
			struct lull_profile *p = find(to, by_id, cols.profiled_id[i]);
			int k = cols.key[i] ? metric_of(r, &keys, cols.key[i]) : -1;

			if (!p || !isfinite(cols.value[i]))
				continue;
			if (k >= 0) {
				p->metrics[k] = cols.value[i];
			} else {
				struct lull_extra *extra = lull_vec_push(&p->extras);

				extra->name = lull_reader_string(
					r, cols.name[i] ? cols.name[i] : cols.key[i], NULL);
				extra->value = cols.value[i];
			}
		}
	lull_cursor_release(&c);
	lull_map_release(&keys);
}

/* ---- samples of the program counter ---- */

/* One row of pcsample, still by reason. */
struct sample {
	u64 id;
	u32 file, line, function, stall;
	u64 pc, n;
};

static int by_place(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

#define ORDER(field)              \
	if (x->field != y->field) \
		return x->field < y->field ? -1 : 1;
	ORDER(id)
	ORDER(file)
	ORDER(line)
	ORDER(function)
	ORDER(pc)
	ORDER(stall)
#undef ORDER
	return 0;
}

static int hotter(const void *a, const void *b)
{
	const struct lull_hot *x = a, *y = b;

	if (x->n_samples != y->n_samples)
		return x->n_samples > y->n_samples ? -1 : 1;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return x->pc_offset_bytes < y->pc_offset_bytes ? -1
						       : x->pc_offset_bytes > y->pc_offset_bytes;
}

/* Lines that are known are one place each, whatever the instruction. */
static void load_samples(struct lull_reader *r, struct lull_vec *to)
{
	struct lull_pcsample_cols cols;
	struct lull_cursor c;
	size_t n;

	lull_cursor_init(&c, r, LULL_TABLE_pcsample, 0, UINT64_MAX);
	while ((n = lull_cursor_next(&c, &cols)) > 0)
		for (size_t i = 0; i < n; i++) {
			struct sample *s = lull_vec_push(to);
			bool has_line = cols.file[i] && cols.line[i];

			*s = (struct sample){ cols.profiled_id[i],
					      has_line ? cols.file[i] : 0,
					      has_line ? cols.line[i] : 0,
					      cols.function[i],
					      cols.stall[i],
					      has_line ? 0 : cols.pc_offset_bytes[i],
					      cols.n_samples[i] };
		}
	lull_cursor_release(&c);
	if (to->n)
		lull_sort(to->at, to->n, sizeof(struct sample), by_place);
}

static bool is_same_place(const struct sample *a, const struct sample *b)
{
	return a->id == b->id && a->file == b->file && a->line == b->line &&
	       a->function == b->function && a->pc == b->pc;
}

/* "selected" is a warp that issued. */
static void add_reason(struct lull_hot *hot, const char *stall, u64 n)
{
	hot->n_samples += n;
	if (strcmp(stall, "selected") == 0)
		return;
	hot->n_stalled += n;
	if (n > hot->n_stall) {
		hot->n_stall = n;
		hot->stall = stall;
	}
}

static void read_samples(struct lull_profiles *to, struct lull_reader *r, struct lull_map *by_id)
{
	struct lull_vec samples;
	const struct sample *s;

	lull_vec_init(&samples, sizeof(struct sample));
	load_samples(r, &samples);
	s = samples.at;
	for (size_t i = 0, end; i < samples.n; i = end) {
		struct lull_profile *p = find(to, by_id, s[i].id);
		struct lull_hot *hot = p ? lull_vec_push(&p->hot) : NULL;

		if (hot)
			*hot = (struct lull_hot){
				.file = lull_reader_string(r, s[i].file, NULL),
				.line = s[i].line,
				.function = lull_reader_string(r, s[i].function, NULL),
				.pc_offset_bytes = s[i].pc,
				.stall = "",
			};
		for (end = i; end < samples.n && is_same_place(&s[i], &s[end]);) {
			u64 n = 0;
			size_t first = end;

			for (; end < samples.n && is_same_place(&s[i], &s[end]) &&
			       s[end].stall == s[first].stall;
			     end++)
				n += s[end].n;
			if (hot)
				add_reason(hot, lull_reader_string(r, s[first].stall, NULL), n);
		}
		if (p && hot)
			p->n_samples += hot->n_samples;
	}
	lull_vec_release(&samples);
	for (size_t i = 0; i < to->items.n; i++) {
		struct lull_profile *p = lull_vec_get(&to->items, i);

		if (p->hot.n)
			lull_sort(p->hot.at, p->hot.n, sizeof(struct lull_hot), hotter);
	}
}

static int by_launch(const void *a, const void *b)
{
	const struct lull_profile *x = a, *y = b;

	return x->id < y->id ? -1 : x->id > y->id;
}

void lull_profiles_read(struct lull_profiles *to, struct lull_reader *r)
{
	struct lull_map by_id;

	lull_vec_init(&to->items, sizeof(struct lull_profile));
	to->n_left = 0;
	lull_map_init(&by_id);
	read_launches(to, r, &by_id);
	if (to->items.n) {
		read_metrics(to, r, &by_id);
		read_samples(to, r, &by_id);
		lull_sort(to->items.at, to->items.n, sizeof(struct lull_profile), by_launch);
	}
	lull_map_release(&by_id);
}

void lull_profiles_release(struct lull_profiles *all)
{
	for (size_t i = 0; i < all->items.n; i++)
		lull_profile_release(lull_vec_get(&all->items, i));
	lull_vec_release(&all->items);
}
