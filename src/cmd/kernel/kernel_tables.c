/*
 * kernel_tables - launches as tables: all metrics, all values of the sections, one row a kernel.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/intern.h"
#include "base/mem.h"
#include "cmd/kernel/kernel_metrics.h"
#include "cmd/kernel/kernel_show.h"
#include "counter/judge.h"
#include "counter/section.h"

/* ---- all metrics, all values of the sections ---- */

static const struct lull_out_column long_columns[] = {
	{ .name = "ID", .kind = LULL_OUT_ID },
	{ .name = "Kernel Name", .kind = LULL_OUT_TEXT, .is_kernel = true },
	{ .name = "Section Name", .kind = LULL_OUT_TEXT },
	{ .name = "Metric Name", .kind = LULL_OUT_TEXT },
	{ .name = "Metric Unit", .kind = LULL_OUT_TEXT },
	{ .name = "Metric Value", .kind = LULL_OUT_NUMBER },
	{ .name = "Meaning", .kind = LULL_OUT_TEXT, .is_spare = true },
};

/* What all rows of a launch begin with. */
static void begin(struct lull_out *out, const struct lull_profile *p, const char *section)
{
	lull_out_row(out);
	lull_out_i64(out, (i64)p->id);
	lull_out_text(out, p->name);
	lull_out_text(out, section);
}

static void put_raw(struct lull_out *out, const struct lull_profile *p)
{
	const struct lull_extra *extra = p->extras.at;

	for (int i = 0; i < LULL_N_K; i++) {
		const struct lull_k_info *info = &lull_k_infos[i];
		f64 value = lull_k_of(p, (enum lull_k)i);

		if (isnan(value))
			continue;
		begin(out, p, info->formula ? "computed" : "metric");
		lull_out_text(out, info->key);
		lull_out_text(out, info->unit);
		lull_out_f64(out, value);
		lull_out_text(out, info->meaning);
	}
	for (size_t i = 0; i < p->extras.n; i++) {
		begin(out, p, "asked for");
		lull_out_text(out, extra[i].name);
		lull_out_skip(out);
		lull_out_f64(out, extra[i].value);
	}
}

/* Only what --metrics names. */
static void put_asked(struct lull_out *out, const struct lull_profile *p,
		      const struct lull_vec *names)
{
	const struct lull_kernel_metric *metrics;
	struct lull_vec asked;

	lull_vec_init(&asked, sizeof(struct lull_kernel_metric));
	lull_kernel_metrics_of(p, names, &asked);
	metrics = asked.at;
	for (size_t i = 0; i < asked.n; i++) {
		begin(out, p, "asked for");
		lull_out_text(out, metrics[i].name);
		lull_out_text(out, metrics[i].unit);
		lull_out_f64(out, metrics[i].value);
		lull_out_text(out, metrics[i].meaning);
	}
	lull_vec_release(&asked);
}

static void put_verdict(struct lull_out *out, const struct lull_profile *p)
{
	struct lull_judgement j;

	lull_judge(&j, p);
	begin(out, p, "verdict");
	lull_out_text(out, lull_judgement_id(&j));
	lull_out_text(out, "x");
	lull_out_f64(out, j.n ? j.claims[0].gain : NAN);
	lull_out_text(out, j.n ? j.claims[0].fix : j.missing);
}

