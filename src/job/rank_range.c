/*
 * rank_range - the ranges of one rank, for a comparison with those of others.
 *
 * Programs often put the rank into the names of their ranges ("rank3_forward", "[rank 3] forward").
 * It is dropped, so that the ranges of all ranks have the same names.
 */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/sort.h"
#include "job/job_int.h"
#include "report/projection.h"

/* Names that a rank may bring; those with most time. */
#define MAX_NAMES 64u

const char *lull_job_plain_name(const char *name)
{
	const char *at = name + (*name == '[' || *name == '(');

	if (strncasecmp(at, "rank", 4) != 0)
		return name;
	at += 4;
	at += *at == ' ' || *at == '_' || *at == '-' || *at == ':' || *at == '=';
	if (!isdigit((unsigned char)*at))
		return name;
	while (isdigit((unsigned char)*at))
		at++;
	/* "rank2nd" is a word of its own. */
	if (isalpha((unsigned char)*at))
		return name;
	at += strspn(at, " _-:/.|)]");
	return *at ? at : name;
}

static int by_time(const void *a, const void *b)
{
	const struct lull_job_range *x = a, *y = b;

	if (x->host_ns != y->host_ns)
		return x->host_ns < y->host_ns ? 1 : -1;
	return strcmp(x->name, y->name);
}

/* NCCL's own ranges, and what devices saw of others, are no phases of the program. */
static bool is_phase(struct lull_reader *r, const struct lull_label_row *labels, u32 label)
{
	return label && !lull_nest_is_shadow(labels, label) &&
	       strcmp(lull_reader_string(r, labels[label - 1].domain, NULL), "NCCL") != 0;
}

/* Its index in ranges. */
static u32 range_of(struct lull_vec *ranges, struct lull_map *of_name, const char *name, i64 rank)
{
	char plain[LULL_JOB_RANGE_NAME];
	struct lull_job_range *to;
	bool is_new;
	u32 *ix;

	snprintf(plain, sizeof(plain), "%s", lull_job_plain_name(name));
	ix = lull_map_add(of_name, lull_hash(plain, strlen(plain)), &is_new);
	if (is_new) {
		*ix = (u32)ranges->n;
		to = lull_vec_push(ranges);
		memcpy(to->name, plain, strlen(plain) + 1);
		to->rank = rank;
	}
	return *ix;
}

void lull_job_find_ranges(struct lull_reader *r, i64 rank, struct lull_span span,
			  struct lull_vec *ranges)
{
	size_t n_labels;
	const struct lull_label_row *labels = lull_reader_dim(r, LULL_TABLE_label, &n_labels);
	struct lull_report_options options = { .from_ns = span.from_ns, .to_ns = span.to_ns };
	struct lull_map of_name; /* to an index in ranges */
	struct lull_projection p;

	if (!lull_reader_stats(r, LULL_TABLE_range).n_rows)
		return;
	lull_map_init(&of_name);
	lull_projection_init(&p, r, &options);
	for (size_t i = 0; i < p.nest.ranges.n; i++) {
		const struct lull_nest_range *range = lull_nest_get(&p.nest, (u32)i + 1);
		struct lull_job_range *to;
		const char *name;

		if (!is_phase(r, labels, range->label))
			continue;
		name = lull_reader_string(r, labels[range->label - 1].name, NULL);
		to = lull_vec_get(ranges, range_of(ranges, &of_name, name, rank));
		to->n++;
		to->host_ns += range->dur_ns;
		if (!p.ranges[i].n_works)
			continue;
		to->n_device++;
		to->device_ns += p.ranges[i].last_ns - p.ranges[i].first_ns;
	}
	lull_projection_release(&p);
	lull_map_release(&of_name);
	if (ranges->n)
		lull_sort(ranges->at, ranges->n, sizeof(struct lull_job_range), by_time);
	if (ranges->n > MAX_NAMES)
		ranges->n = MAX_NAMES;
}
