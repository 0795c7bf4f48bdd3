#include "cmd/timeline/timeline_draw.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/str.h"
#include "cmd/timeline/cause_letters.h"
#include "model/step.h"
#include "model/words.h"
#include "text/strip.h"
#include "text/term.h"

/* Columns of the words before each line. */
#define LABEL_COLUMNS 14

/* Rows of the device: the classes of kernels, then copies. */
#define COPIES LULL_N_KERNEL_CLASSES
#define N_ROWS (LULL_N_KERNEL_CLASSES + 1)

/* What the launching thread does, by the kind of its calls. */
enum doing { DOING_LAUNCH, DOING_SYNC, DOING_COPY, DOING_OTHER, DOING_CODE, DOING_PAUSE, N_DOINGS };

static const struct {
	char letter;
	const char *words;
} doings[N_DOINGS] = {
	[DOING_LAUNCH] = { 'l', "launches" },	[DOING_SYNC] = { 'w', "waits for the device" },
	[DOING_COPY] = { 'c', "copies" },	[DOING_OTHER] = { 'o', "other CUDA calls" },
	[DOING_CODE] = { '.', "its own code" }, [DOING_PAUSE] = { '-', "waits for something else" },
};

struct picture {
	FILE *to;
	const struct lull_why *why;
	const struct lull_timeline_look *look;
	u64 from_ns, to_ns;
	u32 first_round, n_rounds; /* of the lead; n_rounds 0: the whole run */
	u64 *numbers;		   /* of the lead's rounds */
	size_t n_cells;
	struct lull_cause_letters letters;
	bool are_used[N_DOINGS];	  /* what the launching threads did */
	u64 cost_ns[LULL_SUBJECT_CAUSES]; /* idle by cause */
	f64 class_ns[N_ROWS];
};

/* ---- which steps ---- */

/* The numbers of the rounds: the program's own if it counts, else their index. */
static u64 *number_rounds(const struct lull_subject *s)
{
	const struct lull_round *rounds = s->rounds.all.at;
	u64 *numbers = lull_alloc(s->rounds.all.n + 1, sizeof(*numbers));
	struct lull_steps steps;

	for (size_t i = 0; i < s->rounds.all.n; i++)
		numbers[i] = i;
	if (s->rounds.source != LULL_ROUNDS_STEP && s->rounds.source != LULL_ROUNDS_HOOK)
		return numbers;
	lull_steps_init(&steps, s->reader, LULL_SPAN_ALL);
	for (size_t k = 0; k < steps.all.n; k++) {
		const struct lull_step *step = lull_vec_get(&steps.all, k);

		for (size_t i = 0; i < s->rounds.all.n; i++) {
			if (rounds[i].mark_ns == step->start_ns)
				numbers[i] = step->number;
		}
	}
	lull_steps_release(&steps);
	return numbers;
}

static f64 round_ns(const struct lull_rounds *r, u32 i)
{
	return (f64)(lull_round_end_ns(r, i) - lull_round_begin_ns(r, i));
}

/* The first of `n` steady rounds in a row that together take what the median says. */
static u32 typical_round(const struct picture *p, u32 n)
{
	const struct lull_rounds *r = &p->why->lead->rounds;
	u32 best = r->first_steady;
	f64 least = INFINITY;

	for (u32 i = r->first_steady; i + n <= r->all.n; i++) {
		f64 off = 0;

		for (u32 k = 0; k < n; k++)
			off += fabs(round_ns(r, i + k) - p->why->median_ns);
		if (off < least) {
			least = off;
			best = i;
		}
	}
	return best;
}

/* The whole run, where there are no steps. */
static void choose_all(struct picture *p)
{
	const struct lull_units *u = &p->why->lead->units;

	p->from_ns = u->n ? u->at[0].begin_ns : 0;
	p->to_ns = p->from_ns + 1;
	for (u32 i = 0; i < u->n; i++)
		p->to_ns = u->at[i].end_ns > p->to_ns ? u->at[i].end_ns : p->to_ns;
}

