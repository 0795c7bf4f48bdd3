#include "counter/kset.h"

#include <stdio.h>
#include <string.h>

const struct lull_kmetric_desc lull_kmetrics[] = {
#define KMETRIC(key, unit, meaning, ...) { #key, unit, meaning, { __VA_ARGS__ } },
#include "counter/kmetrics.def"
#undef KMETRIC
};
const size_t lull_n_kmetrics = LULL_COUNT_OF(lull_kmetrics);

const struct lull_kgroup lull_ksections[] = {
#define KSECTION(name, summary, keys) { #name, summary, keys },
#include "counter/sets.def"
#undef KSECTION
};
const size_t lull_n_ksections = LULL_COUNT_OF(lull_ksections);

const struct lull_kgroup lull_ksets[] = {
#define KSET(name, summary, sections) { #name, summary, sections },
#include "counter/sets.def"
#undef KSET
};
const size_t lull_n_ksets = LULL_COUNT_OF(lull_ksets);

const struct lull_kmetric_desc *lull_kmetric_find(const char *key)
{
	for (size_t i = 0; i < lull_n_kmetrics; i++)
		if (strcmp(lull_kmetrics[i].key, key) == 0)
			return &lull_kmetrics[i];
	return NULL;
}

/* The next word of a list; false at its end. */
static bool next_word(const char **list, char *word, size_t room)
{
	const char *at = *list + strspn(*list, " ");
	size_t n = strcspn(at, " ");

	if (!n || n >= room)
		return false;
	memcpy(word, at, n);
	word[n] = '\0';
	*list = at + n;
	return true;
}

static bool is_taken(const struct lull_kset *set, const struct lull_kmetric_desc *metric)
{
	const struct lull_kmetric_desc **all = set->metrics.at;

	for (size_t i = 0; i < set->metrics.n; i++)
		if (all[i] == metric)
			return true;
	return false;
}

static void take(struct lull_kset *set, const struct lull_kmetric_desc *metric)
{
	if (!is_taken(set, metric))
		*(const struct lull_kmetric_desc **)lull_vec_push(&set->metrics) = metric;
}

/* All metrics whose key is the word, or begins as the word with a * does. */
static size_t take_word(struct lull_kset *set, const char *word)
{
	size_t n = strlen(word), n_taken = 0;
	bool is_open = n && word[n - 1] == '*';

	for (size_t i = 0; i < lull_n_kmetrics; i++) {
		const char *key = lull_kmetrics[i].key;

		if (is_open ? strncmp(key, word, n - 1) == 0 : strcmp(key, word) == 0) {
			take(set, &lull_kmetrics[i]);
			n_taken++;
		}
	}
	return n_taken;
}

static const struct lull_kgroup *find_group(const struct lull_kgroup *groups, size_t n,
					    const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(groups[i].name, name) == 0)
			return &groups[i];
	return NULL;
}

/* "a, b, c" of the groups there are. */
static void list_groups(char *to, size_t room, const struct lull_kgroup *groups, size_t n)
{
	size_t used = 0;

	to[0] = '\0';
	for (size_t i = 0; i < n && used < room; i++)
		used += (size_t)snprintf(to + used, room - used, "%s%s", i ? ", " : "",
					 groups[i].name);
}

/*
 * ncu's names of sections mean ours, so that a command line that worked there works here. They are
 * words of its documentation.
 */
static const char *our_section(const char *name)
{
	static const struct {
		const char *theirs, *ours;
	} names[] = {
		{ "SpeedOfLight", "speed" },
		{ "SpeedOfLight_RooflineChart", "roofline" },
		{ "SpeedOfLight_HierarchicalSingleRooflineChart", "roofline" },
		{ "SpeedOfLight_HierarchicalTensorRooflineChart", "roofline" },
		{ "ComputeWorkloadAnalysis", "compute" },
		{ "InstructionStats", "compute" },
		{ "MemoryWorkloadAnalysis", "memory" },
		{ "MemoryWorkloadAnalysis_Chart", "memory" },
		{ "MemoryWorkloadAnalysis_Tables", "memory" },
		{ "SchedulerStats", "scheduler" },
		{ "WarpStateStats", "warps" },
		{ "Occupancy", "occupancy" },
		{ "LaunchStats", "launch" },
		{ "SourceCounters", "source" },
	};

	for (size_t i = 0; i < LULL_COUNT_OF(names); i++)
		if (strcmp(names[i].theirs, name) == 0)
			return names[i].ours;
	return name;
}

