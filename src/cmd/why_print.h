/*
 * why_print - the answer of `lull why`, for people and for programs.
 */
#ifndef LULL_CMD_WHY_PRINT_H
#define LULL_CMD_WHY_PRINT_H

#include <stdio.h>

#include "text/json.h"
#include "cause/why.h"

/* One answer to --what-if. */
struct lull_why_answer {
	const char *question;
	struct lull_prediction prediction;
};

/* The answer in sentences, at most `width` columns wide. */
void lull_why_print(FILE *to, const struct lull_why *why, const struct lull_vec *answers, int width,
		    bool has_all);

/* The parts of it: the first cause with its evidence and fix, or why there is none; */
void lull_why_print_first(FILE *to, const struct lull_why *why, int width);

/* any cause with its evidence and fix; */
void lull_why_print_finding(FILE *to, const struct lull_why *why, const struct lull_finding *f,
			    int width);

/* and what the device does in a step, how many steps there are, and other devices. */
void lull_why_print_numbers(FILE *to, const struct lull_why *why, int width);

/*
 * The answer as one page that lets a language model, or a person who knows nothing about lull,
 * change the program and check the change: cause, meaning, lines of source, fix, commands.
 */
void lull_why_print_agent(FILE *to, const struct lull_why *why, const char *path);

/* The answer as JSON, by the schema that lull_why_print_schema() prints. */
void lull_why_print_json(FILE *to, const struct lull_why *why, const struct lull_vec *answers,
			 const char *path);

/* The JSON schema. */
void lull_why_print_schema(FILE *to);

/* What would make a busy device faster, and what its utilisation means; nothing if nothing is. */
void lull_why_print_opportunities(FILE *to, const struct lull_why *why, int width, bool has_all);

/* The same as keys of an open JSON object. */
void lull_why_put_opportunities(struct lull_json *j, const struct lull_why *why);

/* A prediction as a key of an open JSON object; `f` is its finding, or NULL. */
void lull_why_put_prediction(struct lull_json *j, const struct lull_prediction *p,
			     const struct lull_finding *f);

/* All kinds of opportunities, for lull-causes(7). */
void lull_why_print_opportunity_kinds(FILE *to);

/* The causes as the body of lull-causes(7). */
void lull_why_print_causes(FILE *to);

#endif