static int choose_steps(struct picture *p, struct lull_err *err)
{
	const struct lull_rounds *r = &p->why->lead->rounds;
	u32 n = p->look->n_steps, steady = lull_rounds_n_steady(r), i = 0;

	if (p->look->step != LULL_TIMELINE_NO_STEP) {
		while (i < r->all.n && p->numbers[i] != p->look->step)
			i++;
		if (i == r->all.n)
			return lull_fail(err, LULL_E_NOT_FOUND,
					 "there is no step %llu; there are %zu, from %llu to %llu",
					 (unsigned long long)p->look->step, r->all.n,
					 (unsigned long long)p->numbers[0],
					 (unsigned long long)p->numbers[r->all.n - 1]);
		n = n < r->all.n - i ? n : (u32)r->all.n - i;
	} else if (!steady) {
		n = (u32)r->all.n;
	} else {
		n = n < steady ? n : steady;
		i = typical_round(p, n);
	}
	p->first_round = i;
	p->n_rounds = n;
	p->from_ns = lull_round_begin_ns(r, i);
	p->to_ns = lull_round_end_ns(r, i + n - 1);
	return LULL_OK;
}

static int choose(struct picture *p, struct lull_err *err)
{
	if (!p->why->lead->rounds.all.n && p->look->step != LULL_TIMELINE_NO_STEP)
		return lull_fail(err, LULL_E_NOT_FOUND,
				 "no steps were found; leave --step out to see the whole run");
	if (!p->why->lead->rounds.all.n)
		choose_all(p);
	else if (choose_steps(p, err))
		return err->code;
	if (p->to_ns <= p->from_ns)
		p->to_ns = p->from_ns + 1;
	return LULL_OK;
}

/* ---- lines ---- */

static void put_line(struct picture *p, const char *label, const char *text,
		     enum lull_colour colour)
{
	bool has_colour = p->look->has_colour && colour != LULL_COLOUR_NONE;
	size_t len = strlen(text);

	while (len && text[len - 1] == ' ')
		len--;
	fprintf(p->to, "%-*s%s%.*s%s\n", len ? LABEL_COLUMNS : 0, label,
		lull_term_colour(colour, has_colour), (int)len, text,
		lull_term_colour(LULL_COLOUR_NONE, has_colour));
}

static void new_strip(const struct picture *p, struct lull_strip *s)
{
	lull_strip_init(s, p->from_ns, p->to_ns, p->n_cells);
}

static void put_blocks(struct picture *p, const char *label, const struct lull_strip *s,
		       enum lull_colour colour)
{
	struct lull_str text = LULL_STR_INIT;

	lull_strip_blocks(&text, s, p->look->is_ascii);
	put_line(p, label, lull_str_text(&text), colour);
	lull_str_release(&text);
}

/* Where steps begin, with their numbers as far as there is room. */
static void put_steps(struct picture *p)
{
	const struct lull_rounds *r = &p->why->lead->rounds;
	struct lull_str text = LULL_STR_INIT;
	struct lull_strip s;

	new_strip(p, &s);
	for (u32 i = 0; i < p->n_rounds; i++) {
		size_t at = lull_strip_cell(&s, lull_round_begin_ns(r, p->first_round + i));
		char mark[32];
		int len = snprintf(mark, sizeof(mark), "|%llu",
				   (unsigned long long)p->numbers[p->first_round + i]);

		if (at < text.len || at + (size_t)len > p->n_cells)
			continue;
		while (text.len < at)
			lull_str_add(&text, " ", 1);
		lull_str_puts(&text, mark);
	}
	if (p->n_rounds)
		put_line(p, "step", lull_str_text(&text), LULL_COLOUR_BOLD);
	lull_strip_release(&s);
	lull_str_release(&text);
}

static const enum lull_colour class_colours[N_ROWS] = {
	[LULL_KERNEL_MATMUL] = LULL_COLOUR_BLUE,
	[LULL_KERNEL_ATTENTION] = LULL_COLOUR_CYAN,
	[LULL_KERNEL_CONVOLUTION] = LULL_COLOUR_BLUE,
	[LULL_KERNEL_ELEMENTWISE] = LULL_COLOUR_GREEN,
	[LULL_KERNEL_OPTIMIZER] = LULL_COLOUR_GREEN,
	[LULL_KERNEL_REDUCTION] = LULL_COLOUR_CYAN,
	[LULL_KERNEL_COLLECTIVE] = LULL_COLOUR_MAGENTA,
	[COPIES] = LULL_COLOUR_YELLOW,
};

