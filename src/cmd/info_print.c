/* `lull info` for people. */
#include "cmd/info.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/map.h"
#include "base/mem.h"
#include "text/out.h"
#include "base/str.h"
#include "text/term.h"
#include "base/time.h"
#include "base/vec.h"
#include "model/device.h"
#include "trace/issue.h"

#define MIN_KEY_COLUMNS 14
#define MAX_KEY_COLUMNS 34 /* a longer key gets a line of its own */
#define MAX_USERS	4  /* processes of a device that are listed; there are jobs with hundreds */

/* One line "key  value", the value wrapped after key_columns. */
static void print_pair_at(FILE *to, const char *key, const char *value, int key_columns)
{
	if ((int)strlen(key) + 2 > key_columns)
		fprintf(to, "%s\n%*s", key, key_columns, "");
	else
		fprintf(to, "%-*s", key_columns, key);
	lull_term_wrap(to, value, key_columns, lull_term_width(to));
}

static void print_pair(FILE *to, const char *key, const char *value)
{
	print_pair_at(to, key, value, MIN_KEY_COLUMNS);
}

static void print_heading(FILE *to, const char *text)
{
	bool is_on = lull_term_has_colour(to);

	fprintf(to, "\n%s%s%s\n", lull_term_colour(LULL_COLOUR_BOLD, is_on), text,
		lull_term_colour(LULL_COLOUR_NONE, is_on));
}

/* ---- the file ---- */

static void print_file(struct lull_reader *r, const char *path, FILE *to)
{
	struct lull_str text = LULL_STR_INIT;
	u16 format = lull_reader_format(r), flags = lull_reader_info(r)->flags;

	print_pair(to, "report", path);
	lull_str_addf(&text, "%s, format %u.%u, %s%s%s",
		      lull_format_bytes(lull_reader_size_bytes(r)).text, format >> 8, format & 0xff,
		      lull_reader_is_sealed(r) ? "sealed" : "not sealed",
		      lull_info_is_simulated(r) ? ", simulated device" : "",
		      flags & LULL_FILE_IMPORTED ? ", imported" : "");
	print_pair(to, "file", lull_str_text(&text));
	lull_str_release(&text);
}

static void print_recording(struct lull_reader *r, FILE *to)
{
	const struct lull_file_info *info = lull_reader_info(r);
	time_t seconds = (time_t)(info->epoch_utc_ns / LULL_NS_PER_S);
	struct lull_str text = LULL_STR_INIT;
	char date[64] = "unknown";
	struct tm tm;

	if (info->epoch_utc_ns && gmtime_r(&seconds, &tm))
		strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S UTC", &tm);
	print_pair(to, "begin", date);
	print_pair(to, "duration", lull_format_ns(lull_info_span_ns(r)).text);
	for (size_t i = 0; i < sizeof(info->id); i++)
		lull_str_addf(&text, "%02x", info->id[i]);
	print_pair(to, "id", lull_str_text(&text));
	lull_str_release(&text);
}

/* ---- facts about machine, command and cost ---- */

/* Groups that are not printed with the others: at the end, and only on request. */
#define COST_GROUP	  "cost"
#define ENVIRONMENT_GROUP "environment"

/* Length of the part of a key before its first dot; 0 if it has none. */
static size_t group_len(const char *key)
{
	const char *dot = strchr(key, '.');

	return dot ? (size_t)(dot - key) : 0;
}

static bool is_in_group(const char *key, const char *group, size_t len)
{
	return group_len(key) == len && strncmp(key, group, len) == 0;
}

/* The facts of a report, with their texts at hand. */
struct facts {
	struct lull_reader *r;
	const struct lull_meta_row *rows;
	size_t n;
};

static const char *key_of(const struct facts *f, size_t ix)
{
	return lull_reader_string(f->r, f->rows[ix].key, NULL);
}

/*
 * The value as people read it: with a unit if its key names one, as "cuda.clock_error_ns" does. The
 * key stays: it is the one of SQL and of JSON.
 */
