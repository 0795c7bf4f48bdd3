/* `lull info --json`. */
#include "cmd/info.h"

#include <stdlib.h>

#include "text/json.h"
#include "base/str.h"
#include "trace/issue.h"
#include "cmd/schema_json.h"
#include "model/device.h"

static void pair_bool(struct lull_json *j, const char *key, bool value)
{
	lull_json_key(j, key);
	lull_json_bool(j, value);
}

/* A string id; null if there is none. */
static void pair_string(struct lull_json *j, const char *key, struct lull_reader *r, u32 id)
{
	size_t len;
	const char *text = lull_reader_string(r, id, &len);

	lull_json_key(j, key);
	if (id)
		lull_json_bytes(j, text, len);
	else
		lull_json_null(j);
}

static void write_file(struct lull_json *j, struct lull_reader *r, const char *path)
{
	const struct lull_file_info *info = lull_reader_info(r);
	struct lull_str id = LULL_STR_INIT;

	for (size_t i = 0; i < sizeof(info->id); i++)
		lull_str_addf(&id, "%02x", info->id[i]);
	lull_json_key_text(j, "path", path);
	lull_json_key_u64(j, "size_bytes", lull_reader_size_bytes(r));
	lull_json_key_u64(j, "format_major", lull_reader_format(r) >> 8);
	lull_json_key_u64(j, "format_minor", lull_reader_format(r) & 0xff);
	pair_bool(j, "is_sealed", lull_reader_is_sealed(r));
	pair_bool(j, "is_simulated", lull_info_is_simulated(r));
	pair_bool(j, "is_imported", info->flags & LULL_FILE_IMPORTED);
	lull_json_key_u64(j, "n_damaged", lull_reader_n_damaged(r));
	lull_json_key_u64(j, "lost_bytes", lull_reader_lost_bytes(r));
	lull_json_key_text(j, "recording", lull_str_text(&id));
	lull_json_key_u64(j, "epoch_utc_ns", info->epoch_utc_ns);
	lull_json_key_u64(j, "duration_ns", lull_info_span_ns(r));
	lull_str_release(&id);
}

static void write_meta(struct lull_json *j, struct lull_reader *r)
{
	size_t n;
	const struct lull_meta_row *rows = lull_reader_dim(r, LULL_TABLE_meta, &n);

	lull_json_key(j, "meta");
	lull_json_object(j);
	for (size_t i = 0; i < n; i++)
		pair_string(j, lull_reader_string(r, rows[i].key, NULL), r, rows[i].value);
	lull_json_end(j);
}

static void write_processes(struct lull_json *j, struct lull_reader *r)
{
	size_t n;
	struct lull_info_process *all = lull_info_processes(r, &n);
	char ending[64];

	lull_json_key(j, "processes");
	lull_json_array(j);
	for (size_t i = 0; i < n; i++) {
		const struct lull_process_row *p = all[i].row;

		lull_json_object(j);
		lull_json_key_u64(j, "id", all[i].id);
		lull_json_key_u64(j, "pid", p->pid);
		lull_json_key_u64(j, "parent_pid", p->parent_pid);
		lull_json_key_u64(j, "depth", all[i].depth);
		pair_string(j, "name", r, p->name);
		pair_string(j, "cmdline", r, p->cmdline);
		lull_info_ending(p, ending, sizeof(ending));
		lull_json_key_text(j, "ended", ending);
		lull_json_key_u64(j, "user_ns", p->user_ns);
		lull_json_key_u64(j, "system_ns", p->system_ns);
		lull_json_key_u64(j, "max_rss_bytes", p->max_rss_bytes);
		lull_json_key_u64(j, "n_threads", all[i].n_threads);
		lull_json_end(j);
	}
	lull_json_end(j);
	free(all);
}

static void pair_watts(struct lull_json *j, const char *key, f64 watts)
{
	lull_json_key(j, key);
	if (watts > 0)
		lull_json_fixed(j, watts, 1);
	else
		lull_json_null(j);
}

static void write_devices(struct lull_json *j, struct lull_reader *r)
{
	size_t n;
	const struct lull_device_row *rows = lull_reader_dim(r, LULL_TABLE_device, &n);

	u32 *stands = lull_device_rows(r);
	struct lull_info_power *powers = lull_info_powers(r, stands);

	lull_json_key(j, "devices");
	lull_json_array(j);
	for (size_t i = 0; i < n; i++) {
		const struct lull_info_power *power = &powers[stands[i + 1]];

		lull_json_object(j);
		lull_json_key_u64(j, "process", rows[i].process);
		lull_json_key_u64(j, "device_id", rows[i].device_id);
		pair_string(j, "name", r, rows[i].name);
		pair_string(j, "uuid", r, rows[i].uuid);
		lull_json_key_u64(j, "capability", rows[i].capability);
		lull_json_key_u64(j, "n_sms", rows[i].n_sms);
		lull_json_key_u64(j, "memory_bytes", rows[i].memory_bytes);
		lull_json_key_u64(j, "l2_bytes", rows[i].l2_bytes);
		lull_json_key_u64(j, "clock_hz", rows[i].clock_hz);
		lull_json_key_u64(j, "bandwidth_bytes", rows[i].bandwidth_bytes);
		pair_bool(j, "is_simulated", rows[i].is_simulated);
		pair_watts(j, "power_w", power->mean_w);
		pair_watts(j, "power_limit_w", power->limit_w);
		lull_json_end(j);
	}
	lull_json_end(j);
	free(powers);
	free(stands);
}

