#include "cmd/kernel/kernel_metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "counter/kplan.h"
#include "counter/kset.h"
#include "record/session/locate.h"
#include "text/nearest.h"

/* Near names that are said. */
#define N_NEAR 3

/* Whose lists of metrics are looked at, the newest first; what one lacks another may have. */
static const char *const chips[] = { "GH100", "GB100", "GA100", "AD102", "GA102", "TU102" };

/* A name that is looked for, and what comes near it. */
struct search {
	const char *word;
	size_t len; /* of the name without its suffix, such as .sum */
	bool is_found;
	char *near[N_NEAR]; /* owned, nearest first */
	size_t distance[N_NEAR];
};

static bool is_part_of(const struct search *s, const char *name)
{
	return strncmp(name, s->word, s->len) == 0 && (!name[s->len] || name[s->len] == '.');
}

/* Keep a name that is near, in its place; each once. */
static void keep(struct search *s, const char *name, size_t distance)
{
	size_t at = 0;

	for (size_t i = 0; i < N_NEAR && s->near[i]; i++)
		if (strcmp(s->near[i], name) == 0)
			return;
	while (at < N_NEAR && s->near[at] && s->distance[at] <= distance)
		at++;
	if (at == N_NEAR)
		return;
	free(s->near[N_NEAR - 1]);
	for (size_t i = N_NEAR - 1; i > at; i--) {
		s->near[i] = s->near[i - 1];
		s->distance[i] = s->distance[i - 1];
	}
	s->near[at] = lull_strdup(name);
	s->distance[at] = distance;
}

/* Names of CUPTI's are compared up to their suffix, which has a list of its own. */
static void look_at(struct search *s, const char *name)
{
	char *base = lull_strndup(name, strcspn(name, ".")), *word = lull_strndup(s->word, s->len);
	struct lull_nearest near = { .word = word };

	s->is_found |= is_part_of(s, name);
	lull_nearest_add(&near, base);
	if (near.best)
		keep(s, strstr(name, "__") ? base : name, near.best_distance);
	free(base);
	free(word);
}

static void look_at_cuptis(void *ctx, const char *name, const char *unit, const char *text)
{
	(void)unit;
	(void)text;
	look_at(ctx, name);
}

/* Whether CUPTI could be asked. */
static bool ask_cupti(struct search *s)
{
	struct lull_str path = LULL_STR_INIT;
	bool is_asked = false;

	for (size_t i = 0; i < LULL_COUNT_OF(chips) && !s->is_found; i++) {
		struct lull_kplan *plan = NULL;
		struct lull_err ignored;

		if (!lull_locate_cupti(&path))
			break;
		if (lull_kplan_open(&plan, path.at, chips[i], &ignored))
			continue;
		is_asked |= lull_kplan_list(plan, look_at_cuptis, s) > 0;
		lull_kplan_close(plan);
	}
	lull_str_release(&path);
	return is_asked;
}

static int refuse(const struct search *s, struct lull_err *err)
{
	struct lull_str near = LULL_STR_INIT;

	for (size_t i = 0; i < N_NEAR && s->near[i]; i++)
		lull_str_addf(&near, "%s%s", i ? ", " : "", s->near[i]);
	lull_fail(err, LULL_E_USAGE,
		  "--metrics: there is no metric '%s'%s%s; lull kernel --list-metrics lists ours, "
		  "and with --chip all of CUPTI's",
		  s->word, near.len ? "; near names: " : "", lull_str_text(&near));
	lull_str_release(&near);
	return err->code;
}

/* A value that is computed from metrics cannot be measured by itself. */
static bool is_computed(const char *name)
{
	for (int i = LULL_N_KMETRICS; i < LULL_N_K; i++)
		if (strcmp(lull_k_infos[i].key, name) == 0)
			return true;
	return false;
}

/* Of our own names: all; of CUPTI's: those that we use. */
static void look_at_ours(struct search *s)
{
	for (size_t i = 0; i < lull_n_kmetrics; i++) {
		bool is_theirs = strstr(s->word, "__") != NULL;

		if (!is_theirs)
			look_at(s, lull_kmetrics[i].key);
		for (size_t n = 0; is_theirs && n < LULL_KMETRIC_NAMES && lull_kmetrics[i].names[n];
		     n++)
			look_at(s, lull_kmetrics[i].names[n]);
	}
}

static bool is_pattern(const char *name)
{
	size_t len = strlen(name);

	return len && name[len - 1] == '*' && !strstr(name, "__");
}

