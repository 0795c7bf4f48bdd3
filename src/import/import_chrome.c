/*
 * Chrome traces, as chrome://tracing and Perfetto read them and many programs write them; those of
 * JAX and TensorFlow have GPUs in them.
 */
#include "import/xla.h"

static int run(struct lull_import_job *job, struct lull_err *err)
{
	return lull_chrome_run(job, &lull_xla_dialect, err);
}

const struct lull_import lull_import_chrome = {
	.name = "chrome",
	.summary = "Chrome trace events (JSON), as many programs write them",
	.sniff = lull_chrome_sniff,
	.run = run,
};
