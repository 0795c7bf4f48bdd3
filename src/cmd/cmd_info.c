/*
 * lull info - say what a report holds and what it lacks.
 */
#include "cmd/cmd.h"

#include <stdio.h>

#include "text/opt.h"
#include "cmd/info.h"
#include "cmd/losses.h"
#include "cmd/open.h"
#include "cmd/schema_print.h"
#include "trace/reader.h"

int cmd_info(int argc, char **argv, struct lull_err *err)
{
	static const char *const formats[] = { "text", "json", NULL };
	bool is_schema = false, has_environment = false;
	int format = 0;
	const struct lull_opt opts[] = {
		OPT_USAGE("lull info [OPTIONS] REPORT", "Say what a report has and what it lacks."),
		OPT_FLAG(0, "environment", &has_environment,
			 "show the environment of the recorded command too"),
		OPT_ENUM('f', "format", &format, formats, "format of the answer (default: text)"),
		OPT_FLAG(0, "schema", &is_schema, "list the tables and columns of the report"),
		OPT_END(),
	};
	int first = lull_opt_parse(argc, argv, opts, err);
	struct lull_str used = LULL_STR_INIT;
	struct lull_reader *r;
	int rc;

	if (first < 0)
		return first;
	if (argc - first != 1)
		return lull_fail(err, LULL_E_USAGE,
				 "give one report, such as lull info report1.lull");
	rc = lull_open(argv[first], &r, &used, err);
	if (rc) {
		lull_str_release(&used);
		return rc;
	}
	lull_losses_warn_simulated(r);
	if (is_schema) {
		const struct lull_schema *schema = lull_reader_schema(r);

		rc = lull_schema_print(schema->tables, schema->n, stdout, err);
	} else if (format) {
		lull_info_json(r, lull_str_text(&used), stdout);
	} else {
		rc = lull_info_print(r, lull_str_text(&used), has_environment, stdout, err);
	}
	lull_reader_close(r);
	lull_str_release(&used);
	return rc;
}
