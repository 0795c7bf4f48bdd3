/*
 * kernel_print - launches as people read them: verdict, numbers, the thing to try, sections.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "text/shorten.h"
#include "text/term.h"
#include "cmd/kernel/kernel_metrics.h"
#include "cmd/kernel/kernel_sass.h"
#include "cmd/kernel/kernel_show.h"
#include "cmd/kernel/kernel_usual.h"
#include "counter/judge.h"
#include "counter/section.h"

/* Where the text of a line begins, after its label. */
#define INDENT 10
#define BAR    30
/* This many launches are printed with their roofline; more would hide the verdicts. */
#define FEW 3

struct printer {
	FILE *to;
	int width;
	bool has_colour;
	const struct lull_kernel_options *options;
};

static void label(const struct printer *out, const char *text)
{
	fprintf(out->to, "  %s%-*s%s", lull_term_colour(LULL_COLOUR_DIM, out->has_colour),
		INDENT - 2, text, lull_term_colour(LULL_COLOUR_NONE, out->has_colour));
}

static void labelled(const struct printer *out, const char *name, const char *text)
{
	label(out, name);
	lull_term_wrap(out->to, text, INDENT, out->width);
}

/* "####....  83.1 %" */
static void bar(const struct printer *out, f64 percent)
{
	static const char full[] = "##################################################";
	int n = (int)lround(fmin(100, fmax(0, percent)) * BAR / 100);

	fprintf(out->to, "%.*s%*s %6.1f %%", n, full, BAR - n, "", percent);
}

/* ---- the verdict ---- */

/* How many launches a range had; runs that differ are not of the same work. */
static void add_launches(struct lull_str *text, const struct lull_profile *p)
{
	lull_str_addf(text, ", %s launch%s", lull_format_grouped(p->n_launches).text,
		      p->n_launches == 1 ? "" : "es");
	if (p->n_launches_least != p->n_launches)
		lull_str_addf(text,
			      " in one run and %s in another: its numbers are of different "
			      "work",
			      lull_format_grouped(p->n_launches_least).text);
}

static void print_head(const struct printer *out, const struct lull_profile *p)
{
	struct lull_str text = LULL_STR_INIT;

	lull_shorten_name(&text, *p->name ? p->name : "(a kernel without a name)",
			  (size_t)out->width);
	fprintf(out->to, "%s%s%s\n", lull_term_colour(LULL_COLOUR_BOLD, out->has_colour),
		lull_str_text(&text), lull_term_colour(LULL_COLOUR_NONE, out->has_colour));
	lull_str_clear(&text);
	lull_str_addf(&text, "%s %llu, %s", lull_profile_is_range(p) ? "range" : "launch",
		      (unsigned long long)p->ordinal,
		      p->dur_ns ? lull_format_ns(p->dur_ns).text : "duration not known");
	if (*p->device_name)
		lull_str_addf(&text, " on %s", p->device_name);
	if (lull_profile_is_range(p))
		add_launches(&text, p);
	else
		lull_str_addf(&text, ", %s block%s of %u threads",
			      lull_format_grouped(lull_k_whole(lull_k_of(p, LULL_K_blocks))).text,
			      lull_k_of(p, LULL_K_blocks) == 1 ? "" : "s",
			      (u32)lull_k_whole(lull_k_of(p, LULL_K_block_threads)));
	if (p->n_passes)
		lull_str_addf(&text, ", %u pass%s", p->n_passes, p->n_passes == 1 ? "" : "es");
	if (*p->range)
		lull_str_addf(&text, ", in %s", p->range);
	fputs("  ", out->to);
	lull_term_wrap(out->to, lull_str_text(&text), 2, out->width);
	lull_str_release(&text);
}

/* The time without counters, where --from names a report that has the kernel. */
static void print_usual(const struct printer *out, const struct lull_profile *p)
{
	const struct lull_vec *all = out->options->usual;
	struct lull_str text = LULL_STR_INIT;
	struct lull_kernel_usual usual;

	if (!all || lull_profile_is_range(p) || !lull_kernel_usual_of(all, p, &usual))
		return;
	lull_str_addf(&text, "%s on average without counters, in %s launch%s of %s",
		      lull_format_ns(usual.total_ns / usual.n).text,
		      lull_format_grouped((i64)usual.n).text, usual.n == 1 ? "" : "es",
		      out->options->which->from);
	labelled(out, "Usually", lull_str_text(&text));
	lull_str_release(&text);
}

static void print_claim(const struct printer *out, const struct lull_kclaim *claim)
{
	fprintf(out->to, "  %s%s%s", lull_term_colour(LULL_COLOUR_YELLOW, out->has_colour),
		claim->id, lull_term_colour(LULL_COLOUR_NONE, out->has_colour));
	if (*claim->detail)
		fprintf(out->to, " (%s)", claim->detail);
	fprintf(out->to, ": %s\n", claim->title);
	for (size_t i = 0; i < claim->n_proofs; i++)
		labelled(out, "", claim->proofs[i]);
}