static const char *row_name(size_t row)
{
	return row == COPIES ? "copies" : lull_kernel_class_name((enum lull_kernel_class)row);
}

static size_t row_of(const struct lull_unit *unit)
{
	return unit->kind == LULL_UNIT_COPY || unit->kind == LULL_UNIT_MEMSET ? COPIES
	       : unit->kind == LULL_UNIT_COLLECTIVE ? LULL_KERNEL_COLLECTIVE
						    : unit->class;
}

static int by_sum(const void *a, const void *b)
{
	const struct lull_strip *const *x = a, *const *y = b;

	return ((*x)->sum_ns < (*y)->sum_ns) - ((*x)->sum_ns > (*y)->sum_ns);
}

/* What ran on the device, a line for each class, the longest first; copies are the last. */
static void put_device(struct picture *p, const struct lull_subject *s)
{
	struct lull_strip rows[N_ROWS], *order[N_ROWS];

	for (size_t i = 0; i < N_ROWS; i++) {
		new_strip(p, &rows[i]);
		order[i] = &rows[i];
	}
	for (u32 i = 0; i < s->units.n; i++)
		lull_strip_add(&rows[row_of(&s->units.at[i])], s->units.at[i].begin_ns,
			       s->units.at[i].end_ns);
	lull_sort(order, N_ROWS - 1, sizeof(struct lull_strip *), by_sum);
	for (size_t i = 0; i < N_ROWS; i++) {
		size_t row = (size_t)(order[i] - rows);

		if (order[i]->sum_ns > 0)
			put_blocks(p, row_name(row), order[i], class_colours[row]);
		if (s == p->why->lead)
			p->class_ns[row] = order[i]->sum_ns;
	}
	for (size_t i = 0; i < N_ROWS; i++)
		lull_strip_release(&rows[i]);
}

/* ---- idle time ---- */

/* What the shown steps cost by cause: as `lull why` has it, or by what is in view. */
static void count_costs(struct picture *p, const struct lull_strip *causes)
{
	const struct lull_subject *s = p->why->lead;
	bool is_exact = s->step_cost_ns && p->n_rounds && p->first_round >= s->rounds.first_steady;

	for (int c = 0; c < LULL_N_CAUSES; c++) {
		p->cost_ns[c] = (u64)llround(causes[c].sum_ns);
		for (u32 i = 0; is_exact && i < p->n_rounds; i++) {
			size_t step = p->first_round - s->rounds.first_steady + i;

			p->cost_ns[c] = (i ? p->cost_ns[c] : 0) +
					s->step_cost_ns[step * LULL_SUBJECT_CAUSES + (size_t)c];
		}
	}
}

static void put_idle(struct picture *p, const struct lull_subject *s)
{
	const struct lull_interval *at = s->intervals.at;
	struct lull_strip causes[LULL_N_CAUSES];
	struct lull_str text = LULL_STR_INIT;
	f64 sums[LULL_N_CAUSES];

	for (int c = 0; c < LULL_N_CAUSES; c++)
		new_strip(p, &causes[c]);
	for (size_t i = 0; i < s->intervals.n; i++)
		lull_strip_add(&causes[at[i].cause], at[i].from_ns, at[i].to_ns);
	for (int c = 0; c < LULL_N_CAUSES; c++)
		sums[c] = causes[c].sum_ns;
	lull_cause_letters_give(&p->letters, sums);
	if (s == p->why->lead)
		count_costs(p, causes);
	for (size_t cell = 0; cell < p->n_cells; cell++) {
		int most = lull_cause_letters_most(causes, cell);

		lull_cause_letters_put(&p->letters, &text, most, causes[most].cells[cell]);
	}
	if (s->intervals.n)
		put_line(p, "idle, why", lull_str_text(&text), LULL_COLOUR_NONE);
	for (int c = 0; c < LULL_N_CAUSES; c++)
		lull_strip_release(&causes[c]);
	lull_str_release(&text);
}

