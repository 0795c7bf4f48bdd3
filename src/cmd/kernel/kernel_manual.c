/*
 * kernel_manual - the texts of lull-kernels(7), from the lists: verdicts, waits, values.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "text/term.h"
#include "cmd/kernel/kernel_show.h"
#include "counter/judge.h"

/* Columns of the manual pages. */
#define PAGE_WIDTH 118

static void print_verdicts(FILE *to)
{
	fputs("## VERDICTS\n\n", to);
	for (const struct lull_kverdict *const *v = lull_verdicts; *v; v++) {
		fprintf(to, "### %s\n\n%c%s.\n\n", (*v)->id, toupper((unsigned char)*(*v)->title),
			(*v)->title + 1);
		lull_term_wrap(to, (*v)->why, 0, PAGE_WIDTH);
		fputc('\n', to);
	}
}

static void print_waits(FILE *to)
{
	fputs("## WARP STATES\n\n", to);
	for (int i = 0; i < LULL_N_STALLS; i++) {
		const struct lull_stall_info *s = &lull_stalls[i];

		fprintf(to, "%s (`%s`)\n:   ", s->title, s->reason);
		lull_term_wrap(to, lull_k_infos[s->metric].meaning, 4, PAGE_WIDTH);
		if (*s->help) {
			fputs("    Helps: ", to);
			lull_term_wrap(to, s->help, 4, PAGE_WIDTH);
		}
		fputc('\n', to);
	}
}

/* Formulas are C with macros; people read M(x) as x. */
static void print_formula(FILE *to, const char *formula)
{
	for (const char *at = formula; *at;) {
		static const char *const names[] = { "M(", "OR0(", "KNOWN(", "LAUNCH(", "DEVICE(" };
		size_t skipped = 0;

		for (size_t i = 0; i < LULL_COUNT_OF(names); i++)
			if (strncmp(at, names[i], strlen(names[i])) == 0 &&
			    (at == formula || !isalnum((unsigned char)at[-1])))
				skipped = strlen(names[i]);
		if (!skipped) {
			fputc(*at++, to);
			continue;
		}
		/* What is inside is a name, or a name in another such pair. */
		at += skipped;
		while (*at && *at != ')' && *at != '(')
			fputc(*at++, to);
		at += *at == ')';
	}
}

static void print_values(FILE *to)
{
	fputs("## VALUES\n\n", to);
	for (int i = LULL_N_KMETRICS; i < LULL_N_K; i++) {
		const struct lull_k_info *k = &lull_k_infos[i];

		fprintf(to, "`%s`%s%s%s\n:   ", k->key, *k->unit ? " (" : "", k->unit,
			*k->unit ? ")" : "");
		lull_term_wrap(to, k->meaning, 4, PAGE_WIDTH);
		fputs("    `", to);
		print_formula(to, k->formula);
		fputs("`\n\n", to);
	}
}

void lull_kernel_print_manual(FILE *to)
{
	print_verdicts(to);
	print_waits(to);
	print_values(to);
}