static const char *value_of(const struct facts *f, size_t ix, struct lull_number *number)
{
	const char *text = lull_reader_string(f->r, f->rows[ix].value, NULL);
	const char *key = key_of(f, ix), *unit = key + strlen(key);
	char *end;
	u64 value = strtoull(text, &end, 10);

	while (unit > key && isalpha((unsigned char)unit[-1]))
		unit--;
	if (end == text || *end || *text == '-')
		return text;
	if (strcmp(unit, "bytes") == 0)
		*number = lull_format_bytes(value);
	else if (strcmp(unit, "ns") == 0)
		*number = lull_format_ns(value);
	else
		return text;
	return number->text;
}

/* Columns that the keys of a group need; *n receives how many there are. */
static int measure_group(const struct facts *f, const char *group, size_t len, size_t *n)
{
	size_t longest = 0;

	*n = 0;
	for (size_t i = 0; i < f->n; i++) {
		const char *key = key_of(f, i);
		size_t rest;

		if (!is_in_group(key, group, len))
			continue;
		rest = strlen(key) - len - 1;
		longest = rest + 2 > longest && rest + 2 <= MAX_KEY_COLUMNS ? rest + 2 : longest;
		++*n;
	}
	return longest > MIN_KEY_COLUMNS ? (int)longest : MIN_KEY_COLUMNS;
}

static void print_group(const struct facts *f, const char *group, size_t len, FILE *to)
{
	struct lull_str heading = LULL_STR_INIT;
	struct lull_number number;
	size_t n;
	int columns = measure_group(f, group, len, &n);

	if (!n)
		return;
	lull_str_add(&heading, group, len);
	print_heading(to, is_in_group(COST_GROUP ".", group, len) ? "cost of recording"
								  : lull_str_text(&heading));
	for (size_t i = 0; i < f->n; i++)
		if (is_in_group(key_of(f, i), group, len))
			print_pair_at(to, key_of(f, i) + len + 1, value_of(f, i, &number), columns);
	lull_str_release(&heading);
}

/* True if the group of fact `ix` is to be printed where it first occurs, and this is there. */
static bool begins_group(const struct facts *f, size_t ix)
{
	const char *key = key_of(f, ix);
	size_t len = group_len(key);

	if (!len || is_in_group(key, COST_GROUP, strlen(COST_GROUP)) ||
	    is_in_group(key, ENVIRONMENT_GROUP, strlen(ENVIRONMENT_GROUP)))
		return false;
	for (size_t i = 0; i < ix; i++)
		if (is_in_group(key_of(f, i), key, len))
			return false;
	return true;
}

/* Keys without a group stand with the recording; the others follow under their heading. */
static void print_meta(const struct facts *f, FILE *to)
{
	for (size_t i = 0; i < f->n; i++)
		if (!group_len(key_of(f, i)))
			print_pair(to, key_of(f, i),
				   lull_reader_string(f->r, f->rows[i].value, NULL));
	for (size_t i = 0; i < f->n; i++)
		if (begins_group(f, i))
			print_group(f, key_of(f, i), group_len(key_of(f, i)), to);
}

/* ---- tables ---- */

static int write_out(struct lull_out *out, FILE *to, struct lull_err *err)
{
	const struct lull_out_options options = { .sort_ix = LULL_OUT_UNSORTED, .is_human = true };
	int rc = lull_out_write(out, &options, to, err);

	lull_out_release(out);
	return rc;
}