static void put_sections(struct lull_out *out, const struct lull_profile *p,
			 const struct lull_kernel_options *options)
{
	struct lull_sheet sheet;

	lull_sheet_init(&sheet);
	for (const struct lull_section *const *s = lull_sections; *s; s++) {
		const struct lull_sheet_line *lines;

		if (!lull_kernel_wants(options, (*s)->name) ||
		    (options->page == LULL_KERNEL_PAGE_SOURCE && strcmp((*s)->name, "source") != 0))
			continue;
		lull_sheet_fill(&sheet, *s, p);
		lines = sheet.lines.at;
		for (size_t i = 0; i < sheet.lines.n; i++) {
			const char *note = lull_sheet_note_of(&sheet, &lines[i]);

			if (lines[i].kind == LULL_SHEET_CHART || lines[i].kind == LULL_SHEET_NOTE)
				continue;
			begin(out, p, (*s)->title);
			/* Lines of source have no name of their own. */
			lull_out_text(out, *lines[i].label
						   ? lines[i].label + strspn(lines[i].label, " ")
						   : note);
			lull_out_text(out, lines[i].unit);
			lull_out_f64(out, lines[i].value);
			lull_out_text(out, note);
		}
	}
	lull_sheet_release(&sheet);
}

/* One column for each metric that --metrics names. */
static int print_wide_asked(const struct lull_kernel_choice *c,
			    const struct lull_kernel_options *options, FILE *to,
			    struct lull_err *err)
{
	struct lull_profile *const *p = c->chosen.at;
	struct lull_out_column *columns;
	const struct lull_kernel_metric *metrics;
	struct lull_vec asked;
	struct lull_out out;
	int rc;

	/* The first launch has as many as any: patterns find what it has. */
	lull_vec_init(&asked, sizeof(struct lull_kernel_metric));
	lull_kernel_metrics_of(p[0], &options->which->metrics, &asked);
	columns = lull_alloc(asked.n + 2, sizeof(*columns));
	metrics = asked.at;
	columns[0] = (struct lull_out_column){ .name = "ID", .kind = LULL_OUT_ID };
	columns[1] = (struct lull_out_column){ .name = "Kernel Name", .kind = LULL_OUT_TEXT };
	for (size_t i = 0; i < asked.n; i++) {
		const char *unit = metrics[i].unit;

		columns[i + 2] = (struct lull_out_column){ .name = metrics[i].name,
							   .kind = LULL_OUT_NUMBER,
							   .unit = *unit ? unit : NULL };
	}
	lull_out_init(&out, columns, asked.n + 2);
	for (size_t i = 0; i < c->chosen.n; i++) {
		asked.n = 0;
		lull_kernel_metrics_of(p[i], &options->which->metrics, &asked);
		metrics = asked.at;
		lull_out_row(&out);
		lull_out_i64(&out, (i64)p[i]->id);
		lull_out_text(&out, p[i]->name);
		for (size_t n = 0; n + 2 < out.n_columns; n++)
			lull_out_f64(&out, n < asked.n ? metrics[n].value : NAN);
	}
	rc = lull_out_write(&out, &options->out, to, err);
	lull_out_release(&out);
	lull_vec_release(&asked);
	free(columns);
	return rc;
}

/* One column for each metric that any launch has, as scripts for other tools expect of raw CSV. */
static int print_wide(const struct lull_kernel_choice *c, const struct lull_kernel_options *options,
		      FILE *to, struct lull_err *err)
{
	struct lull_profile *const *p = c->chosen.at;
	struct lull_out_column *columns = lull_alloc(LULL_N_K + 4, sizeof(*columns));
	int *ks = lull_alloc(LULL_N_K, sizeof(*ks));
	size_t n = 0, n_head;
	struct lull_out out;
	int rc;

	columns[n++] = (struct lull_out_column){ .name = "ID", .kind = LULL_OUT_ID };
	columns[n++] = (struct lull_out_column){ .name = "Kernel Name",
						 .kind = LULL_OUT_TEXT,
						 .is_kernel = true };
	columns[n++] = (struct lull_out_column){ .name = "Verdict", .kind = LULL_OUT_TEXT };
	n_head = n;
	for (int k = 0; k < LULL_N_K; k++)
		for (size_t i = 0; i < c->chosen.n; i++)
			if (!isnan(lull_k_of(p[i], (enum lull_k)k))) {
				ks[n - n_head] = k;
				columns[n++] =
					(struct lull_out_column){ .name = lull_k_infos[k].key,
								  .kind = LULL_OUT_NUMBER,
								  .unit = lull_k_infos[k].unit };
				break;
			}
	lull_out_init(&out, columns, n);
	for (size_t i = 0; i < c->chosen.n; i++) {
		struct lull_judgement j;

		lull_judge(&j, p[i]);
		lull_out_row(&out);
		lull_out_i64(&out, (i64)p[i]->id);
		lull_out_text(&out, p[i]->name);
		lull_out_text(&out, lull_judgement_id(&j));
		for (size_t k = 0; k < n - n_head; k++)
			lull_out_f64(&out, lull_k_of(p[i], (enum lull_k)ks[k]));
	}
	rc = lull_out_write(&out, &options->out, to, err);
	lull_out_release(&out);
	free(columns);
	free(ks);
	return rc;
}

