#include "report/nvtx.h"

#include <stdlib.h>

#include "base/mem.h"
#include "model/work.h"
#include "report/process_rounds.h"
#include "report/step_window.h"
#include "report/sum.h"

/*
 * Groups. Labels differ in colour and category too, which no sum by name cares about, so a label is
 * mapped to the group of its name, domain and style; the key is made of these, and 31 bits are more
 * than a file has strings.
 */
#define KEY_DOMAIN_SHIFT 32
#define KEY_STARTEND	 (1ULL << 63)

#define N_STYLES 2

struct nvtx_sum {
	struct lull_reader *reader;
	const struct lull_report_options *options;
	enum lull_nvtx_styles styles;
	const struct lull_label_row *labels;
	size_t n_labels;
	u32 *groups; /* of each label and style: see group_of(); 0 if not met yet */
	struct lull_sum *sum;
	struct lull_span steps; /* the steady steps; empty: not known */
	u32 process;		/* whose steps they are */
	u64 *in_steps_ns;	/* by index of the group; NULL: not asked for */
};

void lull_nvtx_name(struct lull_str *to, struct lull_reader *r, u32 name, u32 domain)
{
	lull_str_puts(to, lull_reader_string(r, domain, NULL));
	lull_str_add(to, ":", 1);
	lull_str_puts(to, lull_reader_string(r, name, NULL));
}

void lull_nvtx_label_name(struct lull_str *to, struct lull_reader *r, u32 label)
{
	size_t n;
	const struct lull_label_row *labels = lull_reader_dim(r, LULL_TABLE_label, &n);

	if (label)
		lull_nvtx_name(to, r, labels[label - 1].name, labels[label - 1].domain);
}

const char *lull_nvtx_style(bool is_startend)
{
	return is_startend ? "StartEnd" : "PushPop";
}

void lull_nvtx_put_place(struct lull_out *out, const struct lull_nest *nest, u32 number)
{
	const struct lull_nest_range *range = lull_nest_get(nest, number);

	lull_out_i64(out, range->level);
	lull_out_i64(out, range->n_children);
	lull_out_i64(out, number);
	if (range->parent)
		lull_out_i64(out, range->parent);
	else
		lull_out_skip(out);
	lull_nest_stack(lull_out_text_begin(out), nest, number);
	lull_out_text_end(out);
}

/* Ranges that no sum has: of another style, or of a label that only says what a device did. */
#define NO_GROUP UINT32_MAX

static u32 make_group(const struct nvtx_sum *s, u32 label, bool is_startend)
{
	u64 key = is_startend ? KEY_STARTEND : 0;

	if (!(s->styles & (is_startend ? LULL_NVTX_STARTEND : LULL_NVTX_PUSHPOP)) ||
	    lull_nest_is_shadow(s->labels, label))
		return NO_GROUP;
	if (label)
		key |= (u64)s->labels[label - 1].domain << KEY_DOMAIN_SHIFT |
		       s->labels[label - 1].name;
	return lull_sum_group(s->sum, key) + 1;
}

/* The index of the group + 1, or NO_GROUP. */
static inline u32 group_of(const struct nvtx_sum *s, const struct lull_range_cols *cols, size_t i)
{
	bool is_startend = cols->flags[i] & LULL_RANGE_START_END;
	u32 *group = &s->groups[N_STYLES * (size_t)cols->label[i] + is_startend];

	if (!*group)
		*group = make_group(s, cols->label[i], is_startend);
	return *group;
}

static void open_ranges(const struct nvtx_sum *s, struct lull_cursor *c)
{
	lull_cursor_init(c, s->reader, LULL_TABLE_range, s->options->from_ns, s->options->to_ns);
	lull_cursor_want(c, "start_ns");
	lull_cursor_want(c, "dur_ns");
	lull_cursor_want(c, "label");
	lull_cursor_want(c, "flags");
}

static void scan(void *ctx, struct lull_sum *sum)
{
	struct nvtx_sum *s = ctx;
	struct lull_range_cols cols;
	struct lull_cursor c;
	size_t n;

	s->sum = sum;
	open_ranges(s, &c);
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			u32 group;

			if (!lull_report_covers(s->options, cols.start_ns[i], cols.dur_ns[i]))
				continue;
			group = group_of(s, &cols, i);
			if (group != NO_GROUP)
				lull_sum_add(sum, group - 1, cols.dur_ns[i]);
		}
	}
	lull_cursor_release(&c);
}

/* ---- share of the step ---- */