static int print_processes(struct lull_reader *r, FILE *to, struct lull_err *err)
{
	static const struct lull_out_column columns[] = {
		{ .name = "Process", .kind = LULL_OUT_TEXT },
		{ .name = "PID", .kind = LULL_OUT_TEXT, .align = LULL_OUT_RIGHT },
		{ .name = "Ended", .kind = LULL_OUT_TEXT },
		{ .name = "CPU", .kind = LULL_OUT_NS },
		{ .name = "Max RSS", .kind = LULL_OUT_BYTES },
		{ .name = "Threads", .kind = LULL_OUT_INT },
	};
	struct lull_info_process *all;
	struct lull_out out;
	char text[320];
	size_t n;

	all = lull_info_processes(r, &n);
	print_heading(to, n ? "processes" : "processes: none recorded");
	lull_out_init(&out, columns, LULL_COUNT_OF(columns));
	for (size_t i = 0; i < n; i++) {
		const struct lull_process_row *p = all[i].row;

		lull_out_row(&out);
		snprintf(text, sizeof(text), "%*s%s", (int)all[i].depth * 2, "",
			 lull_reader_string(r, p->name, NULL));
		lull_out_text(&out, text);
		snprintf(text, sizeof(text), "%u", p->pid);
		lull_out_text(&out, text);
		lull_info_ending(p, text, sizeof(text));
		lull_out_text(&out, text);
		lull_out_i64(&out, (i64)(p->user_ns + p->system_ns));
		lull_out_i64(&out, (i64)p->max_rss_bytes);
		lull_out_i64(&out, all[i].n_threads);
	}
	free(all);
	if (!n) {
		lull_out_release(&out);
		return 0;
	}
	return write_out(&out, to, err);
}

/* The processes that use a device: "10, 11, 12 and 5 more". */
static void add_users(struct lull_out *out, struct lull_reader *r, const u32 *rows, u32 device)
{
	size_t n, n_processes, n_users = 0;
	const struct lull_device_row *devices = lull_reader_dim(r, LULL_TABLE_device, &n);
	const struct lull_process_row *processes =
		lull_reader_dim(r, LULL_TABLE_process, &n_processes);
	struct lull_str text = LULL_STR_INIT;

	for (u32 id = 1; id <= n; id++) {
		u32 process = devices[id - 1].process;

		if (rows[id] != device || !process || process > n_processes)
			continue;
		if (n_users++ < MAX_USERS)
			lull_str_addf(&text, "%s%u", text.len ? ", " : "",
				      processes[process - 1].pid);
	}
	if (n_users > MAX_USERS)
		lull_str_addf(&text, " and %zu more", n_users - MAX_USERS);
	lull_out_text(out, text.len ? lull_str_text(&text) : NULL);
	lull_str_release(&text);
}

static void add_device(struct lull_out *out, struct lull_reader *r, const u32 *rows, u32 device)
{
	struct lull_device_row d = lull_device_joined(r, device);
	char capability[32];

	lull_out_row(out);
	lull_out_i64(out, d.device_id);
	lull_out_text(out, lull_reader_string(r, d.name, NULL));
	snprintf(capability, sizeof(capability), "%u.%u", d.capability / 10, d.capability % 10);
	lull_out_text(out, d.capability ? capability : NULL);
	if (d.n_sms)
		lull_out_i64(out, d.n_sms);
	else
		lull_out_skip(out);
	lull_out_i64(out, (i64)d.memory_bytes);
	add_users(out, r, rows, device);
	lull_out_text(out, d.is_simulated ? "simulated device" : NULL);
}

/* Whether power is known of a device; then the table has a column for it. */
static bool has_power(const struct lull_info_power *powers, size_t n_devices)
{
	for (size_t i = 1; i <= n_devices; i++)
		if (powers[i].mean_w > 0)
			return true;
	return false;
}