static void print_loads(const struct printer *out, const struct lull_profile *p)
{
	static const struct {
		const char *label;
		enum lull_k k;
	} heads[] = { { "SM", LULL_K_sm_busy }, { "Memory", LULL_K_memory_throughput } };

	for (size_t i = 0; i < LULL_COUNT_OF(heads); i++) {
		f64 value = lull_k_of(p, heads[i].k);

		if (isnan(value))
			continue;
		label(out, heads[i].label);
		bar(out, value);
		fputc('\n', out->to);
	}
}

static void print_waits(const struct printer *out, const struct lull_profile *p)
{
	enum lull_stall_ix order[LULL_N_STALLS];
	size_t n = lull_stalls_sorted(p, order), n_shown = 0;
	struct lull_str text = LULL_STR_INIT;

	for (size_t i = 0; i < n && n_shown < 3; i++) {
		f64 share = lull_stall_share(p, order[i]);

		if (lull_stalls[order[i]].kind == LULL_STALL_WORK || share < 0.05)
			continue;
		lull_str_addf(&text, "%s%s %.0f %%", n_shown++ ? ", " : "",
			      lull_stalls[order[i]].title, 100 * share);
	}
	if (n_shown)
		labelled(out, "Waits", lull_str_text(&text));
	lull_str_release(&text);
}

static void print_advice(const struct printer *out, const struct lull_judgement *j)
{
	struct lull_str text = LULL_STR_INIT;

	if (j->n) {
		labelled(out, "Try", j->claims[0].fix);
		lull_str_addf(&text, "up to %.*f x faster, if nothing else gets in the way",
			      j->claims[0].gain < 10 ? 2 : 0, j->claims[0].gain);
		if (!isnan(j->claims[0].gain))
			labelled(out, "Gain", lull_str_text(&text));
	}
	lull_str_clear(&text);
	for (size_t i = 1; i < j->n; i++) {
		const struct lull_kclaim *claim = &j->claims[i];

		lull_str_addf(&text, "%s%s", i > 1 ? ", " : "", claim->id);
		if (*claim->detail)
			lull_str_addf(&text, " (%s)", claim->detail);
		if (!isnan(claim->gain))
			lull_str_addf(&text, " %.*f x", claim->gain < 10 ? 1 : 0, claim->gain);
	}
	if (text.len)
		labelled(out, "Also", lull_str_text(&text));
	lull_str_release(&text);
}

static void print_unknown(const struct printer *out, const struct lull_profile *p,
			  const struct lull_judgement *j)
{
	const char *trouble = lull_profile_trouble(p);

	fprintf(out->to, "  %sunknown%s: what limits it is not known\n",
		lull_term_colour(LULL_COLOUR_YELLOW, out->has_colour),
		lull_term_colour(LULL_COLOUR_NONE, out->has_colour));
	if (trouble)
		labelled(out, "", trouble);
	else if (*j->missing) {
		labelled(out, "Try", "measure more: --set full");
		labelled(out, "Missing", j->missing);
	}
}

static void print_verdict(const struct printer *out, const struct lull_profile *p)
{
	struct lull_judgement j;

	lull_judge(&j, p);
	if (j.n)
		print_claim(out, &j.claims[0]);
	else
		print_unknown(out, p, &j);
	print_loads(out, p);
	print_waits(out, p);
	print_advice(out, &j);
	if (j.n && *j.unchecked) {
		struct lull_str text = LULL_STR_INIT;

		lull_str_addf(&text, "could not be checked: %s; --set full measures all metrics",
			      j.unchecked);
		labelled(out, "Missing", lull_str_text(&text));
		lull_str_release(&text);
	}
}

/* ---- metrics that were asked for ---- */

static void print_asked(const struct printer *out, const struct lull_profile *p)
{
	const struct lull_kernel_metric *metrics;
	struct lull_vec asked;
	int wide = 0;

	lull_vec_init(&asked, sizeof(struct lull_kernel_metric));
	lull_kernel_metrics_of(p, &out->options->which->metrics, &asked);
	metrics = asked.at;
	for (size_t i = 0; i < asked.n; i++)
		wide = (int)strlen(metrics[i].name) > wide ? (int)strlen(metrics[i].name) : wide;
	for (size_t i = 0; i < asked.n; i++)
		fprintf(out->to, "  %-*s  %14s\n", wide, metrics[i].name,
			lull_k_format(metrics[i].value, metrics[i].unit).text);
	if (lull_profile_trouble(p))
		labelled(out, "", lull_profile_trouble(p));
	lull_vec_release(&asked);
}

