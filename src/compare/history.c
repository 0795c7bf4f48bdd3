#include "compare/history.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/io.h"
#include "base/mem.h"
#include "base/sort.h"
#include "text/jscan.h"
#include "text/json.h"

/* ---- one run ---- */

void lull_history_summarise(struct lull_history_value *value, const char *spec,
			    const struct lull_metric *metric, const struct lull_samples *samples)
{
	static const char *const units[] = {
		[LULL_OUT_PERCENT] = "share", [LULL_OUT_NS] = "ns", [LULL_OUT_BYTES] = "bytes"
	};
	const char *unit = metric->unit				 ? metric->unit
			   : metric->kind < LULL_COUNT_OF(units) ? units[metric->kind]
								 : NULL;
	size_t n = samples->values.n;
	f64 *sorted = lull_alloc(n, sizeof(*sorted));

	*value = (struct lull_history_value){ .metric = lull_strdup(spec),
					      .unit = lull_strdup(unit ? unit : ""),
					      .n = n };
	memcpy(sorted, samples->values.at, n * sizeof(*sorted));
	lull_sort_f64(sorted, n);
	value->median = lull_samples_median(samples);
	value->low = sorted[(n - 1) / 4];
	value->high = sorted[(n - 1) - (n - 1) / 4];
	for (size_t i = 0; i < n; i++)
		value->mean += sorted[i] / (f64)n;
	for (size_t i = 0; i < n; i++)
		value->sd += (sorted[i] - value->mean) * (sorted[i] - value->mean);
	value->sd = n > 1 ? sqrt(value->sd / (f64)(n - 1)) : 0;
	free(sorted);
}

void lull_history_run_init(struct lull_history_run *run)
{
	*run = (struct lull_history_run){ 0 };
	lull_vec_init(&run->values, sizeof(struct lull_history_value));
}

void lull_history_run_release(struct lull_history_run *run)
{
	struct lull_history_value *values = run->values.at;

	for (size_t i = 0; i < run->values.n; i++) {
		free(values[i].metric);
		free(values[i].unit);
	}
	lull_vec_release(&run->values);
	free(run->commit);
	free(run->date);
	free(run->program);
	free(run->device);
}

static void write_value(struct lull_json *j, const struct lull_history_value *value)
{
	lull_json_key(j, value->metric);
	lull_json_object(j);
	lull_json_key_text(j, "unit", value->unit);
	lull_json_key_u64(j, "n", value->n);
	lull_json_key_f64(j, "median", value->median);
	lull_json_key_f64(j, "mean", value->mean);
	lull_json_key_f64(j, "sd", value->sd);
	lull_json_key_f64(j, "low", value->low);
	lull_json_key_f64(j, "high", value->high);
	lull_json_end(j);
}

/* The line of a run, with its end. */
static char *line_of(const struct lull_history_run *run, size_t *len)
{
	const struct lull_history_value *values = run->values.at;
	char *text = NULL;
	FILE *to = lull_memstream(&text, len);
	struct lull_json j;

	lull_json_init(&j, to);
	lull_json_object(&j);
	lull_json_key_text(&j, "commit", run->commit);
	lull_json_key_text(&j, "date", run->date);
	lull_json_key_text(&j, "program", run->program);
	lull_json_key_text(&j, "device", run->device);
	lull_json_key_u64(&j, "reports", run->n_reports);
	lull_json_key_u64(&j, "steps", run->n_steps);
	lull_json_key(&j, "metrics");
	lull_json_object(&j);
	for (size_t i = 0; i < run->values.n; i++)
		write_value(&j, &values[i]);
	lull_json_end(&j);
	lull_json_end(&j);
	fputc('\n', to);
	fclose(to);
	return text;
}

int lull_history_append(const char *folder, const struct lull_history_run *run,
			struct lull_err *err)
{
	struct lull_str path = LULL_STR_INIT;
	size_t len;
	char *line = line_of(run, &len);
	int fd = -1, rc = LULL_OK;