static int print_devices(struct lull_reader *r, FILE *to, struct lull_err *err)
{
	static const struct lull_out_column columns[] = {
		{ .name = "Device", .kind = LULL_OUT_ID },
		{ .name = "Name", .kind = LULL_OUT_TEXT },
		{ .name = "Capability", .kind = LULL_OUT_TEXT, .align = LULL_OUT_RIGHT },
		{ .name = "SMs", .kind = LULL_OUT_INT },
		{ .name = "Memory", .kind = LULL_OUT_BYTES },
		{ .name = "PIDs", .kind = LULL_OUT_TEXT },
		{ .name = "Remark", .kind = LULL_OUT_TEXT },
		{ .name = "Power", .kind = LULL_OUT_TEXT, .align = LULL_OUT_RIGHT },
	};
	struct lull_info_power *powers;
	char text[48];
	bool has;
	struct lull_out out;
	size_t n;
	u32 *rows;

	lull_reader_dim(r, LULL_TABLE_device, &n);
	print_heading(to, n ? "devices" : "devices: none recorded");
	if (!n)
		return 0;
	rows = lull_device_rows(r);
	powers = lull_info_powers(r, rows);
	has = has_power(powers, n);
	lull_out_init(&out, columns, LULL_COUNT_OF(columns) - !has);
	for (u32 id = 1; id <= n; id++) {
		if (rows[id] != id)
			continue;
		add_device(&out, r, rows, id);
		lull_info_power_format(&powers[id], text, sizeof(text));
		if (has)
			lull_out_text(&out, *text ? text : NULL);
	}
	free(powers);
	free(rows);
	return write_out(&out, to, err);
}

static void add_table(struct lull_out *out, struct lull_reader *r, const struct lull_table_desc *t)
{
	struct lull_table_stats s = lull_reader_stats(r, t->id);
	bool is_fact = t->kind == LULL_KIND_FACT;
	char name[96];

	if (!s.n_rows)
		return;
	snprintf(name, sizeof(name), "%.64s%s", t->name,
		 lull_table_find(t->id) ? "" : " (not known to this lull)");
	lull_out_row(out);
	lull_out_text(out, name);
	lull_out_i64(out, (i64)(is_fact ? s.n_rows : lull_reader_n_dim(r, t->id)));
	lull_out_i64(out, (i64)s.size_bytes);
	lull_out_f64(out, (f64)s.size_bytes / (f64)s.n_rows);
	if (!is_fact)
		return;
	lull_out_i64(out, (i64)s.first_ns);
	lull_out_i64(out, (i64)s.last_ns);
}

static int print_tables(struct lull_reader *r, FILE *to, struct lull_err *err)
{
	static const struct lull_out_column columns[] = {
		{ .name = "Table", .kind = LULL_OUT_TEXT },
		{ .name = "Rows", .kind = LULL_OUT_INT },
		{ .name = "Size", .kind = LULL_OUT_BYTES },
		{ .name = "B/row", .kind = LULL_OUT_FLOAT, .decimals = 2 },
		{ .name = "First", .kind = LULL_OUT_NS },
		{ .name = "Last", .kind = LULL_OUT_NS },
	};
	const struct lull_schema *schema = lull_reader_schema(r);
	struct lull_out out;

	lull_out_init(&out, columns, LULL_COUNT_OF(columns));
	for (size_t t = 0; t < schema->n; t++)
		add_table(&out, r, &schema->tables[t]);
	if (!lull_out_len(&out)) {
		print_heading(to, "tables: empty");
		lull_out_release(&out);
		return 0;
	}
	print_heading(to, "tables");
	return write_out(&out, to, err);
}

/* ---- what is missing ---- */

#define ISSUE_COLUMNS 10 /* two blanks, the longest severity, two blanks */

static void print_issue(struct lull_reader *r, const struct lull_issue_row *row, FILE *to)
{
	bool is_on = lull_term_has_colour(to);
	enum lull_colour colour =
		row->severity >= LULL_SEVERITY_LOSS ? LULL_COLOUR_RED : LULL_COLOUR_DIM;
	struct lull_str text = LULL_STR_INIT;
	int used = 2 + (int)strlen(lull_severity_name(row->severity)) + 2;

	fprintf(to, "  %s%s%s  ", lull_term_colour(colour, is_on),
		lull_severity_name(row->severity), lull_term_colour(LULL_COLOUR_NONE, is_on));
	fprintf(to, "%*s", ISSUE_COLUMNS - used, "");
	lull_str_addf(&text, "%s x  %s", lull_format_grouped((i64)row->count).text,
		      lull_reader_string(r, row->text, NULL));
	if (row->detail)
		lull_str_addf(&text, " (%s)", lull_reader_string(r, row->detail, NULL));
	lull_term_wrap(to, lull_str_text(&text), ISSUE_COLUMNS, lull_term_width(to));
	lull_str_release(&text);
}