/* The steps from `first` on that lie in the time that is asked for. */
static void take_steps(struct nvtx_sum *s, const struct lull_step_list *list, size_t first)
{
	const struct lull_step_span *at = list->all.at;

	for (size_t i = first; i < list->all.n; i++) {
		u64 dur_ns = at[i].span.to_ns - at[i].span.from_ns;

		if (!lull_report_covers(s->options, at[i].span.from_ns, dur_ns))
			continue;
		if (!s->steps.to_ns)
			s->steps.from_ns = at[i].span.from_ns;
		s->steps.to_ns = at[i].span.to_ns;
	}
}

/* The steady steps that are asked for; where these are all warm-up, those. */
static void find_steps(struct nvtx_sum *s)
{
	struct lull_step_list list;

	if (lull_work_count(s->reader, LULL_WORK_COMPUTE) > LULL_ROUNDS_QUICK)
		return;
	lull_step_list_init(&list, s->reader);
	take_steps(s, &list, list.first_steady);
	if (!s->steps.to_ns)
		take_steps(s, &list, 0);
	s->process = list.process;
	lull_step_list_release(&list);
}

/* How much of a range lies in the steps. */
static u64 in_steps_ns(const struct nvtx_sum *s, const struct lull_range_cols *cols, size_t i)
{
	struct lull_span range = { cols->start_ns[i],
				   lull_span_end_ns(cols->start_ns[i], cols->dur_ns[i]) };
	struct lull_span part = lull_span_cut(range, s->steps.from_ns, s->steps.to_ns);

	return part.to_ns - part.from_ns;
}

/* Fill in_steps_ns. */
static void scan_steps(struct nvtx_sum *s)
{
	size_t n, n_lanes;
	const struct lull_lane_row *lanes = lull_reader_dim(s->reader, LULL_TABLE_lane, &n_lanes);
	struct lull_range_cols cols;
	struct lull_cursor c;

	open_ranges(s, &c);
	lull_cursor_want(&c, "lane");
	while ((n = lull_cursor_next(&c, &cols)) > 0) {
		for (size_t i = 0; i < n; i++) {
			u32 lane = cols.lane[i], group;

			if (!lane || lanes[lane - 1].process != s->process ||
			    !lull_report_covers(s->options, cols.start_ns[i], cols.dur_ns[i]))
				continue;
			group = group_of(s, &cols, i);
			if (group != NO_GROUP)
				s->in_steps_ns[group - 1] += in_steps_ns(s, &cols, i);
		}
	}
	lull_cursor_release(&c);
}

/* The share of the step, or no column of it where there are no steps. */
static void add_steps(struct nvtx_sum *s, struct lull_out *out)
{
	find_steps(s);
	if (s->steps.to_ns <= s->steps.from_ns) {
		lull_out_drop_last(out, 1);
		return;
	}
	s->in_steps_ns = lull_alloc(s->sum->groups.n + 1, sizeof(*s->in_steps_ns));
	scan_steps(s);
}

static void put_names(void *ctx, struct lull_out *out, const struct lull_sum_group *group)
{
	const struct nvtx_sum *s = ctx;
	struct lull_str name = LULL_STR_INIT;
	bool is_startend = group->key & KEY_STARTEND;
	u64 key = group->key & ~KEY_STARTEND;

	if (s->styles == LULL_NVTX_BOTH)
		lull_out_text(out, lull_nvtx_style(is_startend));
	lull_nvtx_name(&name, s->reader, (u32)key, (u32)(key >> KEY_DOMAIN_SHIFT));
	lull_out_text(out, lull_str_text(&name));
	lull_str_release(&name);
	if (s->in_steps_ns)
		lull_out_f64(out, 100 * (f64)s->in_steps_ns[lull_sum_group(s->sum, group->key)] /
					  (f64)(s->steps.to_ns - s->steps.from_ns));
}

void lull_nvtx_sum(struct lull_reader *r, struct lull_out *out,
		   const struct lull_report_options *options, enum lull_nvtx_styles styles)
{
	struct nvtx_sum s = { .reader = r, .options = options, .styles = styles };
	struct lull_sum sum;

	s.labels = lull_reader_dim(r, LULL_TABLE_label, &s.n_labels);
	s.groups = lull_alloc(N_STYLES * (s.n_labels + 1), sizeof(*s.groups));
	lull_sum_init(&sum);
	lull_sum_run(&sum, scan, &s);
	if (styles == LULL_NVTX_BOTH)
		add_steps(&s, out);
	lull_sum_write(&sum, out, put_names, &s);
	lull_sum_release(&sum);
	free(s.in_steps_ns);
	free(s.groups);
}
