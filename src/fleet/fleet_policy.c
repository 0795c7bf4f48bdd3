#include "fleet/fleet_policy.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/str.h"

bool lull_fleet_share(const char *text, f64 *share)
{
	char *end;
	f64 value = strtod(text, &end);

	if (end == text)
		return false;
	if (*end == '%') {
		value /= 100;
		end++;
	}
	*share = value;
	return !*end && value > 0 && value <= 1;
}

static void release_rule(struct lull_fleet_rule *rule)
{
	if (rule->has_cmdline)
		regfree(&rule->cmdline);
	if (rule->has_cgroup)
		regfree(&rule->cgroup);
}

static void clear(struct lull_fleet_policy *p)
{
	struct lull_fleet_rule *rules = p->rules.at;

	for (size_t i = 0; i < p->rules.n; i++)
		release_rule(&rules[i]);
	p->rules.n = 0;
}

void lull_fleet_policy_init(struct lull_fleet_policy *p, f64 share, f64 budget)
{
	struct lull_fleet_rule *rule;

	lull_vec_init(&p->rules, sizeof(struct lull_fleet_rule));
	rule = lull_vec_push(&p->rules);
	*rule = (struct lull_fleet_rule){ .label = "all", .share = share, .budget = budget };
}

void lull_fleet_policy_release(struct lull_fleet_policy *p)
{
	clear(p);
	lull_vec_release(&p->rules);
}

/* ---- parsing ---- */

/* A line on its way, and where it stands. */
struct line {
	const char *at, *name;
	u32 number;
};

/* The next word without its quotes; false at the end of the line. */
static bool next_word(struct line *l, struct lull_str *word)
{
	bool is_quoted = false;

	lull_str_clear(word);
	l->at += strspn(l->at, " \t\r");
	if (!*l->at || *l->at == '#')
		return false;
	for (; *l->at && (is_quoted || !strchr(" \t\r", *l->at)); l->at++) {
		if (*l->at == '"')
			is_quoted = !is_quoted;
		else
			lull_str_add(word, l->at, 1);
	}
	return true;
}

static int take_pattern(const struct line *l, const char *text, regex_t *to, bool *has,
			struct lull_err *err)
{
	char why[128];
	int rc = *has ? 0 : regcomp(to, text, REG_EXTENDED | REG_NOSUB);

	if (*has)
		return lull_fail(err, LULL_E_USAGE, "%s:%u: the same pattern twice", l->name,
				 l->number);
	if (rc) {
		regerror(rc, to, why, sizeof(why));
		return lull_fail(err, LULL_E_USAGE, "%s:%u: '%s': %s", l->name, l->number, text,
				 why);
	}
	*has = true;
	return 0;
}

static int take_label(const struct line *l, const char *text, struct lull_fleet_rule *rule,
		      struct lull_err *err)
{
	bool is_good = *text && *text != '.' && strlen(text) < sizeof(rule->label);

	for (const char *c = text; *c; c++)
		is_good = is_good && (isalnum((unsigned char)*c) || strchr("-_.", *c));
	if (!is_good)
		return lull_fail(err, LULL_E_USAGE,
				 "%s:%u: label=%s: a label has letters, digits, -, _ and .",
				 l->name, l->number, text);
	snprintf(rule->label, sizeof(rule->label), "%s", text);
	return 0;
}

static int take_word(const struct line *l, const char *word, struct lull_fleet_rule *rule,
		     struct lull_err *err)
{
	const char *value = strchr(word, '=');
	size_t n = value ? (size_t)(value++ - word) : 0;

	if (n == 7 && strncmp(word, "cmdline", n) == 0)
		return take_pattern(l, value, &rule->cmdline, &rule->has_cmdline, err);
	if (n == 6 && strncmp(word, "cgroup", n) == 0)
		return take_pattern(l, value, &rule->cgroup, &rule->has_cgroup, err);
	if (n == 5 && strncmp(word, "label", n) == 0)
		return take_label(l, value, rule, err);
	if ((n == 5 && strncmp(word, "share", n) == 0 && lull_fleet_share(value, &rule->share)) ||
	    (n == 6 && strncmp(word, "budget", n) == 0 && lull_fleet_share(value, &rule->budget)))
		return 0;
	return lull_fail(err, LULL_E_USAGE,
			 "%s:%u: '%s' is not understood; write it like label=train "
			 "cmdline=train.py share=25%% budget=0.5%%",
			 l->name, l->number, word);
}

/* One line; nothing happens for one without a rule. */
static int take_line(struct lull_fleet_policy *p, struct line *l,
		     const struct lull_fleet_rule *usual, struct lull_err *err)
{
	struct lull_str word = LULL_STR_INIT;
	struct lull_fleet_rule rule = *usual;
	int rc = 0;

	if (next_word(l, &word)) {
		rule.is_skip = strcmp(word.at, "skip") == 0;
		rule.line = l->number;
		if (!rule.is_skip && strcmp(word.at, "record") != 0)
			rc = lull_fail(err, LULL_E_USAGE,
				       "%s:%u: '%s': a rule starts with record or skip", l->name,
				       l->number, word.at);
		while (!rc && next_word(l, &word))
			rc = take_word(l, lull_str_text(&word), &rule, err);
		if (rc)
			release_rule(&rule);
		else
			lull_vec_add(&p->rules, &rule, 1);
	}
	lull_str_release(&word);
	return rc;
}

int lull_fleet_policy_parse(struct lull_fleet_policy *p, const char *text, const char *name,
			    struct lull_err *err)
{
	struct lull_fleet_rule usual = *(struct lull_fleet_rule *)p->rules.at;
	struct line l = { .name = name };
	int rc = 0;

	clear(p);
	for (; *text && !rc; text += *text == '\n') {
		size_t n = strcspn(text, "\n");
		char *line = lull_strndup(text, n);

		l.at = line;
		l.number++;
		rc = take_line(p, &l, &usual, err);
		free(line);
		text += n;
	}
	return rc;
}

/* ---- choosing ---- */

static bool fits(const struct lull_fleet_rule *rule, const struct lull_fleet_process *process)
{
	return (!rule->has_cmdline || regexec(&rule->cmdline, process->cmdline, 0, NULL, 0) == 0) &&
	       (!rule->has_cgroup || regexec(&rule->cgroup, process->cgroup, 0, NULL, 0) == 0);
}

enum lull_fleet_choice lull_fleet_policy_choose(const struct lull_fleet_policy *p,
						const struct lull_fleet_process *process,
						const struct lull_fleet_rule **rule)
{
	const struct lull_fleet_rule *rules = p->rules.at;
	u64 key[2] = { process->pid, process->start_ticks };
	/* The same process has the same luck each time. */
	f64 luck = (f64)(lull_hash(key, sizeof(key)) >> 11) / 9007199254740992.0;

	for (size_t i = 0; i < p->rules.n; i++) {
		if (!fits(&rules[i], process))
			continue;
		*rule = &rules[i];
		if (rules[i].is_skip)
			return LULL_FLEET_SKIP;
		return luck < rules[i].share ? LULL_FLEET_RECORD : LULL_FLEET_NOT_CHOSEN;
	}
	*rule = NULL;
	return LULL_FLEET_NO_RULE;
}