int lull_kset_add_section(struct lull_kset *set, const char *name, struct lull_err *err)
{
	const struct lull_kgroup *section =
		find_group(lull_ksections, lull_n_ksections, our_section(name));
	char word[64], known[256];
	const char *list;

	if (!section) {
		list_groups(known, sizeof(known), lull_ksections, lull_n_ksections);
		return lull_fail(err, LULL_E_USAGE, "there is no section '%s'; choose among %s",
				 name, known);
	}
	set->has_source = set->has_source || strcmp(section->name, "source") == 0;
	for (list = section->members; next_word(&list, word, sizeof(word));)
		take_word(set, word);
	return 0;
}

int lull_kset_add_set(struct lull_kset *set, const char *name, struct lull_err *err)
{
	const struct lull_kgroup *group = find_group(lull_ksets, lull_n_ksets, name);
	char word[64], known[256];
	const char *list;

	if (!group) {
		list_groups(known, sizeof(known), lull_ksets, lull_n_ksets);
		return lull_fail(err, LULL_E_USAGE, "there is no set '%s'; choose among %s", name,
				 known);
	}
	for (list = group->members; next_word(&list, word, sizeof(word));)
		if (lull_kset_add_section(set, word, err))
			return err->code;
	return 0;
}

int lull_kset_add_metric(struct lull_kset *set, const char *name, struct lull_err *err)
{
	if (take_word(set, name))
		return 0;
	if (!strstr(name, "__"))
		return lull_fail(err, LULL_E_USAGE,
				 "there is no metric '%s'; lull kernel --list-metrics lists ours, "
				 "and with --chip all of CUPTI's",
				 name);
	if (strcspn(name, "\t\n") != strlen(name))
		return lull_fail(err, LULL_E_USAGE, "'%s' is no name of a metric", name);
	*(const char **)lull_vec_push(&set->others) = name;
	return 0;
}

void lull_kset_init(struct lull_kset *set)
{
	struct lull_err ignored;

	*set = (struct lull_kset){ .has_source = false };
	lull_vec_init(&set->metrics, sizeof(struct lull_kmetric_desc *));
	lull_vec_init(&set->others, sizeof(char *));
	lull_kset_add_section(set, "time", &ignored);
}

static bool put(char *to, size_t room, size_t *used, const char *text, const char *end)
{
	int n = snprintf(to + *used, room - *used, "%s%s", text, end);

	if (n < 0 || (size_t)n >= room - *used)
		return false;
	*used += (size_t)n;
	return true;
}

static bool is_patch(const char *name)
{
	static const char begin[] = "smsp__sass_";

	return strncmp(name, begin, sizeof(begin) - 1) == 0;
}

bool lull_kset_has_patches(const struct lull_kset *set)
{
	const struct lull_kmetric_desc **metrics = set->metrics.at;
	const char **others = set->others.at;
	bool has = false;

	for (size_t i = 0; i < set->metrics.n && !set->is_plain; i++)
		has |= is_patch(metrics[i]->names[0]);
	for (size_t i = 0; i < set->others.n; i++)
		has |= is_patch(others[i]);
	return has;
}

/* The next name that may be measured, NULL if there is none. */
static const char *const *next_name(const struct lull_kset *set, const char *const *names,
				    const char *const *end)
{
	while (names < end && *names && set->is_plain && is_patch(*names))
		names++;
	return names < end && *names ? names : NULL;
}

/* KEY TAB NAME [TAB NAME...]; nothing if no name may be measured. */
static bool put_metric(const struct lull_kset *set, const struct lull_kmetric_desc *metric,
		       char *to, size_t room, size_t *used)
{
	const char *const *end = metric->names + LULL_KMETRIC_NAMES;
	const char *const *name = next_name(set, metric->names, end);
	bool has_room = !name || put(to, room, used, metric->key, "");

	if (!name)
		return true;
	for (; name && has_room; name = next_name(set, name + 1, end))
		has_room = put(to, room, used, "\t", *name);
	return has_room && put(to, room, used, "\n", "");
}

int lull_kset_write(const struct lull_kset *set, char *to, size_t room, struct lull_err *err)
{
	const struct lull_kmetric_desc **metrics = set->metrics.at;
	const char **others = set->others.at;
	bool has_room = true;
	size_t used = 0;

	to[0] = '\0';
	for (size_t i = 0; i < set->metrics.n && has_room; i++)
		has_room = put_metric(set, metrics[i], to, room, &used);
	for (size_t i = 0; i < set->others.n && has_room; i++)
		has_room = put(to, room, &used, "\t", others[i]) && put(to, room, &used, "\n", "");
	return has_room ? 0
			: lull_fail(err, LULL_E_USAGE,
				    "the names of the metrics take more than %zu bytes; ask for "
				    "fewer at a time",
				    room);
}

void lull_kset_release(struct lull_kset *set)
{
	lull_vec_release(&set->metrics);
	lull_vec_release(&set->others);
}