/* ---- threads ---- */

static enum doing doing_of(const struct lull_node *node)
{
	switch ((enum lull_call_kind)node->kind) {
	case LULL_KIND_OF_LAUNCH:
		return DOING_LAUNCH;
	case LULL_KIND_OF_COPY:
		return DOING_COPY;
	case LULL_KIND_OF_SYNC:
		return DOING_SYNC;
	case LULL_KIND_OF_ALLOC:
	case LULL_KIND_OF_EVENT:
	case LULL_KIND_OF_MODULE:
	case LULL_KIND_OF_QUERY:
	case LULL_KIND_OF_OTHER:
		break;
	}
	return DOING_OTHER;
}

/*
 * The character of one cell: calls where they take an eighth of it, in capitals from half of it on.
 */
static void put_doing(struct picture *p, struct lull_str *to, const struct lull_strip *rows,
		      size_t cell)
{
	int most = 0;
	char letter = ' ';

	for (int i = 1; i < DOING_CODE; i++) {
		if (rows[i].cells[cell] > rows[most].cells[cell])
			most = i;
	}
	if (rows[most].cells[cell] < LULL_LETTER_LEAST)
		most = 2 * rows[DOING_PAUSE].cells[cell] > rows[DOING_CODE].cells[cell]
			       ? DOING_PAUSE
			       : DOING_CODE;
	if (rows[most].cells[cell] > 0) {
		letter = doings[most].letter;
		p->are_used[most] = true;
	}
	if (rows[most].cells[cell] >= LULL_LETTER_HALF)
		letter = (char)toupper(letter);
	lull_str_add(to, &letter, 1);
}

/* When the thread does not run in the gap before a call, and nobody took its CPU. */
static void add_pauses(struct lull_strip *row, const struct lull_subject *s, u32 node, u64 from_ns)
{
	const struct lull_node *at = &s->chain.nodes[node];
	const struct lull_host_pause *pauses = s->host.pauses.at;

	for (size_t i = lull_host_pause_at(&s->host, at->lane, from_ns);
	     i < s->host.pauses.n && pauses[i].lane == at->lane &&
	     pauses[i].begin_ns < at->begin_ns;
	     i++) {
		struct lull_span pause = { pauses[i].begin_ns, pauses[i].end_ns };

		pause = lull_span_cut(pause, from_ns, at->begin_ns);
		if (pauses[i].kind == LULL_HOST_BLOCKED)
			lull_strip_add(row, pause.from_ns, pause.to_ns);
	}
}

/* The calls of the threads of one chain, and the code between them. */
static void put_chain(struct picture *p, const struct lull_subject *s, u32 chain)
{
	struct lull_strip rows[N_DOINGS];
	struct lull_str text = LULL_STR_INIT;

	for (int i = 0; i < N_DOINGS; i++)
		new_strip(p, &rows[i]);
	for (u32 i = s->chain.first[chain]; i < s->chain.first[chain + 1]; i++) {
		const struct lull_node *node = &s->chain.nodes[i];

		lull_strip_add(&rows[doing_of(node)], node->begin_ns, node->end_ns);
		lull_strip_add(&rows[DOING_CODE], lull_chain_gap_ns(&s->chain, i), node->begin_ns);
		add_pauses(&rows[DOING_PAUSE], s, i, lull_chain_gap_ns(&s->chain, i));
	}
	for (size_t cell = 0; cell < p->n_cells; cell++)
		put_doing(p, &text, rows, cell);
	put_line(p, chain ? "  another" : "launching", lull_str_text(&text), LULL_COLOUR_NONE);
	for (int i = 0; i < N_DOINGS; i++)
		lull_strip_release(&rows[i]);
	lull_str_release(&text);
}

static void put_workers(struct picture *p, const struct lull_subject *s)
{
	const struct lull_others_span *at = s->others.spans.at;
	struct lull_strip workers;

	if (!s->others.is_known)
		return;
	new_strip(p, &workers);
	for (size_t i = 0; i < s->others.spans.n; i++)
		lull_strip_add(&workers, at[i].from_ns, at[i].to_ns);
	if (workers.sum_ns > 0)
		put_blocks(p, "other threads", &workers, LULL_COLOUR_NONE);
	lull_strip_release(&workers);
}

