/*
 * lull schema - list the tables and columns that this version writes.
 */
#include "cmd/cmd.h"

#include <stdio.h>

#include "base/opt.h"
#include "cmd/schema_print.h"
#include "trace/tables.h"

static size_t count_tables(void)
{
	size_t n = 0;

	while (lull_tables[n].name)
		n++;
	return n;
}

int cmd_schema(int argc, char **argv, struct lull_err *err)
{
	bool is_man = false;
	const struct lull_opt opts[] = {
		OPT_USAGE("lull schema [OPTIONS] [TABLE...]",
			  "List the tables and columns that this version of lull writes."),
		OPT_FLAG(0, "man", &is_man, "print them as Markdown, as in lull-report(5)"),
		OPT_END(),
	};
	int first = lull_opt_parse(argc, argv, opts, err);

	if (first < 0)
		return first;
	if (is_man) {
		lull_schema_print_markdown(lull_tables, count_tables(), stdout);
		return 0;
	}
	if (first == argc)
		return lull_schema_print(lull_tables, count_tables(), stdout, err);
	for (int i = first; i < argc; i++) {
		const struct lull_table_desc *t = lull_table_by_name(argv[i]);
		int rc;

		if (!t)
			return lull_fail(err, LULL_E_NOT_FOUND,
					 "there is no table %s; `lull schema` lists them", argv[i]);
		rc = lull_schema_print(t, 1, stdout, err);
		if (rc)
			return rc;
	}
	return 0;
}
