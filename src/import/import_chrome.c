/*
 * Chrome traces, as chrome://tracing and Perfetto read them and many programs write them.
 */
#include "import/chrome.h"

static int run(struct lull_import_job *job, struct lull_err *err)
{
	static const struct lull_chrome_dialect plain = { 0 };

	return lull_chrome_run(job, &plain, err);
}

const struct lull_import lull_import_chrome = {
	.name = "chrome",
	.summary = "Chrome trace events (JSON), as many programs write them",
	.sniff = lull_chrome_sniff,
	.run = run,
};