static void write_tables(struct lull_json *j, struct lull_reader *r)
{
	const struct lull_schema *schema = lull_reader_schema(r);

	lull_json_key(j, "tables");
	lull_json_array(j);
	for (size_t t = 0; t < schema->n; t++) {
		const struct lull_table_desc *table = &schema->tables[t];
		struct lull_table_stats s = lull_reader_stats(r, table->id);
		bool is_fact = table->kind == LULL_KIND_FACT;

		lull_json_object(j);
		lull_json_key_text(j, "name", table->name);
		pair_bool(j, "is_known", lull_table_find(table->id) != NULL);
		lull_json_key_u64(j, "n_rows",
				  is_fact ? s.n_rows : lull_reader_n_dim(r, table->id));
		lull_json_key_u64(j, "size_bytes", s.size_bytes);
		lull_json_key_u64(j, "n_blocks", s.n_blocks);
		lull_json_key_u64(j, "first_ns", s.first_ns);
		lull_json_key_u64(j, "last_ns", s.last_ns);
		lull_json_end(j);
	}
	lull_json_end(j);
}

static void write_issues(struct lull_json *j, struct lull_reader *r)
{
	size_t n;
	const struct lull_issue_row *rows = lull_reader_dim(r, LULL_TABLE_issue, &n);

	lull_json_key(j, "issues");
	lull_json_array(j);
	for (size_t i = 0; i < n; i++) {
		lull_json_object(j);
		pair_string(j, "name", r, rows[i].name);
		lull_json_key_text(j, "severity", lull_severity_name(rows[i].severity));
		lull_json_key_u64(j, "count", rows[i].count);
		pair_string(j, "text", r, rows[i].text);
		pair_string(j, "detail", r, rows[i].detail);
		lull_json_end(j);
	}
	lull_json_end(j);
}

void lull_info_json(struct lull_reader *r, const char *path, FILE *to)
{
	struct lull_json j;

	lull_json_init(&j, to);
	j.is_pretty = true;
	lull_json_object(&j);
	write_file(&j, r, path);
	write_meta(&j, r);
	write_processes(&j, r);
	write_devices(&j, r);
	write_tables(&j, r);
	write_issues(&j, r);
	lull_json_end(&j);
	putc('\n', to);
}

/* ---- the schema ---- */

static const struct lull_property process_members[] = {
	{ "id", "integer", "row of the table process", NULL },
	{ "pid", "integer", "process id", NULL },
	{ "parent_pid", "integer", "of its parent", NULL },
	{ "depth", "integer", "ancestors in the recording", NULL },
	{ "name", "string", "short name", NULL },
	{ "cmdline", "string", "arguments", NULL },
	{ "ended", "string", "how", NULL },
	{ "user_ns", "integer", "CPU time in user mode", NULL },
	{ "system_ns", "integer", "CPU time in the kernel", NULL },
	{ "max_rss_bytes", "integer", "largest resident set", NULL },
	{ "n_threads", "integer", "threads seen", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property device_members[] = {
	{ "process", "integer", "row of the process that sees it", NULL },
	{ "device_id", "integer", "its number there", NULL },
	{ "name", "string|null", "model", NULL },
	{ "uuid", "string|null", "unique id", NULL },
	{ "capability", "integer", "10 * major + minor", NULL },
	{ "n_sms", "integer", "multiprocessors", NULL },
	{ "memory_bytes", "integer", "global memory", NULL },
	{ "l2_bytes", "integer", "second-level cache", NULL },
	{ "clock_hz", "integer", "highest core clock", NULL },
	{ "bandwidth_bytes", "integer", "peak memory bandwidth a second", NULL },
	{ "is_simulated", "boolean", "it is the simulated device", NULL },
	{ "power_w", "number|null", "mean of the recording; null: not recorded", NULL },
	{ "power_limit_w", "number|null", "above which it reduces its clocks", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property table_members[] = {
	{ "name", "string", "as in lull-report(5)", NULL },
	{ "is_known", "boolean", "to this version", NULL },
	{ "n_rows", "integer", "rows", NULL },
	{ "size_bytes", "integer", "in the file", NULL },
	{ "n_blocks", "integer", "blocks", NULL },
	{ "first_ns", "integer", "earliest row", NULL },
	{ "last_ns", "integer", "latest row", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property issue_members[] = {
	{ "name", "string", "which trouble", NULL },
	{ "severity", "string", "notice, loss or error", NULL },
	{ "count", "integer", "how often, or how many events", NULL },
	{ "text", "string", "what it means", NULL },
	{ "detail", "string|null", "what exactly", NULL },
	{ NULL, NULL, NULL, NULL },
};

static const struct lull_property document[] = {
	{ "path", "string", "the file", NULL },
	{ "size_bytes", "integer", "its length", NULL },
	{ "format_major", "integer", "version of the format", NULL },
	{ "format_minor", "integer", "version of the format", NULL },
	{ "is_sealed", "boolean", "complete, with an index", NULL },
	{ "is_simulated", "boolean", "a device was simulated", NULL },
	{ "is_imported", "boolean", "imported from another tool's file", NULL },
	{ "n_damaged", "integer", "blocks that are damaged", NULL },
	{ "lost_bytes", "integer", "bytes that belong to no block", NULL },
	{ "recording", "string", "id of the recording", NULL },
	{ "epoch_utc_ns", "integer", "when time 0 was", NULL },
	{ "duration_ns", "integer", "from the first to the last event", NULL },
	{ "meta", "object", "facts about machine and recording, all texts", NULL },
	{ "processes", "array", "programs recorded", process_members },
	{ "devices", "array", "devices seen", device_members },
	{ "tables", "array", "what is in it", table_members },
	{ "issues", "array", "what was lost or refused", issue_members },
	{ NULL, NULL, NULL, NULL },
};

void lull_schema_of_info(struct lull_json *j)
{
	lull_schema_json_object(j, "lull info --json", document);
}