/* Trouble of the file itself, which no recorder could have noted. Returns whether there is any. */
static bool print_file_trouble(struct lull_reader *r, FILE *to)
{
	bool has_any = false;

	if (!lull_reader_is_sealed(r)) {
		lull_term_say(to, 2, lull_term_width(to),
			      "the file has no end: it was cut off after %s, or is still being "
			      "written; events, names and whole tables may be missing. `lull "
			      "recover` makes a report of the rest",
			      lull_format_bytes(lull_reader_size_bytes(r)).text);
		has_any = true;
	}
	if (lull_reader_lost_bytes(r) || lull_reader_n_damaged(r)) {
		fprintf(to, "  %s of the file are damaged, in %s block%s\n",
			lull_format_bytes(lull_reader_lost_bytes(r)).text,
			lull_format_grouped((i64)lull_reader_n_damaged(r)).text,
			lull_reader_n_damaged(r) == 1 ? "" : "s");
		has_any = true;
	}
	if (lull_reader_warning(r)) {
		fprintf(to, "  %s\n", lull_reader_warning(r));
		has_any = true;
	}
	return has_any;
}

/* Rows that say the same, such as one for each of many processes, become one with their sum. */
static void add_up(struct lull_vec *issues, const struct lull_issue_row *rows, size_t n)
{
	struct lull_map known;

	lull_map_init(&known);
	for (size_t i = 0; i < n; i++) {
		struct lull_issue_row *first;
		bool is_new;
		u32 *ix = lull_map_add(&known, (u64)rows[i].text << 32 | rows[i].detail, &is_new);

		if (is_new) {
			*ix = (u32)issues->n;
			lull_vec_add(issues, &rows[i], 1);
			continue;
		}
		first = lull_vec_get(issues, *ix);
		first->count += rows[i].count;
	}
	lull_map_release(&known);
}

static void print_losses(struct lull_reader *r, FILE *to)
{
	size_t n;
	const struct lull_issue_row *rows = lull_reader_dim(r, LULL_TABLE_issue, &n);
	struct lull_vec issues;
	bool has_any;

	lull_vec_init(&issues, sizeof(*rows));
	add_up(&issues, rows, n);
	rows = issues.at;
	print_heading(to, "losses and notices");
	has_any = print_file_trouble(r, to);
	for (int severity = LULL_SEVERITY_ERROR; severity >= 0; severity--)
		for (size_t i = 0; i < issues.n; i++)
			if (rows[i].severity == severity && rows[i].count) {
				print_issue(r, &rows[i], to);
				has_any = true;
			}
	if (!has_any)
		fputs("  none\n", to);
	lull_vec_release(&issues);
}

int lull_info_print(struct lull_reader *r, const char *path, bool has_environment, FILE *to,
		    struct lull_err *err)
{
	struct facts facts = { .r = r };
	int rc;

	facts.rows = lull_reader_dim(r, LULL_TABLE_meta, &facts.n);
	print_file(r, path, to);
	print_recording(r, to);
	print_meta(&facts, to);
	if (has_environment)
		print_group(&facts, ENVIRONMENT_GROUP, strlen(ENVIRONMENT_GROUP), to);
	rc = print_processes(r, to, err);
	if (rc)
		return rc;
	rc = print_devices(r, to, err);
	if (rc)
		return rc;
	rc = print_tables(r, to, err);
	if (rc)
		return rc;
	print_losses(r, to);
	print_group(&facts, COST_GROUP, strlen(COST_GROUP), to);
	return 0;
}
