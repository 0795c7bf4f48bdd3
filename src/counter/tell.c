#include "counter/tell.h"

#include <math.h>

#include "counter/judge.h"
#include "counter/roofline.h"
#include "counter/section.h"

/* Lines of source in the document. */
#define MAX_HOT 100

static void three(struct lull_json *j, const char *key, u32 x, u32 y, u32 z)
{
	lull_json_key(j, key);
	lull_json_array(j);
	lull_json_u64(j, x);
	lull_json_u64(j, y);
	lull_json_u64(j, z);
	lull_json_end(j);
}

static void tell_claim(struct lull_json *j, const struct lull_kclaim *claim)
{
	lull_json_object(j);
	lull_json_key_text(j, "id", claim->id);
	lull_json_key_text(j, "detail", claim->detail);
	lull_json_key_text(j, "title", claim->title);
	lull_json_key_f64(j, "gain", claim->gain);
	lull_json_key(j, "proofs");
	lull_json_array(j);
	for (size_t i = 0; i < claim->n_proofs; i++)
		lull_json_text(j, claim->proofs[i]);
	lull_json_end(j);
	lull_json_key_text(j, "fix", claim->fix);
	lull_json_end(j);
}

static void tell_verdict(struct lull_json *j, const struct lull_profile *p)
{
	struct lull_judgement judgement;

	lull_judge(&judgement, p);
	lull_json_key(j, "verdict");
	if (judgement.n)
		tell_claim(j, &judgement.claims[0]);
	else
		lull_json_null(j);
	lull_json_key(j, "also");
	lull_json_array(j);
	for (size_t i = 1; i < judgement.n; i++)
		tell_claim(j, &judgement.claims[i]);
	lull_json_end(j);
	lull_json_key_text(j, "missing", judgement.missing);
	lull_json_key(j, "loads");
	lull_json_object(j);
	for (int i = 0; i < LULL_N_PARTS; i++)
		if (!isnan(judgement.loads.of[i]))
			lull_json_key_f64(j, lull_parts[i].id, judgement.loads.of[i]);
	lull_json_end(j);
}

static void tell_stalls(struct lull_json *j, const struct lull_profile *p)
{
	enum lull_stall_ix order[LULL_N_STALLS];
	size_t n = lull_stalls_sorted(p, order);

	lull_json_key(j, "stalls");
	lull_json_array(j);
	for (size_t i = 0; i < n; i++) {
		lull_json_object(j);
		lull_json_key_text(j, "reason", lull_stalls[order[i]].reason);
		lull_json_key_text(j, "title", lull_stalls[order[i]].title);
		lull_json_key_f64(j, "share", lull_stall_share(p, order[i]));
		lull_json_key_text(j, "meaning",
				   lull_k_infos[lull_stalls[order[i]].metric].meaning);
		lull_json_key_text(j, "help", lull_stalls[order[i]].help);
		lull_json_end(j);
	}
	lull_json_end(j);
}

static void tell_roofline(struct lull_json *j, const struct lull_profile *p)
{
	struct lull_roofline r;

	lull_roofline_of(&r, p);
	lull_json_key(j, "roofline");
	if (isnan(r.rate)) {
		lull_json_null(j);
		return;
	}
	lull_json_object(j);
	lull_json_key_f64(j, "rate", r.rate);
	lull_json_key_text(j, "type", r.type >= 0 ? lull_ceiling_names[r.type] : NULL);
	lull_json_key(j, "ceilings");
	lull_json_array(j);
	for (int i = 0; i < LULL_N_CEILINGS; i++)
		if (r.ceiling[i] > 0) {
			lull_json_object(j);
			lull_json_key_text(j, "name", lull_ceiling_names[i]);
			lull_json_key_f64(j, "peak", r.ceiling[i]);
			lull_json_key_f64(j, "operations", r.ops[i]);
			lull_json_end(j);
		}
	lull_json_end(j);
	lull_json_key(j, "slopes");
	lull_json_array(j);
	for (int i = 0; i < LULL_N_SLOPES; i++)
		if (r.slope[i] > 0) {
			lull_json_object(j);
			lull_json_key_text(j, "name", lull_slope_names[i]);
			lull_json_key_f64(j, "peak", r.slope[i]);
			lull_json_key_f64(j, "intensity", r.intensity[i]);
			lull_json_key_f64(j, "roof", r.roof[i]);
			lull_json_end(j);
		}
	lull_json_end(j);
	lull_json_end(j);
}

static void tell_line(struct lull_json *j, const struct lull_sheet *sheet,
		      const struct lull_sheet_line *line)
{
	if (line->kind == LULL_SHEET_CHART)
		return;
	lull_json_object(j);
	lull_json_key_text(j, "label", line->label);
	lull_json_key_text(j, "key", line->key);
	if (line->kind != LULL_SHEET_NOTE) {
		lull_json_key_f64(j, "value", line->value);
		lull_json_key_text(j, "unit", line->unit);
	}
	lull_json_key_text(j, "note", lull_sheet_note_of(sheet, line));
	lull_json_end(j);
}

