/*
 * resource - what an agent can read by its address: reports of the folder, and what they may hold.
 *
 *	lull://report/PATH	the page of `lull why --agent` on a report
 *	lull://info/PATH	what a report has and lacks
 *	lull://schema ...	texts that hold for all reports (resources.def)
 *
 * What it checks: paths of reports lead to files below the folder of the server.
 * Cost:           a list looks through the folder and the two levels below it.
 */
#ifndef LULL_MCP_RESOURCE_H
#define LULL_MCP_RESOURCE_H

#include "base/err.h"
#include "base/types.h"
#include "base/vec.h"
#include "text/json.h"

struct lull_mcp_resource {
	const char *uri; /* ends in "/" if a path of a report follows */
	const char *name;
	const char *help;
	const char *type;	/* MIME type */
	const char *command[4]; /* words after lull; the path follows */
};

/* All of resources.def, ended by one without a uri. */
extern const struct lull_mcp_resource lull_mcp_resources[];

/*
 * The keys `resources` and, if there are more, `nextCursor`, into an open object. `cursor` is what
 * an earlier answer said, or NULL. LULL_E_USAGE if it is none of ours.
 */
int lull_mcp_put_resources(struct lull_json *j, const char *folder, const char *cursor,
			   struct lull_err *err);

/* The key `resourceTemplates` into an open object. */
void lull_mcp_put_templates(struct lull_json *j);

/*
 * The resource of an address, and in `words` (char *) the command that prints it, as
 * lull_mcp_words() makes them. LULL_E_NOT_FOUND if there is none.
 */
int lull_mcp_resource_find(const char *uri, const char *folder,
			   const struct lull_mcp_resource **resource, struct lull_vec *words,
			   struct lull_err *err);

#endif