/* ---- sections ---- */

static void print_line(const struct printer *out, const struct lull_sheet *sheet,
		       const struct lull_sheet_line *line, int wide)
{
	const char *note = lull_sheet_note_of(sheet, line);
	int at;

	switch (line->kind) {
	case LULL_SHEET_NOTE:
		fputs("  ", out->to);
		lull_term_wrap(out->to, note, 2, out->width);
		return;
	case LULL_SHEET_CHART:
		fprintf(out->to, "%s\n", note);
		return;
	case LULL_SHEET_BAR:
		at = 2 + (wide ? wide + 2 : 0);
		fprintf(out->to, "  %-*s%s", wide, line->label, wide ? "  " : "");
		if (out->width >= at + BAR + 11 + 30)
			bar(out, line->value), at += BAR;
		else
			fprintf(out->to, "%10.1f %%", line->value), at += 3;
		at += 9;
		break;
	default:
		at = 2 + wide + 2 + 12;
		fprintf(out->to, "  %-*s  %12s", wide, line->label,
			lull_k_format(line->value, line->unit).text);
	}
	if (*note && out->width >= at + (line->is_explained ? 60 : 30)) {
		fprintf(out->to, "  %s", lull_term_colour(LULL_COLOUR_DIM, out->has_colour));
		lull_term_wrap(out->to, note, at + 2, out->width);
		fputs(lull_term_colour(LULL_COLOUR_NONE, out->has_colour), out->to);
	} else {
		fputc('\n', out->to);
	}
}

static void print_section(const struct printer *out, const struct lull_profile *p,
			  const struct lull_section *section)
{
	const struct lull_sheet_line *lines;
	struct lull_sheet sheet;
	int wide = 0;

	lull_sheet_init(&sheet);
	lull_sheet_fill(&sheet, section, p);
	lines = sheet.lines.at;
	fprintf(out->to, "\n%s%s%s\n", lull_term_colour(LULL_COLOUR_BOLD, out->has_colour),
		section->title, lull_term_colour(LULL_COLOUR_NONE, out->has_colour));
	for (size_t i = 0; i < sheet.lines.n; i++) {
		int columns = (int)lull_term_columns(lines[i].label);

		wide = columns > wide ? columns : wide;
	}
	for (size_t i = 0; i < sheet.lines.n; i++)
		print_line(out, &sheet, &lines[i], wide);
	if (!sheet.lines.n)
		fprintf(out->to, "  not measured; --section %s does\n", section->name);
	lull_sheet_release(&sheet);
}

static bool is_shown(const struct printer *out, const struct lull_section *section, size_t n)
{
	const struct lull_kernel_options *o = out->options;

	if (o->page == LULL_KERNEL_PAGE_SOURCE)
		return strcmp(section->name, "source") == 0;
	if (o->page == LULL_KERNEL_PAGE_DETAILS || o->which->sections.n)
		return lull_kernel_wants(o, section->name);
	return n <= FEW && strcmp(section->name, "roofline") == 0;
}

/* In the short page a roofline that was not measured is not worth a line. */
static bool is_silent(const struct printer *out, const struct lull_profile *p,
		      const struct lull_section *section)
{
	return out->options->page == LULL_KERNEL_PAGE_VERDICT && !out->options->which->sections.n &&
	       !(lull_k_of(p, LULL_K_flops) > 0) && strcmp(section->name, "roofline") == 0;
}

int lull_kernel_print(const struct lull_kernel_choice *c, const struct lull_kernel_options *options,
		      FILE *to, struct lull_err *err)
{
	struct printer out = { to, lull_term_width(to), lull_term_has_colour(to), options };
	struct lull_profile *const *p = c->chosen.at;
	size_t n = options->top && options->top < c->chosen.n ? options->top : c->chosen.n;

	for (size_t i = 0; i < n; i++) {
		fputs(i ? "\n" : "", to);
		print_head(&out, p[i]);
		print_usual(&out, p[i]);
		if (lull_kernel_is_asked(options)) {
			print_asked(&out, p[i]);
			continue;
		}
		if (options->page != LULL_KERNEL_PAGE_SOURCE)
			print_verdict(&out, p[i]);
		for (const struct lull_section *const *s = lull_sections; *s; s++)
			if (is_shown(&out, *s, n) && !is_silent(&out, p[i], *s))
				print_section(&out, p[i], *s);
		if (options->page == LULL_KERNEL_PAGE_SOURCE &&
		    lull_kernel_print_sass(p[i], c->reader, to, err))
			return err->code;
	}
	if (n < c->chosen.n)
		fprintf(to, "\n%zu more launches; --top 0 shows all\n", c->chosen.n - n);
	return ferror(to) ? lull_fail(err, LULL_E_IO, "the answer could not be written") : LULL_OK;
}
