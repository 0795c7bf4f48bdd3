#include "text/labels.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/sort.h"
#include "text/kernel_name.h"
#include "text/shorten.h"
#include "text/term.h"

/* Pieces that are compared, and added to a label before it gets a number instead. */
#define MAX_TOKENS 96u
#define MAX_ADDED  3u

/* A kernel on its way to a label. */
struct candidate {
	u32 number; /* of its text */
	u32 n_tokens;
	u32 n_added;
	const char *text;
	struct lull_str *label;
	struct lull_kernel_token tokens[MAX_TOKENS]; /* types first, then the others */
};

void lull_labels_init(struct lull_labels *l, bool are_kernels)
{
	*l = (struct lull_labels){ .are_kernels = are_kernels, .columns = SIZE_MAX };
	lull_intern_init(&l->texts);
	lull_vec_init(&l->labels, sizeof(struct lull_str));
	lull_map_init(&l->taken);
}

void lull_labels_release(struct lull_labels *l)
{
	struct lull_str *labels = l->labels.at;

	for (size_t i = 0; i < l->labels.n; i++)
		lull_str_release(&labels[i]);
	lull_intern_release(&l->texts);
	lull_vec_release(&l->labels);
	lull_map_release(&l->taken);
}

/* ---- one label ---- */

/* Whether no other text has this label; it is this one's then. */
static bool take(struct lull_labels *l, const char *label, u32 number)
{
	bool is_new;
	u32 *owner = lull_map_add(&l->taken, lull_hash(label, strlen(label)), &is_new);

	if (is_new)
		*owner = number;
	return *owner == number;
}

/* "[CUDA memcpy Host-to-Device]" is fine without what every such name has. */
static void strip_cuda(struct lull_str *label)
{
	static const char start[] = "[CUDA ";
	size_t len = sizeof(start) - 1;

	if (label->len <= len + 1 || memcmp(label->at, start, len) != 0)
		return;
	label->len -= len + 1;
	memmove(label->at, label->at + len, label->len);
	label->at[label->len] = '\0';
}

/* Shorten a label to the columns there are; "#2" and so on makes it the only one of its kind. */
static void settle(struct lull_labels *l, struct lull_str *label, u32 number)
{
	struct lull_str whole = *label, fitted = LULL_STR_INIT;

	*label = (struct lull_str)LULL_STR_INIT;
	if (l->are_kernels && lull_term_columns(lull_str_text(&whole)) > l->columns)
		strip_cuda(&whole);
	for (unsigned k = 1; k < LULL_LABELS_MAX; k++) {
		char mark[16] = "";
		size_t columns = l->columns;

		if (k > 1)
			columns -= (size_t)snprintf(mark, sizeof(mark), " #%u", k);
		if (columns > l->columns)
			columns = 1;
		lull_str_clear(&fitted);
		if (l->are_kernels)
			lull_shorten_middle(&fitted, lull_str_text(&whole), columns);
		else
			lull_shorten_name(&fitted, lull_str_text(&whole), columns);
		lull_str_puts(&fitted, mark);
		if (take(l, lull_str_text(&fitted), number))
			break;
	}
	*label = fitted;
	lull_str_release(&whole);
}

/* ---- kernels of the same short name ---- */

static int by_label(const void *a, const void *b)
{
	const struct candidate *const *x = a, *const *y = b;
	int order = strcmp(lull_str_text((*x)->label), lull_str_text((*y)->label));

	return order ? order : strcmp((*x)->text, (*y)->text);
}

static bool is_token_equal(const struct candidate *a, const struct candidate *b, u32 i)
{
	if (i >= a->n_tokens || i >= b->n_tokens)
		return i >= a->n_tokens && i >= b->n_tokens;
	return a->tokens[i].len == b->tokens[i].len &&
	       !memcmp(a->tokens[i].at, b->tokens[i].at, a->tokens[i].len);
}

/* The first piece in which the kernels differ, or MAX_TOKENS. */
static u32 first_difference(struct candidate *const *group, size_t n)
{
	for (u32 i = 0; i < MAX_TOKENS; i++) {
		for (size_t k = 1; k < n; k++) {
			if (!is_token_equal(group[0], group[k], i))
				return i;
		}
	}
	return MAX_TOKENS;
}

/* Where the run of equal labels that begins at `from` ends. */
static size_t run_end(struct candidate *const *all, size_t from, size_t n)
{
	size_t end = from + 1;

	while (end < n && !strcmp(lull_str_text(all[from]->label), lull_str_text(all[end]->label)))
		end++;
	return end;
}