static int check(const char *name, struct lull_err *err)
{
	struct search s = { .word = name, .len = strcspn(name, ".") };
	int rc = LULL_OK;

	if (strchr(name, ':'))
		return lull_fail(err, LULL_E_USAGE,
				 "--metrics: '%s': groups and expressions of other tools are not "
				 "known; name the metrics, or all that begin alike (stall_*)",
				 name);
	if (is_computed(name))
		return lull_fail(err, LULL_E_USAGE,
				 "--metrics: '%s' is computed from several metrics; measure --set "
				 "full, then lull kernel --metrics %s REPORT",
				 name, name);
	if (is_pattern(name))
		return LULL_OK;
	look_at_ours(&s);
	/* Without CUPTI the program's own may know the name. */
	if (!s.is_found && (!strstr(name, "__") || ask_cupti(&s)) && !s.is_found)
		rc = refuse(&s, err);
	for (size_t i = 0; i < N_NEAR; i++)
		free(s.near[i]);
	return rc;
}

int lull_kernel_metrics_check(const struct lull_vec *names, struct lull_err *err)
{
	char *const *at = names->at;

	for (size_t i = 0; i < names->n; i++)
		if (check(at[i], err))
			return err->code;
	return LULL_OK;
}

/* ---- values ---- */

static void add_key(const struct lull_profile *p, int k, const char *name, struct lull_vec *to)
{
	const struct lull_k_info *info = &lull_k_infos[k];

	*(struct lull_kernel_metric *)lull_vec_push(to) =
		(struct lull_kernel_metric){ name, info->unit, info->meaning,
					     lull_k_of(p, (enum lull_k)k) };
}

/* All keys that begin as the pattern does and have a value. */
static void add_pattern(const struct lull_profile *p, const char *pattern, struct lull_vec *to)
{
	for (int k = 0; k < LULL_N_K; k++)
		if (strncmp(lull_k_infos[k].key, pattern, strlen(pattern) - 1) == 0 &&
		    !isnan(lull_k_of(p, (enum lull_k)k)))
			add_key(p, k, lull_k_infos[k].key, to);
}

/* Our metric that has this name in CUPTI, or -1. */
static int find_theirs(const char *name)
{
	for (size_t i = 0; i < lull_n_kmetrics; i++)
		for (size_t n = 0; n < LULL_KMETRIC_NAMES && lull_kmetrics[i].names[n]; n++)
			if (strcmp(lull_kmetrics[i].names[n], name) == 0)
				return (int)i;
	return -1;
}

static void add_one(const struct lull_profile *p, const char *name, struct lull_vec *to)
{
	const struct lull_extra *extras = p->extras.at;
	int theirs = find_theirs(name);

	for (int k = 0; k < LULL_N_K; k++)
		if (strcmp(lull_k_infos[k].key, name) == 0) {
			add_key(p, k, name, to);
			return;
		}
	for (size_t i = 0; i < p->extras.n; i++)
		if (strcmp(extras[i].name, name) == 0) {
			*(struct lull_kernel_metric *)lull_vec_push(to) =
				(struct lull_kernel_metric){ name, "", NULL, extras[i].value };
			return;
		}
	if (theirs >= 0)
		add_key(p, theirs, name, to);
	else
		*(struct lull_kernel_metric *)lull_vec_push(to) =
			(struct lull_kernel_metric){ name, "", NULL, NAN };
}

void lull_kernel_metrics_of(const struct lull_profile *p, const struct lull_vec *names,
			    struct lull_vec *to)
{
	char *const *at = names->at;

	for (size_t i = 0; i < names->n; i++) {
		if (is_pattern(at[i]))
			add_pattern(p, at[i], to);
		else
			add_one(p, at[i], to);
	}
}

/* Whether one of the launches has it: programs may have metrics of their own. */
static bool is_there(const struct lull_vec *all, const char *name)
{
	const struct lull_profile *p = all->at;

	for (size_t i = 0; i < all->n; i++) {
		const struct lull_extra *extras = p[i].extras.at;

		for (size_t k = 0; k < p[i].extras.n; k++)
			if (strcmp(extras[k].name, name) == 0)
				return true;
	}
	return false;
}

int lull_kernel_metrics_check_shown(const struct lull_vec *names, const struct lull_vec *all,
				    struct lull_err *err)
{
	char *const *at = names->at;

	for (size_t i = 0; i < names->n; i++)
		if (!is_computed(at[i]) && !is_there(all, at[i]) && check(at[i], err))
			return err->code;
	return LULL_OK;
}