int lull_kernel_print_table(const struct lull_kernel_choice *c,
			    const struct lull_kernel_options *options, FILE *to,
			    struct lull_err *err)
{
	struct lull_profile *const *p = c->chosen.at;
	struct lull_out out;
	int rc;

	if (options->page == LULL_KERNEL_PAGE_RAW && options->is_csv)
		return lull_kernel_is_asked(options) ? print_wide_asked(c, options, to, err)
						     : print_wide(c, options, to, err);
	lull_out_init(&out, long_columns, LULL_COUNT_OF(long_columns));
	for (size_t i = 0; i < c->chosen.n; i++) {
		if (lull_kernel_is_asked(options)) {
			put_asked(&out, p[i], &options->which->metrics);
			continue;
		}
		if (options->page == LULL_KERNEL_PAGE_RAW) {
			put_raw(&out, p[i]);
			continue;
		}
		put_verdict(&out, p[i]);
		put_sections(&out, p[i], options);
	}
	rc = lull_out_write(&out, &options->out, to, err);
	lull_out_release(&out);
	return rc;
}

/* ---- one row for each kernel ---- */

static const struct lull_out_column summary_columns[] = {
	{ .name = "Launches", .kind = LULL_OUT_INT },
	{ .name = "Avg Time", .kind = LULL_OUT_NS },
	{ .name = "Max Time", .kind = LULL_OUT_NS, .is_spare = true },
	{ .name = "SM", .kind = LULL_OUT_PERCENT },
	{ .name = "Memory", .kind = LULL_OUT_PERCENT },
	{ .name = "DRAM", .kind = LULL_OUT_PERCENT, .is_spare = true },
	{ .name = "Occupancy", .kind = LULL_OUT_PERCENT, .is_spare = true },
	{ .name = "Verdict", .kind = LULL_OUT_TEXT },
	{ .name = "Gain", .kind = LULL_OUT_FLOAT, .decimals = 2, .unit = "x" },
	{ .name = "Longest Wait", .kind = LULL_OUT_TEXT, .is_spare = true },
	{ .name = "Blocks", .kind = LULL_OUT_INT, .is_spare = true },
	{ .name = "Threads", .kind = LULL_OUT_INT, .is_spare = true },
	{ .name = "Of", .kind = LULL_OUT_TEXT },
	{ .name = "Kernel Name", .kind = LULL_OUT_TEXT, .is_kernel = true },
};

/* Launches of one kernel in one shape. */
struct group {
	u64 n, total_ns, max_ns;
	const struct lull_profile *longest; /* the verdict is that of this one */
	f64 sum[4];
	u64 n_sum[4];
};

static const enum lull_k averaged[4] = { LULL_K_sm_busy, LULL_K_memory_throughput,
					 LULL_K_dram_throughput, LULL_K_occupancy };

static const char *group_of(const struct lull_profile *p, int summary)
{
	return summary == LULL_KERNEL_SUMMARY_GPU    ? p->device_name
	       : summary == LULL_KERNEL_SUMMARY_NVTX ? (*p->range ? p->range : "(no range)")
						     : "";
}