/* Add the piece in which they differ to each label, as long as there is room. */
static bool add_difference(struct candidate *const *group, size_t n)
{
	u32 at = first_difference(group, n);
	bool is_longer = false;

	if (at == MAX_TOKENS)
		return false;
	for (size_t i = 0; i < n; i++) {
		struct lull_str more = LULL_STR_INIT;

		if (at < group[i]->n_tokens && group[i]->n_added++ < MAX_ADDED)
			lull_kernel_token_put(&more, &group[i]->tokens[at]);
		if (more.len && lull_term_columns(lull_str_text(group[i]->label)) + 1 +
						lull_term_columns(more.at) <=
					LULL_KERNEL_SHORT_MAX) {
			lull_str_addf(group[i]->label, " %s", more.at);
			is_longer = true;
		}
		lull_str_release(&more);
	}
	return is_longer;
}

/* Tell kernels apart that have the same label; each round adds one piece to the labels. */
static void tell_apart(struct candidate **all, size_t n)
{
	bool is_changed = true;

	for (u32 round = 0; is_changed && round < MAX_ADDED; round++) {
		size_t end;

		is_changed = false;
		lull_sort(all, n, sizeof(struct candidate *), by_label);
		for (size_t from = 0; from < n; from = end) {
			end = run_end(all, from, n);
			if (end > from + 1)
				is_changed |= add_difference(all + from, end - from);
		}
	}
	lull_sort(all, n, sizeof(struct candidate *), by_label);
}

/* Types come first: they say more than how many numbers a thread handles. */
static void find_tokens(struct candidate *c)
{
	struct lull_kernel_token found[MAX_TOKENS];
	size_t n = lull_kernel_tokens(c->text, found, MAX_TOKENS);

	for (int is_type = 1; is_type >= 0; is_type--) {
		for (size_t i = 0; i < n; i++) {
			if (found[i].is_type == is_type)
				c->tokens[c->n_tokens++] = found[i];
		}
	}
}

static void add_kernels(struct lull_labels *l, u32 first)
{
	size_t n = l->labels.n - first;
	struct candidate *candidates = lull_alloc(n, sizeof(*candidates));
	struct candidate **all = lull_alloc(n, sizeof(struct candidate *));

	for (size_t i = 0; i < n; i++) {
		struct candidate *c = all[i] = &candidates[i];

		c->number = first + (u32)i;
		c->text = lull_intern_get(&l->texts, c->number);
		c->label = lull_vec_get(&l->labels, c->number);
		lull_kernel_short(c->label, c->text);
		find_tokens(c);
	}
	tell_apart(all, n);
	for (size_t i = 0; i < n; i++)
		settle(l, all[i]->label, all[i]->number);
	free(all);
	free(candidates);
}

/* ---- many ---- */

static void forget(struct lull_labels *l)
{
	size_t columns = l->columns;
	bool are_kernels = l->are_kernels;

	lull_labels_release(l);
	lull_labels_init(l, are_kernels);
	l->columns = columns;
}

void lull_labels_add(struct lull_labels *l, const char *const *texts, size_t n)
{
	u32 first;

	if (l->labels.n + n > LULL_LABELS_MAX)
		forget(l);
	first = (u32)l->labels.n;
	for (size_t i = 0; i < n; i++) {
		if (lull_intern_add(&l->texts, texts[i], strlen(texts[i])) == l->labels.n)
			lull_vec_push(&l->labels);
	}
	if (l->labels.n == first)
		return;
	if (l->are_kernels) {
		add_kernels(l, first);
		return;
	}
	for (u32 i = first; i < l->labels.n; i++) {
		struct lull_str *label = lull_vec_get(&l->labels, i);

		lull_str_puts(label, lull_intern_get(&l->texts, i));
		settle(l, label, i);
	}
}

size_t lull_labels_width(const struct lull_labels *l)
{
	size_t width = 0;

	for (size_t i = 0; i < l->labels.n; i++) {
		size_t columns = lull_term_columns(lull_str_text(lull_vec_get(&l->labels, i)));

		width = columns > width ? columns : width;
	}
	return width;
}

void lull_labels_fit(struct lull_labels *l, size_t columns)
{
	l->columns = columns;
	lull_map_release(&l->taken);
	for (u32 i = 0; i < l->labels.n; i++)
		settle(l, lull_vec_get(&l->labels, i), i);
}

const char *lull_labels_get(struct lull_labels *l, const char *text)
{
	size_t before = l->labels.n;
	u32 number;

	lull_labels_add(l, &text, 1);
	if (l->labels.n > before || l->labels.n < before)
		return lull_str_text(lull_vec_get(&l->labels, l->labels.n - 1));
	number = lull_intern_add(&l->texts, text, strlen(text));
	return lull_str_text(lull_vec_get(&l->labels, number));
}