/* ---- the whole ---- */

static void put_heading(struct picture *p)
{
	const struct lull_rounds *r = &p->why->lead->rounds;
	struct lull_str text = LULL_STR_INIT;
	char how[256];

	if (!p->n_rounds)
		lull_str_addf(&text, "The whole run, %s; no steps were found.",
			      lull_format_ns(p->to_ns - p->from_ns).text);
	else
		lull_str_addf(
			&text, "%u of %zu step%s, %s, from %s on (%s%s).", p->n_rounds, r->all.n,
			r->all.n == 1 ? "" : "s", lull_format_ns(p->to_ns - p->from_ns).text,
			lull_format_ns(p->from_ns).text, lull_rounds_how(r, how, sizeof(how)),
			p->first_round < r->first_steady ? "; warm-up, its idle time has no cause"
							 : "");
	lull_term_say(p->to, 0, p->look->width, "%s", lull_str_text(&text));
	lull_str_release(&text);
}

static void put_ruler(struct picture *p)
{
	struct lull_str text = LULL_STR_INIT;

	lull_strip_ruler(&text, p->to_ns - p->from_ns, p->n_cells);
	put_line(p, "", lull_str_text(&text), LULL_COLOUR_DIM);
	lull_str_release(&text);
}

static void put_subject(struct picture *p, const struct lull_subject *s)
{
	if (p->why->n_subjects > 1)
		fprintf(p->to, "GPU %u%s\n", s->device,
			s == p->why->lead ? ", which the answer of lull why is about" : "");
	put_device(p, s);
	put_idle(p, s);
	for (u32 i = 0; i < s->chain.n_chains; i++)
		put_chain(p, s, i);
	put_workers(p, s);
}

static void put_causes(struct picture *p)
{
	f64 whole = (f64)(p->to_ns - p->from_ns);
	u64 sum = 0;

	for (int c = 0; c < LULL_N_CAUSES; c++)
		sum += p->cost_ns[c];
	if (!sum)
		return;
	fprintf(p->to, "Without compute %s (%.0f %%):\n", lull_why_time((f64)sum).text,
		100 * (f64)sum / whole);
	lull_cause_letters_list(&p->letters, p->to, p->cost_ns, whole);
}

static void put_legend(struct picture *p)
{
	struct lull_str text = LULL_STR_INIT;
	const char *before = "";

	for (;;) {
		size_t most = 0;

		for (size_t i = 1; i < N_ROWS; i++)
			most = p->class_ns[i] > p->class_ns[most] ? i : most;
		if (p->class_ns[most] <= 0)
			break;
		lull_str_addf(&text, "%s%s %s", before, row_name(most),
			      lull_why_time(p->class_ns[most]).text);
		p->class_ns[most] = 0;
		before = ", ";
	}
	if (text.len)
		lull_term_say(p->to, 0, p->look->width, "Work: %s.", text.at);
	put_causes(p);
	lull_str_clear(&text);
	before = "";
	for (int i = 0; i < N_DOINGS; i++) {
		if (!p->are_used[i])
			continue;
		lull_str_addf(&text, "%s%c %s", before, doings[i].letter, doings[i].words);
		before = ", ";
	}
	if (text.len)
		lull_term_say(p->to, 0, p->look->width, "Launching thread: %s.", text.at);
	lull_str_release(&text);
}

int lull_timeline_draw(FILE *to, const struct lull_why *why, const struct lull_timeline_look *look,
		       struct lull_err *err)
{
	struct picture p = { .to = to, .why = why, .look = look };

	p.letters.has_colour = look->has_colour;
	p.n_cells = (size_t)look->width - LABEL_COLUMNS;
	p.numbers = number_rounds(why->lead);
	if (choose(&p, err)) {
		free(p.numbers);
		return err->code;
	}
	put_heading(&p);
	put_ruler(&p);
	put_steps(&p);
	for (u32 i = 0; i < why->n_subjects; i++)
		put_subject(&p, &why->subjects[i]);
	put_legend(&p);
	free(p.numbers);
	return LULL_OK;
}