	lull_str_addf(&path, "%s/" LULL_HISTORY_FILE, folder);
	if (mkdir(folder, 0777) && errno != EEXIST)
		rc = lull_fail_errno(err, "creating the folder %s", folder);
	if (!rc) {
		fd = open(lull_str_text(&path), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
		if (fd < 0)
			rc = lull_fail_errno(err, "opening %s", lull_str_text(&path));
	}
	if (fd >= 0) {
		lull_io_lock(fd);
		if (write(fd, line, len) != (ssize_t)len)
			rc = lull_fail_errno(err, "writing %s", lull_str_text(&path));
		if (close(fd) && !rc)
			rc = lull_fail_errno(err, "writing %s", lull_str_text(&path));
	}
	lull_str_release(&path);
	free(line);
	return rc;
}

/* ---- read ---- */

static char *copy_of(const struct lull_jtext *text)
{
	struct lull_str copy = LULL_STR_INIT;

	lull_jtext_add(&copy, text);
	return copy.at ? copy.at : lull_strdup("");
}

static void take_text(char **to, const struct lull_jtext *text, char first)
{
	if (first != '"')
		return;
	free(*to);
	*to = copy_of(text);
}

static void take_value(struct lull_history_run *run, const struct lull_jtext *name,
		       const struct lull_jtext *object)
{
	struct lull_history_value *value;
	struct lull_jtext key, text;
	struct lull_jscan j;
	bool has_median = false;
	f64 median = 0;
	char *unit = NULL, first;
	i64 n = 0;

	lull_jscan_init_text(&j, object);
	j.p++;
	while (!lull_jscan_pair(&j, &key) && !lull_jscan_value(&j, &text, &first)) {
		if (lull_jtext_is(&key, "median"))
			has_median = first != '"' && lull_jtext_f64(&text, &median);
		else if (lull_jtext_is(&key, "n"))
			lull_jtext_i64(&text, &n);
		else if (lull_jtext_is(&key, "unit"))
			take_text(&unit, &text, first);
	}
	lull_jscan_release(&j);
	if (!has_median || !isfinite(median)) {
		free(unit);
		return;
	}
	value = lull_vec_push(&run->values);
	value->metric = copy_of(name);
	value->unit = unit ? unit : lull_strdup("");
	value->median = median;
	value->n = n > 0 ? (size_t)n : 0;
}

static void take_values(struct lull_history_run *run, const struct lull_jtext *object)
{
	struct lull_jtext key, text;
	struct lull_jscan j;
	char first;

	lull_jscan_init_text(&j, object);
	j.p++;
	while (!lull_jscan_pair(&j, &key) && !lull_jscan_value(&j, &text, &first))
		if (first == '{')
			take_value(run, &key, &text);
	lull_jscan_release(&j);
}

/* A line as a run; false if it is none. */
static bool take_line(struct lull_history_run *run, const char *line, size_t len)
{
	const struct lull_jtext whole = { line, len, false };
	struct lull_jtext key, text;
	struct lull_jscan j;
	char first;

	lull_history_run_init(run);
	lull_jscan_init_text(&j, &whole);
	if (lull_jscan_peek(&j) == '{') {
		j.p++;
		while (!lull_jscan_pair(&j, &key) && !lull_jscan_value(&j, &text, &first)) {
			if (lull_jtext_is(&key, "commit"))
				take_text(&run->commit, &text, first);
			else if (lull_jtext_is(&key, "date"))
				take_text(&run->date, &text, first);
			else if (lull_jtext_is(&key, "program"))
				take_text(&run->program, &text, first);
			else if (lull_jtext_is(&key, "device"))
				take_text(&run->device, &text, first);
			else if (lull_jtext_is(&key, "metrics") && first == '{')
				take_values(run, &text);
		}
	}
	lull_jscan_release(&j);
	run->date = run->date ? run->date : lull_strdup("");
	run->program = run->program ? run->program : lull_strdup("");
	run->device = run->device ? run->device : lull_strdup("");
	return run->commit && run->values.n;
}

static void read_lines(struct lull_history *h, FILE *from)
{
	char *line = NULL;
	size_t cap = 0;
	ssize_t len;

	while ((len = getline(&line, &cap, from)) >= 0) {
		struct lull_history_run run;

		if (strspn(line, " \t\r\n") == (size_t)len)
			continue;
		if (take_line(&run, line, (size_t)len)) {
			*(struct lull_history_run *)lull_vec_push(&h->runs) = run;
		} else {
			lull_history_run_release(&run);
			h->n_bad++;
		}
	}
	free(line);
}

/* Keep the runs that can be compared with the last one. */
static void drop_others(struct lull_history *h)
{
	struct lull_history_run *runs = h->runs.at;
	struct lull_history_run last = runs[h->runs.n - 1];
	size_t n = 0;

	for (size_t i = 0; i < h->runs.n; i++) {
		if (strcmp(runs[i].program, last.program) == 0 &&
		    strcmp(runs[i].device, last.device) == 0) {
			runs[n++] = runs[i];
			continue;
		}
		lull_history_run_release(&runs[i]);
		h->n_others++;
	}
	h->runs.n = n;
}

int lull_history_read(struct lull_history *h, const char *folder, struct lull_err *err)
{
	struct lull_str path = LULL_STR_INIT;
	int rc = LULL_OK;
	FILE *from;

	*h = (struct lull_history){ 0 };
	lull_vec_init(&h->runs, sizeof(struct lull_history_run));
	lull_str_addf(&path, "%s/" LULL_HISTORY_FILE, folder);
	from = fopen(lull_str_text(&path), "re");
	if (!from) {
		rc = lull_fail(err, LULL_E_NOT_FOUND,
			       "there is no history in %s; lull gate --history %s REPORT appends "
			       "a run to it",
			       folder, folder);
	} else {
		read_lines(h, from);
		fclose(from);
		if (h->runs.n)
			drop_others(h);
		else
			rc = lull_fail(err, LULL_E_NOT_FOUND, "%s has no run in it",
				       lull_str_text(&path));
	}
	lull_str_release(&path);
	return rc;
}

void lull_history_release(struct lull_history *h)
{
	struct lull_history_run *runs = h->runs.at;

	for (size_t i = 0; i < h->runs.n; i++)
		lull_history_run_release(&runs[i]);
	lull_vec_release(&h->runs);
}
