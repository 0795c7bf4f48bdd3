#include "job/job_report.h"

#define REPORT(name) extern const struct lull_report lull_job_report_##name;
#include "job/job_reports.def"
#undef REPORT

const struct lull_report *const lull_job_reports[] = {
#define REPORT(name) &lull_job_report_##name,
#include "job/job_reports.def"
#undef REPORT
	NULL,
};