/* How the occupancy would change with one thing about the launch, the others as they are. */
static void tell_curve(struct lull_json *j, const struct lull_chip *chip,
		       const struct lull_launch_shape *shape, int varied)
{
	static const struct {
		const char *key;
		u32 step, last;
	} axes[] = { { "threads", 32, 1024 },
		     { "registers", 8, 248 },
		     { "shared_bytes", 4096, 0 } };
	u32 last = axes[varied].last ? axes[varied].last : chip->block_shared_bytes;

	lull_json_key(j, axes[varied].key);
	lull_json_array(j);
	for (u32 x = axes[varied].step; x <= last; x += axes[varied].step) {
		struct lull_launch_shape other = *shape;
		struct lull_occupancy o;

		if (varied == 0)
			other.n_threads = x;
		else if (varied == 1)
			other.n_registers = x;
		else
			other.shared_bytes = x;
		lull_occupancy(chip, &other, &o);
		lull_json_array(j);
		lull_json_u64(j, x);
		lull_json_f64(j, o.share);
		lull_json_end(j);
	}
	lull_json_end(j);
}

static void tell_curves(struct lull_json *j, const struct lull_profile *p)
{
	const struct lull_chip *chip = lull_chip_find(p->device.capability);
	struct lull_launch_shape shape = {
		p->launch.block_x * p->launch.block_y * p->launch.block_z,
		p->launch.registers,
		p->launch.static_shared_bytes + p->launch.dynamic_shared_bytes,
	};

	if (!chip || !p->has_occupancy)
		return;
	lull_json_key(j, "curves");
	lull_json_object(j);
	for (int varied = 0; varied < 3; varied++)
		tell_curve(j, chip, &shape, varied);
	lull_json_end(j);
}

static void tell_sections(struct lull_json *j, const struct lull_profile *p)
{
	struct lull_sheet sheet;

	lull_sheet_init(&sheet);
	lull_json_key(j, "sections");
	lull_json_array(j);
	for (const struct lull_section *const *s = lull_sections; *s; s++) {
		const struct lull_sheet_line *lines;

		lull_sheet_fill(&sheet, *s, p);
		if (!sheet.lines.n)
			continue;
		lines = sheet.lines.at;
		lull_json_object(j);
		lull_json_key_text(j, "name", (*s)->name);
		lull_json_key_text(j, "title", (*s)->title);
		lull_json_key(j, "lines");
		lull_json_array(j);
		for (size_t i = 0; i < sheet.lines.n; i++)
			tell_line(j, &sheet, &lines[i]);
		lull_json_end(j);
		lull_json_end(j);
	}
	lull_json_end(j);
	lull_sheet_release(&sheet);
}

static void tell_source(struct lull_json *j, const struct lull_profile *p)
{
	const struct lull_hot *hot = p->hot.at;

	lull_json_key_u64(j, "samples", p->n_samples);
	lull_json_key(j, "source");
	lull_json_array(j);
	for (size_t i = 0; i < p->hot.n && i < MAX_HOT; i++) {
		lull_json_object(j);
		lull_json_key_text(j, "file", *hot[i].file ? hot[i].file : NULL);
		lull_json_key_u64(j, "line", hot[i].line);
		lull_json_key_text(j, "function", hot[i].function);
		lull_json_key_u64(j, "offset", hot[i].pc_offset_bytes);
		lull_json_key_u64(j, "samples", hot[i].n_samples);
		lull_json_key_text(j, "stall", *hot[i].stall ? hot[i].stall : NULL);
		lull_json_end(j);
	}
	lull_json_end(j);
}

static void tell_metrics(struct lull_json *j, const struct lull_profile *p)
{
	const struct lull_extra *extra = p->extras.at;

	lull_json_key(j, "metrics");
	lull_json_object(j);
	for (int i = 0; i < LULL_N_K; i++) {
		f64 value = lull_k_of(p, (enum lull_k)i);

		if (!isnan(value))
			lull_json_key_f64(j, lull_k_infos[i].key, value);
	}
	for (size_t i = 0; i < p->extras.n; i++)
		lull_json_key_f64(j, extra[i].name, extra[i].value);
	lull_json_end(j);
}

void lull_tell_launch(struct lull_json *j, const struct lull_profile *p)
{
	const struct lull_launch_row *l = &p->launch;

	lull_json_object(j);
	lull_json_key_u64(j, "id", p->id);
	lull_json_key_text(j, "kernel", p->name);
	lull_json_key_text(j, "range", *p->range ? p->range : NULL);
	lull_json_key_text(j, "device", p->device_name);
	lull_json_key_u64(j, "start_ns", p->start_ns);
	lull_json_key_u64(j, "duration_ns", p->dur_ns);
	lull_json_key_u64(j, "ordinal", p->ordinal);
	lull_json_key_u64(j, "passes", p->n_passes);
	if (lull_profile_is_range(p)) {
		lull_json_key_u64(j, "n_launches", p->n_launches);
		lull_json_key_u64(j, "n_launches_least", p->n_launches_least);
	}
	lull_json_key_text(j, "trouble", lull_profile_trouble(p));
	three(j, "grid", l->grid_x, l->grid_y, l->grid_z);
	three(j, "block", l->block_x, l->block_y, l->block_z);
	lull_json_key_u64(j, "registers", l->registers);
	lull_json_key_u64(j, "shared_bytes", (u64)l->static_shared_bytes + l->dynamic_shared_bytes);
	if (p->has_occupancy)
		lull_json_key_text(j, "limited_by", lull_occupancy_limit_name(p->occupancy.by));
	tell_verdict(j, p);
	tell_stalls(j, p);
	tell_roofline(j, p);
	tell_curves(j, p);
	tell_sections(j, p);
	tell_source(j, p);
	tell_metrics(j, p);
	lull_json_end(j);
}