static void add(struct group *g, const struct lull_profile *p)
{
	g->n++;
	g->total_ns += p->dur_ns;
	g->max_ns = p->dur_ns > g->max_ns ? p->dur_ns : g->max_ns;
	if (!g->longest || p->dur_ns > g->longest->dur_ns)
		g->longest = p;
	for (size_t i = 0; i < LULL_COUNT_OF(averaged); i++) {
		f64 value = lull_k_of(p, averaged[i]);

		if (isnan(value))
			continue;
		g->sum[i] += value;
		g->n_sum[i]++;
	}
}

static f64 mean(const struct group *g, size_t i)
{
	return g->n_sum[i] ? g->sum[i] / (f64)g->n_sum[i] : NAN;
}

static void put_group(struct lull_out *out, const struct group *g, int summary)
{
	int stall = lull_stall_top(g->longest);
	struct lull_judgement j;

	lull_judge(&j, g->longest);
	lull_out_row(out);
	lull_out_i64(out, (i64)g->n);
	lull_out_i64(out, (i64)(g->total_ns / g->n));
	lull_out_i64(out, (i64)g->max_ns);
	for (size_t i = 0; i < LULL_COUNT_OF(averaged); i++)
		lull_out_f64(out, mean(g, i));
	lull_out_text(out, lull_judgement_id(&j));
	lull_out_f64(out, j.n ? j.claims[0].gain : NAN);
	lull_out_text(out, stall >= 0 ? lull_stalls[stall].title : NULL);
	lull_out_i64(out, lull_k_whole(lull_k_of(g->longest, LULL_K_blocks)));
	lull_out_i64(out, lull_k_whole(lull_k_of(g->longest, LULL_K_block_threads)));
	if (summary != LULL_KERNEL_SUMMARY_KERNEL)
		lull_out_text(out, group_of(g->longest, summary));
	lull_out_text(out, g->longest->name);
}

static void fill_groups(const struct lull_kernel_choice *c, int summary, struct lull_vec *groups)
{
	struct lull_profile *const *p = c->chosen.at;
	struct lull_intern names;
	struct lull_str key = LULL_STR_INIT;

	lull_intern_init(&names);
	for (size_t i = 0; i < c->chosen.n; i++) {
		u32 id;

		lull_str_clear(&key);
		/* The same kernel with another shape is another case. */
		lull_str_addf(&key, "%s\n%s\n%.0f %.0f", group_of(p[i], summary), p[i]->name,
			      lull_k_of(p[i], LULL_K_blocks),
			      lull_k_of(p[i], LULL_K_block_threads));
		id = lull_intern_add(&names, key.at, key.len);
		while (groups->n <= id)
			lull_vec_push(groups);
		add(lull_vec_get(groups, id), p[i]);
	}
	lull_str_release(&key);
	lull_intern_release(&names);
}

int lull_kernel_print_summary(const struct lull_kernel_choice *c,
			      const struct lull_kernel_options *options, FILE *to,
			      struct lull_err *err)
{
	struct lull_out_column columns[LULL_COUNT_OF(summary_columns)];
	struct lull_out_options print = options->out;
	struct lull_vec groups;
	struct lull_out out;
	size_t n = 0;
	int rc;

	for (size_t i = 0; i < LULL_COUNT_OF(summary_columns); i++)
		if (options->summary != LULL_KERNEL_SUMMARY_KERNEL ||
		    strcmp(summary_columns[i].name, "Of") != 0)
			columns[n++] = summary_columns[i];
	lull_vec_init(&groups, sizeof(struct group));
	fill_groups(c, options->summary, &groups);
	lull_out_init(&out, columns, n);
	for (size_t i = 0; i < groups.n; i++)
		put_group(&out, lull_vec_get(&groups, i), options->summary);
	print.sort_ix = 2;
	rc = lull_out_write(&out, &print, to, err);
	lull_out_release(&out);
	lull_vec_release(&groups);
	return rc;
}
